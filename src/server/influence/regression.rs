//! The server's regression of every ε on the past of all clients, and what it would be without some
//! of them.
//!
//! One system serves all: with A = XᵀX + λI and B = A⁻¹XᵀY, the solution without the regressors J is
//! B − A⁻¹[:,J] (A⁻¹[J,J])⁻¹ B[J,:], so no refit is needed to leave a block out.

use std::ops::Range;

use nalgebra::{Cholesky, DMatrix};

use super::LAGS;
use super::foretell::Source;
use super::heard::Heard;

/// Rows taken at once, so that sums are matrix products.
const CHUNK: usize = 256;
/// Ridge penalty, and that of the intercept.
const LAMBDA: f64 = 9.0;
const INTERCEPT: f64 = 1e-6;

/// The summaries of all clients over a stretch, as rows of regressors and outputs.
pub(super) struct Stretch<'a> {
    heard: &'a [Heard],
    /// ψ per client, one row a step.
    psi: Vec<Vec<f64>>,
    widths: Vec<usize>,
    /// Steps that have all that a row needs.
    usable: Vec<usize>,
}

impl<'a> Stretch<'a> {
    pub(crate) fn new(sources: &[Source], heard: &'a [Heard]) -> Self {
        let steps = heard.iter().map(Heard::steps).min().unwrap_or(0);
        let psi = sources.iter().zip(heard).map(|(source, heard)| {
            let mut psi = vec![0.0; steps * source.width()];
            for (t, psi) in psi.chunks_exact_mut(source.width()).enumerate() {
                if let Some(z) = heard.z(t) {
                    source.write(z, psi);
                }
            }
            psi
        });
        let all_spoke = |t: usize| heard.iter().all(|h| h.z(t).is_some());
        let usable = (LAGS..steps).filter(|t| (t - LAGS..=*t).all(all_spoke)).collect();
        Self {
            psi: psi.collect(),
            widths: sources.iter().map(Source::width).collect(),
            heard,
            usable,
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.usable.len()
    }

    /// Regressors, the intercept included.
    pub(crate) fn width(&self) -> usize {
        LAGS * self.widths.iter().sum::<usize>() + 1
    }

    /// Places of a client's past at one lag among the regressors.
    pub(crate) fn lag(&self, client: usize, lag: usize) -> Range<usize> {
        let from = LAGS * self.widths[..client].iter().sum::<usize>();
        let width = self.widths[client];
        from + lag * width..from + (lag + 1) * width
    }

    /// Places of all of a client's past.
    pub(crate) fn block(&self, client: usize) -> Range<usize> {
        self.lag(client, 0).start..self.lag(client, LAGS - 1).end
    }

    /// Places of a client's ε among the outputs.
    pub(crate) fn outputs(&self, client: usize) -> Range<usize> {
        let from = self.heard[..client].iter().map(Heard::states).sum();
        from..from + self.heard[client].states()
    }

    /// Calls `take` with X (rows × regressors) and Y (rows × outputs), some rows at a time.
    fn chunks(&self, mut take: impl FnMut(&DMatrix<f64>, &DMatrix<f64>)) {
        let outputs = self.heard.iter().map(Heard::states).sum();
        for steps in self.usable.chunks(CHUNK) {
            let mut x = DMatrix::from_element(steps.len(), self.width(), 1.0);
            let mut y = DMatrix::zeros(steps.len(), outputs);
            for (row, &t) in steps.iter().enumerate() {
                for (client, psi) in self.psi.iter().enumerate() {
                    let width = self.widths[client];
                    for lag in 0..LAGS {
                        let from = (t - lag - 1) * width;
                        let places = self.lag(client, lag);
                        for (i, psi) in places.zip(&psi[from..from + width]) {
                            x[(row, i)] = *psi;
                        }
                    }
                    let epsilon = self.heard[client].epsilon(t).into_iter().flatten();
                    for (i, epsilon) in self.outputs(client).zip(epsilon) {
                        y[(row, i)] = *epsilon;
                    }
                }
            }
            take(&x, &y);
        }
    }
}

pub(super) struct System {
    penalised: DMatrix<f64>,
    cross: DMatrix<f64>,
    inverse: DMatrix<f64>,
    /// B.
    coefficients: DMatrix<f64>,
}

impl System {
    /// None when the equations have no solution.
    pub(crate) fn fit(stretch: &Stretch<'_>) -> Option<Self> {
        let width = stretch.width();
        let outputs = stretch.heard.iter().map(Heard::states).sum();
        let mut penalised = DMatrix::zeros(width, width);
        let mut cross = DMatrix::zeros(width, outputs);
        stretch.chunks(|x, y| {
            let transposed = x.transpose();
            penalised.gemm(1.0, &transposed, x, 1.0);
            cross.gemm(1.0, &transposed, y, 1.0);
        });
        for i in 0..width {
            penalised[(i, i)] += if i + 1 == width { INTERCEPT } else { LAMBDA };
        }
        let cholesky = Cholesky::new(penalised.clone())?;
        let coefficients = cholesky.solve(&cross);
        Some(Self { inverse: cholesky.inverse(), coefficients, cross, penalised })
    }

