//! The vertical scale of one sensor: learned from its first hour, then still.
//!
//! A trend can be read only while its scale stands. In the first hour of data the scale grows as
//! values ask for it, with room to spare; afterwards a value beyond it is drawn at the edge with an
//! arrow, and the scale grows only when the sensor stays out there: a lasting change gets room, a
//! spike does not flatten all that came before.

use super::number;

/// Data seconds in which the scale grows freely, and the fewest samples that are enough for it.
const SETTLING_S: f64 = 3600.0;
const SETTLING_SAMPLES: u32 = 60;
/// Data seconds beyond the scale after which a change counts as lasting, and the fewest samples.
const LASTING_S: f64 = 1800.0;
const LASTING_SAMPLES: u32 = 12;
/// Room on either side, as a part of what was seen.
const ROOM: f64 = 0.25;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Place {
    Below,
    /// On it: 0 at the lower end, 1 at the upper.
    On(f64),
    Above,
}

#[derive(Debug, Clone)]
pub(crate) struct Scale {
    ends: Option<(f64, f64)>,
    seen: Spread,
    beyond: Spread,
    settling: u32,
    lasting: u32,
}

#[derive(Debug, Clone, Copy)]
struct Spread {
    low: f64,
    high: f64,
    samples: u32,
}

impl Spread {
    const NONE: Spread = Spread { low: f64::INFINITY, high: f64::NEG_INFINITY, samples: 0 };

    fn take(&mut self, value: f64) {
        self.low = self.low.min(value);
        self.high = self.high.max(value);
        self.samples = self.samples.saturating_add(1);
    }
}

impl Scale {
    /// The scale of a sensor that is sampled every `period_s` seconds.
    pub(crate) fn new(period_s: f64) -> Self {
        let samples = |seconds: f64, least: u32| ((seconds / period_s) as u32).max(least);
        Self {
            ends: None,
            seen: Spread::NONE,
            beyond: Spread::NONE,
            settling: samples(SETTLING_S, SETTLING_SAMPLES),
            lasting: samples(LASTING_S, LASTING_SAMPLES),
        }
    }

    /// Takes a sample; a missing one changes nothing.
    pub(crate) fn push(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        if !self.is_settled() {
            self.seen.take(value);
            if !self.holds(value) || self.is_settled() {
                self.grow();
            }
        } else if self.holds(value) {
            self.beyond = Spread::NONE;
        } else {
            self.beyond.take(value);
            if self.beyond.samples >= self.lasting {
                self.seen.take(self.beyond.low);
                self.seen.take(self.beyond.high);
                self.beyond = Spread::NONE;
                self.grow();
            }
        }
    }

    /// Whether it stands still but for lasting changes.
    pub(crate) fn is_settled(&self) -> bool {
        self.seen.samples >= self.settling
    }

    /// Lower and upper end, once there was a value.
    pub(crate) fn ends(&self) -> Option<(f64, f64)> {
        self.ends
    }

    pub(crate) fn place(&self, value: f64) -> Place {
        match self.ends {
            Some((low, _)) if value < low => Place::Below,
            Some((_, high)) if value > high => Place::Above,
            Some((low, high)) => Place::On(((value - low) / (high - low)).clamp(0.0, 1.0)),
            None => Place::On(0.5),
        }
    }

    pub(crate) fn decimals(&self) -> usize {
        number::decimals(self.ends.map_or(0.0, |(low, high)| high - low))
    }

    fn holds(&self, value: f64) -> bool {
        self.ends.is_some_and(|(low, high)| (low..=high).contains(&value))
    }

    /// Takes in all that counts as seen, with room around it, to round ends, and keeps what it held.
    fn grow(&mut self) {
        let Spread { low, high, .. } = self.seen;
        let span = match high - low {
            span if span > 0.0 && span.is_finite() => span,
            _ => (low.abs() * 0.1).max(f64::MIN_POSITIVE.sqrt()),
        };
        let step = round_step(span);
        let low = ((low - span * ROOM) / step).floor() * step;
        let high = ((high + span * ROOM) / step).ceil() * step;
        let (low, high) = self.ends.map_or((low, high), |(l, h)| (low.min(l), high.max(h)));
        if low.is_finite() && high.is_finite() && low < high {
            self.ends = Some((low, high));
        }
    }
}

/// A tenth of `span` or a little more, as 1, 2 or 5 times a power of ten.
fn round_step(span: f64) -> f64 {
    let raw = span / 10.0;
    let power = 10_f64.powf(raw.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= raw).unwrap_or(power * 10.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn settled(values: impl Fn(u32) -> f64) -> Scale {
        let mut scale = Scale::new(1.0);
        (0..3600).for_each(|n| scale.push(values(n)));
        assert!(scale.is_settled());
        scale
    }

    #[test]
    fn a_spike_does_not_move_a_settled_scale() {
        let mut scale = settled(|n| 880.0 + f64::from(n % 9));
        let before = scale.ends();
        scale.push(0.0);
        scale.push(1e12);
        assert_eq!(scale.ends(), before);
        assert_eq!(scale.place(0.0), Place::Below);
        assert_eq!(scale.place(1e12), Place::Above);
    }

    #[test]
    fn a_lasting_change_gets_room() {
        let mut scale = settled(|n| 880.0 + f64::from(n % 9));
        (0..1800).for_each(|_| scale.push(700.0));
        assert!(matches!(scale.place(700.0), Place::On(_)));
        assert!(matches!(scale.place(884.0), Place::On(_)), "what it held before is still held");
    }

    #[test]
    fn a_constant_has_a_scale_and_stands_inside_it() {
        for value in [0.0, 1.0, -5.0, 27_648.0] {
            let scale = settled(|_| value);
            assert!(matches!(scale.place(value), Place::On(p) if p > 0.0 && p < 1.0), "{value}");
        }
    }

    #[test]
    fn the_ends_are_round() {
        let scale = settled(|n| 950.0 + f64::from(n % 100));
        assert_eq!(scale.ends(), Some((920.0, 1080.0)));
    }

    #[test]
    fn missing_values_say_nothing() {
        let mut scale = Scale::new(1.0);
        scale.push(f64::NAN);
        scale.push(f64::INFINITY);
        assert_eq!(scale.ends(), None);
    }

    proptest! {
        #[test]
        fn while_settling_all_that_was_seen_is_on_it_and_it_never_shrinks(
            values in prop::collection::vec(-1e9..1e9_f64, 1..200),
        ) {
            let mut scale = Scale::new(1.0);
            let mut before = None;
            for value in &values {
                scale.push(*value);
                let (low, high) = scale.ends().expect("there was a value");
                prop_assert!(low < high);
                if let Some((l, h)) = before.replace((low, high)) {
                    prop_assert!(low <= l && high >= h);
                }
            }
            for value in values {
                prop_assert!(matches!(scale.place(value), Place::On(_)));
            }
        }

        #[test]
        fn no_sequence_of_numbers_breaks_it(values in prop::collection::vec(any::<f64>(), 0..400)) {
            let mut scale = Scale::new(60.0);
            for value in values {
                scale.push(value);
                if let Some((low, high)) = scale.ends() {
                    prop_assert!(low < high);
                }
                let _ = (scale.place(value), scale.decimals());
            }
        }
    }
}
