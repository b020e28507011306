//! Messages from a site to the server: their content, and their bytes.
//!
//! ```text
//! version (1 byte) │ client, step (varints) │ kind (1 byte) │ content
//! ```
//!
//! The encoding is postcard's: varints, little-endian floats, lengths before lists.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use thiserror::Error;

use crate::evidence::enrolment::Enrolment;
use crate::privacy::{Faults, Flag, Quiet, Ranks, Released, Symbol};

/// Version of the encoding. Since version 2 an enrolment states how often the client's watch was raised;
/// since version 3 a symbol may come with a severity, since version 4 also the third of a burst.
pub(super) const VERSION: u8 = 4;

/// The oldest version that is read, for recordings: since then messages were only added.
const OLDEST: u8 = 2;

/// No message is longer.
pub(super) const MOST_BYTES: usize = 64 * 1024;

/// No list of numbers is longer.
pub(crate) const MOST_NUMBERS: usize = 4096;

/// No list of ranked sensors is longer.
const MOST_RANKS: usize = 16;

/// Numbers of a list that a message holds without memory of its own.
pub(super) const IN_PLACE: usize = 8;

/// A few numbers. Those of usual states are kept in place, so that a message allocates nothing.
pub(crate) type Numbers = SmallVec<[f32; IN_PLACE]>;

/// A message of a site to the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Content {
    /// [x̂_c(t−1), x_a(t)], once per training round.
    States {
        /// x̂_c(t−1).
        x_c: Numbers,
        /// x_a(t).
        x_a: Numbers,
    },
    /// A summary of a state: while influence is learned, and once per step in tier 2.
    Summary {
        /// z(t), the standardised state.
        z: Numbers,
        /// ε(t), what was new about it, while influence is learned.
        epsilon: Option<Numbers>,
    },
    /// How a client's symbols were distributed in calibration, before the first of them.
    Enrolment(Box<Enrolment>),
    /// A graded symbol (evidence mode).
    Symbol {
        /// How surprising the step is to the client alone.
        own: u8,
        /// What of it the client's explainer does not explain (tier 2).
        beside: Option<u8>,
        /// It is the first one after the client's watch was raised.
        raised: bool,
    },
    /// The client's watch is armed and was not raised (evidence mode).
    Quiet,
    /// (Z_c, Z_a), once per step (paper mode).
    Flags {
        /// Z_c.
        z_c: bool,
        /// Z_a.
        z_a: bool,
    },
    /// Which kinds of fault the client's sensors have, when that changes.
    Faults(Faults),
    /// The sensors that deviate most, when the server asks for them.
    Sensors(Ranks),
    /// A highest symbol, the first or the third of a burst, with its severity (evidence mode).
    Severe {
        /// How surprising the step is to the client alone.
        own: u8,
        /// How far it lies beyond the highest level.
        severity: u8,
    },
}

/// A message with its address.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Body {
    client: u32,
    step: u64,
    content: Content,
}

impl Body {
    /// Whether it is within bounds and makes sense, whichever carrier brought it.
    fn check(&self) -> Result<(), DecodeError> {
        match &self.content {
            Content::States { x_c, x_a } => sound(x_c).and(sound(x_a))?,
            Content::Summary { z, epsilon } => {
                sound(z)?;
                epsilon.as_ref().map_or(Ok(()), sound)?;
            }
            Content::Sensors(Ranks(ranks)) if ranks.len() > MOST_RANKS => {
                return Err(DecodeError::Content("list of sensors is too long"));
            }
            Content::Enrolment(enrolment) if !enrolment.is_sound() => {
                return Err(DecodeError::Content("enrolment makes no sense"));
            }
            Content::Enrolment(_)
            | Content::Sensors(_)
            | Content::Symbol { .. }
            | Content::Severe { .. }
            | Content::Quiet
            | Content::Flags { .. }
            | Content::Faults(_) => {}
        }
        Ok(())
    }
}

