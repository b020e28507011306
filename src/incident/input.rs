//! What the annunciator takes: the server's decision about one step, and what is wrong with the data.

use jiff::Timestamp;

pub use crate::server::decision::{ClientState, Closing, Outcome, QualityKind, QualityNote};

/// One step.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// Data time.
    pub time: Timestamp,
    /// Its number.
    pub step: u64,
    /// Every client in the order of the session. One that is missing here is quiet.
    pub clients: &'a [ClientState],
    /// What the decision says. An episode that is not mentioned stays as it was.
    pub outcomes: &'a [Outcome],
    /// What is wrong with the data at this step.
    pub quality: &'a [QualityNote],
}
