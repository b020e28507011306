//! What crosses in one piece: one step of one site, or the server's answer to it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use thiserror::Error;

use crate::stream::Continuity;

/// The version of topics and envelopes.
const VERSION: u8 = 1;
/// A longer envelope is refused before it is read.
pub(crate) const MOST_BYTES: usize = 1 << 20;
/// More messages in one step are refused.
const MOST_MESSAGES: usize = 64;

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

/// From a site to the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Up {
    /// The site is there and waits for a word.
    Hello {
        /// What both must agree on.
        agreement: String,
        /// The site's clock.
        nanosecond: i64,
    },
    /// Everything the site releases at one step. Step 0 is its enrolment.
    Step(Step),
    /// What the site answers to a question at a step.
    Answer { step: u64, messages: Vec<Vec<u8>> },
    /// The data of the site ended after so many steps.
    End { steps: u64 },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) number: u64,
    /// Its time on the data's clock, in nanoseconds since 1970.
    nanosecond: i64,
    follows: Follow,
    /// The wall's messages as they cross.
    pub(crate) messages: Vec<Vec<u8>>,
}

/// How a step follows the one before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Follow {
    NewRun,
    Next,
    Gap { seconds: f64 },
}

impl Step {
    pub(crate) fn new(
        number: u64,
        time: Timestamp,
        continuity: Continuity,
        messages: Vec<Vec<u8>>,
    ) -> Self {
        let follows = match continuity {
            Continuity::NewRun => Follow::NewRun,
            Continuity::Next => Follow::Next,
            Continuity::Gap { seconds } => Follow::Gap { seconds },
        };
        Self { number, nanosecond: nanosecond(time), follows, messages }
    }

    pub(crate) fn time(&self) -> Timestamp {
        Timestamp::from_nanosecond(i128::from(self.nanosecond)).unwrap_or_default()
    }

    pub(crate) fn continuity(&self) -> Continuity {
        match self.follows {
            Follow::NewRun => Continuity::NewRun,
            Follow::Next => Continuity::Next,
            Follow::Gap { seconds } => Continuity::Gap { seconds },
        }
    }

    /// Whether both are of the same instant of the same grid.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        (self.number, self.nanosecond, self.follows)
            == (other.number, other.nanosecond, other.follows)
    }
}

/// A time as it crosses. Times outside of 1677 to 2262 are cut off there.
pub(crate) fn nanosecond(time: Timestamp) -> i64 {
    i64::try_from(time.as_nanosecond()).unwrap_or(i64::MAX)
}

/// From the server to a site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Down {
    /// The server waits for this step. Orders are those of the step before.
    Next { step: u64, orders: Vec<Vec<u8>> },
    /// A question about this step, to be answered before the step is closed.
    Question { step: u64, order: Vec<u8> },
    /// The run is over.
    Stop,
    /// The site cannot take part.
    Refused { why: String },
}

/// Writes an envelope.
pub(crate) fn seal<T: Serialize>(content: &T) -> Result<Vec<u8>, EnvelopeError> {
    let sealed = postcard::to_extend(content, vec![VERSION]);
    sealed.map_err(|why| EnvelopeError::Malformed(why.to_string()))
}

fn open<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, EnvelopeError> {
    if bytes.len() > MOST_BYTES {
        return Err(EnvelopeError::TooLong(bytes.len()));
    }
    let (version, rest) =
        bytes.split_first().ok_or_else(|| EnvelopeError::Malformed("no bytes".to_owned()))?;
    if *version != VERSION {
        return Err(EnvelopeError::Version(*version));
    }
    let (content, behind) =
        postcard::take_from_bytes(rest).map_err(|why| EnvelopeError::Malformed(why.to_string()))?;
    if behind.is_empty() {
        Ok(content)
    } else {
        Err(EnvelopeError::Malformed(format!("{} bytes behind its end", behind.len())))
    }
}

/// Reads what a site sent.
pub(crate) fn open_up(bytes: &[u8]) -> Result<Up, EnvelopeError> {
    let up = open(bytes)?;
    match &up {
        Up::Step(Step { messages, .. }) | Up::Answer { messages, .. }
            if messages.len() > MOST_MESSAGES =>
        {
            Err(EnvelopeError::Malformed(format!("{} messages in one step", messages.len())))
        }
        Up::Step(Step { follows: Follow::Gap { seconds }, .. })
            if !seconds.is_finite() || *seconds < 0.0 =>
        {
            Err(EnvelopeError::Malformed("a gap without a length".to_owned()))
        }
        Up::Hello { .. } | Up::Step(_) | Up::Answer { .. } | Up::End { .. } => Ok(up),
    }
}

/// Reads what the server sent.
pub(crate) fn open_down(bytes: &[u8]) -> Result<Down, EnvelopeError> {
    open(bytes)
}

/// Where the envelopes of one federation pass.
#[derive(Debug, Clone)]
pub(crate) struct Topics {
    root: String,
}

impl Topics {
    /// The topics of the session of this name.
    pub(crate) fn of(session: &str) -> Self {
        Self { root: format!("headwater/{VERSION}/{}", level(session)) }
    }

    pub(crate) fn up(&self, site: &str) -> String {
        format!("{}/{}/up", self.root, level(site))
    }

    pub(crate) fn down(&self, site: &str) -> String {
        format!("{}/{}/down", self.root, level(site))
    }

    /// Whether a site, or the server, is there: a retained message, and its will.
    pub(crate) fn state(&self, who: &str) -> String {
        format!("{}/{}/state", self.root, level(who))
    }
}

/// A name as one level of a topic.
fn level(name: &str) -> String {
    name.chars().map(|c| if "/+#$\0".contains(c) { '_' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_envelope_comes_back_as_it_was_sealed_and_anything_else_is_refused_in_words() {
        let time = Timestamp::from_second(1_660_000_000).expect("a time");
        let gap = Continuity::Gap { seconds: 15.0 };
        let step = Step::new(7, time, gap, vec![vec![1, 2], Vec::new()]);
        assert_eq!((step.time(), step.continuity()), (time, gap));
        let bytes = seal(&Up::Step(step.clone())).expect("sealed");
        assert_eq!(open_up(&bytes), Ok(Up::Step(step)));
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
        assert!(open_up(&seal(&many).expect("sealed")).is_err());
        let nan = Step::new(1, time, Continuity::Gap { seconds: f64::NAN }, Vec::new());
        assert!(open_up(&seal(&Up::Step(nan)).expect("sealed")).is_err());
    }

    #[test]
    fn a_name_is_one_level_of_a_topic_whatever_is_in_it() {
        let topics = Topics::of("a/b#c");
        assert_eq!(topics.up("P+1"), "headwater/1/a_b_c/P_1/up");
    }

    proptest! {
        #[test]
        fn no_bytes_can_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = open_up(&bytes);
            let _ = open_down(&bytes);
        }
    }
}
