//! A second normal beside the calibrated one: what a client shows after a change that stays, or that
//! an operator accepts.
//!
//! A step is as surprising as the better of the two normals finds it, so going back to the calibrated
//! one is no surprise either. The new normal has a mean of its own and a scale s², so that whoever
//! became noisier for good can still be seen to fail; correlations between sensors stay as calibrated,
//! since a few minutes cannot tell them.
//!
//! ```text
//! at once       d²/s², s² from the largest distance since the onset: what was seen is ordinary
//! a window on   d²(r_w − shift)/s² from the last steps, and a margin
//! ```

use serde::{Deserialize, Serialize};

use super::grader::Nominal;
use crate::evidence::threshold::NominalDistances;

/// Steps that a new normal is learned from.
const WINDOW: usize = 120;

/// Share of nominal distances by which two scales are compared: high enough to see noise grow, low
/// enough to be known from a window.
const USUAL: f64 = 0.9;

/// A window knows its scale to about a fifth; the new normal errs on the quiet side.
const MARGIN: f32 = 1.25;

/// How the steps after a change are judged.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) enum Judged {
    /// By the calibration alone.
    #[default]
    AsCalibrated,
    /// By what was seen until the change was taken as normal; so many steps are still to be learned
    /// from.
    Provisionally { squared: f32, left: usize },
    /// By a mean and a scale of its own.
    Anew { shift: Vec<f32>, squared: f32 },
}

/// The last steps of a client, and what it takes as normal beside its calibration.
#[derive(Debug, Clone)]
pub(super) struct NewNormal {
    usual: f32,
    judged: Judged,
    /// Before the last change was taken as normal.
    before: Judged,
    /// A ring of whitened residuals.
    rows: Vec<f32>,
    kept: usize,
    next: usize,
    // For a moment.
    shifted: Vec<f32>,
    distances: Vec<f32>,
}

impl NewNormal {
    /// Nothing but the calibration is normal.
    pub(crate) fn new(sensors: usize, calibrated: &NominalDistances) -> Self {
        Self {
            usual: calibrated.quantile(USUAL),
            judged: Judged::AsCalibrated,
            before: Judged::AsCalibrated,
            rows: vec![f32::NAN; WINDOW * sensors],
            kept: 0,
            next: 0,
            shifted: vec![f32::NAN; sensors],
            distances: Vec::with_capacity(WINDOW),
        }
    }

    /// How surprising a whitened residual is whose distance from the calibrated normal is
    /// `calibrated`. Allocates nothing once a new normal is learned.
    pub(crate) fn judge(&mut self, nominal: &mut Nominal, r_w: &[f32], calibrated: f32) -> f32 {
        self.remember(r_w);
        let learned = match &mut self.judged {
            Judged::Provisionally { left, .. } => {
                *left = left.saturating_sub(1);
                *left == 0
            }
            _ => false,
        };
        if learned {
            self.judged = self.learn(nominal);
        }
        let anew = match &self.judged {
            Judged::AsCalibrated => return calibrated,
            Judged::Provisionally { squared, .. } => calibrated / squared,
            Judged::Anew { shift, squared } => {
                subtract(r_w, shift, &mut self.shifted);
                nominal.squared(&self.shifted) / squared
            }
        };
        calibrated.min(anew)
    }

    /// What the last `steps` showed is normal from here on.
    pub(crate) fn take(&mut self, nominal: &mut Nominal, steps: usize) {
        self.before = std::mem::take(&mut self.judged);
        self.judged = if steps >= WINDOW && self.kept == WINDOW {
            self.learn(nominal)
        } else {
            let largest = self.distances(nominal, steps.max(1), None).fold(0.0, f32::max);
            let squared = (largest / self.usual).max(1.0);
            Judged::Provisionally { squared, left: WINDOW }
        };
    }

    /// Takes the last one back.
    pub(crate) fn take_back(&mut self) {
        self.judged = std::mem::take(&mut self.before);
    }

