//! What each part of the screen looks like. Grey while all is calm; nothing is said by colour alone.
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

/// What the operator can choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Choice {
    /// The terminal's own background
    Auto,
    Dark,
    /// A light grey field, for lit rooms
    Paper,
    /// No colour: bold, dim, underlined, reversed
    Mono,
}

impl Choice {
    /// All, in the order that a key steps through.
    pub(crate) const ALL: [Choice; 4] = [Choice::Auto, Choice::Dark, Choice::Paper, Choice::Mono];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Choice::Auto => "auto",
            Choice::Dark => "dark",
            Choice::Paper => "paper",
            Choice::Mono => "mono",
        }
    }
}

/// The styles of one kind of terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Theme {
    pub(crate) choice: Choice,
    /// What the terminal can do.
    pub(crate) terminal: Terminal,
    /// The field itself, where it is not the terminal's own.
    field: Option<(Color, Color)>,
    pub(crate) text: Style,
    /// What is there to be found, not to be read: labels, units.
    pub(crate) label: Style,
    pub(crate) frame: Style,
    /// A trend that stays on its scale, below its threshold.
    pub(crate) trend: Style,
    /// Names and the state of the replay.
    pub(crate) strong: Style,
    /// Beyond its scale; always with an arrow.
    pub(crate) beyond: Style,
    /// Above its threshold τ, in a trend or as a flag.
    pub(crate) over: Style,
    /// What a setting that is not yet committed would show.
    pub(crate) ghost: Style,
    /// Missing, stale, stuck or late; always with a glyph and a word.
    pub(crate) missing: Style,
    /// What the data set itself knows; always with a glyph and a word.
    pub(crate) truth: Style,
    /// The moment looked at, the chosen row.
    pub(crate) cursor: Style,
    /// A failure; always with a word.
    pub(crate) failure: Style,
    /// Where trouble started, seen by an operator or over.
    pub(crate) root: Style,
    /// The same, not yet seen by anybody.
    pub(crate) root_unseen: Style,
    /// Who only feels it.
    pub(crate) effect: Style,
    /// Trouble that nobody else feels, or that nobody can place.
    pub(crate) single: Style,
    /// The same, not yet seen by anybody.
    pub(crate) single_unseen: Style,
    pub(crate) shelved: Style,
}

/// What a client or an incident can be, each with glyph, word and style of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum State {
    Normal,
    /// Where trouble started; nobody has seen it.
    RootUnseen,
    /// Where trouble started; seen.
    Root,
    /// Trouble, and nobody knows where it started; nobody has seen it.
    UnknownUnseen,
    Unknown,
    /// Feels what started elsewhere.
    Effect,
    /// Trouble that nobody else feels; nobody has seen it.
    SingleUnseen,
    Single,
    /// Over before anybody saw it.
    Returned,
    /// A change that stays.
    Latched,
    /// Silenced for a time.
    Shelved,
    /// Silenced until put back.
    OutOfService,
    Missing,
}

/// How a state is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) glyph: &'static str,
    /// A word or two.
    pub(crate) word: &'static str,
    /// The style of both.
    pub(crate) style: Style,
}

impl State {
    #[cfg(test)]
    pub(crate) const ALL: [State; 13] = [
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
        State::Missing,
    ];
}

const BOLD: Modifier = Modifier::BOLD;
const DIM: Modifier = Modifier::DIM;
const UNDERLINED: Modifier = Modifier::UNDERLINED;
const REVERSED: Modifier = Modifier::REVERSED;

/// A colour in 24 bits, of 256, of sixteen.
type Hue = ((u8, u8, u8), u8, Color);

const ROOT: Hue = ((0xd5, 0x5e, 0x00), 166, Color::Red);
/// Orange; a darker one on a light field, where the original is hardly to be read.
const OVER: Hue = ((0xe6, 0x9f, 0x00), 178, Color::Yellow);
const OVER_ON_LIGHT: Hue = ((0x8f, 0x60, 0x00), 94, Color::Yellow);
/// Sky blue; blue on a light field.
const MISSING: Hue = ((0x56, 0xb4, 0xe9), 74, Color::Cyan);
const MISSING_ON_LIGHT: Hue = ((0x00, 0x72, 0xb2), 25, Color::Blue);
const SHELVED: Hue = ((0xcc, 0x79, 0xa7), 175, Color::Magenta);
const SHELVED_ON_LIGHT: Hue = ((0x9b, 0x3f, 0x74), 132, Color::Magenta);
/// Bluish green: not for what is well, only for what the data set knows.
const TRUTH: Hue = ((0x00, 0x9e, 0x73), 36, Color::Green);
const TRUTH_ON_LIGHT: Hue = ((0x00, 0x6b, 0x4e), 23, Color::Green);

