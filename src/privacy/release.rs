//! What may be released, and the only ways by which it becomes releasable.
//!
//! ```text
//! Estimate, Flag, Symbol, Faults, Ranks ──mechanism──► Guarded<T> ──Ledger::enter──► Released<T> ──► a message
//! ```
//!
//! A message takes [`Released`] values only. Nothing but a ledger makes one, and a ledger takes
//! nothing but a [`Guarded`] value with the price its mechanism put on it; or, in training, a
//! [`Channel`](super::Channel), which counts what it releases under one price. A row of measurements
//! has no way to either. An unprotected value costs ε = ∞ ([`Unprotected`]).

use serde::{Deserialize, Serialize};

use super::PrivacyError;
use super::randomness::Provenance;

/// A model's numbers (a state or a gradient) on the way to a mechanism.
///
/// It borrows, cannot be copied out of, and is not [`Serialize`]: it cannot leave by accident. Only
/// a site makes one of a state and only the server one of a gradient; `tests/architecture.rs` holds
/// the crate to it, and nobody outside the crate can make one.
#[derive(Debug)]
pub(crate) struct Estimate<'a>(&'a [f64]);

impl<'a> Estimate<'a> {
    /// A model's state, `x̂_c` or `x_a`.
    pub(crate) fn of_state(state: &'a [f64]) -> Self {
        Self(state)
    }

    /// The gradient that the server returns.
    pub(crate) fn of_gradient(gradient: &'a [f64]) -> Self {
        Self(gradient)
    }

    pub(super) fn values(&self) -> &[f64] {
        self.0
    }
}

/// The released form of an [`Estimate`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Numbers(Vec<f64>);

impl Numbers {
    pub(super) fn new(values: Vec<f64>) -> Self {
        Self(values)
    }

    /// The same numbers after `change`, which sees nothing but them.
    pub(super) fn restored(mut self, change: impl FnOnce(&mut [f64])) -> Self {
        change(&mut self.0);
        self
    }

    pub(crate) fn as_slice(&self) -> &[f64] {
        &self.0
    }
}

/// A binary anomaly flag, `Z_c` or `Z_a`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Flag(pub(crate) bool);

/// A graded symbol, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Symbol(pub(crate) u8);

/// An armed watch was looked at and not raised: silence that the arming has paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Quiet;

/// Which kinds of fault the sensors of a client have at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Faults {
    /// A sensor sends nothing.
    pub(crate) gap: bool,
    /// A sensor that should move does not.
    pub(crate) flat_line: bool,
    /// A value that its sensor cannot have.
    pub(crate) out_of_range: bool,
}

/// The sensors of a client that deviate most, the first one first: places in the client's columns.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Ranks(pub(crate) Vec<u16>);

/// What a release was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum What {
    /// `x̂_c`, the proprietary model's state.
    #[serde(rename = "x_c")]
    ProprietaryState,
    /// `x_a`, the augmented state.
    #[serde(rename = "x_a")]
    AugmentedState,
    /// g, the server's gradient.
    #[serde(rename = "g")]
    Gradient,
    /// `Z_c`, the proprietary model's flag.
    #[serde(rename = "z_c")]
    ProprietaryFlag,
    /// `Z_a`, the augmented model's flag.
    #[serde(rename = "z_a")]
    AugmentedFlag,
    #[serde(rename = "symbol")]
    Symbol,
    /// How far a step lies beyond the highest grade.
    #[serde(rename = "severity")]
    Severity,
    /// That a noised local statistic is still below its noised threshold, or no longer.
    #[serde(rename = "watch")]
    Watch,
    /// Which sensors deviate most.
    #[serde(rename = "sensors")]
    Sensors,
    /// That sensors are themselves at fault.
    #[serde(rename = "faults")]
    Faults,
    /// How a client's symbols were distributed in calibration.
    #[serde(rename = "enrolment")]
    Enrolment,
}

impl What {
    /// Whether it is computed from values that were released already: it tells nothing more about
    /// anybody, and costs nothing more (post-processing), with or without noise of its own.
    pub(crate) fn is_derived(self) -> bool {
        self == Self::Gradient
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::ProprietaryState => "x̂_c",
            Self::AugmentedState => "x_a",
            Self::Gradient => "g",
            Self::ProprietaryFlag => "Z_c",
            Self::AugmentedFlag => "Z_a",
            Self::Symbol => "symbol",
            Self::Severity => "severity",
            Self::Watch => "watch",
            Self::Sensors => "sensors",
            Self::Faults => "faults",
            Self::Enrolment => "enrolment",
        }
    }
}

/// What one release costs, as far as composition needs to know it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mechanism", rename_all = "kebab-case")]
pub(crate) enum Spend {
    /// Normal noise of standard deviation σ on a query of L2 sensitivity Δ.
    Gaussian {
        /// Δ: the most that one sample can move the query.
        sensitivity: f64,
        sigma: f64,
    },
    /// Randomised response.
    Response {
        /// ε of one answer.
        epsilon: f64,
        symbols: u8,
    },
    /// A noised threshold on a noised statistic, for as long as it stays below.
    AboveThreshold {
        /// ε of one arming, however long it lasts.
        epsilon: f64,
    },
    /// No protection.
    Clear,
}

impl Spend {
    /// μ = Δ/σ when the mechanism is Gaussian.
    pub(crate) fn strength(&self) -> Option<f64> {
        match *self {
            Self::Gaussian { sensitivity, sigma } => Some(sensitivity / sigma),
            _ => None,
        }
    }

