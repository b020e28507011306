//! The values of one channel, and above them levels of blocks that hold the extremes of eight values or
//! of eight blocks. The extremes of any range of rows are read in a number of steps that grows with the
//! logarithm of its length.

use std::ops::Range;

/// Values or blocks under one block of the next level.
const FANOUT: usize = 8;

/// The extremes of some values and how many of them there are; NaN counts as none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Extent {
    /// Smallest, `INFINITY` when none is known.
    pub low: f32,
    /// Largest, `NEG_INFINITY` when none is known.
    pub high: f32,
    /// How many are known.
    pub known: usize,
}

impl Extent {
    /// No value at all.
    pub(crate) const NONE: Extent =
        Extent { low: f32::INFINITY, high: f32::NEG_INFINITY, known: 0 };

    fn of(value: f32) -> Self {
        if value.is_finite() { Self { low: value, high: value, known: 1 } } else { Self::NONE }
    }

    fn with(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            known: self.known + other.known,
        }
    }
}

/// A level holds full blocks only, so nothing in it ever changes.
#[derive(Debug, Clone, Default)]
pub(super) struct Pyramid {
    values: Vec<f32>,
    levels: Vec<Vec<Extent>>,
}

impl Pyramid {
    /// Appends a value; infinite ones count as missing.
    pub(crate) fn push(&mut self, value: f32) {
        self.values.push(value);
        let mut full = self.values.len();
        let mut block = Extent::NONE;
        let mut level = 0;
        while full.is_multiple_of(FANOUT) {
            block = if level == 0 {
                self.values[full - FANOUT..]
                    .iter()
                    .map(|v| Extent::of(*v))
                    .fold(block, Extent::with)
            } else {
                self.levels[level - 1][full - FANOUT..]
                    .iter()
                    .copied()
                    .fold(Extent::NONE, Extent::with)
            };
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            self.levels[level].push(block);
            full /= FANOUT;
            level += 1;
        }
    }

    /// The value in `row`, NaN when it is missing there.
    pub(crate) fn value(&self, row: usize) -> Option<f32> {
        self.values.get(row).copied()
    }

    /// The extent of `rows`, as far as they exist.
    pub(crate) fn extent(&self, rows: Range<usize>) -> Extent {
        let (mut start, mut end) = (rows.start, rows.end.min(self.values.len()));
        let mut extent = Extent::NONE;
        let mut level = 0;
        // The ragged ends are read on this level, the aligned middle on the next.
        while start < end {
            while start < end && !start.is_multiple_of(FANOUT) {
                extent = extent.with(self.block(level, start));
                start += 1;
            }
            while start < end && !end.is_multiple_of(FANOUT) {
                end -= 1;
                extent = extent.with(self.block(level, end));
            }
            start /= FANOUT;
            end /= FANOUT;
            level += 1;
        }
        extent
    }

    fn block(&self, level: usize, at: usize) -> Extent {
        match level.checked_sub(1) {
            None => Extent::of(self.values[at]),
            Some(above) => self.levels[above][at],
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = f32> {
        prop_oneof![8 => -1e9..1e9_f32, 1 => Just(f32::NAN), 1 => Just(f32::INFINITY)]
    }

    proptest! {
        #[test]
        fn the_extent_of_any_range_is_that_of_its_values(
            values in prop::collection::vec(value(), 0..1500),
            ends in (0_usize..1600, 0_usize..1600),
        ) {
            let mut pyramid = Pyramid::default();
            for value in &values {
                pyramid.push(*value);
            }
            let rows = ends.0.min(ends.1)..ends.0.max(ends.1);
            let plain = values.iter().skip(rows.start).take(rows.len())
                .map(|v| Extent::of(*v)).fold(Extent::NONE, Extent::with);
            prop_assert_eq!(pyramid.extent(rows), plain);
        }
    }

    #[test]
    fn there_is_one_block_for_every_seven_values() {
        let mut pyramid = Pyramid::default();
        (0..100_000).for_each(|v| pyramid.push(v as f32));
        assert_eq!(pyramid.extent(1..99_999), Extent { low: 1.0, high: 99_998.0, known: 99_998 });
        let blocks: usize = pyramid.levels.iter().map(Vec::len).sum();
        assert_eq!(blocks, 12_500 + 1562 + 195 + 24 + 3);
    }
}
