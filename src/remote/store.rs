//! A SQLite file that survives a killed process: what outbox and journal have in common.
//!
//! Bytes are stored with a checksum of themselves and of where they belong: SQLite finds a damaged page only
//! where its structure suffers.

use std::path::{Path, PathBuf};

use rusqlite::types::{FromSql, FromSqlResult, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Params, ToSql};
use thiserror::Error;

use crate::base::digest::Hashed;

/// The form of the tables. Files of another form belong to another run.
pub(super) const FORM: &str = "checked-1";
/// Hexadecimal digits of a checksum.
const SUM: usize = 16;

/// Why something could not be stored.
#[derive(Debug, Error)]
pub(crate) enum StoreError {
    #[error("{}: {why}", path.display())]
    Sqlite { path: PathBuf, why: rusqlite::Error },
    #[error("{}: {why}", path.display())]
    Folder { path: PathBuf, why: std::io::Error },
    /// What trainings have cost must not be forgotten.
    #[error("{}: what trainings have released cannot be read: {why}", path.display())]
    Trainings { path: PathBuf, why: serde_json::Error },
    /// What was stored is not what is there.
    #[error(
        "{}: {what} is damaged: its checksum is not the one that was stored with it; bring the file back \
         from a copy, or remove it to begin anew",
        path.display()
    )]
    Damaged { path: PathBuf, what: String },
    #[error(
        "{} belongs to another run (other settings, seed, method or version); remove it to begin \
         anew, or name another file with --outbox",
        path.display()
    )]
    Foreign { path: PathBuf },
}

#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    connection: Connection,
}

impl Store {
    /// Opens the file at `path`, or makes it, with the tables of `schema`.
    pub(super) fn open(path: &Path, schema: &str) -> Result<Self, StoreError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            let failed = |why| StoreError::Folder { path: folder.to_owned(), why };
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let failed = |why| StoreError::Sqlite { path: path.to_owned(), why };
        let connection = Connection::open(path).map_err(failed)?;
        let store = Self { path: path.to_owned(), connection };
        // A write-ahead log that is not synced survives a killed process, not a power loss: then the
        // last steps are missing.
        store.batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")?;
        store.batch(schema)?;
        Ok(store)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The version of its tables; 0 where none was noted.
    pub(super) fn version(&self) -> Result<i64, StoreError> {
        Ok(self.get("PRAGMA user_version", [])?.unwrap_or(0))
    }

    pub(super) fn set_version(&self, version: i64) -> Result<(), StoreError> {
        self.batch(&format!("PRAGMA user_version = {version};"))
    }

    /// Several statements without parameters.
    pub(super) fn batch(&self, statements: &str) -> Result<(), StoreError> {
        self.connection.execute_batch(statements).map_err(|why| self.failed(why))
    }

    /// Does several things, all of them or none.
    pub(super) fn whole(
        &self,
        put: impl FnOnce() -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.batch("BEGIN;")?;
        let done = put();
        self.batch(if done.is_ok() { "COMMIT;" } else { "ROLLBACK;" })?;
        done
    }

    /// The first column of the first row; none where there is no row.
    pub(super) fn get<T: FromSql>(
        &self,
        query: &str,
        of: impl Params,
    ) -> Result<Option<T>, StoreError> {
        let found = self
            .connection
            .prepare_cached(query)
            .and_then(|mut query| query.query_row(of, |row| row.get(0)).optional());
        found.map_err(|why| self.failed(why))
    }

    /// The first column of all rows.
    pub(super) fn all<T: FromSql>(
        &self,
        query: &str,
        of: impl Params,
    ) -> Result<Vec<T>, StoreError> {
        let found = self.connection.prepare_cached(query).and_then(|mut query| {
            query.query_map(of, |row| row.get(0)).and_then(Iterator::collect)
        });
        found.map_err(|why| self.failed(why))
    }

    pub(super) fn put(&self, statement: &str, of: &[&dyn ToSql]) -> Result<(), StoreError> {
        let put = self
            .connection
            .prepare_cached(statement)
            .and_then(|mut statement| statement.execute(of));
        put.map(|_| ()).map_err(|why| self.failed(why))
    }

    /// Bytes that were stored with [`sealed`], in the first column of the first row; none where there is no
    /// row.
    pub(super) fn get_sealed(
        &self,
        query: &str,
        of: impl Params,
        place: &str,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let stored: Option<Stored> = self.get(query, of)?;
        let open = |Stored(bytes)| {
            bytes.and_then(|bytes| unsealed(place, bytes)).ok_or_else(|| self.damaged(place))
        };
        stored.map(open).transpose()
    }

    pub(super) fn damaged(&self, what: &str) -> StoreError {
        StoreError::Damaged { path: self.path.clone(), what: what.to_owned() }
    }

    /// Nobody will ask for it again: removes the file.
    pub(super) fn remove(self) -> Result<(), StoreError> {
        let Self { path, connection } = self;
        let failed = |why| StoreError::Sqlite { path: path.clone(), why };
        connection.close().map_err(|(_, why)| failed(why))?;
        std::fs::remove_file(&path).map_err(|why| StoreError::Folder { path, why })
    }

    fn failed(&self, why: rusqlite::Error) -> StoreError {
        StoreError::Sqlite { path: self.path.clone(), why }
    }
}

/// Bytes as they stand in a row; none where something else stands there, such as text or a number.
struct Stored(Option<Vec<u8>>);

impl FromSql for Stored {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(Self(value.as_blob().ok().map(<[u8]>::to_vec)))
    }
}

/// Bytes with a checksum behind them. `place` says what they are, so that those of another row are not
/// taken for these.
pub(super) fn sealed(place: &str, bytes: &[u8]) -> Vec<u8> {
    [bytes, sum(place, bytes).as_bytes()].concat()
}

fn unsealed(place: &str, mut stored: Vec<u8>) -> Option<Vec<u8>> {
    let end = stored.len().checked_sub(SUM)?;
    let is_whole = sum(place, &stored[..end]).as_bytes() == &stored[end..];
    stored.truncate(end);
    is_whole.then_some(stored)
}

fn sum(place: &str, bytes: &[u8]) -> String {
    let mut hashed = Hashed::default();
    hashed.take(place.as_bytes());
    hashed.take(&[0]);
    hashed.take(bytes);
    hashed.hex()[..SUM].to_owned()
}

/// A count as SQLite has numbers. No run is so long that it does not fit.
pub(super) fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
