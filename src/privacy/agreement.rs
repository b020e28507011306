//! A session's privacy settings as mechanisms, releasers and terms of ledgers.

use super::PrivacyError;
use super::budget::{Budget, Terms};
use super::memory::{FilterMemory, Known};
use super::randomness::{Provenance, Randomness};
use super::releaser::Releaser;
use super::sparse_vector::SparseVectorParams;
use crate::session::Session;
use crate::session::privacy::{PrivacySettings, SendPolicy};

/// A move of a filter's state below this share of the first one is taken not to turn a symbol.
const RESOLUTION: f64 = 0.1;

impl Provenance {
    /// Where a session's noise comes from: measurements of a real plant are protected by the
    /// operating system's, unless a seed was asked for.
    pub(crate) fn of(session: &Session) -> Self {
        if session.is_seeded() { Self::Seeded } else { Self::OperatingSystem }
    }
}

/// The contraction that is taken where none is declared and none could be measured.
const USUAL: f64 = 0.9;

impl FilterMemory {
    /// What the ledger of one client goes by: what was measured, or what the session declares where
    /// that is longer. A declared contraction that the client's own models are seen to break is not
    /// believed. Symbols look back `lags` further steps.
    pub(crate) fn of(
        settings: &PrivacySettings,
        measured: Option<Self>,
        lags: u64,
    ) -> Result<Self, PrivacyError> {
        let stride = if let SendPolicy::Window(steps) = settings.send { steps } else { 1 };
        let declared = settings
            .contraction
            .map(|contraction| Self::new(contraction, 1.0, RESOLUTION))
            .transpose()?;
        let memory = match (declared, measured) {
            (Some(declared), Some(measured)) if measured.outlasts(&declared) => measured,
            (Some(declared), _) => declared,
            (None, Some(measured)) => measured,
            (None, None) => Self::new(USUAL, 1.0, RESOLUTION)?.known_as(Known::Assumed),
        };
        Ok(memory.behind(lags, stride))
    }

    /// The memory that covers the moves that were measured.
    pub(crate) fn measured(moves: &[f64]) -> Result<Self, PrivacyError> {
        Self::covering(moves, RESOLUTION)
    }
}

impl Terms {
    /// The terms that one client's ledger is kept by.
    pub(crate) fn of(
        settings: &PrivacySettings,
        measured: Option<FilterMemory>,
        lags: u64,
    ) -> Result<Self, PrivacyError> {
        Self {
            delta: settings.delta,
            memory: FilterMemory::of(settings, measured, lags)?,
            budget: settings.budget.map(Budget::try_from).transpose()?,
        }
        .checked()
    }
}

impl SparseVectorParams {
    /// The watch of a session whose false alarms are to be `arl0_steps` apart.
    pub(crate) fn of(settings: &PrivacySettings, arl0_steps: f64) -> Self {
        let watch = settings.watch;
        Self { epsilon: watch.epsilon, burst: watch.burst, quiet_steps: arl0_steps }
    }
}

impl Releaser {
    /// The releaser of one client for graded symbols (evidence mode).
    pub(crate) fn for_symbols(
        settings: &PrivacySettings,
        levels: u8,
        arl0_steps: f64,
        random: Randomness,
    ) -> Result<Self, PrivacyError> {
        let watch = SparseVectorParams::of(settings, arl0_steps);
        Self::new(settings.epsilon_flag, levels, settings.send, watch, random)
    }

    /// The releaser of one client for flags (paper mode, which sends at every step).
    pub(crate) fn for_flags(
        settings: &PrivacySettings,
        arl0_steps: f64,
        random: Randomness,
    ) -> Result<Self, PrivacyError> {
        let watch = SparseVectorParams::of(settings, arl0_steps);
        let mut releaser =
            Self::new(settings.epsilon_flag, 2, SendPolicy::EveryStep, watch, random)?;
        releaser.set_epsilon_a(settings.epsilon_flag_a)?;
        Ok(releaser)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::privacy::{AtZero, BudgetSettings, Scope};

    fn session(source: &str) -> Session {
        let text = format!("Session(about: \"x\", source: {source})");
        Session::parse("x", std::path::Path::new(""), &text).expect("a sound session")
    }

    #[test]
    fn noise_about_real_data_is_the_operating_system_s_unless_a_seed_is_asked_for() {
        assert_eq!(Provenance::of(&session("Twin()")), Provenance::Seeded);
        let files = "ranges: (fit: (files: [\"a\"]), calibration: (files: [\"b\"]), replay: (files: \
                     [\"c\"]))";
        let text = format!(
            "Session(about: \"x\", source: Hai(version: \"22.04\", data: \"d\"), {files}, seed: 3)"
        );
        let mut real = Session::parse("x", std::path::Path::new(""), &text).expect("sound");
        assert_eq!(Provenance::of(&real), Provenance::OperatingSystem);
        real.set_seed(3);
        assert_eq!(Provenance::of(&real), Provenance::Seeded);
    }

    #[test]
    fn settings_become_terms() {
        let settings = PrivacySettings {
            epsilon_flag: Some(1.0),
            send: SendPolicy::Window(44),
            budget: Some(BudgetSettings {
                epsilon: 9.0,
                over: Scope::Hour,
                at_zero: AtZero::AlarmsOnly { reserve: 2.0 },
            }),
            ..PrivacySettings::default()
        };
        let terms = Terms::of(&settings, None, 5).unwrap();
        // After 22 steps and five lags less than a tenth of a sample is left: within one window.
        assert_eq!((terms.memory.later_symbols(), terms.memory.known()), (1, Known::Assumed));
        let every = PrivacySettings { send: SendPolicy::EveryStep, ..settings.clone() };
        assert_eq!(Terms::of(&every, None, 5).unwrap().memory.later_symbols(), 27);
        let budget = terms.budget.unwrap();
        assert_eq!(
            (budget.over, budget.at_zero),
            (Scope::Hour, AtZero::AlarmsOnly { reserve: 2.0 })
        );
    }

    #[test]
    fn a_declared_memory_is_believed_unless_the_models_show_a_longer_one() {
        let fading = |contraction: f64| -> Option<FilterMemory> {
            let moves: Vec<f64> = (0..200).map(|k| contraction.powi(k)).collect();
            FilterMemory::measured(&moves).ok()
        };
        let gone = |declared: Option<f64>, measured: Option<FilterMemory>| {
            let settings = PrivacySettings { contraction: declared, ..PrivacySettings::default() };
            let memory = FilterMemory::of(&settings, measured, 0).unwrap();
            (memory.known(), (100.0 * memory.contraction()).round() as u32)
        };
        assert_eq!(gone(Some(0.95), fading(0.8)), (Known::Declared, 95));
        assert_eq!(gone(Some(0.5), fading(0.8)), (Known::Measured, 80));
        assert_eq!(gone(None, fading(0.8)), (Known::Measured, 80));
        assert_eq!(gone(None, None), (Known::Assumed, 90));
        assert_eq!(gone(Some(0.5), Some(FilterMemory::ENDLESS)), (Known::Measured, 100));
    }
}
