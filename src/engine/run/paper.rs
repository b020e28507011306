//! Paper mode: distances of both residuals against τ, flags, the look-up table.

use jiff::Timestamp;

use super::RunError;
use super::episode::Episodes;
use super::sight::{Sight, norm};
use super::told::Told;
use crate::engine::material::SensorView;
use crate::engine::prepare::{Prepared, PreparedClient};
use crate::evidence::lookup::{Voting, look_up};
use crate::evidence::threshold::{FlagThresholds, Flagging, Flags, NominalDistances};
use crate::link::{FlagPair, Message, Tap};
use crate::model::augment::Augmentation;
use crate::model::proprietary::VendorModel;
use crate::model::step::ClientStep;
use crate::model::train::SETTLING;
use crate::privacy::{Account, Books, Flag, PrivacyError, Provenance, Randomness, Said, Voice};
use crate::rng;
use crate::session::{Session, Tau, Thresholds, Vote};
use crate::stream::{Frame, Layout};

/// Source of a client's seed.
const LIVE: u64 = 0x5A;

/// One client at work. Its measurements stay inside; two flags a step leave.
#[derive(Debug)]
struct Flagger {
    view: SensorView,
    client: ClientStep,
    voice: Voice,
    flagging: Flagging,
    y: Vec<f32>,
    /// Steps since the run began.
    age: usize,
}

/// What a client measured at a step, and which of its two flags its randomised response turned round.
/// Flags follow from it by any rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Measured {
    /// d² of r_c; NaN where there is none.
    pub d2_c: f32,
    /// d² of r_a.
    pub d2_a: f32,
    /// What is sent for Z_c is its contrary.
    pub flip_c: bool,
    /// What is sent for Z_a is its contrary.
    pub flip_a: bool,
    /// Flags are sent at all.
    pub sent: bool,
}

impl Measured {
    const NOTHING: Self =
        Self { d2_c: f32::NAN, d2_a: f32::NAN, flip_c: false, flip_a: false, sent: false };

    /// What leaves the client whose flags are these.
    fn sent(self, truth: Option<Flags>) -> Option<Flags> {
        let flags = truth.filter(|_| self.sent)?;
        Some(Flags::new(flags.z_c ^ self.flip_c, flags.z_a ^ self.flip_a))
    }
}

/// Clients and server.
#[derive(Debug)]
pub(super) struct Paper {
    clients: Vec<Flagger>,
    measured: Vec<Measured>,
    desk: Desk,
    steps: usize,
}

/// When a client is flagged, and when a root is declared.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rule {
    /// Of every client.
    pub thresholds: Vec<FlagThresholds>,
    /// The share of τ that a raised flag falls at.
    pub deadband: f32,
    /// Of how many steps so many have to name a root.
    pub vote: Option<Vote>,
}

/// Flags and the look-up: all that follows from what was measured. A recorded day can be decided
/// again by another rule.
#[derive(Debug, Clone)]
pub(super) struct Desk {
    rule: Rule,
    flagging: Vec<Flagging>,
    flags: Vec<Option<Flags>>,
    voting: Option<Voting>,
    episodes: Episodes,
    /// First of the flags Z_c that stand now, for each client.
    risen: Vec<Option<Timestamp>>,
}

impl Desk {
    /// Nothing has been heard.
    pub fn new(rule: Rule) -> Self {
        let clients = rule.thresholds.len();
        Self {
            flagging: vec![Flagging::default(); clients],
            flags: vec![None; clients],
            voting: rule.vote.map(|vote| Voting::new(vote, clients)),
            rule,
            episodes: Episodes::new(clients),
            risen: vec![None; clients],
        }
    }

    /// Another rule from now on. A vote over another horizon begins with an empty one.
    fn set_rule(&mut self, rule: Rule) {
        if rule.vote != self.rule.vote {
            self.voting = rule.vote.map(|vote| Voting::new(vote, self.flags.len()));
        }
        self.rule = rule;
    }

