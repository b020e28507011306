//! Algorithm 1 held against differences, against candle, against its own formulas, and on the
//! paper's plant.

mod apart;
mod gradient;
mod training;
mod twin;

use ndarray::Array2;

use super::*;
use crate::nn::train::test_support::{plant, small_filter};
use crate::nn::weights::ProprietaryWeights;
use crate::session::PrivacySettings;
use crate::session::settings;

/// Models and rows of some clients with `sensors` sensors each and two states.
pub(super) struct Plant {
    models: Vec<ProprietaryWeights>,
    rows: Vec<Array2<f32>>,
}

impl Plant {
    pub(super) fn new(steps: usize, sensors: &[usize], seed: u64) -> Self {
        let (mut models, mut rows) = (Vec::new(), Vec::new());
        for (m, &sensors) in sensors.iter().enumerate() {
            let seed = rng::child(seed, m as u64);
            models.push(ProprietaryWeights::Filter(small_filter(sensors, false, seed)));
            rows.push(plant(steps, sensors, seed));
        }
        Self { models, rows }
    }

    pub(super) fn sites(&self) -> Vec<SiteData<'_>> {
        let parts = self.models.iter().zip(&self.rows);
        parts.map(|(model, rows)| SiteData { name: "C", model, rows: rows.view() }).collect()
    }
}

pub(super) fn open() -> PrivacySettings {
    PrivacySettings::default()
}

pub(super) fn hooks(privacy: &PrivacySettings) -> Hooks<'_> {
    Hooks { privacy, provenance: Provenance::Seeded }
}

pub(super) fn small() -> ModelSettings {
    ModelSettings {
        augment_width: 5,
        server_width: 9,
        federation: settings::Federation::Online { passes: 2 },
        ..ModelSettings::default()
    }
}

pub(super) fn federation(plant: &Plant, settings: &ModelSettings, seed: u64) -> Federation {
    Federation::new(&plant.sites(), settings, hooks(&open()), seed).unwrap()
}

pub(super) fn on(_: Progress) -> std::ops::ControlFlow<()> {
    std::ops::ControlFlow::Continue(())
}
