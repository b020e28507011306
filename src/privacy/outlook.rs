//! What every ε of a session costs and buys, what is spent and what is left: the figures that a
//! person turns a knob by. A change counts from now on only; nothing that is spent comes back.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::PrivacyError;
use super::account::{Composed, Tally};
use super::cusum::{FlagCusum, SymbolCusum};
use super::gaussian::Standing;
use super::ledger::{Exhaustion, Ledger, Scope};
use super::mechanism::Clip;
use super::price::NumberPrice;
use super::release::{Spend, What};
use super::response::Response;
use super::thrift::Cadence;
use super::voice::{Manner, Vigil};
use crate::session::privacy::PrivacySettings;

/// One ε of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Knob {
    /// ε_c, of x̂_c.
    States,
    /// ε_a, of x_a.
    AugmentedStates,
    /// ε_g, of the server's gradients.
    Gradients,
    /// ε_flag, of flags and symbols.
    Flags,
}

impl Knob {
    /// All of them.
    pub(crate) const ALL: [Self; 4] =
        [Self::States, Self::AugmentedStates, Self::Gradients, Self::Flags];

    /// Its name in a session.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::States => "epsilon_c",
            Self::AugmentedStates => "epsilon_a",
            Self::Gradients => "epsilon_g",
            Self::Flags => "epsilon_flag",
        }
    }

    /// The session's ε.
    pub(crate) fn epsilon(self, settings: &PrivacySettings) -> Option<f64> {
        match self {
            Self::States => settings.epsilon_c,
            Self::AugmentedStates => settings.epsilon_a,
            Self::Gradients => settings.epsilon_g,
            Self::Flags => settings.epsilon_flag,
        }
    }

    /// The session with another ε.
    pub(crate) fn set(self, settings: &PrivacySettings, epsilon: Option<f64>) -> PrivacySettings {
        let mut settings = settings.clone();
        let field = match self {
            Self::States => &mut settings.epsilon_c,
            Self::AugmentedStates => &mut settings.epsilon_a,
            Self::Gradients => &mut settings.epsilon_g,
            Self::Flags => &mut settings.epsilon_flag,
        };
        *field = epsilon;
        settings
    }

    fn is_about(self, what: What) -> bool {
        match self {
            Self::States => what == What::ProprietaryState,
            Self::AugmentedStates => what == What::AugmentedState,
            Self::Gradients => what == What::Gradient,
            Self::Flags => {
                matches!(what, What::ProprietaryFlag | What::AugmentedFlag | What::Symbol)
            }
        }
    }
}

/// What a knob's ε means for one release.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cost {
    /// It is sent as it is.
    Clear,
    Noise(NumberPrice),
    /// Answers that are true with probability `truth`.
    Answers {
        /// p.
        truth: f64,
        /// 1 − p.
        flip: f64,
        /// Among how many symbols.
        symbols: u8,
    },
}

/// What a knob's ε buys: how soon a fault of one's own is noticed, when false alarms are as rare as
/// wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Buys {
    /// Expected steps from a fault to its alarm.
    pub(crate) delay_steps: f64,
    /// The same in seconds.
    pub(crate) delay_s: f64,
    /// ε that is spent until then, by adding up.
    pub(crate) epsilon_to_detect: f64,
}

/// What the figures depend on besides the ledger.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Situation<'a> {
    pub(crate) settings: &'a PrivacySettings,
    /// States of the client's sending model.
    pub(crate) states: usize,
    /// Wanted steps between false alarms.
    pub(crate) arl0_steps: f64,
    /// Seconds in a step.
    pub(crate) period_s: f64,
    /// How symbols are distributed when nothing is wrong …
    pub(crate) quiet: &'a [f64],
    /// … and when the fault is the client's own.
    pub(crate) faulty: &'a [f64],
    /// A pair of flags leaves at every step (paper mode), not one symbol in the session's manner.
    pub(crate) pairs: bool,
}

