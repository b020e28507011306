//! How far a step of the highest level lies beyond the cut of that level.
//!
//! When an accident saturates all clients in one step, their symbols are all the same. A coarse severity
//! still tells them apart: the squared distance in half octaves beyond the highest cut, five bits.

/// Number of severities; the last one has no upper end.
pub(crate) const SEVERITIES: u8 = 32;

/// Severities of an octave: of a doubling of the squared distance.
pub(crate) const AN_OCTAVE: f64 = 2.0;

/// The severity of a squared distance: 0 up to √2 times the cut, 1 up to twice the cut, and so on.
pub(crate) fn severity(distance: f32, cut: f32) -> u8 {
    let octaves = f64::from(distance / cut.max(f32::MIN_POSITIVE)).log2();
    // NaN becomes 0, and what is above the last severity the last.
    ((AN_OCTAVE * octaves).floor().max(0.0) as u8).min(SEVERITIES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_severity_counts_half_octaves_beyond_the_cut() {
        assert_eq!([1.0, 9.9, 10.0, 14.0].map(|d| severity(d, 10.0)), [0, 0, 0, 0]);
        assert_eq!([15.0, 20.0, 29.0, 40.0, 5000.0].map(|d| severity(d, 10.0)), [1, 2, 3, 4, 17]);
        assert_eq!([f32::INFINITY, 1e30].map(|d| severity(d, 10.0)), [31, 31]);
        assert_eq!(severity(f32::NAN, 10.0), 0);
        assert_eq!(severity(1.0, 0.0), 31);
    }
}
