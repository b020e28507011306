//! Live rows: from standard input, from a file that grows, from a broker.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::started::Started;
pub(crate) use super::support::{Told, program, told};

/// A session that learns for six hours and then watches.
pub(crate) fn session(folder: &Path, live: &str) -> PathBuf {
    let file = folder.join("plant.ron");
    let text = format!(
        r#"Session(
    about: "a live plant",
    source: Live({live}),
    clients: [
        (name: "P1", columns: ["P1_FT01", "P1_FT02", "P1_FT03", "P1_LIT01", "P1_PIT01", "P1_TIT01"]),
        (name: "P2", columns: ["P2_SIT01", "P2_VIBTR01", "P2_VIBTR02", "P2_VT01"]),
        (name: "P3", columns: ["P3_FIT01", "P3_LIT01", "P3_PIT01"]),
    ],
    ranges: (fit: (until: "+2h"), calibration: (from: "+2h", until: "+6h")),
    sampling: (decimate: Every(5)),
    model: (proprietary: Linear),
    thresholds: (arl0: "2d"),
)"#
    );
    fs::write(&file, text).expect("the session can be written");
    file
}

/// The first row that is watched: six hours of seconds after the header.
pub(crate) const WATCHED: usize = 1 + 6 * 3600;

/// Eight hours of the plant in normal operation: a header and a row a second.
pub(crate) fn rows() -> &'static [String] {
    static ROWS: OnceLock<Vec<String>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let made = program(folder.path())
            .args(["make", "plant", "--seed", "5", "--hours", "8", "--out"])
            .arg(folder.path())
            .output()
            .expect("the program runs");
        assert!(made.status.success());
        let text = fs::read_to_string(folder.path().join("plant.csv")).expect("it is there");
        text.lines().map(str::to_owned).collect()
    })
}

fn run_on(lines: &[String]) -> Told {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = session(folder.path(), "input: Stdin");
    let mut command = program(folder.path());
    command.args(["run", "--json", "--seed", "1"]).arg(&file);
    told(&run_with_input(&mut command, lines.join("\n") + "\n"))
}

/// Runs a command with `text` on its standard input.
pub(crate) fn run_with_input(command: &mut Command, text: String) -> Output {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("the program runs");
    let mut input = child.stdin.take().expect("its input");
    let writer = thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    // A program that ends early does not read all of it.
    let _ = writer.join();
    output
}

/// The built-in attack day as the live sessions have it: unprotected.
pub(crate) fn unprotected_day(folder: &Path) -> PathBuf {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("sessions/plant-attack-day.ron");
    let text = fs::read_to_string(shipped).expect("a shipped session");
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("privacy:"));
    let kept: Vec<&str> = lines.collect();
    assert_eq!(kept.len() + 1, text.lines().count(), "one line says what is noised");
    let file = folder.join("unprotected-day.ron");
    fs::write(&file, kept.join("\n")).expect("written");
    file
}

#[test]
fn the_plant_on_standard_input_opens_the_incidents_of_the_built_in_day() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let built_in = program(folder.path())
        .args(["run", "--seed", "7", "--json"])
        .arg(unprotected_day(folder.path()))
        .output()
        .expect("the program runs");
    let mut plant = program(folder.path());
    plant
        .args(["make", "plant", "--seed", "7", "--attacks", "--live", "stdout", "--speed", "max"])
        .stdout(Stdio::piped());
    let mut plant = Started::by(&mut plant);
    let live = program(folder.path())
        .args(["run", "plant-live", "--json"])
        .stdin(plant.stdout.take().expect("its output"))
        .output()
        .expect("the program runs");
    assert!(plant.wait().expect("it ends").success());
    let (built_in, live) = (told(&built_in), told(&live));
    assert!(built_in.of("opened").len() > 10, "a day of twenty attacks");
    assert_eq!(incidents(&built_in), incidents(&live));
    assert_eq!(live.count("rows,"), 72 * 3600);
}

