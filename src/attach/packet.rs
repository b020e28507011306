//! What crosses the socket between a service and its consoles: a length of four bytes, then so many
//! bytes.
//!
//! The two greetings are JSON, so that programs of different versions can tell each other so. All that
//! follows is written by postcard; facts and entries of the log, whose form is a contract of its own,
//! stand in it as lines of JSON.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::engine::handle::{EngineEvent, Load, Opened, RecordState, Update};
use crate::engine::progress::Training;
use crate::engine::run::Ending;
use crate::engine::run::readout::ClientReadout;
use crate::engine::watch::{News, Snapshot};
use crate::fact::Fact;
use crate::incident::{Event, Incident, Order};
use crate::server::ServerView;
use crate::session::Session;
use crate::site::LocalView;
use crate::site::local::measurements_of;
use crate::stream::live::status::Shown;
use crate::stream::{self, Continuity, Frame, Label, Layout};

/// Raised whenever a packet changes its form.
pub(crate) const PROTOCOL: u16 = 2;
/// The longest packet that a service reads.
pub(crate) const FROM_CONSOLE: usize = 64 * 1024;
/// The longest packet that a console reads.
pub(crate) const FROM_SERVICE: usize = 64 * 1024 * 1024;

/// The first packet of a console.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) protocol: u16,
    pub(crate) read_only: bool,
}

/// The first packet of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Welcome {
    Refused(String),
    Welcome {
        protocol: u16,
        name: String,
        /// The session in RON, with all that the command line changed.
        session: String,
        seed_asked_for: bool,
        /// The folder that its file stands in.
        folder: PathBuf,
    },
}

impl Welcome {
    pub(crate) fn to(session: &Session) -> Result<Self, ron::Error> {
        Ok(Self::Welcome {
            protocol: PROTOCOL,
            name: session.name.clone(),
            session: ron::to_string(session)?,
            seed_asked_for: session.seed_asked_for,
            folder: std::path::absolute(&session.folder).unwrap_or_default(),
        })
    }

    /// The session that the service runs, or why there is none for this program.
    pub(crate) fn session(self) -> Result<Session, String> {
        match self {
            Self::Refused(why) => Err(why),
            Self::Welcome { protocol, .. } if protocol != PROTOCOL => Err(format!(
                "the service speaks version {protocol} of the protocol, this program version \
                 {PROTOCOL}: use the same version of the program for both"
            )),
            Self::Welcome { name, session, seed_asked_for, folder, .. } => {
                let mut session =
                    Session::of_program(&session).map_err(|why| format!("its session: {why}"))?;
                (session.name, session.seed_asked_for) = (name, seed_asked_for);
                session.folder = folder;
                Ok(session)
            }
        }
    }
}

/// What a console sends to a service, after its greeting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OrderPacket {
    /// An [`Order`] as JSON.
    order: String,
}

impl OrderPacket {
    pub(crate) fn of(order: &Order) -> Result<Self, serde_json::Error> {
        Ok(Self { order: serde_json::to_string(order)? })
    }

    pub(crate) fn order(&self) -> Result<Order, serde_json::Error> {
        serde_json::from_str(&self.order)
    }
}

