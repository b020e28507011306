//! The summaries that the server received from one client over a stretch of nominal steps.

use crate::evidence::features::{LARGEST_EPSILON, LARGEST_Z, bounded};
use crate::wire::{Content, Message, Numbers};

/// The summaries of one client, step by step.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    states: usize,
    z: Vec<f64>,
    epsilon: Vec<f64>,
    spoken: Vec<bool>,
}

impl Heard {
    /// Nothing yet from a client with so many numbers in its z.
    pub(crate) fn new(states: usize) -> Self {
        Self { states, z: Vec::new(), epsilon: Vec::new(), spoken: Vec::new() }
    }

    /// Takes what came from `client` about steps 0 to `steps`; steps without a message are silence.
    pub(crate) fn receive(
        &mut self,
        client: usize,
        steps: usize,
        messages: impl IntoIterator<Item = Message>,
    ) {
        let wide = |numbers: &Numbers| numbers.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
        for message in messages {
            let Content::Summary { z, epsilon } = message.content() else { continue };
            // What is late, early or somebody else's counts as silence.
            let at = message.step() as usize;
            if message.client() != client || at >= steps || at < self.steps() {
                continue;
            }
            while self.steps() < at {
                self.hear(None, None);
            }
            self.hear(Some(&wide(z)), epsilon.as_ref().map(wide).as_deref());
        }
        while self.steps() < steps {
            self.hear(None, None);
        }
    }

    /// z and ε of the next step as numbers. What cannot be taken for a message counts as none.
    pub(super) fn hear(&mut self, z: Option<&[f64]>, epsilon: Option<&[f64]>) {
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

    pub(crate) fn states(&self) -> usize {
        self.states
    }

    pub(crate) fn steps(&self) -> usize {
        self.spoken.len()
    }

    /// z of step `t`.
    pub(crate) fn z(&self, t: usize) -> Option<&[f64]> {
        self.spoken.get(t)?.then(|| &self.z[t * self.states..(t + 1) * self.states])
    }

    /// ε of step `t`.
    pub(crate) fn epsilon(&self, t: usize) -> Option<&[f64]> {
        self.spoken.get(t)?.then(|| &self.epsilon[t * self.states..(t + 1) * self.states])
    }
}
