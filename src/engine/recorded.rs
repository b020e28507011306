//! A recording as the source of a run: its messages go through the server again, and what sites showed
//! on their own machines comes from their tables.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;

use super::influence::OfServer;
use super::knob::Knob;
use super::prepare::{self, Prepared};
use crate::evidence::threshold::FlagThresholds;
use crate::fact::{Fact, Summary};
use crate::federation::History;
use crate::incident::action::SCHEDULE;
use crate::incident::{Carried, Edit, Event, Order, What};
use crate::record::batch::AboutTable::{Both, Server};
use crate::record::batch::ModelTable;
use crate::record::recording::StoredEvent;
use crate::record::{Holds, RecordError, Recording, Seen, StepMark, StepNote};
use crate::session::{Mode, Session};
use crate::site::material::LeftOut;
use crate::site::{LocalView, Truth};
use crate::stream::{self, Continuity, Frame, Layout, Place, Stream, StreamError, UnusedRows};
use crate::wire::RecordedWire;

mod cut;

/// How a note about something that was not sent begins.
pub(super) const NOT_SENT: &str = "nothing was sent: ";

/// Models of sites and server in one file, as they are kept beside a session.
pub(super) const MODELS: &str = "models";
/// Who influences whom, as the server learned it.
pub(super) const INFLUENCES: &str = "influences";

/// A recording, read for a run over it.
pub(crate) struct Recorded {
    pub(super) file: PathBuf,
    pub(crate) session: Session,
    /// The method that decided at the start.
    pub(crate) mode: Mode,
    pub(super) layout: Layout,
    /// The layout of measurements, where they are stored.
    pub(super) measured: Option<Layout>,
    pub(super) frames: VecDeque<Frame>,
    /// The number of the first step that is still there: 1 unless the file had become too large.
    pub(super) first: u64,
    /// What was removed at that limit.
    missing: Vec<String>,
    holds: Holds,
    pub(super) steps: Vec<StepMark>,
    pub(super) notes: VecDeque<(u64, StepNote)>,
    /// The readouts of every step, a row of clients each.
    pub(super) readouts: Arc<[Seen]>,
    /// The course of training.
    pub(super) losses: Option<History>,
    /// Models of sites and server as bytes, where they are stored and were not read yet.
    models: Option<Vec<u8>>,
    prepared: Option<Arc<Prepared>>,
    /// Everything that crossed between sites and server.
    pub(super) log: Vec<u8>,
    pub(super) influences: OfServer,
    pub(super) thresholds: Vec<FlagThresholds>,
    pub(super) left_out: Vec<Vec<(String, LeftOut)>>,
    pub(super) abnormal: Vec<Option<String>>,
    pub(super) unused_nominal: UnusedRows,
    pub(super) truth: Vec<stream::Event>,
    pub(super) training_from: Timestamp,
    pub(super) repeats_freely: bool,
    /// The state that the run took over from the one before it.
    pub(super) carried: Option<Carried>,
    /// Orders of operators and notes from outside, with the step at which they came.
    pub(super) orders: VecDeque<StoredEvent>,
    /// Why something was not sent, with the step.
    pub(super) troubles: VecDeque<(u64, String)>,
    /// The privacy cost of clients at the end.
    pub(super) ledgers: Vec<Fact>,
    /// Rounds of training, as facts.
    pub(crate) training: Vec<Fact>,
    /// The last fact, where the run came to its end.
    pub(crate) summary: Option<Summary>,
}

