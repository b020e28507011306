//! Norms of what the models leave over, and in which order they stand.

use std::ops::Range;

use candle_core::{Device, Tensor};
use ndarray::{ArrayView2, Axis, Slice};
use serde::{Deserialize, Serialize};

use super::dataset::Dataset;
use crate::federation::FederationError;
use crate::federation::states::{Replay, Series};
use crate::nn::network::FilterNetwork;
use crate::nn::oracle::Layout;
use crate::nn::train::SETTLING;
use crate::site::training::SiteData;

/// Steps before the first anomaly from which a trace is kept, and its length.
const LEAD: usize = 100;
const TRACE: usize = 400;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Condition {
    /// Rows that were learned from.
    Fit,
    /// Normal rows that were not.
    Nominal,
    /// Rows in which something was wrong somewhere.
    Anomalous,
}

impl Condition {
    pub(crate) const ALL: [Self; 3] = [Self::Fit, Self::Nominal, Self::Anomalous];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fit => "fit",
            Self::Nominal => "nominal",
            Self::Anomalous => "anomalous",
        }
    }
}

/// NormSeries of one client under one condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ResidualNorms {
    pub client: String,
    pub condition: Condition,
    pub steps: usize,
    /// Mean ‖r_c‖ of the proprietary model.
    pub r_c: f64,
    /// Mean ‖r_a‖ of the augmented model.
    pub r_a: f64,
    /// Mean ‖y − h(x_s)‖ with the server's state.
    pub r_s: f64,
    /// Mean ‖r_o‖ of the oracle.
    pub r_o: f64,
    /// Share of steps with ‖r_c‖ > ‖r_a‖.
    pub c_over_a: f64,
    /// Share of steps with ‖r_a‖ > ‖r_o‖.
    pub a_over_o: f64,
    /// Share of steps in which both hold.
    pub ordered: f64,
}

/// Norms of one client, step by step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct NormTrace {
    pub client: String,
    /// The first step, counted from the beginning of the run.
    pub first: usize,
    pub r_c: Vec<f32>,
    pub r_a: Vec<f32>,
    pub r_o: Vec<f32>,
    /// Whether something was wrong at the step.
    pub anomalous: Vec<bool>,
}

/// ‖r‖ of every step, by model.
#[derive(Debug, Clone, Copy)]
struct Step {
    c: f64,
    a: f64,
    s: f64,
    o: f64,
}

/// All norms of all clients.
pub(super) struct NormSeries {
    clients: Vec<Vec<Step>>,
}

impl NormSeries {
    /// From a replay over the whole run and the oracle's.
    pub(super) fn of(
        sites: &[SiteData],
        federation: &Replay,
        central: &Series,
        layout: &Layout,
    ) -> Result<Self, FederationError> {
        let r_o = central.r_c.view();
        let mut first = 0;
        let clients = sites.iter().zip(&federation.clients).enumerate().map(|(m, (site, own))| {
            let states = first..first + own.x_c.ncols();
            first = states.end;
            let x_s = federation.x_s.slice_axis(Axis(1), Slice::from(states));
            let r_s = server_residuals(site, &x_s)?;
            let r_a = own.augmented.as_ref().map_or(own.r_c.view(), |a| a.r_a.view());
            let (c, a) = (norms(&own.r_c.view()), norms(&r_a));
            let (s, o) = (norms(&r_s.view()), norms(&layout.extract_rows(m, &r_o)));
            let steps = c.into_iter().zip(a).zip(s.into_iter().zip(o));
            Ok(steps.map(|((c, a), (s, o))| Step { c, a, s, o }).collect())
        });
        Ok(Self { clients: clients.collect::<Result<_, FederationError>>()? })
    }

    /// Means and orders under every condition; `fit` is what was learned from.
    pub(super) fn norms(&self, dataset: &Dataset, fit: Range<usize>) -> Vec<ResidualNorms> {
        let settled = fit.start + SETTLING..fit.end;
        let watched = dataset.nominal.end..dataset.steps();
        let mut all = Vec::new();
        for (client, steps) in dataset.names.iter().zip(&self.clients) {
            for condition in Condition::ALL {
                let chosen: Vec<Step> = match condition {
                    Condition::Fit => steps[settled.clone()].to_vec(),
                    Condition::Nominal => steps[dataset.nominal.clone()].to_vec(),
                    Condition::Anomalous => watched
                        .clone()
                        .filter(|&t| dataset.anomalous[t])
                        .map(|t| steps[t])
                        .collect(),
                };
                all.extend(summary(client, condition, &chosen));
            }
        }
        all
    }

