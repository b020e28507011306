//! How the server decides: the numbers.

use serde::{Deserialize, Serialize};

use crate::evidence::likelihood::Hypotheses;
use crate::server::lifetime;

/// How the server decides: one set of numbers for all data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rules {
    /// Shapes of the hypotheses.
    pub(crate) hypotheses: Hypotheses,
    /// Wanted steps between two false alarms of the whole federation.
    pub arl0: f64,
    /// The root is final this many steps after the alarm.
    pub(crate) freeze_after: u64,
    /// Evidence against the root at which an incident closes.
    pub(crate) closing_evidence: f64,
    /// Evidence at which a client counts as affected that the root is known to reach.
    pub(crate) effect_evidence: f64,
    /// How many bystanders may be taken for affected in one incident, on average, where nothing is
    /// known of who reaches whom.
    pub(crate) bystanders: f64,
    /// Steps after which an incident is taken for a change that stays.
    pub(crate) oldest: u64,
    /// Steps for which a client that was still affected when its incident closed raises no alarm of
    /// its own.
    pub(crate) afterglow: u64,
    /// Steps without a report of its root after which an incident is over.
    pub(crate) silence: u64,
    /// Shape a of a client that has not recovered: its p-values follow Beta(a, 1).
    pub(crate) disturbed: f64,
    /// Shape a of a client whose disturbance fades.
    pub(crate) fading: f64,
    /// Shape a of a client that is saturated: nearly every step is of the highest level.
    pub(crate) saturated: f64,
    /// Shape a of a member of an open episode that is nearly quiet.
    pub(crate) nearly_quiet: f64,
    /// Evidence of recovery from which on a client's part in an incident is over.
    pub(crate) recovery: f64,
    /// Steps for which an incident stands at least after a change that stays.
    pub(crate) standing: u64,
    /// Steps from the alarm for which a final root may still be revised.
    pub(crate) revision: u64,
}

impl Rules {
    /// The defaults at a wanted false-alarm rate.
    pub(crate) fn with_arl0(arl0: f64) -> Self {
        Self {
            hypotheses: Hypotheses::default(),
            arl0,
            freeze_after: lifetime::FREEZE_AFTER,
            closing_evidence: 4.0,
            effect_evidence: 5.0,
            bystanders: 0.05,
            oldest: lifetime::OLDEST,
            afterglow: lifetime::WINDOW,
            silence: 20,
            disturbed: 0.3,
            fading: 0.35,
            saturated: 0.02,
            nearly_quiet: 0.6,
            recovery: std::f64::consts::LN_10,
            standing: lifetime::OLDEST,
            revision: lifetime::WINDOW,
        }
    }

    /// Evidence at which a client counts as affected of which nobody knows whether it can be: that of
    /// a bystander crosses it in at most e^−x of its steps.
    pub(super) fn stranger_evidence(&self, clients: usize) -> f64 {
        let steps = clients.saturating_sub(1).max(1) as f64 * self.afterglow.max(1) as f64;
        (steps / self.bystanders).ln().max(self.effect_evidence)
    }
}
