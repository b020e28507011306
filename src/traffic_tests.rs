//! Every byte that crosses between sites and server in a whole run, training included: searched for the
//! clients' measurements, and shown to be all that the server's facts depend on.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::engine::prepare::{Prepared, prepare_over};
use crate::engine::run::{Run, RunOptions};
use crate::fact::Fact;
use crate::session::{Mode, Session};
use crate::site::local;
use crate::site::material::Material;
use crate::stream::decimate::Decimated;
use crate::stream::{self, Frame, Part, Stream as _};
use crate::wire::{Direction, Encoded, Memory, Message, ToSite, Wire};

/// An hour of normal operation and an hour of a day with an attack.
const SHORT: &str = "Session(about: \"a short day\", source: Plant(attacks: Only([\"S101\"]), \
    history_h: 1, hours: 1.6), sampling: (decimate: Every(5)), thresholds: (arl0: \"8h\"), \
    model: (federation: Online(passes: 2)), PRIVACY)";

/// C1 drives C2, and both tell of their states.
const STATES: &str = "Session(about: \"two that tell of their states\", \
    source: Twin(family: A, clients: 2), sampling: (decimate: Every(1)), \
    ranges: (fit: (until: \"+2500 steps\"), calibration: (from: \"+2500 steps\", \
        until: \"+4000 steps\"), replay: (from: \"+8900 steps\", until: \"+9600 steps\")), \
    model: (proprietary: Paper, epochs: 1, federation: Online(passes: 1)), \
    thresholds: (arl0: \"3000s\", tier: States), PRIVACY)";

/// What crossed: as bytes and as text, one after the other.
#[derive(Default)]
struct Captured {
    bytes: Vec<u8>,
    text: String,
    messages: usize,
    up: usize,
}

impl Captured {
    fn take(&mut self, direction: Direction, encoded: &[u8]) {
        // What stands at the border of two messages is in neither.
        self.bytes.push(0xFF);
        self.bytes.extend_from_slice(encoded);
        self.text += &match direction {
            Direction::Up => Message::decode(encoded).expect("a message").text(),
            Direction::Down => ToSite::decode(encoded).expect("a message").text(),
        };
        self.text.push('\n');
        self.messages += 1;
        self.up += usize::from(direction == Direction::Up);
    }

    /// How many messages of a kind crossed.
    fn count(&self, kind: &str) -> usize {
        let tag = format!("\"{kind}\":");
        self.text.lines().filter(|line| line.contains(&tag)).count()
    }
}

/// Measured numbers in every form in which they might hide.
struct Needles {
    /// Eight bytes, either order.
    wide: HashSet<[u8; 8]>,
    /// Two neighbouring sensors of one row as four bytes each, either order: one such number alone
    /// turns up in a million bytes by chance.
    narrow: HashSet<[u8; 8]>,
    text: HashSet<String>,
    /// Single numbers of four bytes. One of them is met by chance, as often as its neighbour.
    single: HashSet<u32>,
}

impl Needles {
    fn new() -> Self {
        Self {
            wide: HashSet::new(),
            narrow: HashSet::new(),
            text: HashSet::new(),
            single: HashSet::new(),
        }
    }

    fn add(&mut self, row: &[f64]) {
        for &value in row {
            if !is_telling(value) {
                continue;
            }
            self.wide.insert(value.to_le_bytes());
            self.wide.insert(value.to_be_bytes());
            let short = value as f32;
            self.wide.insert(f64::from(short).to_le_bytes());
            self.single.insert(short.to_bits());
            let mut written =
                vec![format!("{value:.6}"), format!("{value:.8}"), format!("{value:.6e}")];
            if f64::from(short).to_bits() != value.to_bits() {
                written.push(format!("{value}"));
            }
            for text in written {
                // Numbers of four bytes have up to nine digits, and meet such texts by chance.
                if text.chars().filter(char::is_ascii_digit).count() >= 10 {
                    self.text.insert(text);
                }
            }
        }
        for pair in row.windows(2).filter(|pair| pair.iter().all(|v| is_telling(*v))) {
            let [a, b] = [pair[0] as f32, pair[1] as f32];
            let joined = |x: [u8; 4], y: [u8; 4]| {
                let mut eight = [0; 8];
                eight[..4].copy_from_slice(&x);
                eight[4..].copy_from_slice(&y);
                eight
            };
            self.narrow.insert(joined(a.to_le_bytes(), b.to_le_bytes()));
            self.narrow.insert(joined(a.to_be_bytes(), b.to_be_bytes()));
        }
    }