    /// A new run begins: nothing of the one before counts.
    pub fn reset(&mut self) {
        if let Some(voting) = &mut self.voting {
            voting.reset();
        }
        self.flagging.fill(Flagging::default());
        self.episodes.forget();
        self.risen.fill(None);
    }

    /// The flags of one step, as they leave the clients.
    pub fn flag(&mut self, measured: &[Measured]) -> &[Option<Flags>] {
        let Self { rule, flagging, flags, .. } = self;
        for (m, measured) in measured.iter().enumerate() {
            let (d2_c, d2_a) = (measured.d2_c, measured.d2_a);
            let truth = flagging[m].step(d2_c, d2_a, rule.thresholds[m], rule.deadband);
            flags[m] = measured.sent(truth);
        }
        flags
    }

    /// One step.
    pub fn step(&mut self, measured: &[Measured], time: Timestamp, told: &mut Told) {
        self.flag(measured);
        for (m, flags) in self.flags.iter().copied().enumerate() {
            if let Some(flags) = flags {
                let risen = &mut self.risen[m];
                *risen = if flags.z_c { risen.or(Some(time)) } else { None };
            }
            let state = &mut told.clients[m];
            state.raised_since = self.risen[m];
            state.own_fault = flags.is_some_and(|flags| flags.z_a);
        }
        let named = look_up(&self.flags).root();
        let declared = self.voting.as_mut().map_or(named, |voting| voting.step(named));
        self.episodes.step(declared, time, told);
    }
}

/// τ_c and τ_a of a client as distances.
pub(super) fn thresholds(client: &PreparedClient, wanted: &Thresholds) -> FlagThresholds {
    FlagThresholds {
        tau_c: client.nominal_c.distances.threshold(wanted.tau_c),
        tau_a: client.nominal_a.distances.threshold(wanted.tau_a),
    }
}

/// The same from its nominal distances of r_c and r_a.
pub(super) fn read(nominal: &[NominalDistances; 2], tau: [Tau; 2]) -> FlagThresholds {
    FlagThresholds { tau_c: nominal[0].threshold(tau[0]), tau_a: nominal[1].threshold(tau[1]) }
}

