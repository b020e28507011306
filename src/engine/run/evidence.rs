//! Evidence mode: every client grades its own steps, the server adds up what the grades say.

use jiff::Timestamp;
use ndarray::ArrayView2;

use super::RunError;
use super::confer::Conference;
use super::sight::Sight;
use super::told::Told;
use crate::engine::material::{ClientMaterial, Material, SensorView};
use crate::engine::prepare::{Prepared, PreparedClient};
use crate::evidence::health::{CalibrationHealth, Report};
use crate::evidence::inference::{Change, Closing, Incident, Inference, Rules};
use crate::evidence::reach::Reach;
use crate::evidence::site::{Enrolment, Reading, Site, SiteSettings};
use crate::evidence::symbol::{Grading, MOST_LEVELS, Symbol};
use crate::evidence::watch::score;
use crate::evidence::whitening::{Recording, Sample};
use crate::link::{Graded, Message, Tap};
use crate::model::kernel::WeightsError;
use crate::model::proprietary::{Proprietary as _, VendorModel};
use crate::privacy::{
    self, Account, Books, Counted, Estimate, InTheClear as _, Manner, PrivacyError, Provenance,
    Purpose, Randomness, Released, Said, Vigil, Voice, What,
};
use crate::rng;
use crate::session::privacy::{AtZero, BudgetSettings};
use crate::session::{Session, Tier};
use crate::stream::{Frame, Layout};

/// Sources of a client's seed.
const LIVE: u64 = 0x52;
const PAIRS: u64 = 0x50;

/// Sensors that a root names, where it may.
const REVEALED: usize = 3;

/// An onset lies no further back than this many steps.
const LOOK_BACK: usize = 64;

/// One client at work. Its measurements stay inside; a symbol a step leaves.
#[derive(Debug)]
struct Watcher {
    view: SensorView,
    model: VendorModel,
    site: Site,
    voice: Voice,
    y: Vec<f32>,
    /// Set points and commands it knows of, never monitored.
    inputs: SensorView,
    known: Vec<f32>,
    /// True symbols of its calibration: another ε means another enrolment.
    calibration: Vec<Option<Symbol>>,
    /// Distance of the whitened residual at the last step.
    distance: f32,
}

/// Clients and server.
#[derive(Debug)]
pub(super) struct Evidence {
    watchers: Vec<Watcher>,
    /// Tier 2.
    conference: Option<Conference>,
    seed: u64,
    desk: Desk,
    health: Vec<CalibrationHealth>,
    settings: SiteSettings,
    /// What each level adds to a watched sum.
    scores: [f64; MOST_LEVELS],
    reports: Vec<Report>,
}

/// The server's part: what was sent in, what it says about it out. It depends on nothing else, so
/// that a recorded day can be decided again under other settings.
#[derive(Debug, Clone)]
pub(super) struct Desk {
    /// The server before it heard anything: every run begins with it.
    fresh: Inference,
    server: Inference,
    /// Who takes what it shows as normal from here on, and of how many steps.
    renewed: Vec<(usize, usize)>,
    /// Since when each client's evidence has not been back at zero.
    risen: Vec<Option<Timestamp>>,
    /// Times of the last steps, a ring by the server's number of the step.
    times: [Timestamp; LOOK_BACK],
}

impl Desk {
    fn new(fresh: Inference, clients: usize) -> Self {
        Self {
            server: fresh.clone(),
            fresh,
            renewed: Vec::with_capacity(clients),
            risen: vec![None; clients],
            times: [Timestamp::UNIX_EPOCH; LOOK_BACK],
        }
    }

    /// A new run begins: nothing of the one before counts.
    pub fn reset(&mut self) {
        self.server.clone_from(&self.fresh);
        self.risen.fill(None);
    }

    /// As it was before anything was heard, with another wanted time between false alarms.
    pub fn afresh(&self, arl0_steps: f64) -> Self {
        let mut desk = self.clone();
        desk.set_arl0(arl0_steps);
        desk.reset();
        desk
    }

    fn set_arl0(&mut self, arl0_steps: f64) {
        self.fresh.set_arl0(arl0_steps);
        self.server.set_arl0(arl0_steps);
    }

