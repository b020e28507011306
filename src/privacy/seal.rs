//! Seals: the signed lines of a ledger file.
//!
//! ```text
//! {"signature":"<of the seal>","seal":"<hash of all that follows>","number":3,"entries":360,…}
//! ```
//!
//! The first line of a file is a seal, for the public key in it; more follow while a run goes on, and
//! one at its end. Every seal holds the digest of all bytes since the seal before it, with that seal.
//! The hash of the last seal, the *head*, therefore stands for the whole file up to there: all entries
//! of all clients, in their order.
//!
//! Guarantees, to who knows the public key:
//! - Before the last seal nothing was changed, added, moved or left out, also no client as a whole,
//!   without the private key. Hashes that were computed anew do not help.
//! - With a head that was kept elsewhere, also nothing was left out up to that head.
//!
//! No file can show by itself that its end was not cut off at an earlier seal. And who has the private
//! key can write any ledger: the signature shows that this machine wrote it, not that it is true.

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};

use super::PrivacyError;
use super::chain::Why;
use super::randomness::Randomness;
use crate::base::digest::{self, DIGITS, Hashed};

/// What is signed begins with this, so that a signature is good for nothing else.
const CONTEXT: &str = "headwater ledger seal ";

/// How a seal begins, and what stands between its signature and its hash.
const BEGINS: &str = "{\"signature\":\"";
const THEN: &str = "\",\"seal\":\"";

/// Hexadecimal digits of a signature.
const SIGNATURE: usize = 128;

/// The key that signs ledgers, with its private half.
#[derive(Clone)]
pub(crate) struct LedgerKey(SigningKey);

/// The private half is not for logs.
impl std::fmt::Debug for LedgerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LedgerKey({})", self.public())
    }
}

impl LedgerKey {
    /// A new key, from the operating system's randomness.
    pub(crate) fn new() -> Result<Self, PrivacyError> {
        let mut random = Randomness::operating_system();
        let mut seed = [0; 32];
        for chunk in seed.as_chunks_mut::<8>().0 {
            *chunk = random.word()?.to_le_bytes();
        }
        Ok(Self(SigningKey::from_bytes(&seed)))
    }

    /// The key that [`Self::to_text`] wrote.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        digest::from_hex::<32>(text.trim_end()).map(|seed| Self(SigningKey::from_bytes(&seed)))
    }

    /// Its private half, as 64 hexadecimal digits and a line end: for the file it is kept in.
    pub(crate) fn to_text(&self) -> String {
        digest::to_hex(&self.0.to_bytes()) + "\n"
    }

    /// Its public half, as 64 hexadecimal digits.
    pub(crate) fn public(&self) -> String {
        digest::to_hex(&self.0.verifying_key().to_bytes())
    }

    fn sign(&self, head: &str) -> String {
        digest::to_hex(&self.0.sign(signed(head).as_bytes()).to_bytes())
    }
}

fn signed(head: &str) -> String {
    format!("{CONTEXT}{head}")
}

/// Where a ledger file ends: keep it where the file is not, and nothing can be cut off unnoticed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the field's name is the one in the file")]
pub(crate) struct Head {
    /// The hash of its last seal.
    pub(crate) head: String,
    /// Entries of all clients up to there.
    pub(crate) entries: u64,
    pub(crate) key: String,
    /// The signature of the head, made with that key.
    pub(crate) signature: String,
}

impl Head {
    /// Whether the signature was made with the key.
    pub(crate) fn is_signed(&self) -> bool {
        let key = digest::from_hex(&self.key).and_then(|key| VerifyingKey::from_bytes(&key).ok());
        let signature = digest::from_hex(&self.signature).map(|s| Signature::from_bytes(&s));
        key.zip(signature).is_some_and(|(key, signature)| {
            key.verify_strict(signed(&self.head).as_bytes(), &signature).is_ok()
        })
    }
}

/// How far a client's own chain has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClientHead {
    pub(crate) client: String,
    pub(crate) entries: u64,
    /// The hash of the last of them.
    pub(crate) head: String,
}

/// What a run found at the end of a file that it went on with, where the run before had not signed
/// its end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Found {
    /// Entries after the last seal. Their hashes fitted; who wrote them was not known.
    pub(crate) unsigned: u64,
    /// A last line that was cut short. It was taken out of the chain and is kept here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) torn: Option<Torn>,
}

/// A line that was cut short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Torn {
    pub(crate) bytes: u64,
    /// Its beginning, as far as it is text.
    pub(crate) text: String,
}

/// Letters of a torn line that are kept: every entry is shorter.
const KEPT_LETTERS: usize = 2000;

impl Torn {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).chars().take(KEPT_LETTERS).collect();
        Self { bytes: bytes.len() as u64, text }
    }
}

/// What a seal says.
#[derive(Debug, Serialize, Deserialize)]
struct Body {
    number: u64,
    entries: u64,
    digest: String,
    key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clients: Option<Vec<ClientHead>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    found: Option<Found>,
}

/// The seals of a file, as they are written or read, and what the next one will cover.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seals {
    /// All bytes since the last seal, with that seal.
    since: Hashed,
    number: u64,
    entries: u64,
    unsigned: u64,
    last: Option<Head>,
}

impl Seals {
    /// Takes in whole lines of entries, with their line ends.
    pub(crate) fn take(&mut self, lines: &str) {
        self.since.take(lines.as_bytes());
        let count = lines.bytes().filter(|byte| *byte == b'\n').count() as u64;
        self.entries += count;
        self.unsigned += count;
    }

