//! A live session that is started again goes on where it was; its history has versions; a console whose
//! recording cannot be written goes on and shows it; a recording is run again and compared on a screen.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::headwater;
use crate::live::{Told, WATCHED, program, rows, run_with_input, session, told};
use crate::tty::Tty;

const PROGRAM: &str = env!("CARGO_BIN_EXE_headwater");

/// The plant's rows of a stretch, with the boiler's pressure sensor too high every other twenty seconds
/// from five minutes before the end of the first watched hour to the middle of the second.
fn stretch(from: usize, until: usize) -> String {
    let place = rows()[0].split(',').position(|name| name == "P1_PIT01").expect("it is there");
    let row = |at: usize| {
        let row = &rows()[at];
        if !(WATCHED + 3300..WATCHED + 5400).contains(&at) || (at / 20).is_multiple_of(2) {
            return row.clone();
        }
        let mut cells: Vec<String> = row.split(',').map(str::to_owned).collect();
        let value: f64 = cells[place].parse().expect("a number");
        cells[place] = format!("{:.5}", value * 1.4);
        cells.join(",")
    };
    let mut text = rows()[0].clone() + "\n";
    for at in from..until {
        text.push_str(&row(at));
        text.push('\n');
    }
    text
}

/// Runs the session on rows from standard input.
fn run(folder: &Path, file: &Path, text: String, more: &[&str]) -> Output {
    let mut command = program(folder);
    command.args(["run", "--json", "--seed", "1"]).arg(file).args(more).current_dir(folder);
    run_with_input(&mut command, text)
}

fn words(folder: &Path, args: &[&str], file: &Path, more: &[&str]) -> Output {
    program(folder).args(args).arg(file).args(more).output().expect("the program runs")
}

fn numbers(told: &Told, fact: &str) -> Vec<u64> {
    told.of(fact).iter().filter_map(|of| of["incident"].as_u64()).collect()
}

#[test]
fn a_live_session_goes_on_where_it_was_and_its_history_has_versions() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let folder = folder.path();
    let file = session(folder, "input: Stdin, history: Learned");
    let first = told(&run(folder, &file, stretch(1, WATCHED + 3600), &[]));
    let opened = numbers(&first, "opened");
    let last = *opened.last().expect("the trouble was found");

    // The same trouble goes on, and has its number.
    let record = ["--record", "second.hwrec"];
    let output = run(folder, &file, stretch(WATCHED + 3600, WATCHED + 7200), &record);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let second = told(&output);
    assert!(second.says("goes on from the run that ended at"), "{:?}", second.of("quality"));
    assert!(second.says("not acknowledged"), "{:?}", second.of("quality"));
    let anew = numbers(&second, "opened");
    assert!(anew.iter().all(|number| !opened.contains(number)), "no number is used again: {said}");
    assert!(numbers(&second, "updated").contains(&last), "it goes on under its number: {said}");

    // What was taken over is in the recording: it can be decided again.
    let stored = words(folder, &["run", "--json"], &folder.join("second.hwrec"), &[]);
    assert_eq!(said, String::from_utf8_lossy(&stored.stdout));
    let again = words(folder, &["run", "--json", "--recompute"], &folder.join("second.hwrec"), &[]);
    let facts = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.contains("\"summary\"")).map(str::to_owned).collect()
    };
    assert_eq!(facts(&said), facts(&String::from_utf8_lossy(&again.stdout)));

    let versions = |more: &[&str]| -> Value {
        let output = words(folder, &["calibration", "--json"], &file, more);
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words}");
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")["versions"].clone()
    };
    let one = versions(&[]);
    assert_eq!((&one[0]["version"], &one[0]["in_use"]), (&1.into(), &true.into()));
    assert_eq!(one[0]["rows"], 6 * 3600);
    let renewed = versions(&["--renew"]);
    assert_eq!((&renewed[0]["version"], &renewed[0]["in_use"]), (&1.into(), &false.into()));
    let nothing = words(folder, &["calibration"], &file, &["--renew"]);
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("nothing to learn anew"));
    // It learns anew, and says so as version 2.
    let third = told(&run(folder, &file, stretch(1, WATCHED + 600), &[]));
    assert!(third.words.contains("rows"), "{}", third.words);
    let two = versions(&[]);
    assert_eq!((&two[1]["version"], &two[1]["in_use"]), (&2.into(), &true.into()));
    let back = words(folder, &["calibration"], &file, &["--roll-back"]);
    let back = String::from_utf8_lossy(&back.stdout);
    assert!(back.contains("uses version 1 again") && back.contains("is forgotten"), "{back}");
    let rolled = versions(&[]);
    assert_eq!((&rolled[0]["in_use"], &rolled[1]["in_use"]), (&true.into(), &false.into()));
    assert_eq!(rolled[0]["sha256"], one[0]["sha256"]);
    let none = words(folder, &["calibration"], &file, &["--roll-back", "7"]);
    assert!(String::from_utf8_lossy(&none.stderr).contains("no version 7"));
}

