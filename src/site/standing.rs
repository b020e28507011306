//! States of switches that stand still in normal operation.
//!
//! A client whose sensors are all switches repeats its row for minutes, and its model is as surprised
//! by the hundredth repetition as by the first. Repetitions are no new evidence: how long a machine
//! rests in a state is a habit of its operators. So a state that stood in normal operation, two rows
//! in succession or longer, says nothing more by standing. Every change counts, and so does a state
//! that normal operation passes through within a row, or never shows.
//!
//! A client with one sensor that measures changes its row with every step; nothing here is about it.

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use super::fit::is_measured;
use super::seen::MOST_VALUES;

/// Rows in succession that make a state stand: what one row shows may be a passage.
const STANDS: u32 = 2;

/// The states of one client's switches that stood in normal operation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct StandingStates {
    /// The values of all switches as bits, sorted; empty for a client that measures.
    states: Vec<Vec<u32>>,
}

fn bits(row: &[f32]) -> impl Iterator<Item = u32> + '_ {
    row.iter().map(|value| value.to_bits())
}

impl StandingStates {
    /// Learns from the rows of fit and calibration; a row without any value stands between two runs.
    /// The first `settling` steps of a run say nothing.
    pub(super) fn learn(ranges: &[ArrayView2<'_, f32>], settling: usize) -> Self {
        let mut states: Vec<Vec<u32>> = Vec::new();
        if !are_switches(ranges) {
            return Self { states };
        }
        for range in ranges {
            let (mut standing, mut step) = (StandingWatch::default(), 0);
            for row in range.outer_iter() {
                if !is_measured(row.iter()) {
                    (standing, step) = (StandingWatch::default(), 0);
                    continue;
                }
                let held = standing.held(row.iter().copied());
                if held >= STANDS && step >= settling {
                    let state: Vec<u32> = row.iter().map(|value| value.to_bits()).collect();
                    if let Err(place) = states.binary_search(&state) {
                        states.insert(place, state);
                    }
                }
                step += 1;
            }
        }
        Self { states }
    }

    /// For every measured row of a range whether it only repeats a state that is known to stand.
    pub(super) fn repeats(&self, rows: &ArrayView2<'_, f32>) -> Vec<bool> {
        if self.states.is_empty() {
            return Vec::new();
        }
        let mut watch = StandingWatch::default();
        let mut out = Vec::new();
        let mut y = Vec::new();
        for row in rows.outer_iter() {
            if is_measured(row.iter()) {
                y.clear();
                y.extend(row.iter().copied());
                out.push(watch.step(self, &y));
            } else {
                watch = StandingWatch::default();
            }
        }
        out
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.states.len()
    }

    fn knows(&self, row: &[f32]) -> bool {
        self.states.binary_search_by(|state| state.iter().copied().cmp(bits(row))).is_ok()
    }
}

/// Whether every sensor has a few values only.
fn are_switches(ranges: &[ArrayView2<'_, f32>]) -> bool {
    let sensors = ranges.first().map_or(0, ArrayView2::ncols);
    sensors > 0
        && (0..sensors).all(|sensor| {
            let mut values: Vec<u32> = Vec::new();
            ranges.iter().flat_map(|range| range.column(sensor)).all(|value| {
                let value = value.to_bits();
                if f32::from_bits(value).is_finite() && !values.contains(&value) {
                    values.push(value);
                }
                values.len() <= MOST_VALUES
            })
        })
}

/// Follows the rows of one client.
#[derive(Debug, Clone, Default)]
pub(super) struct StandingWatch {
    last: Vec<f32>,
    held: u32,
    is_known: bool,
}

impl StandingWatch {
    /// Steps for which the row has stood, with this one; zero for a row that lacks a value.
    fn held(&mut self, row: impl ExactSizeIterator<Item = f32>) -> u32 {
        self.last.resize(row.len(), f32::NAN);
        let (mut is_same, mut is_whole) = (true, true);
        for (last, value) in self.last.iter_mut().zip(row) {
            is_same &= last.to_bits() == value.to_bits();
            is_whole &= value.is_finite();
            *last = value;
        }
        self.held = match (is_whole, is_same) {
            (false, _) => 0,
            (true, true) => self.held.saturating_add(1),
            (true, false) => 1,
        };
        self.held
    }

    /// One step: whether the row only repeats a state that is known to stand.
    pub(super) fn step(&mut self, known: &StandingStates, row: &[f32]) -> bool {
        if known.states.is_empty() {
            return false;
        }
        let held = self.held(row.iter().copied());
        if held == STANDS {
            self.is_known = known.knows(row);
        }
        held >= STANDS && self.is_known
    }

    /// A new run begins.
    pub(super) fn reset(&mut self) {
        self.held = 0;
        self.last.fill(f32::NAN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    /// Rows of two switches; `None` stands between two runs.
    fn rows(states: &[Option<[f32; 2]>]) -> Array2<f32> {
        let flat = states.iter().flat_map(|row| row.unwrap_or([f32::NAN; 2])).collect();
        Array2::from_shape_vec((states.len(), 2), flat).expect("two columns")
    }

    const OFF: Option<[f32; 2]> = Some([0.0, 0.0]);
    const ON: Option<[f32; 2]> = Some([1.0, 0.0]);
    const WRONG: Option<[f32; 2]> = Some([1.0, 1.0]);

    #[test]
    fn a_state_that_stood_in_normal_operation_says_nothing_by_standing() {
        let normal = rows(&[OFF, OFF, OFF, ON, ON, OFF, WRONG, OFF, OFF]);
        let known = StandingStates::learn(&[normal.view()], 0);
        assert_eq!(known.len(), 2);
        let live = rows(&[ON, ON, ON, WRONG, WRONG, WRONG, OFF, OFF]);
        let expected = [false, true, true, false, false, false, false, true];
        assert_eq!(known.repeats(&live.view()), expected, "changes and what only passes count");
    }

    #[test]
    fn neither_the_settling_steps_of_a_run_nor_two_runs_together_make_a_state_stand() {
        let normal = rows(&[ON, ON, ON, OFF, ON, None, ON, OFF, OFF, OFF, OFF]);
        let known = StandingStates::learn(&[normal.view()], 4);
        assert_eq!(known.len(), 1, "off, at the end of the second run");
        let live = rows(&[OFF, None, OFF, OFF]);
        assert_eq!(known.repeats(&live.view()), [false, false, true]);
    }

    #[test]
    fn a_missing_value_ends_what_stood() {
        let known = StandingStates::learn(&[rows(&[OFF, OFF, OFF, ON, OFF]).view()], 0);
        let live = rows(&[OFF, Some([0.0, f32::NAN]), OFF, OFF]);
        let expected = [false, false, false, true];
        assert_eq!(known.repeats(&live.view()), expected);
    }

    #[test]
    fn one_sensor_that_measures_is_enough_for_rows_to_be_evidence_each() {
        let still = [0.5, 0.5, 0.5, 0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9];
        let normal = rows(&still.map(|value| Some([1.0, value])));
        let known = StandingStates::learn(&[normal.view()], 0);
        assert_eq!(known.len(), 0);
        assert!(known.repeats(&normal.view()).is_empty());
    }
}