impl Recorded {
    pub(crate) fn read(recording: &Recording) -> Result<Self, RecordError> {
        recording.needs_server()?;
        let holds = recording.holds()?;
        let layout: Layout = recording.value_of_steps("step_layout")?;
        let steps = recording.steps()?;
        let session = recording.session()?;
        let readouts = readouts(recording, &session, (steps.len(), layout.clients.len()))?;
        let (mut ledgers, mut training, mut summary) = (Vec::new(), Vec::new(), None);
        for stored in recording.facts()? {
            let fact = Fact::from_line(&stored.line)
                .map_err(|why| recording.damaged(format!("a fact: {why}")))?;
            match fact {
                Fact::Ledger(_) => ledgers.push(fact),
                Fact::Training(_) => training.push(fact),
                Fact::Summary(said) => summary = Some(*said),
                Fact::Calibrated(_)
                | Fact::Opened(_)
                | Fact::Updated(_)
                | Fact::Closed(_)
                | Fact::Setting(_)
                | Fact::Verdict(_)
                | Fact::Quality(_) => {}
            }
        }
        let events = recording.events()?;
        let trouble = |stored: &StoredEvent| {
            let What::Noted { client: None, text } = &stored.event.what else { return None };
            Some((stored.step, text.strip_prefix(NOT_SENT)?.to_owned()))
        };
        let measured: Layout = recording.value_of_steps("layout")?;
        let frames = recording.frames(measured.width())?;
        let thresholds: Vec<[f32; 2]> = recording.value_of_steps("thresholds")?;
        let influences = recording.model(ModelTable::Server, INFLUENCES)?;
        let influences = influences.ok_or_else(|| recording.damaged("no influences are stored"))?;
        let influences = postcard::from_bytes(&influences)
            .map_err(|why| recording.damaged(format!("who influences whom: {why}")))?;
        let training_from = recording.known(Server, "training_from")?;
        let mut recorded = Self {
            first: recording.kept_from()?,
            models: recording.model(ModelTable::Site, MODELS)?,
            prepared: None,
            missing: recording.missing()?,
            losses: recording.value(Server, "losses")?,
            holds,
            file: recording.file().to_path_buf(),
            session,
            mode: recording.value(Both, "mode")?,
            measured: (!frames.is_empty()).then_some(measured),
            frames: frames.into(),
            notes: recording.notes()?.into(),
            log: recording.messages()?,
            influences,
            thresholds: thresholds
                .into_iter()
                .map(|[tau_c, tau_a]| FlagThresholds { tau_c, tau_a })
                .collect(),
            left_out: recording.value_of_steps("not_watched")?,
            abnormal: recording.maybe_of_steps("abnormal_calibration")?.unwrap_or_default(),
            unused_nominal: recording.value_of_steps("unused_nominal_rows")?,
            truth: recording.value(Server, "truth")?,
            training_from: training_from
                .parse()
                .map_err(|why| recording.damaged(format!("a time: {why}")))?,
            repeats_freely: recording.value_of_steps("repeats_freely")?,
            troubles: events.iter().filter_map(trouble).collect(),
            orders: events.into_iter().filter(|stored| comes_from_outside(&stored.event)).collect(),
            carried: recording.maybe(Server, "carried")?,
            layout,
            steps,
            readouts: readouts.into(),
            ledgers,
            training,
            summary,
        };
        if recorded.first > 1 {
            cut::begin_later(&mut recorded, recording)?;
        }
        Ok(recorded)
    }

    /// What the reader of the recording must know.
    pub(super) fn notice(&self) -> Option<String> {
        let file = self.file.display();
        if self.holds == Holds::Server && self.missing.is_empty() {
            return Some(format!(
                "{file} is the recording of a server: distances, norms and ledgers are not in it, and are \
                 not shown"
            ));
        }
        let missing = (!self.missing.is_empty()).then(|| self.missing.join("; "))?;
        let mut said = format!("{file} had become too large, and these were removed: {missing}");
        if self.first > 1 {
            said.push_str(
                ". What is shown is decided again from there on; `headwater run` prints all stored facts",
            );
        }
        Some(said)
    }

    /// Drops the orders after a moment. Returns whether any of them changed what sites sent.
    pub(super) fn forget_orders_after(&mut self, moment: Timestamp) -> bool {
        let names: Vec<String> =
            self.layout.clients.iter().map(|client| client.name.clone()).collect();
        let reaches_sites = |what: &String| {
            let knob = Knob::named(what, &names);
            knob.is_some_and(|knob| !matches!(knob, Knob::Vote | Knob::Arl0))
        };
        let changes = |event: &Event| {
            let mut settings = event.edits.iter();
            settings.any(|edit| matches!(edit, Edit::Setting { what, .. } if reaches_sites(what)))
        };
        let mut changed = false;
        self.orders.retain(|stored| {
            let stays = stored.event.time < moment && !stored.after_end;
            changed |= !stays && changes(&stored.event);
            stays
        });
        changed
    }

