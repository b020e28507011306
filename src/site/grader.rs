//! Grades the steps of one client: a sample of its proprietary model in, one symbol out.
//!
//! Measurements, residuals and distances stay here.

pub(super) mod calibration;

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use super::new_normal::NewNormal;
use super::sensor::SensorRanking;
use super::standing::{StandingStates, StandingWatch};
use super::stretch::Stretch;
use super::whitening::{Past, Sample, Whitening};
use crate::evidence::symbol::{Grading, LevelCuts, Symbol};
use crate::evidence::threshold::NominalDistances;
use crate::nn::kernel::gaussian::{Gaussian, RIDGE};
use crate::nn::kernel::mahalanobis::Mahalanobis;
use crate::privacy::SparseVectorParams;
use crate::session::SendPolicy;

/// How a client grades its steps.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SiteSettings {
    /// Levels of its symbols.
    pub(crate) grading: Grading,
    /// ε of each symbol sent; without noise when absent.
    pub(crate) epsilon: Option<f64>,
    /// How often symbols are sent.
    pub(crate) send: SendPolicy,
    /// The watch behind `WhileRaised`, or for when a budget keeps what is left for alarms.
    pub(crate) watch: Option<SparseVectorParams>,
    /// Whether a sensor that has gone flat is reported at the highest level.
    pub(crate) flat_line: bool,
}

impl Default for SiteSettings {
    fn default() -> Self {
        Self {
            grading: Grading::five_levels(),
            epsilon: None,
            send: SendPolicy::EveryStep,
            watch: None,
            flat_line: true,
        }
    }
}

/// Steps at the start of a run that do not count: the filter finds its state. A calibration of many runs
/// may show that fewer are needed ([`settling`](super::settling)).
pub(crate) const SETTLING: usize = 40;

/// The nominal distribution of a client's whitened residuals.
#[derive(Debug, Clone)]
pub(super) struct Nominal {
    gaussian: Gaussian,
    distance: Mahalanobis,
}

impl Nominal {
    pub(super) fn fit(sensors: usize, rows: &[f32]) -> Self {
        Self::of(Gaussian::fit(sensors, rows, RIDGE))
    }

    pub(super) fn of(gaussian: Gaussian) -> Self {
        Self { distance: Mahalanobis::new(&gaussian), gaussian }
    }

    pub(super) fn gaussian(&self) -> &Gaussian {
        &self.gaussian
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

/// What sensors show by themselves, whatever a model makes of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SensorAlert {
    /// A sensor has gone flat.
    pub(crate) flat: bool,
    /// A sensor that no model sees shows a value never seen before.
    pub(crate) unseen: bool,
}

/// What a client makes of one step. Nothing but the symbol leaves it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reading {
    /// d² of the whitened residual, from the nearer normal where there are two; NaN when there is
    /// none.
    pub(crate) distance: f32,
    /// The true symbol; none while the run settles or when too much is missing.
    pub(crate) symbol: Option<Symbol>,
    /// A sensor has gone flat or shows a value never seen: the symbol is the highest one.
    pub(crate) alert: bool,
    /// How far the distance lies beyond the highest cut; it leaves the client only beside a highest
    /// symbol.
    pub(crate) severity: u8,
}

/// What is fitted and calibrated once, whatever is sent later: it is kept with the client's models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct GraderFit {
    whitening: Whitening,
    /// µ and Σ of the whitened residuals.
    nominal: Gaussian,
    /// d² of every calibration step; NaN where there is none.
    distances: Vec<f32>,
    /// States of its switches that stand still. Kept behind the fits of all sites, so that fits from
    /// before there were such states can be read.
    #[serde(skip)]
    standing: Standing,
    /// The stretches of its calibration, kept there too; none in fits from before they were.
    #[serde(skip)]
    stretches: Vec<Stretch>,
    /// Steps at the start of a run that do not count, kept there too.
    #[serde(skip, default = "longest")]
    settling: usize,
}

fn longest() -> usize {
    SETTLING
}

