//! A recording as the source of a run: its messages go through the server again, and what sites showed
//! on their own machines comes from their tables.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;

use super::influence::OfServer;
use crate::evidence::threshold::FlagThresholds;
use crate::fact::{Fact, Summary};
use crate::incident::action::SCHEDULE;
use crate::incident::{Event, Order, What};
use crate::record::batch::AboutTable::{Both, Server, Site};
use crate::record::recording::StoredEvent;
use crate::record::{RecordError, Recording, Seen, StepMark, StepNote};
use crate::session::{Mode, Session};
use crate::site::material::LeftOut;
use crate::stream::{self, Continuity, Frame, Layout, Place, Stream, StreamError, UnusedRows};
use crate::wire::Recorded as RecordedWire;

/// How a note about something that was not sent begins.
pub(super) const NOT_SENT: &str = "nothing was sent: ";

/// A recording, read for a run over it.
pub(crate) struct Recorded {
    pub(crate) session: Session,
    /// The method that decided at the start.
    pub(crate) mode: Mode,
    pub(super) layout: Layout,
    /// What measurements look like, where they are stored.
    pub(super) measured: Option<Layout>,
    pub(super) frames: VecDeque<Frame>,
    pub(super) steps: Vec<StepMark>,
    pub(super) notes: VecDeque<(u64, StepNote)>,
    /// What was seen at every step, a row of clients each.
    pub(super) readouts: Vec<Seen>,
    /// Everything that crossed between sites and server.
    pub(super) log: Vec<u8>,
    pub(super) influences: OfServer,
    pub(super) thresholds: Vec<FlagThresholds>,
    pub(super) left_out: Vec<Vec<(String, LeftOut)>>,
    pub(super) unused_nominal: UnusedRows,
    pub(super) truth: Vec<stream::Event>,
    pub(super) training_from: Timestamp,
    pub(super) repeats_freely: bool,
    /// What operators ordered, with the step they ordered it at.
    pub(super) orders: VecDeque<StoredEvent>,
    /// Why something was not sent, with the step.
    pub(super) troubles: VecDeque<(u64, String)>,
    /// What clients had given away at the end.
    pub(super) ledgers: Vec<Fact>,
    /// Rounds of training, as facts.
    pub(crate) training: Vec<Fact>,
    /// The last fact, where the run came to its end.
    pub(crate) summary: Option<Summary>,
}

impl Recorded {
    pub(crate) fn read(recording: &Recording) -> Result<Self, RecordError> {
        let kept_from = recording.kept_from()?;
        if kept_from > 1 {
            return Err(recording.damaged(format!(
                "its messages before step {kept_from} were removed when it had become too large: \
                 it cannot be decided again"
            )));
        }
        let layout: Layout = recording.value(Site, "step_layout")?;
        let steps = recording.steps()?;
        let clients = layout.clients.len();
        let mut readouts = vec![Seen::default(); steps.len() * clients];
        for client in 0..clients {
            let (local, decided) = (recording.residuals(client)?, recording.decisions(client)?);
            if local.len() != steps.len() || decided.len() != steps.len() {
                return Err(recording.damaged("some steps of a client are missing"));
            }
            let rows = readouts.iter_mut().skip(client).step_by(clients);
            for ((readout, local), [server, rehearsed]) in rows.zip(local).zip(decided) {
                *readout = Seen { local, server, rehearsed };
            }
        }
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
        let trouble = |stored: &StoredEvent| match &stored.event.what {
            What::Noted { client: None, text } => {
                Some((stored.step, text.strip_prefix(NOT_SENT)?.to_owned()))
            }
            _ => None,
        };
        let measured: Layout = recording.value(Site, "layout")?;
        let frames = recording.frames(measured.width())?;
        let thresholds: Vec<[f32; 2]> = recording.value(Site, "thresholds")?;
        let influences = postcard::from_bytes(&recording.model("influences")?)
            .map_err(|why| recording.damaged(format!("who influences whom: {why}")))?;
        let training_from = recording.known(Server, "training_from")?;
        Ok(Self {
            session: recording.session()?,
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
            left_out: recording.value(Site, "not_watched")?,
            unused_nominal: recording.value(Site, "unused_nominal_rows")?,
            truth: recording.value(Server, "truth")?,
            training_from: training_from
                .parse()
                .map_err(|why| recording.damaged(format!("a time: {why}")))?,
            repeats_freely: recording.value(Site, "repeats_freely")?,
            troubles: events.iter().filter_map(trouble).collect(),
            orders: events.into_iter().filter(|stored| is_order(&stored.event)).collect(),
            layout,
            steps,
            readouts,
            ledgers,
            training,
            summary,
        })
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
            step: 0,
        }
    }
}

/// The operators' orders among events. What the session's plan ordered is ordered by it again.
fn is_order(event: &Event) -> bool {
    matches!(event.what, What::Did(_)) && event.who.as_deref() != Some(SCHEDULE)
}

/// The order that an entry of the log was.
pub(super) fn order_of(event: Event) -> Option<Order> {
    let Event { who, what, why, .. } = event;
    match what {
        What::Did(action) => Some(Order { who: who.unwrap_or_default(), action, why }),
        _ => None,
    }
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
