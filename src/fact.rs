//! What a run says: the facts of `run --json`, of a recording and of the console's log, all the same.
//!
//! A fact is one JSON object on one line. `"fact"` comes first and says which it is; the order of the
//! other fields is the order of the types below and never changes, so that two runs can be compared
//! byte for byte. Times are RFC 3339. A number that does not exist is `null`: [`Number`] cannot hold
//! NaN or infinity. Facts know nothing of who makes them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::privacy::{Counted, Head};
use crate::score::Score;
use crate::session::Mode;
use crate::stream::UnusedRows;

mod number;
mod posterior;
#[cfg(test)]
mod tests;

pub use number::{Number, Value};
pub use posterior::Posterior;

/// One line of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "lowercase")]
pub enum Fact {
    /// A round of training is over.
    Training(Training),
    /// A client's thresholds stand.
    Calibrated(Calibrated),
    /// An incident begins.
    Opened(Incident),
    /// Something about an open incident is new.
    Updated(Incident),
    /// An incident is over.
    Closed(Incident),
    /// A setting was changed.
    Setting(Setting),
    /// What a client has released so far.
    Ledger(Ledger),
    /// Something is wrong with the data itself.
    Quality(Quality),
    /// The last line.
    Summary(Box<Summary>),
}

/// {round, rounds, server_loss, client_loss}
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Training {
    /// This round, counted from 1.
    pub round: u64,
    /// Rounds in all.
    pub rounds: u64,
    /// L_s.
    pub server_loss: Option<Number>,
    /// Mean loss of the clients.
    pub client_loss: Option<Number>,
}

/// {client, tau_c, tau_a, arl0_target}
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// Who.
    pub client: String,
    /// τ_c as a distance.
    pub tau_c: Option<Number>,
    /// τ_a as a distance.
    pub tau_a: Option<Number>,
    /// Wanted time between two false alarms, seconds.
    pub arl0_target: Option<Number>,
}

/// {incident, time, step, root, posterior, first_out, effects, mode}, and what else is worth saying.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Incident {
    /// Its number, never used again.
    pub incident: u64,
    /// When this became known.
    pub time: Timestamp,
    /// The decimated step of that time.
    pub step: u64,
    /// The named root cause; `null` when nobody can be named.
    pub root: Option<String>,
    /// Probability of each client as the root, in the order of the session. The look-up of paper mode
    /// has none: it names a root or nobody, and 1 for whom it names is all there is.
    pub posterior: Posterior,
    /// The client whose evidence rose first.
    pub first_out: Option<String>,
    /// Who else feels it, in order of onset.
    pub effects: Vec<Effect>,
    /// The method that says so.
    #[serde(with = "mode")]
    pub mode: Mode,
    /// How urgent it is.
    pub priority: Priority,
    /// First-out and root are different clients.
    pub disagree: bool,
    /// The root that all evidence speaks for by now, where it is not the named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_now_say: Option<String>,
    /// What is new, or why it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The sensors of the root that deviate most, where the session lets it say so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensors: Vec<String>,
    /// Clients that take part and have a sensor which is itself at fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<SensorFault>,
    /// The file of the data, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The run, where there are several: the value of the run column, or the number of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// A client has a sensor that is itself at fault; which one it does not say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SensorFault {
    /// Whose.
    pub client: String,
    /// "stuck", "range" or "gap".
    pub what: String,
}

/// A client that feels an incident.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Who.
    pub client: String,
    /// Onset of its evidence.
    pub time: Timestamp,
    /// How long after the root's onset; negative when it came before.
    pub delay_s: Number,
    /// How it can have come about, where influences are known that lead there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
}

/// A chain of known influences from a root to an effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Via {
    /// Root, whoever passes it on, effect.
    pub path: Vec<String>,
    /// How long influence takes along it when all is well; `null` where that is not known.
    pub delay_s: Option<Number>,
    /// All of it was learned from the data; otherwise some of it is only declared.
    pub learned: bool,
}

/// How urgent an alarm is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Priority {
    /// Data quality.
    P3,
    /// An anomaly of one client, or a root that is not certain.
    P2,
    /// A confirmed root cause with effects.
    P1,
}

impl std::fmt::Display for Priority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::P1 => "P1",
            Self::P2 => "P2",
            Self::P3 => "P3",
        })
    }
}

/// {what, from, to, time}
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Its name.
    pub what: String,
    /// The old value.
    pub from: Value,
    /// The new one.
    pub to: Value,
    /// Data time of the change.
    pub time: Timestamp,
}

