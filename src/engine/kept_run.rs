//! The recording of a run: what is handed to the recorder, and when.

mod of_site;
mod served;

use std::iter::repeat;
use std::path::PathBuf;
use std::time::SystemTime;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::prepare::{self, Prepared};
use super::recorded::{INFLUENCES, MODELS};
use super::run::readout::ClientReadout;
use super::run::{Run, ledger_fact};
use super::watch::{News, Watch};
use crate::base::digest;
use crate::fact::Fact;
use crate::privacy::Provenance;
use crate::record::batch::AboutTable::{Both, Server, Site};
use crate::record::batch::{AboutTable, ModelTable};
use crate::record::folder::{self, Retention};
use crate::record::recorder::Limits;
use crate::record::{Holds, RecordError, Recorder, Seen, StepMark, StepNote};
use crate::session::{Mode, Session};
use crate::site::Truth;
use crate::stream::live::kept;
use crate::stream::{self, Frame, Layout};
use crate::wire::{CarrierLog, Logged, Wire};

pub(crate) use self::of_site::SiteRecording;
pub(crate) use self::served::ServerRecording;

/// The privacy cost of clients is stored so often, in time of the data.
const LEDGER_EVERY: SignedDuration = SignedDuration::from_hours(1);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecordTo {
    File(PathBuf),
    /// A file of its own in the folder of recordings, of which the oldest are removed.
    Folder,
}

/// Whether a run is being recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecordState {
    /// To this file.
    On(PathBuf),
    /// No more, or not at all, for this reason.
    Failed(String),
}

/// The recording of a run, if it has one.
#[derive(Debug, Default)]
pub(super) struct KeptRun {
    recorder: Option<Recorder>,
    /// Why there is none although one was asked for, until that was reported.
    failed: Option<String>,
    notices: Vec<String>,
    /// The file has a default name: it is removed if it holds no step.
    by_itself: bool,
    ledger_at: Option<Timestamp>,
    place: stream::Place,
    truth: usize,
    /// Rows of sites are measured on the way to the file.
    measures: bool,
}

impl KeptRun {
    /// Begins a recording where one is asked for. What prevents it is reported, and the run goes on.
    pub(crate) fn open(session: &Session, to: Option<&RecordTo>, holds: Holds) -> Self {
        let Some(to) = to else { return Self::default() };
        let mut kept = Self::default();
        match kept.begin(session, to, holds) {
            Ok(recorder) => kept.recorder = Some(recorder),
            Err(error) => kept.failed = Some(error.to_string()),
        }
        kept
    }

    fn begin(
        &mut self,
        session: &Session,
        to: &RecordTo,
        holds: Holds,
    ) -> Result<Recorder, RecordError> {
        let file = match to {
            RecordTo::File(file) => file.clone(),
            RecordTo::Folder => {
                let folder = folder::folder().ok_or(RecordError::NoFolder)?;
                self.by_itself = true;
                self.notices = folder::retain(&folder, Retention::default(), SystemTime::now());
                folder::new_file(&folder, &session.name, Timestamp::now())?
            }
        };
        let most = session.record.most_mb.map(|mb| u64::from(mb.get()) << 20);
        let limits = most.map_or_else(Limits::default, |file_bytes| Limits { file_bytes });
        let mut recorder = Recorder::create(&file, limits, holds)?;
        if session.record.measurements {
            recorder.keep_measurements();
        }
        Ok(recorder)
    }

    pub(crate) fn is_on(&self) -> bool {
        self.recorder.is_some()
    }

