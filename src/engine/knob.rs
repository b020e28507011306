//! The knobs: what can be tuned while a session runs.
//!
//! [`TABLE`] has one row for each. The command line, the preview, the help and the log read its names,
//! its titles, what a value can be, the steps of one press, and from when on a change counts.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

mod key;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::fact::{Number, Value};
use crate::session::settings::Span;
use crate::session::{Mode, Tau, Vote};

/// Something that can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Knob {
    /// τ_c of one client, or of all that have none of their own.
    TauC(Option<usize>),
    /// τ_a, likewise.
    TauA(Option<usize>),
    /// Of how many steps so many have to name a root, in paper mode.
    Vote,
    /// The share of τ below which a raised flag falls, in paper mode.
    Deadband,
    /// Wanted time between two false alarms in evidence mode.
    Arl0,
    /// The method that decides.
    Mode,
    /// ε of each flag or symbol.
    EpsilonFlag,
    /// ε of each x̂_c.
    EpsilonC,
    /// ε of each x_a.
    EpsilonA,
    /// ε of each gradient.
    EpsilonG,
    /// δ of the Gaussian mechanisms and of every composed ε.
    Delta,
    /// ε of each Z_a where it is another than that of Z_c, in paper mode.
    EpsilonFlagA,
    /// ε that every client may spend, over the session's stretch of time.
    Budget,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum KnobValue {
    /// No τ of its own, no vote, no protection, no budget.
    None,
    Tau(Tau),
    Vote(Vote),
    Number(f64),
    Mode(Mode),
}

/// A knob with the value it has, or is to have.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) knob: Knob,
    pub(crate) to: KnobValue,
}

/// From when on a change counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The flags of the whole run so far are judged by it.
    Flags,
    /// The whole run so far can be decided again with it.
    Decision,
    /// From the next step on: what was released stays released.
    Releases,
    /// From the next training on.
    Training,
}