    /// One step.
    pub fn step(&mut self, reports: &[Report], time: Timestamp, told: &mut Told) {
        let now = self.server.steps() + 1;
        self.times[now as usize % LOOK_BACK] = time;
        hear(self.server.step(reports), &self.times, now, &mut self.renewed, told);
        if let Some(incident) = self.server.incident() {
            told.follow(incident, time_of(&self.times, incident.onset, now), None);
        }
        for (m, (risen, state)) in self.risen.iter_mut().zip(&mut told.clients).enumerate() {
            let has_any = self.server.evidence(m) > 0.0;
            *risen = if has_any { risen.or(Some(time)) } else { None };
            state.raised_since = risen.filter(|_| self.server.is_affected(m));
            state.own_fault = self.server.has_own_fault(m);
            state.alarms = state.own_fault;
            state.explained = self.server.explained(m);
        }
    }
}

impl Evidence {
    /// Fits and calibrates every client, and enrols it; `tap` hears what is told for that.
    pub fn new(session: &Session, prepared: &Prepared, tap: &Tap) -> Result<Self, RunError> {
        let views = |_: &Layout| Some(prepared.clients.iter().map(|c| c.view.clone()).collect());
        let material = Material::read(session, prepared.every, &views)?;
        let rules = Rules::with_arl0(session.thresholds.arl0.seconds / material.layout.period_s);
        let settings = site_settings(session, rules.arl0);
        let levels = settings.grading.levels() as u8;
        let provenance = Provenance::of(session);
        let mut watchers = Vec::new();
        let mut enrolments = Vec::new();
        let mut health = Vec::new();
        let mut fitted = fit_all(prepared, &material, &settings)?;
        let grading = &settings.grading;
        let conference = match session.thresholds.tier {
            Tier::Symbols => None,
            Tier::States => {
                Some(Conference::open(session, prepared, &material, &mut fitted, grading, tap)?)
            }
        };
        for (m, fitted) in fitted.into_iter().enumerate() {
            let (model, site, calibration) = fitted;
            let seed = rng::child(session.seed, m as u64);
            health.push(calibration.health(&settings.grading, rules.arl0));
            let random = Randomness::of(provenance, seed, LIVE);
            let mut voice = Voice::for_symbols(&session.privacy, levels, rules.arl0, random)?;
            let beside = conference.as_ref().and_then(|conference| conference.calibration(m));
            let symbols = &calibration.symbols;
            enrolments.push(enrolment(symbols, beside, &settings, &rules, &mut voice, seed));
            watchers.push(Watcher {
                view: prepared.clients[m].view.clone(),
                y: vec![f32::NAN; model.sensors()],
                known: vec![f32::NAN; material.clients[m].inputs.used.len()],
                inputs: material.clients[m].inputs.clone(),
                model,
                site,
                voice,
                calibration: calibration.symbols,
                distance: f32::NAN,
            });
        }
        let reach = declared_reach(session, &material.layout);
        let fresh = Inference::new(settings.grading.clone(), rules, &enrolments, reach);
        Ok(Self {
            desk: Desk::new(fresh, watchers.len()),
            reports: vec![Report::Missing; watchers.len()],
            watchers,
            health,
            scores: score(&settings.grading, &rules.hypotheses),
            settings,
            conference,
            seed: session.seed,
        })
    }

    /// What each client's calibration looks like.
    pub fn health(&self) -> &[CalibrationHealth] {
        &self.health
    }

    /// The server's part.
    pub fn desk(&self) -> &Desk {
        &self.desk
    }

    /// What was sent at the last step, a report a client.
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// Another wanted number of steps between two false alarms, from now on.
    pub fn set_arl0(&mut self, arl0_steps: f64) {
        self.desk.set_arl0(arl0_steps);
    }

    /// Whether every symbol may have another ε from now on.
    pub fn check_epsilon(&self, epsilon: Option<f64>) -> Result<(), PrivacyError> {
        self.watchers.iter().try_for_each(|watcher| watcher.voice.check_epsilon(epsilon))
    }

