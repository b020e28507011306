//! What the mouse asks for.

use jiff::Timestamp;

use super::{Action, Effect, Model, act};
use crate::console::mouse::{Gesture, Point, Spot, Target};

/// Does what was asked of the topmost target that knows what to make of it.
pub fn take(model: &mut Model, point: &Point) -> Option<Effect> {
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
            let there = if down { Action::NextClient } else { Action::PreviousClient };
            Some(Taken(act(model, there)))
        }
        _ => None,
    }
}

impl Model {
    /// Looks at `moment` as far as there is data; at the newest data it follows again.
    pub(super) fn look_at(&mut self, moment: Timestamp) {
        let first = self.measured.as_ref().and_then(|measured| measured.history.first());
        if let (Some(first), Some(newest)) = (first, self.newest()) {
            self.look = (moment < newest).then_some(moment.max(first));
        }
    }

    fn choose_client(&mut self, client: usize) {
        let clients = self.measured.as_ref().map_or(0, |measured| measured.clients.len());
        if client < clients {
            self.chosen = client;
        }
    }
}
