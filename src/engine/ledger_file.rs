//! The file that a run's ledgers are kept in: one writer at a time, signed, readable by its owner only.
//!
//! Entries are written once a step, before any fact about them. They reach the disk
//! once a second and at the end, and are signed as often. A run with noise from a seed must write the
//! same bytes every time: there, seals follow from the number of entries alone.

use std::fs::{self, File};
use std::io::{BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::error::OpenError;
use super::ledger_key;
use super::prepare::TrainingSpent;
use super::watch::Watch;
use crate::base::digest;
use crate::base::folders;
use crate::privacy::{
    ClientHead, Found, Head, Ledger, LedgerKey, Provenance, Seals, SignedLedgers, Terms, signed,
};
use crate::session::privacy::Scope;
use crate::session::{Session, Source};

/// Entries reach the disk, and are signed, at least this often.
const EVERY: Duration = Duration::from_secs(1);

/// Entries that are signed together at most.
const ENTRIES: u64 = 4096;

/// Where a ledger is kept without being asked for: where the session has a budget for the whole
/// history, which means nothing if a restart forgets what was spent.
///
/// Not for noise from a seed. Such a run protects nothing, so there is nothing to count; and it must
/// give the same facts every time, which a budget that was spent by the run before would prevent.
///
/// The file belongs to the clients, by their names and columns, and not to the session's name or place:
/// a budget is not renewed because a file was renamed.
pub(crate) fn lifetime_ledger(session: &Session) -> Result<Option<PathBuf>, OpenError> {
    let over = session.privacy.budget.map(|budget| budget.over);
    if over != Some(Scope::Lifetime) || Provenance::of(session) == Provenance::Seeded {
        return Ok(None);
    }
    let folder = folders::ledgers(|name| std::env::var(name).ok()).ok_or(
        "a budget for the whole history needs a ledger, and there is no folder to keep it in: set \
         HEADWATER_LEDGERS, or name a file with --ledger",
    )?;
    let clients: Vec<_> =
        session.clients.iter().map(|c| (&c.name, &c.columns, &c.except)).collect();
    // Built-in clients are known by their source.
    let source = match &session.source {
        Source::Hai(hai) => format!("HAI {} {:?}", hai.version, hai.sensors),
        Source::Plant(_) | Source::Twin(_) | Source::Table(_) | Source::Live(_) => String::new(),
    };
    let of = digest::sha256(serde_json::to_string(&(clients, source))?.as_bytes());
    Ok(Some(folder.join(format!("clients-{}.ledger", &of[..16]))))
}

/// Where the ledgers' lines go.
#[derive(Debug)]
pub(super) struct KeptLedger(Option<Writer>);

/// The content of a file when it was opened.
#[derive(Debug, Default)]
pub(super) struct Opened {
    /// The ledgers to be continued; none where no file is kept.
    pub(crate) ledgers: Option<Vec<Ledger>>,
    /// Messages about the file or the key.
    pub(crate) notices: Vec<String>,
}

/// When entries are signed before the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SealedBy {
    /// Whenever they reach the disk.
    Clock,
    /// By their number alone, so that the same run writes the same bytes.
    Count,
}

#[derive(Debug)]
struct Writer {
    path: PathBuf,
    file: File,
    key: LedgerKey,
    seals: Seals,
    /// The chains in the file as it was opened, of clients in this run or not.
    clients: Vec<ClientHead>,
    sealed_by: SealedBy,
    /// When all of it was on the disk last.
    synced: Instant,
    unsynced: bool,
    /// A seal with all clients' heads is the last line.
    finished: bool,
    /// Something could not be written: what is in the file is not known any more.
    failed: bool,
}

impl KeptLedger {
    /// The content of the ledger file of `session`, and the file.
    pub(crate) fn open(
        session: &Session,
        named: Option<PathBuf>,
    ) -> Result<(Opened, Self), OpenError> {
        let lifetime = if named.is_none() { lifetime_ledger(session)? } else { None };
        let by_itself = lifetime.is_some();
        let Some(path) = named.or(lifetime) else { return Ok((Opened::default(), Self(None))) };
        let mut notices = Vec::new();
        if by_itself {
            make_private_folder(&path)?;
            notices.push(format!(
                "the budget is for the whole history: {} counts what is spent, over all starts",
                path.display()
            ));
        }
        let (key, about_key) = ledger_key::own()?;
        notices.extend(about_key);
        let sealed_by = match Provenance::of(session) {
            Provenance::OperatingSystem => SealedBy::Clock,
            Provenance::Seeded => SealedBy::Count,
        };
        let (writer, kept) = Writer::open(path, key, sealed_by, &mut notices)?;
        Ok((Opened { ledgers: Some(kept), notices }, Self(Some(writer))))
    }

