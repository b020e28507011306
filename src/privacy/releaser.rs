//! How a client's symbols and flags leave it: each through its mechanism, each paid for, and only as
//! often as was agreed.
//!
//! ```text
//! symbol ─► send policy: every step │ strongest of a window │ while a watch is raised │ about a kept answer
//!        ─► randomised response ─► the client's ledger ─► Release::Symbol
//! ```
//!
//! Without random numbers nothing is released. It must not know what symbols mean, nor who receives
//! them.

use jiff::Timestamp;

use super::PrivacyError;
use super::account::Tally;
use super::budget::Purpose;
use super::ledger::Ledger;
use super::randomness::Randomness;
use super::release::{Flag, Guarded, Quiet, Released, Spend, Symbol, Unprotected as _, What};
use super::response::Response;
use super::send_policy::{Memoised, StrongestOf};
use super::sparse_vector::{Armed, Look, SparseVectorParams, Spent, Watch};
use crate::session::privacy::{AtZero, SendPolicy};

/// What leaves a client at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release<T> {
    /// A symbol, or a pair of flags.
    Symbol(T),
    /// The first one after the watch was raised.
    Raised(T),
    /// The watch is armed and was not raised: silence that carries information.
    Quiet(Released<Quiet>),
    /// Silence that carries none: the policy sends nothing now, or the budget is spent.
    Nothing,
}

impl<T> Release<T> {
    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Release<U> {
        match self {
            Self::Symbol(value) => Release::Symbol(f(value)),
            Self::Raised(value) => Release::Raised(f(value)),
            Self::Quiet(quiet) => Release::Quiet(quiet),
            Self::Nothing => Release::Nothing,
        }
    }
}

/// Where releases are paid for.
trait Payer {
    fn admits(&mut self, purpose: Purpose, spend: Spend) -> bool;
    fn pay<T>(&mut self, what: What, purpose: Purpose, guarded: Guarded<T>) -> Option<Released<T>>;
    /// Whether what is left is kept for alarms.
    fn keeps_for_alarms(&self) -> bool;
    fn fail(&mut self, why: &PrivacyError);
}

/// One client's ledger at one step.
#[derive(Debug)]
pub(crate) struct Account<'a> {
    pub(crate) ledger: &'a mut Ledger,
    /// The time of the sample that the release is about.
    pub(crate) time: Timestamp,
}

impl Payer for Account<'_> {
    fn admits(&mut self, purpose: Purpose, spend: Spend) -> bool {
        self.ledger.admits(self.time, purpose, spend)
    }

    fn pay<T>(&mut self, what: What, purpose: Purpose, guarded: Guarded<T>) -> Option<Released<T>> {
        self.ledger.enter(self.time, what, purpose, guarded)
    }

    fn keeps_for_alarms(&self) -> bool {
        let budget = self.ledger.terms().budget;
        budget.is_some_and(|budget| matches!(budget.at_zero, AtZero::AlarmsOnly { .. }))
    }

    fn fail(&mut self, why: &PrivacyError) {
        self.ledger.fail(why);
    }
}

/// Nothing leaves a rehearsal, so it is only counted.
struct Rehearsal<'a>(&'a mut Tally);

impl Payer for Rehearsal<'_> {
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
enum WatchState {
    #[default]
    Off,
    /// Used up; armed again at the next step.
    Ready(Spent),
    Armed(Armed),
    /// Raised, with so many symbols still to be sent.
    Sending(Spent, u64),
}

/// Releases one client's symbols or flags.
#[derive(Debug)]
pub(crate) struct Releaser {
    /// Absent: no noise.
    response: Option<Response>,
    /// Of Z_a, where it has an ε of its own.
    response_a: Option<Response>,
    symbols: u8,
    policy: SendPolicy,
    window: StrongestOf,
    memo: Option<Memoised>,
    params: SparseVectorParams,
    watch: Watch,
    state: WatchState,
    random: Randomness,
    rehearsed: Tally,
}

