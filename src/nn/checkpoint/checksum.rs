//! The checksum of a checkpoint: SHA-256 over all of its bytes, its own digits taken as zeros.
//!
//! It stands inside the header, because other programs must still be able to read the file as
//! safetensors, and those allow nothing after the tensors.

use std::ops::Range;

use crate::base::digest::{DIGITS, Hashed};

/// What stands in its place while it is computed.
pub(crate) const PLACE: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// How the file begins after the eight bytes of its header's length: the metadata stand before the
/// tensors, and the checksum before all else in them. A JSON text within JSON has escaped quotes.
const BEGINS: &[u8] = br#"{"__metadata__":{"headwater":"{\"checksum\":\""#;

/// Bytes of the header's length.
const LENGTH: usize = 8;

/// Whether a file's bytes are those that were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checksum {
    Holds,
    Differs,
    /// The file has no checksum where it should be.
    Absent,
}

fn digits(bytes: &[u8]) -> Option<Range<usize>> {
    bytes.get(LENGTH..)?.strip_prefix(BEGINS)?;
    let begin = LENGTH + BEGINS.len();
    (bytes.len() >= begin + DIGITS).then_some(begin..begin + DIGITS)
}

fn over(bytes: &[u8], digits: Range<usize>) -> String {
    let mut hashed = Hashed::default();
    hashed.take(&bytes[..digits.start]);
    hashed.take(PLACE.as_bytes());
    hashed.take(&bytes[digits.end..]);
    hashed.hex()
}

pub(crate) fn check(bytes: &[u8]) -> Checksum {
    let Some(digits) = digits(bytes) else { return Checksum::Absent };
    if over(bytes, digits.clone()).as_bytes() == &bytes[digits] {
        Checksum::Holds
    } else {
        Checksum::Differs
    }
}

/// Enters the checksum into a file that has [`PLACE`] for it.
pub(crate) fn enter(bytes: &mut [u8]) -> Result<(), String> {
    let digits = digits(bytes).ok_or("the header does not begin with the checksum")?;
    let sum = over(bytes, digits.clone());
    bytes[digits].copy_from_slice(sum.as_bytes());
    Ok(())
}
