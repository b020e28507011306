//! The ledgers of all clients of a run, in one text: every client's lines are a chain of their own,
//! so that a client's part can be taken out and verified alone.

use std::io::BufRead;

use jiff::Timestamp;

use super::{Budget, Entered, Ledger, Purpose, Refusal, Terms, Trained};
use crate::privacy::PrivacyError;
use crate::privacy::chain::{self, Broken, Chain, Line, Why};
use crate::privacy::memory::FilterMemory;
use crate::privacy::release::{Guarded, Released, What};

/// Ledgers in the order of the clients, and lines that nobody has taken yet.
#[derive(Debug, Clone)]
pub struct Books {
    ledgers: Vec<Ledger>,
    lines: String,
    writes: bool,
    /// Why something could not be said, until somebody asks.
    trouble: Option<String>,
}

impl Books {
    /// Ledgers that count and admit but write nothing, each on its client's terms.
    pub fn unwritten<'a>(
        clients: impl IntoIterator<Item = (&'a str, Terms)>,
    ) -> Result<Self, PrivacyError> {
        let ledgers = clients.into_iter().map(|(client, terms)| Ledger::unwritten(client, terms));
        Ok(Self {
            ledgers: ledgers.collect::<Result<_, _>>()?,
            lines: String::new(),
            writes: false,
            trouble: None,
        })
    }

    /// Begins to write at `time`, as a continuation of `kept` for every client that is in it. It must
    /// come before the first release.
    pub fn write_from(&mut self, time: Timestamp, kept: &[Ledger]) -> Result<(), PrivacyError> {
        self.writes = true;
        for ledger in &mut self.ledgers {
            let terms = ledger.terms;
            let continued = kept.iter().find(|kept| kept.client == ledger.client);
            if let Some(kept) = continued {
                *ledger = kept.clone();
                if ledger.terms.memory != terms.memory {
                    self.lines += &ledger.set_memory(terms.memory, time)?;
                }
                if ledger.terms.budget != terms.budget {
                    self.lines += &ledger.set_budget(terms.budget, time)?;
                }
            } else {
                let (opened, line) = Ledger::open(&ledger.client, terms, time)?;
                *ledger = opened;
                self.lines += &line;
            }
        }
        Ok(())
    }

    /// Enters the trainings of every client that are not entered yet.
    pub fn enter_training(&mut self, from: Timestamp, trained: &[Vec<Trained>]) {
        for (ledger, trained) in self.ledgers.iter_mut().zip(trained) {
            for line in ledger.enter_training(from, trained) {
                self.lines += &line;
            }
        }
    }

    /// Enters a release of one client, if its budget allows it.
    pub fn enter<T>(
        &mut self,
        client: usize,
        time: Timestamp,
        what: What,
        purpose: Purpose,
        guarded: Guarded<T>,
    ) -> Result<Released<T>, Refusal> {
        let Entered { released, line } =
            self.ledgers[client].enter(time, what, purpose, guarded)?;
        self.lines += &line;
        Ok(released)
    }

    /// Whether a budget covers what every client has spent.
    pub fn check_budget(&self, budget: Option<Budget>, now: Timestamp) -> Result<(), PrivacyError> {
        self.ledgers.iter().try_for_each(|ledger| ledger.check_budget(budget, now))
    }

    /// Another budget for every client from now on; refused by whoever has spent more.
    pub fn set_budget(
        &mut self,
        budget: Option<Budget>,
        now: Timestamp,
    ) -> Result<(), PrivacyError> {
        self.change(|ledger| ledger.set_budget(budget, now))
    }

    /// Whether every client's budget covers what is spent at another δ.
    pub fn check_delta(&self, delta: f64, now: Timestamp) -> Result<(), PrivacyError> {
        self.ledgers.iter().try_for_each(|ledger| ledger.check_delta(delta, now))
    }

    /// Another δ of every composed ε from now on; refused where the budget is below what that makes
    /// of what is spent.
    pub fn set_delta(&mut self, delta: f64, now: Timestamp) -> Result<(), PrivacyError> {
        self.change(|ledger| ledger.set_delta(delta, now))
    }

    /// What is sent from now on remembers every sample for as long as it likes.
    pub fn never_forget(&mut self, now: Timestamp) -> Result<(), PrivacyError> {
        if self.ledgers.iter().all(|ledger| ledger.terms().memory.is_endless()) {
            return Ok(());
        }
        self.change(|ledger| ledger.set_memory(FilterMemory::ENDLESS, now))
    }

