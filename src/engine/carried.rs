//! The state that a live session keeps from one start to the next, beside its history: what the server knows of
//! incidents and settings in one file, what each site takes as normal in another.
//!
//! Only a session that goes on where it was has them: one whose source delivers normal operation first,
//! at every start (`history: First`), begins anew, and so does every replay.

use std::fs::{self, File};
use std::io;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::prepare;
use super::run::carried::Before;
use super::watch::{News, Watch};
use crate::base::atomic_file::{AtomicFile, WriteError};
use crate::base::digest;
use crate::incident::{Carried, What};
use crate::session::{LiveHistory, Session};
use crate::site::carried::CarriedNormal;
use crate::stream::live::{kept, versions};

const OF_SERVER: &str = "operator.json";
const OF_SITES: &str = "normals.json";
/// Changes by data reach the disk after so long; changes by an operator, at once.
const EVERY: Duration = Duration::from_secs(1);
const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct OfServer {
    version: u32,
    carried: Carried,
}

#[derive(Debug, Serialize, Deserialize)]
struct OfSites {
    version: u32,
    /// The models that residuals are of.
    models: String,
    normals: Vec<CarriedNormal>,
}

/// The folder of a session that goes on at every start, taken before it learns: nothing where there is
/// none, and no lock where another run has it.
pub(super) struct Claim(Option<(PathBuf, io::Result<Option<File>>)>);

/// Takes the folder of a session, where it goes on at every start.
pub(super) fn claim(session: &Session) -> Claim {
    let goes_on = session.live().is_some_and(|live| live.history != LiveHistory::First);
    let folder = goes_on.then(|| kept::folder(session).ok()).flatten();
    Claim(folder.map(|folder| {
        let lock = versions::lock(&folder);
        (folder, lock)
    }))
}

/// The files of a session that goes on at its next start.
#[derive(Debug, Default)]
pub(super) struct CarriedFiles {
    /// Where they stand; nothing where the session has none, or where they cannot be written.
    at: Option<At>,
    /// What went wrong, until it was reported.
    notices: Vec<String>,
}

#[derive(Debug)]
struct At {
    folder: PathBuf,
    models: String,
    _lock: File,
    changed: bool,
    stored: Instant,
}

impl CarriedFiles {
    /// Reads the files of a session that goes on at every start.
    pub(super) fn open(session: &Session, claim: Claim) -> (Self, Option<Before>) {
        let mut files = Self::default();
        let Some((folder, lock)) = claim.0 else { return (files, None) };
        let models = prepare::fingerprint(session).map(|models| models.to_string());
        let (Ok(models), Ok(lock)) = (models, lock) else {
            files.notices.push(format!(
                "{}: what operators do cannot be kept there for the next start",
                folder.display()
            ));
            return (files, None);
        };
        let Some(lock) = lock else {
            files.notices.push(format!(
                "another run of {} is going on: what operators do here is not kept for the next start",
                session.name
            ));
            return (files, None);
        };
        let before = match read(&folder, &models) {
            Ok(before) => before,
            Err(why) => {
                files.notices.push(format!("{why}; the run begins anew"));
                None
            }
        };
        let stored = Instant::now();
        files.at = Some(At { folder, models, _lock: lock, changed: false, stored });
        (files, before)
    }

    /// Keeps what is new, where something is.
    pub(super) fn follow(&mut self, watch: &Watch, news: &News) {
        let Some(at) = &mut self.at else { return };
        at.changed |= !news.events.is_empty() || !news.incidents.is_empty();
        let ordered = news.events.iter().any(|event| matches!(event.what, What::Did(_)));
        if at.changed && (ordered || at.stored.elapsed() >= EVERY) {
            self.store(watch);
        }
    }

    /// Stores the state. A failing disk is reported once, and the run goes on.
    pub(super) fn store(&mut self, watch: &Watch) {
        let Some(at) = &mut self.at else { return };
        // Before the first step nothing is known that should replace what stands there.
        if watch.run().steps() == 0 {
            return;
        }
        (at.changed, at.stored) = (false, Instant::now());
        if let Err(why) = write(at, watch) {
            self.at = None;
            self.notices.push(format!("{why}: what operators do is not kept for the next start"));
        }
    }

    pub(super) fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }
}

