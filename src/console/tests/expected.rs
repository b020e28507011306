//! What an operator may expect, and what is not certain: the rate of false alarms, a second name beside
//! the root, steps that are not judged yet, a client that alarms late.

use super::fixture::Console;
use super::plant::Desk;
use super::views::{during, goes_to, picture, text};
use crate::console::watched::Watched;
use crate::fact::Number;

fn rows(console: &Console, size: (u16, u16)) -> Vec<String> {
    text(&picture(console, size.0, size.1).0)
}

fn watched(console: &mut Console) -> &mut Watched {
    console.model.watched.as_mut().expect("opened")
}

#[test]
fn the_wanted_rate_of_false_alarms_says_what_a_day_will_have() {
    let mut console = during();
    goes_to(&mut console, "6");
    for (size, said) in [
        ((80, 24), " about 1 a day, 95 %: 0 to 3"),
        ((120, 40), " 1 a day, 95 %: 0 to 3"),
        ((250, 80), " one false alarm in 1d: about 1 a day, 95 %: 0 to 3"),
    ] {
        let rows = rows(&console, size);
        let knob = rows.iter().find(|row| row.starts_with("▸ARL0")).expect("a knob");
        assert!(knob.contains(said), "{size:?}: {knob}");
    }
}

#[test]
fn a_silent_source_above_the_root_is_its_second_name() {
    let mut console = during();
    let chosen = console.model.chosen_incident().expect("an attack").number;
    let found = &mut watched(&mut console).incidents[chosen as usize - 1];
    let root = found.root.expect("named");
    found.silent_source = Some(2);
    assert_ne!(root, 2, "the source is another client");
    for size in [(80, 24), (120, 40)] {
        goes_to(&mut console, "1");
        let rows = rows(&console, size);
        let of_chosen = format!(" #{chosen} ");
        let line = rows.iter().find(|row| row.contains(&of_chosen) && row.contains(" ROOT   "));
        assert!(line.is_some_and(|line| line.contains("or P3 above it")), "{rows:#?}");
    }
    goes_to(&mut console, "4");
    for size in [(80, 24), (120, 40)] {
        let rows = rows(&console, size);
        assert!(rows.iter().any(|row| row.starts_with("──") && row.contains(" or P3 above it ")));
        let why = "Or P3 above it is the root, not visible in its own sensors.";
        assert!(rows.iter().any(|row| row.contains(why)), "{rows:#?}");
    }
}

#[test]
fn a_root_that_is_the_silent_source_has_no_second_name() {
    let mut console = during();
    let chosen = console.model.chosen_incident().expect("an attack").number;
    let found = &mut watched(&mut console).incidents[chosen as usize - 1];
    found.silent_source = found.root;
    goes_to(&mut console, "4");
    assert!(!rows(&console, (120, 40)).join(" ").contains("above it"));
}

#[test]
fn first_steps_with_data_are_not_judged_and_not_missing() {
    let mut desk = Desk::attacked(5);
    for size in [(48, 15), (80, 24), (120, 40)] {
        let picture = rows(&desk.console, size).join("\n");
        assert!(picture.contains("not judged"), "{picture}");
        assert!(!picture.contains("missing"), "{picture}");
    }
    desk.keys("2");
    let said = "P1 sends data, but its steps are not judged yet";
    assert!(rows(&desk.console, (120, 40)).join("\n").contains(said));
    desk.keys("1");
    desk.steps(60);
    assert!(!rows(&desk.console, (120, 40)).join("\n").contains("not judged"));
}

#[test]
fn an_insensitive_client_says_how_many_steps_its_alarm_takes() {
    let mut console = during();
    goes_to(&mut console, "2");
    let said = "An alarm takes 17 steps of the strongest symbol";
    let is_said = |console: &Console, size| rows(console, size).join("\n").contains(said);
    let client = console.model.chosen;
    let steps = &mut watched(&mut console).snapshot.as_mut().expect("steps were taken").alarm_steps;
    assert!(steps.iter().flatten().all(|steps| steps.get() < 12.0) && !steps.is_empty());
    steps[client] = Number::new(12.0);
    assert!(!is_said(&console, (120, 40)), "12 are few enough");
    let standing = watched(&mut console).snapshot.as_mut().expect("steps were taken");
    standing.alarm_steps[client] = Number::new(17.2);
    assert!(is_said(&console, (80, 24)) && is_said(&console, (120, 40)));
}