/// States of a client's switches that stand still, and where its calibration repeats one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Standing {
    states: StandingStates,
    /// One entry a step of the calibration; empty where there are no such states.
    repeats: Vec<bool>,
}

impl Standing {
    /// Learns from the rows of fit and calibration.
    pub(super) fn learn(fit: &ArrayView2<'_, f32>, calibration: &ArrayView2<'_, f32>) -> Self {
        let states = StandingStates::learn(&[fit.view(), calibration.view()], SETTLING);
        Self { repeats: states.repeats(calibration), states }
    }
}

impl GraderFit {
    /// The same with another number of steps that do not count at the start of a run.
    pub(super) fn with_settling(self, settling: usize) -> Self {
        Self { settling, ..self }
    }

    /// Steps at the start of a run that are not judged.
    pub(crate) fn settling(&self) -> usize {
        self.settling
    }

    /// The same with states that are no evidence by standing, and with the stretches of its calibration.
    pub(super) fn with_standing(self, standing: Standing, stretches: Vec<Stretch>) -> Self {
        Self { standing, stretches, ..self }
    }

    /// µ and Σ of the whitened residuals.
    #[cfg(test)]
    pub(super) fn nominal(&self) -> &Gaussian {
        &self.nominal
    }

    pub(super) fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    pub(super) fn standing(&self) -> &Standing {
        &self.standing
    }

    pub(crate) fn sensors(&self) -> usize {
        self.whitening.sensors()
    }

    /// Measurements that a step is judged by, beside its own.
    pub(crate) fn lags(&self) -> usize {
        self.whitening.lags()
    }

    /// Number of calibration steps.
    pub(crate) fn steps(&self) -> usize {
        self.distances.len()
    }

    /// Whether the parts fit together: what is read from a file may not.
    pub(crate) fn is_whole(&self) -> bool {
        self.whitening.is_whole() && self.nominal.mean().len() == self.whitening.sensors()
    }

    /// The true symbol of every calibration step; none where there is no distance.
    pub(crate) fn symbols(&self, grading: &Grading) -> Vec<Option<Symbol>> {
        let cuts = LevelCuts::new(grading, &self.nominal_distances());
        let repeats = self.standing.repeats.iter().copied().chain(std::iter::repeat(false));
        let graded = self.distances.iter().zip(repeats);
        graded.map(|(d, repeats)| cuts.symbol(counted(*d, repeats))).collect()
    }

    pub(super) fn nominal_distances(&self) -> NominalDistances {
        NominalDistances::new(self.distances.iter().copied())
    }
}

/// What of a distance counts: nothing where a state stands that is known to. None stays none.
fn counted(distance: f32, repeats: bool) -> f32 {
    if repeats && !distance.is_nan() { 0.0 } else { distance }
}

/// One client at work.
#[derive(Debug, Clone)]
pub(crate) struct Grader {
    settings: SiteSettings,
    whitening: Whitening,
    nominal: Nominal,
    cuts: LevelCuts,
    states: StandingStates,
    settling: usize,
    // What follows changes with every step.
    past: Past,
    standing: StandingWatch,
    ranking: SensorRanking,
    new_normal: NewNormal,
    /// A flat line that was accepted, until it ends.
    flat_line_accepted: bool,
    /// A sensor had gone flat at the last step.
    flat: bool,
    r_w: Vec<f32>,
}

impl Grader {
    /// A client with what was fitted for it.
    pub(crate) fn new(fit: &GraderFit, settings: SiteSettings) -> Self {
        let sensors = fit.sensors();
        let distances = fit.nominal_distances();
        Self {
            nominal: Nominal::of(fit.nominal.clone()),
            cuts: LevelCuts::new(&settings.grading, &distances),
            states: fit.standing.states.clone(),
            settling: fit.settling,
            past: fit.whitening.past(),
            standing: StandingWatch::default(),
            ranking: SensorRanking::new(sensors),
            new_normal: NewNormal::new(sensors, &distances),
            flat_line_accepted: false,
            flat: false,
            r_w: vec![f32::NAN; sensors],
            whitening: fit.whitening.clone(),
            settings,
        }
    }