    /// Nothing but the calibration is normal again.
    pub(crate) fn forget(&mut self) {
        (self.judged, self.before) = (Judged::AsCalibrated, Judged::AsCalibrated);
        (self.kept, self.next) = (0, 0);
    }

    /// How steps are judged now.
    pub(super) fn judged(&self) -> &Judged {
        &self.judged
    }

    /// Steps are judged like this from here on, as in the run before; refused where that was made for
    /// other sensors.
    pub(super) fn judge_by(&mut self, judged: Judged) -> bool {
        let fits = match &judged {
            Judged::AsCalibrated => true,
            Judged::Provisionally { squared, .. } => (1.0..f32::MAX).contains(squared),
            Judged::Anew { shift, squared } => {
                shift.len() == self.shifted.len()
                    && (1.0..f32::MAX).contains(squared)
                    && shift.iter().all(|shift| shift.is_finite())
            }
        };
        if fits {
            (self.judged, self.before) = (judged, Judged::AsCalibrated);
        }
        fits
    }

    fn remember(&mut self, r_w: &[f32]) {
        let sensors = self.shifted.len();
        self.rows[self.next * sensors..(self.next + 1) * sensors].copy_from_slice(r_w);
        self.next = (self.next + 1) % WINDOW;
        self.kept = (self.kept + 1).min(WINDOW);
    }

    /// The mean and the scale of the last steps.
    fn learn(&mut self, nominal: &mut Nominal) -> Judged {
        let calibrated = nominal.mean().iter().enumerate();
        let shift: Vec<f32> = calibrated.map(|(i, mean)| self.shift_of(i, *mean)).collect();
        let distances = NominalDistances::new(self.distances(nominal, WINDOW, Some(&shift)));
        let squared = (MARGIN * distances.quantile(USUAL) / self.usual).max(1.0);
        if squared.is_finite() { Judged::Anew { shift, squared } } else { Judged::AsCalibrated }
    }

    /// How far a sensor stands from its calibrated mean; nowhere else where it showed nothing.
    fn shift_of(&self, sensor: usize, calibrated: f64) -> f32 {
        let sensors = self.shifted.len();
        let values = (0..self.kept).map(|row| self.rows[row * sensors + sensor]);
        let (n, sum) = values
            .filter(|v| v.is_finite())
            .fold((0u32, 0.0f64), |(n, sum), v| (n + 1, sum + f64::from(v)));
        if n == 0 { 0.0 } else { (sum / f64::from(n) - calibrated) as f32 }
    }

    /// Distances of the last steps, those that there are.
    fn distances(
        &mut self,
        nominal: &mut Nominal,
        steps: usize,
        shift: Option<&[f32]>,
    ) -> impl Iterator<Item = f32> + '_ {
        let sensors = self.shifted.len();
        self.distances.clear();
        for back in 1..=steps.min(self.kept) {
            let at = (self.next + WINDOW - back) % WINDOW * sensors;
            let row = &self.rows[at..at + sensors];
            match shift {
                Some(shift) => subtract(row, shift, &mut self.shifted),
                None => self.shifted.copy_from_slice(row),
            }
            self.distances.push(nominal.squared(&self.shifted));
        }
        self.distances.iter().copied().filter(|d| d.is_finite())
    }
}

