//! The ledger as text: one JSON object a line, each holding the hash of the line before.
//!
//! ```text
//! {"hash":"<of all that follows>","prev":"<hash of the line before>","seq":7,"time":…}
//! ```
//!
//! The hash covers the bytes themselves, so nothing depends on how JSON is written. A changed
//! byte, a missing, doubled or moved line breaks the chain at a line that [`verify`] names.
//!
//! A chain alone does not show who wrote it: an attacker who changes a line can compute all later hashes
//! anew. Nor does it show its own end. The seals of a ledger file ([`super::seal`]) are signed for
//! the first, and a head that is kept elsewhere shows the second.

use std::io::{BufRead, Read as _};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::budget::{Budget, Terms};
use super::memory::FilterMemory;
use super::randomness::Provenance;
use super::release::{Spend, What};
use super::training::Trained;
use crate::base::digest;

/// What the first line has as the hash of the line before it.
pub(crate) const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Length of a hash in hexadecimal digits.
const HEX: usize = GENESIS.len();

/// One line of a ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Counted from 0.
    pub(crate) seq: u64,
    /// The time of the sample that the release is about.
    pub(crate) time: Timestamp,
    pub(crate) client: String,
    #[serde(flatten)]
    pub(crate) entry: Entry,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "kebab-case")]
pub(crate) enum Entry {
    /// The ledger was opened on these terms.
    Opened(Terms),
    Released {
        what: What,
        #[serde(flatten)]
        spend: Spend,
        /// The chance that a symbol was sent truly, when the mechanism is randomised response.
        #[serde(skip_serializing_if = "Option::is_none")]
        p: Option<f64>,
        randomness: Provenance,
    },
    /// Models were trained with what was released then.
    Trained(Trained),
    /// The run that wrote the ledger has ended.
    Closed { releases: u64 },
    /// The budget was changed, from now on.
    Budget { budget: Option<Budget> },
    /// Every composed ε is read at another δ, from now on.
    Delta { delta: f64 },
    /// Other models remember a sample in another way, from now on.
    Memory { memory: FilterMemory },
}

#[derive(Serialize, Deserialize)]
struct Linked<'a> {
    prev: &'a str,
    #[serde(flatten)]
    record: Record,
}

/// The end of a chain, ready for the next line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chain {
    head: String,
    next: u64,
}

impl Default for Chain {
    fn default() -> Self {
        Self { head: GENESIS.to_owned(), next: 0 }
    }
}

impl Chain {
    /// The next line, with its line end.
    ///
    /// # Panics
    /// Never: a record has text keys only, and text has room.
    pub(crate) fn append(&mut self, time: Timestamp, client: &str, entry: Entry) -> String {
        let record = Record { seq: self.next, time, client: client.to_owned(), entry };
        let linked = serde_json::to_string(&Linked { prev: &self.head, record })
            .expect("a record has text keys only, and text has room");
        let body = &linked[1..];
        self.head = digest::sha256(body.as_bytes());
        self.next += 1;
        format!("{{\"hash\":\"{}\",{body}\n", self.head)
    }

    /// The hash of the last line: keep it where the file is not.
    pub(crate) fn head(&self) -> &str {
        &self.head
    }

    pub(crate) fn lines(&self) -> u64 {
        self.next
    }

    /// Checks that `line` is the next one, and steps onto it.
    pub(super) fn accept(&mut self, line: Line) -> Result<Record, Why> {
        if line.prev != self.head {
            return Err(Why::Unlinked);
        }
        if line.record.seq != self.next {
            return Err(Why::Sequence { expected: self.next, found: line.record.seq });
        }
        self.head = line.hash;
        self.next += 1;
        Ok(line.record)
    }
}

/// A line whose own hash fits its text.
#[derive(Debug)]
pub(super) struct Line {
    hash: String,
    prev: String,
    pub(super) record: Record,
}

impl Line {
    /// Understands a line without its line end.
    pub(super) fn read(line: &[u8]) -> Result<Self, Why> {
        let text = str::from_utf8(line).map_err(|_| Why::NotARecord("not UTF-8".to_owned()))?;
        let (hash, body) = text
            .strip_prefix("{\"hash\":\"")
            .and_then(|rest| rest.split_at_checked(HEX))
            .and_then(|(hash, rest)| Some((hash, rest.strip_prefix("\",")?)))
            .ok_or_else(|| Why::NotARecord("no hash at its beginning".to_owned()))?;
        if digest::sha256(body.as_bytes()) != hash {
            return Err(Why::Changed);
        }
        let whole = format!("{{{body}");
        let linked: Linked<'_> =
            serde_json::from_str(&whole).map_err(|e| Why::NotARecord(e.to_string()))?;
        Ok(Self { hash: hash.to_owned(), prev: linked.prev.to_owned(), record: linked.record })
    }
}

