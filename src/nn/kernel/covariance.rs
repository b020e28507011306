//! The covariance P of a filter in `f64`, with Q = q·I and R = r·I.
//!
//! Two states use the information form, whose only inverse is 2 × 2 however many sensors there are.
//! More states take the sensors one by one, which needs no inverse at all and is exact because R is
//! diagonal. Both end in Joseph's form, P = (I − KH) P⁻ (I − KH)ᵀ + K R Kᵀ, which stays positive
//! definite under rounding of K.

use super::lanes::Arithmetic;
use super::rows::Rows;

/// A variance beyond this means that the filter has lost its state.
const LARGEST_VARIANCE: f64 = 1e9;

/// P and the buffers of its recursion.
#[derive(Debug, Clone)]
pub(crate) struct Covariance {
    states: usize,
    q: f64,
    r: f64,
    /// P, row-major.
    p: Vec<f64>,
    /// Fᵀ, row-major: row k is ∂f/∂x_k.
    f_transposed: Vec<f64>,
    /// F P.
    fp: Vec<f64>,
    /// P Hᵀ of one sensor.
    ph: Vec<f64>,
    /// Gain of one sensor.
    k: Vec<f64>,
    /// H of one sensor.
    h: Vec<f64>,
    /// x̂ − x.
    correction: Vec<f64>,
}

impl Covariance {
    /// P₀ = I.
    pub(crate) fn new(states: usize, q: f64, r: f64) -> Self {
        let mut covariance = Self {
            states,
            q,
            r,
            p: vec![0.0; states * states],
            f_transposed: vec![0.0; states * states],
            fp: vec![0.0; states * states],
            ph: vec![0.0; states],
            k: vec![0.0; states],
            h: vec![0.0; states],
            correction: vec![0.0; states],
        };
        covariance.reset();
        covariance
    }

    /// Back to P₀ = I.
    pub(crate) fn reset(&mut self) {
        self.p.fill(0.0);
        for i in 0..self.states {
            self.p[i * self.states + i] = 1.0;
        }
    }

    /// P, row-major.
    #[cfg(test)]
    pub(crate) fn p(&self) -> &[f64] {
        &self.p
    }

    /// x̂ − x of the last update.
    #[inline(always)]
    pub(crate) fn correction(&self) -> &[f64] {
        &self.correction
    }

    /// P⁻ = F P Fᵀ + Q (eq. 2), symmetrised. Rows 1 to P of `transition` hold ∂f/∂x_k;
    /// `identity` is added to F for a model that yields the change of the state.
    #[inline(always)]
    pub(crate) fn predict<A: Arithmetic>(&mut self, a: A, transition: &Rows, identity: bool) {
        let n = self.states;
        let diagonal = f64::from(u8::from(identity));
        for (k, row) in self.f_transposed.chunks_exact_mut(n).enumerate() {
            for (f, &derivative) in row.iter_mut().zip(transition.row(1 + k)) {
                *f = f64::from(derivative);
            }
            row[k] += diagonal;
        }
        if n == 2 { self.predict_pair() } else { self.predict_many(a) }
    }

    #[inline(always)]
    fn predict_pair(&mut self) {
        let (Some(p), Some(f_transposed)) =
            (self.p.first_chunk_mut::<4>(), self.f_transposed.first_chunk::<4>())
        else {
            unreachable!("two states have a covariance of four numbers")
        };
        let f = transposed(*f_transposed);
        let mut next = product(product(f, *p), *f_transposed);
        next[0] += self.q;
        next[3] += self.q;
        *p = symmetric(next);
    }

    #[inline(always)]
    fn predict_many<A: Arithmetic>(&mut self, a: A) {
        let n = self.states;
        for (i, fp) in self.fp.chunks_exact_mut(n).enumerate() {
            fp.fill(0.0);
            for (f, p) in self.f_transposed.chunks_exact(n).zip(self.p.chunks_exact(n)) {
                add_scaled(a, fp, f[i], p);
            }
        }
        for (i, (p, fp)) in self.p.chunks_exact_mut(n).zip(self.fp.chunks_exact(n)).enumerate() {
            p.fill(0.0);
            for (&fp, f) in fp.iter().zip(self.f_transposed.chunks_exact(n)) {
                add_scaled(a, p, fp, f);
            }
            p[i] += self.q;
        }
        self.symmetrise();
    }

