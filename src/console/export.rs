//! A picture as a file: plain text, text with its styles, or a drawing for a page.

use std::fmt::Write;

use clap::ValueEnum;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::Color;
use ratatui::text::Span;

mod ansi;
mod svg;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    /// Characters and the sequences that style them
    Ansi,
    Svg,
}

impl Format {
    pub(crate) fn ending(self) -> &'static str {
        match self {
            Format::Text => "txt",
            Format::Ansi => "ansi",
            Format::Svg => "svg",
        }
    }
}

/// `picture` in `format`, ending with a line break.
pub(crate) fn write(picture: &Buffer, format: Format) -> String {
    match format {
        Format::Text => text(picture),
        Format::Ansi => ansi::write(picture),
        Format::Svg => svg::write(picture),
    }
}

fn text(picture: &Buffer) -> String {
    let mut text = String::new();
    for row in rows(picture) {
        let line: String = row.iter().map(|(_, cell)| cell.symbol()).collect();
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// The cells of every row with their columns; what a wide character covers is left out.
fn rows(picture: &Buffer) -> Vec<Vec<(u16, &Cell)>> {
    let width = usize::from(picture.area.width).max(1);
    let mut rows = Vec::new();
    for cells in picture.content.chunks(width) {
        let mut row = Vec::new();
        let mut free = 0;
        for (column, cell) in cells.iter().enumerate().filter(|(_, cell)| !cell.symbol().is_empty())
        {
            if column >= free {
                free = column + Span::raw(cell.symbol()).width().max(1);
                row.push((column as u16, cell));
            }
        }
        rows.push(row);
    }
    rows
}

fn number(colour: Color) -> u8 {
    match colour {
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 8,
        Color::LightRed => 9,
        Color::LightGreen => 10,
        Color::LightYellow => 11,
        Color::LightBlue => 12,
        Color::LightMagenta => 13,
        Color::LightCyan => 14,
        Color::White => 15,
        Color::Black | Color::Reset | Color::Rgb(..) | Color::Indexed(_) => 0,
    }
}

/// Neighbours of one style, as one text with its column and the columns it takes.
struct Run<'a> {
    column: u16,
    width: u16,
    text: String,
    style: &'a Cell,
}

fn runs<'a>(row: &[(u16, &'a Cell)]) -> Vec<Run<'a>> {
    let mut runs: Vec<Run<'a>> = Vec::new();
    for (column, cell) in row {
        let width = Span::raw(cell.symbol()).width().max(1) as u16;
        match runs.last_mut() {
            Some(run) if run.style.style() == cell.style() => {
                run.text.push_str(cell.symbol());
                run.width += width;
            }
            _ => {
                let text = cell.symbol().to_owned();
                runs.push(Run { column: *column, width, text, style: cell });
            }
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use ratatui::style::{Modifier, Style};

    use super::*;

    fn picture() -> Buffer {
        let mut picture = Buffer::empty(Rect::new(0, 0, 8, 2));
        let root = Style::new().fg(Color::Rgb(0xd5, 0x5e, 0)).add_modifier(Modifier::REVERSED);
        picture.set_string(0, 0, "▲ P<1", root);
        picture.set_string(0, 1, "水 ▄", Style::new().fg(Color::Indexed(178)));
        picture
    }

    #[test]
    fn text_is_the_characters_and_nothing_else() {
        assert_eq!(write(&picture(), Format::Text), "▲ P<1\n水 ▄\n");
    }

    #[test]
    fn ansi_styles_each_run_and_leaves_nothing_on() {
        assert_eq!(
            write(&picture(), Format::Ansi),
            "\x1b[0;7;38;2;213;94;0m▲ P<1\x1b[0m\n\x1b[0;38;5;178m水 ▄\x1b[0m\n"
        );
    }

    #[test]
    fn a_drawing_is_well_formed_and_holds_the_text() {
        let svg = write(&picture(), Format::Svg);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
        assert!(svg.contains("▲ P&lt;1") && svg.contains("#d55e00") && svg.contains("水"), "{svg}");
        assert!(!svg.contains('▄'), "a block is drawn, not left to a font: {svg}");
    }

    #[test]
    fn an_empty_picture_is_empty() {
        let picture = Buffer::empty(Rect::new(0, 0, 0, 0));
        assert_eq!(write(&picture, Format::Text), "");
        assert!(write(&picture, Format::Svg).ends_with("</svg>\n"));
    }
}
