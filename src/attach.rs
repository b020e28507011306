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
//!
//! Guarantees:
//! - The service never waits for a console. One that does not read is left out, and joins again.
//! - The socket is a file of mode 0600 on this machine. There is no address on a network: measurements
//!   of the sites stay on the machine that they are on.
//! - Every console sees the same: an order of one is shown to all.

pub(crate) mod desk;
#[cfg(unix)]
pub(crate) mod hub;
#[cfg(unix)]
pub(crate) mod joined;
#[cfg(unix)]
mod packet;
