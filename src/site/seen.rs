//! Values never seen in normal operation, of sensors that no model looks at.
//!
//! A switch that never moves, or hardly ever, gives a model nothing to learn from. What it shows is
//! watched by itself: V holds every value of fit and calibration, and a value outside V that stands
//! for [`HELD`] steps makes the client's symbol the highest one, as a flat line does. Nothing new
//! leaves the client.
//!
//! What this costs in false alarms is counted by leaving out one run at a time: a sensor of which a
//! run shows a value that no other run has is not watched.

use serde::{Deserialize, Serialize};

/// Steps for which a value must stand. Block means over a flank give a value in between for a step.
pub(crate) const HELD: u32 = 3;
/// A sensor with more distinct values than this is a measurement and no switch.
pub(super) const MOST_VALUES: usize = 8;
/// With fewer runs than this, equal blocks are left out instead of runs.
pub(super) const FEWEST_RUNS: usize = 10;
/// Number of those blocks.
pub(super) const BLOCKS: usize = 20;
/// No event in n trials bounds its rate by 3/n, at 95 %.
const RULE_OF_THREE: f64 = 3.0;

/// One sensor and the values that it showed in normal operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SeenValues {
    /// Its place in the client's row.
    pub(crate) place: usize,
    /// Its name.
    pub(crate) name: String,
    /// V.
    pub(crate) values: Vec<f64>,
}

/// What is known about the values of a client's sensors that its model does not see.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct SeenFit {
    /// Sensors whose values are watched.
    pub(crate) watched: Vec<SeenValues>,
    /// Sensors that are not, since so many runs show a value that no other run has.
    pub(crate) unsteady: Vec<(String, usize)>,
    /// Runs that were left out in turn, or blocks.
    pub(crate) folds: usize,
    /// Nominal steps in all.
    pub(crate) steps: usize,
}

/// Whether two values are the same but for rounding in a block mean.
fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs())
}

fn knows(values: &[f64], value: f64) -> bool {
    values.iter().any(|known| same(*known, value))
}

/// Nominal rows with the fold that each belongs to, and its step within its run.
struct Folds<'a> {
    rows: Vec<(usize, usize, &'a [f64])>,
    folds: usize,
}

impl<'a> Folds<'a> {
    /// `None` stands between two runs.
    fn new(ranges: &[&'a [Option<Vec<f64>>]]) -> Self {
        let mut rows = Vec::new();
        let (mut run, mut step) = (0, 0);
        for range in ranges {
            for row in *range {
                if let Some(row) = row {
                    rows.push((run, step, &row[..]));
                    step += 1;
                } else {
                    (run, step) = (run + 1, 0);
                }
            }
            (run, step) = (run + 1, 0);
        }
        if run >= FEWEST_RUNS {
            return Self { rows, folds: run };
        }
        let all = rows.len().max(1);
        rows.iter_mut().enumerate().for_each(|(t, row)| row.0 = t * BLOCKS / all);
        Self { rows, folds: BLOCKS }
    }

    /// All values of a sensor, each with the one fold that shows it, where it is one; none where
    /// there are too many values.
    fn values(&self, place: usize) -> Option<Vec<(f64, Option<usize>)>> {
        let mut values: Vec<(f64, Option<usize>)> = Vec::new();
        for (fold, _, row) in &self.rows {
            let value = row[place];
            if !value.is_finite() {
                continue;
            }
            let known = values.iter().position(|(known, _)| same(*known, value));
            match known {
                Some(k) if values[k].1 != Some(*fold) => values[k].1 = None,
                Some(_) => {}
                None if values.len() == MOST_VALUES => return None,
                None => values.push((value, Some(*fold))),
            }
        }
        Some(values)
    }

    /// Folds in which a value stands for [`HELD`] steps that no other fold has. The first `settling`
    /// steps of a run say nothing.
    fn alone(&self, place: usize, values: &[(f64, Option<usize>)], settling: usize) -> usize {
        let mut found = vec![false; self.folds];
        let mut held = 0;
        for (fold, step, row) in &self.rows {
            let is_alone = |(value, only): &(f64, Option<usize>)| {
                *only == Some(*fold) && same(*value, row[place])
            };
            let before = if *step == 0 { 0 } else { held };
            held = if values.iter().any(is_alone) { before + 1 } else { 0 };
            found[*fold] |= held >= HELD && *step >= settling;
        }
        found.into_iter().filter(|found| *found).count()
    }
}

impl SeenFit {
    /// Learns the values of sensors at `places` (with their names) from nominal rows, range by range;
    /// no row stands between two runs.
    pub(super) fn new(
        places: &[(usize, &str)],
        ranges: &[&[Option<Vec<f64>>]],
        settling: usize,
    ) -> Self {
        let folds = Folds::new(ranges);
        let mut fit = Self { folds: folds.folds, steps: folds.rows.len(), ..Self::default() };
        for (place, name) in places {
            let Some(values) = folds.values(*place).filter(|values| !values.is_empty()) else {
                continue;
            };
            let name = (*name).to_owned();
            match folds.alone(*place, &values, settling) {
                0 => {
                    let values = values.into_iter().map(|(value, _)| value).collect();
                    fit.watched.push(SeenValues { place: *place, name, values });
                }
                runs => fit.unsteady.push((name, runs)),
            }
        }
        fit
    }