impl Situation<'_> {
    fn manner(&self) -> Manner {
        if self.pairs { Manner::EveryStep } else { Manner::of(self.settings, self.arl0_steps) }
    }

    /// What a day releases at `response` a symbol or flag, with one alarm where only alarms speak.
    fn day(&self, response: Response) -> Tally {
        let steps = (86_400.0 / self.period_s) as u64;
        let cadence = match self.manner() {
            Manner::EveryStep | Manner::Memoised { .. } => Cadence::EveryStep { response },
            Manner::Window { steps } => Cadence::OncePerWindow { response, steps },
            Manner::WhileRaised(vigil) => {
                Cadence::PerAlarm { response, watch: vigil.epsilon, burst: vigil.burst }
            }
        };
        cadence.tally(steps * if self.pairs { 2 } else { 1 }, 1)
    }
}

/// ε of a flag or symbol that a person may want to compare.
pub(crate) const LADDER: [f64; 14] =
    [0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];

/// An ε so large that no answer is ever wrong.
const CERTAIN: f64 = 60.0;

/// What one ε of a flag or symbol would mean from now on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rung {
    /// The ε; none is in the clear.
    pub(crate) epsilon: Option<f64>,
    /// The chance that an answer is not the true one.
    pub(crate) flip: f64,
    /// How soon a fault is noticed; none where answers say too little.
    pub(crate) buys: Option<Buys>,
    /// ε of one day of them, composed at the session's δ; infinite in the clear.
    pub(crate) day: f64,
}

/// Every ε of [`LADDER`], and the clear above it, for what is really sent in this situation.
pub(crate) fn ladder(situation: &Situation<'_>) -> Result<Vec<Rung>, PrivacyError> {
    let levels = situation.quiet.len() as u8;
    let rung = |epsilon: Option<f64>| {
        let told = Some(epsilon.unwrap_or(CERTAIN));
        let settings = Knob::Flags.set(situation.settings, told);
        let buys = buys(Knob::Flags, &Situation { settings: &settings, ..*situation })?;
        let Some(epsilon) = epsilon else {
            return Ok(Rung { epsilon, flip: 0.0, buys, day: f64::INFINITY });
        };
        let response = Response::new(epsilon, levels)?;
        let day = situation.day(response).epsilon(situation.settings.delta).0;
        Ok(Rung { epsilon: Some(epsilon), flip: response.flip(), buys, day })
    };
    LADDER.iter().copied().map(Some).chain([None]).map(rung).collect()
}

/// One knob of one client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outlook {
    pub(crate) client: String,
    pub(crate) knob: Knob,
    /// Its ε; none where values are sent as they are.
    pub(crate) epsilon: Option<f64>,
    /// What that means for a release.
    pub(crate) cost: Cost,
    /// What it buys; none for knobs that alarms do not depend on, and where symbols say too little.
    pub(crate) buys: Option<Buys>,
    /// What the knob's own releases have cost so far.
    pub(crate) own: Composed,
    /// What all of the client's releases have cost, over the costliest stretch of each kind.
    pub(crate) spent: Vec<(Scope, Composed)>,
    /// ε of the budget that is left now; none without a budget.
    pub(crate) left: Option<f64>,
    /// ε that one more hour at this pace and this ε adds to the whole history.
    pub(crate) burn_per_hour: f64,
    /// When the budget will be gone at this pace and this ε.
    pub(crate) exhaustion: Exhaustion,
}

