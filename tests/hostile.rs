//! Bytes from outside that are wrong in every way a file can be wrong: the corpus of the fuzz targets
//! (small files that a user could have, and every input that once broke the program), and copies of it
//! with bytes, numbers, lines and endings changed.
//!
//! `HOSTILE_SEED` chooses other copies and `HOSTILE_FACTOR` more of them.

#[path = "fuzz/targets.rs"]
mod targets;

use std::fs;
use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The files of a folder of the repository, with their bytes.
fn files(folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a readable entry").path())
        .collect();
    files.sort();
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path, bytes)
    };
    files.into_iter().map(read).collect()
}

/// Numbers that programs stumble over.
const NUMBERS: [&str; 16] = [
    "0",
    "-1",
    "1e30",
    "-1e30",
    "1e-300",
    "NaN",
    "inf",
    "-inf",
    "18446744073709551615",
    "-9223372036854775808",
    "1e10",
    "-2147483648",
    "0.1",
    "1000000",
    "",
    "١٢",
];

/// A copy of `bytes` with one to four things wrong with it.
fn changed(bytes: &[u8], others: &[(PathBuf, Vec<u8>)], random: &mut StdRng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..random.random_range(1..=4) {
        let at = random.random_range(0..=bytes.len());
        let until = (at + random.random_range(0..40_usize)).min(bytes.len());
        match random.random_range(0..9) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.random_range(0..8),
            1 => bytes.truncate(at),
            2 => drop(bytes.drain(at..until)),
            3 => {
                let part = bytes[at..until].to_vec();
                drop(bytes.splice(at..at, part));
            }
            4 => bytes.insert(at, random.random()),
            5 => {
                // A number becomes another one.
                let digits = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
                let Some(from) = bytes[at..].iter().position(digits).map(|from| at + from) else {
                    continue;
                };
                let length = bytes[from..].iter().take_while(|byte| digits(byte)).count();
                let other = NUMBERS[random.random_range(0..NUMBERS.len())];
                drop(bytes.splice(from..from + length, other.bytes()));
            }
            6 => {
                // Lines change places.
                let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
                if lines.len() > 2 {
                    let (one, two) =
                        (random.random_range(0..lines.len()), random.random_range(0..lines.len()));
                    lines.swap(one, two);
                    bytes = lines.concat();
                }
            }
            7 => {
                // A piece of another file.
                let (_, other) = &others[random.random_range(0..others.len())];
                let from = random.random_range(0..=other.len());
                let end = (from + random.random_range(0..200_usize)).min(other.len());
                drop(bytes.splice(at..at, other[from..end].iter().copied()));
            }
            _ => {
                let other: &[u8] = [&b"\r"[..], b"\r\n", b"\0", b"\xEF\xBB\xBF", b"\xFF\xFE"]
                    [random.random_range(0..5_usize)];
                drop(bytes.splice(at..at, other.iter().copied()));
            }
        }
    }
    bytes
}

/// Runs a target on its corpus and on `count` changed copies of it.
fn attack(target: &str, run: fn(&[u8]) -> bool, count: u64) {
    let mut corpus = files(&format!("tests/fuzz/corpus/{target}"));
    if target == "session" {
        corpus.extend(files("sessions"));
    }
    let accepted = corpus.iter().filter(|(_, bytes)| run(bytes)).count();
    assert!(accepted > 0, "nothing of the corpus is accepted: it tests the first check only");
    let seed = number("HOSTILE_SEED").unwrap_or(1);
    let count = count * number("HOSTILE_FACTOR").unwrap_or(1);
    let mut random = StdRng::seed_from_u64(seed);
    let mut survived = 0;
    for _ in 0..count {
        let (_, bytes) = &corpus[random.random_range(0..corpus.len())];
        survived += usize::from(run(&changed(bytes, &corpus, &mut random)));
    }
    println!(
        "{target}: {accepted} of {} files accepted; of {count} changed copies (seed {seed}) \
         {survived} accepted, the others refused in words",
        corpus.len()
    );
}

#[test]
fn no_session_does_harm() {
    attack("session", targets::session, 2000);
}

#[test]
fn no_table_does_harm() {
    attack("table", targets::table, 300);
}

#[test]
fn no_message_does_harm() {
    attack("message", targets::message, 5000);
}

#[test]
fn no_ledger_does_harm() {
    attack("ledger", targets::ledger, 500);
}

#[test]
fn no_file_of_keys_does_harm() {
    attack("keys", targets::keys, 1000);
}
