//! What crosses in one piece: one step of one site, or the server's answer to it.
//!
//! ```text
//! version (1 byte) │ mark: session, start, sequence, clock (varints) │ content
//! ```
//!
//! The content of a step is sealed once and stored. The mark before it is new each time it is sent.

mod words;

use jiff::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use thiserror::Error;

use self::words::Follow;
pub(crate) use self::words::{
    Down, Holds, Lesson, PredictionPart, Ready, Step, Up, rows, stretches,
};
use crate::base::digest::sha256;

/// The version of topics and envelopes.
const VERSION: u8 = 5;
/// The version of topics: it changes when older programs could misread what they hear.
const TOPICS: u8 = 1;
/// A longer envelope is refused before it is read.
pub(crate) const MOST_BYTES: usize = 1 << 20;
/// More messages in one step are refused.
const MOST_MESSAGES: usize = 64;
/// More messages in one round of a training, or in one part of a lesson, are refused.
pub(crate) const MOST_OF_A_ROUND: usize = 16_384;
/// No federation learns from more rows, and no site holds more models.
pub(crate) const MOST_ROWS: u64 = 1 << 23;
const MOST_MODELS: usize = 8;

/// Bytes that are no envelope.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum EnvelopeError {
    #[error("an envelope of {0} bytes: at most {MOST_BYTES} are taken")]
    TooLong(usize),
    #[error("an envelope of version {0}: expected {VERSION}")]
    Version(u8),
    #[error("no envelope: {0}")]
    Malformed(String),
}

/// What every envelope says of its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// The beginning of the digest of what both must agree on.
    pub(crate) session: u64,
    /// The beginning of the digest of the sender's name.
    pub(crate) sender: u64,
    /// Which start of its sender sent it: later starts have larger numbers.
    pub(crate) start: u64,
    /// Counts what was sent since then.
    pub(crate) sequence: u64,
    /// The sender's clock, in nanoseconds since 1970.
    pub(crate) nanosecond: i64,
    /// The sender's clock less the receiver's when the last envelope from there arrived.
    pub(crate) delay: Option<i64>,
}

impl Mark {
    /// The mark of `sender` before its first envelope of a start.
    pub(crate) fn first(agreement: &str, sender: &str, start: u64) -> Self {
        let session = session_of(agreement);
        let sender = sender_of(sender);
        Self { session, sender, start, sequence: 0, nanosecond: 0, delay: None }
    }

    /// The mark of the next envelope, sent now.
    pub(crate) fn next(&mut self, delay: Option<i64>) -> Self {
        self.sequence += 1;
        self.delay = delay;
        self.nanosecond = nanosecond(Timestamp::now());
        *self
    }

    /// Whether it was sent after `other` by the same sender.
    pub(crate) fn is_after(&self, other: &Self) -> bool {
        (self.start, self.sequence) > (other.start, other.sequence)
    }
}

/// What both must agree on, as marks have it.
pub(crate) fn session_of(agreement: &str) -> u64 {
    beginning(agreement)
}

/// The sender with this name, as marks have it.
pub(crate) fn sender_of(name: &str) -> u64 {
    beginning(&sha256(name.as_bytes()))
}

/// The first 64 bits of a digest in hexadecimal digits.
fn beginning(digest: &str) -> u64 {
    u64::from_str_radix(digest.get(..16).unwrap_or_default(), 16).unwrap_or_default()
}

/// A time as it crosses. Times outside of 1677 to 2262 are cut off there.
pub(crate) fn nanosecond(time: Timestamp) -> i64 {
    i64::try_from(time.as_nanosecond()).unwrap_or(i64::MAX)
}

/// Writes the content of an envelope.
pub(crate) fn seal<T: Serialize>(content: &T) -> Result<Vec<u8>, EnvelopeError> {
    postcard::to_stdvec(content).map_err(|why| EnvelopeError::Malformed(why.to_string()))
}

/// A sealed content as it is sent, with the mark of its sender.
pub(crate) fn stamp(mark: &Mark, sealed: &[u8]) -> Result<Vec<u8>, EnvelopeError> {
    let mut bytes = postcard::to_extend(mark, vec![VERSION])
        .map_err(|why| EnvelopeError::Malformed(why.to_string()))?;
    bytes.extend_from_slice(sealed);
    Ok(bytes)
}

