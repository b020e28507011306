//! Rows of the data that were not used, counted by reason.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::NoteKind;

/// How many rows of the data were not used, in all and for each reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct UnusedRows {
    /// In all.
    pub(crate) rows: u64,
    /// Rows with the time stamp of the row before.
    pub(crate) duplicate_stamp: u64,
    /// Rows with a time stamp older than the row before.
    pub(crate) backward_stamp: u64,
    /// Rows with a time stamp that the rows around them contradict.
    pub(crate) wrong_stamp: u64,
    /// Rows in the middle of which their file ends.
    pub(crate) truncated_row: u64,
    /// Rows of a long table with a second value of a tag at one instant.
    pub(crate) duplicate_tag: u64,
    /// Wild values of nominal data. Their rows are used without them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) wild_values: u64,
    /// How often the clock of nominal data moved. Its rows are used.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) clock_moves: u64,
    /// The first of these moves: the last stamp before, and the first one after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) first_clock_move: Option<[Timestamp; 2]>,
    /// Rows of nominal data that are labelled anomalous. They are used: what they show counts as normal.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) labelled_anomalous: u64,
}

// The form that serde asks for.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl UnusedRows {
    /// Whether every row was used.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Counts rows that were left out for one reason.
    pub(crate) fn add(&mut self, why: NoteKind, rows: u64) {
        let of_kind = match why {
            NoteKind::DuplicateStamp | NoteKind::Doubled => &mut self.duplicate_stamp,
            // A live row that is older than the row before it came too late.
            NoteKind::BackwardStamp | NoteKind::Late => &mut self.backward_stamp,
            NoteKind::WrongStamp => &mut self.wrong_stamp,
            NoteKind::TruncatedRow | NoteKind::Unreadable => &mut self.truncated_row,
            NoteKind::DuplicateTag => &mut self.duplicate_tag,
            NoteKind::ClockMoved { from, to } => {
                self.clock_moves += 1;
                self.first_clock_move.get_or_insert([from, to]);
                return;
            }
        };
        *of_kind += rows;
        self.rows += rows;
    }

    /// What of the `data` was not used, in words; nothing where all of it was.
    pub(crate) fn summary(&self, data: &str) -> Option<String> {
        let rows = match self.rows {
            0 => None,
            1 => Some(format!("1 row of the {data} not used: {}", self.words())),
            rows => Some(format!("{rows} rows of the {data} not used: {}", self.words())),
        };
        let values = match self.wild_values {
            0 => None,
            1 => Some(format!("1 wild value of the {data} taken out")),
            values => Some(format!("{values} wild values of the {data} taken out")),
        };
        let moves = match self.clock_moves {
            0 => None,
            1 => Some(format!("the clock of the {data} moved{}", self.first_move(""))),
            moves => {
                let first = self.first_move(", first");
                Some(format!("the clock of the {data} moved {moves} times{first}"))
            }
        };
        let moves = moves.map(|moved| format!("{moved}; its rows are used"));
        let labelled = match self.labelled_anomalous {
            0 => None,
            rows => Some(format!(
                "{rows} rows of the {data} are labelled anomalous, and what they show counts as normal"
            )),
        };
        [rows, values, moves, labelled]
            .into_iter()
            .flatten()
            .reduce(|one, two| format!("{one}; {two}"))
    }

    /// From where to where the clock moved first, after `word`.
    fn first_move(&self, word: &str) -> String {
        // What was counted by an older program has no times.
        let Some([from, to]) = self.first_clock_move else { return String::new() };
        let by = to.duration_since(from).as_secs_f64();
        format!("{word} from {from} to {to} ({by:+} s)")
    }

    /// Every reason that there was, with its count, in words.
    fn words(&self) -> String {
        let each = self.reasons().map(|(rows, reason)| format!("{rows} × {reason}"));
        each.collect::<Vec<_>>().join(", ")
    }

    /// Every reason that there was, with its count.
    fn reasons(&self) -> impl Iterator<Item = (u64, &'static str)> {
        [
            (self.duplicate_stamp, NoteKind::DuplicateStamp.reason()),
            (self.backward_stamp, NoteKind::BackwardStamp.reason()),
            (self.wrong_stamp, NoteKind::WrongStamp.reason()),
            (self.truncated_row, NoteKind::TruncatedRow.reason()),
            (self.duplicate_tag, NoteKind::DuplicateTag.reason()),
        ]
        .into_iter()
        .filter(|(rows, _)| *rows > 0)
    }
}
