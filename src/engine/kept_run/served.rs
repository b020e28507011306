//! The recording of a server whose sites are processes of their own: its messages and decisions.

use std::path::Path;

use jiff::Timestamp;

use super::{
    Both, KeptRun, RecordTo, Server, describe_server, describe_session, describe_steps,
    describe_time, json, names, note_of, seen,
};
use crate::base::digest;
use crate::engine::prepare::Prepared;
use crate::engine::run::Run;
use crate::fact::Fact;
use crate::incident::Event;
use crate::record::{Holds, StepMark, StepNote};
use crate::session::{Mode, Session};
use crate::site::Truth;
use crate::stream::Frame;
use crate::wire::Wire;

/// A server's recording, if it has one. What prevents it is reported, and the run goes on.
#[derive(Debug, Default)]
pub(crate) struct ServerRecording {
    kept: KeptRun,
    /// Entries of the log that were stored.
    events: usize,
}

impl ServerRecording {
    pub(crate) fn open(session: &Session, file: Option<&Path>) -> Self {
        let to = file.map(|file| RecordTo::File(file.to_path_buf()));
        Self { kept: KeptRun::open(session, to.as_ref(), Holds::Server), events: 0 }
    }

    /// `wire`, with what crosses it recorded.
    pub(crate) fn wrap(&self, wire: Box<dyn Wire>) -> Box<dyn Wire> {
        self.kept.wrap(wire)
    }

    /// Stores session, layout and models, before the first step.
    pub(crate) fn describe(
        &mut self,
        session: &Session,
        mode: Mode,
        run: &Run,
        prepared: &Prepared,
    ) {
        let Some(recorder) = &mut self.kept.recorder else { return };
        let described = describe_session(recorder, session, (mode, false), &names(run.layout()))
            .and_then(|()| describe_server(recorder, prepared));
        if let Err(why) = described {
            return self.kept.fail(&why);
        }
        describe_time(recorder, run.layout());
        // Nothing of a site is known here but what its steps look like.
        describe_steps(recorder, Server, run, prepared);
        recorder.about(Server, "layout", json(run.layout()));
        recorder.about(Server, "truth", json(run.events()));
        if let Ok(models) = std::fs::read(&prepared.file) {
            recorder.about(Both, "models_sha256", digest::sha256(&models));
        }
        recorder.facts(&run.calibrated());
    }

    /// A step was taken, or the end was found in its place, with these facts.
    pub(crate) fn step(&mut self, run: &mut Run, time: Option<Timestamp>, facts: &[Fact]) {
        let Some(recorder) = &mut self.kept.recorder else { return };
        let note = note_of(run.frame(), &mut self.kept.place);
        match time {
            Some(time) => {
                let Frame { continuity, label, .. } = *run.frame();
                let mark = StepMark { time, continuity, label };
                let readouts = run.readouts().iter();
                recorder.step(
                    mark,
                    note,
                    readouts.map(|readout| seen((readout, Truth::default()))),
                );
            }
            None => recorder.last_note(StepNote { place: None, ..note }),
        }
        self.store(run, facts);
        // Sites set the pace: it is not known when the next step comes.
        self.kept.flush();
    }

    fn store(&mut self, run: &mut Run, facts: &[Fact]) {
        let incidents = run.take_changed_incidents();
        let events: &[Event] = run.annunciator().log().events();
        if let Some(recorder) = &mut self.kept.recorder {
            recorder.facts(facts);
            recorder.events(&events[self.events..], &incidents);
        }
        self.events = events.len();
    }

    /// The run is over, with these facts about it.
    pub(crate) fn end(&mut self, run: &mut Run, facts: &[Fact], summary: Fact) {
        self.store(run, facts);
        if let Some(recorder) = &mut self.kept.recorder {
            recorder.facts(&[summary]);
        }
        self.kept.finish();
    }

    /// Messages about the recording, each once: notices, and why it ended early.
    pub(crate) fn take_words(&mut self) -> (Vec<String>, Option<String>) {
        (self.kept.take_notices(), self.kept.take_failure())
    }
}
