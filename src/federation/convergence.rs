//! How near the federation comes to the centralised oracle, and whether the paper's theorems 6.10
//! and 6.13 say anything about it here.
//!
//! States are defined only up to a change of coordinates: two models trained apart describe the same
//! plant in different axes, and the raw difference of their states means nothing. The oracle's
//! states of each client are therefore first brought into the client's coordinates by an affine
//! map, fitted by least squares to the client's proprietary states on a calibration slice that is
//! not compared on. The oracle's gain goes through the same map.
//!
//! It needs the raw rows of all clients, as the oracle does, so it belongs to studies only.

#[cfg(test)]
mod tests;

use nalgebra::{DMatrix, DVector};
use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use super::states::{Replay, Series, replay, series};
use super::theory::{self, ClientTheory, Constants, ServerTheory};
use super::variant::side_by_side;
use super::{FederatedWeights, FederationError};
use crate::nn::frozen::Frozen;
use crate::nn::oracle::Oracle;
use crate::nn::proprietary::{Proprietary as _, VendorModel};
use crate::nn::train::SETTLING;
use crate::nn::train::filter::gains;
use crate::nn::train::window::Batch;
use crate::nn::weights::ProprietaryWeights;
use crate::site::training::SiteData;

/// The quantile reported beside every maximum.
const QUANTILE: f64 = 0.95;

/// A quantity along a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct MaxQ95 {
    /// Its largest value: the estimate of a Lipschitz constant or a supremum.
    pub(crate) max: f64,
    /// Its 95 % quantile: the same without the worst moments.
    pub(crate) q95: f64,
}

impl MaxQ95 {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |q: f64| values.get((q * (values.len().max(1) - 1) as f64).round() as usize);
        let at = |q: f64| at(q).copied().unwrap_or(0.0);
        Self { max: at(1.0), q95: at(QUANTILE) }
    }
}

/// One client beside the oracle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OracleDistance {
    /// Mean ‖x_c − x_o‖: how far the proprietary model is.
    pub(crate) x_c: f64,
    /// Mean ‖x_a − x_o‖.
    pub(crate) x_a: f64,
    /// Mean ‖x_s − x_o‖.
    pub(crate) x_s: f64,
    /// What is left of x_o after the best affine map, as a share of its variance: near 1, the two
    /// models do not describe the same thing and the distances above mean little.
    pub(crate) unexplained: f64,
    /// ‖F‖ along the run: L_f.
    pub(crate) l_f: MaxQ95,
    /// ‖H‖ along the run: L_h.
    pub(crate) l_h: MaxQ95,
    /// ‖ΔK‖ = ‖K_c − Extract(K_o)‖ along the run.
    pub(crate) delta_k: MaxQ95,
    /// sup ‖r_o‖.
    pub(crate) r_o: f64,
    /// C_x: mean ‖x_o‖.
    pub(crate) c_x: f64,
    /// ρ of theorem 6.10; none where its condition does not hold, as its denominator is then not
    /// positive.
    pub(crate) rho: Option<f64>,
    /// 1 + ‖ΔK‖ L_h < 1/L_f with the largest values seen.
    pub(crate) holds: bool,
    /// The same with the 95 % quantiles.
    pub(crate) holds_mostly: bool,
}

impl OracleDistance {
    /// The words for a screen.
    pub(crate) fn verdict(&self) -> &'static str {
        match (self.holds, self.holds_mostly) {
            (true, _) => "holds here",
            (false, true) => "holds in 95 % of steps, does not hold here",
            (false, false) => "does not hold here",
        }
    }
}

/// Compares every client with the oracle on nominal rows; the first `calibration` of them are used
/// to align the oracle's states, the rest to compare.
pub(crate) fn compare(
    sites: &[SiteData],
    weights: &FederatedWeights,
    oracle: &Oracle,
    calibration: usize,
) -> Result<Vec<OracleDistance>, FederationError> {
    OracleAlignment::new(sites, oracle, calibration)?.compare(weights)
}

/// The oracle beside every client, on given rows: all of a comparison that does not depend on what
/// the federation learns, made once for as many weights as there are to compare.
#[derive(Debug)]
pub(crate) struct OracleAlignment<'a> {
    sites: Vec<SiteData<'a>>,
    compared: std::ops::Range<usize>,
    clients: Vec<Fixed>,
}

