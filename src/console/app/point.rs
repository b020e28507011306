//! What the mouse asks for.

use std::ops::ControlFlow::{self, Break, Continue};

use super::act::act;
use super::{Effect, Focus, Model};
use crate::console::action::Action;
use crate::console::mouse::{Gesture, Point, Spot, Target};
use crate::engine::knob::Knob;

pub(super) fn take(model: &mut Model, point: &Point) -> Option<Effect> {
    let mut spots = point.spots.iter();
    spots.try_for_each(|spot| offered(model, point.gesture, spot)).break_value()?
}

/// What the gesture does to this target; goes on where it is meant for a target below.
fn offered(model: &mut Model, gesture: Gesture, spot: &Spot) -> ControlFlow<Option<Effect>> {
    use Gesture::{Click, DoubleClick, Drag, Wheel};
    match (spot.target, gesture) {
        (Target::Do(action), Click | DoubleClick) => {
            model.remark = None;
            return Break(act(model, action));
        }
        (Target::Seek { start, end }, Click | DoubleClick | Drag) => {
            model.playback = None;
            model.look_at(spot.instant(start, end));
            return Break(None);
        }
        (Target::Trend { start, end }, Drag) => {
            model.look_at(spot.instant(start, end));
            return Break(None);
        }
        (Target::Trend { start, end }, Wheel { down }) => {
            let under = spot.instant(start, end);
            let zoomed = act(model, if down { Action::ZoomOut } else { Action::ZoomIn });
            if model.look.is_some() {
                model.look_at(under);
            }
            return Break(zoomed);
        }
        (Target::Scroll, Wheel { down }) => {
            return Break(act(model, if down { Action::PageDown } else { Action::PageUp }));
        }
        (Target::Knob(knob), Wheel { down }) => {
            model.choose_knob(knob);
            return Break(model.turn(if down { -1 } else { 1 }));
        }
        (Target::Client(_), Wheel { .. }) => model.focus = Focus::Clients,
        (Target::Incident(_), Wheel { .. }) => model.focus = Focus::Incidents,
        (Target::Entry(_) | Target::Session(_), Wheel { .. }) => {}
        (Target::Client(client), Click | DoubleClick) => {
            if model.measured.as_ref().is_some_and(|measured| client < measured.clients.len()) {
                model.chosen = client;
                model.focus = Focus::Clients;
            }
        }
        (Target::Incident(number), Click | DoubleClick) => {
            model.incident = Some(number);
            model.focus = Focus::Incidents;
        }
        (Target::Entry(number), Click | DoubleClick) => model.entry = Some(number),
        (Target::Session(at), Click | DoubleClick) => model.session = at,
        (Target::Knob(knob), Click | DoubleClick) => {
            model.choose_knob(knob);
            model.focus = Focus::Knobs;
        }
        (Target::Do(_) | Target::Seek { .. }, Drag | Wheel { .. })
        | (Target::Trend { .. }, Click | DoubleClick)
        | (Target::Scroll, Click | DoubleClick | Drag)
        | (
            Target::Client(_)
            | Target::Incident(_)
            | Target::Entry(_)
            | Target::Session(_)
            | Target::Knob(_),
            Drag,
        ) => return Continue(()),
    }
    // A row of a list: the wheel moves on, a double click goes in.
    Break(match gesture {
        Wheel { down } => act(model, if down { Action::Down } else { Action::Up }),
        DoubleClick => act(model, Action::Open),
        Click | Drag => None,
    })
}

impl Model {
    fn choose_knob(&mut self, knob: Knob) {
        if self.knob.replace(knob) != Some(knob) {
            self.tuning = None;
        }
    }
}
