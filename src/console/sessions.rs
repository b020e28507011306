//! What can be opened: the sessions that come with the program, and session files at hand.

use std::path::Path;

use crate::record;
use crate::session::{SHIPPED, Session};
use crate::stream::{self, Part};

use super::app::Msg;
use super::remark::Remark;
use super::subject::Subject;
use super::text::clean;

/// Recordings that are listed.
const MOST_RECORDINGS: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Openable {
    /// What `open` takes: the name of a shipped session, or a file.
    pub name: String,
    /// One line on what it is, safe to show.
    pub about: String,
    pub data: Data,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Data {
    BuiltIn,
    /// Rows come from outside while it runs.
    Live,
    AtHand,
    Absent,
    /// The session itself is wrong, for this reason.
    Wrong(String),
}

/// The sessions that come with the program, then the session files in `folder`, by name, then the
/// newest of `recordings`.
pub(crate) fn list(folder: &Path, recordings: Option<&Path>) -> Vec<Openable> {
    let shipped = SHIPPED.iter().map(|shipped| openable(shipped.name));
    let mut files: Vec<String> = folder
        .read_dir()
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "ron"))
        .filter(|path| path.file_name().is_some_and(|name| name != "keys.ron"))
        .filter_map(|path| path.to_str().map(str::to_owned))
        .collect();
    files.sort();
    let files = files.iter().map(|file| openable(file));
    shipped.chain(files).chain(newest(recordings)).collect()
}

/// The newest recordings. They are not opened for this: one of them may be written just now.
fn newest(folder: Option<&Path>) -> impl Iterator<Item = Openable> {
    let found = folder.map(record::folder::list);
    found.unwrap_or_default().into_iter().rev().take(MOST_RECORDINGS).map(|file| {
        let megabytes = file.metadata().map_or(0.0, |found| found.len() as f64 / 1e6);
        let stem = file.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
        Openable {
            about: clean(&format!("recording {stem}, {megabytes:.1} MB")),
            name: file.to_string_lossy().into_owned(),
            data: Data::AtHand,
        }
    })
}

fn openable(name: &str) -> Openable {
    let (about, data) = match Session::open(name) {
        Ok(session) => {
            let data = match session.data_folder() {
                None if session.live().is_some() => Data::Live,
                None => Data::BuiltIn,
                Some(folder) if folder.is_dir() => Data::AtHand,
                Some(_) => Data::Absent,
            };
            (clean(&session.about), data)
        }
        Err(error) => {
            let why = error.to_string();
            (String::new(), Data::Wrong(clean(why.lines().next().unwrap_or_default())))
        }
    };
    Openable { name: name.to_owned(), about, data }
}

/// The session of that name, if there is data to open: a user who leaves a running session for one that
/// cannot be opened would lose both.
pub(crate) fn with_data(name: &str) -> Result<Subject, String> {
    let subject = Subject::named(name).map_err(|error| error.to_string())?;
    if let Subject::Session(session) = &subject
        && session.data_folder().is_some()
    {
        // Of files only the beginning is read.
        stream::open(session, Part::Replay).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(subject)
}

/// What comes of looking whether a session has data: it can be opened, or why not.
pub(crate) fn checked(name: String) -> Msg {
    match with_data(&name) {
        Ok(_) => Msg::HasData(name),
        Err(why) => Msg::Done(Remark::failed(&format!("{why}; this one goes on"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_session_comes_first_and_files_at_hand_last() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        std::fs::write(folder.path().join("broken.ron"), "Session(").expect("written");
        let good = r#"Session(about: "mine", source: Plant(hours: 1))"#;
        std::fs::write(folder.path().join("mine.ron"), good).expect("written");
        let found = list(folder.path(), None);
        assert_eq!((found[0].name.as_str(), &found[0].data), ("plant-attack-day", &Data::BuiltIn));
        let live = found.iter().find(|session| session.name == "plant-live").expect("shipped");
        assert_eq!(live.data, Data::Live, "as `headwater sessions` says");
        let mine = found.last().expect("a file");
        assert_eq!((mine.about.as_str(), &mine.data), ("mine", &Data::BuiltIn));
        assert!(matches!(found[found.len() - 2].data, Data::Wrong(_)));
    }
}
