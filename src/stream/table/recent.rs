//! The rows that were read last, to recognise rows that a historian has written twice.

use std::collections::{HashSet, VecDeque};

use jiff::Timestamp;

use super::held::Held;
use super::timeline::{ENOUGH, Placed};
use crate::stream::NoteKind;

/// Rows that are remembered: more than an hour of one row a second.
const ROWS: usize = 4096;

/// What a row measured, by its stamp and a hash of its values.
type Content = (Timestamp, u64);

/// Stamps and values of the last rows of a file.
#[derive(Default)]
pub(super) struct Recent {
    known: HashSet<Content>,
    /// The same, oldest first.
    order: VecDeque<Content>,
}

impl Recent {
    /// Remembers a row that becomes a frame.
    pub(crate) fn add(&mut self, row: &Held) {
        let Some(content) = content(row) else { return };
        if self.known.insert(content) {
            self.order.push_back(content);
        }
        if self.order.len() > ROWS
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// Forgets everything: another file begins.
    pub(crate) fn clear(&mut self) {
        self.known.clear();
        self.order.clear();
    }

    /// What becomes of the first of `held`, which was `placed` by its stamp. A stretch whose stamps
    /// and values were all read before was written twice. It is left out, and the clock has not moved.
    pub(crate) fn judge(&self, placed: Placed, held: &VecDeque<Held>) -> Placed {
        let is_repeated = match placed {
            Placed::Frame(place) => place.moved_from.is_some_and(|from| self.repeats(from, held)),
            Placed::LeftOut(NoteKind::BackwardStamp) => {
                held.front().and_then(content).is_some_and(|row| self.known.contains(&row))
            }
            Placed::LeftOut(_) => false,
        };
        if is_repeated { Placed::LeftOut(NoteKind::DuplicateStamp) } else { placed }
    }

    /// Whether the first rows of `held`, as far as they are not later than `last`, were read before.
    /// Values that never change would repeat themselves whatever the clock does: they show nothing.
    fn repeats(&self, last: Timestamp, held: &VecDeque<Held>) -> bool {
        let back = held.iter().take(ENOUGH).map(content);
        let back: Vec<Option<Content>> =
            back.take_while(|row| row.is_some_and(|(stamp, _)| stamp <= last)).collect();
        let is_known = |row: &Option<Content>| row.is_some_and(|row| self.known.contains(&row));
        let first = back.first().copied().flatten().map(|(_, values)| values);
        let changes = back.iter().flatten().any(|(_, values)| Some(*values) != first);
        changes && back.iter().all(is_known)
    }
}

fn content(row: &Held) -> Option<Content> {
    row.stamp.as_ref().ok().map(|stamp| (*stamp, row.hash()))
}
