//! A run for a screen: measurements, each client's residuals, incidents, the log.
//!
//! Both methods are carried along, so that either can decide from any step on, and the whole run so
//! far can be decided again under other settings. It is pulled like [`Run`] and knows no clock, no
//! thread and no screen.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

mod from_recording;
mod spent;
mod tapped;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::path::Path;
use std::sync::{Arc, mpsc};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use self::from_recording::FromRecording;
use self::tapped::Tapped;
use super::knob::{Knob, Scope, Turn};
use super::prepare::Prepared;
use super::recorded::{Recorded, order_of};
use super::run::carried::Before;
use super::run::readout::ClientReadout;
use super::run::what_if::NoAnswer;
use super::run::{ActError, Run, RunError, RunOptions, Stepped, WhatIf};
use crate::evidence::threshold::{FlagThresholds, Flags};
use crate::fact::{Fact, Number};
use crate::federation::History;
use crate::incident::{AlarmState, Carried, Event, Figures, Incident, Order};
use crate::privacy::EpsilonOption;
use crate::session::{Mode, Session};
use crate::stream::resolution::Grids;
use crate::stream::{self, Frame, Layout, Part, Stream};
use crate::wire::{self, Wire};

pub(crate) use spent::Spent;

/// What is new since the last call.
#[derive(Debug, Clone, Default)]
pub(crate) struct News {
    pub(crate) frames: Vec<Frame>,
    /// Steps taken: one time each.
    pub(crate) times: Vec<Timestamp>,
    /// The readouts of each of them, a row of clients a step.
    pub(crate) readouts: Vec<ClientReadout>,
    /// The flags of every step so far, judged anew: a row of clients a step. Nothing while those that
    /// came with the steps still stand.
    pub(crate) flags: Option<Vec<Option<Flags>>>,
    /// Incidents that are new or have changed, each as it stands now.
    pub(crate) incidents: Vec<Incident>,
    /// The same step by step: how each stood after which step.
    pub(crate) versions: Vec<(Timestamp, Incident)>,
    /// The sensors of a client that takes part in an incident, those that deviate most first, after
    /// which step.
    pub(crate) ranked: Vec<(Timestamp, usize, Vec<String>)>,
    pub(crate) events: Vec<Event>,
    pub(crate) facts: Vec<Fact>,
}

impl News {
    /// Appends `later`, which is empty then and keeps its room. Every field is named, so that none is
    /// left behind; frames go their own way.
    pub(super) fn append(&mut self, later: &mut Self) {
        let Self { frames: _, times, readouts, flags, incidents, versions, ranked, events, facts } =
            later;
        self.times.append(times);
        self.readouts.append(readouts);
        self.flags = flags.take().or(self.flags.take());
        for incident in incidents.drain(..) {
            self.incidents.retain(|earlier| earlier.number != incident.number);
            self.incidents.push(incident);
        }
        self.incidents.sort_by_key(|incident| incident.number);
        self.versions.append(versions);
        self.ranked.append(ranked);
        self.events.append(events);
        self.facts.append(facts);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
            && self.times.is_empty()
            && self.events.is_empty()
            && self.facts.is_empty()
            && self.incidents.is_empty()
            && self.flags.is_none()
    }
}

/// How everything stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    pub(crate) mode: Mode,
    pub(crate) steps: u64,
    /// Rows of the data that were not used.
    pub(crate) unused_rows: u64,
    /// Rows of the nominal data that were not used.
    pub(crate) unused_nominal_rows: u64,
    /// Wild values that were taken out of the nominal data.
    pub(crate) wild_nominal_values: u64,
    pub(crate) figures: Figures,
    /// How each client's alarm stands.
    pub(crate) clients: Vec<AlarmState>,
    /// Thresholds of every client as squared distances.
    pub(crate) thresholds: Vec<FlagThresholds>,
    /// Steps of nothing but the strongest symbol after which each client alarms, where symbols decide.
    #[serde(default)]
    pub(crate) alarm_steps: Vec<Option<Number>>,
    /// Every knob and how it stands.
    pub(crate) knobs: Vec<Turn>,
    /// The sensors of each client that deviate most, the first ones first.
    pub(crate) sensors: Vec<Vec<String>>,
    /// The privacy cost of each client, as of a few minutes ago at most.
    #[serde(with = "spent::shared")]
    pub(crate) spent: Arc<[Spent]>,
    /// The effect of other ε of the symbols or flags that are sent now.
    #[serde(with = "spent::shared")]
    pub(crate) ladder: Arc<[EpsilonOption]>,
    /// States of each client's sending model.
    pub(crate) states: Vec<usize>,
    /// The entry of the log that undoing would take back.
    pub(crate) undoable: Option<u64>,
    /// The entry of the log that redoing would bring back.
    pub(crate) redoable: Option<u64>,
}

