//! What is said about flags that were judged again, methods that only rehearse, sensors that stay private
//! and alarms back from the shelf.

use ratatui::style::Style;

use super::plant::{self, Desk};
use super::views::{at_work, picture, text};
use crate::console::app::Screen;
use crate::engine::knob::Knob;

/// What a view shows at a size where it has room.
fn said(desk: &Desk) -> Vec<String> {
    text(&picture(&desk.console, 120, 40).0)
}

#[test]
fn a_threshold_that_is_set_flags_the_past_anew_says_so_and_undone_shows_it_as_sent() {
    let mut desk = Desk::attacked(plant::ATTACK - 10);
    for mode in ["evidence", "paper"] {
        desk.keys(&format!(":mode {mode}<enter><enter>1"));
        let flags = |desk: &Desk| -> Vec<String> {
            let z =
                |row: &&String| row.get(18..).is_some_and(|row| row.trim_start().starts_with('Z'));
            said(desk).iter().filter(z).cloned().collect()
        };
        let incidents =
            |desk: &Desk| desk.console.model.watched.as_ref().map(|w| w.incidents.clone());
        let (sent, declared) = (flags(&desk), incidents(&desk));
        assert!(!sent.is_empty());
        assert!(!said(&desk).join("\n").contains("re-judged"));
        desk.keys(":tau_c 60%<enter><enter>");
        let raised = |rows: &[String]| rows.join("").matches(['▀', '█']).count();
        assert!(raised(&flags(&desk)) > raised(&sent), "{:?}\n{sent:?}", flags(&desk));
        assert!(said(&desk).join("\n").contains("Z re-judged"), "{}", said(&desk).join("\n"));
        assert!(desk.said().ends_with("the flags so far are re-judged by it"), "{}", desk.said());
        assert_eq!(incidents(&desk), declared, "what was declared stays");
        desk.keys("4");
        assert!(said(&desk).join("\n").contains("Z re-judged"), "{}", said(&desk).join("\n"));
        desk.keys("1u");
        assert_eq!(flags(&desk), sent);
        assert!(!said(&desk).join("\n").contains("re-judged"));
    }
}

#[test]
fn the_method_that_does_not_decide_is_labelled_as_rehearsed() {
    let mut desk = at_work();
    for (mode, sent, rehearsed) in [
        ("evidence", "symbols sent", "flags Z, not sent"),
        ("paper", "flags Z ", "symbols, not sent"),
    ] {
        desk.keys(&format!(":mode {mode}<enter><enter>2"));
        desk.steps(3);
        let shown = said(&desk).join("\n");
        assert!(shown.contains(sent) && shown.contains(rehearsed), "{mode}:\n{shown}");
    }
}

#[test]
fn a_dead_band_on_trial_shows_the_flags_that_would_stand_longer() {
    let mut desk = Desk::attacked(plant::ATTACK - 10);
    desk.keys(":mode paper<enter><enter>6<down><down><down>-------1");
    assert!(desk.console.model.tuning.as_ref().is_some_and(|t| t.knob() == Knob::Deadband));
    let (buffer, _) = picture(&desk.console, 120, 40);
    let ghost = desk.console.model.theme.ghost;
    let ghosts = buffer.content().iter().filter(|cell| {
        ["▀", "▄", "█"].contains(&cell.symbol())
            && cell.style().add_modifier == ghost.add_modifier
            && cell.style().fg == Style::reset().patch(ghost).fg
    });
    assert!(ghosts.count() > 0, "{}", said(&desk).join("\n"));
}

#[test]
fn a_sensor_is_named_outside_its_client_only_where_the_session_allows_it() {
    // To 01:29:20, when an incident is open.
    let desk =
        |reveal: bool| Desk::attacked_where(112, |session| session.privacy.reveal_sensor = reveal);
    let (mut silent, mut telling) = (desk(false), desk(true));
    let sensors: Vec<String> = {
        let measured = silent.console.model.measured.as_ref().expect("opened");
        measured.clients.iter().flat_map(|c| c.sensors.iter().map(|s| s.name.clone())).collect()
    };
    let names = |text: &str| sensors.iter().filter(|name| text.contains(name.as_str())).count();
    let shows = |desk: &mut Desk, keys: &str| {
        desk.keys(keys);
        said(desk).join("\n")
    };
    for view in ["1", "4", "7"] {
        let shown = shows(&mut silent, view);
        assert_eq!(names(&shown), 0, "{shown}");
    }
    assert!(names(&shows(&mut silent, "2")) > 3, "a client's own view is its own");
    let incident = shows(&mut silent, "4");
    assert!(incident.contains("P1 keeps its sensors private"), "{incident}");
    silent.keys("<enter>");
    assert_eq!(silent.console.model.screen, Screen::Client, "where the key that is said leads");
    let incident = shows(&mut telling, "4");
    assert!(names(&incident) > 0 && incident.contains("says that it deviates most"), "{incident}");
    let overview = shows(&mut telling, "1");
    assert!(names(&overview) > 0, "{overview}");
}

#[test]
fn an_alarm_that_comes_back_from_the_shelf_says_that_it_was_there() {
    // To 01:28:55, when an incident has just opened.
    let mut desk = Desk::attacked(107);
    desk.keys("s420s<enter>");
    assert!(said(&desk).join("\n").contains("shelved, 20s left"), "{}", said(&desk).join("\n"));
    desk.steps(5);
    for view in ["1", "4"] {
        desk.keys(view);
        assert!(said(&desk).join("\n").contains("not acknowledged, was shelved"));
    }
    desk.keys("a");
    assert!(!said(&desk).join("\n").contains("not acknowledged, was shelved"));
    desk.keys(":mode paper<enter><enter>");
    assert!(desk.said().contains("mode evidence → paper"), "what was done: {}", desk.said());
}
