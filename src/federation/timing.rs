//! How long one round of Algorithm 1 takes on this machine.

use std::time::{Duration, Instant};

use ndarray::Array2;
use rand_distr::{Distribution as _, StandardNormal};

use super::{Federation, FederationError, Hooks, Stage};
use crate::base::rng;
use crate::nn::weights::{Conduct, FilterWeights, LstmFc, Mlp, ProprietaryWeights};
use crate::privacy::Provenance;
use crate::session::settings::{ModelSettings, PrivacySettings};
use crate::site::training::SiteData;

/// Sensors of a client, about as many as a client of the built-in plant has.
const SENSORS: usize = 9;

/// Rows in a sample; long beside the clock, short beside a scheduler's slice at few clients.
const ROWS: usize = 33;

/// Microseconds per round with `clients` clients of the paper's sizes (P = 2, widths 16, 32 and 64,
/// Adam), nothing noised: the best of many samples taken in `budget`, what the machine can do when
/// nothing else uses it.
pub(crate) fn round_us(clients: usize, budget: Duration) -> Result<f64, FederationError> {
    let mut draw = rng::stream(0, 1);
    let rng = &mut rng::stream(0, 0);
    let model = ProprietaryWeights::Filter(FilterWeights {
        transition: LstmFc::init(2, 16, 2, 1.0, rng),
        measurement: Mlp::init(2, 32, SENSORS, 1.0, rng),
        loadings: None,
        q: 0.1,
        r: 0.1,
        conduct: Conduct::default(),
    });
    let rows: Array2<f32> =
        Array2::from_shape_simple_fn((ROWS, SENSORS), || StandardNormal.sample(&mut draw));
    let site = SiteData { name: "bench", model: &model, rows: rows.view() };
    let privacy = PrivacySettings::default();
    let hooks = Hooks { privacy: &privacy, provenance: Provenance::Seeded };
    let sites = vec![site; clients];
    let mut federation = Federation::new(&sites, &ModelSettings::default(), hooks, 0)?;
    let mut best = f64::INFINITY;
    let start = Instant::now();
    loop {
        let sample = Instant::now();
        for t in 1..ROWS {
            federation.round(t, Stage::Together, 1.0)?;
        }
        best = best.min(sample.elapsed().as_secs_f64());
        if start.elapsed() >= budget {
            return Ok(best * 1e6 / (ROWS - 1) as f64);
        }
    }
}