/// A message on its way out: made of released values, and of nothing else.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing(Body);

/// What a site would send if another method decided: entered in no ledger, so no carrier takes it. It is
/// received on the site's own machine alone.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rehearsed(Outgoing);

impl Rehearsed {
    /// A message that is rehearsed instead of sent.
    pub(crate) fn new(message: Outgoing) -> Self {
        Self(message)
    }

    /// As the rehearsing server receives it.
    pub(crate) fn heard(self) -> Result<Message, DecodeError> {
        self.0.delivered()
    }
}

/// A message that a carrier has delivered. Its content is not checked yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Message(Body);

/// Bytes that are no message.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecodeError {
    #[error("a message of {0} bytes: more than {MOST_BYTES} are refused")]
    TooLong(usize),
    /// Another version of the encoding.
    #[error("a message of version {0}: expected {VERSION}")]
    Version(u8),
    #[error("not a message: {0}")]
    Malformed(String),
    /// A message, and more behind it.
    #[error("{0} bytes behind the end of a message")]
    Trailing(usize),
    /// A list that is too long, or a number that is none.
    #[error("a message whose {0}")]
    Content(&'static str),
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "a release is referred to and never handed over, however small its value is"
)]
impl Outgoing {
    pub(super) fn of(client: usize, step: u64, content: Content) -> Self {
        Self(Body { client: client as u32, step, content })
    }

    /// A graded symbol of `client` at `step`, and in tier 2 the second one beside it.
    #[must_use]
    pub fn symbol(
        client: usize,
        step: u64,
        own: &Released<Symbol>,
        beside: Option<&Released<Symbol>>,
    ) -> Self {
        let beside = beside.map(|symbol| symbol.value().0);
        Self::of(client, step, Content::Symbol { own: own.value().0, beside, raised: false })
    }

    /// A graded symbol of `client` at `step` with its severity.
    pub(crate) fn severe(
        client: usize,
        step: u64,
        own: &Released<Symbol>,
        severity: &Released<Symbol>,
    ) -> Self {
        let content = Content::Severe { own: own.value().0, severity: severity.value().0 };
        Self::of(client, step, content)
    }

    /// The level of the symbol in it, as it is sent.
    pub(crate) fn level(&self) -> Option<u8> {
        match self.0.content {
            Content::Symbol { own, .. } | Content::Severe { own, .. } => Some(own),
            _ => None,
        }
    }

    /// The first symbol after the client's watch was raised.
    pub(crate) fn raised(client: usize, step: u64, own: &Released<Symbol>) -> Self {
        let content = Content::Symbol { own: own.value().0, beside: None, raised: true };
        Self::of(client, step, content)
    }

    /// The client's watch was looked at and not raised.
    pub(crate) fn quiet(client: usize, step: u64, _: &Released<Quiet>) -> Self {
        Self::of(client, step, Content::Quiet)
    }

    /// (Z_c, Z_a) of `client` at `step`.
    pub(crate) fn flags(
        client: usize,
        step: u64,
        z_c: &Released<Flag>,
        z_a: &Released<Flag>,
    ) -> Self {
        Self::of(client, step, Content::Flags { z_c: z_c.value().0, z_a: z_a.value().0 })
    }

    /// Which kinds of fault the client's sensors have from `step` on.
    pub(crate) fn faults(client: usize, step: u64, faults: &Released<Faults>) -> Self {
        Self::of(client, step, Content::Faults(*faults.value()))
    }

    /// The sensors that deviate most.
    pub(crate) fn sensors(client: usize, step: u64, ranks: Released<Ranks>) -> Self {
        Self::of(client, step, Content::Sensors(ranks.into_value()))
    }

    /// The client's enrolment, before its other messages count.
    pub(crate) fn enrolment(client: usize, step: u64, enrolment: Released<Enrolment>) -> Self {
        Self::of(client, step, Content::Enrolment(Box::new(enrolment.into_value())))
    }

