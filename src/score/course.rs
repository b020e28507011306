//! The course of an alarm: its root at the alarm, a few steps later and at the end, and when it
//! named which effect.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Outcome, Verdict, seconds};
use crate::score::metrics::delay::Delays;
use crate::score::metrics::share;
use crate::stream::Event;

/// Steps after the alarm at which its root counts for the second time.
const FIVE: u64 = 5;

/// The course of an alarm.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Course {
    /// The root it named at once.
    pub(crate) root_at_alarm: Option<String>,
    /// The root it named five steps later; the last one where steps are not given.
    pub root_after_5: Option<String>,
    /// A declared source above the root that it showed as a second name.
    pub(crate) silent_source: Option<String>,
    /// When each effect was first said.
    pub(crate) effects: Vec<(String, Timestamp)>,
    /// The sensor that a root named first, and that root.
    sensor: Option<(String, String)>,
    opened_step: Option<u64>,
}

impl Course {
    /// The course of an alarm that has just been raised.
    pub(crate) fn new(root: Option<String>) -> Self {
        Self { root_after_5: root.clone(), root_at_alarm: root, ..Self::default() }
    }

    /// Takes the root at a step; `opening` is the alarm itself.
    pub(crate) fn take(&mut self, root: Option<&String>, step: Option<u64>, opening: bool) {
        if opening {
            self.root_at_alarm = root.cloned();
            self.opened_step = step;
        }
        let is_early = match (self.opened_step, step) {
            (Some(opened), Some(step)) => step <= opened + FIVE,
            _ => true,
        };
        if is_early {
            self.root_after_5 = root.cloned();
        }
    }

    /// The sensor that deviates most at `root`. The first one counts: what follows drags others along.
    pub(crate) fn take_sensor(&mut self, root: Option<&String>, sensor: Option<String>) {
        let is_known = self.sensor.as_ref().is_some_and(|(of, _)| Some(of) == root);
        if !is_known {
            self.sensor = root.cloned().zip(sensor);
        }
    }

    /// The sensor that the root named first.
    pub(crate) fn sensor(&self) -> Option<&String> {
        self.sensor.as_ref().map(|(_, sensor)| sensor)
    }

    /// Takes the effects at `time`.
    pub(crate) fn take_effects<'a>(
        &mut self,
        said: impl Iterator<Item = &'a String>,
        time: Timestamp,
    ) {
        for client in said {
            if !self.effects.iter().any(|(known, _)| known == client) {
                self.effects.push((client.clone(), time));
            }
        }
    }
}

/// In how many events the named root was right, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct RootCourse {
    /// At the alarm.
    pub(crate) at_alarm: usize,
    /// Five steps later.
    pub after_5_steps: usize,
    /// In the end.
    pub(crate) at_close: usize,
    /// In the end, the root or the silent source above it.
    pub(crate) with_source: usize,
}

impl RootCourse {
    pub(super) fn of(outcomes: &[Outcome<'_>]) -> Self {
        let mut found = Self::default();
        for outcome in outcomes {
            let Some(alarm) = outcome.alarm else { continue };
            let is_right = |root: &Option<String>| {
                root.as_ref().is_some_and(|r| outcome.event.origins.contains(r))
            };
            found.at_alarm += usize::from(is_right(&alarm.course.root_at_alarm));
            found.after_5_steps += usize::from(is_right(&alarm.course.root_after_5));
            found.at_close += usize::from(is_right(&alarm.root));
            let either = is_right(&alarm.root) || is_right(&alarm.course.silent_source);
            found.with_source += usize::from(either);
        }
        found
    }
}

/// How good the list of propagated effects is: over detected events whose affected clients are known.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct EffectScore {
    /// Right ones among those that were said.
    pub(crate) precision: Option<f64>,
    /// Those that were said among the affected.
    pub(crate) recall: Option<f64>,
    /// From the start of an event until an effect was reported.
    pub(crate) delay_s: Delays,
}

impl EffectScore {
    pub(super) fn of(outcomes: &[Outcome<'_>]) -> Self {
        let (mut said, mut right, mut affected) = (0, 0, 0);
        let mut delays = Vec::new();
        let known = |event: &Event| !event.affected.is_empty();
        for outcome in outcomes.iter().filter(|outcome| known(outcome.event)) {
            let Some(alarm) = outcome.alarm else { continue };
            let is_right = |client: &String| outcome.event.affected.contains(client);
            said += alarm.effects.len();
            right += alarm.effects.iter().filter(|client| is_right(client)).count();
            affected += outcome.event.affected.len();
            let first = alarm.course.effects.iter().filter(|(client, _)| is_right(client));
            delays.extend(first.map(|(_, time)| seconds(outcome.event.start, *time)));
        }
        Self {
            precision: share(right, said),
            recall: share(right, affected),
            delay_s: Delays::of(&delays),
        }
    }
}

/// How often the sensor that a right root ranks first is one that the event tampers with: over events
/// whose root is right, whose sensors the truth knows and whose root says which one deviates most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct SensorScore {
    pub(crate) known: usize,
    pub(crate) right: usize,
}

impl SensorScore {
    pub(super) fn of(outcomes: &[Outcome<'_>]) -> Option<Self> {
        let mut found = Self::default();
        for right in outcomes.iter().filter_map(sensor_is_right) {
            found.known += 1;
            found.right += usize::from(right);
        }
        (found.known > 0).then_some(found)
    }
}

/// Whether the sensor that a right root ranks first is one that the event tampers with.
pub(super) fn sensor_is_right(outcome: &Outcome<'_>) -> Option<bool> {
    let of_right_root = outcome.alarm.filter(|_| outcome.verdict == Verdict::Right);
    let sensor = of_right_root?.course.sensor()?;
    let known = &outcome.event.sensors;
    (!known.is_empty()).then(|| known.contains(sensor))
}
