//! Progress reports while a session's models are being made.

use std::time::{Duration, Instant};

use super::prepare::Stage;
use crate::fact::{self, Fact, Number};
use crate::federation;
use crate::session::{Session, Source};

/// A word from the engine on the way to the first measurement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Training {
    pub(crate) doing: String,
    /// Steps done and steps in all, where they are counted.
    pub(crate) steps: Option<(usize, usize)>,
    /// The loss of each model that learns, under its name.
    pub(crate) losses: Vec<(String, f64)>,
    /// Bytes of all messages between clients and server so far, where there are any.
    pub(crate) bytes: Option<u64>,
    /// How long this has been going on.
    pub(crate) elapsed: Duration,
    /// The fact that a round of the federation is, where it is one.
    pub(crate) fact: Option<Box<Fact>>,
}

impl Training {
    /// A round that was trained earlier.
    pub(crate) fn of_fact(fact: Fact) -> Self {
        Self {
            doing: "training, as it was recorded".to_owned(),
            steps: None,
            losses: Vec::new(),
            bytes: None,
            elapsed: Duration::ZERO,
            fact: Some(Box::new(fact)),
        }
    }

    /// How long it will go on, if it goes on like this.
    pub(crate) fn left(&self) -> Option<Duration> {
        let (done, all) = self.steps.filter(|(done, all)| 0 < *done && done <= all)?;
        Some(self.elapsed.mul_f64((all - done) as f64 / done as f64))
    }
}

/// Turns stages of the engine into words for the screen.
#[derive(Debug)]
pub(crate) struct ProgressWords {
    names: Vec<String>,
    doing: String,
    since: Instant,
    /// A client's loss is made of its measurements: where training is protected it is no fact.
    hides_losses: bool,
}

impl ProgressWords {
    pub(crate) fn new(session: &Session, now: Instant) -> Self {
        let numbered = |letter: char| (1..=64).map(|m| format!("{letter}{m}")).collect();
        let names = match (&session.clients[..], &session.source) {
            ([], Source::Twin(_)) => numbered('C'),
            ([], _) => numbered('P'),
            (clients, _) => clients.iter().map(|client| client.name.clone()).collect(),
        };
        let privacy = &session.privacy;
        let hides_losses = privacy.epsilon_c.is_some() || privacy.epsilon_a.is_some();
        Self { names, doing: String::new(), since: now, hides_losses }
    }

    pub(crate) fn word(&mut self, stage: &Stage, now: Instant) -> Training {
        let (doing, steps, losses, bytes) = match stage {
            Stage::Notice(notice) => ((*notice).to_owned(), None, Vec::new(), None),
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
        let fact = match stage {
            Stage::Federation(progress) => Some(Box::new(training(progress, self.hides_losses))),
            Stage::Reading
            | Stage::Delivered
            | Stage::Calibrating
            | Stage::Proprietary(_)
            | Stage::Notice(_) => None,
        };
        Training { doing, steps, losses, bytes, elapsed, fact }
    }
}

/// A word of progress of the federation as a fact, without the clients' loss where that is hidden.
fn training(progress: &federation::Progress, hides_losses: bool) -> Fact {
    let losses = progress.client_loss;
    let mean = losses.iter().sum::<f64>() / losses.len() as f64;
    let mean = if hides_losses { f64::NAN } else { mean };
    Fact::Training(fact::Training {
        round: progress.round as u64,
        rounds: progress.rounds as u64,
        server_loss: Number::new(progress.server_loss),
        client_loss: Number::new(mean),
    })
}