impl Paper {
    /// Every client with the model whose states it sends, and its φ.
    pub fn new(session: &Session, prepared: &Prepared, period_s: f64) -> Result<Self, RunError> {
        let clients = prepared
            .clients
            .iter()
            .enumerate()
            .map(|(m, client)| {
                flagger(client, session, period_s, rng::child(session.seed, m as u64))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let tau = |client| thresholds(client, &session.thresholds);
        let rule = Rule {
            thresholds: prepared.clients.iter().map(tau).collect(),
            deadband: session.thresholds.deadband as f32,
            vote: session.thresholds.vote,
        };
        Ok(Self {
            measured: vec![Measured::NOTHING; clients.len()],
            desk: Desk::new(rule),
            steps: 0,
            clients,
        })
    }

    /// What was measured at the last step, client by client.
    pub fn measured(&self) -> &[Measured] {
        &self.measured
    }

    /// Another rule from now on.
    pub fn set_rule(&mut self, rule: Rule) {
        self.desk.set_rule(rule);
    }

    /// Another ε of every flag from now on.
    pub fn set_epsilon(&mut self, epsilon: Option<f64>) -> Result<(), PrivacyError> {
        self.clients.iter_mut().try_for_each(|client| client.voice.set_epsilon(epsilon))
    }

    /// A new run begins: nothing of the one before counts.
    pub fn reset(&mut self) {
        for client in &mut self.clients {
            client.client.reset();
            client.voice.reset();
            client.flagging = Flagging::default();
            client.age = 0;
        }
        self.desk.reset();
    }

    /// `steps` without data: models predict.
    pub fn skip(&mut self, steps: usize) {
        self.clients.iter_mut().for_each(|client| client.client.skip(steps));
    }

    /// One step; what is sent is entered in `books` and heard by `tap`.
    pub fn step(
        &mut self,
        frame: &Frame,
        layout: &Layout,
        told: &mut Told,
        books: &mut Books,
        tap: &Tap,
    ) {
        let Self { clients, measured, desk, steps } = self;
        *steps += 1;
        for (m, (client, measured)) in clients.iter_mut().zip(measured.iter_mut()).enumerate() {
            client.view.standardise(frame.row(layout, m), &mut client.y);
            let account = Account { books, client: m, time: frame.time };
            *measured = client.look(m, &desk.rule, *steps, account, tap);
        }
        desk.step(measured, frame.time, told);
    }

    /// What can be seen of every client now.
    pub fn show(&self, sights: &mut [Sight]) {
        for (m, (sight, client)) in sights.iter_mut().zip(&self.clients).enumerate() {
            sight.d_c = self.measured[m].d2_c.sqrt();
            sight.d_a = self.measured[m].d2_a.sqrt();
            sight.r_c = norm(&client.client.output().r);
            sight.r_a = client.client.augmentation().map_or(f32::NAN, |chain| norm(chain.r()));
            sight.flags = self.desk.flags[m];
        }
    }
}

fn flagger(
    client: &PreparedClient,
    session: &Session,
    period_s: f64,
    seed: u64,
) -> Result<Flagger, RunError> {
    let model = VendorModel::new(&client.sending)?;
    let augmentation = Augmentation::new(&client.phi, &model)?;
    let mut step = ClientStep::new(model, Some(augmentation));
    step.calibrate(&client.nominal_c.gaussian, Some(&client.nominal_a.gaussian));
    let random = Randomness::of(Provenance::of(session), seed, LIVE);
    let arl0_steps = session.thresholds.arl0.seconds / period_s;
    Ok(Flagger {
        view: client.view.clone(),
        client: step,
        voice: Voice::for_flags(&session.privacy, arl0_steps, random)?,
        flagging: Flagging::default(),
        y: vec![f32::NAN; client.view.used.len()],
        age: 0,
    })
}

impl Flagger {
    /// Takes what stands in `y` and sends its flags; nothing while the filter finds its state.
    fn look(
        &mut self,
        client: usize,
        rule: &Rule,
        step: usize,
        account: Account<'_>,
        tap: &Tap,
    ) -> Measured {
        let distances = self.client.step(&self.y);
        self.age += 1;
        let (Some(d2_c), Some(d2_a), true) = (distances.c, distances.a, self.age > SETTLING) else {
            return Measured::NOTHING;
        };
        let measured = Measured { d2_c, d2_a, ..Measured::NOTHING };
        let truth = self.flagging.step(d2_c, d2_a, rule.thresholds[client], rule.deadband);
        let Some(truth) = truth else { return measured };
        // With two symbols to choose from, whether a flag is turned round does not depend on it:
        // what was drawn holds by any other rule too.
        match self.send(truth, step, account, tap) {
            Some(sent) => Measured {
                flip_c: sent.z_c != truth.z_c,
                flip_a: sent.z_a != truth.z_a,
                sent: true,
                ..measured
            },
            None => measured,
        }
    }

    /// What leaves the client.
    fn send(
        &mut self,
        flags: Flags,
        step: usize,
        mut account: Account<'_>,
        tap: &Tap,
    ) -> Option<Flags> {
        let client = account.client;
        match self.voice.flags(&mut account, Flag(flags.z_c), Flag(flags.z_a)) {
            Said::Symbol((z_c, z_a)) | Said::Raised((z_c, z_a)) => {
                let pair = FlagPair::new(client, step, &z_c, &z_a);
                tap.hear(&Message::Flags(pair));
                let (z_c, z_a) = pair.flags();
                Some(Flags::new(z_c, z_a))
            }
            Said::Quiet | Said::Nothing => None,
        }
    }
}
