//! The facts of a run: those of `run --json`, of a recording and of the console's log, all the same.
//!
//! A fact is one JSON object on one line. `"fact"` comes first and says which it is; the order of the
//! other fields is the order of the types below and never changes, so that two runs can be compared
//! byte for byte. Times are RFC 3339. A number that does not exist is `null`: [`Number`] cannot hold
//! NaN or infinity. Facts know nothing of who makes them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::privacy::{Counted, Head};
use crate::score::Score;
use crate::server::lookup::TableVerdict;
use crate::session::Mode;
use crate::stream::UnusedRows;

mod number;
mod posterior;
#[cfg(test)]
mod tests;

pub(crate) use number::{Number, Value};
pub(crate) use posterior::Posterior;

/// One line of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "lowercase")]
pub(crate) enum Fact {
    /// A round of training is over.
    Training(Training),
    Calibrated(Calibrated),
    Opened(Incident),
    /// Something about an open incident is new.
    Updated(Incident),
    Closed(Incident),
    /// Table 1 declared a verdict without a root, for a run of steps that is over.
    Verdict(TableEpisode),
    Setting(Setting),
    /// What a client has released so far.
    Ledger(Ledger),
    /// Something is wrong with the data itself.
    Quality(Quality),
    Summary(Box<Summary>),
}

/// {round, rounds, server_loss, client_loss}
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Training {
    /// This round, counted from 1.
    pub(crate) round: u64,
    pub(crate) rounds: u64,
    /// L_s.
    pub(crate) server_loss: Option<Number>,
    /// Mean loss of the clients.
    pub(crate) client_loss: Option<Number>,
}

/// {client, tau_c, tau_a, arl0_target}
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Calibrated {
    pub(crate) client: String,
    /// τ_c as a distance.
    pub(crate) tau_c: Option<Number>,
    /// τ_a as a distance.
    pub(crate) tau_a: Option<Number>,
    /// Wanted time between two false alarms, seconds.
    pub(crate) arl0_target: Option<Number>,
    /// Steps of nothing but the strongest symbol after which it alarms; more than 12 is insensitive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) alarm_steps: Option<Number>,
    /// Steps at the start of a run that are not judged, where they are not the usual 40.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) not_judged_steps: Option<u64>,
}

/// {incident, time, step, root, posterior, first_out, effects, mode}, and what else is worth saying. A
/// contract with other programs, so not the annunciator's incident, which may change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "names of JSON fields are a contract")]
pub(crate) struct Incident {
    /// Its number, never used again.
    pub(crate) incident: u64,
    pub(crate) time: Timestamp,
    /// The decimated step of that time.
    pub(crate) step: u64,
    /// The named root cause; `null` where none can be named.
    pub(crate) root: Option<String>,
    /// Probability of each client as the root, in the order of the session. The look-up of paper mode
    /// has none: the root it names has 1.
    pub(crate) posterior: Posterior,
    /// The possible roots while none is named, the likeliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) candidates: Vec<String>,
    /// The client whose evidence rose first.
    pub(crate) first_out: Option<String>,
    /// Who else feels it, in order of onset.
    pub(crate) effects: Vec<Effect>,
    /// The method that decided.
    #[serde(with = "ModeWord")]
    pub(crate) mode: Mode,
    pub(crate) priority: Priority,
    /// First-out and root are different clients.
    pub(crate) disagree: bool,
    /// The verdict about the root.
    #[serde(default)]
    pub(crate) verdict: Verdict,
    /// The root that all evidence speaks for by now, where it is not the named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) would_now_say: Option<String>,
    /// A declared source above the root whose own sensors show nothing: it may be the root too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) silent_source: Option<String>,
    /// How often its disturbance has shown itself again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) continued: u64,
    /// Its evidence has ended, and not all members have recovered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) stands: bool,
    /// Its root is out of service: its alarm does not ask for attention.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) suspended: bool,
    /// What is new, or why it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    /// The sensors of the root that deviate most, where the session allows that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) sensors: Vec<String>,
    /// Clients that take part and have a sensor which is itself at fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) faults: Vec<SensorFault>,
    /// The file of the data, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    /// The run, where there are several: the value of the run column, or the number of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<String>,
}

/// A client has a sensor that is itself at fault; which one it does not say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SensorFault {
    pub(crate) client: String,
    pub(crate) what: String,
}

/// A client that feels an incident.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Effect {
    pub(crate) client: String,
    pub(crate) time: Timestamp,
    /// How long after the root's onset; negative when it came before.
    pub(crate) delay_s: Number,
    /// An effect of the root, or a candidate while no root is named.
    #[serde(default)]
    pub(crate) verdict: Verdict,
    /// How it can have come about, where influences are known that lead there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) via: Option<Via>,
}

