//! The first line: what the replay does, what waits for an operator, whether the engine keeps up.
//!
//! ```text
//!  REPLAY 60x  2022-08-12 10:42:20  ▲1 not acknowledged  ↳4 effects  1 alarm in 10 min  evidence mode  …
//! ```

use std::time::Duration;

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{Canvas, width};
use super::status::NOT_ACKNOWLEDGED;
use crate::console::app::{Model, Sorting, Stage};
use crate::console::clock::length;
use crate::console::subject::Reach;
use crate::engine::handle::RecordState;
use crate::incident::TableVerdict;
use crate::stream::live::status::Standing;

/// The mark of every view where noise is drawn from a seed, and its short form.
pub(crate) const SEEDED: [&str; 2] = ["seeded: not private", "seeded"];

/// The rank of what can be seen elsewhere too.
const ELSEWHERE: u8 = 7;
const LATE: Duration = Duration::from_secs(1);
/// The widest that parts with figures of one digit get, in words and in their short form.
const STATE: [u16; 2] = [10, 10];
const LOOKING_BACK: [u16; 2] = [19, 11];
const OPEN: [u16; 2] = [19, 11];
const EFFECTS: [u16; 2] = [10, 2];
const RATE: [u16; 2] = [18, 11];
const ENGINE: [u16; 2] = [16, 9];
const VALUES: [u16; 2] = [24, 13];

/// What is given up for room, a part at a time: what stands elsewhere too, words where figures do,
/// the date before the word that an alarm wants an answer.
const STEPS: [(Step, u8); 13] = [
    (Step::Drop, ELSEWHERE),
    (Step::Shorten, 6),
    (Step::Drop, 6),
    (Step::Shorten, 5),
    (Step::Shorten, 4),
    (Step::Shorten, 3),
    (Step::Drop, 5),
    (Step::Shorten, 2),
    (Step::Drop, 4),
    (Step::Shorten, 1),
    (Step::Drop, 3),
    (Step::Drop, 2),
    (Step::Drop, 1),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Shorten,
    Drop,
}

struct Part {
    text: String,
    short: Option<String>,
    /// Cells that are kept free for it, in words and in its short form, so that neither a figure with
    /// one more digit nor one that comes and goes changes the wording of the rest.
    room: [u16; 2],
    /// Parts of a lower rank keep their room longer, see [`STEPS`]; rank 0 is never dropped.
    rank: u8,
    /// It is never dropped, whatever its rank.
    kept: bool,
    dropped: bool,
    style: Style,
}

#[derive(Default)]
struct Parts(Vec<Part>);

impl Parts {
    fn push(&mut self, rank: u8, text: String, short: Option<String>, kept: bool, style: Style) {
        self.0.push(Part { text, short, room: [0; 2], rank, kept, dropped: false, style });
    }

    fn add(&mut self, rank: u8, text: impl Into<String>, style: Style) {
        self.push(rank, text.into(), None, false, style);
    }

    /// A part that is never left out.
    fn keep(&mut self, rank: u8, text: String, short: impl Into<Option<String>>, style: Style) {
        self.push(rank, text, short.into(), true, style);
    }

    fn add_or(&mut self, rank: u8, text: String, short: impl Into<String>, style: Style) {
        self.push(rank, text, Some(short.into()), false, style);
    }

    /// Keeps at least so many cells free for the last part.
    fn reserve(&mut self, cells: [u16; 2]) {
        if let Some(part) = self.0.last_mut() {
            part.room = cells;
        }
    }
}

pub(crate) fn draw(model: &Model, area: Rect, canvas: &mut Canvas) {
    let mut x = 1;
    for part in fitted(parts(model).0, area.width.saturating_sub(1)) {
        if part.text.is_empty() {
            continue;
        }
        x = canvas.put(area, x, 0, &part.text, part.style) + 2;
    }
}

