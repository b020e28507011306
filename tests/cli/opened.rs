//! What `open` is told beside a session, and what leaves the console for a file.

use std::fs;

use crate::terminal::trained;
use crate::tty::Tty;

const PROGRAM: &str = env!("CARGO_BIN_EXE_headwater");

#[test]
fn the_console_opens_at_a_time_at_a_speed_and_with_a_method() {
    let args = ["open", "short.ron", "--at", "01:00", "--speed", "60", "--mode", "paper"];
    let mut tty = Tty::start(PROGRAM, &args, trained(), (120, 40), &[]);
    let asked = ["REPLAY 60x", " 01:", "paper"];
    tty.wait("time, speed and method", |seen| {
        let text = seen.text();
        let first = text.lines().next().unwrap_or_default();
        asked.iter().all(|words| first.contains(words))
    });
    tty.keys("\u{3}");
    assert_eq!(tty.end(), 0);
}

#[test]
fn a_picture_says_where_it_was_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let session = trained().join("short.ron");
    let cache = trained().join("cache");
    let args = ["open", session.to_str().expect("text"), "--at", "00:10"];
    let cache = [("HEADWATER_CACHE", cache.to_str().expect("text"))];
    let mut tty = Tty::start(PROGRAM, &args, folder.path(), (160, 40), &cache);
    tty.wait("measurements", |seen| seen.text().contains("P1 boiler"));
    tty.keys(" P");
    tty.wait("where the picture is", |seen| {
        let text = seen.text().replace('\n', "");
        text.contains("written to") && text.contains(".svg")
    });
    let written = fs::read_dir(folder.path()).expect("the folder").filter_map(Result::ok);
    let endings: Vec<String> =
        written.filter_map(|file| Some(file.path().extension()?.to_str()?.to_owned())).collect();
    for ending in ["txt", "ansi", "svg"] {
        assert!(endings.iter().any(|found| found == ending), "{ending}: {endings:?}");
    }
    tty.keys("\u{3}");
    assert_eq!(tty.end(), 0);
}
