//! Frames as bytes, for a file on the machine that measured them.

use jiff::Timestamp;

use super::Frame;

/// A frame as it is stored. It holds measurements: it must not leave the machine of the site.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StoredFrame(Vec<u8>);

impl StoredFrame {
    /// For the file that it is stored in.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// What was read from that file.
    pub(crate) fn of_file(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

/// Without the values, like [`Frame`].
impl std::fmt::Debug for StoredFrame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StoredFrame({} bytes)", self.0.len())
    }
}

impl Frame {
    /// Its time and its values.
    pub(crate) fn store(&self) -> StoredFrame {
        let time = i64::try_from(self.time.as_nanosecond()).unwrap_or(i64::MAX);
        let mut bytes = Vec::with_capacity(8 * (1 + self.values.len() + self.inputs.len()));
        bytes.extend_from_slice(&time.to_le_bytes());
        for value in self.values.iter().chain(&self.inputs) {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        StoredFrame(bytes)
    }

    /// Takes time and values of a stored frame; false where that is one of another layout.
    pub(crate) fn restore(&mut self, stored: &StoredFrame) -> bool {
        let mut words = stored.0.as_chunks::<8>().0.iter();
        let width = self.values.len() + self.inputs.len();
        if stored.0.len() != 8 * (1 + width) {
            return false;
        }
        let Some(Ok(time)) = words
            .next()
            .map(|word| Timestamp::from_nanosecond(i128::from(i64::from_le_bytes(*word))))
        else {
            return false;
        };
        self.time = time;
        for (value, word) in self.values.iter_mut().chain(&mut self.inputs).zip(words) {
            *value = f64::from_le_bytes(*word);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_frame_comes_back_as_it_was_and_one_of_another_layout_is_refused() {
        let mut frame = Frame::with_values(vec![1.5, f64::NAN, -3e300]);
        frame.time = Timestamp::from_nanosecond(1_660_000_000_500_000_000).expect("a time");
        let stored = frame.store();
        let mut back = Frame::with_values(vec![0.0; 3]);
        assert!(back.restore(&StoredFrame::of_file(stored.bytes().to_vec())));
        assert_eq!(back.store(), stored, "NaN and all");
        assert!(!Frame::with_values(vec![0.0; 2]).restore(&stored));
        assert!(!back.restore(&StoredFrame::of_file(vec![0; 9])));
    }
}
