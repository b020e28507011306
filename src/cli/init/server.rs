//! A session for an OPC UA server, with comments that say what was found and what is left to decide.

use std::fmt::Write as _;

use color_eyre::eyre::{Result, bail, eyre};

use super::look::{Column, Holds, kind_of};
use super::write::{clients, comment, write_clients, write_privacy};
use crate::stream::live::opcua::{Inspected, inspect};

/// Looks at the server, over an open connection and without a name.
pub(super) fn propose(url: &str) -> Result<String> {
    let found = inspect(url).map_err(|why| eyre!("{url}: {why}"))?;
    let columns: Vec<Column> = found
        .variables
        .iter()
        .map(|variable| Column {
            name: variable.name.clone(),
            what: match &variable.recent[..] {
                _ if !variable.is_number => Holds::Text,
                // Without a past there is one value, which says nothing.
                [] => Holds::Measurement,
                recent => kind_of(recent),
            },
        })
        .collect();
    let (clients, left_out, grouped) = clients(&columns);
    if clients.is_empty() {
        bail!("{url}: no variable of the server can be watched");
    }
    let mut out = String::new();
    head(&mut out, url, &found);
    write_clients(&mut out, &clients, &left_out, grouped);
    out.push_str("    ranges: (\n");
    comment(
        &mut out,
        "        ",
        "The first 16 h fit the models, the 32 h after them set the thresholds. Nothing may be wrong \
         in that time.",
    );
    out.push_str("        fit: (until: \"+16h\"),\n");
    out.push_str("        calibration: (from: \"+16h\", until: \"+48h\"),\n    ),\n");
    out.push_str("    // One false alarm in this time is asked for.\n");
    out.push_str("    thresholds: (arl0: \"2d\"),\n");
    write_privacy(&mut out);
    out.push_str(")\n");
    Ok(out)
}

/// Everything before the clients.
fn head(out: &mut String, url: &str, found: &Inspected) {
    comment(
        out,
        "",
        "Written by `headwater init`. Read it, correct it, then `headwater check` and `headwater open`.",
    );
    for (namespace, count) in &found.others {
        comment(out, "", &format!("Not used: {count} numbers of the namespace {namespace:?}"));
    }
    out.push_str("Session(\n");
    let _ = writeln!(out, "    about: {:?},", format!("{url}, proposed by headwater init"));
    out.push_str("    source: Live(\n        input: OpcUa(\n");
    let _ = writeln!(out, "            url: {url:?},");
    let _ = writeln!(out, "            namespace: {:?},", found.namespace);
    comment(
        out,
        "            ",
        "The connection is open. Better: security: Aes256Sha256RsaPss, and where the server wants it \
         user: \"…\", password_env: \"PLC_PASSWORD\".",
    );
    let with_past = found.variables.iter().filter(|variable| variable.has_history).count();
    if with_past * 2 > found.variables.len() {
        comment(
            out,
            "            ",
            "The server keeps a history: what is normal is read from it, up to now. Where something \
             was wrong lately: past: From(\"2026-01-31T00:00:00Z\").",
        );
        out.push_str("            past: Before,\n");
    } else {
        comment(
            out,
            "            ",
            "The server keeps no history of its variables: what is normal is learned from what comes.",
        );
    }
    out.push_str("        ),\n        grid_s: 1,\n        lateness_s: 2,\n");
    comment(
        out,
        "        ",
        "Where a value has a new time only when it changes: hold_s: 60, so that it counts until then.",
    );
    out.push_str("        history: Learned,  // once; the next start watches at once\n    ),\n");
}