    /// Entries since the last seal.
    pub(crate) fn unsigned(&self) -> u64 {
        self.unsigned
    }

    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// The last seal; none where nothing was written.
    pub(crate) fn last(&self) -> Option<&Head> {
        self.last.as_ref()
    }

    /// The next line: it signs all that stands before it.
    ///
    /// # Panics
    /// Never: what a seal says has text keys only, and text has room.
    pub(crate) fn seal(
        &mut self,
        key: &LedgerKey,
        clients: Option<Vec<ClientHead>>,
        found: Option<Found>,
    ) -> String {
        let body = Body {
            number: self.number,
            entries: self.entries,
            digest: self.since.hex(),
            key: key.public(),
            clients,
            found,
        };
        let body = serde_json::to_string(&body).expect("text keys only, and text has room");
        let body = &body[1..];
        let head = digest::sha256(body.as_bytes());
        let signature = key.sign(&head);
        let line = format!("{BEGINS}{signature}{THEN}{head}\",{body}\n");
        self.step(&line, Head { head, entries: self.entries, key: key.public(), signature });
        line
    }

    fn step(&mut self, line: &str, head: Head) -> &Head {
        self.since = Hashed::default();
        self.since.take(line.as_bytes());
        self.number += 1;
        self.unsigned = 0;
        self.last.insert(head)
    }

    /// Whether a line is a seal, or meant to be one.
    pub(super) fn is_seal(line: &[u8]) -> bool {
        line.starts_with(BEGINS.as_bytes())
    }

    /// Whether a line that was cut short may have been a seal.
    pub(super) fn may_begin(line: &[u8]) -> bool {
        Self::is_seal(line) || BEGINS.as_bytes().starts_with(line)
    }

    /// Checks that a seal, without its line end, is the next one and covers what stands before it, and
    /// steps onto it. Its signature is checked by who reads on to the last seal, since that one covers
    /// all before it. `is_there` says whether a client's chain has come that far.
    pub(super) fn accept(
        &mut self,
        line: &[u8],
        is_there: impl Fn(&ClientHead) -> bool,
    ) -> Result<&Head, Why> {
        let not = |what: &str| Why::NotARecord(what.to_owned());
        let text = str::from_utf8(line).map_err(|_| not("not UTF-8"))?;
        let (signature, head, body) = parts(text).ok_or_else(|| not("no whole signature"))?;
        if digest::sha256(body.as_bytes()) != head {
            return Err(Why::Changed);
        }
        let whole = format!("{{{body}");
        let said: Body = serde_json::from_str(&whole).map_err(|e| not(&e.to_string()))?;
        if said.number != self.number {
            return Err(Why::Sequence { expected: self.number, found: said.number });
        }
        if self.last.as_ref().is_some_and(|last| last.key != said.key) {
            return Err(Why::OutOfPlace("it is signed with another key than the lines before"));
        }
        let missing = said.clients.iter().flatten().find(|client| !is_there(client));
        if let Some(client) = missing {
            return Err(Why::ClientMissing(client.client.clone()));
        }
        if (said.entries, &said.digest) != (self.entries, &self.since.hex()) {
            return Err(Why::Uncovered { signed: said.entries, found: self.entries });
        }
        let (head, signature) = (head.to_owned(), signature.to_owned());
        let line = format!("{text}\n");
        Ok(self.step(&line, Head { head, entries: said.entries, key: said.key, signature }))
    }
}

/// The signature, the hash and what the hash covers.
fn parts(line: &str) -> Option<(&str, &str, &str)> {
    let (signature, rest) = line.strip_prefix(BEGINS)?.split_at_checked(SIGNATURE)?;
    let (head, rest) = rest.strip_prefix(THEN)?.split_at_checked(DIGITS)?;
    Some((signature, head, rest.strip_prefix("\",")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::chain::GENESIS;

    #[test]
    fn a_key_comes_back_from_its_text_and_is_not_shown() {
        let key = LedgerKey::new().unwrap();
        let text = key.to_text();
        let again = LedgerKey::from_text(&text).unwrap();
        assert_eq!(key.public(), again.public());
        assert!(!format!("{key:?}").contains(text.trim_end()));
        assert!(LedgerKey::from_text("").is_none());
        assert!(LedgerKey::from_text(&text[1..]).is_none());
        assert_ne!(LedgerKey::new().unwrap().public(), key.public());
    }

    #[test]
    fn the_signature_is_that_of_the_standard() {
        // RFC 8032, test 1: the public half of this private one.
        let key = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        assert_eq!(LedgerKey::from_text(key).unwrap().public(), public);
    }

    #[test]
    fn a_head_kept_elsewhere_shows_by_itself_who_signed_it() {
        let (key, other) = (LedgerKey::new().unwrap(), LedgerKey::new().unwrap());
        let mut seals = Seals::default();
        seals.take("one\ntwo\n");
        seals.seal(&key, None, None);
        let head = seals.last().unwrap().clone();
        assert!(head.is_signed() && head.entries == 2);
        assert!(!Head { key: other.public(), ..head.clone() }.is_signed());
        assert!(!Head { head: GENESIS.to_owned(), ..head }.is_signed());
    }

    #[test]
    fn the_same_lines_and_the_same_key_make_the_same_seal() {
        let key = LedgerKey::new().unwrap();
        let written = || {
            let mut seals = Seals::default();
            let first = seals.seal(&key, None, None);
            seals.take("one\n");
            first + &seals.seal(&key, None, None)
        };
        assert_eq!(written(), written());
    }
}
