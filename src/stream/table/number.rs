//! Cells as numbers: what is a value, what is missing, what cannot be understood.

/// Larger numbers count as this one: sums of it are finite, and no sensor measures so much.
const LARGEST: f64 = 1e300;

/// How the cells of a source are read. Knows nothing of columns or clients.
#[derive(Debug, Clone, Default)]
pub(crate) struct Numbers {
    /// Words for "missing", in lower case.
    words: Vec<String>,
    /// Words for "missing" that are numbers themselves (-999): the value is what counts, so that
    /// `-999.0` is missing too.
    values: Vec<f64>,
}

impl Numbers {
    /// Reads `missing` words, besides the empty cell and NaN, as missing.
    pub(crate) fn new(missing: &[String]) -> Self {
        let words: Vec<String> = missing.iter().map(|w| w.trim().to_lowercase()).collect();
        let values = words.iter().filter_map(|w| w.parse().ok()).collect();
        Self { words, values }
    }

    /// The value of a cell: NaN when it is missing (or the word for infinite), `None` when it is some
    /// other text.
    pub(crate) fn read(&self, cell: &[u8], decimal_comma: bool) -> Option<f64> {
        let cell = bare(cell);
        if cell.is_empty() {
            return Some(f64::NAN);
        }
        let value = parse(cell).or_else(|| decimal_comma.then(|| with_comma(cell)).flatten());
        match value {
            Some(value) if self.values.contains(&value) => Some(f64::NAN),
            // A number too large for any float is out of range, and not missing.
            Some(value) if value.is_finite() || cell.iter().any(u8::is_ascii_digit) => {
                Some(value.clamp(-LARGEST, LARGEST))
            }
            Some(_) => Some(f64::NAN),
            None => self.is_missing_word(cell).then_some(f64::NAN),
        }
    }

    /// The value of a label cell, which may also say in a word whether all is well.
    pub(crate) fn read_flag(&self, cell: &[u8], decimal_comma: bool) -> Option<f64> {
        let is = |words: [&str; 2]| words.iter().any(|w| cell.eq_ignore_ascii_case(w.as_bytes()));
        self.read(cell, decimal_comma).or_else(|| {
            if is(["normal", "false"]) { Some(0.0) } else { is(["attack", "true"]).then_some(1.0) }
        })
    }

    fn is_missing_word(&self, cell: &[u8]) -> bool {
        let text = String::from_utf8_lossy(cell).to_lowercase();
        self.words.contains(&text)
    }
}

/// A cell without the blanks (and the quotes behind a blank) around it.
pub(crate) fn bare(cell: &[u8]) -> &[u8] {
    let cell = cell.trim_ascii();
    match cell {
        [b'"', inner @ .., b'"'] => inner.trim_ascii(),
        _ => cell,
    }
}

fn parse(cell: &[u8]) -> Option<f64> {
    short_decimal(cell).or_else(|| std::str::from_utf8(cell).ok()?.parse().ok())
}

/// Nearly every cell of a historian: a sign, at most fifteen digits, a point. Whole number and power
/// of ten are then exact in an `f64`, so one division rounds right, as `str::parse` does, which
/// takes several times as long.
fn short_decimal(cell: &[u8]) -> Option<f64> {
    const MOST_DIGITS: usize = 15;
    const POWERS: [f64; MOST_DIGITS + 1] =
        [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    let (negative, digits) = match cell {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, cell),
    };
    if digits.is_empty() || digits.len() > MOST_DIGITS {
        return None;
    }
    let mut whole = 0_u64;
    let mut point = None;
    for (i, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => whole = whole * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() && digits.len() > 1 => point = Some(i),
            _ => return None,
        }
    }
    let value = whole as f64 / point.map_or(1.0, |at| POWERS[digits.len() - at - 1]);
    Some(if negative { -value } else { value })
}

