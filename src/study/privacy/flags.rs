//! Paper mode over a synthetic plant, up to the flags: models, φ and f_s learned on the fit slice,
//! thresholds on the calibration slice, true flags of all that follows.

use std::ops::ControlFlow;

use ndarray::{Array2, ArrayView2, Axis, Slice};

use super::PrivacyStudyError;
use crate::client::Site;
use crate::evidence::lookup::look_up;
use crate::evidence::threshold::{FlagThresholds, Flags, NominalDistances};
use crate::federation::variant::Variant;
use crate::federation::{Federation, FederationError, Hooks};
use crate::model::kernel::gaussian::{Gaussian, RIDGE};
use crate::model::kernel::mahalanobis::Mahalanobis;
use crate::model::train::{self, Job, SETTLING};
use crate::model::weights::ProprietaryWeights;
use crate::privacy::{Provenance, Randomness, Response};
use crate::rng;
use crate::session::Tau;
use crate::session::settings::{self, ModelSettings, PrivacySettings, Proprietary};
use crate::study::detection::rows::Rows;
use crate::study::detection::{Bed, DetectionError};
use crate::study::metrics::incident::{EndToEnd, GAP, Named, end_to_end, group};
use crate::study::metrics::run_length::{RunLength, arl0, arl1, runs};
use crate::study::metrics::{Tick, Window};

/// Parts of a seed.
const MODEL: u64 = 0x4D;
const FEDERATION: u64 = 0x46;

/// A plant and its clients' models, to be trained in whatever way.
pub(super) struct Clients {
    rows: Rows,
    fit: usize,
    calibration: usize,
    tail: Tick,
    pub models: Vec<ProprietaryWeights>,
    pub settings: ModelSettings,
    pub seed: u64,
}

impl Clients {
    /// Reads a bed and trains its proprietary models in the paper's form.
    pub fn new(bed: Bed, seed: u64, quick: bool) -> Result<Self, PrivacyStudyError> {
        let plan = bed.plan();
        let opened = bed.open(seed).map_err(DetectionError::from)?;
        let rows = Rows::read(opened, 1, plan.fit).map_err(DetectionError::from)?;
        let settings = ModelSettings {
            proprietary: Proprietary::Paper,
            epochs: if quick { 2 } else { 10 },
            federation: settings::Federation::Online { passes: if quick { 2 } else { 8 } },
            ..ModelSettings::default()
        };
        let period = rows.layout.period_s;
        let mut clients = Self {
            fit: (plan.fit / period) as usize,
            calibration: (plan.calibration / period) as usize,
            tail: (plan.tail / period).ceil() as Tick,
            models: Vec::new(),
            settings,
            seed,
            rows,
        };
        let models = (0..clients.rows.clients.len()).map(|m| clients.model(m));
        clients.models = models.collect::<Result<_, _>>()?;
        Ok(clients)
    }

    fn model(&self, m: usize) -> Result<ProprietaryWeights, PrivacyStudyError> {
        let job = Job {
            client: &self.rows.layout.clients[m].name,
            kind: Proprietary::Paper,
            settings: &self.settings,
            fit: self.part(m, 0, self.fit),
            held_out: self.part(m, 0, 0),
            seed: rng::child(rng::child(self.seed, MODEL), m as u64),
        };
        let trained = train::proprietary(&job, &|_| ControlFlow::Continue(()));
        Ok(trained.map_err(DetectionError::from)?.weights)
    }

