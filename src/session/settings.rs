//! How a session is modelled, judged, protected and replayed: everything that has a default.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::bounds::CENTURY_S;
pub(crate) use super::privacy::PrivacySettings;

/// How often measurements come and how they are thinned before the filter.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Sampling {
    /// Seconds between two rows; found from the first rows when absent.
    pub(crate) period_s: Option<f64>,
    /// Block means before the filter.
    pub(crate) decimate: Decimation,
}

/// Block means over several samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum Decimation {
    /// The smallest of 1, 2, 5, 10, 30 whose calibration is calm enough.
    #[default]
    Auto,
    Every(u32),
}

/// Sizes and training of the models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ModelSettings {
    /// The proprietary model of every client that names none of its own.
    pub(crate) proprietary: Proprietary,
    /// State size P of the paper's filter.
    pub(crate) states: usize,
    /// Width of the transition LSTM f_m.
    pub(crate) transition_width: usize,
    /// Width of the measurement network h_m.
    pub(crate) measurement_width: usize,
    /// Width of the augmentation φ_m.
    pub(crate) augment_width: usize,
    /// φ begins as a small correction: its output layer is scaled by this. The paper says nothing of
    /// it, which is 1.
    pub(crate) augment_scale: f64,
    /// Width of the server's LSTM f_s.
    pub(crate) server_width: usize,
    /// Width of the centralised oracle's LSTM.
    pub(crate) oracle_width: usize,
    /// Process noise Q = q·I.
    pub(crate) q: f64,
    /// Measurement noise R = r·I, in standardised units.
    pub(crate) r: f64,
    /// Steps in a training window.
    pub(crate) window: usize,
    /// Windows in a batch.
    pub(crate) batch: usize,
    /// Passes over the fit range when a proprietary model is made.
    pub(crate) epochs: usize,
    /// Adam's step size.
    pub(crate) learning_rate: f64,
    /// How Algorithm 1 is run, and for how long.
    pub(crate) federation: Federation,
    /// Weight of the client's own loss, η1.
    pub(crate) eta1: f64,
    /// Weight of the server's gradient, η2.
    pub(crate) eta2: f64,
    /// Step size of the server, η3.
    pub(crate) eta3: f64,
    /// What turns a gradient into a step.
    pub(crate) optimiser: Optimiser,
    /// How long steps of online training stay as large as they begin.
    pub(crate) step_size: StepSize,
    /// Sensors that repeat another are watched too, as the paper does.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) repeated_sensors: bool,
    /// No key of a session: what `headwater study deviations` does as the paper prints it.
    #[serde(skip)]
    pub(crate) printed: &'static [Printed],
}

/// The paper's way where this program goes another and no session can choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Printed {
    /// Measurements enter the filter's update as they are.
    UnclippedUpdate,
    /// The gradient of a proprietary model keeps its norm.
    UnclippedGradient,
    /// That gradient flows through the gain K.
    GradientThroughGain,
    /// Every step of a window is in the loss, from the first.
    WholeWindow,
    /// f is a function of the state alone: its memory is empty at every step.
    NoMemory,
    /// H at the estimate of the step before.
    EarlierJacobian,
}

impl ModelSettings {
    /// The federation as the paper's appendix describes it: φ of width 1, one pass of Algorithm 1, a
    /// constant step size. Sessions named `-paper` have the same.
    pub(crate) fn federate_as_published(&mut self) {
        self.augment_width = 1;
        self.federation = Federation::Online { passes: 1 };
        self.step_size = StepSize::Constant;
    }

    pub(crate) fn is_printed(&self, way: Printed) -> bool {
        self.printed.contains(&way)
    }
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            proprietary: Proprietary::Residual,
            states: 2,
            transition_width: 16,
            measurement_width: 32,
            augment_width: 16,
            augment_scale: 0.1,
            server_width: 64,
            oracle_width: 128,
            q: 0.1,
            r: 0.1,
            window: 20,
            batch: 64,
            epochs: 10,
            learning_rate: 1e-3,
            federation: Federation::default(),
            eta1: 1.0,
            eta2: 1.0,
            eta3: 1e-3,
            optimiser: Optimiser::Adam,
            step_size: StepSize::Decaying,
            repeated_sensors: false,
            printed: &[],
        }
    }
}

