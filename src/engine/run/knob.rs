//! What can be tuned while a session runs, by the names that facts and the log know.

use std::fmt;

use crate::fact::{Number, Value};
use crate::session::{Mode, Tau, Vote};

/// Something that can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Knob {
    /// τ_c of every client that has none of its own, or of one.
    TauC(Option<usize>),
    /// τ_a, likewise.
    TauA(Option<usize>),
    /// Of how many steps so many have to name a root, in paper mode.
    Vote,
    /// The share of τ below which a raised flag falls, in paper mode.
    Deadband,
    /// Wanted time between two false alarms in evidence mode.
    Arl0,
    Mode,
    /// ε of each flag or symbol.
    EpsilonFlag,
    /// ε of each x̂_c, from the next training on.
    EpsilonC,
    /// ε of each x_a, from the next training on.
    EpsilonA,
    /// ε of each gradient, from the next training on.
    EpsilonG,
    /// δ of the Gaussian mechanisms and of every composed ε.
    Delta,
    /// ε that every client may spend, over the session's stretch of time.
    Budget,
}

/// A knob with the value it is to have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Turn {
    /// τ_c; none takes a client's own away.
    TauC(Option<usize>, Option<Tau>),
    /// τ_a, likewise.
    TauA(Option<usize>, Option<Tau>),
    /// k of n; none lets every step speak for itself.
    Vote(Option<Vote>),
    /// A share of τ; 1 is none.
    Deadband(f64),
    Arl0(f64),
    Mode(Mode),
    /// ε; none is no protection.
    EpsilonFlag(Option<f64>),
    /// ε.
    EpsilonC(Option<f64>),
    /// ε.
    EpsilonA(Option<f64>),
    /// ε.
    EpsilonG(Option<f64>),
    /// δ.
    Delta(f64),
    /// ε; none is no end.
    Budget(Option<f64>),
}

/// A value that a knob cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unsettable {
    #[error("there is no setting called {0:?}")]
    Unknown(String),
    #[error("{what} cannot be {value}: expected {expected}")]
    Value {
        what: String,
        /// What was asked for.
        value: String,
        /// What it can be.
        expected: &'static str,
    },
}

const TAU: &str =
    "a percentile such as \"97.5%\", above 0 and below 100, or a squared distance above 0";
const VOTE: &str = "a vote such as \"3 of 5\", of up to 1000, or nothing for none";
const DEADBAND: &str = "a share of τ from 0.5 to 1, or nothing for none";
const EPSILON: &str = "a number above 0 and at most 100, or nothing for no protection";
const BUDGET: &str = "a number above 0, or nothing for no budget";

impl Knob {
    /// All knobs of a session with these clients, the common ones first.
    pub(crate) fn all(clients: usize) -> Vec<Self> {
        let common = [
            Self::TauC(None),
            Self::TauA(None),
            Self::Vote,
            Self::Deadband,
            Self::Arl0,
            Self::Mode,
            Self::EpsilonFlag,
            Self::EpsilonC,
            Self::EpsilonA,
            Self::EpsilonG,
            Self::Delta,
            Self::Budget,
        ];
        let own = (0..clients).flat_map(|m| [Self::TauC(Some(m)), Self::TauA(Some(m))]);
        common.into_iter().chain(own).collect()
    }

    /// Whether it decides about flags, so that those of the whole run so far change with it.
    pub(crate) fn judges_flags(self) -> bool {
        matches!(self, Self::TauC(_) | Self::TauA(_) | Self::Deadband)
    }

    /// Whether turning it changes anything while this method decides, or what is shown of the other.
    pub(crate) fn matters_in(self, mode: Mode) -> bool {
        mode == Mode::Paper || !matches!(self, Self::Vote | Self::Deadband)
    }

    /// Its name in facts and in the log.
    pub(crate) fn name(self, clients: &[String]) -> String {
        let of = |what: &str, client: Option<usize>| match client.and_then(|m| clients.get(m)) {
            Some(name) => format!("{what} {name}"),
            None => what.to_owned(),
        };
        match self {
            Self::TauC(client) => of("tau_c", client),
            Self::TauA(client) => of("tau_a", client),
            Self::Vote => "vote".into(),
            Self::Deadband => "deadband".into(),
            Self::Arl0 => "arl0".into(),
            Self::Mode => "mode".into(),
            Self::EpsilonFlag => "epsilon_flag".into(),
            Self::EpsilonC => "epsilon_c".into(),
            Self::EpsilonA => "epsilon_a".into(),
            Self::EpsilonG => "epsilon_g".into(),
            Self::Delta => "delta".into(),
            Self::Budget => "budget".into(),
        }
    }

