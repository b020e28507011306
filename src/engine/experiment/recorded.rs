//! Where the files of a recorded data set are.

use std::path::{Path, PathBuf};

use crate::session::{Session, Source};
use crate::stream::{self, Part, StreamError};

/// The session with the folder that holds its data: the one given, one of its own name in that, or
/// the one it names itself. The inner error says which files are missing.
pub(crate) fn with_data(
    session: &Session,
    data: Option<&Path>,
) -> Result<Result<Session, StreamError>, StreamError> {
    let own = match &session.source {
        Source::Table(table) => PathBuf::from(&table.data),
        Source::Hai(hai) => PathBuf::from(&hai.data),
        Source::Plant(_) | Source::Twin(_) | Source::Live(_) => PathBuf::new(),
    };
    let folders = match data {
        Some(data) => vec![data.to_owned(), data.join(&own)],
        None => vec![own],
    };
    let mut complaint = None;
    for folder in folders {
        let mut session = session.clone();
        session.set_data_folder(&folder);
        match Part::ALL.into_iter().try_for_each(|part| stream::open(&session, part).map(|_| ())) {
            Ok(()) => return Ok(Ok(session)),
            Err(missing @ StreamError::MissingFiles { .. }) => {
                complaint = complaint.or(Some(missing));
            }
            Err(other) => return Err(other),
        }
    }
    complaint.map_or_else(|| Ok(Ok(session.clone())), |missing| Ok(Err(missing)))
}
