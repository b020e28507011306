//! Runs a session: from its data to models, from its models to what is said.
//!
//! | module | what it is for |
//! |---|---|
//! | [`compare`] | what was learned, on nominal rows that nothing was fitted to |
//! | [`vendor`] | proprietary models: delivered with the program, or made from the fit range |
//! | [`prepare`] | from a session to models that can run: delivered or trained, federated, calibrated, kept |
//! | [`influence`] | who influences whom, learned once with the models |
//! | [`decimation`] | how many samples become one when the session leaves that to its data |
//! | [`run`] | from a prepared session to its facts, step by step, in either mode |
//! | [`watch`] | the same for whoever looks on: measurements, residuals, incidents, orders, what-ifs |
//! | [`handle`], `player`, [`pace`], [`progress`] | [`spawn`]: all of it on a thread of its own, commands in, events out |
//!
//! It must not know how anything is shown.

pub mod compare;
pub mod cost;
pub mod decimation;
pub mod handle;
pub mod influence;
pub mod ledger_file;
pub mod ledger_key;
pub mod pace;
pub(crate) mod player;
pub mod prepare;
pub mod progress;
pub mod run;
pub mod train;
pub mod vendor;
pub mod watch;

pub use self::handle::{Handle, spawn};
