//! A knob on its way from one value to another: nothing is set until the operator presses enter.
//!
//! While it moves, the engine is asked what the day so far would have looked like. One question is on
//! its way at a time; when its answer comes and the knob has moved on, the next one is asked.

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};

use super::turning::stepped;
use crate::engine::handle::Tried;
use crate::engine::knob::{Knob, Scope, Turn};
use crate::engine::run::WhatIf;
use crate::engine::run::what_if::NoAnswer;
use crate::evidence::threshold::{FlagThresholds, Flags};
use crate::score::Score;
use crate::site::again::AgainError;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tuning {
    pub from: Turn,
    pub trial: Turn,
    /// Why it is turned, where that was typed.
    pub why: Option<String>,
    /// The newest answer, which may be of a value already left.
    pub found: Option<Tried>,
    asked: Option<Turn>,
    /// Another alarm has opened since: the answer is of a shorter day.
    outdated: bool,
    /// Values that were asked for the curve: each once, whatever the answer.
    further: Vec<Turn>,
    /// What other values of the knob would have meant, as far as it was asked.
    pub curve: Vec<CurvePoint>,
}

/// What one value of a knob would have meant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CurvePoint {
    pub turn: Turn,
    pub alarms: usize,
    /// Median detection delay, where the data has labels and anything was found.
    pub delay_s: Option<f64>,
}

/// Steps of a knob to either side of its value that the curve shows.
const AROUND: i32 = 3;
/// An alarm counts as the same when it opens within this time.
const SAME: SignedDuration = SignedDuration::from_secs(60);

impl Tuning {
    pub(crate) fn new(from: Turn) -> Self {
        Self {
            from,
            trial: from,
            why: None,
            found: None,
            asked: None,
            outdated: false,
            further: Vec::new(),
            curve: Vec::new(),
        }
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
        let known = known && !self.outdated;
        if self.asked.is_some() || known || !self.has_moved() || !can_be_tried(self.knob()) {
            return None;
        }
        self.asked = Some(self.trial);
        self.outdated = false;
        self.asked
    }

    /// Another alarm has opened: what was answered is asked again. The old answer is shown until then.
    pub(crate) fn outdate(&mut self) {
        self.outdated = true;
        self.further.clear();
        self.curve.clear();
    }

    /// The question to ask again, if another alarm has opened.
    pub(crate) fn ask_again(&mut self) -> Option<Turn> {
        if self.outdated { self.ask() } else { None }
    }

    /// A question about another value of the knob, for the curve; asked while nothing else is.
    pub(crate) fn ask_further(&mut self) -> Option<Turn> {
        let answered = matches!(self.answer(), Some(Tried { after: Ok(_), .. }));
        if self.asked.is_some() || !answered {
            return None;
        }
        let known = |turn: &Turn| {
            self.further.contains(turn) || self.curve.iter().any(|point| point.turn == *turn)
        };
        let around = (1..=AROUND).flat_map(|n| [n, -n]);
        let next = around.map(|n| stepped(self.from, n, self.from.to.tau())).find(|t| !known(t))?;
        self.further.push(next);
        self.asked = Some(next);
        self.asked
    }

    pub(crate) fn unasked(&mut self) {
        self.asked = None;
    }

    pub(crate) fn take(&mut self, found: Tried) {
        if self.asked == Some(found.turn) {
            self.asked = None;
        }
        if found.turn.knob() != self.knob() {
            return;
        }
        let mut add = |turn: Turn, outlook: &WhatIf| {
            if !self.curve.iter().any(|point| point.turn == turn) {
                let delay_s = outlook.score.as_ref().and_then(|score| score.delay_s.median);
                self.curve.push(CurvePoint { turn, alarms: outlook.alarms, delay_s });
            }
        };
        add(self.from, &found.before);
        if let Ok(after) = &found.after {
            add(found.turn, after);
        }
        // What was asked for the curve alone does not replace the answer about the trial.
        if found.turn == self.trial || self.answer().is_none() {
            self.found = Some(found);
        }
    }

    /// Alarms that there would be and that there were not: when each opens, and its root.
    pub(crate) fn new_alarms(&self) -> impl Iterator<Item = (Timestamp, Option<&str>)> {
        self.answer().into_iter().flat_map(|tried| {
            let after = tried.after.as_ref().map_or(&[][..], |after| &after.opened);
            not_among(after, &tried.before.opened)
        })
    }

    /// Alarms that there were and that there would not be.
    pub(crate) fn gone_alarms(&self) -> impl Iterator<Item = (Timestamp, Option<&str>)> {
        self.answer().into_iter().flat_map(|tried| {
            let before = tried.after.as_ref().map_or(&[][..], |_| &tried.before.opened);
            let after = tried.after.as_ref().map_or(&[][..], |after| &after.opened);
            not_among(before, after)
        })
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

    /// What turning it would have meant: "alarms 23 → 9   false 5 → 1 …". What is compared comes
    /// first, so that a narrow screen shows it.
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
            format!("{had_it_been_so} · it counts {}", from_now_on(self.knob(), steps))
        } else {
            had_it_been_so
        }
    }
}

