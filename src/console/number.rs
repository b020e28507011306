//! Measured values in a narrow column.

/// Decimals that tell apart a thousandth of `span`, at most six.
pub(crate) fn decimals(span: f64) -> usize {
    if !(span.is_finite() && span > 0.0) {
        return 1;
    }
    (2.0 - span.log10().floor()).clamp(0.0, 6.0) as usize
}

/// `value` in at most `width` cells: plain where it fits, then with fewer decimals, then with an
/// exponent.
pub(crate) fn format(value: f64, decimals: usize, width: usize) -> String {
    (0..=decimals)
        .rev()
        .map(|decimals| format!("{value:.decimals$}"))
        .chain((0..=2).rev().map(|digits| format!("{value:.digits$e}")))
        .find(|text| text.len() <= width)
        .unwrap_or_else(|| "#".repeat(width))
}

/// An ε: two decimals, or whole and in groups of three digits from a thousand on.
pub(crate) fn epsilon(value: f64) -> String {
    if value.abs() < 1000.0 { format!("{value:.2}") } else { whole(value) }
}

/// A number without decimals, in groups of three digits.
pub(crate) fn whole(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::from(if value < 0.0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub(crate) fn bound(value: f64, span: f64) -> String {
    let plain = format!("{value:.*}", decimals(span));
    let plain = if plain.contains('.') {
        plain.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        plain
    };
    match plain.as_str() {
        "-0" => "0".to_owned(),
        text if text.len() > 8 => format!("{value:.1e}"),
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_value_loses_decimals_before_it_loses_its_place() {
        assert_eq!(format(1.134, 3, 8), "1.134");
        assert_eq!(format(-27_648.25, 2, 8), "-27648.2");
        assert_eq!(format(12_345_678_901.0, 0, 8), "1.23e10");
        assert_eq!(format(1e10, 0, 2), "##");
        assert_eq!(bound(950.0, 100.0), "950");
        assert_eq!(bound(0.5, 2.0), "0.5");
        assert_eq!(bound(-0.0, 2.0), "0");
    }

    #[test]
    fn a_large_epsilon_is_grouped_and_a_small_one_has_decimals() {
        assert_eq!([546.0, 999.994, 1000.4].map(epsilon), ["546.00", "999.99", "1,000"]);
        assert_eq!([375_957.36, 1_234_567.0].map(epsilon), ["375,957", "1,234,567"]);
    }

    proptest! {
        #[test]
        fn a_number_never_leaves_its_column(v in any::<f64>(), d in 0_usize..7, w in 0_usize..20) {
            prop_assert!(format(v, d, w).len() <= w);
        }

        #[test]
        fn any_span_has_decimals(span in any::<f64>()) {
            prop_assert!(decimals(span) <= 6);
        }
    }
}
