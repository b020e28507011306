//! How a client or an incident is shown: its state, and the words beside it.
//!
//! The verdict is the engine's; here it gets its sign and its words.

use jiff::Timestamp;

use super::scene::Scene;
use crate::console::clock::length;
use crate::console::theme::State;
use crate::console::watched::{Trace, Watched};
use crate::incident::{AlarmState, Closing, Incident, Verdict};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status {
    /// As it was known at the moment.
    pub state: State,
    pub incident: Option<u64>,
    pub since: Option<Timestamp>,
    /// What was learned of this moment later, and of which incident.
    pub later: Option<(Verdict, u64)>,
}

impl Status {
    const NORMAL: Status =
        Status { state: State::Normal, incident: None, since: None, later: None };

    pub(crate) fn of(scene: &Scene, client: usize) -> Self {
        let Some(watched) = scene.watched else { return Self::NORMAL };
        if watched.known().is_out_of_service(client, scene.moment) {
            return Self { state: State::OutOfService, ..Self::NORMAL };
        }
        let Some(found) = watched.verdict_at(client, scene.moment) else {
            return Self { state: quiet(scene, watched, client), ..Self::NORMAL };
        };
        if found.found > scene.moment {
            let later = Some((found.verdict, found.incident));
            return Self { state: quiet(scene, watched, client), later, ..Self::NORMAL };
        }
        let Some(incident) = scene.incident(found.incident) else { return Self::NORMAL };
        let state = match found.verdict {
            Verdict::PropagatedEffect => State::Effect,
            Verdict::RootCause | Verdict::Single | Verdict::Unknown => state_of(incident),
        };
        Self { state, incident: Some(found.incident), since: Some(found.since), later: None }
    }

    /// What was learned of the moment later, in brackets: `(ROOT #5)`.
    pub(crate) fn later(&self) -> Option<String> {
        let (verdict, incident) = self.later?;
        let word = match verdict {
            Verdict::RootCause => "ROOT",
            Verdict::PropagatedEffect => "effect",
            Verdict::Single => "single",
            Verdict::Unknown => "ROOT ?",
        };
        Some(format!("({word} #{incident})"))
    }
}

/// Nothing is the matter with a client, or its steps are not judged yet, or nothing comes from it.
fn quiet(scene: &Scene, watched: &Watched, client: usize) -> State {
    let silent = [Trace::DistanceC, Trace::Surprise]
        .iter()
        .all(|trace| watched.value_at(client, *trace, scene.moment).is_none());
    let begun = watched.history.first().is_some_and(|first| first <= scene.moment);
    if !(silent && begun) {
        return State::Normal;
    }
    let measured = scene.measured.clients.get(client);
    let has_data = measured.is_some_and(|known| scene.measured.has_data(known, scene.moment));
    if has_data { State::NotJudged } else { State::Missing }
}

/// How an incident stands: its verdict, and what was done about it.
pub(crate) fn state_of(incident: &Incident) -> State {
    let unseen = match incident.alarm.state {
        AlarmState::Shelved => return State::Shelved,
        AlarmState::OutOfService => return State::OutOfService,
        AlarmState::Returned => return State::Returned,
        AlarmState::Latched => return State::Latched,
        AlarmState::Unacknowledged => true,
        AlarmState::Normal | AlarmState::Acknowledged | AlarmState::SuppressedByDesign => false,
    };
    match (incident.verdict(), unseen) {
        (Verdict::Unknown, true) => State::UnknownUnseen,
        (Verdict::Unknown, false) => State::Unknown,
        (Verdict::Single, true) => State::SingleUnseen,
        (Verdict::Single, false) => State::Single,
        (Verdict::RootCause | Verdict::PropagatedEffect, true) => State::RootUnseen,
        (Verdict::RootCause | Verdict::PropagatedEffect, false) => State::Root,
    }
}

