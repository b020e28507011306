//! What a client tells the server about itself before it is heard: how often each of its symbols
//! occurred in calibration, how bursty they were, and in which manner it will send them.

use serde::{Deserialize, Serialize};

use super::cusum::{self, Tail};
use super::informed::Remainder;
use super::likelihood::{Hypotheses, Tables};
use super::site::SiteSettings;
use super::symbol::{Grading, LevelCounts, RandomisedResponse, Symbol};
use super::watch::{Odds, score};
use crate::privacy::{self, Manner, Said, Vigil, Voice};
use crate::rng::Rng;

/// A client's word about itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Enrolment {
    /// How often each level occurred in calibration; with windows, as the strongest of one; with
    /// kept answers, as that answer.
    pub counts: LevelCounts,
    /// The tail of its calibration excursions, after randomised response.
    pub tail: Tail,
    /// ε of each symbol it will send.
    pub epsilon: Option<f64>,
    /// How often it will send one.
    pub manner: Manner,
    /// The watch that will speak for it when its budget keeps what is left for alarms.
    pub fallback: Option<Vigil>,
    /// How often its watch was raised in calibration, and how often it was looked at.
    pub raised: (u64, u64),
    /// What it tells of its second symbols, where it will send them (tier 2).
    #[serde(default)]
    pub remainder: Option<Remainder>,
}

impl Enrolment {
    /// From a calibration's true symbols, one a step. They pass through the client's own randomised
    /// response before the tail is fitted, as they will when the server adds them up.
    pub fn new(
        symbols: &[Option<Symbol>],
        settings: &SiteSettings,
        hypotheses: &Hypotheses,
        rng: &mut Rng,
    ) -> Self {
        let response = settings.response();
        let counts = LevelCounts::of(settings.grading.levels(), symbols.iter().flatten().copied());
        let ratios =
            Tables::new(&settings.grading, hypotheses, &counts, &response).ratios(hypotheses);
        let sent = symbols.iter().flatten().map(|s| response.rehearse(*s, rng));
        let peaks = cusum::excursion_peaks(sent.map(|s| ratios.root_cause(s)));
        let tail = Tail::fit(&peaks, counts.total() as usize);
        let epsilon = settings.epsilon;
        let fallback = settings.fallback;
        Self {
            counts,
            tail,
            epsilon,
            manner: Manner::EveryStep,
            fallback,
            raised: (0, 0),
            remainder: None,
        }
    }

    /// The same for any manner of speaking, rehearsed in `voice`, which is the one that will speak.
    pub fn rehearsed(
        symbols: &[Option<Symbol>],
        settings: &SiteSettings,
        hypotheses: &Hypotheses,
        voice: &mut Voice,
    ) -> Self {
        let grading = &settings.grading;
        let scores = score(grading, hypotheses);
        let steps: Vec<Symbol> = symbols.iter().flatten().copied().collect();
        let mut counts = LevelCounts::new(grading.levels());
        match settings.manner {
            Manner::EveryStep | Manner::WhileRaised(_) => {
                for symbol in &steps {
                    counts.add(*symbol);
                }
            }
            Manner::Window { steps: window } => {
                let windows = steps.chunks_exact(window.max(1) as usize);
                windows.filter_map(|w| w.iter().max()).for_each(|symbol| counts.add(*symbol));
            }
            Manner::Memoised { .. } => {
                for symbol in &steps {
                    let kept = voice.kept_answer(private(*symbol));
                    grading.symbol(usize::from(kept.0)).into_iter().for_each(|s| counts.add(s));
                }
            }
        }
        let mut enrolment = Self {
            counts,
            tail: Tail::fit(&[], 0),
            epsilon: settings.epsilon,
            manner: settings.manner,
            fallback: settings.fallback,
            raised: (0, 0),
            remainder: None,
        };
        let said: Vec<Said<privacy::Symbol>> = steps
            .iter()
            .map(|symbol| voice.rehearse(private(*symbol), scores[symbol.level()]))
            .collect();
        for said in &said {
            enrolment.raised.0 += u64::from(matches!(said, Said::Raised(_)));
            enrolment.raised.1 += u64::from(matches!(said, Said::Raised(_) | Said::Quiet));
        }
        let ratios = enrolment.tables(grading, hypotheses).ratios(hypotheses);
        let odds = enrolment.odds(grading, hypotheses);
        let own = |said: &Said<privacy::Symbol>| match *said {
            Said::Symbol(symbol) => heard(grading, symbol).map_or(0.0, |s| ratios.root_cause(s)),
            Said::Raised(symbol) => {
                odds.raised().0 + heard(grading, symbol).map_or(0.0, |s| ratios.root_cause(s))
            }
            Said::Quiet => odds.quiet().0,
            Said::Nothing => 0.0,
        };
        let peaks = cusum::excursion_peaks(said.iter().map(own));
        voice.forget();
        enrolment.tail = Tail::fit(&peaks, steps.len());
        enrolment
    }

