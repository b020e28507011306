//! A fingerprint of what a model was made from: session, data, seed.
//!
//! FNV-1a over 128 bits. It tells changed input from unchanged, on every machine alike and for
//! ever; it is not cryptographic: collisions can be made on purpose.

use std::fmt;
use std::str::FromStr;

const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// What a model was made from, in 128 bits. Written as 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Fingerprint(pub(crate) u128);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Fingerprint {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        if digits { u128::from_str_radix(text, 16).map(Self).map_err(|_| ()) } else { Err(()) }
    }
}

/// Takes in parts one after the other. Each part is closed by its length, so that moving a border
/// between two parts changes the fingerprint.
#[derive(Debug, Clone)]
pub(crate) struct Hasher {
    state: u128,
}

impl Default for Hasher {
    fn default() -> Self {
        Self { state: OFFSET }
    }
}

impl Hasher {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.state = (self.state ^ u128::from(*byte)).wrapping_mul(PRIME);
        }
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.take(bytes);
        self.take(&(bytes.len() as u64).to_le_bytes());
        self
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    /// The fingerprint of all that was taken in.
    pub(crate) fn finish(&self) -> Fingerprint {
        Fingerprint(self.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_values_are_those_of_fnv_1a() {
        // Test vectors of draft-eastlake-fnv: "" and "foobar".
        let hash = |bytes: &[u8]| {
            let mut hasher = Hasher::new();
            hasher.take(bytes);
            hasher.finish().to_string()
        };
        assert_eq!(hash(b""), "6c62272e07bb014262b821756295c58d");
        assert_eq!(hash(b"a"), "d228cb696f1a8caf78912b704e4a8964");
        assert_eq!(hash(b"foobar"), "343e1662793c64bf6f0d3597ba446f18");
    }

    #[test]
    fn a_border_between_parts_counts() {
        let hash = |parts: &[&str]| {
            let mut hasher = Hasher::new();
            for part in parts {
                hasher.text(part);
            }
            hasher.finish()
        };
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
        assert_ne!(hash(&["ab"]), hash(&["ab", ""]));
    }

    proptest! {
        #[test]
        fn one_changed_byte_changes_the_fingerprint(
            mut bytes in prop::collection::vec(any::<u8>(), 1..50),
            place in 0usize..50,
        ) {
            let before = Hasher::new().bytes(&bytes).finish();
            let place = place % bytes.len();
            bytes[place] ^= 1;
            prop_assert_ne!(before, Hasher::new().bytes(&bytes).finish());
        }

        #[test]
        fn a_fingerprint_is_read_as_it_is_written(value: u128) {
            let text = Fingerprint(value).to_string();
            prop_assert_eq!(text.parse(), Ok(Fingerprint(value)));
        }
    }
}
