//! What an ε of a session would cost and how soon a fault would be noticed with it: the figures by which a
//! person chooses it. A change counts from now on only; what is spent stays spent.

use serde::{Deserialize, Serialize};

use super::PrivacyError;
use super::account::Tally;
use super::cusum::{FlagCusum, SymbolCusum};
use super::mechanism::{Clip, Gaussian};
use super::release::Spend;
use super::response::Response;
use super::sparse_vector::SparseVectorParams;
use crate::session::privacy::{PrivacySettings, SendPolicy, Sigma};

/// σ of the noise on every component of a state or gradient at (ε, δ) by `rule` under `clip`.
pub(crate) fn noise_sigma(
    clip: Clip,
    rule: Sigma,
    epsilon: f64,
    delta: f64,
) -> Result<f64, PrivacyError> {
    Gaussian::new(clip, rule, epsilon, delta).map(|mechanism| mechanism.sigma())
}

/// What a forecast depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ForecastInput<'a> {
    pub(crate) settings: &'a PrivacySettings,
    /// Wanted steps between false alarms.
    pub(crate) arl0_steps: f64,
    /// Seconds in a step.
    pub(crate) period_s: f64,
    /// How symbols are distributed when nothing is wrong …
    pub(crate) quiet: &'a [f64],
    /// … and when the fault is the client's own.
    pub(crate) faulty: &'a [f64],
    /// A pair of flags is sent at every step (paper mode), not one symbol by the session's policy.
    pub(crate) pairs: bool,
}

impl ForecastInput<'_> {
    fn policy(&self) -> SendPolicy {
        if self.pairs { SendPolicy::EveryStep } else { self.settings.send }
    }

    fn watch(&self) -> SparseVectorParams {
        SparseVectorParams::of(self.settings, self.arl0_steps)
    }

    /// What a day releases at `response` a symbol or flag, with one alarm where only alarms are sent.
    /// An alarm costs its burst and a new arming; the day began with one.
    fn day(&self, response: Response) -> Tally {
        let steps = (86_400.0 / self.period_s) as u64 * if self.pairs { 2 } else { 1 };
        match self.policy() {
            SendPolicy::EveryStep | SendPolicy::Memoised { .. } => {
                Tally::of(response.spend(), steps)
            }
            SendPolicy::Window(window) => Tally::of(response.spend(), steps / window.max(1)),
            SendPolicy::WhileRaised => {
                let watch = self.watch();
                let mut tally = Tally::of(response.spend(), watch.burst);
                tally.add(Spend::AboveThreshold { epsilon: watch.epsilon }, 2);
                tally
            }
        }
    }

    /// Expected steps from a fault to its alarm when every answer is `response`'s; none where the
    /// answers say too little.
    fn delay_steps(&self, response: &Response) -> Result<Option<f64>, PrivacyError> {
        let levels = self.quiet.len() as u8;
        Ok(match self.policy() {
            SendPolicy::EveryStep => delay(response, self.quiet, self.faulty, self.arl0_steps),
            SendPolicy::Window(steps) => {
                let k = steps as f64;
                let (quiet, faulty) = (strongest(self.quiet, k), strongest(self.faulty, k));
                delay(response, &quiet, &faulty, self.arl0_steps / k).map(|windows| windows * k)
            }
            SendPolicy::Memoised { permanent } => {
                let kept = Response::new(permanent, levels)?;
                let (quiet, faulty) = (kept.answers(self.quiet), kept.answers(self.faulty));
                delay(response, &quiet, &faulty, self.arl0_steps)
            }
            SendPolicy::WhileRaised => Some(self.until_raised()),
        })
    }

    /// Steps in which a watch climbs to its threshold by the mean score of a fault.
    fn until_raised(&self) -> f64 {
        let ratio = |q: f64, f: f64| (f / q).ln();
        let unit = ratio(self.quiet[0], self.faulty[0]).abs().max(f64::MIN_POSITIVE);
        let climb: f64 = self
            .quiet
            .iter()
            .zip(self.faulty)
            .map(|(q, f)| f * (ratio(*q, *f) / unit).clamp(-1.0, 1.0))
            .sum();
        self.watch().threshold() / climb.max(f64::MIN_POSITIVE)
    }
}

/// The ε of a flag or symbol that are compared.
pub(crate) const OPTIONS: [f64; 14] =
    [0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];

/// An ε so large that no answer is ever wrong.
const CERTAIN: f64 = 60.0;

/// What one ε of a flag or symbol would mean from now on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct EpsilonOption {
    /// The ε; none is unprotected.
    pub(crate) epsilon: Option<f64>,
    /// The chance that an answer is not the true one.
    pub(crate) flip: f64,
    /// Seconds from a fault to its alarm; none where answers say too little.
    pub(crate) delay_s: Option<f64>,
    /// ε of one day of them, composed at the session's δ; infinite when unprotected.
    pub(crate) day: f64,
}

