//! A knob on its way from one value to another: nothing is set until the operator presses enter.
//!
//! While it moves, the engine is asked what the day so far would have looked like. One question is on
//! its way at a time; when its answer comes and the knob has moved on, the next one is asked.

use std::fmt::Write as _;

use crate::engine::handle::Tried;
use crate::engine::knob::{Knob, Scope, Turn};
use crate::engine::run::Outlook;
use crate::engine::run::what_if::NoAnswer;
use crate::evidence::threshold::{FlagThresholds, Flags};
use crate::site::again::AgainError;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tuning {
    pub from: Turn,
    pub trial: Turn,
    /// The newest answer, which may be of a value already left.
    pub found: Option<Tried>,
    asked: Option<Turn>,
}

impl Tuning {
    pub(crate) fn new(from: Turn) -> Self {
        Self { from, trial: from, found: None, asked: None }
    }

    pub(crate) fn knob(&self) -> Knob {
        self.trial.knob()
    }

    pub(crate) fn has_moved(&self) -> bool {
        self.trial != self.from
    }

    /// The question to ask now, if one is to be asked; it counts as asked.
    pub(crate) fn ask(&mut self) -> Option<Turn> {
        let known = self.found.as_ref().is_some_and(|found| found.turn == self.trial);
        if self.asked.is_some() || known || !self.has_moved() || !can_be_tried(self.knob()) {
            return None;
        }
        self.asked = Some(self.trial);
        self.asked
    }

    pub(crate) fn unasked(&mut self) {
        self.asked = None;
    }

    pub(crate) fn hear(&mut self, found: Tried) {
        if self.asked == Some(found.turn) {
            self.asked = None;
        }
        if found.turn.knob() == self.knob() {
            self.found = Some(found);
        }
    }

    pub(crate) fn answer(&self) -> Option<&Tried> {
        self.found.as_ref().filter(|found| found.turn == self.trial)
    }

    /// Thresholds of every client at the value the knob is at now: ghost flags come from them.
    pub(crate) fn ghost(&self) -> Option<&[FlagThresholds]> {
        Some(&self.answer()?.after.as_ref().ok()?.thresholds)
    }

    /// Flags of every step so far in the newest answer.
    pub(crate) fn ghost_flags(&self) -> Option<&[Option<Flags>]> {
        Some(&self.found.as_ref()?.after.as_ref().ok()?.flags)
    }

    /// What turning it would have meant, in words: "23 → 9 alarms, 2 labelled attacks missed".
    pub(crate) fn words(&self, steps: u64) -> String {
        if !self.has_moved() {
            return String::new();
        }
        if !can_be_tried(self.knob()) {
            return from_now_on(self.knob(), steps);
        }
        let had_it_been_so = match self.answer() {
            None => "the day so far is being decided again…".into(),
            Some(Tried { after: Err(NoAnswer::StillToCome), .. }) => {
                return from_now_on(self.knob(), steps);
            }
            Some(Tried { after: Err(why @ NoAnswer::Again(AgainError::Costs { .. })), .. }) => {
                format!("{why} · :pay does it")
            }
            Some(Tried { after: Err(why), .. }) => why.to_string(),
            Some(Tried { before, after: Ok(after), .. }) => compared(before, after),
        };
        if is_ahead(self.knob()) {
            format!("{} · from the start: {had_it_been_so}", from_now_on(self.knob(), steps))
        } else {
            had_it_been_so
        }
    }
}

fn can_be_tried(knob: Knob) -> bool {
    !is_ahead(knob) || matches!(knob, Knob::EpsilonFlag | Knob::EpsilonFlagA)
}

/// Whether a knob concerns only what is still to come: noise that was drawn stays drawn.
pub(crate) fn is_ahead(knob: Knob) -> bool {
    matches!(knob.row().scope, Scope::Releases | Scope::Training)
}

