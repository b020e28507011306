//! From a client's state to its four measurements, noise included.
//!
//! It must not know how the state came about.

use rand_distr::{Distribution as _, StandardNormal};

use super::lstm::Linear;
use super::{CHANNELS, Measurements, State};
use crate::base::rng::Rng;

/// Hidden units of family A's `h_m`.
const HIDDEN: usize = 32;
/// The paper's scaling of `h_m`.
const SCALE: f64 = 50.0;

/// `h_m`, without noise.
#[derive(Debug, Clone)]
pub(super) enum Sensing {
    /// Family A: a random network of one hidden SELU layer.
    Network { hidden: Linear, out: Linear },
    /// Families B and H: C x + 0.5 tanh(C₂ x), by row.
    Mixture {
        /// C.
        linear: [State; CHANNELS],
        /// C₂.
        bent: [State; CHANNELS],
    },
}

impl Sensing {
    pub(super) fn network(rng: &mut Rng) -> Self {
        Self::Network {
            hidden: Linear::random(2, HIDDEN, rng),
            out: Linear::random(HIDDEN, CHANNELS, rng),
        }
    }

    pub(super) fn mixture(rng: &mut Rng) -> Self {
        let mut rows =
            || std::array::from_fn(|_| std::array::from_fn(|_| StandardNormal.sample(rng)));
        Self::Mixture { linear: rows(), bent: rows() }
    }

    /// What noiseless sensors show in state `x`.
    pub(super) fn clean(&self, x: State) -> Measurements {
        match self {
            Self::Network { hidden, out } => {
                let h: [f64; HIDDEN] = std::array::from_fn(|unit| selu(hidden.output(unit, &x)));
                std::array::from_fn(|channel| SCALE * out.output(channel, &h))
            }
            Self::Mixture { linear, bent } => {
                let dot = |row: State| row[0] * x[0] + row[1] * x[1];
                std::array::from_fn(|channel| {
                    dot(linear[channel]) + 0.5 * dot(bent[channel]).tanh()
                })
            }
        }
    }
}

/// Scaled exponential linear unit (Klambauer et al. 2017).
fn selu(x: f64) -> f64 {
    const LAMBDA: f64 = 1.050_700_987_355_480_5;
    const ALPHA: f64 = 1.673_263_242_354_377_2;
    LAMBDA * if x > 0.0 { x } else { ALPHA * x.exp_m1() }
}