/// What stays the same about one client.
#[derive(Debug)]
struct Fixed {
    /// x_o in the client's coordinates.
    x_o: DMatrix<f64>,
    /// x̂_o of the step before, in the client's coordinates.
    x_hat_o: DMatrix<f64>,
    /// Mean ‖f_m(x̂_o) − x_o‖: δ_m.
    delta_m: f64,
    /// sup ‖r_c‖ and sup ‖y‖.
    r_c: f64,
    y: f64,
    /// Mean standard deviation of the components of x̂_c.
    state_std: f64,
    x_c: DMatrix<f64>,
    bounds: Bounds,
}

impl<'a> OracleAlignment<'a> {
    /// Runs the oracle over nominal rows; the first `calibration` of them are used to align its
    /// states, the rest to compare.
    pub(crate) fn new(
        sites: &[SiteData<'a>],
        oracle: &Oracle,
        calibration: usize,
    ) -> Result<Self, FederationError> {
        let rows: Vec<ArrayView2<f32>> = sites.iter().map(|site| site.rows).collect();
        let joint = side_by_side(&rows)?;
        let steps = joint.nrows();
        if calibration <= SETTLING || calibration >= steps {
            return Err(FederationError::Sites(format!(
                "{calibration} of {steps} rows for alignment; expected more than {SETTLING} and \
                 some left to compare"
            )));
        }
        let central =
            series(&ProprietaryWeights::Filter(oracle.filter.clone()), None, &joint.view())?;
        let central_gain = gains(&oracle.filter, &whole(&joint.view()));
        let compared = calibration..steps;
        let clients = sites.iter().enumerate().map(|(m, site)| {
            let Some(filter) = site.model.filter() else {
                return Err(FederationError::Sites(format!("{}: no filter", site.name)));
            };
            let own = series(site.model, None, &site.rows)?;
            let p = filter.states();
            let x_o = oracle.layout.states(m);
            let alignment = Alignment::fit(
                &matrix(&central.x_c.view(), SETTLING..calibration, x_o.clone()),
                &matrix(&own.x_c.view(), SETTLING..calibration, 0..p),
            );
            let aligned =
                alignment.apply(&matrix(&central.x_c.view(), compared.clone(), x_o.clone()));
            let before = compared.start - 1..compared.end - 1;
            let x_hat_o = alignment.apply(&matrix(&central.x_hat_c.view(), before, x_o.clone()));
            let PathSlopes { l_f, l_h, delta_m } =
                slopes(site, &own, compared.clone(), (&x_hat_o, &aligned))?;
            let own_gain = gains(filter, &whole(&site.rows));
            let delta_k = compared.clone().map(|t| {
                let extract: Vec<f32> = oracle.layout.extract_gain(m, &central_gain[t]);
                let k_o = &alignment.map * row_major(x_o.len(), filter.sensors(), &extract);
                norm(&(row_major(p, filter.sensors(), &own_gain[t]) - k_o))
            });
            let r_o = oracle.layout.extract_rows(m, &central.r_c.view());
            let r_o = compared.clone().map(|t| {
                let row = r_o.row(t);
                let squares = row.iter().filter(|r| r.is_finite()).map(|r| r * r);
                f64::from(squares.sum::<f32>()).sqrt()
            });
            let bounds = Bounds {
                l_f,
                l_h,
                delta_k: MaxQ95::of(delta_k.collect()),
                r_o: r_o.fold(0.0, f64::max),
                c_x: mean_norm(&aligned),
                clients: sites.len(),
            };
            let x_c = matrix(&own.x_c.view(), compared.clone(), 0..p);
            let (r_c, y) = (largest(&own.r_c.view(), &compared), largest(&site.rows, &compared));
            let state_std = mean_std(&matrix(&own.x_hat_c.view(), compared.clone(), 0..p));
            Ok(Fixed { x_o: aligned, x_hat_o, delta_m, r_c, y, state_std, x_c, bounds })
        });
        let clients = clients.collect::<Result<_, _>>()?;
        Ok(Self { sites: sites.to_vec(), compared, clients })
    }

    /// Every client with these weights beside the oracle.
    pub(crate) fn compare(
        &self,
        weights: &FederatedWeights,
    ) -> Result<Vec<OracleDistance>, FederationError> {
        let federation = replay(&self.sites, weights)?;
        let mut first = 0;
        let clients = self.clients.iter().zip(&federation.clients);
        Ok(clients
            .map(|(Fixed { x_o, x_c, bounds, .. }, own)| {
                let p = x_c.ncols();
                let x_s = matrix(&federation.x_s.view(), self.compared.clone(), first..first + p);
                first += p;
                let x_a = own.augmented.as_ref();
                let x_a = x_a.map(|a| matrix(&a.x_a.view(), self.compared.clone(), 0..p));
                OracleDistance {
                    x_c: mean_norm(&(x_c - x_o)),
                    x_a: x_a.map_or(f64::NAN, |x_a| mean_norm(&(x_a - x_o))),
                    x_s: mean_norm(&(x_s - x_o)),
                    unexplained: unexplained(x_c, x_o),
                    l_f: bounds.l_f,
                    l_h: bounds.l_h,
                    delta_k: bounds.delta_k,
                    r_o: bounds.r_o,
                    c_x: bounds.c_x,
                    rho: bounds.rho(),
                    holds: bounds.margin(|along| along.max) > 0.0,
                    holds_mostly: bounds.margin(|along| along.q95) > 0.0,
                }
            })
            .collect())
    }
}

impl OracleAlignment<'_> {
    /// The quantities of the theorems with φ after the first pass and everything at the end. None for
    /// clients with states of different sizes: the paper adds them up.
    pub(crate) fn theory(
        &self,
        first: &FederatedWeights,
        last: &FederatedWeights,
    ) -> Result<(Vec<ClientTheory>, ServerTheory), FederationError> {
        let federation = replay(&self.sites, last)?;
        let states = |fixed: &Fixed| fixed.x_o.ncols();
        let same = self.clients.windows(2).all(|pair| states(&pair[0]) == states(&pair[1]));
        let mut clients = Vec::new();
        for (m, fixed) in self.clients.iter().enumerate().filter(|_| same) {
            let mut others = DMatrix::zeros(fixed.x_o.nrows(), states(fixed));
            for (_, other) in self.clients.iter().enumerate().filter(|(n, _)| *n != m) {
                others += &other.x_hat_o;
            }
            let Fixed { delta_m, r_c, y, state_std, bounds, .. } = fixed;
            let constants = Constants {
                l_f: bounds.l_f.max,
                l_h: bounds.l_h.max,
                delta_k: bounds.delta_k.max,
                c_x: bounds.c_x,
                rho: bounds.rho(),
                r_c: *r_c,
                y: *y,
                delta_m: *delta_m,
                state_std: *state_std,
                states: states(fixed),
                c_g: 2.0 * feedback(&federation, m, &self.compared),
            };
            let phi = (&first.phi[m], &last.phi[m]);
            let compared = self.compared.clone();
            let site = &self.sites[m];
            clients.push(theory::of_client(site, &constants, &others, compared, phi)?);
        }
        let x_o: Vec<&DMatrix<f64>> = self.clients.iter().map(|fixed| &fixed.x_o).collect();
        let total: usize = x_o.iter().map(|x| x.ncols()).sum();
        let x_s = matrix(&federation.x_s.view(), self.compared.clone(), 0..total);
        let mut apart = x_s;
        let mut column = 0;
        for x in x_o {
            let mut part = apart.columns_mut(column, x.ncols());
            part -= x;
            column += x.ncols();
        }
        let sigma_star = mean_norm(&apart);
        let x_hat_c = federation.x_hat_c();
        let l_fs = theory::server_slope(&last.server, &x_hat_c.view(), self.compared.start)?;
        let rhos: Option<Vec<f64>> = self.clients.iter().map(|fixed| fixed.bounds.rho()).collect();
        let rho = rhos.map(|rhos| rhos.into_iter().fold(0.0, f64::max));
        let bound = rho.map(|rho| l_fs * self.clients.len() as f64 * rho + sigma_star);
        Ok((clients, ServerTheory { l_fs, sigma_star, bound }))
    }
}

