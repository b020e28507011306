//! The bytes of a file: unpacked, watched, never more of them than needed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::stream::StreamError;

/// How much of a file is asked for at once.
const CHUNK: usize = 64 * 1024;

/// The longest row (or header) that is read. A quote that is never closed makes the rest of a file
/// one cell; without a bound that would be the whole file in memory.
const LONGEST_ROW: usize = 16 * 1024 * 1024;

/// The longest header that is read. A file without line ends is refused after so many bytes.
const LONGEST_HEADER: usize = 1024 * 1024;

/// A file's bytes, unpacked where it is compressed; a line ends in a line feed, whatever it ends in
/// in the file.
#[expect(clippy::struct_excessive_bools, reason = "independent of each other")]
pub(crate) struct Bytes {
    inner: BufReader<Box<dyn Read + Send>>,
    /// Whether a carriage return alone ends a line.
    carriage_returns: bool,
    /// Whether an error of `inner` is about the file's content and not about the machine.
    pub(crate) compressed: bool,
    /// Bytes that may still be read for the present row.
    allowance: usize,
    /// Bytes handed out by `read` so far.
    pub(crate) handed_out: u64,
    last: Option<u8>,
    ended: bool,
    /// Whether the last refusal was for the length of a row.
    pub(crate) too_long: bool,
}

impl Bytes {
    /// Opens a file; whether it is compressed is seen from its first bytes, not from its name.
    pub(crate) fn open(path: &Path) -> Result<Self, StreamError> {
        let io = || StreamError::io(path);
        let mut file = BufReader::with_capacity(CHUNK, File::open(path).map_err(io())?);
        let compressed = file.fill_buf().map_err(io())?.starts_with(&[0x1f, 0x8b]);
        let bytes: Box<dyn Read + Send> =
            if compressed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
        Ok(Self { compressed, ..Self::over(bytes) })
    }

    pub(crate) fn over(bytes: Box<dyn Read + Send>) -> Self {
        Self {
            inner: BufReader::with_capacity(CHUNK, bytes),
            carriage_returns: false,
            compressed: false,
            allowance: LONGEST_ROW,
            handed_out: 0,
            last: None,
            ended: false,
            too_long: false,
        }
    }

    /// Takes one line, with its end, for the header; empty at the end of the file, and none when the
    /// line is too long to be a header. The first line end outside quotes shows what ends lines here.
    pub(crate) fn take_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let mut quoted = false;
        while let Some(byte) = self.take_byte()? {
            line.push(byte);
            quoted ^= byte == b'"';
            if byte == b'\n' {
                break;
            }
            if byte == b'\r' && !quoted {
                if self.carriage_returns || !self.leads_to_line_feed(&mut line)? {
                    self.carriage_returns = true;
                    line.push(b'\n');
                    break;
                }
                continue;
            }
            if line.len() > LONGEST_HEADER {
                return Ok(None);
            }
        }
        Ok(Some(line))
    }

    fn take_byte(&mut self) -> io::Result<Option<u8>> {
        let byte = self.inner.fill_buf()?.first().copied();
        self.inner.consume(usize::from(byte.is_some()));
        Ok(byte)
    }

    /// Whether a line feed follows the carriage return just taken: some programs write several
    /// carriage returns before it, which are then taken too. Otherwise nothing is taken.
    fn leads_to_line_feed(&mut self, line: &mut Vec<u8>) -> io::Result<bool> {
        let ahead = self.inner.fill_buf()?;
        let returns = ahead.iter().take_while(|byte| **byte == b'\r').count();
        let is_so = ahead.get(returns) == Some(&b'\n');
        if is_so {
            line.resize(line.len() + returns, b'\r');
            self.inner.consume(returns);
        }
        Ok(is_so)
    }

    /// Grants the next row its full length.
    pub(crate) fn begin_row(&mut self) {
        self.allowance = LONGEST_ROW;
    }

    /// Whether the file is over and its last line was never finished.
    pub(crate) fn ended_within_a_line(&self) -> bool {
        self.ended && self.last.is_some_and(|byte| byte != b'\n')
    }
}

impl Read for Bytes {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let wanted = into.len().min(self.allowance);
        if wanted == 0 && !into.is_empty() {
            self.too_long = true;
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the row is too long"));
        }
        let n = self.inner.read(&mut into[..wanted])?;
        if self.carriage_returns {
            into[..n].iter_mut().filter(|b| **b == b'\r').for_each(|b| *b = b'\n');
        }
        self.allowance -= n;
        self.handed_out += n as u64;
        match into[..n].last() {
            Some(&byte) => self.last = Some(byte),
            None => self.ended = true,
        }
        Ok(n)
    }
}

/// Says what a file is that is plainly not a table, judged by its first line.
pub(crate) fn not_a_table(line: &[u8]) -> Option<&'static str> {
    const LFS: &[u8] = b"version https://git-lfs.github.com/";
    if line.starts_with(LFS) {
        Some("this is a Git LFS pointer, not the data: run `git lfs pull` in the data set's clone")
    } else if line.starts_with(&[0xff, 0xfe]) || line.starts_with(&[0xfe, 0xff]) {
        Some("the text is in UTF-16: save it as UTF-8")
    } else if line.starts_with(b"PK\x03\x04") {
        Some("this is a zip archive or a spreadsheet: unpack it, or save it as CSV")
    } else {
        None
    }
}
