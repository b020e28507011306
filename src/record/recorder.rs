//! The engine's end of a recording: rows go into a batch, batches into a bounded queue.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::RecordError;
use super::batch::{
    AboutTable, Batch, Holds, LedgerFact, ModelTable, Row, Seen, StepMark, StepNote,
};
use super::writer::{self, Report, Writer};
use crate::fact::Fact;
use crate::incident::{Event, Incident};
use crate::privacy::Ledger;
use crate::site::meter::{Meters, Unmeasured};
use crate::stream::Frame;
use crate::wire::CarrierLog;

/// Batches that may wait for the disk.
const QUEUE: usize = 64;
/// Steps of a batch at most.
const STEPS: usize = 128;
/// The disk may keep the engine waiting for so long at a time; then the recording ends.
const PATIENCE: Duration = Duration::from_secs(5);

/// How large and how old a recording may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes of one file; beyond it the oldest steps go.
    pub(crate) file_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { file_bytes: 512 << 20 }
    }
}

/// A recording that is being made.
#[derive(Debug)]
pub(crate) struct Recorder {
    file: PathBuf,
    queue: Option<SyncSender<Batch>>,
    reports: mpsc::Receiver<Report>,
    thread: Option<JoinHandle<()>>,
    log: CarrierLog,
    batch: Batch,
    /// Steps so far.
    steps: u64,
    after_end: bool,
    with_measurements: bool,
}

impl Recorder {
    /// Makes the file and begins to record. A file that is there already is left as it is.
    pub(crate) fn create(file: &Path, limits: Limits, holds: Holds) -> Result<Self, RecordError> {
        let writer = Writer::create(file, limits, holds)?;
        let (queue, batches) = mpsc::sync_channel(QUEUE);
        let (report, reports) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("recorder".into())
            .spawn(move || writer::write(writer, &batches, &report))
            .map_err(RecordError::file(file))?;
        let mut recorder = Self {
            file: file.to_path_buf(),
            queue: Some(queue),
            reports,
            thread: Some(thread),
            log: CarrierLog::default(),
            batch: Batch::default(),
            steps: 0,
            after_end: false,
            with_measurements: false,
        };
        match holds {
            Holds::Both => {}
            Holds::Server => recorder.about(AboutTable::Both, "holds", "server"),
            Holds::Site(client) => {
                recorder.about(AboutTable::Both, "holds", "site");
                recorder.about(AboutTable::Both, "site_client", client.to_string());
            }
        }
        Ok(recorder)
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Whether no step was recorded yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.steps == 0
    }

    /// The log that messages between sites and server are to be written to.
    pub(crate) fn carrier_log(&self) -> CarrierLog {
        self.log.clone()
    }

    /// Measurements are stored too.
    pub(crate) fn keep_measurements(&mut self) {
        self.with_measurements = true;
    }

    /// An entry about the run as a whole.
    pub(crate) fn about(&mut self, table: AboutTable, key: &'static str, value: impl Into<String>) {
        self.batch.rows.push(Row::About { table, key, value: value.into() });
    }

    /// A model of the sites, or what the server knows beside messages.
    pub(crate) fn model(&mut self, table: ModelTable, kind: &'static str, data: Vec<u8>) {
        self.batch.rows.push(Row::Model { table, kind, data });
    }

    /// From now on rows of sites are measured on the way to the file.
    pub(crate) fn measure_by(&mut self, meters: Meters) {
        self.batch.meters = Some(meters);
    }

    /// Where the rows of the last step go that are to be measured.
    pub(crate) fn unmeasured(&mut self) -> &mut Unmeasured {
        &mut self.batch.unmeasured
    }

    pub(crate) fn facts(&mut self, facts: &[Fact]) {
        let step = self.steps;
        self.batch.rows.extend(facts.iter().map(|fact| Row::Fact { step, line: fact.to_line() }));
    }

    /// What a client has given away. Composing it takes long, and is left to the writer.
    pub(crate) fn ledger(&mut self, client: usize, time: Timestamp, of: &Ledger, fact: LedgerFact) {
        let (step, ledger) = (self.steps, Box::new(of.clone()));
        self.batch.rows.push(Row::Ledger { step, client, time, ledger, fact });
    }

