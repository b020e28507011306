//! The rows of one wide CSV file, with the line each stands in.

use std::path::{Path, PathBuf};

use csv::{ByteRecord, Terminator};

use super::bytes::{Bytes, not_a_table};
use super::header::Header;
use super::number::bare;
use crate::session::Delimiter;
use crate::stream::StreamError;

/// Reads one file row by row, reusing one record. Knows cells, not what they mean.
pub(crate) struct Rows {
    file: PathBuf,
    header: Vec<String>,
    /// Lines before the first one that `csv` counts.
    lines_before: u64,
    csv: csv::Reader<Bytes>,
    record: ByteRecord,
    /// Whether `1,5` is a number here.
    pub(crate) decimal_comma: bool,
}

/// Where a cell stood.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CellPlace<'a> {
    pub(crate) line: u64,
    /// Its column, counted from 0.
    pub(crate) column: usize,
    /// What it is called.
    pub(crate) tag: &'a str,
}

impl Header for Rows {
    fn names(&self) -> &[String] {
        &self.header
    }

    fn header_error(&self, what: String) -> StreamError {
        StreamError::Header { file: self.file.clone(), what }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextRow {
    /// A row with as many cells as the header.
    Row,
    /// The last row, cut short: the file ends within it.
    CutShort,
    End,
}

impl Rows {
    /// Opens a file and reads its header, no more.
    pub(crate) fn open(file: &Path, delimiter: Delimiter) -> Result<Self, StreamError> {
        Self::over(file, Bytes::open(file)?, delimiter)
    }

    /// Reads the header from `bytes`; `file` is what they are called in complaints.
    pub(crate) fn over(
        file: &Path,
        mut bytes: Bytes,
        delimiter: Delimiter,
    ) -> Result<Self, StreamError> {
        let wrong = |what: &str| StreamError::Header { file: file.into(), what: what.into() };
        let mut lines_before = 0;
        let line = loop {
            let line = bytes.take_line().map_err(|e| failed(file, &bytes, lines_before + 1, e))?;
            let line = line.ok_or_else(|| {
                wrong(
                    "the header line is longer than 1 MiB: is this a table, and do its lines end?",
                )
            })?;
            if line.is_empty() {
                return Err(wrong("the file is empty: expected a header line"));
            }
            lines_before += 1;
            let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line).to_vec();
            if !line.trim_ascii().is_empty() {
                break line;
            }
        };
        if let Some(what) = not_a_table(&line) {
            return Err(wrong(what));
        }
        let delimiter = match delimiter {
            Delimiter::Comma => b',',
            Delimiter::Semicolon => b';',
            Delimiter::Tab => b'\t',
            Delimiter::Auto => most_used(&line),
        };
        let mut builder = csv::ReaderBuilder::new();
        // A line feed alone ends a row: then the line count is exact for both kinds of line end,
        // and a carriage return is one more blank to be trimmed.
        builder
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .terminator(Terminator::Any(b'\n'));
        let mut header = ByteRecord::new();
        builder
            .from_reader(line.as_slice())
            .read_byte_record(&mut header)
            .map_err(|e| wrong(&e.to_string()))?;
        let header = header.iter().map(|n| String::from_utf8_lossy(bare(n)).into_owned()).collect();
        Ok(Self {
            file: file.to_path_buf(),
            header,
            lines_before,
            csv: builder.buffer_capacity(64 * 1024).from_reader(bytes),
            record: ByteRecord::new(),
            decimal_comma: delimiter == b';',
        })
    }

    /// Moves to the next row; empty lines are passed over.
    pub(crate) fn next(&mut self) -> Result<NextRow, StreamError> {
        loop {
            self.csv.get_mut().begin_row();
            match self.csv.read_byte_record(&mut self.record) {
                Ok(true) => {}
                Ok(false) => return Ok(NextRow::End),
                Err(e) => return Err(self.broken(e)),
            }
            if self.is_blank() {
                continue;
            }
            let (expected, found) = (self.header.len(), self.record.len());
            if found == expected {
                return Ok(NextRow::Row);
            }
            if found < expected && self.ends_the_file() {
                return Ok(NextRow::CutShort);
            }
            let what = format!("expected {expected} cells, found {found}");
            return Err(self.row_error(what));
        }
    }

    /// A cell of the present row without blanks around it.
    pub(crate) fn cell(&self, column: usize) -> &[u8] {
        bare(&self.record[column])
    }

    /// Whether the present row is the file's last and its line was never finished, so that it may
    /// hold less than its writer meant.
    pub(crate) fn ends_the_file(&self) -> bool {
        let bytes = self.csv.get_ref();
        bytes.ended_within_a_line() && self.csv.position().byte() == bytes.handed_out
    }

    /// The line that the present row begins in, counted from 1.
    pub(crate) fn line(&self) -> u64 {
        let own_end = u64::from(!self.ends_the_file());
        let inside = self.record.as_slice().split(|b| *b == b'\n').count() as u64 - 1;
        // `csv` counts from 1 and has passed the row's own end.
        self.lines_before + self.csv.position().line() - own_end - inside
    }

    /// A complaint about the present row.
    pub(crate) fn row_error(&self, what: String) -> StreamError {
        self.row_error_at(self.line(), what)
    }

    /// A complaint about the row in this line.
    pub(crate) fn row_error_at(&self, line: u64, what: String) -> StreamError {
        StreamError::Row { file: self.file.clone(), line, what }
    }

    /// A complaint about a cell of the present row.
    pub(crate) fn cell_error(&self, column: usize, expected: impl Into<String>) -> StreamError {
        let at = CellPlace { line: self.line(), column, tag: &self.header[column] };
        self.cell_error_at(at, expected.into(), self.cell(column))
    }

    /// A complaint about a cell that stood elsewhere.
    pub(crate) fn cell_error_at(
        &self,
        at: CellPlace,
        expected: String,
        found: &[u8],
    ) -> StreamError {
        StreamError::Cell {
            file: self.file.clone(),
            line: at.line,
            column: at.column + 1,
            tag: at.tag.to_owned(),
            expected,
            found: excerpt(found),
        }
    }

    fn is_blank(&self) -> bool {
        self.record.len() == 1
            && self.record[0].trim_ascii().is_empty()
            && (self.header.len() > 1 || self.record[0] == *b"\r")
    }

    fn broken(&self, error: csv::Error) -> StreamError {
        let line = self.lines_before + self.csv.position().line();
        let bytes = self.csv.get_ref();
        if bytes.too_long {
            // The row is what is wrong, and it began where the last good one ended.
            let begin = self.record.position().map_or(line, |p| self.lines_before + p.line());
            let what = "the row does not end: is a quotation mark left open?".into();
            return StreamError::Row { file: self.file.clone(), line: begin, what };
        }
        match error.into_kind() {
            csv::ErrorKind::Io(e) => failed(&self.file, bytes, line, e),
            other => StreamError::Row { file: self.file.clone(), line, what: format!("{other:?}") },
        }
    }
}

fn failed(file: &Path, bytes: &Bytes, line: u64, source: std::io::Error) -> StreamError {
    let file = file.to_path_buf();
    if bytes.compressed {
        StreamError::Damaged { file, line, source }
    } else {
        StreamError::Io { file, source }
    }
}

/// Whichever delimiter a header uses most outside quotes; a comma when it uses none.
fn most_used(header: &[u8]) -> u8 {
    let count = |delimiter: u8| {
        let mut quoted = false;
        header
            .iter()
            .filter(|&&byte| {
                quoted ^= byte == b'"';
                !quoted && byte == delimiter
            })
            .count()
    };
    // `max_by_key` takes the last of equals.
    [b'\t', b';', b','].into_iter().max_by_key(|d| count(*d)).unwrap_or(b',')
}

/// Enough of a cell to recognise it by.
fn excerpt(cell: &[u8]) -> String {
    const LONGEST: usize = 60;
    let text = String::from_utf8_lossy(cell);
    if text.chars().count() <= LONGEST {
        return text.into_owned();
    }
    text.chars().take(LONGEST).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Read};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn rows(text: &str) -> Rows {
        let bytes = Bytes::over(Box::new(Cursor::new(text.as_bytes().to_vec())));
        Rows::over(Path::new("t.csv"), bytes, Delimiter::Auto).expect("a header")
    }

