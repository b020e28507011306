//! One bed with one seed: the data and the clients' models, made once and shared by every method
//! that is compared on them.

use std::sync::Arc;

use ndarray::{ArrayView2, Axis};

use super::federation::{Federation, TRAINING, train_model};
use super::figures::{self, Declared, Figures, Happened, Said};
use super::flags::Flagged;
use super::rows::Rows;
use super::{Bed, DetectionError, Plan, Setup};
use crate::client::Site;
use crate::evidence::inference::{Incident, Rules};
use crate::evidence::reach::Reach;
use crate::federation::Hooks;
use crate::federation::variant::Variant;
use crate::model::weights::ProprietaryWeights;
use crate::privacy::{Provenance, SigmaRule};
use crate::rng;
use crate::session::{ModelSettings, PrivacySettings, Proprietary};

/// Source of a trial's seed for what is learned together.
const TOGETHER: u64 = 0x46;

/// Data, and models made from it.
#[derive(Debug)]
pub struct Trial {
    bed: Bed,
    seed: u64,
    plan: Plan,
    rows: Rows,
}

impl Trial {
    /// Reads the data, sample by sample.
    pub fn new(bed: Bed, seed: u64) -> Result<Self, DetectionError> {
        let plan = bed.plan();
        let rows = Rows::read(bed.open(seed)?, 1, plan.fit)?;
        Ok(Self { bed, seed, plan, rows })
    }

    /// Makes a model of one kind for every client.
    pub fn models(&self, kind: Proprietary) -> Result<Arc<[ProprietaryWeights]>, DetectionError> {
        let setup = Setup::new(kind);
        let names = self.rows.layout.clients.iter().map(|client| client.name.as_str());
        names
            .zip(&self.rows.clients)
            .enumerate()
            .map(|(m, (name, own))| {
                let seed = rng::child(self.seed, m as u64);
                let seed = rng::child(seed, TRAINING);
                train_model(name, own, self.fit(), &setup, setup.model.proprietary, seed)
            })
            .collect()
    }

    /// Steps that models may learn from.
    fn fit(&self) -> usize {
        (self.plan.fit / self.rows.layout.period_s).round() as usize
    }

    /// The first step that is watched.
    fn watched_from(&self) -> usize {
        self.fit() + (self.plan.calibration / self.rows.layout.period_s).round() as usize
    }

    fn client_rows(&self, m: usize) -> ArrayView2<'_, f32> {
        let own = &self.rows.clients[m];
        ArrayView2::from_shape((self.rows.times.len(), own.sensors), &own.values)
            .expect("every row holds one value of each sensor")
    }

    /// What evidence mode declares under a set-up.
    pub fn evidence(&self, setup: &Setup) -> Result<Said, DetectionError> {
        let plan = self.plan;
        let federation = Federation::fit(&self.rows, plan.fit, plan.calibration, setup, self.seed)?;
        let rules = Rules { arl0: plan.arl0 / self.rows.layout.period_s, ..setup.rules };
        let edges = self.bed.declared_edges().iter().copied();
        let reach = Reach::from_edges(self.rows.clients.len(), edges);
        let incidents = federation.watch(&self.rows, rules, reach, self.seed);
        Ok(Said::incidents(incidents.iter().map(declared).collect(), self.steps()))
    }

    /// Steps that are watched.
    fn steps(&self) -> usize {
        self.rows.times.len().saturating_sub(self.watched_from())
    }

    /// Makes one of the paper's models, on clients that have the paper's filters, and measures its
    /// residuals on all that is watched.
    pub fn flagged(
        &self,
        variant: Variant,
        filters: &[ProprietaryWeights],
    ) -> Result<Flagged, DetectionError> {
        let (fit, watched_from) = (self.fit(), self.watched_from());
        let clients = 0..self.rows.clients.len();
        let sites: Vec<Site> = clients
            .clone()
            .map(|m| Site {
                name: &self.rows.layout.clients[m].name,
                model: &filters[m],
                rows: self.client_rows(m).split_at(Axis(0), fit).0,
            })
            .collect();
        let privacy = PrivacySettings::default();
        let hooks =
            Hooks { privacy: &privacy, rule: SigmaRule::Analytic, provenance: Provenance::Seeded };
        let seed = rng::child(self.seed, TOGETHER);
        let on_progress = &mut |_: crate::federation::Progress| std::ops::ControlFlow::Continue(());
        let settings =
            ModelSettings { proprietary: Proprietary::Paper, ..ModelSettings::default() };
        let fitted = variant.fit(&sites, &settings, hooks, seed, on_progress)?;
        let after: Vec<ArrayView2<f32>> =
            clients.map(|m| self.client_rows(m).split_at(Axis(0), fit).1).collect();
        Ok(Flagged::new(&fitted.residuals(&after)?, watched_from - fit))
    }

    /// Holds what was said against what happened.
    #[must_use]
    pub fn judge(&self, said: &Said) -> Figures {
        Figures::of(&self.rows, self.watched_from(), said, self.plan.tail)
    }

    /// What happened in what is watched.
    #[must_use]
    pub fn events(&self) -> Vec<Happened> {
        figures::events(&self.rows, self.watched_from())
    }
}

/// Steps of an incident count from 1, those of what is watched from 0.
fn declared(incident: &Incident) -> Declared {
    let step = |step: u64| (step as usize).saturating_sub(1);
    Declared {
        onset: step(incident.onset),
        opened: step(incident.opened),
        last: step(incident.last_evidence),
        root: incident.root,
        suspects: incident.posterior.iter().copied().enumerate().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Family;

    #[test]
    fn a_trial_says_what_a_run_of_its_own_says() {
        let bed = Bed::Twin(Family::B, 4, 0.0);
        let setup = Setup { decimate: Some(1), ..Setup::new(Proprietary::Linear) };
        let alone = super::super::run(bed, 2, &setup).expect("synthetic data");
        let trial = Trial::new(bed, 2).expect("synthetic data");
        let made = trial.models(Proprietary::Linear).expect("a linear model");
        for setup in [setup.clone(), Setup { models: Some(made), ..setup }] {
            let figures = trial.judge(&trial.evidence(&setup).expect("synthetic data"));
            assert_eq!(figures.f1, alone.f1);
            assert_eq!((figures.detected, figures.right), (alone.detected, alone.right));
            assert_eq!(figures.events, trial.events().len());
        }
    }
}
