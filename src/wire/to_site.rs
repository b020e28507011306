//! Messages from the server to a site.

use serde::{Deserialize, Serialize};

use super::message::{DecodeError, Numbers, decode, encode, sound, text};
use super::narrow;
use crate::privacy::{self, Released};

/// A message of the server to a site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// ∂L_s/∂x_a(t), once per training round.
    Gradient(Numbers),
    /// ε̂(t), what another client's state foretells of this client's ε(t) (tier 2).
    Prediction(Numbers),
    /// What the site showed in its last steps is normal from here on.
    TakeAsNormal {
        /// Steps since the change began.
        steps: u32,
    },
    /// What was taken as normal last is not.
    TakeBackNormal,
    /// The site is named as the root: it may say which of its sensors deviate most.
    NameSensors,
}

/// A message to one site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToSite {
    client: u32,
    step: u64,
    order: Order,
}

impl ToSite {
    fn of(client: usize, step: u64, order: Order) -> Self {
        Self { client: client as u32, step, order }
    }

    /// ∂L_s/∂x_a for `client` at `step`, as released.
    pub(crate) fn gradient(client: usize, step: u64, g: &Released<privacy::Numbers>) -> Self {
        Self::of(client, step, Order::Gradient(narrow(g)))
    }

    /// ε̂ for `client` at `step`, as released.
    pub(crate) fn prediction(
        client: usize,
        step: u64,
        epsilon: &Released<privacy::Numbers>,
    ) -> Self {
        Self::of(client, step, Order::Prediction(narrow(epsilon)))
    }

    /// What `client` showed in the last `steps` is normal from here on.
    pub(crate) fn take_as_normal(client: usize, step: u64, steps: usize) -> Self {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        Self::of(client, step, Order::TakeAsNormal { steps })
    }

    /// What `client` took as normal last is not.
    pub(crate) fn take_back_normal(client: usize, step: u64) -> Self {
        Self::of(client, step, Order::TakeBackNormal)
    }

    /// Asks `client` which of its sensors deviate most.
    pub(crate) fn name_sensors(client: usize, step: u64) -> Self {
        Self::of(client, step, Order::NameSensors)
    }

    /// The place of the client in the federation.
    pub(crate) fn client(&self) -> usize {
        self.client as usize
    }

    pub(crate) fn step(&self) -> u64 {
        self.step
    }

    pub(crate) fn order(&self) -> &Order {
        &self.order
    }

    /// Appends the message as it crosses.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        encode(self, out);
    }

    /// Reads a message, if the bytes are one.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let message: Self = decode(bytes)?;
        message.check()?;
        Ok(message)
    }

    /// Whether it is within bounds, whichever carrier brought it.
    pub(super) fn check(&self) -> Result<(), DecodeError> {
        match &self.order {
            Order::Gradient(numbers) | Order::Prediction(numbers) => sound(numbers),
            Order::TakeAsNormal { .. } | Order::TakeBackNormal | Order::NameSensors => Ok(()),
        }
    }

    /// The message as text, for people and for searches.
    pub(crate) fn text(&self) -> String {
        text(self.client, self.step, &self.order)
    }

    /// Bytes of the numbers in it, without address and lengths.
    pub(crate) fn payload_bytes(&self) -> usize {
        match &self.order {
            Order::Gradient(numbers) | Order::Prediction(numbers) => {
                std::mem::size_of::<f32>() * numbers.len()
            }
            Order::TakeAsNormal { .. } => std::mem::size_of::<u32>(),
            Order::TakeBackNormal | Order::NameSensors => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_order_comes_back_as_it_was_sent(
            client in 0usize..5000, step in any::<u64>(), steps in any::<u32>(),
            numbers in prop::collection::vec(-1e6f32..1e6, 0..20),
        ) {
            for order in [
                Order::Gradient(Numbers::from_slice(&numbers)),
                Order::Prediction(Numbers::from_slice(&numbers)),
                Order::TakeAsNormal { steps },
                Order::TakeBackNormal,
                Order::NameSensors,
            ] {
                let sent = ToSite::of(client, step, order);
                let mut bytes = Vec::new();
                sent.encode(&mut bytes);
                prop_assert_eq!(ToSite::decode(&bytes).expect("a message"), sent);
                prop_assert!(ToSite::decode(&bytes[..bytes.len() - 1]).is_err());
            }
        }

        #[test]
        fn no_bytes_can_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = ToSite::decode(&bytes);
        }
    }
}
