//! One client's ledger: what was released about it, what that costs, what is left.
//!
//! The ledger is the only door from a [`Guarded`] value to a [`Released`] one, so nothing leaves
//! unaccounted. It keeps counts, not releases; the releases themselves are the lines it hands
//! out ([`Ledger::take_lines`]), to be stored before the value is sent.
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
use super::account::Tally;
use super::budget::{Gate, Purpose, Terms};
#[cfg(test)]
use super::chain;
#[cfg(test)]
use super::chain::Broken;
use super::chain::{Chain, Entry, Record, Why};
use super::randomness::Provenance;
use super::release::{Guarded, Released, Spend, What};
use super::response::Response;
use super::training::{Stretch, Trained};
use super::window::Window;
use crate::session::privacy::{AtZero, Scope};

mod pace;
pub(crate) mod signed;
mod spent;
mod terms;

pub(crate) use self::pace::Exhaustion;

#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    client: String,
    terms: Terms,
    chain: Chain,
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
    /// Lines that are not stored yet.
    lines: String,
    /// Why something could not be released, until it is asked for.
    trouble: Option<String>,
}

/// How often something was released under one setting.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counted {
    pub(crate) what: What,
    #[serde(flatten)]
    pub(crate) spend: Spend,
    pub(crate) count: u64,
}

impl Ledger {
    /// Opens a ledger and writes its first line.
    pub(super) fn open(client: &str, terms: Terms, time: Timestamp) -> Result<Self, PrivacyError> {
        let mut ledger = Self::empty(client, terms.checked()?);
        ledger.write(time, Entry::Opened(terms));
        Ok(ledger)
    }

    /// A ledger that counts and admits but writes no lines, where none are kept.
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
            lines: String::new(),
            trouble: None,
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

    /// Enters a release about the sample of `time`; nothing where the budget does not allow it. The
    /// value is gone then: it must not be sent.
    pub(crate) fn enter<T>(
        &mut self,
        time: Timestamp,
        what: What,
        purpose: Purpose,
        guarded: Guarded<T>,
    ) -> Option<Released<T>> {
        let Guarded { value, spend, provenance } = guarded;
        if !self.admits(time, purpose, spend) {
            return None;
        }
        self.count(time, what, spend, provenance);
        if self.writes {
            let p = match spend {
                Spend::Response { epsilon, symbols } => {
                    Response::new(epsilon, symbols).ok().map(|r| r.truth())
                }
                _ => None,
            };
            self.write(time, Entry::Released { what, spend, p, randomness: provenance });
        }
        Some(Released::new(value, provenance))
    }

    /// Releases what is made of releases that `trained` lists, once they are entered: it tells
    /// nothing more than they do.
    pub(crate) fn enter_made_of<T>(
        &mut self,
        from: Timestamp,
        trained: &[Trained],
        value: T,
        provenance: Provenance,
    ) -> Released<T> {
        self.enter_training(from, trained);
        Released::new(value, provenance)
    }

    /// Notes something that is made of released values: it is counted and costs nothing.
    pub(crate) fn note_derived(&mut self, time: Timestamp, what: What, spend: Spend) {
        debug_assert!(what.is_derived(), "{what:?} tells something new");
        let randomness = Provenance::OperatingSystem;
        self.count(time, what, spend, randomness);
        self.write(time, Entry::Released { what, spend, p: None, randomness });
    }

    /// Whether a release about the sample of `time` would be entered. Which releases are admitted
    /// depends on counts and settings only, so a refusal reveals nothing about the data.
    pub(crate) fn admits(&mut self, time: Timestamp, purpose: Purpose, spend: Spend) -> bool {
        let Some(budget) = self.terms.budget else { return true };
        // Noise is yet to begin: that spends nothing and ends nothing.
        if budget.noised_only && spend == Spend::Clear {
            return false;
        }
        let next = Tally::of(spend, 1);
        let counts = |tally: Tally| if budget.noised_only { tally.noised() } else { tally };
        let spent = match budget.over {
            Scope::Lifetime => counts(self.lifetime.clone()),
            scope if self.terms.memory.is_endless() => counts(self.ever_since(scope, time)),
            scope => {
                let this_sample = match &self.sample {
                    Some((last, tally)) if *last == time => counts(tally.clone()),
                    _ => Tally::NOTHING,
                };
                // The filter remembers one sample for all: the costliest there has been, or this one.
                let with_next = this_sample.and(&next);
                let known =
                    if budget.noised_only { self.one_noised_sample() } else { self.one_sample() };
                let remembered = Self::costlier(known, with_next);
                let within = if scope == Scope::Sample {
                    this_sample
                } else {
                    counts(self.within(scope, time))
                };
                within.and(&remembered.echo(&self.terms.memory))
            }
        };
        let limit = budget.limit(purpose);
        let gate = match purpose {
            Purpose::Routine => &mut self.routine,
            Purpose::Alarm => &mut self.alarm,
        };
        if !self.stopped && gate.admits(&spent, &next, self.terms.delta, limit) {
            return true;
        }
        // What leaves the window later does not begin again what was to end.
        self.stopped = budget.at_zero == AtZero::Stop;
        false
    }

    /// Enters what a training released, before any live release; none if that training is entered
    /// already. It has happened, so no budget can refuse it.
    pub(crate) fn enter_training(&mut self, from: Timestamp, trained: &[Trained]) {
        let known = |training: &str| self.trainings.iter().any(|s| s.training == training);
        let new: Vec<&Trained> = trained.iter().filter(|t| !known(&t.training)).collect();
        for trained in new {
            self.count_training(from, trained);
            self.write(from, Entry::Trained(trained.clone()));
        }
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
    pub(crate) fn close(&mut self, time: Timestamp) {
        self.closed = true;
        self.write(time, Entry::Closed { releases: self.lifetime.releases() });
    }

    fn write(&mut self, time: Timestamp, entry: Entry) {
        if self.writes {
            self.lines += &self.chain.append(time, &self.client, entry);
        }
    }

    /// The lines written since this was asked last: they must be stored before what they describe is
    /// sent.
    pub(crate) fn take_lines(&mut self) -> String {
        std::mem::take(&mut self.lines)
    }

    /// Something could not be released.
    pub(crate) fn fail(&mut self, why: &PrivacyError) {
        self.trouble.get_or_insert(why.to_string());
    }

    /// Why something could not be released since this was asked last.
    pub(crate) fn take_trouble(&mut self) -> Option<String> {
        self.trouble.take()
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

    pub(crate) fn client(&self) -> &str {
        &self.client
    }

    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }

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
}

#[cfg(test)]
mod tests;
