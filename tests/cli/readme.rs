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

/// The pictures of the README, and how they are made.
const PICTURES: [(&str, &str); 2] = [("console-dark", "dark"), ("console-light", "paper")];

#[test]
fn the_pictures_of_the_readme_are_what_screen_draws_now() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, theme) in PICTURES {
        let path = format!("assets/{name}.svg");
        assert!(readme().contains(&path), "{path} is not in the README");
        let line = format!(
            "screen plant-attack-day --at 04:23:30 --size 120x40 --theme {theme} --format svg"
        );
        let output = headwater()
            .env("HEADWATER_CACHE", folder.path().join("cache"))
            .env("HEADWATER_CONFIG", folder.path().join("config"))
            .env("HEADWATER_LEDGERS", folder.path().join("ledgers"))
            .args(line.split_whitespace())
            .output()
            .expect("the program runs");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let drawn = String::from_utf8(output.stdout).expect("text");
        // The lane of a root says so, also where the engine's news come in batches.
        assert!(drawn.contains("ROOT #4"), "{name}: no verdict in the lanes");
        let kept = fs::read_to_string(project().join(&path)).unwrap_or_default();
        let same =
            kept.lines().zip(drawn.lines()).take_while(|(kept, drawn)| kept == drawn).count();
        assert!(
            kept == drawn,
            "{path} is not current from line {} on: headwater {line} > {path}",
            same + 1
        );
    }
}
