//! Recordings: what is stored of a run, and what is said again from it.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::headwater;
use crate::started::Started;

/// Three hours of normal operation and two hours of a day with one attack on the boiler.
const SHORT: &str = "Session(about: \"a short day\", source: Plant(attacks: Only([\"S101\"]), \
    history_h: 3, hours: 2), sampling: (decimate: Every(5)), thresholds: (arl0: \"8h\"), \
    ranges: (fit: (until: \"+1h\"), calibration: (from: \"+1h\", until: \"+3h\"), replay: (from: \"+3h\")))";

fn place() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("short.ron"), SHORT).expect("the session can be written");
    // Models are made once: the course of training is told by the run that trains.
    text(folder.path(), &["run", "short.ron", "--json", "--until", "+1m"]);
    folder
}

fn output(folder: &Path, args: &[&str]) -> Output {
    headwater()
        .current_dir(folder)
        .env("HEADWATER_CACHE", folder.join("cache"))
        .env("HEADWATER_RECORDINGS", folder.join("recordings"))
        .args(args)
        .output()
        .expect("the program runs")
}

fn text(folder: &Path, args: &[&str]) -> String {
    let output = output(folder, args);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {complaint}");
    String::from_utf8(output.stdout).expect("the answer is text")
}

/// The lines without the two figures that depend on the machine.
fn timeless(lines: &str) -> Vec<String> {
    let without = |line: &str| {
        let (Some(from), Some(to)) = (line.find("\"wall_s\""), line.find("\"score\"")) else {
            return line.to_owned();
        };
        format!("{}{}", &line[..from], &line[to..])
    };
    lines.lines().map(without).collect()
}

#[test]
fn stored_facts_and_those_of_the_stored_messages_are_those_of_the_run_in_both_modes() {
    let folder = place();
    for mode in ["evidence", "paper"] {
        let file = format!("{mode}.hwrec");
        let run = ["run", "short.ron", "--json", "--mode", mode];
        let said = text(folder.path(), &[&run[..], &["--record", &file]].concat());
        assert!(said.lines().count() > 5, "{said}");
        assert_eq!(timeless(&said), timeless(&text(folder.path(), &run)), "recorded or not");
        assert_eq!(said, text(folder.path(), &["run", &file, "--json"]), "stored, {mode}");
        let again = text(folder.path(), &["run", &file, "--json", "--recompute"]);
        assert_eq!(timeless(&said), timeless(&again), "from messages, {mode}");
    }
    // The session is in the recording: its file is not needed.
    fs::rename(folder.path().join("short.ron"), folder.path().join("moved.ron")).expect("moved");
    let picture =
        text(folder.path(), &["screen", "evidence.hwrec", "--at", "+90m", "--size", "160x40"]);
    assert!(picture.contains("P1") && picture.contains("short"), "{picture}");
    assert!(!picture.contains("p 0.00"), "a root that is named has its probability: {picture}");
    exports(folder.path());
}

