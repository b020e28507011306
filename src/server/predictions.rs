//! Tier 2 at the server: what one client's state explains of another's next ε, sent before each step.

use super::influence::foretell::{Memory, StatePredictor};
use super::influence::heard::Heard;
use crate::base::rng;
use crate::privacy::{
    Channel, Counted, Estimate, Hooks, PrivacyError, Protection, Randomness, What,
};
use crate::wire::{Numbers, ToSite};

/// Sources of a client's seed.
const BACK: u64 = 0x5C;

/// The server's model of influence at work.
#[derive(Debug)]
pub(crate) struct Predictions {
    foreteller: StatePredictor,
    memory: Memory,
    /// The way back to each client.
    channels: Vec<Channel>,
    epsilon: Vec<f64>,
    z: Vec<f64>,
}

impl Predictions {
    /// Predictions with the noise of gradients on them, drawn from `seed` and the client.
    pub(crate) fn new(
        foreteller: &StatePredictor,
        hooks: &Hooks<'_>,
        seed: u64,
    ) -> Result<Self, PrivacyError> {
        let channel = |m: usize| {
            let random = Randomness::of(hooks.provenance, rng::child(seed, m as u64), BACK);
            // A gradient's noise does not depend on how many numbers it has.
            Ok(Protection::new(hooks.privacy, 1)?.gradient_channel(random))
        };
        Ok(Self {
            memory: foreteller.memory(),
            channels: (0..foreteller.clients())
                .map(channel)
                .collect::<Result<_, PrivacyError>>()?,
            foreteller: foreteller.clone(),
            epsilon: Vec::new(),
            z: Vec::new(),
        })
    }

    /// Who explains a client.
    pub(crate) fn explainer(&self, client: usize) -> Option<usize> {
        self.foreteller.explainer(client)
    }

    /// Sends what is predicted of the step that comes. What cannot be noised is not sent.
    pub(crate) fn predict(&mut self, step: u64, send: &mut dyn FnMut(ToSite)) {
        for (m, channel) in self.channels.iter_mut().enumerate() {
            if self.foreteller.foretell(&self.memory, m, &mut self.epsilon)
                && let Ok(epsilon) = channel.send(&Estimate::of_gradient(&self.epsilon))
            {
                send(ToSite::prediction(m, step, epsilon));
            }
        }
    }

    /// Takes z of a client for the step that was predicted; none when it sent none. A client that joined
    /// after the training foretells nothing.
    pub(crate) fn hear(&mut self, client: usize, z: Option<&Numbers>) {
        if client >= self.channels.len() {
            return;
        }
        let Self { foreteller, memory, z: wide, .. } = self;
        wide.clear();
        wide.extend(z.into_iter().flatten().map(|x| f64::from(*x)));
        foreteller.hear(memory, client, z.map(|_| &wide[..]));
    }

    /// The same of step `t` of a client's summaries while influence was learned.
    pub(crate) fn hear_again(&mut self, client: usize, heard: &Heard, t: usize) {
        self.foreteller.hear(&mut self.memory, client, heard.z(t));
    }

    /// `steps` without data.
    pub(crate) fn skip(&mut self, steps: usize) {
        for client in 0..self.channels.len() {
            (0..steps).for_each(|_| self.foreteller.hear(&mut self.memory, client, None));
        }
    }

    /// A new run begins: no summary has arrived.
    pub(crate) fn reset(&mut self) {
        self.memory = self.foreteller.memory();
    }

    /// What was sent to a client.
    pub(crate) fn counted(&self, client: usize) -> Counted {
        self.channels[client].counted(What::Gradient)
    }
}
