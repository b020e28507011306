//! Adam (Kingma and Ba, 2015), the optimiser of all hand-written training.
//!
//! ```text
//! m ← β₁ m + (1 − β₁) g     v ← β₂ v + (1 − β₂) g²     w ← w − η m̂ / (√v̂ + ε)
//! ```
//!
//! The three trainers take the same step and round it in different orders:
//!
//! | rounding | who uses it | why |
//! |---|---|---|
//! | [`Scalar`] | proprietary filters, `f32` | the plain form |
//! | [`OnLanes`] | φ_m and f_s step by step, `f32` | fused products on lanes: the gradient of a weight is never stored |
//! | [`Difference`] | transitions of synthetic plants, `f64` | the form that their data were made with |
//!
//! One order for all would change the last bits of trained weights. Facts print losses with all their
//! digits, and synthetic measurements follow from the transitions, so facts would change.

use super::kernel::lanes::Lanes;

const BETA_1: f64 = 0.9;
const BETA_2: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// The arithmetic of a step at one round.
pub(crate) trait AdamRounding<V>: Copy {
    /// β₁ m + (1 − β₁) g.
    fn mean(self, m: V, g: V) -> V;
    /// β₂ v + (1 − β₂) g².
    fn square(self, v: V, g: V) -> V;
    /// w − η m̂ / (√v̂ + ε).
    fn descend(self, w: V, m: V, v: V) -> V;
}

/// Moves a weight and its moments against the gradient `g`.
#[inline(always)]
pub(crate) fn step<V: Copy>(r: impl AdamRounding<V>, w: &mut V, (m, v): (&mut V, &mut V), g: V) {
    *m = r.mean(*m, g);
    *v = r.square(*v, g);
    *w = r.descend(*w, *m, *v);
}

/// 1 − β^t. Late in training β^t is less than a number beside 1 can hold: it is not computed then.
fn remaining(beta: f64, round: i32) -> f64 {
    let is_lost = f64::from(round) * (1.0 - beta) > 40.0;
    if is_lost { 1.0 } else { 1.0 - beta.powi(round) }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Scalar {
    rate: f32,
    correction: f32,
}

impl Scalar {
    pub(crate) fn at(rate: f64, round: i32) -> Self {
        Self {
            rate: (rate / (1.0 - BETA_1.powi(round))) as f32,
            correction: (1.0 / (1.0 - BETA_2.powi(round))) as f32,
        }
    }
}

impl AdamRounding<f32> for Scalar {
    #[inline(always)]
    fn mean(self, m: f32, g: f32) -> f32 {
        const BETA: f32 = BETA_1 as f32;
        BETA * m + (1.0 - BETA) * g
    }

    #[inline(always)]
    fn square(self, v: f32, g: f32) -> f32 {
        const BETA: f32 = BETA_2 as f32;
        BETA * v + (1.0 - BETA) * g * g
    }

    #[inline(always)]
    fn descend(self, w: f32, m: f32, v: f32) -> f32 {
        w - self.rate * m / ((v * self.correction).sqrt() + EPSILON as f32)
    }
}

/// The step of a round for all lanes: step size η/(1 − β₁^t) and 1/√(1 − β₂^t).
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaneStep {
    rate: f32,
    root: f32,
}

impl LaneStep {
    pub(crate) fn at(rate: f64, round: i32) -> Self {
        Self {
            rate: (rate / remaining(BETA_1, round)) as f32,
            root: (1.0 / remaining(BETA_2, round).sqrt()) as f32,
        }
    }

    /// The arithmetic on lanes, with `times` the step size.
    #[inline(always)]
    pub(crate) fn on<A: Lanes<N>, const N: usize>(self, a: A, times: f32) -> OnLanes<A, N> {
        OnLanes {
            a,
            keep: [a.splat(BETA_1 as f32), a.splat(BETA_2 as f32)],
            new: [a.splat((1.0 - BETA_1) as f32), a.splat((1.0 - BETA_2) as f32)],
            rate: a.splat(times * self.rate),
            root: a.splat(self.root),
            epsilon: a.splat(EPSILON as f32),
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct OnLanes<A: Lanes<N>, const N: usize> {
    a: A,
    keep: [A::V; 2],
    new: [A::V; 2],
    rate: A::V,
    root: A::V,
    epsilon: A::V,
}

impl<A: Lanes<N>, const N: usize> AdamRounding<A::V> for OnLanes<A, N> {
    #[inline(always)]
    fn mean(self, m: A::V, g: A::V) -> A::V {
        self.a.mul_add(self.keep[0], m, self.a.mul(self.new[0], g))
    }

    #[inline(always)]
    fn square(self, v: A::V, g: A::V) -> A::V {
        self.a.mul_add(self.keep[1], v, self.a.mul(self.new[1], self.a.mul(g, g)))
    }

    #[inline(always)]
    fn descend(self, w: A::V, m: A::V, v: A::V) -> A::V {
        let scale = self.a.mul_add(self.a.sqrt(v), self.root, self.epsilon);
        self.a.sub(w, self.a.div(self.a.mul(self.rate, m), scale))
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Difference {
    rate: f64,
    unbias: [f64; 2],
}

impl Difference {
    pub(crate) fn at(rate: f64, round: i32) -> Self {
        let unbias = [BETA_1, BETA_2].map(|beta| 1.0 / (1.0 - beta.powi(round)));
        Self { rate, unbias }
    }
}

impl AdamRounding<f64> for Difference {
    #[inline(always)]
    fn mean(self, m: f64, g: f64) -> f64 {
        m + (1.0 - BETA_1) * (g - m)
    }

    #[inline(always)]
    fn square(self, v: f64, g: f64) -> f64 {
        v + (1.0 - BETA_2) * (g * g - v)
    }

    #[inline(always)]
    fn descend(self, w: f64, m: f64, v: f64) -> f64 {
        w - self.rate * m * self.unbias[0] / ((v * self.unbias[1]).sqrt() + EPSILON)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::kernel::lanes::Portable;

    #[test]
    fn the_three_roundings_take_the_same_steps() {
        let (mut plain, mut exact, mut lanes) =
            ([0.5f32, 0.0, 0.0], [0.5f64, 0.0, 0.0], [[0.5f32; 4], [0.0; 4], [0.0; 4]]);
        for round in 1..=3000 {
            let g = (f64::from(round) * 0.7).sin() + 0.2;
            let [w, m, v] = &mut plain;
            step(Scalar::at(1e-3, round), w, (m, v), g as f32);
            let [w, m, v] = &mut exact;
            step(Difference::at(1e-3, round), w, (m, v), g);
            let [w, m, v] = &mut lanes;
            step(LaneStep::at(1e-3, round).on::<_, 4>(Portable, 1.0), w, (m, v), [g as f32; 4]);
        }
        assert!(exact[0] < 0.0, "the weight has moved: {}", exact[0]);
        for near in [plain[0], lanes[0][0], lanes[0][3]] {
            assert!((f64::from(near) - exact[0]).abs() < 1e-4, "{near} and {}", exact[0]);
        }
    }
}