    /// Appends the message as it crosses.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        encode(&self.0, out);
    }

    /// The message as text, for people and for searches.
    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        text(self.0.client, self.0.step, &self.0.content)
    }

    /// Bytes of the numbers in it, without address and lengths.
    pub(crate) fn payload_bytes(&self) -> usize {
        let size = |numbers: &Numbers| std::mem::size_of::<f32>() * numbers.len();
        match &self.0.content {
            Content::States { x_c, x_a } => size(x_c) + size(x_a),
            Content::Summary { z, epsilon } => size(z) + epsilon.as_ref().map_or(0, size),
            Content::Symbol { .. }
            | Content::Quiet
            | Content::Flags { .. }
            | Content::Faults(_) => 1,
            Content::Severe { .. } => 2,
            Content::Sensors(Ranks(ranks)) => std::mem::size_of::<u16>() * ranks.len(),
            Content::Enrolment(_) => self.encoded_bytes(),
        }
    }

    fn encoded_bytes(&self) -> usize {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes.len()
    }

    /// What a carrier in the same process delivers: checked like one that came as bytes.
    pub(super) fn delivered(self) -> Result<Message, DecodeError> {
        self.0.check()?;
        Ok(Message(self.0))
    }

    /// What a carrier would deliver that checks nothing: a receiver must bear it.
    #[cfg(test)]
    pub(super) fn unchecked(self) -> Message {
        Message(self.0)
    }
}

/// Appends version and body.
pub(super) fn encode<T: Serialize>(body: &T, out: &mut Vec<u8>) {
    out.push(VERSION);
    let encoded = postcard::to_extend(body, std::mem::take(out));
    // A vector takes every byte, and the types above have no part that cannot be written.
    *out = encoded.expect("a message can always be written to memory");
}

/// Reads version and body, and nothing behind it.
pub(super) fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, DecodeError> {
    if bytes.len() > MOST_BYTES {
        return Err(DecodeError::TooLong(bytes.len()));
    }
    let (version, rest) =
        bytes.split_first().ok_or_else(|| DecodeError::Malformed("no bytes".to_owned()))?;
    if !(OLDEST..=VERSION).contains(version) {
        return Err(DecodeError::Version(*version));
    }
    let (body, behind) = postcard::take_from_bytes(rest)
        .map_err(|error| DecodeError::Malformed(error.to_string()))?;
    if behind.is_empty() { Ok(body) } else { Err(DecodeError::Trailing(behind.len())) }
}

pub(super) fn sound(numbers: &Numbers) -> Result<(), DecodeError> {
    if numbers.len() > MOST_NUMBERS {
        return Err(DecodeError::Content("list of numbers is too long"));
    }
    if numbers.iter().any(|x| !x.is_finite()) {
        return Err(DecodeError::Content("numbers are not all finite"));
    }
    Ok(())
}

pub(super) fn text<T: Serialize>(client: u32, step: u64, content: &T) -> String {
    #[derive(Serialize)]
    struct Line<'a, T> {
        client: u32,
        step: u64,
        #[serde(flatten)]
        content: &'a T,
    }
    let line = serde_json::to_string(&Line { client, step, content });
    // Plain variants such as `Quiet` cannot be flattened into an object.
    line.unwrap_or_else(|_| {
        let kind = serde_json::to_string(content).unwrap_or_else(|error| error.to_string());
        format!("{{\"client\":{client},\"step\":{step},{kind}:null}}")
    })
}

