//! One site in training, where its measurements meet its model.
//!
//! The proprietary chain does not depend on θ_m, so it is run once and kept ([`chain`]); a round
//! carries the augmented estimate through the vendor's f_m and h_m, which are shared and
//! immutable, sends two states, and steps θ_m on η1 ∇L_a + η2 ∇L_s:
//!
//! ```text
//! x̂_a(t−1) = x̂_c(t−1) + φ(y(t−1)),  x_a(t) = f(x̂_a(t−1)),  L_a = ‖y(t) − h(x_a(t))‖²
//! ∂L/∂φ = F_aᵀ (−2 η1 H_aᵀ (y − h(x_a)) + η2 g),  F_a = ∂f/∂x̂_a,  H_a = ∂h/∂x_a
//! ```
//!
//! It must not know other clients, files, threads or screens.

use std::sync::Arc;

use ndarray::ArrayView2;
use thiserror::Error;

use super::chain::Chain;
use crate::nn::frozen::{Carried, Frozen};
use crate::nn::kernel::WeightsError;
use crate::nn::online::{Descent, Learner};
use crate::nn::proprietary::VendorModel;
use crate::nn::weights::{FilterWeights, LstmFc, ProprietaryWeights};
use crate::privacy::{Channel, Counted, Estimate, PrivacyError, Units, What};
use crate::wire::{Numbers, Outgoing, Sender, StatesStay};

/// What a site brings into a federation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SiteData<'a> {
    /// Its name, for messages to people.
    pub(crate) name: &'a str,
    /// The vendor's model, frozen.
    pub(crate) model: &'a ProprietaryWeights,
    /// Nominal rows (rows = steps), standardised; not finite where missing.
    pub(crate) rows: ArrayView2<'a, f32>,
}

/// Why a site cannot take part.
#[derive(Debug, Error)]
pub(crate) enum TrainingSiteError {
    /// The vendor's weights make no model.
    #[error("{client}: {source}")]
    Weights {
        client: String,
        /// What is wrong with them.
        source: WeightsError,
    },
    /// The model has nothing that may be sent.
    #[error("{client}: {source}")]
    StatesStay { client: String, source: StatesStay },
    /// Rows that the model cannot read.
    #[error("{client}: rows of {found} sensors for a model of {expected}")]
    Sensors {
        client: String,
        /// Sensors of the model.
        expected: usize,
        found: usize,
    },
}

/// Weights of the two losses in a client's step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Eta {
    /// η1, of the client's own loss.
    pub(crate) own: f32,
    /// η2, of the server's gradient.
    pub(crate) server: f32,
}

/// What stands between a client's states and its messages.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// For x̂_c.
    pub(crate) proprietary: Channel,
    /// For x_a.
    pub(crate) augmented: Channel,
}

impl Outbox {
    /// Bounds are meant in deviations of x̂_c over the client's nominal rows; x_a, a prediction of
    /// the same state, has the same.
    fn in_units(self, chain: &Chain) -> Self {
        let units = Units::of(chain.states(), chain.x_hats());
        Self {
            proprietary: self.proprietary.in_units(units.clone()),
            augmented: self.augmented.in_units(units),
        }
    }
}

/// A site in training.
#[derive(Debug)]
pub(crate) struct TrainingSite {
    name: String,
    sender: Sender,
    weights: Arc<FilterWeights>,
    frozen: Arc<Frozen>,
    chain: Chain,
    phi: Learner,
    eta: Eta,
    outbox: Outbox,
    carried: Carried,
    x_hat_a: Vec<f32>,
    /// η1 ∂L_a/∂x_a.
    pull: Vec<f32>,
    d_phi: Vec<f32>,
    /// Whether φ had something to see, and so a share in x̂_a.
    augmented: bool,
    loss: f64,
    /// x̂_c and x_a on their way to a mechanism.
    sending: [Vec<f64>; 2],
}

