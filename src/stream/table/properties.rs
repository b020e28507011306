//! What holds for every table, and for what is no table at all.

use jiff::Timestamp;
use proptest::prelude::*;

use super::testing::{Folder, client, drain, frames, gz, open, source};
use super::*;
use crate::session::{Delimiter, TimeFormat};

/// A table as a historian would hold it.
#[derive(Debug, Clone)]
struct Table {
    /// Whole seconds, strictly growing.
    stamps: Vec<i64>,
    /// One row per stamp; `None` is missing.
    cells: Vec<Vec<Option<f64>>>,
}

impl Table {
    fn tags(&self) -> Vec<String> {
        (0..self.cells[0].len()).map(|c| format!("c{c}")).collect()
    }
}

/// How it is written.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "habits that come in every combination")]
struct Hand {
    delimiter: char,
    end: &'static str,
    bom: bool,
    quotes: bool,
    blanks: bool,
    packed: bool,
    last_newline: bool,
    stamps: Stamps,
    missing: &'static str,
}

#[derive(Debug, Clone, Copy)]
enum Stamps {
    Seconds,
    Civil,
    Compact,
    Rfc3339,
}

fn table() -> impl Strategy<Value = Table> {
    (1usize..5, 1usize..30).prop_flat_map(|(width, rows)| {
        let steps = prop::collection::vec(1_i64..100, rows);
        let cell = prop::option::weighted(0.8, finite());
        let cells = prop::collection::vec(prop::collection::vec(cell, width), rows);
        (steps, cells).prop_map(|(steps, cells)| {
            let stamps = steps.iter().scan(1_600_000_000, |t, step| {
                *t += step;
                Some(*t)
            });
            Table { stamps: stamps.collect(), cells }
        })
    })
}

fn finite() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>()
            .prop_map(f64::from_bits)
            .prop_filter("a number that is kept", |v| v.abs() <= 1e300),
        (-1_000_000_i64..1_000_000).prop_map(|n| n as f64 / 1000.0),
    ]
}

fn hand() -> impl Strategy<Value = Hand> {
    (
        prop::sample::select(vec![',', ';', '\t']),
        any::<[bool; 5]>(),
        prop::sample::select(vec![
            Stamps::Seconds,
            Stamps::Civil,
            Stamps::Compact,
            Stamps::Rfc3339,
        ]),
        prop::sample::select(vec!["", "NaN", "Bad Input", "inf", "-inf"]),
        prop::sample::select(vec!["\n", "\r\n", "\r"]),
    )
        .prop_map(
            |(delimiter, [bom, quotes, blanks, packed, last_newline], stamps, missing, end)| Hand {
                delimiter,
                end,
                bom,
                quotes,
                blanks,
                packed,
                last_newline,
                stamps,
                missing,
            },
        )
}

impl Hand {
    fn write(&self, table: &Table, rows: std::ops::Range<usize>) -> Vec<u8> {
        let width = table.cells[0].len();
        let mut lines = vec![
            std::iter::once("t".to_owned())
                .chain((0..width).map(|c| format!("c{c}")))
                .map(|cell| self.cell(&cell))
                .collect::<Vec<_>>(),
        ];
        for row in rows {
            let cells = table.cells[row].iter().map(|cell| match cell {
                None => self.missing.to_owned(),
                Some(value) if self.delimiter == ';' => value.to_string().replace('.', ","),
                Some(value) => value.to_string(),
            });
            let stamp = std::iter::once(self.stamp(table.stamps[row]));
            lines.push(stamp.chain(cells).map(|cell| self.cell(&cell)).collect());
        }
        let end = self.end;
        let delimiter = self.delimiter.to_string();
        let lines: Vec<String> = lines.iter().map(|cells| cells.join(&delimiter)).collect();
        let mut text = lines.join(end);
        // Without a cell in the last row that last line would not be a row at all.
        if self.last_newline {
            text.push_str(end);
        }
        if self.bom {
            text.insert(0, '\u{feff}');
        }
        if self.packed { gz(text) } else { text.into_bytes() }
    }