    /// Steps in which at most one false alarm is to be expected, at 95 %; none where nothing is
    /// watched. No fold had one: its rate is at most 3 in as many steps as there are.
    pub(crate) fn steps_per_false_alarm(&self) -> Option<f64> {
        (!self.watched.is_empty()).then(|| self.steps as f64 / RULE_OF_THREE)
    }

    /// Whether a sensor's values are watched.
    pub(crate) fn watches(&self, sensor: &str) -> bool {
        self.watched.iter().any(|watched| watched.name == sensor)
    }
}

/// Watches the values of one client's sensors.
#[derive(Debug, Clone)]
pub(crate) struct ValueWatch {
    sensors: Vec<SeenValues>,
    /// Values that were taken as normal later: the sensor and the value.
    accepted: Vec<(usize, f64)>,
    /// How many of them there were before the last ones.
    before: usize,
    /// What each sensor shows that it never showed; NaN where it does not.
    strange: Vec<f64>,
    held: u32,
}

impl ValueWatch {
    /// A watch over these sensors.
    pub(crate) fn new(fit: &SeenFit) -> Self {
        Self {
            strange: vec![f64::NAN; fit.watched.len()],
            sensors: fit.watched.clone(),
            accepted: Vec::new(),
            before: 0,
            held: 0,
        }
    }

    /// One step of the client's row; missing is NaN and nothing new.
    pub(crate) fn step(&mut self, row: &[f64]) {
        for (i, (sensor, strange)) in self.sensors.iter().zip(&mut self.strange).enumerate() {
            let value = row.get(sensor.place).copied().unwrap_or(f64::NAN);
            let accepted = |(of, known): &(usize, f64)| *of == i && same(*known, value);
            let is_known = !value.is_finite()
                || knows(&sensor.values, value)
                || self.accepted.iter().any(accepted);
            *strange = if is_known { f64::NAN } else { value };
        }
        let any = self.strange.iter().any(|value| !value.is_nan());
        self.held = if any { self.held.saturating_add(1) } else { 0 };
    }

    /// A step without data, or a new run.
    pub(crate) fn reset(&mut self) {
        self.strange.fill(f64::NAN);
        self.held = 0;
    }

    /// Whether a value never seen has stood for long enough.
    pub(crate) fn is_raised(&self) -> bool {
        self.held >= HELD
    }

    /// Sensors that show a value never seen, while that counts: places and names.
    pub(crate) fn raised(&self) -> impl Iterator<Item = (usize, &str)> {
        let shown = self.sensors.iter().zip(&self.strange).filter(|(_, value)| !value.is_nan());
        shown.filter(|_| self.is_raised()).map(|(sensor, _)| (sensor.place, &sensor.name[..]))
    }

    /// What sensors show now is normal from here on.
    pub(crate) fn take_as_normal(&mut self) {
        self.before = self.accepted.len();
        let shown = self.strange.iter().enumerate().filter(|(_, value)| !value.is_nan());
        self.accepted.extend(shown.map(|(i, value)| (i, *value)));
        self.reset();
    }

    /// What was taken as normal last is not.
    pub(crate) fn take_back(&mut self) {
        self.accepted.truncate(self.before);
    }

    /// Values that were taken as normal, with the names of their sensors.
    pub(super) fn accepted(&self) -> impl Iterator<Item = (&str, f64)> {
        let named =
            |(sensor, value): &(usize, f64)| Some((&self.sensors.get(*sensor)?.name[..], *value));
        self.accepted.iter().filter_map(named)
    }

    /// A value of a sensor is normal, as in the run before.
    pub(super) fn accept(&mut self, sensor: &str, value: f64) {
        if let Some(place) = self.sensors.iter().position(|known| known.name == sensor) {
            self.accepted.push((place, value));
            self.before = self.accepted.len();
        }
    }

