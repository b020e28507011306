//! A session for tables, with comments that say what was found and what is left to decide.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::look::{Column, Holds, TableFile, Tables};
use crate::session::TimeFormat;
use crate::stream::hai::tags;

/// Letters of a line.
const WIDTH: usize = 96;

/// A client as it is proposed.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Proposed {
    pub(super) name: String,
    title: String,
    pub(super) columns: Vec<String>,
    pub(super) inputs: Vec<String>,
}

/// The text of a session.
pub(super) fn text(tables: &Tables) -> String {
    let mut out = String::new();
    let names: Vec<&str> = tables.files.iter().map(|file| &file.name[..]).collect();
    let (clients, left_out, grouped) = clients(&tables.columns);
    comment(
        &mut out,
        "",
        "Written by `headwater init`. Read it, correct it, then `headwater check --full`.",
    );
    for other in &tables.others {
        comment(&mut out, "", &format!("Not used: {other}"));
    }
    out.push_str("Session(\n");
    let many =
        if names.len() == 1 { names[0].to_owned() } else { format!("{} files", names.len()) };
    let _ = writeln!(out, "    about: {:?},", format!("{many}, proposed by headwater init"));
    out.push_str("    source: Table(\n");
    let _ = writeln!(out, "        data: {:?},", tables.folder.to_string_lossy());
    let _ = writeln!(out, "        time: {},", time(tables));
    if tables.files.len() > 1 && tables.start_anew() {
        out.push_str("        runs: PerFile,  // their clocks do not go on from one to the next\n");
    }
    if let Some(run) = tables.column(Holds::Run) {
        let _ = writeln!(out, "        run_column: {run:?},");
    }
    out.push_str("    ),\n");
    write_clients(&mut out, &clients, &left_out, grouped);
    if let Some(label) = tables.column(Holds::Label) {
        let _ = write!(out, "    labels: Column(name: {label:?}");
        if !tables.unlabelled.is_empty() {
            let _ = write!(out, ", unlabelled: {:?}", tables.unlabelled);
        }
        out.push_str("),\n");
    }
    ranges(&mut out, tables);
    let _ = writeln!(out, "    sampling: (period_s: {}),", tables.period_s);
    // A false alarm in so many rows is about as much as a calibration of some thousand rows can tell.
    let arl0_h = (tables.period_s * 20_000.0 / 3600.0).clamp(8.0, 24.0 * 30.0).round();
    let _ = writeln!(out, "    // One false alarm in this time is asked for.");
    let _ = writeln!(out, "    thresholds: (arl0: \"{arl0_h}h\"),");
    write_privacy(&mut out);
    let _ = writeln!(out, "    replay: (speed: {}),", (tables.period_s * 60.0).max(1.0));
    out.push_str(")\n");
    out
}

/// The clients, with what is left to decide about them, and the columns that belong to none.
pub(super) fn write_clients(
    out: &mut String,
    clients: &[Proposed],
    left_out: &LeftOut,
    grouped: bool,
) {
    if !grouped {
        comment(
            out,
            "    ",
            "GROUP: no prefix of the names says which unit a column belongs to. Move the columns to \
             the client that measures them: a root cause is one of these.",
        );
    }
    out.push_str("    clients: [\n");
    for client in clients {
        let _ = write!(out, "        (\n            name: {:?}", client.name);
        if !client.title.is_empty() {
            let _ = write!(out, ", title: {:?}", client.title);
        }
        out.push_str(",\n");
        list(out, "columns", &client.columns);
        if !client.inputs.is_empty() {
            list(out, "inputs", &client.inputs);
        }
        out.push_str("        ),\n");
    }
    out.push_str("    ],\n");
    for (why, columns) in left_out {
        comment(out, "    ", &format!("{why}: {}", columns.join(", ")));
    }
}

/// What noise protects the clients, stated as a choice.
pub(super) fn write_privacy(out: &mut String) {
    comment(
        out,
        "    ",
        "None: symbols, states and gradients are sent without noise. An ε in its place, such as 6.0, \
         protects them; a smaller one protects more.",
    );
    out.push_str(
        "    privacy: (epsilon_flag: None, epsilon_c: None, epsilon_a: None, epsilon_g: None),\n",
    );
}

pub(super) fn time(tables: &Tables) -> String {
    let Some(time) = &tables.time else {
        return "(column: \"\", format: Rows(since: \"2000-01-01 00:00:00\"))"
            .replace("\"\"", "\"row\"");
    };
    match &time.format {
        TimeFormat::Pattern(pattern) => {
            format!("(column: {:?}, format: Pattern({pattern:?}))", time.column)
        }
        TimeFormat::Seconds { since } => {
            format!("(column: {:?}, format: Seconds(since: {since:?}))", time.column)
        }
        _ => format!("(column: {:?})", time.column),
    }
}

