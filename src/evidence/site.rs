//! The client's half of evidence mode: a sample of its proprietary model in, one symbol out.
//!
//! Measurements, residuals and distances stay here. What may leave is the [`Symbol`] of a step and,
//! once, the [`Enrolment`]: how often each level occurred in calibration, and how bursty it was.

pub use super::enrolment::Enrolment;
use super::health::CalibrationHealth;
use super::new_normal::NewNormal;
use super::sensor::{HabitFit, SensorFault, SensorHabit, SensorRanking, SensorWatch};
use super::symbol::{Grading, LevelCuts, RandomisedResponse, Symbol};
use super::threshold::NominalDistances;
use super::whitening::{Past, Recording, Sample, Whitening};
use crate::model::kernel::gaussian::{Gaussian, RIDGE};
use crate::model::kernel::mahalanobis::Mahalanobis;
use crate::privacy::{Manner, Vigil};

/// How a client grades its steps.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteSettings {
    /// Levels of its symbols.
    pub grading: Grading,
    /// ε of each symbol sent; sent as it is when absent.
    pub epsilon: Option<f64>,
    /// How often symbols are sent.
    pub manner: Manner,
    /// The watch that speaks when a budget keeps what is left for alarms.
    pub fallback: Option<Vigil>,
    /// Steps at the start of a run that say nothing: the filter finds its state.
    pub settling: usize,
    /// Whether a sensor that has gone flat is reported at the highest level.
    pub flat_line: bool,
}

impl Default for SiteSettings {
    fn default() -> Self {
        Self {
            grading: Grading::five_levels(),
            epsilon: None,
            manner: Manner::EveryStep,
            fallback: None,
            settling: 40,
            flat_line: true,
        }
    }
}

impl SiteSettings {
    /// The client's randomised response.
    #[must_use]
    pub fn response(&self) -> RandomisedResponse {
        RandomisedResponse::new(self.grading.levels(), self.epsilon)
    }
}

/// The nominal distribution of a client's whitened residuals.
#[derive(Debug, Clone)]
pub(super) struct Nominal {
    gaussian: Gaussian,
    distance: Mahalanobis,
}

impl Nominal {
    pub(super) fn fit(sensors: usize, rows: &[f32]) -> Self {
        let gaussian = Gaussian::fit(sensors, rows, RIDGE);
        Self { distance: Mahalanobis::new(&gaussian), gaussian }
    }

    /// d² of a whitened residual; with half of the sensors missing there is none.
    pub(super) fn squared(&mut self, r_w: &[f32]) -> f32 {
        let present = r_w.iter().filter(|r| r.is_finite()).count();
        if 2 * present < r_w.len() {
            return f32::NAN;
        }
        self.distance.squared(r_w).unwrap_or(f32::NAN)
    }

    /// µ.
    pub(super) fn mean(&self) -> &[f64] {
        self.gaussian.mean().as_slice()
    }

    /// Each sensor's residual in its own standard deviations.
    fn standardised<'a>(&'a self, r_w: &'a [f32]) -> impl Iterator<Item = f64> + 'a {
        let (mean, covariance) = (self.gaussian.mean(), self.gaussian.covariance());
        r_w.iter()
            .enumerate()
            .map(move |(i, r)| (f64::from(*r) - mean[i]) / covariance[(i, i)].sqrt())
    }
}

/// What a client makes of one step. Nothing but the symbol leaves it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// d² of the whitened residual, from the nearer normal where there are two; NaN when there is
    /// none.
    pub distance: f32,
    /// The true symbol; none while the run settles or when too much is missing.
    pub symbol: Option<Symbol>,
    /// A sensor has gone flat: the symbol says so at its highest level.
    pub flat_line: bool,
}

/// One client, fitted and calibrated.
#[derive(Debug, Clone)]
pub struct Site {
    settings: SiteSettings,
    whitening: Whitening,
    nominal: Nominal,
    cuts: LevelCuts,
    habits: Vec<SensorHabit>,
    // What follows changes with every step.
    past: Past,
    watch: SensorWatch,
    ranking: SensorRanking,
    new_normal: NewNormal,
    /// A flat line that was accepted, until it ends.
    flat_line_accepted: bool,
    r_w: Vec<f32>,
}

/// A client's calibration, step by step. It stays with the client.
#[derive(Debug, Clone)]
pub struct Calibration {
    /// True symbols.
    pub symbols: Vec<Option<Symbol>>,
    /// d² of the whitened residuals.
    pub distances: NominalDistances,
}

impl Calibration {
    /// Whether it agrees with itself and is long enough for a wanted ARL0 in steps.
    #[must_use]
    pub fn health(&self, grading: &Grading, arl0: f64) -> CalibrationHealth {
        CalibrationHealth::judge(&self.symbols, grading.elevated(), grading.levels(), arl0)
    }
}

