//! The server: messages of all sites in, one decision per step out.
//!
//! ```text
//!  Message ──► hear ──► inbox ─┬─ evidence mode: inference over symbols ─┬─► Decision
//!                              └─ paper mode: look-up over flags ────────┘
//!          States ──► rounds: f_s learns, gradients go back (training)
//! ```
//!
//! It knows what arrived in messages, the session's settings and the shared time grid; nothing else.
//! It cannot name a measurement:
//!
//! ```compile_fail,E0308
//! use headwater::test_api::{Message, Row, Server};
//! fn tell(server: &mut Server, row: &Row<'_>, message: &Message) {
//!     server.hear(row);
//! }
//! ```
//!
//! A message it takes:
//!
//! ```
//! use headwater::test_api::{Message, Row, Server};
//! fn tell(server: &mut Server, row: &Row<'_>, message: &Message) {
//!     server.hear(message);
//! }
//! ```
//!
//! | module | what it is for |
//! |---|---|
//! | [`inbox`] | the messages of one step, in whatever order they come |
//! | [`inference`] | the sequential decision over symbols |
//! | [`lookup`] | Table 1, its extension to M clients, the vote |
//! | `evidence`, `flags` | either method as one step of the server |
//! | [`disturbance`], [`decision`] | a disturbance as the server follows it; the decision about a step |
//! | [`lifetime`] | how long an incident is followed |
//! | [`health`] | how far a client's symbols are believed |
//! | [`reach`], [`influence`] | who can affect whom: declared, and learned from nominal states |
//! | [`predictions`] | tier 2: what one client's state explains of another |
//! | [`rounds`], [`batch`], [`StateCorrelation`] | training: f_s, gradients, how states move together |
//! | `tape` | the messages of every step, to decide them again |

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

pub(crate) mod batch;
pub(crate) mod decision;
pub(crate) mod disturbance;
mod evidence;
mod flags;
pub(crate) mod health;
pub(crate) mod inbox;
pub(crate) mod inference;
pub(crate) mod influence;
pub(crate) mod lifetime;
pub(crate) mod lookup;
mod moments;
pub(crate) mod predictions;
pub(crate) mod reach;
pub(crate) mod rounds;
mod tape;
mod together;

pub(crate) use self::decision::Decision;
pub(crate) use self::inbox::Receipt;
pub(crate) use self::rounds::Rounds;
pub(crate) use self::together::{Estimator, Map, StateCorrelation};

use self::decision::{QualityKind, QualityNote};
use self::evidence::EvidenceDecider;
use self::flags::FlagDecider;
use self::health::{CalibrationHealth, Standing};
use self::inbox::Inbox;
use self::predictions::Predictions;
use self::reach::Reach;
use self::tape::Tape;
use serde::{Deserialize, Serialize};

use crate::evidence::symbol::Grading;
use crate::evidence::threshold::Flags;
use crate::privacy::{Faults, Ranks};
use crate::session::{Mode, Vote};
use crate::wire::{Content, Follows, Message, Tick, ToSite};

/// What a server knows before the first message: settings that are public.
#[derive(Debug)]
pub(crate) struct Setup {
    /// The method that decides.
    pub(crate) mode: Mode,
    pub(crate) clients: usize,
    pub(crate) grading: Grading,
    /// Wanted steps between two false alarms of the whole federation.
    pub(crate) arl0_steps: f64,
    /// Influences that the session declares.
    pub(crate) reach: Reach,
    /// Of how many steps so many have to name a root, in paper mode.
    pub(crate) vote: Option<Vote>,
    /// Tier 2.
    pub(crate) predictions: Option<Predictions>,
    /// Messages are kept, so that they can be decided again.
    pub(crate) keep: bool,
}

/// How the server sees one client after a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct ServerView {
    /// (Z_c, Z_a) as they came.
    pub(crate) flags: Option<Flags>,
    /// Level of the symbol as it came.
    pub(crate) level: Option<u8>,
    /// S_m by b_m: from 1 on it is an alarm. NaN where there is none.
    pub(crate) evidence: f32,
    /// How far its symbols are believed.
    pub(crate) standing: Standing,
}

impl Default for ServerView {
    fn default() -> Self {
        Self { flags: None, level: None, evidence: f32::NAN, standing: Standing::Trusted }
    }
}

#[derive(Debug, Clone)]
enum Method {
    Evidence(Box<EvidenceDecider>),
    Paper(FlagDecider),
}

/// The server of one federation.
#[derive(Debug)]
pub struct Server {
    method: Method,
    inbox: Inbox,
    predictions: Option<Predictions>,
    /// Which kinds of fault each client's sensors have, by its last message.
    faults: Vec<Faults>,
    /// The sensors that a client named when it was asked.
    sensors: Vec<Option<Ranks>>,
    flags: Vec<Option<Flags>>,
    decision: Decision,
    tick: Option<Tick>,
    tape: Option<Tape>,
}

