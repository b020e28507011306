//! One event and what became of it, as `run --json` and `headwater score` list it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::course::sensor_is_right;
use super::{Outcome, Verdict};

/// One event and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct EventRow {
    pub(crate) id: String,
    pub(crate) start: Timestamp,
    /// Last instant, inclusive.
    pub(crate) end: Timestamp,
    /// Where it started; empty when unknown.
    pub(crate) origins: Vec<String>,
    /// Whether it has an alarm.
    pub(crate) detected: bool,
    /// Seconds to its first alarm.
    pub(crate) delay_s: Option<f64>,
    /// The root that alarm names.
    pub(crate) root: Option<String>,
    /// Whether that is one of its origins; `null` without an alarm, a named root or a known origin.
    pub(crate) right: Option<bool>,
    /// The result.
    pub(crate) verdict: Verdict,
    /// The root at the alarm.
    #[serde(default)]
    pub(crate) root_at_alarm: Option<String>,
    /// The root five steps later.
    #[serde(default)]
    pub(crate) root_after_5: Option<String>,
    /// A silent source above the root, shown as a second name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) silent_source: Option<String>,
    /// The sensor that its root ranks first, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sensor: Option<String>,
    /// Whether the event tampers with that sensor, where the truth knows and the root is right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sensor_right: Option<bool>,
    /// Incidents that opened in it or in its tail.
    #[serde(default)]
    pub(crate) incidents: usize,
}

impl From<&Outcome<'_>> for EventRow {
    fn from(outcome: &Outcome<'_>) -> Self {
        Self {
            id: outcome.event.id.clone(),
            start: outcome.event.start,
            end: outcome.event.end,
            origins: outcome.event.origins.clone(),
            detected: outcome.alarm.is_some(),
            delay_s: outcome.delay_s(),
            root: outcome.alarm.and_then(|alarm| alarm.root.clone()),
            right: match outcome.verdict {
                Verdict::Right => Some(true),
                Verdict::Wrong => Some(false),
                Verdict::Missed | Verdict::Unnamed | Verdict::Doubtful => None,
            },
            verdict: outcome.verdict,
            root_at_alarm: outcome.alarm.and_then(|alarm| alarm.course.root_at_alarm.clone()),
            root_after_5: outcome.alarm.and_then(|alarm| alarm.course.root_after_5.clone()),
            silent_source: outcome.alarm.and_then(|alarm| alarm.course.silent_source.clone()),
            sensor: outcome.alarm.and_then(|alarm| alarm.course.sensor().cloned()),
            sensor_right: sensor_is_right(outcome),
            incidents: outcome.alarms,
        }
    }
}
