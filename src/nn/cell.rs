//! The LSTM cell of all hand-written networks: one step, and the way back through it.
//!
//! | arithmetic | who uses it |
//! |---|---|
//! | [`Fused`]: lanes of hidden units, products fused into sums | streaming kernels, online learning |
//! | [`Plain`]: one number, every product rounded | training on windows side by side (`f32`), the transitions of synthetic plants (`f64`) |
//!
//! Fused products make the kernels fast. The equations are the same, but not the last bits: delivered
//! models, synthetic data and facts depend on the rounding that each of them has.

use std::ops::{Add, Mul, Sub};

use super::kernel::lanes::Lanes;

/// How the operations of a cell round.
pub(crate) trait Rounding<V>: Copy {
    fn add(self, x: V, y: V) -> V;
    fn mul(self, x: V, y: V) -> V;
    /// x·y + z.
    fn mul_add(self, x: V, y: V, z: V) -> V;
    /// 1 − x.
    fn one_minus(self, x: V) -> V;
    /// x·s·(1 − s): back through a sigmoid whose value is s.
    fn through_sigmoid(self, x: V, s: V) -> V;
}

/// `f32` or `f64`.
pub(crate) trait Real:
    Copy + Add<Output = Self> + Mul<Output = Self> + Sub<Output = Self>
{
    const ONE: Self;
}

impl Real for f32 {
    const ONE: Self = 1.0;
}

impl Real for f64 {
    const ONE: Self = 1.0;
}

/// One number, every product rounded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plain;

impl<T: Real> Rounding<T> for Plain {
    #[inline(always)]
    fn add(self, x: T, y: T) -> T {
        x + y
    }

    #[inline(always)]
    fn mul(self, x: T, y: T) -> T {
        x * y
    }

    #[inline(always)]
    fn mul_add(self, x: T, y: T, z: T) -> T {
        x * y + z
    }

    #[inline(always)]
    fn one_minus(self, x: T) -> T {
        T::ONE - x
    }

    #[inline(always)]
    fn through_sigmoid(self, x: T, s: T) -> T {
        x * s * (T::ONE - s)
    }
}

/// `N` lanes of an instruction set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fused<A, const N: usize>(pub(crate) A);

impl<A: Lanes<N>, const N: usize> Rounding<A::V> for Fused<A, N> {
    #[inline(always)]
    fn add(self, x: A::V, y: A::V) -> A::V {
        self.0.add(x, y)
    }

    #[inline(always)]
    fn mul(self, x: A::V, y: A::V) -> A::V {
        self.0.mul(x, y)
    }

    #[inline(always)]
    fn mul_add(self, x: A::V, y: A::V, z: A::V) -> A::V {
        self.0.mul_add(x, y, z)
    }

    #[inline(always)]
    fn one_minus(self, x: A::V) -> A::V {
        self.0.sub(self.0.splat(1.0), x)
    }

    #[inline(always)]
    fn through_sigmoid(self, x: A::V, s: A::V) -> A::V {
        self.mul(x, self.mul(s, self.one_minus(s)))
    }
}

/// Activated gates and tanh c' of one step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell<V> {
    pub(crate) i: V,
    pub(crate) f: V,
    pub(crate) g: V,
    pub(crate) o: V,
    pub(crate) tanh_c: V,
}

impl<V: Copy> Cell<V> {
    /// c' from activated gates and the memory before the step.
    #[inline(always)]
    pub(crate) fn memory(r: impl Rounding<V>, [i, f, g, _]: [V; 4], before: V) -> V {
        r.mul_add(f, before, r.mul(i, g))
    }

    /// The step from activated gates and tanh c', with h'. The caller computes tanh: a closure would not
    /// be compiled for its instruction set.
    #[inline(always)]
    pub(crate) fn forward(r: impl Rounding<V>, [i, f, g, o]: [V; 4], tanh_c: V) -> (Self, V) {
        (Self { i, f, g, o, tanh_c }, r.mul(o, tanh_c))
    }

    /// ∂/∂z of the gates i, f, g, o before activation, and ∂/∂c, from ∂/∂h' and ∂/∂c'.
    #[inline(always)]
    pub(crate) fn back(self, r: impl Rounding<V>, before: V, dh: V, dc: V) -> ([V; 4], V) {
        let dc = r.add(dc, self.memory_slope(r, dh));
        (self.gate_slopes(r, before, dh, dc), r.mul(dc, self.f))
    }

    /// ∂/∂z of each gate from ∂/∂h', with the memory before the step taken as given.
    #[inline(always)]
    pub(crate) fn back_one_step(self, r: impl Rounding<V>, before: V, dh: V) -> [V; 4] {
        self.gate_slopes(r, before, dh, self.memory_slope(r, dh))
    }

    /// ∂/∂c' by way of h'.
    #[inline(always)]
    fn memory_slope(self, r: impl Rounding<V>, dh: V) -> V {
        r.mul(r.mul(dh, self.o), r.one_minus(r.mul(self.tanh_c, self.tanh_c)))
    }

    #[inline(always)]
    fn gate_slopes(self, r: impl Rounding<V>, before: V, dh: V, dc: V) -> [V; 4] {
        let Self { i, f, g, o, tanh_c } = self;
        [
            r.through_sigmoid(r.mul(dc, g), i),
            r.through_sigmoid(r.mul(dc, before), f),
            r.mul(r.mul(dc, i), r.one_minus(r.mul(g, g))),
            r.through_sigmoid(r.mul(dh, tanh_c), o),
        ]
    }
}