    /// The file that is written.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        self.recorder.as_ref().map(|recorder| recorder.file().to_path_buf())
    }

    /// `wire`, with what crosses it recorded.
    pub(crate) fn wrap(&self, wire: Box<dyn Wire>) -> Box<dyn Wire> {
        match self.recorder.as_ref().map(Recorder::carrier_log) {
            Some(log) => logged(wire, log),
            None => wire,
        }
    }

    /// Facts that belong to no step.
    pub(crate) fn facts(&mut self, facts: &[Fact]) {
        if let Some(recorder) = &mut self.recorder {
            recorder.facts(facts);
        }
    }

    /// Stores session, layout and models, before the first step.
    pub(crate) fn describe(
        &mut self,
        session: &Session,
        (mode, both): (Mode, bool),
        watch: &Watch,
        prepared: &Prepared,
    ) {
        if let Some(recorder) = &mut self.recorder {
            if let Err(why) = describe(recorder, session, (mode, both), watch, prepared) {
                return self.fail(&why);
            }
            recorder.facts(&watch.calibrated());
            // Models that the run itself has set up can be set up again.
            if let Ok(Some(meters)) = watch.run().meters() {
                recorder.measure_by(meters);
                self.measures = true;
            }
        }
        self.remember_truth(watch.events());
    }

    /// The header of the recording cannot be written: nothing is recorded.
    fn fail(&mut self, why: &dyn std::fmt::Display) {
        if let Some(recorder) = self.recorder.take() {
            self.failed = Some(format!("{}: {why}", recorder.file().display()));
        }
    }

    fn remember_truth(&mut self, events: &[stream::Event]) {
        if let Some(recorder) = &mut self.recorder {
            recorder.about(Server, "truth", json(&events));
            self.truth = events.len();
        }
    }

    /// A step was taken, or the end of the stream was found in its place.
    pub(crate) fn step(&mut self, watch: &Watch, news: &News, time: Option<Timestamp>) {
        let Some(recorder) = &mut self.recorder else { return };
        recorder.frames(&news.frames);
        let frame = watch.run().frame();
        let note = note_of(frame, &mut self.place);
        match time {
            Some(time) => {
                let Frame { continuity, label, .. } = *frame;
                let mark = StepMark { time, continuity, label };
                let sites = watch.run().sites();
                let truths = sites.map(|(site, _)| site.truth()).chain(repeat(Truth::default()));
                recorder.step(mark, note, news.readouts.iter().zip(truths).map(seen));
                if self.measures {
                    let rows = recorder.unmeasured();
                    watch.run().sites().for_each(|(site, rule)| rows.keep(site, rule));
                }
            }
            None => recorder.last_note(StepNote { place: None, ..note }),
        }
        recorder.facts(&news.facts);
        recorder.events(&news.events, &news.incidents);
        if let Some(time) = time
            && self.ledger_at.is_none_or(|at| time.duration_since(at) >= LEDGER_EVERY)
        {
            self.ledger_at = Some(time);
            store_ledgers(recorder, watch, time);
        }
        let is_large = recorder.flush_if_large();
        self.take_result(is_large);
        if watch.events().len() != self.truth {
            self.remember_truth(watch.events());
        }
    }

    /// Facts between two steps, or after the last.
    pub(crate) fn news(&mut self, news: &News) {
        let Some(recorder) = &mut self.recorder else { return };
        recorder.facts(&news.facts);
        recorder.events(&news.events, &news.incidents);
    }

    /// The stream is over, with these facts about it.
    pub(crate) fn end(&mut self, watch: &Watch, news: &News, summary: &Fact) {
        self.news(news);
        self.remember_truth(watch.events());
        let Some(recorder) = &mut self.recorder else { return };
        store_ledgers(recorder, watch, watch.run().now());
        recorder.facts(std::slice::from_ref(summary));
        recorder.stream_ended();
    }

    /// Hands everything over to the writer.
    pub(crate) fn flush(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            let result = recorder.flush();
            self.take_result(result);
        }
    }

    fn take_result(&mut self, result: Result<Vec<String>, RecordError>) {
        match result {
            Ok(notice) => self.notices.extend(notice),
            Err(error) => {
                self.recorder = None;
                self.failed = Some(error.to_string());
            }
        }
    }

    /// Messages about the recording, each once.
    pub(crate) fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// Why the recording ended, once.
    pub(crate) fn take_failure(&mut self) -> Option<String> {
        self.failed.take()
    }

    /// The run is over: closes the file.
    pub(crate) fn finish(&mut self) {
        let Some(recorder) = self.recorder.take() else { return };
        let nothing =
            (self.by_itself && recorder.is_empty()).then(|| recorder.file().to_path_buf());
        match recorder.finish() {
            Ok(notices) => self.notices.extend(notices),
            Err(error) => self.failed = Some(error.to_string()),
        }
        if let Some(file) = nothing {
            // What stays is an empty recording, which does no harm.
            let _ = std::fs::remove_file(file);
        }
    }
}

/// A session that could not be opened has a recording too, until here.
impl Drop for KeptRun {
    fn drop(&mut self) {
        self.finish();
    }
}

fn logged(wire: Box<dyn Wire>, log: CarrierLog) -> Box<dyn Wire> {
    Box::new(Logged::new(wire, log))
}

fn seen((readout, truth): (&ClientReadout, Truth)) -> Seen {
    let ClientReadout { local, server, rehearsed } = *readout;
    Seen { local, server, rehearsed, truth }
}

/// The unusual parts of a frame; `place` is where the data came from before it.
fn note_of(frame: &Frame, place: &mut stream::Place) -> StepNote {
    let text = |name: &Option<std::sync::Arc<str>>| name.as_ref().map(ToString::to_string);
    let moved = (frame.place != *place).then(|| {
        place.clone_from(&frame.place);
        (text(&place.file), text(&place.run))
    });
    StepNote { notes: frame.notes.clone(), place: moved }
}

fn store_ledgers(recorder: &mut Recorder, watch: &Watch, now: Timestamp) {
    for (client, ledger) in watch.run().ledgers().enumerate() {
        recorder.ledger(client, now, ledger, ledger_fact);
    }
}

