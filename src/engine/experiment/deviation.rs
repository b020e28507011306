//! What each deviation from the paper changes: one federation on the paper's plant with one of them
//! undone, and figures of those that no federation shows (oracle, σ, look-up, episodes, anomalies).
//!
//! Only A2 and A4 are used, where everything takes seconds, and one session of the built-in plant.

use ndarray::{Array2, ArrayView2};

use super::dataset::{Dataset, DatasetSource};
use super::federation::Effort;
use super::flags::{FlagSeries, ModelDistances, Span, rows};
use super::loss_curve;
use super::noise::TOGETHER;
use super::{Failure, models, to_the_end, unprotected};
use crate::base::rng;
use crate::federation::Federation;
use crate::federation::convergence::OracleAlignment;
use crate::federation::states::replay;
use crate::federation::variant::{Fitted, Residuals, Variant};
use crate::nn::oracle::Oracle;
use crate::nn::train::{SETTLING, mean_square};
use crate::nn::weights::ProprietaryWeights;
use crate::score::metrics::run_length::RunTotals;
use crate::score::steps::{Truth, TruthEvent};
use crate::server::lookup::look_up;
use crate::session::privacy::Sigma;
use crate::session::settings::{ModelSettings, Printed, PrivacySettings};
use crate::session::{ClientSettings, PrintedPlant, Session, TwinSource};
use crate::stream::plant::default_clients;
use crate::stream::twin::slices;

/// Source of the seed of the proprietary models.
const MODELS: u64 = 0x4D;
/// Source of the seed of the oracle.
const ORACLE: u64 = 0x4F;

/// A federation and what it gives on rows that it did not learn from.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Mean L_s on nominal rows.
    pub server_loss: f64,
    /// Mean L_a there, over clients.
    pub client_loss: f64,
    /// Both again with the first steps of the run, which are not judged: a filter begins without a state.
    pub losses_from_the_first: [f64; 2],
    /// Flags at the percentile that was asked for.
    pub flags: FlagSeries,
    /// Quiet steps of Z_a, with the flags in them.
    pub arl0: RunTotals,
    /// Steps up to the first Z_a of the rows that gave the thresholds.
    pub first: RunTotals,
    pub truth: Truth,
}

/// A plant of family A and its proprietary models.
#[derive(Debug)]
pub(crate) struct Clients {
    seed: u64,
    dataset: Dataset,
    filters: Vec<ProprietaryWeights>,
}

/// The rows whose percentiles are the thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thresholds {
    /// Those after the fit slice.
    Calibration,
    /// The fit slice itself.
    Fit,
    /// Those after the fit slice, by Σ without a ridge.
    WithoutRidge,
}

impl Clients {
    /// `settings` are those of the proprietary models.
    pub(crate) fn new(
        source: DatasetSource,
        seed: u64,
        settings: &ModelSettings,
    ) -> Result<Self, Failure> {
        let dataset = source.dataset(seed, usize::MAX)?;
        let filters = models(&dataset, &dataset.fit, settings, rng::child(seed, MODELS))?;
        Ok(Self { seed, dataset, filters })
    }

    /// The same clients, whose filters estimate the memory (h, c) of their transition as well.
    pub(crate) fn with_estimated_memory(&self) -> Self {
        let Self { seed, dataset, filters } = self;
        let mut filters = filters.clone();
        for conduct in filters.iter_mut().filter_map(ProprietaryWeights::conduct_mut) {
            conduct.memory_is_known = false;
        }
        Self { seed: *seed, dataset: dataset.clone(), filters }
    }

    /// The same plant and models of family A with every anomaly at all clients. Nothing is learned
    /// from anomalies, so the models are the same.
    pub(crate) fn with_anomalies_everywhere(&self) -> Result<Self, Failure> {
        let way = PrintedPlant::AnomaliesEverywhere;
        let source = DatasetSource::TwinPrinted(self.filters.len(), way);
        let dataset = source.dataset(self.seed, usize::MAX)?;
        Ok(Self { seed: self.seed, dataset, filters: self.filters.clone() })
    }
}

