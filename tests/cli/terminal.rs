//! The console in a real terminal: the program itself, typed at and looked at.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;

use crate::headwater;
use crate::tty::{Tty, signal};

const PROGRAM: &str = env!("CARGO_BIN_EXE_headwater");

/// Three hours of normal operation and two hours of a day with one attack, replayed from its start.
const SHORT: &str = "Session(about: \"a short day\", source: Plant(attacks: Only([\"S101\"]), \
    history_h: 3, hours: 2), sampling: (decimate: Every(5)), thresholds: (arl0: \"8h\"), \
    ranges: (fit: (until: \"+1h\"), calibration: (from: \"+1h\", until: \"+3h\"), replay: (from: \"+3h\")), \
    replay: (speed: 20))";

/// A session whose models have been made once, for all tests.
pub(crate) fn trained() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join("short.ron"), SHORT).expect("the session can be written");
        let made = headwater()
            .current_dir(folder.path())
            .env("HEADWATER_CACHE", folder.path().join("cache"))
            .args(["train", "short.ron"])
            .output()
            .expect("the program runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        folder
    });
    folder.path()
}

/// The console on that session, with a picture.
fn console(size: (u16, u16), environment: &[(&str, &str)]) -> Tty {
    let tty = Tty::start(PROGRAM, &["open", "short.ron"], trained(), size, environment);
    tty.wait("measurements", |seen| {
        let text = seen.text();
        text.contains("REPLAY") && text.contains("P1") && !text.contains("waiting")
    });
    tty
}

/// The same, standing still.
fn paused(size: (u16, u16), environment: &[(&str, &str)]) -> Tty {
    let mut tty = console(size, environment);
    tty.keys(" ");
    tty.wait_for("PAUSED");
    tty
}

/// Ahead at full speed to a time of the day, and standing still there.
fn go(tty: &mut Tty, time: &str) {
    tty.keys(&format!("g{time}\r"));
    let arrived = |line: &str| line.contains("PAUSED") && line.contains(&format!(" {time}:"));
    tty.wait(time, |seen| seen.text().lines().next().is_some_and(arrived));
}

/// Asks for the end, and says yes where an alarm is not acknowledged.
fn leave(tty: &mut Tty) {
    tty.keys("q");
    let asks = |text: &str| text.contains("not acknowledged: quit?");
    tty.wait("the end, or a question", |seen| {
        asks(&seen.text()) || !seen.screen().alternate_screen()
    });
    let asked = asks(&tty.seen().text());
    if asked {
        tty.keys("y");
    }
}

fn quit(mut tty: Tty) {
    leave(&mut tty);
    assert_eq!(tty.end(), 0);
    tty.wait_restored();
}

/// A folder for a file of keys.
fn config(keys: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("keys.ron");
    fs::write(&file, keys).expect("the file can be written");
    (folder, file)
}

#[test]
fn the_start_shows_a_picture_and_quitting_gives_the_terminal_back() {
    let tty = console((120, 40), &[]);
    {
        let seen = tty.picture("a picture", |_| true);
        let (screen, text) = (seen.screen(), seen.text());
        assert!(screen.alternate_screen() && screen.hide_cursor() && screen.bracketed_paste());
        for words in ["short", "P1", "P2", "P3", "? help"] {
            assert!(text.contains(words), "{words} is missing:\n{text}");
        }
    }
    quit(tty);
}

#[test]
fn a_pause_freezes_and_an_idle_screen_writes_nothing_at_all() {
    let tty = paused((100, 30), &[]);
    // What was on its way when the key was pressed may still come; then nothing, for longer than
    // any clock or blink would wait. What an idle console costs is measured by `headwater bench`.
    let silent = || {
        let bytes = tty.seen().bytes.len();
        std::thread::sleep(Duration::from_millis(2500));
        tty.seen().bytes.len() == bytes
    };
    assert!((0..12).any(|_| silent()), "a paused console writes on and on");
    quit(tty);
}

