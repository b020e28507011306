//! What the numbers mean, in sentences, for a reader who sees this screen for the first time.

use std::fmt::Write as _;

use super::scene::Scene;
use super::status::{Status, after};
use crate::console::action::Action;
use crate::console::text::clean;
use crate::console::theme::State;
use crate::console::watched::Trace;
use crate::console::widget::level::ratio;
use crate::evidence::cusum::MOST_ALARM_STEPS;
use crate::incident::{AlarmState, Closing, Incident, Origin, QualityKind};
use crate::score::Score;
use crate::session::Mode;

pub(crate) fn of_client(scene: &Scene, client: usize) -> Vec<String> {
    let Some(watched) = scene.watched else {
        return vec!["Nothing is being decided yet.".into()];
    };
    let name = scene.name(client);
    let status = Status::of(scene, client);
    let mut said = Vec::new();
    let incident = status.incident.and_then(|number| watched.incident(number));
    match (status.state, incident) {
        (State::OutOfService, _) => {
            said.push(format!(
                "{name} is out of service: its alarms are silent until it is put back."
            ));
        }
        (State::NotJudged, _) => said.push(format!(
            "{name} sends data, but its steps are not judged yet, as at the start of every run."
        )),
        (State::Missing, _) => said.push(format!("{name} sends no data.")),
        (State::Effect, Some(incident)) => {
            let root = incident.root.map_or("?", |root| scene.name(root));
            let later = incident
                .member(client)
                .map_or(String::new(), |member| format!(" {}", after(incident.delay_s(member))));
            said.push(format!(
                "{name} shows an effect of {root}: it rose{later}. An effect gives no alarm of its own."
            ));
        }
        (_, Some(incident)) => said.extend(why(scene, incident).into_iter().take(2)),
        (_, None) => said.push(calm(scene, client)),
    }
    said
}

/// Where to look first at a client in trouble: for its own screen, which may know its sensors. What
/// deviates most is only known of now.
pub(crate) fn look_first(scene: &Scene, client: usize) -> Option<String> {
    let sensors = scene.ranked(client)?;
    let in_trouble = Status::of(scene, client).state != State::Normal;
    (in_trouble && !sensors.is_empty()).then(|| {
        let first: Vec<String> = sensors.iter().take(3).map(|name| clean(name)).collect();
        format!("Look first at {}.", first.join(", then "))
    })
}

/// The sensors that the root of an incident named, safe to show; none where the session does not let
/// it.
pub(crate) fn named_sensors(scene: &Scene, incident: &Incident) -> Vec<String> {
    let named = scene.watched.map_or(&[][..], |watched| watched.named_sensors(incident.number));
    named.iter().map(|name| clean(name)).collect()
}

/// Where a root's deviating sensor is shown: on the client's own view, unless the client named it.
/// `leads` is the action that goes there.
pub(crate) fn which_sensor(scene: &Scene, incident: &Incident, leads: Action) -> Option<String> {
    let name = scene.name(incident.root?);
    let named = named_sensors(scene, incident);
    if !named.is_empty() {
        let first: Vec<String> = named.into_iter().take(4).collect();
        return Some(format!("{name} says that it deviates most at {}.", first.join(", ")));
    }
    let key = scene.model.keymap.keys(leads).first();
    let key = key.map_or(String::new(), |chord| format!(" ({})", scene.theme.key(*chord)));
    Some(format!("{name} keeps its sensors private: its own view shows them{key}."))
}

/// How good the alarms of labelled data were.
pub(crate) fn score(score: &Score) -> String {
    let Score { labelled, detected, root_right, false_alarms, .. } = score;
    let mut said = format!("SCORE  {detected} of {labelled} attacks found");
    let missed = labelled - detected;
    if missed > 0 {
        let _ = write!(said, ", {missed} missed");
    }
    let _ = write!(said, "  roots right {root_right} of {detected}  false alarms {false_alarms}");
    if let Some(median) = score.delay_s.median {
        let _ = write!(said, "  detection delay {median:.0} s (median)");
    }
    said
}

/// A client that needs too many steps for an alarm.
pub(crate) fn insensitive(scene: &Scene, client: usize) -> Option<String> {
    let steps = scene.snapshot()?.alarm_steps.get(client).copied().flatten()?.get();
    (steps > MOST_ALARM_STEPS).then(|| {
        format!(
            "An alarm takes {steps:.0} steps of the strongest symbol: more than \
             {MOST_ALARM_STEPS:.0} is insensitive."
        )
    })
}

