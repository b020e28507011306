//! Ways to say as much for less: one symbol a window, symbols only around alarms, answers
//! that are remembered. Each knows its own arithmetic; none knows what the symbols mean.

use super::PrivacyError;
use super::account::Tally;
use super::memory::FilterMemory;
use super::randomness::Randomness;
use super::release::{Guarded, Spend, Symbol};
use super::response::Response;
use super::sampler::discrete_laplace;

/// When a client speaks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cadence {
    /// A symbol at every step.
    EveryStep { response: Response },
    /// The strongest symbol of every window.
    OncePerWindow {
        response: Response,
        /// Length of a window.
        steps: u64,
    },
    /// `burst` symbols after every alarm of a private local watch, and nothing else.
    PerAlarm {
        response: Response,
        /// ε of one arming of the watch.
        watch: f64,
        /// Symbols after an alarm.
        burst: u64,
    },
}

impl Cadence {
    /// What `steps` steps with `alarms` alarms among them release. Every alarm costs its burst
    /// and a new arming; a quiet day costs the one arming it began with.
    pub(crate) fn tally(&self, steps: u64, alarms: u64) -> Tally {
        match *self {
            Self::EveryStep { response } => Tally::of(response.spend(), steps),
            Self::OncePerWindow { response, steps: window } => {
                Tally::of(response.spend(), steps / window.max(1))
            }
            Self::PerAlarm { response, watch, burst } => {
                let mut tally = Tally::of(response.spend(), alarms * burst);
                tally.add(Spend::AboveThreshold { epsilon: watch }, alarms + 1);
                tally
            }
        }
    }
}

/// The strongest symbol of each window. A sample is in one window only, so it is told of once.
#[derive(Debug, Clone)]
pub(crate) struct StrongestOf {
    steps: u64,
    seen: u64,
    strongest: Symbol,
}

impl StrongestOf {
    /// Windows of `steps` ≥ 1 steps.
    pub(crate) fn new(steps: u64) -> Self {
        Self { steps: steps.max(1), seen: 0, strongest: Symbol(0) }
    }

    /// Takes one step's symbol and, at the end of a window, gives the strongest.
    pub(crate) fn push(&mut self, symbol: Symbol) -> Option<Symbol> {
        self.strongest = self.strongest.max(symbol);
        self.seen += 1;
        if self.seen < self.steps {
            return None;
        }
        self.seen = 0;
        Some(std::mem::replace(&mut self.strongest, Symbol(0)))
    }
}

/// Settings of a private local watch: a CUSUM of a clipped score, on a grid, against a threshold.
///
/// To be silent until a statistic is high would tell, by the silence, that it was low. Here both
/// the threshold and every look at the statistic are noised (above-threshold; Dwork and Roth
/// 2014, theorem 3.23): however many steps stay below, they and the one that does not cost ε
/// together. One sample moves the CUSUM by at most the range of its clipped score at all later
/// times, because S ↦ max(0, S + x) never widens a difference; a filter's memory multiplies that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Watch {
    epsilon: f64,
    /// The score's bound, in grid steps.
    reach: i64,
    /// Taken off every score, in grid steps.
    drift: i64,
    threshold: i64,
    /// The most one sample can move the CUSUM, in grid steps.
    sensitivity: u64,
    grid: f64,
}

/// Grid steps per score bound.
const SCORE_STEPS: f64 = 1024.0;

impl Watch {
    /// A watch of ε per arming over scores clipped to ±`bound`, with `drift` taken off each and
    /// an alarm near `threshold`.
    pub(crate) fn new(
        epsilon: f64,
        bound: f64,
        drift: f64,
        threshold: f64,
        memory: &FilterMemory,
    ) -> Result<Self, PrivacyError> {
        let wrong = |what, expected, found| Err(PrivacyError::Setting { what, expected, found });
        if !(epsilon >= 1e-3 && epsilon.is_finite()) {
            return wrong("ε of a watch", "at least 0.001", epsilon);
        }
        if !(bound.is_finite() && bound > 0.0) {
            return wrong("bound of a score", "a number above 0", bound);
        }
        if !(drift >= 0.0 && drift < bound) {
            return wrong("drift of a watch", "at least 0 and below the bound", drift);
        }
        if !(threshold > 0.0 && threshold < 1e6 * bound) {
            return wrong("threshold of a watch", "above 0 and below a million bounds", threshold);
        }
        let grid = bound / SCORE_STEPS;
        let sensitivity = (2.0 * SCORE_STEPS * memory.summed()).ceil();
        if sensitivity * 4.0 / epsilon > super::sampler::MAX_SCALE as f64 {
            return wrong("memory of a watched filter", "a shorter one", memory.summed());
        }
        Ok(Self {
            epsilon,
            reach: SCORE_STEPS as i64,
            drift: (drift / grid).round() as i64,
            threshold: (threshold / grid).round() as i64,
            sensitivity: sensitivity as u64,
            grid,
        })
    }