    /// Either all change or none.
    fn change(
        &mut self,
        change: impl Fn(&mut Ledger) -> Result<String, PrivacyError>,
    ) -> Result<(), PrivacyError> {
        let mut changed = self.ledgers.clone();
        let mut lines = String::new();
        for ledger in &mut changed {
            lines += &change(ledger)?;
        }
        self.ledgers = changed;
        self.lines += &lines;
        Ok(())
    }

    /// The run has ended at `time`.
    pub fn close(&mut self, time: Timestamp) {
        for ledger in &mut self.ledgers {
            self.lines += &ledger.close(time);
        }
    }

    /// The ledgers, one a client.
    #[must_use]
    pub fn ledgers(&self) -> &[Ledger] {
        &self.ledgers
    }

    /// The ledger of one client.
    pub fn ledger_mut(&mut self, client: usize) -> &mut Ledger {
        &mut self.ledgers[client]
    }

    /// Whether lines are written.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.writes
    }

    /// Something could not be released.
    pub(in crate::privacy) fn fail(&mut self, why: &PrivacyError) {
        self.trouble.get_or_insert(why.to_string());
    }

    /// Why something could not be released since this was asked last.
    pub fn take_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    /// The lines written since this was asked last: they must be stored before what they tell of is
    /// sent.
    pub fn take_lines(&mut self) -> String {
        std::mem::take(&mut self.lines)
    }
}

/// Reads the ledgers in a text, every line checked, in the order in which they were opened.
pub fn read(text: impl BufRead) -> Result<Vec<Ledger>, Broken> {
    Ok(gather(text)?.0)
}

/// Like [`read`], and every ledger must have been closed: nothing is missing at the end.
pub fn verify(text: impl BufRead) -> Result<Vec<Ledger>, Broken> {
    let (ledgers, (lines, sound_bytes)) = gather(text)?;
    let broken = |why| Broken { line: lines + 1, sound_bytes, why };
    if ledgers.is_empty() {
        return Err(broken(Why::OutOfPlace("the ledger is empty")));
    }
    match ledgers.iter().find(|ledger| !ledger.is_closed()) {
        Some(open) => Err(broken(Why::NotClosed(open.client.clone()))),
        None => Ok(ledgers),
    }
}