/// A chain of known influences from a root to an effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Via {
    /// Root, the clients between, effect.
    pub(crate) path: Vec<String>,
    /// How long influence takes along it when all is well; `null` where that is not known.
    pub(crate) delay_s: Option<Number>,
    /// All of it was learned from the data; otherwise some of it is only declared.
    pub(crate) learned: bool,
}

/// What a client is in an incident.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// The trouble started here.
    RootCause,
    /// It feels a trouble that started at another client.
    PropagatedEffect,
    /// An anomaly of this client alone.
    Single,
    /// The incident's root cannot be named: it may be this client.
    #[default]
    Unknown,
}

/// How urgent an alarm is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Priority {
    P3,
    /// An anomaly of one client, or a root that is not certain.
    P2,
    /// A confirmed root cause with effects.
    P1,
}

impl Priority {
    /// Its number alone, where a client may be called P1, too.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::P1 => 1,
            Self::P2 => 2,
            Self::P3 => 3,
        }
    }
}

impl std::fmt::Display for Priority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "P{}", self.number())
    }
}

/// {verdict, time, until, steps, clients}: an episode of paper mode that names no root. Its verdict is
/// neither_both, imperfect_training, independent_clients, violates_assumptions or not_in_table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TableEpisode {
    pub(crate) verdict: String,
    /// Its first step.
    pub(crate) time: Timestamp,
    /// Its last step.
    pub(crate) until: Timestamp,
    pub(crate) steps: u64,
    /// Who had a flag in it.
    pub(crate) clients: Vec<String>,
    /// The file of the data, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    /// The run, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<String>,
}

/// How often Table 1 declared what, in paper mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct TableCounts {
    pub(crate) root_cause: TableCount,
    pub(crate) neither_both: TableCount,
    pub(crate) no_anomaly: TableCount,
    pub(crate) imperfect_training: TableCount,
    pub(crate) independent_clients: TableCount,
    pub(crate) violates_assumptions: TableCount,
    /// Flags that are none of the ten rows.
    pub(crate) not_in_table: TableCount,
}

/// {episodes, steps} of one verdict. An episode is a run of steps with the same verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct TableCount {
    pub(crate) episodes: u64,
    pub(crate) steps: u64,
}

impl TableCounts {
    /// The count of one verdict.
    pub(crate) fn of_mut(&mut self, verdict: TableVerdict) -> &mut TableCount {
        match verdict {
            TableVerdict::RootCause(_) => &mut self.root_cause,
            TableVerdict::NeitherBoth => &mut self.neither_both,
            TableVerdict::NoAnomaly => &mut self.no_anomaly,
            TableVerdict::ImperfectTraining => &mut self.imperfect_training,
            TableVerdict::IndependentClients => &mut self.independent_clients,
            TableVerdict::ViolatesAssumptions => &mut self.violates_assumptions,
            TableVerdict::NotInTable => &mut self.not_in_table,
        }
    }

    /// Every verdict in words, with its count.
    pub(crate) fn each(&self) -> [(&'static str, TableCount); 7] {
        [
            (TableVerdict::RootCause(0).words(), self.root_cause),
            (TableVerdict::NeitherBoth.words(), self.neither_both),
            (TableVerdict::ImperfectTraining.words(), self.imperfect_training),
            (TableVerdict::IndependentClients.words(), self.independent_clients),
            (TableVerdict::ViolatesAssumptions.words(), self.violates_assumptions),
            (TableVerdict::NotInTable.words(), self.not_in_table),
            (TableVerdict::NoAnomaly.words(), self.no_anomaly),
        ]
    }
}

/// {what, from, to, time}
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) what: String,
    pub(crate) from: Value,
    pub(crate) to: Value,
    /// Data time of the change.
    pub(crate) time: Timestamp,
}

/// {client, epsilon, delta, releases} of what was sent while watching, and beside it what training
/// sent, the costliest stretches of time, and every mechanism with its settings.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Ledger {
    pub(crate) client: String,
    /// ε spent; `null` when nothing protects what was released.
    pub(crate) epsilon: Option<Number>,
    /// δ it holds at.
    pub(crate) delta: Option<Number>,
    pub(crate) releases: u64,
    /// ε at the same δ by adding up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) basic: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) training: Option<Spent>,
    /// What the costliest sample, minute, hour and day and the whole history cost, training and the
    /// filter's memory included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) spent: Vec<Spent>,
    /// Releases by mechanism and setting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) mechanisms: Vec<Counted>,
    /// Where the noise came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) randomness: Option<String>,
    /// How far one sample reaches into later releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<Memory>,
}

