//! The verdict about a client: stated here once, shown by screens, facts and recordings.

use jiff::Timestamp;

use super::group::{Incident, Origin};
use crate::fact::Verdict;

/// The part that a client has in an incident at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClientVerdict {
    pub(crate) verdict: Verdict,
    pub(crate) incident: u64,
    /// Onset of the client's evidence.
    pub(crate) since: Timestamp,
    /// When it was found: later than the onset.
    pub(crate) found: Timestamp,
}

impl Incident {
    /// The verdict about the incident's root.
    pub(crate) fn verdict(&self) -> Verdict {
        match (self.root, self.origin) {
            (None, _) => Verdict::Unknown,
            (Some(_), Origin::Single) => Verdict::Single,
            (Some(_), Origin::Decided | Origin::SplitFrom(_)) => Verdict::RootCause,
        }
    }

    /// The verdict about a client that takes part. Without a named root every member is a candidate,
    /// and none is an effect.
    pub(crate) fn verdict_of(&self, client: usize) -> Verdict {
        match self.root {
            Some(root) if root != client => Verdict::PropagatedEffect,
            Some(_) | None => self.verdict(),
        }
    }
}

/// The verdict about `client` at `moment` by `incidents`, the newest first: each counts from the first
/// of its evidence on, also where it was found later. None where the client took part in none.
pub(crate) fn verdict_at<'a>(
    incidents: impl Iterator<Item = &'a Incident>,
    client: usize,
    moment: Timestamp,
) -> Option<ClientVerdict> {
    let lasts = |incident: &&Incident| {
        incident.onset <= moment && incident.closed.is_none_or(|closed| closed.time > moment)
    };
    let mut lasting = incidents.filter(lasts);
    lasting.find_map(|incident| {
        let member = incident.member(client)?;
        let (since, found) = (member.onset, member.joined.max(incident.opened));
        let verdict = incident.verdict_of(client);
        let number = incident.number;
        (since <= moment).then_some(ClientVerdict { verdict, incident: number, since, found })
    })
}
