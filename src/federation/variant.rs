//! What the federation is compared with. Every variant yields residuals on given rows, so that flags
//! are made in the same way for all of them.

use ndarray::{Array2, ArrayView2, Axis, concatenate};

use super::states::series;
use super::{FederatedWeights, Federation, FederationError, Hooks, OnProgress};
use crate::base::rng;
use crate::nn::oracle::{self, Oracle};
use crate::nn::train::{self, Job, predictor};
use crate::nn::weights::{LstmFc, ProprietaryWeights};
use crate::session::settings::{ModelSettings, Proprietary};
use crate::site::training::SiteData;

/// The paper's method and its baselines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Variant {
    /// Each client's vendor model and nothing else.
    OnlyProprietary,
    /// An end-to-end predictor per client, no vendor model.
    WithoutProprietary,
    /// φ learns from its own client alone; the server learns afterwards.
    PreTrainedClients,
    /// Algorithm 1.
    Federated,
    /// One filter over the raw data of all clients.
    CentralisedOracle,
}

impl Variant {
    /// In the order of the paper's tables.
    pub(crate) const ALL: [Self; 5] = [
        Self::OnlyProprietary,
        Self::WithoutProprietary,
        Self::PreTrainedClients,
        Self::Federated,
        Self::CentralisedOracle,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OnlyProprietary => "only proprietary model",
            Self::WithoutProprietary => "without proprietary model",
            Self::PreTrainedClients => "pre-trained clients",
            Self::Federated => "federated",
            Self::CentralisedOracle => "centralised oracle",
        }
    }

    pub(crate) fn fit(
        self,
        sites: &[SiteData],
        settings: &ModelSettings,
        hooks: Hooks,
        seed: u64,
        on_progress: OnProgress,
    ) -> Result<Fitted, FederationError> {
        let proprietary = || sites.iter().map(|site| site.model.clone()).collect();
        Ok(match self {
            Self::OnlyProprietary => Fitted::OnlyProprietary(proprietary()),
            Self::WithoutProprietary => {
                let predictors = sites.iter().enumerate().map(|(m, site)| {
                    let job = job(site.name, &site.rows, settings, rng::child(seed, m as u64));
                    Ok(predictor::predictor(&job, &train_on)?.weights)
                });
                Fitted::WithoutProprietary(predictors.collect::<Result<_, FederationError>>()?)
            }
            Self::PreTrainedClients | Self::Federated => {
                let mut federation = Federation::new(sites, settings, hooks, seed)?;
                let outcome = if self == Self::Federated {
                    federation.run(on_progress)?
                } else {
                    federation.run_without_feedback(on_progress)?
                };
                Fitted::Augmented(proprietary(), outcome.weights)
            }
            Self::CentralisedOracle => {
                let rows: Vec<_> = sites.iter().map(|site| site.rows).collect();
                let joint = side_by_side(&rows)?;
                let sensors: Vec<usize> = rows.iter().map(ArrayView2::ncols).collect();
                let job = job("oracle", &joint.view(), settings, seed);
                Fitted::CentralisedOracle(oracle::train(&job, &sensors, &train_on)?.weights)
            }
        })
    }
}

fn train_on(_: train::Progress) -> std::ops::ControlFlow<()> {
    std::ops::ControlFlow::Continue(())
}

fn job<'a>(
    client: &'a str,
    rows: &ArrayView2<'a, f32>,
    settings: &'a ModelSettings,
    seed: u64,
) -> Job<'a> {
    let held_out = rows.split_at(Axis(0), 0).0;
    Job { client, kind: Proprietary::Paper, settings, fit: *rows, held_out, seed }
}

/// Rows of all clients beside each other.
pub(super) fn side_by_side(rows: &[ArrayView2<f32>]) -> Result<Array2<f32>, FederationError> {
    concatenate(Axis(1), rows)
        .map_err(|_| FederationError::Sites("rows of all sites must be of the same times".into()))
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fitted {
    OnlyProprietary(Vec<ProprietaryWeights>),
    WithoutProprietary(Vec<LstmFc>),
    /// Vendor models with what was learned beside them, with or without the server's gradients.
    Augmented(Vec<ProprietaryWeights>, FederatedWeights),
    CentralisedOracle(Oracle),
}

/// Residuals of one client over a stretch of rows; NaN where missing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Residuals {
    /// r_c, or the only residual the variant has.
    pub(crate) c: Array2<f32>,
    /// r_a, where there is a φ.
    pub(crate) a: Option<Array2<f32>>,
}

impl Fitted {
    /// Residuals of every client on its `rows`.
    pub(crate) fn residuals(
        &self,
        rows: &[ArrayView2<f32>],
    ) -> Result<Vec<Residuals>, FederationError> {
        let only = |c| Residuals { c, a: None };
        match self {
            Self::OnlyProprietary(models) => models
                .iter()
                .zip(rows)
                .map(|(model, rows)| Ok(only(series(model, None, rows)?.r_c)))
                .collect(),
            Self::WithoutProprietary(predictors) => predictors
                .iter()
                .zip(rows)
                .map(|(predictor, rows)| Ok(only(predictor::residuals(predictor, rows)?)))
                .collect(),
            Self::Augmented(models, weights) => models
                .iter()
                .zip(&weights.phi)
                .zip(rows)
                .map(|((model, phi), rows)| {
                    let series = series(model, Some(phi), rows)?;
                    Ok(Residuals { c: series.r_c, a: series.augmented.map(|a| a.r_a) })
                })
                .collect(),
            Self::CentralisedOracle(Oracle { filter, layout }) => {
                let joint = side_by_side(rows)?;
                let model = ProprietaryWeights::Filter(filter.clone());
                let r_o = series(&model, None, &joint.view())?.r_c;
                Ok((0..layout.clients())
                    .map(|m| only(layout.extract_rows(m, &r_o.view()).to_owned()))
                    .collect())
            }
        }
    }
}
