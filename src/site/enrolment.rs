//! How a site enrols: what it sends about its calibration, and what that costs.
//!
//! | session | what is sent | price |
//! |---|---|---|
//! | nothing protected | counts and tail of the calibration | unprotected, once |
//! | ε on symbols | the counts that the cuts were made for; the tail of a rehearsal | one rehearsed release a step |
//! | ε and a budget | the counts that the cuts were made for; the tail of independent steps | nothing |
//!
//! Cuts are quantiles of the calibration, so how often each level occurs in it is known beforehand:
//! with ε these counts are sent instead of the real ones, and halves that disagree stay with the
//! client. A rehearsal passes every step of the calibration through the mechanism that will send it
//! later, so it costs what sending them would cost. A budget would be gone before the first step; with
//! one the tail is that of independent steps, which no measurement has a part in.

use rand::RngExt as _;

use super::grader::SiteSettings;
use super::stretch::Abnormal;
use crate::base::rng::{self, Rng};
use crate::evidence::cusum::{self, Tail};
use crate::evidence::enrolment::{Enrolment, Remainder, strongest};
use crate::evidence::likelihood::Hypotheses;
use crate::evidence::symbol::{Grading, LevelCounts, RandomisedResponse, Symbol};
use crate::evidence::watch::score;
use crate::privacy::{self, PrivacyError, Randomness, Release, Releaser, Response, Spend, Tally};
use crate::session::SendPolicy;

/// Seed of the independent steps: nothing is learned from them about any client.
const INDEPENDENT: u64 = 0x1DD;

/// An enrolment with what telling it costs: how often each mechanism was used.
#[derive(Debug, Clone)]
pub(crate) struct Enrolled {
    pub(crate) enrolment: Enrolment,
    pub(crate) price: Vec<(Spend, u64)>,
}

/// What a site knows of its calibration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Calibrated<'a> {
    /// True symbols, one a step.
    pub(crate) symbols: &'a [Option<Symbol>],
    /// Stretches that the session sets aside; its symbols are unprotected then.
    pub(crate) abnormal: Option<&'a Abnormal>,
    /// In tier 2: who explains this client, and the second symbols.
    pub(crate) beside: Option<(usize, &'a [Option<Symbol>])>,
}

/// Enrols by a calibration, for the policy by which `releaser` will send. With a budget nothing of the
/// calibration is sent.
pub(crate) fn enrol(
    calibrated: Calibrated<'_>,
    settings: &SiteSettings,
    hypotheses: &Hypotheses,
    releaser: &mut Releaser,
    random: &mut Randomness,
    has_budget: bool,
) -> Result<Enrolled, PrivacyError> {
    let grading = &settings.grading;
    let told: Vec<Symbol>;
    let steps: Vec<Symbol> = calibrated.symbols.iter().flatten().copied().collect();
    // How many steps of the calibration had data is a measurement too; how long it was is not.
    let length = calibrated.symbols.len();
    let rehearsed = if settings.epsilon.is_some() && has_budget {
        told = independent(grading, length, 0);
        &told
    } else if let Some(abnormal) = calibrated.abnormal {
        told = abnormal.without(calibrated.symbols).collect();
        &told
    } else {
        &steps
    };
    let counts = match settings.epsilon {
        None => counted(&steps, settings, releaser),
        Some(_) => expected(settings, length, releaser),
    };
    let before = releaser.rehearsed().clone();
    let mut enrolment = rehearse(rehearsed, counts, settings, hypotheses, releaser);
    let mut price = spent_since(&before, releaser.rehearsed());
    if settings.epsilon.is_none() {
        let (first, second) = calibrated.symbols.split_at(calibrated.symbols.len() / 2);
        let counts = |half: &[Option<Symbol>]| {
            LevelCounts::of(grading.levels(), half.iter().flatten().copied())
        };
        enrolment.halves = Some([counts(first), counts(second)]);
        price = vec![(Spend::Clear, 1)];
    }
    if let Some((explainer, beside)) = calibrated.beside {
        let pairs: Vec<(Symbol, Option<Symbol>)> = calibrated
            .symbols
            .iter()
            .zip(beside)
            .filter_map(|(own, beside)| Some(((*own)?, *beside)))
            .collect();
        let pairs = Pairs { length, known: &pairs };
        let remainder =
            remainder(explainer, pairs, &enrolment, settings, hypotheses, random, has_budget)?;
        if let Some(epsilon) = settings.epsilon.filter(|_| !has_budget) {
            let response = Response::new(epsilon, grading.levels() as u8)?;
            price.push((response.spend(), pairs.known.len() as u64));
        }
        enrolment.remainder = Some(remainder);
    }
    if settings.epsilon.is_some() && has_budget {
        price.clear();
    }
    Ok(Enrolled { enrolment, price })
}

