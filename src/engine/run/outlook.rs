//! What the run so far would have said with one knob turned otherwise.

use super::knob::Turn;
use super::tape::Desk;
use super::{Run, annunciator, paper};
use crate::evidence::threshold::{FlagThresholds, Flags};
use crate::session::Mode;
use crate::stream::Stream as _;
use crate::study::score::{Alarm, Score};

/// The run so far, decided under some setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlook {
    /// Alarms.
    pub alarms: usize,
    /// Where the data has labels.
    pub score: Option<Score>,
    /// Thresholds of every client.
    pub thresholds: Vec<FlagThresholds>,
    /// The flags of every step so far, a row of clients a step; empty where they are not kept.
    pub flags: Vec<Option<Flags>>,
}

impl Run {
    /// The run so far under the settings that stand now: what a trial is held against. Where one was
    /// changed on the way this is not what was said.
    #[must_use]
    pub fn so_far(&self) -> Outlook {
        let again = if self.tuned { self.what_if(Turn::Mode(self.mode)) } else { None };
        again.unwrap_or_else(|| {
            self.outlook(self.alarms.list(), self.thresholds.clone(), Vec::new())
        })
    }

    /// The run so far as it would have been with one knob turned from its start, the others as they
    /// stand. Nothing where what crossed is not kept, or where the knob only concerns what is still
    /// to come: noise that was drawn stays drawn.
    #[must_use]
    pub fn what_if(&self, turn: Turn) -> Option<Outlook> {
        let tape = self.tape.as_ref()?;
        let rule = self.rule_with(Some(turn));
        let (mode, arl0_s) = match turn {
            Turn::TauC(..) | Turn::TauA(..) | Turn::Vote(_) | Turn::Deadband(_) => {
                (self.mode, self.session.thresholds.arl0.seconds)
            }
            Turn::Arl0(seconds) => (self.mode, seconds),
            Turn::Mode(mode) => (mode, self.session.thresholds.arl0.seconds),
            Turn::EpsilonFlag(_)
            | Turn::EpsilonC(_)
            | Turn::EpsilonA(_)
            | Turn::EpsilonG(_)
            | Turn::Delta(_)
            | Turn::Budget(_) => return None,
        };
        let desk = match mode {
            Mode::Evidence => {
                let desk = self.methods.evidence.as_ref()?.desk();
                Desk::Evidence(Box::new(desk.afresh(arl0_s / self.layout.period_s)))
            }
            Mode::Paper => Desk::Paper(Box::new(paper::Desk::new(rule.clone()))),
        };
        let start = self.spans.first()?.0;
        let alarms = tape.decide_again(desk, annunciator(&self.layout, mode, start));
        let flags = tape.flag_again(paper::Desk::new(rule.clone()));
        Some(self.outlook(alarms.list(), rule.thresholds, flags))
    }

    /// The flags of every step so far by the rule that stands now, whatever stood when they were
    /// made: distances and what was drawn are kept. A row of clients a step.
    #[must_use]
    pub fn flags_so_far(&self) -> Vec<Option<Flags>> {
        let again = |tape: &super::Tape| tape.flag_again(paper::Desk::new(self.rule_with(None)));
        self.tape.as_ref().map_or_else(Vec::new, again)
    }

    fn outlook(
        &self,
        alarms: &[Alarm],
        thresholds: Vec<FlagThresholds>,
        flags: Vec<Option<Flags>>,
    ) -> Outlook {
        let until = self.spans.last().map(|span| span.1);
        // What has not begun yet can be neither found nor missed.
        let events: Vec<_> = self
            .stream
            .events()
            .iter()
            .filter(|e| until.is_some_and(|t| e.start <= t))
            .cloned()
            .collect();
        let score = (self.labelled || !self.stream.events().is_empty()).then(|| {
            let watched = self.watched();
            Score::of(&events, alarms, &watched, self.session.replay.tail.seconds)
        });
        Outlook { alarms: alarms.len(), score, thresholds, flags }
    }
}