/// Every ε of [`OPTIONS`], and no protection at the end, for what is sent in this situation.
pub(crate) fn epsilon_options(
    input: &ForecastInput<'_>,
) -> Result<Vec<EpsilonOption>, PrivacyError> {
    let levels = input.quiet.len() as u8;
    let option = move |epsilon: Option<f64>| {
        let response = Response::new(epsilon.unwrap_or(CERTAIN), levels)?;
        let delay_s = input.delay_steps(&response)?.map(|steps| steps * input.period_s);
        let (flip, day) = match epsilon {
            Some(_) => (response.flip(), input.day(response).epsilon(input.settings.delta).0),
            None => (0.0, f64::INFINITY),
        };
        Ok(EpsilonOption { epsilon, flip, delay_s, day })
    };
    // A console that opens waits for all of them.
    std::thread::scope(|scope| {
        let epsilons = OPTIONS.iter().copied().map(Some).chain([None]);
        let each: Vec<_> = epsilons.map(|epsilon| scope.spawn(move || option(epsilon))).collect();
        each.into_iter().map(|one| one.join().expect("no option panics")).collect()
    })
}

/// Symbols until an alarm: of a sum over all levels, or of one over the elevated half of them where
/// that is sooner. The table of the first is too coarse for what a small ε leaves over.
fn delay(response: &Response, quiet: &[f64], faulty: &[f64], arl0: f64) -> Option<f64> {
    let graded = SymbolCusum::design(response, quiet, faulty, arl0).map(|cusum| cusum.arl1);
    let (quiet, faulty) = (response.answers(quiet), response.answers(faulty));
    let half = quiet.len().div_ceil(2);
    let above = |shares: &[f64]| shares[half..].iter().sum::<f64>();
    let halved = FlagCusum::design(above(&quiet), above(&faulty), arl0)
        .filter(|told| told.arl1 < told.arl0)
        .map(|told| told.arl1);
    graded.into_iter().chain(halved).reduce(f64::min)
}

/// The distribution of the highest of `k` independent symbols.
pub(crate) fn strongest(shares: &[f64], k: f64) -> Vec<f64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: [f64; 5] = [0.8, 0.15, 0.04, 0.008, 0.002];
    const FAULTY: [f64; 5] = [0.215, 0.147, 0.137, 0.107, 0.394];

    fn settings(send: SendPolicy) -> PrivacySettings {
        PrivacySettings { epsilon_flag: Some(2.0), send, ..PrivacySettings::default() }
    }

    fn input(settings: &PrivacySettings) -> ForecastInput<'_> {
        ForecastInput {
            settings,
            arl0_steps: 17_280.0,
            period_s: 5.0,
            quiet: &QUIET,
            faulty: &FAULTY,
            pairs: false,
        }
    }

    #[test]
    fn every_send_policy_has_its_delay() {
        let delay = |send| {
            let settings = settings(send);
            let response = Response::new(2.0, 5).unwrap();
            input(&settings).delay_steps(&response).unwrap().unwrap()
        };
        let every = delay(SendPolicy::EveryStep);
        assert!(delay(SendPolicy::Window(6)) > every);
        assert!(delay(SendPolicy::Memoised { permanent: 3.0 }) > every);
        assert!(delay(SendPolicy::WhileRaised) > 1.0);
    }

    #[test]
    fn the_options_price_the_symbol_that_is_sent() {
        let settings = settings(SendPolicy::EveryStep);
        let symbols = epsilon_options(&input(&settings)).unwrap();
        assert_eq!(symbols.len(), OPTIONS.len() + 1);
        let at = |options: &[EpsilonOption], epsilon: f64| {
            *options.iter().find(|option| option.epsilon == Some(epsilon)).unwrap()
        };
        // Five symbols at ε 2: four lies beside one truth.
        let two = at(&symbols, 2.0);
        assert!((two.flip - 4.0 / (2.0_f64.exp() + 4.0)).abs() < 1e-12);
        let day = Tally::of(Spend::Response { epsilon: 2.0, symbols: 5 }, 17_280);
        assert_eq!(two.day.to_bits(), day.epsilon(1e-5).0.to_bits());
        let delays: Vec<f64> = symbols.iter().rev().map(|r| r.delay_s.unwrap()).collect();
        assert!(delays.is_sorted(), "{delays:?}");
        let days: Vec<f64> = symbols.iter().map(|r| r.day).collect();
        assert!(days.is_sorted() && days[OPTIONS.len()].is_infinite(), "{days:?}");
        let flags = epsilon_options(&ForecastInput {
            quiet: &[0.95, 0.05],
            faulty: &[0.36, 0.64],
            pairs: true,
            ..input(&settings)
        });
        let flag = at(&flags.unwrap(), 2.0);
        assert!((flag.flip - 1.0 / (2.0_f64.exp() + 1.0)).abs() < 1e-12);
        assert!(flag.day > 1.9 * two.day, "two flags a step: {} and {}", flag.day, two.day);
    }

    #[test]
    fn a_policy_that_sends_less_is_cheaper_and_flags_know_none() {
        let day = |send, pairs| {
            let settings = settings(send);
            let options = epsilon_options(&ForecastInput { pairs, ..input(&settings) }).unwrap();
            options.iter().find(|option| option.epsilon == Some(2.0)).unwrap().day
        };
        let every = day(SendPolicy::EveryStep, false);
        assert!(day(SendPolicy::Window(12), false) < every / 8.0);
        assert!(day(SendPolicy::WhileRaised, false) < every / 100.0);
        assert_eq!(
            day(SendPolicy::WhileRaised, true).to_bits(),
            day(SendPolicy::EveryStep, true).to_bits()
        );
    }
}
