//! What is asked of the inference, and what operators and sites order it to do.

use super::client::Client;
use super::{Change, Closing, Disturbance, Inference, Open};
use crate::evidence::cusum::alarm_threshold;
use crate::evidence::enrolment::Enrolment;
use crate::server::health::Standing;

impl Inference {
    /// The share of a client's evidence that another client explains, where that is known (tier 2).
    pub(crate) fn explained(&self, client: usize) -> Option<f64> {
        self.clients[client].explained()
    }

    /// What a client has shown so far speaks for nothing.
    pub(crate) fn forget(&mut self, client: usize) {
        if let Some(client) = self.clients.get_mut(client) {
            client.forget(self.step);
        }
    }

    /// What was accepted last is not: it is open again, unless something else is by now.
    pub(crate) fn take_back(&mut self) -> bool {
        let Some(accepted) = self.accepted.take() else { return false };
        if self.open.is_some() || self.stands.is_some() {
            return false;
        }
        self.open = Some(Open { since: self.step, against: 0.0, ..accepted });
        true
    }

    /// Closes what is open: the run ends, or an operator accepts it.
    pub(crate) fn end(&mut self, closing: Closing) -> &[Change] {
        self.changes.clear();
        if let Some(open) = self.open.take() {
            self.close(open, closing);
        }
        self.end_standing();
        &self.changes
    }

    /// Hears a client under a new enrolment: its present behaviour is the new normal. With one that was
    /// not here before, the wanted rate of false alarms is shared among more clients.
    pub(crate) fn enrol_again(&mut self, client: usize, enrolment: Enrolment) {
        let Some(slot) = self.clients.get(client) else { return };
        let is_new = !slot.is_here;
        let of = (self.clients.len(), self.members() + usize::from(is_new));
        let mut enrolled = Client::enrol(&self.grading, &self.rules, enrolment, client, of);
        enrolled.forget(self.step);
        self.clients[client] = enrolled;
        if is_new {
            self.set_arl0(self.rules.arl0);
        }
    }

    /// Clients that have enrolled.
    pub(super) fn members(&self) -> usize {
        self.clients.iter().filter(|client| client.is_here).count()
    }

    /// Changes the wanted number of steps between two false alarms.
    pub(crate) fn set_arl0(&mut self, arl0: f64) {
        self.rules.arl0 = arl0;
        let m = self.members();
        for client in &mut self.clients {
            client.threshold = alarm_threshold(&client.enrolment.tail, m, arl0);
            if let Some((left, remainder)) =
                client.left.as_mut().zip(client.enrolment.remainder.as_ref())
            {
                left.threshold = alarm_threshold(&remainder.tail, m, arl0);
            }
        }
    }

    pub(crate) fn incident(&self) -> Option<&Disturbance> {
        self.open.as_ref().filter(|open| open.said).map(|open| &open.incident)
    }

    /// The incident whose evidence has ended and whose clients have not all recovered.
    pub(crate) fn standing_incident(&self) -> Option<&Disturbance> {
        self.stands.as_ref().filter(|stands| stands.said).map(|stands| &stands.incident)
    }

    /// Steps taken; the last one has this number.
    pub(crate) fn steps(&self) -> u64 {
        self.step
    }

    /// The step at which a client's present evidence began.
    pub(crate) fn onset(&self, client: usize) -> u64 {
        self.clients[client].cusum.onset()
    }

    /// S_m of a client.
    pub(crate) fn evidence(&self, client: usize) -> f64 {
        self.clients[client].cusum.value()
    }

    /// b_m of a client.
    pub(crate) fn threshold(&self, client: usize) -> f64 {
        self.clients[client].threshold
    }

    /// Steps of nothing but the strongest symbol after which a client alarms: b_m/λ⁺.
    pub(crate) fn alarm_steps(&self, client: usize) -> f64 {
        let client = &self.clients[client];
        client.threshold / client.ratios.root_cause(self.grading.highest()).max(f64::MIN_POSITIVE)
    }

    /// How a client stands.
    pub(crate) fn standing(&self, client: usize) -> Standing {
        self.clients[client].watch.standing()
    }
}