/// {client, epsilon, delta, releases} of what was sent while watching, and beside it what training
/// sent, the costliest stretches of time, and every mechanism with its settings.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Ledger {
    /// Who.
    pub client: String,
    /// ε spent; `null` when nothing protects what was released.
    pub epsilon: Option<Number>,
    /// δ it holds at.
    pub delta: Option<Number>,
    /// Number of releases.
    pub releases: u64,
    /// ε at the same δ by adding up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basic: Option<Number>,
    /// What training spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<Spent>,
    /// What the costliest sample, minute, hour and day and the whole history cost, training and the
    /// filter's memory included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spent: Vec<Spent>,
    /// Releases by mechanism and setting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mechanisms: Vec<Counted>,
    /// Where the noise came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub randomness: Option<String>,
    /// How far one sample reaches into later releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
}

/// How far one sample reaches into later releases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// The share of its effect that is left a step later; `null` where it was seen not to fade.
    pub contraction: Option<Number>,
    /// Later symbols that it can still turn; `null` where there is no end.
    pub later_symbols: Option<u64>,
    /// "measured", "declared" or "assumed".
    pub known: String,
}

/// What some releases cost together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Spent {
    /// The stretch of time, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// ε; `null` when something was sent as it is.
    pub epsilon: Option<Number>,
    /// ε by adding up.
    pub basic: Option<Number>,
    /// Number of releases.
    pub releases: u64,
    /// Which theorem gives ε.
    pub bound: String,
}

/// {client, time, what}
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Whose data; `null` when it is everybody's.
    pub client: Option<String>,
    /// Since when.
    pub time: Timestamp,
    /// What is wrong with it: "gap", "stuck", "range", "clock jump", "out of calibration" with or
    /// without the reason, "not to be believed", or why rows were left out; or that it is well again:
    /// "data comes again", "sensors move again", "values in range again", "as calibrated again".
    pub what: String,
    /// How long the gap or the jump is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<Number>,
    /// The file of the data, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The run, where there are several: the value of the run column, or the number of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// {session, mode, seed, clients, steps, incidents, wall_s, steps_per_s, score}
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Name of the session.
    pub session: String,
    /// The method.
    #[serde(with = "mode")]
    pub mode: Mode,
    /// The seed; `null` when noise came from the operating system.
    pub seed: Option<u64>,
    /// Number of clients.
    pub clients: u64,
    /// Decimated steps.
    pub steps: u64,
    /// Incidents opened.
    pub incidents: u64,
    /// Time it took.
    pub wall_s: Option<Number>,
    /// Steps in a second of that.
    pub steps_per_s: Option<Number>,
    /// Where the data has labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Score>,
    /// First instant watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// Last instant watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Where noise came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub randomness: Option<String>,
    /// Rows of the data that were not used, where there were any.
    #[serde(default, skip_serializing_if = "UnusedRows::is_none")]
    pub unused_rows: UnusedRows,
    /// The same of the nominal data that the models were made from.
    #[serde(default, skip_serializing_if = "UnusedRows::is_none")]
    pub unused_nominal_rows: UnusedRows,
    /// Sensors that are not watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_watched: Vec<NotWatched>,
    /// Where the ledger file ends, when one is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<Head>,
}

/// A sensor that no model looks at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotWatched {
    /// Whose.
    pub client: String,
    /// Its name.
    pub sensor: String,
    /// Why not.
    pub why: String,
}

impl Fact {
    /// The fact as one line of JSON, without the line's end.
    ///
    /// # Panics
    /// Never: every key of a fact is a string and no value can fail to be written.
    #[must_use]
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("a fact has string keys and infallible values")
    }

    /// Reads a line back.
    pub fn from_line(line: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(line)
    }
}

/// A session writes `Evidence`; a fact, as the command line, `evidence`.
mod mode {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::session::Mode;

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        Evidence,
        Paper,
    }

    // `with` hands over a reference.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    pub fn serialize<S: Serializer>(mode: &Mode, to: S) -> Result<S::Ok, S::Error> {
        match mode {
            Mode::Evidence => Word::Evidence,
            Mode::Paper => Word::Paper,
        }
        .serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Mode, D::Error> {
        Ok(match Word::deserialize(from)? {
            Word::Evidence => Mode::Evidence,
            Word::Paper => Mode::Paper,
        })
    }
}
