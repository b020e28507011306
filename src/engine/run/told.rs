//! What a method says about one step, in the words of [`incident::input`](crate::incident::input).
//!
//! The buffers are kept from step to step, so that a quiet step costs no memory.

use jiff::Timestamp;

use crate::evidence::health::Standing;
use crate::evidence::inference;
use crate::evidence::sensor::SensorFault;
use crate::incident::{ClientState, Closing, Outcome, QualityKind, QualityNote, Step};

/// One step's worth of what a method found.
#[derive(Debug, Clone)]
pub(super) struct Told {
    /// Every client in the order of the session.
    pub clients: Vec<ClientState>,
    /// What is wrong with the data.
    pub quality: Vec<QualityNote>,
    /// Clients that are to be believed more, or less, from here on.
    pub standings: Vec<(usize, Standing)>,
    outcome: Outcome,
    decided: bool,
}

impl Told {
    /// Nothing has been said about anybody.
    pub fn new(clients: usize) -> Self {
        Self {
            clients: vec![ClientState::default(); clients],
            quality: Vec::new(),
            standings: Vec::new(),
            outcome: Outcome {
                episode: 0,
                onset: Timestamp::UNIX_EPOCH,
                root: None,
                frozen: false,
                would_now_say: None,
                posterior: vec![0.0; clients],
                closed: None,
            },
            decided: false,
        }
    }

    /// Forgets the step before.
    pub fn clear(&mut self) {
        self.clients.fill(ClientState::default());
        self.quality.clear();
        self.standings.clear();
        self.decided = false;
    }

    /// The decision of this step, to be filled in.
    pub fn decide(&mut self) -> &mut Outcome {
        self.decided = true;
        &mut self.outcome
    }

    /// What the sequential decision says about an incident that began at `onset`.
    pub fn follow(
        &mut self,
        incident: &inference::Incident,
        onset: Timestamp,
        closed: Option<Closing>,
    ) {
        let outcome = self.decide();
        outcome.episode = incident.number;
        outcome.onset = onset;
        outcome.root = incident.root;
        outcome.frozen = incident.frozen;
        outcome.would_now_say = incident.would_now_say;
        outcome.posterior.clone_from(&incident.posterior);
        outcome.closed = closed;
    }

    /// Notes what is wrong with the sensors of a client.
    pub fn note_faults(&mut self, client: usize, faults: &[Option<SensorFault>]) {
        for (fault, what) in [
            (SensorFault::Gap, QualityKind::Gap { seconds: 0.0 }),
            (SensorFault::FlatLine, QualityKind::Stuck),
            (SensorFault::OutOfRange, QualityKind::Range),
        ] {
            if faults.contains(&Some(fault)) {
                self.quality.push(QualityNote { client: Some(client), what });
            }
        }
    }

    /// The step as the annunciator takes it.
    pub fn step(&self, time: Timestamp, step: u64) -> Step<'_> {
        let decided = std::slice::from_ref(&self.outcome);
        Step {
            time,
            step,
            clients: &self.clients,
            outcomes: if self.decided { decided } else { &[] },
            quality: &self.quality,
        }
    }
}

impl From<inference::Closing> for Closing {
    fn from(closing: inference::Closing) -> Self {
        match closing {
            inference::Closing::Quiet => Self::Quiet,
            inference::Closing::PersistentChange => Self::PersistentChange,
            inference::Closing::NoData => Self::NoData,
            inference::Closing::Unreliable => Self::Unreliable,
            inference::Closing::Accepted => Self::Accepted,
            inference::Closing::EndOfRun => Self::EndOfRun,
        }
    }
}