    /// The knob of that name.
    pub(crate) fn named(name: &str, clients: &[String]) -> Option<Self> {
        Self::all(clients.len()).into_iter().find(|knob| knob.name(clients) == name)
    }

    /// This knob at `value`, if it can have it.
    pub(crate) fn turn(self, value: &Value, clients: &[String]) -> Result<Turn, Unsettable> {
        let refuse = |expected| Unsettable::Value {
            what: self.name(clients),
            value: value.to_string(),
            expected,
        };
        let epsilon = || match value {
            Value::Unset => Ok(None),
            Value::Number(n) if n.get() > 0.0 && n.get() <= 100.0 => Ok(Some(n.get())),
            _ => Err(refuse(EPSILON)),
        };
        let own_tau = |client: Option<usize>| match (client, value) {
            (Some(_), Value::Unset) => Ok(None),
            _ => tau(value).map(Some).ok_or_else(|| refuse(TAU)),
        };
        Ok(match self {
            Self::TauC(client) => Turn::TauC(client, own_tau(client)?),
            Self::TauA(client) => Turn::TauA(client, own_tau(client)?),
            Self::Vote => match value {
                Value::Unset => Turn::Vote(None),
                Value::Text(text) => {
                    Turn::Vote(Some(Vote::read(text).ok_or_else(|| refuse(VOTE))?))
                }
                _ => return Err(refuse(VOTE)),
            },
            Self::Deadband => match value {
                Value::Unset => Turn::Deadband(1.0),
                Value::Number(n) if (0.5..=1.0).contains(&n.get()) => Turn::Deadband(n.get()),
                _ => return Err(refuse(DEADBAND)),
            },
            Self::Arl0 => match value {
                Value::Number(n) if n.get() >= 1.0 => Turn::Arl0(n.get()),
                _ => return Err(refuse("seconds, at least 1")),
            },
            Self::Mode => match value {
                Value::Text(text) if text == "evidence" => Turn::Mode(Mode::Evidence),
                Value::Text(text) if text == "paper" => Turn::Mode(Mode::Paper),
                _ => return Err(refuse("evidence or paper")),
            },
            Self::EpsilonFlag => Turn::EpsilonFlag(epsilon()?),
            Self::EpsilonC => Turn::EpsilonC(epsilon()?),
            Self::EpsilonA => Turn::EpsilonA(epsilon()?),
            Self::EpsilonG => Turn::EpsilonG(epsilon()?),
            Self::Delta => match value {
                Value::Number(n) if n.get() > 0.0 && n.get() < 0.1 => Turn::Delta(n.get()),
                _ => return Err(refuse("a number above 0 and below 0.1")),
            },
            Self::Budget => match value {
                Value::Unset => Turn::Budget(None),
                Value::Number(n) if n.get() > 0.0 => Turn::Budget(Some(n.get())),
                _ => return Err(refuse(BUDGET)),
            },
        })
    }
}

/// A threshold from the words of a fact.
pub(crate) fn tau(value: &Value) -> Option<Tau> {
    match value {
        Value::Number(n) => Some(Tau::Value(n.get())).filter(|_| n.get() > 0.0),
        Value::Text(text) => {
            let percentile: f64 = text.strip_suffix('%')?.trim().parse().ok()?;
            (percentile > 0.0 && percentile < 100.0).then_some(Tau::Percentile(percentile))
        }
        Value::Unset | Value::Switch(_) => None,
    }
}

impl From<Tau> for Value {
    fn from(tau: Tau) -> Self {
        match tau {
            Tau::Percentile(percentile) => Self::Text(format!("{percentile}%")),
            Tau::Value(distance) => Number::new(distance).map_or(Self::Unset, Self::Number),
        }
    }
}

impl From<Mode> for Value {
    fn from(mode: Mode) -> Self {
        Self::Text(match mode {
            Mode::Evidence => "evidence".into(),
            Mode::Paper => "paper".into(),
        })
    }
}

