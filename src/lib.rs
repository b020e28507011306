//! Headwater finds where trouble started in a plant, without any process giving up its data.
//!
//! ```text
//! stream ──► client ──► link ──► server ──► evidence ──► incident ──► engine ──► console
//! ```
//!
//! | module | what it is for |
//! |---|---|
//! | [`make`] | data of the built-in plants as files, with its ground truth |
//! | [`rng`] | reproducible randomness: one generator per seed and source |
//! | [`session`] | what to watch: a RON file becomes a session |
//! | [`stream`] | time-aligned measurements from tables, HAI, the built-in plant, the synthetic plants |

pub mod make;
pub mod rng;
pub mod session;
pub mod stream;