/// The values that one press after the other goes through.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Steps {
    /// Percentiles; a distance changes by a twentieth.
    Taus,
    Votes,
    Modes,
    Numbers(&'static [f64]),
    /// Above the largest there is no protection, or no budget.
    NumbersOrNone(&'static [f64]),
}

/// One row of the table of knobs.
pub(crate) struct Row {
    knob: Knob,
    /// The key of a session that holds its value. What stands after the dot is its name in facts, in
    /// the log and where it is typed.
    key: &'static str,
    /// On the screen.
    pub(crate) title: &'static str,
    /// Its possible values, in words.
    expected: &'static str,
    pub(crate) example: &'static str,
    /// Reads a value; none where the knob cannot have it.
    read: fn(&Value) -> Option<KnobValue>,
    pub(crate) scope: Scope,
    pub(crate) steps: Steps,
}

const TAU: &str =
    "a percentile such as \"97.5%\", above 0 and below 100, or a squared distance above 0";
const VOTE: &str = "a vote such as \"3 of 5\", of up to 1000, or nothing for none";
const DEADBAND: &str = "a share of τ from 0.5 to 1, or nothing for none";
const EPSILON: &str = "a number above 0 and at most 100, or nothing for no protection";
const EPSILON_A: &str = "a number above 0 and at most 100, or nothing for the ε of Z_c";
const BUDGET: &str = "a number above 0, or nothing for no budget";

const HOUR: f64 = 3600.0;
const DAY: f64 = 86_400.0;
const DEADBANDS: &[f64] = &[0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0];
const RUN_LENGTHS: &[f64] = &[
    600.0,
    1200.0,
    1800.0,
    HOUR,
    2.0 * HOUR,
    4.0 * HOUR,
    8.0 * HOUR,
    12.0 * HOUR,
    DAY,
    2.0 * DAY,
    4.0 * DAY,
    7.0 * DAY,
    14.0 * DAY,
    30.0 * DAY,
];
const EPSILONS: &[f64] = &[
    0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 50.0,
    100.0,
];
/// A budget pays for many symbols.
const BUDGETS: &[f64] = &[
    1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5,
    5e5,
];
const DELTAS: &[f64] = &[1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3];

const fn row(knob: Knob, key: &'static str, title: &'static str, scope: Scope) -> Row {
    let (expected, example, steps) = (TAU, "97.5%", Steps::Taus);
    Row { knob, key, title, expected, example, read: tau, scope, steps }
}

const fn epsilon(knob: Knob, key: &'static str, title: &'static str, scope: Scope) -> Row {
    let steps = Steps::NumbersOrNone(EPSILONS);
    let read = |value: &Value| number_or_none(value, |n| n > 0.0 && n <= 100.0);
    Row { expected: EPSILON, example: "2", read, steps, ..row(knob, key, title, scope) }
}

/// One row a knob; those of τ stand for every client's own, too.
const TABLE: [Row; 13] = [
    row(Knob::TauC(None), "thresholds.tau_c", "τ_c", Scope::Flags),
    row(Knob::TauA(None), "thresholds.tau_a", "τ_a", Scope::Flags),
    Row {
        expected: VOTE,
        example: "3 of 5",
        read: vote,
        steps: Steps::Votes,
        ..row(Knob::Vote, "thresholds.vote", "vote", Scope::Decision)
    },
    Row {
        expected: DEADBAND,
        example: "0.9",
        read: deadband,
        steps: Steps::Numbers(DEADBANDS),
        ..row(Knob::Deadband, "thresholds.deadband", "dead-band", Scope::Flags)
    },
    Row {
        expected: "seconds, at least 1",
        example: "8h",
        read: |value| number(value, |n| n >= 1.0),
        steps: Steps::Numbers(RUN_LENGTHS),
        ..row(Knob::Arl0, "thresholds.arl0", "ARL0", Scope::Decision)
    },
    Row {
        expected: "evidence or paper",
        example: "paper",
        read: mode,
        steps: Steps::Modes,
        ..row(Knob::Mode, "mode", "mode", Scope::Decision)
    },
    epsilon(Knob::EpsilonFlag, "privacy.epsilon_flag", "ε flags", Scope::Releases),
    epsilon(Knob::EpsilonC, "privacy.epsilon_c", "ε x̂_c", Scope::Training),
    epsilon(Knob::EpsilonA, "privacy.epsilon_a", "ε x_a", Scope::Training),
    epsilon(Knob::EpsilonG, "privacy.epsilon_g", "ε gradient", Scope::Training),
    Row {
        expected: "a number above 0 and below 0.1",
        example: "1e-5",
        read: |value| number(value, |n| n > 0.0 && n < 0.1),
        steps: Steps::Numbers(DELTAS),
        ..row(Knob::Delta, "privacy.delta", "δ", Scope::Releases)
    },
    Row {
        expected: BUDGET,
        example: "500",
        read: |value| number_or_none(value, |n| n > 0.0),
        steps: Steps::NumbersOrNone(BUDGETS),
        ..row(Knob::Budget, "privacy.budget", "ε budget", Scope::Releases)
    },
    Row {
        expected: EPSILON_A,
        ..epsilon(Knob::EpsilonFlagA, "privacy.epsilon_flag_a", "ε Z_a", Scope::Releases)
    },
];

/// A value that a knob cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unsettable {
    #[error("there is no setting called {0:?}")]
    Unknown(String),
    #[error("{what} cannot be {value}: expected {expected}")]
    Value { what: String, value: String, expected: &'static str },
}

impl Row {
    /// In facts, in the log and where it is typed.
    fn name(&self) -> &'static str {
        self.key.rsplit('.').next().unwrap_or(self.key)
    }
}

impl Knob {
    /// All knobs of a session with these clients, the common ones first.
    pub(crate) fn all(clients: usize) -> Vec<Self> {
        let own = (0..clients).flat_map(|m| [Self::TauC(Some(m)), Self::TauA(Some(m))]);
        TABLE.iter().map(|row| row.knob).chain(own).collect()
    }

