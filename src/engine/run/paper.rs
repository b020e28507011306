//! Paper mode: distances of both residuals against τ, flags, the look-up table.

use jiff::Timestamp;

use super::episode::Episodes;
use super::RunError;
use super::told::Told;
use crate::engine::material::SensorView;
use crate::engine::prepare::{Prepared, PreparedClient};
use crate::evidence::lookup::{Voting, look_up};
use crate::evidence::threshold::{FlagThresholds, Flags};
use crate::incident::{QualityKind, QualityNote};
use crate::link::{FlagPair, Message, Tap};
use crate::model::augment::Augmentation;
use crate::model::proprietary::VendorModel;
use crate::model::step::ClientStep;
use crate::model::train::SETTLING;
use crate::privacy::{Account, Books, Flag, Provenance, Randomness, Said, Voice};
use crate::rng;
use crate::session::{Session, Thresholds};
use crate::stream::{Frame, Layout};

/// Source of a client's seed.
const LIVE: u64 = 0x5A;

/// One client at work. Its measurements stay inside; two flags a step leave.
#[derive(Debug)]
struct Flagger {
    view: SensorView,
    client: ClientStep,
    thresholds: FlagThresholds,
    voice: Voice,
    y: Vec<f32>,
    /// Steps since the run began.
    age: usize,
    /// First of the flags Z_c that stand now.
    risen: Option<Timestamp>,
}

/// Clients and server.
#[derive(Debug)]
pub(super) struct Paper {
    clients: Vec<Flagger>,
    flags: Vec<Option<Flags>>,
    voting: Option<Voting>,
    episodes: Episodes,
    steps: usize,
}

/// τ_c and τ_a of a client as distances.
pub(super) fn thresholds(client: &PreparedClient, wanted: &Thresholds) -> FlagThresholds {
    FlagThresholds {
        tau_c: client.nominal_c.distances.threshold(wanted.tau_c),
        tau_a: client.nominal_a.distances.threshold(wanted.tau_a),
    }
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
        Ok(Self {
            flags: vec![None; clients.len()],
            voting: session.thresholds.vote.map(|vote| Voting::new(vote, clients.len())),
            episodes: Episodes::new(clients.len()),
            steps: 0,
            clients,
        })
    }

    /// A new run begins: nothing of the one before counts.
    pub fn reset(&mut self) {
        for client in &mut self.clients {
            client.client.reset();
            client.voice.reset();
            (client.age, client.risen) = (0, None);
        }
        if let Some(voting) = &mut self.voting {
            voting.reset();
        }
        self.episodes.forget();
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
        let Self { clients, flags, steps, .. } = self;
        *steps += 1;
        for (m, (client, flags)) in clients.iter_mut().zip(flags.iter_mut()).enumerate() {
            client.view.standardise(frame.row(layout, m), &mut client.y);
            if client.y.iter().all(|y| y.is_nan()) {
                let what = QualityKind::Gap { seconds: 0.0 };
                told.quality.push(QualityNote { client: Some(m), what });
            }
            let account = Account { books, client: m, time: frame.time };
            *flags = client.look().and_then(|flags| client.send(flags, *steps, account, tap));
            client.follow(*flags, frame.time);
            let state = &mut told.clients[m];
            state.raised_since = client.risen;
            state.own_fault = flags.is_some_and(|flags| flags.z_a);
        }
        let named = look_up(&self.flags).root();
        let declared = self.voting.as_mut().map_or(named, |voting| voting.step(named));
        self.episodes.step(declared, frame.time, told);
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
        thresholds: thresholds(client, &session.thresholds),
        voice: Voice::for_flags(&session.privacy, arl0_steps, random)?,
        y: vec![f32::NAN; client.view.used.len()],
        age: 0,
        risen: None,
    })
}

impl Flagger {
    /// True flags of what stands in `y`; none while the filter finds its state.
    fn look(&mut self) -> Option<Flags> {
        let distances = self.client.step(&self.y);
        self.age += 1;
        if self.age <= SETTLING {
            return None;
        }
        self.thresholds.flags(distances.c?, distances.a?)
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

    fn follow(&mut self, flags: Option<Flags>, now: Timestamp) {
        if let Some(flags) = flags {
            self.risen = if flags.z_c { self.risen.or(Some(now)) } else { None };
        }
    }
}
