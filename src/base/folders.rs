//! Where the program keeps files of its own: the user's settings and keys, ledgers, recordings.
//!
//! It must not know what stands in them.

use std::path::PathBuf;

/// A variable of the environment; one that is empty counts as absent.
fn set(variable: &impl Fn(&str) -> Option<String>, name: &str) -> Option<PathBuf> {
    variable(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The folder of `keys.ron` and of the key that signs ledgers: `HEADWATER_CONFIG`, else where the
/// system keeps such files; `None` where it keeps none.
pub(crate) fn configuration(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    set(&variable, "HEADWATER_CONFIG")
        .or_else(|| Some(set(&variable, "XDG_CONFIG_HOME")?.join("headwater")))
        .or_else(|| Some(set(&variable, "HOME")?.join(".config").join("headwater")))
        .or_else(|| Some(set(&variable, "APPDATA")?.join("headwater")))
}

/// The folder of what live sources keep: history that was learned from, queues of outputs.
/// `HEADWATER_LIVE`, else where the system keeps the state of programs; `None` where it keeps none.
pub(crate) fn live(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let below = |folder: PathBuf| folder.join("headwater").join("live");
    set(&variable, "HEADWATER_LIVE")
        .or_else(|| Some(below(set(&variable, "XDG_STATE_HOME")?)))
        .or_else(|| Some(below(set(&variable, "HOME")?.join(".local").join("state"))))
        .or_else(|| Some(below(set(&variable, "LOCALAPPDATA")?)))
}

/// The default folder of ledgers: `HEADWATER_LEDGERS`, else where the system keeps data of
/// programs; `None` where it keeps none. It is no cache: what is removed from it was not counted.
pub(crate) fn ledgers(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let below = |folder: PathBuf| folder.join("headwater").join("ledgers");
    set(&variable, "HEADWATER_LEDGERS")
        .or_else(|| Some(below(set(&variable, "XDG_DATA_HOME")?)))
        .or_else(|| Some(below(set(&variable, "HOME")?.join(".local").join("share"))))
        .or_else(|| Some(below(set(&variable, "LOCALAPPDATA")?)))
}

/// The default folder of recordings: `HEADWATER_RECORDINGS`, else where the system keeps data
/// of programs; `None` where it keeps none.
pub(crate) fn recordings(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let below = |folder: PathBuf| folder.join("headwater").join("recordings");
    set(&variable, "HEADWATER_RECORDINGS")
        .or_else(|| Some(below(set(&variable, "XDG_DATA_HOME")?)))
        .or_else(|| Some(below(set(&variable, "HOME")?.join(".local").join("share"))))
        .or_else(|| Some(below(set(&variable, "LOCALAPPDATA")?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_ledgers_follows_the_environment() {
        let with = |known: &[(&str, &str)]| {
            let known: Vec<(String, String)> =
                known.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            ledgers(|name| known.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone()))
        };
        assert_eq!(with(&[("HEADWATER_LEDGERS", "/l"), ("HOME", "/h")]), Some("/l".into()));
        assert_eq!(
            with(&[("HEADWATER_LEDGERS", ""), ("XDG_DATA_HOME", "/d"), ("HOME", "/h")]),
            Some("/d/headwater/ledgers".into())
        );
        assert_eq!(with(&[("HOME", "/h")]), Some("/h/.local/share/headwater/ledgers".into()));
        assert_eq!(with(&[]), None);
    }
}
