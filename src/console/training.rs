//! What is told while a session's models are being made.

/// A word from the engine on the way to the first measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Training {
    /// What is being done.
    pub doing: String,
    /// Steps done and steps in all, where they are counted.
    pub steps: Option<(usize, usize)>,
    /// The loss of whoever learns, under its name.
    pub losses: Vec<(String, f64)>,
}

/// Losses kept for the curve.
const KEPT: usize = 4096;

/// The course of training so far.
#[derive(Debug, Default)]
pub struct Course {
    /// The newest word.
    pub latest: Option<Training>,
    /// The first loss of every word about the present work, oldest first.
    pub curve: Vec<f64>,
}

impl Course {
    /// Takes a word in. Other work begins a curve of its own.
    pub fn take(&mut self, training: Training) {
        let leader = |t: &Training| t.losses.first().map(|(name, _)| name.clone());
        if self.latest.as_ref().is_none_or(|latest| leader(latest) != leader(&training)) {
            self.curve.clear();
        }
        if let Some((_, loss)) = training.losses.first().filter(|(_, loss)| loss.is_finite()) {
            if self.curve.len() == KEPT {
                self.curve = self.curve.iter().copied().step_by(2).collect();
            }
            self.curve.push(*loss);
        }
        self.latest = Some(training);
    }

    /// The curve in `columns` levels from 0 to 7, by the logarithm of the loss: losses fall over
    /// decades.
    #[must_use]
    pub fn levels(&self, columns: usize) -> Vec<usize> {
        let columns = columns.min(self.curve.len());
        let logarithm = |loss: &f64| loss.max(1e-12).ln();
        let (low, high) = self
            .curve
            .iter()
            .map(logarithm)
            .fold((f64::MAX, f64::MIN), |(low, high), l| (low.min(l), high.max(l)));
        let span = (high - low).max(1e-9);
        (0..columns)
            .map(|c| {
                let from = c * self.curve.len() / columns;
                let to = ((c + 1) * self.curve.len() / columns).max(from + 1);
                let part = &self.curve[from..to];
                let mean = part.iter().map(logarithm).sum::<f64>() / part.len() as f64;
                ((mean - low) / span * 7.0).round() as usize
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn word(name: &str, loss: f64) -> Training {
        Training { doing: "learning".into(), steps: None, losses: vec![(name.into(), loss)] }
    }

    #[test]
    fn other_work_begins_a_curve_of_its_own() {
        let mut course = Course::default();
        course.take(word("P1", 2.0));
        course.take(word("P1", 1.0));
        assert_eq!(course.levels(10), [7, 0]);
        course.take(word("server", 5.0));
        assert_eq!(course.curve, [5.0]);
    }

    proptest! {
        #[test]
        fn any_losses_give_levels_that_fit(
            losses in proptest::collection::vec(proptest::num::f64::ANY, 0..5000), columns in 0_usize..200,
        ) {
            let mut course = Course::default();
            for loss in losses {
                course.take(word("server", loss));
            }
            let levels = course.levels(columns);
            prop_assert!(levels.len() <= columns && levels.iter().all(|l| *l <= 7));
        }
    }
}
