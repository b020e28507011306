//! What crosses a carrier, kept as a log of bytes, and the carrier that delivers such a log again.
//!
//! ```text
//! entry: tag (1 byte) │ length (varint) │ encoded message
//! tag 0: everything that had arrived was taken (no length, no message)
//! tag 1: a site's message that the server received
//! tag 2: a message of the server to a site
//! ```
//!
//! Where the server stopped taking messages is part of the log: what arrives later belongs to a later
//! decision.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::carrier::{Wire, WireError};
use super::message::{Content, DecodeError, Message, Outgoing};
use super::to_site::ToSite;

const TAKEN: u8 = 0;
const UP: u8 = 1;
const DOWN: u8 = 2;

/// The log of a carrier, shared with the part that stores it.
#[derive(Debug, Clone, Default)]
pub(crate) struct CarrierLog(Arc<Mutex<Vec<u8>>>);

impl CarrierLog {
    /// Moves what was logged since the last time to the end of `to`.
    pub(crate) fn drain_into(&self, to: &mut Vec<u8>) {
        self.with(|log| {
            to.extend_from_slice(log);
            log.clear();
        });
    }

    /// A site of its own sent this encoded message to the server.
    pub(crate) fn sent(&self, message: &[u8]) {
        self.with(|log| append(log, UP, message));
    }

    /// A site of its own carried out this encoded order of the server.
    pub(crate) fn obeyed(&self, order: &[u8]) {
        self.with(|log| append(log, DOWN, order));
    }

    fn with<R>(&self, act: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, tag: u8, scratch: &mut Vec<u8>, encode: impl FnOnce(&mut Vec<u8>)) {
        scratch.clear();
        encode(scratch);
        self.with(|log| append(log, tag, scratch));
    }
}

fn append(log: &mut Vec<u8>, tag: u8, message: &[u8]) {
    log.push(tag);
    let mut length = message.len();
    while length >= 0x80 {
        log.push(length as u8 | 0x80);
        length >>= 7;
    }
    log.push(length as u8);
    log.extend_from_slice(message);
}

/// The last enrolment of every client in a log, as a log of its own, and nothing else of it.
pub(crate) fn last_enrolments(log: &[u8]) -> Vec<u8> {
    let mut last = BTreeMap::new();
    for entry in Entries::of(log).map_while(Result::ok) {
        if let Crossed::Up(message) = entry
            && matches!(message.content(), Content::Enrolment(_))
        {
            last.insert(message.client(), message);
        }
    }
    let mut kept = Vec::new();
    for message in last.values() {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        append(&mut kept, UP, &bytes);
    }
    kept
}

/// A log whose messages before a step are gone, such that it can be delivered: what clients told of
/// themselves before that step arrives first, and all of it at once.
pub(crate) fn begin_at(enrolments: &[u8], log: &[u8], first: u64) -> Vec<u8> {
    let mut entries = Entries::of(log);
    let mut rest = log.len();
    loop {
        let before = entries.0.len();
        let is_of_step = match entries.next() {
            Some(Ok(Crossed::Up(message))) => message.step() >= first,
            Some(Ok(Crossed::Down(order))) => order.step() >= first,
            Some(Ok(Crossed::Taken)) => false,
            Some(Err(_)) | None => break,
        };
        if is_of_step {
            rest = log.len() - before;
            break;
        }
    }
    let known = [enrolments, &log[..rest]].concat();
    let mut whole = last_enrolments(&known);
    whole.push(TAKEN);
    whole.extend_from_slice(&log[rest..]);
    whole
}

/// A carrier that logs what crosses another one.
pub(crate) struct Logged {
    wire: Box<dyn Wire>,
    log: CarrierLog,
    scratch: Vec<u8>,
}

impl Logged {
    pub(crate) fn new(wire: Box<dyn Wire>, log: CarrierLog) -> Self {
        Self { wire, log, scratch: Vec::new() }
    }
}

impl Wire for Logged {
    fn send(&mut self, message: Outgoing) -> Result<(), WireError> {
        self.wire.send(message)
    }

    fn receive(&mut self) -> Option<Message> {
        let message = self.wire.receive();
        match &message {
            Some(message) => self.log.add(UP, &mut self.scratch, |to| message.encode(to)),
            None => self.log.with(|log| log.push(TAKEN)),
        }
        message
    }

    fn send_to_site(&mut self, message: ToSite) -> Result<(), WireError> {
        self.log.add(DOWN, &mut self.scratch, |to| message.encode(to));
        self.wire.send_to_site(message)
    }

