//! How a client's symbols and flags leave it: each through its mechanism, each paid for, and only as
//! often as was agreed.
//!
//! ```text
//! symbol ─► manner: every step │ strongest of a window │ while a watch is raised │ about a kept answer
//!        ─► randomised response ─► the client's ledger ─► Said::Symbol
//! ```
//!
//! When no random numbers can be had nothing is said. It must not know what symbols mean, nor who
//! hears them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::PrivacyError;
use super::account::Tally;
use super::budget::{AtZero, Purpose};
use super::ledger::books::Book;
use super::memory::FilterMemory;
use super::randomness::Randomness;
use super::release::{Flag, Guarded, Quiet, Released, Spend, Symbol, Unprotected as _, What};
use super::response::Response;
use super::thrift::{Armed, Look, Memoised, Spent, StrongestOf, Watch};

/// How often a client speaks. Everybody knows it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(crate) enum Manner {
    #[default]
    EveryStep,
    /// Once per window, of its strongest step.
    Window {
        /// Steps in a window.
        steps: u64,
    },
    /// After a private watch was raised, and not otherwise.
    WhileRaised(Vigil),
    /// At every step, about an answer that was drawn once for every symbol.
    Memoised {
        /// ε of that answer.
        permanent: f64,
    },
}

/// A private watch over scores between −1 and 1: what it costs and how calm it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Vigil {
    /// ε of one arming.
    pub(crate) epsilon: f64,
    /// Symbols that follow when it is raised.
    pub(crate) burst: u64,
    /// Steps between two times that noise alone raises it.
    pub(crate) quiet_steps: f64,
}

impl Vigil {
    /// The sum of scores near which it is raised.
    ///
    /// The noise of a look has scale 8/ε, that of the threshold half of it; the difference of the
    /// two exceeds T with probability (4 e^{−T/s} − e^{−2T/s})/6 where s = 8/ε, so T = s ln(2R/3)
    /// lets noise alone pass once in R looks.
    pub(crate) fn threshold(&self) -> f64 {
        8.0 / self.epsilon * (2.0 / 3.0 * self.quiet_steps).ln().max(1.0)
    }

    /// The watch that keeps to it.
    pub(crate) fn watch(&self) -> Result<Watch, PrivacyError> {
        Watch::new(self.epsilon, 1.0, 0.0, self.threshold(), &FilterMemory::NONE)
    }
}

/// What is heard of a client at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said<T> {
    /// A symbol, or a pair of flags.
    Symbol(T),
    /// The first one after the watch was raised.
    Raised(T),
    /// The watch is armed and was not raised: silence that says something.
    Quiet(Released<Quiet>),
    /// Silence that says nothing: it was not the client's turn, or its budget is spent.
    Nothing,
}

impl<T> Said<T> {
    /// The same about something else.
    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Said<U> {
        match self {
            Self::Symbol(value) => Said::Symbol(f(value)),
            Self::Raised(value) => Said::Raised(f(value)),
            Self::Quiet(quiet) => Said::Quiet(quiet),
            Self::Nothing => Said::Nothing,
        }
    }
}

/// Where releases are paid for.
trait Till {
    fn admits(&mut self, purpose: Purpose, spend: Spend) -> bool;
    fn pay<T>(&mut self, what: What, purpose: Purpose, guarded: Guarded<T>) -> Option<Released<T>>;
    /// Whether what is left is kept for alarms.
    fn keeps_for_alarms(&self) -> bool;
    fn fail(&mut self, why: &PrivacyError);
}

/// One client's ledger at one step.
#[derive(Debug)]
pub(crate) struct Account<'a> {
    pub(crate) book: &'a mut Book,
    /// The time of the sample that is told of.
    pub(crate) time: Timestamp,
}

impl Till for Account<'_> {
    fn admits(&mut self, purpose: Purpose, spend: Spend) -> bool {
        self.book.ledger_mut().admits(self.time, purpose, spend)
    }

    fn pay<T>(&mut self, what: What, purpose: Purpose, guarded: Guarded<T>) -> Option<Released<T>> {
        self.book.enter(self.time, what, purpose, guarded).ok()
    }

    fn keeps_for_alarms(&self) -> bool {
        let budget = self.book.ledger().terms().budget;
        budget.is_some_and(|budget| matches!(budget.at_zero, AtZero::AlarmsOnly { .. }))
    }

    fn fail(&mut self, why: &PrivacyError) {
        self.book.fail(why);
    }
}

/// Nothing leaves a rehearsal, so it is only counted.
struct Rehearsal<'a>(&'a mut Tally);