/// How far a quiet client is from alarm.
fn calm(scene: &Scene, client: usize) -> String {
    let name = scene.name(client);
    let in_limits = |trace: Trace| {
        let value = scene.watched?.value_at(client, trace, scene.moment)?;
        Some(ratio(value, scene.limit(client, trace)))
    };
    match (scene.mode(), in_limits(Trace::Evidence), in_limits(Trace::DistanceC)) {
        (Mode::Evidence, Some(s), _) => {
            format!("{name} is normal: its evidence is {s:.2}, an alarm begins at 1.")
        }
        (_, _, Some(c)) => {
            format!("{name} is below its threshold: r_c is {c:.2} τ_c, a flag begins at 1.")
        }
        _ => format!("{name} has sent nothing yet."),
    }
}

/// Why an incident has the root it has, the weightiest reason first.
pub(crate) fn why(scene: &Scene, incident: &Incident) -> Vec<String> {
    let mut said = Vec::new();
    let clock = scene.model.clock;
    if let Some(root) = incident.root {
        let name = scene.name(root);
        let p = incident.posterior.get(root);
        said.push(match (incident.origin, p) {
            (Origin::Single, _) => {
                format!("Only {name} deviates: no other client is affected.")
            }
            (Origin::SplitFrom(other), _) => format!(
                "{name} was an effect of #{other}, which no longer explains it: a second fault."
            ),
            (Origin::Decided, Some(p)) => {
                format!("All evidence taken together, {name} is the root with probability {p:.2}.")
            }
            (Origin::Decided, None) => format!(
                "Both flags of {name} are on. A client with only Z_c on is explained by the others."
            ),
        });
    } else {
        let names = super::incidents::who(scene, incident);
        said.push(format!("The root is not known: {names}."));
    }
    if let Some(source) = super::incidents::silent_source(incident) {
        let name = scene.name(source);
        said.push(format!("Or {name} above it is the root, not visible in its own sensors."));
    }
    for fault in &incident.faults {
        let (name, what) = (scene.name(fault.client), fault.what.words());
        // A process can leave its range by itself; only a sensor stands still.
        said.push(if fault.what == QualityKind::Range {
            format!("{name}: {what}.")
        } else {
            format!("{name}: {what}. This alone may explain what it shows.")
        });
    }
    if let Some(first) = incident.first_out {
        let (name, time) = (scene.name(first.client), clock.time(first.time));
        said.push(if incident.disagrees() {
            format!(
                "DISAGREE: {name} alarmed first, at {time}. A fast sensor or a low threshold can do that."
            )
        } else {
            format!("{name} alarmed first, at {time}, and is the root.")
        });
    }
    if let Some(now) = incident.second_thought() {
        said.push(format!("With the evidence up to now the root would be {}.", scene.name(now)));
    }
    let effects = incident.effects().count();
    if incident.root.is_some() && effects > 0 {
        let first = incident.effects().next().map_or(String::new(), |m| {
            let alone = if effects == 1 { "" } else { " first" };
            format!("{}{alone}, {}", scene.name(m.client), after(incident.delay_s(m)))
        });
        // Sentences are numbered: a number at the beginning of one would be read as part of that.
        said.push(match effects {
            1 => format!("One other client is affected: {first}."),
            2 => format!("Two other clients are affected: {first}."),
            3 => format!("Three other clients are affected: {first}."),
            _ => format!("Effects at {effects} other clients: {first}."),
        });
    }
    said
}

pub(crate) fn standing(scene: &Scene, incident: &Incident) -> String {
    let clock = scene.model.clock;
    let alarm = match incident.alarm.state {
        AlarmState::Unacknowledged => "not acknowledged".to_owned(),
        AlarmState::Acknowledged => "acknowledged".to_owned(),
        AlarmState::Returned => "returned, not acknowledged".to_owned(),
        AlarmState::Shelved => incident.alarm.shelved_until.map_or_else(
            || "shelved".to_owned(),
            |until| format!("shelved until {}", clock.time(until)),
        ),
        AlarmState::SuppressedByDesign => "silent by design".to_owned(),
        AlarmState::OutOfService => "its client is out of service".to_owned(),
        AlarmState::Latched => "a change that stays, not acknowledged".to_owned(),
        AlarmState::Normal => "nothing to answer".to_owned(),
    };
    match incident.closed {
        None => format!("open since {}, {alarm}", clock.time(incident.opened)),
        Some(closed) => {
            let is_quiet = closed.why == Closing::Quiet;
            let why =
                if is_quiet { "its evidence has ended".into() } else { closed.why.to_string() };
            format!("closed {}: {why}; {alarm}", clock.time(closed.time))
        }
    }
}

pub(crate) fn check(scene: &Scene, incident: &Incident) -> String {
    match incident.root {
        Some(root) => {
            let named: Vec<String> = named_sensors(scene, incident).into_iter().take(2).collect();
            let (name, sensors) = (scene.name(root), named.join(" and "));
            let at =
                if sensors.is_empty() { String::new() } else { format!(", first at {sensors}") };
            format!("check {name}{at}: set points, valves, pumps and what was last changed by hand")
        }
        None => format!(
            "check {} side by side: who moved first on the axis above?",
            super::incidents::who(scene, incident)
        ),
    }
}