    /// The distributions of its symbols, as the server will hear them.
    #[must_use]
    pub fn tables(&self, grading: &Grading, hypotheses: &Hypotheses) -> Tables {
        let levels = grading.levels();
        let response = RandomisedResponse::new(levels, self.epsilon);
        let of = |shape: &dyn Fn(Vec<f64>) -> Vec<f64>| {
            Tables::shaped(grading, hypotheses, &self.counts, &response, shape)
        };
        match self.manner {
            Manner::EveryStep | Manner::WhileRaised(_) => of(&|levels| levels),
            Manner::Window { steps } => of(&|levels| strongest(&levels, steps)),
            Manner::Memoised { permanent } => {
                let kept = RandomisedResponse::new(levels, Some(permanent));
                of(&|levels| kept.through(&levels))
            }
        }
    }

    /// What its silence and its raised watch say.
    #[must_use]
    pub fn odds(&self, grading: &Grading, hypotheses: &Hypotheses) -> Odds {
        let watch = match self.manner {
            Manner::WhileRaised(vigil) => Some(vigil),
            _ => self.fallback,
        };
        watch
            .map_or_else(Odds::default, |vigil| Odds::new(grading, hypotheses, &vigil, self.raised))
    }
}

/// The distribution of the highest of so many independent levels.
fn strongest(levels: &[f64], steps: u64) -> Vec<f64> {
    let mut below = 0.0;
    let mut reached = 0.0;
    levels
        .iter()
        .map(|p| {
            below += p;
            let all = below.clamp(0.0, 1.0).powf(steps as f64);
            let exactly = all - reached;
            reached = all;
            exactly
        })
        .collect()
}

fn private(symbol: Symbol) -> privacy::Symbol {
    privacy::Symbol(symbol.level() as u8)
}

fn heard(grading: &Grading, symbol: privacy::Symbol) -> Option<Symbol> {
    grading.symbol(usize::from(symbol.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::Randomness;
    use rand::RngExt as _;

    const VIGIL: Vigil = Vigil { epsilon: 8.0, burst: 5, quiet_steps: 3000.0 };

    fn symbols(n: usize, seed: u64) -> Vec<Option<Symbol>> {
        let grading = Grading::five_levels();
        let mut rng = crate::rng::stream(seed, 0);
        let level = |p: f64| grading.cuts().iter().filter(|cut| p < **cut).count();
        (0..n).map(|_| grading.symbol(level(rng.random()))).collect()
    }

    fn enrolled(epsilon: Option<f64>, manner: Manner) -> Enrolment {
        let settings = SiteSettings { epsilon, manner, ..SiteSettings::default() };
        let random = Randomness::seeded(3, 1);
        let mut voice = Voice::new(epsilon, 5, manner, VIGIL, random).unwrap();
        Enrolment::rehearsed(&symbols(6000, 2), &settings, &Hypotheses::default(), &mut voice)
    }

    #[test]
    fn in_the_plain_manner_both_ways_say_the_same() {
        let plain = enrolled(None, Manner::EveryStep);
        let settings = SiteSettings::default();
        let mut rng = crate::rng::stream(1, 1);
        let old = Enrolment::new(&symbols(6000, 2), &settings, &Hypotheses::default(), &mut rng);
        assert_eq!(plain, old);
    }

    #[test]
    fn the_strongest_of_a_window_is_distributed_as_counted() {
        let grading = Grading::five_levels();
        let enrolment = enrolled(Some(3.0), Manner::Window { steps: 6 });
        assert!((enrolment.counts.total() - 1000.0).abs() < 1e-9);
        let expected = strongest(&grading.level_probabilities(1.0), 6);
        assert!((expected.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        for (count, p) in enrolment.counts.counts().iter().zip(&expected) {
            assert!((count / 1000.0 - p).abs() < 0.05, "{count} {p}");
        }
    }

    #[test]
    fn silence_speaks_against_a_root_and_an_alarm_for_it() {
        let enrolment = enrolled(Some(3.0), Manner::WhileRaised(VIGIL));
        let odds = enrolment.odds(&Grading::five_levels(), &Hypotheses::default());
        let ((quiet, quiet_felt), (raised, raised_felt)) = (odds.quiet(), odds.raised());
        assert!(quiet < 0.0 && raised > 2.0, "{odds:?}");
        assert!(quiet_felt > quiet && raised_felt < raised);
        let (raises, looks) = enrolment.raised;
        assert!(looks > 5000 && raises < 20, "{raises} in {looks}");
    }

    #[test]
    fn kept_answers_are_counted_as_they_are_told() {
        let enrolment = enrolled(Some(3.0), Manner::Memoised { permanent: 1.0 });
        // Every level has one answer, so there are at most as many answers as levels.
        assert!((enrolment.counts.total() - 6000.0).abs() < 1e-9);
        let largest = enrolment.counts.counts().iter().copied().fold(0.0, f64::max);
        assert!(largest >= 0.75 * 6000.0, "{:?}", enrolment.counts);
    }
}