    /// No file: the run releases nothing.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// Stores what was released. No fact about it may be written before.
    pub(crate) fn store(&mut self, watch: &mut Watch) -> Result<(), OpenError> {
        let Some(writer) = &mut self.0 else { return Ok(()) };
        writer.store(&watch.run_mut().take_ledger_lines())
    }

    /// Enters what a training released for which no run does so, because its models are kept for
    /// later or could not be made; where the file ends then. `kept` are the ledgers in the file.
    pub(crate) fn enter_training(
        &mut self,
        kept: &[Ledger],
        clients: &[(&str, Terms)],
        spent: &TrainingSpent,
    ) -> Result<Option<Head>, OpenError> {
        let Some(writer) = &mut self.0 else { return Ok(None) };
        let mut entered = Vec::new();
        for ((client, terms), trained) in clients.iter().zip(&spent.clients) {
            let is_known = |ledger: &&Ledger| ledger.client() == *client;
            if kept.iter().find(is_known).is_some_and(|ledger| ledger.has_entered(trained)) {
                continue;
            }
            let mut ledger = Ledger::unwritten(client, *terms)?;
            ledger.write_from(spent.from, kept)?;
            ledger.enter_training(spent.from, trained);
            ledger.close(trained.first().map_or(spent.from, |trained| trained.until));
            writer.store(&ledger.take_lines())?;
            entered.push(ledger);
        }
        writer.finish(entered.iter())
    }

    /// Nothing will be stored for a while: what was is brought to the disk.
    pub(crate) fn rest(&mut self) -> Result<(), OpenError> {
        self.0.as_mut().map_or(Ok(()), Writer::sync)
    }

    /// Stores the end of all ledgers and signs it; where the file ends then.
    pub(crate) fn finish(&mut self, watch: &mut Watch) -> Result<Option<Head>, OpenError> {
        let Some(writer) = &mut self.0 else { return Ok(None) };
        writer.store(&watch.run_mut().take_ledger_lines())?;
        writer.finish(watch.run().ledgers())
    }
}

/// Makes the folder of `file`, for its owner only.
fn make_private_folder(file: &Path) -> Result<(), OpenError> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    Ok(builder.create(folder).map_err(|why| format!("{}: {why}", folder.display()))?)
}

/// Opens the file for one writer, and for its owner only, also where it was open to others before.
fn open_alone(path: &Path) -> Result<File, OpenError> {
    let said = |why: std::io::Error| format!("{}: {why}", path.display());
    let mut options = File::options();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(said)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => {
            let path = path.display();
            return Err(
                format!("{path}: another run is writing to it; a ledger has one writer").into()
            );
        }
        Err(fs::TryLockError::Error(why)) => {
            return Err(format!("{}: cannot be locked: {why}", path.display()).into());
        }
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let known = file.metadata().map_err(said)?;
        if known.is_file() && known.permissions().mode() & 0o077 != 0 {
            file.set_permissions(fs::Permissions::from_mode(0o600)).map_err(said)?;
        }
    }
    Ok(file)
}

