//! A service and its consoles, over a local socket.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};

use serde_json::Value;

use super::live::{WATCHED, program, rows, session, wait_until};
use super::terminal::asking;
use super::tty::{Tty, signal};

const PROGRAM: &str = env!("CARGO_BIN_EXE_headwater");

/// A live run that consoles may join.
struct Service {
    child: Child,
    rows: Option<ChildStdin>,
    socket: PathBuf,
    out: PathBuf,
    err: PathBuf,
}

impl Service {
    fn start(folder: &Path, session: &Path) -> Self {
        let (out, err) = (folder.join("out.jsonl"), folder.join("err.txt"));
        let socket = folder.join("console.socket");
        let mut child = program(folder)
            .args(["run", "--json", "--seed", "1"])
            .arg(session)
            .arg("--listen")
            .arg(&socket)
            .stdin(Stdio::piped())
            .stdout(fs::File::create(&out).expect("writable"))
            .stderr(fs::File::create(&err).expect("writable"))
            .spawn()
            .expect("the program runs");
        let rows = child.stdin.take();
        Self { child, rows, socket, out, err }
    }

    fn feed(&mut self, lines: &[String]) {
        let rows = self.rows.as_mut().expect("still open");
        rows.write_all((lines.join("\n") + "\n").as_bytes()).expect("it reads");
        rows.flush().expect("it reads");
    }

    fn facts(&self) -> String {
        fs::read_to_string(&self.out).expect("readable")
    }

    fn words(&self) -> String {
        fs::read_to_string(&self.err).expect("readable")
    }

    fn console(&self, folder: &Path, more: &[&str]) -> Tty {
        let socket = self.socket.to_str().expect("a path of letters");
        let args: Vec<&str> = ["open", "--attach", socket].iter().chain(more).copied().collect();
        Tty::start(PROGRAM, &args, folder, (140, 45), &[])
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The rows, with a boiler whose pressure is read wrongly from `from` on.
fn disturbed(from: usize, until: usize) -> Vec<String> {
    let header: Vec<&str> = rows()[0].split(',').collect();
    let pressure = header.iter().position(|name| *name == "P1_PIT01").expect("a pressure");
    let wrong = |row: &String| {
        let mut cells: Vec<String> = row.split(',').map(str::to_owned).collect();
        let value: f64 = cells[pressure].parse().expect("a number");
        cells[pressure] = (value * 1.5 + 1.0).to_string();
        cells.join(",")
    };
    rows()[from..until].iter().map(wrong).collect()
}

#[test]
fn consoles_of_a_service_share_acknowledgements_and_settings_are_read_again() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let folder = folder.path();
    let file = session(folder, "input: Stdin");
    let mut service = Service::start(folder, &file);
    service.feed(&rows()[..WATCHED + 900]);
    service.feed(&disturbed(WATCHED + 900, WATCHED + 1500));
    wait_until("an incident", || service.facts().contains("\"fact\":\"opened\""));
    let mode = fs::metadata(&service.socket).expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    // Both see what happened before they came.
    let mut one = service.console(folder, &[]);
    let mut other = service.console(folder, &["--read-only"]);
    let asks = |tty: &Tty| {
        tty.wait("an incident that asks", |seen| asking(&seen.text()).is_some());
        asking(&tty.seen().text()).expect("it was there")
    };
    assert_eq!(asks(&one), asks(&other));
    one.wait_for("LIVE");
    other.wait_for("read-only");
    other.keys("a");
    other.wait_for("--read-only: it orders nothing");
    assert!(asking(&other.seen().text()).is_some());
    one.keys("\x01");
    for tty in [&one, &other] {
        tty.wait("nothing that asks", |seen| asking(&seen.text()).is_none());
    }
    // The speed is the source's own, for everybody.
    one.keys(" ");
    one.wait_for("goes at its own speed");

    // A second service cannot take the socket.
    let second = program(folder)
        .args(["run", "--listen"])
        .args([&service.socket, &file])
        .stdin(Stdio::null())
        .output()
        .expect("the program runs");
    assert_eq!(second.status.code(), Some(1));
    let words = String::from_utf8_lossy(&second.stderr);
    assert!(words.contains("another service listens at"), "{words}");

    // A console that leaves leaves the service alone.
    one.keys("q");
    assert_eq!(one.end(), 0);

    // What can be tuned is set, of the rest it is said that it needs a restart.
    let text = fs::read_to_string(&file).expect("there");
    let text = text.replace("\"2d\"", "\"8h\"").replace("Every(5)", "Every(10)");
    fs::write(&file, text).expect("written");
    signal("HUP", service.child.id());
    wait_until("the new settings", || service.facts().contains("\"what\":\"arl0\""));
    let words = service.words();
    assert!(words.contains("arl0 2d → 8h"), "{words}");
    assert!(words.contains("needs a restart: sampling"), "{words}");
    // A file that is wrong changes nothing.
    fs::write(&file, "Session(").expect("written");
    signal("HUP", service.child.id());
    wait_until("a refusal", || service.words().contains("the session stays as it was"));

    // Its end is seen, and a service that is gone is looked for.
    service.feed(&rows()[WATCHED + 1500..WATCHED + 1600]);
    drop(service.rows.take());
    assert!(service.child.wait().expect("it ends").success());
    other.wait_for("ENDED");
    other.keys("q");
    assert_eq!(other.end(), 0);
    assert!(!service.socket.exists(), "the socket goes with the service");
}

#[test]
fn start_up_suspends_alarms_visibly_and_only_for_its_time() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let folder = folder.path();
    let file = session(folder, "input: Stdin");
    let text = fs::read_to_string(&file).expect("there");
    let planned = "suspend: [(why: \"start-up\", until: \"+30m\")],\n    thresholds:";
    fs::write(&file, text.replace("thresholds:", planned)).expect("written");
    let mut service = Service::start(folder, &file);
    service.feed(&rows()[..WATCHED + 600]);
    service.feed(&disturbed(WATCHED + 600, WATCHED + 900));
    service.feed(&rows()[WATCHED + 900..WATCHED + 1500]);
    // The screen says so while it lasts.
    wait_until("the first steps", || service.facts().contains("alarms suspended: start-up"));
    let mut console = service.console(folder, &[]);
    console.wait_for("ALARMS SUSPENDED");
    service.feed(&rows()[WATCHED + 1500..WATCHED + 3600]);
    service.feed(&disturbed(WATCHED + 3600, WATCHED + 4200));
    wait_until("an alarm after the start-up", || {
        facts(&service.facts()).iter().any(|of| of["fact"] == "opened" && of["suspended"].is_null())
    });
    console.wait_without("ALARMS SUSPENDED");
    console.wait("an incident that asks", |seen| asking(&seen.text()).is_some());
    // An operator may do the same, for everybody.
    console.keys(":suspend boiler cleaned\r");
    wait_until("maintenance", || service.facts().contains("alarms suspended: boiler cleaned"));
    console.wait_for("ALARMS SUSPENDED");
    console.keys(":resume\r");
    console.wait_without("ALARMS SUSPENDED");
    drop(service.rows.take());
    assert!(service.child.wait().expect("it ends").success());
    let told = facts(&service.facts());
    let opened: Vec<&Value> = told.iter().filter(|of| of["fact"] == "opened").collect();
    let (suspended, asking): (Vec<&Value>, Vec<&Value>) =
        opened.iter().partition(|of| of["suspended"] == true);
    println!("opened: {} while suspended, {} that ask", suspended.len(), asking.len());
    assert!(!suspended.is_empty() && !asking.is_empty(), "{opened:?}");
    let summary = told.last().expect("a summary");
    let stretches = summary["suspended"].as_array().expect("when alarms were suspended");
    let start_up = stretches.iter().filter(|of| of["why"] == "start-up").count();
    let cleaned = stretches.iter().filter(|of| of["why"] == "boiler cleaned").count();
    assert_eq!((start_up, cleaned), (3, 3), "{summary}");
    assert!(stretches.iter().all(|of| of["until"].is_string()), "{summary}");
}