    /// Its row of the table.
    pub(crate) fn row(self) -> &'static Row {
        let at = match self {
            Self::TauC(_) => 0,
            Self::TauA(_) => 1,
            Self::Vote => 2,
            Self::Deadband => 3,
            Self::Arl0 => 4,
            Self::Mode => 5,
            Self::EpsilonFlag => 6,
            Self::EpsilonC => 7,
            Self::EpsilonA => 8,
            Self::EpsilonG => 9,
            Self::Delta => 10,
            Self::Budget => 11,
            Self::EpsilonFlagA => 12,
        };
        &TABLE[at]
    }

    /// The client that it belongs to, where it is one client's own.
    pub(crate) fn client(self) -> Option<usize> {
        match self {
            Self::TauC(client) | Self::TauA(client) => client,
            Self::Vote
            | Self::Deadband
            | Self::Arl0
            | Self::Mode
            | Self::EpsilonFlag
            | Self::EpsilonFlagA
            | Self::EpsilonC
            | Self::EpsilonA
            | Self::EpsilonG
            | Self::Delta
            | Self::Budget => None,
        }
    }

    /// The client and the place (τ_c or τ_a) of a client's own τ.
    pub(crate) fn own_tau(self) -> Option<(usize, usize)> {
        self.client().map(|client| (client, usize::from(self == Self::TauA(Some(client)))))
    }

    /// Whether turning it changes anything while this method decides, or what is shown of the other.
    pub(crate) fn matters_in(self, mode: Mode) -> bool {
        mode == Mode::Paper || !matches!(self, Self::Vote | Self::Deadband | Self::EpsilonFlagA)
    }

    /// Whether the method that decides goes by it.
    pub(crate) fn decides_in(self, mode: Mode) -> bool {
        let of_flags = Self::TauC(self.client()) == self
            || Self::TauA(self.client()) == self
            || !self.matters_in(mode);
        if mode == Mode::Paper { self != Self::Arl0 } else { !of_flags }
    }

    /// Its name in facts and in the log.
    pub(crate) fn name(self, clients: &[String]) -> String {
        self.of_client(self.row().name(), clients)
    }

    /// Its name on the screen.
    pub(crate) fn title(self, clients: &[String]) -> String {
        self.of_client(self.row().title, clients)
    }

    fn of_client(self, word: &str, clients: &[String]) -> String {
        match self.client().and_then(|client| clients.get(client)) {
            Some(name) => format!("{word} {name}"),
            None => word.to_owned(),
        }
    }

    pub(crate) fn named(name: &str, clients: &[String]) -> Option<Self> {
        Self::all(clients.len()).into_iter().find(|knob| knob.name(clients) == name)
    }

    /// This knob at a value of its kind.
    pub(crate) fn at(self, to: impl Into<KnobValue>) -> Turn {
        Turn { knob: self, to: to.into() }
    }

    /// This knob at `value`, if it can have it.
    pub(crate) fn turn(self, value: &Value, clients: &[String]) -> Result<Turn, Unsettable> {
        let row = self.row();
        let to = match (self.client(), value) {
            // A client goes by the common τ again.
            (Some(_), Value::Unset) => Some(KnobValue::None),
            _ => (row.read)(value),
        };
        to.map(|to| self.at(to)).ok_or_else(|| Unsettable::Value {
            what: self.name(clients),
            value: value.to_string(),
            expected: row.expected,
        })
    }
}

fn tau(value: &Value) -> Option<KnobValue> {
    let tau = match value {
        Value::Number(n) => Some(Tau::Value(n.get())).filter(|_| n.get() > 0.0),
        Value::Text(text) => {
            let percentile: f64 = text.strip_suffix('%')?.trim().parse().ok()?;
            (percentile > 0.0 && percentile < 100.0).then_some(Tau::Percentile(percentile))
        }
        Value::Unset | Value::Switch(_) => None,
    };
    tau.map(KnobValue::Tau)
}