impl Till for Rehearsal<'_> {
    fn admits(&mut self, _: Purpose, _: Spend) -> bool {
        true
    }

    fn pay<T>(&mut self, _: What, _: Purpose, guarded: Guarded<T>) -> Option<Released<T>> {
        self.0.add(guarded.spend, 1);
        Some(Released::new(guarded.value, guarded.provenance))
    }

    fn keeps_for_alarms(&self) -> bool {
        false
    }

    fn fail(&mut self, _: &PrivacyError) {}
}

/// A pair of flags that may be sent.
type Pair = (Released<Flag>, Released<Flag>);

/// Where the watch stands.
#[derive(Debug, Default)]
enum Guard {
    #[default]
    Off,
    /// Used up; armed again at the next step.
    Ready(Spent),
    Armed(Armed),
    /// Raised, with so many symbols still to be sent.
    Speaking(Spent, u64),
}

/// One client's way out.
#[derive(Debug)]
pub(crate) struct Voice {
    /// Absent: sent as it is.
    response: Option<Response>,
    symbols: u8,
    manner: Manner,
    window: StrongestOf,
    memo: Option<Memoised>,
    vigil: Vigil,
    watch: Watch,
    guard: Guard,
    random: Randomness,
    /// What rehearsals would have cost.
    rehearsed: Tally,
}

impl Voice {
    /// A voice of ε per symbol (none: in the clear) over `symbols` symbols. `vigil` is the watch to
    /// fall back on when a budget keeps what is left for alarms.
    pub(crate) fn new(
        epsilon: Option<f64>,
        symbols: u8,
        manner: Manner,
        vigil: Vigil,
        random: Randomness,
    ) -> Result<Self, PrivacyError> {
        let vigil = if let Manner::WhileRaised(vigil) = manner { vigil } else { vigil };
        let steps = if let Manner::Window { steps } = manner { steps } else { 1 };
        let mut voice = Self {
            response: None,
            symbols,
            manner,
            window: StrongestOf::new(steps),
            memo: None,
            vigil,
            watch: vigil.watch()?,
            guard: Guard::Off,
            random,
            rehearsed: Tally::NOTHING,
        };
        voice.set_epsilon(epsilon)?;
        Ok(voice)
    }

