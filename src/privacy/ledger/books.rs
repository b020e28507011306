//! One client's ledger at work, and the ledgers of several clients in one text: every client's lines
//! are a chain of their own, so that a client's part can be taken out and verified alone.

use std::io::BufRead;

use jiff::Timestamp;

use super::{Budget, Entered, Ledger, Purpose, Refusal, Terms, Trained};
use crate::privacy::PrivacyError;
use crate::privacy::chain::{self, Broken, Chain, Line, Why};
use crate::privacy::memory::FilterMemory;
use crate::privacy::randomness::Provenance;
use crate::privacy::release::{Guarded, Released, Spend, What};

/// One client's ledger at work: its lines that nobody has stored yet, and why something could not be
/// released.
#[derive(Debug, Clone)]
pub struct Book {
    ledger: Ledger,
    lines: String,
    writes: bool,
    /// Why something could not be released, until somebody asks.
    trouble: Option<String>,
}

impl Book {
    /// A ledger that counts and admits but writes nothing, on the client's terms.
    pub fn unwritten(client: &str, terms: Terms) -> Result<Self, PrivacyError> {
        let ledger = Ledger::unwritten(client, terms)?;
        Ok(Self { ledger, lines: String::new(), writes: false, trouble: None })
    }

    /// Begins to write at `time`, as a continuation of this client's ledger in `kept`, where there is
    /// one. It must come before the first release.
    pub fn write_from(&mut self, time: Timestamp, kept: &[Ledger]) -> Result<(), PrivacyError> {
        self.writes = true;
        let terms = self.ledger.terms;
        let continued = kept.iter().find(|kept| kept.client == self.ledger.client);
        if let Some(kept) = continued {
            self.ledger = kept.clone();
            if self.ledger.terms.memory != terms.memory {
                self.lines += &self.ledger.set_memory(terms.memory, time)?;
            }
            if self.ledger.terms.budget != terms.budget {
                self.lines += &self.ledger.set_budget(terms.budget, time)?;
            }
        } else {
            let (opened, line) = Ledger::open(&self.ledger.client, terms, time)?;
            self.ledger = opened;
            self.lines += &line;
        }
        Ok(())
    }

    /// Enters the trainings that are not entered yet.
    pub fn enter_training(&mut self, from: Timestamp, trained: &[Trained]) {
        for line in self.ledger.enter_training(from, trained) {
            self.lines += &line;
        }
    }

    /// Enters a release, if the budget allows it.
    pub fn enter<T>(
        &mut self,
        time: Timestamp,
        what: What,
        purpose: Purpose,
        guarded: Guarded<T>,
    ) -> Result<Released<T>, Refusal> {
        let Entered { released, line } = self.ledger.enter(time, what, purpose, guarded)?;
        self.lines += &line;
        Ok(released)
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
    pub fn note_derived(&mut self, time: Timestamp, what: What, spend: Spend) {
        debug_assert!(what.is_derived(), "{what:?} tells something new");
        self.lines += &self.ledger.note_derived(time, what, spend);
    }

    /// Another budget from now on; refused where more is spent.
    pub fn set_budget(
        &mut self,
        budget: Option<Budget>,
        now: Timestamp,
    ) -> Result<(), PrivacyError> {
        self.lines += &self.ledger.set_budget(budget, now)?;
        Ok(())
    }

    /// Another δ of every composed ε from now on; refused where the budget is below what that makes
    /// of what is spent.
    pub fn set_delta(&mut self, delta: f64, now: Timestamp) -> Result<(), PrivacyError> {
        self.lines += &self.ledger.set_delta(delta, now)?;
        Ok(())
    }

    /// What is sent from now on remembers every sample without end.
    pub fn never_forget(&mut self, now: Timestamp) -> Result<(), PrivacyError> {
        if !self.ledger.terms().memory.is_endless() {
            self.lines += &self.ledger.set_memory(FilterMemory::ENDLESS, now)?;
        }
        Ok(())
    }

    /// The run has ended at `time`.
    pub fn close(&mut self, time: Timestamp) {
        self.lines += &self.ledger.close(time);
    }

    /// The ledger.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The ledger, for what it counts beside releases.
    pub fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Whether lines are written.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.writes
    }

    /// Something could not be released.
    pub(crate) fn fail(&mut self, why: &PrivacyError) {
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
    use crate::privacy::randomness::Randomness;
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
    fn written() -> ([Book; 2], String) {
        let terms = Terms { delta: 1e-6, memory: FilterMemory::NONE, budget: None };
        let mut books = ["P1", "P2"].map(|client| Book::unwritten(client, terms).unwrap());
        let mut text = String::new();
        let training = vec![trained("one", What::ProprietaryState), trained("one", What::Gradient)];
        for book in &mut books {
            book.write_from(at(0), &[]).unwrap();
            book.enter_training(at(-100), &training);
        }
        let mut random = Randomness::operating_system();
        let response = Response::binary(1.0).unwrap();
        for second in 0..5 {
            for book in &mut books {
                let flag = response.flag(Flag(false), &mut random).unwrap();
                let what = What::ProprietaryFlag;
                book.enter(at(second), what, Purpose::Routine, flag).unwrap();
                text += &book.take_lines();
            }
        }
        for book in &mut books {
            book.close(at(5));
            text += &book.take_lines();
        }
        (books, text)
    }

    #[test]
    fn what_was_written_is_read_back_client_by_client() {
        let (books, text) = written();
        let again = verify(text.as_bytes()).unwrap();
        for (ledger, again) in books.iter().map(Book::ledger).zip(&again) {
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
        let mut book = Book::unwritten("P1", terms).unwrap();
        book.write_from(at(10), &kept).unwrap();
        book.enter_training(at(-100), &[trained("one", What::ProprietaryState)]);
        assert_eq!(book.take_lines(), "");
        book.enter_training(at(-100), &[trained("two", What::ProprietaryState)]);
        assert_eq!(book.ledger().trained().releases, 800);
        assert_eq!(book.take_lines().lines().count(), 1);
    }

    #[test]
    fn gradients_are_noted_and_cost_nothing() {
        let (books, _) = written();
        let ledger = books[0].ledger();
        assert_eq!(ledger.trained().releases, 400);
        assert_eq!(ledger.counts().iter().map(|c| c.count).sum::<u64>(), 805);
    }

    #[test]
    fn a_training_weighs_on_the_stretches_it_is_about() {
        let (books, _) = written();
        let ledger = books[0].ledger();
        // 400 releases about 100 seconds: 240 in a minute, four of a sample.
        assert_eq!(ledger.worst(Scope::Minute).releases, 240);
        assert_eq!(ledger.worst(Scope::Hour).releases, 400);
        assert_eq!(ledger.spent(Scope::Day, at(5)).releases, 405);
        assert_eq!(ledger.spent(Scope::Day, at(200_000)).releases, 0);
        assert_eq!(ledger.spent(Scope::Lifetime, at(200_000)).releases, 405);
    }

    #[test]
    fn a_budget_below_what_is_spent_changes_nothing() {
        let ([mut book, _], _) = written();
        let budget = |epsilon| Budget::new(epsilon, Scope::Lifetime, AtZero::Stop).ok();
        assert!(book.set_budget(budget(0.5), at(6)).is_err());
        assert!(book.ledger().terms().budget.is_none());
        assert_eq!(book.take_lines(), "");
        book.set_budget(budget(500.0), at(6)).unwrap();
        assert_eq!(book.take_lines().lines().count(), 1);
    }
}
