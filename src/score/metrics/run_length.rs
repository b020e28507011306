//! Average run lengths: ARL0 between false alarms, ARL1 from an onset to the next alarm.
//!
//! A run that was not followed to its alarm is censored, not thrown away: leaving such runs out
//! would reward a detector for the anomalies it missed. The mean is the time watched over the
//! number of alarms (total time on test), which is the plain mean when nothing is censored and the
//! maximum-likelihood mean of a memoryless run when something is. How many runs were censored goes
//! with it everywhere.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Tick;

/// A mean run length and what it rests on, in the unit it was given in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct RunLength {
    /// Time watched per alarm; `None` without an alarm.
    pub(crate) mean: Option<f64>,
    /// What is sure without any assumption: the mean length so far, which censored runs exceed.
    pub(crate) at_least: Option<f64>,
    /// Runs that ended in an alarm.
    pub(crate) ended: usize,
    /// Runs that were still going when watching stopped.
    pub(crate) censored: usize,
}

impl RunLength {
    /// Of `ended + censored` runs that lasted `watched` together.
    pub(crate) fn new(watched: f64, ended: usize, censored: usize) -> Self {
        let runs = ended + censored;
        Self {
            mean: (ended > 0).then(|| watched / ended as f64),
            at_least: (runs > 0).then(|| watched / runs as f64),
            ended,
            censored,
        }
    }

    /// The same in another unit.
    pub(crate) fn scaled(self, factor: f64) -> Self {
        let scale = |value: Option<f64>| value.map(|value| value * factor);
        Self { mean: scale(self.mean), at_least: scale(self.at_least), ..self }
    }
}

impl fmt::Display for RunLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.mean, self.at_least) {
            (Some(mean), _) if self.censored == 0 => write!(f, "{mean:.1}"),
            (Some(mean), _) => {
                write!(
                    f,
                    "{mean:.1} ({} of {} censored)",
                    self.censored,
                    self.ended + self.censored
                )
            }
            (None, Some(least)) => write!(f, "over {least:.1} (no alarm)"),
            (None, None) => f.write_str("-"),
        }
    }
}

/// Run lengths in a form that can be added up.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct RunTotals {
    /// Length of all runs together.
    pub watched: f64,
    /// RunTotals that ended in an alarm.
    pub ended: usize,
    /// RunTotals that were still going when watching stopped.
    pub censored: usize,
}

impl RunTotals {
    /// Of several runs together.
    pub(crate) fn pooled<'a>(runs: impl IntoIterator<Item = &'a Self>) -> RunLength {
        let sum = runs.into_iter().fold(Self::default(), |sum, run| Self {
            watched: sum.watched + run.watched,
            ended: sum.ended + run.ended,
            censored: sum.censored + run.censored,
        });
        RunLength::new(sum.watched, sum.ended, sum.censored)
    }
}

impl From<RunLength> for RunTotals {
    fn from(length: RunLength) -> Self {
        let runs = (length.ended + length.censored) as f64;
        Self {
            watched: length.at_least.unwrap_or(0.0) * runs,
            ended: length.ended,
            censored: length.censored,
        }
    }
}

/// ARL0: nominal time per false alarm. The stretch after the last one is a censored run.
pub(crate) fn arl0(nominal: f64, false_alarms: usize) -> RunLength {
    RunLength::new(nominal, false_alarms, usize::from(nominal > 0.0))
}

/// How long one anomaly is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) onset: Tick,
    /// The last tick at which an alarm still answers it: usually the tick before the next onset,
    /// or the end of the data.
    pub(crate) until: Tick,
}

/// ARL1: from each onset to the next alarm at or after it; censored when none comes in time.
pub(crate) fn arl1(runs: &[Run], alarms: &[Tick]) -> RunLength {
    let mut alarms = alarms.to_vec();
    alarms.sort_unstable();
    let (mut watched, mut ended) = (0.0, 0);
    for run in runs {
        let next = alarms.partition_point(|&alarm| alarm < run.onset);
        let end = match alarms.get(next) {
            Some(&alarm) if alarm <= run.until => {
                ended += 1;
                alarm
            }
            _ => run.until.max(run.onset),
        };
        watched += end.saturating_sub(run.onset) as f64;
    }
    RunLength::new(watched, ended, runs.len() - ended)
}

/// The runs of anomalies that are each followed until the next one starts, the last one until
/// `last`.
pub(crate) fn runs(onsets: &[Tick], last: Tick) -> Vec<Run> {
    let mut onsets = onsets.to_vec();
    onsets.sort_unstable();
    let ends = onsets.iter().skip(1).map(|next| next.saturating_sub(1)).chain([last]);
    onsets.iter().zip(ends).map(|(&onset, until)| Run { onset, until }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn without_a_false_alarm_arl0_is_only_known_to_be_longer_than_the_watch() {
        assert_eq!(
            arl0(3000.0, 0),
            RunLength { mean: None, at_least: Some(3000.0), ended: 0, censored: 1 }
        );
        assert_eq!(arl0(3000.0, 0).to_string(), "over 3000.0 (no alarm)");
        assert_eq!(arl0(3000.0, 3).mean, Some(1000.0));
    }

    #[test]
    fn a_missed_anomaly_makes_arl1_longer_instead_of_vanishing_from_it() {
        let runs = runs(&[100, 200, 300], 399);
        let all = arl1(&runs, &[102, 204, 300]);
        assert_eq!((all.mean, all.censored), (Some(2.0), 0));
        let missed = arl1(&runs, &[102, 300]);
        assert_eq!((missed.mean, missed.censored), (Some(50.5), 1));
        assert_eq!(missed.to_string(), "50.5 (1 of 3 censored)");
    }

    #[test]
    fn an_alarm_before_the_onset_does_not_end_the_run() {
        let length = arl1(&runs(&[100], 150), &[99]);
        assert_eq!((length.ended, length.at_least), (0, Some(50.0)));
    }

    proptest! {
        #[test]
        fn more_alarms_never_lengthen_a_run_and_order_does_not_matter(
            onsets in prop::collection::vec(0i64..500, 0..8),
            alarms in prop::collection::vec(0i64..600, 0..12)
                .prop_flat_map(|l| (Just(l.clone()), Just(l).prop_shuffle())),
            more in 0i64..600,
        ) {
            let runs = runs(&onsets, 600);
            let before = arl1(&runs, &alarms.0);
            prop_assert_eq!(before, arl1(&runs, &alarms.1));
            let mut longer = alarms.0.clone();
            longer.push(more);
            let after = arl1(&runs, &longer);
            prop_assert!(after.at_least <= before.at_least);
            prop_assert!(after.ended >= before.ended);
            if let (Some(mean), Some(least)) = (after.mean, after.at_least) {
                prop_assert!(mean >= least);
            }
        }
    }
}