/// Kinds of proprietary model: every vendor's differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum Proprietary {
    /// The paper's Extended Kalman Filter: LSTM transition, MLP measurement, few states.
    Paper,
    /// A filter in residual form with as many states as sensors; its states never leave the client.
    #[default]
    Residual,
    /// An own-lag linear front end with the paper's filter on what it leaves over.
    OwnLag,
    /// A linear predictor from the client's own last samples.
    Linear,
}

/// How Algorithm 1 is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum Federation {
    /// Step by step as printed, one round per row, so many passes over the fit range.
    Online {
        /// Passes over the fit range.
        passes: usize,
    },
    /// On batches of windows, with gradients through time; so many batches.
    Batched { rounds: usize },
}

impl Default for Federation {
    fn default() -> Self {
        Self::Online { passes: 8 }
    }
}

/// What turns a gradient into a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum Optimiser {
    /// Adam; η1 and η2 act as weights of the two losses.
    #[default]
    Adam,
    /// Plain gradient descent with η1, η2, η3 as printed in the paper.
    Sgd,
}

/// The step size along online training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum StepSize {
    /// Constant for the first half of all rounds, then falling in a straight line to a fiftieth.
    #[default]
    Decaying,
    /// The same to the end, as the theorems of the paper ask for.
    Constant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum Mode {
    /// Whitened residuals, graded symbols, a sequential decision at a chosen false-alarm rate.
    #[default]
    Evidence,
    /// The published method: flags at a percentile and the look-up table.
    Paper,
}

impl Mode {
    /// Its name for a reader.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Evidence => "evidence",
            Self::Paper => "paper",
        }
    }
}

/// When a residual counts as anomalous.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Thresholds {
    /// τ_c of the proprietary model.
    pub(crate) tau_c: Tau,
    /// τ_a of the augmented model.
    pub(crate) tau_a: Tau,
    /// Paper mode: declare only when `k` of the last `n` steps agree.
    pub(crate) vote: Option<Vote>,
    /// Paper mode: a raised flag falls only below this share of τ, 0.5 to 1. At 1 it falls as soon
    /// as it is not above τ, which is the published rule.
    pub(crate) deadband: f64,
    /// Evidence mode: wanted time between two false alarms, such as "1d" or "8h".
    pub(crate) arl0: Span,
    /// Evidence mode: what leaves a client while it is watched.
    pub(crate) tier: Tier,
    /// Evidence mode: stretches of the calibration that look abnormal are set aside, for clients that
    /// are insensitive with them. A rare stretch may be normal: when it comes back it raises an alarm.
    /// Written only where it says something, so that the facts of older sessions stay.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) set_aside: bool,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            tau_c: Tau::default(),
            tau_a: Tau::default(),
            vote: None,
            deadband: 1.0,
            arl0: Span { seconds: 86_400.0 },
            tier: Tier::default(),
            set_aside: false,
        }
    }
}

/// What leaves a client while it is watched in evidence mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum Tier {
    /// One graded symbol a step.
    #[default]
    Symbols,
    /// Two symbols and a few numbers of its state, for a server that may see states: what one other
    /// client explains is taken out of its residual before the second symbol is made. An alarm that
    /// is explained is held back as long as no other client alarms; roots are named as without states.
    /// So a client that lies about its states can hide what it explains, but makes no other client the
    /// root. For
    /// up to 16 clients.
    States,
}

impl Tier {
    /// Relating the states of all clients with each other grows with their square.
    pub(crate) const MOST_CLIENTS: usize = 16;
}

/// A threshold on the Mahalanobis distance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Tau {
    /// This percentile of the calibration distances.
    Percentile(f64),
    Value(f64),
}

impl Default for Tau {
    fn default() -> Self {
        Self::Percentile(95.0)
    }
}

/// A k-of-n vote, written "3 of 5" where it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vote {
    /// At least so many …
    pub(crate) k: u32,
    /// … of the last so many.
    pub(crate) n: u32,
}

impl Vote {
    /// Steps that a vote can look back at.
    const LONGEST: u32 = 1000;

    /// Whether it can be met within a sensible horizon.
    pub(crate) fn is_sound(self) -> bool {
        self.k >= 1 && self.k <= self.n && self.n <= Self::LONGEST
    }

    /// From "3 of 5" or "3/5".
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (k, n) = text.split_once("of").or_else(|| text.split_once('/'))?;
        let vote = Self { k: k.trim().parse().ok()?, n: n.trim().parse().ok()? };
        vote.is_sound().then_some(vote)
    }
}