/// What an incident is, whatever became of it: a word.
pub(crate) fn nature(incident: &Incident) -> &'static str {
    match incident.verdict() {
        Verdict::Unknown => "ROOT ?",
        Verdict::Single => "single",
        Verdict::RootCause | Verdict::PropagatedEffect => "ROOT",
    }
}

/// Not acknowledged; and its short form.
pub(crate) const NOT_ACKNOWLEDGED: [&str; 2] = ["not acknowledged", "not ack."];

/// What an operator has done about an incident, or still has to: a word or two.
pub(crate) fn seen(incident: &Incident, now: Timestamp) -> String {
    let over = if incident.is_open() { "" } else { "back to normal, " };
    match incident.alarm.state {
        AlarmState::Unacknowledged => NOT_ACKNOWLEDGED[0].into(),
        AlarmState::Returned => "returned, not acknowledged".into(),
        AlarmState::Latched => "latched, not acknowledged".into(),
        AlarmState::Shelved => match incident.alarm.shelved_until {
            Some(until) => format!("shelved, {} left", length(until.duration_since(now))),
            None => "shelved".into(),
        },
        AlarmState::OutOfService => "out of service".into(),
        AlarmState::SuppressedByDesign => "suppressed".into(),
        AlarmState::Acknowledged => format!("{over}acknowledged"),
        AlarmState::Normal if incident.is_open() => "acknowledged".into(),
        AlarmState::Normal if is_accepted(incident) => "accepted".into(),
        AlarmState::Normal => "back to normal".into(),
    }
}

fn is_accepted(incident: &Incident) -> bool {
    incident.closed.is_some_and(|closed| closed.why == Closing::Accepted)
}

/// The same, with a word where it is back from the shelf.
pub(crate) fn seen_after(scene: &Scene, incident: &Incident) -> String {
    if scene.is_found_later(incident) {
        return format!("(found {})", scene.model.clock.time(incident.opened));
    }
    let said = seen(incident, scene.moment);
    let back = scene.watched.is_some_and(|watched| watched.was_shelved(incident.number));
    let asks = incident.alarm.state.wants_acknowledgement();
    let said = if back && asks { format!("{said}, was shelved") } else { said };
    let present = scene.model.look.and_then(|_| scene.model.present(incident.number));
    match present.map(|now| seen(now, scene.newest)) {
        Some(now) if now != seen(incident, scene.moment) => format!("{said} (now {now})"),
        Some(_) | None => said,
    }
}

/// How long an incident lasted, or has lasted by `now`.
pub(crate) fn lasted(incident: &Incident, now: Timestamp) -> String {
    let end = incident.closed.map_or(now, |closed| closed.time);
    length(end.duration_since(incident.onset.min(end)))
}

/// A delay with its sign and unit: `+50 s`, `−5 s`, `+12 min`.
pub(crate) fn delay(seconds: f64) -> String {
    let sign = if seconds < 0.0 { '-' } else { '+' };
    let size = seconds.abs();
    if size < 600.0 {
        format!("{sign}{size:.0} s")
    } else {
        format!("{sign}{:.0} min", size / 60.0)
    }
}

/// The same as a phrase: `50 s later`, `5 s earlier`, `at the same time`.
pub(crate) fn after(seconds: f64) -> String {
    let size = delay(seconds.abs());
    let size = size.trim_start_matches('+');
    match seconds {
        ..-0.5 => format!("{size} earlier"),
        0.5.. => format!("{size} later"),
        _ => "at the same time".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_has_a_sign_and_a_unit() {
        let said: Vec<String> = [0.0, 50.0, -5.0, 780.0].map(delay).to_vec();
        assert_eq!(said, ["+0 s", "+50 s", "-5 s", "+13 min"]);
        let said: Vec<String> = [0.0, 50.0, -5.0, 780.0].map(after).to_vec();
        assert_eq!(said, ["at the same time", "50 s later", "5 s earlier", "13 min later"]);
    }
}
