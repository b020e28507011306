//! One client's ledger: what was released about it, what that costs, what is left.
//!
//! The ledger is the only door from a [`Guarded`] value to a [`Released`] one, so nothing leaves
//! unaccounted. It keeps counts, not releases; the releases themselves are the lines it hands
//! out, to be stored before the value is sent.
//!
//! | scope | protects | counts |
//! |---|---|---|
//! | sample | one sample | its own releases and the filter's memory of it |
//! | minute, hour, day | any such stretch of time | the releases within it and the memory of its end |
//! | lifetime | the client's whole history | every release |
//!
//! Where a client's models were not seen to forget, one sample reaches into all that is said after it
//! until they begin anew: every scope then counts all of the live releases, or all of a training.

#[cfg(test)]
use std::io::BufRead;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::PrivacyError;
use super::account::{Composed, Tally};
use super::budget::{AtZero, Budget, Gate, Purpose};
#[cfg(test)]
use super::chain;
#[cfg(test)]
use super::chain::Broken;
use super::chain::{Chain, Entry, Record, Why};
use super::memory::FilterMemory;
use super::randomness::Provenance;
use super::release::{Guarded, Released, Spend, What};
use super::response::Response;
use super::window::Window;

pub(crate) mod books;
pub(crate) mod signed;
mod training;

use self::training::Stretch;
pub(crate) use self::training::Trained;

/// The unit of privacy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scope {
    Sample,
    /// Any minute.
    Minute,
    /// Any hour.
    Hour,
    /// Any day.
    Day,
    Lifetime,
}

impl Scope {
    /// From the shortest to the longest.
    pub(crate) const ALL: [Self; 5] =
        [Self::Sample, Self::Minute, Self::Hour, Self::Day, Self::Lifetime];

    /// What is protected, in words.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Sample => "one sample",
            Self::Minute => "any minute",
            Self::Hour => "any hour",
            Self::Day => "any day",
            Self::Lifetime => "the whole history",
        }
    }

    /// Its length, where it has one.
    pub(crate) fn seconds(self) -> Option<f64> {
        match self {
            Self::Minute => Some(60.0),
            Self::Hour => Some(3600.0),
            Self::Day => Some(86_400.0),
            Self::Sample | Self::Lifetime => None,
        }
    }
}

/// What a ledger is kept by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Terms {
    /// δ of every composed ε.
    pub(crate) delta: f64,
    /// How far one sample reaches into later releases.
    pub(crate) memory: FilterMemory,
    /// How much may be spent.
    pub(crate) budget: Option<Budget>,
}

impl Terms {
    /// The same terms, if a ledger can be kept by them.
    pub(crate) fn checked(self) -> Result<Self, PrivacyError> {
        if !(self.delta > 0.0 && self.delta < 1.0) {
            return Err(PrivacyError::Setting {
                what: "δ of a ledger",
                expected: "a number between 0 and 1",
                found: self.delta,
            });
        }
        self.memory.checked()?;
        if let Some(budget) = self.budget {
            Budget::new(budget.epsilon, budget.over, budget.at_zero)?;
        }
        Ok(self)
    }
}

/// A value that may now be sent, and the line to store before it is.
#[derive(Debug)]
#[must_use = "the line must be stored before the value is sent"]
pub(crate) struct Entered<T> {
    pub(crate) released: Released<T>,
    /// The ledger's line about it, with its line end; empty where no lines are written.
    pub(crate) line: String,
}

/// A release that the budget does not allow. The value is gone: it must not be sent.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{client}: {consequence} (ε {spent:.2} of {limit:.2} spent)")]
pub(crate) struct Refusal {
    pub(crate) client: String,
    /// What the budget's policy makes of it.
    pub(crate) consequence: &'static str,
    /// ε spent over the budget's scope.
    pub(crate) spent: f64,
    /// ε that may be spent for this purpose.
    pub(crate) limit: f64,
}

/// When a budget will be gone at the present pace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Exhaustion {
    /// There is no budget.
    NoBudget,
    /// Not at this pace.
    Never,
    /// In so many seconds, or a little later.
    Seconds(f64),
    /// The next release like the last ones does not fit.
    Now,
}

