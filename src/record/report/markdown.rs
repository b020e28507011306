//! A report as Markdown.

use std::fmt::Write as _;

use super::{BY_THE_HOUR, Report, Standing};

pub(crate) fn write(report: &Report) -> String {
    let mut text = String::new();
    // A string takes every character.
    let _ = compose(report, &mut text);
    text
}

fn compose(report: &Report, out: &mut String) -> std::fmt::Result {
    writeln!(out, "# {}\n", report.title)?;
    writeln!(out, "| | |\n|---|---|")?;
    for (name, value) in &report.head {
        writeln!(out, "| {name} | {} |", cell(value))?;
    }
    for standing in Standing::ALL {
        let cases = report.of(standing);
        if cases.is_empty() {
            continue;
        }
        writeln!(out, "\n## {}\n", standing.title())?;
        writeln!(
            out,
            "| # | onset | opened | closed | root | first out | effects | priority | note |"
        )?;
        writeln!(out, "|---|---|---|---|---|---|---|---|---|")?;
        for case in cases {
            writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                case.number,
                case.onset,
                case.opened,
                case.closed.as_deref().unwrap_or("still open"),
                cell(&case.root),
                cell(&case.first_out),
                cell(&case.effects.join(", ")),
                case.priority,
                cell(&case.note),
            )?;
        }
    }
    if report.cases.is_empty() {
        writeln!(out, "\nNo incident.")?;
    }
    writeln!(out, "\n## Settings that were changed\n")?;
    if report.settings.is_empty() {
        writeln!(out, "None.")?;
    } else {
        writeln!(out, "| time | setting | from | to |\n|---|---|---|---|")?;
        for row in &report.settings {
            writeln!(out, "| {} |", row.each_ref().map(|value| cell(value)).join(" | "))?;
        }
    }
    writeln!(out, "\n## Privacy cost of clients\n\n{BY_THE_HOUR}\n")?;
    writeln!(out, "| client | ε at the start | releases | ε at the end | releases |")?;
    writeln!(out, "|---|---|---|---|---|")?;
    for spent in &report.spent {
        let words = |known: &Option<(String, u64)>| match known {
            Some((epsilon, releases)) => format!("{epsilon} | {releases}"),
            None => "– | 0".to_owned(),
        };
        let (before, after) = (words(&spent.before), words(&spent.after));
        writeln!(out, "| {} | {before} | {after} |", cell(&spent.client))?;
    }
    writeln!(out, "\n## Log\n")?;
    if report.log.is_empty() {
        writeln!(out, "Nothing happened.")?;
    } else {
        writeln!(out, "| time | operator | what |\n|---|---|---|")?;
    }
    for (time, who, words) in &report.log {
        writeln!(out, "| {time} | {} | {} |", cell(who), cell(words))?;
    }
    Ok(())
}

/// Text of people and plants within a table: nothing in it may end the cell or be taken for markup.
fn cell(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '|' | '\\' | '`' | '*' | '_' | '<' | '[' => safe.extend(['\\', letter]),
            letter if letter.is_control() => safe.push(' '),
            letter => safe.push(letter),
        }
    }
    safe
}
