//! {client: p} in the order of the session, which a sorted or hashed map would lose.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Number;

/// Probability of each client as the root.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Posterior(pub(crate) Vec<(String, Number)>);

impl Serialize for Posterior {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(client, p)| (client, p)))
    }
}

impl<'de> Deserialize<'de> for Posterior {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Pairs;

        impl<'de> Visitor<'de> for Pairs {
            type Value = Posterior;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of clients and probabilities")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Posterior, M::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Posterior(pairs))
            }
        }

        from.deserialize_map(Pairs)
    }
}