#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    client: String,
    terms: Terms,
    chain: Chain,
    /// When the first release was made.
    since: Option<Timestamp>,
    /// The last sample with releases and these, and those of the sample before it.
    sample: Option<(Timestamp, Tally)>,
    before: Tally,
    minute: Window,
    hour: Window,
    day: Window,
    /// All that was released, trainings included.
    lifetime: Tally,
    /// All that was released outside of training.
    live: Tally,
    trainings: Vec<Stretch>,
    counts: Vec<Counted>,
    noise: Provenance,
    writes: bool,
    closed: bool,
    /// A budget was spent that ends everything.
    stopped: bool,
    routine: Gate,
    alarm: Gate,
}

/// How often something was released under one setting.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counted {
    /// What it was about.
    pub(crate) what: What,
    /// By which mechanism, with which settings.
    #[serde(flatten)]
    pub(crate) spend: Spend,
    pub(crate) count: u64,
}

/// Releases as they are made now, and in how many seconds.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    tally: Tally,
    seconds: f64,
}

/// A pace older than this is no pace.
const PACE_S: f64 = 3600.0;

/// Nobody plans further ahead.
const CENTURY_S: f64 = 100.0 * 365.25 * 86_400.0;

impl Ledger {
    /// Opens a ledger; the line is its first.
    pub(crate) fn open(
        client: &str,
        terms: Terms,
        time: Timestamp,
    ) -> Result<(Self, String), PrivacyError> {
        let mut ledger = Self::empty(client, terms.checked()?);
        let line = ledger.chain.append(time, client, Entry::Opened(terms));
        Ok((ledger, line))
    }

    /// A ledger that counts and admits but writes no lines: where nobody keeps them.
    pub(crate) fn unwritten(client: &str, terms: Terms) -> Result<Self, PrivacyError> {
        Ok(Self { writes: false, ..Self::empty(client, terms.checked()?) })
    }

    fn empty(client: &str, terms: Terms) -> Self {
        Self {
            client: client.to_owned(),
            terms,
            chain: Chain::default(),
            since: None,
            sample: None,
            before: Tally::NOTHING,
            minute: Window::new(1, 60),
            hour: Window::new(60, 60),
            day: Window::new(900, 96),
            lifetime: Tally::NOTHING,
            live: Tally::NOTHING,
            trainings: Vec::new(),
            counts: Vec::new(),
            noise: Provenance::OperatingSystem,
            writes: true,
            closed: false,
            stopped: false,
            routine: Gate::default(),
            alarm: Gate::default(),
        }
    }

    /// Takes up a ledger again where its lines end, with everything it had spent.
    #[cfg(test)]
    pub(crate) fn restore(text: impl BufRead, head: Option<&str>) -> Result<Self, Broken> {
        let mut ledger: Option<Self> = None;
        let end = chain::verify(text, head, |record| match &mut ledger {
            None => {
                ledger = Some(Self::begin(record)?);
                Ok(())
            }
            Some(ledger) => ledger.replay(&record),
        })?;
        let mut ledger = ledger.ok_or(Broken {
            line: 1,
            sound_bytes: 0,
            why: Why::OutOfPlace("the ledger is empty"),
        })?;
        ledger.chain = end;
        Ok(ledger)
    }

    /// The ledger that a first line opens.
    fn begin(record: Record) -> Result<Self, Why> {
        let Record { client, entry: Entry::Opened(terms), .. } = record else {
            return Err(Why::OutOfPlace("the first line does not open a ledger"));
        };
        let terms = terms.checked().map_err(|e| Why::NotARecord(e.to_string()))?;
        Ok(Self::empty(&client, terms))
    }

    fn replay(&mut self, record: &Record) -> Result<(), Why> {
        if record.client != self.client {
            return Err(Why::OutOfPlace("the line belongs to another client"));
        }
        self.closed = false;
        match &record.entry {
            Entry::Opened(_) => return Err(Why::OutOfPlace("the ledger is opened twice")),
            Entry::Budget { budget } => self.terms.budget = *budget,
            Entry::Delta { delta } => {
                let terms = Terms { delta: *delta, ..self.terms }.checked();
                self.terms = terms.map_err(|e| Why::NotARecord(e.to_string()))?;
            }
            Entry::Memory { memory } => {
                let memory = memory.checked().map_err(|e| Why::NotARecord(e.to_string()))?;
                self.terms.memory = memory;
            }
            Entry::Released { spend, .. } if !spend.is_sound() => {
                return Err(Why::OutOfPlace("no mechanism has such settings"));
            }
            Entry::Released { what, spend, randomness, .. } => {
                self.count(record.time, *what, *spend, *randomness);
            }
            Entry::Trained(trained) if !trained.is_sound() => {
                return Err(Why::OutOfPlace("no training is like this"));
            }
            Entry::Trained(trained) => self.count_training(record.time, trained),
            Entry::Closed { releases } if *releases != self.lifetime.releases() => {
                return Err(Why::OutOfPlace("it closes with another number of releases"));
            }
            Entry::Closed { .. } => self.closed = true,
        }
        Ok(())
    }

