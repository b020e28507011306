//! A stream of releases under one setting, counted instead of written down one by one.
//!
//! A federation in training sends a few numbers per step, hundreds of thousands of times, all
//! through the same mechanism; the price of them together depends on their number alone. A channel
//! keeps that number and hands out the only thing a message can be made of. It lends the value out
//! of one buffer, so sending in the clear allocates nothing.

use super::PrivacyError;
use super::account::Tally;
use super::mechanism::Gaussian;
use super::randomness::{Provenance, Randomness};
use super::release::{Estimate, Numbers, Released, Spend};

/// One kind of number on its way out.
#[derive(Debug)]
pub struct Channel {
    mechanism: Option<Gaussian>,
    random: Randomness,
    releases: u64,
    sent: Released<Numbers>,
}

impl Channel {
    pub(super) fn new(mechanism: Option<Gaussian>, random: Randomness) -> Self {
        let provenance = match mechanism {
            Some(_) => random.provenance(),
            // No noise is drawn, so its source cannot be wrong.
            None => Provenance::OperatingSystem,
        };
        let sent = Released::new(Numbers::new(Vec::new()), provenance);
        Self { mechanism, random, releases: 0, sent }
    }

    /// Releases `estimate`: clipped and noised, or as it is where there is no mechanism.
    pub fn send(&mut self, estimate: &Estimate<'_>) -> Result<&Released<Numbers>, PrivacyError> {
        let Self { mechanism, random, releases, sent } = self;
        match mechanism {
            Some(gaussian) => {
                *sent =
                    Released::new(gaussian.noised(estimate, random)?.value, random.provenance());
            }
            None => sent.refill(estimate.values())?,
        }
        *releases += 1;
        Ok(sent)
    }

    /// What one release costs.
    #[must_use]
    pub fn spend(&self) -> Spend {
        self.mechanism.as_ref().map_or(Spend::Clear, Gaussian::spend)
    }

    /// What was released so far, for composition.
    #[must_use]
    pub fn tally(&self) -> Tally {
        Tally::of(self.spend(), self.releases)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::mechanism::Clip;

    #[test]
    fn every_release_is_counted_and_one_that_fails_is_not() {
        let gaussian = Gaussian::with_sigma(Clip::Box { bound: 5.0, dimension: 2 }, 1.0).unwrap();
        for mechanism in [None, Some(gaussian)] {
            let mut channel = Channel::new(mechanism, Randomness::seeded(1, 0));
            for k in 1..=3 {
                assert_eq!(
                    channel
                        .send(&Estimate::of_state(&[1.0, 2.0]))
                        .unwrap()
                        .value()
                        .as_slice()
                        .len(),
                    2
                );
                assert_eq!(channel.tally().releases(), k);
            }
            assert!(channel.send(&Estimate::of_state(&[1.0, f64::NAN])).is_err());
            assert_eq!(channel.tally().releases(), 3);
        }
    }

    #[test]
    fn the_clear_is_exact_and_priced_as_such() {
        let mut channel = Channel::new(None, Randomness::seeded(1, 0));
        let sent = channel.send(&Estimate::of_gradient(&[0.1, -7e5])).unwrap();
        assert_eq!(sent.value().as_slice(), [0.1, -7e5]);
        assert_eq!(channel.spend(), Spend::Clear);
    }
}
