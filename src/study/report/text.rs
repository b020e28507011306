//! A report as text for a terminal of a given width.

use std::fmt::Write as _;

use super::{Report, Table, plot};

/// Columns between two columns of a table.
const GUTTER: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Page {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether charts are drawn.
    pub charts: bool,
}

/// The whole report.
pub(crate) fn render(report: &Report, page: Page) -> String {
    let mut out = String::new();
    put(&mut out, &format!("{}: {}", report.study, report.title));
    put(&mut out, &format!("$ {}", report.command));
    for table in &report.tables {
        out.push('\n');
        put_table(&mut out, table, page.width);
    }
    if page.charts {
        for chart in &report.charts {
            out.push('\n');
            out.push_str(&plot::draw(chart, page.width));
        }
    }
    if !report.reading.is_empty() {
        out.push('\n');
    }
    for sentence in &report.reading {
        put_wrapped(&mut out, sentence, page.width, "");
    }
    out
}

fn put(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

/// One table; broken into several with the same key columns where it is too wide.
fn put_table(out: &mut String, table: &Table, width: usize) {
    if !table.title.is_empty() {
        put_wrapped(out, &table.title, width, "");
    }
    let widths: Vec<usize> = (0..table.headings.len()).map(|c| column_width(table, c)).collect();
    let keys = table.keys.min(widths.len());
    let taken: usize = widths[..keys].iter().map(|w| w + GUTTER).sum();
    let mut from = keys;
    loop {
        let mut until = from;
        let mut used = taken;
        // At least one column a block, however narrow the terminal is.
        while until < widths.len() && (until == from || used + widths[until] <= width) {
            used += widths[until] + GUTTER;
            until += 1;
        }
        let shown: Vec<usize> = (0..keys).chain(from..until).collect();
        put_block(out, table, &widths, &shown);
        from = until;
        if from >= widths.len() {
            break;
        }
        out.push('\n');
    }
    for note in &table.notes {
        put_wrapped(out, note, width, "  ");
    }
}

fn put_block(out: &mut String, table: &Table, widths: &[usize], shown: &[usize]) {
    let is_words =
        |c: usize| table.lines.iter().any(|line| line.get(c).is_some_and(|cell| cell.is_words));
    let line = |cell: &dyn Fn(usize) -> String| {
        let mut text = String::new();
        for &c in shown {
            let (cell, width) = (cell(c), widths[c]);
            let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
            let gutter = " ".repeat(GUTTER);
            let _ = if is_words(c) {
                write!(text, "{cell}{pad}{gutter}")
            } else {
                write!(text, "{pad}{cell}{gutter}")
            };
        }
        text
    };
    put(out, &line(&|c| table.headings[c].clone()));
    put(out, &line(&|c| "─".repeat(widths[c])));
    for (i, cells) in table.lines.iter().enumerate() {
        let is_new_group = table.keys > 1 && i > 0 && table.lines[i - 1].first() != cells.first();
        if is_new_group {
            out.push('\n');
        }
        put(out, &line(&|c| cells.get(c).map_or_else(String::new, |cell| cell.text.clone())));
    }
}

fn column_width(table: &Table, column: usize) -> usize {
    let cells = table.lines.iter().filter_map(|line| line.get(column));
    let width = |text: &str| text.chars().count();
    cells.map(|cell| width(&cell.text)).fold(width(&table.headings[column]), usize::max)
}

/// Words broken between lines of at most `width` columns; lines after the first are indented.
fn put_wrapped(out: &mut String, text: &str, width: usize, indent: &str) {
    let mut line = String::from(indent);
    for word in text.split_whitespace() {
        let is_empty = line.trim().is_empty();
        if !is_empty && line.chars().count() + 1 + word.chars().count() > width {
            put(out, &line);
            line = String::from(indent);
        }
        if !line.trim().is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    put(out, &line);
}