/// Reads the content of an envelope as [`seal`] wrote it.
pub(super) fn unseal<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, EnvelopeError> {
    let (content, behind) = postcard::take_from_bytes(bytes)
        .map_err(|why| EnvelopeError::Malformed(why.to_string()))?;
    if behind.is_empty() {
        Ok(content)
    } else {
        Err(EnvelopeError::Malformed(format!("{} bytes behind its end", behind.len())))
    }
}

fn open<T: DeserializeOwned>(bytes: &[u8]) -> Result<(Mark, T), EnvelopeError> {
    if bytes.len() > MOST_BYTES {
        return Err(EnvelopeError::TooLong(bytes.len()));
    }
    let (version, rest) =
        bytes.split_first().ok_or_else(|| EnvelopeError::Malformed("no bytes".to_owned()))?;
    if *version != VERSION {
        return Err(EnvelopeError::Version(*version));
    }
    let (mark, sealed) =
        postcard::take_from_bytes(rest).map_err(|why| EnvelopeError::Malformed(why.to_string()))?;
    Ok((mark, unseal(sealed)?))
}

/// Reads what a site sent.
pub(crate) fn open_up(bytes: &[u8]) -> Result<(Mark, Up), EnvelopeError> {
    let (mark, up) = open(bytes)?;
    match &up {
        Up::Step(Step { messages, .. })
        | Up::Answer { messages, .. }
        | Up::Graded { messages, .. }
            if messages.len() > MOST_MESSAGES =>
        {
            Err(EnvelopeError::Malformed(format!("{} messages in one step", messages.len())))
        }
        Up::Step(Step { follows: Follow::Gap { seconds }, .. })
            if !seconds.is_finite() || *seconds < 0.0 =>
        {
            Err(EnvelopeError::Malformed("a gap without a length".to_owned()))
        }
        Up::Hello { models, .. } if models.kept.len() > MOST_MODELS => {
            Err(EnvelopeError::Malformed(format!("models of {} trainings", models.kept.len())))
        }
        Up::Ready(Ready { period_s, .. }) if !period_s.is_finite() || *period_s <= 0.0 => {
            Err(EnvelopeError::Malformed("steps without a length".to_owned()))
        }
        Up::Round { messages, .. } | Up::Lesson(Lesson { messages, .. })
            if messages.len() > MOST_OF_A_ROUND =>
        {
            Err(EnvelopeError::Malformed(format!("{} messages in one round", messages.len())))
        }
        Up::Hello { .. }
        | Up::Ready(_)
        | Up::Round { .. }
        | Up::Lesson(_)
        | Up::Step(_)
        | Up::Answer { .. }
        | Up::Nothing { .. }
        | Up::Leave
        | Up::Told { .. }
        | Up::Graded { .. }
        | Up::End { .. } => Ok((mark, up)),
    }
}

/// Reads what the server sent.
pub(crate) fn open_down(bytes: &[u8]) -> Result<(Mark, Down), EnvelopeError> {
    open(bytes)
}

/// Orders as an outbox keeps them.
pub(crate) fn pack(orders: &[Vec<u8>]) -> Result<Vec<u8>, EnvelopeError> {
    seal(&orders)
}

pub(crate) fn unpack(bytes: &[u8]) -> Result<Vec<Vec<u8>>, EnvelopeError> {
    unseal(bytes)
}

/// What all sites sent of one step, as a journal keeps it.
pub(crate) fn pack_steps(steps: &[Option<Step>]) -> Result<Vec<u8>, EnvelopeError> {
    seal(&steps)
}

pub(crate) fn unpack_steps(bytes: &[u8]) -> Result<Vec<Option<Step>>, EnvelopeError> {
    unseal(bytes)
}

/// Where the envelopes of one federation pass.
#[derive(Debug, Clone)]
pub(crate) struct Topics {
    root: String,
}

impl Topics {
    /// The topics of the session of this name.
    pub(crate) fn of(session: &str) -> Self {
        Self { root: format!("headwater/{TOPICS}/{}", level(session)) }
    }

