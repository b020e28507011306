//! The line that tells the truth.
//!
//! ```text
//!  REPLAY 60x  2022-08-12 10:42:20  evidence  ▲1 UNACK  ↳4 grouped  alarms 1 / 10 min  engine 2 ms  …
//! ```

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{put, width};
use crate::console::app::{Model, Sorting, Stage};
use crate::console::clock::length;
use crate::console::theme::Theme;
use crate::incident::Figures;
use crate::session::Mode;

/// What every view says where noise is drawn from a seed, and the same where there is little room.
pub(crate) const SEEDED: [&str; 2] = ["seeded: not private", "seeded"];

/// The rank of what can be seen elsewhere too.
const ELSEWHERE: u8 = 7;
/// An engine that is further behind is late.
const LATE: Duration = Duration::from_secs(1);

/// What is given up for room, a part at a time: what stands elsewhere too, words where figures do,
/// the date before the word that an alarm wants an answer.
const STEPS: [(Step, u8); 13] = [
    (Step::Drop, ELSEWHERE),
    (Step::Shorten, 6),
    (Step::Shorten, 5),
    (Step::Shorten, 4),
    (Step::Shorten, 3),
    (Step::Drop, 6),
    (Step::Drop, 5),
    (Step::Shorten, 2),
    (Step::Drop, 4),
    (Step::Shorten, 1),
    (Step::Drop, 3),
    (Step::Drop, 2),
    (Step::Drop, 1),
];

/// What happens to parts of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// They take their short form.
    Shorten,
    Drop,
}

/// A part of the line, and its short form if it has one.
struct Part {
    text: String,
    short: Option<String>,
    /// Parts of a lower rank keep their room longer, see [`STEPS`]; rank 0 is never dropped.
    rank: u8,
    /// It is never dropped, whatever its rank.
    kept: bool,
    style: Style,
}

impl Part {
    fn new(rank: u8, text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), short: None, rank, kept: false, style }
    }

    /// With a short form for where there is little room.
    fn or(self, short: impl Into<String>) -> Self {
        Self { short: Some(short.into()), ..self }
    }

    fn kept(self) -> Self {
        Self { kept: true, ..self }
    }

    fn shorten(&mut self) {
        if let Some(short) = self.short.take() {
            self.text = short;
        }
    }
}

/// Draws the line into the first row of `area`.
pub(crate) fn draw(model: &Model, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let mut x = 1;
    for part in fitted(parts(model, theme), area.width.saturating_sub(1)) {
        x = put(buffer, area, x, 0, &part.text, part.style) + 2;
    }
}

/// What the replay is doing, in a word or two.
pub(crate) fn state(model: &Model) -> String {
    match &model.stage {
        Stage::Preparing => "PREPARING".into(),
        Stage::Reading => "READING".into(),
        Stage::Playing if model.seeking.is_some() => "RUNNING AHEAD".into(),
        Stage::Playing if model.pace.paused => "PAUSED".into(),
        Stage::Playing => format!("REPLAY {}", model.pace.speed),
        Stage::Ended => "ENDED".into(),
        Stage::Failed(_) => "FAILED".into(),
    }
}

/// The figures of the alarms, once there are any.
pub(crate) fn figures(model: &Model) -> Option<&Figures> {
    Some(&model.watched.as_ref()?.snapshot.as_ref()?.figures)
}

fn parts(model: &Model, theme: &Theme) -> Vec<Part> {
    let mut parts = Vec::new();
    let state_style =
        if matches!(model.stage, Stage::Failed(_)) { theme.failure } else { theme.strong };
    parts.push(Part::new(0, state(model), state_style));
    if let Some(moment) = model.moment() {
        let (date_time, time) = (model.clock.date_time(moment), model.clock.time(moment));
        parts.push(Part::new(2, date_time, theme.strong).or(time));
    }
    if let (Some(look), Some(newest)) = (model.look, model.newest()) {
        let back = length(newest.duration_since(look));
        let word = if model.playback.is_some() { "PLAYING AGAIN" } else { "LOOKING BACK" };
        let part = Part::new(1, format!("{word} {back}"), theme.cursor);
        parts.push(part.or(format!("BACK {back}")));
    }
    alarms(model, theme, &mut parts);
    engine(model, theme, &mut parts);
    parts.push(Part::new(5, &*model.name, theme.text));
    if let Some(measured) = &model.measured {
        let clients = measured.clients.len();
        let noun = if clients == 1 { "client" } else { "clients" };
        parts.push(Part::new(ELSEWHERE, format!("{clients} {noun}"), theme.label));
        // The last rows of a file come with no frame: the engine alone knows of them.
        let known = model.watched.as_ref().and_then(|watched| watched.snapshot.as_ref());
        let rows = measured.left_out.max(known.map_or(0, |snapshot| snapshot.unused_rows));
        if rows > 0 {
            let part = Part::new(3, format!("? {rows} rows left out"), theme.missing);
            parts.push(part.or(format!("? {rows}")));
        }
        let nominal = known.map_or(0, |snapshot| snapshot.unused_nominal_rows);
        if nominal > 0 {
            let part = Part::new(4, format!("? {nominal} nominal rows left out"), theme.missing);
            parts.push(part.or(format!("? {nominal} nominal")));
        }
    }
    if model.sorting == Sorting::Severity {
        parts.push(Part::new(4, "sorted by severity", theme.text).or("sorted"));
    }
    if model.seeded {
        let [long, short] = SEEDED;
        parts.push(Part::new(3, long, theme.text).or(short).kept());
    }
    if let Some(measured) = &model.measured {
        let (truth, rank) = match (measured.truth.is_known(), model.truth_shown) {
            (false, _) => ("no truth known", ELSEWHERE),
            (true, false) => ("truth hidden", ELSEWHERE),
            (true, true) => ("truth shown", 5),
        };
        let style = if model.truth_shown { theme.truth } else { theme.label };
        parts.push(Part::new(rank, truth, style));
    }
    if !model.mouse {
        parts.push(Part::new(6, "mouse off", theme.label));
    }
    parts
}