    fn part(&self, m: usize, from: usize, until: usize) -> ArrayView2<'_, f32> {
        let client = &self.rows.clients[m];
        let steps = self.rows.times.len();
        let all = ArrayView2::from_shape((steps, client.sensors), &client.values)
            .expect("every row holds one value of each sensor");
        all.slice_axis_move(Axis(0), Slice::from(from..until))
    }

    /// The sites on the fit slice.
    pub fn fit_sites(&self) -> Vec<Site<'_>> {
        self.sites(0, self.fit)
    }

    /// The sites on nominal rows that nothing was fitted to.
    pub fn nominal_sites(&self) -> Vec<Site<'_>> {
        self.sites(self.fit, self.fit + self.calibration)
    }

    fn sites(&self, from: usize, until: usize) -> Vec<Site<'_>> {
        self.models
            .iter()
            .enumerate()
            .map(|(m, model)| Site {
                name: &self.rows.layout.clients[m].name,
                model,
                rows: self.part(m, from, until),
            })
            .collect()
    }

    /// The seed of the federation.
    pub fn federation_seed(&self) -> u64 {
        rng::child(self.seed, FEDERATION)
    }

    /// Trains the federation without noise and flags every step at the 95th percentile.
    pub fn flagged(&self) -> Result<Flagged<'_>, PrivacyStudyError> {
        let open = PrivacySettings::default();
        let hooks =
            Hooks { privacy: &open, rule: open.sigma.into(), provenance: Provenance::Seeded };
        let fitted = Variant::Federated.fit(
            &self.fit_sites(),
            &self.settings,
            hooks,
            self.federation_seed(),
            &mut |_| ControlFlow::Continue(()),
        )?;
        let steps = self.rows.times.len();
        let rows: Vec<_> = (0..self.models.len()).map(|m| self.part(m, self.fit, steps)).collect();
        let mut clients = Vec::new();
        for residuals in fitted.residuals(&rows)? {
            let missing = || FederationError::Sites("a federated client has no φ".to_owned());
            let r_a = residuals.a.ok_or_else(missing)?;
            let (d_c, d_a) = (self.distances(&residuals.c), self.distances(&r_a));
            let tau = |d: &[f32]| {
                let nominal = d[SETTLING..self.calibration].iter().copied();
                NominalDistances::new(nominal).threshold(Tau::Percentile(95.0))
            };
            let thresholds = FlagThresholds { tau_c: tau(&d_c), tau_a: tau(&d_a) };
            let watched = d_c[self.calibration..].iter().zip(&d_a[self.calibration..]);
            clients.push(watched.map(|(c, a)| thresholds.flags(*c, *a)).collect());
        }
        Ok(Flagged { clients, of: self, watched_from: self.fit + self.calibration })
    }

    /// Squared distances, with µ and Σ of the calibration slice.
    fn distances(&self, residuals: &Array2<f32>) -> Vec<f32> {
        let sensors = residuals.ncols();
        let nominal: Vec<f32> = residuals
            .outer_iter()
            .take(self.calibration)
            .skip(SETTLING)
            .flat_map(|row| row.to_vec())
            .collect();
        let mut distance = Mahalanobis::new(&Gaussian::fit(sensors, &nominal, RIDGE));
        residuals
            .outer_iter()
            .map(|row| distance.squared(&row.to_vec()).unwrap_or(f32::NAN))
            .collect()
    }
}

/// True flags of every client at every watched step.
pub(super) struct Flagged<'a> {
    clients: Vec<Vec<Option<Flags>>>,
    of: &'a Clients,
    watched_from: usize,
}

/// What paper mode makes of flags.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Told {
    pub arl0: RunLength,
    pub arl1: RunLength,
    pub end_to_end: EndToEnd,
    /// Mean steps from an anomaly's start to the first step that names its origin.
    pub delay: Option<f64>,
    /// Declared incidents that answer no anomaly, a day.
    pub false_alarms_per_day: f64,
}