    /// Another ε of every symbol from now on; the server hears the clients under new enrolments.
    pub fn set_epsilon(&mut self, epsilon: Option<f64>) -> Result<(), PrivacyError> {
        self.check_epsilon(epsilon)?;
        self.settings.epsilon = epsilon;
        let rules = *self.desk.server.rules();
        for (m, watcher) in self.watchers.iter_mut().enumerate() {
            watcher.voice.set_epsilon(epsilon)?;
            let beside = self.conference.as_ref().and_then(|c| c.calibration(m));
            let Watcher { calibration, voice, .. } = watcher;
            let seed = rng::child(self.seed, m as u64);
            let enrolment = enrolment(calibration, beside, &self.settings, &rules, voice, seed);
            self.desk.fresh.enrol_again(m, enrolment.clone());
            self.desk.server.enrol_again(m, enrolment);
        }
        Ok(())
    }

    /// What clients have shown in so many steps is the new normal. `episode` is the server's own
    /// number of the incident, if it is one of its own.
    pub fn accept(&mut self, members: &[(usize, usize)], episode: Option<u64>) {
        let server = &mut self.desk.server;
        let is_open = |open: &Incident| Some(open.number) == episode;
        if server.incident().is_some_and(is_open) {
            server.end(Closing::Accepted);
        }
        for (client, steps) in members {
            server.forget(*client);
            self.watchers[*client].site.take_as_normal(*steps);
        }
    }

    /// What was accepted is not. Says whether the server follows the incident again.
    pub fn take_back(&mut self, members: &[usize], episode: Option<u64>) -> bool {
        for client in members {
            self.watchers[*client].site.take_back_normal();
        }
        episode.is_some() && self.desk.server.take_back()
    }

    /// Nothing but what was calibrated is normal: another run has begun.
    pub fn forget_new_normals(&mut self) {
        self.watchers.iter_mut().for_each(|watcher| watcher.site.forget_new_normal());
    }

    /// A new run begins: nothing of the one before counts.
    pub fn reset(&mut self) {
        for watcher in &mut self.watchers {
            watcher.model.reset();
            watcher.site.reset();
            watcher.voice.reset();
        }
        if let Some(conference) = &mut self.conference {
            conference.reset();
        }
        self.desk.reset();
    }

    /// `steps` without data: models predict, sites see nothing, the server hears nothing.
    pub fn skip(&mut self, steps: usize) {
        for watcher in &mut self.watchers {
            watcher.y.fill(f32::NAN);
            watcher.known.fill(f32::NAN);
            for _ in 0..steps {
                watcher.look();
            }
        }
        if let Some(conference) = &mut self.conference {
            conference.skip(steps);
        }
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
        let step = self.desk.server.steps() as usize + 1;
        if let Some(conference) = &mut self.conference {
            conference.foretell(step, frame.time, books, tap);
        }
        for (m, (watcher, report)) in self.watchers.iter_mut().zip(&mut self.reports).enumerate() {
            watcher.view.standardise(frame.row(layout, m), &mut watcher.y);
            watcher.inputs.standardise(&frame.inputs[layout.input_span(m)], &mut watcher.known);
            let reading = watcher.look();
            let mut account = Account { books, client: m, time: frame.time };
            let said = watcher.send(reading.symbol, &self.scores, &mut account);
            *report = receive(&self.settings.grading, m, step, &said, tap);
            if let Some(conference) = &mut self.conference {
                let Watcher { y, model, site, .. } = &*watcher;
                let read = (reading, site.whitened());
                let beside = conference.step(step, y, model, read, &mut account, tap);
                let said = watcher.send(beside, &self.scores, &mut account);
                let beside = receive(&self.settings.grading, m, step, &said, tap);
                if let (Report::Symbol(own), Report::Symbol(beside)) = (*report, beside) {
                    *report = Report::Informed(own, beside);
                }
            }
            told.note_faults(m, watcher.site.sensor_faults());
        }
        self.desk.step(&self.reports, frame.time, told);
        for (client, steps) in self.desk.renewed.drain(..) {
            self.watchers[client].site.take_as_normal(steps);
        }
    }

