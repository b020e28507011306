//! A small deterministic stream, and a console that keys and frames are handed to by hand.

use std::f64::consts::TAU;
use std::ops::Range;
use std::path::Path;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::Timestamp;

use crate::console::app::{Effect, Model, Msg, update};
use crate::console::key::Key;
use crate::console::keymap::Meaning;
use crate::console::sessions;
use crate::console::theme::{Terminal, Theme, ThemeChoice};
use crate::engine::handle::{Command, EngineEvent, Opened, Update};
use crate::engine::pace::Pace;
use crate::engine::watch::News;
use crate::session::Session;
use crate::stream::{
    ClientColumns, Continuity, Event, Frame, Label, Layout, Sensor, Stream, StreamError,
};

/// Frames of the test stream, at 1 Hz from midnight.
pub(crate) const LENGTH: usize = 6000;
/// Seconds in which nothing comes.
pub(crate) const SILENT: Range<usize> = 4700..4790;
/// Seconds in which one sensor is dead.
const DEAD: Range<usize> = 5300..5500;
const ATTACK: Range<usize> = 5000..5240;

const MIDNIGHT: i64 = 1_660_262_400;

pub(crate) fn session() -> Session {
    let text = r#"Session(about: "a test", source: Plant(attacks: Day))"#;
    Session::parse("plant-attack-day", Path::new(""), text).expect("the test session is valid")
}

pub(crate) fn table_session() -> Session {
    let text = r#"Session(
        about: "a table",
        source: Table(data: "somewhere", time: (column: "time")),
        clients: [(name: "A", columns: ["a"])],
        ranges: (
            fit: (files: ["fit.csv"]),
            calibration: (files: ["calibration.csv"]),
            replay: (files: ["*.csv"]),
        ),
    )"#;
    Session::parse("table", Path::new(""), text).expect("the test session is valid")
}

/// Sines of different length, an attack that moves one client and later another, a hole, a dead
/// sensor.
pub(crate) struct Sines {
    layout: Layout,
    events: Vec<Event>,
    at: usize,
    length: usize,
}

fn at(second: usize) -> Timestamp {
    Timestamp::from_second(MIDNIGHT + second.cast_signed() as i64)
        .expect("a second of the test day")
}

impl Sines {
    pub(crate) fn new(length: usize) -> Self {
        let client = |name: &str, title: &str, sensors: &[(&str, &str)]| ClientColumns {
            name: name.into(),
            title: title.into(),
            sensors: sensors.iter().map(|(name, unit)| Sensor::new(*name, *unit)).collect(),
            inputs: Vec::new(),
        };
        let layout = Layout {
            clients: vec![
                client(
                    "P1",
                    "boiler",
                    &[
                        ("FT01", "mmH2O"),
                        ("FT01Z", "l/h"),
                        ("FT02", "mmH2O"),
                        ("FT02Z", "l/h"),
                        ("FT03", "mmH2O"),
                        ("FT03Z", "l/h"),
                        ("LIT01", "mm"),
                        ("PIT01", "bar"),
                        ("PIT02", "bar"),
                        ("TIT01", "°C"),
                        ("TIT02", "°C"),
                        ("TIT03", "°C"),
                    ],
                ),
                client(
                    "P2",
                    "turbine",
                    &[
                        ("SIT01", "rpm"),
                        ("VIBTR01", "µm"),
                        ("VIBTR02", "µm"),
                        ("VIBTR03", "µm"),
                        ("VIBTR04", "µm"),
                        ("VT01", "V"),
                    ],
                ),
                client("P3", "pumped storage", &[("FIT01", ""), ("LIT01", ""), ("PIT01", "")]),
            ],
            period_s: 1.0,
        };
        let events = vec![Event {
            id: "S101".into(),
            start: at(ATTACK.start),
            end: at(ATTACK.end - 1),
            origins: vec!["P1".into()],
            affected: vec!["P2".into()],
            sensors: Vec::new(),
            what: "pressure set point raised".into(),
        }];
        Self { layout, events, at: 0, length }
    }