/// A session being watched.
pub(crate) struct Watch {
    run: Run,
    raw: Layout,
    frames: mpsc::Receiver<Frame>,
    /// A screen follows the run and may look back.
    looked_at: bool,
    /// Events that were handed on.
    events: usize,
    /// The state that the run before left, until the first step.
    before: Option<Before>,
    /// The parts that come from the recording.
    recorded: Option<FromRecording>,
    /// The last step, and what was spent at the last call.
    last: Option<Timestamp>,
    spent: RefCell<Option<(Timestamp, Arc<[Spent]>)>>,
    /// The effect of other ε.
    ladder: RefCell<Option<Priced>>,
}

/// Options of ε, with the knobs they were worked out for.
type Priced = ([Turn; 3], Arc<[EpsilonOption]>);

impl Watch {
    /// Sets up sites and server, and stands before the first step.
    ///
    /// With `with_frames` measurements are handed on as they come.
    pub(crate) fn open(
        session: &Session,
        prepared: &Prepared,
        options: RunOptions,
        with_frames: bool,
    ) -> Result<Self, RunError> {
        let stream = Grids::of(session)?.open(session, Part::Replay)?;
        Self::over(stream, session, prepared, options, with_frames)
    }

    /// The same over measurements that arrive now.
    pub(crate) fn live(
        stream: Box<dyn Stream>,
        session: &Session,
        prepared: &Prepared,
        options: RunOptions,
        with_frames: bool,
    ) -> Result<Self, RunError> {
        let stream = Grids::of(session)?.rounded(stream);
        Self::over(stream, session, prepared, options, with_frames)
    }

    fn over(
        mut stream: Box<dyn Stream>,
        session: &Session,
        prepared: &Prepared,
        options: RunOptions,
        with_frames: bool,
    ) -> Result<Self, RunError> {
        let raw = stream.layout().clone();
        let (sender, frames) = mpsc::channel();
        if with_frames {
            stream = Box::new(Tapped { stream, frames: sender });
        }
        let run = Run::over(stream, session, prepared, options)?;
        let (spent, ladder) = (RefCell::new(None), RefCell::new(None));
        let looked_at = with_frames;
        let (recorded, before, last) = (None, None, None);
        Ok(Self { run, raw, frames, looked_at, events: 0, before, recorded, last, spent, ladder })
    }

    /// The run of a recording again. With `keep` it can be decided under other settings.
    pub(crate) fn recorded(recorded: Recorded, keep: bool) -> Result<Self, RunError> {
        Self::recorded_over(recorded, keep, |wire| Box::new(wire))
    }

    /// The same over a carrier that is made of that of the recording.
    pub(super) fn recorded_over(
        mut recorded: Recorded,
        keep: bool,
        wrap: impl FnOnce(wire::RecordedWire) -> Box<dyn Wire>,
    ) -> Result<Self, RunError> {
        let mut run = Run::recorded(&mut recorded, keep, wrap)?;
        let (sender, frames) = mpsc::channel();
        let raw = if let Some(raw) = &recorded.measured {
            raw.clone()
        } else {
            run.tap(|stream| Box::new(Tapped { stream, frames: sender }));
            run.layout().clone()
        };
        let (spent, ladder) = (RefCell::new(None), RefCell::new(None));
        let carried = recorded.carried.take();
        let before = carried.map(|carried| Before { carried, ..Before::default() });
        let recorded = Some(FromRecording {
            file: recorded.file,
            frames: recorded.frames,
            first: recorded.first,
            readouts: recorded.readouts,
            orders: recorded.orders,
            losses: recorded.losses,
            ended: recorded.summary.is_some(),
        });
        let (looked_at, last) = (true, None);
        Ok(Self { run, raw, frames, looked_at, events: 0, before, recorded, last, spent, ladder })
    }

    /// The file, where it is the run of a recording.
    pub(crate) fn recording(&self) -> Option<&Path> {
        self.recorded.as_ref().map(|recorded| recorded.file.as_path())
    }

    /// The course of training, as a recording holds it.
    pub(super) fn recorded_losses(&self) -> Option<&History> {
        self.recorded.as_ref()?.losses.as_ref()
    }

    /// The layout of measurements as they come.
    pub(crate) fn measurements(&self) -> &Layout {
        &self.raw
    }

