//! Headwater finds where trouble started in a plant, without any process giving up its data.
//!
//! ```text
//! stream ──► client ──► link ──► server ──► evidence ──► incident ──► engine ──► console
//! ```
//!
//! | module | what it is for |
//! |---|---|
//! | [`rng`] | reproducible randomness: one generator per seed and source |
//! | [`threads`] | how many threads work is spread over |
//! | [`draft`] | files that come into being all at once |
//! | [`session`] | what to watch: a RON file becomes a session |
//! | [`stream`] | time-aligned measurements from tables, HAI, the built-in plant, the synthetic plants |
//! | [`make`] | writes data of the built-in plants, with the truth about it |
//! | [`model`] | networks and filters, one definition each: how they are trained, how they run |
//! | [`privacy`] | what may be released: mechanisms, budget, ledger |
//! | [`link`] | what may cross between a client and the server |
//! | [`client`] | one site in training: the only module that sees its measurements |
//! | [`server`] | learns how clients' states depend on each other, and says so in gradients |
//! | [`federation`] | Algorithm 1, the baselines, and how near they come to the oracle |
//! | [`evidence`] | flags and the look-up table; whitened residuals, symbols, sequential decision |
//! | [`fact`] | what a run says, one JSON line each: the same for commands, recordings and the screen |
//! | [`incident`] | one alarm per root cause, its effects folded under it, and what operators do about it |
//! | [`history`] | columnar history with gaps: any stretch at any zoom in a handful of look-ups |
//! | [`engine`] | runs a session: from its data to models, from its models to what is said |
//! | [`study`] | how good the answers are: metrics, the score of a list of alarms, every table and figure |
//! | [`console`] | the screen: live measurements of every client, as they are replayed |
//! | [`bench`] | speed and memory on this machine |
//! | [`cli`] | the commands |
//!
//! A module imports only what stands above it, save that [`engine`] scores its runs with
//! [`study::score`], which knows nothing but alarms and labels; nothing but [`bench`] and [`cli`]
//! imports [`console`].

pub mod bench;
pub mod cli;
pub mod client;
pub mod console;
pub mod draft;
pub mod engine;
pub mod evidence;
pub mod fact;
pub mod federation;
pub mod history;
pub mod incident;
pub mod link;
pub mod make;
pub mod model;
pub mod privacy;
pub mod rng;
pub mod server;
pub mod session;
pub mod stream;
pub mod study;
pub mod threads;
