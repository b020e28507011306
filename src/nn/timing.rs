//! How long one client's step takes on this machine.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rand_distr::{Distribution, StandardNormal};

use super::augment::Augmentation;
use super::kernel::WeightsError;
use super::kernel::gaussian::{Gaussian, RIDGE};
use super::kernel::isa::Isa;
use super::proprietary::Filter;
use super::step::ClientStep;
use super::weights::{Conduct, FilterWeights, LstmFc, Mlp};
use crate::base::rng;

/// Steps per sample: a sample must be short beside a scheduler's slice and long beside the clock.
const STEPS: usize = 256;

/// Nanoseconds per step of a client with `sensors` sensors on this machine's best instruction set,
/// with φ of width 16 as in the paper's synthetic plants.
///
/// # Panics
/// If `sensors` is zero.
pub(crate) fn client_step_ns(sensors: usize) -> f64 {
    best_ns(sensors, 16, Isa::detect(), Duration::from_millis(200))
        .expect("a client's weights fit its sensors")
}

/// Nanoseconds per step of a client with everything the paper's method asks of it: a filter of two
/// states and width 16, φ of width `phi_width`, both residuals and both distances. The best of many
/// samples taken in `budget`: the speed of an idle machine.
pub(crate) fn best_ns(
    sensors: usize,
    phi_width: usize,
    isa: Isa,
    budget: Duration,
) -> Result<f64, WeightsError> {
    let mut client = paper_client(sensors, phi_width, isa)?;
    let mut noise = rng::stream(0, 1);
    let mut draw = || -> f32 { StandardNormal.sample(&mut noise) };
    let measurements: Vec<f32> = (0..STEPS * sensors).map(|_| draw()).collect();
    let residuals: Vec<f32> = (0..40 * sensors * sensors).map(|_| draw()).collect();
    let nominal = Gaussian::fit(sensors, &residuals, RIDGE);
    client.calibrate_with_isa(&nominal, Some(&nominal), isa);
    let mut best = f64::INFINITY;
    let start = Instant::now();
    while start.elapsed() < budget {
        let sample = Instant::now();
        for y in measurements.chunks_exact(sensors) {
            black_box(client.step(black_box(y)));
        }
        best = best.min(sample.elapsed().as_secs_f64());
    }
    Ok(best * 1e9 / STEPS as f64)
}

fn paper_client(
    sensors: usize,
    phi_width: usize,
    isa: Isa,
) -> Result<ClientStep<Filter>, WeightsError> {
    let rng = &mut rng::stream(0, 0);
    let weights = FilterWeights {
        transition: LstmFc::init(2, 16, 2, 1.0, rng),
        measurement: Mlp::init(2, 32, sensors, 1.0, rng),
        loadings: None,
        q: 0.1,
        r: 0.1,
        conduct: Conduct::default(),
    };
    let model = Filter::new(&weights, isa)?;
    let phi = LstmFc::init(sensors, phi_width, 2, 0.1, rng);
    let augmentation = Augmentation::with_isa(&phi, &model, isa)?;
    Ok(ClientStep::new(model, Some(augmentation)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_timed_on_every_instruction_set() {
        for isa in Isa::available() {
            for (sensors, phi_width) in [(4, 16), (4, 1), (38, 16), (38, 1)] {
                let ns = best_ns(sensors, phi_width, isa, Duration::from_millis(40))
                    .expect("weights of the right size");
                println!("{} d{sensors} φ{phi_width}: {ns:.0} ns", isa.name());
                assert!(ns > 0.0 && ns.is_finite());
            }
        }
    }
}
