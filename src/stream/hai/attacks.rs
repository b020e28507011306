//! The attacks of the four HAI releases, as their manuals and summaries list them.

use std::sync::LazyLock;

use jiff::{SignedDuration, Timestamp};

use super::tags::Version;
use crate::stream::Event;
use crate::stream::table::clock::Clock;

/// An attack on the testbed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attack {
    /// The release it is in.
    pub(crate) version: Version,
    /// Its name, unique in its release ("A101").
    pub(crate) id: &'static str,
    /// The file it is in, without its ending.
    pub(crate) file: &'static str,
    /// When it starts; to the minute in some files, where the labels tell the second.
    pub(crate) start: Timestamp,
    /// How long it lasts, in seconds.
    pub(crate) duration_s: i64,
    /// The processes it starts in.
    pub(crate) processes: Vec<&'static str>,
    /// Control loops and what is manipulated in them ("P1-PC-SP1"), joined by `+`.
    pub(crate) target: &'static str,
    /// Points of attack, under canonical names where they are columns; `/` within a target.
    pub(crate) points: &'static str,
}

impl Attack {
    /// Its last instant, as far as the list knows.
    pub(crate) fn end(&self) -> Timestamp {
        self.start + SignedDuration::from_secs(self.duration_s)
    }

    /// The attack as an event that starts in `origins`.
    pub(crate) fn event(&self, origins: Vec<String>) -> Event {
        Event {
            id: self.id.into(),
            start: self.start,
            end: self.end(),
            origins,
            affected: Vec::new(),
            sensors: Vec::new(),
            what: format!("{} ({})", self.target, self.points),
        }
    }
}

/// All attacks: `version,id,file,start,duration_s,processes,target,points`. A start without seconds
/// is known to the minute only.
static ATTACKS: LazyLock<Vec<Attack>> = LazyLock::new(|| {
    super::lines(include_str!("../../../assets/hai/attacks.csv"))
        .map(|cells: [&str; 8]| {
            let [version, id, file, start, duration_s, processes, target, points] = cells;
            Attack {
                version: Version::named(version).expect("the shipped list names known releases"),
                id,
                file,
                start: Clock::utc().read_event(start).expect("the shipped list has good times"),
                duration_s: duration_s.parse().expect("the shipped list has whole seconds"),
                processes: processes.split('+').collect(),
                target,
                points,
            }
        })
        .collect()
});

/// The attacks of a release, in the order of their time within each file.
pub(crate) fn attacks(version: Version) -> impl Iterator<Item = &'static Attack> {
    ATTACKS.iter().filter(move |attack| attack.version == version)
}
