//! What an action makes of the model.

use super::prompt::{Prompt, Purpose};
use super::question::Question;
use super::time::FAR;
use super::{Effect, Focus, Model, Screen, Sorting, Stage, copied};
use crate::console::action::Action;
use crate::console::remark::Remark;
use crate::engine::handle::Command;

/// Presses of a knob that shift stands for.
const FAR_TURN: i32 = 10;

pub(super) fn act(model: &mut Model, action: Action) -> Option<Effect> {
    match action {
        Action::Pause
        | Action::Faster
        | Action::Slower
        | Action::StepOnce
        | Action::Back
        | Action::Forward
        | Action::FarBack
        | Action::FarForward
        | Action::Start
        | Action::Live
        | Action::ZoomIn
        | Action::ZoomOut
        | Action::GoTo
        | Action::Mark
        | Action::ToMark
        | Action::LoopStart
        | Action::LoopEnd
        | Action::PreviousIncident
        | Action::NextIncident
        | Action::PlayIncident => in_time(model, action),
        Action::Acknowledge => model.acknowledge(),
        Action::Shelve => {
            model.ask_shelf();
            None
        }
        Action::Unshelve => model.unshelve(),
        Action::Service => model.change_service(),
        Action::Note => {
            model.ask_note();
            None
        }
        Action::Accept => {
            model.ask_acceptance();
            None
        }
        Action::Correct => {
            model.ask_root();
            None
        }
        Action::TurnUp => model.turn(1),
        Action::TurnDown => model.turn(-1),
        Action::TurnFarUp => model.turn(FAR_TURN),
        Action::TurnFarDown => model.turn(-FAR_TURN),
        Action::Undo => model.undo(false),
        Action::Redo => model.undo(true),
        _ => on_screen(model, action),
    }
}

fn pace(model: &mut Model) -> Effect {
    // Another pace ends a run to a time ahead.
    model.seeking = None;
    Effect::Command(Command::Pace(model.pace))
}

fn in_time(model: &mut Model, action: Action) -> Option<Effect> {
    match action {
        Action::Pause => {
            // What moves on the screen is what is stopped.
            if let Some(playback) = &mut model.playback {
                playback.paused = !playback.paused;
                return None;
            }
            model.pace.paused = !model.pace.paused;
            return Some(pace(model));
        }
        Action::Faster => {
            model.pace.speed = model.pace.speed.faster();
            return Some(pace(model));
        }
        Action::Slower => {
            model.pace.speed = model.pace.speed.slower();
            return Some(pace(model));
        }
        Action::StepOnce => {
            model.follow();
            model.pace.paused = true;
            model.seeking = None;
            return Some(Effect::Command(Command::Step));
        }
        Action::Back => model.look_by(-1),
        Action::Forward => model.look_by(1),
        Action::FarBack => model.look_by(-FAR),
        Action::FarForward => model.look_by(FAR),
        Action::Start => model.look_by(i32::MIN),
        Action::Live => model.follow(),
        Action::ZoomIn => model.zoom_by(false),
        Action::ZoomOut => model.zoom_by(true),
        Action::GoTo => model.prompt = Some(Prompt::new(Purpose::Go, "")),
        Action::Mark => model.question = model.newest().map(|_| Question::Mark),
        Action::ToMark if model.marks.is_empty() => {
            model.remark = Some(Remark::done("no mark is set; m and a letter set one"));
        }
        Action::ToMark => model.question = Some(Question::ToMark),
        Action::LoopStart => model.set_loop(0),
        Action::LoopEnd => model.set_loop(1),
        Action::PreviousIncident => model.next_incident(false),
        Action::NextIncident => model.next_incident(true),
        Action::PlayIncident => model.play_incident(),
        _ => {}
    }
    None
}