/// Greys from the one that stands back to the one that is read.
struct Greys {
    frame: Hue,
    label: Hue,
    trend: Hue,
}

const ON_DARK: Greys = Greys {
    frame: ((0x76, 0x76, 0x76), 243, Color::DarkGray),
    label: ((0x94, 0x94, 0x94), 246, Color::DarkGray),
    trend: ((0xa8, 0xa8, 0xa8), 248, Color::Reset),
};
const ON_LIGHT: Greys = Greys {
    frame: ((0x80, 0x80, 0x80), 244, Color::DarkGray),
    label: ((0x62, 0x62, 0x62), 241, Color::DarkGray),
    trend: ((0x4e, 0x4e, 0x4e), 239, Color::Reset),
};
/// Legible on both, for a background that nobody told.
const ON_EITHER: Greys = Greys {
    frame: ((0x76, 0x76, 0x76), 243, Color::DarkGray),
    label: ((0x80, 0x80, 0x80), 244, Color::DarkGray),
    trend: ((0x80, 0x80, 0x80), 244, Color::Reset),
};

/// Letters and field of the themes that bring their own field.
const DARK: (Hue, Hue) =
    (((0xd0, 0xd0, 0xd0), 252, Color::White), ((0x1c, 0x1c, 0x1c), 234, Color::Black));
const PAPER: (Hue, Hue) =
    (((0x1c, 0x1c, 0x1c), 234, Color::Black), ((0xe4, 0xe4, 0xe4), 254, Color::White));

impl Theme {
    /// The theme `choice` on `terminal`.
    pub(crate) fn new(choice: Choice, terminal: Terminal) -> Self {
        let colour = |hue: Hue| terminal.depth.resolve(hue);
        let (light, greys) = match (choice, terminal.light) {
            (Choice::Mono, _) => return Self::attributes(terminal),
            (Choice::Paper, _) | (Choice::Auto, Some(true)) => (true, ON_LIGHT),
            (Choice::Dark, _) | (Choice::Auto, Some(false)) => (false, ON_DARK),
            (Choice::Auto, None) => (false, ON_EITHER),
        };
        let on =
            |dark: Hue, bright: Hue| Style::new().fg(colour(if light { bright } else { dark }));
        let (over, missing) = (on(OVER, OVER_ON_LIGHT), on(MISSING, MISSING_ON_LIGHT));
        let (shelved, truth) = (on(SHELVED, SHELVED_ON_LIGHT), on(TRUTH, TRUTH_ON_LIGHT));
        let root = Style::new().fg(colour(ROOT)).add_modifier(BOLD);
        let field = match choice {
            Choice::Dark => Some((colour(DARK.0), colour(DARK.1))),
            Choice::Paper => Some((colour(PAPER.0), colour(PAPER.1))),
            Choice::Auto | Choice::Mono => None,
        };
        Self {
            choice,
            terminal,
            field,
            text: Style::new(),
            label: Style::new().fg(colour(greys.label)),
            frame: Style::new().fg(colour(greys.frame)),
            trend: Style::new().fg(colour(greys.trend)),
            strong: Style::new().add_modifier(BOLD),
            beyond: over.add_modifier(BOLD),
            over,
            ghost: over.add_modifier(DIM).add_modifier(UNDERLINED),
            missing,
            truth: truth.add_modifier(BOLD),
            cursor: Style::new().add_modifier(REVERSED),
            failure: root.add_modifier(REVERSED),
            root,
            root_unseen: root.add_modifier(REVERSED),
            effect: Style::new().add_modifier(BOLD),
            single: over.add_modifier(BOLD),
            single_unseen: over.add_modifier(BOLD).add_modifier(REVERSED),
            shelved: shelved.add_modifier(DIM),
        }
    }

