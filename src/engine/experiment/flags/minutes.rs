//! Flags of minutes from flags of steps, in the readings of "a Boolean alarm flag per minute".

use serde::{Deserialize, Serialize};

use super::FlagSeries;
use crate::evidence::threshold::Flags;

/// Steps of a minute; none where a step is longer than a second, so that a minute has too few.
pub(crate) fn steps_of_a_minute(period_s: f64) -> Option<usize> {
    (period_s <= 1.0).then(|| (60.0 / period_s).round() as usize)
}

/// The time that one flag covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum Span {
    /// One step.
    #[default]
    Step,
    /// A minute: at least one of its steps is flagged.
    AnyOfAMinute,
    /// A minute: more than half of its steps are flagged.
    MostOfAMinute,
    /// The same two with the thresholds of the training rows; ARL0 is the time from the first of them to
    /// the first flag.
    AnyInTraining,
    MostInTraining,
}

impl Span {
    /// The readings of "a flag per minute": the paper does not say which it takes.
    pub(crate) const MINUTES: [Self; 2] = [Self::AnyOfAMinute, Self::MostOfAMinute];
    /// The same where training rows give thresholds and ARL0, which the paper says.
    pub(super) const IN_TRAINING: [Self; 2] = [Self::AnyInTraining, Self::MostInTraining];

    /// Words behind the name of a model.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Step => "",
            Self::AnyOfAMinute => ", a minute with any flag",
            Self::MostOfAMinute => ", a minute of mostly flags",
            Self::AnyInTraining => ", of training, a minute with any flag",
            Self::MostInTraining => ", of training, a minute of mostly flags",
        }
    }

    /// One flag a minute of `each` steps; a rest of less than a minute is left out.
    pub(super) fn gather(self, raised: &[bool], each: usize) -> Vec<bool> {
        let of_minute = |minute: &[bool]| {
            let flagged = minute.iter().filter(|z| **z).count();
            match self {
                Self::Step | Self::AnyOfAMinute | Self::AnyInTraining => flagged > 0,
                Self::MostOfAMinute | Self::MostInTraining => 2 * flagged > minute.len(),
            }
        };
        raised.chunks_exact(each).map(of_minute).collect()
    }
}

impl FlagSeries {
    /// One pair of flags a minute of `each` steps. A step without flags counts as one where none is raised;
    /// a minute without any has none.
    pub(crate) fn gather(&self, span: Span, each: usize) -> Self {
        let of = |client: &Vec<Option<Flags>>| {
            let gathered = |z: fn(&Flags) -> bool| {
                let raised: Vec<bool> =
                    client.iter().map(|flags| flags.as_ref().is_some_and(z)).collect();
                span.gather(&raised, each)
            };
            let pairs = gathered(|z| z.z_c).into_iter().zip(gathered(|z| z.z_a));
            let known = client.chunks_exact(each).map(|minute| minute.iter().any(Option::is_some));
            known.zip(pairs).map(|(known, (c, a))| known.then(|| Flags::new(c, a))).collect()
        };
        Self { clients: self.clients.iter().map(of).collect() }
    }
}
