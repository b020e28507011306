//! Headwater finds where trouble started in a plant, without any process giving up its data.
//!
//! ```text
//! stream ──► client ──► link ──► server ──► evidence ──► incident ──► engine ──► console
//! ```
//!
//! | module | what it is for |
//! |---|---|
//! | [`rng`] | reproducible randomness: one generator per seed and source |
//! | [`session`] | what to watch: a RON file becomes a session |
//! | [`stream`] | time-aligned measurements from tables, HAI, the built-in plant, the synthetic plants |
//! | [`privacy`] | noise, its price, and a ledger per client: what may leave a client at all |

pub mod privacy;
pub mod rng;
pub mod session;
pub mod stream;