/// `1,5` as historians write it where the comma does not separate cells. `1.234,5` stays text: a
/// guess about thousands would be a guess about a measurement.
fn with_comma(cell: &[u8]) -> Option<f64> {
    let comma = cell.iter().position(|b| *b == b',')?;
    if cell.contains(&b'.') {
        return None;
    }
    // No measurement is as long as the first; a written-out 1e-300 takes the second.
    let (mut short, mut long) = ([0; 64], Vec::new());
    let text = if let Some(text) = short.get_mut(..cell.len()) {
        text
    } else {
        long.resize(cell.len(), 0);
        long.as_mut_slice()
    };
    text.copy_from_slice(cell);
    text[comma] = b'.';
    parse(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::source::missing_words;
    use proptest::prelude::*;

    fn numbers() -> Numbers {
        let mut words = missing_words();
        words.push("-999".into());
        Numbers::new(&words)
    }

    #[test]
    fn what_is_not_a_finite_number_is_missing() {
        for cell in ["", "  ", "NaN", "nan", "-NaN", "inf", "-Infinity", "Bad Input", "-", "-999.0"]
        {
            let value = numbers().read(cell.as_bytes(), false);
            assert!(value.is_some_and(f64::is_nan), "{cell:?} is {value:?}");
        }
    }

    #[test]
    fn a_number_too_large_for_a_float_is_out_of_range_and_not_missing() {
        for cell in ["1e999", "1.7e308", &"9".repeat(400)] {
            assert_eq!(numbers().read(cell.as_bytes(), false), Some(LARGEST), "{cell:?}");
            let negative = format!("-{cell}");
            assert_eq!(numbers().read(negative.as_bytes(), false), Some(-LARGEST), "{cell:?}");
        }
    }

    #[test]
    fn other_text_is_not_understood() {
        for cell in ["ON", "1 2", "0x10", "1,5", "1.234,5", "é", "--1"] {
            assert_eq!(numbers().read(cell.as_bytes(), false), None, "{cell:?}");
        }
        assert_eq!(numbers().read(b"\xff\xfe", false), None);
        assert_eq!(numbers().read(b"1.234,5", true), None);
        assert_eq!(numbers().read(b"1,2,3", true), None);
    }

    #[test]
    fn blanks_quotes_and_a_decimal_comma_do_not_change_a_value() {
        for cell in [" 1.5", "1.5\r", "\t1.5 ", " \"1.5\"", "1,5", "+1.5", "15e-1"] {
            assert_eq!(numbers().read(cell.as_bytes(), true), Some(1.5), "{cell:?}");
        }
    }

    #[test]
    fn a_label_may_be_a_word() {
        assert_eq!(numbers().read_flag(b"Normal", false), Some(0.0));
        assert_eq!(numbers().read_flag(b"Attack", false), Some(1.0));
        assert_eq!(numbers().read_flag(b"maybe", false), None);
    }

    proptest! {
        #[test]
        fn every_finite_value_comes_back_as_it_was_written(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(value.abs() <= LARGEST && value.to_bits() != (-999.0_f64).to_bits());
            let plain = value.to_string();
            prop_assert_eq!(
                numbers().read(plain.as_bytes(), false).map(f64::to_bits), Some(value.to_bits())
            );
            for text in [format!("{value:e}"), plain] {
                let comma = text.replace('.', ",");
                prop_assert_eq!(
                    numbers().read(comma.as_bytes(), true).map(f64::to_bits), Some(value.to_bits())
                );
            }
        }

        #[test]
        fn short_decimals_are_read_as_the_standard_library_reads_them(cell in "-?[0-9]{0,9}[.e]?[0-9]{0,9}") {
            if let Some(value) = short_decimal(cell.as_bytes()) {
                prop_assert_eq!(Ok(value.to_bits()), cell.parse::<f64>().map(f64::to_bits));
            }
        }

        #[test]
        fn any_bytes_are_a_value_missing_or_refused(cell: Vec<u8>, comma: bool) {
            if let Some(value) = numbers().read(&cell, comma) {
                prop_assert!(value.is_nan() || value.is_finite());
            }
        }
    }
}