/// The facts of a run, without what depends on the machine.
fn facts(text: &str) -> Vec<Value> {
    let read = |line: &str| {
        let mut fact: Value = serde_json::from_str(line).expect("JSON");
        for key in ["wall_s", "steps_per_s"] {
            fact.as_object_mut().expect("an object").remove(key);
        }
        fact
    };
    text.lines().map(read).collect()
}

#[test]
fn a_console_that_does_not_read_holds_up_nothing_and_changes_no_fact() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let folder = folder.path();
    let text = "Session(about: \"a short day\", source: Plant(attacks: Only([\"S101\"]), \
        history_h: 3, hours: 2), sampling: (decimate: Every(5)), thresholds: (arl0: \"8h\"), \
        ranges: (fit: (until: \"+1h\"), calibration: (from: \"+1h\", until: \"+3h\"), replay: (from: \"+3h\")))";
    fs::write(folder.join("short.ron"), text).expect("written");
    let run = |more: &[&str]| {
        let mut command = program(folder);
        command.current_dir(folder).args(["run", "short.ron", "--json"]).args(more);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs")
    };
    let alone = run(&[]).wait_with_output().expect("it ends");
    assert!(alone.status.success());
    // The socket goes with the run: it lasts 14 s, so that the consoles come in time and are given up as stalled.
    let watched = run(&["--listen", "s", "--speed", "500"]);
    let socket = folder.join("s");
    let mut stalled = Vec::new();
    wait_until("the socket", || socket.exists());
    for _ in 0..3 {
        let mut stream = UnixStream::connect(&socket).expect("it listens");
        let hello = br#"{"protocol":2,"read_only":false}"#;
        let length = u32::try_from(hello.len()).expect("short").to_le_bytes();
        stream.write_all(&length).and_then(|()| stream.write_all(hello)).expect("it reads");
        stalled.push(stream);
    }
    // Nonsense is no trouble either.
    let mut nonsense = UnixStream::connect(&socket).expect("it listens");
    nonsense.write_all(&[0xff; 64]).expect("it reads");
    let watched = watched.wait_with_output().expect("it ends");
    assert!(watched.status.success(), "{}", String::from_utf8_lossy(&watched.stderr));
    // The second run finds the models of the first.
    let told = |output: &std::process::Output| {
        let mut told = facts(&String::from_utf8_lossy(&output.stdout));
        told.retain(|of| of["fact"] != "training");
        told
    };
    let (alone, watched) = (told(&alone), told(&watched));
    assert!(alone.iter().any(|of| of["fact"] == "opened"));
    assert!(alone == watched, "{} facts alone, {} watched", alone.len(), watched.len());
    drop(stalled);
}

#[test]
fn joining_where_no_service_is_says_so() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    for (address, expected) in [
        ("nobody.socket", "no service at nobody.socket"),
        ("127.0.0.1:7000", "path of a local socket"),
    ] {
        let output = program(folder.path())
            .current_dir(folder.path())
            .args(["open", "--attach", address])
            .output()
            .expect("the program runs");
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert!(words.contains(expected), "{words}");
    }
}