/// Why a run could not be described.
type Undescribed = Box<dyn std::error::Error + Send + Sync>;

fn describe(
    recorder: &mut Recorder,
    session: &Session,
    (mode, both): (Mode, bool),
    watch: &Watch,
    prepared: &Prepared,
) -> Result<(), Undescribed> {
    let run = watch.run();
    describe_session(recorder, session, (mode, both), &names(run.layout()))?;
    describe_time(recorder, run.layout());
    describe_server(recorder, prepared)?;
    describe_steps(recorder, Site, run, prepared);
    if let Some(carried) = watch.carried() {
        recorder.about(Server, "carried", json(carried));
    }
    recorder.about(Site, "layout", json(watch.measurements()));
    if let Ok(models) = std::fs::read(&prepared.file) {
        recorder.about(Both, "models_sha256", digest::sha256(&models));
        recorder.model(ModelTable::Site, MODELS, models);
    }
    Ok(())
}

/// Stores the session, its origin and the version of the program.
fn describe_session(
    recorder: &mut Recorder,
    session: &Session,
    (mode, both): (Mode, bool),
    names: &[String],
) -> Result<(), Undescribed> {
    let text = ron::ser::to_string_pretty(session, ron::ser::PrettyConfig::new())?;
    let text = without_credentials(&text);
    recorder.about(Both, "session_sha256", digest::sha256(text.as_bytes()));
    recorder.about(Both, "session", text);
    recorder.about(Both, "session_name", session.name.as_str());
    recorder.about(Both, "session_folder", session.folder.to_string_lossy());
    recorder.about(Both, "seed", session.seed.to_string());
    recorder.about(Both, "seed_asked_for", json(&session.seed_asked_for));
    recorder.about(Both, "randomness", Provenance::of(session).label());
    recorder.about(Both, "program", env!("CARGO_PKG_VERSION"));
    recorder.about(Both, "begun", Timestamp::now().to_string());
    recorder.about(Both, "mode", json(&mode));
    recorder.about(Both, "both_methods", json(&both));
    recorder.about(Both, "clients", json(names));
    if let Some(history) = session.live().and_then(|_| kept::complete(session)) {
        recorder.about(Both, "calibration_version", history.version.to_string());
        recorder.about(Both, "calibration_sha256", history.digest);
    }
    if let Ok(fingerprint) = prepare::fingerprint(session) {
        recorder.about(Both, "models_fingerprint", fingerprint.to_string());
    }
    Ok(())
}

/// How far apart steps are.
fn describe_time(recorder: &mut Recorder, layout: &Layout) {
    recorder.about(Both, "period_s", json(&layout.period_s));
}

fn names(layout: &Layout) -> Vec<String> {
    layout.clients.iter().map(|client| client.name.clone()).collect()
}

/// The server's knowledge beside messages.
fn describe_server(recorder: &mut Recorder, prepared: &Prepared) -> Result<(), Undescribed> {
    recorder.about(Server, "training_from", prepared.spent.from.to_string());
    recorder.about(Server, "losses", json(&prepared.history));
    let influences = postcard::to_stdvec(&prepared.influences.of_server())?;
    recorder.model(ModelTable::Server, INFLUENCES, influences);
    Ok(())
}

/// The form of steps, for deciding them again.
fn describe_steps(recorder: &mut Recorder, table: AboutTable, run: &Run, prepared: &Prepared) {
    recorder.about(table, "step_layout", json(run.layout()));
    let thresholds: Vec<[f32; 2]> =
        run.thresholds().iter().map(|tau| [tau.tau_c, tau.tau_a]).collect();
    recorder.about(table, "thresholds", json(&thresholds));
    recorder.about(table, "repeats_freely", json(&run.repeats_freely()));
    let left_out: Vec<_> = prepared.clients.iter().map(|client| &client.left_out).collect();
    recorder.about(table, "not_watched", json(&left_out));
    recorder.about(table, "abnormal_calibration", json(&run.abnormal()));
    recorder.about(table, "unused_nominal_rows", json(&prepared.unused));
}

/// A session names the variables that hold its passwords; somebody may have written one into an
/// address all the same.
fn without_credentials(text: &str) -> String {
    let mut parts = text.split("://");
    let mut clean = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        clean.push_str("://");
        let end = part.find(['/', '"', '\n']).unwrap_or(part.len());
        let host = part[..end].rfind('@').map_or(0, |at| at + 1);
        clean.push_str(&part[host..]);
    }
    clean
}

/// Types of this program whose keys are strings can always be written.
fn json(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_stored_without_name_and_password() {
        let text = r#"input: Mqtt(broker: "mqtts://me:hush@broker.example:8883"), note: "a@b""#;
        let clean = without_credentials(text);
        assert_eq!(clean, r#"input: Mqtt(broker: "mqtts://broker.example:8883"), note: "a@b""#);
    }
}
