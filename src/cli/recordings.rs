//! The recordings at hand: `headwater sessions` lists them below the sessions.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use color_eyre::eyre::Result;
use jiff::SignedDuration;

use crate::record::batch::AboutTable::Both;
use crate::record::{Holds, RecordError, Recording, folder};

/// What is known of a recording without playing it.
struct Line {
    steps: usize,
    length: SignedDuration,
    /// None where it holds no verdicts.
    incidents: Option<usize>,
    end: &'static str,
    /// Whose it is, where it is not that of all.
    of: String,
}

/// One line a recording: its file, length, incidents, size, and how it ended.
pub(super) fn list(out: &mut impl Write) -> Result<()> {
    let Some(folder) = folder::folder() else { return Ok(()) };
    let files = folder::list(&folder);
    if files.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nrecordings in {}:", folder.display())?;
    for file in files.iter().rev() {
        line(out, file)?;
    }
    Ok(())
}

fn line(out: &mut impl Write, file: &Path) -> io::Result<()> {
    let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let size = fs::metadata(file).map_or(0.0, |found| found.len() as f64 / 1e6);
    match look(file) {
        Ok(Line { steps, length, incidents, end, of }) => {
            let hours = length.as_secs_f64() / 3600.0;
            let found = match incidents {
                None => "no verdicts".to_owned(),
                Some(1) => "  1 incident".to_owned(),
                Some(incidents) => format!("{incidents:>3} incidents"),
            };
            writeln!(
                out,
                "{name:<48} {hours:>6.1} h  {steps:>7} steps  {found:<13}  {size:>7.1} MB  {end}{of}"
            )
        }
        Err(error) => writeln!(out, "{name:<48} {error}"),
    }
}

fn look(file: &Path) -> Result<Line, RecordError> {
    let written = folder::is_written(file);
    let recording = Recording::open(file)?;
    let steps = recording.steps()?;
    let ends = steps.first().zip(steps.last());
    let length = ends.map_or(SignedDuration::ZERO, |(from, to)| to.time.duration_since(from.time));
    let end = match (recording.ended()?, written) {
        (Some(_), _) => "ended",
        (None, true) => "being recorded",
        (None, false) => "killed",
    };
    let holds = recording.holds()?;
    let incidents = match holds {
        Holds::Both | Holds::Server => Some(recording.incidents()?.len()),
        Holds::Site(_) => None,
    };
    let of = match holds {
        Holds::Both => String::new(),
        Holds::Server => ", of the server".to_owned(),
        Holds::Site(client) => {
            let names: Vec<String> = recording.value(Both, "clients")?;
            format!(", of site {}", names.get(client).map_or("?", String::as_str))
        }
    };
    Ok(Line { steps: steps.len(), length, incidents, end, of })
}
