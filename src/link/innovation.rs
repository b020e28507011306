//! What clients and server tell each other about influence: a summary of a state, and what was new
//! about it, one way; what the others explain of it, the other way.

use serde::Serialize;

use super::{Message, Sender, Tap};
use crate::privacy::{Numbers, Released};

/// z(t) and, while influence is learned, ε(t) of one client.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Innovation<'a> {
    client: usize,
    step: usize,
    z: &'a Released<Numbers>,
    epsilon: Option<&'a Released<Numbers>>,
}

impl Innovation<'_> {
    /// The place of the client in the federation.
    #[must_use]
    pub fn client(&self) -> usize {
        self.client
    }

    /// t.
    #[must_use]
    pub fn step(&self) -> usize {
        self.step
    }

    /// z(t), the standardised state, as released.
    #[must_use]
    pub fn z(&self) -> &[f64] {
        self.z.value().as_slice()
    }

    /// ε(t), what was new about it, as released.
    #[must_use]
    pub fn epsilon(&self) -> Option<&[f64]> {
        self.epsilon.map(|epsilon| epsilon.value().as_slice())
    }

    /// Everything it carries.
    pub(super) fn numbers(&self) -> impl Iterator<Item = &Released<Numbers>> {
        [self.z].into_iter().chain(self.epsilon)
    }
}

/// ε̂(t): what the others foretell of one client's ε(t).
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Foretold<'a> {
    client: usize,
    step: usize,
    epsilon: &'a Released<Numbers>,
}

impl<'a> Foretold<'a> {
    /// The server's word to `client` about `step`, heard by `tap`.
    #[must_use]
    pub fn new(client: usize, step: usize, epsilon: &'a Released<Numbers>, tap: &Tap) -> Self {
        let foretold = Self { client, step, epsilon };
        tap.hear(&Message::Foretold(foretold));
        foretold
    }

    /// The place of the client in the federation.
    #[must_use]
    pub fn client(&self) -> usize {
        self.client
    }

    /// t.
    #[must_use]
    pub fn step(&self) -> usize {
        self.step
    }

    /// ε̂(t), as released.
    #[must_use]
    pub fn epsilon(&self) -> &[f64] {
        self.epsilon.value().as_slice()
    }

    /// Everything it carries.
    pub(super) fn numbers(&self) -> &Released<Numbers> {
        self.epsilon
    }
}

impl Sender {
    /// The place of the client in the federation.
    #[must_use]
    pub fn client(&self) -> usize {
        self.client
    }

    /// What this client says about its state at `step`, heard by `tap`.
    #[must_use]
    pub fn innovation<'a>(
        &self,
        step: usize,
        z: &'a Released<Numbers>,
        epsilon: Option<&'a Released<Numbers>>,
        tap: &Tap,
    ) -> Innovation<'a> {
        let innovation = Innovation { client: self.client, step, z, epsilon };
        tap.hear(&Message::Innovation(innovation));
        innovation
    }
}