    /// K, x̂ − x = K ν and P from the innovation ν. Rows 1 to P of `measurement` hold ∂h/∂x_k; where
    /// a sensor is missing they and its innovation are zero, so that it has no effect.
    #[inline(always)]
    pub(crate) fn update<A: Arithmetic>(&mut self, a: A, measurement: &Rows, innovation: &[f32]) {
        if self.states == 2 {
            self.update_pair(a, measurement.row(1), measurement.row(2), innovation);
        } else {
            self.update_many(a, measurement, innovation);
        }
    }

    /// Information form: with G = HᵀR⁻¹H, P = P⁻(I + G P⁻)⁻¹ and K = P HᵀR⁻¹. Unlike
    /// (P⁻¹ + G)⁻¹ it never inverts P⁻, and I + G P⁻ is regular for every P⁻ ≥ 0.
    #[inline(always)]
    fn update_pair<A: Arithmetic>(&mut self, a: A, h_0: &[f32], h_1: &[f32], innovation: &[f32]) {
        let [g_00, g_01, g_11, s_0, s_1] =
            normal_equations(a, h_0, h_1, innovation).map(|sum| sum / self.r);
        let (Some(p), Some(correction)) =
            (self.p.first_chunk_mut::<4>(), self.correction.first_chunk_mut::<2>())
        else {
            unreachable!("two states have a covariance of four numbers")
        };
        let g = [g_00, g_01, g_01, g_11];
        let mut spread = product(g, *p);
        spread[0] += 1.0;
        spread[3] += 1.0;
        let posterior = symmetric(product(*p, inverse(spread)));
        let gain = product(posterior, g);
        let left = [1.0 - gain[0], -gain[1], -gain[2], 1.0 - gain[3]];
        let spread_of_estimate = product(product(left, *p), transposed(left));
        let spread_of_noise = product(gain, posterior);
        let mut joseph = [0.0; 4];
        for i in 0..4 {
            joseph[i] = spread_of_estimate[i] + spread_of_noise[i];
        }
        *p = symmetric(joseph);
        *correction =
            [posterior[0] * s_0 + posterior[1] * s_1, posterior[2] * s_0 + posterior[3] * s_1];
    }

    /// One scalar update per sensor. With k = P hᵀ/s, T = P − k (P hᵀ)ᵀ and t = T hᵀ, Joseph's form
    /// is T − (t − r k) kᵀ: the last term vanishes but for the rounding it takes back.
    #[inline(always)]
    fn update_many<A: Arithmetic>(&mut self, a: A, measurement: &Rows, innovation: &[f32]) {
        let n = self.states;
        self.correction.fill(0.0);
        for (sensor, &innovation) in innovation.iter().enumerate() {
            for (k, h) in self.h.iter_mut().enumerate() {
                *h = f64::from(measurement.row(1 + k)[sensor]);
            }
            self.ph.fill(0.0);
            for (&h, p) in self.h.iter().zip(self.p.chunks_exact(n)) {
                add_scaled(a, &mut self.ph, h, p);
            }
            let s = dot(a, &self.h, &self.ph) + self.r;
            for (k, ph) in self.k.iter_mut().zip(&self.ph) {
                *k = ph / s;
            }
            let left = f64::from(innovation) - dot(a, &self.h, &self.correction);
            add_scaled(a, &mut self.correction, left, &self.k);
            for (&k, p) in self.k.iter().zip(self.p.chunks_exact_mut(n)) {
                add_scaled(a, p, -k, &self.ph);
                let t = dot(a, p, &self.h);
                add_scaled(a, p, self.r * k - t, &self.k);
            }
        }
        self.symmetrise();
    }

    fn symmetrise(&mut self) {
        let n = self.states;
        for i in 0..n {
            for j in 0..i {
                let mean = 0.5 * (self.p[i * n + j] + self.p[j * n + i]);
                self.p[i * n + j] = mean;
                self.p[j * n + i] = mean;
            }
        }
    }