impl Outlook {
    /// The present state of a knob.
    pub(crate) fn of(
        ledger: &Ledger,
        knob: Knob,
        situation: &Situation<'_>,
        now: Timestamp,
    ) -> Result<Self, PrivacyError> {
        let settings = situation.settings;
        let epsilon = knob.epsilon(settings);
        let delta = ledger.terms().delta;
        let mut own = Tally::NOTHING;
        for counted in ledger.counts().iter().filter(|c| knob.is_about(c.what)) {
            own.add(counted.spend, counted.count);
        }
        // What is still to come is told at the knob's ε, at the pace of the last hour.
        let spend = knob.spend(situation)?;
        let pace = ledger.pace_of(now, |what, old| if knob.is_about(what) { spend } else { old });
        let left = ledger
            .terms()
            .budget
            .map(|budget| (budget.epsilon - ledger.spent(budget.over, now).epsilon).max(0.0));
        Ok(Self {
            client: ledger.client().to_owned(),
            knob,
            epsilon,
            cost: knob.cost(situation)?,
            buys: buys(knob, situation)?,
            own: own.composed(delta),
            spent: Scope::ALL.iter().map(|scope| (*scope, ledger.worst(*scope))).collect(),
            left,
            burn_per_hour: ledger.burn_at(&pace),
            exhaustion: ledger.exhaustion_at(now, &pace),
        })
    }

    /// What if the knob stood at `epsilon` from now on? What is spent stays spent.
    pub(crate) fn with_epsilon(
        ledger: &Ledger,
        knob: Knob,
        situation: &Situation<'_>,
        epsilon: Option<f64>,
        now: Timestamp,
    ) -> Result<Self, PrivacyError> {
        let settings = knob.set(situation.settings, epsilon);
        Self::of(ledger, knob, &Situation { settings: &settings, ..*situation }, now)
    }

    /// All knobs of one client.
    pub(crate) fn all(
        ledger: &Ledger,
        situation: &Situation<'_>,
        now: Timestamp,
    ) -> Result<Vec<Self>, PrivacyError> {
        Knob::ALL.iter().map(|knob| Self::of(ledger, *knob, situation, now)).collect()
    }
}

impl Knob {
    fn clip(self, situation: &Situation<'_>) -> Clip {
        let settings = situation.settings;
        match self {
            Self::Gradients => Clip::Ball { bound: settings.clip_gradient },
            _ => Clip::Box { bound: settings.clip_state, dimension: situation.states },
        }
    }

    fn cost(self, situation: &Situation<'_>) -> Result<Cost, PrivacyError> {
        let settings = situation.settings;
        let Some(epsilon) = self.epsilon(settings) else { return Ok(Cost::Clear) };
        if self == Self::Flags {
            let symbols = situation.quiet.len() as u8;
            let response = Response::new(epsilon, symbols)?;
            return Ok(Cost::Answers { truth: response.truth(), flip: response.flip(), symbols });
        }
        let rule = settings.sigma.into();
        NumberPrice::of(self.clip(situation), rule, epsilon, settings.delta).map(Cost::Noise)
    }

    fn spend(self, situation: &Situation<'_>) -> Result<Spend, PrivacyError> {
        Ok(match (self.cost(situation)?, self.epsilon(situation.settings)) {
            (Cost::Noise(price), _) => {
                Spend::Gaussian { sensitivity: price.sensitivity, sigma: price.sigma }
            }
            (Cost::Answers { symbols, .. }, Some(epsilon)) => Spend::Response { epsilon, symbols },
            _ => Spend::Clear,
        })
    }
}

/// How soon a CUSUM over what is heard raises an alarm.
fn buys(knob: Knob, situation: &Situation<'_>) -> Result<Option<Buys>, PrivacyError> {
    let (settings, levels) = (situation.settings, situation.quiet.len() as u8);
    let Some(epsilon) = settings.epsilon_flag.filter(|_| knob == Knob::Flags) else {
        return Ok(None);
    };
    let response = Response::new(epsilon, levels)?;
    let manner = situation.manner();
    let delayed = |symbols: Option<f64>, steps: f64, spent: f64| {
        symbols.map(|n| Buys {
            delay_steps: n * steps,
            delay_s: n * steps * situation.period_s,
            epsilon_to_detect: n * spent,
        })
    };
    Ok(match manner {
        Manner::EveryStep => {
            let n = delay(&response, situation.quiet, situation.faulty, situation.arl0_steps);
            delayed(n, 1.0, epsilon)
        }
        Manner::Window { steps } => {
            let k = steps as f64;
            let (quiet, faulty) = (strongest(situation.quiet, k), strongest(situation.faulty, k));
            delayed(delay(&response, &quiet, &faulty, situation.arl0_steps / k), k, epsilon)
        }
        Manner::Memoised { permanent } => {
            let kept = Response::new(permanent, levels)?;
            let heard = |shares: &[f64]| kept.heard(shares);
            let (quiet, faulty) = (heard(situation.quiet), heard(situation.faulty));
            delayed(delay(&response, &quiet, &faulty, situation.arl0_steps), 1.0, epsilon)
        }
        Manner::WhileRaised(vigil) => Some(raised(&vigil, epsilon, situation)),
    })
}

