//! The messages that the sites of a recording would have sent from a moment on with a knob turned.

use std::collections::VecDeque;

use super::super::knob::{Knob, Turn};
use super::what_if::NoAnswer;
use super::{Run, follows};
use crate::record::StepMark;
use crate::session::Mode;
use crate::site::Trial;
use crate::site::again::{Again, Paying};
use crate::wire::{Content, Delivery, Memory, Message, Outgoing, Rest, Tick, Wire as _};

impl Run {
    /// Replaces in `rest` what sites send, with `turn` made now; `marks` are the steps that follow. The
    /// sites forget their run.
    pub(crate) fn resend(
        &mut self,
        turn: Turn,
        marks: &[StepMark],
        rest: &mut Rest,
    ) -> Result<(), NoAnswer> {
        let mode = turn.to.mode().unwrap_or(self.mode);
        let (so_far, period_s) = (self.steps, self.layout.period_s);
        let (mut sites, ticks) = self.exchange.take_recalled();
        for (step, mark) in (so_far + 1..).zip(marks) {
            let follows = follows(mark.continuity, period_s);
            let tick = Tick { step, time: mark.time, follows };
            sites.recall(tick);
        }
        sites.can_send(mode)?;
        let privacy = &self.session.privacy;
        let tried = |knob, now| if turn.knob() == knob { turn.to.number() } else { now };
        let epsilon = tried(Knob::EpsilonFlag, privacy.epsilon_flag);
        let epsilon_a = tried(Knob::EpsilonFlagA, privacy.epsilon_flag_a);
        let mut again = Vec::new();
        for (site, rule) in sites.sites().iter().zip(self.rules_of(sites.sites(), Some(turn))) {
            let trial = Trial { mode, rule, epsilon, epsilon_a };
            again.push(site.again(&trial, Paying::Never)?);
        }
        let before = ticks.len();
        let mut enrolments = Vec::new();
        for site in &mut again {
            enrolments.extend(site.enrol()?.and_then(arrived));
        }
        let mut sent: Vec<Delivery> =
            (0..before + marks.len()).map(|t| step_of(&mut again, t)).collect();
        let later = sent.split_off(before);
        rest.at_once = match turn.knob() {
            // Sites enrol with their new ε.
            Knob::EpsilonFlag => VecDeque::from([enrolments]),
            Knob::Mode if mode != self.mode => from_the_start(enrolments, sent),
            Knob::TauC(_)
            | Knob::TauA(_)
            | Knob::Vote
            | Knob::Deadband
            | Knob::Arl0
            | Knob::Mode
            | Knob::EpsilonC
            | Knob::EpsilonA
            | Knob::EpsilonG
            | Knob::Delta
            | Knob::EpsilonFlagA
            | Knob::Budget => VecDeque::new(),
        };
        let mut told = self.session.privacy.clone();
        (told.epsilon_flag, told.epsilon_flag_a) = (epsilon, epsilon_a);
        for (delivery, sent) in rest.steps.iter_mut().zip(later) {
            // Symbols and flags are sent anew; the known faults of sensors stay, where they may be sent.
            delivery.retain(|message| match message.content() {
                Content::Faults(_) => told.tells_faults(),
                Content::Summary { .. } => mode == Mode::Evidence,
                Content::States { .. }
                | Content::Enrolment(_)
                | Content::Symbol { .. }
                | Content::Severe { .. }
                | Content::Quiet
                | Content::Flags { .. }
                | Content::Sensors(_) => false,
            });
            delivery.extend(sent);
        }
        Ok(())
    }
}

/// The run so far for a fresh server: it takes what has arrived before every step and
/// after it, and once more at the end.
fn from_the_start(enrolments: Delivery, sent: Vec<Delivery>) -> VecDeque<Delivery> {
    let mut all = VecDeque::new();
    let mut first = Some(enrolments);
    for delivery in sent {
        all.push_back(first.take().unwrap_or_default());
        all.push_back(delivery);
    }
    all.push_back(Vec::new());
    all
}

fn step_of(sites: &mut [Again<'_>], t: usize) -> Delivery {
    sites.iter_mut().filter_map(|site| site.step(t)).filter_map(arrived).collect()
}

/// A message as it arrives within one process.
fn arrived(message: Outgoing) -> Option<Message> {
    let mut wire = Memory::default();
    wire.send(message).ok()?;
    wire.receive()
}