/// How often each level occurred, as the client's send policy reports them.
fn counted(steps: &[Symbol], settings: &SiteSettings, releaser: &mut Releaser) -> LevelCounts {
    let grading = &settings.grading;
    let mut counts = LevelCounts::new(grading.levels());
    match settings.send {
        SendPolicy::EveryStep | SendPolicy::WhileRaised => {
            for symbol in steps {
                counts.add(*symbol);
            }
        }
        SendPolicy::Window(window) => {
            let windows = steps.chunks_exact(window.max(1) as usize);
            windows.filter_map(|w| w.iter().max()).for_each(|symbol| counts.add(*symbol));
        }
        SendPolicy::Memoised { .. } => {
            for symbol in steps {
                let kept = releaser.kept_answer(private(*symbol));
                grading.symbol(usize::from(kept.0)).into_iter().for_each(|s| counts.add(s));
            }
        }
    }
    counts
}

/// The counts that the cuts were made for, as the client's send policy reports them.
fn expected(settings: &SiteSettings, steps: usize, releaser: &mut Releaser) -> LevelCounts {
    let grading = &settings.grading;
    let levels = grading.level_probabilities(1.0);
    match settings.send {
        SendPolicy::EveryStep | SendPolicy::WhileRaised => {
            LevelCounts::expected(&levels, steps as f64)
        }
        SendPolicy::Window(window) => {
            let windows = (steps as u64 / window.max(1)) as f64;
            LevelCounts::expected(&strongest(&levels, window as f64), windows)
        }
        SendPolicy::Memoised { .. } => {
            let mut kept = vec![0.0; levels.len()];
            for (level, share) in levels.iter().enumerate() {
                let answer = releaser.kept_answer(privacy::Symbol(level as u8));
                if let Some(kept) = kept.get_mut(usize::from(answer.0)) {
                    *kept += share;
                }
            }
            LevelCounts::expected(&kept, steps as f64)
        }
    }
}

/// Symbols of independent steps when all is well.
fn independent(grading: &Grading, steps: usize, source: u64) -> Vec<Symbol> {
    let mut rng: Rng = rng::stream(INDEPENDENT, source);
    let level = |p: f64| grading.cuts().iter().filter(|cut| p < **cut).count();
    (0..steps).filter_map(|_| grading.symbol(level(rng.random()))).collect()
}

fn spent_since(before: &Tally, after: &Tally) -> Vec<(Spend, u64)> {
    let mut new = after.clone();
    new.remove(before);
    new.entries().collect()
}

/// Both symbols of every step of a calibration that had data.
#[derive(Clone, Copy)]
struct Pairs<'a> {
    /// Steps of the calibration, with or without data.
    length: usize,
    known: &'a [(Symbol, Option<Symbol>)],
}

/// The tail of what the server adds up for pairs: the second symbol where there is one.
fn remainder(
    explainer: usize,
    Pairs { length, known: pairs }: Pairs<'_>,
    enrolment: &Enrolment,
    settings: &SiteSettings,
    hypotheses: &Hypotheses,
    random: &mut Randomness,
    has_budget: bool,
) -> Result<Remainder, PrivacyError> {
    let grading = &settings.grading;
    let response =
        settings.epsilon.map(|e| Response::new(e, grading.levels() as u8)).transpose()?;
    let counts = match settings.epsilon {
        None => LevelCounts::of(grading.levels(), pairs.iter().filter_map(|(_, beside)| *beside)),
        Some(_) => LevelCounts::expected(&grading.level_probabilities(1.0), length as f64),
    };
    let public: Vec<(Symbol, Option<Symbol>)>;
    let rehearsed = if settings.epsilon.is_some() && has_budget {
        let second = independent(grading, length, 1).into_iter().map(Some);
        public = independent(grading, length, 0).into_iter().zip(second).collect();
        &public
    } else {
        pairs
    };
    let mut remainder = Remainder { explainer, counts, tail: Tail::fit(&[], 0) };
    let own = enrolment.tables(grading, hypotheses).ratios(hypotheses);
    let left = remainder.ratios(grading, hypotheses, settings.epsilon);
    let mut sent = |symbol: Symbol| -> Result<Symbol, PrivacyError> {
        let Some(response) = &response else { return Ok(symbol) };
        let level = response.rehearse(symbol.level() as u8, random)?;
        Ok(grading.symbol(usize::from(level)).unwrap_or(symbol))
    };
    let mut evidence = Vec::with_capacity(rehearsed.len());
    for (symbol, beside) in rehearsed {
        evidence.push(match beside {
            Some(beside) => left.root_cause(sent(*beside)?),
            None => own.root_cause(sent(*symbol)?),
        });
    }
    let peaks = cusum::excursion_peaks(evidence);
    remainder.tail = Tail::fit(&peaks, enrolment.counts.total() as usize);
    Ok(remainder)
}

