//! What may cross between a client and the server, and nothing else.
//!
//! A message is made of [`Released`] numbers, which only a ledger or a counted channel of
//! [`privacy`](crate::privacy) hands out; a row of measurements has no type that leads there. States
//! leave only through a [`Sender`], and a model whose states are practically its measurements gets
//! none. It must not know how numbers are made or what is done with them.

mod innovation;
mod tap;

pub use innovation::{Foretold, Innovation};

use serde::Serialize;
use thiserror::Error;

pub use self::tap::Tap;
use crate::model::proprietary::Proprietary;
use crate::privacy::{Flag, Numbers, Released, Symbol};

/// Bytes of a number on the wire: `f32`.
const NUMBER: usize = 4;

/// Anything that crosses.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum Message<'a> {
    /// From a client to the server, once per round.
    States(States<'a>),
    /// From the server to a client, once per round.
    Gradient(Gradient<'a>),
    /// From a client to the server, as often as was agreed (evidence mode).
    Symbol(Graded<'a>),
    /// From a client to the server, once per step (paper mode).
    Flags(FlagPair<'a>),
    /// From a client to the server, while influence is learned and once per step in tier 2.
    Innovation(Innovation<'a>),
    /// From the server to a client, once per step in tier 2.
    Foretold(Foretold<'a>),
}

impl Message<'_> {
    /// Bytes of payload.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::States(States { x_c, x_a, .. }) => size(x_c) + size(x_a),
            Self::Gradient(Gradient { g, .. }) => size(g),
            Self::Symbol(_) | Self::Flags(_) => 1,
            Self::Innovation(innovation) => innovation.numbers().map(size).sum(),
            Self::Foretold(foretold) => size(foretold.numbers()),
        }
    }

    /// The message as it crosses: its kind, client and step, then its payload; little-endian.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut head = |kind: u8, client: usize, step: usize| {
            out.push(kind);
            out.extend((client as u32).to_le_bytes());
            out.extend((step as u64).to_le_bytes());
        };
        match self {
            Self::States(States { client, step, .. }) => head(0, *client, *step),
            Self::Gradient(Gradient { client, step, .. }) => head(1, *client, *step),
            Self::Symbol(Graded { client, step, raised, .. }) => {
                head(2 + u8::from(*raised), *client, *step);
            }
            Self::Flags(FlagPair { client, step, .. }) => head(4, *client, *step),
            Self::Innovation(innovation) => head(5, innovation.client(), innovation.step()),
            Self::Foretold(foretold) => head(6, foretold.client(), foretold.step()),
        }
        let mut numbers = |numbers: &Released<Numbers>| {
            out.extend(numbers.value().as_slice().iter().flat_map(|x| (*x as f32).to_le_bytes()));
        };
        match self {
            Self::States(States { x_c, x_a, .. }) => {
                numbers(x_c);
                numbers(x_a);
            }
            Self::Gradient(Gradient { g, .. }) => numbers(g),
            Self::Symbol(Graded { symbol, .. }) => out.push(symbol.value().0),
            Self::Flags(FlagPair { z_c, z_a, .. }) => {
                out.push(u8::from(z_c.value().0) | u8::from(z_a.value().0) << 1);
            }
            Self::Innovation(innovation) => innovation.numbers().for_each(numbers),
            Self::Foretold(foretold) => numbers(foretold.numbers()),
        }
    }
}

fn size(numbers: &Released<Numbers>) -> usize {
    NUMBER * numbers.value().as_slice().len()
}

/// [x̂_c(t−1), x_a(t)] of one client.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct States<'a> {
    client: usize,
    step: usize,
    x_c: &'a Released<Numbers>,
    x_a: &'a Released<Numbers>,
}

impl States<'_> {
    /// The place of the client in the federation.
    #[must_use]
    pub fn client(&self) -> usize {
        self.client
    }

    /// t.
    #[must_use]
    pub fn step(&self) -> usize {
        self.step
    }

    /// x̂_c(t−1), as released.
    #[must_use]
    pub fn x_c(&self) -> &[f64] {
        self.x_c.value().as_slice()
    }

    /// x_a(t), as released.
    #[must_use]
    pub fn x_a(&self) -> &[f64] {
        self.x_a.value().as_slice()
    }
}

/// ∂L_s/∂x_a(t) for one client.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Gradient<'a> {
    client: usize,
    step: usize,
    g: &'a Released<Numbers>,
}

impl<'a> Gradient<'a> {
    /// The server's answer to the states of `client` at `step`.
    #[must_use]
    pub fn new(client: usize, step: usize, g: &'a Released<Numbers>) -> Self {
        Self { client, step, g }
    }

    /// The place of the client in the federation.
    #[must_use]
    pub fn client(&self) -> usize {
        self.client
    }

