//! Carriers: what takes messages from one side to the other.

use std::collections::VecDeque;

use thiserror::Error;

use super::message::{DecodeError, Message, Outgoing};
use super::to_site::ToSite;

/// Why a message did not arrive.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WireError {
    /// What was sent is no message that a receiver would take.
    #[error("a message was refused: {0}")]
    Decode(#[from] DecodeError),
    /// The server's end of a carrier has no site that could send.
    #[error("no site is on this machine")]
    NoSite,
}

/// A carrier between the sites and the server. Messages of one sender arrive in the order in which
/// they were sent.
pub trait Wire: Send {
    /// A site sends to the server.
    fn send(&mut self, message: Outgoing) -> Result<(), WireError>;

    /// The next message that has arrived at the server.
    fn receive(&mut self) -> Option<Message>;

    /// The server sends to a site.
    fn send_to_site(&mut self, message: ToSite) -> Result<(), WireError>;

    /// The next message that has arrived at a site.
    fn receive_at_site(&mut self) -> Option<ToSite>;

    /// A site sends, and the server receives what has arrived by then.
    fn deliver(
        &mut self,
        message: Outgoing,
        hear: &mut dyn FnMut(&Message),
    ) -> Result<(), WireError> {
        self.send(message)?;
        while let Some(message) = self.receive() {
            hear(&message);
        }
        Ok(())
    }

    /// The server sends, and sites receive what has arrived by then.
    fn deliver_to_site(
        &mut self,
        message: ToSite,
        hear: &mut dyn FnMut(&ToSite),
    ) -> Result<(), WireError> {
        self.send_to_site(message)?;
        while let Some(message) = self.receive_at_site() {
            hear(&message);
        }
        Ok(())
    }
}

/// A carrier within one process: messages are handed over as they are.
#[derive(Debug, Default)]
pub struct Memory {
    up: VecDeque<Message>,
    down: VecDeque<ToSite>,
}

impl Wire for Memory {
    fn send(&mut self, message: Outgoing) -> Result<(), WireError> {
        self.up.push_back(message.delivered()?);
        Ok(())
    }

    fn receive(&mut self) -> Option<Message> {
        self.up.pop_front()
    }

    fn send_to_site(&mut self, message: ToSite) -> Result<(), WireError> {
        message.check()?;
        self.down.push_back(message);
        Ok(())
    }

    fn receive_at_site(&mut self) -> Option<ToSite> {
        self.down.pop_front()
    }

    // Nothing waits between two deliveries, so a message goes straight to its receiver: a round of a
    // thousand clients has two thousand of them.
    fn deliver(
        &mut self,
        message: Outgoing,
        hear: &mut dyn FnMut(&Message),
    ) -> Result<(), WireError> {
        while let Some(earlier) = self.receive() {
            hear(&earlier);
        }
        hear(&message.delivered()?);
        Ok(())
    }

    fn deliver_to_site(
        &mut self,
        message: ToSite,
        hear: &mut dyn FnMut(&ToSite),
    ) -> Result<(), WireError> {
        while let Some(earlier) = self.receive_at_site() {
            hear(&earlier);
        }
        message.check()?;
        hear(&message);
        Ok(())
    }
}

#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From a site to the server.
    Up,
    /// From the server to a site.
    Down,
}

/// A carrier whose messages are bytes on the way. Every byte that crosses is shown to a listener.
#[cfg(test)]
pub(crate) struct Encoded<L> {
    listener: L,
    bytes: Vec<u8>,
    arrived: Memory,
}

#[cfg(test)]
impl<L: FnMut(Direction, &[u8]) + Send> Encoded<L> {
    /// A carrier whose bytes `listener` sees, message by message.
    pub(crate) fn new(listener: L) -> Self {
        Self { listener, bytes: Vec::new(), arrived: Memory::default() }
    }
}

#[cfg(test)]
impl<L: FnMut(Direction, &[u8]) + Send> Wire for Encoded<L> {
    fn send(&mut self, message: Outgoing) -> Result<(), WireError> {
        self.bytes.clear();
        message.encode(&mut self.bytes);
        (self.listener)(Direction::Up, &self.bytes);
        self.arrived.up.push_back(Message::decode(&self.bytes)?);
        Ok(())
    }

    fn receive(&mut self) -> Option<Message> {
        self.arrived.receive()
    }

    fn send_to_site(&mut self, message: ToSite) -> Result<(), WireError> {
        self.bytes.clear();
        message.encode(&mut self.bytes);
        (self.listener)(Direction::Down, &self.bytes);
        self.arrived.down.push_back(ToSite::decode(&self.bytes)?);
        Ok(())
    }

    fn receive_at_site(&mut self) -> Option<ToSite> {
        self.arrived.receive_at_site()
    }
}
