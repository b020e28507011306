//! Runs a session: from its data to models, from its models to what is said.
//!
//! | module | what it is for |
//! |---|---|
//! | [`material`] | nominal rows of every client, scaled by what the fit range alone tells |
//! | [`prepare`] | from a session to models that can run: delivered or trained, federated, calibrated, kept |
//! | [`vendor`] | proprietary models: delivered with the program, or made from the fit range |
//!
//! It must not know how anything is shown.

pub mod material;
pub mod prepare;
pub mod vendor;
