//! What a terminal can show, as far as the environment states it. It is never queried: an answer that does
//! not come would be waited for, and one that comes late would be taken for keys.

use ratatui::style::Color;
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Depth {
    Colours16,
    Colours256,
    Bits24,
}

impl Depth {
    pub(super) fn resolve(self, (rgb, indexed, named): super::Hue) -> Color {
        match self {
            Depth::Bits24 => Color::Rgb(rgb.0, rgb.1, rgb.2),
            Depth::Colours256 => Color::Indexed(indexed),
            Depth::Colours16 => named,
        }
    }
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terminal {
    pub depth: Depth,
    /// Whether its background is light, where it says so.
    pub light: Option<bool>,
    pub ascii: bool,
}

/// A terminal that nothing is known of but that it is not very old.
impl Default for Terminal {
    fn default() -> Self {
        Self { depth: Depth::Colours256, light: None, ascii: false }
    }
}

impl Terminal {
    pub(crate) fn described_by(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let name = set("TERM").unwrap_or_default();
        let colours = set("COLORTERM").unwrap_or_default();
        let depth =
            if matches!(colours.as_str(), "truecolor" | "24bit") || name.ends_with("-direct") {
                Depth::Bits24
            } else if name.contains("256color") || !colours.is_empty() {
                Depth::Colours256
            } else {
                Depth::Colours16
            };
        // The first of these that is set decides. Where none is, UTF-8 is assumed.
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
        let utf8 = |locale: &String| {
            let locale = locale.to_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        };
        Self {
            depth,
            light: set("COLORFGBG").and_then(|colours| is_light(&colours)),
            ascii: locale.is_some_and(|locale| !utf8(&locale)),
        }
    }
}

/// `COLORFGBG` is `letters;field` or `letters;default;field`, in the sixteen colours.
fn is_light(colours: &str) -> Option<bool> {
    let field: u8 = colours.rsplit(';').next()?.parse().ok()?;
    (field < 16).then_some(matches!(field, 7 | 9..=15))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &'static [(&str, &str)]) -> Terminal {
        Terminal::described_by(|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_tells_how_many_colours_there_are() {
        assert_eq!(with(&[("TERM", "linux")]).depth, Depth::Colours16);
        assert_eq!(with(&[("TERM", "xterm-256color")]).depth, Depth::Colours256);
        assert_eq!(with(&[("TERM", "xterm"), ("COLORTERM", "truecolor")]).depth, Depth::Bits24);
        assert_eq!(with(&[("TERM", "xterm"), ("COLORTERM", "yes")]).depth, Depth::Colours256);
        assert_eq!(with(&[("TERM", "xterm-direct")]).depth, Depth::Bits24);
    }

    #[test]
    fn a_locale_without_utf_8_gets_ascii() {
        assert!(!with(&[]).ascii);
        assert!(with(&[("LANG", "C")]).ascii);
        assert!(!with(&[("LANG", "de_DE.UTF-8")]).ascii);
        assert!(!with(&[("LANG", "C.utf8")]).ascii);
        assert!(with(&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "POSIX")]).ascii);
        assert!(!with(&[("LC_ALL", ""), ("LANG", "en_GB.UTF-8")]).ascii);
    }

    #[test]
    fn a_background_is_light_dark_or_not_told() {
        assert_eq!(with(&[("COLORFGBG", "15;0")]).light, Some(false));
        assert_eq!(with(&[("COLORFGBG", "0;default;15")]).light, Some(true));
        assert_eq!(with(&[("COLORFGBG", "0;default")]).light, None);
        assert_eq!(with(&[]).light, None);
    }
}
