//! What each part of the screen looks like. Grey while all is calm; nothing is said by colour alone.

use ratatui::style::{Color, Modifier, Style};

/// The styles of one kind of terminal, resolved once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// Values and words.
    pub text: Style,
    /// What is there to be found, not to be read: labels, units.
    pub label: Style,
    /// Rules and axes.
    pub frame: Style,
    /// A trend that stays on its scale.
    pub trend: Style,
    /// Names and the state of the replay.
    pub strong: Style,
    /// Beyond its scale; always with an arrow.
    pub beyond: Style,
    /// Missing; always with a question mark.
    pub missing: Style,
    /// What the data set itself knows; always with a glyph and a word.
    pub truth: Style,
    /// The moment looked at, the chosen client.
    pub cursor: Style,
    /// A failure; always with a word.
    pub failure: Style,
}

impl Theme {
    /// Made of attributes only, for terminals and people without colour.
    pub const MONO: Theme = Theme {
        text: Style::new(),
        label: Style::new().add_modifier(Modifier::DIM),
        frame: Style::new().add_modifier(Modifier::DIM),
        trend: Style::new(),
        strong: Style::new().add_modifier(Modifier::BOLD),
        beyond: Style::new().add_modifier(Modifier::BOLD),
        missing: Style::new().add_modifier(Modifier::UNDERLINED),
        truth: Style::new().add_modifier(Modifier::BOLD).add_modifier(Modifier::UNDERLINED),
        cursor: Style::new().add_modifier(Modifier::REVERSED),
        failure: Style::new().add_modifier(Modifier::BOLD).add_modifier(Modifier::REVERSED),
    };

    /// For sixteen colours that the user chose.
    pub const SIXTEEN: Theme = Theme {
        text: Style::new(),
        label: Style::new().fg(Color::DarkGray),
        frame: Style::new().fg(Color::DarkGray),
        trend: Style::new(),
        strong: Style::new().add_modifier(Modifier::BOLD),
        beyond: Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD),
        missing: Style::new().fg(Color::Cyan),
        truth: Style::new().fg(Color::Magenta).add_modifier(Modifier::BOLD),
        cursor: Style::new().add_modifier(Modifier::REVERSED),
        failure: Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
    };

    /// Greys, and hues of Okabe and Ito that the common kinds of colour blindness tell apart.
    pub const PALETTE: Theme = Theme {
        text: Style::new(),
        label: Style::new().fg(Color::Indexed(244)),
        frame: Style::new().fg(Color::Indexed(242)),
        trend: Style::new().fg(Color::Indexed(246)),
        strong: Style::new().add_modifier(Modifier::BOLD),
        beyond: Style::new().fg(Color::Indexed(178)).add_modifier(Modifier::BOLD),
        missing: Style::new().fg(Color::Indexed(74)),
        truth: Style::new().fg(Color::Indexed(175)).add_modifier(Modifier::BOLD),
        cursor: Style::new().add_modifier(Modifier::REVERSED),
        failure: Style::new().fg(Color::Indexed(166)).add_modifier(Modifier::BOLD),
    };

    /// The theme for a terminal that the environment describes. `NO_COLOR` counts when it is not
    /// empty (no-color.org).
    #[must_use]
    pub fn choose(variable: impl Fn(&str) -> Option<String>) -> Self {
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        if is_set("NO_COLOR") {
            Self::MONO
        } else if is_set("COLORTERM") || variable("TERM").is_some_and(|t| t.contains("256color")) {
            Self::PALETTE
        } else {
            Self::SIXTEEN
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &'static [(&str, &str)]) -> Theme {
        Theme::choose(|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_chooses() {
        assert_eq!(with(&[("NO_COLOR", "1"), ("TERM", "xterm-256color")]), Theme::MONO);
        assert_eq!(with(&[("NO_COLOR", ""), ("TERM", "xterm-256color")]), Theme::PALETTE);
        assert_eq!(with(&[("TERM", "linux")]), Theme::SIXTEEN);
        assert_eq!(with(&[("TERM", "xterm"), ("COLORTERM", "truecolor")]), Theme::PALETTE);
    }

    #[test]
    fn without_colour_there_is_no_colour_and_abnormal_states_differ() {
        let theme = Theme::MONO;
        let abnormal = [theme.beyond, theme.missing, theme.truth, theme.cursor, theme.failure];
        for (at, style) in abnormal.iter().enumerate() {
            assert_eq!((style.fg, style.bg), (None, None));
            assert_ne!(*style, theme.trend);
            assert!(!abnormal[..at].contains(style), "two states look the same");
        }
    }
}