/// The enrolment that a calibration of these symbols gives in the send of `releaser`, which is the one
/// that will speak.
fn rehearse(
    steps: &[Symbol],
    counts: LevelCounts,
    settings: &SiteSettings,
    hypotheses: &Hypotheses,
    releaser: &mut Releaser,
) -> Enrolment {
    let grading = &settings.grading;
    let scores = score(grading, hypotheses);
    let mut enrolment = Enrolment {
        counts,
        halves: None,
        tail: Tail::fit(&[], 0),
        epsilon: settings.epsilon,
        send: settings.send,
        watch: settings.watch,
        raised: (0, 0),
        remainder: None,
    };
    let said: Vec<Release<privacy::Symbol>> = steps
        .iter()
        .map(|symbol| releaser.rehearse(private(*symbol), scores[symbol.level()]))
        .collect();
    for said in &said {
        enrolment.raised.0 += u64::from(matches!(said, Release::Raised(_)));
        enrolment.raised.1 += u64::from(matches!(said, Release::Raised(_) | Release::Quiet(_)));
    }
    let ratios = enrolment.tables(grading, hypotheses).ratios(hypotheses);
    let odds = enrolment.odds(grading, hypotheses);
    let own = |said: &Release<privacy::Symbol>| match *said {
        Release::Symbol(symbol) => heard(grading, symbol).map_or(0.0, |s| ratios.root_cause(s)),
        Release::Raised(symbol) => {
            odds.raised().0 + heard(grading, symbol).map_or(0.0, |s| ratios.root_cause(s))
        }
        Release::Quiet(_) => odds.quiet().0,
        Release::Nothing => 0.0,
    };
    let peaks = cusum::excursion_peaks(said.iter().map(own));
    releaser.forget();
    enrolment.tail = Tail::fit(&peaks, steps.len());
    enrolment
}

