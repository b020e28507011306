//! Values of facts: numbers that exist, and what a setting can be.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::session::settings::Span;

/// A finite number. Neither NaN nor infinity has a place in a line of JSON, so neither has a place
/// here.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub(crate) struct Number(f64);

/// A number that is NaN or infinite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a finite number")]
pub(crate) struct NotFinite;

impl Number {
    /// The number, if it is one. −0 is 0: both would be the same fact in different bytes.
    pub(crate) fn new(value: f64) -> Option<Self> {
        value.is_finite().then_some(Self(value + 0.0))
    }

    /// The number, or zero in place of what is none.
    pub(crate) fn or_zero(value: f64) -> Self {
        Self::new(value).unwrap_or_default()
    }

    pub(crate) fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Number {
    type Error = NotFinite;

    fn try_from(value: f64) -> Result<Self, NotFinite> {
        Self::new(value).ok_or(NotFinite)
    }
}

impl From<Number> for f64 {
    fn from(number: Number) -> Self {
        number.0
    }
}

/// The value of a setting.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Value {
    #[default]
    Unset,
    Switch(bool),
    Number(Number),
    Text(String),
}

impl Value {
    /// The value of the setting `what` as people read it: a wanted time between false alarms is a
    /// length of time, and what is not set is none.
    pub(crate) fn words(&self, what: &str) -> String {
        match self {
            Self::Number(number) if what == "arl0" => Span { seconds: number.0 }.to_string(),
            Self::Unset => "none".to_owned(),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset => f.write_str("–"),
            Self::Switch(true) => f.write_str("on"),
            Self::Switch(false) => f.write_str("off"),
            Self::Number(number) => write!(f, "{}", number.0),
            Self::Text(text) => f.write_str(text),
        }
    }
}
