//! Small defects that new users found, each as what they saw.

use jiff::Timestamp;

use super::plant::{ATTACK, Desk};
use super::screen;
use super::views::{at_work, picture, text};
use crate::console::app::Msg;
use crate::console::glyph::BLOCKS;
use crate::console::remark::Remark;
use crate::console::sessions;
use crate::console::theme::{Terminal, Theme, ThemeChoice};
use crate::console::watched::Watched;
use crate::engine::watch::News;
use crate::incident::{AlarmState, Event, QualityKind, What};

fn state(desk: &Desk, incident: u64) -> AlarmState {
    desk.console.model.present(incident).expect("known").alarm.state
}

#[test]
fn taking_a_client_out_of_service_answers_for_no_incident_that_is_over() {
    let mut desk = at_work();
    let returned = |desk: &Desk| {
        let incidents = &desk.console.model.watched.as_ref().expect("opened").incidents;
        let over = incidents.iter().filter(|i| i.alarm.state == AlarmState::Returned);
        over.map(|i| (i.number, i.root)).collect::<Vec<_>>()
    };
    for _ in 0..40 {
        if returned(&desk).is_empty() {
            desk.steps(6);
        }
    }
    let before = returned(&desk);
    let root = before.iter().find_map(|(_, root)| *root).expect("one with a root is over");
    desk.console.model.chosen = root;
    desk.keys("2xy");
    assert!(desk.said().contains("out of service"), "{}", desk.said());
    assert_eq!(returned(&desk), before, "they still ask");
    let figures = desk.console.model.figures().expect("steps were taken");
    assert_eq!(figures.returned, before.len());
}

#[test]
fn an_alarm_from_the_shelf_is_as_unanswered_as_before() {
    let mut desk = at_work();
    let chosen = desk.console.model.chosen_incident().expect("an attack").number;
    let before = state(&desk, chosen);
    assert!(before.wants_acknowledgement());
    desk.keys("s1");
    assert_eq!(state(&desk, chosen), AlarmState::Shelved, "{}", desk.said());
    desk.keys("S");
    assert_eq!(state(&desk, chosen), before, "nobody has dealt with it");
    assert!(screen(&desk.console, 120, 40).contains("not acknowledged"));
}

#[test]
fn one_fault_of_a_sensor_is_one_line_of_the_log() {
    let (client, what) = (0, QualityKind::Stuck);
    let event = |what: What| Event {
        number: 0,
        time: Timestamp::UNIX_EPOCH,
        who: None,
        what,
        edits: Vec::new(),
        why: None,
    };
    let alone = event(What::Quality { client: Some(client), what });
    let of_incident = event(What::SensorFault { incident: 4, client, what });
    let mut watched = Watched::new(3, 5.0);
    let events = vec![alone.clone(), of_incident.clone()];
    watched.take(&News { events, ..News::default() });
    assert_eq!(watched.log, [of_incident], "the line that names the incident");
    let mut watched = Watched::new(3, 5.0);
    watched.take(&News { events: vec![alone.clone()], ..News::default() });
    assert_eq!(watched.log, [alone], "without an incident it has its own");
}

#[test]
fn the_priorities_in_the_heading_of_the_log_add_up_and_are_not_taken_for_clients() {
    let mut desk = at_work();
    let incidents = desk.console.model.watched.as_ref().expect("opened").incidents.len();
    desk.keys("7");
    let picture = screen(&desk.console, 160, 40);
    let heading = picture.lines().find(|line| line.contains("log")).expect("a heading").to_owned();
    let figure = |before: &str| -> usize {
        let (front, _) = heading.split_once(before).expect(before);
        front.rsplit(' ').next().and_then(|word| word.parse().ok()).expect(before)
    };
    assert_eq!(figure(" incident"), incidents);
    assert_eq!(figure(" of priority 1") + figure(" of priority 2"), incidents, "{heading}");
    assert!(!heading.contains("P1") && !heading.contains("P2"), "{heading}");
}

#[test]
fn marks_of_the_truth_leave_the_bars_as_they_are() {
    let mut desk = at_work();
    let lanes = |desk: &Desk| -> Vec<String> {
        let rows = text(&picture(&desk.console, 120, 40).0);
        let words = |row: &String| row.chars().take(33).collect::<String>();
        let is_lane = |row: &&String| ["evidence", "S/b"].iter().any(|w| words(row).contains(w));
        rows.iter().filter(is_lane).map(|row| row.chars().skip(33).collect()).collect()
    };
    let before = lanes(&desk);
    desk.keys("t");
    let after = lanes(&desk);
    assert!(before.len() >= 6 && before.len() == after.len(), "{before:?}\n{after:?}");
    let mut marks = 0;
    // The lowest block of an upper row is the line at the limit.
    let is_bar = |cell: char| BLOCKS[1..].contains(&cell.to_string().as_str());
    for (before, after) in before.iter().zip(&after) {
        for (was, is) in before.chars().zip(after.chars().chain(std::iter::repeat(' '))) {
            assert!(!is_bar(was) || was == is, "{was} became {is}:\n{before}\n{after}");
        }
        marks += after.matches(['▲', '↳', '◆']).count();
    }
    assert!(marks > 0, "the attack is marked in the lanes: {after:?}");
    let day = screen(&desk.console, 120, 40).lines().nth(1).unwrap_or_default().to_owned();
    assert!(day.contains('T'), "attacks to come are marked on the day: {day}");
}