    /// Enters a release about the sample of `time`, if the budget allows it.
    pub(crate) fn enter<T>(
        &mut self,
        time: Timestamp,
        what: What,
        purpose: Purpose,
        guarded: Guarded<T>,
    ) -> Result<Entered<T>, Refusal> {
        let Guarded { value, spend, provenance } = guarded;
        self.admit(time, purpose, spend)?;
        self.count(time, what, spend, provenance);
        if !self.writes {
            return Ok(Entered { released: Released::new(value, provenance), line: String::new() });
        }
        let p = match spend {
            Spend::Response { epsilon, symbols } => {
                Response::new(epsilon, symbols).ok().map(|r| r.truth())
            }
            _ => None,
        };
        let entry = Entry::Released { what, spend, p, randomness: provenance };
        let line = self.chain.append(time, &self.client, entry);
        Ok(Entered { released: Released::new(value, provenance), line })
    }

    /// Notes a release that is computed from released values: no budget can refuse it.
    pub(super) fn note_derived(&mut self, time: Timestamp, what: What, spend: Spend) -> String {
        let randomness = Provenance::OperatingSystem;
        self.count(time, what, spend, randomness);
        self.write(time, Entry::Released { what, spend, p: None, randomness })
    }

    /// Whether a release about the sample of `time` would be entered. Which releases are
    /// admitted depends on counts and settings only, so a refusal tells nothing about the data.
    pub(crate) fn admit(
        &mut self,
        time: Timestamp,
        purpose: Purpose,
        spend: Spend,
    ) -> Result<(), Refusal> {
        let Err((budget, spent)) = self.fits(time, purpose, spend) else { return Ok(()) };
        Err(Refusal {
            client: self.client.clone(),
            consequence: budget.consequence(purpose),
            spent: spent.epsilon(self.terms.delta).0,
            limit: budget.limit(purpose),
        })
    }

    /// The same without saying why not, which takes a composition.
    pub(crate) fn admits(&mut self, time: Timestamp, purpose: Purpose, spend: Spend) -> bool {
        self.fits(time, purpose, spend).is_ok()
    }

    fn fits(
        &mut self,
        time: Timestamp,
        purpose: Purpose,
        spend: Spend,
    ) -> Result<(), (Budget, Tally)> {
        let Some(budget) = self.terms.budget else { return Ok(()) };
        let next = Tally::of(spend, 1);
        let spent = match budget.over {
            Scope::Lifetime => self.lifetime.clone(),
            scope if self.terms.memory.is_endless() => self.ever_since(scope, time),
            scope => {
                let this_sample = match &self.sample {
                    Some((last, tally)) if *last == time => tally.clone(),
                    _ => Tally::NOTHING,
                };
                // The filter remembers one sample for all: the costliest there has been, or this one.
                let with_next = this_sample.and(&next);
                let remembered = Self::costlier(self.one_sample(), with_next);
                let within =
                    if scope == Scope::Sample { this_sample } else { self.within(scope, time) };
                within.and(&remembered.echo(&self.terms.memory))
            }
        };
        let limit = budget.limit(purpose);
        let gate = match purpose {
            Purpose::Routine => &mut self.routine,
            Purpose::Alarm => &mut self.alarm,
        };
        if !self.stopped && gate.admits(&spent, &next, self.terms.delta, limit) {
            return Ok(());
        }
        // What leaves the window later does not begin again what was to end.
        self.stopped = budget.at_zero == AtZero::Stop;
        Err((budget, spent))
    }

    /// Enters what a training released, before any live release; none if that training is entered
    /// already. It has happened, so no budget can refuse it.
    pub(crate) fn enter_training(&mut self, from: Timestamp, trained: &[Trained]) -> Vec<String> {
        let known = |training: &str| self.trainings.iter().any(|s| s.training == training);
        let new: Vec<&Trained> = trained.iter().filter(|t| !known(&t.training)).collect();
        new.into_iter()
            .map(|trained| {
                self.count_training(from, trained);
                self.write(from, Entry::Trained(trained.clone()))
            })
            .collect()
    }

