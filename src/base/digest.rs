//! SHA-256 as hexadecimal text: for the ledger's hashes and for the checksums of kept files.
//!
//! It knows bytes only.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Hexadecimal digits of a digest.
pub(crate) const DIGITS: usize = 64;

/// A digest in the making.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hashed(Sha256);

impl Hashed {
    /// Takes in more bytes.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all that was taken in so far.
    pub(crate) fn hex(&self) -> String {
        to_hex(&self.0.clone().finalize())
    }
}

/// The digest of `bytes`.
pub fn sha256(bytes: &[u8]) -> String {
    to_hex(&Sha256::digest(bytes))
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Text has room.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes that lower-case hexadecimal digits stand for; nothing where they are not `N` bytes.
pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let mut bytes = [0; N];
    if pairs.len() != N {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = 16 * digit(*high)? + digit(*low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_digests_are_those_of_the_standard() {
        // FIPS 180-4, appendix B.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), abc);
        let mut parts = Hashed::default();
        parts.take(b"a");
        parts.take(b"bc");
        assert_eq!(parts.hex(), abc);
        assert_eq!(abc.len(), DIGITS);
    }

    proptest! {
        #[test]
        fn bytes_come_back_from_their_digits(bytes: [u8; 32]) {
            prop_assert_eq!(from_hex::<32>(&to_hex(&bytes)), Some(bytes));
            prop_assert_eq!(from_hex::<31>(&to_hex(&bytes)), None);
        }

        #[test]
        fn other_text_is_no_bytes(text in "[g-zA-F \u{e4}]{64}") {
            prop_assert_eq!(from_hex::<32>(&text), None);
        }
    }
}
