//! Can a client's symbols be believed? Before arming: did its calibration agree with itself. Live:
//! do its symbols still look like those it was calibrated on, and are they symbols at all.

use serde::{Deserialize, Serialize};

use crate::evidence::cusum::MOST_ALARM_STEPS;
use crate::evidence::symbol::{LevelCounts, Symbol};

/// What a client's calibration looks like before it is armed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum CalibrationHealth {
    /// Both halves flag alike.
    Healthy,
    /// The halves flag at different rates: the data is not of one kind, or not nominal.
    HalvesDisagree {
        /// Share of elevated symbols in the first half.
        first: f64,
        /// In the second half.
        second: f64,
    },
    /// Shorter than one wanted time between false alarms: expect about three times as many.
    Short {
        steps: usize,
        /// Steps there should be.
        needed: usize,
    },
    /// No symbol at all.
    Empty,
}

/// Shares of elevated symbols may differ by this much whatever the length.
const AGREED: f64 = 0.03;
/// Beyond that, so many standard errors; steps are not quite independent.
const STANDARD_ERRORS: f64 = 5.0;

impl CalibrationHealth {
    /// Judges a calibration by how often each level occurred in either half, for a wanted ARL0 in
    /// steps; `elevated` is the first level that counts as such.
    pub(crate) fn judge([first, second]: [&LevelCounts; 2], elevated: usize, arl0: f64) -> Self {
        let (Some(p), Some(q)) = (first.share_from(elevated), second.share_from(elevated)) else {
            return Self::Empty;
        };
        let pooled = f64::midpoint(p, q);
        let error = (pooled * (1.0 - pooled) * (1.0 / first.total() + 1.0 / second.total())).sqrt();
        if (p - q).abs() > AGREED.max(STANDARD_ERRORS * error) {
            return Self::HalvesDisagree { first: p, second: q };
        }
        let steps = (first.total() + second.total()) as usize;
        if (steps as f64) < arl0 {
            return Self::Short { steps, needed: arl0.ceil() as usize };
        }
        Self::Healthy
    }
}

impl std::fmt::Display for CalibrationHealth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Healthy => f.write_str("healthy"),
            Self::HalvesDisagree { first, second } => write!(
                f,
                "calibration halves disagree: {:.1} % and {:.1} % of steps elevated",
                100.0 * first,
                100.0 * second
            ),
            Self::Short { steps, needed } => write!(
                f,
                "calibrated on {steps} steps, {needed} wanted: expect up to three times the false alarms"
            ),
            Self::Empty => f.write_str("nothing to calibrate on"),
        }
    }
}

/// The warning about a client whose alarm takes so many steps of the strongest symbol; nothing
/// where that is few enough.
pub(crate) fn insensitive(alarm_steps: f64) -> Option<String> {
    (alarm_steps > MOST_ALARM_STEPS).then(|| {
        format!(
            "insensitive: an alarm takes {alarm_steps:.0} steps of the strongest symbol, \
             {MOST_ALARM_STEPS:.0} at most are wanted; look for a stretch of its calibration that \
             is not normal operation"
        )
    })
}

/// How a client's live symbols stand to its calibration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub(crate) enum Standing {
    #[default]
    Trusted,
    /// Elevated too often; its evidence counts, with this note.
    OutOfCalibration,
    /// Nothing like its calibration, or not symbols: its messages do not count until that changes.
    Unreliable,
}

/// What a client sent for a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Report {
    Symbol(Symbol),
    /// Two of them: how surprising the step is to the client alone, and what of it the others do
    /// not explain (tier 2).
    Informed(Symbol, Symbol),
    /// A highest symbol with its severity: the first or the third of a burst.
    Severe(Symbol, u8),
    /// The first symbol after the client's watch was raised.
    Raised(Symbol),
    /// Nothing, as agreed: the client's watch is armed and was not raised.
    Quiet,
    /// Nothing, or too late.
    #[default]
    Missing,
    /// Something that is no symbol, or two that contradict each other.
    Invalid,
}