    /// Whether all of these trainings are entered.
    pub(crate) fn has_entered(&self, trained: &[Trained]) -> bool {
        let known = |of: &Trained| self.trainings.iter().any(|s| s.training == of.training);
        trained.iter().all(known)
    }

    fn count_training(&mut self, from: Timestamp, trained: &Trained) {
        let at = self.trainings.iter().position(|s| s.training == trained.training);
        let at = at.unwrap_or_else(|| {
            self.trainings.push(Stretch::new(from, trained));
            self.trainings.len() - 1
        });
        self.trainings[at].add(trained);
        if !trained.what.is_derived() {
            self.lifetime.add(trained.spend, trained.count);
        }
        self.note(trained.randomness);
        self.count_kind(trained.what, trained.spend, trained.count);
    }

    fn note(&mut self, provenance: Provenance) {
        if !provenance.is_private() {
            self.noise = provenance;
        }
    }

    fn count_kind(&mut self, what: What, spend: Spend, count: u64) {
        let same = |c: &&mut Counted| c.what == what && c.spend.same_setting(&spend);
        match self.counts.iter_mut().find(same) {
            Some(counted) => counted.count += count,
            None => self.counts.push(Counted { what, spend, count }),
        }
    }

    /// The last line of a run: without it, lines may be missing at the end.
    pub(crate) fn close(&mut self, time: Timestamp) -> String {
        self.closed = true;
        self.write(time, Entry::Closed { releases: self.lifetime.releases() })
    }

    fn write(&mut self, time: Timestamp, entry: Entry) -> String {
        if self.writes { self.chain.append(time, &self.client, entry) } else { String::new() }
    }

    fn count(&mut self, time: Timestamp, what: What, spend: Spend, provenance: Provenance) {
        self.count_kind(what, spend, 1);
        self.closed = false;
        self.note(provenance);
        // What is computed from released values tells nothing more.
        if what.is_derived() {
            return;
        }
        let one = Tally::of(spend, 1);
        match &mut self.sample {
            Some((last, tally)) if *last == time => tally.merge(&one),
            sample => {
                let ended = sample.replace((time, one.clone()));
                self.before = ended.map_or(Tally::NOTHING, |(_, tally)| tally);
            }
        }
        for window in [&mut self.minute, &mut self.hour, &mut self.day] {
            window.add(time.as_second(), &one);
        }
        self.lifetime.merge(&one);
        self.live.merge(&one);
        self.since.get_or_insert(time);
    }

    /// Whose ledger it is.
    pub(crate) fn client(&self) -> &str {
        &self.client
    }

    /// What it is kept by.
    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The hash of its last line.
    pub(crate) fn head(&self) -> &str {
        self.chain.head()
    }

    /// Where the noise came from: one seeded release makes the whole ledger one that protects
    /// nothing.
    pub(crate) fn provenance(&self) -> Provenance {
        self.noise
    }

    /// Whether its last line says that nothing follows.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// What was released, by kind and setting, oldest first.
    pub(crate) fn counts(&self) -> &[Counted] {
        &self.counts
    }

    /// What has been spent outside of training.
    pub(crate) fn live(&self) -> Composed {
        self.live.composed(self.terms.delta)
    }

    /// What trainings have spent.
    pub(crate) fn trained(&self) -> Composed {
        let mut all = Tally::NOTHING;
        for stretch in &self.trainings {
            all.merge(&stretch.most(Scope::Lifetime));
        }
        all.composed(self.terms.delta)
    }

    /// The costlier of two tallies, by ρ.
    fn costlier(a: Tally, b: Tally) -> Tally {
        if b.is_costlier_than(&a) { b } else { a }
    }

    /// What has been spent over `scope`, as of `now`.
    pub(crate) fn spent(&self, scope: Scope, now: Timestamp) -> Composed {
        self.tally(scope, now).composed(self.terms.delta)
    }

    /// What the busiest stretch of that length has cost: the figure that holds for *any* of them.
    pub(crate) fn worst(&self, scope: Scope) -> Composed {
        if self.terms.memory.is_endless() && scope != Scope::Lifetime {
            // A run of the models begins anew with a training, and with what is live.
            let trained = self.trainings.iter().map(|s| s.most(Scope::Lifetime));
            return trained.fold(self.live.clone(), Self::costlier).composed(self.terms.delta);
        }
        let live = match scope {
            Scope::Sample => self.live_sample().clone(),
            Scope::Minute => self.minute.peak().clone(),
            Scope::Hour => self.hour.peak().clone(),
            Scope::Day => self.day.peak().clone(),
            Scope::Lifetime => return self.lifetime.composed(self.terms.delta),
        };
        let memory = &self.terms.memory;
        let live = live.and(&self.live_sample().echo(memory));
        let trained =
            self.trainings.iter().map(|s| s.most(scope).and(&s.one_sample().echo(memory)));
        trained.fold(live, Self::costlier).composed(self.terms.delta)
    }

