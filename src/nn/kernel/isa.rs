//! The instruction set of this machine, chosen once at run time.
//!
//! The same generic kernel is compiled for plain arrays, and on `x86_64` for SSE2, the baseline, and
//! for AVX2 with fused multiply-add. `pulp` proves at run time that the machine has them, so no
//! unsafe code is needed here. Results are a function of the machine's instruction set alone: a
//! fused product rounds once where the others round twice, but nothing differs from run to run.

use super::lanes::{Arithmetic, Portable};
#[cfg(target_arch = "x86_64")]
use super::lanes::{Avx2, Sse2};

/// A piece of arithmetic that can be compiled for any instruction set. `run` must be
/// `#[inline(always)]`, and so must be whatever it calls in its inner loops.
pub(crate) trait Kernel {
    type Output;

    fn run<A: Arithmetic>(self, a: A) -> Self::Output;
}

/// An instruction set this machine has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Isa(Level);

#[derive(Debug, Clone, Copy)]
enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Sse2(pulp::x86::V1),
    #[cfg(target_arch = "x86_64")]
    Avx2(pulp::x86::V3),
}

impl Isa {
    /// Plain arrays, compiled for the baseline of the target; every machine has it.
    pub(crate) const PORTABLE: Self = Self(Level::Portable);

    /// The best instruction set of this machine that the kernels are compiled for.
    pub(crate) fn detect() -> Self {
        Self::available().last().unwrap_or(Self::PORTABLE)
    }

    /// Every instruction set of this machine that the kernels are compiled for, the best last.
    pub(crate) fn available() -> impl Iterator<Item = Self> {
        #[cfg(target_arch = "x86_64")]
        let more =
            [pulp::x86::V1::try_new().map(Level::Sse2), pulp::x86::V3::try_new().map(Level::Avx2)];
        #[cfg(not(target_arch = "x86_64"))]
        let more: [Option<Level>; 0] = [];
        std::iter::once(Self::PORTABLE).chain(more.into_iter().flatten().map(Self))
    }

    #[cfg(test)]
    pub(crate) fn name(self) -> &'static str {
        match self.0 {
            Level::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Level::Sse2(_) => "sse2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2(_) => "avx2",
        }
    }

    /// Runs plain arithmetic, compiled for this instruction set. `f` must be `#[inline(always)]`, and so
    /// must be what it calls in its inner loops. Products are not fused: every set gives the same bits.
    #[inline]
    pub(crate) fn vectorise<R>(self, f: impl FnOnce() -> R) -> R {
        match self.0 {
            Level::Portable => f(),
            #[cfg(target_arch = "x86_64")]
            Level::Sse2(_) => f(),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2(v3) => v3.vectorize(f),
        }
    }

    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Level::Portable => kernel.run(Portable),
            #[cfg(target_arch = "x86_64")]
            Level::Sse2(v1) => kernel.run(Sse2(v1)),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2(v3) => v3.vectorize(
                #[inline(always)]
                || kernel.run(Avx2(v3)),
            ),
        }
    }
}

impl Default for Isa {
    fn default() -> Self {
        Self::detect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_instruction_set_is_one_of_those_available() {
        let names: Vec<_> = Isa::available().map(Isa::name).collect();
        assert_eq!(names[0], "portable");
        assert_eq!(names.last(), Some(&Isa::detect().name()));
        #[cfg(target_arch = "x86_64")]
        assert_eq!(names[1], "sse2", "every x86-64 machine has SSE2");
    }
}
