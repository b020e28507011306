//! One step of LSTM cells on lanes, and the way back through it. Streaming inference takes its Jacobian
//! from here, online learning its gradient.

use super::activation::{sigmoid, tanh};
use super::lanes::Lanes;

/// What the way back needs of a step: the activated gates and tanh c'.
pub(crate) struct Cell<V> {
    pub(crate) i: V,
    pub(crate) f: V,
    pub(crate) g: V,
    pub(crate) o: V,
    pub(crate) tanh_c: V,
}

impl<V: Copy> Cell<V> {
    /// c' and h' from the gates before activation, in the order i, f, g, o, and from c.
    #[inline(always)]
    pub(crate) fn forward<A: Lanes<N, V = V>, const N: usize>(
        a: A,
        z: [V; 4],
        before: V,
    ) -> (Self, V, V) {
        let (i, f, g, o) = (sigmoid(a, z[0]), sigmoid(a, z[1]), tanh(a, z[2]), sigmoid(a, z[3]));
        let c = a.mul_add(f, before, a.mul(i, g));
        let tanh_c = tanh(a, c);
        (Self { i, f, g, o, tanh_c }, c, a.mul(o, tanh_c))
    }

    /// ∂/∂z of each gate from ∂/∂h', with the memory before the step taken as given.
    #[inline(always)]
    pub(crate) fn back<A: Lanes<N, V = V>, const N: usize>(
        &self,
        a: A,
        dh: V,
        before: V,
    ) -> [V; 4] {
        let one_minus = |x: V| a.sub(a.splat(1.0), x);
        let of_sigmoid = |s: V| a.mul(s, one_minus(s));
        let of_tanh = |t: V| one_minus(a.mul(t, t));
        let dc = a.mul(a.mul(dh, self.o), of_tanh(self.tanh_c));
        [
            a.mul(a.mul(dc, self.g), of_sigmoid(self.i)),
            a.mul(a.mul(dc, before), of_sigmoid(self.f)),
            a.mul(a.mul(dc, self.i), of_tanh(self.g)),
            a.mul(a.mul(dh, self.tanh_c), of_sigmoid(self.o)),
        ]
    }
}