/// The largest ‖x_a − x_s‖ of client `m` in the rows `compared`.
fn feedback(federation: &Replay, m: usize, compared: &std::ops::Range<usize>) -> f64 {
    let Some(augmented) = &federation.clients[m].augmented else { return 0.0 };
    let p = augmented.x_a.ncols();
    let before: usize = federation.clients[..m].iter().map(|client| client.x_c.ncols()).sum();
    let x_a = matrix(&augmented.x_a.view(), compared.clone(), 0..p);
    let apart = x_a - matrix(&federation.x_s.view(), compared.clone(), before..before + p);
    apart.row_iter().map(|row| row.norm()).fold(0.0, f64::max)
}

/// The largest norm of the rows `compared`, over what is there.
fn largest(rows: &ArrayView2<f32>, compared: &std::ops::Range<usize>) -> f64 {
    let norm = |t: usize| {
        let row = rows.row(t);
        let seen = row.iter().filter(|v| v.is_finite()).map(|v| f64::from(*v).powi(2));
        seen.sum::<f64>().sqrt()
    };
    compared.clone().map(norm).fold(0.0, f64::max)
}

/// Mean standard deviation of the columns.
fn mean_std(rows: &DMatrix<f64>) -> f64 {
    let stds = rows.column_iter().map(|column| column.variance().sqrt());
    stds.sum::<f64>() / rows.ncols().max(1) as f64
}