    /// The same as one row per instant and tag. A missing cell has no row where `omit`, but an
    /// instant has one row at least.
    fn write_long(&self, table: &Table, omit: bool, backward: bool) -> Vec<u8> {
        let mut lines = vec![["t", "tag", "value"].map(|name| self.cell(name))];
        for (stamp, cells) in table.stamps.iter().zip(&table.cells) {
            let all_missing = cells.iter().all(Option::is_none);
            let mut rows = Vec::new();
            for (c, cell) in cells.iter().enumerate() {
                let value = match cell {
                    None if omit && !(all_missing && c == 0) => continue,
                    None => self.missing.to_owned(),
                    Some(value) if self.delimiter == ';' => value.to_string().replace('.', ","),
                    Some(value) => value.to_string(),
                };
                let row = [self.stamp(*stamp), format!("c{c}"), value];
                rows.push(row.map(|cell| self.cell(&cell)));
            }
            if backward {
                rows.reverse();
            }
            lines.append(&mut rows);
        }
        let delimiter = self.delimiter.to_string();
        let lines: Vec<String> = lines.iter().map(|cells| cells.join(&delimiter)).collect();
        let text = lines.join(self.end) + self.end;
        if self.packed { gz(text) } else { text.into_bytes() }
    }

    fn cell(&self, text: &str) -> String {
        match (self.quotes, self.blanks) {
            (true, _) => format!("\"{text}\""),
            (false, true) => format!(" {text} "),
            (false, false) => text.to_owned(),
        }
    }

    fn stamp(&self, second: i64) -> String {
        let time = Timestamp::from_second(second).expect("a time");
        match self.stamps {
            Stamps::Seconds => second.to_string(),
            Stamps::Civil => time.strftime("%Y-%m-%d %H:%M:%S").to_string(),
            Stamps::Compact => time.strftime("%Y%m%d %H:%M:%S").to_string(),
            Stamps::Rfc3339 => time.to_string(),
        }
    }

    fn source(&self) -> TableSource {
        let mut source = source();
        if !matches!(self.stamps, Stamps::Seconds) {
            source.time.format = TimeFormat::Auto;
        }
        source
    }
}

fn same(a: f64, b: Option<f64>) -> bool {
    b.map_or(a.is_nan(), |b| a.to_bits() == b.to_bits())
}