    /// Whether symbols may have another ε from now on.
    ///
    /// A report about a kept answer tells of that answer only, so it may be told at any ε: each is
    /// priced by its own. A level in the clear is no report: whoever hears it knows what the kept
    /// answer hid in all the reports before, and their promise is broken after the fact.
    pub(crate) fn check_epsilon(&self, epsilon: Option<f64>) -> Result<(), PrivacyError> {
        match epsilon {
            None if self.memo.is_some() => Err(PrivacyError::Kept),
            Some(epsilon) => Response::new(epsilon, self.symbols).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Another ε per symbol from now on. Answers that are kept stay kept.
    pub(crate) fn set_epsilon(&mut self, epsilon: Option<f64>) -> Result<(), PrivacyError> {
        self.check_epsilon(epsilon)?;
        let response = epsilon.map(|epsilon| Response::new(epsilon, self.symbols)).transpose()?;
        if let (Manner::Memoised { permanent }, Some(report)) = (self.manner, response) {
            let memo = match self.memo.take() {
                Some(memo) => memo.reporting(report),
                None => Memoised::new(Response::new(permanent, self.symbols)?, report)?,
            };
            self.memo = Some(memo);
        }
        self.response = response;
        Ok(())
    }

    /// A new run begins: half a window and a half-raised watch belong to the one before.
    pub(crate) fn reset(&mut self) {
        if let Manner::Window { steps } = self.manner {
            self.window = StrongestOf::new(steps);
        }
        // An armed watch is paid for and knows nothing of the new run that it should not.
        if let Guard::Speaking(spent, _) = std::mem::take(&mut self.guard) {
            self.guard = Guard::Ready(spent);
        }
    }

    /// Forgets what was rehearsed: nobody has paid for the watch that was armed then. Answers that
    /// are kept stay.
    pub(crate) fn forget(&mut self) {
        self.guard = Guard::Off;
        self.reset();
    }

    /// Says what `told` and `score` (between −1 and 1; high is alarming) give to say.
    pub(crate) fn symbol(
        &mut self,
        account: &mut Account<'_>,
        told: Symbol,
        score: f64,
    ) -> Said<Released<Symbol>> {
        self.say(account, told, score)
    }

    /// What would be said, for calibrations and simulations: nothing leaves.
    pub(crate) fn rehearse(&mut self, told: Symbol, score: f64) -> Said<Symbol> {
        let mut rehearsed = std::mem::take(&mut self.rehearsed);
        let said = self.say(&mut Rehearsal(&mut rehearsed), told, score);
        self.rehearsed = rehearsed;
        said.map(Released::into_value)
    }

    /// What all rehearsals would have cost.
    pub(crate) fn rehearsed(&self) -> &Tally {
        &self.rehearsed
    }

    /// The answer that is kept for a symbol, drawn if it never was; the symbol itself where answers
    /// are not kept.
    pub(crate) fn kept_answer(&mut self, told: Symbol) -> Symbol {
        let Some(memo) = &mut self.memo else { return told };
        memo.permanent(told, &mut self.random).unwrap_or(told)
    }

    fn say(&mut self, till: &mut impl Till, told: Symbol, score: f64) -> Said<Released<Symbol>> {
        let said = match self.manner {
            Manner::WhileRaised(_) => self.watched(till, told, score),
            Manner::EveryStep | Manner::Memoised { .. } => self.routine(till, told, score),
            Manner::Window { .. } => match self.window.push(told) {
                Some(strongest) => self.routine(till, strongest, score),
                None => Ok(Said::Nothing),
            },
        };
        said.unwrap_or_else(|why| {
            till.fail(&why);
            Said::Nothing
        })
    }

    fn spend(&self) -> Spend {
        self.response.map_or(Spend::Clear, |response| response.spend())
    }

    fn routine(
        &mut self,
        till: &mut impl Till,
        told: Symbol,
        score: f64,
    ) -> Result<Said<Released<Symbol>>, PrivacyError> {
        if till.admits(Purpose::Routine, self.spend()) {
            let said = self.speak(till, Purpose::Routine, told)?;
            return Ok(said.map_or(Said::Nothing, Said::Symbol));
        }
        if till.keeps_for_alarms() { self.watched(till, told, score) } else { Ok(Said::Nothing) }
    }

    fn speak(
        &mut self,
        till: &mut impl Till,
        purpose: Purpose,
        told: Symbol,
    ) -> Result<Option<Released<Symbol>>, PrivacyError> {
        let guarded = match (&mut self.memo, self.response) {
            (Some(memo), _) => memo.symbol(told, &mut self.random)?,
            (None, Some(response)) => response.symbol(told, &mut self.random)?,
            (None, None) => told.unprotected(),
        };
        Ok(till.pay(What::Symbol, purpose, guarded))
    }

    fn watched(
        &mut self,
        till: &mut impl Till,
        told: Symbol,
        score: f64,
    ) -> Result<Said<Released<Symbol>>, PrivacyError> {
        match self.look(till, score)? {
            Said::Quiet(quiet) => Ok(Said::Quiet(quiet)),
            Said::Nothing => Ok(Said::Nothing),
            Said::Raised(()) => {
                let said = self.speak(till, Purpose::Alarm, told)?;
                Ok(said.map_or(Said::Nothing, Said::Raised))
            }
            Said::Symbol(()) => {
                let said = self.speak(till, Purpose::Alarm, told)?;
                Ok(said.map_or(Said::Nothing, Said::Symbol))
            }
        }
    }

    /// Whether the watch lets the client speak at this step.
    fn look(&mut self, till: &mut impl Till, score: f64) -> Result<Said<()>, PrivacyError> {
        let spend = Spend::AboveThreshold { epsilon: self.vigil.epsilon };
        let arming = match std::mem::take(&mut self.guard) {
            Guard::Speaking(mut spent, left) => {
                spent.follow(score);
                self.guard = rest(spent, left);
                return Ok(Said::Symbol(()));
            }
            Guard::Armed(armed) => return self.look_once(armed, score),
            ready if !till.admits(Purpose::Alarm, spend) => {
                self.guard = ready;
                return Ok(Said::Nothing);
            }
            Guard::Ready(spent) => spent.arm(&mut self.random)?,
            Guard::Off => self.watch.arm(&mut self.random)?,
        };
        match till.pay(What::Watch, Purpose::Alarm, arming) {
            Some(armed) => self.look_once(armed.into_value(), score),
            None => Ok(Said::Nothing),
        }
    }

    fn look_once(&mut self, armed: Armed, score: f64) -> Result<Said<()>, PrivacyError> {
        Ok(match armed.look(score, &mut self.random)? {
            Look::Quiet(armed) => {
                self.guard = Guard::Armed(armed);
                // The arming was entered for as long as it lasts.
                Said::Quiet(Released::new(Quiet, self.random.provenance()))
            }
            Look::Raised(spent) => {
                self.guard = rest(spent, self.vigil.burst);
                Said::Raised(())
            }
        })
    }

    /// Says a pair of flags (paper mode), at every step.
    pub(crate) fn flags(&mut self, account: &mut Account<'_>, z_c: Flag, z_a: Flag) -> Said<Pair> {
        self.pair(account, z_c, z_a).unwrap_or_else(|why| {
            account.fail(&why);
            Said::Nothing
        })
    }

    fn pair(
        &mut self,
        till: &mut impl Till,
        z_c: Flag,
        z_a: Flag,
    ) -> Result<Said<Pair>, PrivacyError> {
        let (purpose, turn) = if till.admits(Purpose::Routine, self.spend()) {
            (Purpose::Routine, Said::Symbol(()))
        } else if till.keeps_for_alarms() {
            (Purpose::Alarm, self.look(till, if z_c.0 { 1.0 } else { -1.0 })?)
        } else {
            (Purpose::Routine, Said::Nothing)
        };
        match turn {
            Said::Quiet(quiet) => return Ok(Said::Quiet(quiet)),
            Said::Nothing => return Ok(Said::Nothing),
            Said::Symbol(()) | Said::Raised(()) => {}
        }
        let mut release = |what, flag: Flag| -> Result<Option<Released<Flag>>, PrivacyError> {
            let guarded = match self.response {
                Some(response) => response.flag(flag, &mut self.random)?,
                None => flag.unprotected(),
            };
            Ok(till.pay(what, purpose, guarded))
        };
        let c = release(What::ProprietaryFlag, z_c)?;
        let a = release(What::AugmentedFlag, z_a)?;
        Ok(match c.zip(a) {
            Some(flags) => turn.map(|()| flags),
            None => Said::Nothing,
        })
    }
}

/// After one of `left` symbols.
fn rest(spent: Spent, left: u64) -> Guard {
    if left > 1 { Guard::Speaking(spent, left - 1) } else { Guard::Ready(spent) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::ledger::{Scope, Terms};
    use crate::privacy::{Budget, Ledger};

    const VIGIL: Vigil = Vigil { epsilon: 8.0, burst: 4, quiet_steps: 1000.0 };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_691_798_400 + second).unwrap()
    }

    fn book(budget: Option<Budget>) -> Book {
        let terms = Terms { delta: 1e-6, memory: FilterMemory::NONE, budget };
        Book::unwritten("P1", terms).unwrap()
    }

    fn voice(epsilon: Option<f64>, manner: Manner) -> Voice {
        Voice::new(epsilon, 5, manner, VIGIL, Randomness::seeded(7, 0)).unwrap()
    }

    /// What is heard when the level is `level(t)` and scores follow it.
    fn heard(
        voice: &mut Voice,
        book: &mut Book,
        steps: i64,
        level: impl Fn(i64) -> u8,
    ) -> Vec<Said<u8>> {
        (0..steps)
            .map(|t| {
                let score = if level(t) > 1 { 1.0 } else { -1.0 };
                let mut account = Account { book, time: at(t) };
                voice.symbol(&mut account, Symbol(level(t)), score).map(|said| said.value().0)
            })
            .collect()
    }

    fn releases(ledger: &Ledger, what: What) -> u64 {
        ledger.counts().iter().filter(|c| c.what == what).map(|c| c.count).sum()
    }

    #[test]
    fn every_step_is_said_and_paid_for_once() {
        let mut book = book(None);
        let said = heard(&mut voice(Some(2.0), Manner::EveryStep), &mut book, 50, |_| 3);
        assert!(said.iter().all(|s| matches!(s, Said::Symbol(_))));
        assert_eq!(book.ledger().live().releases, 50);
        let clear = heard(&mut voice(None, Manner::EveryStep), &mut book, 3, |t| t as u8);
        assert_eq!(clear, [Said::Symbol(0), Said::Symbol(1), Said::Symbol(2)]);
        assert!(book.ledger().live().epsilon.is_infinite());
    }

    #[test]
    fn a_window_is_said_once_by_its_strongest_step() {
        let mut book = book(None);
        let mut voice = voice(Some(50.0), Manner::Window { steps: 4 });
        let said = heard(&mut voice, &mut book, 8, |t| u8::from(t == 5) * 4);
        let silence = Said::Nothing;
        assert_eq!(said[..4], [silence, silence, silence, Said::Symbol(0)]);
        assert_eq!(said[4..], [silence, silence, silence, Said::Symbol(4)]);
        assert_eq!(releases(book.ledger(), What::Symbol), 2);
    }

    #[test]
    fn a_watch_pays_for_its_arming_and_for_what_follows_an_alarm() {
        let mut book = book(None);
        let mut voice = voice(Some(2.0), Manner::WhileRaised(VIGIL));
        let said = heard(&mut voice, &mut book, 300, |t| if t < 200 { 0 } else { 4 });
        let raised: Vec<usize> = (0..300).filter(|t| matches!(said[*t], Said::Raised(_))).collect();
        assert!(
            said[..190].iter().filter(|s| matches!(s, Said::Quiet(_))).count() > 180,
            "{said:?}"
        );
        let first = *raised.iter().find(|t| **t >= 200).expect("a long fault raises the watch");
        assert!(first < 240, "raised at {first}");
        assert!(said[first + 1..first + 4].iter().all(|s| matches!(s, Said::Symbol(_))));
        let ledger = book.ledger();
        let armings = releases(ledger, What::Watch);
        assert!(armings == raised.len() as u64 || armings == raised.len() as u64 + 1);
        let symbols = said.iter().filter(|s| matches!(s, Said::Raised(_) | Said::Symbol(_)));
        assert_eq!(releases(ledger, What::Symbol), symbols.count() as u64);
    }

    #[test]
    fn a_spent_budget_ends_it_and_what_is_kept_for_alarms_serves_the_watch() {
        let budget = |at_zero| Budget::new(60.0, Scope::Lifetime, at_zero).ok();
        let mut stopped = book(budget(AtZero::Stop));
        let said = heard(&mut voice(Some(2.0), Manner::EveryStep), &mut stopped, 300, |_| 0);
        let last = said.iter().rposition(|s| *s != Said::Nothing).expect("some are said");
        assert!(said[..last].iter().all(|s| matches!(s, Said::Symbol(_))), "no gap before the end");
        assert!(last < 100 && stopped.ledger().live().epsilon <= 60.0);

        let mut kept = book(budget(AtZero::AlarmsOnly { reserve: 40.0 }));
        let mut voice = voice(Some(2.0), Manner::EveryStep);
        let said = heard(&mut voice, &mut kept, 300, |t| if t < 250 { 0 } else { 4 });
        assert!(said.iter().any(|s| matches!(s, Said::Quiet(_))));
        assert!(said[250..].iter().any(|s| matches!(s, Said::Raised(_))), "{said:?}");
        assert!(kept.ledger().live().epsilon <= 60.0);
    }

    #[test]
    fn flags_of_a_pair_are_two_releases() {
        let mut book = book(None);
        let mut voice =
            Voice::new(Some(60.0), 2, Manner::EveryStep, VIGIL, Randomness::seeded(1, 0)).unwrap();
        let mut account = Account { book: &mut book, time: at(0) };
        let said = voice.flags(&mut account, Flag(true), Flag(false));
        let said = said.map(|(c, a)| (c.value().0, a.value().0));
        assert_eq!(said, Said::Symbol((true, false)));
        assert_eq!(book.ledger().counts().len(), 2);
    }

    #[test]
    fn a_kept_answer_is_always_the_same() {
        let mut voice = voice(Some(50.0), Manner::Memoised { permanent: 0.5 });
        let kept: Vec<Symbol> = (0..5).map(|level| voice.kept_answer(Symbol(level))).collect();
        for _ in 0..20 {
            for level in 0..5 {
                let said = voice.rehearse(Symbol(level), 0.0);
                assert_eq!(said, Said::Symbol(kept[usize::from(level)]));
            }
        }
        assert_eq!(voice.rehearsed().releases(), 100);
        voice.set_epsilon(Some(60.0)).unwrap();
        assert_eq!(voice.kept_answer(Symbol(2)), kept[2]);
    }

    #[test]
    fn what_kept_answers_hid_is_not_given_away_afterwards() {
        let mut book = book(None);
        let mut voice = voice(Some(2.0), Manner::Memoised { permanent: 1.0 });
        heard(&mut voice, &mut book, 5, |_| 3);
        assert!(matches!(voice.set_epsilon(None), Err(PrivacyError::Kept)));
        heard(&mut voice, &mut book, 5, |_| 3);
        voice.set_epsilon(Some(1.0)).unwrap();
        heard(&mut voice, &mut book, 5, |_| 3);
        let told: Vec<(Spend, u64)> =
            book.ledger().counts().iter().map(|c| (c.spend, c.count)).collect();
        let at = |epsilon| Spend::Response { epsilon, symbols: 5 };
        assert_eq!(told, [(at(2.0), 10), (at(1.0), 5)], "each report at the ε of its day");
        let mut plain = self::voice(Some(2.0), Manner::EveryStep);
        assert!(plain.set_epsilon(None).is_ok(), "a step in the clear tells of no other step");
    }
}