impl TrainingSite {
    /// The client at `place` of the federation: runs its proprietary model once over all its rows.
    pub(crate) fn new(
        place: usize,
        site: &SiteData,
        phi: &LstmFc,
        descent: Descent,
        eta: Eta,
        outbox: Outbox,
    ) -> Result<Self, TrainingSiteError> {
        let client = || site.name.to_owned();
        let wrong = |source| TrainingSiteError::Weights { client: client(), source };
        let stay = |source| TrainingSiteError::StatesStay { client: client(), source };
        let mut model = VendorModel::new(site.model).map_err(wrong)?;
        let sender = Sender::new(place, &model).map_err(stay)?;
        let weights = site.model.filter().ok_or(StatesStay).map_err(stay)?;
        let (expected, found) = (weights.sensors(), site.rows.ncols());
        if found != expected {
            return Err(TrainingSiteError::Sensors { client: client(), expected, found });
        }
        let frozen = Frozen::new(weights).map_err(wrong)?;
        let states = weights.states();
        let chain = Chain::run(&mut model, &site.rows);
        let outbox = outbox.in_units(&chain);
        Ok(Self {
            name: client(),
            sender,
            weights: Arc::new(weights.clone()),
            chain,
            phi: Learner::new(phi, descent).map_err(wrong)?,
            eta,
            outbox,
            carried: frozen.carried(),
            frozen: Arc::new(frozen),
            x_hat_a: vec![0.0; states],
            pull: vec![0.0; states],
            d_phi: vec![0.0; states],
            augmented: false,
            loss: 0.0,
            sending: [vec![0.0; states], vec![0.0; states]],
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The place of the client in the federation.
    pub(crate) fn place(&self) -> usize {
        self.sender.client()
    }

    /// Number of states P.
    pub(crate) fn states(&self) -> usize {
        self.x_hat_a.len()
    }

    /// What its proprietary model made of its rows.
    pub(super) fn chain(&self) -> &Chain {
        &self.chain
    }

    /// The same, for tests that compute a round again.
    #[cfg(test)]
    pub(crate) fn chain_of_test(&self) -> &Chain {
        &self.chain
    }

    /// Number of rows it learns from.
    pub(crate) fn steps(&self) -> usize {
        self.chain.steps()
    }

    /// Whether any of its sensors was there at row t.
    pub(crate) fn is_measured(&self, t: usize) -> bool {
        self.chain.is_measured(t)
    }

    /// f_m and h_m.
    pub(crate) fn functions(&self) -> &Arc<FilterWeights> {
        &self.weights
    }

    /// φ as it is now.
    pub(crate) fn phi(&self) -> LstmFc {
        self.phi.weights()
    }

    /// Goes on with another φ of the same size.
    pub(crate) fn adopt(&mut self, phi: &LstmFc) -> Result<(), WeightsError> {
        self.phi = self.phi.replaced_by(phi)?;
        Ok(())
    }

    /// Weights of the two losses.
    pub(crate) fn eta(&self) -> Eta {
        self.eta
    }

    /// L_a of the last round; zero where nothing was measured.
    pub(crate) fn loss(&self) -> f64 {
        self.loss
    }

    /// What was released about this client, for composition.
    pub(crate) fn released(&self) -> [Counted; 2] {
        let Outbox { proprietary, augmented } = &self.outbox;
        [proprietary.counted(What::ProprietaryState), augmented.counted(What::AugmentedState)]
    }

    /// Forgets what φ has seen: a new pass begins.
    pub(crate) fn forget(&mut self) {
        self.phi.forget();
    }

    /// x_a(t) from the row before it, and L_a; `t` must be one more than at the call before, or
    /// later after a gap.
    pub(crate) fn estimate(&mut self, t: usize) {
        let Self { chain, phi, frozen, carried, x_hat_a, pull, .. } = self;
        x_hat_a.copy_from_slice(chain.x_hat(t - 1));
        self.augmented = chain.is_measured(t - 1);
        if self.augmented {
            let phi = phi.forward(chain.input(t - 1));
            x_hat_a.iter_mut().zip(phi).for_each(|(x, phi)| *x += phi);
        }
        frozen.carry(x_hat_a, chain.memory(t - 1), carried);
        pull.fill(0.0);
        self.loss = 0.0;
        for (i, (&y, y_hat)) in chain.target(t).iter().zip(carried.y_hat()).enumerate() {
            if y.is_finite() {
                let r = y - y_hat;
                self.loss += f64::from(r * r);
                for (k, pull) in pull.iter_mut().enumerate() {
                    *pull -= 2.0 * self.eta.own * carried.h_column(k)[i] * r;
                }
            }
        }
    }

    /// [x̂_c(t−1), x_a(t)] as they leave, after [`TrainingSite::estimate`].
    pub(crate) fn states_message(&mut self, t: usize) -> Result<Outgoing, PrivacyError> {
        let Self { sender, chain, carried, outbox, sending, .. } = self;
        send(*sender, outbox, sending, t, chain.x_hat(t - 1), carried.x())
    }

    /// The same for an x_a that was computed elsewhere from this client's weights.
    pub(super) fn states_message_of(
        &mut self,
        t: usize,
        x_a: &[f32],
    ) -> Result<Outgoing, PrivacyError> {
        let Self { sender, chain, outbox, sending, .. } = self;
        send(*sender, outbox, sending, t, chain.x_hat(t - 1), x_a)
    }

    /// Steps θ_m on η1 ∇L_a + η2 ∇L_s, the latter through the server's gradient where there is one.
    pub(crate) fn learn(&mut self, gradient: Option<&Numbers>, pace: f64) {
        if !self.augmented {
            return;
        }
        let Self { pull, eta, carried, d_phi, phi, .. } = self;
        if let Some(gradient) = gradient {
            for (pull, &g) in pull.iter_mut().zip(gradient) {
                *pull += eta.server * g;
            }
        }
        for (k, d) in d_phi.iter_mut().enumerate() {
            *d = carried.f_column(k).iter().zip(pull.iter()).map(|(f, pull)| f * pull).sum();
        }
        phi.learn(d_phi, pace);
    }
}

fn send(
    sender: Sender,
    outbox: &mut Outbox,
    [c, a]: &mut [Vec<f64>; 2],
    t: usize,
    x_hat_c: &[f32],
    x_a: &[f32],
) -> Result<Outgoing, PrivacyError> {
    widen(c, x_hat_c);
    widen(a, x_a);
    let x_c = outbox.proprietary.send(&Estimate::of_state(c))?;
    let x_a = outbox.augmented.send(&Estimate::of_state(a))?;
    Ok(sender.states(t as u64, x_c, x_a))
}

fn widen(to: &mut [f64], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to = f64::from(from));
}