#[test]
fn looking_back_and_returning() {
    let mut tty = paused((120, 40), &[]);
    tty.keys("hh");
    tty.wait_for("BACK");
    tty.keys("\x1b[H");
    tty.keys("\x1b[F");
    tty.wait_without("BACK");
    quit(tty);
}

/// How many incidents ask for an acknowledgement, as the first line says.
pub(crate) fn asking(screen: &str) -> Option<usize> {
    let top = screen.lines().next()?;
    // "▲1 open" is acknowledged.
    let asks = |part: &&str| !part.contains(" open");
    let signs =
        |part: &'_ str| part.trim().strip_prefix(['▲', '▽'])?.split(' ').next()?.parse().ok();
    let found: Vec<usize> = top.split("  ").filter(asks).filter_map(signs).collect();
    (!found.is_empty()).then(|| found.iter().sum())
}

#[test]
fn an_incident_is_found_acknowledged_and_a_threshold_tried_without_regret() {
    let mut tty = paused((140, 45), &[]);
    // Ahead at full speed, past the attack.
    go(&mut tty, "01:50");
    // Models made in a moment raise several.
    let before = asking(&tty.picture("a picture", |_| true).text()).expect("something asks");
    tty.keys("a");
    tty.wait_for("acknowledge");
    tty.wait("one fewer that asks", |seen| asking(&seen.text()).unwrap_or(0) + 1 == before);
    let trial = |text: String| text.lines().any(|l| l.contains('→') && l.contains("alarms"));
    tty.keys("+");
    tty.wait("the consequences of a trial", |seen| trial(seen.text()));
    tty.keys("\x1b");
    tty.wait("the end of the trial", |seen| !trial(seen.text()));
    // From the knobs to the incidents, then out.
    tty.keys("q");
    quit(tty);
}

#[test]
fn a_storm_of_sizes_ends_in_a_whole_picture() {
    let tty = console((120, 40), &[]);
    let sizes = [(200, 60), (30, 10), (10, 3), (2, 2), (1, 1), (250, 3), (3, 80), (80, 24)];
    for (columns, rows) in sizes.into_iter().cycle().take(40) {
        tty.resize(columns, rows);
    }
    tty.resize(2, 2);
    tty.wait("something at 2x2", |seen| !seen.text().trim().is_empty());
    tty.resize(120, 40);
    tty.wait_for("? help");
    tty.wait_for("P3");
    quit(tty);
}

#[test]
fn a_panic_of_the_engine_is_told_on_the_users_own_screen() {
    let fault = [("HEADWATER_FAULT", "engine-panic")];
    let mut tty = Tty::start(PROGRAM, &["open", "short.ron"], trained(), (120, 40), &fault);
    assert_eq!(tty.end(), 1);
    tty.wait_restored();
    tty.wait_for("a fault was asked for");
    tty.wait_for("headwater: ");
    assert!(tty.seen().pictures > 0, "there was a picture before");
}

#[test]
fn signals_end_the_program_with_their_number_and_a_word() {
    for (name, code) in [("TERM", 143), ("INT", 130), ("HUP", 129), ("QUIT", 131)] {
        let mut tty = console((80, 24), &[]);
        signal(name, tty.id());
        assert_eq!(tty.end(), code, "SIG{name}");
        tty.wait_restored();
        tty.wait_for(&format!("ended by SIG{name}"));
    }
}

#[test]
fn control_c_leaves_at_once() {
    let mut tty = console((80, 24), &[]);
    tty.keys("?");
    tty.wait_for("esc closes");
    tty.keys("\x03");
    assert_eq!(tty.end(), 0);
    tty.wait_restored();
}

#[test]
#[cfg(target_os = "linux")]
fn a_shell_gets_the_terminal_and_gives_it_back() {
    let mut tty = Tty::start("/bin/sh", &["-i"], trained(), (100, 30), &[("PS1", "ready$ ")]);
    tty.wait_for("ready$");
    tty.keys(&format!("{PROGRAM} open short.ron\r"));
    tty.wait_for("REPLAY");
    tty.keys(" ");
    tty.wait_for("PAUSED");
    // Once by the key, once by a signal from outside.
    for stop in ["key", "signal"] {
        if stop == "key" {
            tty.keys("\x1a");
        } else {
            signal("TSTP", job(tty.id()));
        }
        tty.wait_restored();
        tty.keys("fg\r");
        tty.wait("the picture again", |seen| {
            seen.screen().alternate_screen() && seen.text().contains("PAUSED")
        });
    }
    leave(&mut tty);
    tty.wait_restored();
    // Typed before the program has ended: it has stopped reading.
    tty.keys("echo left with $?\r");
    tty.wait_for("left with 0");
}