pub(crate) fn state(model: &Model) -> String {
    match &model.stage {
        Stage::Preparing => "PREPARING".into(),
        _ if model.playback.is_some() => again(model),
        Stage::Playing if model.seeking.is_some() => "RUNNING AHEAD".into(),
        Stage::Playing if model.pace.paused => "PAUSED".into(),
        Stage::Playing | Stage::Reading if model.is_live => "LIVE".into(),
        Stage::Playing => format!("REPLAY {}", model.pace.speed),
        Stage::Reading => "READING".into(),
        Stage::Ended => "ENDED".into(),
        Stage::Failed(_) => "FAILED".into(),
    }
}

/// What the past that is played again does.
fn again(model: &Model) -> String {
    let speed = model.pace.speed;
    match model.playback {
        Some(playback) if playback.paused => "PAUSED".into(),
        Some(playback) if playback.from.is_some() => format!("LOOP {speed}"),
        Some(_) | None => format!("AGAIN {speed}"),
    }
}

fn parts(model: &Model) -> Parts {
    let theme = &model.theme;
    let mut parts = Parts::default();
    let failed = matches!(model.stage, Stage::Failed(_));
    parts.add(0, state(model), if failed { theme.failure } else { theme.strong });
    parts.reserve(STATE);
    if let Some(moment) = model.moment() {
        let (date_time, time) = (model.clock.date_time(moment), model.clock.time(moment));
        parts.add_or(2, date_time, time, theme.strong);
    }
    if let (Some(look), Some(newest)) = (model.look, model.newest()) {
        let back = length(newest.duration_since(look));
        let (long, short) = (format!("LOOKING BACK {back}"), format!("BACK {back}"));
        let long = if model.playback.is_some() { short.clone() } else { long };
        parts.add_or(1, long, short, theme.cursor);
        parts.reserve(LOOKING_BACK);
    }
    source(model, &mut parts);
    alarms(model, &mut parts);
    engine(model, &mut parts);
    parts.add(5, &*model.name, theme.text);
    if let Some(measured) = &model.measured {
        let clients = measured.clients.len();
        let noun = if clients == 1 { "client" } else { "clients" };
        parts.add(ELSEWHERE, format!("{clients} {noun}"), theme.label);
        // The last rows of a file come with no frame: the engine alone knows of them.
        let unused = model.snapshot().map_or(0, |snapshot| snapshot.unused_rows);
        let rows = measured.left_out.max(unused);
        if rows > 0 {
            parts.add_or(3, format!("? {rows} rows left out"), format!("? {rows}"), theme.missing);
        }
        let nominal = model.snapshot().map_or(0, |snapshot| snapshot.unused_nominal_rows);
        if nominal > 0 {
            let text = format!("? {nominal} nominal rows left out");
            parts.add_or(4, text, format!("? {nominal} nominal"), theme.missing);
        }
        let wild = model.snapshot().map_or(0, |snapshot| snapshot.wild_nominal_values);
        if wild > 0 {
            let text = format!("? {wild} wild nominal values taken out");
            parts.add_or(4, text, format!("? {wild} wild"), theme.missing);
        }
    }
    match &model.recording {
        Some(RecordState::On(_)) => parts.add(ELSEWHERE, "recorded", theme.label),
        Some(RecordState::Failed(_)) => {
            parts.keep(1, "? NOT RECORDED".to_owned(), "? NOT REC".to_owned(), theme.missing);
        }
        None => {}
    }
    if model.sorting == Sorting::Severity {
        parts.add_or(4, "sorted by severity".into(), "sorted", theme.text);
    }
    if model.seeded {
        let [text, short] = SEEDED.map(str::to_owned);
        // It keeps its words longer than the name of the session keeps its place.
        parts.keep(2, text, short, theme.text);
    }
    if let Some(measured) = &model.measured {
        let (truth, rank) = match (measured.truth.is_known(), model.truth_shown) {
            (false, _) => ("no truth known", ELSEWHERE),
            (true, false) => ("truth hidden", ELSEWHERE),
            (true, true) => ("truth shown", 6),
        };
        parts.add(rank, truth, if model.truth_shown { theme.truth } else { theme.label });
    }
    if !model.mouse {
        parts.add(3, "mouse off", theme.label);
    }
    parts
}

