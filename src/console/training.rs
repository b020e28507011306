//! The course of training, as the screen draws it.

use crate::engine::progress::Training;

const KEPT: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct Course {
    pub latest: Option<Training>,
    /// The newest word that had a loss: what is left of training once it is over.
    pub learned: Option<Training>,
    /// Every loss of every word about the present work, in the order of [`Training::losses`].
    pub curves: Vec<Vec<f64>>,
}

impl Course {
    /// Takes a word in. Other learning begins curves of its own.
    pub(crate) fn take(&mut self, training: Training) {
        let leader = |t: &Training| t.losses.first().map(|(name, _)| name.clone());
        if !training.losses.is_empty() {
            if self.learned.as_ref().is_none_or(|latest| leader(latest) != leader(&training)) {
                self.curves.clear();
            }
            self.learn(&training);
            self.learned = Some(training.clone());
        }
        self.latest = Some(training);
    }

    fn learn(&mut self, training: &Training) {
        self.curves.resize(training.losses.len(), Vec::new());
        for (curve, (_, loss)) in self.curves.iter_mut().zip(&training.losses) {
            if curve.len() == KEPT {
                *curve = curve.iter().copied().step_by(2).collect();
            }
            curve.push(*loss);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn word(name: &str, loss: f64) -> Training {
        Training {
            doing: "learning".into(),
            steps: Some((1, 4)),
            losses: vec![(name.into(), loss)],
            bytes: None,
            elapsed: Duration::from_secs(2),
            fact: None,
        }
    }

    #[test]
    fn other_work_begins_a_curve_of_its_own() {
        let mut course = Course::default();
        course.take(word("P1", 2.0));
        course.take(word("P1", 1.0));
        assert_eq!(course.curves, [[2.0, 1.0]]);
        course.take(word("server", 5.0));
        assert_eq!(course.curves, [[5.0]]);
    }

    #[test]
    fn what_was_learned_stays_when_other_work_follows() {
        let mut course = Course::default();
        course.take(word("server", 2.0));
        course.take(Training { losses: Vec::new(), steps: None, ..word("", 0.0) });
        assert_eq!(course.curves, [[2.0]]);
        assert_eq!(course.latest.as_ref().and_then(Training::left), None);
        let left = course.learned.as_ref().and_then(Training::left);
        assert_eq!(left, Some(Duration::from_secs(6)));
    }

    #[test]
    fn a_long_course_is_thinned_and_keeps_its_ends() {
        let mut course = Course::default();
        for round in 0..3 * KEPT {
            course.take(word("server", round as f64));
        }
        let curve = &course.curves[0];
        assert!(curve.len() <= KEPT && curve[0] == 0.0 && curve.is_sorted());
        assert_eq!(curve.last(), Some(&(3.0 * KEPT as f64 - 1.0)));
    }
}
