//! A stream of releases under one setting, counted instead of written down one by one.
//!
//! A federation in training sends a few numbers per step, hundreds of thousands of times, all
//! through the same mechanism; the price of them together depends on their number alone. A channel
//! keeps that number and hands out the only thing a message can be made of. It lends the value out
//! of one buffer, so sending in the clear allocates nothing.

use super::PrivacyError;
#[cfg(test)]
use super::account::Tally;
use super::ledger::Counted;
use super::mechanism::Gaussian;
use super::randomness::{Provenance, Randomness};
use super::release::{Estimate, Numbers, Released, Spend, What};

/// What is usual for each of some numbers: clipping bounds are meant in these units.
///
/// They are fixed before the first release and public, like the range of a
/// sensor: what one sample moves of them is not counted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Units {
    mean: Vec<f64>,
    deviation: Vec<f64>,
}

impl Units {
    /// A number that hardly moves is in units of this much.
    const LEAST: f64 = 1e-6;

    /// Mean and standard deviation of each of `width` numbers over rows of them.
    pub(crate) fn of(width: usize, rows: &[f32]) -> Self {
        let n = (rows.len() / width.max(1)).max(1) as f64;
        let column = |k: usize| rows.iter().skip(k).step_by(width.max(1)).map(|v| f64::from(*v));
        let mean: Vec<f64> = (0..width).map(|k| column(k).sum::<f64>() / n).collect();
        let deviation = (0..width)
            .map(|k| {
                let square: f64 = column(k).map(|v| (v - mean[k]).powi(2)).sum();
                (square / n).sqrt().max(Self::LEAST)
            })
            .collect();
        Self { mean, deviation }
    }

    /// Writes `values` in these units.
    pub(crate) fn standardise(&self, values: &[f64], out: &mut Vec<f64>) {
        out.clear();
        let usual = self.mean.iter().zip(&self.deviation);
        out.extend(values.iter().zip(usual).map(|(v, (mean, deviation))| (v - mean) / deviation));
    }

    fn restore(&self, values: &mut [f64]) {
        let usual = self.mean.iter().zip(&self.deviation);
        values.iter_mut().zip(usual).for_each(|(v, (mean, deviation))| *v = *v * deviation + mean);
    }
}

/// One kind of number on its way out.
#[derive(Debug)]
pub(crate) struct Channel {
    mechanism: Option<Gaussian>,
    units: Option<Units>,
    standardised: Vec<f64>,
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
        Self { mechanism, units: None, standardised: Vec::new(), random, releases: 0, sent }
    }

    /// The same channel with its clipping bound meant in `units`.
    pub(crate) fn in_units(self, units: Units) -> Self {
        Self { units: Some(units), ..self }
    }

    /// Releases `estimate`: clipped and noised, or unprotected where there is no mechanism.
    pub(crate) fn send(
        &mut self,
        estimate: &Estimate<'_>,
    ) -> Result<&Released<Numbers>, PrivacyError> {
        let Self { mechanism, units, standardised, random, releases, sent } = self;
        match (mechanism, units) {
            (Some(gaussian), None) => {
                *sent =
                    Released::new(gaussian.noised(estimate, random)?.value, random.provenance());
            }
            (Some(gaussian), Some(units)) => {
                units.standardise(estimate.values(), standardised);
                let noised = gaussian.noised(&Estimate::of_state(standardised), random)?.value;
                // Noise is on already: going back to the receiver's units is post-processing.
                *sent = Released::new(noised.restored(|v| units.restore(v)), random.provenance());
            }
            (None, _) => sent.refill(estimate.values())?,
        }
        *releases += 1;
        Ok(sent)
    }

    pub(crate) fn spend(&self) -> Spend {
        self.mechanism.as_ref().map_or(Spend::Clear, Gaussian::spend)
    }

    /// What was released so far, as a ledger lists it.
    pub(crate) fn counted(&self, what: What) -> Counted {
        Counted { what, spend: self.spend(), count: self.releases }
    }

    /// What was released so far, for composition.
    #[cfg(test)]
    pub(crate) fn tally(&self) -> Tally {
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
    fn clipping_is_in_units_of_what_is_usual() {
        let rows: Vec<f32> =
            (0..200).flat_map(|i| [1000.0 + 50.0 * (-1.0_f32).powi(i), 0.25]).collect();
        let units = Units::of(2, &rows);
        let clip = Clip::Box { bound: 5.0, dimension: 2 };
        let gaussian = Gaussian::with_sigma(clip, 1e-3).unwrap();
        let mut channel = Channel::new(Some(gaussian), Randomness::seeded(1, 0)).in_units(units);
        let near = |x: f64, y: f64| (x - y).abs() < 0.5;
        let sent = channel.send(&Estimate::of_state(&[1100.0, 0.25])).unwrap().value().as_slice();
        assert!(near(sent[0], 1100.0) && near(sent[1], 0.25), "{sent:?}");
        // A thousand standard deviations off is sent as five.
        let sent = channel.send(&Estimate::of_state(&[51_000.0, 0.25])).unwrap().value().as_slice();
        assert!(near(sent[0], 1250.0), "{sent:?}");
        assert_eq!(channel.tally().releases(), 2);
    }

    #[test]
    fn the_clear_is_exact_and_priced_as_such() {
        let mut channel = Channel::new(None, Randomness::seeded(1, 0));
        let sent = channel.send(&Estimate::of_gradient(&[0.1, -7e5])).unwrap();
        assert_eq!(sent.value().as_slice(), [0.1, -7e5]);
        assert_eq!(channel.spend(), Spend::Clear);
    }
}
