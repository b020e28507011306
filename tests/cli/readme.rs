//! What the README promises: its commands run.

use std::fs;
use std::path::Path;

use crate::headwater;

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn readme() -> String {
    fs::read_to_string(project().join("README.md")).expect("a README")
}

/// Lines of the blocks that are to be typed.
fn commands() -> Vec<String> {
    let mut within = false;
    let mut lines = Vec::new();
    for line in readme().lines() {
        match line {
            "```sh" => within = true,
            "```" => within = false,
            line if within && !line.is_empty() => lines.push(line.to_owned()),
            _ => {}
        }
    }
    lines
}

#[test]
fn every_command_of_the_readme_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Building and testing is what runs this test.
    let known = ["cargo run --release", "cargo test --release"];
    let mut run = 0;
    for line in commands().iter().filter(|line| !known.contains(&line.as_str())) {
        let mut words = line.split_whitespace();
        assert_eq!(words.next(), Some("headwater"), "not a command of this program: {line}");
        let output = headwater()
            .current_dir(folder.path())
            .env("HEADWATER_CACHE", folder.path().join("cache"))
            .env("HEADWATER_CONFIG", folder.path().join("config"))
            .env("HEADWATER_LEDGERS", folder.path().join("ledgers"))
            .args(words)
            .output()
            .expect("the program runs");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{line}: {complaint}");
        assert!(!output.stdout.is_empty(), "{line} said nothing");
        run += 1;
    }
    assert!(run >= 6, "only {run} commands were found");
}
