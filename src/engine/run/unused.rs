//! Rows that were not used: one note a stretch, every row counted.

use std::collections::VecDeque;

use crate::stream::{Note, NoteKind, UnusedRows};

/// A stretch is over after so many steps without another row of its kind.
const QUIET: u64 = 60;

/// Why rows were not used, and how many.
#[derive(Debug, Default)]
pub(super) struct Unused {
    counts: UnusedRows,
    stretches: VecDeque<Stretch>,
}

/// Notes of one kind about one file, shortly after each other.
#[derive(Debug)]
struct Stretch {
    first: Note,
    last_line: u64,
    /// How often it was noted, and how many rows that were.
    notes: u64,
    rows: u64,
    /// The step of the last note.
    step: u64,
}

impl Stretch {
    fn is_of(&self, note: &Note) -> bool {
        self.first.place == note.place && self.first.what.reason() == note.what.reason()
    }

    /// The message about all notes of a stretch but the first, which was reported when it began.
    fn rest(&self) -> Option<(String, String)> {
        let Note { place, line, what, .. } = &self.first;
        let (reason, last) = (what.reason(), self.last_line);
        let said = || match what {
            NoteKind::ClockMoved { .. } => {
                format!("{reason} {} times ({place} lines {line} to {last})", self.notes)
            }
            NoteKind::DuplicateStamp
            | NoteKind::BackwardStamp
            | NoteKind::WrongStamp
            | NoteKind::TruncatedRow
            | NoteKind::Late
            | NoteKind::Doubled
            | NoteKind::Unreadable
            | NoteKind::DuplicateTag => format!(
                "{reason}, {} rows left out in all ({place} lines {line} to {last})",
                self.rows
            ),
        };
        (self.notes > 1).then(|| (place.clone(), said()))
    }
}

impl Unused {
    /// Takes the notes of a step and returns the messages, each with its file: the first of every
    /// stretch at once, and the whole of a stretch once it is over.
    pub(crate) fn take(&mut self, step: u64, notes: &[Note]) -> Vec<(String, String)> {
        let mut said = Vec::new();
        while let Some(over) = self.stretches.iter().position(|s| s.step + QUIET < step) {
            said.extend(self.stretches.remove(over).and_then(|stretch| stretch.rest()));
        }
        for note in notes {
            // Rows after a clock that moved are used: the message about it is enough.
            if !matches!(note.what, NoteKind::ClockMoved { .. }) {
                self.counts.add(note.what, note.rows);
            }
            if let Some(known) = self.stretches.iter_mut().find(|stretch| stretch.is_of(note)) {
                known.last_line = note.line;
                known.notes += 1;
                known.rows += note.rows;
                known.step = step;
            } else {
                said.push((note.place.clone(), note.to_string()));
                self.stretches.push_back(Stretch {
                    first: note.clone(),
                    last_line: note.line,
                    notes: 1,
                    rows: note.rows,
                    step,
                });
            }
        }
        said
    }

    /// The run is over: the messages that are left.
    pub(crate) fn end(&mut self) -> Vec<(String, String)> {
        self.stretches.drain(..).filter_map(|stretch| stretch.rest()).collect()
    }

    pub(crate) fn counts(&self) -> UnusedRows {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(line: u64, rows: u64) -> Note {
        Note { place: "a.csv".into(), line, rows, what: NoteKind::DuplicateStamp }
    }

    #[test]
    fn a_stretch_of_rows_is_said_when_it_begins_and_when_it_is_over_and_counted_whole() {
        let mut unused = Unused::default();
        let mut said = Vec::new();
        for step in 1..=500 {
            let notes = if step <= 100 { vec![note(2 * step, 1)] } else { vec![] };
            said.extend(unused.take(step, &notes).into_iter().map(|(_, said)| said));
        }
        assert_eq!(
            said,
            [
                "duplicate time stamp, row left out (a.csv line 2)",
                "duplicate time stamp, 100 rows left out in all (a.csv lines 2 to 200)"
            ]
        );
        assert_eq!(unused.take(501, &[note(2000, 7)]).len(), 1);
        assert!(unused.end().is_empty(), "all seven were said at once");
        assert_eq!((unused.counts().rows, unused.counts().duplicate_stamp), (107, 107));
    }
}
