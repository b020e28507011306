//! A drawing that looks the same whatever the reader's fonts: every run is held to its cells, and the
//! blocks of trends are drawn as rectangles.

use std::fmt::Write;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use ratatui::text::Span;

use super::{Run, rows, runs};
use crate::console::glyph::BLOCKS;

const CELL: (u32, u32) = (9, 18);
/// From the top of a cell to the line that letters stand on.
const BASE: u32 = 14;
/// Letters and field where the picture leaves them to the terminal.
const LETTERS: &str = "#d0d0d0";
const FIELD: &str = "#1c1c1c";

/// The sixteen colours as most terminals have them.
const SIXTEEN: [&str; 16] = [
    "#000000", "#cd0000", "#00cd00", "#cdcd00", "#0000ee", "#cd00cd", "#00cdcd", "#e5e5e5",
    "#7f7f7f", "#ff0000", "#00ff00", "#ffff00", "#5c5cff", "#ff00ff", "#00ffff", "#ffffff",
];

pub(crate) fn write(picture: &Buffer) -> String {
    let width = u32::from(picture.area.width) * CELL.0;
    let height = u32::from(picture.area.height) * CELL.1;
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"ui-monospace, 'DejaVu Sans Mono', \
         Menlo, Consolas, monospace\" font-size=\"15\" xml:space=\"preserve\">"
    );
    let _ = writeln!(svg, "<rect width=\"{width}\" height=\"{height}\" fill=\"{FIELD}\"/>");
    for (y, row) in rows(picture).iter().enumerate() {
        for run in runs(row) {
            draw(&mut svg, &run, y as u32 * CELL.1);
        }
    }
    svg + "</svg>\n"
}

fn draw(svg: &mut String, run: &Run, y: u32) {
    let (letters, field) = colours(run.style);
    let (x, cells) = (u32::from(run.column) * CELL.0, u32::from(run.width) * CELL.0);
    if field != FIELD {
        rectangle(svg, x, y, cells, CELL.1, &field);
    }
    let mut rest = String::new();
    for (at, letter) in run.text.chars().enumerate() {
        let eighths = BLOCKS.iter().position(|block| block.starts_with(letter));
        if let Some(eighths) = eighths {
            let height = (eighths as u32 + 1) * CELL.1 / 8;
            rectangle(svg, x + at as u32 * CELL.0, y + CELL.1 - height, CELL.0, height, &letters);
            rest.push(' ');
        } else {
            rest.push(letter);
        }
    }
    for (column, piece) in pieces(&rest) {
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\" \
             fill=\"{letters}\"{}>{}</text>",
            x + u32::from(column) * CELL.0,
            y + BASE,
            u32::from(width(&piece)) * CELL.0,
            attributes(run.style),
            escaped(&piece)
        );
    }
}

/// The parts of a text with one space at most between two words, each with its column. Browsers leave
/// out other spaces and would stretch the letters over their cells.
fn pieces(text: &str) -> Vec<(u16, String)> {
    let mut pieces: Vec<(u16, String)> = Vec::new();
    let mut column = 0_u16;
    for word in text.split(' ') {
        if !word.is_empty() {
            match pieces.last_mut() {
                Some((at, piece)) if *at + width(piece) + 1 == column => {
                    piece.push(' ');
                    piece.push_str(word);
                }
                _ => pieces.push((column, word.to_owned())),
            }
        }
        column = column.saturating_add(width(word)).saturating_add(1);
    }
    pieces
}

/// Cells that a text takes.
fn width(text: &str) -> u16 {
    Span::raw(text).width().min(usize::from(u16::MAX)) as u16
}

fn rectangle(svg: &mut String, x: u32, y: u32, width: u32, height: u32, fill: &str) {
    let _ = writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\"/>"
    );
}
fn colours(cell: &Cell) -> (String, String) {
    let (letters, field) = (colour(cell.fg, LETTERS), colour(cell.bg, FIELD));
    if cell.modifier.contains(Modifier::REVERSED) { (field, letters) } else { (letters, field) }
}

fn attributes(cell: &Cell) -> String {
    let written = [
        (Modifier::BOLD, " font-weight=\"bold\""),
        (Modifier::DIM, " opacity=\"0.6\""),
        (Modifier::ITALIC, " font-style=\"italic\""),
        (Modifier::UNDERLINED, " text-decoration=\"underline\""),
    ];
    let written = written.into_iter().filter(|(attribute, _)| cell.modifier.contains(*attribute));
    written.map(|(_, text)| text).collect()
}

fn colour(colour: Color, unset: &str) -> String {
    const CUBE: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let hex = |r: u8, g: u8, b: u8| format!("#{r:02x}{g:02x}{b:02x}");
    match colour {
        Color::Reset => unset.to_owned(),
        Color::Rgb(r, g, b) => hex(r, g, b),
        Color::Indexed(index @ 232..) => {
            let grey = 8 + 10 * (index - 232);
            hex(grey, grey, grey)
        }
        Color::Indexed(index @ 16..) => {
            let step = |n: u8| CUBE[usize::from(n % 6)];
            let at = index - 16;
            hex(step(at / 36), step(at / 6), step(at))
        }
        Color::Indexed(index) => SIXTEEN[usize::from(index)].to_owned(),
        colour => SIXTEEN[usize::from(super::number(colour))].to_owned(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_where_a_browser_would_leave_spaces_out() {
        let text = "  S/b  0.00 of 1   µm ";
        let found = pieces(text);
        let expected = [(2, "S/b"), (7, "0.00 of 1"), (19, "µm")];
        assert_eq!(found, expected.map(|(at, text)| (at, text.to_owned())));
        assert!(pieces("   ").is_empty());
    }
}