pub(crate) fn read(folder: &Path, models: &str) -> Result<Option<Before>, String> {
    let Some(OfServer { carried, .. }) =
        read_file(&folder.join(OF_SERVER), |of: &OfServer| of.version)?
    else {
        return Ok(None);
    };
    let of_sites = read_file(&folder.join(OF_SITES), |of: &OfSites| of.version)?;
    let (mut normals, mut normals_lost) = (Vec::new(), false);
    if let Some(of_sites) = of_sites {
        let has_any = of_sites.normals.iter().any(|normal| *normal != CarriedNormal::default());
        normals_lost = has_any && of_sites.models != models;
        if has_any && of_sites.models == models {
            normals = of_sites.normals;
        }
    }
    Ok(Some(Before { carried, normals, normals_lost }))
}

fn read_file<T: for<'a> Deserialize<'a>>(
    file: &Path,
    version: impl Fn(&T) -> u32,
) -> Result<Option<T>, String> {
    let at = file.display();
    let text = match fs::read(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{at}: {error}")),
    };
    let text = unsealed(&text).ok_or_else(|| format!("{at}: damaged: its checksum differs"))?;
    let known: T = serde_json::from_slice(text).map_err(|why| format!("{at}: damaged: {why}"))?;
    match version(&known) {
        VERSION => Ok(Some(known)),
        other => Err(format!("{at}: of version {other}, and this program knows {VERSION}")),
    }
}

/// The text of a file whose second line is its checksum. Older programs wrote none.
fn unsealed(file: &[u8]) -> Option<&[u8]> {
    let Some(end) = file.iter().position(|byte| *byte == b'\n') else { return Some(file) };
    let (text, sum) = (&file[..end], &file[end + 1..]);
    (digest::sha256(text).as_bytes() == sum.trim_ascii_end()).then_some(text)
}

fn write(at: &At, watch: &Watch) -> Result<(), WriteError> {
    let of_server = OfServer { version: VERSION, carried: watch.run().carry() };
    let of_sites = OfSites {
        version: VERSION,
        models: at.models.clone(),
        normals: watch.run().carry_normals(),
    };
    write_file(&at.folder, OF_SERVER, &of_server)?;
    write_file(&at.folder, OF_SITES, &of_sites)
}

fn write_file(folder: &Path, name: &str, value: &impl Serialize) -> Result<(), WriteError> {
    let text = serde_json::to_vec(value)
        .map_err(|why| WriteError::at(&folder.join(name))(std::io::Error::other(why)))?;
    let mut file = AtomicFile::create(folder, name)?;
    file.fill(|file| {
        file.write_all(&text)?;
        write!(file, "\n{}\n", digest::sha256(&text))
    })?;
    file.publish().map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incident::{Annunciator, Rules};
    use crate::session::Mode;

    #[test]
    fn what_operators_did_is_not_taken_over_from_a_file_with_a_flipped_bit() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let of = OfServer { version: VERSION, carried: Carried::default() };
        write_file(folder.path(), OF_SERVER, &of).expect("written");
        let file = folder.path().join(OF_SERVER);
        let sound = fs::read(&file).expect("there");
        assert!(read(folder.path(), "models").is_ok_and(|before| before.is_some()));
        for at in (0..sound.len()).filter(|at| sound[*at] != b'\n') {
            let mut flipped = sound.clone();
            flipped[at] ^= 1;
            fs::write(&file, flipped).expect("written");
            let why = read(folder.path(), "models").expect_err("noticed");
            assert!(why.contains("damaged"), "{why}");
        }
    }

    #[test]
    fn more_incidents_than_there_can_have_been_are_not_taken_over() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let of = OfServer { version: VERSION, carried: Carried::default() };
        let text = serde_json::to_string(&of).expect("JSON");
        let text = text.replace("\"count\":0", "\"count\":18446744073709551615");
        fs::write(folder.path().join(OF_SERVER), text).expect("written");
        let before = read(folder.path(), "models").expect("readable").expect("there");
        let (rules, start) = (Rules::with_period(1.0), jiff::Timestamp::UNIX_EPOCH);
        let mut annunciator = Annunciator::new(Vec::new(), Mode::Evidence, rules, start);
        let said = annunciator.resume(&before.carried).to_line();
        assert!(said.contains("makes no sense"), "{said}");
    }
}