impl Server {
    /// A server before the first message.
    pub(crate) fn new(setup: Setup) -> Self {
        let Setup { mode, clients, grading, arl0_steps, reach, vote, predictions, keep } = setup;
        let method = match mode {
            Mode::Evidence => Method::Evidence(Box::new(EvidenceDecider::new(
                clients,
                grading.clone(),
                arl0_steps,
                reach,
            ))),
            Mode::Paper => Method::Paper(FlagDecider::new(clients, vote)),
        };
        Self {
            method,
            inbox: Inbox::new(clients, grading, 0),
            predictions,
            faults: vec![Faults::default(); clients],
            sensors: vec![None; clients],
            flags: vec![None; clients],
            decision: Decision::new(clients),
            tick: None,
            tape: keep.then(Tape::default),
        }
    }

    /// Takes a message that a site sent.
    pub fn hear(&mut self, message: &Message) -> Receipt {
        let client = message.client();
        if client >= self.faults.len() {
            return Receipt::Stranger;
        }
        match message.content() {
            Content::Enrolment(enrolment) => match &mut self.method {
                Method::Evidence(decider) => {
                    decider.enrol(client, enrolment);
                    if let Some(tape) = &mut self.tape {
                        tape.enrol(client, enrolment);
                    }
                }
                // Flags need no enrolment.
                Method::Paper(_) => return Receipt::Misplaced,
            },
            Content::Faults(faults) => self.faults[client] = *faults,
            Content::Sensors(ranks) => self.sensors[client] = Some(ranks.clone()),
            // Training is over: `Rounds` hears of states.
            Content::States { .. } => return Receipt::Misplaced,
            Content::Summary { .. }
            | Content::Symbol { .. }
            | Content::Severe { .. }
            | Content::Quiet
            | Content::Flags { .. } => return self.inbox.take(message),
        }
        Receipt::Taken
    }

    /// A step begins; in tier 2 clients receive what is predicted of it.
    pub(crate) fn begin(&mut self, tick: Tick, send: &mut dyn FnMut(ToSite)) {
        match tick.follows {
            Follows::Next => {}
            Follows::After { missing } => {
                if let Some(predictions) = &mut self.predictions {
                    predictions.skip(missing);
                }
            }
            Follows::Anew | Follows::NewRun => {
                match &mut self.method {
                    Method::Evidence(decider) => decider.reset(),
                    Method::Paper(decider) => decider.reset(),
                }
                if let Some(predictions) = &mut self.predictions {
                    predictions.reset();
                }
            }
        }
        self.inbox.turn_to(tick.step);
        self.tick = Some(tick);
        if let Some(predictions) = &mut self.predictions {
            predictions.predict(tick.step, send);
        }
    }

    /// The decision about the step that has begun, from what has come for it.
    pub(crate) fn decide(&mut self) -> &Decision {
        self.decision.clear();
        let Some(tick) = self.tick else { return &self.decision };
        if let Some(predictions) = &mut self.predictions {
            for client in 0..self.faults.len() {
                predictions.hear(client, self.inbox.summary(client));
            }
        }
        for (client, flags) in self.flags.iter_mut().enumerate() {
            *flags = self.inbox.flags(client);
        }
        if let Some(tape) = &mut self.tape {
            match &self.method {
                Method::Evidence(_) => tape.keep(tick, self.inbox.reports(), &[]),
                Method::Paper(_) => tape.keep(tick, &[], &self.flags),
            }
        }
        note_faults(&self.faults, &mut self.decision.quality);
        match &mut self.method {
            Method::Evidence(decider) => {
                decider.step(self.inbox.reports(), tick.time, &mut self.decision);
            }
            Method::Paper(decider) => {
                decider.step(&self.flags, tick.time, &mut self.decision);
            }
        }
        &self.decision
    }

    /// What was decided last.
    pub(crate) fn decision(&self) -> &Decision {
        &self.decision
    }

    /// Tells clients that their last steps are normal from here on: an incident would not end.
    pub(crate) fn renew(&mut self, send: &mut dyn FnMut(ToSite)) {
        let step = self.inbox.step();
        if let Method::Evidence(decider) = &mut self.method {
            for (client, steps) in decider.renewed.drain(..) {
                send(ToSite::take_as_normal(client, step, steps));
            }
        }
    }

    /// An operator accepts what clients have shown in so many steps as the new normal. `disturbance` is the
    /// decision's own number of the incident, if it is one of its own.
    pub(crate) fn accept(
        &mut self,
        members: &[(usize, usize)],
        disturbance: Option<u64>,
        send: &mut dyn FnMut(ToSite),
    ) {
        let step = self.inbox.step();
        if let Method::Evidence(decider) = &mut self.method {
            decider.accept(members.iter().map(|(client, _)| *client), disturbance);
        }
        for (client, steps) in members {
            send(ToSite::take_as_normal(*client, step, *steps));
        }
    }

    /// What was accepted is not. Says whether the incident is followed again.
    pub(crate) fn take_back(
        &mut self,
        members: &[usize],
        disturbance: Option<u64>,
        send: &mut dyn FnMut(ToSite),
    ) -> bool {
        let step = self.inbox.step();
        for client in members {
            send(ToSite::take_back_normal(*client, step));
        }
        match &mut self.method {
            Method::Evidence(decider) => decider.take_back(disturbance),
            Method::Paper(_) => false,
        }
    }