type Opened = (Timestamp, Option<String>);

fn not_among<'a>(
    alarms: &'a [Opened],
    others: &'a [Opened],
) -> impl Iterator<Item = (Timestamp, Option<&'a str>)> {
    let near = |a: Timestamp, b: Timestamp| a.duration_since(b).abs() <= SAME;
    let alone = move |alarm: &&Opened| !others.iter().any(|other| near(other.0, alarm.0));
    alarms.iter().filter(alone).map(|(opened, root)| (*opened, root.as_deref()))
}

fn can_be_tried(knob: Knob) -> bool {
    !is_ahead(knob) || matches!(knob, Knob::EpsilonFlag | Knob::EpsilonFlagA)
}

/// Whether a knob concerns only what is still to come: noise that was drawn stays drawn.
pub(crate) fn is_ahead(knob: Knob) -> bool {
    matches!(knob.row().scope, Scope::Releases | Scope::Training)
}

/// From when on a knob that was set counts.
pub(crate) fn from_now_on(knob: Knob, steps: u64) -> String {
    match knob.row().scope {
        Scope::Training => "from the next training on; what was released stays released".into(),
        Scope::Flags | Scope::Decision | Scope::Releases => {
            format!("from step {} on; what was released stays released", steps + 1)
        }
    }
}

/// "alarms 24 → 31   false 1 → 5   missed 1 → 0   delay 24 → 19 s"
fn compared(before: &WhatIf, after: &WhatIf) -> String {
    let mut words = format!("alarms {} → {}", before.alarms, after.alarms);
    if let (Some(was), Some(is)) = (&before.score, &after.score) {
        let _ = write!(words, "   false {} → {}", was.false_alarms, is.false_alarms);
        let missed = [was, is].map(|score| score.labelled - score.detected);
        let _ = write!(words, "   missed {} → {}", missed[0], missed[1]);
        if was.root_right != is.root_right {
            let _ = write!(words, "   roots right {} → {}", was.root_right, is.root_right);
        }
        let delay =
            |score: &Score| score.delay_s.median.map_or("–".into(), |s| format!("{s:.0}"));
        let _ = write!(words, "   delay {} → {} s", delay(was), delay(is));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::{Score, Watched};

    fn outlook(alarms: usize, detected: usize, false_alarms: usize) -> WhatIf {
        let mut score = Score::of(&[], &[], &Watched::Days(1.0), 0.0);
        score.labelled = 12;
        score.detected = detected;
        score.false_alarms = false_alarms;
        let opened = Vec::new();
        WhatIf { alarms, opened, score: Some(score), thresholds: Vec::new(), flags: Vec::new() }
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
        tuning.take(found(arl0(7200.0)));
        assert_eq!(tuning.answer(), None, "the knob is elsewhere by now");
        assert_eq!(tuning.ask(), Some(arl0(28_800.0)));
        tuning.take(found(arl0(28_800.0)));
        assert_eq!(tuning.ask(), None);
        assert_eq!(tuning.words(100), "alarms 23 → 9   false 5 → 1   missed 0 → 2   delay – → – s");
    }

    #[test]
    fn epsilon_is_said_to_count_from_now_on() {
        let mut tuning = Tuning::new(Knob::EpsilonFlag.at(Some(4.0)));
        tuning.trial = Knob::EpsilonFlag.at(Some(2.0));
        let from_now_on = "it counts from step 119 on; what was released stays released";
        assert!(tuning.words(118).ends_with(from_now_on));
        assert_eq!(tuning.ghost(), None);
        let trial = tuning.ask().expect("the day so far can be released again");
        let answer = |after| Tried { turn: trial, before: outlook(23, 12, 5), after };
        tuning.take(answer(Ok(outlook(9, 10, 1))));
        assert!(tuning.words(118).starts_with("alarms 23 → 9   false 5 → 1"));
        let costs = AgainError::Costs { releases: 17_280 };
        tuning.take(answer(Err(NoAnswer::Again(costs))));
        assert!(tuning.words(118).contains("17280 times"), "{}", tuning.words(118));
    }

    #[test]
    fn a_value_of_the_curve_is_asked_for_once_even_if_there_is_no_answer() {
        let mut tuning = Tuning::new(Knob::EpsilonFlag.at(Some(4.0)));
        tuning.trial = Knob::EpsilonFlag.at(Some(2.0));
        let turn = tuning.ask().expect("a question");
        tuning.take(Tried { turn, before: outlook(23, 12, 5), after: Ok(outlook(9, 10, 1)) });
        let mut asked = Vec::new();
        while let Some(turn) = tuning.ask_further() {
            assert!(!asked.contains(&turn), "{turn} a second time");
            asked.push(turn);
            let costs = NoAnswer::Again(AgainError::Costs { releases: 17_280 });
            tuning.take(Tried { turn, before: outlook(23, 12, 5), after: Err(costs) });
        }
        assert!(asked.len() >= 4, "{asked:?}");
        assert!(matches!(tuning.answer(), Some(Tried { after: Ok(_), .. })), "the trial's stays");
    }
}
