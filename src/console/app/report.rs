//! What the engine reports, and what becomes of it on the screen.

use super::super::measured::Measured;
use super::super::remark::Remark;
use super::super::text::clean;
use super::super::watched::Watched;
use super::{Effect, Model, Stage, Tuning};
use crate::engine::handle::{Command, EngineEvent, RecordState, Update};
use crate::fact::Priority;

pub(super) fn learn(model: &mut Model, report: EngineEvent) -> Option<Effect> {
    match report {
        EngineEvent::Notice(notice) => model.message(notice),
        EngineEvent::Recording(state) => {
            if let RecordState::Failed(why) = &state {
                model.failure(format!("not recorded: {why}"));
            }
            model.recording = Some(state);
        }
        EngineEvent::Training(training) => model.course.take(training),
        EngineEvent::Opened(opened) => {
            let clients = &opened.layout.clients;
            model.raw_names = clients.iter().map(|client| client.name.clone()).collect();
            model.names = model.raw_names.iter().map(|name| clean(name)).collect();
            model.measured = Some(Measured::new(&opened));
            model.watched = Some(Watched::new(clients.len(), opened.period_s));
            (model.prepared, model.losses) = (opened.prepared, opened.losses);
            model.stage = Stage::Reading;
            model.zoom = model.zoom.max(model.finest_zoom());
        }
        EngineEvent::News(update) => return take_news(model, *update),
        EngineEvent::Ordered(Ok(())) => {
            model.remark = model.last_deed().map(|said| Remark::done(&said));
            // A knob that was set elsewhere is no longer where the trial began. An alarm that was
            // acknowledged moves no knob.
            let began = model.tuning.as_ref().map(|tuning| tuning.from);
            if began.is_some_and(|from| model.setting(from.knob()) != Some(from)) {
                model.tuning = None;
            }
        }
        EngineEvent::Ordered(Err(why)) => model.failure(why),
        EngineEvent::Tried(found) => {
            let tuning = model.tuning.as_mut()?;
            tuning.take(*found);
            if let Some(watched) = &mut model.watched {
                watched.try_out(tuning.ghost_flags());
            }
            let next = tuning.ask().or_else(|| tuning.ask_further());
            return next.map(|turn| Effect::Command(Command::WhatIf(turn)));
        }
        EngineEvent::Branched(found) => model.take_branch(found),
        EngineEvent::Playing => {
            model.stage = Stage::Playing;
            // A recording is read to its end first.
            if !model.is_recording {
                return model.go_where_opened();
            }
        }
        // The picture is complete: nothing follows.
        EngineEvent::Stopped => {}
        EngineEvent::Ended(ending) => {
            model.seeking = None;
            model.score = ending.summary.score;
            model.stage = Stage::Ended;
            if model.is_recording {
                return model.go_where_opened();
            }
        }
        EngineEvent::Failed(error) => {
            model.seeking = None;
            model.stage = Stage::Failed(error);
        }
    }
    None
}

/// Takes what was measured and decided; rings where a new incident of priority 1 asks for it.
fn take_news(model: &mut Model, update: Update) -> Option<Effect> {
    if let Some(measured) = &mut model.measured {
        update.news.frames.iter().for_each(|frame| measured.take(frame));
    }
    let mut rings = false;
    if let Some(watched) = &mut model.watched {
        let incidents = watched.incidents.len();
        let known = |number| watched.incident(number).map(|incident| incident.priority);
        rings = update.news.incidents.iter().any(|incident| {
            incident.priority == Priority::P1 && known(incident.number) != Some(Priority::P1)
        });
        watched.take(&update.news);
        watched.snapshot = update.snapshot.or(watched.snapshot.take());
        if let Some(tuning) = model.tuning.as_mut().filter(|_| watched.incidents.len() > incidents)
        {
            tuning.outdate();
        }
        if let (true, Some(snapshot)) = (model.as_written.is_empty(), &watched.snapshot) {
            model.as_written.clone_from(&snapshot.knobs);
        }
    }
    model.load = update.load;
    model.live = update.live.or(model.live.take());
    if model.seeking.is_some_and(|goal| model.newest().is_some_and(|now| now >= goal)) {
        model.seeking = None;
    }
    let live = matches!(model.stage, Stage::Playing) && model.seeking.is_none();
    if rings && model.bell && live {
        return Some(Effect::Bell);
    }
    let again = model.tuning.as_mut().and_then(Tuning::ask_again);
    again.map(|turn| Effect::Command(Command::WhatIf(turn)))
}