impl Turn {
    /// The value as facts have it.
    pub(crate) fn value(self) -> Value {
        let number = |n: f64| Number::new(n).map_or(Value::Unset, Value::Number);
        match self {
            Self::TauC(_, tau) | Self::TauA(_, tau) => tau.map_or(Value::Unset, Value::from),
            Self::Vote(vote) => vote.map_or(Value::Unset, |vote| Value::Text(vote.to_string())),
            Self::Arl0(n) | Self::Delta(n) | Self::Deadband(n) => number(n),
            Self::Mode(mode) => mode.into(),
            Self::EpsilonFlag(e)
            | Self::EpsilonC(e)
            | Self::EpsilonA(e)
            | Self::EpsilonG(e)
            | Self::Budget(e) => e.map_or(Value::Unset, number),
        }
    }

    /// Whose value it is.
    pub(crate) fn knob(self) -> Knob {
        match self {
            Self::TauC(client, _) => Knob::TauC(client),
            Self::TauA(client, _) => Knob::TauA(client),
            Self::Vote(_) => Knob::Vote,
            Self::Deadband(_) => Knob::Deadband,
            Self::Arl0(_) => Knob::Arl0,
            Self::Mode(_) => Knob::Mode,
            Self::EpsilonFlag(_) => Knob::EpsilonFlag,
            Self::EpsilonC(_) => Knob::EpsilonC,
            Self::EpsilonA(_) => Knob::EpsilonA,
            Self::EpsilonG(_) => Knob::EpsilonG,
            Self::Delta(_) => Knob::Delta,
            Self::Budget(_) => Knob::Budget,
        }
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_knob_is_found_by_its_name_and_keeps_the_value_it_is_turned_to() {
        let clients = ["P1".to_owned(), "P2".to_owned()];
        let number = |n| Value::Number(Number::or_zero(n));
        for knob in Knob::all(clients.len()) {
            assert_eq!(Knob::named(&knob.name(&clients), &clients), Some(knob));
            let value = match knob {
                Knob::TauC(_) | Knob::TauA(_) => Value::Text("97.5%".into()),
                Knob::Mode => Value::Text("paper".into()),
                Knob::Vote => Value::Text("3 of 5".into()),
                Knob::Deadband => number(0.9),
                Knob::Delta => number(1e-6),
                _ => number(3.0),
            };
            let turn = knob.turn(&value, &clients).expect("a good value");
            assert_eq!((turn.value(), turn.knob()), (value, knob));
        }
    }

    #[test]
    fn a_threshold_is_any_percentile_that_a_session_may_name_or_a_distance() {
        for (text, percentile) in [("0.5%", 0.5), ("12 %", 12.0), ("99.999%", 99.999)] {
            assert_eq!(tau(&Value::Text(text.into())), Some(Tau::Percentile(percentile)));
        }
        assert_eq!(tau(&Value::Number(Number::or_zero(3.2))), Some(Tau::Value(3.2)));
    }

    #[test]
    fn a_value_that_makes_no_sense_is_refused_in_words() {
        let said = |knob: Knob, value: Value| {
            knob.turn(&value, &["P1".to_owned()]).expect_err("nonsense").to_string()
        };
        assert!(said(Knob::TauC(None), Value::Text("101%".into())).contains("percentile"));
        assert!(said(Knob::TauC(None), Value::Text("100%".into())).contains("below 100"));
        assert!(said(Knob::TauC(None), Value::Text("0%".into())).contains("above 0"));
        assert!(said(Knob::Vote, Value::Text("6 of 5".into())).contains("3 of 5"));
        assert!(said(Knob::Vote, Value::Text("0/5".into())).contains("3 of 5"));
        assert!(said(Knob::Deadband, Value::Number(Number::or_zero(0.4))).contains("0.5 to 1"));
        assert!(said(Knob::TauC(None), Value::Unset).contains("tau_c cannot be"));
        assert!(said(Knob::EpsilonFlag, Value::Number(Number::or_zero(-1.0))).contains("above 0"));
        assert!(said(Knob::Mode, Value::Text("magic".into())).contains("evidence or paper"));
        assert_eq!(Knob::named("tau", &[]), None);
    }
}
