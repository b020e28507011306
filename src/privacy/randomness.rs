//! Where noise comes from, and whether the same noise can be drawn again.
//!
//! Only the operating system's generator hides anything: a reader who knows the seed of a seeded run
//! can subtract its noise. The source therefore carries that fact with it, and every value
//! drawn from it, every ledger line and every export repeats it.

use rand::rngs::SysRng;
use rand::{Rng as _, TryRng as _};
use serde::{Deserialize, Serialize};

use super::PrivacyError;
use crate::base::rng;

/// Words fetched from the operating system at a time: one system call serves many draws.
const BUFFERED: usize = 64;

/// What the source of some noise means for privacy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Provenance {
    /// Drawn from the operating system: it cannot be repeated.
    #[serde(rename = "operating system")]
    OperatingSystem,
    /// Drawn from a seed: repeatable, hence no protection at all.
    #[serde(rename = "seeded: not private")]
    Seeded,
}

impl Provenance {
    /// Whether the noise protects anything.
    pub(crate) fn is_private(self) -> bool {
        self == Self::OperatingSystem
    }

    /// The words for a screen or an export.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::OperatingSystem => "operating system",
            Self::Seeded => "seeded: not private",
        }
    }
}

/// A source of random words.
#[derive(Debug)]
pub(crate) struct Randomness(Source);

enum Source {
    OperatingSystem { words: Box<[u64; BUFFERED]>, used: usize },
    Seeded(rng::Rng),
}

/// Words not yet used are as secret as the noise that will be made of them.
impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::OperatingSystem { .. } => "OperatingSystem",
            Self::Seeded(_) => "Seeded",
        })
    }
}

impl Randomness {
    /// Noise for a live run.
    pub(crate) fn operating_system() -> Self {
        Self(Source::OperatingSystem { words: Box::new([0; BUFFERED]), used: BUFFERED })
    }

    /// Noise that a reader of the run can draw again: for studies and tests, never private.
    pub(crate) fn seeded(seed: u64, source: u64) -> Self {
        Self(Source::Seeded(rng::stream(seed, source)))
    }

    /// The operating system's noise, or that of `seed` and `source`.
    pub(crate) fn of(provenance: Provenance, seed: u64, source: u64) -> Self {
        match provenance {
            Provenance::OperatingSystem => Self::operating_system(),
            Provenance::Seeded => Self::seeded(seed, source),
        }
    }

    /// What this source means for privacy.
    pub(crate) fn provenance(&self) -> Provenance {
        match self.0 {
            Source::OperatingSystem { .. } => Provenance::OperatingSystem,
            Source::Seeded(_) => Provenance::Seeded,
        }
    }

    /// Sixty-four fair, independent bits. When the operating system has none to give, nothing
    /// may be released, so the failure is passed on instead of being papered over.
    pub(crate) fn word(&mut self) -> Result<u64, PrivacyError> {
        match &mut self.0 {
            Source::Seeded(rng) => Ok(rng.next_u64()),
            Source::OperatingSystem { words, used } => {
                if *used == BUFFERED {
                    let mut bytes = [0_u8; 8 * BUFFERED];
                    SysRng.try_fill_bytes(&mut bytes).map_err(PrivacyError::NoRandomness)?;
                    for (word, chunk) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
                        *word = u64::from_le_bytes(*chunk);
                    }
                    *used = 0;
                }
                // A used word is wiped: memory read later must not give past noise away.
                let word = std::mem::take(&mut words[*used]);
                *used += 1;
                Ok(word)
            }
        }
    }

    /// A uniform integer below `bound` (> 0), exactly: words in the incomplete last multiple of
    /// `bound` are drawn again.
    pub(crate) fn below(&mut self, bound: u64) -> Result<u64, PrivacyError> {
        debug_assert!(bound > 0);
        let uneven = (u64::MAX % bound + 1) % bound;
        loop {
            let word = self.word()?;
            if word <= u64::MAX - uneven {
                return Ok(word % bound);
            }
        }
    }

    /// A fair coin.
    pub(crate) fn coin(&mut self) -> Result<bool, PrivacyError> {
        Ok(self.word()? >> 63 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seeded_source_says_it_is_not_private_and_repeats_itself() {
        let (mut a, mut b) = (Randomness::seeded(7, 1), Randomness::seeded(7, 1));
        assert!(!a.provenance().is_private());
        assert_eq!(a.provenance().label(), "seeded: not private");
        assert_eq!(
            serde_json::to_string(&a.provenance()).unwrap(),
            format!("{:?}", a.provenance().label())
        );
        for _ in 0..100 {
            assert_eq!(a.word().unwrap(), b.word().unwrap());
        }
    }

    #[test]
    fn the_operating_system_never_says_the_same_twice() {
        let mut source = Randomness::operating_system();
        assert!(source.provenance().is_private());
        let words: std::collections::HashSet<_> =
            (0..10 * BUFFERED).map(|_| source.word().unwrap()).collect();
        assert_eq!(words.len(), 10 * BUFFERED);
    }

    #[test]
    fn bounded_integers_are_uniform() {
        let mut source = Randomness::seeded(3, 0);
        let mut counts = [0_u32; 6];
        for _ in 0..60_000 {
            counts[source.below(6).unwrap() as usize] += 1;
        }
        let chi2: f64 = counts.iter().map(|&n| (f64::from(n) - 1e4).powi(2) / 1e4).sum();
        assert!(chi2 < 30.0, "chi-square {chi2} with 5 degrees of freedom");
        assert!((0..1000).all(|_| source.below(1).unwrap() == 0));
    }
}