    /// Every place where a needle is found.
    fn found_in(&self, captured: &Captured) -> Vec<String> {
        let mut found = Vec::new();
        for (at, window) in captured.bytes.windows(8).enumerate() {
            let window: [u8; 8] = window.try_into().expect("eight bytes");
            if self.wide.contains(&window) {
                found.push(format!("byte {at}: a double, {window:?}"));
            }
            if self.narrow.contains(&window) {
                found.push(format!("byte {at}: two floats of a row"));
            }
        }
        for (line, text) in captured.text.lines().enumerate() {
            for token in numbers(text).filter(|token| self.text.contains(*token)) {
                found.push(format!("line {line}: {token}"));
            }
        }
        found
    }

    /// How many numbers in messages are a measured number of four bytes, and how many are the
    /// neighbour of one: what chance alone would find.
    fn singles_in(&self, text: &str) -> (usize, usize) {
        let all = || numbers(text).filter_map(|token| token.parse::<f32>().ok()).map(f32::to_bits);
        let met = all().filter(|bits| self.single.contains(bits)).count();
        // Of a measured pair of neighbours neither is the other's chance.
        let near = |bits: &u32| self.single.contains(&(bits ^ 1)) && !self.single.contains(bits);
        (met, all().filter(near).count())
    }
}

/// A number in text is a run of these characters; it may also stand inside a longer one.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_digit() || "+-.e".contains(c)))
}

/// Whether what was met is more than chance meets.
fn is_more_than_chance((met, chance): (usize, usize)) -> bool {
    met > 3 * chance + 30
}

/// Whether a number has digits of its own. Noised gradients lie on a grid of 2⁻¹⁵, and a measurement
/// that lies on it too is met there by chance; so is a short decimal such as 428.8, which is 80 % of the
/// 536 steps of a calibration.
fn is_telling(value: f64) -> bool {
    let is_short =
        |scale: f64| ((value * scale).round() / scale - value).abs() < 1e-12 * value.abs();
    value.is_finite() && (value * 65_536.0).fract() != 0.0 && !is_short(1000.0)
}

/// Everything that was measured: as it came and as the models see it.
fn needles(session: &Session, every: u32) -> Needles {
    let mut needles = Needles::new();
    let material = Material::read(session, every, &|_| None).expect("a built-in plant");
    for client in &material.clients {
        for row in local::nominal_rows(client) {
            needles.add(&row);
        }
    }
    for part in Part::ALL {
        let opened = stream::open(session, part).expect("a built-in plant");
        let mut stream = Decimated::new(opened, every);
        let layout = stream.layout().clone();
        let mut frame = Frame::for_layout(&layout);
        while stream.next(&mut frame).expect("a built-in plant") {
            for (m, client) in material.clients.iter().enumerate() {
                let row = frame.row(&layout, m);
                needles.add(local::measurements(row));
                let mut seen = vec![0.0_f32; client.view.used.len()];
                client.view.see(row, &mut seen);
                needles.add(&seen.iter().map(|v| f64::from(*v)).collect::<Vec<f64>>());
            }
        }
    }
    needles
}

/// A place where captured messages are kept.
type Capture = Arc<Mutex<Captured>>;

/// A carrier of bytes, all of which are captured.
fn tapped(captured: &Capture) -> Box<dyn Wire> {
    let captured = Arc::clone(captured);
    Box::new(Encoded::new(move |direction, bytes: &[u8]| {
        captured.lock().expect("one at a time").take(direction, bytes);
    }))
}

fn prepared(session: &Session, wire: Box<dyn Wire>) -> Prepared {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("models");
    let go_on = &mut |_: crate::engine::prepare::Stage| ControlFlow::Continue(());
    prepare_over(session, &file, wire, go_on).expect("prepared")
}

/// All facts of a run, one line each.
fn facts(session: &Session, prepared: &Prepared, mode: Mode, wire: Box<dyn Wire>) -> Vec<String> {
    let options = RunOptions { wire, ..RunOptions::new(mode) };
    let mut run = Run::open_with(session, prepared, options).expect("opened");
    let mut facts = run.calibrated();
    while run.step(&mut facts).expect("a built-in plant").is_some() {}
    facts.extend(run.end());
    facts.iter().map(Fact::to_line).collect()
}

