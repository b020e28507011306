//! What of a client's messages crosses: noised as the session wants it, counted, and kept by the
//! server for as long as it learns.

use super::messenger::{LARGEST_EPSILON, Messenger, Said, Trace};
use crate::evidence::features::{LARGEST_Z, bounded};
use crate::federation::Hooks;
use crate::link::{Foretold, Innovation, Sender, Tap};
use crate::privacy::{
    Account, Channel, Counted, Estimate, Numbers, PrivacyError, Protection, Purpose, Randomness,
    Released, What,
};
use crate::rng;

/// Sources of a client's seed.
const STATE: u64 = 0x5A;
const NEW: u64 = 0x5B;
const BACK: u64 = 0x5C;
const LIVE: u64 = 0x5D;

/// One client's way to the server, and the way back.
#[derive(Debug)]
pub struct Line {
    sender: Sender,
    messenger: Messenger,
    z: Channel,
    epsilon: Channel,
    back: Channel,
    protection: Protection,
    live: Randomness,
    sent: Option<Released<Numbers>>,
    come_back: Option<Released<Numbers>>,
    buffers: [Vec<f64>; 2],
}

impl Line {
    /// z and ε carry the noise of x̂_c, what comes back that of the gradients.
    pub fn new(
        sender: Sender,
        messenger: Messenger,
        hooks: &Hooks<'_>,
        seed: u64,
    ) -> Result<Self, PrivacyError> {
        let states = messenger.states();
        let seed = rng::child(seed, sender.client() as u64);
        let random = |source| Randomness::of(hooks.provenance, seed, source);
        let protection = Protection::new(hooks.privacy, hooks.rule, states, 2)?;
        Ok(Self {
            sender,
            messenger,
            z: protection.proprietary_channel(random(STATE)),
            epsilon: protection.proprietary_channel(random(NEW)),
            back: protection.gradient_channel(random(BACK)),
            live: random(LIVE),
            sent: None,
            come_back: None,
            protection,
            buffers: [vec![0.0; states], vec![0.0; states]],
        })
    }

    /// Numbers in z, and in ε.
    #[must_use]
    pub fn states(&self) -> usize {
        self.messenger.states()
    }

    /// z of a step that is being watched, entered in the client's ledger; nothing when its budget
    /// does not allow it.
    pub fn say_entered(
        &mut self,
        step: usize,
        x_hat: &[f32],
        account: &mut Account<'_>,
        tap: &Tap,
    ) -> Option<Innovation<'_>> {
        let [z, _] = &mut self.buffers;
        self.messenger.z(x_hat, z);
        let guarded = self.protection.proprietary_state(z, &mut self.live).ok()?;
        let Account { books, client, time } = account;
        let entered =
            books.enter(*client, *time, What::ProprietaryState, Purpose::Routine, guarded).ok()?;
        Some(self.sender.innovation(step, self.sent.insert(entered), None, tap))
    }

    /// z of a step, as it crosses.
    pub fn say(
        &mut self,
        step: usize,
        x_hat: &[f32],
        tap: &Tap,
    ) -> Result<Innovation<'_>, PrivacyError> {
        let [z, _] = &mut self.buffers;
        self.messenger.z(x_hat, z);
        let z = self.z.send(&Estimate::of_state(z))?;
        Ok(self.sender.innovation(step, z, None, tap))
    }

    /// z and ε of a step, as they cross while influence is learned.
    pub fn teach(
        &mut self,
        step: usize,
        said: Said<'_>,
        tap: &Tap,
    ) -> Result<Innovation<'_>, PrivacyError> {
        let [z, epsilon] = &mut self.buffers;
        self.messenger.z(said.x_hat, z);
        self.messenger.epsilon(said.r_w, epsilon);
        let z = self.z.send(&Estimate::of_state(z))?;
        let epsilon = self.epsilon.send(&Estimate::of_state(epsilon))?;
        Ok(self.sender.innovation(step, z, Some(epsilon), tap))
    }

    /// What the server foretells, as it comes back.
    pub fn hear(
        &mut self,
        step: usize,
        epsilon: &[f64],
        tap: &Tap,
    ) -> Result<Foretold<'_>, PrivacyError> {
        let epsilon = self.back.send(&Estimate::of_gradient(epsilon))?;
        Ok(Foretold::new(self.sender.client(), step, epsilon, tap))
    }

    /// The same of a step that is being watched, entered in the client's ledger. It is noised like a
    /// gradient and, like one, made of what was released before.
    pub fn hear_entered(
        &mut self,
        step: usize,
        epsilon: &[f64],
        account: &mut Account<'_>,
        tap: &Tap,
    ) -> Option<Foretold<'_>> {
        let guarded = self.protection.gradient(epsilon, &mut self.live).ok()?;
        let Account { books, client, time } = account;
        let entered =
            books.enter(*client, *time, What::Gradient, Purpose::Routine, guarded).ok()?;
        Some(Foretold::new(*client, step, self.come_back.insert(entered), tap))
    }

    /// What was released about this client outside of its ledger, which has yet to be told.
    #[must_use]
    pub fn counted(&self) -> Vec<Counted> {
        let told = [&self.z, &self.epsilon].map(|c| c.counted(What::ProprietaryState));
        let come_back = self.back.counted(What::Gradient);
        told.into_iter().chain([come_back]).filter(|counted| counted.count > 0).collect()
    }
}