impl Report {
    /// How surprising the step is to the client alone.
    pub(crate) fn own(self) -> Option<Symbol> {
        match self {
            Self::Symbol(own)
            | Self::Severe(own, _)
            | Self::Raised(own)
            | Self::Informed(own, _) => Some(own),
            Self::Quiet | Self::Missing | Self::Invalid => None,
        }
    }
}

/// Follows one client's live symbols.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    live: LevelCounts,
    invalid: f64,
    standing: Standing,
}

impl Watch {
    /// Symbols fade with this many steps: far longer than a fault, so that a fault alone does not
    /// discredit the client that reports it.
    const MEMORY: f64 = 400.0;
    /// Total variation from calibration beyond which symbols mean nothing, and below which they
    /// mean something again.
    const FOREIGN: (f64, f64) = (0.5, 0.25);
    /// Share of elevated symbols, in nominal shares, that is out of calibration, and no longer.
    const ELEVATED: (f64, f64) = (4.0, 2.5);
    /// Fading number of invalid reports that discredits a client, and that forgives it.
    const INVALID: (f64, f64) = (5.0, 1.0);

    /// A client that is taken to be as calibrated until it shows otherwise.
    pub(crate) fn new(nominal: &[f64]) -> Self {
        let live = LevelCounts::expected(nominal, Self::MEMORY);
        Self { live, invalid: 0.0, standing: Standing::default() }
    }

    /// How the client stands.
    pub(crate) fn standing(&self) -> Standing {
        self.standing
    }

    /// One step; `nominal` is the distribution of the client's symbols, `elevated` the first level
    /// that counts as such.
    pub(crate) fn step(&mut self, report: Report, nominal: &[f64], elevated: usize) -> Standing {
        let fade = 1.0 - 1.0 / Self::MEMORY;
        match report {
            Report::Symbol(symbol)
            | Report::Severe(symbol, _)
            | Report::Raised(symbol)
            | Report::Informed(symbol, _) => {
                self.live.fade(fade);
                self.live.add(symbol);
                self.invalid *= fade;
            }
            Report::Invalid => self.invalid = self.invalid * fade + 1.0,
            Report::Quiet | Report::Missing => {}
        }
        self.standing = self.judge(nominal, elevated);
        self.standing
    }

    fn judge(&self, nominal: &[f64], elevated: usize) -> Standing {
        // A standing once lost is regained at a lower bound than the one at which it was lost.
        let beyond = |value: f64, (lost, regained): (f64, f64), already: bool| {
            value > if already { regained } else { lost }
        };
        let was_unreliable = self.standing == Standing::Unreliable;
        if beyond(self.invalid, Self::INVALID, was_unreliable) {
            return Standing::Unreliable;
        }
        if beyond(self.variation(nominal), Self::FOREIGN, was_unreliable) {
            return Standing::Unreliable;
        }
        let expected: f64 = nominal.iter().skip(elevated).sum();
        let share = self.live.share_from(elevated).unwrap_or(0.0);
        let ratio = share / expected.max(f64::MIN_POSITIVE);
        if beyond(ratio, Self::ELEVATED, self.standing != Standing::Trusted) {
            Standing::OutOfCalibration
        } else {
            Standing::Trusted
        }
    }

