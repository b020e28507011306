//! What can be done here and now: the bottom line shows only that.

use super::{Focus, Model, Screen, Stage};
use crate::console::action::Action;
use crate::incident::{AlarmState, Incident};
use crate::session::Mode;

impl Model {
    pub(crate) fn offers(&self, action: Action) -> bool {
        use Action::{
            Accept, Acknowledge, AcknowledgeAll, Back, Bell, Close, CloseUp, Command, Copy,
            Correct, Down, FarBack, FarForward, Faster, Filter, Forward, GoTo, Help, Keys, Live,
            LoopEnd, LoopStart, Mark, Mouse, NextIncident, NextPanel, Note, Open, PageDown, PageUp,
            Pause, Picture, PlayIncident, PreviousIncident, PreviousPanel, Prose, Quit, QuitNow,
            Redo, Redraw, Service, Shelve, ShowClient, ShowIncident, ShowInfluence, ShowLog,
            ShowOverview, ShowPrivacy, ShowSessions, ShowTraining, Slower, Sort, Start, StepOnce,
            Suspend, Theme, ToMark, Truth, TurnDown, TurnFarDown, TurnFarUp, TurnUp, Undo,
            Unshelve, Up, WriteSession, ZoomIn, ZoomOut,
        };
        if self.help.is_some() {
            let works =
                [Close, PageDown, PageUp, Up, Down, Filter, Quit, QuitNow, Theme, Redraw, Suspend];
            return works.contains(&action);
        }
        let on_data = self.newest().is_some();
        let playing = matches!(self.stage, Stage::Playing | Stage::Reading);
        let tunable = self.is_watched() && !self.knobs().is_empty();
        match action {
            Pause | Faster | Slower => playing && !self.is_live || self.look.is_some(),
            StepOnce => self.look.is_some() || (playing && !self.is_live && self.pace.paused),
            Live => on_data && self.look.is_some(),
            Open => self.opens(),
            Close => {
                self.tuning.is_some() || self.playback.is_some() || self.screen != Screen::Overview
            }
            PageDown | PageUp => {
                self.screen != Screen::Overview || self.focus() == Focus::Incidents
            }
            Down | Up => match self.screen {
                Screen::Log => self.entries().len() > 1,
                Screen::Sessions => self.sessions.len() > 1,
                Screen::Overview
                | Screen::Client
                | Screen::Influence
                | Screen::Incident(_)
                | Screen::Training
                | Screen::Privacy => {
                    on_data && self.measured.as_ref().is_some_and(|m| m.clients.len() > 1)
                }
            },
            NextPanel | PreviousPanel => on_data && self.screen == Screen::Overview,
            Truth => on_data && self.measured.as_ref().is_some_and(|m| m.truth.is_known()),
            Acknowledge | AcknowledgeAll => self.alarm_is(AlarmState::wants_acknowledgement),
            Shelve => self.alarm_is(|state| {
                !matches!(state, AlarmState::SuppressedByDesign | AlarmState::OutOfService)
            }),
            Unshelve => self.alarm_is(|state| state == AlarmState::Shelved),
            Note | Correct | PlayIncident | CloseUp => self.chosen_incident().is_some(),
            // Only evidence knows a normal that can be another one.
            Accept => {
                let lasts = |incident: &Incident| {
                    incident.is_open() || incident.alarm.state == AlarmState::Latched
                };
                self.mode() == Mode::Evidence && self.chosen_now().is_some_and(lasts)
            }
            PreviousIncident | NextIncident => {
                self.watched.as_ref().is_some_and(|watched| !watched.incidents.is_empty())
            }
            Service => self.is_watched(),
            TurnUp | TurnDown | TurnFarUp | TurnFarDown => tunable,
            WriteSession => !self.unwritten().is_empty(),
            Undo => self.snapshot().is_some_and(|snapshot| snapshot.undoable.is_some()),
            Redo => self.snapshot().is_some_and(|snapshot| snapshot.redoable.is_some()),
            ToMark => !self.marks.is_empty(),
            Back | Forward | FarBack | FarForward | Start | ZoomIn | ZoomOut | GoTo | Mark
            | LoopStart | LoopEnd | Copy | Sort => on_data,
            Prose | ShowOverview | ShowClient | ShowInfluence | ShowIncident | ShowTraining
            | ShowPrivacy | ShowLog | ShowSessions | Filter | Command | Help | Bell | Theme
            | Mouse | Picture | Keys | Redraw | Suspend | Quit | QuitNow => true,
        }
    }

    /// The word for `action` here and now, where it is another than usual.
    pub(crate) fn wording(&self, action: Action) -> Option<&'static str> {
        let on_trial = self.tuning.as_ref().is_some_and(super::Tuning::has_moved);
        let on_knobs = self.screen == Screen::Overview && self.focus() == Focus::Knobs;
        let words = [
            (Action::Pause, self.look.is_some() && self.playback.is_none(), "play"),
            (Action::Pause, self.stands(), "go on"),
            (Action::Open, on_trial, "set"),
            (Action::Close, self.tuning.is_some(), "drop"),
            (Action::Open, on_knobs, "type"),
        ];
        words.into_iter().find(|(of, holds, _)| *of == action && *holds).map(|(.., word)| word)
    }

    fn stands(&self) -> bool {
        self.playback.as_ref().map_or(self.pace.paused, |playback| playback.paused)
    }

    fn opens(&self) -> bool {
        match self.screen {
            _ if self.tuning.as_ref().is_some_and(super::Tuning::has_moved) => true,
            Screen::Client => self.verdict(self.chosen).is_some(),
            Screen::Overview | Screen::Influence | Screen::Training | Screen::Incident(_) => {
                self.newest().is_some()
            }
            Screen::Privacy => !self.knobs().is_empty(),
            Screen::Log => self.chosen_entry().is_some(),
            Screen::Sessions => !self.sessions.is_empty(),
        }
    }

    fn alarm_is(&self, wanted: impl Fn(AlarmState) -> bool) -> bool {
        let present = |incident: &Incident| self.present(incident.number);
        let chosen = self.chosen_now().is_some_and(|incident| wanted(incident.alarm.state));
        let mut listed = self.listed().filter_map(present);
        chosen || (self.incident.is_none() && listed.any(|i| wanted(i.alarm.state)))
    }

    fn chosen_now(&self) -> Option<&Incident> {
        self.present(self.chosen_incident()?.number)
    }
}