/// The only child of a process.
#[cfg(target_os = "linux")]
fn job(parent: u32) -> u32 {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    children.expect("the shell runs").trim().parse().expect("the shell has one child")
}

#[test]
fn without_colour_bold_and_reversed_text_remain() {
    let mut tty = paused((120, 40), &[("NO_COLOR", "1")]);
    let seen = tty.picture("a picture", |_| true);
    let places = (0..40).flat_map(|row| (0..120).map(move |column| (row, column)));
    let cells: Vec<&vt100::Cell> = places
        .filter_map(|(row, column)| seen.screen().cell(row, column))
        .filter(|cell| cell.has_contents())
        .collect();
    for cell in &cells {
        assert_eq!(cell.fgcolor(), vt100::Color::Default, "{}", cell.contents());
        assert_eq!(cell.bgcolor(), vt100::Color::Default, "{}", cell.contents());
    }
    assert!(cells.iter().any(|cell| cell.bold()), "nothing is bold");
    assert!(cells.iter().any(|cell| cell.dim()), "nothing is dim");
    drop(seen);
    tty.keys("?");
    tty.wait("a reversed title", |seen| {
        seen.screen().cell(0, 1).is_some_and(|cell| cell.contents() == "h" && cell.inverse())
    });
    tty.keys("q");
    quit(tty);
}

#[test]
fn a_locale_without_utf_8_gets_ascii_and_nothing_else() {
    let tty = paused((120, 40), &[("LANG", "C")]);
    let seen = tty.picture("a picture", |_| true);
    assert!(seen.bytes.is_ascii(), "{}", seen.text());
    assert!(seen.text().contains("left right look back"), "{}", seen.text());
    drop(seen);
    quit(tty);
}

#[test]
fn a_key_is_answered_while_a_fast_engine_tells_without_a_pause() {
    let mut tty = console((120, 40), &[]);
    // 600 seconds of data a second: fifty batches of measurements a second and more.
    tty.keys("]]]]]");
    tty.wait_for("REPLAY 600x");
    for (key, there) in [("?", true), ("q", false)] {
        tty.keys(key);
        tty.wait("the help", |seen| seen.text().contains("esc closes") == there);
    }
    quit(tty);
}

#[test]
fn the_mouse_clicks_opens_scrubs_and_can_be_given_back() {
    let mut tty = paused((120, 40), &[]);
    tty.click("? help");
    tty.wait_for("esc closes");
    tty.keys("\x1b");
    tty.wait_without("esc closes");
    go(&mut tty, "01:00");
    // A press on the left half of the day, which is the second line, dragged further left.
    let (row, from, to) = (2, 20, 15);
    tty.keys(&format!("\x1b[<0;{from};{row}M\x1b[<32;{to};{row}M\x1b[<0;{to};{row}m"));
    tty.wait_for("BACK");
    tty.keys("\x1b[F");
    tty.wait_without("BACK");
    tty.keys("M");
    tty.wait_for("mouse off");
    tty.wait("the mouse given back", |seen| {
        seen.screen().mouse_protocol_mode() == vt100::MouseProtocolMode::None
    });
    quit(tty);
}

/// The line at the top of the screen.
fn top(seen: &crate::tty::Seen) -> String {
    seen.text().lines().next().unwrap_or_default().to_owned()
}

