//! The input of the annunciator: the server's decision about one step, and faults of the data.

use jiff::Timestamp;

pub(crate) use crate::server::decision::{
    ClientState, Closing, Disturbance, Outcome, QualityKind, QualityNote,
};
pub(crate) use crate::server::lookup::TableVerdict;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) time: Timestamp,
    pub(crate) number: u64,
    /// Every client in the order of the session. One that is missing here is quiet.
    pub(crate) clients: &'a [ClientState],
    /// Outcomes of disturbances. One that is not mentioned stays as it was.
    pub(crate) outcomes: &'a [Outcome],
    /// What Table 1 declares, in paper mode. Then nothing else opens, moves or closes an incident.
    pub(crate) table: Option<TableVerdict>,
    /// Faults of the data at this step.
    pub(crate) quality: &'a [QualityNote],
}
