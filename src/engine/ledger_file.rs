//! The file that a run's ledgers are kept in.

use std::fs::File;
use std::io::{BufReader, Write as _};
use std::path::{Path, PathBuf};

use super::handle::OpenError;
use super::watch::Watch;
use crate::privacy::{Ledger, books};

/// The ledgers of a file, or none when it is not there. One that does not hold cannot be continued.
fn read(file: &Path) -> Result<Vec<Ledger>, String> {
    if !file.exists() {
        return Ok(Vec::new());
    }
    let text = File::open(file).map_err(|error| format!("{}: {error}", file.display()))?;
    books::read(BufReader::new(text))
        .map_err(|broken| format!("{}: {broken}; it cannot be continued", file.display()))
}

/// Where the ledgers' lines go.
#[derive(Debug)]
pub(super) struct KeptLedger(Option<(PathBuf, File)>);

impl KeptLedger {
    /// What stands in the file, and the file.
    pub fn open(file: Option<PathBuf>) -> Result<(Option<Vec<Ledger>>, Self), OpenError> {
        let Some(file) = file else { return Ok((None, Self(None))) };
        let kept = read(&file)?;
        let opened = File::options().append(true).create(true).open(&file);
        let opened = opened.map_err(|error| format!("{}: {error}", file.display()))?;
        Ok((Some(kept), Self(Some((file, opened)))))
    }

    /// Stores what was released; nothing may be said about it before.
    pub fn store(&mut self, watch: &mut Watch) -> Result<(), OpenError> {
        let Self(Some((path, file))) = self else { return Ok(()) };
        let lines = watch.run_mut().take_ledger_lines();
        let written = file.write_all(lines.as_bytes());
        Ok(written.map_err(|error| format!("{}: {error}", path.display()))?)
    }
}