/// What was opened: number, time, root. Noise of a live run comes from the operating system, and moves
/// a posterior in its last digits and the end of an incident by a step.
pub(crate) fn incidents(told: &Told) -> Vec<String> {
    let text = |of: &Value| {
        let keys = ["incident", "time", "root", "first_out"];
        keys.map(|key| of[key].to_string()).join(" ")
    };
    told.of("opened").into_iter().map(text).collect()
}

#[test]
fn a_quiet_plant_stays_quiet_whatever_happens_on_the_way() {
    let clean = run_on(rows());
    assert_eq!(clean.of("opened").len(), 0);
    assert_eq!(clean.count("rows,"), 8 * 3600);

    // One row in ten comes late by half a minute, twice, or broken.
    let mut lines = rows()[..WATCHED].to_vec();
    let mut held: Vec<(usize, String)> = Vec::new();
    let (mut late, mut doubled, mut broken) = (0, 0, 0);
    for (i, row) in rows()[WATCHED..].iter().enumerate() {
        while let Some(at) = held.iter().position(|(due, _)| *due <= i) {
            lines.push(held.remove(at).1);
        }
        match i % 30 {
            3 => {
                held.push((i + 25, row.clone()));
                late += 1;
            }
            13 => {
                lines.extend([row.clone(), row.clone()]);
                doubled += 1;
            }
            23 => {
                lines.push(row[..row.len() / 2].to_owned());
                broken += 1;
            }
            _ => lines.push(row.clone()),
        }
    }
    let told = run_on(&lines);
    assert_eq!(told.of("opened").len(), 0);
    assert_eq!(told.count("late"), late - u64::from(!held.is_empty()));
    assert_eq!((told.count("doubled"), told.count("lines")), (doubled, broken));
    let lost = 8 * 3600 - told.count("rows,");
    assert_eq!(lost, late + broken, "every other row was used");
    assert!(told.says("came too late") && told.says("cannot be read"));
    println!("10 % disturbed: {late} late, {doubled} doubled, {broken} broken, {lost} rows lost");
}

/// A row with another time.
fn moved(row: &str, seconds: i64) -> String {
    let (time, rest) = row.split_once(',').expect("a row has cells");
    let time: jiff::civil::DateTime = time.replace(' ', "T").parse().expect("a time");
    let time = time.saturating_add(jiff::Span::new().seconds(seconds));
    format!("{},{rest}", time.strftime("%Y-%m-%d %H:%M:%S"))
}

#[test]
fn clocks_that_jump_cost_no_row_and_raise_no_alarm() {
    for seconds in [3600, -30] {
        let middle = WATCHED + 3600;
        let mut lines = rows()[..middle].to_vec();
        lines.extend(rows()[middle..].iter().map(|row| moved(row, seconds)));
        let told = run_on(&lines);
        assert_eq!(told.of("opened").len(), 0, "{seconds} s");
        assert_eq!(told.count("rows,"), 8 * 3600, "{seconds} s: no row is lost");
        let said = if seconds > 0 { "gap" } else { "the clock of the data moved" };
        assert!(told.says(said), "{seconds} s: {:?}", told.of("quality"));
    }
    // One row with a wild stamp costs that row.
    let mut lines = rows().to_vec();
    lines[WATCHED + 100] = moved(&lines[WATCHED + 100], 100_000);
    let told = run_on(&lines);
    assert_eq!((told.count("rows,"), told.count("wrongly")), (8 * 3600 - 1, 1));
    assert_eq!(told.of("opened").len(), 0);
}

