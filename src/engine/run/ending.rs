//! How a run ended, for its summary.

use crate::fact::Summary;
use crate::score::{Alarm, Judgement, Watched};
use crate::stream::Event;

/// How a run ended.
#[derive(Debug, Clone)]
pub(crate) struct Ending {
    pub(crate) summary: Summary,
    /// Disturbances that the data is known to hold.
    pub(crate) events: Vec<Event>,
    pub(super) alarms: Vec<Alarm>,
    pub(super) watched: Watched,
    pub(super) tail_s: f64,
    pub(super) is_labelled: bool,
}

impl Ending {
    /// The end of a run elsewhere, of which only the summary is known.
    pub(crate) fn of_summary(summary: Summary) -> Self {
        let (events, alarms, watched) = (Vec::new(), Vec::new(), Watched::Days(0.0));
        Self { summary, events, alarms, watched, tail_s: 0.0, is_labelled: false }
    }

    /// Every alarm, in the order of time.
    pub(crate) fn alarms(&self) -> &[Alarm] {
        &self.alarms
    }

    /// The score of the run; none where the data has no labels.
    pub(crate) fn judgement(&self) -> Option<Judgement<'_>> {
        self.is_labelled
            .then(|| Judgement::new(&self.events, &self.alarms, &self.watched, self.tail_s))
    }
}
