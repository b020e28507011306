//! The known name that was probably meant by an unknown one.

use std::cmp::Reverse;

/// The candidate that `name` was probably meant to be, if any is near.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let folded = name.to_lowercase();
    let begins_alike =
        |other: &str| folded.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    candidates
        .map(|c| (c.to_lowercase(), c))
        .map(|(other, c)| (strsim::damerau_levenshtein(&folded, &other), begins_alike(&other), c))
        .min_by_key(|(distance, alike, _)| (*distance, Reverse(*alike)))
        .map(|(distance, _, c)| (distance, c))
        // A name of which nothing is left is another name, however short.
        .filter(|(distance, c)| {
            let longest = name.len().max(c.len());
            *distance < longest && *distance <= 1 + longest / 3
        })
        .map(|(_, c)| c)
}