#[test]
fn a_renamed_tag_and_a_client_without_data_are_said_and_raise_no_alarm() {
    let header: Vec<&str> = rows()[0].split(',').collect();
    let renamed = rows()[0].replace("P1_PIT01,", "P1_PIT01_NEW,");
    assert_ne!(renamed, rows()[0]);
    let mut lines = rows().to_vec();
    lines.insert(WATCHED + 1800, renamed);
    let told = run_on(&lines);
    assert_eq!(told.of("opened").len(), 0);
    let is_gap = |of: &&&Value| of["client"] == "P1" && of["what"] == "gap";
    assert_eq!(told.of("quality").iter().filter(is_gap).count(), 1, "{:?}", told.of("quality"));

    // All tags of the storage are empty for ten minutes.
    let mut lines = rows().to_vec();
    for row in &mut lines[WATCHED + 1800..WATCHED + 2400] {
        let cells = row.split(',').zip(&header);
        let cells = cells.map(|(cell, name)| if name.starts_with("P3_") { "" } else { cell });
        *row = cells.collect::<Vec<_>>().join(",");
    }
    let told = run_on(&lines);
    assert_eq!(told.of("opened").len(), 0);
    let said = told.of("quality").iter().filter(|of| of["client"] == "P3").count();
    assert!(said > 0, "a client without data is no quiet client");
}

#[test]
fn too_little_history_is_an_error_that_says_how_much_is_needed() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = session(folder.path(), "input: Stdin");
    let text = rows()[..3601].join("\n");
    fs::write(folder.path().join("short.csv"), text).expect("written");
    let output = program(folder.path())
        .arg("run")
        .arg(&file)
        .stdin(fs::File::open(folder.path().join("short.csv")).expect("there"))
        .output()
        .expect("the program runs");
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(words.contains("standard input ended after 60 min of history, and 6.0 h"), "{words}");
}

/// Waits until `holds`. The limit only ends a test that hangs: a busy machine takes its own time.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_mins(10), "{what} took too long");
        thread::sleep(Duration::from_millis(50));
    }
}

/// A run in the background whose facts and words go to files.
pub(crate) struct Running {
    child: Started,
    out: PathBuf,
    err: PathBuf,
}

impl Running {
    pub(crate) fn start(folder: &Path, session: &Path) -> Self {
        let (out, err) = (folder.join("out.jsonl"), folder.join("err.txt"));
        let mut command = program(folder);
        command
            .args(["run", "--json", "--seed", "1"])
            .arg(session)
            .stdout(fs::File::create(&out).expect("writable"))
            .stderr(fs::File::create(&err).expect("writable"));
        Self { child: Started::by(&mut command), out, err }
    }

    pub(crate) fn facts(&self) -> String {
        fs::read_to_string(&self.out).expect("readable")
    }

    /// Ends it as a service is ended, and gives what it told.
    pub(crate) fn end(mut self) -> Told {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill runs").success());
        let ended = self.child.wait().expect("it ends");
        let words = fs::read_to_string(&self.err).expect("readable");
        assert!(ended.success(), "to be stopped is no failure: {words}");
        let facts = self.facts();
        let facts = facts.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        Told { facts, words }
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_grows_is_followed_over_rotation_and_a_restart_watches_at_once() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = session(folder.path(), "input: Follow(file: \"rows.csv\"), history: Learned");
    let rows_file = folder.path().join("rows.csv");
    let write = |lines: &[String]| {
        let mut file =
            fs::File::options().append(true).create(true).open(&rows_file).expect("writable");
        file.write_all((lines.join("\n") + "\n").as_bytes()).expect("written");
    };
    write(&rows()[..WATCHED + 600]);
    let running = Running::start(folder.path(), &file);
    wait_until("learning", || running.facts().contains("\"calibrated\""));
    fs::rename(&rows_file, folder.path().join("rows.csv.1")).expect("renamed");
    write(&rows()[..1]);
    write(&rows()[WATCHED + 600..WATCHED + 1200]);
    thread::sleep(Duration::from_secs(2));
    let told = running.end();
    assert_eq!(told.of("opened").len(), 0);
    assert_eq!(told.count("rows,"), 6 * 3600 + 1200, "no row is lost: {}", told.words);

    // The next start knows what is normal.
    let running = Running::start(folder.path(), &file);
    wait_until("a restart", || running.facts().contains("\"calibrated\""));
    write(&rows()[WATCHED + 1200..WATCHED + 1800]);
    thread::sleep(Duration::from_secs(2));
    let told = running.end();
    assert_eq!(told.count("rows,"), 600, "{}", told.words);
    assert_eq!(told.of("opened").len(), 0);
}