/// Where a ledger stops being what was written.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("line {line}: {why}")]
pub(crate) struct Broken {
    /// The first line that does not hold, counted from 1.
    pub(crate) line: u64,
    /// How many bytes before it are sound.
    pub(crate) sound_bytes: u64,
    pub(crate) why: Why,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Why {
    /// It is not a line of a ledger at all.
    #[error("not a ledger record ({0})")]
    NotARecord(String),
    /// Its own hash does not fit its text.
    #[error("its text was changed: the hash does not fit")]
    Changed,
    /// It does not follow the line before.
    #[error("it does not follow the line before: a line was removed, added or moved")]
    Unlinked,
    /// Its number is not the next.
    #[error("expected record {expected}, found record {found}")]
    Sequence { expected: u64, found: u64 },
    /// The last line has no line end: a write was cut short, and the lines before are sound.
    #[error("the last line was cut short; the lines before it are sound")]
    Torn,
    /// The chain holds but does not end where it should.
    #[cfg(test)]
    #[error("the chain ends at {found}, expected {expected}: lines are missing at the end")]
    Head {
        /// The head kept elsewhere.
        expected: String,
        /// The head of the text.
        found: String,
    },
    /// Its last line does not say that nothing follows.
    #[error(
        "the ledger of {0} is not closed: lines are missing at its end, or the run that writes it \
         has not ended"
    )]
    NotClosed(String),
    /// Lines follow the last signature.
    #[error(
        "the last {0} entries are not signed: lines are missing at the end, or the run that wrote \
         them was cut short"
    )]
    Unsigned(u64),
    /// The first line is not a signed one.
    #[error(
        "expected a signed line with the public key: the ledger was written before ledgers were \
         signed, or its beginning is missing"
    )]
    NoKey,
    /// A signature does not fit.
    #[error("its signature does not fit: it was not written with the key {key}")]
    Forged {
        /// The public key that the file names.
        key: String,
    },
    /// A signed line does not cover the lines before it.
    #[error(
        "it is signed for {signed} entries in all, and {found} stand before it: lines were \
         removed, added, changed or moved"
    )]
    Uncovered {
        /// Entries that it was signed for.
        signed: u64,
        /// Entries that are there.
        found: u64,
    },
    /// A signed line names a client whose lines are not there, or not all.
    #[error("lines of {0} are missing before it")]
    ClientMissing(String),
    /// The first line does not open a ledger, or a later one does, or the client changes.
    #[error("{0}")]
    OutOfPlace(&'static str),
    /// The text could not be read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
}

/// Reads a ledger to its end, giving every record that holds to `each`, and returns the chain's
/// end. With `head`, the chain must also end there.
#[cfg(test)]
pub(crate) fn verify(
    text: impl BufRead,
    head: Option<&str>,
    mut each: impl FnMut(Record) -> Result<(), Why>,
) -> Result<Chain, Broken> {
    let mut chain = Chain::default();
    let Lines { count, sound_bytes, torn } =
        each_line(text, |line| chain.accept(Line::read(line)?).and_then(&mut each))?;
    let broken = |why| Err(Broken { line: count + 1, sound_bytes, why });
    match head {
        _ if torn.is_some() => broken(Why::Torn),
        Some(expected) if expected != chain.head() => {
            broken(Why::Head { expected: expected.to_owned(), found: chain.head().to_owned() })
        }
        _ => Ok(chain),
    }
}

/// The longest line there can be: a signed one about a few thousand clients is shorter.
const LONGEST: usize = 4 << 20;

#[derive(Debug)]
pub(super) struct Lines {
    /// Whole lines.
    pub(crate) count: u64,
    pub(crate) sound_bytes: u64,
    /// What follows the last of them, without a line end.
    pub(crate) torn: Option<Vec<u8>>,
}