/// Every table and report of a recording.
fn exports(folder: &Path) {
    let export =
        |what: &[&str]| text(folder, &[&["export", "evidence.hwrec", "--what"], what].concat());
    let incidents = export(&["incidents", "--format", "json"]);
    let incidents: Value = serde_json::from_str(&incidents).expect("JSON");
    assert_eq!(incidents[0]["incident"], 1);
    let csv = export(&["residuals"]);
    assert_eq!(csv.lines().next(), Some("step,time,client,d_c,d_a,r_c,r_a,surprise"));
    // Two hours of steps of five seconds, three clients.
    assert_eq!(csv.lines().count(), 1 + 1440 * 3);
    // Distances and norms are there whichever method decides, and they are the same.
    let paper = text(folder, &["export", "paper.hwrec", "--what", "residuals"]);
    let measured = |line: &str| line.split(',').take(7).map(str::to_owned).collect::<Vec<_>>();
    assert!(csv.lines().map(measured).eq(paper.lines().map(measured)));
    let whole = csv.lines().filter(|line| measured(line).iter().all(|cell| !cell.is_empty()));
    assert!(whole.count() > 1400 * 3);
    // So are flags: nothing hides them here.
    let flags = |file| text(folder, &["export", file, "--what", "flags"]);
    let of = |line: &str| line.split(',').take(5).map(str::to_owned).collect::<Vec<_>>();
    assert!(flags("evidence.hwrec").lines().map(of).eq(flags("paper.hwrec").lines().map(of)));
    models(folder);
    let part = export(&["flags", "--from", "+10m", "--to", "+20m"]);
    assert_eq!(part.lines().count(), 1 + 121 * 3, "both ends are included");
    let messages: Value =
        serde_json::from_str(&export(&["messages", "--format", "json"])).expect("JSON");
    assert!(messages.as_array().is_some_and(|rows| rows.len() > 4000));
    assert!(export(&["ledger"]).lines().count() > 3);
    let page = export(&["report", "--incident", "1", "--format", "html"]);
    assert!(
        page.starts_with("<!DOCTYPE html>") && page.contains("<svg") && page.ends_with("</html>\n")
    );
    assert!(!page.contains("<script") && !page.contains("http"), "nothing is fetched");
    assert!(page.contains("seeded: not private"));
    let picture = ["screen", "evidence.hwrec", "--size", "120x36", "--format", "svg"];
    like_the_examples(&page, &text(folder, &picture));
    let shift = export(&["report", "--from", "+0m", "--to", "+2h"]);
    assert!(shift.starts_with("# Shift hand-over") && shift.contains("## Log"), "{shift}");
    let cast = export(&["cast", "--from", "+80m", "--to", "+85m"]);
    let header: Value = serde_json::from_str(cast.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&header["version"], &header["width"]), (&Value::from(2), &Value::from(120)));
    assert!(
        cast.lines()
            .skip(1)
            .all(|line| serde_json::from_str::<(f64, String, String)>(line).is_ok())
    );
    let refused =
        output(folder, &["export", "evidence.hwrec", "--what", "report", "--incident", "99"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no incident #99"));
    let compared = text(folder, &["compare", "evidence.hwrec", "paper.hwrec", "--json"]);
    let compared: Value = serde_json::from_str(&compared).expect("JSON");
    assert_eq!(compared["events"][0]["id"], "S101");
    assert!(compared["delay_s"]["a"]["median"].is_number(), "{compared}");
    let again = text(folder, &["compare", "evidence.hwrec", "--set-b", "arl0=1000h"]);
    assert!(again.contains("S101"), "{again}");
}

/// The examples in `assets/` have the form of what the program makes now.
fn like_the_examples(page: &str, picture: &str) {
    let example = |name: &str| {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/reports").join(name);
        fs::read_to_string(file).expect("the example is there")
    };
    // What every report of an incident has: style, headings, heads of tables.
    let form = |page: &str| -> Vec<String> {
        let of_form =
            |line: &&str| ["<style", "<h2", "<thead"].iter().any(|tag| line.contains(tag));
        let lines = page.lines().filter(of_form).map(|line| line.replace("acknowledged", ""));
        lines.collect()
    };
    let of_example = example("incident.html");
    let known = form(page);
    assert!(known.len() > 5, "{known:?}");
    assert_eq!(form(&of_example), known, "make assets/reports/incident.html again");
    let heads = |page: &str| -> Vec<String> {
        let rows = page.lines().filter(|line| line.starts_with("<tr><td>"));
        rows.take(8).filter_map(|row| row.split("</td>").next().map(str::to_owned)).collect()
    };
    assert_eq!(heads(&of_example), heads(page), "make assets/reports/incident.html again");
    let is_priority = |row: &str| row.contains("<td>1</td>") || row.contains("<td>2</td>");
    assert!(of_example.lines().any(is_priority), "a priority is a number");
    let picture = picture.lines().next();
    assert_eq!(example("recording.svg").lines().next(), picture, "size, letters, background");
}

/// The models are in the recording, byte for byte as they are kept, with their digests.
fn models(folder: &Path) {
    let db = rusqlite::Connection::open(folder.join("evidence.hwrec")).expect("a database");
    let stored: (Vec<u8>, String) = db
        .query_row("SELECT data, sha256 FROM site_models WHERE kind = 'models'", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .expect("models are stored");
    let known: String = db
        .query_row("SELECT value FROM about WHERE key = 'models_sha256'", [], |row| row.get(0))
        .expect("their digest is stored");
    assert_eq!(stored.1, known);
    let mut kept = fs::read_dir(folder.join("cache"))
        .expect("a cache")
        .map(|entry| fs::read(entry.expect("readable").path()).expect("readable"));
    assert!(kept.any(|bytes| bytes == stored.0), "as they are kept");
}

#[test]
fn a_recording_that_became_too_large_opens_with_what_it_has_and_says_what_is_missing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    let session = "Session(about: \"a long day\", source: Plant(attacks: Day, history_h: 3, hours: 20), \
        sampling: (decimate: Every(5)), thresholds: (arl0: \"8h\"), \
        record: (measurements: true, most_mb: 1))";
    fs::write(folder.join("long.ron"), session).expect("written");
    let run = output(folder, &["run", "long.ron", "--json", "--record", "a.hwrec"]);
    let complaint = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(0), "{complaint}");
    let said = String::from_utf8(run.stdout).expect("text");
    for what in ["measurements before", "true flags before", "steps and messages before"] {
        assert!(complaint.contains(what), "{what}: {complaint}");
    }
    let size = fs::metadata(folder.join("a.hwrec")).expect("there").len();
    assert!(size <= 1 << 20, "{size} bytes");
    // Facts are all there; the server cannot decide what it has no messages of.
    assert_eq!(said, text(folder, &["run", "a.hwrec", "--json"]));
    let again = output(folder, &["run", "a.hwrec", "--json", "--recompute"]);
    let why = String::from_utf8_lossy(&again.stderr);
    assert!(again.status.code() == Some(1) && why.contains("too large"), "{why}");
    // Incidents of before keep their numbers.
    let incidents = text(folder, &["export", "a.hwrec", "--what", "incidents"]);
    // The times are those of one day, so that they are in order as texts.
    let begun = |line: &&str| line.split(',').nth(1) < Some("2022-08-12T19:20");
    let number = incidents.lines().skip(1).filter(begun).last();
    let number = number.and_then(|line| line.split(',').next());
    let picture = text(folder, &["screen", "a.hwrec", "--at", "19:30"]);
    let last = format!("#{} ", number.expect("an incident"));
    assert!(picture.contains("P1") && picture.contains(&last), "{last}: {picture}");
    let residuals = text(folder, &["export", "a.hwrec", "--what", "flags"]);
    let last = residuals.lines().last().and_then(|line| line.split(',').next());
    assert_eq!(last, Some("14400"), "steps keep their numbers");
}