    /// Arms the watch. The armed watch is of use only once a ledger has taken its price.
    pub(crate) fn arm(&self, random: &mut Randomness) -> Result<Guarded<Armed>, PrivacyError> {
        self.rearm(0, random)
    }

    fn rearm(&self, sum: i64, random: &mut Randomness) -> Result<Guarded<Armed>, PrivacyError> {
        let noise = discrete_laplace(self.scale(2.0), random)?;
        let armed = Armed { watch: *self, sum, threshold: self.threshold + noise };
        let spend = Spend::AboveThreshold { epsilon: self.epsilon };
        Ok(Guarded::new(armed, spend, random.provenance()))
    }

    /// factor·Δ/ε, rounded up: noise never less than the theorem asks for.
    fn scale(&self, factor: f64) -> u64 {
        (factor * self.sensitivity as f64 / self.epsilon).ceil() as u64
    }
}

/// A watch that has been paid for.
#[derive(Debug)]
pub(crate) struct Armed {
    watch: Watch,
    sum: i64,
    threshold: i64,
}

/// What an armed watch says about a step.
#[derive(Debug)]
pub(crate) enum Look {
    /// Still below; the watch goes on at no further cost.
    Quiet(Armed),
    /// Above: an alarm. The watch is used up.
    Raised(Spent),
}

/// A watch that has raised its alarm.
#[derive(Debug)]
pub(crate) struct Spent {
    watch: Watch,
    sum: i64,
}

impl Armed {
    /// Takes one step's score. A score that is not a number leaves the sum as it is.
    pub(crate) fn look(self, score: f64, random: &mut Randomness) -> Result<Look, PrivacyError> {
        let Self { watch, sum, threshold } = self;
        let sum = watch.accumulate(sum, score);
        let noise = discrete_laplace(watch.scale(4.0), random)?;
        Ok(if sum + noise >= threshold {
            Look::Raised(Spent { watch, sum })
        } else {
            Look::Quiet(Self { watch, sum, threshold })
        })
    }
}

impl Spent {
    /// Takes a step's score while the watch is not armed.
    pub(crate) fn follow(&mut self, score: f64) {
        self.sum = self.watch.accumulate(self.sum, score);
    }

    /// Arms the watch again, at its price.
    pub(crate) fn arm(self, random: &mut Randomness) -> Result<Guarded<Armed>, PrivacyError> {
        self.watch.rearm(self.sum, random)
    }
}

impl Watch {
    fn accumulate(&self, sum: i64, score: f64) -> i64 {
        if score.is_nan() {
            return sum;
        }
        let clipped = ((score / self.grid).round() as i64).clamp(-self.reach, self.reach);
        sum.saturating_add(clipped - self.drift).max(0)
    }
}

/// Remembered answers (RAPPOR, Erlingsson and others 2014): each symbol gets one permanent
/// answer, and every report is a fresh answer about that one.
///
/// Averaging many reports finds the permanent answer and no more, so a symbol that never changes
/// costs the permanent ε at most, however long it is reported. A symbol that changes does not
/// have that protection: each report then costs its own ε, and that is what the ledger counts.
#[derive(Debug, Clone)]
pub(crate) struct Memoised {
    permanent: Response,
    report: Response,
    answers: Vec<Option<u8>>,
}

impl Memoised {
    /// A permanent answer by `permanent`, told of by `report`, over the same symbols.
    pub(crate) fn new(permanent: Response, report: Response) -> Result<Self, PrivacyError> {
        if permanent.symbols() != report.symbols() {
            return Err(PrivacyError::Dimension {
                expected: usize::from(permanent.symbols()),
                found: usize::from(report.symbols()),
            });
        }
        let answers = vec![None; usize::from(permanent.symbols())];
        Ok(Self { permanent, report, answers })
    }

    /// The same permanent answers, told of by another `report` from now on.
    pub(crate) fn reporting(self, report: Response) -> Self {
        Self { report, ..self }
    }

    /// A report about `symbol`.
    pub(crate) fn symbol(
        &mut self,
        symbol: Symbol,
        random: &mut Randomness,
    ) -> Result<Guarded<Symbol>, PrivacyError> {
        let permanent = self.permanent(symbol, random)?;
        self.report.symbol(permanent, random)
    }

