//! What every other module may stand on: randomness, threads, folders, digests, mean and
//! spread, files that are written whole, access to a broker, notices on standard error, names that were
//! probably meant.
//!
//! It must not know any other module.

pub(crate) mod atomic_file;
pub(crate) mod broker;
pub(crate) mod digest;
pub(crate) mod folders;
pub(crate) mod moments;
pub(crate) mod notice;
pub(crate) mod rng;
pub(crate) mod suggest;
pub(crate) mod threads;
