//! What leaves the screen: what is chosen, for the clipboard; a name for a picture.

use std::fmt::Write as _;

use super::{Focus, Model, Screen};
use crate::incident::Incident;
use crate::privacy::Provenance;

/// What is chosen, as text: an incident, a line of the log, a knob, a session, or a client with the
/// values of its sensors at the moment looked at. It says where noise was drawn from a seed.
pub(crate) fn text(model: &Model) -> Option<String> {
    match model.screen {
        Screen::Incident(_) => model.chosen_incident().map(|i| incident(model, i)),
        Screen::Log => {
            let entry = model.chosen_entry()?;
            let who = entry.who.as_deref().unwrap_or("engine");
            let time = model.clock.date_time(entry.time);
            let words = model.watched.as_ref()?.words(entry, &model.names);
            Some(format!("{time}\t{who}\t{words}\n{}", seeded(model)))
        }
        Screen::Sessions => model.sessions.get(model.session).map(|s| format!("{}\n", s.name)),
        Screen::Overview | Screen::Privacy => match model.focus() {
            Focus::Incidents => model.chosen_incident().map(|i| incident(model, i)),
            Focus::Knobs => {
                let turn = model.chosen_knob()?;
                Some(format!("{} {}\n", turn.knob().name(&model.names), turn.value()))
            }
            Focus::Clients => client(model),
        },
        Screen::Client | Screen::Influence | Screen::Training => client(model),
    }
}

fn incident(model: &Model, incident: &Incident) -> String {
    let name = |client: usize| model.names.get(client).map_or("?", String::as_str);
    let mut text = format!(
        "#{}\t{}\t{}\troot {}\t{}\t{}\n",
        incident.number,
        model.clock.date_time(incident.opened),
        incident.priority,
        incident.root.map_or("unknown", name),
        incident.alarm.state.word(),
        model.name,
    );
    for member in &incident.members {
        let part = if incident.root == Some(member.client) { "root" } else { "effect" };
        let delay = incident.delay_s(member);
        let _ = writeln!(text, "{}\t{part}\t{delay:+} s", name(member.client));
    }
    if !incident.note.is_empty() {
        let _ = writeln!(text, "note\t{}", incident.note);
    }
    text + &seeded(model)
}

fn client(model: &Model) -> Option<String> {
    let (measured, client) = (model.measured.as_ref()?, model.chosen_client()?);
    let moment = model.moment()?;
    let mut text = format!("{}\t{}\t{}\n", client.name, model.clock.date_time(moment), model.name);
    for (sensor, channel) in client.sensors.iter().zip(client.channels.clone()) {
        let value = measured.history.value_at(channel, moment);
        let value = value.map_or_else(|| "missing".to_owned(), |value| value.to_string());
        let _ = writeln!(text, "{}\t{value}\t{}", sensor.name, sensor.unit);
    }
    Some(text + &seeded(model))
}

/// The last line of what is copied, where noise is drawn from a seed.
fn seeded(model: &Model) -> String {
    if model.seeded { format!("{}\n", Provenance::Seeded.label()) } else { String::new() }
}

impl Model {
    /// What files of this picture are called: the session and the moment, in letters that every system
    /// takes.
    pub(crate) fn picture_name(&self) -> String {
        let moment = self.moment().map(|moment| format!("-{}", self.clock.date_time(moment)));
        let name = format!("{}{}", self.name, moment.unwrap_or_default());
        name.chars().map(|c| if c.is_alphanumeric() || c == '-' { c } else { '-' }).collect()
    }
}
