//! Models that are kept between runs: damaged ones are noticed, and a cache that cannot be used is done
//! without.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::headwater;

/// A session whose models are made in a moment.
const SMALL: &str = "Session(about: \"a short day\", source: Plant(history_h: 1, hours: 1), \
    sampling: (decimate: Every(5)), model: (federation: Online(passes: 1)))";

fn place() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("small.ron"), SMALL).expect("the session can be written");
    folder
}

/// Runs the program with a cache; its answer, its complaint and its exit code.
fn run(folder: &Path, cache: &str, args: &[&str]) -> (String, String, i32) {
    let output = headwater()
        .current_dir(folder)
        .env("HEADWATER_CACHE", folder.join(cache))
        .args(args)
        .output()
        .expect("the program runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr), output.status.code().expect("an exit code"))
}

const SHORT: [&str; 5] = ["run", "small.ron", "--until", "+5m", "--json"];

/// Facts without those of training, and without how long it took.
fn facts(lines: &str) -> Vec<Value> {
    let facts = lines.lines().map(|line| serde_json::from_str(line).expect("an object"));
    let mut facts: Vec<Value> = facts.filter(|fact: &Value| fact["fact"] != "training").collect();
    for fact in &mut facts {
        for clock in ["wall_s", "steps_per_s"] {
            fact.as_object_mut().expect("an object").remove(clock);
        }
    }
    facts
}

fn kept(folder: &Path) -> PathBuf {
    let files: Vec<PathBuf> = fs::read_dir(folder.join("cache"))
        .expect("a cache")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    file.clone()
}

#[test]
fn a_flipped_bit_in_kept_models_is_said_and_they_are_made_again() {
    let folder = place();
    let (sound, complaint, code) = run(folder.path(), "cache", &SHORT);
    assert_eq!((code, complaint.as_str()), (0, ""));
    let file = kept(folder.path());
    let bytes = fs::read(&file).expect("models");
    // Spread over the whole file: its header, its networks and its fits.
    for i in 0..3 {
        let place = 200 + i * (bytes.len() - 201) / 2;
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << (i % 8);
        fs::write(&file, flipped).expect("written");
        let (lines, complaint, code) = run(folder.path(), "cache", &SHORT);
        assert_eq!(code, 0, "{complaint}");
        let said = "cannot be read: checksum differs; the models are made again";
        assert!(complaint.contains(said), "byte {place}: {complaint}");
        assert_eq!(facts(&lines), facts(&sound), "byte {place}");
        assert!(fs::read(&file).expect("models") == bytes, "the same bits again");
    }
}

#[test]
fn a_named_file_of_models_that_is_damaged_stays_as_it_is_until_it_is_replaced_by_force() {
    let folder = place();
    let args = ["train", "small.ron", "--out", "named.safetensors"];
    let (_, complaint, code) = run(folder.path(), "cache", &args);
    assert_eq!(code, 0, "{complaint}");
    let file = folder.path().join("named.safetensors");
    let mut bytes = fs::read(&file).expect("models");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, &bytes).expect("written");
    let (_, complaint, code) = run(folder.path(), "cache", &args);
    let said = "named.safetensors is there already: --force replaces it";
    assert!(code == 1 && complaint.contains(said), "{complaint}");
    assert!(fs::read(&file).expect("models") == bytes);
    let force = [&args[..], &["--force"]].concat();
    let (_, complaint, code) = run(folder.path(), "cache", &force);
    assert_eq!(code, 0, "{complaint}");
    bytes[middle] ^= 1;
    assert!(fs::read(&file).expect("models") == bytes, "the same models again");
}

#[test]
fn a_cache_in_an_impossible_place_is_done_without() {
    let folder = place();
    let (sound, _, _) = run(folder.path(), "cache", &SHORT);
    fs::write(folder.path().join("in the way"), "").expect("written");
    for cache in ["in the way", "in the way/cache"] {
        let (lines, complaint, code) = run(folder.path(), cache, &SHORT);
        assert_eq!(code, 0, "{complaint}");
        assert!(
            complaint.contains("cannot write") && complaint.contains("in the way"),
            "{complaint}"
        );
        assert!(complaint.contains("the run goes on, and models are not kept"), "{complaint}");
        assert_eq!(facts(&lines), facts(&sound));
    }
    let (words, complaint, code) = run(folder.path(), "in the way", &["train", "small.ron"]);
    assert_eq!(code, 0, "{complaint}");
    assert!(complaint.contains("models are not kept") && !words.contains("kept in"), "{words}");
}

/// A limit on the size of files stands for a disk that is full.
#[cfg(unix)]
#[test]
fn a_full_cache_is_done_without_and_nothing_is_left_behind() {
    let folder = place();
    let program = env!("CARGO_BIN_EXE_headwater");
    let script = format!("trap '' XFSZ; ulimit -f 4; exec '{program}' {}", SHORT.join(" "));
    let output = std::process::Command::new("sh")
        .current_dir(folder.path())
        .env("HEADWATER_CACHE", folder.path().join("cache"))
        .args(["-c", &script])
        .output()
        .expect("a shell");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    assert!(complaint.contains("cannot write") && complaint.contains("not kept"), "{complaint}");
    assert!(!facts(&String::from_utf8_lossy(&output.stdout)).is_empty());
    assert_eq!(fs::read_dir(folder.path().join("cache")).expect("a folder").count(), 0);
}

#[test]
fn the_same_session_under_another_name_uses_the_same_models() {
    let folder = place();
    run(folder.path(), "cache", &["train", "small.ron"]);
    fs::create_dir(folder.path().join("below")).expect("a folder");
    for name in ["other.ron", "below/third.ron"] {
        fs::copy(folder.path().join("small.ron"), folder.path().join(name)).expect("copied");
        let (words, complaint, code) = run(folder.path(), "cache", &["train", name]);
        assert_eq!(code, 0, "{complaint}");
        assert!(words.contains("nothing to do: session and data are unchanged"), "{words}");
    }
    kept(folder.path());
}
