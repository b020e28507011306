//! One client's step at inference: proprietary model, augmented chain, both residuals and both
//! distances.
//!
//! A client's step depends on nothing but its own measurements, so clients may run on any threads in
//! any order with the same result, bit for bit. After construction a step allocates nothing. This
//! module must not know thresholds, flags or messages.

use super::augment::Augmentation;
use super::kernel::gaussian::Gaussian;
use super::kernel::isa::Isa;
use super::kernel::mahalanobis::Mahalanobis;
use super::proprietary::{LONGEST_GAP, Output, Proprietary, VendorModel};

/// d² of a step. Nothing where no sensor was present or no nominal distribution is known yet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Distances {
    /// Of the proprietary residual r_c.
    pub(crate) c: Option<f32>,
    /// Of the augmented residual r_a.
    pub(crate) a: Option<f32>,
}

/// Everything one client computes when a measurement arrives.
#[derive(Debug, Clone)]
pub(crate) struct ClientStep<M = VendorModel> {
    model: M,
    augmentation: Option<Augmentation>,
    distance_c: Option<Mahalanobis>,
    distance_a: Option<Mahalanobis>,
}

impl<M: Proprietary> ClientStep<M> {
    /// A client without distances: they need residuals to be fitted to first.
    pub(crate) fn new(model: M, augmentation: Option<Augmentation>) -> Self {
        Self { model, augmentation, distance_c: None, distance_a: None }
    }

    /// Measures residuals against their nominal distributions from now on. A distribution of
    /// another number of sensors is not taken.
    pub(crate) fn calibrate(&mut self, nominal_c: &Gaussian, nominal_a: Option<&Gaussian>) {
        self.calibrate_with_isa(nominal_c, nominal_a, Isa::detect());
    }

    /// The same, on a given instruction set.
    pub(crate) fn calibrate_with_isa(
        &mut self,
        nominal_c: &Gaussian,
        nominal_a: Option<&Gaussian>,
        isa: Isa,
    ) {
        let fits = |nominal: &&Gaussian| nominal.sensors() == self.model.sensors();
        let distance = |nominal: &Gaussian| Mahalanobis::with_isa(nominal, isa);
        self.distance_c = Some(nominal_c).filter(fits).map(distance);
        self.distance_a = nominal_a.filter(fits).map(distance);
    }

    /// One step with a measurement of D numbers; a missing one is not finite.
    pub(crate) fn step(&mut self, y: &[f32]) -> Distances {
        let Self { model, augmentation, distance_c, distance_a } = self;
        model.step(y, augmentation.as_mut().map(Augmentation::second_estimate));
        let output = model.output();
        let c = distance_c.as_mut().and_then(|distance| distance.squared(&output.r));
        let a = augmentation.as_mut().and_then(|augmentation| {
            augmentation.correct(y, output);
            distance_a.as_mut().and_then(|distance| distance.squared(augmentation.r()))
        });
        Distances { c, a }
    }

    /// `steps` predictions over a gap in the data; a gap of more than [`LONGEST_GAP`] is a new run.
    pub(crate) fn skip(&mut self, steps: usize) {
        self.model.skip(steps);
        if steps > LONGEST_GAP {
            self.reset();
        } else if let (1.., Some(augmentation)) = (steps, self.augmentation.as_mut()) {
            augmentation.follow(self.model.output());
        }
    }

    /// A new run begins: everything but weights and distributions is forgotten.
    pub(crate) fn reset(&mut self) {
        self.model.reset();
        if let Some(augmentation) = &mut self.augmentation {
            augmentation.reset();
        }
    }

    /// The output of the proprietary model at the last step.
    pub(crate) fn output(&self) -> &Output {
        self.model.output()
    }