/// Hands every whole line to `each`, without its line end.
pub(super) fn each_line(
    mut text: impl BufRead,
    mut each: impl FnMut(&[u8]) -> Result<(), Why>,
) -> Result<Lines, Broken> {
    let mut line = Vec::new();
    let (mut count, mut sound_bytes) = (0, 0);
    loop {
        let broken = |why| Broken { line: count + 1, sound_bytes, why };
        line.clear();
        let read = text
            .by_ref()
            .take(LONGEST as u64)
            .read_until(b'\n', &mut line)
            .map_err(|e| broken(Why::Unreadable(e.to_string())))?;
        match line.split_last() {
            Some((b'\n', body)) => each(body).map_err(broken)?,
            None => return Ok(Lines { count, sound_bytes, torn: None }),
            Some(_) if read == LONGEST => {
                return Err(broken(Why::NotARecord(format!("longer than {LONGEST} bytes"))));
            }
            Some(_) => return Ok(Lines { count, sound_bytes, torn: Some(line) }),
        }
        count += 1;
        sound_bytes += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(lines: i64) -> (String, Chain) {
        let mut chain = Chain::default();
        let text = (0..lines)
            .map(|i| {
                let time = Timestamp::from_second(1_700_000_000 + i).unwrap();
                let entry = Entry::Released {
                    what: What::ProprietaryFlag,
                    spend: Spend::Response { epsilon: 1.0, symbols: 2 },
                    p: Some(0.731),
                    randomness: Provenance::OperatingSystem,
                };
                chain.append(time, "P1", entry)
            })
            .collect();
        (text, chain)
    }

    fn check(text: &[u8], head: Option<&str>) -> Result<Chain, Broken> {
        verify(text, head, |_| Ok(()))
    }

    #[test]
    fn what_was_written_is_verified_and_read_back() {
        let (text, chain) = written(20);
        let mut records = Vec::new();
        let end = verify(text.as_bytes(), Some(chain.head()), |r| {
            records.push(r);
            Ok(())
        });
        assert_eq!(end.unwrap(), chain);
        assert_eq!(records.len(), 20);
        assert_eq!(records[7].seq, 7);
        assert!(matches!(records[7].entry, Entry::Released { what: What::ProprietaryFlag, .. }));
    }

    #[test]
    fn a_line_says_everything_about_a_release() {
        let (text, _) = written(1);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["prev"], GENESIS);
        assert_eq!(value["time"], "2023-11-14T22:13:20Z");
        assert_eq!(value["mechanism"], "response");
        assert_eq!(value["epsilon"], 1.0);
        assert_eq!(value["p"], 0.731);
        assert_eq!(value["randomness"], "operating system");
    }

    #[test]
    fn removed_and_reordered_lines_are_named() {
        let (text, chain) = written(10);
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for removed in 0..9 {
            let rest: String =
                lines.iter().enumerate().filter(|(i, _)| *i != removed).map(|(_, l)| *l).collect();
            let broken = check(rest.as_bytes(), None).unwrap_err();
            assert_eq!((broken.line, broken.why), (removed as u64 + 1, Why::Unlinked));
        }
        for first in 0..9 {
            let mut moved = lines.clone();
            moved.swap(first, first + 1);
            let broken = check(moved.concat().as_bytes(), None).unwrap_err();
            assert_eq!((broken.line, broken.why), (first as u64 + 1, Why::Unlinked));
        }
        // The end of a chain is known only to who kept its head.
        let cut = lines[..9].concat();
        assert!(check(cut.as_bytes(), None).is_ok());
        let broken = check(cut.as_bytes(), Some(chain.head())).unwrap_err();
        assert!(matches!(broken.why, Why::Head { .. }));
        assert_eq!(broken.line, 10);
    }

    #[test]
    fn a_torn_last_line_is_told_from_a_changed_one() {
        let (text, _) = written(3);
        let torn = &text[..text.len() - 10];
        let broken = check(torn.as_bytes(), None).unwrap_err();
        assert_eq!((broken.line, &broken.why), (3, &Why::Torn));
        let sound = &text[..broken.sound_bytes as usize];
        assert_eq!(check(sound.as_bytes(), None).unwrap().lines(), 2);
    }

    #[test]
    fn an_empty_ledger_holds() {
        assert_eq!(check(b"", None).unwrap().head(), GENESIS);
    }

    proptest! {
        #[test]
        fn any_flipped_bit_is_found_at_its_line(place in 0.0_f64..1.0, bit in 0_u8..8) {
            let (text, _) = written(6);
            let mut bytes = text.into_bytes();
            let at = (place * bytes.len() as f64) as usize;
            let line = bytes[..at].split(|b| *b == b'\n').count() as u64;
            bytes[at] ^= 1 << bit;
            let broken = check(&bytes, None).unwrap_err();
            prop_assert_eq!(broken.line, line, "{}", broken);
        }

        #[test]
        fn any_bytes_are_an_error_and_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 1..300)) {
            prop_assert!(check(&bytes, None).is_err());
        }
    }
}
