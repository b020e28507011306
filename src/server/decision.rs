//! The server's decision about one step: plain values, whichever method found them.
//!
//! | here | evidence mode | paper mode |
//! |---|---|---|
//! | [`ClientState::raised_since`] | onset of the CUSUM while it is above the effect's evidence | first of the flags Z_c |
//! | [`ClientState::own_fault`] | it alarms, and no client with evidence is declared to reach it | Z_a |
//! | [`Outcome`] | what the sequential decision follows, or has just closed | none |
//! | [`Decision::table`] | none | the verdict of Table 1 at this step |

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub(crate) use super::disturbance::{Closing, Disturbance};
use super::lookup::TableVerdict;

/// The server's decision about one step. It is filled anew at every step, so that a quiet step costs no
/// memory.
#[derive(Debug, Clone)]
pub(crate) struct Decision {
    /// Every client in the order of the session.
    pub(crate) clients: Vec<ClientState>,
    /// Faults of the clients' data, as far as they are reported.
    pub(crate) quality: Vec<QualityNote>,
    /// What Table 1 declares at this step, in paper mode.
    pub(crate) table: Option<TableVerdict>,
    /// Outcomes of disturbances. One can end and another begin at one step.
    pub(crate) outcomes: Vec<Outcome>,
}

impl Decision {
    /// A step without any outcome.
    pub(crate) fn new(clients: usize) -> Self {
        Self {
            clients: vec![ClientState::default(); clients],
            quality: Vec::new(),
            table: None,
            outcomes: Vec::new(),
        }
    }

    /// Forgets the step before.
    pub(super) fn clear(&mut self) {
        self.clients.fill(ClientState::default());
        self.quality.clear();
        self.table = None;
        self.outcomes.clear();
    }
}

/// How one client stands.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct ClientState {
    /// Onset of its evidence, while that is enough to count as affected.
    pub(crate) raised_since: Option<Timestamp>,
    /// What it shows is not explained by what the others do.
    pub(crate) own_fault: bool,
    /// Its own evidence is enough for an alarm: an own fault need not outlive the propagation window.
    pub(crate) alarms: bool,
    /// Share of its residual that the others explain, where that is known.
    pub(crate) explained: Option<f64>,
}

/// The decision about one disturbance at one step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) disturbance: Disturbance,
    /// The first instant of its evidence.
    pub(crate) onset: Timestamp,
    /// A declared source above the root whose own sensors show nothing.
    pub(crate) silent_source: Option<usize>,
    /// Why it is over, once it is.
    pub(crate) closed: Option<Closing>,
}

impl Default for Outcome {
    fn default() -> Self {
        let disturbance = Disturbance::default();
        Self { disturbance, onset: Timestamp::UNIX_EPOCH, silent_source: None, closed: None }
    }
}

/// A fault of the data of one client, or of all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct QualityNote {
    /// Whose; none for the clock that all share.
    pub(crate) client: Option<usize>,
    pub(crate) what: QualityKind,
}

impl QualityNote {
    /// Whether a sensor of one client is itself at fault.
    pub(crate) fn is_of_a_sensor(&self) -> bool {
        self.client.is_some() && self.what.is_of_a_sensor()
    }
}

/// The ways in which data can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum QualityKind {
    /// Nothing came for so many seconds.
    Gap { seconds: f64 },
    /// A sensor that should move does not.
    Stuck,
    /// A value that the sensor cannot have.
    Range,
    /// Its symbols are elevated too often; they count, with this note.
    OutOfCalibration,
    /// Its symbols are nothing like its calibration, and do not count.
    Unbelievable,
    /// The clock went on by more, or less, than a period.
    ClockJump {
        /// By how much; negative when it went back.
        seconds: f64,
    },
}

impl QualityKind {
    /// Its word in facts.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Gap { .. } => "gap",
            Self::Stuck => "stuck",
            Self::Range => "range",
            Self::OutOfCalibration => "out of calibration",
            Self::Unbelievable => "not to be believed: nothing like its calibration",
            Self::ClockJump { .. } => "clock jump",
        }
    }

    /// The message for an operator.
    pub(crate) fn words(self) -> String {
        let length = |word: &str| self.seconds().map_or(String::new(), |s| format!("{word}{s} s"));
        match self {
            Self::Gap { .. } if self.seconds().is_none() => "a sensor sends nothing".to_owned(),
            Self::Gap { .. } => format!("nothing came{}", length(" for ")),
            Self::Stuck => "a sensor stands still".to_owned(),
            Self::Range => "a value out of range".to_owned(),
            Self::OutOfCalibration | Self::Unbelievable => self.word().to_owned(),
            Self::ClockJump { .. } => format!("the clock jumped{}", length(" by ")),
        }
    }

    /// The message for an operator when it is over.
    pub(crate) fn words_over(self) -> &'static str {
        match self {
            Self::Gap { .. } => "data comes again",
            Self::Stuck => "sensors move again",
            Self::Range => "values in range again",
            Self::OutOfCalibration | Self::Unbelievable => "as calibrated again",
            Self::ClockJump { .. } => "the clock is steady again",
        }
    }

    /// Its length, where it has one.
    pub(crate) fn seconds(self) -> Option<f64> {
        match self {
            Self::Gap { seconds } | Self::ClockJump { seconds } => {
                Some(seconds).filter(|s| s.is_finite() && *s != 0.0)
            }
            Self::Stuck | Self::Range | Self::OutOfCalibration | Self::Unbelievable => None,
        }
    }

    /// Whether a sensor itself is at fault.
    pub(crate) fn is_of_a_sensor(self) -> bool {
        match self {
            Self::Stuck | Self::Range => true,
            Self::Gap { .. } => self.seconds().is_none(),
            Self::OutOfCalibration | Self::Unbelievable | Self::ClockJump { .. } => false,
        }
    }

    /// Whether it is about the reliability of a client.
    pub(crate) fn is_of_calibration(self) -> bool {
        matches!(self, Self::OutOfCalibration | Self::Unbelievable)
    }

    /// The same with a length that can be written down; 0 is an unknown one.
    pub(crate) fn tidy(self) -> Self {
        let seconds = self.seconds().unwrap_or(0.0);
        match self {
            Self::Gap { .. } => Self::Gap { seconds },
            Self::ClockJump { .. } => Self::ClockJump { seconds },
            Self::Stuck | Self::Range | Self::OutOfCalibration | Self::Unbelievable => self,
        }
    }

    /// Whether two are the same trouble, whatever their length.
    pub(crate) fn is_like(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}
