//! The recording of one site of a federation, over a real broker.

use std::fs;
use std::process::Output;
use std::thread::sleep;
use std::time::Duration;

use crate::headwater;
use crate::remote::{Plant, SITES};

/// Steps a second of the paced run below: two hours of 5 s steps in 8 s.
const STEPS_A_SECOND: usize = 180;

fn output(plant: &Plant, args: &[&str]) -> Output {
    headwater()
        .env("HEADWATER_CACHE", plant.path("cache"))
        .env("HEADWATER_RECORDINGS", plant.path(""))
        .current_dir(plant.path(""))
        .args(args)
        .output()
        .expect("the program runs")
}

/// What goes wrong with these arguments.
fn complaint(plant: &Plant, args: &[&str]) -> String {
    let output = output(plant, args);
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn export(plant: &Plant, file: &str, what: &str) -> Vec<String> {
    let said = plant.says(&["export", file, "--what", what, "--format", "csv"]);
    said.lines().map(str::to_owned).collect()
}

/// How many steps a recording holds that is being written, and may not be there yet.
fn steps_so_far(plant: &Plant, file: &str) -> usize {
    let said = output(plant, &["export", file, "--what", "residuals"]).stdout;
    String::from_utf8_lossy(&said).lines().count().saturating_sub(1)
}

/// The heading and the lines about P1.
fn of_p1(lines: Vec<String>) -> Vec<String> {
    let is_p1 = |line: &String| line.contains(",P1,") || line.starts_with("step,");
    lines.into_iter().filter(is_p1).collect()
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn a_site_records_what_it_measured_and_released_as_one_process_would() {
    for mode in ["evidence", "paper"] {
        let plant = Plant::new(mode);
        plant.says(&["run", "short.ron", "--mode", mode, "--json", "--record", "whole.hwrec"]);
        let _broker = plant.broker();
        let mut sites = SITES.map(|name| {
            let file = format!("{name}.hwrec");
            plant.start("site", &["--client", name, "--record", &file], name)
        });
        let mut server = plant.start("serve", &[], "server");
        assert!(server.ends_well(), "{}", plant.read("server.err"));
        for (site, name) in sites.iter_mut().zip(SITES) {
            assert!(site.ends_well(), "{}", plant.read(&format!("{name}.err")));
        }
        for what in ["residuals", "messages"] {
            let (own, whole) =
                (export(&plant, "P1.hwrec", what), export(&plant, "whole.hwrec", what));
            assert!(own.len() > 1000, "{mode} {what}: {} lines", own.len());
            assert_eq!(own, of_p1(whole), "{mode} {what}");
        }
        let flags = export(&plant, "P1.hwrec", "flags");
        assert!(flags.len() > 1000 && flags == of_p1(flags.clone()), "{mode}: P1 and nobody else");
        let raised = match mode {
            "paper" => flags.iter().filter(|line| line.contains(",true")).count(),
            _ => flags.iter().filter(|line| line.split(',').nth(5) == Some("4")).count(),
        };
        assert!(raised > 5, "{mode}: the attack is on P1, and {raised} steps show it");
        // The ledger ends with what the site itself said at its end.
        assert_eq!(
            plant.says(&["run", "P1.hwrec", "--json"]).lines().last(),
            plant.read("P1").lines().last()
        );
        assert!(
            export(&plant, "P1.hwrec", "ledger").len() >= 3,
            "{mode}: every hour and at the end"
        );
    }
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn a_killed_site_loses_at_most_a_second_and_its_next_recording_begins_with_the_same_steps() {
    let plant = Plant::new("paper");
    plant.alone();
    let _broker = plant.broker();
    let speed = (STEPS_A_SECOND * 5).to_string();
    let mut server = plant.start("serve", &["--speed", &speed], "server");
    let _others = [plant.site("P2"), plant.site("P3")];
    let first = ["--client", "P1", "--record", "first.hwrec"];
    let mut site = plant.start("site", &first, "P1");
    let until = std::time::Instant::now() + crate::remote::PATIENCE;
    while steps_so_far(&plant, "first.hwrec") < 2 * STEPS_A_SECOND {
        assert!(std::time::Instant::now() < until, "{}", plant.read("P1.err"));
        sleep(Duration::from_millis(100));
    }
    site.kill();
    let again = ["--client", "P1", "--record", "second.hwrec"];
    let mut site = plant.start("site", &again, "P1-again");
    assert!(site.ends_well(), "{}", plant.read("P1-again.err"));
    assert!(server.ends_well(), "{}", plant.read("server.err"));
    let sessions = output(&plant, &["sessions"]);
    let sessions = String::from_utf8_lossy(&sessions.stdout);
    let line = |name: &str| sessions.lines().find(|line| line.contains(name)).unwrap_or_default();
    assert!(line("first.hwrec").ends_with("killed, of site P1"), "{sessions}");
    assert!(line("second.hwrec").ends_with("ended, of site P1"), "{sessions}");
    for what in ["residuals", "flags", "messages"] {
        let (first, second) =
            (export(&plant, "first.hwrec", what), export(&plant, "second.hwrec", what));
        assert!(first.len() > STEPS_A_SECOND && second.len() > 1300, "{what}: {}", first.len());
        assert_eq!(first, second[..first.len()], "{what}");
    }
    // The site says how many steps it had taken before it was killed.
    let said = plant.read("P1-again.err");
    let before = said.split(" of them found in the outbox").next().unwrap_or_default();
    let taken: usize =
        before.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a number of steps");
    let lost = taken.saturating_sub(steps_so_far(&plant, "first.hwrec"));
    assert!(lost <= STEPS_A_SECOND, "{lost} steps of {taken} are missing");
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn a_site_without_a_place_for_its_recording_goes_on_and_what_it_records_has_no_verdicts() {
    let session = "Session(about: \"short\", source: Plant(attacks: Only([\"S101\"]), history_h: 3, \
        hours: 1), sampling: (decimate: Every(5)), thresholds: (arl0: \"8h\"), \
        record: (measurements: true))";
    let plant = Plant::of(session, "evidence", &[]);
    plant.alone();
    fs::write(plant.path("taken.hwrec"), "a file of somebody").expect("written");
    let _broker = plant.broker();
    let mut one = plant.start("site", &["--client", "P1", "--record", "P1.hwrec"], "P1");
    let mut two = plant.start("site", &["--client", "P2", "--record", "taken.hwrec"], "P2");
    let _three = plant.site("P3");
    let mut server = plant.start("serve", &[], "server");
    assert!(server.ends_well(), "{}", plant.read("server.err"));
    assert!(one.ends_well(), "{}", plant.read("P1.err"));
    assert!(!two.ends_well(), "it was to be recorded");
    let said = plant.read("P2.err");
    assert!(
        said.contains("goes on without a recording") && said.contains("never replaces"),
        "{said}"
    );
    assert!(said.contains("720 steps"), "it took part to the end: {said}");

    let shown = output(&plant, &["run", "P1.hwrec"]);
    assert!(shown.status.success());
    let (out, err) =
        (String::from_utf8_lossy(&shown.stdout), String::from_utf8_lossy(&shown.stderr));
    assert!(err.contains("a recording of site P1 alone"), "{err}");
    assert!(out.contains("720 steps"), "{out}");
    // Without a terminal a console is a run.
    let opened = output(&plant, &["open", "P1.hwrec"]);
    assert_eq!(String::from_utf8_lossy(&opened.stdout), out);
    let why = complaint(&plant, &["run", "P1.hwrec", "--recompute"]);
    assert!(why.contains("nothing can be decided again"), "{why}");
    for args in [
        &["export", "P1.hwrec", "--what", "incidents"][..],
        &["export", "P1.hwrec", "--what", "report"],
        &["export", "P1.hwrec", "--what", "cast"],
        &["compare", "P1.hwrec", "P1.hwrec"],
    ] {
        let why = complaint(&plant, args);
        assert!(
            why.contains("of the server") && why.contains("headwater export"),
            "{args:?}: {why}"
        );
    }
    // The session asks for measurements: they are those of P1 alone.
    let db = rusqlite::Connection::open(plant.path("P1.hwrec")).expect("a database");
    let frames: u64 = db
        .query_row("SELECT sum(frames) FROM site_measurements", [], |row| row.get(0))
        .expect("a table");
    assert_eq!(frames, 720);
    let layout: String = db
        .query_row("SELECT value FROM site_about WHERE key = 'layout'", [], |row| row.get(0))
        .expect("a layout");
    assert!(layout.contains("P1_") && !layout.contains("P2_"), "{layout}");
}
