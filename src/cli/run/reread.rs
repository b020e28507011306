//! SIGHUP: the session file is read again. What can be tuned is set; of the rest it is said that it
//! needs a restart.

use std::sync::Arc;

use color_eyre::eyre::Result;

use crate::attach::desk::{Giver, OrderDesk};
use crate::cli::SessionArgs;
use crate::engine::knob::{Knob, Turn};
use crate::incident::{OperatorAction, Order};
use crate::session::Session;

/// What a session file says otherwise than before.
#[derive(Debug, Default, PartialEq)]
struct Changes {
    /// Knobs, with their values before and after.
    tuned: Vec<(Turn, Turn)>,
    /// Keys that count from the next start on.
    restart: Vec<String>,
}

fn changes(before: &Session, after: &Session) -> Changes {
    let knobs = Knob::all(0);
    let turn = |session: &Session, knob: Knob| knob.as_written(session);
    let pairs = knobs.iter().map(|knob| (turn(before, *knob), turn(after, *knob)));
    let tuned: Vec<(Turn, Turn)> = pairs.filter(|(was, is)| was != is).collect();
    let tunable: Vec<&str> = knobs.iter().map(|knob| knob.key()).collect();
    // Every key of the file, but those that a knob stands for.
    let json = |session: &Session| serde_json::to_value(session).unwrap_or_default();
    let mut restart = Vec::new();
    differing("", &json(before), &json(after), &mut restart);
    restart.retain(|key| !tunable.iter().any(|knob| key == knob));
    Changes { tuned, restart }
}

/// The keys of two objects whose values differ, those inside of `thresholds` and `privacy` one by one.
fn differing(
    within: &str,
    before: &serde_json::Value,
    after: &serde_json::Value,
    keys: &mut Vec<String>,
) {
    let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else { return };
    for (key, was) in before {
        let is = after.get(key).unwrap_or(&serde_json::Value::Null);
        let path = if within.is_empty() { key.clone() } else { format!("{within}.{key}") };
        if was == is {
            continue;
        }
        if ["thresholds", "privacy"].contains(&path.as_str()) {
            differing(&path, was, is, keys);
        } else {
            keys.push(path);
        }
    }
}

/// Sets what can be tuned, and says what was done.
fn apply(changes: &Changes, desk: &OrderDesk) -> Vec<String> {
    let mut said = Vec::new();
    for (was, is) in &changes.tuned {
        let name = is.knob().name(&[]);
        let action = OperatorAction::Set { what: name.clone(), to: is.value() };
        let why = Some("the session file was read again".to_owned());
        let order = Order { who: "SIGHUP".to_owned(), action, why };
        if desk.hand_in(Giver::Service, &order) {
            said.push(format!("{name} {was} → {is}"));
        } else {
            said.push(format!("{name} stays {was}: the engine is busy, send SIGHUP again"));
        }
    }
    if !changes.restart.is_empty() {
        said.push(format!("needs a restart: {}", changes.restart.join(", ")));
    }
    if said.is_empty() {
        said.push("nothing has changed".to_owned());
    }
    said
}

/// Reads the file of a session again whenever SIGHUP comes, and says by `tell` what became of it.
#[cfg(unix)]
pub(super) fn on_hang_up(
    args: &SessionArgs,
    session: &Session,
    desk: Arc<OrderDesk>,
    tell: impl Fn(&str) + Send + 'static,
) -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let (args, mut known) = (args.clone(), session.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (ready, is_ready) = std::sync::mpsc::channel::<()>();
    std::thread::Builder::new().name("reread".into()).spawn(move || {
        runtime.block_on(async {
            let Ok(mut signals) = signal(SignalKind::hangup()) else { return };
            drop(ready);
            while signals.recv().await.is_some() {
                match args.open() {
                    Ok(session) => {
                        let said = apply(&changes(&known, &session), &desk);
                        tell(&format!("{} read again: {}", args.session, said.join("; ")));
                        known = session;
                    }
                    Err(why) => tell(&format!("the session stays as it was: {why}")),
                }
            }
        });
    })?;
    // From here on SIGHUP does not end the program.
    let _ = is_ready.recv();
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn on_hang_up(
    _args: &SessionArgs,
    _session: &Session,
    _desk: Arc<OrderDesk>,
    _tell: impl Fn(&str) + Send + 'static,
) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn session(more: &str) -> Session {
        let text = format!("Session(about: \"a test\", source: Plant(attacks: Day), {more})");
        Session::parse("test", Path::new(""), &text).expect("a session")
    }

    #[test]
    fn what_can_be_tuned_is_told_apart_from_what_needs_a_restart() {
        let before = session("thresholds: (arl0: \"2d\")");
        assert_eq!(changes(&before, &before), Changes::default());
        let after = session(
            "thresholds: (arl0: \"8h\"), privacy: (epsilon_flag: Some(4.0)), \
             sampling: (decimate: Every(2))",
        );
        let found = changes(&before, &after);
        let names: Vec<String> = found.tuned.iter().map(|(_, is)| is.knob().name(&[])).collect();
        assert_eq!(names, ["arl0", "epsilon_flag"]);
        assert_eq!(found.restart, ["sampling"]);
    }
}
