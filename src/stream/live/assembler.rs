//! Rows out of single values: from what arrives, in whatever order, to one row per point of a grid.
//!
//! It does no input or output and reads no clock: the time of arrival is an argument. The same
//! arrivals give the same rows.
//!
//! Guarantees:
//! - rows leave in strictly growing time, each point of the grid at most once;
//! - a row waits for a value for [`Rules::lateness`] at most, counted from its first value;
//! - a tag that stays away delays no row: it is waited for only when its usual distance has passed,
//!   and not at all after [`SILENT`] rows that waited in vain, until it sends in time again;
//! - a value of bad quality is missing, and is never replaced by an older one;
//! - every value is in a row, or is counted as late, doubled, bad or wrongly stamped;
//! - one wrong stamp costs its own value; a clock that has moved is followed.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;

use super::elsewhere::Elsewhere;
use super::known::Known;
use super::tag::Tag;
use crate::stream::Continuity;

/// Rows in succession that wait for a tag in vain before no row waits for it any more.
pub(crate) const SILENT: u32 = 3;
/// A stamp that is further away than this from the newest row is no late or early value: either it
/// is wrong, or the clock of the source has moved.
const FAR: Duration = Duration::from_mins(1);
/// Rows that are open at most. A source that runs ahead of itself by more is cut off.
const MOST_OPEN: usize = 4096;

/// How rows are made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rules {
    /// Distance of two rows.
    pub(crate) grid: Duration,
    /// How long a row waits for values, from the arrival of its first.
    pub(crate) lateness: Duration,
    /// How old a value may be, in the time of the data, to stand for one that did not come.
    pub(crate) hold: Duration,
    /// Whether stamps belong to the nearest point of the grid, or to the one before them.
    pub(crate) stamps: Stamps,
}

/// To which point of the grid a stamp belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamps {
    /// Whole rows come with one stamp, which is a little early or late: the nearest point. The grid
    /// goes through the first stamp.
    OfRows,
    /// Values come with stamps of their own: the last point before them.
    OfValues,
}

/// How far a value can be trusted, as its source says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Quality {
    #[default]
    Good,
    /// It is used, and counted.
    Uncertain,
    /// It counts as missing.
    Bad,
}

/// What became of what arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// Values that arrived with a number in them, used or not.
    pub(crate) values: u64,
    /// Rows that were handed out.
    pub(crate) rows: u64,
    /// Rows of them that lack a value that was waited for.
    pub(crate) incomplete: u64,
    /// Values (or whole rows) that came after their row was handed out.
    pub(crate) late: u64,
    /// Values (or whole rows) that came before with the same stamp.
    pub(crate) doubled: u64,
    pub(crate) bad: u64,
    pub(crate) uncertain: u64,
    /// Values (or whole rows) with a stamp that the others contradict.
    pub(crate) wrong_stamp: u64,
    /// Values that stand for one that did not come.
    pub(crate) held: u64,
    /// How often the clock of the source moved.
    pub(crate) clock_moved: u64,
}

/// A row that is complete, or has waited long enough.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Assembled {
    pub(crate) time: Timestamp,
    pub(crate) continuity: Continuity,
    /// One value a tag; NaN is "missing".
    pub(crate) values: Vec<f64>,
    /// The clock of the source moved before this row: the stamp that was expected, and the one that
    /// came.
    pub(crate) moved: Option<(Timestamp, Timestamp)>,
    /// When its first value arrived.
    pub(crate) arrived: Duration,
}

/// A row to which values may still come.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenRow {
    pub(super) slot: i64,
    /// Its number by the stamps of the source, wherever a clock that went back has moved it.
    pub(super) stamped: i64,
    /// Arrival of its first value.
    pub(super) since: Duration,
    pub(super) values: Vec<f64>,
    /// Tags that have answered, if only by saying that they have nothing.
    pub(super) answered: Vec<bool>,
    /// It came in one piece: nothing more is expected.
    pub(super) whole: bool,
}

