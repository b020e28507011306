//! Every byte that crosses between clients and server in a whole run, training included, searched for
//! the clients' measurements.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};

use headwater::engine::material::Material;
use headwater::engine::prepare::prepare_listened_to;
use headwater::engine::run::Run;
use headwater::link::{Message, Tap};
use headwater::session::{Mode, Session};
use headwater::stream::decimate::Decimated;
use headwater::stream::{self, Frame, Part, Stream as _};

/// An hour of normal operation and an hour of a day with an attack.
const SHORT: &str = "Session(about: \"a short day\", source: Plant(attacks: Only([\"S101\"]), \
    history_h: 1, hours: 1.6), sampling: (decimate: Every(5)), thresholds: (arl0: \"8h\"), \
    model: (federation: Online(passes: 2)), PRIVACY)";

/// C1 drives C2, and both tell of their states.
const STATES: &str = "Session(about: \"two that tell of their states\", \
    source: Twin(family: A, clients: 2), sampling: (decimate: Every(1)), \
    ranges: (fit: (until: \"+2500 steps\"), calibration: (from: \"+2500 steps\", \
        until: \"+4000 steps\"), replay: (from: \"+4000 steps\", until: \"+5000 steps\")), \
    model: (proprietary: Paper, epochs: 1, federation: Online(passes: 1)), \
    thresholds: (arl0: \"3000s\", tier: States), PRIVACY)";

/// What crossed: as bytes and as text, one after the other.
#[derive(Default)]
struct Captured {
    bytes: Vec<u8>,
    text: String,
    messages: usize,
    payload: usize,
    heads: usize,
}

impl Captured {
    fn take(&mut self, message: &Message<'_>) {
        let mut encoded = Vec::new();
        message.encode(&mut encoded);
        self.heads += encoded.len() - message.bytes();
        // The zeros of a step's number before four bytes of a state look like a double by chance.
        self.bytes.push(0xFF);
        self.bytes.extend_from_slice(&encoded[encoded.len() - message.bytes()..]);
        self.text += &serde_json::to_string(message).expect("a message can be written");
        self.text.push('\n');
        self.messages += 1;
        self.payload += message.bytes();
    }

    /// How many messages of a kind crossed.
    fn count(&self, kind: &str) -> usize {
        let tag = format!("{{\"message\":\"{kind}\"");
        self.text.lines().filter(|line| line.starts_with(&tag)).count()
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
                if text.chars().filter(char::is_ascii_digit).count() >= 7 {
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
                found.push(format!("byte {at}: a double"));
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

/// Whether a number has digits of its own: noised gradients lie on a grid of 2⁻¹⁵, and a measurement
/// that lies on it too is met there by chance.
fn is_telling(value: f64) -> bool {
    value.is_finite() && (value * 65_536.0).fract() != 0.0
}

/// Everything that was measured: as it came and as the models see it.
fn needles(session: &Session, every: u32) -> Needles {
    let mut needles = Needles::new();
    let material = Material::read(session, every, &|_| None).expect("a built-in plant");
    for client in &material.clients {
        for rows in [&client.fit, &client.calibration] {
            for row in rows.rows() {
                let row: Vec<f64> = row.iter().map(|v| f64::from(*v)).collect();
                needles.add(&row);
            }
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
                needles.add(row);
                let mut seen = vec![0.0_f32; client.view.used.len()];
                client.view.standardise(row, &mut seen);
                needles.add(&seen.iter().map(|v| f64::from(*v)).collect::<Vec<f64>>());
            }
        }
    }
    needles
}

/// Trains and runs a session in both modes with everything that crosses captured.
fn captured(session: &Session) -> Captured {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let captured = Arc::new(Mutex::new(Captured::default()));
    let tap = || {
        let captured = Arc::clone(&captured);
        Tap::new(move |message| captured.lock().expect("one at a time").take(message))
    };
    let file = folder.path().join("models");
    let go_on = &mut |_: headwater::engine::prepare::Stage| ControlFlow::Continue(());
    let prepared = prepare_listened_to(session, &file, &tap(), go_on).expect("prepared");
    for mode in [Mode::Evidence, Mode::Paper] {
        let opened = Run::open_listened_to(session, &prepared, mode, None, tap());
        let mut run = opened.expect("opened");
        let mut facts = Vec::new();
        while run.step(&mut facts).expect("a built-in plant").is_some() {}
        run.end();
    }
    std::mem::take(&mut *captured.lock().expect("nobody sends any more"))
}

fn session(text: &str, privacy: &str) -> Session {
    let text = text.replace("PRIVACY", privacy);
    Session::parse("short", Path::new(""), &text).expect("a sound session")
}

#[test]
fn no_measurement_crosses_in_any_form() {
    let noised =
        "privacy: (epsilon_c: 8, epsilon_a: 8, epsilon_g: 8, epsilon_flag: 2, thrift: WhileRaised)";
    for (text, privacy, every) in
        [(SHORT, "privacy: ()", 5), (SHORT, noised, 5), (STATES, "privacy: ()", 1)]
    {
        let session = session(text, privacy);
        let (needles, captured) = (needles(&session, every), captured(&session));
        assert_eq!(captured.heads, 13 * captured.messages, "a head is kind, client and step");
        assert_eq!(captured.bytes.len(), captured.messages + captured.payload);
        assert!(captured.count("innovation") > 400, "influence is learned from what is told");
        if text == STATES {
            // Both tell of learning, of calibrating and of every step that is watched; C2 hears back.
            assert!(captured.count("innovation") > 2 * (2 * 3_800 + 900), "tier 2 is told");
            assert!(captured.count("foretold") > 3_800 + 900, "and answered");
        }
        assert!(needles.wide.len() > 50_000 && captured.messages > 4_000, "{privacy}");
        let found = needles.found_in(&captured);
        assert!(found.is_empty(), "{privacy}: {} leaks, such as {:?}", found.len(), &found[..1]);

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
