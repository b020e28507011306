//! `headwater calibration`: which history a live session's models and thresholds are made from, how to
//! learn anew, and how to go back.

use std::io::Write;

use clap::Args;
use color_eyre::eyre::{Result, bail};
use serde_json::json;

use crate::session::{LiveHistory, Mark, Session};
use crate::stream::live::kept;
use crate::stream::live::versions::{self, Version};

#[derive(Debug, Args)]
pub(super) struct CalibrationArgs {
    /// A live session
    session: String,
    /// Learn anew at the next start; what is in use is kept as a version
    #[arg(long, conflicts_with = "roll_back")]
    renew: bool,
    /// Use an earlier version again from the next start on; without a number the newest one
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "0")]
    roll_back: Option<u64>,
    /// One JSON object instead of words
    #[arg(long)]
    json: bool,
}

pub(super) fn run(out: &mut impl Write, args: &CalibrationArgs) -> Result<()> {
    let session = Session::open(&args.session)?;
    let Some(live) = session.live() else {
        bail!(
            "{} is no live session: its models follow from its data, and `headwater train` makes them",
            session.name
        );
    };
    match live.history {
        LiveHistory::Learned => {}
        LiveHistory::First => bail!(
            "{} learns at every start (history: First): there is nothing to renew",
            session.name
        ),
        LiveHistory::Table(_) => bail!(
            "{} learns from a table (history: Table): change that table, and models are made anew",
            session.name
        ),
    }
    let changes = args.renew || args.roll_back.is_some();
    let folder = kept::folder(&session)?;
    let _lock = match versions::lock(&folder) {
        Ok(Some(lock)) => Some(lock),
        Ok(None) if changes => bail!("a run of {} is going on: end it first", session.name),
        Err(why) if changes => bail!("{}: {why}", folder.display()),
        Ok(None) | Err(_) => None,
    };
    if args.renew {
        let number = versions::renew(&session)?;
        say_renewed(out, args, &session, number)?;
    } else if let Some(asked) = args.roll_back {
        // Versions are counted from 1: 0 stands for the newest one.
        let number = match asked {
            0 => newest_aside(&versions::list(&session)?, &session)?,
            number => number,
        };
        versions::roll_back(&session, number)?;
        if !args.json {
            writeln!(
                out,
                "The next start of {} uses version {number} again, and the models made from it: \
                 nothing is learned. What was accepted as normal since is forgotten. The version \
                 that was in use is kept.",
                session.name
            )?;
        }
    }
    print(out, args, &session)
}

fn newest_aside(versions: &[Version], session: &Session) -> Result<u64> {
    match versions.iter().rev().find(|version| !version.in_use) {
        Some(version) => Ok(version.number),
        None => bail!("{} has no earlier version", session.name),
    }
}

fn say_renewed(
    out: &mut impl Write,
    args: &CalibrationArgs,
    session: &Session,
    number: u64,
) -> Result<()> {
    if args.json {
        return Ok(());
    }
    let length = match session.ranges.calibration.until {
        Some(Mark::After(seconds)) => format!("{:.1} h", seconds / 3600.0),
        _ => "its calibration".to_owned(),
    };
    writeln!(
        out,
        "The next start of {} learns anew for {length}: nothing is watched until then. Rows of that \
         time count as normal, whatever happens in them. What was accepted as normal before is \
         forgotten; incidents, notes and settings stay. Version {number} is kept: `headwater \
         calibration {} --roll-back {number}` uses it again.",
        session.name, args.session
    )?;
    Ok(())
}

fn print(out: &mut impl Write, args: &CalibrationArgs, session: &Session) -> Result<()> {
    let versions = versions::list(session)?;
    if args.json {
        let of = |version: &Version| {
            json!({
                "version": version.number,
                "in_use": version.in_use,
                "rows": version.rows,
                "sha256": version.digest,
                "from": version.span.map(|span| span.0.to_string()),
                "to": version.span.map(|span| span.1.to_string()),
            })
        };
        let versions: Vec<_> = versions.iter().map(of).collect();
        writeln!(out, "{}", json!({ "session": session.name, "versions": versions }))?;
        return Ok(());
    }
    if versions.is_empty() {
        writeln!(out, "{}: nothing has been learned yet; the next start learns", session.name)?;
    }
    for version in &versions {
        let mark = if version.in_use { "in use" } else { "kept" };
        let span = version.span.map_or_else(String::new, |(from, to)| format!("{from} to {to}"));
        let digest = &version.digest[..version.digest.len().min(12)];
        writeln!(
            out,
            "version {:<3} {mark:<7} {:>9} rows  {span}  sha256 {digest}",
            version.number, version.rows
        )?;
    }
    Ok(())
}
