//! Reproducible randomness: one independent generator per (seed, source).
//!
//! Every drawn noise in a seeded run comes from here, so that leaving one source out
//! (an attack, a client) changes no number of any other. It must not know what it is used for.

use rand::SeedableRng;
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

/// The generator of every seeded run. Its output is fixed by its published algorithm,
/// unlike `rand`'s `StdRng`, which may change between releases.
pub(crate) type Rng = Xoshiro256PlusPlus;

/// The generator of noise source `source` in a run with seed `seed`.
///
/// Two sources of one run, or one source of two runs, are independent for all practical purposes:
/// the pair is mixed by two rounds of `SplitMix64` before it becomes a state.
pub(crate) fn stream(seed: u64, source: u64) -> Rng {
    let mixed = mix(seed).wrapping_add(source.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    Rng::seed_from_u64(mix(mixed))
}

/// A seed for a part of a run that has sources of its own (a client's model, a study's episode).
pub(crate) fn child(seed: u64, part: u64) -> u64 {
    mix(mix(seed ^ 0x6A09_E667_F3BC_C908).wrapping_add(part))
}

fn mix(x: u64) -> u64 {
    use rand::Rng as _;
    SplitMix64::seed_from_u64(x).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng as _;

    #[test]
    fn the_same_pair_gives_the_same_numbers_and_any_other_pair_does_not() {
        let first = |seed, source| stream(seed, source).next_u64();
        assert_eq!(first(1, 0), first(1, 0));
        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 0), first(2, 0));
        assert_ne!(first(1, 2), first(2, 1));
    }

    #[test]
    fn neighbouring_sources_are_uncorrelated() {
        let n = 20_000;
        let draw = |source| {
            let mut rng = stream(7, source);
            (0..n)
                .map(|_| f64::from(rng.next_u32()) / f64::from(u32::MAX) - 0.5)
                .collect::<Vec<_>>()
        };
        let (a, b) = (draw(3), draw(4));
        let correlation = 12.0 * a.iter().zip(&b).map(|(x, y)| x * y).sum::<f64>() / f64::from(n);
        assert!(correlation.abs() < 0.03, "correlation {correlation}");
    }
}