/// What a service sends to a console, after its greeting.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Packet {
    Notice(String),
    Recording(Result<PathBuf, String>),
    Training(TrainingPacket),
    Opened(OpenedPacket),
    News(Box<NewsPacket>),
    /// All that happened before the console joined has been sent.
    Playing,
    Ordered(Result<(), String>),
    /// The summary as a line.
    Ended(String),
    Failed(String),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TrainingPacket {
    doing: String,
    steps: Option<(usize, usize)>,
    losses: Vec<(String, f64)>,
    bytes: Option<u64>,
    elapsed: Duration,
    fact: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OpenedPacket {
    pub(super) layout: Layout,
    events: Vec<stream::Event>,
    period_s: f64,
    pub(super) steps: Layout,
    calibrated: Vec<String>,
}

/// A frame, with what a screen shows of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FramePacket {
    time: Timestamp,
    continuity: Continuity,
    label: Label,
    pub(super) values: Vec<f64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ReadoutPacket {
    /// d_c, d_a, r_c, r_a and the surprise.
    local: [f32; 5],
    server: ServerView,
    rehearsed: ServerView,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct NewsPacket {
    pub(super) frames: Vec<FramePacket>,
    pub(super) times: Vec<Timestamp>,
    pub(super) readouts: Vec<ReadoutPacket>,
    pub(crate) incidents: Vec<Incident>,
    pub(super) versions: Vec<(Timestamp, Incident)>,
    pub(super) ranked: Vec<(Timestamp, usize, Vec<String>)>,
    pub(crate) events: Vec<String>,
    facts: Vec<String>,
    pub(crate) snapshot: Option<Snapshot>,
    load: Load,
    pub(crate) live: Option<Shown>,
}

impl NewsPacket {
    pub(crate) fn of(update: &Update) -> Self {
        let news = &update.news;
        Self {
            frames: news.frames.iter().map(FramePacket::of).collect(),
            times: news.times.clone(),
            readouts: news.readouts.iter().map(ReadoutPacket::of).collect(),
            incidents: news.incidents.clone(),
            versions: news.versions.clone(),
            ranked: news.ranked.clone(),
            events: news.events.iter().filter_map(|e| serde_json::to_string(e).ok()).collect(),
            facts: news.facts.iter().map(Fact::to_line).collect(),
            snapshot: update.snapshot.clone(),
            load: update.load,
            live: update.live.as_deref().cloned(),
        }
    }

    /// What has happened before a console joined, without its measurements.
    pub(crate) fn of_past(incidents: Vec<Incident>, events: Vec<String>) -> Self {
        Self { incidents, events, ..Self::default() }
    }

    /// How everything stands, taken out of the rest.
    pub(crate) fn take_state(&mut self) -> Self {
        let (snapshot, live) = (self.snapshot.take(), self.live.take());
        Self { snapshot, live, load: self.load, ..Self::default() }
    }

    pub(crate) fn is_state_only(&self) -> bool {
        self.frames.is_empty()
            && self.times.is_empty()
            && self.incidents.is_empty()
            && self.events.is_empty()
            && self.facts.is_empty()
    }

    fn update(self) -> Result<Update, serde_json::Error> {
        let events: Result<Vec<Event>, _> =
            self.events.iter().map(|line| serde_json::from_str(line)).collect();
        let facts: Result<Vec<Fact>, _> =
            self.facts.iter().map(|line| Fact::from_line(line)).collect();
        Ok(Update {
            news: News {
                frames: self.frames.into_iter().map(FramePacket::frame).collect(),
                times: self.times,
                readouts: self.readouts.into_iter().map(ReadoutPacket::readout).collect(),
                flags: None,
                incidents: self.incidents,
                versions: self.versions,
                ranked: self.ranked,
                events: events?,
                facts: facts?,
            },
            snapshot: self.snapshot,
            load: self.load,
            live: self.live.map(Box::new),
        })
    }
}

impl FramePacket {
    fn of(frame: &Frame) -> Self {
        let Frame { time, continuity, label, .. } = *frame;
        Self { time, continuity, label, values: measurements_of(frame).to_vec() }
    }

    fn frame(self) -> Frame {
        let Self { time, continuity, label, values } = self;
        let mut frame = Frame::with_values(values);
        (frame.time, frame.continuity, frame.label) = (time, continuity, label);
        frame
    }
}

impl ReadoutPacket {
    fn of(readout: &ClientReadout) -> Self {
        let LocalView { d_c, d_a, r_c, r_a, surprise } = readout.local;
        let ClientReadout { server, rehearsed, .. } = *readout;
        Self { local: [d_c, d_a, r_c, r_a, surprise], server, rehearsed }
    }

    fn readout(self) -> ClientReadout {
        let Self { local: [d_c, d_a, r_c, r_a, surprise], server, rehearsed } = self;
        ClientReadout { local: LocalView { d_c, d_a, r_c, r_a, surprise }, server, rehearsed }
    }
}

impl Packet {
    /// An event of the engine, where it is sent to consoles.
    pub(crate) fn of(event: &EngineEvent) -> Option<Self> {
        Some(match event {
            EngineEvent::Notice(notice) => Self::Notice(notice.clone()),
            EngineEvent::Recording(RecordState::On(file)) => Self::Recording(Ok(file.clone())),
            EngineEvent::Recording(RecordState::Failed(why)) => Self::Recording(Err(why.clone())),
            EngineEvent::Training(training) => Self::Training(TrainingPacket {
                doing: training.doing.clone(),
                steps: training.steps,
                losses: training.losses.clone(),
                bytes: training.bytes,
                elapsed: training.elapsed,
                fact: training.fact.as_ref().map(|fact| fact.to_line()),
            }),
            EngineEvent::Opened(opened) => Self::Opened(OpenedPacket {
                layout: opened.layout.clone(),
                events: opened.events.clone(),
                period_s: opened.period_s,
                steps: opened.steps.clone(),
                calibrated: opened.calibrated.iter().map(Fact::to_line).collect(),
            }),
            EngineEvent::News(update) => Self::News(Box::new(NewsPacket::of(update))),
            EngineEvent::Playing => Self::Playing,
            EngineEvent::Ended(ending) => {
                Self::Ended(Fact::Summary(Box::new(ending.summary.clone())).to_line())
            }
            EngineEvent::Failed(error) => Self::Failed(error.to_string()),
            EngineEvent::Ordered(_)
            | EngineEvent::Tried(_)
            | EngineEvent::Branched(_)
            | EngineEvent::Stopped => return None,
        })
    }

    /// The event that it stands for.
    pub(crate) fn event(self) -> Result<EngineEvent, serde_json::Error> {
        let facts = |lines: &[String]| lines.iter().map(|line| Fact::from_line(line)).collect();
        Ok(match self {
            Self::Notice(notice) => EngineEvent::Notice(notice),
            Self::Recording(Ok(file)) => EngineEvent::Recording(RecordState::On(file)),
            Self::Recording(Err(why)) => EngineEvent::Recording(RecordState::Failed(why)),
            Self::Training(TrainingPacket { doing, steps, losses, bytes, elapsed, fact }) => {
                let fact = fact.map(|line| Fact::from_line(&line).map(Box::new)).transpose()?;
                EngineEvent::Training(Training { doing, steps, losses, bytes, elapsed, fact })
            }
            Self::Opened(opened) => EngineEvent::Opened(Box::new(Opened {
                layout: opened.layout,
                events: opened.events,
                period_s: opened.period_s,
                steps: opened.steps,
                prepared: None,
                losses: None,
                calibrated: {
                    let read: Result<Vec<Fact>, _> = facts(&opened.calibrated);
                    read?
                },
            })),
            Self::News(news) => EngineEvent::News(Box::new(news.update()?)),
            Self::Playing => EngineEvent::Playing,
            Self::Ordered(done) => EngineEvent::Ordered(done),
            Self::Ended(line) => match Fact::from_line(&line)? {
                Fact::Summary(summary) => {
                    EngineEvent::Ended(Box::new(Ending::of_summary(*summary)))
                }
                _ => EngineEvent::Failed("the service ended without a summary".into()),
            },
            Self::Failed(why) => EngineEvent::Failed(why.into()),
        })
    }
}

/// The bytes of a packet, its length in front.
pub(crate) fn packed(packet: &impl Serialize) -> io::Result<Vec<u8>> {
    framed(postcard::to_stdvec(packet).map_err(io::Error::other)?)
}

/// The bytes of a greeting, likewise.
pub(crate) fn greeting(greeting: &impl Serialize) -> io::Result<Vec<u8>> {
    framed(serde_json::to_vec(greeting)?)
}

fn framed(body: Vec<u8>) -> io::Result<Vec<u8>> {
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend(body);
    Ok(bytes)
}

/// Reads the next packet's bytes; one that is longer than `longest` is refused before it is read.
fn read(from: &mut impl Read, longest: usize) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > longest {
        return Err(io::Error::other(format!("a packet of {length} bytes is too long")));
    }
    // Memory grows with what has come, not with what was announced.
    let mut bytes = Vec::new();
    from.by_ref().take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

pub(crate) fn read_packet<T: DeserializeOwned>(
    from: &mut impl Read,
    longest: usize,
) -> io::Result<T> {
    postcard::from_bytes(&read(from, longest)?).map_err(io::Error::other)
}

pub(crate) fn read_greeting<T: DeserializeOwned>(
    from: &mut impl Read,
    longest: usize,
) -> io::Result<T> {
    Ok(serde_json::from_slice(&read(from, longest)?)?)
}

pub(crate) fn write(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}