    pub(crate) fn up(&self, site: &str) -> String {
        format!("{}/{}/up", self.root, level(site))
    }

    pub(crate) fn down(&self, site: &str) -> String {
        format!("{}/{}/down", self.root, level(site))
    }

    /// The topics of all sites at once, as a broker's access list and subscriptions write them.
    pub(crate) fn up_of_all(&self) -> String {
        format!("{}/+/up", self.root)
    }

    pub(crate) fn down_of_all(&self) -> String {
        format!("{}/+/down", self.root)
    }

    pub(crate) fn state_of_all(&self) -> String {
        format!("{}/+/state", self.root)
    }

    /// Whether a site, or the server, is there: a retained message, and its will.
    pub(crate) fn state(&self, who: &str) -> String {
        format!("{}/{}/state", self.root, level(who))
    }
}

/// A name as one level of a topic, and as the name of a file.
pub(crate) fn level(name: &str) -> String {
    let is_unsafe = |c: char| "/\\+#$".contains(c) || c.is_control();
    name.trim().chars().map(|c| if is_unsafe(c) { '_' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Continuity;
    use proptest::prelude::*;

    #[test]
    fn an_envelope_comes_back_as_it_was_sealed_and_anything_else_is_refused_in_words() {
        let time = Timestamp::from_second(1_660_000_000).expect("a time");
        let gap = Continuity::Gap { seconds: 15.0 };
        let step = Step::new(7, time, gap, vec![vec![1, 2], Vec::new()]);
        assert_eq!((step.time(), step.continuity()), (time, gap));
        let mark =
            Mark { session: 1, sender: 9, start: 2, sequence: 3, nanosecond: -4, delay: Some(5) };
        let sealed = |up: &Up| stamp(&mark, &seal(up).expect("sealed")).expect("stamped");
        let bytes = sealed(&Up::Step(step.clone()));
        assert_eq!(open_up(&bytes), Ok((mark, Up::Step(step))));
        for cut in 0..bytes.len() {
            assert!(open_up(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(open_up(&longer).is_err());
        let mut other = bytes.clone();
        other[0] = VERSION + 1;
        assert_eq!(open_up(&other), Err(EnvelopeError::Version(VERSION + 1)));
        let long = vec![VERSION; MOST_BYTES + 1];
        assert_eq!(open_up(&long), Err(EnvelopeError::TooLong(MOST_BYTES + 1)));
        let many = Up::Answer { step: 1, messages: vec![Vec::new(); MOST_MESSAGES + 1] };
        assert!(open_up(&sealed(&many)).is_err());
        let nan = Step::new(1, time, Continuity::Gap { seconds: f64::NAN }, Vec::new());
        assert!(open_up(&sealed(&Up::Step(nan))).is_err());
    }

    #[test]
    fn rows_come_back_from_the_lengths_of_their_stretches() {
        for rows in [&[][..], &[true], &[false], &[false, true, true, false, true]] {
            assert_eq!(super::rows(&stretches(rows)).as_deref(), Some(rows));
        }
        assert_eq!(super::rows(&[u64::MAX, 1]), None);
        assert_eq!(super::rows(&[MOST_ROWS, 1]), None);
    }

    #[test]
    fn a_name_is_one_level_of_a_topic_whatever_is_in_it() {
        let topics = Topics::of("a/b#c");
        assert_eq!(topics.up("P+1"), "headwater/1/a_b_c/P_1/up");
    }

    #[test]
    fn what_is_sent_later_is_known_by_its_mark_and_so_is_what_comes_again() {
        let mut mark = Mark::first(&"ab".repeat(32), "P1", 7);
        assert_eq!(mark.session, 0xABAB_ABAB_ABAB_ABAB);
        let (one, two) = (mark.next(None), mark.next(None));
        assert!(two.is_after(&one) && !one.is_after(&two) && !one.is_after(&one));
        let another_start = Mark::first("", "P1", 8).next(None);
        assert!(another_start.is_after(&two));
    }

    proptest! {
        #[test]
        fn no_bytes_can_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = open_up(&bytes);
            let _ = open_down(&bytes);
        }
    }
}
