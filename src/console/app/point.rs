//! What the mouse asks for.

use super::act::act;
use super::{Effect, Focus, Model};
use crate::console::action::Action;
use crate::console::mouse::{Gesture, Point, Spot, Target};

/// Does what was asked of the topmost target that knows what to make of it.
pub(crate) fn take(model: &mut Model, point: &Point) -> Option<Effect> {
    for spot in &point.spots {
        if let Some(Taken(effect)) = offered(model, point.gesture, spot) {
            return effect;
        }
    }
    None
}

/// The gesture was meant for this target.
struct Taken(Option<Effect>);

fn offered(model: &mut Model, gesture: Gesture, spot: &Spot) -> Option<Taken> {
    let done = Some(Taken(None));
    match (spot.target, gesture) {
        (Target::Do(action), Gesture::Click | Gesture::DoubleClick) => {
            model.remark = None;
            Some(Taken(act(model, action)))
        }
        (Target::Client(client), Gesture::Click) => {
            model.choose_client(client);
            done
        }
        (Target::Client(client), Gesture::DoubleClick) => {
            model.choose_client(client);
            Some(Taken(act(model, Action::Open)))
        }
        (Target::Seek { start, end }, Gesture::Click | Gesture::DoubleClick | Gesture::Drag) => {
            model.playback = None;
            model.look_at(spot.instant(start, end));
            done
        }
        (Target::Trend { start, end }, Gesture::Drag) => {
            model.look_at(spot.instant(start, end));
            done
        }
        (Target::Trend { start, end }, Gesture::Wheel { down }) => {
            let under = spot.instant(start, end);
            let zoomed = act(model, if down { Action::ZoomOut } else { Action::ZoomIn });
            if model.look.is_some() {
                model.look_at(under);
            }
            Some(Taken(zoomed))
        }
        (Target::Scroll, Gesture::Wheel { down }) => {
            Some(Taken(act(model, if down { Action::PageDown } else { Action::PageUp })))
        }
        (Target::Client(_), Gesture::Wheel { down }) => {
            model.focus = Focus::Clients;
            Some(Taken(act(model, if down { Action::Down } else { Action::Up })))
        }
        (Target::Incident(number), Gesture::Click | Gesture::DoubleClick) => {
            model.incident = Some(number);
            model.focus = Focus::Incidents;
            Some(opened(model, gesture))
        }
        (Target::Incident(_), Gesture::Wheel { down }) => {
            model.focus = Focus::Incidents;
            Some(Taken(act(model, if down { Action::Down } else { Action::Up })))
        }
        (Target::Entry(number), Gesture::Click | Gesture::DoubleClick) => {
            model.entry = Some(number);
            Some(opened(model, gesture))
        }
        (Target::Session(at), Gesture::Click | Gesture::DoubleClick) => {
            model.session = at;
            Some(opened(model, gesture))
        }
        (Target::Entry(_) | Target::Session(_), Gesture::Wheel { down }) => {
            Some(Taken(act(model, if down { Action::Down } else { Action::Up })))
        }
        (Target::Knob(knob), Gesture::Click | Gesture::DoubleClick) => {
            if model.knob != Some(knob) {
                model.tuning = None;
            }
            model.knob = Some(knob);
            model.focus = Focus::Knobs;
            Some(opened(model, gesture))
        }
        (Target::Knob(knob), Gesture::Wheel { down }) => {
            if model.knob != Some(knob) {
                model.tuning = None;
            }
            model.knob = Some(knob);
            Some(Taken(model.turn(if down { -1 } else { 1 })))
        }
        _ => None,
    }
}

/// A double click goes into what was chosen.
fn opened(model: &mut Model, gesture: Gesture) -> Taken {
    Taken((gesture == Gesture::DoubleClick).then(|| act(model, Action::Open)).flatten())
}

impl Model {
    fn choose_client(&mut self, client: usize) {
        let clients = self.measured.as_ref().map_or(0, |measured| measured.clients.len());
        if client < clients {
            self.chosen = client;
            self.focus = Focus::Clients;
        }
    }
}
