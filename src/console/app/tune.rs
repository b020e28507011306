//! Tuning without regret: a knob moves on trial, its consequences are shown, and only enter sets it.

use super::question::Question;
use super::tuning::{self, Tuning};
use super::{Effect, Focus, Model, Screen, turning};
use crate::engine::handle::Command;
use crate::engine::knob::{Knob, Turn};
use crate::incident::Action as Deed;
use crate::session::Tau;

impl Model {
    pub(super) fn turn(&mut self, presses: i32) -> Option<Effect> {
        let chosen = self.chosen_knob()?;
        let trial = self.tuning.as_ref().map_or(chosen, |tuning| tuning.trial);
        self.try_turn(turning::stepped(trial, presses, self.common(trial.knob())))
    }

    /// The τ that a client without one of its own goes by.
    fn common(&self, knob: Knob) -> Option<Tau> {
        knob.client()?;
        let title = knob.row().title;
        let of_all = |turn: &&Turn| turn.knob.client().is_none() && turn.knob.row().title == title;
        self.knobs().iter().find(of_all)?.to.tau()
    }

    pub(super) fn try_turn(&mut self, trial: Turn) -> Option<Effect> {
        let knob = trial.knob();
        let from = self.setting(knob)?;
        if self.screen == Screen::Overview {
            self.focus = Focus::Knobs;
        }
        self.knob = Some(knob);
        let tuning = self.tuning.get_or_insert_with(|| Tuning::new(from));
        if tuning.knob() != knob {
            *tuning = Tuning::new(from);
        }
        tuning.trial = trial;
        tuning.ask().map(|turn| Effect::Command(Command::WhatIf(turn)))
    }

    /// Sets the knob that is on trial; what is given away is asked about first.
    pub(super) fn commit(&mut self) -> Option<Effect> {
        let tuning = self.tuning.take()?;
        self.focus = Focus::Incidents;
        if !tuning.has_moved() {
            return None;
        }
        self.set(tuning.trial, None)
    }

    /// Sets a knob, after a question where what is given away depends on it.
    pub(super) fn set(&mut self, turn: Turn, why: Option<String>) -> Option<Effect> {
        let from = self.setting(turn.knob);
        if let Some(from) = from.filter(|from| *from != turn)
            && tuning::is_ahead(turn.knob())
        {
            let step = self.steps();
            self.question = Some(Question::Commit { from, to: turn, step });
            return None;
        }
        Some(self.order_turn(turn, why))
    }

    pub(super) fn order_turn(&self, turn: Turn, why: Option<String>) -> Effect {
        let what = turn.knob().name(&self.raw_names);
        self.order(Deed::Set { what, to: turn.value() }, why)
    }

    pub(crate) fn steps(&self) -> u64 {
        self.snapshot().map_or(0, |snapshot| snapshot.steps)
    }

    /// Takes back the last thing that was done, or brings it back.
    pub(super) fn undo(&mut self, again: bool) -> Option<Effect> {
        // Whoever turned a knob means that, and not what was done before.
        if self.tuning.take().is_some_and(|tuning| tuning.has_moved()) {
            self.focus = Focus::Incidents;
            self.message("dropped: the knob stays where it was");
            return None;
        }
        let entry = self.snapshot().and_then(|s| if again { s.redoable } else { s.undoable });
        let Some(entry) = entry else {
            self.message(if again { "nothing was undone" } else { "nothing to undo" });
            return None;
        };
        Some(self.order(Deed::Undo { entry }, None))
    }
}