    fn lines(text: &str) -> Vec<(u64, String)> {
        let mut rows = rows(text);
        let mut found = Vec::new();
        while rows.next().expect("rows") == NextRow::Row {
            found.push((rows.line(), String::from_utf8_lossy(rows.cell(0)).into_owned()));
        }
        found
    }

    #[test]
    fn every_row_knows_its_line_whatever_ends_lines_and_stands_between_them() {
        let expected = [(2, "a".to_owned()), (4, "b".into()), (5, "c\nc".into()), (7, "d".into())];
        let text = "x,y\na,1\n\nb,2\n\"c\nc\",3\nd,4";
        assert_eq!(lines(text), expected);
        assert_eq!(lines(&format!("{text}\n\n")), expected);
        let crlf = [(2, "a".to_owned()), (4, "b".into()), (6, "d".into())];
        assert_eq!(lines("x,y\r\na,1\r\n\r\nb,2\r\n \r\nd,4\r\n"), crlf);
        assert_eq!(lines("\u{feff}\n\nx,y\na,1\n"), [(4, "a".to_owned())]);
    }

    #[test]
    fn a_carriage_return_alone_ends_lines_where_no_line_feed_does() {
        let expected = [(2, "a".to_owned()), (4, "b".into()), (5, "c\nc".into()), (7, "d".into())];
        let text = "x,y\ra,1\r\rb,2\r\"c\rc\",3\rd,4";
        assert_eq!(lines(text), expected);
        assert_eq!(lines(&format!("{text}\r\r")), expected);
        assert_eq!(lines("\r\rx,y\ra,1\r"), [(4, "a".to_owned())]);
        // Line feeds after several carriage returns, and a carriage return inside quotes.
        assert_eq!(lines("x,y\r\r\na,1\r\r\n"), [(2, "a".to_owned())]);
        assert_eq!(lines("x,\"y\ry\"\na,1\n"), [(2, "a".to_owned())]);
        let mut cut = rows("a,b,c\r1,2,3\r4,5");
        assert_eq!(cut.next().expect("a row"), NextRow::Row);
        assert_eq!(cut.next().expect("no error"), NextRow::CutShort);
    }