#[test]
fn two_hundred_mouse_events_at_once_are_all_answered_without_another_key() {
    let mut tty = paused((120, 40), &[]);
    go(&mut tty, "01:00");
    // A press on the day's line, two hundred movements, the last of them at its left end: 2.4 KB in
    // one write, more than is read at once.
    let drag = |column: usize| format!("\x1b[<32;{column};2M");
    let moves: String = (0..200).map(|i| drag(40 - i % 20)).collect();
    tty.keys(&format!("\x1b[<0;40;2M{moves}{}", drag(8)));
    let end = tty.picture("a look back", |seen| top(seen).contains("BACK 5"));
    let all = top(&end);
    drop(end);
    // The same place, pressed by itself, looks at the same instant.
    tty.keys("\x1b[<0;8;2m\x1b[F");
    tty.wait_without("BACK");
    tty.keys(&format!("\x1b[<0;40;2M{}", drag(8)));
    tty.wait("the same look back", |seen| top(seen) == all);
    tty.keys("\x1b[<0;8;2m");
    quit(tty);
}

#[test]
fn after_a_megabyte_of_letters_control_c_ends_the_program_before_all_of_them_are_answered() {
    let mut tty = paused((80, 24), &[]);
    tty.keys("2");
    tty.wait_for("P1");
    // Every letter asks for a copy, which shows in the output.
    let letters = 1_000_000;
    tty.keys(&"y".repeat(letters));
    tty.keys("\x03");
    assert_eq!(tty.end(), 0);
    tty.wait_restored();
    let copy = b"\x1b]52;c;";
    let copies = tty.seen().bytes.windows(copy.len()).filter(|bytes| bytes == copy).count();
    assert!(copies < letters / 2, "{copies} of {letters} letters were answered first");
}

#[test]
fn keys_that_come_too_fast_are_left_out_and_the_screen_says_how_many() {
    let mut tty = paused((120, 40), &[]);
    tty.keys("2");
    tty.keys(&"y".repeat(200_000));
    tty.wait_for("keys left out: they came too fast");
    tty.keys("1");
    tty.wait_for("? help");
    quit(tty);
}

#[test]
fn a_copy_reaches_the_clipboard_of_the_terminal() {
    let mut tty = paused((120, 40), &[]);
    tty.keys("2y");
    tty.wait_for("characters to the clipboard");
    // "P1\t" in base 64.
    let clipboard = b"\x1b]52;c;UDEJ";
    assert!(tty.seen().bytes.windows(clipboard.len()).any(|bytes| bytes == clipboard));
    tty.keys("q");
    quit(tty);
}

#[test]
fn a_wrong_file_of_keys_is_told_on_the_screen_and_the_keys_stay() {
    let (folder, file) = config("{\n    \"pase\": [\"p\"],\n}");
    let folder = folder.path().to_str().expect("a plain name");
    let mut tty = console((120, 40), &[("HEADWATER_CONFIG", folder)]);
    tty.wait_for("keys.ron:2:5: no action is called \"pase\"; did you mean \"pause\"?");
    tty.keys(" ");
    tty.wait_for("PAUSED");
    fs::write(&file, "{\"pause\": [\"e\"]}").expect("the file can be written");
    tty.keys("K");
    tty.wait_for("keys read");
    tty.keys(" ");
    tty.keys("e");
    tty.wait_for("REPLAY");
    tty.wait_for("e pause");
    quit(tty);
}

#[test]
fn a_theme_of_its_own_fills_the_field() {
    let tty = Tty::start(
        PROGRAM,
        &["open", "short.ron", "--theme", "paper", "--no-mouse"],
        trained(),
        (80, 24),
        &[],
    );
    {
        let seen = tty.picture("a replay", |seen| seen.text().contains("REPLAY"));
        let field = seen.screen().cell(23, 79).map(vt100::Cell::bgcolor);
        assert_eq!(field, Some(vt100::Color::Idx(254)));
        assert_eq!(seen.screen().mouse_protocol_mode(), vt100::MouseProtocolMode::None);
    }
    quit(tty);
}

#[test]
fn a_terminal_that_cannot_place_its_cursor_gets_the_plain_facts() {
    let mut tty =
        Tty::start(PROGRAM, &["open", "short.ron"], trained(), (120, 40), &[("TERM", "dumb")]);
    assert_eq!(tty.end(), 0);
    assert_eq!(tty.seen().pictures, 0);
}