/// How a live source stands: connected or since when not, values a second, lag by arrival, which
/// clients are silent.
fn source(model: &Model, parts: &mut Parts) {
    match model.service {
        Some(Reach::LookOn) => {
            parts.add_or(2, "service, read-only".into(), "read-only", model.theme.text);
        }
        Some(Reach::Order) => parts.add(5, "service", model.theme.label),
        None => {}
    }
    // A source that is over has no rate and no lag.
    let shown = model.live.as_ref().filter(|_| !matches!(model.stage, Stage::Ended));
    let (theme, Some(shown)) = (&model.theme, shown) else { return };
    let lag = shown.lag.map_or(0.0, |lag| lag.as_secs_f64());
    match shown.standing {
        Standing::Live => {
            let rate = format!("{} values/s", rate(shown.values_per_s));
            parts.add_or(3, format!("connected, {rate}"), rate, theme.text);
            parts.reserve(VALUES);
            parts.add_or(3, format!("lag {lag:.1} s"), format!("lag {lag:.0} s"), theme.text);
        }
        Standing::Late => {
            parts.keep(1, format!("? NO DATA FOR {lag:.0} s"), None, theme.missing);
        }
        Standing::Connecting | Standing::Reconnecting => {
            let is_new = shown.standing == Standing::Connecting;
            let doing = if is_new { "CONNECTING" } else { "RECONNECTING" };
            let short = format!("? {doing} FOR {} s", shown.since.as_secs());
            parts.keep(1, format!("? {}", shown.words), short, theme.missing);
        }
        Standing::Ended => {}
    }
    for (client, ago) in &shown.stale {
        let name = model.names.get(*client).map_or("", String::as_str);
        let since = ago.map_or(String::new(), |ago| format!(" for {} s", ago.as_secs()));
        parts.add_or(1, format!("? {name} SILENT{since}"), format!("? {name}"), theme.missing);
    }
    if shown.left_out > 0 {
        let text = format!("? {} values left out", shown.left_out);
        parts.add_or(4, text, format!("? {}", shown.left_out), theme.missing);
    }
}

/// A rate in as many digits as say something.
fn rate(per_s: f64) -> String {
    if per_s < 10.0 { format!("{per_s:.1}") } else { format!("{per_s:.0}") }
}

/// What wants an answer, and how often.
fn alarms(model: &Model, parts: &mut Parts) {
    let theme = &model.theme;
    let Some(figures) = model.figures() else {
        if model.measured.is_some() {
            parts.add_or(2, "no verdicts yet".into(), "no verdicts", theme.text);
        }
        return;
    };
    let returned = figures.returned + figures.latched;
    // What is not there keeps its room where it comes and goes, so that the rest stays as it is.
    // Nothing comes any more once the data is over.
    let ended = matches!(model.stage, Stage::Ended);
    let mut count = |rank, sign: &str, number: usize, word: &str, short: &str, style, room| {
        let room = if ended { [0; 2] } else { room };
        let (text, brief) = match number {
            0 if room == [0; 2] => return,
            0 => Default::default(),
            _ => (format!("{sign}{number} {word}"), format!("{sign}{number}{short}")),
        };
        parts.add_or(rank, text, brief, style);
        parts.reserve(room);
    };
    // Solid is only what is open and not acknowledged.
    if figures.unacknowledged > 0 {
        let [long, short] = NOT_ACKNOWLEDGED.map(|words| format!(" {words}"));
        count(1, "▲", figures.unacknowledged, long.trim(), &short, theme.root_unseen, OPEN);
    } else {
        // What has returned stands where an open incident would: it needs no room beside it.
        let room = if figures.open == 0 && returned > 0 { [0; 2] } else { OPEN };
        count(1, "▲", figures.open, "open", "", theme.root, room);
    }
    let room = if figures.open == 0 && returned > 0 { OPEN } else { [0; 2] };
    count(2, "▽", returned, "returned", "", theme.single, room);
    let effects = if figures.grouped == 1 { "effect" } else { "effects" };
    count(4, "↳", figures.grouped, effects, "", theme.text, EFFECTS);
    count(2, "z", figures.shelved, "shelved", "", theme.shelved, [0; 2]);
    let all = model.measured.as_ref().map_or(0, |measured| measured.clients.len());
    let some_out = if figures.out_of_service < all { figures.out_of_service } else { 0 };
    count(2, "x", some_out, "out of service", " out", theme.shelved, [0; 2]);
    if figures.out_of_service == all && all > 0 {
        let [text, short] = ["x ALARMS SUSPENDED", "x SUSPENDED"].map(str::to_owned);
        parts.keep(1, text, short, theme.missing);
    }
    let rate = figures.alarms_10min;
    let style = if figures.flood { theme.single } else { theme.text };
    let noun = if rate == 1 { "alarm" } else { "alarms" };
    parts.add_or(3, format!("{rate} {noun} in 10 min"), format!("{rate} in 10 min"), style);
    parts.reserve(if ended { [0; 2] } else { RATE });
}