    /// Made of attributes only, for terminals and people without colour.
    fn attributes(terminal: Terminal) -> Self {
        let with = |modifiers: Modifier| Style::new().add_modifier(modifiers);
        Self {
            choice: Choice::Mono,
            terminal,
            field: None,
            text: Style::new(),
            label: with(DIM),
            frame: with(DIM),
            trend: Style::new(),
            strong: with(BOLD),
            beyond: with(BOLD),
            over: with(BOLD),
            ghost: with(DIM | UNDERLINED),
            missing: with(UNDERLINED),
            truth: with(BOLD | UNDERLINED),
            cursor: with(REVERSED),
            failure: with(BOLD | REVERSED),
            root: with(BOLD),
            root_unseen: with(BOLD | REVERSED),
            effect: Style::new(),
            single: with(BOLD),
            single_unseen: with(BOLD | REVERSED),
            shelved: with(DIM),
        }
    }

    /// The theme that the operator asked for, or the one that suits. `NO_COLOR` counts when it is not
    /// empty (no-color.org) and nothing else was asked for.
    pub(crate) fn choose(
        asked: Option<Choice>,
        ascii: bool,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let colourless = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
        let suits = if colourless { Choice::Mono } else { Choice::Auto };
        let mut terminal = Terminal::described_by(variable);
        terminal.ascii |= ascii;
        Self::new(asked.unwrap_or(suits), terminal)
    }

    /// The next one on the same terminal.
    pub(crate) fn next(&self) -> Self {
        let at = Choice::ALL.iter().position(|choice| *choice == self.choice).unwrap_or(0);
        Self::new(Choice::ALL[(at + 1) % Choice::ALL.len()], self.terminal)
    }

    /// How `state` is told.
    pub(crate) fn mark(&self, state: State) -> Mark {
        let (glyph, word, style) = match state {
            State::Normal => (" ", "", self.text),
            State::RootUnseen => (glyph::ROOT, "ROOT", self.root_unseen),
            State::Root => (glyph::ROOT, "ROOT", self.root),
            State::UnknownUnseen => (glyph::UNKNOWN, "ROOT ?", self.root_unseen),
            State::Unknown => (glyph::UNKNOWN, "ROOT ?", self.root),
            State::Effect => (glyph::EFFECT, "effect", self.effect),
            State::SingleUnseen => (glyph::SINGLE, "single", self.single_unseen),
            State::Single => (glyph::SINGLE, "single", self.single),
            State::Returned => (glyph::RETURNED, "returned", self.single_unseen),
            State::Latched => (glyph::LATCHED, "latched", self.single_unseen),
            State::Shelved => (glyph::SHELVED, "shelved", self.shelved),
            State::OutOfService => (glyph::OUT, "out of service", self.shelved),
            State::Missing => (glyph::MISSING, "missing", self.missing),
        };
        Mark { glyph, word, style }
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
        for choice in Choice::ALL {
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
    fn what_nobody_has_seen_is_reversed_in_every_theme() {
        for theme in themes() {
            for state in [
                State::RootUnseen,
                State::UnknownUnseen,
                State::SingleUnseen,
                State::Returned,
                State::Latched,
            ] {
                let mark = theme.mark(state);
                assert!(mark.style.add_modifier.contains(REVERSED), "{state:?} in {theme:?}");
                assert!(!mark.word.is_empty());
            }
        }
    }

    #[test]
    fn without_colour_there_is_no_colour() {
        let theme = Theme::new(Choice::Mono, Terminal::default());
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
        for choice in [Choice::Dark, Choice::Paper] {
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
        assert_eq!(with(None, &[]), Choice::Auto);
        assert_eq!(with(None, &[("NO_COLOR", "")]), Choice::Auto);
        assert_eq!(with(None, &[("NO_COLOR", "1")]), Choice::Mono);
        assert_eq!(with(Some(Choice::Paper), &[("NO_COLOR", "1")]), Choice::Paper);
    }

    #[test]
    fn a_key_steps_through_all_themes() {
        let first = Theme::new(Choice::Auto, Terminal::default());
        let mut theme = first;
        for _ in 0..Choice::ALL.len() {
            theme = theme.next();
        }
        assert_eq!(theme, first);
    }
}
