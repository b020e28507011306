//! What each part of the screen looks like. Grey while all is calm; nothing is shown by colour alone.
//!
//! A theme is resolved once, for what the terminal can do: three greys and five hues of Okabe and Ito,
//! which the common kinds of colour blindness tell apart, in 24 bits, 256 or sixteen colours; or
//! attributes alone.

use clap::ValueEnum;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

use super::glyph;
use super::key::Chord;

mod terminal;

pub(crate) use terminal::{Depth, Terminal};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThemeChoice {
    /// The terminal's own background
    Auto,
    Dark,
    /// A light grey field, for lit rooms
    Paper,
    /// No colour: bold, dim, underlined, reversed
    Mono,
}

impl ThemeChoice {
    /// All, in the order that a key steps through.
    pub(crate) const ALL: [ThemeChoice; 4] =
        [ThemeChoice::Auto, ThemeChoice::Dark, ThemeChoice::Paper, ThemeChoice::Mono];

    pub(crate) fn name(self) -> &'static str {
        match self {
            ThemeChoice::Auto => "auto",
            ThemeChoice::Dark => "dark",
            ThemeChoice::Paper => "paper",
            ThemeChoice::Mono => "mono",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Theme {
    pub choice: ThemeChoice,
    pub terminal: Terminal,
    /// The field itself, where it is not the terminal's own.
    field: Option<(Color, Color)>,
    /// Values and words.
    pub text: Style,
    /// What is there to be found, not to be read: labels, units.
    pub label: Style,
    /// Rules and axes.
    pub frame: Style,
    /// A trend that stays on its scale, below its threshold.
    pub trend: Style,
    /// Names and the state of the replay.
    pub strong: Style,
    /// Beyond its scale; always with an arrow.
    pub beyond: Style,
    /// Above its threshold τ, in a trend or as a flag.
    pub over: Style,
    /// What a setting that is not yet committed would show.
    pub ghost: Style,
    /// Missing, stale, stuck or late; always with a glyph and a word.
    pub missing: Style,
    /// What the data set itself knows; always with a glyph and a word.
    pub truth: Style,
    /// The moment looked at, the chosen row.
    pub cursor: Style,
    /// A failure; always with a word.
    pub failure: Style,
    /// Where trouble started, seen by an operator or over.
    pub root: Style,
    /// The same, not yet acknowledged.
    pub root_unseen: Style,
    pub effect: Style,
    pub single: Style,
    /// The same, not yet acknowledged.
    pub single_unseen: Style,
    pub shelved: Style,
    /// The lane of an open root: a background that lies under everything.
    pub tint: Style,
}

/// What a client or an incident can be, each with glyph, word and style of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum State {
    Normal,
    /// Where trouble started; not acknowledged.
    RootUnseen,
    /// Where trouble started; seen.
    Root,
    /// The root cannot be named; not acknowledged.
    UnknownUnseen,
    Unknown,
    Effect,
    /// Trouble of one client alone; not acknowledged.
    SingleUnseen,
    Single,
    Returned,
    Latched,
    Shelved,
    OutOfService,
    /// Data comes, and the steps are not judged yet.
    NotJudged,
    Missing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Badge {
    pub glyph: &'static str,
    pub word: &'static str,
    pub style: Style,
}

#[cfg(test)]
impl State {
    pub(crate) const ALL: [State; 14] = [
        State::Normal,
        State::RootUnseen,
        State::Root,
        State::UnknownUnseen,
        State::Unknown,
        State::Effect,
        State::SingleUnseen,
        State::Single,
        State::Returned,
        State::Latched,
        State::Shelved,
        State::OutOfService,
        State::NotJudged,
        State::Missing,
    ];
}

const NONE: Modifier = Modifier::empty();
const BOLD: Modifier = Modifier::BOLD;
const DIM: Modifier = Modifier::DIM;
const UNDERLINED: Modifier = Modifier::UNDERLINED;
const REVERSED: Modifier = Modifier::REVERSED;

/// A colour in 24 bits, of 256, of sixteen.
type Hue = ((u8, u8, u8), u8, Color);

const ROOT: Hue = ((0xd5, 0x5e, 0x00), 166, Color::Red);
/// Orange; a darker one on a light field, where the original is hardly to be read.
const OVER: [Hue; 2] =
    [((0xe6, 0x9f, 0x00), 178, Color::Yellow), ((0x8f, 0x60, 0x00), 94, Color::Yellow)];
/// Sky blue; blue on a light field.
const MISSING: [Hue; 2] =
    [((0x56, 0xb4, 0xe9), 74, Color::Cyan), ((0x00, 0x72, 0xb2), 25, Color::Blue)];
const SHELVED: [Hue; 2] =
    [((0xcc, 0x79, 0xa7), 175, Color::Magenta), ((0x9b, 0x3f, 0x74), 132, Color::Magenta)];
/// Bluish green: not for what is well, only for what the data set knows.
const TRUTH: [Hue; 2] =
    [((0x00, 0x9e, 0x73), 36, Color::Green), ((0x00, 0x6b, 0x4e), 23, Color::Green)];

const fn grey(level: u8, of_256: u8, of_16: Color) -> Hue {
    ((level, level, level), of_256, of_16)
}

/// Greys of rules, labels and trends, from the one that stands back to the one that is read.
type Greys = [Hue; 3];

const ON_DARK: Greys = [
    grey(0x76, 243, Color::DarkGray),
    grey(0x94, 246, Color::DarkGray),
    grey(0xa8, 248, Color::Reset),
];
const ON_LIGHT: Greys = [
    grey(0x80, 244, Color::DarkGray),
    grey(0x62, 241, Color::DarkGray),
    grey(0x4e, 239, Color::Reset),
];
/// Legible on both, for an unknown background.
const ON_EITHER: Greys = [
    grey(0x76, 243, Color::DarkGray),
    grey(0x80, 244, Color::DarkGray),
    grey(0x80, 244, Color::Reset),
];

/// A field under the lane of an open root: a shade of the root's own hue.
const TINT: [Hue; 2] =
    [((0x3a, 0x26, 0x1c), 236, Color::Black), ((0xf3, 0xd9, 0xc6), 223, Color::White)];

/// Letters and field of the themes that bring their own field.
const DARK: [Hue; 2] = [grey(0xd0, 252, Color::White), grey(0x1c, 234, Color::Black)];
const PAPER: [Hue; 2] = [grey(0x1c, 234, Color::Black), grey(0xe4, 254, Color::White)];

impl Theme {
    /// The theme `choice` on `terminal`. `Mono` is made of attributes only, for terminals and people
    /// without colour.
    pub(crate) fn new(choice: ThemeChoice, terminal: Terminal) -> Self {
        let colour = |hue: Hue| terminal.depth.resolve(hue);
        let (light, [frame, label, trend]) = match (choice, terminal.light) {
            (ThemeChoice::Paper, _) | (ThemeChoice::Auto, Some(true)) => (true, ON_LIGHT),
            (ThemeChoice::Dark | ThemeChoice::Mono, _) | (ThemeChoice::Auto, Some(false)) => {
                (false, ON_DARK)
            }
            (ThemeChoice::Auto, None) => (false, ON_EITHER),
        };
        let on = |[dark, bright]: [Hue; 2]| Some(if light { bright } else { dark });
        let field = match choice {
            ThemeChoice::Dark => Some(DARK),
            ThemeChoice::Paper => Some(PAPER),
            ThemeChoice::Auto | ThemeChoice::Mono => None,
        };
        // The attributes beside a colour, and those that stand for it.
        let either = |hue: Option<Hue>, beside: Modifier, alone: Modifier| match hue {
            _ if choice == ThemeChoice::Mono => Style::new().add_modifier(alone),
            Some(hue) => Style::new().fg(colour(hue)).add_modifier(beside),
            None => Style::new().add_modifier(beside),
        };
        let style = |hue: Option<Hue>, both: Modifier| either(hue, both, both);
        Self {
            choice,
            terminal,
            field: field.map(|hues| hues.map(colour).into()),
            text: style(None, NONE),
            label: either(Some(label), NONE, DIM),
            frame: either(Some(frame), NONE, DIM),
            trend: style(Some(trend), NONE),
            strong: style(None, BOLD),
            beyond: style(on(OVER), BOLD),
            over: either(on(OVER), NONE, BOLD),
            ghost: style(on(OVER), DIM | UNDERLINED),
            missing: either(on(MISSING), NONE, UNDERLINED),
            truth: either(on(TRUTH), BOLD, BOLD | UNDERLINED),
            cursor: style(None, REVERSED),
            failure: style(Some(ROOT), BOLD | REVERSED),
            root: style(Some(ROOT), BOLD),
            root_unseen: style(Some(ROOT), BOLD | REVERSED),
            effect: either(None, BOLD, NONE),
            single: style(on(OVER), BOLD),
            single_unseen: style(on(OVER), BOLD | REVERSED),
            shelved: style(on(SHELVED), DIM),
            // Without colour, and on an unknown background, name and word show it.
            tint: match (choice, light, field) {
                (ThemeChoice::Mono, ..) | (ThemeChoice::Auto, _, None)
                    if terminal.light.is_none() =>
                {
                    Style::new()
                }
                (ThemeChoice::Mono, ..) => Style::new(),
                (_, true, _) => Style::new().bg(colour(TINT[1])),
                (_, false, _) => Style::new().bg(colour(TINT[0])),
            },
        }
    }

    /// The theme that the operator asked for, or the one that suits. `NO_COLOR` counts when it is not
    /// empty (no-color.org) and nothing else was asked for.
    pub(crate) fn choose(
        asked: Option<ThemeChoice>,
        ascii: bool,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let colourless = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
        let suits = if colourless { ThemeChoice::Mono } else { ThemeChoice::Auto };
        let mut terminal = Terminal::described_by(variable);
        terminal.ascii |= ascii;
        Self::new(asked.unwrap_or(suits), terminal)
    }

    /// The next one on the same terminal.
    pub(crate) fn next(&self) -> Self {
        let at = ThemeChoice::ALL.iter().position(|choice| *choice == self.choice).unwrap_or(0);
        Self::new(ThemeChoice::ALL[(at + 1) % ThemeChoice::ALL.len()], self.terminal)
    }

    /// Glyph, word and style of `state`.
    pub(crate) fn mark(&self, state: State) -> Badge {
        let (glyph, word, style) = match state {
            State::Normal => (" ", "", self.text),
            State::RootUnseen => (glyph::ROOT, "ROOT", self.root_unseen),
            State::Root => (glyph::ROOT, "ROOT", self.root),
            State::UnknownUnseen => (glyph::UNKNOWN, "ROOT ?", self.root_unseen),
            State::Unknown => (glyph::UNKNOWN, "ROOT ?", self.root),
            State::Effect => (glyph::EFFECT, "effect", self.effect),
            State::SingleUnseen => (glyph::SINGLE, "single", self.single_unseen),
            State::Single => (glyph::SINGLE, "single", self.single),
            State::Returned => (glyph::RETURNED, "returned", self.single),
            State::Latched => (glyph::LATCHED, "latched", self.single),
            State::Shelved => (glyph::SHELVED, "shelved", self.shelved),
            State::OutOfService => (glyph::OUT, "out of service", self.shelved),
            State::NotJudged => (glyph::NOT_JUDGED, "not judged", self.label),
            State::Missing => (glyph::MISSING, "missing", self.missing),
        };
        Badge { glyph, word, style }
    }

    /// How a key is named on this terminal.
    pub(crate) fn key(&self, chord: Chord) -> String {
        if self.terminal.ascii { chord.name() } else { chord.to_string() }
    }

    /// The last touch on a finished picture: the theme's own field, the terminal's own signs.
    pub(crate) fn finish(&self, buffer: &mut Buffer) {
        if let Some((letters, field)) = self.field {
            for cell in &mut buffer.content {
                if cell.fg == Color::Reset {
                    cell.fg = letters;
                }
                if cell.bg == Color::Reset {
                    cell.bg = field;
                }
            }
        }
        if self.terminal.ascii {
            glyph::plain(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn themes() -> Vec<Theme> {
        let mut themes = Vec::new();
        for choice in ThemeChoice::ALL {
            for depth in [Depth::Bits24, Depth::Colours256, Depth::Colours16] {
                for light in [None, Some(true), Some(false)] {
                    themes.push(Theme::new(choice, Terminal { depth, light, ascii: false }));
                }
            }
        }
        themes
    }

    #[test]
    fn no_two_states_look_the_same_in_any_theme_or_glyph_set() {
        for theme in themes() {
            for ascii in [false, true] {
                let mut seen = Vec::new();
                for state in State::ALL {
                    let mark = theme.mark(state);
                    let glyph = if ascii { glyph::ascii(mark.glyph) } else { mark.glyph };
                    assert!(!seen.contains(&(glyph, mark.style)), "{state:?} in {theme:?}");
                    seen.push((glyph, mark.style));
                }
            }
        }
    }

    #[test]
    fn only_what_is_open_and_not_acknowledged_is_solid() {
        for theme in themes() {
            for state in State::ALL {
                let unseen =
                    matches!(state, State::RootUnseen | State::UnknownUnseen | State::SingleUnseen);
                let mark = theme.mark(state);
                let solid = mark.style.add_modifier.contains(REVERSED);
                assert_eq!(solid, unseen, "{state:?} in {theme:?}");
                assert!(!unseen || !mark.word.is_empty());
            }
        }
    }

    #[test]
    fn without_colour_there_is_no_colour() {
        let theme = Theme::new(ThemeChoice::Mono, Terminal::default());
        for state in State::ALL {
            let style = theme.mark(state).style;
            assert_eq!((style.fg, style.bg), (None, None));
        }
        for style in [theme.label, theme.frame, theme.trend, theme.over, theme.truth, theme.ghost] {
            assert_eq!((style.fg, style.bg), (None, None));
        }
        assert_ne!(theme.over, theme.trend);
        assert_ne!(theme.ghost, theme.over);
        assert_eq!(theme.field, None);
    }

    #[test]
    fn a_theme_with_a_field_of_its_own_leaves_no_cell_to_the_terminal() {
        for choice in [ThemeChoice::Dark, ThemeChoice::Paper] {
            let theme = Theme::new(choice, Terminal::default());
            let mut buffer = Buffer::empty(ratatui::layout::Rect::new(0, 0, 8, 2));
            buffer.set_string(0, 0, "abc", theme.root_unseen);
            theme.finish(&mut buffer);
            assert!(buffer.content.iter().all(|c| c.fg != Color::Reset && c.bg != Color::Reset));
        }
    }

    #[test]
    fn what_is_asked_for_wins_over_the_environment() {
        let with = |asked, pairs: &'static [(&str, &str)]| {
            let variable = |name: &str| {
                pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            Theme::choose(asked, false, variable).choice
        };
        assert_eq!(with(None, &[]), ThemeChoice::Auto);
        assert_eq!(with(None, &[("NO_COLOR", "")]), ThemeChoice::Auto);
        assert_eq!(with(None, &[("NO_COLOR", "1")]), ThemeChoice::Mono);
        assert_eq!(with(Some(ThemeChoice::Paper), &[("NO_COLOR", "1")]), ThemeChoice::Paper);
    }

    #[test]
    fn a_key_steps_through_all_themes() {
        let first = Theme::new(ThemeChoice::Auto, Terminal::default());
        let mut theme = first;
        for _ in 0..ThemeChoice::ALL.len() {
            theme = theme.next();
        }
        assert_eq!(theme, first);
    }
}
