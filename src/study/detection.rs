//! Detection and attribution end to end: data in, alarms out, compared with the truth.
//!
//! Every family goes the same way with the same settings: fit and calibration slices, the clients'
//! models, whitening, symbols, the server. What is judged is all that was declared over all that was
//! watched, false alarms in nominal stretches included.

mod federation;
pub mod figures;
pub mod flags;
mod influence;
mod judge;
mod lie;
pub(in crate::study) mod rows;
mod spending;
#[cfg(test)]
mod tests;
mod trial;

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::evidence::cusum;
use crate::evidence::inference::Rules;
use crate::evidence::influence::InfluenceGraph;
use crate::evidence::reach::Reach;
use crate::evidence::site::SiteSettings;
use crate::evidence::symbol::Grading;
use crate::federation::FederationError;
use crate::model::train::TrainError;
use crate::model::weights::ProprietaryWeights;
use crate::session::{Attacks, Family, ModelSettings, PlantSource, Proprietary, Tier, TwinSource};
use crate::stream::plant::PlantStream;
use crate::stream::twin::{TwinStream, slices};
use crate::stream::{Stream, StreamError};

pub use federation::Federation;
pub use judge::{FalseAlarm, Judged, Missed, Row};
pub use lie::{Liar, Lie};
use rows::Rows;
pub use spending::{Heard, Spoken};
pub use trial::Trial;

/// The data of a study.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bed {
    /// A synthetic plant: family, clients, Δ of family A.
    Twin(Family, usize, f64),
    /// The built-in plant's attack day, or a normal day.
    Plant {
        /// Whether the day has its twenty attacks.
        attacks: bool,
    },
}

/// The families of the detection study, by the names used everywhere.
pub const BEDS: [(&str, Bed); 9] = [
    ("A2", Bed::Twin(Family::A, 2, 2.0)),
    ("A4", Bed::Twin(Family::A, 4, 2.0)),
    ("A8", Bed::Twin(Family::A, 8, 2.0)),
    ("A4d05", Bed::Twin(Family::A, 4, 0.5)),
    ("B4", Bed::Twin(Family::B, 4, 0.0)),
    ("B8", Bed::Twin(Family::B, 8, 0.0)),
    ("H4", Bed::Twin(Family::H, 4, 0.0)),
    ("plant-attack-day", Bed::Plant { attacks: true }),
    ("plant-normal", Bed::Plant { attacks: false }),
];

/// How a run of the study is set up.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The clients' models.
    pub model: ModelSettings,
    /// How clients grade their steps.
    pub site: SiteSettings,
    /// How the server decides; the rate is set by the data.
    pub rules: Rules,
    /// Block means; chosen by itself when absent.
    pub decimate: Option<u32>,
    /// The clients' models when they are made already; made from the fit slice when absent.
    pub models: Option<Arc<[ProprietaryWeights]>>,
    /// What leaves a client while it is watched.
    pub tier: Tier,
    /// Whether learned influences speak for a root, beside those that are declared.
    pub learned_edges: bool,
}

impl Setup {
    /// The defaults with one kind of model for all clients.
    #[must_use]
    pub fn new(proprietary: Proprietary) -> Self {
        Self {
            model: ModelSettings { proprietary, ..ModelSettings::default() },
            site: SiteSettings::default(),
            rules: Rules::with_arl0(3000.0),
            decimate: None,
            models: None,
            tier: Tier::default(),
            learned_edges: false,
        }
    }

    /// The states of clients are sent too.
    #[must_use]
    pub fn with_states(mut self) -> Self {
        self.tier = Tier::States;
        self
    }

    fn needs_influence(&self) -> bool {
        self.tier == Tier::States || self.learned_edges
    }

