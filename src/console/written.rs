//! Settings that were committed while a session ran, written into its file.

use std::fs;
use std::path::PathBuf;

use crate::base::atomic_file::{AtomicFile, WriteError};
use crate::engine::knob::{Knob, KnobValue, Turn};
use crate::session::settings::Span;
use crate::session::{Mode, SHIPPED, Session, Tau, Vote, edit};

/// The text of a session with some knobs turned, and the file it belongs into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub file: PathBuf,
    pub text: String,
}

/// Where a setting stands in a session, and how it is written there; none where a session has no place
/// for it.
fn place(turn: Turn) -> Option<(&'static str, String)> {
    // A client's own τ has no place in a session.
    if turn.knob.client().is_some() {
        return None;
    }
    let path = turn.knob.key();
    let value = match (turn.knob, turn.to) {
        (_, KnobValue::None) => "None".to_owned(),
        (_, KnobValue::Tau(Tau::Percentile(p))) => format!("Percentile({p})"),
        (_, KnobValue::Tau(Tau::Value(d))) => format!("Value({d})"),
        (_, KnobValue::Vote(Vote { k, n })) => format!("(k: {k}, n: {n})"),
        (Knob::Arl0, KnobValue::Number(seconds)) => format!("\"{}\"", Span { seconds }),
        (Knob::Budget, KnobValue::Number(epsilon)) => format!("(epsilon: {epsilon})"),
        (_, KnobValue::Number(n)) => n.to_string(),
        (_, KnobValue::Mode(Mode::Evidence)) => "Evidence".to_owned(),
        (_, KnobValue::Mode(Mode::Paper)) => "Paper".to_owned(),
    };
    Some((path, value))
}

/// The file of `session` with `turns` in it. A session that is shipped gets a file of its name in the
/// present folder.
pub(crate) fn written(session: &Session, turns: &[Turn]) -> Result<Written, String> {
    let file = session.folder.join(format!("{}.ron", session.name));
    let shipped = SHIPPED.iter().find(|shipped| shipped.name == session.name);
    let text = match (fs::read_to_string(&file), shipped) {
        (Ok(text), _) if shipped.is_some_and(|shipped| shipped.text != text) => {
            return Err(format!("{} is here already: open it instead", file.display()));
        }
        (Ok(text), _) => text,
        (Err(_), Some(shipped)) => shipped.text.to_owned(),
        (Err(error), None) => return Err(format!("{}: {error}", file.display())),
    };
    let mut changed = text;
    for turn in turns {
        if let Some((path, value)) = place(*turn) {
            // The rest of a budget stays as it is.
            let inner = (turn.knob == Knob::Budget).then_some(turn.to.number()).flatten();
            changed = match inner {
                Some(epsilon) if edit::has(&changed, "privacy.budget.epsilon") => {
                    edit::set(&changed, "privacy.budget.epsilon", &epsilon.to_string())
                }
                Some(_) | None => edit::set(&changed, path, &value),
            };
        }
    }
    let place = file.display().to_string();
    Session::parse(&place, &session.folder, &changed).map_err(|error| error.to_string())?;
    Ok(Written { file, text: changed })
}

impl Written {
    /// Writes it, whole or not at all.
    pub(crate) fn write(&self) -> Result<(), String> {
        let folder = self.file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.map_or_else(|| PathBuf::from("."), PathBuf::from);
        let name = self.file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let write = || -> Result<PathBuf, WriteError> {
            let mut file = AtomicFile::create(&folder, name)?;
            file.fill(|out| std::io::Write::write_all(out, self.text.as_bytes()))?;
            file.finish()?;
            file.publish()
        };
        write().map(drop).map_err(|error| format!("{}: {error}", self.file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_settings_are_written_into_the_session_and_read_back() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let file = folder.path().join("mine.ron");
        let text = "// mine\nSession(about: \"a test\", source: Plant(attacks: Day))\n";
        fs::write(&file, text).expect("written");
        let open = || Session::open(file.to_str().expect("a name")).expect("a session");
        let turns = [
            Knob::Arl0.at(28_800.0),
            Knob::EpsilonFlag.at(Some(4.0)),
            Knob::Budget.at(Some(200.0)),
            Knob::TauC(None).at(Some(Tau::Percentile(97.5))),
            Knob::Vote.at(Some(Vote { k: 3, n: 5 })),
        ];
        written(&open(), &turns).expect("a session").write().expect("written");
        let read = open();
        assert!((read.thresholds.arl0.seconds - 28_800.0).abs() < 1e-9);
        assert_eq!(read.thresholds.tau_c, Tau::Percentile(97.5));
        assert_eq!(read.thresholds.vote, Some(Vote { k: 3, n: 5 }));
        assert_eq!(read.privacy.epsilon_flag, Some(4.0));
        assert_eq!(read.privacy.budget.map(|budget| budget.epsilon), Some(200.0));
        let said = fs::read_to_string(&file).expect("there");
        assert!(said.starts_with("// mine\n"), "comments stay: {said}");
    }
}