impl Site {
    /// Fits the whitening on one nominal stretch and calibrates on another: what was fitted looks
    /// better than what comes.
    ///
    /// # Panics
    /// If the recordings are of no sensor.
    #[must_use]
    pub fn fit(
        fit: &Recording,
        calibration: &Recording,
        settings: SiteSettings,
    ) -> (Self, Calibration) {
        let whitening = Whitening::fit(fit, settings.settling);
        let mut habits = vec![HabitFit::default(); whitening.sensors()];
        for (_, sample) in fit.iter().chain(calibration.iter()) {
            habits.iter_mut().zip(sample.y).for_each(|(habit, y)| habit.add(f64::from(*y)));
        }
        let habits: Vec<SensorHabit> = habits.iter().map(HabitFit::habit).collect();
        let sensors = whitening.sensors();
        let mut site = Self {
            nominal: Nominal::fit(sensors, &[]),
            cuts: LevelCuts::new(&settings.grading, &NominalDistances::default()),
            past: whitening.past(),
            watch: SensorWatch::new(habits.clone()),
            ranking: SensorRanking::new(sensors),
            new_normal: NewNormal::new(sensors, &NominalDistances::default()),
            flat_line_accepted: false,
            r_w: vec![f32::NAN; sensors],
            habits,
            whitening,
            settings,
        };
        let calibration = site.calibrate(calibration);
        (site, calibration)
    }

    /// Sets µ, Σ and the cuts on a nominal stretch.
    pub fn calibrate(&mut self, nominal: &Recording) -> Calibration {
        let sensors = self.whitening.sensors();
        let rows = self.whitening.rows(nominal, self.settings.settling);
        self.nominal = Nominal::fit(sensors, &rows);
        let distances: Vec<f32> =
            rows.chunks_exact(sensors.max(1)).map(|row| self.nominal.squared(row)).collect();
        let nominal = NominalDistances::new(distances.iter().copied());
        self.cuts = LevelCuts::new(&self.settings.grading, &nominal);
        self.new_normal = NewNormal::new(sensors, &nominal);
        Calibration {
            symbols: distances.iter().map(|d| self.cuts.symbol(*d)).collect(),
            distances: nominal,
        }
    }

    /// How it grades.
    #[must_use]
    pub fn settings(&self) -> &SiteSettings {
        &self.settings
    }

    /// One step. Allocates nothing.
    pub fn step(&mut self, sample: Sample<'_>) -> Reading {
        self.watch.step(sample.y.iter().map(|y| f64::from(*y)));
        self.whitening.step(&mut self.past, sample, &mut self.r_w);
        if self.past.steps() <= self.settings.settling {
            return Reading { distance: f32::NAN, symbol: None, flat_line: false };
        }
        self.ranking.step(self.nominal.standardised(&self.r_w));
        let calibrated = self.nominal.squared(&self.r_w);
        let distance = self.new_normal.judge(&mut self.nominal, &self.r_w, calibrated);
        let flat = self.watch.any(SensorFault::FlatLine);
        self.flat_line_accepted &= flat;
        let flat_line = self.settings.flat_line && flat && !self.flat_line_accepted;
        let symbol = if flat_line {
            Some(self.settings.grading.highest())
        } else {
            self.cuts.symbol(distance)
        };
        Reading { distance, symbol, flat_line }
    }

    /// What the last `steps` showed is normal from here on, beside what was calibrated.
    pub fn take_as_normal(&mut self, steps: usize) {
        self.new_normal.take(&mut self.nominal, steps);
        self.flat_line_accepted = self.watch.any(SensorFault::FlatLine);
    }

    /// What was taken as normal last is not.
    pub fn take_back_normal(&mut self) {
        self.new_normal.take_back();
        self.flat_line_accepted = false;
    }

    /// Nothing but the calibration is normal.
    pub fn forget_new_normal(&mut self) {
        self.new_normal.forget();
        self.flat_line_accepted = false;
    }

    /// A new run begins. What was taken as normal stays so.
    pub fn reset(&mut self) {
        self.whitening.forget(&mut self.past);
        self.watch = SensorWatch::new(self.habits.clone());
        self.ranking = SensorRanking::new(self.r_w.len());
    }

    /// What takes its own past out of its residual.
    #[must_use]
    pub fn whitening(&self) -> &Whitening {
        &self.whitening
    }

    /// The whitened residual of the last step.
    #[must_use]
    pub fn whitened(&self) -> &[f32] {
        &self.r_w
    }

    /// What is wrong with each sensor.
    #[must_use]
    pub fn sensor_faults(&self) -> &[Option<SensorFault>] {
        self.watch.faults()
    }