    pub(crate) fn settings(&self) -> &SiteSettings {
        &self.settings
    }

    /// One step, with what sensors show by themselves. Allocates nothing.
    pub(crate) fn step(
        &mut self,
        sample: Sample<'_>,
        SensorAlert { flat, unseen }: SensorAlert,
    ) -> Reading {
        self.flat = flat;
        self.whitening.step(&mut self.past, sample, &mut self.r_w);
        let repeats = self.standing.step(&self.states, sample.y);
        if self.past.steps() <= self.settling {
            return Reading { distance: f32::NAN, symbol: None, alert: false, severity: 0 };
        }
        self.ranking.step(self.nominal.standardised(&self.r_w));
        let calibrated = self.nominal.squared(&self.r_w);
        let distance = self.new_normal.judge(&mut self.nominal, &self.r_w, calibrated);
        self.flat_line_accepted &= flat;
        let flat_line = self.settings.flat_line && flat && !self.flat_line_accepted;
        let alert = flat_line || unseen;
        let symbol = if alert {
            Some(self.settings.grading.highest())
        } else {
            self.cuts.symbol(counted(distance, repeats))
        };
        Reading { distance, symbol, alert, severity: self.cuts.severity(distance) }
    }

    /// What the last `steps` showed is normal from here on, beside what was calibrated.
    pub(crate) fn take_as_normal(&mut self, steps: usize) {
        self.new_normal.take(&mut self.nominal, steps);
        self.flat_line_accepted = self.flat;
    }

    /// What was taken as normal last is not.
    pub(crate) fn take_back_normal(&mut self) {
        self.new_normal.take_back();
        self.flat_line_accepted = false;
    }

    /// Nothing but the calibration is normal.
    pub(crate) fn forget_new_normal(&mut self) {
        self.new_normal.forget();
        self.flat_line_accepted = false;
    }

    /// What is taken as normal beside what was calibrated.
    pub(super) fn new_normal(&self) -> &NewNormal {
        &self.new_normal
    }

    pub(super) fn new_normal_mut(&mut self) -> &mut NewNormal {
        &mut self.new_normal
    }

    /// A new run begins. What was taken as normal stays so.
    pub(crate) fn reset(&mut self) {
        Whitening::forget(&mut self.past);
        self.standing.reset();
        self.flat = false;
        self.ranking = SensorRanking::new(self.r_w.len());
    }

    /// The whitened residual of the last step.
    pub(crate) fn whitened(&self) -> &[f32] {
        &self.r_w
    }