    /// Its models, read once. Models of another program are done without.
    pub(super) fn models(&mut self) -> Option<Arc<Prepared>> {
        if let Some(models) = self.models.take() {
            let prepared = prepare::from_bytes(&self.session, &self.file, &models);
            self.prepared = prepared.ok().map(Arc::new);
        }
        self.prepared.clone()
    }

    /// The carrier that delivers its messages again.
    pub(super) fn take_wire(&mut self) -> Result<RecordedWire, crate::wire::DecodeError> {
        RecordedWire::new(std::mem::take(&mut self.log))
    }

    /// Its steps as a stream of frames in which nothing is measured.
    pub(super) fn take_stream(&mut self) -> RecordedSteps {
        RecordedSteps {
            layout: self.layout.clone(),
            steps: std::mem::take(&mut self.steps).into_iter(),
            notes: std::mem::take(&mut self.notes),
            truth: std::mem::take(&mut self.truth),
            place: Place::default(),
            step: self.first - 1,
        }
    }
}

/// The readouts of so many steps of so many clients, a row of clients each.
fn readouts(
    recording: &Recording,
    session: &Session,
    (steps, clients): (usize, usize),
) -> Result<Vec<Seen>, RecordError> {
    let has_sites = recording.holds()?.has_sites();
    let protects = session.privacy.protects_flags();
    let mut readouts = vec![Seen::default(); steps * clients];
    for client in 0..clients {
        let (mut local, decided) = (recording.residuals(client)?, recording.decisions(client)?);
        if !has_sites {
            local.resize(steps, LocalView::default());
        }
        let mut truth = recording.truths(client)?;
        // Older recordings have none.
        if truth.is_empty() {
            truth.resize(steps, Truth::default());
        }
        if [local.len(), decided.len(), truth.len()].iter().any(|n| *n != steps) {
            return Err(recording.damaged("some steps of a client are missing"));
        }
        let rows = readouts.iter_mut().skip(client).step_by(clients);
        for (((readout, local), [server, rehearsed]), truth) in
            rows.zip(local).zip(decided).zip(truth)
        {
            let mut seen = Seen { local, server, rehearsed, truth };
            // Flags that were neither sent nor rehearsed are those of the site, where nothing hides them.
            if !protects && server.flags.is_none() {
                seen.rehearsed.flags = rehearsed.flags.or(truth.flags);
            }
            *readout = seen;
        }
    }
    Ok(readouts)
}

/// The operators' orders, and words about the source, among events: neither follows from messages. What
/// the session's plan ordered is ordered by it again.
fn comes_from_outside(event: &Event) -> bool {
    let is_order = matches!(event.what, What::Did(_)) && event.who.as_deref() != Some(SCHEDULE);
    is_order || event.outside_note().is_some()
}

/// The order that an entry of the log was.
pub(super) fn order_of(event: Event) -> Option<Order> {
    let Event { who, what, why, .. } = event;
    let What::Did(action) = what else { return None };
    Some(Order { who: who.unwrap_or_default(), action, why })
}

/// The time grid of a recording, without measurements.
pub(super) struct RecordedSteps {
    layout: Layout,
    steps: std::vec::IntoIter<StepMark>,
    notes: VecDeque<(u64, StepNote)>,
    truth: Vec<stream::Event>,
    place: Place,
    step: u64,
}

impl Stream for RecordedSteps {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        self.step += 1;
        frame.notes.clear();
        let mark = self.steps.next();
        if mark.is_none() {
            frame.continuity = Continuity::Next;
        }
        if self.notes.front().is_some_and(|(step, _)| *step == self.step)
            && let Some((_, note)) = self.notes.pop_front()
        {
            frame.notes = note.notes;
            if let Some((file, run)) = note.place {
                self.place = Place { file: file.map(Arc::from), run: run.map(Arc::from) };
            }
        }
        let Some(StepMark { time, continuity, label }) = mark else { return Ok(false) };
        (frame.time, frame.continuity, frame.label) = (time, continuity, label);
        frame.place.clone_from(&self.place);
        Ok(true)
    }

    fn events(&self) -> &[stream::Event] {
        &self.truth
    }
}