/// Trains and runs a session in both modes with everything that crosses captured, and shows that the
/// facts are those of a run whose messages are handed over in memory.
fn captured(session: &Session) -> Captured {
    let captured = Capture::default();
    let over_bytes = prepared(session, tapped(&captured));
    let in_memory = prepared(session, Box::new(Memory::default()));
    for mode in [Mode::Evidence, Mode::Paper] {
        let bytes = facts(session, &over_bytes, mode, tapped(&captured));
        let memory = facts(session, &in_memory, mode, Box::new(Memory::default()));
        assert_eq!(bytes, memory, "{mode:?}: the carrier makes a difference");
        let incidents = bytes.iter().filter(|line| line.starts_with("{\"fact\":\"opened\""));
        assert!(mode == Mode::Paper || incidents.count() > 0, "something was decided");
    }
    std::mem::take(&mut *captured.lock().expect("nobody sends any more"))
}

fn session(text: &str, privacy: &str) -> Session {
    let text = text.replace("PRIVACY", privacy);
    Session::parse("short", Path::new(""), &text).expect("a sound session")
}

#[test]
fn no_measurement_crosses_in_any_form_and_bytes_are_all_that_facts_depend_on() {
    let noised =
        "privacy: (epsilon_c: 8, epsilon_a: 8, epsilon_g: 8, epsilon_flag: 2, send: WhileRaised)";
    let severe = "privacy: (tell_severity: true)";
    for (text, privacy, every) in
        [(SHORT, severe, 5), (SHORT, noised, 5), (STATES, "privacy: ()", 1)]
    {
        let session = session(text, privacy);
        let (needles, captured) = (needles(&session, every), captured(&session));
        assert!(captured.count("States") > 500 && captured.count("Gradient") > 500);
        assert!(captured.count("Summary") > 400, "influence is learned from what is told");
        assert!(captured.count("Enrolment") >= 2 && captured.count("Flags") > 500);
        assert!(captured.count("Symbol") + captured.count("Quiet") > 500);
        assert_eq!(captured.count("Severe") > 0, privacy == severe, "only where it is asked for");
        assert!(captured.up < captured.messages, "orders were captured too");
        if text == STATES {
            // Both tell of learning and of every step that is watched; C2 hears back.
            assert!(captured.count("Summary") > 2 * (3_800 + 600), "tier 2 is told");
            assert!(captured.count("Prediction") > 3_800 + 600, "and answered");
        }
        assert!(needles.wide.len() > 50_000 && captured.messages > 4_000, "{privacy}");
        let found = needles.found_in(&captured);
        assert!(
            found.is_empty(),
            "{privacy}: {} leaks, such as {:#?}",
            found.len(),
            &found[..found.len().min(8)]
        );

        let singles = needles.singles_in(&captured.text);
        assert!(!is_more_than_chance(singles), "{privacy}: {singles:?} single numbers");

        // The search must be able to find what it looks for, wherever it stands among the rest.
        let excerpt = &captured.bytes[..3000];
        let lines: String = captured.text.split_inclusive('\n').take(20).collect();
        let leak = |bytes: &[u8], text: &str| {
            let mut leaky =
                Captured { bytes: excerpt.to_vec(), text: lines.clone(), ..Captured::default() };
            leaky.bytes.splice(1501..1501, bytes.iter().copied());
            leaky.text += text;
            needles.found_in(&leaky).len()
        };
        assert_eq!(leak(&[], ""), 0);
        for needle in needles.wide.iter().take(100).chain(needles.narrow.iter().take(100)) {
            assert!(leak(needle, "") > 0, "{needle:?} is not found");
        }
        for needle in needles.text.iter().take(100) {
            assert!(leak(&[], &format!("{{\"message\":[1,{needle},2]}}\n")) > 0, "{needle}");
        }
        // One number in a hundred messages would be too many.
        let few = needles.single.iter().take(captured.messages / 100);
        let planted: Vec<String> = few.map(|bits| f32::from_bits(*bits).to_string()).collect();
        let (more, _) = needles.singles_in(&planted.join("\n"));
        assert!(is_more_than_chance((singles.0 + more, singles.1)), "{singles:?} + {more}");
    }
}
