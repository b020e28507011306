//! A report as one HTML page: styles and drawings within it, no script, nothing to be fetched.

use std::fmt::Write as _;

use super::plot;
use super::{BY_THE_HOUR, Case, Report, Standing};

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:62em;padding:0 1em;\
color:#1a1a1a;background:#fff}table{border-collapse:collapse;width:100%;margin:.5em 0 1.5em}\
th,td{border-bottom:1px solid #ccc;padding:.25em .6em;text-align:left;vertical-align:top}\
th{background:#f2f2f2}h1{margin-bottom:.2em}h2{margin-top:1.6em;break-after:avoid}\
.head td:first-child{color:#555;width:12em}.head td{border:0;padding:.1em .6em}svg{width:100%;height:auto}\
figure{margin:0 0 1em;break-inside:avoid}td.digest{font-family:ui-monospace,monospace;word-break:break-all}\
tr{break-inside:avoid}@media print{body{margin:0;max-width:none;font-size:11px}}";

pub(crate) fn write(report: &Report) -> String {
    let mut page = String::new();
    // A string takes every character.
    let _ = compose(report, &mut page);
    page
}

fn compose(report: &Report, out: &mut String) -> std::fmt::Result {
    let title = escape(&report.title);
    writeln!(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width\">")?;
    writeln!(out, "<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>")?;
    writeln!(out, "<h1>{title}</h1>\n<table class=\"head\">")?;
    for (name, value) in &report.head {
        let class = if name.contains("SHA") { " class=\"digest\"" } else { "" };
        writeln!(out, "<tr><td>{name}</td><td{class}>{}</td></tr>", escape(value))?;
    }
    writeln!(out, "</table>")?;
    for standing in Standing::ALL {
        let cases = report.of(standing);
        if !cases.is_empty() {
            writeln!(out, "<h2>{}</h2>", standing.title())?;
            incidents(out, &cases)?;
        }
    }
    if report.cases.is_empty() {
        writeln!(out, "<p>No incident.</p>")?;
    }
    writeln!(out, "<h2>Every client over time</h2>")?;
    for curve in &report.curves {
        let root = if curve.is_root { ", the root" } else { "" };
        let name = escape(&curve.client);
        writeln!(out, "<figure><figcaption><b>{name}</b>{root}: {}</figcaption>", curve.what)?;
        plot::draw(out, curve, report)?;
        writeln!(out, "</figure>")?;
    }
    writeln!(out, "<h2>Settings that were changed</h2>")?;
    let rows = report.settings.iter().map(|row| row.to_vec());
    table(out, &["time", "setting", "from", "to"], rows)?;
    writeln!(out, "<h2>Privacy cost of clients</h2>\n<p>{BY_THE_HOUR}</p>")?;
    let rows = report.spent.iter().map(|spent| {
        let (before, after) = (&spent.before, &spent.after);
        let epsilon = |known: &Option<(String, u64)>| {
            known.as_ref().map_or_else(|| "–".to_owned(), |(epsilon, _)| epsilon.clone())
        };
        let releases =
            |known: &Option<(String, u64)>| known.as_ref().map_or(0, |(_, n)| *n).to_string();
        vec![
            spent.client.clone(),
            epsilon(before),
            releases(before),
            epsilon(after),
            releases(after),
        ]
    });
    let names = ["client", "ε at the start", "releases", "ε at the end", "releases"];
    table(out, &names, rows)?;
    writeln!(out, "<h2>Log</h2>")?;
    let rows =
        report.log.iter().map(|(time, who, what)| vec![time.clone(), who.clone(), what.clone()]);
    table(out, &["time", "operator", "what"], rows)?;
    writeln!(out, "</body>\n</html>")
}

fn incidents(out: &mut String, cases: &[&Case]) -> std::fmt::Result {
    let names =
        ["#", "onset", "opened", "closed", "root", "first out", "effects", "priority", "note"];
    let row = |case: &&Case| {
        vec![
            case.number.to_string(),
            case.onset.clone(),
            case.opened.clone(),
            case.closed.clone().unwrap_or_else(|| "still open".to_owned()),
            case.root.clone(),
            case.first_out.clone(),
            case.effects.join(", "),
            case.priority.clone(),
            case.note.clone(),
        ]
    };
    table(out, &names, cases.iter().map(row))
}

fn table(
    out: &mut String,
    names: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
) -> std::fmt::Result {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return writeln!(out, "<p>None.</p>");
    }
    let names = names.iter().map(|name| format!("<th>{name}</th>")).collect::<Vec<_>>().concat();
    writeln!(out, "<table>\n<thead><tr>{names}</tr></thead>\n<tbody>")?;
    for row in rows {
        let cells: Vec<String> =
            row.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
        let cells = cells.concat();
        writeln!(out, "<tr>{cells}</tr>")?;
    }
    writeln!(out, "</tbody>\n</table>")
}

/// Text of people and plants: nothing in it is markup.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter if letter.is_control() => safe.push(' '),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn a_note_cannot_become_markup() {
        let note = "<script>alert('x')</script> & \"more\"\n";
        let safe = escape(note);
        assert_eq!(safe, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;more&quot; ");
    }
}