/// What theorem 6.10 is made of.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    l_f: MaxQ95,
    l_h: MaxQ95,
    delta_k: MaxQ95,
    r_o: f64,
    c_x: f64,
    clients: usize,
}

impl Bounds {
    /// 1 − (1 + ‖ΔK‖ L_h) L_f: positive where the condition holds.
    fn margin(&self, of: impl Fn(MaxQ95) -> f64) -> f64 {
        1.0 - (1.0 + of(self.delta_k) * of(self.l_h)) * of(self.l_f)
    }

    fn rho(&self) -> Option<f64> {
        let margin = self.margin(|along| along.max);
        let others = (self.clients - 1) as f64;
        let sum = self.delta_k.max * self.r_o
            + self.l_h.max * self.c_x
            + self.l_f.max * others * self.c_x;
        (margin > 0.0).then(|| sum / margin)
    }
}

/// An affine map x ↦ A x + b, fitted by least squares.
struct Alignment {
    map: DMatrix<f64>,
    shift: DVector<f64>,
}

impl Alignment {
    /// The map that brings `from` nearest to `to` (rows = steps).
    fn fit(from: &DMatrix<f64>, to: &DMatrix<f64>) -> Self {
        let (mean_from, mean_to) = (from.row_mean(), to.row_mean());
        let centre = |x: &DMatrix<f64>, mean: &nalgebra::RowDVector<f64>| {
            DMatrix::from_fn(x.nrows(), x.ncols(), |i, j| x[(i, j)] - mean[j])
        };
        let (from, to) = (centre(from, &mean_from), centre(to, &mean_to));
        let mut square = from.tr_mul(&from);
        // A state that never moves has nothing to say; the ridge keeps the solution finite.
        let ridge = 1e-9 * square.trace().max(f64::MIN_POSITIVE);
        (0..square.nrows()).for_each(|i| square[(i, i)] += ridge);
        let solved = square.cholesky().map(|factor| factor.solve(&from.tr_mul(&to)));
        let map = solved.unwrap_or_else(|| DMatrix::zeros(from.ncols(), to.ncols())).transpose();
        let shift = mean_to.transpose() - &map * mean_from.transpose();
        Self { map, shift }
    }

    fn apply(&self, x: &DMatrix<f64>) -> DMatrix<f64> {
        let mut out = x * self.map.transpose();
        for mut row in out.row_iter_mut() {
            row += self.shift.transpose();
        }
        out
    }
}

/// What is found along the compared rows.
struct PathSlopes {
    l_f: MaxQ95,
    l_h: MaxQ95,
    delta_m: f64,
}

