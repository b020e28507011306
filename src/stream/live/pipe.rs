//! Lines from a pipe, such as standard input: read on a thread of its own, handed over in batches.

use std::io::{self, Read};
use std::sync::mpsc::Receiver;
use std::thread;

use super::arrival::{Gone, Outbox, Phase, What};

/// Bytes that are read at once.
const BATCH: usize = 1 << 16;
/// A line that is longer is no line of measurements.
const LONGEST_LINE: usize = 1 << 20;

/// Cuts bytes into batches of whole lines.
#[derive(Debug, Default)]
pub(super) struct Cutter {
    begun: Vec<u8>,
    /// The rest of a line that is too long.
    skipping: bool,
}

impl Cutter {
    /// Takes the next bytes and fills `lines` with the lines that are whole now.
    pub(super) fn cut(&mut self, mut bytes: &[u8], lines: &mut Vec<u8>) {
        if self.skipping {
            let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return };
            self.skipping = false;
            bytes = &bytes[end + 1..];
        }
        let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
            self.begun.extend_from_slice(bytes);
            if self.begun.len() > LONGEST_LINE {
                // Its beginning is handed over, so that it is counted as a line that cannot be read.
                self.begun.truncate(64);
                self.begun.push(b'\n');
                lines.append(&mut self.begun);
                self.skipping = true;
            }
            return;
        };
        lines.append(&mut self.begun);
        lines.extend_from_slice(&bytes[..=end]);
        self.begun.extend_from_slice(&bytes[end + 1..]);
    }

    /// A line without an end.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.begun)
    }
}

/// Reads `source` to its end.
pub(super) fn read(
    mut source: impl Read,
    outbox: &Outbox,
    spares: &Receiver<Vec<u8>>,
) -> Result<(), Gone> {
    outbox.send(What::Phase(Phase::Connected))?;
    let mut cutter = Cutter::default();
    let mut bytes = vec![0; BATCH];
    loop {
        match source.read(&mut bytes) {
            Ok(0) => {
                let rest = cutter.rest();
                if !rest.is_empty() {
                    outbox.send(What::Lines(rest))?;
                }
                return outbox.send(What::End(None));
            }
            Ok(read) => {
                let mut lines = spares.try_recv().unwrap_or_default();
                lines.clear();
                cutter.cut(&bytes[..read], &mut lines);
                if !lines.is_empty() {
                    outbox.send(What::Lines(lines))?;
                }
            }
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return outbox.send(What::End(Some(why.to_string()))),
        }
    }
}

/// Reads standard input on a thread of its own.
pub(super) fn standard_input(outbox: Outbox, spares: Receiver<Vec<u8>>) -> io::Result<()> {
    thread::Builder::new().name("standard input".into()).spawn(move || {
        // A hang-up means that the engine is gone.
        let _gone = read(io::stdin(), &outbox, &spares);
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lines_come_whole_however_they_are_cut(
            text in "[a-c\n]{0,200}", cuts in prop::collection::vec(1_usize..20, 1..50),
        ) {
            let (mut cutter, mut all, mut rest) = (Cutter::default(), Vec::new(), text.as_bytes());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                let mut lines = Vec::new();
                cutter.cut(now, &mut lines);
                prop_assert!(lines.is_empty() || lines.last() == Some(&b'\n'));
                all.append(&mut lines);
                rest = later;
            }
            all.append(&mut cutter.rest());
            prop_assert_eq!(all, text.into_bytes());
        }
    }

    #[test]
    fn a_line_without_end_takes_no_memory_without_end() {
        let mut cutter = Cutter::default();
        let mut lines = Vec::new();
        for _ in 0..100 {
            cutter.cut(&vec![b'x'; BATCH], &mut lines);
        }
        cutter.cut(b"xx\n1,2\n", &mut lines);
        assert_eq!(lines.len(), 64 + 1 + 4);
        assert!(lines.ends_with(b"\n1,2\n"));
    }
}
