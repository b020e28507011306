//! States and residuals of given rows, step by step, through the same inference path for all models.

use ndarray::{Array2, ArrayView2, Axis, concatenate};

use super::{FederatedWeights, FederationError};
use crate::nn::online::{Descent, Learner};
use crate::site::series::set;
pub(crate) use crate::site::series::{Series, series};
use crate::site::training::SiteData;

/// A trained federation run over given rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Replay {
    pub(crate) clients: Vec<Series>,
    /// x_s of all clients side by side; row t is the prediction of x_a(t), the first one is NaN.
    pub(crate) x_s: Array2<f32>,
}

/// Runs everything over the sites' rows, which may be other rows than it was trained on.
pub(crate) fn replay(
    sites: &[SiteData],
    weights: &FederatedWeights,
) -> Result<Replay, FederationError> {
    let clients = sites
        .iter()
        .zip(&weights.phi)
        .map(|(site, phi)| series(site.model, Some(phi), &site.rows))
        .collect::<Result<Vec<_>, _>>()?;
    let views: Vec<_> = clients.iter().map(|client| client.x_hat_c.view()).collect();
    let x_hat_c = concatenate(Axis(1), &views).map_err(|_| {
        FederationError::Sites("rows of all sites must be of the same times".into())
    })?;
    // It only runs: nothing is ever learned with a step size of zero.
    let mut f_s = Learner::new(&weights.server, Descent::Sgd(0.0))?;
    let mut x_s = Array2::from_elem(x_hat_c.raw_dim(), f32::NAN);
    let mut input = vec![0.0; x_hat_c.ncols()];
    for t in 1..x_hat_c.nrows() {
        input.iter_mut().zip(x_hat_c.row(t - 1)).for_each(|(to, v)| *to = *v);
        set(&mut x_s, t, f_s.forward(&input));
    }
    Ok(Replay { clients, x_s })
}

impl Replay {
    /// x_a of all clients side by side.
    pub(crate) fn x_a(&self) -> Array2<f32> {
        self.joined(|client| client.augmented.as_ref().map(|a| a.x_a.view()))
    }

    /// x̂_c of all clients side by side.
    pub(crate) fn x_hat_c(&self) -> Array2<f32> {
        self.joined(|client| Some(client.x_hat_c.view()))
    }

    fn joined<'a>(
        &'a self,
        part: impl Fn(&'a Series) -> Option<ArrayView2<'a, f32>>,
    ) -> Array2<f32> {
        let parts: Vec<_> = self.clients.iter().filter_map(part).collect();
        concatenate(Axis(1), &parts).expect("x_s was made of as many rows of every client")
    }

    /// Mean L_s over the rows from `first` on, with weights that no longer change.
    pub(crate) fn server_loss(&self, first: usize) -> f64 {
        let e = &self.x_s - &self.x_a();
        let squares = e
            .outer_iter()
            .skip(first.max(1))
            .map(|row| row.iter().map(|e| f64::from(*e).powi(2)).sum::<f64>());
        mean(squares)
    }

    /// Mean L_a of each client over the rows from `first` on.
    pub(crate) fn client_loss(&self, first: usize) -> Vec<f64> {
        let r_a = |client: &Series| client.augmented.as_ref().map(|a| square_norm(&a.r_a, first));
        self.clients.iter().filter_map(r_a).collect()
    }
}

/// Mean ‖r‖² over the rows from `first` on; what is missing adds nothing.
pub(crate) fn square_norm(residuals: &Array2<f32>, first: usize) -> f64 {
    mean(residuals.outer_iter().skip(first).map(|row| {
        row.iter().filter(|r| r.is_finite()).map(|r| f64::from(*r).powi(2)).sum::<f64>()
    }))
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0_usize), |(sum, n), v| (sum + v, n + 1));
    if n == 0 { 0.0 } else { sum / n as f64 }
}