    /// The augmented chain, if the client has one.
    pub(crate) fn augmentation(&self) -> Option<&Augmentation> {
        self.augmentation.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DVector;
    use proptest::prelude::*;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;
    use crate::base::rng;
    use crate::nn::kernel::gaussian::RIDGE;
    use crate::nn::kernel::reference::{self, State};
    use crate::nn::weights::{Conduct, FilterWeights, LstmFc, Mlp, ProprietaryWeights};

    fn weights(sensors: usize, seed: u64) -> (FilterWeights, LstmFc) {
        let rng = &mut rng::stream(seed, 0);
        let filter = FilterWeights {
            transition: LstmFc::init(2, 16, 2, 3.0, rng),
            measurement: Mlp::init(2, 32, sensors, 2.0, rng),
            loadings: None,
            q: 0.1,
            r: 0.1,
            conduct: Conduct::default(),
        };
        (filter, LstmFc::init(sensors, 16, 2, 0.5, rng))
    }

    fn measurements(sensors: usize, steps: usize, seed: u64) -> Vec<f32> {
        let mut rng = rng::stream(seed, 1);
        (0..steps * sensors).map(|_| StandardNormal.sample(&mut rng)).collect()
    }

    fn client(sensors: usize, seed: u64) -> ClientStep {
        let (filter, phi) = weights(sensors, seed);
        let model = VendorModel::new(&ProprietaryWeights::Filter(filter)).expect("good weights");
        let augmentation = Augmentation::new(&phi, &model).expect("good weights");
        let mut client = ClientStep::new(model, Some(augmentation));
        let (mut r_c, mut r_a) = (Vec::new(), Vec::new());
        for y in measurements(sensors, 300, seed + 1).chunks_exact(sensors) {
            assert_eq!(client.step(y), Distances { c: None, a: None });
            r_c.extend_from_slice(&client.output().r);
            r_a.extend_from_slice(client.augmentation().expect("a chain").r());
        }
        client.calibrate(
            &Gaussian::fit(sensors, &r_c, RIDGE),
            Some(&Gaussian::fit(sensors, &r_a, RIDGE)),
        );
        client.reset();
        client
    }

    #[test]
    fn the_augmented_chain_follows_its_equations() {
        let (filter, phi) = weights(4, 5);
        let mut client = client(4, 5);
        let exact = |v: &[f32]| DVector::from_iterator(v.len(), v.iter().map(|&v| f64::from(v)));
        let (mut f_memory, mut phi_memory) = (State::zero(16), State::zero(16));
        let mut x_hat_a = DVector::zeros(2);
        let mut x_hat_c = DVector::zeros(2);
        for y in measurements(4, 200, 9).chunks_exact(4) {
            client.step(y);
            // x_a = f(x̂_a; h, c as after the step before), r_a = y − h(x_a).
            let x_a = reference::lstm(&filter.transition, &f_memory, &x_hat_a).0;
            let r_a = exact(y) - reference::mlp(&filter.measurement, &x_a);
            f_memory = reference::lstm(&filter.transition, &f_memory, &x_hat_c).1;
            x_hat_c = exact(&client.output().x_hat);
            // x̂_a = x̂_c + φ(y).
            let (correction, next) = reference::lstm(&phi, &phi_memory, &exact(y));
            phi_memory = next;
            x_hat_a = &x_hat_c + correction;
            let chain = client.augmentation().expect("a chain");
            assert!((exact(chain.x()) - x_a).amax() < 1e-5);
            assert!((exact(chain.r()) - r_a).amax() < 1e-5);
            assert!((exact(chain.x_hat()) - &x_hat_a).amax() < 1e-5);
        }
    }

    #[test]
    fn nominal_residuals_have_a_distance_of_about_the_number_of_sensors() {
        for sensors in [4, 38] {
            let mut client = client(sensors, 2);
            let (mut c, mut a, mut n) = (0.0, 0.0, 0.0);
            for y in measurements(sensors, 400, 3).chunks_exact(sensors) {
                let distances = client.step(y);
                c += f64::from(distances.c.expect("sensors are present"));
                a += f64::from(distances.a.expect("sensors are present"));
                n += sensors as f64;
            }
            assert!((c / n - 1.0).abs() < 0.3 && (a / n - 1.0).abs() < 0.3, "{} {}", c / n, a / n);
        }
    }

    #[test]
    fn clients_give_the_same_bits_on_one_thread_and_on_many() {
        let run = |seed: u64| -> Vec<Option<u32>> {
            let mut client = client(9, seed);
            measurements(9, 200, seed)
                .chunks_exact(9)
                .flat_map(|y| {
                    let distances = client.step(y);
                    [distances.c.map(f32::to_bits), distances.a.map(f32::to_bits)]
                })
                .collect()
        };
        let alone: Vec<_> = (0..6).map(run).collect();
        let together: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..6).map(|seed| scope.spawn(move || run(seed))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert_eq!(alone, together);
    }

    #[test]
    fn the_proprietary_chain_does_not_depend_on_the_augmentation() {
        let (filter, _) = weights(7, 3);
        let mut augmented = client(7, 3);
        let mut alone = ClientStep::new(
            VendorModel::new(&ProprietaryWeights::Filter(filter)).expect("good weights"),
            None,
        );
        for y in measurements(7, 100, 4).chunks_exact(7) {
            augmented.step(y);
            alone.step(y);
            assert_eq!(augmented.output(), alone.output());
        }
    }

    #[test]
    fn a_step_moves_no_buffer() {
        // Every buffer that a step writes is a vector made at construction; a step only fills it.
        let mut client = client(6, 1);
        let places = |client: &ClientStep| {
            let output = client.output();
            let chain = client.augmentation().expect("a chain");
            [&output.y_hat, &output.r, &output.x, &output.x_hat, &output.e]
                .map(Vec::as_ptr)
                .into_iter()
                .chain([chain.x(), chain.x_hat(), chain.y_hat(), chain.r()].map(<[f32]>::as_ptr))
                .collect::<Vec<_>>()
        };
        let before = places(&client);
        let mut measurements = measurements(6, 100, 2);
        measurements[33] = f32::NAN;
        measurements[50..62].fill(f32::NAN);
        for y in measurements.chunks_exact(6) {
            client.step(y);
        }
        client.skip(3);
        client.reset();
        assert_eq!(places(&client), before);
    }

    #[test]
    fn over_a_gap_the_augmented_state_follows_the_proprietary_one() {
        let mut client = client(4, 8);
        for y in measurements(4, 20, 1).chunks_exact(4) {
            client.step(y);
        }
        let mut skipped = client.clone();
        let none = client.step(&[f32::NAN; 4]);
        assert_eq!(none, Distances { c: None, a: None });
        skipped.skip(1);
        for client in [&client, &skipped] {
            let chain = client.augmentation().expect("a chain");
            assert_eq!(chain.x_hat(), client.output().x_hat);
            assert!(chain.r().iter().all(|r| r.is_nan()));
        }
        let y = [0.1, 0.2, -0.3, 0.4];
        assert_eq!(client.step(&y), skipped.step(&y));
    }

    #[test]
    fn a_distribution_of_another_size_is_not_taken() {
        let mut client = client(4, 8);
        client.calibrate(&Gaussian::fit(3, &[], RIDGE), None);
        assert_eq!(client.step(&[0.0; 4]), Distances { c: None, a: None });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn no_measurement_gives_a_distance_or_a_state_that_is_not_a_number(
            wild in prop::collection::vec(prop::num::f32::ANY, 40),
        ) {
            let mut client = client(4, 4);
            for y in wild.chunks_exact(4) {
                let distances = client.step(y);
                let present = y.iter().any(|y| y.is_finite());
                for distance in [distances.c, distances.a] {
                    prop_assert_eq!(distance.is_some(), present);
                    prop_assert!(distance.is_none_or(|d| d.is_finite() && d >= 0.0));
                }
                let chain = client.augmentation().expect("a chain");
                prop_assert!(chain.x().iter().chain(chain.x_hat()).all(|v| v.is_finite()));
            }
        }
    }
}