    /// What can be seen of every client now.
    pub fn show(&self, sights: &mut [Sight]) {
        let server = &self.desk.server;
        for (m, (sight, watcher)) in sights.iter_mut().zip(&self.watchers).enumerate() {
            sight.surprise = watcher.distance.sqrt();
            sight.level = self.reports[m].own().map(|symbol| symbol.level() as u8);
            sight.evidence = (server.evidence(m) / server.threshold(m)) as f32;
            sight.standing = server.standing(m);
        }
    }

    /// The names of a client's sensors that deviate most, as they leave it: in the clear, and
    /// entered in its ledger; nothing when its budget does not allow that.
    pub fn reveal(&self, mut account: Account<'_>) -> Vec<String> {
        let watcher = &self.watchers[account.client];
        let ranked = watcher.site.ranking().ranked();
        let places: Vec<f64> = ranked.iter().take(REVEALED).map(|at| *at as f64).collect();
        let guarded = Estimate::of_state(&places).in_the_clear();
        let Account { books, client, time } = &mut account;
        let entered = books.enter(*client, *time, What::Sensors, Purpose::Alarm, guarded);
        let names = &watcher.view.names;
        entered.map_or_else(
            |_| Vec::new(),
            |released| {
                let places = released.value().as_slice().iter();
                places.filter_map(|at| names.get(*at as usize).cloned()).collect()
            },
        )
    }

    /// What was released about each client before the first step.
    pub fn counted(&self) -> Vec<Vec<Counted>> {
        self.conference.as_ref().map(|c| c.counted().collect()).unwrap_or_default()
    }

    /// Which sensors of a client deviate most, the first ones first. It stays with the client unless
    /// its session says otherwise.
    pub fn ranked_sensors(&self, client: usize) -> Vec<String> {
        let watcher = &self.watchers[client];
        let names = &watcher.view.names;
        watcher.site.ranking().ranked().into_iter().map(|at| names[at].clone()).collect()
    }
}

impl Watcher {
    /// The model and the site take what stands in `y`.
    fn look(&mut self) -> Reading {
        self.model.step(&self.y, None);
        let reading = self.site.step(sample(&self.y, &self.known, &self.model));
        self.distance = reading.distance;
        reading
    }

    /// What leaves the client.
    fn send(
        &mut self,
        symbol: Option<Symbol>,
        scores: &[f64; MOST_LEVELS],
        account: &mut Account<'_>,
    ) -> Said<Released<privacy::Symbol>> {
        let Some(symbol) = symbol else { return Said::Nothing };
        let told = privacy::Symbol(symbol.level() as u8);
        self.voice.symbol(account, told, scores[symbol.level()])
    }
}

/// What a client tells of itself: of one symbol a step, or of pairs.
fn enrolment(
    symbols: &[Option<Symbol>],
    beside: Option<(usize, &[Option<Symbol>])>,
    settings: &SiteSettings,
    rules: &Rules,
    voice: &mut Voice,
    seed: u64,
) -> Enrolment {
    let enrolment = Enrolment::rehearsed(symbols, settings, &rules.hypotheses, voice);
    match beside {
        Some((explainer, beside)) => {
            let (noise, both) = (&mut rng::stream(seed, PAIRS), [symbols, beside]);
            enrolment.explained_by(explainer, both, settings, &rules.hypotheses, noise)
        }
        None => enrolment,
    }
}

/// What the server makes of what crossed.
fn receive(
    grading: &Grading,
    client: usize,
    step: usize,
    said: &Said<Released<privacy::Symbol>>,
    tap: &Tap,
) -> Report {
    let graded = |raised, symbol| {
        let graded = Graded::new(client, step, raised, symbol);
        tap.hear(&Message::Symbol(graded));
        grading.receive(graded.number())
    };
    match said {
        Said::Symbol(symbol) => graded(false, symbol).map_or(Report::Invalid, Report::Symbol),
        Said::Raised(symbol) => graded(true, symbol).map_or(Report::Invalid, Report::Raised),
        Said::Quiet => Report::Quiet,
        Said::Nothing => Report::Missing,
    }
}

/// How the session's clients grade and send.
fn site_settings(session: &Session, arl0_steps: f64) -> SiteSettings {
    let privacy = &session.privacy;
    let for_alarms = |budget: &BudgetSettings| matches!(budget.at_zero, AtZero::AlarmsOnly { .. });
    SiteSettings {
        epsilon: privacy.epsilon_flag,
        manner: Manner::of(privacy, arl0_steps),
        fallback: privacy.budget.filter(for_alarms).map(|_| Vigil::of(privacy, arl0_steps)),
        ..SiteSettings::default()
    }
}