    /// Whether P can still be a covariance: finite, with positive variances of a plausible size
    /// and no correlation beyond one.
    #[inline(always)]
    pub(crate) fn is_sound(&self) -> bool {
        let n = self.states;
        let variances = (0..n).all(|i| {
            let variance = self.p[i * n + i];
            variance > 0.0 && variance <= LARGEST_VARIANCE
        });
        variances
            && (0..n).all(|i| {
                (0..i).all(|j| {
                    let (cov, product) = (self.p[i * n + j], self.p[i * n + i] * self.p[j * n + j]);
                    cov * cov <= product
                })
            })
    }
}

/// y + factor·x in place.
#[inline(always)]
fn add_scaled<A: Arithmetic>(a: A, y: &mut [f64], factor: f64, x: &[f64]) {
    let (x_quads, x_rest) = x.as_chunks::<4>();
    let (y_quads, y_rest) = y.as_chunks_mut::<4>();
    let factors = a.splat_f64(factor);
    for (y, x) in y_quads.iter_mut().zip(x_quads) {
        *y = a.store_f64(a.mul_add_f64(factors, a.load_f64(x), a.load_f64(y)));
    }
    for (y, x) in y_rest.iter_mut().zip(x_rest) {
        *y += factor * x;
    }
}

/// Four partial sums, added in a fixed order.
#[inline(always)]
fn dot<A: Arithmetic>(a: A, x: &[f64], y: &[f64]) -> f64 {
    let (x_quads, x_rest) = x.as_chunks::<4>();
    let (y_quads, y_rest) = y.as_chunks::<4>();
    let mut sums = a.splat_f64(0.0);
    for (x, y) in x_quads.iter().zip(y_quads) {
        sums = a.mul_add_f64(a.load_f64(x), a.load_f64(y), sums);
    }
    let rest: f64 = x_rest.iter().zip(y_rest).map(|(x, y)| x * y).sum();
    a.sum_f64(sums) + rest
}

/// HᵀH (three numbers) and Hᵀν (two).
#[inline(always)]
fn normal_equations<A: Arithmetic>(a: A, h_0: &[f32], h_1: &[f32], innovation: &[f32]) -> [f64; 5] {
    let zero = a.splat_f64(0.0);
    let (mut g_00, mut g_01, mut g_11, mut s_0, mut s_1) = (zero, zero, zero, zero, zero);
    let quads = h_0.as_chunks::<4>().0.iter().zip(h_1.as_chunks::<4>().0);
    for ((h_0, h_1), innovation) in quads.zip(innovation.as_chunks::<4>().0) {
        let (h_0, h_1, v) = (a.widen(h_0), a.widen(h_1), a.widen(innovation));
        g_00 = a.mul_add_f64(h_0, h_0, g_00);
        g_01 = a.mul_add_f64(h_0, h_1, g_01);
        g_11 = a.mul_add_f64(h_1, h_1, g_11);
        s_0 = a.mul_add_f64(h_0, v, s_0);
        s_1 = a.mul_add_f64(h_1, v, s_1);
    }
    [a.sum_f64(g_00), a.sum_f64(g_01), a.sum_f64(g_11), a.sum_f64(s_0), a.sum_f64(s_1)]
}

/// 2 × 2, row-major.
#[inline(always)]
fn product(a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
    [
        a[0] * b[0] + a[1] * b[2],
        a[0] * b[1] + a[1] * b[3],
        a[2] * b[0] + a[3] * b[2],
        a[2] * b[1] + a[3] * b[3],
    ]
}

#[inline(always)]
fn transposed(a: [f64; 4]) -> [f64; 4] {
    [a[0], a[2], a[1], a[3]]
}

#[inline(always)]
fn symmetric(a: [f64; 4]) -> [f64; 4] {
    let mean = 0.5 * (a[1] + a[2]);
    [a[0], mean, mean, a[3]]
}

#[inline(always)]
fn inverse(a: [f64; 4]) -> [f64; 4] {
    let scale = (a[0] * a[3] - a[1] * a[2]).recip();
    [a[3] * scale, -a[1] * scale, -a[2] * scale, a[0] * scale]
}
