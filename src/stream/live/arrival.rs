//! What transports hand over, and the bounded queue between their threads and the engine's.

use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

#[cfg(feature = "opcua")]
use jiff::Timestamp;

#[cfg(feature = "opcua")]
use super::assembler::Quality;

/// Arrivals that may lie unread. A pipe or file then waits; a broker keeps what is not fetched.
const QUEUE: usize = 1024;
/// How long a full queue is left alone.
const NAP: Duration = Duration::from_millis(5);

/// Something from outside.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Instant,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    /// One or more lines, the last one with or without its end.
    Lines(Vec<u8>),
    /// A message of a broker.
    Message {
        topic: Vec<u8>,
        payload: Vec<u8>,
        /// The broker has sent it before, over a connection that was lost.
        again: bool,
    },
    /// A message of an OPC UA server.
    #[cfg(feature = "opcua")]
    Server(Served),
    Phase(Phase),
    /// Nothing more will come, for this reason where it is a failure.
    End(Option<String>),
}

/// A message of an OPC UA server. A tag is named by its place in the list of names.
#[cfg(feature = "opcua")]
#[derive(Debug)]
pub(crate) enum Served {
    /// The tags that are watched.
    Names(Vec<String>),
    /// Single values with stamps of their own.
    Values(Vec<(usize, Timestamp, f64, Quality)>),
    /// Rows of its history: one value a tag, NaN where there is none.
    Rows(Vec<(Timestamp, Vec<f64>)>),
    /// Something that cannot be used, in words.
    Trouble(String),
}

/// How a source stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Phase {
    #[default]
    Connecting,
    Connected,
    /// The connection is gone, for this reason.
    Reconnecting(String),
    Ended,
}

/// A transport's end of the queue.
#[derive(Debug, Clone)]
pub(crate) struct Outbox {
    arrivals: SyncSender<Arrival>,
}

/// The engine's end.
#[derive(Debug)]
pub(crate) struct Inbox {
    arrivals: Receiver<Arrival>,
    spare: SyncSender<Vec<u8>>,
}

/// The engine is gone.
pub(crate) struct Gone;

/// A queue, and buffers that come back once their lines are read.
pub(crate) fn queue() -> (Outbox, Inbox, Receiver<Vec<u8>>) {
    let (sender, arrivals) = sync_channel(QUEUE);
    let (spare, spares) = sync_channel(QUEUE);
    (Outbox { arrivals: sender }, Inbox { arrivals, spare }, spares)
}

impl Outbox {
    /// Hands something over; waits while too much lies unread.
    pub(crate) fn send(&self, what: What) -> Result<(), Gone> {
        self.arrivals.send(Arrival { at: Instant::now(), what }).map_err(|_| Gone)
    }

    /// Hands over what arrived at `at`. While too much lies unread it waits, and the connection that
    /// it came by goes on.
    pub(crate) async fn hand(&self, at: Instant, what: What) -> Result<(), Gone> {
        use std::sync::mpsc::TrySendError::{Disconnected, Full};
        let mut arrival = Arrival { at, what };
        loop {
            match self.arrivals.try_send(arrival) {
                Ok(()) => return Ok(()),
                Err(Full(back)) => arrival = back,
                Err(Disconnected(_)) => return Err(Gone),
            }
            tokio::time::sleep(NAP).await;
        }
    }
}

impl Inbox {
    /// What has arrived; the end once every transport is gone.
    pub(crate) fn try_next(&self) -> Option<Arrival> {
        match self.arrivals.try_recv() {
            Ok(arrival) => Some(arrival),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(over()),
        }
    }

    /// What arrives within `wait`.
    pub(crate) fn next(&self, wait: Duration) -> Option<Arrival> {
        use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
        match self.arrivals.recv_timeout(wait) {
            Ok(arrival) => Some(arrival),
            Err(Timeout) => None,
            Err(Disconnected) => Some(over()),
        }
    }

    /// Gives a buffer back.
    pub(crate) fn recycle(&self, buffer: Vec<u8>) {
        // A transport that has enough of them, or is gone, does without.
        let _ = self.spare.try_send(buffer);
    }
}

fn over() -> Arrival {
    Arrival { at: Instant::now(), what: What::End(None) }
}
