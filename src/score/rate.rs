//! How many false alarms a wanted run length lets expect: a Poisson count, with its 95 % range.

/// Seconds of a day.
const DAY: f64 = 86_400.0;
/// From this mean on the range is that of a normal distribution.
const MANY: f64 = 500.0;

/// The range that holds a Poisson count of this mean with 95 %: 2.5 % lie below it at most, and 2.5 %
/// above.
pub(crate) fn poisson_range(mean: f64) -> (u64, u64) {
    if mean >= MANY {
        let reach = 1.96 * mean.sqrt();
        return ((mean - reach) as u64, (mean + reach).ceil() as u64);
    }
    let (mut chance, mut below, mut count) = ((-mean.max(0.0)).exp(), 0.0, 0_u64);
    let mut least = None;
    loop {
        below += chance;
        if below > 0.025 && least.is_none() {
            least = Some(count);
        }
        // The sum comes within rounding of 1 long before the count is four times the mean.
        if below >= 0.975 || count as f64 > 4.0 * mean + 20.0 {
            return (least.unwrap_or(count), count);
        }
        count += 1;
        chance *= mean / count as f64;
    }
}

/// The means that fit a number of false alarms: the exact interval of 95 % of a Poisson count.
pub(crate) fn range_of_mean(count: u64) -> (f64, f64) {
    // P(X < k) falls as the mean grows.
    let below = |k: u64, mean: f64| {
        let terms = (0..k).scan((-mean).exp(), |term, i| {
            let now = *term;
            *term *= mean / (i + 1) as f64;
            Some(now)
        });
        terms.sum::<f64>()
    };
    let mean_at = |k: u64, chance: f64| {
        let (mut low, mut high) = (0.0, 2.0 * k as f64 + 20.0);
        for _ in 0..100 {
            let middle = 0.5 * (low + high);
            *(if below(k, middle) > chance { &mut low } else { &mut high }) = middle;
        }
        0.5 * (low + high)
    };
    if count as f64 > MANY {
        let reach = 1.96 * (count as f64).sqrt();
        return (count as f64 - reach, count as f64 + reach);
    }
    let least = if count == 0 { 0.0 } else { mean_at(count, 0.975) };
    (least, mean_at(count + 1, 0.025))
}

/// What to expect of a day when one false alarm in `arl0_s` seconds is wanted.
pub(crate) fn expected_a_day(arl0_s: f64) -> String {
    let mean = DAY / arl0_s;
    let (least, most) = poisson_range(mean);
    let digits = match mean {
        m if m >= 9.95 || (m - m.round()).abs() < 0.05 && m >= 0.95 => 0,
        m if m >= 0.095 => 1,
        _ => 2,
    };
    format!("about {mean:.digits$} a day, 95 %: {least} to {most}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_at_one_false_alarm_a_day_has_none_to_three() {
        assert_eq!(expected_a_day(DAY), "about 1 a day, 95 %: 0 to 3");
        assert_eq!(expected_a_day(2.0 * DAY), "about 0.5 a day, 95 %: 0 to 2");
        assert_eq!(expected_a_day(14.0 * DAY), "about 0.07 a day, 95 %: 0 to 1");
        assert_eq!(expected_a_day(0.25 * DAY), "about 4 a day, 95 %: 1 to 8");
        assert_eq!(expected_a_day(28_800.0), "about 3 a day, 95 %: 0 to 7");
    }

    #[test]
    fn the_interval_of_a_count_is_that_of_the_tables() {
        // Garwood's interval, from tables of the chi-squared distribution.
        let known = [
            (0, 0.0, 3.6889),
            (1, 0.0253, 5.5716),
            (3, 0.6187, 8.7673),
            (5, 1.6235, 11.6683),
            (10, 4.7954, 18.3904),
        ];
        for (count, least, most) in known {
            let found = range_of_mean(count);
            assert!((found.0 - least).abs() < 1e-3 && (found.1 - most).abs() < 1e-3, "{found:?}");
        }
    }

    #[test]
    fn ranges_of_few_and_of_many_meet() {
        let (few, many) = (poisson_range(499.9), poisson_range(500.1));
        assert!(few.0.abs_diff(many.0) <= 2 && few.1.abs_diff(many.1) <= 2, "{few:?} {many:?}");
        assert_eq!(poisson_range(0.0), (0, 0));
    }
}