/// What wants an answer, and how often.
fn alarms(model: &Model, theme: &Theme, parts: &mut Vec<Part>) {
    let Some(figures) = figures(model) else {
        if model.measured.is_some() {
            parts.push(Part::new(2, "no verdicts yet", theme.text).or("no verdicts"));
        }
        return;
    };
    let unseen = figures.unacknowledged + figures.returned + figures.latched;
    if unseen > 0 {
        let part = Part::new(1, format!("▲{unseen} UNACK"), theme.root_unseen);
        parts.push(part.or(format!("▲{unseen}")));
    } else if figures.open > 0 {
        let part = Part::new(2, format!("▲{} open", figures.open), theme.root);
        parts.push(part.or(format!("▲{}", figures.open)));
    }
    if figures.grouped > 0 {
        let part = Part::new(4, format!("↳{} grouped", figures.grouped), theme.text);
        parts.push(part.or(format!("↳{}", figures.grouped)));
    }
    if figures.shelved > 0 {
        let part = Part::new(2, format!("z{} shelved", figures.shelved), theme.shelved);
        parts.push(part.or(format!("z{}", figures.shelved)));
    }
    if figures.out_of_service > 0 {
        let part =
            Part::new(2, format!("x{} out of service", figures.out_of_service), theme.shelved);
        parts.push(part.or(format!("x{} out", figures.out_of_service)));
    }
    let rate = figures.alarms_10min;
    let style = if figures.flood { theme.single } else { theme.text };
    parts.push(Part::new(3, format!("alarms {rate} / 10 min"), style).or(format!("{rate}/10min")));
}

/// Which method decides, and whether the engine keeps up.
fn engine(model: &Model, theme: &Theme, parts: &mut Vec<Part>) {
    let standing = model.watched.as_ref().and_then(|watched| watched.snapshot.as_ref());
    if let Some(standing) = standing {
        let word = match standing.mode {
            Mode::Evidence => "evidence mode",
            Mode::Paper => "paper mode",
        };
        let short = word.trim_end_matches(" mode");
        parts.push(Part::new(4, word, theme.text).or(short));
    }
    let load = model.load;
    if load.behind >= LATE {
        let behind = load.behind.as_secs_f64();
        let part = Part::new(2, format!("? engine late {behind:.1} s"), theme.missing);
        parts.push(part.or(format!("? late {behind:.0} s")));
    } else if !load.step.is_zero() {
        let text = if load.step < Duration::from_millis(1) {
            format!("engine ok {} µs", load.step.as_micros())
        } else {
            format!("engine ok {} ms", load.step.as_millis())
        };
        parts.push(Part::new(6, text, theme.label).or("engine ok"));
    }
}

/// Shortens and drops by [`STEPS`] until the rest fits into `room`.
fn fitted(mut parts: Vec<Part>, room: u16) -> Vec<Part> {
    fn needed(parts: &[Part]) -> usize {
        parts.iter().map(|part| usize::from(width(&part.text)) + 2).sum::<usize>().saturating_sub(2)
    }
    for (step, rank) in STEPS {
        let concerned = |part: &Part| {
            let can = match step {
                Step::Shorten => part.short.is_some(),
                Step::Drop => !part.kept,
            };
            part.rank == rank && can
        };
        while needed(&parts) > usize::from(room)
            && let Some(at) = parts.iter().rposition(concerned)
        {
            match step {
                Step::Shorten => parts[at].shorten(),
                Step::Drop => drop(parts.remove(at)),
            }
        }
    }
    parts
}
