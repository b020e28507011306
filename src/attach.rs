//! Consoles of a running service: the events of its engine go to them over a local socket, and their
//! orders come back.
//!
//! ```text
//!  engine ─► run ─► Hub ─► (so many bytes may lie unread) ─► socket ─► Joined ─► console
//!     ▲                                                         │
//!     └──────────── OrderDesk ◄─────────────────────────────────┘
//! ```
//!
//! | module | what it is for |
//! |---|---|
//! | [`hub`] | the service's side: who has joined, and what each of them is told |
//! | [`desk`] | orders on their way to the engine, and whose they are |
//! | [`joined`] | the console's side: an engine that runs elsewhere |
//! | [`packet`] | what crosses the socket, and how |
//! | [`sound`] | whether what a service sends fits together |
//!
//! Guarantees:
//! - The service never waits for a console. One that does not read is left out, and joins again.
//! - The socket is a file of mode 0600 on this machine. There is no address on a network: measurements
//!   of the sites stay on the machine that they are on.
//! - Every console sees the same: an order of one is shown to all.
//! - Packets that cannot be read, or that do not fit together, end the connection and nothing else.

#[cfg(unix)]
use crate::engine::handle::EngineEvent;
#[cfg(unix)]
use crate::session::Session;

pub(crate) mod desk;
#[cfg(unix)]
pub(crate) mod hub;
#[cfg(unix)]
pub(crate) mod joined;
#[cfg(unix)]
mod packet;
#[cfg(unix)]
mod sound;

/// Reads bytes as a service reads those of a console; how many orders they are.
#[cfg(unix)]
pub(crate) fn orders_of(mut bytes: &[u8]) -> std::io::Result<usize> {
    let _: packet::Hello = packet::read_greeting(&mut bytes, packet::FROM_CONSOLE)?;
    let mut orders = 0;
    while !bytes.is_empty() {
        let packet: packet::OrderPacket = packet::read_packet(&mut bytes, packet::FROM_CONSOLE)?;
        orders += usize::from(packet.order().is_ok());
    }
    Ok(orders)
}

/// Reads bytes as a console reads those of a service: the session, and what the service told up to the
/// first packet that is none.
#[cfg(unix)]
pub(crate) fn events_of(mut bytes: &[u8]) -> Result<(Session, Vec<EngineEvent>), String> {
    let welcome: packet::Welcome =
        packet::read_greeting(&mut bytes, packet::FROM_SERVICE).map_err(|why| why.to_string())?;
    let (session, mut sound) = (welcome.session()?, sound::Sound::default());
    let mut events = Vec::new();
    while let Ok(packet) = packet::read_packet(&mut bytes, packet::FROM_SERVICE) {
        match sound.event(packet) {
            Ok(event) => events.push(event),
            Err(_) => break,
        }
    }
    Ok((session, events))
}
