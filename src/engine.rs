//! Runs a session: from its data to models, from its models to facts.
//!
//! | module | what it is for |
//! |---|---|
//! | [`compare`] | what was learned, on nominal rows that nothing was fitted to |
//! | [`vendor`] | proprietary models: delivered with the program, or made from the fit range |
//! | [`prepare`] | from a session to models that can run: delivered or trained, federated, calibrated, kept |
//! | [`influence`] | who influences whom, learned once with the models |
//! | [`decimation`] | how many samples become one when the session leaves that to its data |
//! | [`experiment`] | the paper's own experiments, which no session can ask for: for studies only |
//! | [`knob`] | what can be tuned while a session runs, one row of a table each |
//! | [`run`] | from a prepared session to its facts, step by step, in either mode |
//! | [`watch`] | the same for a screen: measurements, residuals, incidents, orders, what-ifs |
//! | [`handle`], `player`, [`places`], `protocol`, [`pace`], [`progress`] | [`spawn`]: all of it on a thread of its own, commands in, events out |
//! | [`ledger_file`], [`ledger_key`] | where the ledgers of a run are kept, and what signs them |
//! | `carried` | what a live session keeps from one start to the next |
//! | `live` | nominal rows of a live source are gathered before it is watched |
//! | [`kept_run`], [`recorded`] | a run that is recorded, and a recording as the source of a run |
//! | [`branch`] | a recording run again from a moment on with another setting |
//! | [`cost`] | what preparing a session takes, estimated before anything is allocated |
//!
//! It must not know how anything is shown.

pub(crate) mod branch;
pub(crate) mod carried;
pub(crate) mod compare;
pub(crate) mod cost;
pub(crate) mod decimation;
mod error;
pub(crate) mod experiment;
pub(crate) mod handle;
pub(crate) mod influence;
pub(crate) mod kept_run;
pub(crate) mod knob;
pub(crate) mod ledger_file;
pub(crate) mod ledger_key;
pub(crate) mod live;
pub(crate) mod pace;
pub(crate) mod places;
mod player;
pub(crate) mod prepare;
pub(crate) mod progress;
mod protocol;
pub(crate) mod recorded;
pub(crate) mod run;
pub(crate) mod train;
pub(crate) mod vendor;
pub(crate) mod watch;

pub(crate) use self::handle::{Handle, spawn, spawn_recorded};