/// Trains the federation of `clients` with `settings` and flags it at `percentile` of those rows.
pub(crate) fn train(
    clients: &Clients,
    settings: &ModelSettings,
    percentile: f64,
    thresholds: Thresholds,
) -> Result<Outcome, Failure> {
    let Clients { seed, dataset, filters } = clients;
    let privacy = PrivacySettings::default();
    let fit = dataset.sites(filters, dataset.fit.clone());
    let seed = rng::child(*seed, TOGETHER);
    let mut federation = Federation::new(&fit, settings, unprotected(&privacy), seed)?;
    let weights = federation.run(&mut to_the_end)?.weights;
    let nominal = replay(&dataset.sites(filters, dataset.nominal.clone()), &weights)?;
    let client_loss = |first| {
        let losses = nominal.client_loss(first);
        losses.iter().sum::<f64>() / losses.len().max(1) as f64
    };
    let steps = dataset.steps();
    let calibration = slices(&TwinSource::default()).calibration;
    let fitted = Fitted::Augmented(filters.clone(), weights);
    let of = |range: std::ops::Range<usize>| {
        let rows: Vec<_> = (0..filters.len()).map(|m| dataset.view(m, range.clone())).collect();
        fitted.residuals(&rows)
    };
    let distances = match thresholds {
        Thresholds::Calibration => {
            ModelDistances::new(&of(dataset.fit.end..steps)?, calibration.len())
        }
        Thresholds::WithoutRidge => {
            ModelDistances::with_ridge(&of(dataset.fit.end..steps)?, calibration.len(), 0.0)
        }
        Thresholds::Fit => {
            let cut = |r: &Array2<f32>| rows(r, &dataset.fit, calibration.end);
            let of_both = |r: &Residuals| Residuals { c: cut(&r.c), a: r.a.as_ref().map(cut) };
            let known: Vec<Residuals> = of(0..steps)?.iter().map(of_both).collect();
            ModelDistances::new(&known, dataset.fit.len())
        }
    };
    let Some(flags) = distances.at(percentile) else {
        return Err(format!("no flags at the {percentile}th percentile").into());
    };
    let events = TruthEvent::later(&dataset.events, calibration.end);
    Ok(Outcome {
        server_loss: nominal.server_loss(SETTLING),
        client_loss: client_loss(SETTLING),
        losses_from_the_first: [nominal.server_loss(0), client_loss(0)],
        flags,
        arl0: distances.run_lengths(percentile, &events).arl0,
        first: distances.first_in_calibration(percentile, Span::Step, 1),
        truth: Truth {
            clients: filters.len(),
            steps: steps - calibration.end,
            period_s: dataset.period_s,
            events,
        },
    })
}

impl FlagSeries {
    /// The root at each step when every pair of clients is looked up by itself: the one that is named,
    /// if no pair names another.
    pub(crate) fn look_up_pairs(&self, clients: usize) -> Vec<Option<usize>> {
        let at = |t: usize| {
            let now: Vec<_> = self.at(t).collect();
            let pairs = (0..clients).flat_map(|m| (m + 1..clients).map(move |n| (m, n)));
            let mut named = pairs.filter_map(|(m, n)| {
                let root = look_up(&[now[m], now[n]]).root()?;
                Some(if root == 0 { m } else { n })
            });
            let first = named.next()?;
            named.all(|other| other == first).then_some(first)
        };
        (0..self.steps()).map(at).collect()
    }
}

/// How the oracle of the paper differs from ours, and the noise of Theorem 7.1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OracleFigures {
    /// Mean r_o² on new rows: ours, with H at the estimate before, with heads of width 4.
    pub ours: f64,
    pub earlier_jacobian: f64,
    pub narrow_heads: f64,
    /// σ of a state, in nominal standard deviations, at ε = 1 and δ = 1e-5, mean over clients: as used,
    /// and σ_c and σ_a as printed.
    pub sigma_used: f64,
    pub sigma_c: f64,
    pub sigma_a: f64,
    /// σ of a gradient at the same ε and δ: as used, and σ_g as printed.
    pub sigma_g_used: f64,
    pub sigma_g: f64,
    /// σ of sensitivity 1 at the same ε and δ: the least, and by the classic rule.
    pub sigma_least: f64,
    pub sigma_classic: f64,
}

/// The width of the paper's measurement head.
const PAPERS_HEAD: usize = 4;

