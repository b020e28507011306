//! Headwater finds where trouble started in a plant, without any process giving up its data.
//!
//! ```text
//! stream ──► client ──► link ──► server ──► evidence ──► incident ──► engine ──► console
//! ```
//!
//! | module | what it is for |
//! |---|---|
//! | [`draft`] | files that come into being all at once |
//! | [`rng`] | reproducible randomness: one generator per seed and source |
//! | [`session`] | what to watch: a RON file becomes a session |
//! | [`stream`] | time-aligned measurements from tables, HAI, the built-in plant, the synthetic plants |
//! | [`model`] | the networks and filters, one definition each, and their training |
//! | [`evidence`] | flags and the look-up table; whitened residuals, symbols, sequential decision |
//! | [`make`] | writes data of the built-in plants, with the truth about it |
//! | [`study`] | how good the answers are: metrics, and the score of a list of alarms |

pub mod cli;
pub mod console;
pub mod draft;
pub mod evidence;
pub mod make;
pub mod model;
pub mod rng;
pub mod session;
pub mod stream;
pub mod study;