    /// B.
    #[cfg(test)]
    pub(crate) fn coefficients(&self) -> &DMatrix<f64> {
        &self.coefficients
    }

    /// What leaving out some regressors takes from B.
    pub(crate) fn without(&self, regressors: &[usize]) -> DMatrix<f64> {
        let columns = self.inverse.select_columns(regressors);
        let corner = columns.select_rows(regressors);
        let share = self.coefficients.select_rows(regressors);
        match Cholesky::new(corner) {
            Some(cholesky) => columns * cholesky.solve(&share),
            None => DMatrix::zeros(self.coefficients.nrows(), self.coefficients.ncols()),
        }
    }

    /// Coefficients (regressors × outputs) of a regression on some regressors alone.
    pub(crate) fn alone(
        &self,
        regressors: &[usize],
        outputs: Range<usize>,
    ) -> Option<DMatrix<f64>> {
        let corner = self.penalised.select_columns(regressors).select_rows(regressors);
        let cross = self.cross.columns_range(outputs).select_rows(regressors);
        Some(Cholesky::new(corner)?.solve(&cross))
    }

    /// How the loss on a stretch grows when each of `changes` is taken from B: for every change and
    /// every client.
    pub(crate) fn judge(&self, stretch: &Stretch<'_>, changes: &[DMatrix<f64>]) -> Judged {
        let clients = stretch.heard.len();
        let mut judged = Judged {
            rows: stretch.rows() as f64,
            loss: vec![0.0; clients],
            growth: vec![vec![Growth::default(); clients]; changes.len()],
        };
        let squares = |e: &DMatrix<f64>, row: usize, client: usize| {
            let outputs = stretch.outputs(client);
            let n = outputs.len().max(1) as f64;
            outputs.map(|i| e[(row, i)].powi(2)).sum::<f64>() / n
        };
        stretch.chunks(|x, y| {
            let e = y - x * &self.coefficients;
            let own: Vec<f64> = (0..clients)
                .flat_map(|m| (0..x.nrows()).map(move |row| (m, row)))
                .map(|(m, row)| squares(&e, row, m))
                .collect();
            for (m, losses) in own.chunks_exact(x.nrows()).enumerate() {
                judged.loss[m] += losses.iter().sum::<f64>();
            }
            for (change, growth) in changes.iter().zip(&mut judged.growth) {
                let e = &e + x * change;
                for (m, growth) in growth.iter_mut().enumerate() {
                    for row in 0..x.nrows() {
                        growth.add(squares(&e, row, m) - own[m * x.nrows() + row]);
                    }
                }
            }
        });
        judged
    }
}

/// Losses on held-out rows.
pub(super) struct Judged {
    rows: f64,
    loss: Vec<f64>,
    growth: Vec<Vec<Growth>>,
}

/// How much a loss grows, row by row.
#[derive(Debug, Clone, Copy, Default)]
struct Growth {
    sum: f64,
    squares: f64,
}

impl Growth {
    fn add(&mut self, d: f64) {
        self.sum += d;
        self.squares += d * d;
    }
}

impl Judged {
    /// W: mean growth as a share of the mean loss of `client`.
    pub(crate) fn strength(&self, change: usize, client: usize) -> f64 {
        let loss = self.loss[client];
        if loss > 0.0 { self.growth[change][client].sum / loss } else { 0.0 }
    }

    /// T: mean growth in its standard errors.
    pub(crate) fn evidence(&self, change: usize, client: usize) -> f64 {
        let Growth { sum, squares } = self.growth[change][client];
        let mean = sum / self.rows;
        let variance = (squares / self.rows - mean * mean).max(0.0);
        let error = (variance / self.rows).sqrt();
        if error > 0.0 { mean / error } else { 0.0 }
    }
}