    /// How far the live symbols are from calibration: total variation, 0 alike, 1 disjoint.
    pub(crate) fn variation(&self, nominal: &[f64]) -> f64 {
        let total = self.live.total().max(f64::MIN_POSITIVE);
        let shares = self.live.counts().iter().map(|n| n / total);
        shares.zip(nominal).map(|(p, n)| (p - n).abs()).sum::<f64>() / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng;
    use crate::evidence::symbol::Grading;
    use rand::RngExt as _;

    const NOMINAL: [f64; 5] = [0.8, 0.15, 0.04, 0.008, 0.002];

    fn nominal_symbols(n: usize, seed: u64) -> Vec<Symbol> {
        let grading = Grading::five_levels();
        let mut rng = rng::stream(seed, 0);
        (0..n)
            .map(|_| {
                let p = rng.random::<f64>();
                let level = grading.cuts().iter().filter(|c| p < **c).count();
                grading.symbol(level).expect("a level of the grading")
            })
            .collect()
    }

    fn standing_after(reports: impl IntoIterator<Item = Report>) -> Standing {
        let mut watch = Watch::new(&NOMINAL);
        reports.into_iter().map(|r| watch.step(r, &NOMINAL, 2)).last().unwrap_or_default()
    }

    #[test]
    fn an_honest_client_stays_trusted_through_faults() {
        let grading = Grading::five_levels();
        let mut reports: Vec<Report> =
            nominal_symbols(5000, 1).into_iter().map(Report::Symbol).collect();
        for fault in 0..10 {
            reports[fault * 500..fault * 500 + 40].fill(Report::Symbol(grading.highest()));
        }
        let mut watch = Watch::new(&NOMINAL);
        assert!(reports.iter().all(|r| watch.step(*r, &NOMINAL, 2) == Standing::Trusted));
    }

    #[test]
    fn liars_are_found_out() {
        let grading = Grading::five_levels();
        let at = |level| grading.symbol(level).expect("a level of the grading");
        let honest = nominal_symbols(600, 2);
        let inverted = honest.iter().map(|s| Report::Symbol(at(4 - s.level())));
        assert_eq!(standing_after(inverted), Standing::Unreliable);
        for level in 1..5 {
            let constant = (0..600).map(|_| Report::Symbol(at(level)));
            assert_eq!(standing_after(constant), Standing::Unreliable, "always {level}");
        }
        assert_eq!(standing_after([Report::Invalid; 8]), Standing::Unreliable);
        assert_eq!(standing_after([Report::Missing; 600]), Standing::Trusted);
    }

    #[test]
    fn a_discredited_client_is_heard_again_when_it_behaves() {
        let grading = Grading::five_levels();
        let lies = (0..600).map(|_| Report::Symbol(grading.highest()));
        let honest = nominal_symbols(2000, 3).into_iter().map(Report::Symbol);
        assert_eq!(standing_after(lies.chain(honest)), Standing::Trusted);
    }

    #[test]
    fn a_client_that_is_restless_all_day_is_out_of_calibration_but_heard() {
        let grading = Grading::five_levels();
        let reports = nominal_symbols(3000, 4).into_iter().enumerate().map(|(t, s)| {
            Report::Symbol(if t % 4 == 0 { grading.symbol(2).expect("a level") } else { s })
        });
        assert_eq!(standing_after(reports), Standing::OutOfCalibration);
    }

    #[test]
    fn halves_that_flag_alike_are_healthy_and_others_are_not() {
        let symbols: Vec<_> = nominal_symbols(4000, 5).into_iter().map(Some).collect();
        let judge = |symbols: &[Option<Symbol>], arl0| {
            let (first, second) = symbols.split_at(symbols.len() / 2);
            let counts =
                |half: &[Option<Symbol>]| LevelCounts::of(5, half.iter().flatten().copied());
            CalibrationHealth::judge([&counts(first), &counts(second)], 2, arl0)
        };
        assert_eq!(judge(&symbols, 3000.0), CalibrationHealth::Healthy);
        assert!(matches!(judge(&symbols, 9000.0), CalibrationHealth::Short { needed: 9000, .. }));
        assert_eq!(judge(&[None; 50], 10.0), CalibrationHealth::Empty);
        let mut drifting = symbols;
        let highest = Grading::five_levels().highest();
        drifting.iter_mut().skip(2000).step_by(6).for_each(|s| *s = Some(highest));
        assert!(matches!(judge(&drifting, 10.0), CalibrationHealth::HalvesDisagree { .. }));
    }
}