fn vote(value: &Value) -> Option<KnobValue> {
    match value {
        Value::Unset => Some(KnobValue::None),
        Value::Text(text) => Vote::read(text).map(KnobValue::Vote),
        Value::Number(_) | Value::Switch(_) => None,
    }
}

fn mode(value: &Value) -> Option<KnobValue> {
    [Mode::Evidence, Mode::Paper]
        .map(KnobValue::Mode)
        .into_iter()
        .find(|m| Value::from(*m) == *value)
}

/// Without a dead-band a flag falls where it rose: at τ.
fn deadband(value: &Value) -> Option<KnobValue> {
    match value {
        Value::Unset => Some(KnobValue::Number(1.0)),
        Value::Number(_) | Value::Switch(_) | Value::Text(_) => {
            number(value, |n| (0.5..=1.0).contains(&n))
        }
    }
}

fn number(value: &Value, accepts: fn(f64) -> bool) -> Option<KnobValue> {
    match value {
        Value::Number(n) if accepts(n.get()) => Some(KnobValue::Number(n.get())),
        Value::Number(_) | Value::Unset | Value::Switch(_) | Value::Text(_) => None,
    }
}

fn number_or_none(value: &Value, accepts: fn(f64) -> bool) -> Option<KnobValue> {
    if *value == Value::Unset { Some(KnobValue::None) } else { number(value, accepts) }
}

macro_rules! knob_values {
    ($($kind:ident($from:ty), $get:ident;)*) => {
        $(impl From<$from> for KnobValue {
            fn from(value: $from) -> Self {
                Self::$kind(value)
            }
        }

        impl From<Option<$from>> for KnobValue {
            fn from(value: Option<$from>) -> Self {
                value.map_or(Self::None, Self::$kind)
            }
        })*

        impl KnobValue {
            $(pub(crate) fn $get(self) -> Option<$from> {
                if let Self::$kind(value) = self { Some(value) } else { None }
            })*
        }
    };
}

knob_values! {
    Tau(Tau), tau;
    Vote(Vote), vote;
    Number(f64), number;
    Mode(Mode), mode;
}

impl From<KnobValue> for Value {
    fn from(value: KnobValue) -> Self {
        let number = |n: f64| Number::new(n).map_or(Self::Unset, Self::Number);
        match value {
            KnobValue::None => Self::Unset,
            KnobValue::Tau(Tau::Percentile(percentile)) => Self::Text(format!("{percentile}%")),
            KnobValue::Tau(Tau::Value(distance)) => number(distance),
            KnobValue::Vote(vote) => Self::Text(vote.to_string()),
            KnobValue::Number(n) => number(n),
            KnobValue::Mode(Mode::Evidence) => Self::Text("evidence".into()),
            KnobValue::Mode(Mode::Paper) => Self::Text("paper".into()),
        }
    }
}

impl Turn {
    pub(crate) fn knob(self) -> Knob {
        self.knob
    }

    /// The value as facts have it.
    pub(crate) fn value(self) -> Value {
        self.to.into()
    }
}

/// The value as people read it: `97.5%`, `d² 3.2`, `3 of 5`, `8h`, `paper`, `none`.
impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.knob, self.to) {
            (Knob::TauC(_) | Knob::TauA(_), KnobValue::None) => f.write_str("as all"),
            (_, KnobValue::None) => f.write_str("none"),
            (_, KnobValue::Tau(Tau::Value(d))) => write!(f, "d² {d:.2}"),
            (Knob::Arl0, KnobValue::Number(seconds)) => write!(f, "{}", Span { seconds }),
            (Knob::Deadband, KnobValue::Number(share)) if share >= 1.0 => f.write_str("off"),
            (Knob::Delta, KnobValue::Number(delta)) => write!(f, "{delta:e}"),
            (
                _,
                KnobValue::Tau(_) | KnobValue::Vote(_) | KnobValue::Number(_) | KnobValue::Mode(_),
            ) => {
                write!(f, "{}", self.value())
            }
        }
    }
}
