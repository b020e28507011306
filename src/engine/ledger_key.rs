//! The key that signs this machine's ledgers, in the configuration folder: made when it is first
//! needed, readable by its owner only.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::base::folders;
use crate::privacy::LedgerKey;

/// The name of the file.
pub(crate) const KEY_FILE: &str = "ledger.key";

/// Where the key is kept; `None` where the system has no folder for settings.
pub(crate) fn path() -> Option<PathBuf> {
    Some(folders::configuration(|name| std::env::var(name).ok())?.join(KEY_FILE))
}

/// The key of this machine, where there is one already.
pub(crate) fn known(file: &Path) -> Result<Option<LedgerKey>, String> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(format!("{}: {why}", file.display())),
    };
    let not_a_key = "not a key that signs ledgers: expected 64 hexadecimal digits; bring it back from \
                     its backup, or remove it and begin new ledgers";
    let key = LedgerKey::from_text(&text);
    key.map(Some).ok_or_else(|| format!("{}: {not_a_key}", file.display()))
}

/// The key of this machine, made now where there is none, and messages about it.
pub(super) fn own() -> Result<(LedgerKey, Option<String>), String> {
    let file = path().ok_or(
        "a ledger is signed, and there is no folder to keep the key in: set \
                             HEADWATER_CONFIG",
    )?;
    if let Some(key) = known(&file)? {
        return Ok((key, is_open_to_others(&file)));
    }
    let key = LedgerKey::new().map_err(|why| why.to_string())?;
    make(&file, &key).map_err(|why| format!("cannot write {}: {why}", file.display()))?;
    // Another run may have been faster: its key is the one that is there.
    let key = known(&file)?.ok_or_else(|| format!("{}: it was removed", file.display()))?;
    let public = key.public();
    let notice = format!(
        "a new key signs ledgers: {}, public half {public}; keep a backup of the file, without it no \
         ledger can be continued",
        file.display()
    );
    Ok((key, Some(notice)))
}

/// Writes the key under another name and then links it to its own, so that the file is never seen
/// half-written and a key that is there is never replaced.
fn make(file: &Path, key: &LedgerKey) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(folder)?;
    let partial = folder.join(format!(".{KEY_FILE}.{}.partial", std::process::id()));
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&partial).and_then(|mut opened| {
        opened.write_all(key.to_text().as_bytes())?;
        opened.sync_all()?;
        match fs::hard_link(&partial, file) {
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            // Some file systems have no links.
            Err(_) => fs::rename(&partial, file),
            Ok(()) => Ok(()),
        }
    });
    // After a rename it is gone; otherwise the key has its own name by now, or there is none.
    let _ = fs::remove_file(&partial);
    written
}

/// A warning where others than its owner may read the key.
#[cfg(unix)]
fn is_open_to_others(file: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(file).ok()?.permissions().mode();
    (mode & 0o077 != 0).then(|| {
        let file = file.display();
        format!(
            "{file}: others than its owner can read the key that signs ledgers (mode {:o}); \
                 chmod 600 takes that away",
            mode & 0o777
        )
    })
}

#[cfg(not(unix))]
fn is_open_to_others(_: &Path) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_there_is_never_replaced() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let file = folder.path().join("deep").join(KEY_FILE);
        assert!(known(&file).expect("nothing wrong").is_none());
        let (first, second) = (LedgerKey::new().expect("a key"), LedgerKey::new().expect("a key"));
        make(&file, &first).expect("written");
        make(&file, &second).expect("nothing to do");
        let kept = known(&file).expect("a key").expect("there");
        assert_eq!(kept.public(), first.public());
        assert_eq!(fs::read_dir(folder.path().join("deep")).expect("readable").count(), 1);
        fs::write(&file, "half a key").expect("written");
        assert!(known(&file).expect_err("no key").contains("bring it back from its backup"));
    }
}