    /// Only the values of fit and calibration are normal.
    pub(crate) fn forget(&mut self) {
        self.accepted.clear();
        self.before = 0;
        self.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Runs of one sensor.
    fn runs(values: &[&[f64]]) -> Vec<Option<Vec<f64>>> {
        let mut rows = Vec::new();
        for run in values {
            rows.extend(run.iter().map(|value| Some(vec![*value])));
            rows.push(None);
        }
        rows.pop();
        rows
    }

    fn fit(rows: &[Option<Vec<f64>>]) -> SeenFit {
        SeenFit::new(&[(0, "valve")], &[rows], 0)
    }

    #[test]
    fn a_value_never_seen_counts_once_it_has_stood_for_three_steps() {
        let normal = fit(&runs(&[&[1.0; 30]]));
        let mut watch = ValueWatch::new(&normal);
        let raised: Vec<bool> = [1.0, 0.0, 0.0, f64::NAN, 0.0, 0.0, 0.0, 0.0, 1.0]
            .iter()
            .map(|value| {
                watch.step(&[*value]);
                watch.is_raised()
            })
            .collect();
        let expected = [false, false, false, false, false, false, true, true, false];
        assert_eq!(raised, expected, "a missing value ends what stood before it");
    }

    #[test]
    fn a_value_in_between_for_one_step_is_a_flank_and_no_alarm() {
        let normal = fit(&runs(&[&[0.0, 0.0, 1.0, 1.0, 0.0]]));
        let mut watch = ValueWatch::new(&normal);
        for value in [0.0, 0.4, 1.0, 0.6, 0.2, 0.0] {
            watch.step(&[value]);
            assert!(!watch.is_raised());
        }
    }

    #[test]
    fn a_sensor_is_not_watched_when_one_run_shows_a_value_that_no_other_has() {
        let mut values: Vec<&[f64]> = vec![&[0.0; 20][..]; 12];
        assert_eq!(fit(&runs(&values)).watched.len(), 1);
        let odd = [0.0, 0.0, 2.0, 2.0, 2.0, 0.0];
        values.push(&odd);
        let found = fit(&runs(&values));
        assert!(found.watched.is_empty() && found.steps_per_false_alarm().is_none());
        assert_eq!(found.unsteady, [("valve".to_owned(), 1)]);
        // A second run with the same value makes it an ordinary one.
        values.push(&odd);
        let both = fit(&runs(&values));
        assert_eq!((both.watched.len(), both.folds), (1, 14));
    }

    #[test]
    fn a_measurement_with_many_values_is_not_watched_by_its_values() {
        let many: Vec<f64> = (0..40).map(|t| f64::from(t % 9)).collect();
        let found = fit(&runs(&[&many]));
        assert!(found.watched.is_empty() && found.unsteady.is_empty());
    }

    #[test]
    fn what_is_taken_as_normal_raises_nothing_until_that_is_taken_back() {
        let mut watch = ValueWatch::new(&fit(&runs(&[&[1.0; 30]])));
        (0..4).for_each(|_| watch.step(&[0.0]));
        assert_eq!(watch.raised().collect::<Vec<_>>(), [(0, "valve")]);
        watch.take_as_normal();
        (0..4).for_each(|_| watch.step(&[0.0]));
        assert!(!watch.is_raised());
        (0..4).for_each(|_| watch.step(&[2.0]));
        assert!(watch.is_raised(), "another value is as strange as ever");
        watch.take_back();
        (0..4).for_each(|_| watch.step(&[0.0]));
        assert!(watch.is_raised());
    }

    proptest! {
        #[test]
        fn nothing_that_normal_operation_showed_is_strange(
            values in prop::collection::vec(0u8..6, 20..200),
        ) {
            let values: Vec<f64> = values.into_iter().map(|v| f64::from(v) / 3.0).collect();
            let found = fit(&runs(&[&values]));
            let mut watch = ValueWatch::new(&found);
            for value in &values {
                watch.step(&[*value]);
                prop_assert!(!watch.is_raised());
            }
        }

        #[test]
        fn a_fold_is_found_alone_exactly_when_it_holds_its_own_value_long_enough(
            at in 0usize..15, length in 1usize..6,
        ) {
            let usual = [0.0; 12];
            let mut odd = usual;
            odd[4..4 + length].fill(7.0);
            let mut values: Vec<&[f64]> = vec![&usual[..]; 15];
            values[at] = &odd;
            let found = fit(&runs(&values));
            prop_assert_eq!(found.unsteady.len(), usize::from(length >= 3));
        }
    }
}
