//! One LSTM cell of a window, and the way back through it: for everything that is trained on many
//! windows side by side, one window a lane, in `f32` (proprietary filters) or `f64` (the transitions of
//! the synthetic plants).
//!
//! The cell of the streaming kernels ([`kernel::cell`](super::kernel::cell)) has lanes of hidden units
//! and fused products. The same equations round differently there, and delivered models and synthetic
//! data must keep every bit: hence two.

use std::ops::{Add, Mul, Sub};

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

/// Activated gates and tanh c' of one step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell<T> {
    pub(crate) i: T,
    pub(crate) f: T,
    pub(crate) g: T,
    pub(crate) o: T,
    pub(crate) tanh_c: T,
}

impl<T: Real> Cell<T> {
    /// The step from activated gates and the memory before it, with c' and h'.
    #[inline(always)]
    pub(crate) fn forward([i, f, g, o]: [T; 4], before: T, tanh: impl Fn(T) -> T) -> (Self, T, T) {
        let c = f * before + i * g;
        let tanh_c = tanh(c);
        (Self { i, f, g, o, tanh_c }, c, o * tanh_c)
    }

    /// ∂/∂z of the gates i, f, g, o before activation, and ∂/∂c, from ∂/∂h' and ∂/∂c'.
    #[inline(always)]
    pub(crate) fn back(self, before: T, dh: T, dc: T) -> ([T; 4], T) {
        let Self { i, f, g, o, tanh_c } = self;
        let dc = dc + dh * o * (T::ONE - tanh_c * tanh_c);
        let dz = [
            dc * g * i * (T::ONE - i),
            dc * before * f * (T::ONE - f),
            dc * i * (T::ONE - g * g),
            dh * tanh_c * o * (T::ONE - o),
        ];
        (dz, dc * f)
    }
}