    /// Which sensors deviate most. It leaves the client only where the session allows it.
    pub(crate) fn ranking(&self) -> &SensorRanking {
        &self.ranking
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng;
    use crate::evidence::likelihood::Hypotheses;
    use crate::evidence::symbol::LevelCounts;
    use crate::site::whitening::Recording;
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

    fn grader() -> Grader {
        let nominal = |seed| recording(3000, seed, 0.0, usize::MAX);
        Grader::new(&GraderFit::new(&nominal(1), &nominal(2)), SiteSettings::default())
    }

    fn readings(grader: &mut Grader, recording: &Recording) -> Vec<Reading> {
        recording.iter().map(|(_, sample)| grader.step(sample, SensorAlert::default())).collect()
    }

    #[test]
    fn the_first_steps_of_a_run_are_mute_and_nominal_levels_follow_the_cuts() {
        let mut grader = grader();
        let readings = readings(&mut grader, &recording(4000, 3, 0.0, usize::MAX));
        assert!(readings[..40].iter().all(|r| r.symbol.is_none()));
        let symbols = readings.iter().filter_map(|r| r.symbol);
        let counts = LevelCounts::of(5, symbols);
        let elevated = counts.share_from(2).expect("symbols");
        assert!((0.03..0.07).contains(&elevated), "{elevated}");
    }

    #[test]
    fn a_shift_is_surprising_and_its_sensor_is_ranked_first() {
        let mut grader = grader();
        let readings = readings(&mut grader, &recording(600, 4, 6.0, 500));
        assert!(
            readings[500..505].iter().all(|r| r.symbol == Some(Grading::five_levels().highest()))
        );
        assert_eq!(grader.ranking().ranked()[0], 1);
    }

    #[test]
    fn a_flat_line_is_reported_at_the_highest_level_although_its_distance_is_small() {
        let mut grader = grader();
        let usual = recording(200, 5, 0.0, usize::MAX);
        readings(&mut grader, &usual);
        let held = [0.1f32, 0.3];
        let mut last = None;
        for t in 0..10 {
            let y_hat = [0.1 + 0.01 * t as f32, 0.3];
            let r = [held[0] - y_hat[0], 0.0];
            let sample = Sample { y: &held, y_hat: &y_hat, r: &r, x_hat: &[0.1], inputs: &[] };
            let alert = SensorAlert { flat: t >= 5, unseen: false };
            last = Some(grader.step(sample, alert));
        }
        let last = last.expect("ten steps");
        assert!(last.alert && last.symbol == Some(Grading::five_levels().highest()));
    }

    #[test]
    fn a_value_never_seen_is_reported_at_the_highest_level_whatever_the_model_says() {
        let mut grader = grader();
        let usual = recording(200, 5, 0.0, usize::MAX);
        readings(&mut grader, &usual);
        let alert = SensorAlert { flat: false, unseen: true };
        let reading = grader.step(usual.sample(120), alert);
        assert!(reading.alert && reading.symbol == Some(Grading::five_levels().highest()));
        assert!(!grader.step(usual.sample(121), SensorAlert::default()).alert);
    }

    #[test]
    fn half_of_the_sensors_are_enough_and_none_is_not() {
        let mut grader = grader();
        readings(&mut grader, &recording(100, 6, 0.0, usize::MAX));
        let y = [0.0, f32::NAN];
        let missing = |y| Sample { y, y_hat: &[0.0; 2], r: y, x_hat: &[0.0], inputs: &[] };
        let one = grader.step(missing(&y), SensorAlert::default());
        assert!(one.distance.is_finite() && one.symbol.is_some());
        let none = grader.step(missing(&[f32::NAN; 2]), SensorAlert::default());
        assert!(none.distance.is_nan() && none.symbol.is_none());
    }

    #[test]
    fn what_is_kept_grades_like_what_was_fitted() {
        let nominal = |seed| recording(3000, seed, 0.0, usize::MAX);
        let fit = GraderFit::new(&nominal(1), &nominal(2));
        let bytes = postcard::to_stdvec(&fit).expect("a fit can be written");
        let kept: GraderFit = postcard::from_bytes(&bytes).expect("and read");
        assert!(kept.is_whole());
        assert_eq!(fit.symbols(&Grading::five_levels()), kept.symbols(&Grading::five_levels()));
        let live = recording(500, 3, 2.0, 300);
        let graded = |fit| readings(&mut Grader::new(fit, SiteSettings::default()), &live);
        let bits = |readings: Vec<Reading>| -> Vec<u32> {
            readings.iter().map(|reading| reading.distance.to_bits()).collect()
        };
        assert_eq!(bits(graded(&fit)), bits(graded(&kept)));
    }

    #[test]
    fn the_calibration_of_a_calm_client_has_a_calm_tail() {
        let nominal = |seed| recording(3000, seed, 0.0, usize::MAX);
        let fit = GraderFit::new(&nominal(1), &nominal(2));
        let grading = Grading::five_levels();
        let symbols = fit.symbols(&grading);
        let tail = crate::site::enrolment::plain_tail(&symbols, &grading, &Hypotheses::default());
        assert!(tail.omega > 0.6, "{tail:?}");
        assert_eq!(tail.steps, 3000 - 40);
    }
}
