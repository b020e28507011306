//! What an action makes of the model.

use super::prompt::{Prompt, Purpose};
use super::question::Question;
use super::time::FAR;
use super::{Effect, Focus, Model, Screen, Sorting, Stage, copied};
use crate::console::action::Action;
use crate::engine::handle::Command;
use crate::engine::pace::Speed;
use crate::session::LiveHistory;

const FAR_TURN: i32 = 10;

/// Why keys of the speed do nothing while data is live.
const LIVE_SPEED: &str = "live data goes at its own speed; look back instead, it goes on meanwhile";

pub(super) fn act(model: &mut Model, action: Action) -> Option<Effect> {
    match action {
        Action::Pause | Action::Faster | Action::Slower | Action::StepOnce
            if model.is_live && model.playback.is_none() =>
        {
            model.message(LIVE_SPEED);
        }
        Action::Pause => return model.pause(),
        Action::Faster => return model.change_speed(model.pace.speed.faster()),
        Action::Slower => return model.change_speed(model.pace.speed.slower()),
        Action::StepOnce => return model.step_once(),
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
            model.message("no mark is set; m and a letter set one");
        }
        Action::ToMark => model.question = Some(Question::ToMark),
        Action::LoopStart => model.set_loop(0),
        Action::LoopEnd => model.set_loop(1),
        Action::PreviousIncident => model.next_incident(false),
        Action::NextIncident => model.next_incident(true),
        Action::PlayIncident => model.play_incident(),
        Action::CloseUp => model.close_up(),
        Action::ShowOverview => model.show(Screen::Overview),
        Action::ShowClient => model.show(Screen::Client),
        Action::ShowInfluence => model.show(Screen::Influence),
        Action::ShowIncident => match model.chosen_incident().map(|incident| incident.number) {
            Some(number) => model.show(Screen::Incident(number)),
            None => model.message("no incident yet"),
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
        Action::Down => model.choose(1),
        Action::Up => model.choose(-1),
        Action::Open => return open(model),
        Action::Close => _ = model.close(),
        Action::PageDown => model.page(true),
        Action::PageUp => model.page(false),
        Action::Sort => sort(model),
        Action::Filter => find(model),
        Action::Command => model.prompt = Some(Prompt::new(Purpose::Command, "")),
        Action::Truth => model.truth_shown = !model.truth_shown,
        Action::Prose => {
            model.prose = !model.prose;
            model.show(Screen::Privacy);
        }
        Action::Acknowledge => return model.acknowledge(),
        Action::AcknowledgeAll => return model.acknowledge_all(),
        Action::Shelve => model.ask_shelf(),
        Action::Unshelve => return model.unshelve(),
        Action::Service => return model.change_service(),
        Action::Note => model.ask_note(),
        Action::Accept => model.ask_acceptance(),
        Action::Correct => model.ask_root(),
        Action::TurnUp => return model.turn(1),
        Action::TurnDown => return model.turn(-1),
        Action::TurnFarUp => return model.turn(FAR_TURN),
        Action::TurnFarDown => return model.turn(-FAR_TURN),
        Action::WriteSession => model.ask_write(),
        Action::Undo => return model.undo(false),
        Action::Redo => return model.undo(true),
        Action::Help => {
            model.search.clear();
            model.help = if model.help.is_some() { None } else { Some(0) };
        }
        Action::Bell => {
            model.bell = !model.bell;
            model.message(if model.bell { "bell on: once per new P1" } else { "bell off" });
        }
        Action::Theme => {
            model.theme = model.theme.next();
            model.message(format!("theme: {}", model.theme.choice.name()));
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
        Action::Quit => return model.close_or_quit(),
        Action::QuitNow => return Some(Effect::Quit),
    }
    None
}

impl Model {
    /// Closes what is open, or leaves; with a question where an alarm of a running session waits for
    /// somebody to see it.
    fn close_or_quit(&mut self) -> Option<Effect> {
        if self.close() {
            return None;
        }
        let unseen = self.snapshot().map_or(0, |snapshot| {
            let figures = &snapshot.figures;
            figures.unacknowledged + figures.returned + figures.latched
        });
        // A service goes on without this console.
        if unseen == 0
            || self.service.is_some()
            || self.is_recording
            || matches!(self.stage, Stage::Failed(_))
        {
            return Some(Effect::Quit);
        }
        let goes_on = self.subject.live().is_some_and(|live| live.history != LiveHistory::First);
        self.question = Some(Question::Quit { unseen, goes_on });
        None
    }

    /// Stops what moves on the screen, or lets it go on: the past that is looked at, else the replay.
    fn pause(&mut self) -> Option<Effect> {
        if let Some(playback) = &mut self.playback {
            playback.paused = !playback.paused;
            return None;
        }
        if self.look.is_some() {
            self.play_from_here();
            return None;
        }
        if self.is_over() {
            self.message(OVER);
            return None;
        }
        self.pace.paused = !self.pace.paused;
        Some(self.set_speed(self.pace.speed))
    }

    /// Whether the data is over: nothing more comes.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Ended | Stage::Failed(_))
    }

    /// Another speed, of the replay or of the past being played again.
    fn change_speed(&mut self, speed: Speed) -> Option<Effect> {
        if !self.is_over() {
            return Some(self.set_speed(speed));
        }
        self.pace.speed = speed;
        if self.playback.is_none() {
            self.message(format!("{speed} when it is played again; {OVER}"));
        }
        None
    }

    /// Another pace ends a run to a time ahead.
    pub(super) fn set_speed(&mut self, speed: Speed) -> Effect {
        self.pace.speed = speed;
        self.seeking = None;
        Effect::Command(Command::Pace(self.pace))
    }

    /// One step on from the moment looked at, or of the replay.
    fn step_once(&mut self) -> Option<Effect> {
        if self.look.is_some() {
            self.look_one_step_on();
            return None;
        }
        if self.is_over() {
            self.message(OVER);
            return None;
        }
        self.pace.paused = true;
        self.seeking = None;
        Some(Effect::Command(Command::Step))
    }
}

/// Said where a key would move a replay that is over.
const OVER: &str = "the data is over: home and space play it again";

fn sort(model: &mut Model) {
    let (sorting, text) = match model.sorting {
        Sorting::Plant => (Sorting::Severity, "clients by severity"),
        Sorting::Severity => (Sorting::Plant, "clients in the order of the plant"),
    };
    model.sorting = sorting;
    model.message(text);
}

/// Asks for the filter of the log, or for what to search the help for.
fn find(model: &mut Model) {
    let (purpose, text) = if model.help.is_some() {
        (Purpose::Search, model.search.clone())
    } else {
        model.enter(Screen::Log);
        (Purpose::Filter, model.filter.text().to_owned())
    };
    model.prompt = Some(Prompt::new(purpose, &text));
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
            let entry = model.chosen_entry()?;
            let (time, incident) = (entry.time, entry.incident());
            model.look_at(time);
            if let Some(number) = incident {
                model.incident = Some(number);
                model.enter(Screen::Incident(number));
            }
        }
        Screen::Sessions => {
            let name = model.sessions.get(model.session).map(|session| session.name.clone());
            if matches!(model.stage, Stage::Failed(_)) {
                return name.map(Effect::Open);
            }
            return name.map(Effect::CheckData);
        }
    }
    None
}

fn ask_value(model: &mut Model) {
    if let Some(turn) = model.chosen_knob() {
        model.prompt = Some(Prompt::new(Purpose::Value(turn.knob()), ""));
    }
}
