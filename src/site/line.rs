//! A site's way to the server about its state: noised as the session wants it, and counted.

use super::messenger::{Messenger, Said, Trace};
use crate::base::rng;
use crate::privacy::{
    Account, Channel, Counted, Estimate, Hooks, PrivacyError, Protection, Purpose, Randomness, What,
};
use crate::wire::{Outgoing, Sender};

/// Sources of a client's seed.
const STATE: u64 = 0x5A;
const NEW: u64 = 0x5B;
const LIVE: u64 = 0x5D;

/// One client's way to the server.
#[derive(Debug)]
pub(crate) struct Line {
    sender: Sender,
    messenger: Messenger,
    z: Channel,
    epsilon: Channel,
    protection: Protection,
    live: Randomness,
    buffers: [Vec<f64>; 2],
}

impl Line {
    /// z and ε carry the noise of x̂_c.
    pub(crate) fn new(
        sender: Sender,
        messenger: Messenger,
        hooks: &Hooks<'_>,
        seed: u64,
    ) -> Result<Self, PrivacyError> {
        let states = messenger.states();
        let seed = rng::child(seed, sender.client() as u64);
        let random = |source| Randomness::of(hooks.provenance, seed, source);
        let protection = Protection::new(hooks.privacy, states)?;
        Ok(Self {
            sender,
            messenger,
            z: protection.proprietary_channel(random(STATE)),
            epsilon: protection.proprietary_channel(random(NEW)),
            live: random(LIVE),
            protection,
            buffers: [vec![0.0; states], vec![0.0; states]],
        })
    }

    /// Numbers in z, and in ε.
    pub(crate) fn states(&self) -> usize {
        self.messenger.states()
    }

    /// z of a step that is being watched, entered in the client's ledger; nothing when its budget
    /// does not allow it.
    pub(crate) fn summary(
        &mut self,
        step: u64,
        x_hat: &[f32],
        account: &mut Account<'_>,
    ) -> Option<Outgoing> {
        let [z, _] = &mut self.buffers;
        self.messenger.z(x_hat, z);
        let guarded =
            self.protection.proprietary_state(Estimate::of_state(z), &mut self.live).ok()?;
        let Account { ledger, time } = account;
        let entered = ledger.enter(*time, What::ProprietaryState, Purpose::Routine, guarded)?;
        Some(self.sender.summary(step, &entered, None))
    }

    /// What the server predicted is made of what was released before: it is noted and costs nothing.
    pub(crate) fn note_prediction(&mut self, account: &mut Account<'_>) {
        let spend = self.protection.gradient_spend();
        account.ledger.note_derived(account.time, What::Gradient, spend);
    }

    /// z and ε of a step, as they cross while influence is learned.
    fn teach(&mut self, step: u64, said: Said<'_>) -> Result<Outgoing, PrivacyError> {
        let [z, epsilon] = &mut self.buffers;
        self.messenger.z(said.x_hat, z);
        self.messenger.epsilon(said.r_w, epsilon);
        let z = self.z.send(&Estimate::of_state(z))?;
        let epsilon = self.epsilon.send(&Estimate::of_state(epsilon))?;
        Ok(self.sender.summary(step, z, Some(epsilon)))
    }

    /// z and ε of a whole stretch, step by step; nothing about a step without any.
    pub(crate) fn teach_stretch<'a>(
        &'a mut self,
        trace: &'a Trace,
    ) -> impl Iterator<Item = Result<Outgoing, PrivacyError>> + 'a {
        let spoken = (0..trace.steps()).filter_map(|t| Some((t, trace.at(t)?)));
        spoken.map(|(t, said)| self.teach(t as u64, said))
    }

    /// What was released about this client outside of its ledger, which has yet to be entered.
    pub(crate) fn counted(&self) -> Vec<Counted> {
        let told = [&self.z, &self.epsilon].map(|c| c.counted(What::ProprietaryState));
        told.into_iter().filter(|counted| counted.count > 0).collect()
    }
}