impl Releaser {
    /// A releaser of ε per symbol (none: unprotected) over `symbols` symbols. `params` are those of the
    /// watch, for `WhileRaised` and for when a budget keeps what is left for alarms.
    pub(crate) fn new(
        epsilon: Option<f64>,
        symbols: u8,
        policy: SendPolicy,
        params: SparseVectorParams,
        random: Randomness,
    ) -> Result<Self, PrivacyError> {
        let steps = if let SendPolicy::Window(steps) = policy { steps } else { 1 };
        let mut releaser = Self {
            response: None,
            response_a: None,
            symbols,
            policy,
            window: StrongestOf::new(steps),
            memo: None,
            params,
            watch: params.watch()?,
            state: WatchState::Off,
            random,
            rehearsed: Tally::NOTHING,
        };
        releaser.set_epsilon(epsilon)?;
        Ok(releaser)
    }

    /// Whether symbols may have another ε from now on.
    ///
    /// A report about a kept answer reveals that answer only, so it may be sent at any ε: each is
    /// priced by its own. A level in the clear is no report: its receiver knows what the kept
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
        if let (SendPolicy::Memoised { permanent }, Some(report)) = (self.policy, response) {
            let memo = match self.memo.take() {
                Some(memo) => memo.reporting(report),
                None => Memoised::new(Response::new(permanent, self.symbols)?, report)?,
            };
            self.memo = Some(memo);
        }
        self.response = response;
        Ok(())
    }

    /// Another ε of Z_a from now on; with none it has that of Z_c.
    pub(crate) fn set_epsilon_a(&mut self, epsilon: Option<f64>) -> Result<(), PrivacyError> {
        self.response_a = epsilon.map(Response::binary).transpose()?;
        Ok(())
    }

    /// A new run begins: half a window and a half-raised watch belong to the one before.
    pub(crate) fn reset(&mut self) {
        if let SendPolicy::Window(steps) = self.policy {
            self.window = StrongestOf::new(steps);
        }
        // An armed watch is paid for and knows nothing of the new run that it should not.
        if let WatchState::Sending(spent, _) = std::mem::take(&mut self.state) {
            self.state = WatchState::Ready(spent);
        }
    }

    /// Forgets what was rehearsed: the watch that was armed then is not paid for. Answers that
    /// are kept stay.
    pub(crate) fn forget(&mut self) {
        self.state = WatchState::Off;
        self.reset();
    }

    /// Releases a step's symbol by the policy. `score` is between −1 and 1; high is alarming.
    pub(crate) fn symbol(
        &mut self,
        account: &mut Account<'_>,
        told: Symbol,
        score: f64,
    ) -> Release<Released<Symbol>> {
        self.release(account, told, score)
    }

    /// What would be released, for calibrations and simulations: nothing leaves.
    pub(crate) fn rehearse(&mut self, told: Symbol, score: f64) -> Release<Symbol> {
        let mut rehearsed = std::mem::take(&mut self.rehearsed);
        let release = self.release(&mut Rehearsal(&mut rehearsed), told, score);
        self.rehearsed = rehearsed;
        release.map(Released::into_value)
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

    fn release(
        &mut self,
        payer: &mut impl Payer,
        told: Symbol,
        score: f64,
    ) -> Release<Released<Symbol>> {
        let release = match self.policy {
            SendPolicy::WhileRaised => self.watched(payer, told, score),
            SendPolicy::EveryStep | SendPolicy::Memoised { .. } => self.routine(payer, told, score),
            SendPolicy::Window(_) => match self.window.push(told) {
                Some(strongest) => self.routine(payer, strongest, score),
                None => Ok(Release::Nothing),
            },
        };
        release.unwrap_or_else(|why| {
            payer.fail(&why);
            Release::Nothing
        })
    }

    fn spend(&self) -> Spend {
        self.response.map_or(Spend::Clear, |response| response.spend())
    }

    fn routine(
        &mut self,
        payer: &mut impl Payer,
        told: Symbol,
        score: f64,
    ) -> Result<Release<Released<Symbol>>, PrivacyError> {
        if payer.admits(Purpose::Routine, self.spend()) {
            let release = self.send(payer, Purpose::Routine, told)?;
            return Ok(release.map_or(Release::Nothing, Release::Symbol));
        }
        if payer.keeps_for_alarms() {
            self.watched(payer, told, score)
        } else {
            Ok(Release::Nothing)
        }
    }

    fn send(
        &mut self,
        payer: &mut impl Payer,
        purpose: Purpose,
        told: Symbol,
    ) -> Result<Option<Released<Symbol>>, PrivacyError> {
        let guarded = match (&mut self.memo, self.response) {
            (Some(memo), _) => memo.symbol(told, &mut self.random)?,
            (None, Some(response)) => response.symbol(told, &mut self.random)?,
            (None, None) => told.unprotected(),
        };
        Ok(payer.pay(What::Symbol, purpose, guarded))
    }

    fn watched(
        &mut self,
        payer: &mut impl Payer,
        told: Symbol,
        score: f64,
    ) -> Result<Release<Released<Symbol>>, PrivacyError> {
        match self.look(payer, score)? {
            Release::Quiet(quiet) => Ok(Release::Quiet(quiet)),
            Release::Nothing => Ok(Release::Nothing),
            Release::Raised(()) => {
                let release = self.send(payer, Purpose::Alarm, told)?;
                Ok(release.map_or(Release::Nothing, Release::Raised))
            }
            Release::Symbol(()) => {
                let release = self.send(payer, Purpose::Alarm, told)?;
                Ok(release.map_or(Release::Nothing, Release::Symbol))
            }
        }
    }

    /// Whether the watch lets the client send at this step.
    fn look(&mut self, payer: &mut impl Payer, score: f64) -> Result<Release<()>, PrivacyError> {
        let spend = Spend::AboveThreshold { epsilon: self.params.epsilon };
        let arming = match std::mem::take(&mut self.state) {
            WatchState::Sending(mut spent, left) => {
                spent.follow(score);
                self.state = rest(spent, left);
                return Ok(Release::Symbol(()));
            }
            WatchState::Armed(armed) => return self.look_once(armed, score),
            ready if !payer.admits(Purpose::Alarm, spend) => {
                self.state = ready;
                return Ok(Release::Nothing);
            }
            WatchState::Ready(spent) => spent.arm(&mut self.random)?,
            WatchState::Off => self.watch.arm(&mut self.random)?,
        };
        match payer.pay(What::Watch, Purpose::Alarm, arming) {
            Some(armed) => self.look_once(armed.into_value(), score),
            None => Ok(Release::Nothing),
        }
    }

    fn look_once(&mut self, armed: Armed, score: f64) -> Result<Release<()>, PrivacyError> {
        Ok(match armed.look(score, &mut self.random)? {
            Look::Quiet(armed) => {
                self.state = WatchState::Armed(armed);
                // The arming was entered for as long as it lasts.
                Release::Quiet(Released::new(Quiet, self.random.provenance()))
            }
            Look::Raised(spent) => {
                self.state = rest(spent, self.params.burst);
                Release::Raised(())
            }
        })
    }

    /// Releases a pair of flags (paper mode), at every step.
    pub(crate) fn flags(
        &mut self,
        account: &mut Account<'_>,
        z_c: Flag,
        z_a: Flag,
    ) -> Release<Pair> {
        self.pair(account, z_c, z_a).unwrap_or_else(|why| {
            account.fail(&why);
            Release::Nothing
        })
    }

    fn pair(
        &mut self,
        payer: &mut impl Payer,
        z_c: Flag,
        z_a: Flag,
    ) -> Result<Release<Pair>, PrivacyError> {
        let (purpose, turn) = if payer.admits(Purpose::Routine, self.spend()) {
            (Purpose::Routine, Release::Symbol(()))
        } else if payer.keeps_for_alarms() {
            (Purpose::Alarm, self.look(payer, if z_c.0 { 1.0 } else { -1.0 })?)
        } else {
            (Purpose::Routine, Release::Nothing)
        };
        match turn {
            Release::Quiet(quiet) => return Ok(Release::Quiet(quiet)),
            Release::Nothing => return Ok(Release::Nothing),
            Release::Symbol(()) | Release::Raised(()) => {}
        }
        let (of_c, of_a) = (self.response, self.response_a.or(self.response));
        let mut release = |what, response: Option<Response>, flag: Flag| {
            let guarded = match response {
                Some(response) => response.flag(flag, &mut self.random)?,
                None => flag.unprotected(),
            };
            Ok::<_, PrivacyError>(payer.pay(what, purpose, guarded))
        };
        let c = release(What::ProprietaryFlag, of_c, z_c)?;
        let a = release(What::AugmentedFlag, of_a, z_a)?;
        Ok(match c.zip(a) {
            Some(flags) => turn.map(|()| flags),
            None => Release::Nothing,
        })
    }
}

/// After one of `left` symbols.
fn rest(spent: Spent, left: u64) -> WatchState {
    if left > 1 { WatchState::Sending(spent, left - 1) } else { WatchState::Ready(spent) }
}

#[cfg(test)]
mod tests;
