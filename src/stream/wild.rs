//! Wild values: what a fault of a sensor or of its line has written where a measurement should be,
//! such as 1e10 or −2147483648.
//!
//! One wild value in nominal data makes a spread so wide that nothing is unusual any more. Live wild
//! values are faults and are reported as such; nominal ones are taken out before anything is learned.

/// A value is wild when it is so many widths of the middle half of the values away from that half.
/// Of 2859 columns of real plants none goes further than 79.
const FAR: f64 = 1000.0;
/// One row in so many may hold a wild value; when there are more, the sensor measures elsewhere.
const MOST_WILD: usize = 4;
/// With fewer different values than this, one of them can be an end of their middle half.
const FEWEST_FOR_HALVES: usize = 5;
/// A position of a switch is one that it has in at least one row of so many.
const SELDOM: usize = 100;

/// The finite values, each once, in order.
pub(crate) fn distinct(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.dedup();
    sorted
}

/// Where the values of a sensor can be believed to lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    low: f64,
    high: f64,
}

impl Range {
    /// Around the middle half of different values that are in order; none where fewer than two
    /// differ.
    pub(crate) fn usual(sorted: &[f64]) -> Option<Self> {
        let last = sorted.len().checked_sub(1)?;
        let (low, high) = (sorted[last / 4], sorted[(3 * last).div_ceil(4)]);
        let far = FAR * (high - low);
        (high > low).then_some(Self { low: low - far, high: high + far })
    }

    /// Around the values of nominal data. Of a sensor with a handful of positions those count that
    /// it has often; a sensor that is always 0 may have any other value.
    fn of_nominal(values: &[f64]) -> Option<Self> {
        let different = distinct(values);
        if different.len() >= FEWEST_FOR_HALVES {
            return Self::usual(&different);
        }
        let rows = values.iter().filter(|value| value.is_finite()).count();
        let is_usual = |position: &&f64| {
            let is_there = |value: &&f64| value.total_cmp(position).is_eq();
            let there = values.iter().filter(is_there).count();
            there * SELDOM >= rows
        };
        let usual: Vec<f64> = different.iter().filter(is_usual).copied().collect();
        let (low, high) = (*usual.first()?, *usual.last()?);
        let far = FAR * (high - low).max(low.abs()).max(high.abs());
        (far > 0.0).then_some(Self { low: low - far, high: high + far })
    }

    pub(crate) fn holds(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Leaves out what lies outside, unless that is the greater part of the different values: then
    /// the sensor measures somewhere else by now.
    pub(crate) fn keep_if_most_lie_inside(self, sorted: &mut Vec<f64>) {
        let inside = sorted.iter().filter(|value| self.holds(**value)).count();
        if 2 * inside >= sorted.len() {
            sorted.retain(|value| self.holds(*value));
        }
    }
}

/// The values without those that a fault of the sensor or of its line has made: few rows, far
/// outside of what is usual.
pub(crate) fn believable(values: &[f64], usual: Option<Range>) -> Vec<f64> {
    let present = || values.iter().copied().filter(|v| v.is_finite());
    let Some(usual) = usual else { return present().collect() };
    let inside: Vec<f64> = present().filter(|value| usual.holds(*value)).collect();
    let all = present().count();
    if (all - inside.len()) * MOST_WILD <= all { inside } else { present().collect() }
}

/// Makes the wild values of one column of nominal data missing, and says how many there were.
pub(crate) fn take_out(column: &mut [&mut f64]) -> u64 {
    let values: Vec<f64> = column.iter().map(|value| **value).collect();
    let Some(usual) = Range::of_nominal(&values) else { return 0 };
    let is_wild = |value: f64| value.is_finite() && !usual.holds(value);
    let rows = values.iter().filter(|value| value.is_finite()).count();
    let wild = values.iter().filter(|value| is_wild(**value)).count();
    if wild * MOST_WILD > rows {
        return 0;
    }
    for value in column.iter_mut().filter(|value| is_wild(***value)) {
        **value = f64::NAN;
    }
    wild as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(mut values: Vec<f64>) -> (u64, Vec<f64>) {
        let wild = take_out(&mut values.iter_mut().collect::<Vec<_>>());
        (wild, values)
    }

    fn wave(t: usize) -> f64 {
        20.0 + 5.0 * (t as f64 / 37.0).sin()
    }

    #[test]
    fn wild_values_of_nominal_data_become_missing_and_nothing_else_does() {
        for (wild, rows) in [(1e10, 1), (-2_147_483_648.0, 20), (f64::MAX, 1), (-1e30, 149)] {
            let mut values: Vec<f64> = (0..600).map(wave).collect();
            values[300..300 + rows].fill(wild);
            let (count, left) = taken(values.clone());
            assert_eq!(count, rows as u64, "{wild}");
            for (t, (left, value)) in left.iter().zip(&values).enumerate() {
                let is_taken = (300..300 + rows).contains(&t);
                let is_same = left.to_bits() == value.to_bits();
                assert!(if is_taken { left.is_nan() } else { is_same }, "{wild} {t}");
            }
        }
    }

    #[test]
    fn switches_and_constants_lose_wild_values_and_no_position() {
        let mut switch: Vec<f64> = (0..600).map(|t| f64::from(u8::from(t % 50 < 20))).collect();
        assert_eq!(taken(switch.clone()).0, 0);
        switch[7] = 1e10;
        assert_eq!(taken(switch).0, 1);
        let mut constant = vec![7.0; 600];
        constant[7] = -2_147_483_648.0;
        assert_eq!(taken(constant).0, 1);
        // A pump that runs once, and a sensor that was replaced by another one.
        let mut pump = vec![0.0; 600];
        pump[7] = 96.5;
        assert_eq!(taken(pump).0, 0);
        let replaced = (0..600).map(|t| if t < 300 { wave(t) } else { 1e6 * wave(t) });
        assert_eq!(taken(replaced.collect()).0, 0);
        assert_eq!(taken(vec![f64::NAN; 9]).0, 0);
        assert_eq!(taken(Vec::new()).0, 0);
    }
}