    /// The message that asks a client which of its sensors deviate most.
    pub(crate) fn ask_for_sensors(&self, client: usize) -> ToSite {
        ToSite::name_sensors(client, self.inbox.step())
    }

    /// The sensors that a client named since this was asked last, the first one first.
    pub(crate) fn take_sensors(&mut self, client: usize) -> Option<Ranks> {
        self.sensors[client].take()
    }

    /// Another wanted number of steps between two false alarms, from now on.
    pub(crate) fn set_arl0(&mut self, arl0_steps: f64) {
        if let Method::Evidence(decider) = &mut self.method {
            decider.set_arl0(arl0_steps);
        }
    }

    /// Another vote from now on.
    pub(crate) fn set_vote(&mut self, vote: Option<Vote>) {
        if let Method::Paper(decider) = &mut self.method {
            decider.set_vote(vote);
        }
    }

    /// The method that decides.
    pub(crate) fn mode(&self) -> Mode {
        match self.method {
            Method::Evidence(_) => Mode::Evidence,
            Method::Paper(_) => Mode::Paper,
        }
    }

    /// Forgets all messages: sites must enrol again.
    pub(crate) fn forget(&mut self) {
        match &mut self.method {
            Method::Evidence(decider) => {
                decider.reset();
                decider.forget_enrolments();
            }
            Method::Paper(decider) => decider.reset(),
        }
        if let Some(predictions) = &mut self.predictions {
            predictions.reset();
        }
        // What sensors are at fault does not depend on the method.
        self.sensors.fill(None);
        self.flags.fill(None);
        self.tape = self.tape.as_ref().map(|_| Tape::default());
    }

    /// Forgets all sensor faults. Clients no longer send them, so a known fault would never end.
    pub(crate) fn forget_faults(&mut self) {
        self.faults.fill(Faults::default());
    }

    /// The same server before the first step, with all clients enrolled as at the beginning: to
    /// decide again on the same messages. It predicts nothing and keeps nothing.
    pub(crate) fn afresh(&self) -> Self {
        let mut method = self.method.clone();
        match &mut method {
            Method::Evidence(decider) => {
                if let Some(tape) = &self.tape {
                    decider.forget_enrolments();
                    tape.enrolled(0).for_each(|(client, e)| decider.enrol(client, e));
                }
                decider.reset();
            }
            Method::Paper(decider) => {
                decider.reset();
                *decider = FlagDecider::new(self.faults.len(), decider.vote());
            }
        }
        Self {
            method,
            inbox: self.inbox.clone(),
            predictions: None,
            faults: vec![Faults::default(); self.faults.len()],
            sensors: vec![None; self.sensors.len()],
            flags: vec![None; self.flags.len()],
            decision: Decision::new(self.faults.len()),
            tick: None,
            tape: None,
        }
    }

    /// The messages of all steps, where they are kept.
    pub(crate) fn ticks(&self) -> Option<&[Tick]> {
        self.tape.as_ref().map(Tape::ticks)
    }

    /// Puts the messages of the `t`-th step of `other` into the step that has begun.
    pub(crate) fn hear_again(&mut self, other: &Self, t: usize) {
        if let Some(tape) = &other.tape {
            // Those before the first step are enrolled from the beginning.
            if let Method::Evidence(decider) = &mut self.method
                && t > 0
            {
                tape.enrolled(t).for_each(|(client, e)| decider.enrol(client, e));
            }
            let (reports, flags) = tape.row(t, self.faults.len());
            self.inbox.restore(reports, flags);
        }
    }

    /// What a client's calibration looks like, as far as it tells.
    pub(crate) fn calibration(&self, client: usize) -> Option<CalibrationHealth> {
        match &self.method {
            Method::Evidence(decider) => decider.calibration(client),
            Method::Paper(_) => None,
        }
    }

    /// Steps of nothing but the strongest symbol after which a client alarms, where symbols decide.
    pub(crate) fn alarm_steps(&self, client: usize) -> Option<f64> {
        match &self.method {
            Method::Evidence(decider) => decider.alarm_steps(client),
            Method::Paper(_) => None,
        }
    }

    /// How the server sees a client after the last step.
    pub(crate) fn view(&self, client: usize) -> ServerView {
        let mut view = ServerView { flags: self.flags[client], ..ServerView::default() };
        if let Method::Evidence(decider) = &self.method {
            let own = self.inbox.reports()[client].own();
            view.level = own.map(|symbol| symbol.level() as u8);
            view.evidence = decider.share_of_alarm(client).map_or(f32::NAN, |share| share as f32);
            view.standing = decider.standing(client);
        }
        view
    }
}

/// What is wrong with sensors, client by client.
fn note_faults(faults: &[Faults], quality: &mut Vec<QualityNote>) {
    for (client, faults) in faults.iter().enumerate() {
        for (is, what) in [
            (faults.gap, QualityKind::Gap { seconds: 0.0 }),
            (faults.flat_line, QualityKind::Stuck),
            (faults.out_of_range, QualityKind::Range),
        ] {
            if is {
                quality.push(QualityNote { client: Some(client), what });
            }
        }
    }
}
