//! All clients of a study, fitted and calibrated, and the server that hears them.

use ndarray::{ArrayView2, Axis};

use super::rows::{ClientRows, Rows};
use super::{DetectionError, Liar, Setup, go_on, influence};
use crate::evidence::health::Report;
use crate::evidence::inference::{Change, Closing, Incident, Inference, Rules};
use crate::evidence::influence::InfluenceGraph;
use crate::evidence::reach::Reach;
use crate::evidence::site::{Enrolment, Reading, Site};
use crate::evidence::symbol::Symbol;
use crate::evidence::whitening::{Recording, Sample};
use crate::model::proprietary::{Proprietary as _, VendorModel};
use crate::model::train::{Job, proprietary};
use crate::model::weights::ProprietaryWeights;
use crate::rng;
use crate::session::Proprietary;

/// Sources of randomness of a client.
pub(super) const TRAINING: u64 = 1;
const RESPONSE: u64 = 2;
const SENDING: u64 = 4;

/// A client after calibration.
pub(super) struct Client {
    pub watching: VendorModel,
    /// The model whose states may be sent, where that is another one and states are needed.
    pub sending: Option<VendorModel>,
    pub site: Site,
    pub calibration: Vec<Option<Symbol>>,
    pub enrolment: Enrolment,
    /// Its readings of all that is watched.
    pub readings: Vec<Reading>,
    /// What of each step its explainer does not explain, where that has something to say (tier 2).
    pub beside: Vec<Option<Symbol>>,
}

impl Client {
    /// Its true symbols of all that is watched.
    pub fn symbols(&self) -> Vec<Option<Symbol>> {
        self.readings.iter().map(|reading| reading.symbol).collect()
    }

    /// Its true report of a step.
    fn report(&self, t: usize) -> Report {
        let reading = &self.readings[t];
        let Some(own) = reading.symbol else { return Report::Missing };
        match self.beside.get(t).copied().flatten() {
            // A flat line is said both ways: no other client explains it.
            Some(_) if reading.flat_line => Report::Informed(own, own),
            Some(beside) => Report::Informed(own, beside),
            None => Report::Symbol(own),
        }
    }
}

/// Clients ready to be heard.
pub struct Federation {
    pub(super) clients: Vec<Client>,
    setup: Setup,
    watched_from: usize,
    graph: Option<InfluenceGraph>,
    explaining: Option<influence::Explaining>,
    liar: Option<Liar>,
}

impl Federation {
    /// Fits and calibrates every client of `rows`, and grades the steps that follow.
    pub(super) fn fit(
        rows: &Rows,
        fit_s: f64,
        calibration_s: f64,
        setup: &Setup,
        seed: u64,
    ) -> Result<Self, DetectionError> {
        let period = rows.layout.period_s;
        let fit = (fit_s / period).round() as usize;
        let watched_from = fit + (calibration_s / period).round() as usize;
        let mut clients = (0..rows.clients.len())
            .map(|m| client(rows, m, fit, watched_from, setup, seed))
            .collect::<Result<Vec<_>, _>>()?;
        let (graph, explaining) = if setup.needs_influence() {
            let conferred = influence::confer(rows, &mut clients, fit, watched_from, setup, seed)?;
            (Some(conferred.0), conferred.1)
        } else {
            (None, None)
        };
        let setup = setup.clone();
        let mut federation = Self { clients, setup, watched_from, graph, explaining, liar: None };
        federation.believe(None)?;
        Ok(federation)
    }

    /// One client lies from now on, or none.
    pub fn believe(&mut self, liar: Option<Liar>) -> Result<(), DetectionError> {
        if let Some(explaining) = &mut self.explaining {
            let beside = explaining.beside(liar)?;
            self.clients.iter_mut().zip(beside).for_each(|(client, beside)| client.beside = beside);
        }
        self.liar = liar;
        Ok(())
    }

    /// Who influences whom, where the setup asks for it.
    #[must_use]
    pub fn graph(&self) -> Option<&InfluenceGraph> {
        self.graph.as_ref()
    }

    /// The first step that is watched.
    #[must_use]
    pub fn watched_from(&self) -> usize {
        self.watched_from
    }

    /// The smallest ω of all clients.
    #[must_use]
    pub fn slowest_tail(&self) -> f64 {
        self.clients.iter().map(|c| c.enrolment.tail.omega).fold(1.0, f64::min)
    }

