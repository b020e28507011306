//! A session for a broker, with comments that say what arrived and what is left to decide.

use std::fmt::Write as _;

use super::broker::{Heard, Layout, Reached};
use super::write::{clients, comment, time, write_clients, write_privacy};

/// How long models are fitted and thresholds are set, before anything is watched.
const FIT_H: u32 = 24;
const LEARN_H: u32 = 72;

/// The text of a session.
pub(super) fn text(heard: &Heard, reached: &Reached<'_>) -> String {
    let (clients, left_out, grouped) = clients(&heard.tables.columns);
    let tables = &heard.tables;
    let mut out = String::new();
    comment(
        &mut out,
        "",
        &format!(
            "Written by `headwater init`, which heard {} messages in {:.0} s. Read it, correct it, \
             then `headwater check` and `headwater open`.",
            heard.messages, heard.seconds
        ),
    );
    out.push_str("Session(\n");
    let about = format!("{}, proposed by headwater init", reached.url);
    let _ = writeln!(out, "    about: {about:?},");
    out.push_str("    source: Live(\n        input: Mqtt(\n");
    let _ = writeln!(out, "            broker: {:?},", reached.url);
    match &heard.layout {
        Layout::Rows(topic) => _ = writeln!(out, "            topics: Rows({topic:?}),"),
        Layout::Tags { topic, value, .. } => {
            _ = writeln!(out, "            topics: Tags(topic: {topic:?}, value: {value:?}),");
        }
    }
    if let Some(user) = reached.user {
        let _ = writeln!(out, "            user: {user:?},");
    }
    if let Some(variable) = reached.password_env {
        let _ = writeln!(out, "            password_env: {variable:?},");
    }
    if let Some(ca) = reached.ca {
        let ca = std::path::absolute(ca).unwrap_or_else(|_| ca.to_path_buf());
        let _ = writeln!(out, "            ca: {:?},", ca.to_string_lossy());
    }
    comment(
        &mut out,
        "            ",
        "With a name of its own the broker keeps messages while this program is away: \
         client_id: \"headwater-plant\".",
    );
    out.push_str("        ),\n");
    let _ = writeln!(out, "        time: {},", time(tables));
    if let Layout::Tags { quality: Some(quality), .. } = &heard.layout {
        let _ = writeln!(out, "        quality: {quality:?},");
    }
    let _ = writeln!(out, "        grid_s: {},", tables.period_s);
    let _ = writeln!(out, "        lateness_s: {},", (2.0 * tables.period_s).max(2.0));
    comment(
        &mut out,
        "        ",
        "The first rows that ever arrive are learned from and kept; the next start watches at once.",
    );
    out.push_str("        history: Learned,\n    ),\n");
    write_clients(&mut out, &clients, &left_out, grouped);
    comment(
        &mut out,
        "    ",
        &format!(
            "Models are fitted on the first {FIT_H} h and thresholds are set on the {} h after them. \
             Nothing is watched before that, and both stretches must be normal operation. What the \
             plant does less often than that, a weekly cleaning say, will raise alarms at first.",
            LEARN_H - FIT_H
        ),
    );
    let _ = writeln!(
        out,
        "    ranges: (fit: (until: \"+{FIT_H}h\"), calibration: (from: \"+{FIT_H}h\", until: \
         \"+{LEARN_H}h\")),"
    );
    let every = (5.0 / tables.period_s).round().max(1.0);
    let _ = writeln!(out, "    sampling: (decimate: Every({every})),");
    comment(&mut out, "    ", "One false alarm in this time is asked for.");
    out.push_str("    thresholds: (arl0: \"2d\"),\n");
    write_privacy(&mut out);
    comment(
        &mut out,
        "    ",
        "After a start of the plant alarms may be suspended for a while: \
         suspend: [(why: \"start-up\", until: \"+30m\")],",
    );
    out.push_str(")\n");
    out
}
