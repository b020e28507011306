//! A recording whose oldest steps were removed because it had become too large: what is known of that
//! time stands before its first step.

use super::Recorded;
use crate::engine::knob::{Knob, Turn};
use crate::fact::Fact;
use crate::incident::Carried;
use crate::record::batch::ModelTable;
use crate::record::room::ENROLMENTS;
use crate::record::{RecordError, Recording};
use crate::wire;

/// Lets a recording begin at its first step that is left: settings as they stood then, incidents of
/// the time before, clients enrolled as they were.
pub(super) fn begin_later(recorded: &mut Recorded, from: &Recording) -> Result<(), RecordError> {
    let first = recorded.first;
    let clients: Vec<String> =
        recorded.layout.clients.iter().map(|client| client.name.clone()).collect();
    for stored in from.facts()?.iter().filter(|stored| stored.step < first) {
        if let Ok(Fact::Setting(setting)) = Fact::from_line(&stored.line)
            && let Some(knob) = Knob::named(&setting.what, &clients)
            && let Ok(turn) = knob.turn(&setting.to, &clients)
        {
            set(recorded, turn);
        }
    }
    recorded.orders.retain(|stored| stored.step >= first);
    recorded.troubles.retain(|(step, _)| *step >= first);
    // The origin of the data is recorded when it changes: the last one is that of the first step.
    let before = recorded.notes.partition_point(|(step, _)| *step < first);
    let place = recorded.notes.drain(..before).rev().find_map(|(_, note)| note.place);
    if let Some(place) = place {
        let is_first = recorded.notes.front().is_some_and(|(step, _)| *step == first);
        if !is_first {
            recorded.notes.push_front((first, crate::record::StepNote::default()));
        }
        if let Some((_, note)) = recorded.notes.front_mut() {
            note.place.get_or_insert(place);
        }
    }
    if let Some(mark) = recorded.steps.first() {
        recorded.carried = Some(Carried::of_cut(clients, mark.time, from.incidents()?));
    }
    let enrolments = from.model(ModelTable::Server, ENROLMENTS)?.unwrap_or_default();
    recorded.log = wire::begin_at(&enrolments, &recorded.log, first);
    Ok(())
}

fn set(recorded: &mut Recorded, turn: Turn) {
    turn.write_to(&mut recorded.session);
    if turn.knob() == Knob::Mode {
        recorded.mode = recorded.session.mode;
    }
}