    /// The permanent answer about `symbol`, drawn if it never was. It stays with the client.
    pub(super) fn permanent(
        &mut self,
        symbol: Symbol,
        random: &mut Randomness,
    ) -> Result<Symbol, PrivacyError> {
        let place = usize::from(symbol.0);
        let found = place + 1;
        let expected = self.answers.len();
        let answer =
            self.answers.get_mut(place).ok_or(PrivacyError::Dimension { expected, found })?;
        Ok(Symbol(match *answer {
            Some(known) => known,
            None => *answer.insert(self.permanent.answer(symbol.0, random)?),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response() -> Response {
        Response::binary(1.0).unwrap()
    }

    /// Tests may spend without a ledger.
    fn paid(guarded: Guarded<Armed>) -> Armed {
        guarded.value
    }

    #[test]
    fn a_window_tells_its_strongest_symbol_once() {
        let mut window = StrongestOf::new(3);
        let told: Vec<_> = [0, 2, 1, 0, 0, 0, 1].iter().map(|s| window.push(Symbol(*s))).collect();
        assert_eq!(told, [None, None, Some(Symbol(2)), None, None, Some(Symbol(0)), None]);
    }

    #[test]
    fn a_quiet_day_costs_one_arming_and_a_busy_one_what_it_tells() {
        let cadence = Cadence::PerAlarm { response: response(), watch: 1.0, burst: 10 };
        let day = |alarms| cadence.tally(86_400, alarms).epsilon(1e-6).0;
        assert!(day(0) <= 1.0);
        assert!(day(1) <= 12.0 && day(1) > 8.0);
        let every = Cadence::EveryStep { response: response() }.tally(86_400, 1).epsilon(1e-6).0;
        assert!(day(3) < 0.001 * every);
    }

    #[test]
    fn a_symbol_a_quarter_of_an_hour_costs_the_published_day() {
        let cadence = Cadence::OncePerWindow { response: response(), steps: 900 };
        let day = cadence.tally(86_400, 0).composed(1e-6);
        assert_eq!(day.releases, 96);
        assert!((day.epsilon - 80.350_715_214_074_71).abs() < 1e-6);
    }

    #[test]
    fn a_watch_is_quiet_in_quiet_and_raised_in_fault() {
        let watch = Watch::new(2.0, 3.0, 1.5, 120.0, &FilterMemory::NONE).unwrap();
        let mut random = Randomness::seeded(31, 0);
        let mut armed = paid(watch.arm(&mut random).unwrap());
        for _ in 0..2000 {
            armed = match armed.look(0.2, &mut random).unwrap() {
                Look::Quiet(armed) => armed,
                Look::Raised(_) => panic!("a false alarm"),
            };
        }
        let mut delay = 0;
        let mut spent = loop {
            delay += 1;
            match armed.look(9.0, &mut random).unwrap() {
                Look::Quiet(next) => armed = next,
                Look::Raised(spent) => break spent,
            }
        };
        assert!((20..=140).contains(&delay), "raised after {delay} steps");
        (0..200).for_each(|_| spent.follow(0.0));
        assert_eq!(spent.sum, 0);
        let again = spent.arm(&mut random).unwrap();
        assert_eq!(again.spend(), Spend::AboveThreshold { epsilon: 2.0 });
    }

    #[test]
    fn one_sample_moves_the_sum_by_at_most_its_sensitivity_ever_after() {
        let watch = Watch::new(1.0, 3.0, 0.5, 50.0, &FilterMemory::NONE).unwrap();
        let mut random = Randomness::seeded(32, 0);
        for _ in 0..50 {
            let (mut a, mut b) = (0, 0);
            for step in 0..200 {
                let score = random.below(1000).unwrap() as f64 / 100.0 - 5.0;
                a = watch.accumulate(a, score);
                b = watch.accumulate(b, if step == 20 { -score } else { score });
                assert!(a.abs_diff(b) <= watch.sensitivity);
            }
        }
        assert_eq!(watch.accumulate(7, f64::NAN), 7);
        assert!(watch.accumulate(7, f64::INFINITY) > 7);
    }

    #[test]
    fn a_remembered_answer_is_all_that_averaging_finds() {
        let mut memo = Memoised::new(response(), Response::binary(2.0).unwrap()).unwrap();
        let mut random = Randomness::seeded(33, 0);
        let n = 20_000;
        let ones: u32 =
            (0..n).map(|_| u32::from(memo.symbol(Symbol(0), &mut random).unwrap().value.0)).sum();
        let share = f64::from(ones) / f64::from(n);
        let report = Response::binary(2.0).unwrap();
        let permanent = memo.answers[0].unwrap();
        let expected = if permanent == 1 { report.truth() } else { report.flip() };
        assert!((share - expected).abs() < 0.02, "{share}");
        assert!(memo.symbol(Symbol(2), &mut random).is_err());
    }

    #[test]
    fn settings_without_meaning_are_refused() {
        let none = &FilterMemory::NONE;
        assert!(Watch::new(0.0, 1.0, 0.1, 1.0, none).is_err());
        assert!(Watch::new(1.0, -1.0, 0.1, 1.0, none).is_err());
        assert!(Watch::new(1.0, 1.0, 2.0, 1.0, none).is_err());
        assert!(Watch::new(1.0, 1.0, 0.1, f64::NAN, none).is_err());
        assert!(Memoised::new(response(), Response::new(1.0, 3).unwrap()).is_err());
    }
}
