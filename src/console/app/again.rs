//! A recording run again from the moment looked at, with the knob that is on trial: old and new
//! incidents are shown side by side.

use super::{Effect, Model};
use crate::engine::branch::Branch;
use crate::engine::handle::Command;
use crate::engine::knob::Turn;

impl Model {
    /// Asks the engine to run the recording again from here with `turn`.
    pub(super) fn run_again(&mut self, turn: Turn) -> Option<Effect> {
        let Some(from) = self.moment() else {
            self.failure("there is no moment to run again from");
            return None;
        };
        let (title, at) = (turn.knob().title(&self.names), self.clock.date_time(from));
        self.message(format!("running again from {at} with {title} {turn}"));
        Some(Effect::Command(Command::Branch { from, turn }))
    }

    /// Shows what came of it.
    pub(super) fn take_branch(&mut self, found: Result<Box<Branch>, String>) {
        match found {
            Ok(branch) => {
                self.scroll = 0;
                self.remark = None;
                self.branch = Some(branch);
            }
            Err(why) => self.failure(why),
        }
    }
}