fn from_now_on(knob: Knob, steps: u64) -> String {
    match knob.row().scope {
        Scope::Training => "from the next training on; what was released stays released".into(),
        Scope::Flags | Scope::Decision | Scope::Releases => {
            format!("from step {} on; what was released stays released", steps + 1)
        }
    }
}

/// "23 → 9 alarms, 5 → 1 false, 2 labelled attacks missed"
fn compared(before: &Outlook, after: &Outlook) -> String {
    let mut words = format!("{} → {} alarms", before.alarms, after.alarms);
    if let (Some(was), Some(is)) = (&before.score, &after.score) {
        let _ = write!(words, ", {} → {} false", was.false_alarms, is.false_alarms);
        let missed = is.labelled - is.detected;
        let attacks = if missed == 1 { "attack" } else { "attacks" };
        let missed_then = match (missed, was.labelled - was.detected) {
            (0, 0) => ", none missed".to_owned(),
            (now, then) if now == then => format!(", {now} labelled {attacks} missed as before"),
            (now, then) => format!(", {now} labelled {attacks} missed, not {then}"),
        };
        words.push_str(&missed_then);
        let roots = |right: usize| match right {
            1 => "1 root right".to_owned(),
            n => format!("{n} roots right"),
        };
        if was.root_right != is.root_right {
            let _ = write!(words, ", {}, not {}", roots(is.root_right), was.root_right);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::{Score, Watched};

    fn outlook(alarms: usize, detected: usize, false_alarms: usize) -> Outlook {
        let mut score = Score::of(&[], &[], &Watched::Days(1.0), 0.0);
        score.labelled = 12;
        score.detected = detected;
        score.false_alarms = false_alarms;
        Outlook { alarms, score: Some(score), thresholds: Vec::new(), flags: Vec::new() }
    }

    #[test]
    fn one_question_is_on_its_way_and_the_last_value_wins() {
        let arl0 = |to: f64| Knob::Arl0.at(to);
        let mut tuning = Tuning::new(arl0(3600.0));
        assert_eq!(tuning.ask(), None, "it has not moved");
        tuning.trial = arl0(7200.0);
        assert_eq!(tuning.ask(), Some(arl0(7200.0)));
        tuning.trial = arl0(14_400.0);
        tuning.trial = arl0(28_800.0);
        assert_eq!(tuning.ask(), None, "one is on its way");
        let found = |turn| Tried { turn, before: outlook(23, 12, 5), after: Ok(outlook(9, 10, 1)) };
        tuning.hear(found(arl0(7200.0)));
        assert_eq!(tuning.answer(), None, "the knob is elsewhere by now");
        assert_eq!(tuning.ask(), Some(arl0(28_800.0)));
        tuning.hear(found(arl0(28_800.0)));
        assert_eq!(tuning.ask(), None);
        assert_eq!(
            tuning.words(100),
            "23 → 9 alarms, 5 → 1 false, 2 labelled attacks missed, not 0"
        );
    }

    #[test]
    fn epsilon_is_said_to_count_from_now_on() {
        let mut tuning = Tuning::new(Knob::EpsilonFlag.at(Some(4.0)));
        tuning.trial = Knob::EpsilonFlag.at(Some(2.0));
        let from_now_on = "from step 119 on; what was released stays released";
        assert!(tuning.words(118).starts_with(from_now_on));
        assert_eq!(tuning.ghost(), None);
        let trial = tuning.ask().expect("the day so far can be released again");
        let answer = |after| Tried { turn: trial, before: outlook(23, 12, 5), after };
        tuning.hear(answer(Ok(outlook(9, 10, 1))));
        assert!(tuning.words(118).contains("from the start: 23 → 9 alarms"));
        let costs = AgainError::Costs { releases: 17_280 };
        tuning.hear(answer(Err(NoAnswer::Again(costs))));
        assert!(tuning.words(118).contains("17280 times"), "{}", tuning.words(118));
    }
}