/// Symbols until an alarm: of a sum over all levels, or of one over the elevated half of them where
/// that is sooner. The table of the first is too coarse for what a small ε leaves over.
fn delay(response: &Response, quiet: &[f64], faulty: &[f64], arl0: f64) -> Option<f64> {
    let graded = SymbolCusum::design(response, quiet, faulty, arl0).map(|cusum| cusum.arl1);
    let (quiet, faulty) = (response.heard(quiet), response.heard(faulty));
    let half = quiet.len().div_ceil(2);
    let above = |shares: &[f64]| shares[half..].iter().sum::<f64>();
    let halved = FlagCusum::design(above(&quiet), above(&faulty), arl0)
        .filter(|told| told.arl1 < told.arl0)
        .map(|told| told.arl1);
    graded.into_iter().chain(halved).reduce(f64::min)
}

/// A watch climbs by the mean score of a fault until its threshold; the burst after it confirms.
fn raised(vigil: &Vigil, epsilon: f64, situation: &Situation<'_>) -> Buys {
    let ratio = |q: f64, f: f64| (f / q).ln();
    let unit = ratio(situation.quiet[0], situation.faulty[0]).abs().max(f64::MIN_POSITIVE);
    let climb: f64 = situation
        .quiet
        .iter()
        .zip(situation.faulty)
        .map(|(q, f)| f * (ratio(*q, *f) / unit).clamp(-1.0, 1.0))
        .sum();
    let steps = vigil.threshold() / climb.max(f64::MIN_POSITIVE);
    Buys {
        delay_steps: steps,
        delay_s: steps * situation.period_s,
        epsilon_to_detect: vigil.epsilon + vigil.burst as f64 * epsilon,
    }
}

/// The distribution of the highest of `k` independent symbols.
fn strongest(shares: &[f64], k: f64) -> Vec<f64> {
    let (mut below, mut reached) = (0.0, 0.0);
    let mut highest = Vec::with_capacity(shares.len());
    for share in shares {
        below += share;
        let all = f64::min(below, 1.0).powf(k);
        highest.push(all - reached);
        reached = all;
    }
    highest
}