/// The tail of a calibration of true symbols that are sent at every step and unprotected.
pub(crate) fn plain_tail(
    symbols: &[Option<Symbol>],
    grading: &Grading,
    hypotheses: &Hypotheses,
) -> Tail {
    let response = RandomisedResponse::new(grading.levels(), None);
    let counts = LevelCounts::of(grading.levels(), symbols.iter().flatten().copied());
    let tables = crate::evidence::likelihood::Tables::new(grading, hypotheses, &counts, &response);
    let ratios = tables.ratios(hypotheses);
    let peaks =
        cusum::excursion_peaks(symbols.iter().flatten().map(|symbol| ratios.root_cause(*symbol)));
    Tail::fit(&peaks, counts.total() as usize)
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
    use crate::privacy::SparseVectorParams;

    const PARAMS: SparseVectorParams =
        SparseVectorParams { epsilon: 8.0, burst: 5, quiet_steps: 3000.0 };

    fn symbols(n: usize, seed: u64) -> Vec<Option<Symbol>> {
        let grading = Grading::five_levels();
        let mut rng = crate::base::rng::stream(seed, 0);
        let level = |p: f64| grading.cuts().iter().filter(|cut| p < **cut).count();
        (0..n).map(|_| grading.symbol(level(rng.random()))).collect()
    }

    fn enrolled(epsilon: Option<f64>, send: SendPolicy) -> Enrolment {
        let watch = (send == SendPolicy::WhileRaised).then_some(PARAMS);
        let settings = SiteSettings { epsilon, send, watch, ..SiteSettings::default() };
        let random = Randomness::seeded(3, 1);
        let mut releaser = Releaser::new(epsilon, 5, send, PARAMS, random).unwrap();
        told(&symbols(6000, 2), &settings, &mut releaser, false).enrolment
    }

    fn told(
        symbols: &[Option<Symbol>],
        settings: &SiteSettings,
        releaser: &mut Releaser,
        has_budget: bool,
    ) -> Enrolled {
        let (calibrated, random) =
            (Calibrated { symbols, abnormal: None, beside: None }, &mut Randomness::seeded(3, 2));
        enrol(calibrated, settings, &Hypotheses::default(), releaser, random, has_budget)
            .expect("a seed gives random numbers")
    }

    #[test]
    fn an_unprotected_enrolment_has_the_tail_of_its_calibration_and_is_priced_as_such() {
        let settings = SiteSettings::default();
        let random = Randomness::seeded(3, 1);
        let mut releaser = Releaser::new(None, 5, SendPolicy::EveryStep, PARAMS, random).unwrap();
        let symbols = symbols(6000, 2);
        let Enrolled { enrolment, price } = told(&symbols, &settings, &mut releaser, false);
        let plain = plain_tail(&symbols, &settings.grading, &Hypotheses::default());
        assert_eq!(enrolment.tail, plain);
        assert_eq!(price, [(Spend::Clear, 1)]);
        let halves = enrolment.halves.expect("told");
        let total: f64 = halves.iter().map(LevelCounts::total).sum();
        assert!((total - enrolment.counts.total()).abs() < 1e-9);
    }

    #[test]
    fn a_protected_enrolment_tells_no_counts_and_costs_as_much_as_its_rehearsal() {
        let settings = SiteSettings { epsilon: Some(2.0), ..SiteSettings::default() };
        let releaser = || {
            let random = Randomness::seeded(3, 1);
            Releaser::new(Some(2.0), 5, SendPolicy::EveryStep, PARAMS, random).unwrap()
        };
        let calm = symbols(6000, 2);
        let highest = Grading::five_levels().symbol(4);
        let wild: Vec<_> = (0..6000).map(|t| if t % 3 == 0 { highest } else { calm[t] }).collect();
        let (told_calm, told_wild) = (
            told(&calm, &settings, &mut releaser(), false),
            told(&wild, &settings, &mut releaser(), false),
        );
        assert_eq!(told_calm.enrolment.counts, told_wild.enrolment.counts);
        assert_eq!(told_calm.enrolment.halves, None);
        assert_ne!(told_calm.enrolment.tail, told_wild.enrolment.tail);
        let a_step = Spend::Response { epsilon: 2.0, symbols: 5 };
        assert_eq!(told_calm.price, [(a_step, 6000)]);
    }

    #[test]
    fn with_a_budget_an_enrolment_depends_on_no_measurement_and_costs_nothing() {
        let settings = SiteSettings { epsilon: Some(2.0), ..SiteSettings::default() };
        let told = |symbols: &[Option<Symbol>]| {
            let random = Randomness::seeded(3, 1);
            let mut releaser =
                Releaser::new(Some(2.0), 5, SendPolicy::EveryStep, PARAMS, random).unwrap();
            told(symbols, &settings, &mut releaser, true)
        };
        let highest = vec![Grading::five_levels().symbol(4); 6000];
        let (calm, wild) = (told(&symbols(6000, 2)), told(&highest));
        assert_eq!(calm.enrolment, wild.enrolment);
        assert!(calm.price.is_empty() && wild.price.is_empty());
        // Nor is it told how many steps had data.
        let missing: Vec<_> = symbols(6000, 2)
            .into_iter()
            .enumerate()
            .map(|(t, s)| s.filter(|_| t % 5 > 0))
            .collect();
        assert_eq!(told(&missing).enrolment, calm.enrolment);
    }

    #[test]
    fn the_strongest_of_a_window_is_distributed_as_counted() {
        let grading = Grading::five_levels();
        let enrolment = enrolled(Some(3.0), SendPolicy::Window(6));
        assert!((enrolment.counts.total() - 1000.0).abs() < 1e-9);
        let expected = strongest(&grading.level_probabilities(1.0), 6.0);
        assert!((expected.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        for (count, p) in enrolment.counts.counts().iter().zip(&expected) {
            assert!((count / 1000.0 - p).abs() < 0.05, "{count} {p}");
        }
    }

    #[test]
    fn silence_speaks_against_a_root_and_an_alarm_for_it() {
        let enrolment = enrolled(Some(3.0), SendPolicy::WhileRaised);
        let odds = enrolment.odds(&Grading::five_levels(), &Hypotheses::default());
        let ((quiet, quiet_felt), (raised, raised_felt)) = (odds.quiet(), odds.raised());
        assert!(quiet < 0.0 && raised > 2.0, "{odds:?}");
        assert!(quiet_felt > quiet && raised_felt < raised);
        let (raises, looks) = enrolment.raised;
        assert!(looks > 5000 && raises < 20, "{raises} in {looks}");
    }

    #[test]
    fn kept_answers_are_counted_as_they_are_told() {
        let enrolment = enrolled(Some(3.0), SendPolicy::Memoised { permanent: 1.0 });
        // Every level has one answer, so there are at most as many answers as levels.
        assert!((enrolment.counts.total() - 6000.0).abs() < 1e-9);
        let largest = enrolment.counts.counts().iter().copied().fold(0.0, f64::max);
        assert!(largest >= 0.75 * 6000.0, "{:?}", enrolment.counts);
        assert_eq!(enrolment.halves, None);
    }
}