impl OpenRow {
    fn begin(&mut self, slot: i64, stamped: i64, since: Duration, width: usize) {
        (self.slot, self.stamped, self.since, self.whole) = (slot, stamped, since, false);
        self.values.clear();
        self.values.resize(width, f64::NAN);
        self.answered.clear();
        self.answered.resize(width, false);
    }
}

/// What arrives: a value of one tag, or a row of all.
#[derive(Debug, Clone, Copy)]
pub(super) enum Piece<'a> {
    Value(usize, f64, Quality),
    Row(&'a [f64]),
}

/// The clock of the source moved.
#[derive(Debug, Clone, Copy)]
struct Moved {
    /// The first row of the clock that counts now.
    slot: i64,
    /// The stamp that was expected, and the one that came.
    from: Timestamp,
    to: Timestamp,
    is_back: bool,
}

/// Rows on their way.
#[derive(Debug)]
pub(crate) struct Assembler {
    rules: Rules,
    /// Nanoseconds of the grid, and of the point of the grid that has number 0.
    grid: i64,
    phase: Option<i64>,
    /// Points of the grid that stamps are moved by, since the clock went back.
    shift: i64,
    tags: Vec<Tag>,
    /// In growing order.
    open: VecDeque<OpenRow>,
    spare: Vec<OpenRow>,
    /// The row handed out last.
    last: Option<i64>,
    /// Arrival of its first value.
    last_since: Duration,
    known: Known,
    elsewhere: Elsewhere,
    moved: Option<Moved>,
    counts: Counts,
}