    /// ε when the mechanism is ε-private without any δ.
    pub(crate) fn pure_epsilon(&self) -> Option<f64> {
        match *self {
            Self::Response { epsilon, .. } | Self::AboveThreshold { epsilon } => Some(epsilon),
            Self::Clear => Some(f64::INFINITY),
            Self::Gaussian { .. } => None,
        }
    }

    /// Whether the numbers could have come from a mechanism: what is read from a file may not.
    pub(crate) fn is_sound(&self) -> bool {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        match *self {
            Self::Gaussian { sensitivity, sigma } => positive(sensitivity) && positive(sigma),
            Self::Response { epsilon, symbols } => positive(epsilon) && symbols >= 2,
            Self::AboveThreshold { epsilon } => positive(epsilon),
            Self::Clear => true,
        }
    }

    /// The zero-concentrated cost ρ: μ²/2, or ε²/2 for an ε-private mechanism.
    pub(crate) fn rho(&self) -> f64 {
        let strength = self.strength().or(self.pure_epsilon()).unwrap_or(f64::INFINITY);
        0.5 * strength * strength
    }

    /// Whether two releases were made with the same settings. Settings that went through a
    /// file may come back with their last digit changed; that must not count as a new setting.
    pub(crate) fn same_setting(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Gaussian { sensitivity: d1, sigma: s1 },
                Self::Gaussian { sensitivity: d2, sigma: s2 },
            ) => near(*d1, *d2) && near(*s1, *s2),
            (
                Self::Response { epsilon: e1, symbols: k1 },
                Self::Response { epsilon: e2, symbols: k2 },
            ) => k1 == k2 && near(*e1, *e2),
            (Self::AboveThreshold { epsilon: e1 }, Self::AboveThreshold { epsilon: e2 }) => {
                near(*e1, *e2)
            }
            (Self::Clear, Self::Clear) => true,
            _ => false,
        }
    }
}

/// Whether two settings are the same up to the last digits; ∞ is near to itself alone.
pub(super) fn near(a: f64, b: f64) -> bool {
    a.total_cmp(&b).is_eq() || (a - b).abs() <= 1e-12 * a.abs().min(b.abs())
}

/// A value with its price, made by a mechanism; not yet entered in a ledger, so not yet sendable.
#[derive(Debug)]
#[must_use = "noise drawn and not entered in a ledger is lost"]
pub(crate) struct Guarded<T> {
    pub(super) value: T,
    pub(super) spend: Spend,
    pub(super) provenance: Provenance,
}

impl<T> Guarded<T> {
    pub(super) fn new(value: T, spend: Spend, provenance: Provenance) -> Self {
        Self { value, spend, provenance }
    }

    #[cfg(test)]
    pub(crate) fn spend(&self) -> Spend {
        self.spend
    }
}

/// A value that a ledger has accounted for: the only thing a message can be made of.
///
/// It is [`Serialize`] and not `Deserialize`: bytes that arrive are for the receiver's own type.
/// Nobody outside can make one:
///
/// ```compile_fail,E0624
/// use headwater::test_api::{Provenance, Released};
/// fn hand_out(released: Released<f64>, measured: f64) -> Released<f64> {
///     Released::new(measured, Provenance::OperatingSystem)
/// }
/// ```
///
/// One that was released can be handed on:
///
/// ```
/// use headwater::test_api::{Provenance, Released};
/// fn hand_out(released: Released<f64>, measured: f64) -> Released<f64> {
///     released
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Released<T> {
    value: T,
    provenance: Provenance,
}

impl<T> Released<T> {
    /// For the ledger alone, once it has written the price down.
    pub(super) fn new(value: T, provenance: Provenance) -> Self {
        Self { value, provenance }
    }

    pub(crate) fn value(&self) -> &T {
        &self.value
    }

    pub(crate) fn into_value(self) -> T {
        self.value
    }
}

impl Released<Numbers> {
    /// Puts other numbers in the place of those already sent, as they are, without allocating.
    pub(super) fn refill(&mut self, values: &[f64]) -> Result<(), PrivacyError> {
        if let Some(place) = values.iter().position(|x| !x.is_finite()) {
            return Err(PrivacyError::NotFinite { place });
        }
        self.value.0.clear();
        self.value.0.extend_from_slice(values);
        Ok(())
    }
}

impl<T: Serialize> Serialize for Released<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

/// Values that may be released without protection. Every ledger that takes one stands at ε = ∞ from
/// then on.
///
/// Only this crate can say so of a type: a measurement has no such type.
pub(crate) trait Unprotected: Sized {
    /// The form in which it is sent.
    type Sent;

    /// The form in which it is sent, unprotected.
    fn sent(self) -> Self::Sent;

    /// The value without any protection, priced accordingly. No noise is drawn, so its source cannot
    /// be wrong; ε = ∞ says all there is to say.
    fn unprotected(self) -> Guarded<Self::Sent> {
        Guarded::new(self.sent(), Spend::Clear, Provenance::OperatingSystem)
    }
}

impl Unprotected for Estimate<'_> {
    type Sent = Numbers;

    fn sent(self) -> Numbers {
        Numbers(self.0.to_vec())
    }
}

macro_rules! sent_as_it_is {
    ($($kind:ty),*) => {$(
        impl Unprotected for $kind {
            type Sent = Self;

            fn sent(self) -> Self {
                self
            }
        }
    )*};
}

sent_as_it_is!(Flag, Symbol, Faults, Ranks);