    fn receive_at_site(&mut self) -> Option<ToSite> {
        self.wire.receive_at_site()
    }
}

/// One entry of a log.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Crossed {
    /// The server received it.
    Up(Message),
    /// The server sent it.
    Down(ToSite),
    /// The server had taken everything that had arrived.
    Taken,
}

/// Reads the entries of a log, one by one.
#[derive(Debug, Clone)]
pub(crate) struct Entries<'a>(&'a [u8]);

impl<'a> Entries<'a> {
    pub(crate) fn of(log: &'a [u8]) -> Self {
        Self(log)
    }

    fn read(&mut self) -> Result<Option<Crossed>, DecodeError> {
        let cut = || DecodeError::Malformed("the log of messages breaks off".to_owned());
        let Some((tag, rest)) = self.0.split_first() else { return Ok(None) };
        self.0 = rest;
        if *tag == TAKEN {
            return Ok(Some(Crossed::Taken));
        }
        let mut length = 0_usize;
        for shift in (0..28).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or_else(cut)?;
            self.0 = rest;
            length |= usize::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(cut)?;
        self.0 = rest;
        match *tag {
            UP => Ok(Some(Crossed::Up(Message::decode(bytes)?))),
            DOWN => Ok(Some(Crossed::Down(ToSite::decode(bytes)?))),
            other => Err(DecodeError::Malformed(format!("an entry of kind {other}"))),
        }
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<Crossed, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.read();
        if read.is_err() {
            self.0 = &[];
        }
        read.transpose()
    }
}

/// A carrier that delivers the messages of a log again. What is sent over it goes nowhere: the sites
/// that would receive it are not there.
pub(crate) struct RecordedWire {
    log: Vec<u8>,
    at: usize,
}

impl RecordedWire {
    /// The carrier of `log`, if every entry of it can be read.
    pub(crate) fn new(log: Vec<u8>) -> Result<Self, DecodeError> {
        Entries::of(&log).try_for_each(|entry| entry.map(drop))?;
        Ok(Self { log, at: 0 })
    }

    /// What is still to be delivered.
    pub(super) fn left(&self) -> &[u8] {
        &self.log[self.at..]
    }
}

impl Wire for RecordedWire {
    fn send(&mut self, _: Outgoing) -> Result<(), WireError> {
        Ok(())
    }

    fn receive(&mut self) -> Option<Message> {
        let mut entries = Entries::of(&self.log[self.at..]);
        let message = loop {
            match entries.next() {
                Some(Ok(Crossed::Up(message))) => break Some(message),
                Some(Ok(Crossed::Down(_))) => {}
                Some(Ok(Crossed::Taken) | Err(_)) | None => break None,
            }
        };
        self.at = self.log.len() - entries.0.len();
        message
    }

    fn send_to_site(&mut self, _: ToSite) -> Result<(), WireError> {
        Ok(())
    }

    fn receive_at_site(&mut self) -> Option<ToSite> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::testing::outgoing;
    use crate::wire::{Content, Memory};

    fn crossed() -> (Vec<u8>, Vec<Message>) {
        let log = CarrierLog::default();
        let mut wire = Logged::new(Box::new(Memory::default()), log.clone());
        let mut received = Vec::new();
        for step in 0..3 {
            for client in 0..2 {
                let flags = Content::Flags { z_c: step == 1, z_a: client == 0 };
                wire.send(outgoing(client, step, flags)).expect("a carrier in memory");
            }
            wire.send_to_site(ToSite::name_sensors(1, step)).expect("a carrier in memory");
            while let Some(message) = wire.receive() {
                received.push(message);
            }
        }
        let mut bytes = Vec::new();
        log.drain_into(&mut bytes);
        (bytes, received)
    }

    #[test]
    fn a_log_is_delivered_again_with_its_pauses() {
        let (bytes, received) = crossed();
        let mut again = RecordedWire::new(bytes).expect("a log");
        for two in received.chunks(2) {
            assert_eq!(again.receive().as_ref(), two.first());
            assert_eq!(again.receive().as_ref(), two.last());
            assert_eq!(again.receive(), None);
        }
        assert_eq!(again.receive(), None);
    }

    #[test]
    fn a_log_that_breaks_off_or_says_nonsense_is_refused() {
        let (bytes, _) = crossed();
        assert!(RecordedWire::new(bytes[..bytes.len() - 3].to_vec()).is_err());
        let mut wrong = bytes;
        wrong[0] = 9;
        assert!(RecordedWire::new(wrong).is_err());
    }
}
