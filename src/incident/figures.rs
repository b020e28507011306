//! The figures of the header and of the log: how many, how urgent, how fast.

use jiff::tz::TimeZone;
use jiff::{Timestamp, civil::Date};
use serde::{Deserialize, Serialize};

use super::annunciator::Annunciator;
use super::input::TableVerdict;
use super::rate::{CHATTER, STALE};
use super::state::AlarmState;
use crate::fact::Priority;

/// Counts at one instant.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) open: usize,
    /// Open incidents that are neither shelved nor out of service: the standing alarms.
    pub(crate) standing: usize,
    /// Alarms that are not acknowledged yet.
    pub(crate) unacknowledged: usize,
    /// Alarms that were over before they were acknowledged.
    pub(crate) returned: usize,
    /// Held because the change stays.
    pub(crate) latched: usize,
    pub(crate) shelved: usize,
    /// Effects folded under a root.
    pub(crate) grouped: usize,
    pub(crate) out_of_service: usize,
    /// Alarms of the last ten minutes.
    pub(crate) alarms_10min: usize,
    /// Flags of the last ten minutes: the alarms there would be without grouping.
    pub(crate) flags_10min: usize,
    /// Incidents opened in the last ten minutes.
    pub(crate) incidents_10min: usize,
    /// More alarms than an operator can answer.
    pub(crate) flood: bool,
    /// More flags than an operator could have followed.
    pub(crate) flag_flood: bool,
    /// Share of the time spent in floods; at most 0.01 is wanted.
    pub(crate) flood_share: f64,
    /// Incidents and quality lines of this day.
    pub(crate) today: ByPriority,
    /// Clients that rise three times a minute or more.
    pub(crate) chattering: Vec<usize>,
    /// What Table 1 declares at this step, in paper mode.
    pub(crate) declared: Option<TableVerdict>,
    /// Incidents that have been open for a day.
    pub(crate) stale: Vec<u64>,
}

/// How many of each priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct ByPriority {
    pub(crate) p1: usize,
    /// Single anomalies and uncertain roots.
    pub(crate) p2: usize,
    /// Lines on data quality.
    pub(crate) p3: usize,
}

impl Figures {
    /// "14 flags → 2 incidents": what grouping spares the operator.
    pub(crate) fn grouping(&self) -> String {
        let many = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let (flags, incidents) = (self.flags_10min, self.incidents_10min);
        format!("{} → {}", many(flags, "flag"), many(incidents, "incident"))
    }
}

impl Annunciator {
    /// The figures as of the last step.
    pub(crate) fn figures(&self) -> Figures {
        let states = |state: AlarmState| {
            self.listed_incidents().filter(|incident| incident.alarm.state == state).count()
        };
        let stale = |opened: Timestamp| self.now.duration_since(opened) >= STALE;
        let standing = self.open_incidents().filter(|incident| !incident.alarm.state.is_silenced());
        let rates = &self.rates;
        let flood_s = rates.flood.seconds();
        Figures {
            open: self.open.len(),
            standing: standing.count(),
            unacknowledged: states(AlarmState::Unacknowledged),
            returned: states(AlarmState::Returned),
            latched: states(AlarmState::Latched),
            shelved: states(AlarmState::Shelved),
            grouped: self.open_incidents().map(|incident| incident.effects().count()).sum(),
            out_of_service: self.posts.iter().filter(|post| post.out_of_service).count(),
            alarms_10min: rates.alarms.count(),
            flags_10min: rates.flags.count(),
            incidents_10min: rates.incidents.count(),
            flood: rates.flood.since().is_some(),
            flag_flood: rates.flag_flood.since().is_some(),
            flood_share: if self.watched_s > 0.0 { flood_s / self.watched_s } else { 0.0 },
            today: self.today(),
            chattering: (0..rates.chatter.len())
                .filter(|client| rates.chatter[*client].count() >= CHATTER)
                .collect(),
            declared: self.declared(),
            stale: self
                .open_incidents()
                .filter(|incident| stale(incident.opened))
                .map(|incident| incident.number)
                .collect(),
        }
    }

    fn today(&self) -> ByPriority {
        let today = date(self.now);
        let opened = self.incidents.iter().rev().take_while(|i| date(i.opened) == today);
        let mut count = ByPriority { p3: self.quality_lines.len(), ..ByPriority::default() };
        for incident in opened {
            match incident.priority {
                Priority::P1 => count.p1 += 1,
                Priority::P2 => count.p2 += 1,
                Priority::P3 => count.p3 += 1,
            }
        }
        count
    }
}

/// The day of the data's own clock.
pub(super) fn date(time: Timestamp) -> Date {
    time.to_zoned(TimeZone::UTC).date()
}
