//! A filter that a disturbance has driven away finds back by a fresh start beside it.
//!
//! The residual form carries the memory of an LSTM, and nothing makes that memory fade. Behind a
//! disturbance it may stay elsewhere for hours: measurements are ordinary again, predictions are a
//! little worse than before, and false alarms come in clusters. So once a client was disturbed and is
//! calm again, a filter with an empty memory follows the same rows. When it has settled it takes over.
//! Every step is judged meanwhile.
//!
//! Models without such a memory need none of this. When the memory is renewed follows from the symbols that
//! were released, so with noise on symbols it depends on a sample no longer than the ledger counts.

use super::grader::SETTLING;
use crate::nn::proprietary::{Proprietary as _, VendorModel};

/// Steps that are looked back on.
const WINDOW: u32 = 10;
/// So many of them at the highest level are a disturbance.
const DISTURBED: u32 = 3;

/// Where a client stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Calm,
    Disturbed,
    /// A fresh filter has followed so many steps.
    Settling(usize),
}

/// When a fresh filter begins and when it takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Course {
    phase: Phase,
    /// The last steps, one bit each: at the highest level or not.
    highest: u32,
}

impl Course {
    /// One step; says whether the fresh filter takes over after it.
    fn step(&mut self, is_highest: bool) -> bool {
        self.highest = ((self.highest << 1) | u32::from(is_highest)) & ((1 << WINDOW) - 1);
        let count = self.highest.count_ones();
        let (phase, takes_over) = match self.phase {
            _ if count >= DISTURBED => (Phase::Disturbed, false),
            Phase::Disturbed if count == 0 => (Phase::Settling(0), false),
            Phase::Settling(steps) if steps + 1 >= SETTLING => (Phase::Calm, true),
            Phase::Settling(steps) => (Phase::Settling(steps + 1), false),
            phase @ (Phase::Calm | Phase::Disturbed) => (phase, false),
        };
        self.phase = phase;
        takes_over
    }
}

/// The fresh filter of a client.
#[derive(Debug)]
pub(super) struct Renewal {
    fresh: VendorModel,
    course: Course,
}

impl Renewal {
    /// With a copy of the model that watches.
    pub(super) fn new(fresh: VendorModel) -> Self {
        Self { fresh, course: Course::default() }
    }

    /// The fresh filter takes a step, where it is needed.
    pub(super) fn see(&mut self, y: &[f32]) {
        if let Phase::Settling(_) = self.course.phase {
            self.fresh.step(y, None);
        }
    }

    /// Takes what was sent of a step that both have seen: its symbol was the highest or not.
    pub(super) fn decide(&mut self, model: &mut VendorModel, is_highest: bool) {
        if self.course.step(is_highest) {
            std::mem::swap(model, &mut self.fresh);
        }
        if self.course.phase == Phase::Settling(0) {
            self.fresh.reset();
        }
    }

    /// A new run begins.
    pub(super) fn reset(&mut self) {
        self.course = Course::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps after which a fresh filter takes over.
    fn taken_over(levels: impl IntoIterator<Item = bool>) -> Vec<usize> {
        let mut course = Course::default();
        let steps = levels.into_iter().enumerate();
        steps.filter(|(_, is_highest)| course.step(*is_highest)).map(|(t, _)| t).collect()
    }

    #[test]
    fn a_fresh_filter_takes_over_once_it_has_settled_behind_a_disturbance() {
        let levels = (0..200).map(|t| (20..50).contains(&t));
        assert_eq!(taken_over(levels), [49 + WINDOW as usize + SETTLING]);
    }

    #[test]
    fn single_surprises_renew_nothing() {
        assert!(taken_over((0..400).map(|t| t % 7 == 0)).is_empty());
    }

    #[test]
    fn a_second_disturbance_makes_the_fresh_filter_begin_again() {
        let levels = (0..200).map(|t| (20..30).contains(&t) || (60..70).contains(&t));
        assert_eq!(taken_over(levels), [69 + WINDOW as usize + SETTLING]);
    }
}