/// How far one sample reaches into later releases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// The share of its effect that is left a step later; `null` where it was seen not to fade.
    pub(crate) contraction: Option<Number>,
    /// Later symbols that it can still turn; `null` where there is no end.
    pub(crate) later_symbols: Option<u64>,
    pub(crate) known: String,
}

/// What some releases cost together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Spent {
    /// The stretch of time, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) over: Option<String>,
    /// ε; `null` when something was sent without noise.
    pub(crate) epsilon: Option<Number>,
    /// ε by adding up.
    pub(crate) basic: Option<Number>,
    pub(crate) releases: u64,
    /// Which theorem gives ε.
    pub(crate) bound: String,
}

/// {client, time, what}
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Quality {
    /// The client whose data it is; `null` for all clients.
    pub(crate) client: Option<String>,
    pub(crate) time: Timestamp,
    /// What is wrong with it: "gap", "stuck", "range", "clock jump", "out of calibration" with or
    /// without the reason, "not to be believed", or why rows were left out; or that it is well again:
    /// "data comes again", "sensors move again", "values in range again", "as calibrated again".
    pub(crate) what: String,
    /// How long the gap or the jump is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seconds: Option<Number>,
    /// The file of the data, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    /// The run, where there are several: the value of the run column, or the number of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<String>,
}

/// {session, mode, seed, clients, steps, incidents, wall_s, steps_per_s, score}
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) session: String,
    #[serde(with = "ModeWord")]
    pub(crate) mode: Mode,
    /// The seed; `null` when noise came from the operating system.
    pub(crate) seed: Option<u64>,
    pub(crate) clients: u64,
    pub(crate) steps: u64,
    pub(crate) incidents: u64,
    pub(crate) wall_s: Option<Number>,
    /// Steps in a second of that.
    pub(crate) steps_per_s: Option<Number>,
    /// Where the data has labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) score: Option<Score>,
    /// What Table 1 declared, in paper mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) verdicts: Option<TableCounts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<Timestamp>,
    /// Last instant watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) randomness: Option<String>,
    /// Rows of the data that were not used, where there were any.
    #[serde(default, skip_serializing_if = "UnusedRows::is_none")]
    pub(crate) unused_rows: UnusedRows,
    /// The same of the nominal data that the models were made from.
    #[serde(default, skip_serializing_if = "UnusedRows::is_none")]
    pub(crate) unused_nominal_rows: UnusedRows,
    /// Sensors that are not watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_watched: Vec<NotWatched>,
    /// When clients were out of service, the last thousand times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) suspended: Vec<Suspended>,
    /// How long a live source's values took to be decided on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) latency_ms: Option<LatencyMs>,
    /// Where the ledger file ends, when one is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ledger: Option<Head>,
}

/// {p50, p99, steps}: milliseconds from the arrival of a step's last row to the facts of that step, which
/// half and 99 % of the steps do not exceed, each to a quarter of it. Where values come one by one, a
/// row arrives with its first. Rows that waited while models were made do not count.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct LatencyMs {
    pub(crate) p50: Number,
    pub(crate) p99: Number,
    /// Steps that were timed.
    pub(crate) steps: u64,
}

/// {client, from, until, why}: a client was out of service; its alarms did not ask for attention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Suspended {
    pub(crate) client: String,
    pub(crate) from: Timestamp,
    /// Absent where it still was at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

/// A sensor that no model looks at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NotWatched {
    pub(crate) client: String,
    pub(crate) sensor: String,
    pub(crate) why: String,
}

// The form that serde asks for.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Fact {
    /// The fact as one line of JSON, without the line's end.
    ///
    /// # Panics
    /// Never: every key of a fact is a string and no value can fail to be written.
    pub(crate) fn to_line(&self) -> String {
        serde_json::to_string(self).expect("a fact has string keys and infallible values")
    }

    /// The incident that it is about.
    pub(crate) fn incident(&self) -> Option<&Incident> {
        match self {
            Self::Opened(incident) | Self::Updated(incident) | Self::Closed(incident) => {
                Some(incident)
            }
            Self::Training(_)
            | Self::Calibrated(_)
            | Self::Verdict(_)
            | Self::Setting(_)
            | Self::Ledger(_)
            | Self::Quality(_)
            | Self::Summary(_) => None,
        }
    }

    /// Reads a line that [`Fact::to_line`] wrote.
    pub(crate) fn from_line(line: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(line)
    }
}

/// A session writes `Evidence`; a fact, as the command line, `evidence`.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Mode", rename_all = "lowercase")]
enum ModeWord {
    Evidence,
    Paper,
}