    pub(crate) fn period_s(&self) -> f64 {
        self.run.layout().period_s
    }

    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    /// The run itself, for what is kept beside it.
    pub(super) fn run_mut(&mut self) -> &mut Run {
        &mut self.run
    }

    /// Disturbances that the data is known to hold.
    pub(crate) fn events(&self) -> &[stream::Event] {
        self.run.events()
    }

    /// The thresholds of every client, as facts.
    pub(crate) fn calibrated(&self) -> Vec<Fact> {
        self.run.calibrated()
    }

    /// Takes the next step and adds what is new; its time, or none at the end.
    #[cfg(test)]
    pub(crate) fn step(&mut self, news: &mut News) -> Result<Option<Timestamp>, RunError> {
        loop {
            match self.poll(news)? {
                Stepped::Taken(time) => return Ok(Some(time)),
                Stepped::End => return Ok(None),
                Stepped::NotYet => {}
            }
        }
    }

    /// Takes the next step, if its measurements have arrived, and adds what is new.
    pub(crate) fn poll(&mut self, news: &mut News) -> Result<Stepped, RunError> {
        let step = self.run.poll(&mut news.facts);
        news.frames.extend(self.frames.try_iter());
        let step = step?;
        if let Stepped::Taken(time) = step {
            self.last = Some(time);
            news.times.push(time);
            let seen = news.readouts.len();
            news.readouts.extend_from_slice(self.run.readouts());
            if let Some(recorded) = &mut self.recorded {
                recorded.add(
                    self.run.steps(),
                    time,
                    (&mut news.readouts[seen..], &mut news.frames),
                );
            }
            if let Some(before) = self.before.take() {
                self.resume(&before, news);
            }
            self.obey_recorded_orders(false, news);
        }
        self.add_changes(news);
        Ok(step)
    }

    /// A person enters the run here: what is over by now asks for nothing.
    pub(crate) fn enter_here(&mut self, news: &mut News) {
        self.run.enter_here();
        self.add_changes(news);
    }

    /// Goes on where the run before ended, after the first step.
    pub(super) fn go_on_from(&mut self, before: Option<Before>) {
        self.before = before;
    }

    /// The state that is taken over from the run before, until the first step.
    pub(super) fn carried(&self) -> Option<&Carried> {
        self.before.as_ref().map(|before| &before.carried)
    }

    fn resume(&mut self, before: &Before, news: &mut News) {
        news.facts.push(self.run.resume(&before.carried));
        // Settings and words stand among the orders of a recording.
        if self.recorded.is_some() {
            return;
        }
        let sites = self.run.resume_normals(&before.normals);
        if sites > 0 {
            let said = format!("{sites} clients live with what was accepted before the restart");
            news.facts.extend(self.run.note(&said));
        } else if before.normals_lost {
            let said =
                "what was accepted as normal before the restart is forgotten: models are others";
            news.facts.extend(self.run.note(said));
        }
        self.run.resume_settings(before.carried.settings(), &mut news.facts);
    }

    /// Enters a word about the source in the log, once there is a log.
    pub(crate) fn note(&mut self, what: &str, news: &mut News) {
        news.facts.extend(self.run.note(what));
        self.add_changes(news);
    }

    /// The run is over: closes what is open.
    pub(crate) fn end(&mut self, news: &mut News) {
        // The run was killed: nothing is known of its end.
        if self.recorded.as_ref().is_some_and(|recorded| !recorded.ended) {
            return;
        }
        news.facts.append(&mut self.run.end());
        self.obey_recorded_orders(true, news);
        self.add_changes(news);
    }

    /// The orders of operators at this step when the recording was made.
    fn obey_recorded_orders(&mut self, after_end: bool, news: &mut News) {
        let step = self.run.steps();
        let Some(recorded) = &mut self.recorded else { return };
        while let Some(stored) = recorded.orders.front()
            && stored.step <= step
            && (after_end || !stored.after_end)
            && let Some(event) = recorded.orders.pop_front().map(|stored| stored.event)
        {
            if let Some(said) = event.outside_note() {
                news.facts.extend(self.run.note(said));
                continue;
            }
            let Some(order) = order_of(event) else { continue };
            match self.run.act(order) {
                Ok(mut facts) => news.facts.append(&mut facts),
                // It was carried out then: the run is not the same any more, which its facts show.
                Err(why) => news.facts.push(self.run.refused_again(&why)),
            }
        }
    }

