//! From values to places on an axis.

use super::Axis;

/// Beyond these the length of an axis is not a number any more.
const LARGEST: f64 = 1e150;
const SMALLEST: f64 = 1e-150;

/// An axis with its ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Scale {
    /// Wide enough for all values, with round ends. Shares are always shown from 0 to 1: a small
    /// difference must not look like a large one.
    pub(super) fn over(axis: &Axis, values: impl Iterator<Item = f64> + Clone) -> Self {
        let logarithmic = axis.logarithmic;
        let usable = values.filter(|v| v.abs() <= LARGEST && (!logarithmic || *v >= SMALLEST));
        let low = usable.clone().fold(f64::INFINITY, f64::min);
        let high = usable.fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = match (low <= high, logarithmic) {
            (false, false) => (0.0, 1.0),
            (false, true) => (0.1, 1.0),
            (true, true) => (10f64.powf(low.log10().floor()), 10f64.powf(high.log10().ceil())),
            (true, false) if low >= 0.0 && high <= 1.0 && high > 0.2 => (0.0, 1.0),
            (true, false) => {
                let step = round_step((high - low) / 4.0);
                ((low / step).floor() * step, (high / step).ceil() * step)
            }
        };
        let wide = if high > low { high } else { low + low.abs().max(1.0) };
        Self { low, high: wide, logarithmic }
    }

    /// From the smallest value to the largest: for what is swept over.
    pub(super) fn between(axis: &Axis, values: impl Iterator<Item = f64> + Clone) -> Self {
        if axis.logarithmic {
            return Self::over(axis, values);
        }
        let usable = values.filter(|v| v.abs() <= LARGEST);
        let low = usable.clone().fold(f64::INFINITY, f64::min);
        let high = usable.fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        let wide = if high > low { high } else { low + low.abs().max(1.0) };
        Self { low, high: wide, logarithmic: false }
    }

    /// From zero to the largest value: for lengths.
    pub(super) fn from_zero(values: impl Iterator<Item = f64>) -> Self {
        let high = values.filter(|v| v.abs() <= LARGEST).fold(0.0, f64::max);
        let high = match high {
            high if high <= 0.0 => 1.0,
            high if high <= 1.0 && high > 0.2 => 1.0,
            high => high,
        };
        Self { low: 0.0, high, logarithmic: false }
    }

    /// Where a value stands, 0 at the low end and 1 at the high end; nowhere when it has no place.
    pub(super) fn place(self, value: f64) -> Option<f64> {
        let place = if self.logarithmic {
            (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln())
        } else {
            (value - self.low) / (self.high - self.low)
        };
        place.is_finite().then(|| place.clamp(0.0, 1.0))
    }

    /// Round values between the ends, about five of them.
    pub(super) fn ticks(self) -> Vec<f64> {
        if self.logarithmic {
            let (low, high) = (self.low.log10().round() as i32, self.high.log10().round() as i32);
            let every = ((high - low) / 6 + 1).max(1) as usize;
            return (low..=high).step_by(every).map(|power| 10f64.powi(power)).collect();
        }
        let step = round_step((self.high - self.low) / 4.0);
        let first = (self.low / step - 1e-9).ceil();
        let count = (self.high / step + 1e-9).floor() - first;
        (0..=count as i32).map(|i| (first + f64::from(i)) * step).collect()
    }
}

/// 1, 2 or 5 times a power of ten, not below `step`.
fn round_step(step: f64) -> f64 {
    if !(step.is_finite() && step > 0.0) {
        return 1.0;
    }
    let power = 10f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= step * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// A number as short as three significant digits allow.
pub(super) fn short(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let digits = value.abs().log10().floor();
    if !(-4.0..6.0).contains(&digits) {
        return format!("{value:.0e}");
    }
    let decimals = (2.0 - digits).max(0.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shares_are_shown_from_nothing_to_all() {
        let scale = Scale::over(&Axis::linear("F1"), [0.9, 0.95].into_iter());
        assert_eq!(
            (scale.place(0.0), scale.place(0.5), scale.place(1.0)),
            (Some(0.0), Some(0.5), Some(1.0))
        );
    }

    #[test]
    fn a_logarithmic_axis_runs_from_decade_to_decade() {
        let scale = Scale::over(&Axis::logarithmic("ε"), [0.2, 30.0, -1.0].into_iter());
        assert_eq!(scale.ticks(), [0.1, 1.0, 10.0, 100.0]);
        assert_eq!(scale.place(0.0), None);
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 0.25, 1.0, 12.345, 1234.5, 2e7, 0.00001].map(short);
        assert_eq!(shown, ["0", "0.25", "1", "12.3", "1234", "2e7", "1e-5"]);
    }

    proptest! {
        #[test]
        fn every_value_has_a_place_between_the_ends(
            values in prop::collection::vec(-1e6f64..1e6, 1..20)
        ) {
            let scale = Scale::over(&Axis::linear("x"), values.iter().copied());
            for value in &values {
                let place = scale.place(*value).expect("a finite value has a place");
                prop_assert!((0.0..=1.0).contains(&place));
            }
            let ticks = scale.ticks();
            prop_assert!(ticks.len() >= 2 && ticks.len() <= 12, "{:?}", ticks);
        }
    }
}
