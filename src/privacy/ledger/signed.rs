//! The ledgers of several clients in one signed text: every client's lines are a chain of their own, so
//! that a client's part can be taken out and verified alone, and seals sign them all together.

use std::io::BufRead;

use super::Ledger;
use crate::privacy::chain::{self, Broken, Chain, Line, Lines, Why};
use crate::privacy::seal::{ClientHead, Found, Head, Seals, Torn};

/// What stands in a ledger file.
#[derive(Debug)]
pub(crate) struct SignedLedgers {
    /// The ledgers, in the order in which they were opened.
    pub(crate) ledgers: Vec<Ledger>,
    /// Its seals, ready to go on with.
    pub(crate) seals: Seals,
    /// A last line that was cut short.
    pub(crate) torn: Option<Torn>,
    /// Bytes before that line.
    pub(crate) sound_bytes: u64,
    /// Entries up to the head that was looked for, where it is one of this file.
    pub(crate) sought: Option<u64>,
    lines: u64,
}

impl SignedLedgers {
    /// What a run that goes on with the file must note about its end; nothing where all of it is signed.
    pub(crate) fn found(&self) -> Option<Found> {
        let found = Found { unsigned: self.seals.unsigned(), torn: self.torn.clone() };
        (found != Found::default()).then_some(found)
    }

    pub(crate) fn head(&self) -> Option<&Head> {
        self.seals.last()
    }

    /// That the file ends as a run leaves it that has come to its end: all signed, and every ledger
    /// closed. Lines that were cut off at an earlier end are not noticed by this.
    pub(crate) fn check_end(&self) -> Result<(), Broken> {
        let why = if self.torn.is_some() {
            Why::Torn
        } else if self.ledgers.is_empty() {
            Why::OutOfPlace("the ledger is empty")
        } else if self.seals.unsigned() > 0 {
            Why::Unsigned(self.seals.unsigned())
        } else if let Some(open) = self.ledgers.iter().find(|ledger| !ledger.is_closed()) {
            Why::NotClosed(open.client.clone())
        } else {
            return Ok(());
        };
        Err(Broken { line: self.lines + 1, sound_bytes: self.sound_bytes, why })
    }
}

impl Ledger {
    /// How far its chain has come.
    pub(crate) fn client_head(&self) -> ClientHead {
        ClientHead {
            client: self.client.clone(),
            entries: self.chain.lines(),
            head: self.chain.head().to_owned(),
        }
    }
}

/// Reads the ledgers in a text, every line and the last signature checked, and looks for `head` among
/// its seals. A last line that was cut short is no error: what stands before it is sound.
pub(crate) fn read(text: impl BufRead, head: Option<&str>) -> Result<SignedLedgers, Broken> {
    let mut ledgers: Vec<Ledger> = Vec::new();
    let mut seals = Seals::default();
    let (mut sought, mut at, mut sealed_at) = (None, 0, 0);
    let Lines { count, sound_bytes, torn } = chain::each_line(text, |line| {
        at += 1;
        if Seals::is_seal(line) {
            let is_there = |of: &ClientHead| ledgers.iter().any(|l| l.client_head() == *of);
            let found = seals.accept(line, is_there)?;
            if head == Some(found.head.as_str()) {
                sought = Some(found.entries);
            }
            sealed_at = at;
            return Ok(());
        }
        if seals.last().is_none() {
            return Err(Why::NoKey);
        }
        let entry = Line::read(line)?;
        enter(&mut ledgers, entry)?;
        // Sound: `Line::read` found it to be UTF-8.
        seals.take(&(String::from_utf8_lossy(line) + "\n"));
        Ok(())
    })?;
    // A file that begins otherwise is another file, and not a ledger to go on with.
    if seals.last().is_none() && torn.as_deref().is_some_and(|torn| !Seals::may_begin(torn)) {
        return Err(Broken { line: 1, sound_bytes, why: Why::NoKey });
    }
    if let Some(last) = seals.last().filter(|last| !last.is_signed()) {
        let why = Why::Forged { key: last.key.clone() };
        return Err(Broken { line: sealed_at, sound_bytes, why });
    }
    let torn = torn.as_deref().map(Torn::of);
    Ok(SignedLedgers { ledgers, seals, torn, sound_bytes, sought, lines: count })
}

/// Goes on with the ledger that a line belongs to, or begins it.
fn enter(ledgers: &mut Vec<Ledger>, line: Line) -> Result<(), Why> {
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
}

#[cfg(test)]
mod tests;
