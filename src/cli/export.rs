//! `headwater export`: tables, reports and a terminal cast of a recording.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use color_eyre::eyre::{Result, bail, eyre};
use jiff::Timestamp;

use crate::base::notice::print_notice;
use crate::console::{self, Cast, Subject};
use crate::engine::handle::Moment;
use crate::record::Recording;
use crate::record::export::{self, Stretch, Table, TableFormat};
use crate::record::report::{self, About, Report};
use crate::session::Clock;

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// A recording (see `headwater sessions`)
    recording: PathBuf,
    /// What to write
    #[arg(long, value_name = "WHAT")]
    what: What,
    /// How; `cast` has one form of its own
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// A report of this incident
    #[arg(long, value_name = "N", conflicts_with_all = ["from", "to"])]
    incident: Option<u64>,
    /// From here on: a time of the data's clock such as 06:00, or a distance from the start such as "+8h"
    #[arg(long, value_name = "T", value_parser = console::moment)]
    from: Option<Moment>,
    /// Up to here
    #[arg(long, value_name = "T", value_parser = console::moment)]
    to: Option<Moment>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    Incidents,
    /// Flags, symbols and evidence of every client at every step
    Flags,
    /// Distances and norms of residuals of every client at every step
    Residuals,
    /// Everything that crossed between sites and server
    Messages,
    /// What clients had given away, once an hour
    Ledger,
    /// One incident, or a stretch of time to be handed over
    Report,
    /// The console over that time, for terminal players (asciicast v2)
    Cast,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Csv,
    Json,
    Md,
    Html,
}

pub(super) fn run(out: &mut impl Write, args: &ExportArgs) -> Result<()> {
    let recording = Recording::open(&args.recording)?;
    let missing = recording.missing()?;
    if !missing.is_empty() {
        let (file, missing) = (args.recording.display(), missing.join("; "));
        let removed = format!("these were removed: {missing}");
        print_notice(format!("{file} had become too large, and {removed}"));
    }
    let within = stretch(&recording, args)?;
    let table = match args.what {
        What::Incidents => Table::Incidents,
        What::Flags => Table::Flags,
        What::Residuals => Table::Residuals,
        What::Messages => Table::Messages,
        What::Ledger => Table::Ledger,
        What::Report => {
            recording.needs_server()?;
            return write_report(out, args, &recording, within);
        }
        What::Cast => return write_cast(out, args, within),
    };
    if args.incident.is_some() {
        bail!("--incident is for reports");
    }
    let format = match args.format {
        None | Some(Format::Csv) => TableFormat::Csv,
        Some(Format::Json) => TableFormat::Json,
        Some(Format::Md | Format::Html) => bail!("a table is written as csv or json"),
    };
    Ok(export::table(&recording, table, format, within, out)?)
}

fn write_report(
    out: &mut impl Write,
    args: &ExportArgs,
    recording: &Recording,
    within: Stretch,
) -> Result<()> {
    let about = args.incident.map_or(About::Stretch(within), About::Incident);
    let report = Report::gather(recording, about)?;
    let text = match args.format {
        None | Some(Format::Md) => report::markdown(&report),
        Some(Format::Html) => report::html(&report),
        Some(Format::Csv | Format::Json) => bail!("a report is written as md or html"),
    };
    Ok(out.write_all(text.as_bytes())?)
}

fn write_cast(out: &mut impl Write, args: &ExportArgs, within: Stretch) -> Result<()> {
    if args.format.is_some() || args.incident.is_some() {
        bail!("a cast has one format, and is of a stretch of time: --from and --to");
    }
    let subject = Subject::recording(&args.recording).map_err(|error| eyre!(error))?;
    let cast = Cast { from: within.from, to: within.to, size: (120, 40) };
    Ok(out.write_all(console::cast(subject, &cast)?.as_bytes())?)
}

/// The stretch of time that is asked for, on the clock of the data.
fn stretch(recording: &Recording, args: &ExportArgs) -> Result<Stretch> {
    if args.from.is_none() && args.to.is_none() {
        return Ok(Stretch::ALL);
    }
    let clock = Clock::of(&recording.session()?);
    let steps = recording.steps()?;
    let Some(first) = steps.first().map(|step| step.time) else { return Ok(Stretch::ALL) };
    let place = |moment: Moment| moment.mark(clock, first);
    let mut stretch = Stretch::ALL;
    if let Some(from) = args.from.map(place) {
        let mut reached = (0..).zip(&steps);
        let reached = reached.find(|(n, step)| from.is_reached(clock, first, *n, step.time));
        stretch.from = reached.map_or(Timestamp::MAX, |(_, step)| step.time);
    }
    if let Some(to) = args.to.map(place) {
        let mut before = (0..).zip(&steps);
        let passed = before.find(|(n, step)| to.is_passed(clock, first, *n, step.time));
        if let Some((n, _)) = passed {
            let last = usize::try_from(n).ok().and_then(|n: usize| steps.get(n.checked_sub(1)?));
            stretch.to = last.map_or(Timestamp::MIN, |step| step.time);
        }
    }
    if stretch.from > stretch.to {
        bail!("nothing was recorded between --from and --to");
    }
    Ok(stretch)
}
