//! Paper mode: distances of both residuals against τ, flags, the look-up table.

use jiff::Timestamp;

use super::episode::Episodes;
use super::sight::{Sight, norm};
use super::told::Told;
use super::{Releases, RunError};
use crate::engine::material::SensorView;
use crate::engine::prepare::{Prepared, PreparedClient};
use crate::evidence::lookup::{Voting, look_up};
use crate::evidence::symbol::{Grading, RandomisedResponse};
use crate::evidence::threshold::{FlagThresholds, Flags, NominalDistances};
use crate::incident::{QualityKind, QualityNote};
use crate::model::augment::Augmentation;
use crate::model::proprietary::VendorModel;
use crate::model::step::ClientStep;
use crate::model::train::SETTLING;
use crate::rng::{self, Rng};
use crate::session::{Session, Tau, Thresholds, Vote};
use crate::stream::{Frame, Layout};

/// Source of a client's seed.
const LIVE: u64 = 0x5A;

/// One client at work. Its measurements stay inside; two flags a step leave.
#[derive(Debug)]
struct Flagger {
    view: SensorView,
    client: ClientStep,
    noise: Rng,
    y: Vec<f32>,
    /// Steps since the run began.
    age: usize,
    sent: u64,
}

/// What a client measured at a step, and which of its two flags its randomised response turned round.
/// Flags follow from it at any τ.
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
}

impl Measured {
    const NOTHING: Self = Self { d2_c: f32::NAN, d2_a: f32::NAN, flip_c: false, flip_a: false };

    /// What leaves the client at these thresholds.
    fn sent(self, thresholds: FlagThresholds) -> Option<Flags> {
        let flags = thresholds.flags(self.d2_c, self.d2_a)?;
        Some(Flags::new(flags.z_c ^ self.flip_c, flags.z_a ^ self.flip_a))
    }
}

/// Clients and server.
#[derive(Debug)]
pub(super) struct Paper {
    clients: Vec<Flagger>,
    measured: Vec<Measured>,
    desk: Desk,
    grading: Grading,
    response: RandomisedResponse,
    epsilon: Option<f64>,
}

/// Thresholds, flags and the look-up: all that follows from what was measured. A recorded day can be
/// decided again at other thresholds.
#[derive(Debug, Clone)]
pub(super) struct Desk {
    thresholds: Vec<FlagThresholds>,
    vote: Option<Vote>,
    flags: Vec<Option<Flags>>,
    voting: Option<Voting>,
    episodes: Episodes,
    /// First of the flags Z_c that stand now, for each client.
    risen: Vec<Option<Timestamp>>,
}

impl Desk {
    fn new(thresholds: Vec<FlagThresholds>, vote: Option<Vote>) -> Self {
        let clients = thresholds.len();
        Self {
            thresholds,
            vote,
            flags: vec![None; clients],
            voting: vote.map(|vote| Voting::new(vote, clients)),
            episodes: Episodes::new(clients),
            risen: vec![None; clients],
        }
    }

    /// As it was before anything was heard, at other thresholds.
    pub fn afresh(&self, thresholds: Vec<FlagThresholds>) -> Self {
        Self::new(thresholds, self.vote)
    }

    /// A new run begins: nothing of the one before counts.
    pub fn reset(&mut self) {
        if let Some(voting) = &mut self.voting {
            voting.reset();
        }
        self.episodes.forget();
        self.risen.fill(None);
    }

    /// One step.
    pub fn step(&mut self, measured: &[Measured], time: Timestamp, told: &mut Told) {
        for (m, measured) in measured.iter().enumerate() {
            let flags = measured.sent(self.thresholds[m]);
            self.flags[m] = flags;
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
    pub fn new(session: &Session, prepared: &Prepared) -> Result<Self, RunError> {
        let clients = prepared
            .clients
            .iter()
            .enumerate()
            .map(|(m, client)| flagger(client, rng::child(session.seed, m as u64)))
            .collect::<Result<Vec<_>, _>>()?;
        let (grading, epsilon) = (Grading::one_bit(), session.privacy.epsilon_flag);
        let tau = |client| thresholds(client, &session.thresholds);
        let thresholds = prepared.clients.iter().map(tau).collect();
        Ok(Self {
            measured: vec![Measured::NOTHING; clients.len()],
            desk: Desk::new(thresholds, session.thresholds.vote),
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

    /// Flags and the look-up.
    pub fn desk(&self) -> &Desk {
        &self.desk
    }

    /// What was measured at the last step, client by client.
    pub fn measured(&self) -> &[Measured] {
        &self.measured
    }

    /// Other thresholds from now on.
    pub fn set_thresholds(&mut self, thresholds: &[FlagThresholds]) {
        self.desk.thresholds.copy_from_slice(thresholds);
    }

    /// Another ε of every flag from now on.
    pub fn set_epsilon(&mut self, epsilon: Option<f64>) {
        self.epsilon = epsilon;
        self.response = RandomisedResponse::new(self.grading.levels(), epsilon);
    }

    /// A new run begins: nothing of the one before counts.
    pub fn reset(&mut self) {
        for client in &mut self.clients {
            client.client.reset();
            client.age = 0;
        }
        self.desk.reset();
    }

    /// `steps` without data: models predict.
    pub fn skip(&mut self, steps: usize) {
        self.clients.iter_mut().for_each(|client| client.client.skip(steps));
    }

    /// One step.
    pub fn step(&mut self, frame: &Frame, layout: &Layout, told: &mut Told) {
        let Self { clients, measured, grading, response, .. } = self;
        for (m, (client, measured)) in clients.iter_mut().zip(measured.iter_mut()).enumerate() {
            client.view.standardise(frame.row(layout, m), &mut client.y);
            if client.y.iter().all(|y| y.is_nan()) {
                let what = QualityKind::Gap { seconds: 0.0 };
                told.quality.push(QualityNote { client: Some(m), what });
            }
            *measured = client.look(grading, response);
        }
        self.desk.step(&self.measured, frame.time, told);
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

fn flagger(client: &PreparedClient, seed: u64) -> Result<Flagger, RunError> {
    let model = VendorModel::new(&client.sending)?;
    let augmentation = Augmentation::new(&client.phi, &model)?;
    let mut step = ClientStep::new(model, Some(augmentation));
    step.calibrate(&client.nominal_c.gaussian, Some(&client.nominal_a.gaussian));
    Ok(Flagger {
        view: client.view.clone(),
        client: step,
        noise: rng::stream(seed, LIVE),
        y: vec![f32::NAN; client.view.used.len()],
        age: 0,
        sent: 0,
    })
}

impl Flagger {
    /// What stands in `y`; nothing while the filter finds its state.
    fn look(&mut self, grading: &Grading, response: &RandomisedResponse) -> Measured {
        let distances = self.client.step(&self.y);
        self.age += 1;
        let (Some(d2_c), Some(d2_a), true) = (distances.c, distances.a, self.age > SETTLING) else {
            return Measured::NOTHING;
        };
        self.sent += 2;
        // With two symbols to choose from, whether a flag is turned round does not depend on it.
        let mut flip = || {
            grading
                .symbol(0)
                .is_some_and(|symbol| response.rehearse(symbol, &mut self.noise).level() == 1)
        };
        Measured { d2_c, d2_a, flip_c: flip(), flip_a: flip() }
    }
}
