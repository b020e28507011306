//! What is told while a session's models are being made.

use std::time::{Duration, Instant};

use crate::engine::prepare::Stage;
use crate::session::{Session, Source};

/// A word from the engine on the way to the first measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Training {
    /// What is being done.
    pub doing: String,
    /// Steps done and steps in all, where they are counted.
    pub steps: Option<(usize, usize)>,
    /// The loss of whoever learns, under its name.
    pub losses: Vec<(String, f64)>,
    /// Bytes of all messages between clients and server so far, where there are any.
    pub bytes: Option<u64>,
    /// How long this has been going on.
    pub elapsed: Duration,
}

impl Training {
    /// How long it will go on, if it goes on like this.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        let (done, all) = self.steps.filter(|(done, all)| 0 < *done && done <= all)?;
        Some(self.elapsed.mul_f64((all - done) as f64 / done as f64))
    }
}

/// Turns what the engine tells of its stages into words for the screen.
#[derive(Debug)]
pub struct Told {
    names: Vec<String>,
    doing: String,
    since: Instant,
}

impl Told {
    /// Nothing yet.
    #[must_use]
    pub fn new(session: &Session, now: Instant) -> Self {
        let numbered = |letter: char| (1..=64).map(|m| format!("{letter}{m}")).collect();
        let names = match (&session.clients[..], &session.source) {
            ([], Source::Twin(_)) => numbered('C'),
            ([], _) => numbered('P'),
            (clients, _) => clients.iter().map(|client| client.name.clone()).collect(),
        };
        Self { names, doing: String::new(), since: now }
    }

    /// A stage in words.
    pub fn word(&mut self, stage: &Stage, now: Instant) -> Training {
        let (doing, steps, losses, bytes) = match stage {
            Stage::Reading => ("nominal data is being read".into(), None, Vec::new(), None),
            Stage::Delivered => {
                ("the clients' own models come with the program".into(), None, Vec::new(), None)
            }
            Stage::Calibrating => {
                ("what is normal is being measured".into(), None, Vec::new(), None)
            }
            Stage::Proprietary(p) => (
                format!("{} learns from its own nominal data", p.client),
                Some((p.iteration, p.iterations)),
                vec![(p.client.to_owned(), p.loss)],
                None,
            ),
            Stage::Federation(p) => {
                let server = std::iter::once(("server".to_owned(), p.server_loss));
                let clients = self.names.iter().cloned().zip(p.client_loss.iter().copied());
                (
                    "clients and server learn from each other, in rounds".into(),
                    Some((p.round, p.rounds)),
                    server.chain(clients).collect(),
                    Some(p.bytes),
                )
            }
        };
        if self.doing != doing {
            self.doing.clone_from(&doing);
            self.since = now;
        }
        let elapsed = now.saturating_duration_since(self.since);
        Training { doing, steps, losses, bytes, elapsed }
    }
}

/// Losses kept for the curves.
const KEPT: usize = 4096;

/// The course of training so far.
#[derive(Debug, Default)]
pub struct Course {
    /// The newest word.
    pub latest: Option<Training>,
    /// The newest word that had a loss: what is left of training once it is over.
    pub learned: Option<Training>,
    /// Every loss of every word about the present work, in the order of [`Training::losses`].
    pub curves: Vec<Vec<f64>>,
}

impl Course {
    /// Takes a word in. Other learning begins curves of its own.
    pub fn take(&mut self, training: Training) {
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

    fn word(name: &str, loss: f64) -> Training {
        Training {
            doing: "learning".into(),
            steps: Some((1, 4)),
            losses: vec![(name.into(), loss)],
            bytes: None,
            elapsed: Duration::from_secs(2),
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