fn sample<'a>(y: &'a [f32], inputs: &'a [f32], model: &'a VendorModel) -> Sample<'a> {
    let out = model.output();
    Sample { y, y_hat: &out.y_hat, r: &out.r, x_hat: &out.x_hat, inputs }
}

fn hear(
    changes: &[Change],
    times: &[Timestamp; LOOK_BACK],
    now: u64,
    renewed: &mut Vec<(usize, usize)>,
    told: &mut Told,
) {
    for change in changes {
        match change {
            Change::Closed(incident, closing) => {
                if *closing == Closing::PersistentChange {
                    let since = |onset: u64| (now + 1).saturating_sub(onset) as usize;
                    renewed.extend(incident.members().map(|(m, onset)| (m, since(onset))));
                }
                // By now its onset may lie further back than times are kept; the annunciator knows
                // it from the opening.
                let onset = time_of(times, incident.onset, now);
                told.follow(incident, onset, Some((*closing).into()));
            }
            Change::Standing { client, standing } => told.standings.push((*client, *standing)),
            Change::Opened(_) | Change::Frozen(_) | Change::Affected { .. } => {}
        }
    }
}

/// When a step was, or the earliest that is remembered.
fn time_of(times: &[Timestamp; LOOK_BACK], step: u64, now: u64) -> Timestamp {
    let earliest = (now + 1).saturating_sub(LOOK_BACK as u64).max(1);
    times[step.clamp(earliest, now.max(earliest)) as usize % LOOK_BACK]
}

/// Influences that the session declares.
fn declared_reach(session: &Session, layout: &Layout) -> Reach {
    let edges = session
        .edges
        .iter()
        .filter_map(|(from, to)| Some((layout.client(from)?, layout.client(to)?)));
    Reach::from_edges(layout.clients.len(), edges)
}

pub(super) type Fitted = (VendorModel, Site, crate::evidence::site::Calibration);

/// Fits every client on a thread of its own: none depends on another.
fn fit_all(
    prepared: &Prepared,
    material: &Material,
    settings: &SiteSettings,
) -> Result<Vec<Fitted>, WeightsError> {
    std::thread::scope(|scope| {
        let jobs: Vec<_> = prepared
            .clients
            .iter()
            .zip(&material.clients)
            .map(|(client, material)| scope.spawn(move || fit(client, material, settings)))
            .collect();
        jobs.into_iter()
            .map(|job| job.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

fn fit(
    client: &PreparedClient,
    material: &ClientMaterial,
    settings: &SiteSettings,
) -> Result<Fitted, WeightsError> {
    let mut model = VendorModel::new(&client.watching)?;
    let fit = recorded(&mut model, &material.fit.view(), &material.fit_inputs.view());
    let calibration =
        recorded(&mut model, &material.calibration.view(), &material.calibration_inputs.view());
    let (site, calibration) = Site::fit(&fit, &calibration, settings.clone());
    model.reset();
    Ok((model, site, calibration))
}

/// What a model says about nominal rows with their known inputs; a row without any value stands
/// between two runs.
pub(crate) fn recorded(
    model: &mut VendorModel,
    rows: &ArrayView2<f32>,
    inputs: &ArrayView2<f32>,
) -> Recording {
    let mut recording = Recording::new(model.sensors(), model.states()).with_inputs(inputs.ncols());
    let mut y = vec![f32::NAN; model.sensors()];
    let mut v = vec![f32::NAN; inputs.ncols()];
    model.reset();
    for (row, known) in rows.outer_iter().zip(inputs.outer_iter()) {
        if row.iter().all(|v| v.is_nan()) {
            model.reset();
            recording.new_run();
            continue;
        }
        y.iter_mut().zip(row).for_each(|(y, value)| *y = *value);
        v.iter_mut().zip(known).for_each(|(v, value)| *v = *value);
        model.step(&y, None);
        recording.push(sample(&y, &v, model));
    }
    recording
}