/// Trains three oracles beside the federation of `clients`.
pub(crate) fn oracles(clients: &Clients, effort: Effort) -> Result<OracleFigures, Failure> {
    let Clients { seed, dataset, filters } = clients;
    let fit = dataset.fit.start..dataset.fit.end.min(dataset.fit.start + effort.rows);
    let learning = dataset.sites(filters, fit);
    let held_out = dataset.sites(filters, dataset.nominal.clone());
    let privacy = PrivacySettings::default();
    let usual = ModelSettings {
        epochs: effort.oracle_epochs,
        oracle_width: effort.oracle_width,
        ..ModelSettings::default()
    };
    let train = |settings: &ModelSettings| -> Result<(Oracle, f64), Failure> {
        let seed = rng::child(*seed, ORACLE);
        let hooks = unprotected(&privacy);
        let fitted =
            Variant::CentralisedOracle.fit(&learning, settings, hooks, seed, &mut to_the_end)?;
        let rows: Vec<ArrayView2<f32>> = held_out.iter().map(|site| site.rows).collect();
        let loss = mean_square(fitted.residuals(&rows)?.iter().map(|r| &r.c)).unwrap_or(0.0);
        match fitted {
            Fitted::CentralisedOracle(oracle) => Ok((oracle, loss)),
            other => unreachable!("the oracle was asked for, not {other:?}"),
        }
    };
    let (oracle, ours) = train(&usual)?;
    let earlier = ModelSettings { printed: &[Printed::EarlierJacobian], ..usual.clone() };
    let narrow = ModelSettings { measurement_width: PAPERS_HEAD, ..usual.clone() };
    let alignment = OracleAlignment::new(&held_out, &oracle, 2 * dataset.nominal.len() / 5)?;
    let federation = ModelSettings::default();
    let together = rng::child(*seed, TOGETHER);
    let (curve, _) = loss_curve::follow(&learning, &held_out, &alignment, &federation, together)?;
    let mean = |of: fn(&loss_curve::ClientTheory) -> f64| {
        curve.theory.iter().map(of).sum::<f64>() / curve.theory.len().max(1) as f64
    };
    Ok(OracleFigures {
        ours,
        earlier_jacobian: train(&earlier)?.1,
        narrow_heads: train(&narrow)?.1,
        sigma_used: mean(|t| t.sigma_used),
        sigma_c: mean(|t| t.sigma_c),
        sigma_a: mean(|t| t.sigma_a),
        sigma_g_used: mean(|t| t.sigma_g_used),
        sigma_g: mean(|t| t.sigma_g),
        sigma_least: Sigma::Analytic.sigma(1.0, 1.0, 1e-5),
        sigma_classic: Sigma::Classic.sigma(1.0, 1.0, 1e-5),
    })
}

/// `session` over the built-in plant with P4 as a client beside the three that are watched.
pub(crate) fn with_p4(session: &mut Session) {
    const SENSORS: [&str; 6] =
        ["P4_HT_FD", "P4_HT_PO", "P4_ST_FD", "P4_ST_PO", "P4_ST_PT01", "P4_ST_TT01"];
    session.clients = default_clients();
    session.clients.push(ClientSettings {
        name: "P4".into(),
        title: "simulated grid".into(),
        columns: SENSORS.map(Into::into).into(),
        except: Vec::new(),
        inputs: Vec::new(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::threshold::Flags;

    #[test]
    fn pairs_name_a_root_only_if_no_pair_names_another() {
        let mut flags = FlagSeries::new(3);
        let both = Some(Flags::new(true, true));
        let none = Some(Flags::new(false, false));
        let untrained = Some(Flags::new(false, true));
        flags.push([none, both, none].into_iter());
        flags.push([both, both, none].into_iter());
        flags.push([untrained, none, both].into_iter());
        assert_eq!(flags.look_up_pairs(3), [Some(1), None, Some(2)]);
        assert_eq!(flags.look_up(None), [Some(1), None, None]);
    }

    #[test]
    fn p4_stands_beside_the_three_processes() {
        let mut session = Session::open("plant-paper").expect("a shipped session");
        with_p4(&mut session);
        let names: Vec<&str> = session.clients.iter().map(|client| client.name.as_str()).collect();
        assert_eq!(names, ["P1", "P2", "P3", "P4"]);
        assert!(crate::stream::open(&session, crate::stream::Part::Fit).is_ok());
    }
}
