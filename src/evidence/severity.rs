//! How far a step of the highest level lies beyond the cut of that level, in octaves.
//!
//! When an accident saturates all clients in one step, their symbols are all the same. A coarse severity
//! still tells them apart: the octave of the squared distance, a few bits.

/// Number of octaves; the last one has no upper end.
pub(crate) const OCTAVES: u8 = 16;

/// Steps without a highest symbol after which the next one begins a new burst.
pub(crate) const CALM: u32 = 3;

/// The octave of a squared distance beyond a cut: 0 up to twice the cut, 1 up to four times, and so on.
pub(crate) fn octave(distance: f32, cut: f32) -> u8 {
    let beyond = (distance / cut.max(f32::MIN_POSITIVE)).log2().floor();
    // NaN becomes 0, and what is above the last octave the last.
    (beyond.max(0.0) as u8).min(OCTAVES - 1)
}

/// Follows the bursts of highest symbols of one client. Client and server follow the same released
/// symbols, so both know which of them have an octave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Burst {
    /// A burst has begun and is not over.
    goes_on: bool,
    /// Steps since the last one.
    calm: u32,
}

impl Burst {
    /// Takes the next symbol and says whether a burst begins with it: such a symbol is told with its
    /// octave.
    pub(crate) fn step(&mut self, is_highest: bool) -> bool {
        if !is_highest {
            self.calm = self.calm.saturating_add(1);
            if self.calm >= CALM {
                self.goes_on = false;
            }
            return false;
        }
        self.calm = 0;
        !std::mem::replace(&mut self.goes_on, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_octave_counts_doublings_beyond_the_cut() {
        assert_eq!([1.0, 9.9, 10.0, 19.9].map(|d| octave(d, 10.0)), [0, 0, 0, 0]);
        assert_eq!([20.0, 39.0, 40.0, 5000.0].map(|d| octave(d, 10.0)), [1, 1, 2, 8]);
        assert_eq!([f32::INFINITY, 1e30].map(|d| octave(d, 10.0)), [15, 15]);
        assert_eq!(octave(f32::NAN, 10.0), 0);
        assert_eq!(octave(1.0, 0.0), 15);
    }

    #[test]
    fn a_burst_goes_on_until_three_steps_are_calm() {
        let mut burst = Burst::default();
        let began = |(t, c): (usize, char)| burst.step(c == '4').then_some(t);
        let began: Vec<usize> = "0440444004400".chars().enumerate().filter_map(began).collect();
        assert_eq!(began, [1]);
        assert_eq!("0000044".chars().filter(|c| burst.step(*c == '4')).count(), 1);
    }
}
