//! The privacy settings of a session: how a client's values are protected.
//!
//! ```ron
//! privacy: (
//!     epsilon_flag: 2.0,
//!     symbol: OneBit,
//!     send: Window(12),
//!     budget: (epsilon: 200.0, over: Day, at_zero: AlarmsOnly(reserve: 60.0)),
//! )
//! ```

use serde::{Deserialize, Serialize};

/// What is added before a number leaves a client. Absent means: no noise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PrivacySettings {
    /// ε of each released x̂_c.
    pub(crate) epsilon_c: Option<f64>,
    /// ε of each released x_a.
    pub(crate) epsilon_a: Option<f64>,
    /// ε of each returned gradient.
    pub(crate) epsilon_g: Option<f64>,
    /// ε of each released flag or symbol.
    pub(crate) epsilon_flag: Option<f64>,
    /// ε of each released Z_a where it is another than that of Z_c (paper mode, Theorem 7.3); absent:
    /// both flags have `epsilon_flag`.
    pub(crate) epsilon_flag_a: Option<f64>,
    /// δ of the Gaussian mechanisms and of every composed ε.
    pub(crate) delta: f64,
    /// Public bound on a released state, in nominal standard deviations.
    pub(crate) clip_state: f64,
    /// Public bound on a gradient's norm.
    pub(crate) clip_gradient: f64,
    /// How σ follows from (ε, δ).
    pub(crate) sigma: Sigma,
    /// The share of a sample's effect on a filter that is still there one step later, as whoever
    /// knows the filter states it. It is measured as well, and the longer memory counts.
    pub(crate) contraction: Option<f64>,
    /// What a symbol can say (evidence mode).
    pub(crate) symbol: Alphabet,
    /// How often symbols are sent (evidence mode).
    #[serde(alias = "thrift")]
    pub(crate) send: SendPolicy,
    /// The private watch behind `send: WhileRaised` and a budget's `AlarmsOnly`.
    pub(crate) watch: WatchSettings,
    /// How much may be spent, and what happens then.
    pub(crate) budget: Option<BudgetSettings>,
    /// Whether a root cause may say which of its sensors deviate most.
    pub(crate) reveal_sensor: bool,
    /// Whether a client sends how severe the first and the third step of a burst are: it breaks ties between clients that
    /// are struck at once. Where the session declares who affects whom, that does. It is written only where
    /// it is asked for, so that older ledgers and models still fit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) tell_severity: bool,
    /// Whether a client whose symbols or flags are protected may say, unprotected, that its sensors are
    /// at fault. Without protection it always does.
    pub(crate) reveal_faults: bool,
}

impl PrivacySettings {
    /// Whether anything is protected.
    pub(crate) fn protects(&self) -> bool {
        let states = [self.epsilon_c, self.epsilon_a, self.epsilon_g];
        self.protects_flags() || states.iter().any(Option::is_some)
    }

    /// Whether noise hides symbols, or at least one of the flags.
    pub(crate) fn protects_flags(&self) -> bool {
        self.epsilon_flag.is_some() || self.epsilon_flag_a.is_some()
    }

    /// Whether clients send, unprotected, that their sensors are at fault.
    pub(crate) fn tells_faults(&self) -> bool {
        !self.protects_flags() || self.reveal_faults
    }
}

impl Default for PrivacySettings {
    fn default() -> Self {
        Self {
            epsilon_c: None,
            epsilon_a: None,
            epsilon_g: None,
            epsilon_flag: None,
            epsilon_flag_a: None,
            delta: 1e-5,
            clip_state: 5.0,
            clip_gradient: 1.0,
            sigma: Sigma::default(),
            contraction: None,
            symbol: Alphabet::default(),
            send: SendPolicy::default(),
            watch: WatchSettings::default(),
            budget: None,
            reveal_sensor: false,
            tell_severity: false,
            reveal_faults: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum Sigma {
    /// The least noise that gives (ε, δ), for every ε.
    #[default]
    Analytic,
    /// Theorems 7.1 and 7.2 as printed, with a public bound: unproved from ε = 1 on, and false for
    /// large ε.
    Classic,
}

/// What a symbol can say of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum Alphabet {
    /// How unusual it was, in five grades.
    #[default]
    Graded,
    /// Whether it was unusual: one bit. At a small ε it is more reliable than a grade.
    OneBit,
}

impl Alphabet {
    /// Different symbols there are.
    pub(crate) fn symbols(self) -> u8 {
        match self {
            Self::Graded => 5,
            Self::OneBit => 2,
        }
    }
}

/// How often symbols are sent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum SendPolicy {
    #[default]
    EveryStep,
    /// The strongest of so many steps.
    Window(u64),
    /// Only after a private local watch was raised.
    WhileRaised,
    /// One a step, about an answer that was drawn once for every level and is kept.
    Memoised {
        /// ε of that answer.
        permanent: f64,
    },
}

/// A private local watch: it says nothing until a noised CUSUM passes a noised threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WatchSettings {
    /// ε of one arming, however long it lasts.
    pub(crate) epsilon: f64,
    /// Symbols that follow when it is raised.
    pub(crate) burst: u64,
}

impl Default for WatchSettings {
    fn default() -> Self {
        Self { epsilon: 8.0, burst: 10 }
    }
}

/// How much may be spent over which stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BudgetSettings {
    /// ε at the session's δ.
    pub(crate) epsilon: f64,
    /// The stretch of time it is for.
    #[serde(default)]
    pub(crate) over: Scope,
    #[serde(default)]
    pub(crate) at_zero: AtZero,
}

/// A stretch of time to protect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub(crate) enum Scope {
    /// One sample, with all that the filter makes of it later.
    Sample,
    /// Any minute.
    Minute,
    /// Any hour.
    Hour,
    /// Any day.
    #[default]
    Day,
    /// The whole history, training included.
    Lifetime,
}

impl Scope {
    /// From the shortest to the longest.
    pub(crate) const ALL: [Self; 5] =
        [Self::Sample, Self::Minute, Self::Hour, Self::Day, Self::Lifetime];

    /// What is protected, in words.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Sample => "one sample",
            Self::Minute => "any minute",
            Self::Hour => "any hour",
            Self::Day => "any day",
            Self::Lifetime => "the whole history",
        }
    }

    /// Its length, where it has one.
    pub(crate) fn seconds(self) -> Option<f64> {
        match self {
            Self::Minute => Some(60.0),
            Self::Hour => Some(3600.0),
            Self::Day => Some(86_400.0),
            Self::Sample | Self::Lifetime => None,
        }
    }
}

/// What happens when a budget is gone.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum AtZero {
    /// Nothing more is sent.
    #[default]
    Stop,
    /// A release waits until older ones have left the stretch of time. A lifetime has no such end.
    Slower,
    /// What is sent at every step ends while `reserve` is left, which alarms may use up.
    AlarmsOnly {
        /// ε kept for alarms.
        reserve: f64,
    },
}