    /// Around the first anomaly; nothing where there is none.
    pub(super) fn traces(&self, dataset: &Dataset) -> Vec<NormTrace> {
        let Some(wrong) = dataset.anomalous.iter().position(|wrong| *wrong) else { return vec![] };
        let first = wrong.saturating_sub(LEAD);
        let rows = first..(first + TRACE).min(dataset.steps());
        let trace = |(client, steps): (&String, &Vec<Step>)| {
            let of = |norm: &dyn Fn(&Step) -> f64| {
                steps[rows.clone()].iter().map(|step| rounded(norm(step))).collect()
            };
            NormTrace {
                client: client.clone(),
                first,
                r_c: of(&|step| step.c),
                r_a: of(&|step| step.a),
                r_o: of(&|step| step.o),
                anomalous: dataset.anomalous[rows.clone()].to_vec(),
            }
        };
        dataset.names.iter().zip(&self.clients).map(trace).collect()
    }
}

/// Four digits are more than any picture shows.
fn rounded(norm: f64) -> f32 {
    if norm.is_finite() { ((norm * 1e4).round() / 1e4) as f32 } else { 0.0 }
}

fn summary(client: &str, condition: Condition, steps: &[Step]) -> Option<ResidualNorms> {
    let whole: Vec<&Step> =
        steps.iter().filter(|s| [s.c, s.a, s.s, s.o].iter().all(|v| v.is_finite())).collect();
    let n = whole.len() as f64;
    let mean = |of: &dyn Fn(&Step) -> f64| whole.iter().map(|step| of(step)).sum::<f64>() / n;
    let share = |holds: &dyn Fn(&Step) -> bool| mean(&|step| f64::from(u8::from(holds(step))));
    (!whole.is_empty()).then(|| ResidualNorms {
        client: client.to_owned(),
        condition,
        steps: whole.len(),
        r_c: mean(&|step| step.c),
        r_a: mean(&|step| step.a),
        r_s: mean(&|step| step.s),
        r_o: mean(&|step| step.o),
        c_over_a: share(&|step| step.c > step.a),
        a_over_o: share(&|step| step.a > step.o),
        ordered: share(&|step| step.c > step.a && step.a > step.o),
    })
}

/// ‖r‖ of every row over what was measured; NaN where nothing was.
fn norms(residuals: &ArrayView2<f32>) -> Vec<f64> {
    let norm = |row: ndarray::ArrayView1<f32>| {
        let seen: Vec<f64> = row.iter().filter(|r| r.is_finite()).map(|r| f64::from(*r)).collect();
        if seen.is_empty() { f64::NAN } else { seen.iter().map(|r| r * r).sum::<f64>().sqrt() }
    };
    residuals.outer_iter().map(norm).collect()
}

/// y − h_m(x_s).
fn server_residuals(
    site: &SiteData,
    x_s: &ArrayView2<f32>,
) -> Result<ndarray::Array2<f32>, FederationError> {
    let Some(filter) = site.model.filter() else {
        return Err(FederationError::Sites(format!("{}: no filter", site.name)));
    };
    let h = FilterNetwork::running(filter)?;
    let x: Vec<f32> = x_s.iter().copied().collect();
    let y_hat = h.measurement(&Tensor::from_vec(x, x_s.dim(), &Device::Cpu)?)?;
    let y_hat = y_hat.flatten_all()?.to_vec1::<f32>()?;
    let mut residuals = site.rows.to_owned();
    residuals.iter_mut().zip(y_hat).for_each(|(y, y_hat)| *y -= y_hat);
    Ok(residuals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_counted_step_by_step() {
        let step = |c, a, o| Step { c, a, s: 1.0, o };
        let steps = [
            step(3.0, 2.0, 1.0),
            step(3.0, 2.0, 2.5),
            step(1.0, 2.0, 1.0),
            step(2.0, 2.0, 2.0),
            step(f64::NAN, 2.0, 1.0),
        ];
        let norms = summary("C1", Condition::Nominal, &steps).unwrap();
        assert_eq!(norms.steps, 4, "a step without measurements has no order");
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found}");
        near(norms.c_over_a, 0.5);
        near(norms.a_over_o, 0.5);
        near(norms.ordered, 0.25);
        near(norms.r_c, 9.0 / 4.0);
        near(norms.r_a, 2.0);
        assert_eq!(summary("C1", Condition::Nominal, &steps[4..]), None);
    }

    #[test]
    fn a_norm_is_that_of_what_was_measured() {
        let residuals = ndarray::array![[3.0_f32, 4.0], [f32::NAN, 2.0], [f32::NAN, f32::NAN]];
        let norms = norms(&residuals.view());
        assert!((norms[0] - 5.0).abs() < 1e-12 && (norms[1] - 2.0).abs() < 1e-12);
        assert!(norms[2].is_nan());
    }
}