    fn value(sensor: usize, second: usize) -> f64 {
        let t = second as f64;
        let size = [60.0, 990.0, 35.0, 360.0, 61.0, 1.2, 30.0][sensor % 7];
        let wave = (TAU * t / (400.0 + 97.0 * sensor as f64)).sin();
        // A ripple of its own, the same in every run.
        let ripple = (t * 0.7 + sensor as f64).sin() * (t * 0.311).cos();
        let base = size * (1.0 + 0.04 * wave + 0.01 * ripple);
        match sensor {
            7 if ATTACK.contains(&second) => base * 1.35,
            12 if (ATTACK.start + 90..ATTACK.end + 60).contains(&second) => base * 0.75,
            _ => base,
        }
    }
}

impl Stream for Sines {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        let before = self.at;
        if self.at == SILENT.start {
            self.at = SILENT.end;
        }
        if self.at >= self.length {
            return Ok(false);
        }
        let second = self.at;
        frame.time = at(second);
        frame.continuity = match second - before {
            _ if second == 0 => Continuity::NewRun,
            0 => Continuity::Next,
            hole => Continuity::Gap { seconds: hole as f64 },
        };
        for (sensor, value) in frame.raw_values_mut().iter_mut().enumerate() {
            let dead = sensor == 14 && DEAD.contains(&second);
            *value = if dead { f64::NAN } else { Self::value(sensor, second) };
        }
        frame.label = if ATTACK.contains(&second) {
            Label::Anomalous { event: Some(0) }
        } else {
            Label::Normal
        };
        self.at += 1;
        Ok(true)
    }

    fn events(&self) -> &[Event] {
        &self.events
    }
}

/// A console without a terminal.
pub(crate) struct Console {
    pub model: Model,
    stream: Sines,
    last: Frame,
    pub effects: Vec<Effect>,
}

impl Console {
    fn new(session: &Session, stream: Sines) -> Self {
        let last = Frame::for_layout(stream.layout());
        let theme = Theme::new(ThemeChoice::Mono, Terminal::default());
        Self { model: Model::new(session, theme), stream, last, effects: Vec::new() }
    }

    /// Nothing has been opened yet, and nothing will be played but what is reported.
    pub(crate) fn bare(session: &Session) -> Self {
        Self::new(session, Sines::new(0))
    }

    pub(crate) fn tell(&mut self, msg: Msg) {
        match update(&mut self.model, msg) {
            Some(Effect::CheckData(name)) => self.tell(sessions::checked(name)),
            effect => self.effects.extend(effect),
        }
    }

    pub(crate) fn report(&mut self, report: EngineEvent) {
        self.tell(Msg::Report(report));
    }

    fn open(&mut self) {
        let opened = Opened {
            layout: self.stream.layout.clone(),
            events: self.stream.events.clone(),
            period_s: 5.0,
            steps: self.stream.layout.clone(),
            prepared: None,
            losses: None,
            calibrated: Vec::new(),
        };
        self.report(EngineEvent::Opened(Box::new(opened)));
        self.report(EngineEvent::Playing);
    }

    /// Takes so many frames of the stream.
    pub(crate) fn play(&mut self, frames: usize) {
        let mut batch = Vec::new();
        for _ in 0..frames {
            if self.stream.next(&mut self.last).expect("sines never fail") {
                batch.push(self.last.clone());
            }
        }
        self.report(measured(batch));
    }

    pub(crate) fn repeat_last_frame(&mut self) {
        let again = vec![self.last.clone()];
        self.report(measured(again));
    }

    pub(crate) fn fail(&mut self) {
        self.report(EngineEvent::Failed(Box::new(StreamError::MissingFiles {
            folder: "data".into(),
            files: vec!["test1.csv".into()],
            published: Some("https://example.org/data".into()),
        })));
    }