#[test]
fn a_run_goes_on_without_a_recording_that_cannot_be_written_and_says_so() {
    let folder = place();
    let plain = text(folder.path(), &["run", "short.ron", "--json", "--until", "+30m"]);
    fs::write(folder.path().join("there.hwrec"), "mine").expect("written");
    let mut cases = vec![("there.hwrec", "never replaces"), ("none/a.hwrec", "No such file")];
    // A device on which nothing can be made, for root too.
    if Path::new("/proc").is_dir() {
        cases.push(("/proc/a.hwrec", "/proc/a.hwrec"));
    }
    for (file, why) in cases {
        let args = ["run", "short.ron", "--json", "--until", "+30m", "--record", file];
        let run = output(folder.path(), &args);
        let said = String::from_utf8(run.stdout).expect("text");
        assert_eq!(timeless(&said), timeless(&plain), "{file}");
        let complaint = String::from_utf8_lossy(&run.stderr);
        assert!(complaint.contains("goes on without a recording"), "{complaint}");
        assert!(complaint.contains(why), "{file}: {complaint}");
        assert_eq!(run.status.code(), Some(1), "{file}");
    }
    assert_eq!(fs::read(folder.path().join("there.hwrec")).expect("there"), b"mine");
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_becomes_full_ends_the_recording_and_not_the_run() {
    let folder = place();
    let plain = text(folder.path(), &["run", "short.ron", "--json"]);
    // No file of the process may have more than 64 KB: to a program this is a full disk.
    let program = env!("CARGO_BIN_EXE_headwater");
    let limited =
        format!("ulimit -f 64; trap '' XFSZ; exec {program} run short.ron --json --record f.hwrec");
    let run = std::process::Command::new("bash")
        .current_dir(folder.path())
        .env("HEADWATER_CACHE", folder.path().join("cache"))
        .args(["-c", &limited])
        .output()
        .expect("a shell");
    let complaint = String::from_utf8_lossy(&run.stderr);
    assert_eq!(timeless(&String::from_utf8(run.stdout).expect("text")), timeless(&plain));
    assert!(complaint.contains("not recorded to its end"), "{complaint}");
    assert_eq!(run.status.code(), Some(1));
}

#[test]
fn a_file_that_is_recorded_to_is_refused_to_another_run() {
    let folder = place();
    let mut first = paced(folder.path(), "a.hwrec", "600");
    wait_for(&folder.path().join("a.hwrec"));
    let second =
        output(folder.path(), &["run", "short.ron", "--until", "+1m", "--record", "a.hwrec"]);
    let complaint = String::from_utf8_lossy(&second.stderr).into_owned();
    first.kill().expect("it can be killed");
    first.wait().expect("it ends");
    assert!(complaint.contains("another run is recording to it"), "{complaint}");
}

fn paced(folder: &Path, file: &str, speed: &str) -> Started {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_headwater"));
    command
        .current_dir(folder)
        .env("HEADWATER_CACHE", folder.join("cache"))
        .env("HEADWATER_CONFIG", folder.join("config"))
        .args(["run", "short.ron", "--json", "--speed", speed, "--record", file])
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    Started::by(&mut command)
}

/// Waits until a file is there and something was stored in it.
fn wait_for(file: &Path) {
    let begun = Instant::now();
    let wal = file.with_extension("hwrec-wal");
    while fs::metadata(&wal).map_or(0, |found| found.len()) < 100_000 {
        assert!(begun.elapsed() < Duration::from_mins(1), "nothing was recorded");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Kills a recording process so often, each time a little later, and looks at what it left.
fn kill(times: u32) {
    let folder = place();
    let whole = text(folder.path(), &["run", "short.ron", "--json"]);
    let whole: Vec<&str> = whole.lines().collect();
    let mut most = 0;
    for kill in 0..times {
        let file = format!("{kill}.hwrec");
        // Two hours in eight seconds.
        let mut run = paced(folder.path(), &file, "900");
        wait_for(&folder.path().join(&file));
        // From a moment after the first transaction to most of the run.
        let later = u64::from(kill.wrapping_mul(2_654_435_761) % 3000);
        std::thread::sleep(Duration::from_millis(later));
        run.kill().expect("it can be killed");
        let said = run.wait_with_output().expect("it ends").stdout;
        let said = String::from_utf8(said).expect("text");
        let stored = text(folder.path(), &["run", &file, "--json"]);
        let stored: Vec<&str> = stored.lines().collect();
        assert!(whole.starts_with(&stored), "kill {kill}: no beginning of the whole run");
        // What was printed a second before the end is stored: at this speed that is 15 minutes.
        let (known, printed) = (last_time(&stored), said.lines().last().and_then(time_of));
        if let (Some(known), Some(printed)) = (known, printed) {
            assert!(printed - known <= 2.0 * 900.0, "kill {kill}: {known} after {printed}");
        }
        most = most.max(stored.len());
        let again = text(folder.path(), &["run", &file, "--json", "--recompute"]);
        assert!(again.lines().eq(stored.iter().copied()), "kill {kill}: decided again");
    }
    assert!(most > 3, "some fact was stored");
}

/// The second of the last fact that has a time.
fn last_time(lines: &[&str]) -> Option<f64> {
    lines.iter().rev().find_map(|line| time_of(line))
}

fn time_of(line: &str) -> Option<f64> {
    let fact: Value = serde_json::from_str(line).ok()?;
    let time: jiff::Timestamp = fact.get("time")?.as_str()?.parse().ok()?;
    Some(time.as_second() as f64)
}

#[test]
fn a_recording_that_is_killed_opens_and_holds_the_beginning_of_the_facts() {
    kill(10);
}

#[test]
#[ignore = "takes eight minutes: cargo test --test cli -- --ignored two_hundred"]
fn two_hundred_killed_recordings_open_and_hold_the_beginning_of_the_facts() {
    kill(200);
}
