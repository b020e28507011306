//! The instruction set of this machine, chosen once at run time.
//!
//! The same generic kernel is compiled twice: for the baseline of the target, and on `x86_64` for
//! AVX2 with fused multiply-add. `pulp` proves at run time that the machine has the latter, so no
//! unsafe code is needed here. Results are a function of the machine's instruction set alone: the
//! two differ by rounding (a fused product rounds once), never from run to run.

use super::lanes::{Arithmetic, Portable};

/// A piece of arithmetic that can be compiled for any instruction set. `run` must be
/// `#[inline(always)]`, and so must be whatever it calls in its inner loops.
pub(crate) trait Kernel {
    /// What the arithmetic yields.
    type Output;

    /// Runs it.
    fn run<A: Arithmetic>(self, a: A) -> Self::Output;
}

/// An instruction set this machine has.
#[derive(Debug, Clone, Copy)]
pub struct Isa(Level);

#[derive(Debug, Clone, Copy)]
enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(pulp::x86::V3),
}

impl Isa {
    /// The baseline of the target; every machine has it.
    pub const PORTABLE: Self = Self(Level::Portable);

    /// The widest instruction set of this machine that the kernels are compiled for.
    #[must_use]
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(v3) = pulp::x86::V3::try_new() {
            return Self(Level::Avx2(v3));
        }
        Self::PORTABLE
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Level::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2(_) => "avx2",
        }
    }

    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Level::Portable => kernel.run(Portable),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2(v3) => v3.vectorize(
                #[inline(always)]
                || kernel.run(super::lanes::Avx2(v3)),
            ),
        }
    }
}

impl Default for Isa {
    fn default() -> Self {
        Self::detect()
    }
}