    /// t.
    #[must_use]
    pub fn step(&self) -> usize {
        self.step
    }

    /// ∂L_s/∂x_a(t), as released.
    #[must_use]
    pub fn g(&self) -> &[f64] {
        self.g.value().as_slice()
    }
}

/// A graded symbol of one client.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Graded<'a> {
    client: usize,
    step: usize,
    raised: bool,
    symbol: &'a Released<Symbol>,
}

impl<'a> Graded<'a> {
    /// The symbol of `client` at `step`; `raised` says that its watch was raised just now.
    #[must_use]
    pub fn new(client: usize, step: usize, raised: bool, symbol: &'a Released<Symbol>) -> Self {
        Self { client, step, raised, symbol }
    }

    /// The symbol as released, for a receiver who trusts no number.
    #[must_use]
    pub fn number(&self) -> f64 {
        f64::from(self.symbol.value().0)
    }
}

/// (Z_c, Z_a) of one client.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct FlagPair<'a> {
    client: usize,
    step: usize,
    z_c: &'a Released<Flag>,
    z_a: &'a Released<Flag>,
}

impl<'a> FlagPair<'a> {
    /// The flags of `client` at `step`.
    #[must_use]
    pub fn new(
        client: usize,
        step: usize,
        z_c: &'a Released<Flag>,
        z_a: &'a Released<Flag>,
    ) -> Self {
        Self { client, step, z_c, z_a }
    }

    /// The flags as released.
    #[must_use]
    pub fn flags(&self) -> (bool, bool) {
        (self.z_c.value().0, self.z_a.value().0)
    }
}

/// States that must not leave their client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the states of this kind of proprietary model are practically its measurements and never \
     leave the client; `proprietary: Paper` or `OwnLag` has states that may"
)]
pub struct StatesStay;

/// The right of one client to send its states; there is no other way to make such a message.
///
/// ```compile_fail,E0451
/// use headwater::link::States;
/// use headwater::privacy::{Numbers, Released};
/// fn bypass<'a>(x: &'a Released<Numbers>) -> States<'a> {
///     States { client: 0, step: 1, x_c: x, x_a: x }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Sender {
    client: usize,
    tap: Tap,
}

impl Sender {
    /// The right, if the model's states are a summary.
    pub fn new(client: usize, model: &impl Proprietary) -> Result<Self, StatesStay> {
        let tap = Tap::default();
        if model.may_send_states() { Ok(Self { client, tap }) } else { Err(StatesStay) }
    }

    /// Lets `tap` hear everything that is sent.
    pub fn set_tap(&mut self, tap: Tap) {
        self.tap = tap;
    }

    /// The message of one round.
    #[must_use]
    pub fn states<'a>(
        &self,
        step: usize,
        x_c: &'a Released<Numbers>,
        x_a: &'a Released<Numbers>,
    ) -> States<'a> {
        let states = States { client: self.client, step, x_c, x_a };
        self.tap.hear(&Message::States(states));
        states
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::proprietary::Filter;
    use crate::model::train::test_support::small_filter;
    use crate::privacy::{Channel, Estimate, Protection, Randomness, SigmaRule};
    use crate::session::settings::PrivacySettings;

    fn open_channel() -> Channel {
        let open = Protection::new(&PrivacySettings::default(), SigmaRule::Analytic, 2, 2);
        open.unwrap().augmented_channel(Randomness::seeded(1, 0))
    }

    #[test]
    fn the_states_of_the_residual_form_cannot_be_sent() {
        let paper = Filter::new(&small_filter(3, false, 1)).unwrap();
        let residual = Filter::new(&small_filter(3, true, 1)).unwrap();
        assert!(Sender::new(0, &paper).is_ok());
        assert_eq!(Sender::new(0, &residual).unwrap_err(), StatesStay);
    }

    #[test]
    fn a_message_weighs_as_much_as_the_paper_says_and_carries_nothing_else() {
        let (mut c, mut a) = (open_channel(), open_channel());
        let x_c = c.send(&Estimate::of_state(&[0.5, 1.5])).unwrap();
        let x_a = a.send(&Estimate::of_state(&[2.5, 3.5])).unwrap();
        let sender = Sender::new(1, &Filter::new(&small_filter(3, false, 1)).unwrap()).unwrap();
        let up = Message::States(sender.states(7, x_c, x_a));
        let down = Message::Gradient(Gradient::new(1, 7, x_a));
        assert_eq!((up.bytes(), down.bytes()), (2 * 2 * 4, 2 * 4));
        assert_eq!(
            serde_json::to_string(&up).unwrap(),
            r#"{"message":"states","client":1,"step":7,"x_c":[0.5,1.5],"x_a":[2.5,3.5]}"#
        );
    }
}
