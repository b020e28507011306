//! HMAC-SHA256 (RFC 2104), for the signature of a web hook.

use sha2::{Digest as _, Sha256};

use crate::base::digest::to_hex;

const BLOCK: usize = 64;

/// The signature of `message`, in hexadecimal.
pub(super) fn sign(secret: &[u8], message: &[u8]) -> String {
    let mut key = [0_u8; BLOCK];
    if secret.len() > BLOCK {
        key[..32].copy_from_slice(&Sha256::digest(secret));
    } else {
        key[..secret.len()].copy_from_slice(secret);
    }
    let hash = |pad: u8, message: &[u8]| {
        let mut hasher = Sha256::new();
        hasher.update(key.map(|byte| byte ^ pad));
        hasher.update(message);
        hasher.finalize()
    };
    to_hex(&hash(0x5c, &hash(0x36, message)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_rfc_4231() {
        let first = sign(&[0x0b; 20], b"Hi There");
        assert_eq!(first, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
        let text = b"Test Using Larger Than Block-Size Key - Hash Key First";
        let long = sign(&[0xaa; 131], text);
        assert_eq!(long, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    }
}