    #[test]
    fn a_header_of_twenty_megabytes_is_refused_after_one() {
        let taken = Arc::new(AtomicU64::new(0));
        for text in [&b"column,"[..], b"\"quote left open,"] {
            taken.store(0, Ordering::Relaxed);
            let long = Endless { taken: Arc::clone(&taken), text, at: 0 }.take(20_000_000);
            let answer =
                Rows::over(Path::new("t.csv"), Bytes::over(Box::new(long)), Delimiter::Auto);
            let error = answer.err().expect("no header is as long").to_string();
            assert!(error.starts_with("t.csv:1: the header line is longer than 1 MiB"), "{error}");
            assert!(taken.load(Ordering::Relaxed) <= 1024 * 1024 + 128 * 1024);
        }
    }

    #[test]
    fn the_header_shows_the_delimiter() {
        for text in ["a;b,c;d\n", "\"a,,,,\";\"b,c\" ; d\n", "a\tb\td\n", " a , b,c\n"] {
            assert_eq!(rows(text).names().len(), 3, "{text:?}");
        }
        assert_eq!(rows("one\n").names(), ["one"]);
    }

    #[test]
    fn a_ragged_row_is_an_error_but_a_row_that_the_file_ends_in_is_cut_short() {
        let mut ragged = rows("a,b,c\n1,2\n3,4,5\n");
        let error = ragged.next().expect_err("two cells").to_string();
        assert_eq!(error, "t.csv:2: expected 3 cells, found 2");
        let mut cut = rows("a,b,c\n1,2,3\n4,5");
        assert_eq!(cut.next().expect("a row"), NextRow::Row);
        assert_eq!(cut.next().expect("no error"), NextRow::CutShort);
        assert_eq!(cut.next().expect("no error"), NextRow::End);
        let mut long = rows("a,b,c\n1,2,3,4");
        assert!(long.next().is_err());
    }

    #[test]
    fn what_is_no_table_is_told_so() {
        let refused = |bytes: &[u8]| {
            let bytes = Bytes::over(Box::new(Cursor::new(bytes.to_vec())));
            let answer = Rows::over(Path::new("t.csv"), bytes, Delimiter::Auto);
            answer.err().expect("no table").to_string()
        };
        assert!(refused(b"").contains("empty"));
        assert!(refused(b"version https://git-lfs.github.com/spec/v1\n").contains("git lfs pull"));
        assert!(refused(b"\xff\xfea\0,\0").contains("UTF-16"));
        assert!(refused(b"PK\x03\x04....").contains("CSV"));
    }

    /// Rows without end, counted as they are handed out.
    struct Endless {
        taken: Arc<AtomicU64>,
        text: &'static [u8],
        at: usize,
    }

    impl Read for Endless {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            for byte in into.iter_mut() {
                *byte = self.text[self.at];
                self.at = (self.at + 1) % self.text.len();
            }
            self.taken.fetch_add(into.len() as u64, Ordering::Relaxed);
            Ok(into.len())
        }
    }

    fn endless(text: &'static [u8]) -> (Rows, Arc<AtomicU64>) {
        let taken = Arc::new(AtomicU64::new(0));
        let bytes = Bytes::over(Box::new(Endless { taken: Arc::clone(&taken), text, at: 0 }));
        (Rows::over(Path::new("t.csv"), bytes, Delimiter::Auto).expect("a header"), taken)
    }

    #[test]
    fn of_a_file_without_end_only_the_head_is_read() {
        let (mut rows, taken) = endless(b"1,2,3,4,5,6,7,8\n");
        assert!(taken.load(Ordering::Relaxed) <= 64 * 1024);
        for _ in 0..1000 {
            assert_eq!(rows.next().expect("a row"), NextRow::Row);
        }
        assert!(taken.load(Ordering::Relaxed) <= 256 * 1024);
    }

    #[test]
    fn a_quotation_mark_left_open_does_not_swallow_the_file() {
        let open = Cursor::new(b"a,b\n1,2\n3,\"4".to_vec()).chain(std::io::repeat(b'\n'));
        let bytes = Bytes::over(Box::new(open));
        let mut rows = Rows::over(Path::new("t.csv"), bytes, Delimiter::Auto).expect("a header");
        assert_eq!(rows.next().expect("a row"), NextRow::Row);
        let error = rows.next().expect_err("a row without end").to_string();
        assert_eq!(error, "t.csv:3: the row does not end: is a quotation mark left open?");
    }
}