    /// Carries out what an operator orders.
    pub(crate) fn act(&mut self, order: Order, news: &mut News) -> Result<(), ActError> {
        let said = news.facts.len();
        news.facts.append(&mut self.run.act(order)?);
        if news.facts[said..].iter().any(|fact| self.judges_flags(fact)) {
            news.flags = Some(self.run.flags_so_far());
        }
        self.spent.replace(None);
        self.add_changes(news);
        Ok(())
    }

    /// Whether a fact is a setting that decides about flags.
    fn judges_flags(&self, fact: &Fact) -> bool {
        let Fact::Setting(setting) = fact else { return false };
        let knob = Knob::named(&setting.what, self.run.annunciator().names());
        knob.is_some_and(|knob| knob.row().scope == Scope::Flags)
    }

    /// The run so far under the settings that stand now.
    pub(crate) fn so_far(&self) -> WhatIf {
        self.run.so_far()
    }

    /// The run so far with one knob turned from its start.
    pub(crate) fn what_if(&self, turn: Turn) -> Result<WhatIf, NoAnswer> {
        self.run.what_if(turn)
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let annunciator = self.run.annunciator();
        let clients = annunciator.names().len();
        Snapshot {
            mode: self.run.mode(),
            steps: self.run.steps(),
            unused_rows: self.run.unused_rows().rows,
            unused_nominal_rows: self.run.unused_nominal().rows,
            wild_nominal_values: self.run.unused_nominal().wild_values,
            figures: annunciator.figures(),
            clients: (0..clients).map(|m| annunciator.client_state(m)).collect(),
            thresholds: self.run.thresholds().to_vec(),
            alarm_steps: (0..clients).map(|m| self.run.alarm_steps(m)).collect(),
            knobs: Knob::all(clients).into_iter().map(|knob| self.run.turned(knob)).collect(),
            sensors: (0..clients).map(|m| self.run.ranked_sensors(m)).collect(),
            spent: self.spent(),
            ladder: self.ladder(),
            states: (0..clients).map(|m| self.run.states(m)).collect(),
            undoable: annunciator.log().last_undoable(),
            redoable: annunciator.log().last_redoable(),
        }
    }

    /// The privacy cost of clients is composed anew at the next call: a picture of a moment
    /// does not depend on earlier calls.
    pub(super) fn compose_anew(&self) {
        self.spent.replace(None);
    }

    /// The privacy cost of clients, composed anew only where it has grown old.
    fn spent(&self) -> Arc<[Spent]> {
        let now = self.last.unwrap_or(Timestamp::UNIX_EPOCH);
        let mut kept = self.spent.borrow_mut();
        if let Some((at, spent)) = kept.as_ref()
            && now.duration_since(*at).abs() < spent::FRESH
        {
            return Arc::clone(spent);
        }
        let spent: Arc<[Spent]> = self.run.ledgers().map(|ledger| Spent::of(ledger, now)).collect();
        *kept = Some((now, Arc::clone(&spent)));
        spent
    }

    /// The effect of other ε, worked out anew only where a knob has changed that it depends on.
    fn ladder(&self) -> Arc<[EpsilonOption]> {
        let knobs = [Knob::Mode, Knob::Arl0, Knob::Delta].map(|knob| self.run.turned(knob));
        let mut kept = self.ladder.borrow_mut();
        if let Some((_, ladder)) = kept.as_ref().filter(|(of, _)| *of == knobs) {
            return Arc::clone(ladder);
        }
        // Settings that a session was checked for can be priced.
        let ladder: Arc<[EpsilonOption]> = self.run.ladder().unwrap_or_default().into();
        *kept = Some((knobs, Arc::clone(&ladder)));
        ladder
    }

    fn add_changes(&mut self, news: &mut News) {
        let now = self.last.unwrap_or(Timestamp::UNIX_EPOCH);
        for incident in self.run.take_changed_incidents() {
            if self.looked_at {
                news.versions.push((now, incident.clone()));
            }
            news.incidents.retain(|earlier| earlier.number != incident.number);
            news.incidents.push(incident);
        }
        news.incidents.sort_by_key(|incident| incident.number);
        if self.looked_at {
            let open = self.run.annunciator().open_incidents();
            let members = open.flat_map(|incident| incident.members.iter());
            let ranked = members.map(|m| (now, m.client, self.run.ranked_sensors(m.client)));
            news.ranked.extend(ranked.filter(|(.., sensors)| !sensors.is_empty()));
        }
        let events = self.run.annunciator().log().events();
        news.events.extend_from_slice(&events[self.events..]);
        self.events = events.len();
    }
}