    /// The releases counted over `scope` at `now`, the filter's memory included.
    pub(crate) fn tally(&self, scope: Scope, now: Timestamp) -> Tally {
        if scope == Scope::Lifetime {
            // Every release is counted in full: there is no later one to echo in.
            return self.lifetime.clone();
        }
        if self.terms.memory.is_endless() {
            return self.ever_since(scope, now);
        }
        let within = self.within(scope, now);
        if within.releases() == 0 {
            return within;
        }
        within.and(&self.one_sample().echo(&self.terms.memory))
    }

    /// What the samples within `scope` at `now` can have moved where nothing is forgotten: all that is
    /// live, and all of every training that some of them belong to.
    fn ever_since(&self, scope: Scope, now: Timestamp) -> Tally {
        let mut all = self.live.clone();
        for stretch in &self.trainings {
            let seconds = scope.seconds().unwrap_or(0.0);
            if seconds > 0.0 && stretch.within(seconds, now).releases() > 0 {
                all.merge(&stretch.most(Scope::Lifetime));
            }
        }
        all
    }

    /// The releases about the samples within `scope` at `now`.
    fn within(&self, scope: Scope, now: Timestamp) -> Tally {
        let second = now.as_second();
        let mut within = match scope {
            Scope::Sample => self.one_sample(),
            Scope::Minute => self.minute.total_at(second),
            Scope::Hour => self.hour.total_at(second),
            Scope::Day => self.day.total_at(second),
            Scope::Lifetime => self.lifetime.clone(),
        };
        if let Some(seconds) = scope.seconds() {
            for stretch in &self.trainings {
                within.merge(&stretch.within(seconds, now));
            }
        }
        within
    }

    /// The releases of one sample. The last may still lack some of its own, so the costlier of
    /// the last two speaks for both.
    fn live_sample(&self) -> &Tally {
        match &self.sample {
            Some((_, last)) if last.rho() >= self.before.rho() => last,
            _ => &self.before,
        }
    }

    /// The releases of the costliest sample, live or of a training.
    fn one_sample(&self) -> Tally {
        let trained = self.trainings.iter().map(Stretch::one_sample);
        trained.fold(self.live_sample().clone(), Self::costlier)
    }

    /// ε that one more hour at the present pace would add to the lifetime.
    pub(crate) fn burn_per_hour(&self, now: Timestamp) -> f64 {
        self.burn_at(&self.pace_of(now, |_, spend| spend))
    }

    /// The same at another pace.
    pub(super) fn burn_at(&self, pace: &Pace) -> f64 {
        if pace.tally.releases() == 0 {
            return 0.0;
        }
        let later = self.lifetime.and(&pace.tally.times(3600.0 / pace.seconds));
        let spent = self.lifetime.epsilon(self.terms.delta).0;
        let after = later.epsilon(self.terms.delta).0;
        if after.is_infinite() && spent.is_infinite() { f64::INFINITY } else { after - spent }
    }

    /// When the budget will be gone if the present pace goes on. For a window nothing is taken
    /// to leave it, so the true time is this or later; what holds out for a whole window holds
    /// out for ever, because by then the window holds nothing but that pace.
    pub(crate) fn exhaustion(&self, now: Timestamp) -> Exhaustion {
        self.exhaustion_at(now, &self.pace_of(now, |_, spend| spend))
    }

