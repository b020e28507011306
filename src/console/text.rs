//! Text that came from data, made harmless before it is ever shown.

/// Stands where a character was that may not reach a terminal.
const REPLACEMENT: char = '\u{fffd}';

/// The same text without control bytes, line breaks, or marks that reorder or hide what follows.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if is_harmful(c) { REPLACEMENT } else { c }).collect()
}

pub(crate) fn clean_lines(text: &str) -> Vec<String> {
    text.lines().map(clean).collect()
}

fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{200b}'..='\u{200f}'     // zero width, marks of direction
            | '\u{2028}'..='\u{202e}'   // line and paragraph separators, embeddings, overrides
            | '\u{2060}'..='\u{206f}'   // joiners, isolates, deprecated format characters
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}' // invisible tags
        )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_escape_sequence_in_a_name_is_defused() {
        assert_eq!(clean("P1\u{1b}[2J\u{7}\u{9b}x"), "P1\u{fffd}[2J\u{fffd}\u{fffd}x");
        assert_eq!(clean("a\u{202e}b\u{200b}"), "a\u{fffd}b\u{fffd}");
        assert_eq!(clean("Füllstand µm °C"), "Füllstand µm °C");
    }

    proptest! {
        #[test]
        fn no_control_character_survives(text in any::<String>()) {
            prop_assert!(!clean(&text).chars().any(char::is_control));
            prop_assert!(clean_lines(&text).iter().all(|l| !l.chars().any(char::is_control)));
        }
    }
}
