//! A drawing that looks the same whatever the reader's fonts: every run is held to its cells, and the
//! blocks of trends are drawn as rectangles.

use std::fmt::Write;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

use super::{Run, rows, runs};
use crate::console::glyph::BLOCKS;
use crate::console::view::pen::width;

const CELL: (u32, u32) = (9, 18);
/// From the top of a cell to the line that letters stand on.
const BASE: u32 = 14;
/// Letters and field where the picture leaves them to the terminal.
const LETTERS: &str = "#d0d0d0";
const FIELD: &str = "#1c1c1c";

/// What stands back.
const DIMMED: &str = " opacity=\"0.6\"";

/// The sixteen colours as most terminals have them.
const SIXTEEN: [&str; 16] = [
    "#000000", "#cd0000", "#00cd00", "#cdcd00", "#0000ee", "#cd00cd", "#00cdcd", "#e5e5e5",
    "#7f7f7f", "#ff0000", "#00ff00", "#ffff00", "#5c5cff", "#ff00ff", "#00ffff", "#ffffff",
];

pub(crate) fn write(picture: &Buffer) -> String {
    let width = u32::from(picture.area.width) * CELL.0;
    let height = u32::from(picture.area.height) * CELL.1;
    let field = field(picture);
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"ui-monospace, 'DejaVu Sans Mono', \
         Menlo, Consolas, monospace\" font-size=\"15\" \
         shape-rendering=\"crispEdges\" xml:space=\"preserve\">"
    );
    let _ = writeln!(svg, "<rect width=\"{width}\" height=\"{height}\" fill=\"{field}\"/>");
    for (y, row) in rows(picture).iter().enumerate() {
        for run in runs(row) {
            draw(&mut svg, &run, y as u32 * CELL.1, &field);
        }
    }
    svg + "</svg>\n"
}

/// The field that most cells have: it is drawn once, below everything.
fn field(picture: &Buffer) -> String {
    let mut known: Vec<(Color, usize)> = Vec::new();
    for cell in &picture.content {
        match known.iter_mut().find(|(colour, _)| *colour == cell.bg) {
            Some((_, cells)) => *cells += 1,
            None => known.push((cell.bg, 1)),
        }
    }
    let most = known.iter().max_by_key(|(_, cells)| *cells).map_or(Color::Reset, |most| most.0);
    colour(most, FIELD)
}

fn draw(svg: &mut String, run: &Run, y: u32, page: &str) {
    let (letters, field) = colours(run.style);
    let (x, cells) = (u32::from(run.column) * CELL.0, u32::from(run.width) * CELL.0);
    if field != page {
        rectangle(svg, x, y, cells, CELL.1, (&field, ""));
    }
    let attributes = attributes(run.style);
    let fill = (letters.as_str(), if attributes.contains("opacity") { DIMMED } else { "" });
    let mut rest = String::new();
    // Neighbours of one height are one rectangle: no seams, and a smaller file.
    let mut block: Option<(u32, u32, (u32, u32))> = None;
    let mut dots = String::new();
    for (at, letter) in run.text.chars().enumerate() {
        let x = x + at as u32 * CELL.0;
        let filled = filled(letter);
        match (&mut block, filled) {
            (Some((from, wide, same)), Some(rows)) if *same == rows && *from + *wide == x => {
                *wide += CELL.0;
            }
            _ => {
                if let Some((x, wide, (top, tall))) = block.take() {
                    rectangle(svg, x, y + top, wide, tall, fill);
                }
                block = filled.map(|rows| (x, CELL.0, rows));
            }
        }
        let is_braille = braille(&mut dots, letter, x, y);
        rest.push(if filled.is_some() || is_braille { ' ' } else { letter });
    }
    if let Some((x, wide, (top, tall))) = block {
        rectangle(svg, x, y + top, wide, tall, fill);
    }
    if !dots.is_empty() {
        let _ = writeln!(svg, "<path d=\"{dots}\" fill=\"{letters}\"{}/>", fill.1);
    }
    for (column, piece) in pieces(&rest) {
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\" \
             fill=\"{letters}\"{}>{}</text>",
            x + u32::from(column) * CELL.0,
            y + BASE,
            u32::from(width(&piece)) * CELL.0,
            attributes,
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

/// From the top of its cell, and how tall, a block is; nothing for a letter.
fn filled(letter: char) -> Option<(u32, u32)> {
    if letter == '▀' {
        return Some((0, CELL.1 / 2));
    }
    let eighths = BLOCKS.iter().position(|block| block.starts_with(letter))? as u32 + 1;
    let tall = eighths * CELL.1 / 8;
    Some((CELL.1 - tall, tall))
}

/// Column and row of every bit of a braille sign: down the left half, then the right one; the last row
/// comes last.
const PLACES: [(u32, u32); 8] = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)];

/// Adds the dots of a braille sign to a path. Says whether it is one.
fn braille(path: &mut String, letter: char, x: u32, y: u32) -> bool {
    let Some(dots) = u32::from(letter).checked_sub(0x2800).filter(|dots| *dots < 0x100) else {
        return false;
    };
    for (bit, (column, row)) in PLACES.iter().enumerate() {
        if dots & (1 << bit) != 0 {
            let (x, y) = (x + 1 + column * 4, y + 1 + row * CELL.1 / 4);
            let _ = write!(path, "M{x} {y}h3v3h-3z");
        }
    }
    true
}

fn rectangle(svg: &mut String, x: u32, y: u32, width: u32, height: u32, fill: (&str, &str)) {
    let (colour, more) = fill;
    let _ = writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{colour}\"{more}/>"
    );
}
fn colours(cell: &Cell) -> (String, String) {
    let (letters, field) = (colour(cell.fg, LETTERS), colour(cell.bg, FIELD));
    if cell.modifier.contains(Modifier::REVERSED) { (field, letters) } else { (letters, field) }
}

fn attributes(cell: &Cell) -> String {
    let written = [
        (Modifier::BOLD, " font-weight=\"bold\""),
        (Modifier::DIM, DIMMED),
        (Modifier::ITALIC, " font-style=\"italic\""),
        (Modifier::UNDERLINED, " text-decoration=\"underline\""),
    ];
    let written = written.into_iter().filter(|(attribute, _)| cell.modifier.contains(*attribute));
    written.map(|(_, text)| text).collect()
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all other colours have a number")]
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
