//! Stretches of time in which alarms do not ask for attention: start-up, maintenance.

use serde::{Deserialize, Serialize};

use super::mark::Mark;

/// A stretch of time in which clients are out of service by plan. They are measured and decided on all
/// the same; their alarms do not ask for attention and go to no receiver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Suspension {
    /// What is being done: "start-up", "boiler cleaned".
    pub(crate) why: String,
    /// Clients by name; all of them when there is none.
    #[serde(default)]
    pub(crate) clients: Vec<String>,
    /// From when on; from the first row that is watched when absent.
    #[serde(default)]
    pub(crate) from: Option<Mark>,
    /// Up to but without this: a time of the data's clock, or a distance from the first row that is
    /// watched, such as "+30m".
    pub(crate) until: Mark,
}