pub(super) fn comment(out: &mut String, indent: &str, text: &str) {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && indent.len() + 3 + line.len() + 1 + word.len() > WIDTH {
            let _ = writeln!(out, "{indent}// {line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(out, "{indent}// {line}");
}

fn list(out: &mut String, key: &str, names: &[String]) {
    let whole: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    let line = format!("            {key}: [{}],", whole.join(", "));
    if line.len() <= WIDTH {
        let _ = writeln!(out, "{line}");
        return;
    }
    let _ = writeln!(out, "            {key}: [");
    let mut line = String::from("               ");
    for name in whole {
        if line.len() + name.len() + 2 > WIDTH {
            let _ = writeln!(out, "{line}");
            line = String::from("               ");
        }
        let _ = write!(line, " {name},");
    }
    let _ = writeln!(out, "{line}\n            ],");
}

/// Columns that are not used, by reason.
pub(super) type LeftOut = BTreeMap<&'static str, Vec<String>>;

/// Clients by prefix, what is left out, and whether prefixes said anything.
pub(super) fn clients(all: &[Column]) -> (Vec<Proposed>, LeftOut, bool) {
    let mut left_out = LeftOut::new();
    let mut leave = |why: &'static str, name: &str| {
        left_out.entry(why).or_default().push(name.to_owned());
    };
    let mut usable: Vec<&str> = Vec::new();
    for column in all {
        match column.what {
            Holds::Measurement => usable.push(&column.name),
            Holds::Constant => leave("Never change in the rows that were looked at", &column.name),
            Holds::Counter => leave("Only count", &column.name),
            Holds::Text => leave("Hold text", &column.name),
            Holds::Label | Holds::Time | Holds::Run => {}
        }
    }
    let known = usable.iter().filter(|name| tags::tag(name).is_some()).count();
    if known * 10 >= usable.len() * 8 && known > 0 {
        return (testbed(&usable, &mut leave), left_out, true);
    }
    let mut groups: Vec<Proposed> = Vec::new();
    for name in &usable {
        let prefix = prefix(name).unwrap_or("").to_owned();
        if !groups.iter().any(|group| group.name == prefix) {
            groups.push(Proposed { name: prefix.clone(), ..Proposed::default() });
        }
        let Some(group) = groups.iter_mut().find(|group| group.name == prefix) else { continue };
        if is_set_point(name) { &mut group.inputs } else { &mut group.columns }
            .push((*name).to_owned());
    }
    let large = |group: &&Proposed| group.columns.len() >= 2 && group.name.len() >= 2;
    let covered: usize =
        groups.iter().filter(large).map(|g| g.columns.len() + g.inputs.len()).sum();
    let count = groups.iter().filter(large).count();
    if (2..=32).contains(&count) && covered * 10 >= usable.len() * 6 {
        let (kept, small): (Vec<Proposed>, Vec<Proposed>) =
            groups.into_iter().partition(|group| large(&group));
        for name in small.iter().flat_map(|group| group.columns.iter().chain(&group.inputs)) {
            leave("Too few of their prefix to make a client", name);
        }
        return (kept, left_out, true);
    }
    // Two halves, in the order of the header: something that runs, to be corrected.
    let (inputs, columns): (Vec<&str>, Vec<&str>) = usable.iter().partition(|n| is_set_point(n));
    let half = columns.len().div_ceil(2).max(1);
    let mut halves: Vec<Proposed> = columns
        .chunks(half)
        .zip(["A", "B"])
        .map(|(columns, name)| Proposed {
            name: name.into(),
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            ..Proposed::default()
        })
        .collect();
    if let Some(first) = halves.first_mut() {
        first.inputs = inputs.iter().map(|name| (*name).to_owned()).collect();
    }
    (halves, left_out, false)
}

/// The clients of the HAI testbed, whose tags are described.
fn testbed(usable: &[&str], leave: &mut impl FnMut(&'static str, &str)) -> Vec<Proposed> {
    let mut clients: Vec<Proposed> = Vec::new();
    for name in usable {
        let Some(tag) = tags::tag(name) else {
            leave("Not described in the manual of the testbed", name);
            continue;
        };
        if tag.process == "P4" {
            leave("Of the simulated grid, which is no process", name);
            continue;
        }
        if !clients.iter().any(|client| client.name == tag.process) {
            let title = match tag.process {
                "P1" => "boiler",
                "P2" => "turbine",
                _ => "water treatment",
            };
            let (name, title) = (tag.process.to_owned(), title.to_owned());
            clients.push(Proposed { name, title, ..Proposed::default() });
        }
        let Some(client) = clients.iter_mut().find(|client| client.name == tag.process) else {
            continue;
        };
        match tag.kind {
            "sensor" | "derived" | "cmd" | "pos" => client.columns.push((*name).to_owned()),
            "sp" => client.inputs.push((*name).to_owned()),
            _ => leave("Switches, limits and outputs of controllers", name),
        }
    }
    clients.retain(|client| !client.columns.is_empty());
    clients
}

/// What stands before the first separator of a name.
fn prefix(name: &str) -> Option<&str> {
    let at = name.find(['_', '.', '/', '-', ':'])?;
    (at > 0).then_some(&name[..at])
}

/// Whether a name says that the column is set, not measured.
fn is_set_point(name: &str) -> bool {
    let name = name.to_lowercase();
    let ends = ["_sp", ".sp", "_set", "_ref", "setpoint", "set_point", "_setp"];
    ends.iter().any(|end| name.ends_with(end))
        || name.contains("setpoint")
        || name.starts_with("sp_")
}

fn ranges(out: &mut String, tables: &Tables) {
    let looks_normal = |file: &&TableFile| {
        let name = file.name.to_lowercase();
        ["normal", "train", "nominal"].iter().any(|word| name.contains(word))
    };
    let has_labels = tables.column(Holds::Label).is_some();
    let is_normal = |file: &&TableFile| {
        if has_labels { !file.disturbed } else { looks_normal(file) }
    };
    let (normal, other): (Vec<&TableFile>, Vec<&TableFile>) =
        tables.files.iter().partition(is_normal);
    let names = |files: &[&TableFile]| {
        let names: Vec<String> = files.iter().map(|file| format!("{:?}", file.name)).collect();
        names.join(", ")
    };
    out.push_str("    ranges: (\n");
    let all: u64 = tables.files.iter().map(|file| file.rows).sum();
    match (&normal[..], &other[..]) {
        ([one], [_, ..]) => {
            let fit = one.rows * 6 / 10;
            let file = names(&normal);
            let _ = writeln!(out, "        fit: (files: [{file}], until: \"+{fit} steps\"),");
            let _ =
                writeln!(out, "        calibration: (files: [{file}], from: \"+{fit} steps\"),");
            let _ = writeln!(out, "        replay: (files: [{}]),", names(&other));
        }
        ([_, _, ..], [_, ..]) => {
            let (fit, calibration) = normal.split_at(normal.len().div_ceil(2));
            let _ = writeln!(out, "        fit: (files: [{}]),", names(fit));
            let _ = writeln!(out, "        calibration: (files: [{}]),", names(calibration));
            let _ = writeln!(out, "        replay: (files: [{}]),", names(&other));
        }
        _ => {
            let (fit, calibration) = (all * 4 / 10, all * 7 / 10);
            let files = names(&tables.files.iter().collect::<Vec<_>>());
            comment(
                out,
                "        ",
                "Nothing says which rows are normal: the first 70 % are taken to be. Correct it.",
            );
            let _ = writeln!(out, "        fit: (files: [{files}], until: \"+{fit} steps\"),");
            let _ = writeln!(
                out,
                "        calibration: (files: [{files}], from: \"+{fit} steps\", until: \
                 \"+{calibration} steps\"),"
            );
            let _ = writeln!(
                out,
                "        replay: (files: [{files}], from: \"+{calibration} steps\"),"
            );
        }
    }
    out.push_str("    ),\n");
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::session::{PrivacySettings, Session, edit};

    #[test]
    fn a_proposed_session_states_that_it_has_no_noise() {
        let mut out = String::from("Session(\n    about: \"x\",\n    source: Twin(),\n");
        write_privacy(&mut out);
        let session = Session::parse("x", Path::new(""), &format!("{out})")).expect("a session");
        assert_eq!(session.privacy, PrivacySettings::default());
        assert!(edit::has(&out, "privacy.epsilon_flag"), "{out}");
        assert!(out.lines().all(|line| line.chars().count() <= WIDTH), "{out}");
    }

    #[test]
    fn set_points_are_told_by_their_names() {
        for name in ["TIC101_SP", "boiler.setpoint", "SP_flow", "level_set"] {
            assert!(is_set_point(name), "{name}");
        }
        for name in ["P1_FT01", "speed", "offset_a", "XMV1", "SPEED_PV"] {
            assert!(!is_set_point(name), "{name}");
        }
    }
}
