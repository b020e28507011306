//! Charts drawn with characters.
//!
//! ```text
//! F1                          rate
//!    1 ┤⠉⠉a⠒⠤⣀                evidence  ████████████████████▍ 0.97 ±0.01
//!  0.5 ┤   ⠉⠒b                paper     █████▊ 0.27
//!    0 ┤
//!      └──────
//!      75     97.5
//! ```

use std::fmt::Write as _;

use super::scale::{Scale, short};
use super::{Axis, Bar, Chart, Drawing, Figure, Series};

/// Rows of a line chart.
const HEIGHT: usize = 12;

/// Marks of series where they run.
const MARKS: [char; 10] = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'];

/// A chart in `width` columns.
pub(crate) fn draw(chart: &Chart, width: usize) -> String {
    let mut out = format!("{}\n", chart.title);
    match &chart.drawing {
        Drawing::Lines { x, y, series } => lines(&mut out, width, (x, y), series),
        Drawing::Bars { value, bars } => draw_bars(&mut out, width, value, bars),
        Drawing::Matrix { names, values } => matrix(&mut out, names, values),
    }
    out
}

/// Dots of a braille cell, from the top left downwards, then the right column.
const DOTS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

struct Canvas {
    columns: usize,
    cells: Vec<u32>,
    marks: Vec<Option<char>>,
}

impl Canvas {
    fn new(columns: usize) -> Self {
        Self { columns, cells: vec![0; columns * HEIGHT], marks: vec![None; columns * HEIGHT] }
    }

    /// The dot at a place, both from 0 to 1 and y upwards.
    fn dot(&self, (x, y): (f64, f64)) -> (usize, usize) {
        let column = (x * (2 * self.columns - 1) as f64).round() as usize;
        let row = ((1.0 - y) * (4 * HEIGHT - 1) as f64).round() as usize;
        (column, row)
    }

    fn set(&mut self, place: (f64, f64)) {
        let (column, row) = self.dot(place);
        self.cells[row / 4 * self.columns + column / 2] |= DOTS[column % 2][row % 4];
    }

    fn join(&mut self, from: (f64, f64), to: (f64, f64)) {
        let (a, b) = (self.dot(from), self.dot(to));
        let steps = a.0.abs_diff(b.0).max(a.1.abs_diff(b.1)).max(1);
        for i in 0..=steps {
            let part = i as f64 / steps as f64;
            self.set((from.0 + (to.0 - from.0) * part, from.1 + (to.1 - from.1) * part));
        }
    }

    fn mark(&mut self, place: (f64, f64), mark: char) {
        let (column, row) = self.dot(place);
        self.marks[row / 4 * self.columns + column / 2].get_or_insert(mark);
    }

    fn row(&self, row: usize) -> String {
        let cells = row * self.columns..(row + 1) * self.columns;
        let character = |cell: usize| match (self.marks[cell], self.cells[cell]) {
            (Some(mark), _) => mark,
            (None, 0) => ' ',
            (None, dots) => char::from_u32(0x2800 + dots).unwrap_or(' '),
        };
        cells.map(character).collect()
    }
}

