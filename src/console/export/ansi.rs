//! Text with the sequences that style it, as `cat` shows it.

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

use super::{rows, runs};

const ATTRIBUTES: [(Modifier, &str); 5] = [
    (Modifier::BOLD, ";1"),
    (Modifier::DIM, ";2"),
    (Modifier::ITALIC, ";3"),
    (Modifier::UNDERLINED, ";4"),
    (Modifier::REVERSED, ";7"),
];

/// The whole picture; blanks without a style at the end of a line are left out.
pub(crate) fn write(picture: &Buffer) -> String {
    let mut text = String::new();
    for row in rows(picture) {
        let mut runs = runs(&row);
        if runs.last().is_some_and(|run| codes(run.style).is_empty() && run.text.trim().is_empty())
        {
            runs.pop();
        }
        for run in runs {
            match codes(run.style) {
                codes if codes.is_empty() => text += &run.text,
                codes => text.extend(["\x1b[0", &codes, "m", &run.text, "\x1b[0m"]),
            }
        }
        text.push('\n');
    }
    text
}

fn codes(cell: &Cell) -> String {
    let attributes = ATTRIBUTES.iter().filter(|(attribute, _)| cell.modifier.contains(*attribute));
    let attributes: String = attributes.map(|(_, code)| *code).collect();
    format!("{attributes}{}{}", colour(cell.fg, 30), colour(cell.bg, 40))
}

/// `base` is 30 for letters, 40 for the field behind them.
#[expect(clippy::wildcard_enum_match_arm, reason = "all other colours have a number")]
fn colour(colour: Color, base: u8) -> String {
    let named = |number: u8| match number {
        0..8 => format!(";{}", base + number),
        _ => format!(";{}", base + 60 + number - 8),
    };
    match colour {
        Color::Reset => String::new(),
        Color::Rgb(r, g, b) => format!(";{};2;{r};{g};{b}", base + 8),
        Color::Indexed(index) => format!(";{};5;{index}", base + 8),
        colour => named(super::number(colour)),
    }
}