#[test]
fn in_ascii_the_cursor_and_an_effect_are_told_apart() {
    let mut desk = at_work();
    let terminal = Terminal { ascii: true, ..Terminal::default() };
    desk.console.model.theme = Theme::new(ThemeChoice::Mono, terminal);
    let picture = screen(&desk.console, 120, 40);
    let effects: Vec<&str> = picture
        .lines()
        .filter(|row| row.contains(" effect P"))
        .map(|row| row.split('|').next().unwrap_or(row))
        .collect();
    assert!(!effects.is_empty(), "{picture}");
    for row in effects {
        assert!(row.trim_start().starts_with('\\') && !row.contains('>'), "{row}");
    }
    assert!(picture.lines().any(|row| row.starts_with('>')), "the cursor:\n{picture}");
}

#[test]
fn the_rate_of_alarms_is_said_in_the_same_words_before_and_during_an_incident() {
    let mut desk = Desk::attacked(20);
    let first = |desk: &Desk| {
        let picture = screen(&desk.console, 120, 40);
        picture.lines().next().unwrap_or_default().to_owned()
    };
    let says = |line: &str| {
        let rate =
            [" alarm in 10 min", " alarms in 10 min"].iter().any(|words| line.contains(words));
        rate && line.contains("morning") && line.contains("evidence")
    };
    assert!(says(&first(&desk)), "{}", first(&desk));
    desk.steps(ATTACK - 60);
    assert!(desk.console.model.figures().is_some_and(|figures| figures.alarms_10min > 0));
    assert!(says(&first(&desk)), "{}", first(&desk));
}

#[test]
fn with_the_truth_shown_every_incident_has_it_in_its_line() {
    let mut desk = at_work();
    desk.keys("t");
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let rows = text(&picture(&desk.console, width, height).0);
        let heads: Vec<&String> = rows.iter().filter(|row| row.contains(" ROOT   P")).collect();
        assert!(!heads.is_empty(), "{rows:#?}");
        for head in heads {
            assert!(head.contains("truth: "), "{width} columns: {head}");
        }
    }
    desk.keys(",");
    let rows = text(&picture(&desk.console, 120, 40).0);
    let later = rows.iter().find(|row| row.contains("later)")).expect("found after its onset");
    assert!(later.contains("truth: "), "{later}");
}

#[test]
fn tab_shows_what_it_goes_through() {
    let mut desk = Desk::attacked(20);
    desk.keys(":<tab>");
    let picture = screen(&desk.console, 120, 40);
    let line = picture.lines().last().unwrap_or_default();
    assert!(
        line.contains(":accept") && line.contains("1 of ") && line.contains("acknowledge"),
        "{line}"
    );
}

#[test]
fn a_long_message_is_shown_whole() {
    let mut desk = Desk::attacked(20);
    let why = sessions::with_data("hai-22.04").err().expect("no files here");
    let told = Remark::failed(&why);
    desk.console.tell(Msg::Done(told));
    let picture = screen(&desk.console, 80, 24);
    let shown: String = picture.split_whitespace().collect();
    let wanted: String = why.lines().last().unwrap_or_default().split_whitespace().collect();
    assert!(shown.contains(&wanted), "{picture}");
    assert!(!picture.contains('\u{fffd}'), "{picture}");
}

#[test]
fn a_value_of_a_client_never_covers_its_name() {
    let mut desk = at_work();
    desk.keys("2");
    for width in [80, 100, 120, 200] {
        let picture = screen(&desk.console, width, 40);
        for name in ["evidence S/b ", "own model r_c ", "with others r_a "] {
            assert!(picture.contains(name), "{name} at {width}:\n{picture}");
        }
    }
}

#[test]
fn an_incident_uses_the_rows_it_has() {
    let mut desk = at_work();
    desk.keys("4");
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let rows = text(&picture(&desk.console, width, height).0);
        let last = rows.iter().rposition(|row| row.contains(['─', '│'])).unwrap_or(0);
        assert!(last + 2 >= usize::from(height) / 2, "{rows:#?}");
        let words = ["why", "probability of being the root", "operator"];
        for word in words {
            let at = rows.iter().position(|row| row.contains(word)).expect(word);
            let below = rows.get(at + 1).is_some_and(|row| !row.trim().is_empty());
            assert!(below && at + 2 < rows.len(), "{word} at {width}x{height}: {rows:#?}");
        }
    }
}

#[test]
fn for_epsilon_the_comparison_comes_first_and_has_a_curve() {
    let mut desk = Desk::attacked(ATTACK - 10);
    desk.keys(":epsilon_flag 2<enter>");
    let picture = screen(&desk.console, 120, 40);
    let trial = picture.lines().find(|row| row.contains("TRIAL")).expect("a trial").to_owned();
    assert!(trial.contains("alarms ") && trial.contains("delay "), "{trial}");
    let tuning = desk.console.model.tuning.as_ref().expect("on trial");
    assert!(tuning.curve.len() >= 4, "{:?}", tuning.curve);
}

#[test]
fn views_and_what_is_left_to_write_are_offered_in_the_last_line() {
    let mut desk = Desk::attacked(ATTACK - 10);
    let last = |desk: &mut Desk| {
        desk.console.model.remark = None;
        screen(&desk.console, 120, 40).lines().last().unwrap_or_default().to_owned()
    };
    assert!(last(&mut desk).contains("1-8 views"), "{}", last(&mut desk));
    assert!(!last(&mut desk).contains("w write"), "nothing was set: {}", last(&mut desk));
    desk.keys(":arl0 4h<enter><enter>");
    assert!(last(&mut desk).contains("w write"), "{}", last(&mut desk));
}