/// Whether the paper's formula for σ holds at a setting, in words; nothing to say where it does.
pub(crate) fn caveat(standing: Standing, delta: f64) -> Option<String> {
    match standing {
        Standing::Proved => None,
        Standing::Unproved { .. } => Some(
            "the classic formula is proved for ε below 1 only; here it happens to hold".to_owned(),
        ),
        Standing::False { delta: given } => Some(format!(
            "the classic formula is false here: it promises δ {delta:e} and gives {given:.2e}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::budget::{AtZero, Budget};
    use crate::privacy::ledger::Terms;
    use crate::privacy::memory::FilterMemory;
    use crate::privacy::randomness::Randomness;
    use crate::privacy::{Purpose, Symbol};
    use crate::session::privacy::{Sigma, Thrift};

    const QUIET: [f64; 5] = [0.8, 0.15, 0.04, 0.008, 0.002];
    const FAULTY: [f64; 5] = [0.215, 0.147, 0.137, 0.107, 0.394];

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_691_798_400 + second).unwrap()
    }

    fn settings(epsilon: f64) -> PrivacySettings {
        PrivacySettings {
            epsilon_c: Some(1.0),
            epsilon_flag: Some(epsilon),
            ..PrivacySettings::default()
        }
    }

    fn situation(settings: &PrivacySettings) -> Situation<'_> {
        Situation {
            settings,
            states: 2,
            arl0_steps: 17_280.0,
            period_s: 5.0,
            quiet: &QUIET,
            faulty: &FAULTY,
            pairs: false,
        }
    }

    /// A symbol every five seconds for half an hour.
    fn ledger(epsilon: f64, budget: f64) -> Ledger {
        let budget = Budget::new(budget, Scope::Lifetime, AtZero::Stop).ok();
        let terms = Terms { delta: 1e-5, memory: FilterMemory::NONE, budget };
        let mut ledger = Ledger::unwritten("P1", terms).unwrap();
        let mut random = Randomness::seeded(1, 0);
        let response = Response::new(epsilon, 5).unwrap();
        for step in 0..360 {
            let symbol = response.symbol(Symbol(0), &mut random).unwrap();
            let _ = ledger.enter(at(5 * step), What::Symbol, Purpose::Routine, symbol).unwrap();
        }
        ledger
    }

    #[test]
    fn a_dearer_symbol_buys_a_sooner_alarm_and_a_sooner_end() {
        let ledger = ledger(1.0, 1000.0);
        let seen = |epsilon: f64| {
            let settings = settings(epsilon);
            Outlook::of(&ledger, Knob::Flags, &situation(&settings), at(1800)).unwrap()
        };
        let outlooks: Vec<Outlook> = [0.5, 1.0, 2.0, 4.0].iter().map(|e| seen(*e)).collect();
        let delays: Vec<f64> = outlooks.iter().map(|o| -o.buys.unwrap().delay_s).collect();
        assert!(delays.is_sorted(), "{delays:?}");
        let burn: Vec<f64> = outlooks.iter().map(|o| o.burn_per_hour).collect();
        assert!(burn.is_sorted() && burn[0] > 0.0, "{burn:?}");
        let ends: Vec<f64> = outlooks
            .iter()
            .map(|o| if let Exhaustion::Seconds(s) = o.exhaustion { -s } else { f64::NAN })
            .collect();
        assert!(ends.iter().all(|s| s.is_finite()) && ends.is_sorted(), "{ends:?}");
        assert!(matches!(outlooks[0].cost, Cost::Answers { symbols: 5, .. }));
    }

    #[test]
    fn a_what_if_changes_what_comes_and_not_what_is_spent() {
        let ledger = ledger(1.0, 1000.0);
        let settings = settings(1.0);
        let situation = situation(&settings);
        let now = Outlook::of(&ledger, Knob::Flags, &situation, at(1800)).unwrap();
        let then =
            Outlook::with_epsilon(&ledger, Knob::Flags, &situation, Some(4.0), at(1800)).unwrap();
        assert_eq!((now.own, &now.spent, now.left), (then.own, &then.spent, then.left));
        assert!(then.burn_per_hour > now.burn_per_hour);
        assert!(then.buys.unwrap().delay_s < now.buys.unwrap().delay_s);
        let free = Outlook::with_epsilon(&ledger, Knob::Flags, &situation, None, at(1800)).unwrap();
        assert_eq!((free.cost, free.exhaustion), (Cost::Clear, Exhaustion::Now));
        assert!(Outlook::with_epsilon(&ledger, Knob::Flags, &situation, Some(0.0), at(1)).is_err());
        assert!(now.left.unwrap() < 1000.0 - 200.0 && now.own.releases == 360);
    }

    #[test]
    fn noise_on_states_has_a_price_and_buys_no_alarm() {
        let ledger = ledger(1.0, 1000.0);
        let settings = settings(1.0);
        let all = Outlook::all(&ledger, &situation(&settings), at(1800)).unwrap();
        let Cost::Noise(price) = all[0].cost else { panic!("{:?}", all[0].cost) };
        assert!((price.sensitivity - 2.0 * 5.0 * 2.0_f64.sqrt()).abs() < 1e-3);
        assert!(all[0].buys.is_none() && all[1].cost == Cost::Clear);
        assert_eq!(all.iter().map(|o| o.knob).collect::<Vec<_>>(), Knob::ALL);
    }

    #[test]
    fn every_manner_has_its_delay() {
        let ledger = ledger(1.0, 1000.0);
        let delay = |thrift| {
            let settings = PrivacySettings { thrift, ..settings(2.0) };
            let seen = Outlook::of(&ledger, Knob::Flags, &situation(&settings), at(1800));
            seen.unwrap().buys.unwrap()
        };
        let every = delay(Thrift::EveryStep);
        assert!(delay(Thrift::Window(6)).delay_steps > every.delay_steps);
        assert!(delay(Thrift::Window(6)).epsilon_to_detect < every.epsilon_to_detect);
        assert!(delay(Thrift::Memoised { permanent: 3.0 }).delay_steps > every.delay_steps);
        assert!(delay(Thrift::WhileRaised).delay_steps > 1.0);
    }

    #[test]
    fn a_ladder_prices_the_symbol_that_is_sent() {
        let settings = settings(2.0);
        let symbols = ladder(&situation(&settings)).unwrap();
        assert_eq!(symbols.len(), LADDER.len() + 1);
        let at = |rungs: &[Rung], epsilon: f64| {
            *rungs.iter().find(|rung| rung.epsilon == Some(epsilon)).unwrap()
        };
        // Five symbols at ε 2: four lies beside one truth.
        let two = at(&symbols, 2.0);
        assert!((two.flip - 4.0 / (2.0_f64.exp() + 4.0)).abs() < 1e-12);
        let day = Tally::of(Spend::Response { epsilon: 2.0, symbols: 5 }, 17_280);
        assert_eq!(two.day.to_bits(), day.epsilon(1e-5).0.to_bits());
        let delays: Vec<f64> = symbols.iter().rev().map(|r| r.buys.unwrap().delay_s).collect();
        assert!(delays.is_sorted(), "{delays:?}");
        let days: Vec<f64> = symbols.iter().map(|r| r.day).collect();
        assert!(days.is_sorted() && days[LADDER.len()].is_infinite(), "{days:?}");
        let flags = ladder(&Situation {
            quiet: &[0.95, 0.05],
            faulty: &[0.36, 0.64],
            pairs: true,
            ..situation(&settings)
        });
        let flag = at(&flags.unwrap(), 2.0);
        assert!((flag.flip - 1.0 / (2.0_f64.exp() + 1.0)).abs() < 1e-12);
        assert!(flag.day > 1.9 * two.day, "two flags a step: {} and {}", flag.day, two.day);
    }

    #[test]
    fn a_day_of_a_thrifty_manner_is_cheaper_and_flags_know_none() {
        let settings = |thrift| PrivacySettings { thrift, ..settings(2.0) };
        let day = |thrift, pairs| {
            let settings = settings(thrift);
            let rungs = ladder(&Situation { pairs, ..situation(&settings) }).unwrap();
            rungs.iter().find(|rung| rung.epsilon == Some(2.0)).unwrap().day
        };
        let every = day(Thrift::EveryStep, false);
        assert!(day(Thrift::Window(12), false) < every / 8.0);
        assert!(day(Thrift::WhileRaised, false) < every / 100.0);
        assert_eq!(
            day(Thrift::WhileRaised, true).to_bits(),
            day(Thrift::EveryStep, true).to_bits()
        );
    }

    #[test]
    fn the_classic_formula_is_doubted_where_it_must_be() {
        let standing =
            |epsilon| super::super::SigmaRule::from(Sigma::Classic).standing(epsilon, 1e-5);
        assert_eq!(caveat(standing(0.5), 1e-5), None);
        assert!(caveat(standing(2.0), 1e-5).unwrap().contains("proved for ε below 1"));
        assert!(caveat(standing(10.0), 1e-5).unwrap().contains("false here"));
    }
}