fn gather(text: impl BufRead) -> Result<(Vec<Ledger>, (u64, u64)), Broken> {
    let mut ledgers: Vec<Ledger> = Vec::new();
    let end = chain::each_line(text, |line: Line| {
        let known = ledgers.iter().position(|ledger| ledger.client == line.record.client);
        let Some(at) = known else {
            let mut chain = Chain::default();
            let mut ledger = Ledger::begin(chain.accept(line)?)?;
            ledger.chain = chain;
            ledgers.push(ledger);
            return Ok(());
        };
        let record = ledgers[at].chain.accept(line)?;
        ledgers[at].replay(&record)
    })?;
    Ok((ledgers, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::memory::FilterMemory;
    use crate::privacy::randomness::{Provenance, Randomness};
    use crate::privacy::release::{Flag, Spend};
    use crate::privacy::response::Response;
    use crate::privacy::{AtZero, Scope};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_691_798_400 + second).unwrap()
    }

    fn trained(training: &str, what: What) -> Trained {
        Trained {
            training: training.to_owned(),
            what,
            spend: Spend::Gaussian { sensitivity: 1.0, sigma: 2.0 },
            count: 400,
            samples: 100,
            rounds: 400,
            until: at(-1),
            randomness: Provenance::OperatingSystem,
        }
    }

    /// Two clients with a training and five flags each, and the text of it.
    fn written() -> (Books, String) {
        let terms = Terms { delta: 1e-6, memory: FilterMemory::NONE, budget: None };
        let mut books = Books::unwritten(["P1", "P2"].map(|client| (client, terms))).unwrap();
        books.write_from(at(0), &[]).unwrap();
        let training = vec![trained("one", What::ProprietaryState), trained("one", What::Gradient)];
        books.enter_training(at(-100), &[training.clone(), training]);
        let mut random = Randomness::operating_system();
        let response = Response::binary(1.0).unwrap();
        for second in 0..5 {
            for client in 0..2 {
                let flag = response.flag(Flag(false), &mut random).unwrap();
                let what = What::ProprietaryFlag;
                books.enter(client, at(second), what, Purpose::Routine, flag).unwrap();
            }
        }
        books.close(at(5));
        let text = books.take_lines();
        (books, text)
    }

    #[test]
    fn what_was_written_is_read_back_client_by_client() {
        let (books, text) = written();
        let again = verify(text.as_bytes()).unwrap();
        for (ledger, again) in books.ledgers().iter().zip(&again) {
            assert_eq!(ledger.head(), again.head());
            assert_eq!(ledger.counts(), again.counts());
            for scope in Scope::ALL {
                let (a, b) = (ledger.spent(scope, at(5)), again.spent(scope, at(5)));
                assert_eq!(a.releases, b.releases, "{scope:?}");
            }
            assert_eq!((again.live().releases, again.trained().releases), (5, 400));
            assert!(again.provenance().is_private());
        }
        let own: String =
            text.split_inclusive('\n').filter(|line| line.contains("\"client\":\"P2\"")).collect();
        assert_eq!(Ledger::restore(own.as_bytes(), None).unwrap().head(), again[1].head());
    }

    #[test]
    fn any_line_that_is_missing_is_noticed_also_the_last() {
        let (_, text) = written();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for gone in 0..lines.len() {
            let rest: String =
                lines.iter().enumerate().filter(|(i, _)| *i != gone).map(|(_, l)| *l).collect();
            let broken = verify(rest.as_bytes()).unwrap_err();
            assert!(broken.line as usize > gone, "{gone}: {broken}");
        }
        let cut: String = lines[..lines.len() - 1].concat();
        let broken = verify(cut.as_bytes()).unwrap_err();
        assert_eq!(broken.why, Why::NotClosed("P2".to_owned()));
        assert!(read(cut.as_bytes()).is_ok(), "a run that was killed can be continued");
    }

    #[test]
    fn a_training_is_counted_once_however_often_its_models_are_used() {
        let (_, text) = written();
        let kept = read(text.as_bytes()).unwrap();
        let terms = *kept[0].terms();
        let mut books = Books::unwritten(["P1", "P2"].map(|client| (client, terms))).unwrap();
        books.write_from(at(10), &kept).unwrap();
        let training = vec![trained("one", What::ProprietaryState)];
        books.enter_training(at(-100), &[training.clone(), training]);
        assert_eq!(books.take_lines(), "");
        let other = vec![trained("two", What::ProprietaryState)];
        books.enter_training(at(-100), &[other.clone(), other]);
        assert_eq!(books.ledgers()[0].trained().releases, 800);
        assert_eq!(books.take_lines().lines().count(), 2);
    }

    #[test]
    fn gradients_are_noted_and_cost_nothing() {
        let (books, _) = written();
        let ledger = &books.ledgers()[0];
        assert_eq!(ledger.trained().releases, 400);
        assert_eq!(ledger.counts().iter().map(|c| c.count).sum::<u64>(), 805);
    }

    #[test]
    fn a_training_weighs_on_the_stretches_it_is_about() {
        let (books, _) = written();
        let ledger = &books.ledgers()[0];
        // 400 releases about 100 seconds: 240 in a minute, four of a sample.
        assert_eq!(ledger.worst(Scope::Minute).releases, 240);
        assert_eq!(ledger.worst(Scope::Hour).releases, 400);
        assert_eq!(ledger.spent(Scope::Day, at(5)).releases, 405);
        assert_eq!(ledger.spent(Scope::Day, at(200_000)).releases, 0);
        assert_eq!(ledger.spent(Scope::Lifetime, at(200_000)).releases, 405);
    }

    #[test]
    fn a_budget_is_changed_for_all_or_for_none() {
        let (mut books, _) = written();
        let budget = |epsilon| Budget::new(epsilon, Scope::Lifetime, AtZero::Stop).ok();
        assert!(books.set_budget(budget(0.5), at(6)).is_err());
        assert!(books.ledgers().iter().all(|ledger| ledger.terms().budget.is_none()));
        assert_eq!(books.take_lines(), "");
        books.set_budget(budget(500.0), at(6)).unwrap();
        assert_eq!(books.take_lines().lines().count(), 2);
    }
}