    /// Presses keys: characters, and names in `<>`.
    pub(crate) fn keys(&mut self, keys: &str) -> &mut Self {
        let mut rest = keys;
        while let Some(first) = rest.chars().next() {
            let (name, after) = match rest.strip_prefix('<').and_then(|r| r.split_once('>')) {
                Some((name, after)) => (name, after),
                None => rest.split_at(first.len_utf8()),
            };
            rest = after;
            let pressed = Key::pressed(event(name)).expect("a press is a key");
            let meaning = self.model.keymap.meaning(self.model.begun, pressed);
            let typing = self.model.prompt.is_some() || self.model.question.is_some();
            assert!(typing || meaning != Meaning::Nothing, "{name} is bound");
            self.tell(Msg::Key(pressed));
        }
        self
    }

    pub(crate) fn has_quit(&self) -> bool {
        self.effects.contains(&Effect::Quit)
    }

    pub(crate) fn last_pace(&self) -> Option<Pace> {
        self.effects.iter().rev().find_map(|effect| match effect {
            Effect::Command(Command::Pace(pace)) => Some(*pace),
            _ => None,
        })
    }

    pub(crate) fn first(&self) -> Option<Timestamp> {
        self.model.measured.as_ref()?.history.first()
    }
}

fn event(name: &str) -> KeyEvent {
    let (code, modifiers) = match name {
        "esc" => (KeyCode::Esc, KeyModifiers::NONE),
        "enter" => (KeyCode::Enter, KeyModifiers::NONE),
        "tab" => (KeyCode::Tab, KeyModifiers::NONE),
        "left" => (KeyCode::Left, KeyModifiers::NONE),
        "right" => (KeyCode::Right, KeyModifiers::NONE),
        "home" => (KeyCode::Home, KeyModifiers::NONE),
        "end" => (KeyCode::End, KeyModifiers::NONE),
        "up" => (KeyCode::Up, KeyModifiers::NONE),
        "down" => (KeyCode::Down, KeyModifiers::NONE),
        "backspace" => (KeyCode::Backspace, KeyModifiers::NONE),
        "s-tab" => (KeyCode::BackTab, KeyModifiers::SHIFT),
        "pgdn" => (KeyCode::PageDown, KeyModifiers::NONE),
        "space" => (KeyCode::Char(' '), KeyModifiers::NONE),
        "c-c" => (KeyCode::Char('c'), KeyModifiers::CONTROL),
        "c-a" => (KeyCode::Char('a'), KeyModifiers::CONTROL),
        "c-r" => (KeyCode::Char('r'), KeyModifiers::CONTROL),
        "lt" => (KeyCode::Char('<'), KeyModifiers::NONE),
        _ => {
            let c = name.chars().next().expect("a key has a name");
            let shift = if c.is_uppercase() { KeyModifiers::SHIFT } else { KeyModifiers::NONE };
            (KeyCode::Char(c), shift)
        }
    };
    KeyEvent::new(code, modifiers)
}

pub(crate) fn preparing() -> Console {
    Console::new(&session(), Sines::new(LENGTH))
}

/// The replay has come to 01:31:30.
pub(crate) fn playing() -> Console {
    let mut console = preparing();
    console.open();
    console.play(5400);
    console
}

/// Names that try to speak to the terminal.
pub(crate) fn hostile() -> Console {
    let evil = "x\u{1b}]0;title\u{7}\u{9b}2J\r\n\t\u{202e}";
    let mut session = session();
    session.name = evil.into();
    let mut stream = Sines::new(LENGTH);
    for client in &mut stream.layout.clients {
        client.name = evil.into();
        client.title = evil.into();
        for sensor in &mut client.sensors {
            *sensor = Sensor::new(evil, evil);
        }
    }
    stream.events[0].what = evil.into();
    stream.events[0].id = evil.into();
    let mut console = Console::new(&session, stream);
    console.open();
    console.play(5100);
    console.keys("t");
    console
}

/// Measurements alone, of which nothing is said.
fn measured(frames: Vec<Frame>) -> EngineEvent {
    let news = News { frames, ..News::default() };
    EngineEvent::News(Box::new(Update { news, ..Update::default() }))
}