    /// The next step has this number. A site that was away leaves numbers out; nobody else does.
    pub(crate) fn go_on_at(&mut self, step: u64) -> Result<Vec<String>, RecordError> {
        if step == self.steps + 1 {
            return Ok(Vec::new());
        }
        // The steps of a batch follow each other.
        let notices = self.flush()?;
        self.steps = step.saturating_sub(1);
        Ok(notices)
    }

    /// A step is done, and this was seen of every client.
    pub(crate) fn step(
        &mut self,
        mark: StepMark,
        note: StepNote,
        seen: impl Iterator<Item = Seen>,
    ) {
        self.steps += 1;
        if self.batch.steps.is_empty() {
            self.batch.first = self.steps;
        }
        self.batch.steps.push(mark);
        self.batch.seen.extend(seen);
        if !note.is_empty() {
            self.batch.rows.push(Row::Note { step: self.steps, note });
        }
    }

    /// Rows that were left out after the last step.
    pub(crate) fn last_note(&mut self, note: StepNote) {
        if !note.is_empty() {
            self.batch.rows.push(Row::Note { step: self.steps + 1, note });
        }
    }

    pub(crate) fn frames(&mut self, frames: &[Frame]) {
        if self.with_measurements {
            self.batch.frames.extend_from_slice(frames);
        }
    }

    pub(crate) fn events(&mut self, events: &[Event], incidents: &[Incident]) {
        let (step, after_end) = (self.steps, self.after_end);
        let event = |event: &Event| Row::Event { step, after_end, event: event.clone() };
        self.batch.rows.extend(events.iter().map(event));
        let incident = |incident: &Incident| Row::Incident(Box::new(incident.clone()));
        self.batch.rows.extend(incidents.iter().map(incident));
    }

    /// What comes now was said after the end of the stream.
    pub(crate) fn stream_ended(&mut self) {
        self.after_end = true;
    }

    /// Hands over what has gathered, where it is much.
    pub(crate) fn flush_if_large(&mut self) -> Result<Vec<String>, RecordError> {
        if self.batch.steps.len() >= STEPS { self.flush() } else { Ok(Vec::new()) }
    }

    /// Hands over what has gathered; what the writer has to say about its file. After an error nothing
    /// more is recorded.
    pub(crate) fn flush(&mut self) -> Result<Vec<String>, RecordError> {
        self.log.drain_into(&mut self.batch.messages);
        let mut notices = Vec::new();
        for report in self.reports.try_iter() {
            match report {
                Report::Notice(notice) => notices.push(notice),
                Report::Failed(error) => {
                    self.queue = None;
                    return Err(error);
                }
            }
        }
        if !self.batch.is_empty() {
            let next =
                Batch { seen: Vec::with_capacity(self.batch.seen.len()), ..Batch::default() };
            let batch = std::mem::replace(&mut self.batch, next);
            self.hand_over(batch)?;
        }
        Ok(notices)
    }

    fn hand_over(&mut self, mut batch: Batch) -> Result<(), RecordError> {
        let Some(queue) = &self.queue else { return Ok(()) };
        let since = Instant::now();
        loop {
            match queue.try_send(batch) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Disconnected(_)) => {
                    self.queue = None;
                    let failed = |report| match report {
                        Report::Failed(error) => Some(error),
                        Report::Notice(_) => None,
                    };
                    // Its writer has ended: this waits for no more than its last words.
                    let last = self.reports.iter().find_map(failed);
                    return Err(last.unwrap_or_else(|| RecordError::Behind(self.file.clone())));
                }
                Err(TrySendError::Full(back)) => {
                    if since.elapsed() > PATIENCE {
                        self.queue = None;
                        return Err(RecordError::Behind(self.file.clone()));
                    }
                    batch = back;
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    /// The run is over: brings everything to the disk and closes the file, which then stands alone.
    pub(crate) fn finish(mut self) -> Result<Vec<String>, RecordError> {
        self.about(AboutTable::Both, "ended", Timestamp::now().to_string());
        let mut notices = self.flush()?;
        self.queue = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            return Err(RecordError::damaged(&self.file, "its writer ended unexpectedly"));
        }
        for report in self.reports.try_iter() {
            match report {
                Report::Notice(notice) => notices.push(notice),
                Report::Failed(error) => return Err(error),
            }
        }
        Ok(notices)
    }
}