impl Assembler {
    pub(crate) fn new(rules: Rules, tags: usize) -> Self {
        let grid = i64::try_from(rules.grid.as_nanos()).unwrap_or(i64::MAX).max(1);
        Self {
            rules,
            grid,
            phase: (rules.stamps == Stamps::OfValues).then_some(0),
            shift: 0,
            tags: vec![Tag::default(); tags],
            open: VecDeque::new(),
            spare: Vec::new(),
            last: None,
            last_since: Duration::ZERO,
            known: Known::new(tags),
            elsewhere: Elsewhere::default(),
            moved: None,
            counts: Counts::default(),
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// When a value of the tag arrived last.
    pub(crate) fn last_arrival(&self, tag: usize) -> Option<Duration> {
        self.tags.get(tag).and_then(|tag| tag.heard)
    }

    /// Whether no row waits for the tag any more.
    pub(crate) fn is_silent(&self, tag: usize) -> bool {
        self.tags.get(tag).is_none_or(Tag::is_silent)
    }

    /// A value of one tag, with the stamp of its source.
    pub(crate) fn put(
        &mut self,
        tag: usize,
        time: Timestamp,
        value: f64,
        quality: Quality,
        arrived: Duration,
    ) {
        if tag < self.tags.len() {
            self.arrive(time, Piece::Value(tag, value, quality), arrived);
        }
    }

    /// All values of an instant at once; NaN is "missing".
    pub(crate) fn put_row(&mut self, time: Timestamp, values: &[f64], arrived: Duration) {
        if values.len() == self.tags.len() {
            self.arrive(time, Piece::Row(values), arrived);
        }
    }

    /// Something that its transport says it has sent before. Where its row was handed out it is
    /// counted as doubled, and is not to be put.
    pub(crate) fn came_again(&mut self, time: Timestamp) -> bool {
        let slot = self.slot(time);
        let is_doubled = slot.zip(self.last).is_some_and(|(slot, last)| slot <= last);
        self.counts.doubled += u64::from(is_doubled);
        is_doubled
    }

    /// The next row that is due at `now`.
    pub(crate) fn take(&mut self, now: Duration, out: &mut Assembled) -> bool {
        let Some(front) = self.open.front() else { return false };
        let due = front.whole
            || now >= front.since.saturating_add(self.rules.lateness)
            || self.open.len() > MOST_OPEN
            || self.is_complete(front);
        due && self.hand_out(out)
    }

    /// The next row, whether or not it still waits: nothing more will come.
    pub(crate) fn flush(&mut self, out: &mut Assembled) -> bool {
        self.give_up_elsewhere();
        self.hand_out(out)
    }

    /// When the next row is due at the latest.
    pub(crate) fn due(&self) -> Option<Duration> {
        self.open.front().map(|row| row.since.saturating_add(self.rules.lateness))
    }

    fn is_complete(&self, row: &OpenRow) -> bool {
        let mut tags = self.tags.iter().zip(&row.answered);
        tags.all(|(tag, answered)| *answered || !tag.is_awaited(row.slot))
    }

    /// The point of the grid that a stamp belongs to; none beyond the end of the calendar.
    fn slot(&mut self, time: Timestamp) -> Option<i64> {
        let time = i64::try_from(time.as_nanosecond()).ok()?;
        let phase = *self.phase.get_or_insert(time.rem_euclid(self.grid));
        let since = time.checked_sub(phase)?;
        let since = match self.rules.stamps {
            Stamps::OfRows => since.checked_add(self.grid / 2)?,
            Stamps::OfValues => since,
        };
        since.div_euclid(self.grid).checked_add(self.shift)
    }

    fn time(&self, slot: i64) -> Timestamp {
        let nanoseconds = i128::from(slot) * i128::from(self.grid);
        let phase = i128::from(self.phase.unwrap_or(0));
        Timestamp::from_nanosecond(nanoseconds + phase).unwrap_or(Timestamp::MAX)
    }

    /// The newest row there is.
    fn newest(&self) -> Option<i64> {
        self.open.back().map(|row| row.slot).max(self.last)
    }

    fn far(&self) -> i64 {
        (FAR.as_nanos() / self.rules.grid.as_nanos().max(1)).max(2) as i64
    }

    fn arrive(&mut self, time: Timestamp, piece: Piece<'_>, arrived: Duration) {
        self.counts.values += match piece {
            Piece::Value(_, value, _) => u64::from(value.is_finite()),
            Piece::Row(values) => values.iter().filter(|value| value.is_finite()).count() as u64,
        };
        let Some(slot) = self.slot(time) else {
            self.counts.wrong_stamp += 1;
            return;
        };
        let Some(newest) = self.newest() else {
            self.fill(slot, piece, arrived);
            return;
        };
        let is_far = (slot - newest).abs() > self.far();
        let is_past = self.last.is_some_and(|last| slot <= last);
        if !is_far && !is_past {
            // The clock is where it was: what was stamped otherwise was wrong, or late.
            self.give_up_elsewhere();
            self.fill(slot, piece, arrived);
            return;
        }
        let stamped = slot - self.shift;
        if self.is_known(stamped, piece) {
            self.counts.doubled += 1;
            return;
        }
        if let Piece::Value(tag, ..) = piece
            && self.last == Some(slot)
            && arrived <= self.last_since.saturating_add(self.rules.lateness)
        {
            self.tags[tag].is_back();
        }
        let width = self.tags.len();
        self.elsewhere.add([slot, stamped], is_far, piece, width, arrived, &mut self.counts);
        if self.elsewhere.is_believed() {
            self.follow_the_clock(newest);
        }
    }

    /// Whether the same came before with the same stamp.
    fn is_known(&self, stamped: i64, piece: Piece<'_>) -> bool {
        match piece {
            Piece::Value(tag, value, quality) => {
                let value = believed(value, quality, &mut Counts::default());
                self.known.has(stamped, tag, value)
            }
            Piece::Row(values) => self.known.has_row(stamped, values),
        }
    }

    fn give_up_elsewhere(&mut self) {
        let (late, wrong) = self.elsewhere.give_up();
        self.counts.late += late;
        self.counts.wrong_stamp += wrong;
    }

    /// The clock has moved: rows of the clock before wait for nothing more, and those of the present
    /// one follow them.
    fn follow_the_clock(&mut self, newest: i64) {
        let Some(first) = self.elsewhere.first() else { return };
        let (from, to) = (self.time(newest + 1 - self.shift), self.time(first - self.shift));
        let is_back = first <= newest;
        if is_back {
            // Time must grow: what follows is placed behind what was there.
            let back = newest + 1 - first;
            self.shift += back;
            self.elsewhere.move_by(back);
        } else if self.shift > 0 && first - self.shift > newest {
            // The clock has passed the place where it went back.
            self.elsewhere.move_by(-self.shift);
            self.shift = 0;
        }
        self.counts.clock_moved += 1;
        let slot = self.elsewhere.first().unwrap_or(first);
        self.moved = Some(Moved { slot, from, to, is_back });
        for row in &mut self.open {
            row.whole = true;
        }
        for tag in &mut self.tags {
            tag.forget_slots();
        }
        while let Some(row) = self.elsewhere.take() {
            for (tag, (value, answered)) in row.values.iter().zip(&row.answered).enumerate() {
                if *answered && value.is_finite() {
                    self.tags[tag].take(row.slot, *value, row.since);
                } else if *answered && !row.whole {
                    self.counts.bad += 1;
                }
            }
            self.open.push_back(row);
        }
    }

    /// Puts a piece into the row of `slot`.
    fn fill(&mut self, slot: i64, piece: Piece<'_>, arrived: Duration) {
        let at = self.open.partition_point(|row| row.slot < slot);
        if self.open.get(at).is_none_or(|row| row.slot != slot) {
            let mut row = self.spare.pop().unwrap_or_default();
            row.begin(slot, slot - self.shift, arrived, self.tags.len());
            self.open.insert(at, row);
        }
        let row = &mut self.open[at];
        match piece {
            Piece::Value(tag, value, quality) => {
                if row.answered[tag] {
                    self.counts.doubled += 1;
                    return;
                }
                let value = believed(value, quality, &mut self.counts);
                (row.values[tag], row.answered[tag]) = (value, true);
                self.tags[tag].take(slot, value, arrived);
            }
            Piece::Row(values) => {
                if row.whole {
                    self.counts.doubled += 1;
                    return;
                }
                for (tag, value) in values.iter().enumerate().filter(|(_, v)| v.is_finite()) {
                    row.values[tag] = *value;
                    self.tags[tag].take(slot, *value, arrived);
                }
                row.answered.fill(true);
                row.whole = true;
            }
        }
    }

    fn hand_out(&mut self, out: &mut Assembled) -> bool {
        let Some(mut row) = self.open.pop_front() else { return false };
        self.known.remember(row.stamped, &row.values, &row.answered);
        let mut lacks = false;
        for (tag, (value, answered)) in
            self.tags.iter_mut().zip(row.values.iter_mut().zip(&row.answered))
        {
            if *answered {
                continue;
            }
            lacks |= tag.is_awaited(row.slot);
            tag.stayed_away(row.slot);
            let hold = (self.rules.hold.as_nanos() / self.rules.grid.as_nanos().max(1)) as i64;
            if let Some(held) = tag.held(row.slot, hold) {
                *value = held;
                self.counts.held += 1;
            }
        }
        out.time = self.time(row.slot);
        out.arrived = row.since;
        let missing = self.last.map_or(0, |last| row.slot - last - 1);
        let moved = self.moved.take_if(|moved| row.slot >= moved.slot);
        let is_back = moved.is_some_and(|moved| moved.is_back);
        out.moved = moved.map(|moved| (moved.from, moved.to));
        out.continuity = match missing {
            _ if is_back || self.last.is_none() => Continuity::NewRun,
            0 => Continuity::Next,
            n => Continuity::Gap { seconds: n as f64 * self.rules.grid.as_secs_f64() },
        };
        self.last = Some(row.slot);
        self.last_since = row.since;
        std::mem::swap(&mut out.values, &mut row.values);
        self.spare.push(row);
        self.counts.rows += 1;
        self.counts.incomplete += u64::from(lacks);
        true
    }
}

/// A value as it counts: bad is missing.
pub(super) fn believed(value: f64, quality: Quality, counts: &mut Counts) -> f64 {
    match quality {
        Quality::Good => {}
        Quality::Uncertain => counts.uncertain += 1,
        Quality::Bad => counts.bad += 1,
    }
    if quality == Quality::Bad || !value.is_finite() { f64::NAN } else { value }
}

#[cfg(test)]
mod tests;