    /// What the server declares over all that is watched; steps are counted from its beginning.
    pub(super) fn watch(
        &self,
        rows: &Rows,
        rules: Rules,
        reach: Reach,
        seed: u64,
    ) -> Vec<Incident> {
        let enrolments: Vec<Enrolment> = self.clients.iter().map(|c| c.enrolment.clone()).collect();
        let grading = self.setup.site.grading.clone();
        let response = self.setup.site.response();
        let mut server = Inference::new(grading.clone(), rules, &enrolments, reach);
        let liar = self.liar.filter(|liar| liar.about_symbols);
        let liars_truth = liar.map_or_else(Vec::new, |liar| self.clients[liar.client].symbols());
        let mut noise: Vec<rng::Rng> = (0..self.clients.len())
            .map(|m| rng::stream(rng::child(seed, m as u64), RESPONSE))
            .collect();
        let mut reports = vec![Report::Missing; self.clients.len()];
        let mut incidents = Vec::new();
        for t in 0..rows.times.len().saturating_sub(self.watched_from) {
            for ((report, client), noise) in reports.iter_mut().zip(&self.clients).zip(&mut noise) {
                *report = match client.report(t) {
                    Report::Symbol(own) => Report::Symbol(response.rehearse(own, noise)),
                    Report::Informed(own, beside) => Report::Informed(
                        response.rehearse(own, noise),
                        response.rehearse(beside, noise),
                    ),
                    nothing => nothing,
                };
            }
            if let Some(liar) = liar {
                let beside = self.clients[liar.client].beside.get(t).copied().flatten();
                reports[liar.client] = liar.report(&grading, &liars_truth, t, beside);
            }
            incidents.extend(closed(server.step(&reports)));
        }
        incidents.extend(closed(server.end(Closing::EndOfRun)));
        incidents
    }
}

pub(super) fn closed(changes: &[Change]) -> impl Iterator<Item = Incident> + '_ {
    changes.iter().filter_map(|change| match change {
        Change::Closed(incident, _) => Some(incident.clone()),
        _ => None,
    })
}

fn client(
    rows: &Rows,
    m: usize,
    fit: usize,
    watched_from: usize,
    setup: &Setup,
    seed: u64,
) -> Result<Client, DetectionError> {
    let seed = rng::child(seed, m as u64);
    let own = &rows.clients[m];
    let name = &rows.layout.clients[m].name;
    let made = |kind, source| train_model(name, own, fit, setup, kind, rng::child(seed, source));
    let mut model = match &setup.models {
        Some(models) => VendorModel::new(&models[m])?,
        None => VendorModel::new(&made(setup.model.proprietary, TRAINING)?)?,
    };
    let sending = if setup.needs_influence() && !model.may_send_states() {
        Some(VendorModel::new(&made(Proprietary::Paper, SENDING)?)?)
    } else {
        None
    };
    let mut recordings = [
        Recording::new(model.sensors(), model.states()),
        Recording::new(model.sensors(), model.states()),
    ];
    let steps = rows.times.len();
    for t in 0..watched_from.min(steps) {
        let recording = &mut recordings[usize::from(t >= fit)];
        if rows.starts[t] {
            model.reset();
            recording.new_run();
        }
        model.step(own.row(t), None);
        recording.push(sample(own.row(t), &model));
    }
    let [fitted, calibration] = recordings;
    let (mut site, calibration) = Site::fit(&fitted, &calibration, setup.site.clone());
    let mut noise = rng::stream(seed, RESPONSE + 1);
    let enrolment =
        Enrolment::new(&calibration.symbols, &setup.site, &setup.rules.hypotheses, &mut noise);
    let readings = (watched_from..steps)
        .map(|t| {
            if rows.starts[t] {
                model.reset();
                site.reset();
            }
            model.step(own.row(t), None);
            site.step(sample(own.row(t), &model))
        })
        .collect();
    Ok(Client {
        watching: model,
        sending,
        site,
        calibration: calibration.symbols,
        enrolment,
        readings,
        beside: Vec::new(),
    })
}

fn sample<'a>(y: &'a [f32], model: &'a VendorModel) -> Sample<'a> {
    let out = model.output();
    Sample { y, y_hat: &out.y_hat, r: &out.r, x_hat: &out.x_hat, inputs: &[] }
}

/// Makes the model of one client from the fit slice of its rows.
pub(super) fn train_model(
    name: &str,
    rows: &ClientRows,
    fit: usize,
    setup: &Setup,
    kind: Proprietary,
    seed: u64,
) -> Result<ProprietaryWeights, DetectionError> {
    let steps = rows.values.len() / rows.sensors.max(1);
    let all = ArrayView2::from_shape((steps, rows.sensors), &rows.values)
        .expect("every row holds one value of each sensor");
    let (fit, _) = all.split_at(Axis(0), fit.min(steps));
    let (nothing, _) = all.split_at(Axis(0), 0);
    let job = Job { client: name, kind, settings: &setup.model, fit, held_out: nothing, seed };
    Ok(proprietary(&job, &go_on)?.weights)
}