impl Flagged<'_> {
    /// Steps watched.
    pub fn steps(&self) -> usize {
        self.clients.first().map_or(0, Vec::len)
    }

    /// Seconds in a step.
    pub fn period_s(&self) -> f64 {
        self.of.rows.layout.period_s
    }

    /// What is told when each flag passes through its response (none: as it is).
    pub fn told(
        &self,
        c: Option<Response>,
        a: Option<Response>,
        source: u64,
    ) -> Result<Told, PrivacyStudyError> {
        let mut noise: Vec<Randomness> = (0..self.clients.len())
            .map(|m| Randomness::seeded(rng::child(self.of.seed, m as u64), source))
            .collect();
        let mut named = vec![None; self.watched_from];
        let mut alarms: Vec<Tick> = Vec::new();
        for t in 0..self.steps() {
            let mut heard = Vec::with_capacity(self.clients.len());
            for (client, noise) in self.clients.iter().zip(&mut noise) {
                heard.push(match client[t] {
                    Some(flags) => {
                        Some(Flags::new(answer(c, flags.z_c, noise)?, answer(a, flags.z_a, noise)?))
                    }
                    None => None,
                });
            }
            if heard.iter().flatten().any(|flags| flags.z_a) {
                alarms.push(tick(self.watched_from + t));
            }
            named.push(look_up(&heard).root());
        }
        Ok(self.judge(&named, &alarms))
    }

    fn judge(&self, named: &[Option<usize>], alarms: &[Tick]) -> Told {
        let rows = &self.of.rows;
        let client = |name: &String| rows.layout.clients.iter().position(|c| c.name == *name);
        let anomalies: Vec<Named<usize>> = rows
            .events
            .iter()
            .filter_map(|event| {
                let window =
                    Window::new(tick(rows.step_at(event.start)), tick(rows.step_at(event.end)));
                let origin = event.origins.first().and_then(client)?;
                (window.start >= tick(self.watched_from)).then_some(Named { window, name: origin })
            })
            .collect();
        let first = anomalies.iter().map(|a| a.window.start).min();
        let last = tick(rows.times.len()) - 1;
        let quiet_end = first.unwrap_or(last);
        let incidents = group(named, GAP);
        let onsets: Vec<Tick> = anomalies.iter().map(|a| a.window.start).collect();
        let delays = anomalies.iter().map(|a| {
            let named_at = |t: Tick| named.get(usize::try_from(t).ok()?).copied().flatten();
            let steps = a.window.start..=a.window.end + self.of.tail;
            let right = steps.into_iter().find(|t| named_at(*t) == Some(a.name))?;
            Some((right - a.window.start + 1) as f64)
        });
        let belongs = |incident: &&Named<usize>| {
            let answers = |a: &Named<usize>| {
                a.window.with_tail(self.of.tail).shared(incident.window).ticks() > 0
            };
            !anomalies.iter().any(answers)
        };
        let days = self.steps() as f64 * self.period_s() / 86_400.0;
        let quiet = (quiet_end - tick(self.watched_from)).max(0);
        let false_flags = alarms.iter().filter(|t| **t < quiet_end).count();
        Told {
            arl0: arl0(quiet as f64, false_flags),
            arl1: arl1(&runs(&onsets, last), alarms),
            end_to_end: end_to_end(&anomalies, &incidents, self.of.tail),
            delay: super::mean(delays),
            false_alarms_per_day: incidents.iter().filter(belongs).count() as f64 / days,
        }
    }
}

fn answer(
    response: Option<Response>,
    flag: bool,
    noise: &mut Randomness,
) -> Result<bool, PrivacyStudyError> {
    Ok(match response {
        Some(response) => response.rehearse(u8::from(flag), noise)? == 1,
        None => flag,
    })
}

fn tick(step: usize) -> Tick {
    Tick::try_from(step).unwrap_or(Tick::MAX)
}

/// Federated training of these clients with noise of a given size.
pub(super) fn noised<'a>(
    clients: &Clients,
    privacy: &'a PrivacySettings,
    noise: crate::federation::Noise,
) -> Result<Federation, FederationError> {
    let hooks: Hooks<'a> =
        Hooks { privacy, rule: privacy.sigma.into(), provenance: Provenance::Seeded };
    let seed = clients.federation_seed();
    Federation::with_noise(&clients.fit_sites(), &clients.settings, hooks, noise, seed)
}