fn on_screen(model: &mut Model, action: Action) -> Option<Effect> {
    match action {
        Action::ShowOverview => model.show(Screen::Overview),
        Action::ShowClient => model.show(Screen::Client),
        Action::ShowInfluence => model.show(Screen::Influence),
        Action::ShowIncident => match model.chosen_incident().map(|incident| incident.number) {
            Some(number) => model.show(Screen::Incident(number)),
            None => model.remark = Some(Remark::done("no incident yet")),
        },
        Action::ShowTraining => model.show(Screen::Training),
        Action::ShowPrivacy => model.show(Screen::Privacy),
        Action::ShowLog => model.show(Screen::Log),
        Action::ShowSessions => {
            model.show(Screen::Sessions);
            return Some(Effect::ListSessions);
        }
        Action::NextPanel => model.change_focus(true),
        Action::PreviousPanel => model.change_focus(false),
        Action::Down | Action::Up if model.help.is_some() => model.page(action == Action::Down),
        Action::Down => model.choose(1),
        Action::Up => model.choose(-1),
        Action::Open => return open(model),
        Action::Close => {
            model.close();
        }
        Action::PageDown => model.page(true),
        Action::PageUp => model.page(false),
        Action::Sort => {
            model.sorting = match model.sorting {
                Sorting::Plant => Sorting::Severity,
                Sorting::Severity => Sorting::Plant,
            };
            let said = match model.sorting {
                Sorting::Plant => "clients in the order of the plant",
                Sorting::Severity => "clients by severity",
            };
            model.remark = Some(Remark::done(said));
        }
        Action::Filter => {
            let (purpose, text) = if model.help.is_some() {
                (Purpose::Search, model.search.clone())
            } else {
                if model.screen != Screen::Log {
                    model.enter(Screen::Log);
                }
                (Purpose::Filter, model.filter.text().to_owned())
            };
            model.prompt = Some(Prompt::new(purpose, &text));
        }
        Action::Command => model.prompt = Some(Prompt::new(Purpose::Command, "")),
        Action::Truth => model.truth_shown = !model.truth_shown,
        Action::Help => {
            model.search.clear();
            model.help = if model.help.is_some() { None } else { Some(0) };
        }
        Action::Bell => {
            model.bell = !model.bell;
            let said = if model.bell { "bell on: once per new P1" } else { "bell off" };
            model.remark = Some(Remark::done(said));
        }
        Action::Theme => {
            model.theme = model.theme.next();
            let name = model.theme.choice.name();
            model.remark = Some(Remark::done(&format!("theme: {name}")));
        }
        Action::Mouse => {
            model.mouse = !model.mouse;
            return Some(Effect::Mouse(model.mouse));
        }
        Action::Copy => return copied::text(model).map(Effect::Copy),
        Action::Picture => return Some(Effect::Picture),
        Action::Keys => return Some(Effect::ReadKeys),
        Action::Redraw => return Some(Effect::Redraw),
        Action::Suspend => return Some(Effect::Suspend),
        Action::Quit => return (!model.close()).then_some(Effect::Quit),
        Action::QuitNow => return Some(Effect::Quit),
        _ => {}
    }
    None
}

/// Enter: sets the knob that is on trial, or goes into what is chosen.
fn open(model: &mut Model) -> Option<Effect> {
    if model.help.is_some() {
        return None;
    }
    if model.tuning.is_some() {
        return model.commit();
    }
    match model.screen {
        Screen::Overview => match model.focus() {
            Focus::Clients if model.chosen_client().is_some() => model.enter(Screen::Client),
            Focus::Clients => {}
            Focus::Incidents => {
                if let Some(number) = model.chosen_incident().map(|incident| incident.number) {
                    model.enter(Screen::Incident(number));
                }
            }
            Focus::Knobs => ask_value(model),
        },
        Screen::Client => {
            if let Some(verdict) = model.verdict(model.chosen) {
                model.enter(Screen::Incident(verdict.incident));
            }
        }
        Screen::Influence | Screen::Training => model.enter(Screen::Client),
        Screen::Incident(_) => {
            if let Some(root) = model.chosen_incident().and_then(|incident| incident.root) {
                model.chosen = root;
            }
            model.enter(Screen::Client);
        }
        Screen::Privacy => ask_value(model),
        Screen::Log => {
            let entry = model.chosen_entry();
            let found = entry.map(|entry| (entry.time, entry.incident()));
            if let Some((time, incident)) = found {
                model.look_at(time);
                if let Some(number) = incident {
                    model.incident = Some(number);
                    model.enter(Screen::Incident(number));
                }
            }
        }
        Screen::Sessions => {
            let name = model.sessions.get(model.session).map(|session| session.name.clone());
            if matches!(model.stage, Stage::Failed(_)) {
                return name.map(Effect::Open);
            }
            model.question = name.map(Question::Open);
        }
    }
    None
}

fn ask_value(model: &mut Model) {
    if let Some(turn) = model.chosen_knob() {
        model.prompt = Some(Prompt::new(Purpose::Value(turn.knob()), ""));
    }
}