impl Writer {
    fn open(
        path: PathBuf,
        key: LedgerKey,
        sealed_by: SealedBy,
        notices: &mut Vec<String>,
    ) -> Result<(Self, Vec<Ledger>), OpenError> {
        // A ledger begins with a signed line: one without it was lost, or never begun.
        if fs::metadata(&path).is_ok_and(|known| known.is_file() && known.len() == 0) {
            notices.push(format!(
                "{}: it is empty: a new ledger begins, and what was spent before is not known",
                path.display()
            ));
        }
        let file = open_alone(&path)?;
        let read = signed::read(BufReader::new(&file), None)
            .map_err(|broken| format!("{}: {broken}; it cannot be continued", path.display()))?;
        // Before anything in the file is touched.
        if let Some(head) = read.head().filter(|head| head.key != key.public()) {
            let (path, theirs, own) = (path.display(), &head.key, key.public());
            return Err(format!(
                "{path}: it is signed with the key {theirs}, and the key of this machine is {own}; \
                 it cannot be continued: bring the key back from its backup, or begin another file"
            )
            .into());
        }
        let found = read.found();
        if let Some(found) = &found {
            if found.torn.is_some() {
                file.set_len(read.sound_bytes)
                    .map_err(|why| format!("{}: {why}", path.display()))?;
            }
            notices.push(format!("{}: {}", path.display(), in_words(found)));
        }
        let SignedLedgers { ledgers, seals, .. } = read;
        let clients = ledgers.iter().map(Ledger::client_head).collect();
        let is_new = seals.last().is_none();
        let mut writer = Self {
            path,
            file,
            key,
            seals,
            clients,
            sealed_by,
            synced: Instant::now(),
            unsynced: false,
            finished: false,
            failed: false,
        };
        if is_new || found.is_some() {
            writer.seal(None, found)?;
            writer.sync()?;
        }
        if is_new {
            // The new name must survive a power cut too. Some systems cannot open a folder: no error.
            let folder = writer.path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|f| f.sync_all());
        }
        Ok((writer, ledgers))
    }

    fn write(&mut self, text: &str) -> Result<(), OpenError> {
        self.unsynced = true;
        self.finished = false;
        let written = self.file.write_all(text.as_bytes());
        self.failed |= written.is_err();
        Ok(written.map_err(|why| format!("{}: {why}", self.path.display()))?)
    }

    fn seal(
        &mut self,
        clients: Option<Vec<ClientHead>>,
        found: Option<Found>,
    ) -> Result<(), OpenError> {
        let line = self.seals.seal(&self.key, clients, found);
        self.write(&line)
    }

    fn store(&mut self, lines: &str) -> Result<(), OpenError> {
        if !lines.is_empty() {
            self.write(lines)?;
            self.seals.take(lines);
            if self.seals.unsigned() >= ENTRIES {
                self.seal(None, None)?;
            }
        }
        if self.unsynced && self.synced.elapsed() >= EVERY { self.sync() } else { Ok(()) }
    }

    /// Signs what is to be signed by the clock, and brings everything to the disk.
    fn sync(&mut self) -> Result<(), OpenError> {
        if self.sealed_by == SealedBy::Clock && self.seals.unsigned() > 0 {
            self.seal(None, None)?;
        }
        if self.unsynced {
            // What is no file, such as a pipe, has no disk to reach.
            let is_file = self.file.metadata().is_ok_and(|known| known.is_file());
            let synced = if is_file { self.file.sync_data() } else { Ok(()) };
            synced.map_err(|why| format!("{}: {why}", self.path.display()))?;
            self.unsynced = false;
        }
        self.synced = Instant::now();
        Ok(())
    }

    fn finish<'a>(
        &mut self,
        ledgers: impl Iterator<Item = &'a Ledger>,
    ) -> Result<Option<Head>, OpenError> {
        if self.failed {
            return Ok(None);
        }
        if !self.finished {
            for ledger in ledgers {
                let now = ledger.client_head();
                match self.clients.iter_mut().find(|known| known.client == now.client) {
                    Some(known) => *known = now,
                    None => self.clients.push(now),
                }
            }
            self.seal(Some(self.clients.clone()), None)?;
            self.sync()?;
            self.finished = true;
        }
        Ok(self.seals.last().cloned())
    }
}

/// The end of a file that was not finished.
fn in_words(found: &Found) -> String {
    let torn = found.torn.as_ref().map(|torn| {
        format!(
            "its last line was cut short; the {} bytes of it are noted, and the lines before it stand",
            torn.bytes
        )
    });
    let unsigned = (found.unsigned > 0).then(|| {
        format!(
            "its last {} entries were not signed, because the run before was cut short; they are \
             counted as they are, and that is noted",
            found.unsigned
        )
    });
    [torn, unsigned].into_iter().flatten().collect::<Vec<_>>().join("; ")
}
