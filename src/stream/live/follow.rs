//! A CSV file that grows: its lines are handed over as they are written.
//!
//! A file that is rotated is read to its end before the new one is; one that was cut off or replaced
//! is read from its beginning.

use std::fs::{File, Metadata};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use super::arrival::{Gone, Outbox, Phase, What};
use super::pipe::Cutter;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_millis(100);
const BATCH: usize = 1 << 16;

/// Where reading begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    /// With the first line: normal data comes first.
    First,
    /// With the next line that is written, after the header.
    Next,
}

/// Follows `file` on a thread of its own.
pub(super) fn follow(
    file: PathBuf,
    begin: Begin,
    outbox: Outbox,
    spares: Receiver<Vec<u8>>,
) -> io::Result<()> {
    thread::Builder::new().name("follow".into()).spawn(move || {
        let mut following = Following {
            path: file,
            begin,
            open: None,
            cutter: Cutter::default(),
            bytes: vec![0; BATCH],
        };
        // A hang-up means that the engine is gone.
        while following.look(&outbox, &spares).is_ok() {
            thread::sleep(LOOK);
        }
    })?;
    Ok(())
}

struct Following {
    path: PathBuf,
    begin: Begin,
    /// The file and how far it was read.
    open: Option<(File, u64)>,
    cutter: Cutter,
    bytes: Vec<u8>,
}

impl Following {
    /// Hands over what was written since the last look.
    fn look(&mut self, outbox: &Outbox, spares: &Receiver<Vec<u8>>) -> Result<(), Gone> {
        let there = std::fs::metadata(&self.path);
        if let Some((file, read)) = &mut self.open {
            let own = file.metadata();
            let is_cut_off = own.as_ref().is_ok_and(|own| own.len() < *read);
            if is_cut_off {
                (self.cutter, *read) = (Cutter::default(), 0);
                if file.seek(SeekFrom::Start(0)).is_err() {
                    self.open = None;
                }
            }
            self.read(outbox, spares)?;
            let replaced = match (&there, &own) {
                (Ok(there), Ok(own)) => !is_same(there, own),
                (Err(_), _) | (_, Err(_)) => true,
            };
            if replaced {
                // The old one has been read to its end.
                self.open = None;
            }
        }
        if self.open.is_some() {
            return Ok(());
        }
        match self.begin_file(outbox) {
            Ok(()) => {
                outbox.send(What::Phase(Phase::Connected))?;
                self.read(outbox, spares)
            }
            Err(Begun::Gone(gone)) => Err(gone),
            Err(Begun::Io(why)) => outbox.send(What::Phase(Phase::Reconnecting(why.to_string()))),
        }
    }

    fn begin_file(&mut self, outbox: &Outbox) -> Result<(), Begun> {
        let mut file = File::open(&self.path).map_err(Begun::Io)?;
        self.cutter = Cutter::default();
        let mut read = 0;
        // Only the file that was there at the start may hold what is over.
        if std::mem::replace(&mut self.begin, Begin::First) == Begin::Next {
            let mut header = Vec::new();
            let mut lines = BufReader::new(&mut file);
            lines.read_until(b'\n', &mut header).map_err(Begun::Io)?;
            if header.last() == Some(&b'\n') {
                outbox.send(What::Lines(header)).map_err(Begun::Gone)?;
                read = last_line_end(&self.path).map_err(Begun::Io)?;
            }
            file.seek(SeekFrom::Start(read)).map_err(Begun::Io)?;
        }
        self.open = Some((file, read));
        Ok(())
    }

    fn read(&mut self, outbox: &Outbox, spares: &Receiver<Vec<u8>>) -> Result<(), Gone> {
        let Some((file, done)) = &mut self.open else { return Ok(()) };
        loop {
            match file.read(&mut self.bytes) {
                Ok(0) => return Ok(()),
                Ok(read) => {
                    *done += read as u64;
                    let mut lines = spares.try_recv().unwrap_or_default();
                    lines.clear();
                    self.cutter.cut(&self.bytes[..read], &mut lines);
                    if !lines.is_empty() {
                        outbox.send(What::Lines(lines))?;
                    }
                }
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => {
                    self.open = None;
                    return outbox.send(What::Phase(Phase::Reconnecting(why.to_string())));
                }
            }
        }
    }
}

enum Begun {
    Io(io::Error),
    Gone(Gone),
}

/// Where the last whole line of a file ends.
fn last_line_end(path: &Path) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let tail = length.min(1 << 20);
    file.seek(SeekFrom::Start(length - tail))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at as u64 + 1);
    Ok(length - tail + end)
}

#[cfg(unix)]
fn is_same(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn is_same(_a: &Metadata, _b: &Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::super::arrival;
    use super::*;
    use std::fs;
    use std::io::Write as _;

    /// All lines that one look finds.
    fn lines(following: &mut Following) -> Vec<String> {
        let (outbox, inbox, spares) = arrival::queue();
        assert!(following.look(&outbox, &spares).is_ok());
        let mut found = Vec::new();
        while let Some(arrival) = inbox.try_next() {
            if let What::Lines(lines) = arrival.what {
                let text = String::from_utf8(lines).expect("text");
                found.extend(text.lines().map(str::to_owned));
            }
        }
        found
    }

    fn following(path: &Path, begin: Begin) -> Following {
        let (path, bytes) = (path.to_owned(), vec![0; 7]);
        Following { path, begin, open: None, cutter: Cutter::default(), bytes }
    }

    fn append(path: &Path, text: &str) {
        let mut file = File::options().append(true).create(true).open(path).expect("writable");
        file.write_all(text.as_bytes()).expect("written");
    }

    #[test]
    fn a_file_that_grows_is_rotated_cut_off_and_replaced_loses_no_line() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("plant.csv");
        let mut file = following(&path, Begin::First);
        assert_eq!(lines(&mut file), Vec::<String>::new(), "not there yet");
        append(&path, "time,a\n1,1\n2,");
        assert_eq!(lines(&mut file), ["time,a", "1,1"]);
        append(&path, "2\n3,3\n");
        assert_eq!(lines(&mut file), ["2,2", "3,3"]);
        // Rotated, with lines that were written just before.
        append(&path, "4,4\n");
        fs::rename(&path, folder.path().join("plant.csv.1")).expect("renamed");
        fs::write(&path, "time,a\n5,5\n").expect("written");
        assert_eq!(lines(&mut file), ["4,4", "time,a", "5,5"]);
        // Cut off, as `copytruncate` does.
        append(&path, "6,6\n");
        assert_eq!(lines(&mut file), ["6,6"]);
        fs::write(&path, "time,a\n").expect("written");
        assert_eq!(lines(&mut file), ["time,a"]);
        append(&path, "7,7\n");
        assert_eq!(lines(&mut file), ["7,7"]);
        // Removed, and there again.
        fs::remove_file(&path).expect("removed");
        assert_eq!(lines(&mut file), Vec::<String>::new());
        fs::write(&path, "time,a\n8,8\n").expect("written");
        assert_eq!(lines(&mut file), ["time,a", "8,8"]);
    }

    #[test]
    fn what_was_there_before_is_passed_over_where_only_what_is_new_counts() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("plant.csv");
        fs::write(&path, "time,a\n1,1\n2,2\n3,").expect("written");
        let mut file = following(&path, Begin::Next);
        assert_eq!(lines(&mut file), ["time,a"]);
        append(&path, "3\n4,4\n");
        assert_eq!(lines(&mut file), ["3,3", "4,4"]);
    }
}