impl Message {
    /// Reads a message, if the bytes are one.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let body: Body = decode(bytes)?;
        body.check()?;
        Ok(Self(body))
    }

    /// Appends the message as it crossed.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        encode(&self.0, out);
    }

    /// The place of the client in the federation, as it says.
    pub(crate) fn client(&self) -> usize {
        self.0.client as usize
    }

    pub(crate) fn step(&self) -> u64 {
        self.0.step
    }

    pub(crate) fn content(&self) -> &Content {
        &self.0.content
    }

    /// The message as text, for people and for searches.
    pub(crate) fn text(&self) -> String {
        text(self.0.client, self.0.step, &self.0.content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbers() -> impl Strategy<Value = Numbers> {
        prop::collection::vec(-1e6f32..1e6, 0..20).prop_map(Numbers::from_vec)
    }

    fn content() -> impl Strategy<Value = Content> {
        let faults = (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
            |(gap, flat_line, out_of_range)| {
                Content::Faults(Faults { gap, flat_line, out_of_range })
            },
        );
        prop_oneof![
            (numbers(), numbers()).prop_map(|(x_c, x_a)| Content::States { x_c, x_a }),
            (numbers(), prop::option::of(numbers()))
                .prop_map(|(z, epsilon)| Content::Summary { z, epsilon }),
            (any::<u8>(), prop::option::of(any::<u8>()), any::<bool>())
                .prop_map(|(own, beside, raised)| Content::Symbol { own, beside, raised }),
            (any::<u8>(), any::<u8>())
                .prop_map(|(own, severity)| Content::Severe { own, severity }),
            Just(Content::Quiet),
            (any::<bool>(), any::<bool>()).prop_map(|(z_c, z_a)| Content::Flags { z_c, z_a }),
            faults,
            prop::collection::vec(any::<u16>(), 0..16).prop_map(|r| Content::Sensors(Ranks(r))),
        ]
    }

    proptest! {
        #[test]
        fn every_message_comes_back_as_it_was_sent(
            client in 0usize..5000, step in any::<u64>(), content in content(),
        ) {
            let sent = Outgoing::of(client, step, content);
            let mut bytes = Vec::new();
            sent.encode(&mut bytes);
            let received = Message::decode(&bytes).expect("a message");
            prop_assert_eq!(Ok(received.clone()), sent.clone().delivered());
            prop_assert_eq!((received.client(), received.step()), (client, step));
            // Whatever is cut off or stuck on is noticed.
            prop_assert!(Message::decode(&bytes[..bytes.len() - 1]).is_err());
            bytes.push(0);
            prop_assert!(Message::decode(&bytes).is_err());
        }

        #[test]
        fn no_bytes_can_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(message) = Message::decode(&bytes) {
                let mut again = Vec::new();
                encode(&message.0, &mut again);
                prop_assert!(Message::decode(&again).is_ok());
            }
        }
    }

    #[test]
    fn another_version_and_numbers_that_are_none_are_refused_in_words() {
        let mut bytes = Vec::new();
        let nan = Content::States { x_c: Numbers::from_slice(&[f32::NAN]), x_a: Numbers::new() };
        Outgoing::of(0, 1, nan).encode(&mut bytes);
        let refused = Message::decode(&bytes).unwrap_err();
        assert_eq!(refused.to_string(), "a message whose numbers are not all finite");
        bytes[0] = VERSION + 1;
        let refused = Message::decode(&bytes).unwrap_err();
        assert_eq!(refused.to_string(), "a message of version 5: expected 4");
        let long = vec![VERSION; MOST_BYTES + 1];
        assert_eq!(Message::decode(&long), Err(DecodeError::TooLong(MOST_BYTES + 1)));
        assert!(Message::decode(&[]).is_err());
    }

    #[test]
    fn a_step_of_a_day_costs_a_handful_of_bytes() {
        for (content, expected) in [
            (Content::Symbol { own: 4, beside: None, raised: false }, 9),
            (Content::Flags { z_c: true, z_a: false }, 8),
            (Content::Quiet, 6),
        ] {
            let sent = Outgoing::of(2, 17_280, content);
            assert_eq!(sent.encoded_bytes(), expected, "{}", sent.text());
        }
    }
}