/// Two hours of a day with one attack.
const SHORT: &str = "Session(about: \"a short day\", source: Plant(attacks: Only([\"S101\"]), \
    history_h: 3, hours: 2), sampling: (decimate: Every(5)), thresholds: (arl0: \"8h\"), \
    ranges: (fit: (until: \"+1h\"), calibration: (from: \"+1h\", until: \"+3h\"), replay: (from: \"+3h\")))";

fn output(folder: &Path, args: &[&str]) -> Output {
    headwater()
        .current_dir(folder)
        .env("HEADWATER_CACHE", folder.join("cache"))
        .args(args)
        .output()
        .expect("the program runs")
}

#[test]
fn faults_of_recordings_are_said_on_the_screen_and_in_words_and_a_recording_is_run_again_there() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let folder = folder.path();
    fs::write(folder.join("short.ron"), SHORT).expect("the session can be written");
    let made = output(folder, &["run", "short.ron", "--record", "a.hwrec"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));

    // A folder that cannot be written to, for root too: the console goes on and shows it.
    fs::write(folder.join("no-folder"), "").expect("written");
    let nowhere = folder.join("no-folder").display().to_string();
    let environment = [("HEADWATER_RECORDINGS", nowhere.as_str())];
    let mut tty = Tty::start(PROGRAM, &["open", "short.ron"], folder, (120, 40), &environment);
    tty.wait("a console without its recording", |seen| {
        let text = seen.text();
        text.contains("NOT RECORDED") && text.contains("P1")
    });
    tty.keys("\x03");
    assert_eq!(tty.end(), 0);

    // The session was moved: the recording has all of it.
    fs::rename(folder.join("short.ron"), folder.join("moved.ron")).expect("moved");
    let mut tty = Tty::start(PROGRAM, &["open", "a.hwrec"], folder, (120, 40), &[]);
    tty.wait_for("recording of short");
    tty.wait_for("P3");
    // Run again from the start with another setting.
    tty.keys("\x1b[H:arl0 1000h\r");
    tty.wait_for("on trial");
    tty.keys("\r");
    tty.wait_for("run again from");
    tty.wait_for("as it was");
    tty.keys("q");
    tty.wait_without("as it was");
    tty.keys("q");
    assert_eq!(tty.end(), 0);

    let args = ["compare", "a.hwrec", "--set-b", "arl0=1000h"];
    let mut tty = Tty::start(PROGRAM, &args, folder, (120, 40), &[]);
    tty.wait("both days", |seen| {
        let text = seen.text();
        text.contains("a: a.hwrec") && text.contains("b: a.hwrec arl0=1000h")
    });
    // To the onset of the first day's third incident, which the second day does not have, and on to its alarm.
    for _ in 0..4 {
        tty.keys(",");
    }
    for _ in 0..4 {
        tty.keys("\x1b[C");
    }
    tty.wait_for("differs");
    tty.keys("\tq");
    assert_eq!(tty.end(), 0);

    let refused = |name: &str, words: &str| {
        for command in ["run", "screen", "export", "open"] {
            let what = ["--what", "incidents"];
            let more = if command == "export" { &what[..] } else { &[] };
            let output = output(folder, &[&[command, name], more].concat());
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{command} {name}: {said}");
            assert!(said.contains(words) && said.contains(name), "{command} {name}: {said}");
        }
    };
    let bytes = fs::read(folder.join("a.hwrec")).expect("there");
    let mut newer = bytes.clone();
    // The version of the tables stands at byte 60 of an SQLite file.
    newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
    fs::write(folder.join("newer.hwrec"), newer).expect("written");
    refused("newer.hwrec", "version 99");
    let mut corrupt = bytes.clone();
    for page in 2..bytes.len() / 4096 {
        corrupt[4096 * page..4096 * page + 64].fill(0xA5);
    }
    fs::write(folder.join("corrupt.hwrec"), corrupt).expect("written");
    refused("corrupt.hwrec", "damaged");
    fs::write(folder.join("cut.hwrec"), &bytes[..bytes.len() / 3]).expect("written");
    refused("cut.hwrec", "cut.hwrec: ");
}
