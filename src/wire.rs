//! The wall between a site and the server: what may cross, in which form, and over which carrier.
//!
//! ```text
//!  site: Released<_> ──► Outgoing ──► carrier ──► Message ──► server
//!  site ◄────────────────────────── carrier ◄────────── ToSite: server
//! ```
//!
//! Guarantees:
//! - An [`Outgoing`] message is made of [`Released`](crate::privacy::Released) values only, which a
//!   ledger has entered.
//! - A [`Message`] is what a carrier delivers. It can be read and decoded; it cannot be sent.
//! - Every carrier delivers the same content: numbers are `f32` on both sides of every carrier.
//! - What is decoded is bounded, of a known version, and checked.
//!
//! A row of measurements cannot become a message:
//!
//! ```compile_fail,E0308
//! use headwater::test_api::{Outgoing, Released, Row, Symbol};
//! fn send(row: Row<'_>, released: &Released<Symbol>) -> Outgoing {
//!     Outgoing::symbol(0, 1, row, None)
//! }
//! ```
//!
//! The same with a released symbol compiles:
//!
//! ```
//! use headwater::test_api::{Outgoing, Released, Row, Symbol};
//! fn send(row: Row<'_>, released: &Released<Symbol>) -> Outgoing {
//!     Outgoing::symbol(0, 1, released, None)
//! }
//! ```
//!
//! A received message cannot be sent on:
//!
//! ```compile_fail,E0308
//! use headwater::test_api::{Memory, Message, Outgoing, Wire, WireError};
//! fn pass_on(wire: &mut Memory, own: Outgoing, received: Message) -> Result<(), WireError> {
//!     wire.send(received)
//! }
//! ```
//!
//! One's own can:
//!
//! ```
//! use headwater::test_api::{Memory, Message, Outgoing, Wire, WireError};
//! fn pass_on(wire: &mut Memory, own: Outgoing, received: Message) -> Result<(), WireError> {
//!     wire.send(own)
//! }
//! ```
//!
//! It must not know how values are made or what is done with them.

mod branched;
mod carrier;
mod message;
mod recorded;
mod tick;
mod to_site;

pub(crate) use self::branched::{Branched, Delivery, Rest, Switch};
#[cfg(test)]
pub(crate) use self::carrier::Direction;
#[cfg(test)]
pub(crate) use self::carrier::Encoded;
pub use self::carrier::{Memory, Wire, WireError};
use self::message::IN_PLACE;
pub(crate) use self::message::{Content, DecodeError, Numbers, Rehearsed};
pub use self::message::{Message, Outgoing};
pub(crate) use self::recorded::{
    CarrierLog, Crossed, Entries, Logged, RecordedWire, begin_at, last_enrolments,
};
pub(crate) use self::tick::{Follows, Tick};
pub(crate) use self::to_site::Order;
pub use self::to_site::ToSite;

use thiserror::Error;

use crate::nn::proprietary::Proprietary;
use crate::privacy::{self, Released};

/// States that must not leave their client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the states of this kind of proprietary model are practically its measurements and never \
     leave the client; `proprietary: Paper` or `OwnLag` has states that may"
)]
pub(crate) struct StatesStay;

/// The right of one client to send its states; there is no other way to make such a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sender {
    client: usize,
}

impl Sender {
    /// The right, if the model's states are a summary.
    pub(crate) fn new(client: usize, model: &impl Proprietary) -> Result<Self, StatesStay> {
        if model.may_send_states() { Ok(Self { client }) } else { Err(StatesStay) }
    }

    /// The place of the client in the federation.
    pub(crate) fn client(self) -> usize {
        self.client
    }

    /// [x̂_c(t−1), x_a(t)] of one training round.
    pub(crate) fn states(
        self,
        step: u64,
        x_c: &Released<privacy::Numbers>,
        x_a: &Released<privacy::Numbers>,
    ) -> Outgoing {
        Outgoing::of(self.client, step, Content::States { x_c: narrow(x_c), x_a: narrow(x_a) })
    }

    /// z(t) and, while influence is learned, ε(t).
    pub(crate) fn summary(
        self,
        step: u64,
        z: &Released<privacy::Numbers>,
        epsilon: Option<&Released<privacy::Numbers>>,
    ) -> Outgoing {
        let content = Content::Summary { z: narrow(z), epsilon: epsilon.map(narrow) };
        Outgoing::of(self.client, step, content)
    }
}

