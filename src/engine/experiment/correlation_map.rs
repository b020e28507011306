//! How the states of all clients move together, by model.

use ndarray::{Array2, ArrayView2, Axis, Slice};
use serde::{Deserialize, Serialize};

use super::dataset::Dataset;
use crate::federation::correlation::{between_clients, canonical_between, correlation};
use crate::federation::states::{Replay, Series};

/// Correlations of one model's states.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CorrelationMap {
    pub model: String,
    /// Names of the states.
    pub names: Vec<String>,
    /// Pearson's correlation of every pair, row by row.
    pub values: Vec<f64>,
    /// Mean |correlation| between states of different clients.
    pub between: f64,
    /// Mean first canonical correlation between two clients: the same in whatever coordinates a
    /// model happens to describe its client.
    pub canonical: f64,
}

/// The maps of all models on nominal rows that nothing was fitted to.
pub(super) fn maps(
    dataset: &Dataset,
    federation: &Replay,
    central: &Series,
) -> Vec<CorrelationMap> {
    let sizes: Vec<usize> = federation.clients.iter().map(|client| client.x_c.ncols()).collect();
    let nominal = |states: &Array2<f32>| {
        states.slice_axis(Axis(0), Slice::from(dataset.nominal.clone())).to_owned()
    };
    let mut models = vec![
        ("proprietary", nominal(&federation.x_hat_c())),
        ("augmented", nominal(&federation.x_a())),
        ("server", nominal(&federation.x_s)),
        ("oracle", nominal(&central.x_hat_c)),
    ];
    if let Some(states) = &dataset.states {
        models.push(("truth", nominal(states)));
    }
    let map =
        |(model, states): &(&str, Array2<f32>)| map(model, &dataset.names, &sizes, &states.view());
    models.iter().map(map).collect()
}

fn map(
    model: &str,
    clients: &[String],
    sizes: &[usize],
    states: &ArrayView2<f32>,
) -> CorrelationMap {
    let all = correlation(states);
    let names = clients.iter().zip(sizes);
    CorrelationMap {
        model: model.to_owned(),
        names: names.flat_map(|(name, &p)| (1..=p).map(move |k| format!("{name}.{k}"))).collect(),
        between: between_clients(&all.view(), sizes),
        canonical: canonical_between(&all.view(), sizes),
        values: all.iter().copied().collect(),
    }
}