impl std::fmt::Display for Vote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.k, self.n)
    }
}

/// A length of time, written "30s", "5m", "8h" or "1d".
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Span {
    pub(crate) seconds: f64,
}

impl Span {
    /// A hundred years. Sums of a longer time and an instant would leave the calendar.
    pub(crate) const LONGEST: Self = Self { seconds: CENTURY_S };

    /// Reads a length of time without asking whether it is too long.
    pub(super) fn of_any_length(text: &str) -> Option<Self> {
        let unit = text.chars().last()?;
        let factor = match unit {
            's' => 1.0,
            'm' => 60.0,
            'h' => 3600.0,
            'd' => 86_400.0,
            _ => return None,
        };
        let number: f64 = text[..text.len() - 1].trim().parse().ok()?;
        (number.is_finite() && number >= 0.0).then_some(Self { seconds: number * factor })
    }

    /// Whether it is longer than [`Span::LONGEST`].
    pub(super) fn is_too_long(self) -> bool {
        self.seconds > Self::LONGEST.seconds
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let Some(span) = Self::of_any_length(&text) else {
            return Err(format!(
                "expected a length of time such as \"30s\", \"8h\" or \"1d\", found {text:?}"
            ));
        };
        if span.is_too_long() {
            let longest = Self::LONGEST;
            return Err(format!("expected a length of time up to {longest}, found {text:?}"));
        }
        Ok(span)
    }
}

impl From<Span> for String {
    fn from(span: Span) -> String {
        span.to_string()
    }
}

/// In its largest unit that leaves nothing over.
impl std::fmt::Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let units = [('d', 86_400.0), ('h', 3600.0), ('m', 60.0)];
        let whole = |(_, factor): &(char, f64)| {
            self.seconds >= *factor && (self.seconds / factor).fract() == 0.0
        };
        let (unit, factor) = units.into_iter().find(whole).unwrap_or(('s', 1.0));
        write!(f, "{}{unit}", self.seconds / factor)
    }
}

/// How recorded data is played.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ReplaySettings {
    /// Data seconds per second of the wall clock.
    pub(crate) speed: f64,
    /// Where playing begins inside the replay range; its start when absent.
    pub(crate) from: Option<super::Mark>,
    /// How long after the end of a labelled event an alarm still belongs to it.
    pub(crate) tail: Span,
}

impl Default for ReplaySettings {
    fn default() -> Self {
        Self { speed: 60.0, from: None, tail: Span { seconds: 300.0 } }
    }
}

/// What a recording of a session holds beside what is always stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RecordSettings {
    /// The measurements too: a reader of the file has them.
    pub(crate) measurements: bool,
    /// How large its file may become, in MB; 512 when absent. Beyond that the oldest goes.
    pub(crate) most_mb: Option<NonZeroU32>,
}

/// How much preparing a session may take. What is estimated to take more is refused before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Limits {
    /// Memory in GB; what the machine has to spare when absent.
    pub(crate) memory_gb: Option<f64>,
    /// Hours of processor time; 12 when absent.
    pub(crate) preparation_h: Option<f64>,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::session::Session;

    #[test]
    fn without_a_word_about_it_paper_mode_is_as_published() {
        let thresholds = Thresholds::default();
        assert_eq!(thresholds.vote, None);
        assert!((thresholds.deadband - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn a_vote_is_read_as_it_is_written_and_a_dead_band_is_a_share_of_tau() {
        let vote = Vote { k: 3, n: 5 };
        assert_eq!(Vote::read(&vote.to_string()), Some(vote));
        assert_eq!([Vote::read("5 of 3"), Vote::read("3"), Vote::read("0 of 5")], [None; 3]);
        let with = |deadband: &str| {
            let text = format!(
                "Session(about: \"x\", source: Plant(), thresholds: (deadband: {deadband}))"
            );
            Session::parse("test", Path::new(""), &text).map(|_| ()).map_err(|e| format!("{e:?}"))
        };
        assert_eq!(with("0.9"), Ok(()));
        for wrong in ["0.4", "1.1"] {
            let why = with(wrong).expect_err("no share to fall at");
            assert!(why.contains("expected 0.5 to 1 of τ"), "{why}");
        }
    }
}
