//! Tuning without regret: a knob moves on trial, its consequences are shown, and only enter sets it.

use super::question::Question;
use super::tuning::{self, Tuning};
use super::{Effect, Focus, Model, Screen, turning};
use crate::engine::handle::Command;
use crate::engine::knob::{Knob, KnobValue, Turn};
use crate::incident::{OperatorAction, Order};
use crate::session::Tau;

/// ε of a symbol where a budget is the first to ask for noise: one symbol in fifteen is wrong.
const USUAL_EPSILON: f64 = 4.0;

impl Model {
    pub(super) fn turn(&mut self, presses: i32) -> Option<Effect> {
        let chosen = self.chosen_knob()?;
        let trial = self.tuning.as_ref().map_or(chosen, |tuning| tuning.trial);
        let turned = turning::stepped(trial, presses, self.common(trial.knob()));
        if turned == trial {
            let (title, end) =
                (trial.knob().title(&self.names), if presses > 0 { "up" } else { "down" });
            self.message(format!("{title} is at {trial}: it goes no further {end}"));
            return None;
        }
        self.try_turn(turned)
    }

    /// Puts what was typed for a knob on trial, as the keys do: enter sets it.
    pub(super) fn try_value(
        &mut self,
        knob: Knob,
        text: &str,
        why: Option<String>,
    ) -> Result<Option<Effect>, String> {
        let standing = self.setting(knob).ok_or("nothing can be set before the first step")?;
        let common = self.common(knob).map(|tau| knob.at(tau));
        let shown =
            if standing.to == KnobValue::None { common.or(Some(standing)) } else { Some(standing) };
        let turn = turning::typed(knob, text, shown, &self.names).map_err(|e| e.to_string())?;
        let title = knob.title(&self.names);
        if turn == standing {
            self.tuning = None;
            self.message(format!("{title} is {turn} already"));
            return Ok(None);
        }
        let effect = self.try_turn(turn);
        if let Some(tuning) = &mut self.tuning {
            tuning.why = why;
        }
        self.message(format!("{title} {standing} → {turn} on trial: enter sets it, esc drops it"));
        Ok(effect)
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
        // Another method goes by other knobs.
        if tuning.knob() == Knob::Mode {
            self.knob = None;
        }
        self.set(tuning.trial, tuning.why)
    }

    /// Sets a knob, after a question where what is given away depends on it.
    fn set(&mut self, turn: Turn, why: Option<String>) -> Option<Effect> {
        if self.is_recording {
            return self.run_again(turn);
        }
        let from = self.setting(turn.knob);
        if let Some(from) = from.filter(|from| *from != turn)
            && tuning::is_ahead(turn.knob())
        {
            let step = self.steps();
            let along = self.noise_for(turn);
            self.question = Some(Question::Commit { from, to: turn, step, why, along });
            return None;
        }
        Some(self.order_turn(turn, why))
    }

    /// What was set since the session was opened and is not in its file: from what to what.
    pub(super) fn unwritten(&self) -> Vec<(Turn, Turn)> {
        let known =
            |turn: &Turn| self.as_written.iter().find(|known| known.knob == turn.knob).copied();
        // A session has no place for a client's own τ.
        let of_all = |turn: &&Turn| turn.knob.client().is_none();
        let changed = self.knobs().iter().filter(of_all).filter_map(|turn| {
            let from = known(turn)?;
            (from != *turn).then_some((from, *turn))
        });
        changed.collect()
    }

    /// Asks whether to write that into the file.
    pub(super) fn ask_write(&mut self) {
        let changes = self.unwritten();
        if changes.is_empty() {
            self.message("nothing was set that the session does not say already");
        } else {
            self.question = Some(Question::Write { name: self.name.clone(), changes });
        }
    }

    /// The ε that is set with a budget where nothing is noised yet: no budget covers what is sent
    /// without noise.
    fn noise_for(&self, turn: Turn) -> Option<Turn> {
        let unprotected = self.setting(Knob::EpsilonFlag)?.to == KnobValue::None;
        let budget = turn.knob == Knob::Budget && turn.to != KnobValue::None;
        (budget && unprotected).then(|| Knob::EpsilonFlag.at(Some(USUAL_EPSILON)))
    }

    /// Several settings, in their order.
    pub(super) fn order_turns(&self, turns: &[Turn], why: Option<&str>) -> Effect {
        let order = |turn: &Turn| {
            let what = turn.knob().name(&self.raw_names);
            let action = OperatorAction::Set { what, to: turn.value() };
            Command::Order(Order { who: self.who.clone(), action, why: why.map(str::to_owned) })
        };
        Effect::Commands(turns.iter().map(order).collect())
    }

    pub(super) fn order_turn(&self, turn: Turn, why: Option<String>) -> Effect {
        let what = turn.knob().name(&self.raw_names);
        self.order(OperatorAction::Set { what, to: turn.value() }, why)
    }

    pub(crate) fn steps(&self) -> u64 {
        self.snapshot().map_or(0, |snapshot| snapshot.steps)
    }

    /// Takes back the last thing that was done, or brings it back.
    pub(super) fn undo(&mut self, again: bool) -> Option<Effect> {
        // The last knob that was turned is meant, not an earlier action.
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
        Some(self.order(OperatorAction::Undo { entry }, None))
    }
}
