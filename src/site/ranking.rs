//! Which sensors of a site deviate most: for its own screen, and for the server where the session
//! lets a root say so.

use jiff::Timestamp;

use super::material::SensorView;
use super::{Sent, Site};
use crate::privacy::{Purpose, Ranks, Unprotected as _, What};
use crate::wire::Outgoing;

/// Sensors that a root names, where it may.
const NAMED: usize = 3;

impl Site {
    /// The sensors that deviate most, unprotected, where the session allows it and the budget does.
    pub(super) fn name_sensors(&mut self, step: u64, time: Timestamp, send: &mut dyn FnMut(Sent)) {
        if !self.session.privacy.reveal_sensor {
            return;
        }
        let places = self.ranking().map(|(place, _)| place as u16).take(NAMED).collect();
        let guarded = Ranks(places).unprotected();
        if let Some(released) = self.ledger.enter(time, What::Sensors, Purpose::Alarm, guarded) {
            send(Sent::ToServer(Outgoing::sensors(self.client, step, released)));
        }
    }

    /// Places and names of its sensors: those that show a value never seen, then the others from the
    /// most to the least deviating.
    fn ranking(&self) -> impl Iterator<Item = (usize, &str)> {
        let SensorView { used, names, .. } = &self.prepared.view;
        let evidence = self.evidence.as_ref();
        let ranked =
            evidence.map_or_else(Vec::new, |evidence| evidence.grader().ranking().ranked());
        let deviating = ranked.into_iter().map(|k| (used[k], &names[k][..]));
        self.values.raised().chain(deviating)
    }

    /// Its sensors from the most to the least deviating: for a screen on this machine.
    pub(crate) fn ranked_sensors(&self) -> Vec<String> {
        self.ranking().map(|(_, name)| name.to_owned()).collect()
    }
}
