//! How many threads work is spread over. No result depends on their number.

use std::num::NonZeroUsize;

/// The environment variable that says how many, where it is a number above 0.
pub(crate) const VARIABLE: &str = "HEADWATER_THREADS";

/// As many as the environment says, or as there are processors.
pub(crate) fn threads() -> usize {
    wanted(std::env::var(VARIABLE).ok().as_deref())
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

fn wanted(text: Option<&str>) -> Option<usize> {
    text?.trim().parse().ok().map(NonZeroUsize::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_of_threads_asks_for_none() {
        assert_eq!(wanted(Some(" 3 ")), Some(3));
        for text in [None, Some(""), Some("0"), Some("-1"), Some("many")] {
            assert_eq!(wanted(text), None, "{text:?}");
        }
    }
}
