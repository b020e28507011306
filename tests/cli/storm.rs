//! Storms: thousands of sizes, keys and pastes at a real terminal, SIGTERM at random moments of
//! training, and clocks that jump. Each test says how much it did.
//!
//! `STORM_SEED` chooses other moments and `STORM_FACTOR` more of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use headwater::test_api::{Rows, parse_session, replay, replayed_rows};
use jiff::{SignedDuration, Timestamp};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tempfile::TempDir;

use crate::headwater;
use crate::started::Started;
use crate::tty::{Tty, signal};

const PROGRAM: &str = env!("CARGO_BIN_EXE_headwater");

fn number(variable: &str) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn random() -> StdRng {
    StdRng::seed_from_u64(number("STORM_SEED"))
}

/// A folder with a session, and its models where `trained`.
fn place(session: &str, trained: bool) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("own.ron"), session).expect("written");
    if trained {
        let made = headwater()
            .current_dir(folder.path())
            .env("HEADWATER_CACHE", folder.path().join("cache"))
            .args(["train", "own.ron"])
            .output()
            .expect("the program runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    folder
}

/// Something that a person, a cat or a broken terminal sends to a screen of so many rows. None of it
/// leaves the program.
fn sent(rows: u16, random: &mut StdRng) -> String {
    // Neither q nor Ctrl-C nor Ctrl-Z, and not 8: another session would be opened and trained.
    const KEYS: &[&str] = &[
        " ",
        "h",
        "l",
        "H",
        "L",
        ",",
        ".",
        "p",
        "G",
        "g",
        "m",
        "'",
        "A",
        "B",
        "[",
        "]",
        ">",
        "z",
        "Z",
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
        "7",
        "\t",
        "j",
        "k",
        "\r",
        "o",
        "/",
        "t",
        "a",
        "s",
        "S",
        "x",
        "n",
        "N",
        "c",
        "+",
        "-",
        "*",
        "_",
        "u",
        ":",
        "?",
        "b",
        "T",
        "M",
        "y",
        "K",
        "\x1b",
        "\x7f",
        "\x0c",
        "\x12",
        "\x1b[A",
        "\x1b[B",
        "\x1b[C",
        "\x1b[D",
        "\x1b[H",
        "\x1b[F",
        "\x1b[5~",
        "\x1b[6~",
        "\x1b[1;2A",
        "\x1b[Z",
        "\x1bOP",
        "ü",
        "界",
        "\u{1F6A8}",
        "\x1b[200~",
        "\x1b[201~",
        "\x1b[",
        "\x1b[<",
        "\x1b]52;c;x\x07",
    ];
    match random.random_range(0..10) {
        0 if rows >= 12 => {
            // The last rows have words to click on, and one of them quits.
            let row = random.random_range(1..=rows.saturating_sub(4).max(1));
            let column = random.random_range(1..300);
            let button = [0, 2, 32, 64, 65][random.random_range(0..5_usize)];
            format!("\x1b[<{button};{column};{row}M\x1b[<{button};{column};{row}m")
        }
        1 => {
            let words: String = (0..random.random_range(0..400))
                .map(|_| char::from(random.random_range(b' '..=b'~')))
                .collect();
            format!("\x1b[200~{words}\x1b[201~")
        }
        _ => KEYS[random.random_range(0..KEYS.len())].to_owned(),
    }
}

#[test]
fn thousands_of_sizes_keys_and_pastes_leave_a_whole_picture_and_a_program_that_answers() {
    let folder = place(
        "Session(about: \"a short day\", source: Plant(attacks: Only([\"S101\"]), history_h: 3, \
         hours: 2), sampling: (decimate: Every(5)), replay: (speed: 600))",
        true,
    );
    let mut tty = Tty::start(PROGRAM, &["open", "own.ron"], folder.path(), (120, 40), &[]);
    tty.wait_for("REPLAY");
    let mut random = random();
    let (sizes, mut keys, begun) = (2000 * number("STORM_FACTOR"), 0, Instant::now());
    for i in 0..sizes {
        let small = random.random_bool(0.3);
        let most = if small { (12, 6) } else { (250, 80) };
        let rows = random.random_range(1..=most.1);
        tty.resize(random.random_range(1..=most.0), rows);
        for _ in 0..random.random_range(0..4) {
            tty.keys(&sent(rows, &mut random));
            keys += 1;
        }
        if i % 20 == 0 {
            sleep(Duration::from_millis(20));
            tty.forget();
        }
    }
    // Out of every paste, prompt and question, to the overview.
    tty.resize(120, 40);
    tty.keys("\x1b[201~");
    for _ in 0..8 {
        tty.keys("\x1b");
        sleep(Duration::from_millis(30));
    }
    tty.keys("1");
    tty.wait("a whole picture", |seen| {
        let text = seen.text();
        text.contains("? help") && text.contains("P1") && text.contains("P3")
    });
    let pictures = tty.seen().pictures;
    tty.keys("\x03");
    assert_eq!(tty.end(), 0);
    tty.wait_restored();
    let seconds = begun.elapsed().as_secs_f64();
    println!("{sizes} sizes, {keys} keys and pastes, {pictures} pictures in {seconds:.1} s");
}

#[test]
fn control_c_within_a_paste_that_is_never_closed_ends_the_program_at_once() {
    let folder = place(
        "Session(about: \"short\", source: Plant(history_h: 1, hours: 1), \
         sampling: (decimate: Every(5)), model: (federation: Online(passes: 1)))",
        true,
    );
    let mut slowest = Duration::ZERO;
    for open in ["\x1b[200~rm -rf", "\x1b[", "\x1b[<0;3", "\x1b]52;c;"] {
        let mut tty = Tty::start(PROGRAM, &["open", "own.ron"], folder.path(), (80, 24), &[]);
        tty.wait_for("REPLAY");
        tty.keys(" ");
        tty.wait_for("PAUSED");
        tty.keys(open);
        sleep(Duration::from_millis(50));
        let begun = Instant::now();
        tty.keys("\x03");
        assert_eq!(tty.end(), 0, "{open:?}");
        slowest = slowest.max(begun.elapsed());
        tty.wait_restored();
    }
    // The limit is 100 ms on a machine that has nothing else to do; this one may.
    println!("Ctrl-C within a paste: {slowest:?} at most");
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
}

/// Every file below a folder that was not finished.
fn partial_files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            found.extend(partial_files(&entry.path()));
        } else if name.ends_with(".partial") {
            found.push(name);
        }
    }
    found
}