    /// One bit a step, at a budget.
    #[must_use]
    pub fn one_bit(mut self, epsilon: Option<f64>) -> Self {
        self.site.grading = Grading::one_bit();
        self.site.epsilon = epsilon;
        self
    }
}

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
pub enum DetectionError {
    /// The data cannot be had.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// A client's model cannot be made.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// Clients cannot learn from each other.
    #[error(transparent)]
    Federation(#[from] FederationError),
    /// A client's model cannot be run.
    #[error(transparent)]
    Weights(#[from] crate::model::kernel::WeightsError),
    /// A client's states never leave it.
    #[error(transparent)]
    States(#[from] crate::link::StatesStay),
    /// A message cannot be made.
    #[error(transparent)]
    Privacy(#[from] crate::privacy::PrivacyError),
}

/// A length of time.
type Seconds = f64;

/// How long a bed's slices are, the wanted time between false alarms, and the tail after an event in
/// which an alarm still belongs to it.
#[derive(Debug, Clone, Copy)]
pub(in crate::study) struct Plan {
    pub fit: Seconds,
    pub calibration: Seconds,
    pub arl0: Seconds,
    pub tail: Seconds,
}

impl Bed {
    pub(in crate::study) fn plan(self) -> Plan {
        match self {
            Bed::Twin(family, clients, delta) => {
                let slices = slices(&twin(family, clients, delta));
                Plan {
                    fit: slices.fit.end as f64,
                    calibration: slices.calibration.len() as f64,
                    arl0: 3000.0,
                    tail: 6.0,
                }
            }
            Bed::Plant { .. } => {
                Plan { fit: 8.0 * 3600.0, calibration: 32.0 * 3600.0, arl0: 86_400.0, tail: 300.0 }
            }
        }
    }

    /// What the engineers of the plant know and a session declares: boiler, turbine and storage
    /// stand in a row. Nothing is declared about the synthetic plants.
    fn declared_edges(self) -> &'static [(usize, usize)] {
        match self {
            Bed::Plant { .. } => &[(0, 1), (1, 2), (0, 2)],
            Bed::Twin(..) => &[],
        }
    }

    pub(in crate::study) fn open(self, seed: u64) -> Result<Box<dyn Stream>, StreamError> {
        Ok(match self {
            Bed::Twin(family, clients, delta) => {
                Box::new(TwinStream::open(&twin(family, clients, delta), seed)?)
            }
            Bed::Plant { attacks } => {
                let attacks = if attacks { Attacks::Day } else { Attacks::Nothing };
                let source = PlantSource { attacks, ..PlantSource::default() };
                Box::new(PlantStream::open(&source, &[], seed)?)
            }
        })
    }
}

fn twin(family: Family, clients: usize, delta: f64) -> TwinSource {
    TwinSource { family, clients, delta, ..TwinSource::default() }
}

/// One run: a bed with a seed, judged.
pub fn run(bed: Bed, seed: u64, setup: &Setup) -> Result<Judged, DetectionError> {
    let plan = bed.plan();
    let every = match setup.decimate {
        Some(every) => every,
        None => decimation(bed, seed, setup)?,
    };
    let rows = Rows::read(bed.open(seed)?, every, plan.fit)?;
    let federation = Federation::fit(&rows, plan.fit, plan.calibration, setup, seed)?;
    let period = rows.layout.period_s;
    let rules = Rules { arl0: plan.arl0 / period, ..setup.rules };
    let learned = federation.graph().filter(|_| setup.learned_edges);
    let learned = learned.into_iter().flat_map(InfluenceGraph::edges).map(|e| (e.from, e.to));
    let edges = bed.declared_edges().iter().copied().chain(learned);
    let reach = Reach::from_edges(rows.clients.len(), edges);
    let incidents = federation.watch(&rows, rules, reach, seed);
    Ok(judge::judge(&rows, federation.watched_from(), &incidents, plan.tail, every))
}

/// The decimation that the data asks for, judged with the linear predictor: it is made in a moment,
/// and how bursty residuals are hardly depends on the model once they are whitened.
fn decimation(bed: Bed, seed: u64, setup: &Setup) -> Result<u32, DetectionError> {
    let plan = bed.plan();
    let mut linear = setup.clone();
    linear.model.proprietary = Proprietary::Linear;
    (linear.tier, linear.learned_edges) = (Tier::Symbols, false);
    cusum::choose_decimation(|every| {
        let rows = Rows::read(bed.open(seed)?, every, plan.fit)?;
        let federation = Federation::fit(&rows, plan.fit, plan.calibration, &linear, seed)?;
        Ok(federation.slowest_tail())
    })
}

/// Training goes on to its end.
fn go_on(_: crate::model::train::Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}
