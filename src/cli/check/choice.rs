//! Whether the author of a session chose what noise protects it.

use std::fs;

use crate::session::{SHIPPED, Session, edit};

/// Whether the session's file states an ε, or None in its place. Both are a choice; a session that
/// says nothing has made none.
pub(super) fn is_made(session: &Session) -> bool {
    let folder = &session.folder;
    let files = [folder.join(format!("{}.ron", session.name)), folder.join(&session.name)];
    let files = files.into_iter().filter_map(|file| fs::read_to_string(file).ok());
    let shipped = SHIPPED.iter().filter(|shipped| shipped.name == session.name);
    let mut texts = files.chain(shipped.map(|shipped| shipped.text.to_owned()));
    // A shipped session may have a file of its name beside it.
    let is_its_own = |text: &String| {
        Session::parse(&session.name, folder, text).is_ok_and(|read| {
            (read.about, read.privacy) == (session.about.clone(), session.privacy.clone())
        })
    };
    texts.find(is_its_own).is_none_or(|text| states(&text))
}

/// Whether the text of a session states an ε, or None in its place.
fn states(text: &str) -> bool {
    ["epsilon_flag", "epsilon_flag_a", "epsilon_c", "epsilon_a", "epsilon_g"]
        .iter()
        .any(|key| edit::has(text, &format!("privacy.{key}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_a_choice_and_silence_is_not() {
        let session = |privacy: &str| format!("Session(about: \"x\", source: Twin(){privacy})");
        assert!(states(&session(", privacy: (epsilon_flag: None)")));
        assert!(states(&session(", privacy: (epsilon_c: 2.0)")));
        assert!(!states(&session(", privacy: (symbol: OneBit)")));
        assert!(!states(&session("")));
    }

    #[test]
    fn every_shipped_session_of_evidence_mode_chooses_its_noise() {
        for shipped in SHIPPED.iter().filter(|shipped| !shipped.name.ends_with("-paper")) {
            assert!(states(shipped.text), "{}", shipped.name);
            assert!(is_made(&Session::open(shipped.name).expect("a shipped session")));
        }
    }
}