/// Some ten seconds of training: it must not end before the signal comes.
const LONG: &str = "Session(about: \"long\", source: Plant(history_h: 3, hours: 1), \
    sampling: (decimate: Every(5)), model: (federation: Online(passes: 2000)))";

#[test]
fn sigterm_at_any_moment_of_training_leaves_no_partial_file_and_ends_with_an_error() {
    let mut random = random();
    let kills = 6 * number("STORM_FACTOR");
    let mut endings: BTreeMap<String, u64> = BTreeMap::new();
    for kill in 0..kills {
        let folder = place(LONG, false);
        let command = ["train", "run"][kill as usize % 2];
        let mut program = Command::new(PROGRAM);
        program
            .args([command, "own.ron"])
            .current_dir(folder.path())
            .env("NO_COLOR", "1")
            .env("HEADWATER_CACHE", folder.path().join("cache"))
            .env("HEADWATER_CONFIG", folder.path().join("config"))
            .env("HEADWATER_LEDGERS", folder.path().join("ledgers"))
            .env("HEADWATER_RECORDINGS", folder.path().join("recordings"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = Started::by(&mut program);
        sleep(Duration::from_millis(random.random_range(0..1500)));
        let ended = child.try_wait().expect("it can be asked").is_some();
        if !ended {
            signal("TERM", child.id());
        }
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(partial_files(folder.path()).is_empty(), "{command}: {said}");
        assert!(!said.contains("panicked"), "{command}: {said}");
        let ending = match output.status.code() {
            _ if ended => "had ended",
            Some(1) => {
                let in_time = said.contains("interrupted: ");
                assert!(in_time || said.contains("of SIGTERM"), "{command}: {said}");
                "said so"
            }
            // Before the program had begun to listen.
            None => "ended by the signal",
            code => panic!("{command} ended with {code:?}: {said}"),
        };
        *endings.entry(format!("{command} {ending}")).or_default() += 1;
    }
    println!("{kills} × SIGTERM: {endings:?}");
}

#[test]
fn sigterm_at_any_moment_of_a_console_that_trains_gives_the_terminal_back() {
    let mut random = random();
    let kills = 4 * number("STORM_FACTOR");
    for _ in 0..kills {
        let folder = place(LONG, false);
        let mut tty = Tty::start(PROGRAM, &["open", "own.ron"], folder.path(), (80, 24), &[]);
        tty.wait("a picture", |seen| seen.screen().alternate_screen());
        sleep(Duration::from_millis(random.random_range(0..1500)));
        signal("TERM", tty.id());
        assert_eq!(tty.end(), 143);
        tty.wait_restored();
        tty.wait_for("ended by SIGTERM");
        assert_eq!(partial_files(folder.path()), Vec::<String>::new());
    }
    println!("{kills} × SIGTERM to a console that trains: terminal restored, exit code 143");
}

/// A clock on a wall: how many minutes it is put forward at which row, again and again.
struct Wall {
    name: &'static str,
    changes: Vec<(usize, i64)>,
}

/// Reads a table whose row `t` has the stamp `stamps[t]`. Frames must leave in growing time.
fn read(stamps: &[Timestamp]) -> Rows {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut text = String::from("time,a1,b1\n");
    for (t, stamp) in stamps.iter().enumerate() {
        let value = (t as f64 / 9.0).sin() + (t * 7919 % 997) as f64 / 997.0;
        let stamp = stamp.strftime("%Y-%m-%d %H:%M:%S");
        writeln!(text, "{stamp},{value:.3},{:.3}", 2.0 - value).expect("a string takes every text");
    }
    fs::write(folder.path().join("day.csv"), text).expect("written");
    let session = "Session(about: \"a wall\", source: Table(data: \".\", time: (column: \"time\")), \
        clients: [(name: \"A\", columns: [\"a*\"]), (name: \"B\", columns: [\"b*\"])], \
        ranges: (fit: (files: [\"day.csv\"], until: \"+99 steps\"), \
        calibration: (files: [\"day.csv\"], from: \"+99 steps\"), replay: (files: [\"day.csv\"])))";
    let session = parse_session("wall.ron", folder.path(), session).expect("a sound session");
    let frames = replay(&session).expect("a wrong clock is no error");
    assert!(frames.is_sorted_by(|(one, _), (next, _)| one < next), "time goes back");
    let rows = replayed_rows(&session).expect("a wrong clock is no error");
    assert_eq!(rows.frames + rows.left_out, stamps.len() as u64, "every row is used or counted");
    rows
}

fn begin() -> Timestamp {
    "2026-10-01T00:00:00Z".parse().expect("a time")
}

/// Stamps as the wall shows them.
fn shown(wall: &Wall, rows: usize, period_s: i64) -> Vec<Timestamp> {
    let of = |t: usize| {
        let moved: i64 = wall.changes.iter().filter(|(at, _)| *at <= t).map(|(_, m)| m).sum();
        let seconds = i64::try_from(t).expect("few rows") * period_s + moved * 60;
        begin() + SignedDuration::from_secs(seconds)
    };
    (0..rows).map(of).collect()
}

#[test]
fn summer_time_of_every_zone_costs_no_row_of_a_minute_and_is_told_once_each_way() {
    let rows = 3000;
    let walls = [
        Wall { name: "Europe/Berlin, autumn", changes: vec![(900, -60)] },
        Wall { name: "Europe/Berlin, spring", changes: vec![(900, 60)] },
        Wall { name: "America/St_Johns, both", changes: vec![(900, -60), (2000, 60)] },
        Wall { name: "Australia/Lord_Howe, both", changes: vec![(900, -30), (2000, 30)] },
        Wall { name: "Antarctica/Troll, autumn", changes: vec![(900, -120)] },
        Wall { name: "Pacific/Apia, a day left out", changes: vec![(900, 24 * 60)] },
        Wall { name: "Asia/Pyongyang, half an hour for good", changes: vec![(900, -30)] },
    ];
    for wall in &walls {
        for period_s in [10, 60] {
            let read = read(&shown(wall, rows, period_s));
            let what = format!("{}, {period_s} s: {read:?}", wall.name);
            assert_eq!((read.frames, read.left_out), (rows as u64, 0), "{what}");
            let back = wall.changes.iter().filter(|(_, minutes)| *minutes < 0).count() as u64;
            assert!(read.clock_moves >= back, "{what}");
            assert!(read.clock_moves + read.gaps >= wall.changes.len() as u64, "{what}");
        }
    }
    println!("{} changes of summer time in tables of 10 s and 60 s", walls.len());
}

#[test]
fn a_clock_that_jumps_at_random_makes_every_row_a_frame_or_a_counted_row() {
    let mut random = random();
    let tables = 150 * number("STORM_FACTOR");
    let (mut jumps, mut frames, mut left_out) = (0, 0, 0);
    for _ in 0..tables {
        let period_s = [1, 10, 60, 600][random.random_range(0..4_usize)];
        let rows = 600;
        let mut changes: Vec<(usize, i64)> = (0..random.random_range(0..6))
            .map(|_| {
                let minutes = match random.random_range(0..4) {
                    0 => random.random_range(-120..120),
                    1 => random.random_range(-3000..3000),
                    2 => [60, -60, 30, -30, 1440, -1440][random.random_range(0..6_usize)],
                    _ => random.random_range(-50_000_000..50_000_000),
                };
                (random.random_range(0..rows), minutes)
            })
            .collect();
        // Some of them only for one row.
        for (at, minutes) in changes.clone() {
            if random.random_bool(0.3) {
                changes.push((at + 1, -minutes));
            }
        }
        jumps += changes.len();
        let read = read(&shown(&Wall { name: "random", changes }, rows, period_s));
        assert!(read.frames > 0);
        frames += read.frames;
        left_out += read.left_out;
    }
    println!(
        "{tables} tables, {jumps} jumps of the clock: {frames} frames, {left_out} rows counted"
    );
}

#[test]
fn the_zone_of_the_machine_changes_no_fact() {
    let folder = place(
        "Session(about: \"short\", source: Plant(history_h: 1, hours: 1), \
         sampling: (decimate: Every(5)), model: (federation: Online(passes: 1)))",
        true,
    );
    let facts = |zone: &str| {
        let output = headwater()
            .current_dir(folder.path())
            .env("HEADWATER_CACHE", folder.path().join("cache"))
            .env("TZ", zone)
            .args(["run", "own.ron", "--json"])
            .output()
            .expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines = String::from_utf8(output.stdout).expect("text");
        let facts = lines.lines().filter(|line| !line.contains("\"fact\":\"summary\""));
        facts.map(str::to_owned).collect::<Vec<_>>()
    };
    let utc = facts("UTC");
    assert!(!utc.is_empty());
    for zone in ["America/St_Johns", "Australia/Lord_Howe", "Nowhere/Land", ":"] {
        assert_eq!(facts(zone), utc, "{zone}");
    }
}
