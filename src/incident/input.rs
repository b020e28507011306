//! The input of the annunciator: the server's decision about one step, and faults of the data.

use jiff::Timestamp;

pub(crate) use crate::server::decision::{
    ClientState, Closing, Decision, Disturbance, Outcome, QualityKind, QualityNote,
};
pub(crate) use crate::server::lookup::TableVerdict;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) time: Timestamp,
    pub(crate) number: u64,
    /// A client that it lacks is quiet; a disturbance that it does not mention stays as it was. Where
    /// Table 1 declares a verdict, nothing else opens, moves or closes an incident.
    pub(crate) decision: &'a Decision,
    /// Faults of the data at this step, those of the decision and others.
    pub(crate) quality: &'a [QualityNote],
}