/// Which method decides, and whether the engine keeps up.
fn engine(model: &Model, parts: &mut Parts) {
    let theme = &model.theme;
    if let Some(snapshot) = model.snapshot() {
        let word = model.mode_then().word();
        parts.add_or(4, format!("{word} mode"), word, theme.text);
        // What is declared and names no root is on no list of incidents.
        let without_root = |verdict: &TableVerdict| {
            verdict.root().is_none() && *verdict != TableVerdict::NoAnomaly
        };
        let declared = snapshot.figures.declared.filter(|_| model.look.is_none());
        if let Some(verdict) = declared.filter(without_root) {
            parts.add_or(3, format!("Table 1: {}", verdict.words()), verdict.words(), theme.single);
        }
    }
    let load = model.load;
    if load.behind >= LATE {
        let behind = load.behind.as_secs_f64();
        let text = format!("? engine late {behind:.1} s");
        parts.add_or(2, text, format!("? late {behind:.0} s"), theme.missing);
    } else if !load.step.is_zero() {
        let text = if load.step < Duration::from_millis(1) {
            format!("engine ok {} µs", load.step.as_micros())
        } else {
            format!("engine ok {} ms", load.step.as_millis())
        };
        parts.add_or(6, text, "engine ok", theme.label);
        parts.reserve(ENGINE);
    }
}

/// Shortens and drops by [`STEPS`] until the rest fits into `room`. What was dropped before something
/// else was shortened comes back where there is room for it after all.
fn fitted(mut parts: Vec<Part>, room: u16) -> Vec<Part> {
    let fits = |parts: &[Part]| {
        let cells = |part: &Part| usize::from(width(&part.text).max(part.room[0])) + 2;
        let shown = parts.iter().filter(|part| !part.dropped);
        shown.map(cells).sum::<usize>().saturating_sub(2) <= usize::from(room)
    };
    let mut dropped = Vec::new();
    for (step, rank) in STEPS {
        let concerned = |part: &Part| {
            let can = match step {
                Step::Shorten => part.short.is_some(),
                Step::Drop => !part.kept,
            };
            part.rank == rank && can && !part.dropped
        };
        while !fits(&parts)
            && let Some(at) = parts.iter().rposition(concerned)
        {
            let part = &mut parts[at];
            match step {
                Step::Shorten => {
                    part.text = part.short.take().unwrap_or_default();
                    part.room[0] = part.room[1];
                }
                Step::Drop => {
                    part.dropped = true;
                    dropped.push(at);
                }
            }
        }
    }
    for at in dropped.into_iter().rev() {
        parts[at].dropped = false;
        parts[at].dropped = !fits(&parts);
    }
    parts.retain(|part| !part.dropped);
    parts
}