    /// The same at another pace.
    pub(super) fn exhaustion_at(&self, now: Timestamp, pace: &Pace) -> Exhaustion {
        let Some(budget) = self.terms.budget else { return Exhaustion::NoBudget };
        let Pace { tally: pace, seconds } = pace;
        let seconds = *seconds;
        let spent = self.tally(budget.over, now);
        let limit = budget.limit(Purpose::Routine);
        let fits = |later_s: f64| {
            let tally = spent.and(&pace.times(later_s / seconds));
            tally.epsilon(self.terms.delta).0 <= limit
        };
        let horizon = match budget.over {
            _ if self.terms.memory.is_endless() => CENTURY_S,
            Scope::Sample => return if fits(0.0) { Exhaustion::Never } else { Exhaustion::Now },
            Scope::Minute => self.minute.seconds() as f64,
            Scope::Hour => self.hour.seconds() as f64,
            Scope::Day => self.day.seconds() as f64,
            Scope::Lifetime => CENTURY_S,
        };
        if pace.releases() == 0 {
            return if fits(0.0) { Exhaustion::Never } else { Exhaustion::Now };
        }
        // Doubling from one release on: long times are dear to compose and seldom needed.
        let (mut low, mut high) = (0.0, seconds / pace.releases() as f64);
        while fits(high) {
            if high >= horizon {
                return Exhaustion::Never;
            }
            (low, high) = (high, (2.0 * high).min(horizon));
        }
        if low == 0.0 {
            return Exhaustion::Now;
        }
        // Counts are whole, so a few digits are all there is to find.
        while high - low > 1e-4 * high {
            let middle = 0.5 * (low + high);
            if fits(middle) { low = middle } else { high = middle }
        }
        Exhaustion::Seconds(low)
    }

    /// The releases of the last hour, or of the ledger's life if that is shorter, each at what
    /// `price` makes of it, and in how many seconds they were made.
    pub(super) fn pace_of(&self, now: Timestamp, price: impl Fn(What, Spend) -> Spend) -> Pace {
        let age = self.since.map_or(0.0, |since| now.duration_since(since).as_secs_f64());
        let mut tally = Tally::NOTHING;
        for (spend, count) in self.hour.total_at(now.as_second()).entries() {
            // A window counts by setting; what it was about is known from the whole count.
            let same = |c: &&Counted| c.spend.same_setting(&spend) && !c.what.is_derived();
            let what = self.counts.iter().rev().find(same).map_or(What::Symbol, |c| c.what);
            tally.add(price(what, spend), count);
        }
        Pace { tally, seconds: (age + 1.0).clamp(1.0, PACE_S) }
    }

    /// Whether a budget covers what is spent: what is spent stays spent.
    pub(crate) fn check_budget(
        &self,
        budget: Option<Budget>,
        now: Timestamp,
    ) -> Result<(), PrivacyError> {
        self.covers(budget, self.terms.delta, now)
    }

    /// Whether the budget covers what is spent when it is read at another δ.
    pub(crate) fn check_delta(&self, delta: f64, now: Timestamp) -> Result<(), PrivacyError> {
        Terms { delta, ..self.terms }.checked()?;
        self.covers(self.terms.budget, delta, now)
    }

    fn covers(
        &self,
        budget: Option<Budget>,
        delta: f64,
        now: Timestamp,
    ) -> Result<(), PrivacyError> {
        let Some(Budget { epsilon: asked, over, .. }) = budget else { return Ok(()) };
        let spent = self.tally(over, now).epsilon(delta).0;
        if spent <= asked {
            return Ok(());
        }
        Err(PrivacyError::BelowSpent { client: self.client.clone(), over, asked, spent })
    }

    /// Changes the budget from now on; the line says so.
    pub(crate) fn set_budget(
        &mut self,
        budget: Option<Budget>,
        now: Timestamp,
    ) -> Result<String, PrivacyError> {
        self.check_budget(budget, now)?;
        self.terms.budget = budget;
        self.judge_anew();
        Ok(self.write(now, Entry::Budget { budget }))
    }

    /// Reads every composed ε at another δ from now on; the line says so.
    pub(crate) fn set_delta(&mut self, delta: f64, now: Timestamp) -> Result<String, PrivacyError> {
        self.check_delta(delta, now)?;
        self.terms.delta = delta;
        self.judge_anew();
        Ok(self.write(now, Entry::Delta { delta }))
    }

    /// Takes samples to be remembered in another way from now on, where the terms are the same
    /// otherwise; the line says so.
    pub(crate) fn set_memory(
        &mut self,
        memory: FilterMemory,
        now: Timestamp,
    ) -> Result<String, PrivacyError> {
        self.terms.memory = memory.checked()?;
        self.judge_anew();
        Ok(self.write(now, Entry::Memory { memory }))
    }

    /// What fitted before need not fit now, and the other way round.
    fn judge_anew(&mut self) {
        (self.routine, self.alarm, self.stopped) = (Gate::default(), Gate::default(), false);
    }
}

#[cfg(test)]
mod tests;
