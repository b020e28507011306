//! Paper mode: distances of both residuals against τ, flags, the look-up table.

use jiff::Timestamp;

use super::episode::Episodes;
use super::told::Told;
use super::{Releases, RunError};
use crate::engine::material::SensorView;
use crate::engine::prepare::{Prepared, PreparedClient};
use crate::evidence::lookup::{Voting, look_up};
use crate::evidence::symbol::{Grading, RandomisedResponse};
use crate::evidence::threshold::{FlagThresholds, Flags};
use crate::incident::{QualityKind, QualityNote};
use crate::model::augment::Augmentation;
use crate::model::proprietary::VendorModel;
use crate::model::step::ClientStep;
use crate::model::train::SETTLING;
use crate::rng::{self, Rng};
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
    noise: Rng,
    y: Vec<f32>,
    /// Steps since the run began.
    age: usize,
    sent: u64,
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
    grading: Grading,
    response: RandomisedResponse,
    epsilon: Option<f64>,
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
    pub fn new(session: &Session, prepared: &Prepared) -> Result<Self, RunError> {
        let clients = prepared
            .clients
            .iter()
            .enumerate()
            .map(|(m, client)| flagger(client, session, rng::child(session.seed, m as u64)))
            .collect::<Result<Vec<_>, _>>()?;
        let (grading, epsilon) = (Grading::one_bit(), session.privacy.epsilon_flag);
        Ok(Self {
            flags: vec![None; clients.len()],
            voting: session.thresholds.vote.map(|vote| Voting::new(vote, clients.len())),
            episodes: Episodes::new(clients.len()),
            response: RandomisedResponse::new(grading.levels(), epsilon),
            grading,
            epsilon,
            clients,
        })
    }

    /// What a client has sent so far.
    pub fn releases(&self, client: usize) -> Releases {
        Releases { count: self.clients[client].sent, epsilon: self.epsilon, symbols: 2 }
    }

    /// A new run begins: nothing of the one before counts.
    pub fn reset(&mut self) {
        for client in &mut self.clients {
            client.client.reset();
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

    /// One step.
    pub fn step(&mut self, frame: &Frame, layout: &Layout, told: &mut Told) {
        let Self { clients, flags, grading, response, .. } = self;
        for (m, (client, flags)) in clients.iter_mut().zip(flags.iter_mut()).enumerate() {
            client.view.standardise(frame.row(layout, m), &mut client.y);
            if client.y.iter().all(|y| y.is_nan()) {
                let what = QualityKind::Gap { seconds: 0.0 };
                told.quality.push(QualityNote { client: Some(m), what });
            }
            *flags = client.look().map(|flags| client.send(flags, grading, response));
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

fn flagger(client: &PreparedClient, session: &Session, seed: u64) -> Result<Flagger, RunError> {
    let model = VendorModel::new(&client.sending)?;
    let augmentation = Augmentation::new(&client.phi, &model)?;
    let mut step = ClientStep::new(model, Some(augmentation));
    step.calibrate(&client.nominal_c.gaussian, Some(&client.nominal_a.gaussian));
    Ok(Flagger {
        view: client.view.clone(),
        client: step,
        thresholds: thresholds(client, &session.thresholds),
        noise: rng::stream(seed, LIVE),
        y: vec![f32::NAN; client.view.used.len()],
        age: 0,
        sent: 0,
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
    fn send(&mut self, flags: Flags, grading: &Grading, response: &RandomisedResponse) -> Flags {
        self.sent += 2;
        let mut released = |flag: bool| {
            let symbol = grading.symbol(usize::from(flag));
            symbol.map_or(flag, |symbol| response.rehearse(symbol, &mut self.noise).level() == 1)
        };
        Flags::new(released(flags.z_c), released(flags.z_a))
    }

    fn follow(&mut self, flags: Option<Flags>, now: Timestamp) {
        if let Some(flags) = flags {
            self.risen = if flags.z_c { self.risen.or(Some(now)) } else { None };
        }
    }
}