    /// Which sensors deviate most. It leaves the client only where the session allows it.
    #[must_use]
    pub fn ranking(&self) -> &SensorRanking {
        &self.ranking
    }
}

#[cfg(test)]
mod tests {
    use super::super::likelihood::Hypotheses;
    use super::super::symbol::LevelCounts;
    use super::*;
    use crate::rng;
    use rand_distr::{Distribution as _, StandardNormal};

    /// White residuals of two sensors with a step of `shift` on the second from `at` on.
    fn recording(steps: usize, seed: u64, shift: f32, at: usize) -> Recording {
        let mut rng = rng::stream(seed, 0);
        let mut recording = Recording::new(2, 1);
        for t in 0..steps {
            let mut draw = || -> f32 { StandardNormal.sample(&mut rng) };
            let y_hat = [(t as f32 * 0.05).sin(), 0.3];
            let r = [draw(), draw() + if t >= at { shift } else { 0.0 }];
            let y = [y_hat[0] + r[0], y_hat[1] + r[1]];
            recording.push(Sample { y: &y, y_hat: &y_hat, r: &r, x_hat: &[y_hat[0]], inputs: &[] });
        }
        recording
    }

    fn site() -> (Site, Calibration) {
        let nominal = |seed| recording(3000, seed, 0.0, usize::MAX);
        Site::fit(&nominal(1), &nominal(2), SiteSettings::default())
    }

    fn readings(site: &mut Site, recording: &Recording) -> Vec<Reading> {
        recording.iter().map(|(_, sample)| site.step(sample)).collect()
    }

    #[test]
    fn the_first_steps_of_a_run_are_mute_and_nominal_levels_follow_the_cuts() {
        let (mut site, calibration) = site();
        let readings = readings(&mut site, &recording(4000, 3, 0.0, usize::MAX));
        assert!(readings[..40].iter().all(|r| r.symbol.is_none()));
        let symbols = readings.iter().filter_map(|r| r.symbol);
        let counts = LevelCounts::of(5, symbols);
        let elevated = counts.share_from(2).expect("symbols");
        assert!((0.03..0.07).contains(&elevated), "{elevated}");
        assert_eq!(calibration.health(&Grading::five_levels(), 2000.0), CalibrationHealth::Healthy);
    }

    #[test]
    fn a_shift_is_surprising_and_its_sensor_is_ranked_first() {
        let (mut site, _) = site();
        let readings = readings(&mut site, &recording(600, 4, 6.0, 500));
        assert!(
            readings[500..505].iter().all(|r| r.symbol == Some(Grading::five_levels().highest()))
        );
        assert_eq!(site.ranking().ranked()[0], 1);
    }

    #[test]
    fn a_flat_line_is_reported_at_the_highest_level_although_its_distance_is_small() {
        let (mut site, _) = site();
        let usual = recording(200, 5, 0.0, usize::MAX);
        readings(&mut site, &usual);
        let held = [0.1f32, 0.3];
        let mut last = None;
        for t in 0..10 {
            let y_hat = [0.1 + 0.01 * t as f32, 0.3];
            let r = [held[0] - y_hat[0], 0.0];
            let sample = Sample { y: &held, y_hat: &y_hat, r: &r, x_hat: &[0.1], inputs: &[] };
            last = Some(site.step(sample));
        }
        let last = last.expect("ten steps");
        assert!(last.flat_line && last.symbol == Some(Grading::five_levels().highest()));
        assert_eq!(site.sensor_faults(), [Some(SensorFault::FlatLine); 2]);
    }

    #[test]
    fn half_of_the_sensors_are_enough_and_none_is_not() {
        let (mut site, _) = site();
        readings(&mut site, &recording(100, 6, 0.0, usize::MAX));
        let y = [0.0, f32::NAN];
        let missing = |y| Sample { y, y_hat: &[0.0; 2], r: y, x_hat: &[0.0], inputs: &[] };
        let one = site.step(missing(&y));
        assert!(one.distance.is_finite() && one.symbol.is_some());
        let none = site.step(missing(&[f32::NAN; 2]));
        assert!(none.distance.is_nan() && none.symbol.is_none());
    }

    #[test]
    fn an_enrolment_of_a_calm_client_has_a_calm_tail() {
        let (site, calibration) = site();
        let mut rng = rng::stream(1, 1);
        let hypotheses = Hypotheses::default();
        let enrolment =
            Enrolment::new(&calibration.symbols, site.settings(), &hypotheses, &mut rng);
        assert!(enrolment.tail.omega > 0.6, "{:?}", enrolment.tail);
        assert_eq!(enrolment.counts.total() as usize, 3000 - 40);
    }
}