fn subtract(row: &[f32], shift: &[f32], out: &mut [f32]) {
    for ((out, r), s) in out.iter_mut().zip(row).zip(shift) {
        *out = r - s;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng;
    use rand_distr::{Distribution as _, StandardNormal};

    struct Client {
        nominal: Nominal,
        normal: NewNormal,
        rng: rng::Rng,
        high: f32,
    }

    impl Client {
        fn new() -> Self {
            let mut rng = rng::stream(5, 0);
            let rows: Vec<f32> = (0..6000).map(|_| StandardNormal.sample(&mut rng)).collect();
            let mut nominal = Nominal::fit(2, &rows);
            let distances = rows.chunks_exact(2).map(|row| nominal.squared(row));
            let distances = NominalDistances::new(distances.collect::<Vec<_>>());
            let normal = NewNormal::new(2, &distances);
            Self { nominal, normal, rng, high: distances.quantile(0.99) }
        }

        /// The share of steps beyond what one nominal step in a hundred reaches.
        fn surprised(&mut self, steps: usize, noise: f32, shift: f32) -> f64 {
            let beyond = (0..steps).filter(|_| {
                let mut draw = || -> f32 { StandardNormal.sample(&mut self.rng) };
                let r_w = [noise * draw() + shift, noise * draw()];
                let calibrated = self.nominal.squared(&r_w);
                self.normal.judge(&mut self.nominal, &r_w, calibrated) > self.high
            });
            beyond.count() as f64 / steps as f64
        }
    }

    #[test]
    fn a_change_taken_as_normal_surprises_no_more_and_neither_does_going_back() {
        for (noise, shift) in [(1.0, 8.0), (3.0, 0.0), (2.0, -5.0)] {
            let mut client = Client::new();
            client.surprised(100, 1.0, 0.0);
            assert!(client.surprised(WINDOW, noise, shift) > 0.2);
            client.normal.take(&mut client.nominal, WINDOW);
            let after = client.surprised(2000, noise, shift);
            assert!(after < 0.05, "noise {noise}, shift {shift}: {after}");
            assert!(client.surprised(500, 1.0, 0.0) < 0.03, "going back");
            // Whoever lives with a change can still fail.
            assert!(client.surprised(20, noise, shift + 12.0 * noise) > 0.9);
        }
    }

    #[test]
    fn what_is_accepted_after_three_steps_is_learned_from_what_follows() {
        let mut client = Client::new();
        client.surprised(100, 1.0, 0.0);
        assert!(client.surprised(3, 1.5, 9.0) > 0.9);
        client.normal.take(&mut client.nominal, 3);
        assert!(client.surprised(WINDOW, 1.5, 9.0) < 0.1, "at once");
        assert!(matches!(client.normal.judged, Judged::Anew { .. }));
        assert!(client.surprised(1000, 1.5, 9.0) < 0.05, "later");
        assert!(client.surprised(20, 1.5, 30.0) > 0.9, "more of it");
    }

    #[test]
    fn what_was_accepted_can_be_taken_back() {
        let mut client = Client::new();
        client.surprised(WINDOW, 1.0, 9.0);
        client.normal.take(&mut client.nominal, WINDOW);
        assert!(client.surprised(100, 1.0, 9.0) < 0.05);
        client.normal.take_back();
        assert!(client.surprised(100, 1.0, 9.0) > 0.9);
    }

    #[test]
    fn what_was_accepted_is_normal_again_after_a_restart() {
        let mut client = Client::new();
        client.surprised(WINDOW, 1.0, 9.0);
        client.normal.take(&mut client.nominal, WINDOW);
        let stored = serde_json::to_string(client.normal.judged()).expect("it can be written");
        let mut next = Client::new();
        assert!(next.surprised(20, 1.0, 9.0) > 0.9);
        assert!(next.normal.judge_by(serde_json::from_str(&stored).expect("it can be read")));
        assert!(next.surprised(500, 1.0, 9.0) < 0.05);
        // What was made for other sensors, or makes no sense, is refused.
        let other = |shift: Vec<f32>, squared| Judged::Anew { shift, squared };
        assert!(!next.normal.judge_by(other(vec![9.0; 3], 1.0)));
        assert!(!next.normal.judge_by(other(vec![9.0, 0.0], 0.0)));
        assert!(!next.normal.judge_by(other(vec![f32::NAN, 0.0], 1.0)));
        assert!(next.surprised(500, 1.0, 9.0) < 0.05, "and changes nothing");
    }

    #[test]
    fn silence_teaches_nothing() {
        let mut client = Client::new();
        for _ in 0..100 {
            let missing = [f32::NAN; 2];
            let calibrated = client.nominal.squared(&missing);
            assert!(client.normal.judge(&mut client.nominal, &missing, calibrated).is_nan());
        }
        client.normal.take(&mut client.nominal, 100);
        assert!(client.surprised(20, 1.0, 9.0) > 0.9);
    }
}