/// ‖F‖ and ‖H‖ along the compared rows, at the proprietary model's own states, and how far f_m takes
/// the oracle's estimates from the oracle's predictions.
fn slopes(
    site: &SiteData,
    own: &Series,
    compared: std::ops::Range<usize>,
    (x_hat_o, x_o): (&DMatrix<f64>, &DMatrix<f64>),
) -> Result<PathSlopes, FederationError> {
    let Some(filter) = site.model.filter() else {
        let none = || MaxQ95::of(vec![]);
        return Ok(PathSlopes { l_f: none(), l_h: none(), delta_m: 0.0 });
    };
    let frozen = Frozen::new(filter)?;
    let mut carried = frozen.carried();
    let memories = memories(site)?;
    let (mut f, mut h) = (Vec::new(), Vec::new());
    let (mut apart, steps) = (0.0, compared.len().max(1) as f64);
    for (i, t) in compared.enumerate() {
        let estimate: Vec<f32> = x_hat_o.row(i).iter().map(|&v| v as f32).collect();
        frozen.carry(&estimate, &memories[t - 1], &mut carried);
        let predicted = x_o.row(i);
        let squares = carried.x().iter().zip(predicted.iter());
        apart += squares.map(|(x, o)| (f64::from(*x) - o).powi(2)).sum::<f64>().sqrt();
        let x_hat: Vec<f32> = own.x_hat_c.row(t - 1).to_vec();
        frozen.carry(&x_hat, &memories[t - 1], &mut carried);
        let columns = |column: &dyn Fn(usize) -> Vec<f64>| {
            let columns: Vec<DVector<f64>> =
                (0..x_hat.len()).map(|k| DVector::from_vec(column(k))).collect();
            norm(&DMatrix::from_columns(&columns))
        };
        let wide = |values: &[f32]| values.iter().map(|&v| f64::from(v)).collect();
        f.push(columns(&|k| wide(carried.f_column(k))));
        h.push(columns(&|k| wide(carried.h_column(k))));
    }
    Ok(PathSlopes { l_f: MaxQ95::of(f), l_h: MaxQ95::of(h), delta_m: apart / steps })
}

/// (h, c) of f_m after each row.
fn memories(site: &SiteData) -> Result<Vec<Vec<f32>>, FederationError> {
    let mut model = VendorModel::new(site.model)?;
    let mut memories = Vec::with_capacity(site.rows.nrows());
    for row in site.rows.outer_iter() {
        let y = row.to_vec();
        model.step(&y, None);
        let mut recorded = Vec::new();
        if let Some((filter, _)) = model.filter(&y) {
            filter.memory().record(&mut recorded);
        }
        memories.push(recorded);
    }
    Ok(memories)
}

fn whole(rows: &ArrayView2<f32>) -> Batch {
    let (steps, sensors) = rows.dim();
    Batch { steps, windows: 1, sensors, values: rows.iter().copied().collect() }
}

fn matrix(
    values: &ArrayView2<f32>,
    rows: std::ops::Range<usize>,
    columns: std::ops::Range<usize>,
) -> DMatrix<f64> {
    DMatrix::from_fn(rows.len(), columns.len(), |i, j| {
        f64::from(values[[rows.start + i, columns.start + j]])
    })
}

fn row_major(rows: usize, columns: usize, values: &[f32]) -> DMatrix<f64> {
    DMatrix::from_fn(rows, columns, |i, j| f64::from(values[i * columns + j]))
}

/// Largest singular value.
pub(super) fn norm(matrix: &DMatrix<f64>) -> f64 {
    matrix.singular_values().iter().copied().fold(0.0, f64::max)
}

fn mean_norm(rows: &DMatrix<f64>) -> f64 {
    rows.row_iter().map(|row| row.norm()).sum::<f64>() / rows.nrows().max(1) as f64
}

/// Share of the variance of `of` that `by` leaves over.
fn unexplained(of: &DMatrix<f64>, by: &DMatrix<f64>) -> f64 {
    let mean = of.row_mean();
    let spread: f64 = of.row_iter().map(|row| (row - &mean).norm_squared()).sum();
    if spread > 0.0 { (of - by).norm_squared() / spread } else { 0.0 }
}
