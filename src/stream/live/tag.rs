//! What is known about one tag of a live source: its last value, and how often it usually sends.

use std::time::Duration;

use super::assembler::SILENT;

/// So many distances in succession that are longer than the usual one make the usual one longer.
const PATIENCE: u32 = 3;

#[derive(Debug, Clone)]
pub(super) struct Tag {
    /// The row of the last value, and the value; NaN where it was bad.
    last: Option<(i64, f64)>,
    pub(super) heard: Option<Duration>,
    /// Rows from one value to the next, as far as is known.
    every: i64,
    /// The shortest of the longer distances since the usual one was seen last, and their number.
    longer: (i64, u32),
    /// Rows in succession that waited for it in vain.
    in_vain: u32,
}

impl Default for Tag {
    fn default() -> Self {
        Self { last: None, heard: None, every: 1, longer: (i64::MAX, 0), in_vain: 0 }
    }
}

impl Tag {
    pub(super) fn is_silent(&self) -> bool {
        self.in_vain >= SILENT
    }

    /// Whether a value for the row is to be expected.
    pub(super) fn is_awaited(&self, slot: i64) -> bool {
        !self.is_silent() && self.last.is_none_or(|(last, _)| slot - last >= self.every)
    }

    pub(super) fn take(&mut self, slot: i64, value: f64, arrived: Duration) {
        self.heard = Some(arrived);
        self.in_vain = 0;
        if let Some((last, _)) = self.last.filter(|(last, _)| *last < slot) {
            self.learn(slot - last);
        }
        if self.last.is_none_or(|(last, _)| last <= slot) {
            self.last = Some((slot, value));
        }
    }

    fn learn(&mut self, distance: i64) {
        if distance <= self.every {
            self.every = distance;
            self.longer = (i64::MAX, 0);
            return;
        }
        self.longer = (self.longer.0.min(distance), self.longer.1 + 1);
        if self.longer.1 >= PATIENCE {
            self.every = self.longer.0;
            self.longer = (i64::MAX, 0);
        }
    }

    /// A value came too late only because the row did not wait for it: the next row does.
    pub(super) fn is_back(&mut self) {
        self.in_vain = 0;
    }

    /// The row was handed out without it.
    pub(super) fn stayed_away(&mut self, slot: i64) {
        if self.is_awaited(slot) {
            self.in_vain += 1;
        }
    }

    /// The value that stands for the one that did not come, if it is not older than `most` rows.
    pub(super) fn held(&self, slot: i64, most: i64) -> Option<f64> {
        let (last, value) = self.last?;
        (value.is_finite() && (1..=most).contains(&(slot - last))).then_some(value)
    }

    /// Rows have other numbers from now on.
    pub(super) fn forget_slots(&mut self) {
        self.last = None;
    }
}
