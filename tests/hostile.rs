//! Bytes from outside that are wrong in every way a file can be wrong: the corpus of the fuzz targets
//! (small files that a user could have, and every input that once broke the program), and copies of it
//! with bytes, numbers, lines and endings changed. Models that are kept are damaged in the same ways.
//!
//! `HOSTILE_SEED` chooses other copies and `HOSTILE_FACTOR` more of them.

#[path = "fuzz/targets.rs"]
mod targets;

use std::fs;
use std::path::{Path, PathBuf};

use headwater::test_api::{Session, make_models, parse_session, read_models};
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
fn no_recording_does_harm() {
    attack("recording", targets::recording, 150);
}

#[test]
fn no_line_of_a_live_source_does_harm() {
    attack("live", targets::live, 1000);
}

#[test]
fn no_envelope_of_a_broker_does_harm() {
    attack("envelope", targets::envelope, 5000);
}

#[test]
fn no_file_of_keys_does_harm() {
    attack("keys", targets::keys, 1000);
}

#[test]
fn no_packet_of_a_console_or_a_service_does_harm() {
    attack("attach", targets::attach, 1000);
}

#[test]
fn no_outbox_of_a_site_does_harm() {
    attack("outbox", targets::outbox, 300);
}

#[test]
fn no_journal_of_a_server_does_harm() {
    attack("journal", targets::journal, 300);
}

#[test]
fn no_queue_of_outputs_does_harm() {
    attack("queue", targets::queue, 300);
}

#[test]
fn nothing_that_a_live_session_keeps_does_harm() {
    attack("kept", targets::kept, 1000);
}

#[test]
fn no_file_of_alarms_or_of_the_truth_does_harm() {
    attack("score", targets::score, 1000);
}

#[test]
fn no_bytes_of_a_terminal_do_harm() {
    attack("terminal", targets::terminal, 5000);
}

#[test]
fn no_change_of_models_with_a_fitting_checksum_does_harm() {
    attack("models", targets::models, 300);
}

/// A damaged copy of a file of models, and what was done to it.
fn damaged(bytes: &[u8], other: &[u8], random: &mut StdRng) -> (&'static str, Vec<u8>) {
    let mut copy = bytes.to_vec();
    let at = random.random_range(0..copy.len());
    // The header is a small part of the file, and the part that is understood first.
    let header = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize + 8;
    let early = random.random_range(0..header);
    let what = match random.random_range(0..9) {
        0 => {
            copy.truncate(at);
            "truncated"
        }
        1 => {
            copy[at] ^= 1 << random.random_range(0..8);
            "a bit flipped"
        }
        2 => {
            copy[early] ^= 1 << random.random_range(0..8);
            "a bit of the header flipped"
        }
        3 => {
            copy = [&copy[..at], &other[at.min(other.len())..]].concat();
            "spliced with another session's models"
        }
        4 => {
            let until = (at + 4096).min(copy.len());
            copy[at..until].fill(0);
            "zeros where a block of the disk was lost"
        }
        5 => {
            let length = [0, u64::MAX, 1 << 40, copy.len() as u64 + 1, random.random()];
            let length = length[random.random_range(0..length.len())];
            copy[..8].copy_from_slice(&length.to_le_bytes());
            "another length of the header"
        }
        6 => {
            let version = b"\\\"version\\\":";
            let place = copy.windows(version.len()).position(|w| w == version);
            copy[place.expect("a version") + version.len()] = random.random_range(b'0'..=b'9');
            "another version"
        }
        7 => {
            // A number in the header becomes another digit: shapes, offsets, thresholds.
            let digits = copy[early..header].iter().position(u8::is_ascii_digit);
            if let Some(digit) = digits {
                copy[early + digit] = random.random_range(b'0'..=b'9');
            }
            "a digit of the header changed"
        }
        _ => {
            let until = (at + random.random_range(1..200_usize)).min(copy.len());
            copy.drain(at..until);
            "bytes missing in the middle"
        }
    };
    (what, copy)
}

#[test]
fn no_damaged_file_of_models_is_used_and_one_with_a_fitting_checksum_does_no_harm() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let session = |clients: usize| {
        let text = format!(
            "Session(about: \"short\", source: Twin(clients: {clients}), \
             model: (proprietary: Linear, federation: Batched(rounds: 1)))"
        );
        parse_session("short", Path::new(""), &text).expect("a sound session")
    };
    let file = folder.path().join("kept.safetensors");
    let models = |session: &Session, file: &Path| {
        make_models(session, file).expect("prepared");
        fs::read(file).expect("kept")
    };
    let other = models(&session(3), &folder.path().join("other.safetensors"));
    let session = session(2);
    let sound = models(&session, &file);
    assert!(read_models(&session, &file).is_ok(), "the sound file is used");

    let seed = number("HOSTILE_SEED").unwrap_or(1);
    let count = 500 * number("HOSTILE_FACTOR").unwrap_or(1);
    let mut random = StdRng::seed_from_u64(seed);
    let (mut refused, mut same, mut refused_again, mut used) = (0, 0, 0, 0);
    for _ in 0..count {
        let (what, mut copy) = damaged(&sound, &other, &mut random);
        fs::write(&file, &copy).expect("written");
        match read_models(&session, &file) {
            Ok(()) if copy == sound => same += 1,
            Ok(()) => panic!("{what}: the damaged file is used"),
            Err(error) => {
                assert!(!error.trim().is_empty(), "{what}: an error without words");
                refused += 1;
            }
        }
        // A checksum is no signature: what stands behind it must hold too.
        targets::sign_again(&mut copy);
        fs::write(&file, &copy).expect("written");
        match read_models(&session, &file) {
            Ok(()) => used += 1,
            Err(error) => {
                assert!(!error.trim().is_empty(), "{what}: an error without words");
                refused_again += 1;
            }
        }
    }
    assert!(same < count / 10, "{same} of {count} copies were not damaged");
    println!(
        "models: of {count} damaged copies (seed {seed}) {refused} refused in words, 0 used, {same} \
         as they were; with a checksum that fits {refused_again} refused in words, {used} read"
    );
}