fn lines(out: &mut String, width: usize, (x, y): (&Axis, &Axis), series: &[Series]) {
    let points = || series.iter().flat_map(|s| s.points.iter());
    let scale_x = Scale::between(x, points().map(|p| p.0));
    let scale_y = Scale::over(y, points().map(|p| p.1));
    let ticks = scale_y.ticks();
    let margin = ticks.iter().map(|t| short(*t).chars().count()).max().unwrap_or(1);
    let mut canvas = Canvas::new(width.saturating_sub(margin + 2).clamp(8, 100));
    for (s, mark) in series.iter().zip(MARKS.into_iter().cycle()) {
        let place = |p: &(f64, f64)| Some((scale_x.place(p.0)?, scale_y.place(p.1)?));
        let places: Vec<_> = s.points.iter().map(place).collect();
        for pair in places.windows(2) {
            if let [Some(from), Some(to)] = pair {
                canvas.join(*from, *to);
            }
        }
        let seen: Vec<_> = places.into_iter().flatten().collect();
        for place in &seen {
            canvas.set(*place);
        }
        if series.len() > 1 {
            for place in seen.iter().step_by(seen.len().div_ceil(8).max(1)) {
                canvas.mark(*place, mark);
            }
        }
    }
    let _ = writeln!(out, "{}", y.label);
    for row in 0..HEIGHT {
        let tick = ticks.iter().find(|t| scale_y.place(**t).is_some_and(|p| row_of(p) == row));
        let label = tick.map(|t| short(*t)).unwrap_or_default();
        let edge = if tick.is_some() { '┤' } else { '│' };
        let _ =
            writeln!(out, "{}", format!("{label:>margin$} {edge}{}", canvas.row(row)).trim_end());
    }
    let _ = writeln!(out, "{:margin$} └{}", "", "─".repeat(canvas.columns));
    x_labels(out, margin + 2, canvas.columns, x, scale_x);
    if series.len() > 1 {
        let legend: Vec<String> = series
            .iter()
            .zip(MARKS.into_iter().cycle())
            .map(|(s, mark)| format!("{mark} {}", s.name))
            .collect();
        let _ = writeln!(out, "{:margin$}  {}", "", legend.join("   "));
    }
}

fn row_of(place: f64) -> usize {
    (((1.0 - place) * (4 * HEIGHT - 1) as f64).round() as usize) / 4
}

fn x_labels(out: &mut String, margin: usize, columns: usize, axis: &Axis, scale: Scale) {
    let mut line: Vec<char> = vec![' '; margin + columns];
    let mut free = 0;
    for tick in scale.ticks() {
        let text: Vec<char> = short(tick).chars().collect();
        let Some(place) = scale.place(tick) else { continue };
        let middle = margin + (place * (columns - 1) as f64).round() as usize;
        let start = middle.saturating_sub(text.len() / 2).min(margin + columns - text.len());
        if start >= free {
            free = start + text.len() + 1;
            line[start..start + text.len()].copy_from_slice(&text);
        }
    }
    let line: String = line.into_iter().collect();
    let _ = writeln!(out, "{}  {}", line.trim_end(), axis.label);
}

/// Eighths of a block.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

fn draw_bars(out: &mut String, width: usize, axis: &Axis, bars: &[Bar]) {
    let names = bars.iter().map(|bar| bar.name.chars().count()).max().unwrap_or(0);
    let scale = Scale::from_zero(bars.iter().filter_map(|bar| bar.value.map(|v| v.mean)));
    let room = width.saturating_sub(names + 14).clamp(8, 60);
    let _ = writeln!(out, "{}", axis.label);
    for bar in bars {
        let pad = names - bar.name.chars().count();
        let length = bar.value.and_then(|v| scale.place(v.mean)).unwrap_or(0.0);
        let eighths = (length * (8 * room) as f64).round() as usize;
        let block = format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8]);
        let value = Figure::Spread(bar.value);
        let _ = writeln!(out, "{}{:pad$}  {block} {value}", bar.name, "");
    }
}

/// Darker is stronger; the sign stands with the number.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

fn matrix(out: &mut String, names: &[String], values: &[f64]) {
    let n = names.len();
    let margin = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let _ = write!(out, "{:margin$}", "");
    for name in names {
        let _ = write!(out, "{name:>8}");
    }
    out.push('\n');
    for (name, row) in names.iter().zip(values.chunks(n.max(1))) {
        let _ = write!(out, "{name}{:1$}", "", margin - name.chars().count());
        for v in row {
            let _ = if v.is_nan() {
                write!(out, "{:>8}", "–")
            } else {
                let shade = SHADES[(v.abs().min(1.0) * 4.0).round() as usize];
                write!(out, " {shade}{v:>6.2}")
            };
        }
        out.push('\n');
    }
}