/// What the server has heard from one client, step by step.
#[derive(Debug, Clone)]
pub struct Heard {
    states: usize,
    z: Vec<f64>,
    epsilon: Vec<f64>,
    spoken: Vec<bool>,
}

impl Heard {
    /// Nothing yet from a client with so many numbers in its z.
    #[must_use]
    pub fn new(states: usize) -> Self {
        Self { states, z: Vec::new(), epsilon: Vec::new(), spoken: Vec::new() }
    }

    /// The client's message of the next step; none when it said nothing.
    pub fn receive(&mut self, message: Option<&Innovation<'_>>) {
        self.hear(message.map(Innovation::z), message.and_then(Innovation::epsilon));
    }

    /// z and ε of the next step as numbers. What cannot be taken for a message counts as none.
    pub fn hear(&mut self, z: Option<&[f64]>, epsilon: Option<&[f64]>) {
        let sound =
            |values: &[f64]| values.len() == self.states && values.iter().all(|v| v.is_finite());
        let z = z.filter(|z| sound(z) && epsilon.is_none_or(sound));
        let length = self.z.len() + self.states;
        if let Some(z) = z {
            self.z.extend(z.iter().map(|z| bounded(*z, LARGEST_Z)));
            let epsilon = epsilon.into_iter().flatten();
            self.epsilon.extend(epsilon.map(|e| bounded(*e, LARGEST_EPSILON)));
        }
        self.z.resize(length, 0.0);
        self.epsilon.resize(length, 0.0);
        self.spoken.push(z.is_some());
    }

    /// Numbers in z.
    #[must_use]
    pub fn states(&self) -> usize {
        self.states
    }

    /// Number of steps.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.spoken.len()
    }

    /// z of step `t`.
    #[must_use]
    pub fn z(&self, t: usize) -> Option<&[f64]> {
        self.spoken.get(t)?.then(|| &self.z[t * self.states..(t + 1) * self.states])
    }

    /// ε of step `t`.
    #[must_use]
    pub fn epsilon(&self, t: usize) -> Option<&[f64]> {
        self.spoken.get(t)?.then(|| &self.epsilon[t * self.states..(t + 1) * self.states])
    }
}

/// Lets a client tell the server a whole stretch, z and ε.
pub fn teach(line: &mut Line, trace: &Trace, tap: &Tap) -> Result<Heard, PrivacyError> {
    let mut heard = Heard::new(line.states());
    for t in 0..trace.steps() {
        match trace.at(t) {
            Some(said) => heard.receive(Some(&line.teach(t, said, tap)?)),
            None => heard.receive(None),
        }
    }
    Ok(heard)
}

/// Lets a client tell the server a whole stretch, z alone.
pub fn tell(line: &mut Line, trace: &Trace, tap: &Tap) -> Result<Heard, PrivacyError> {
    let mut heard = Heard::new(line.states());
    for t in 0..trace.steps() {
        match trace.at(t) {
            Some(said) => heard.receive(Some(&line.say(t, said.x_hat, tap)?)),
            None => heard.receive(None),
        }
    }
    Ok(heard)
}
