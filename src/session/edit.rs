//! Changes a value in the text of a session and leaves the rest, comments included, as it is.

use super::locate::find;

/// `text` with `value` at `path`, such as `thresholds.arl0`: replaced where it stands, added where it
/// was left to its default. Whether the result is a session is for the caller to check.
pub(crate) fn set(text: &str, path: &str, value: &str) -> String {
    if let Some(at) = find(text, path) {
        let end = at + value_length(&text[at..]);
        return format!("{}{value}{}", &text[..at], &text[end..]);
    }
    if let Some((parent, key)) = path.rsplit_once('.') {
        if let Some(at) = find(text, parent)
            && let Some(bracket) = text[at..].find('(')
        {
            let at = at + bracket + 1;
            return format!("{}{key}: {value}, {}", &text[..at], &text[at..]);
        }
        return set(text, parent, &format!("({key}: {value})"));
    }
    let end = text.rfind(')').unwrap_or(text.len());
    let before = text[..end].trim_end();
    let comma = if is_separated(before) { "" } else { "," };
    format!("{before}{comma}\n    {path}: {value},\n{}", &text[end..])
}

/// Whether `text` has a value at `path`.
pub(crate) fn has(text: &str, path: &str) -> bool {
    find(text, path).is_some()
}

/// Whether another field may follow `before`: it ends with a comma or an opening bracket, comments
/// aside.
fn is_separated(before: &str) -> bool {
    let last = before.lines().rev().map(|line| line.split("//").next().unwrap_or("").trim_end());
    let last = last.into_iter().find(|line| !line.is_empty());
    last.is_none_or(|line| line.ends_with([',', '(']))
}

/// Bytes of the value that `text` begins with: up to a comma or a closing bracket of its own level.
fn value_length(text: &str) -> usize {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth > 0 => depth -= 1,
            ',' | ')' | ']' | '}' if depth == 0 => return text[..at].trim_end().len(),
            _ => {}
        }
    }
    text.trim_end().len()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::session::{Mode, SHIPPED, Session};

    #[test]
    fn a_value_is_replaced_and_everything_else_stays() {
        let text = "// why\nSession(\n    mode: Evidence, // decides\n    thresholds: (arl0: \"1d\", tau_c: \"95%\"),\n)\n";
        let text = set(text, "thresholds.arl0", "\"8h\"");
        let text = set(&text, "mode", "Paper");
        assert_eq!(
            text,
            "// why\nSession(\n    mode: Paper, // decides\n    thresholds: (arl0: \"8h\", tau_c: \"95%\"),\n)\n"
        );
    }

    #[test]
    fn a_value_that_was_left_to_its_default_is_added_and_read_back_in_every_shipped_session() {
        for shipped in SHIPPED {
            let text = set(shipped.text, "thresholds.arl0", "\"7h\"");
            let text = set(&text, "thresholds.tau_c", "Percentile(97.5)");
            let text = set(&text, "privacy.epsilon_flag", "4");
            let text = set(&text, "mode", "Paper");
            let read = Session::parse(shipped.name, Path::new(""), &text);
            let read = read.unwrap_or_else(|error| panic!("{}: {error}\n{text}", shipped.name));
            assert!((read.thresholds.arl0.seconds - 7.0 * 3600.0).abs() < 1e-9, "{text}");
            assert_eq!((read.privacy.epsilon_flag, read.mode), (Some(4.0), Mode::Paper));
        }
    }
}