/// Numbers as they cross: four bytes each, whichever the carrier.
fn narrow(numbers: &Released<privacy::Numbers>) -> Numbers {
    let numbers = numbers.value().as_slice();
    // A few numbers are written in place: every round sends three such lists for each client.
    let mut in_place = [0.0; IN_PLACE];
    match in_place.get_mut(..numbers.len()) {
        Some(few) => {
            few.iter_mut().zip(numbers).for_each(|(to, x)| *to = *x as f32);
            Numbers::from_buf_and_len(in_place, numbers.len())
        }
        None => numbers.iter().map(|x| *x as f32).collect(),
    }
}

/// Messages for tests of receivers.
#[cfg(test)]
pub(crate) mod testing {
    use std::collections::VecDeque;

    use super::{Content, Memory, Message, Outgoing, ToSite, Wire, WireError};

    /// A message as a site would send it, whatever it says.
    pub(crate) fn outgoing(client: usize, step: u64, content: Content) -> Outgoing {
        Outgoing::of(client, step, content)
    }

    /// A message as a carrier would deliver it, whatever it says.
    pub(crate) fn message(client: usize, step: u64, content: Content) -> Message {
        Outgoing::of(client, step, content).unchecked()
    }

    /// A carrier on which an attacker changes what sites have sent, before the server gets it.
    pub(crate) struct Tampered<F> {
        sent: Vec<Message>,
        arrived: VecDeque<Message>,
        down: Memory,
        tamper: F,
    }

    impl<F: FnMut(&mut Vec<Message>) + Send> Tampered<F> {
        /// `tamper` sees everything that was sent since the server last received something.
        pub(crate) fn new(tamper: F) -> Self {
            Self { sent: Vec::new(), arrived: VecDeque::new(), down: Memory::default(), tamper }
        }
    }

    impl<F: FnMut(&mut Vec<Message>) + Send> Wire for Tampered<F> {
        fn send(&mut self, message: Outgoing) -> Result<(), WireError> {
            self.sent.push(message.delivered()?);
            Ok(())
        }

        fn receive(&mut self) -> Option<Message> {
            if !self.sent.is_empty() {
                (self.tamper)(&mut self.sent);
                self.arrived.extend(self.sent.drain(..));
            }
            self.arrived.pop_front()
        }

        fn send_to_site(&mut self, message: ToSite) -> Result<(), WireError> {
            self.down.send_to_site(message)
        }

        fn receive_at_site(&mut self) -> Option<ToSite> {
            self.down.receive_at_site()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::kernel::isa::Isa;
    use crate::nn::proprietary::Filter;
    use crate::nn::train::test_support::small_filter;
    use crate::privacy::{Channel, Estimate, Protection, Randomness};
    use crate::session::settings::PrivacySettings;

    fn open_channel() -> Channel {
        let open = Protection::new(&PrivacySettings::default(), 2);
        open.unwrap().augmented_channel(Randomness::seeded(1, 0))
    }

    #[test]
    fn the_states_of_the_residual_form_cannot_be_sent() {
        let paper = Filter::new(&small_filter(3, false, 1), Isa::detect()).unwrap();
        let residual = Filter::new(&small_filter(3, true, 1), Isa::detect()).unwrap();
        assert!(Sender::new(0, &paper).is_ok());
        assert_eq!(Sender::new(0, &residual).unwrap_err(), StatesStay);
    }

    #[test]
    fn a_message_weighs_as_much_as_the_paper_says_and_carries_nothing_else() {
        let (mut c, mut a) = (open_channel(), open_channel());
        let x_c = c.send(&Estimate::of_state(&[0.5, 1.5])).unwrap();
        let x_a = a.send(&Estimate::of_state(&[2.5, 3.5])).unwrap();
        let sender =
            Sender::new(1, &Filter::new(&small_filter(3, false, 1), Isa::detect()).unwrap())
                .unwrap();
        let up = sender.states(7, x_c, x_a);
        assert_eq!((up.payload_bytes(), ToSite::gradient(1, 7, x_a).payload_bytes()), (16, 8));
        // Version, client, step, kind, two lengths; then four numbers.
        let mut bytes = Vec::new();
        up.encode(&mut bytes);
        assert_eq!(bytes.len(), 6 + 16);
        let text = up.text();
        assert_eq!(text, r#"{"client":1,"step":7,"States":{"x_c":[0.5,1.5],"x_a":[2.5,3.5]}}"#);
    }
}