/// Reads whatever it is to its end.
fn survives(content: &[u8], source: &TableSource, labels: &Labels) -> Result<(), TestCaseError> {
    let folder = Folder::with("t.csv", content);
    if let Ok(mut stream) = open(source, &folder, &["t.csv"], labels) {
        let (frames, _) = drain(&mut stream);
        prop_assert!(frames.windows(2).all(|pair| pair[0].time < pair[1].time));
        let mut values = frames.iter().flat_map(|f| &f.values);
        prop_assert!(values.all(|v| v.is_nan() || v.is_finite()));
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_table_is_read_back_exactly_however_it_was_written(table in table(), hand in hand()) {
        let folder = Folder::with("t.csv", hand.write(&table, 0..table.stamps.len()));
        let stream = open(&hand.source(), &folder, &["t.csv"], &Labels::Source);
        let found = frames(&mut stream.map_err(|e| TestCaseError::fail(e.to_string()))?);
        prop_assert_eq!(found.len(), table.stamps.len());
        for (frame, (stamp, cells)) in found.iter().zip(table.stamps.iter().zip(&table.cells)) {
            prop_assert_eq!(frame.time.as_second(), *stamp);
            prop_assert!(frame.values.iter().zip(cells).all(|(a, b)| same(*a, *b)), "{frame:?}");
            prop_assert!(frame.notes.is_empty());
        }
    }

    #[test]
    fn a_long_table_gives_the_frames_of_the_wide_table_it_was_made_from(
        table in table(), hand in hand(), omit: bool, backward: bool,
    ) {
        let rows = table.stamps.len();
        let folder = Folder::with("wide.csv", hand.write(&table, 0..rows));
        folder.write("long.csv", hand.write_long(&table, omit, backward));
        let read = |source: &TableSource, file: &str| {
            open(source, &folder, &[file], &Labels::Source)
                .map(|mut stream| frames(&mut stream))
                .map_err(|e| TestCaseError::fail(e.to_string()))
        };
        let long = TableSource {
            shape: Shape::Long { tag: "tag".into(), value: "value".into(), tags: table.tags() },
            ..hand.source()
        };
        let (wide, long) = (read(&hand.source(), "wide.csv")?, read(&long, "long.csv")?);
        prop_assert_eq!(wide.len(), long.len());
        for (a, b) in wide.iter().zip(&long) {
            prop_assert_eq!((a.time, a.continuity, a.label), (b.time, b.continuity, b.label));
            let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
            prop_assert!(a.values.iter().zip(&b.values).all(same), "{a:?} {b:?}");
            prop_assert!(b.notes.is_empty());
        }
    }

    #[test]
    fn anything_that_looks_like_a_long_table_is_frames_or_an_error(
        body in "([0-3],[ab]{0,1},[0-9.e\"]{0,3}\n){0,30}", damage in "[0-9,\"\n\r]{0,6}", at: prop::sample::Index,
    ) {
        let mut content = format!("t,tag,value\n{body}");
        content.insert_str(12 + at.index(content.len() - 11), &damage);
        let shape = Shape::Long { tag: "tag".into(), value: "value".into(), tags: Vec::new() };
        survives(content.as_bytes(), &TableSource { shape, ..source() }, &Labels::Source)?;
    }

    #[test]
    fn rows_split_over_files_in_any_way_are_the_same_frames(
        table in table(), hand in hand(), cuts in prop::collection::vec(0usize..30, 0..4),
    ) {
        let rows = table.stamps.len();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(rows)).collect();
        cuts.extend([0, rows]);
        cuts.sort_unstable();
        let folder = Folder::with("whole.csv", hand.write(&table, 0..rows));
        for (part, pair) in cuts.windows(2).enumerate() {
            folder.write(&format!("part{part}.csv"), hand.write(&table, pair[0]..pair[1]));
        }
        let clients = [client("all", &["c*"])];
        let read = |files: &str| {
            let files = [files.to_owned()];
            let labels = Labels::Source;
            let source = hand.source();
            TableStream::open(&source, folder.path(), &files, &clients, &labels, Some(50.0))
                .map(|mut stream| frames(&mut stream))
                .map_err(|e| TestCaseError::fail(e.to_string()))
        };
        let (whole, parts) = (read("whole.csv")?, read("part*.csv")?);
        prop_assert_eq!(whole.len(), parts.len());
        for (a, b) in whole.iter().zip(&parts) {
            prop_assert_eq!((a.time, a.continuity, a.label), (b.time, b.continuity, b.label));
            prop_assert!(a.values.iter().zip(&b.values).all(|(a, b)| same(*a, Some(*b)) || (a.is_nan() && b.is_nan())));
        }
    }

    #[test]
    fn any_bytes_are_frames_or_an_error(content: Vec<u8>, pick in 0usize..4, pack: bool) {
        let mut source = source();
        source.delimiter = [Delimiter::Auto, Delimiter::Comma, Delimiter::Semicolon, Delimiter::Tab][pick];
        let content = if pack { gz(content) } else { content };
        survives(&content, &source, &Labels::Source)?;
    }

    #[test]
    fn anything_that_looks_like_a_table_is_frames_or_an_error(
        body in "[0-9,;\"\n\r\t .eE+-]{0,200}", pack: bool, auto: bool, labelled: bool,
    ) {
        let mut source = source();
        source.run_column = Some("r".into());
        if auto {
            source.time.format = TimeFormat::Auto;
        }
        let labels = Labels::Column { name: "y".into(), unlabelled: vec![], origins: vec![] };
        let content = format!("t,a,r,y\n{body}");
        let content = if pack { gz(content) } else { content.into_bytes() };
        survives(&content, &source, if labelled { &labels } else { &Labels::Source })?;
    }

    #[test]
    fn damage_anywhere_is_frames_or_an_error(
        table in table(), hand in hand(), at: prop::sample::Index, byte: u8, cut: bool,
    ) {
        let mut content = hand.write(&table, 0..table.stamps.len());
        let at = at.index(content.len());
        if cut {
            content.truncate(at);
        } else {
            content[at] = byte;
        }
        survives(&content, &hand.source(), &Labels::Source)?;
    }
}
