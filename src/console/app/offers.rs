//! What can be done here and now: the bottom line shows only that.

use super::{Focus, Model, Screen, Stage};
use crate::console::action::Action;
use crate::incident::{AlarmState, Incident};
use crate::session::Mode;

impl Model {
    /// Whether `action` would change anything here and now.
    pub(crate) fn offers(&self, action: Action) -> bool {
        if self.help.is_some() {
            return matches!(
                action,
                Action::Close
                    | Action::PageDown
                    | Action::PageUp
                    | Action::Up
                    | Action::Down
                    | Action::Filter
                    | Action::Quit
                    | Action::QuitNow
                    | Action::Theme
                    | Action::Redraw
                    | Action::Suspend
            );
        }
        let on_data = self.newest().is_some();
        let playing = matches!(self.stage, Stage::Playing | Stage::Reading);
        let tunable = self.is_watched() && !self.knobs().is_empty();
        match action {
            Action::Pause | Action::Faster | Action::Slower => playing || self.playback.is_some(),
            Action::StepOnce => playing && self.pace.paused,
            Action::Live => on_data && self.look.is_some(),
            Action::Open => self.opens(),
            Action::Close => {
                self.tuning.is_some() || self.playback.is_some() || self.screen != Screen::Overview
            }
            Action::PageDown | Action::PageUp => {
                self.screen != Screen::Overview || self.focus() == Focus::Incidents
            }
            Action::Down | Action::Up => match self.screen {
                Screen::Log => self.entries().len() > 1,
                Screen::Sessions => self.sessions.len() > 1,
                _ => on_data && self.measured.as_ref().is_some_and(|m| m.clients.len() > 1),
            },
            Action::NextPanel | Action::PreviousPanel => on_data && self.screen == Screen::Overview,
            Action::Truth => on_data && self.measured.as_ref().is_some_and(|m| m.truth.is_known()),
            Action::Acknowledge => self.alarm_is(|state| {
                matches!(
                    state,
                    AlarmState::Unacknowledged | AlarmState::Returned | AlarmState::Latched
                )
            }),
            Action::Shelve => self.alarm_is(|state| {
                !matches!(state, AlarmState::SuppressedByDesign | AlarmState::OutOfService)
            }),
            Action::Unshelve => self.alarm_is(|state| state == AlarmState::Shelved),
            Action::Note | Action::Correct | Action::PlayIncident => {
                self.chosen_incident().is_some()
            }
            // Only evidence knows a normal that can be another one.
            Action::Accept => {
                let lasts = |incident: &Incident| {
                    incident.is_open() || incident.alarm.state == AlarmState::Latched
                };
                self.mode() == Mode::Evidence && self.chosen_incident().is_some_and(lasts)
            }
            Action::PreviousIncident | Action::NextIncident => {
                self.watched.as_ref().is_some_and(|watched| !watched.incidents.is_empty())
            }
            Action::Service => self.is_watched(),
            Action::TurnUp | Action::TurnDown | Action::TurnFarUp | Action::TurnFarDown => tunable,
            Action::Undo => self.log_allows(|standing| standing.undoable),
            Action::Redo => self.log_allows(|standing| standing.redoable),
            Action::ToMark => !self.marks.is_empty(),
            Action::Back
            | Action::Forward
            | Action::FarBack
            | Action::FarForward
            | Action::Start
            | Action::ZoomIn
            | Action::ZoomOut
            | Action::GoTo
            | Action::Mark
            | Action::LoopStart
            | Action::LoopEnd
            | Action::Copy
            | Action::Sort => on_data,
            _ => true,
        }
    }

    /// The word for `action` here and now, where it is another than usual.
    pub(crate) fn wording(&self, action: Action) -> Option<&'static str> {
        let on_trial = self.tuning.as_ref().is_some_and(super::Tuning::has_moved);
        match action {
            Action::Pause if self.stands() => Some("go on"),
            Action::Open if on_trial => Some("set"),
            Action::Close if self.tuning.is_some() => Some("drop"),
            Action::Open if self.screen == Screen::Overview && self.focus() == Focus::Knobs => {
                Some("type")
            }
            _ => None,
        }
    }

    /// Whether what moves on the screen was stopped.
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
        let chosen = self.chosen_incident().is_some_and(|incident| wanted(incident.alarm.state));
        chosen || (self.incident.is_none() && self.listed().any(|i| wanted(i.alarm.state)))
    }

    fn log_allows(&self, which: impl Fn(&crate::engine::watch::Snapshot) -> Option<u64>) -> bool {
        let standing = self.watched.as_ref().and_then(|watched| watched.snapshot.as_ref());
        standing.and_then(which).is_some()
    }
}
