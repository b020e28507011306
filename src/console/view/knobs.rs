//! What can be tuned, and how it stands.
//!
//! ```text
//! ── thresholds and privacy  (+ - turn) ─────────────────────────
//!  ARL0      1d     ├────────●────┤  about 1 a day, 95 %: 0 to 3
//!  τ_c       95%    ├──────●──────┤  1 of 3 clients above
//!  ε flags   none   unprotected: no noise
//! ```
//!
//! While a knob is held, its trial stands beside its value, and what it would have meant below it.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::pen::{Canvas, columns, cut, fitting, part, span};
use super::scene::Scene;
use crate::console::app::tuning::CurvePoint;
use crate::console::app::{Focus, Tuning};
use crate::console::clock::length;
use crate::console::glyph::BLOCKS;
use crate::console::mouse::Target;
use crate::console::watched::Trace;
use crate::console::widget::gauge::{Gauge, logarithmic};
use crate::console::widget::level::ratio;
use crate::engine::knob::{Knob, KnobValue, Steps, Turn};
use crate::privacy::forecast::noise_sigma;
use crate::privacy::{Clip, Response, words};
use crate::score::rate::expected_a_day;
use crate::session::{Mode, Tau};

/// Cells of the title, the value and the gauge.
const TITLE: u16 = 11;
const VALUE: u16 = 8;
const GAUGE: u16 = 20;

pub(crate) fn wanted(scene: &Scene) -> u16 {
    let trial = u16::from(scene.model.tuning.is_some());
    1 + scene.model.offered_knobs().filter(|turn| !is_own(turn.knob())).count() as u16 + trial
}

/// Rows for every knob, those of single clients too.
pub(crate) fn all(scene: &Scene) -> u16 {
    1 + scene.model.offered_knobs().count() as u16 + u16::from(scene.model.tuning.is_some())
}

/// Whether a knob is one client's own: these stand below the others.
fn is_own(knob: Knob) -> bool {
    knob.client().is_some()
}

pub(crate) fn draw(scene: &Scene, area: Rect, canvas: &mut Canvas) {
    let theme = scene.theme;
    let focused = scene.model.focus() == Focus::Knobs;
    let heading = if focused { theme.cursor } else { theme.strong };
    let title = [span("thresholds and privacy", heading), span("+ - turn, u undoes", theme.label)];
    let rest = canvas.panel(area, title);
    let turns: Vec<Turn> = scene.model.offered_knobs().collect();
    if turns.is_empty() {
        canvas.put(rest, 1, 0, "not known before the first step", theme.label);
    }
    let chosen = scene.model.chosen_knob().map(Turn::knob);
    let at = turns.iter().position(|turn| Some(turn.knob()) == chosen).unwrap_or(0);
    let held = u16::from(scene.model.tuning.is_some());
    let first = (at + 1 + usize::from(held)).saturating_sub(usize::from(rest.height));
    let mut y = 0;
    for turn in turns.iter().copied().skip(first) {
        if y >= rest.height {
            break;
        }
        let row = part(rest, y, 1);
        canvas.hit(row, Target::Knob(turn.knob()));
        y += 1;
        knob(scene, turn, Some(turn.knob()) == chosen, row, canvas);
        let on_trial = scene.model.tuning.as_ref().filter(|t| t.knob() == turn.knob());
        if let Some(tuning) = on_trial.filter(|tuning| tuning.has_moved()) {
            canvas.line(rest, 3, y, &curve(scene, tuning));
            y += 1;
        }
    }
}

/// Alarms and detection delay against the knob, from left to right as it is turned up: the value
/// that stands in brackets.
pub(crate) fn curve(scene: &Scene, tuning: &Tuning) -> Line<'static> {
    let theme = scene.theme;
    let mut points = tuning.curve.clone();
    let at = |point: &CurvePoint| place(point.turn).unwrap_or(f64::INFINITY);
    points.sort_by(|a, b| at(a).total_cmp(&at(b)));
    let Some((first, last)) = points.first().zip(points.last()).filter(|_| points.len() > 1) else {
        return Line::styled("other values are being tried…", theme.label);
    };
    let bars = |values: Vec<Option<f64>>| -> Vec<Span<'static>> {
        let most = values.iter().flatten().fold(f64::MIN_POSITIVE, |a, b| a.max(*b));
        let bar = |value: Option<f64>| {
            value.map_or("?", |v| {
                let step = (v / most * 7.0).round().clamp(0.0, 7.0) as usize;
                BLOCKS[step]
            })
        };
        let cells = points.iter().zip(values).map(|(point, value)| match point.turn {
            turn if turn == tuning.trial => span(bar(value), theme.cursor),
            turn if turn == tuning.from => span(format!("[{}]", bar(value)), theme.strong),
            _ => span(bar(value), theme.trend),
        });
        cells.collect()
    };
    let mut spans = vec![span(format!("{} … {}  alarms ", first.turn, last.turn), theme.label)];
    spans.extend(bars(points.iter().map(|point| Some(point.alarms as f64)).collect()));
    if points.iter().any(|point| point.delay_s.is_some()) {
        spans.push(span("  delay ", theme.label));
        spans.extend(bars(points.iter().map(|point| point.delay_s).collect()));
    }
    Line::from_iter(spans)
}

/// Draws one knob into the first row of `area`.
pub(crate) fn knob(scene: &Scene, turn: Turn, chosen: bool, area: Rect, canvas: &mut Canvas) {
    let theme = scene.theme;
    let tuning = scene.model.tuning.as_ref().filter(|tuning| tuning.knob() == turn.knob());
    let names = scene.names();
    canvas.put(area, 0, 0, if chosen { "▸" } else { " " }, theme.label);
    let title = turn.knob.title(names);
    let focused = chosen && scene.model.focus() == Focus::Knobs;
    let decides = turn.knob.decides_in(scene.model.mode());
    let title_style = match (focused, decides) {
        (true, _) => theme.cursor,
        (false, true) => theme.text,
        (false, false) => theme.label,
    };
    canvas.put(area, 1, 0, &cut(&title, TITLE - 1), title_style);
    let mut x = 1 + TITLE;
    let value = turn.to_string();
    let grey = tuning.is_some() || !decides;
    x = canvas.put(area, x, 0, &value, if grey { theme.label } else { theme.strong });
    if let Some(tuning) = tuning.filter(|tuning| tuning.has_moved()) {
        x = canvas.put(area, x, 0, " → ", theme.label);
        x = canvas.put(area, x, 0, &tuning.trial.to_string(), theme.cursor);
    }
    x = x.max(TITLE + 1 + VALUE) + 1;
    let trial = tuning.map(|tuning| tuning.trial);
    let room = area.width.saturating_sub(x);
    if let Some(at) = place(turn).filter(|_| room >= 8) {
        let width = if area.width >= 80 { GAUGE } else { GAUGE / 2 }.min(room);
        let gauge = Gauge { at, trial: trial.and_then(place), held: tuning.is_some(), theme };
        gauge.draw(columns(area, x, width), canvas.buffer);
        x += width + 1;
    }
    let mut notes = note(scene, trial.unwrap_or(turn));
    let shortest = notes.pop().unwrap_or_default();
    let note = fitting(notes, area.width.saturating_sub(x)).unwrap_or(shortest);
    canvas.cut(area, x, 0, &note, theme.label);
}

fn place(turn: Turn) -> Option<f64> {
    match (turn.to, turn.knob.row().steps) {
        // The further out, the rarer: each tenth of what is left is the same way.
        (KnobValue::Tau(Tau::Percentile(p)), _) => {
            Some(1.0 - logarithmic((100.0 - p).max(0.01), 0.01, 50.0))
        }
        (KnobValue::Tau(Tau::Value(d)), _) => Some(logarithmic(d, 0.1, 1000.0)),
        (KnobValue::Vote(vote), _) => Some(logarithmic(f64::from(vote.k), 1.0, 20.0)),
        (KnobValue::Number(n), Steps::Numbers(ladder) | Steps::NumbersOrNone(ladder)) => {
            let (first, last) = (*ladder.first()?, *ladder.last()?);
            let share = (n - first) / (last - first);
            let is_share = turn.knob == Knob::Deadband;
            Some(if is_share { share.clamp(0.0, 1.0) } else { logarithmic(n, first, last) })
        }
        (KnobValue::Number(_) | KnobValue::Mode(_) | KnobValue::None, _) => None,
    }
}

/// What a value means: in full, and shorter where there is less room.
fn note(scene: &Scene, turn: Turn) -> Vec<String> {
    let label = |text: String| vec![text];
    let number = turn.to.number();
    if !turn.knob.decides_in(scene.model.mode()) {
        return label(match scene.model.mode() {
            Mode::Evidence => "evidence decides, not τ".into(),
            Mode::Paper => "flags decide, not ARL0".into(),
        });
    }
    match turn.knob {
        Knob::TauC(None) => label(above(scene, Trace::DistanceC)),
        Knob::TauA(None) => label(above(scene, Trace::DistanceA)),
        Knob::TauC(Some(_)) | Knob::TauA(Some(_)) => label("of its own".into()),
        Knob::Vote if turn.to == KnobValue::None => label("every step names its root".into()),
        Knob::Vote => label("steps must name the root".into()),
        Knob::Deadband => match number.filter(|share| *share < 1.0) {
            Some(share) => label(falls(scene, share)),
            None => label("a flag falls at τ".into()),
        },
        Knob::Arl0 => false_alarms(turn),
        Knob::Mode => label(match turn.to.mode() {
            Some(Mode::Evidence) | None => "sums of evidence decide".into(),
            Some(Mode::Paper) => "flags and the published look-up".into(),
        }),
        Knob::EpsilonFlag => match number {
            Some(e) => answers(scene, e),
            None => label("unprotected: no noise".into()),
        },
        Knob::EpsilonFlagA => match number {
            Some(e) => answers(scene, e),
            None => label("as Z_c".into()),
        },
        Knob::EpsilonC | Knob::EpsilonA | Knob::EpsilonG => match number {
            Some(e) => noise(scene, turn.knob, e),
            None => ["in training, unprotected: no noise", "training unprotected"]
                .map(str::to_owned)
                .to_vec(),
        },
        Knob::Delta => label("chance that ε is exceeded".into()),
        Knob::Budget if number.is_none() => label("no limit".into()),
        Knob::Budget => label(limit(scene)),
    }
}

/// The wanted time between two false alarms, and how many of them a day will have.
fn false_alarms(turn: Turn) -> Vec<String> {
    let wanted = format!("one false alarm in {turn}");
    let Some(seconds) = turn.to.number().filter(|seconds| *seconds > 0.0) else {
        return vec![wanted];
    };
    let expected = expected_a_day(seconds);
    let short = expected.trim_start_matches("about ").to_owned();
    vec![format!("{wanted}: {expected}"), expected, short, wanted]
}

/// "a flag falls at 0.9 τ", and what that costs where flags are protected.
fn falls(scene: &Scene, share: f64) -> String {
    let falls = format!("a flag falls at {share} τ");
    let epsilon = scene.model.setting(Knob::EpsilonFlag);
    let protected = epsilon.is_some_and(|turn| turn.to != KnobValue::None);
    if protected { format!("{falls}; each flag then depends on the past") } else { falls }
}

fn answers(scene: &Scene, epsilon: f64) -> Vec<String> {
    let Some(standing) = scene.snapshot() else { return Vec::new() };
    let (what, symbols) = match standing.mode {
        Mode::Evidence => ("symbols", scene.model.subject.privacy.symbol.symbols()),
        Mode::Paper => ("flags", 2),
    };
    let flip = Response::new(epsilon, symbols).map_or(0.0, |response| response.flip());
    let wrong = format!("{:.1} % of {what} wrong", 100.0 * flip);
    let rung = standing.ladder.iter().find(|r| r.epsilon.is_some_and(|e| same(e, epsilon)));
    match rung.and_then(|rung| rung.delay_s) {
        Some(delay_s) => vec![format!("{wrong}, alarm after {}", seconds(delay_s)), wrong],
        None => vec![wrong],
    }
}

fn noise(scene: &Scene, knob: Knob, epsilon: f64) -> Vec<String> {
    let privacy = &scene.model.subject.privacy;
    let states = scene.snapshot().and_then(|s| s.states.get(scene.model.chosen).copied());
    let (clip, cut) = if knob == Knob::EpsilonG {
        let bound = privacy.clip_gradient;
        (Clip::Ball { bound }, format!("length {bound}"))
    } else {
        let bound = privacy.clip_state;
        (Clip::Box { bound, dimension: states.unwrap_or(1) }, format!("±{bound}"))
    };
    let delta = scene.model.setting(Knob::Delta).and_then(|turn| turn.to.number());
    let delta = delta.unwrap_or(privacy.delta);
    match noise_sigma(clip, privacy.sigma, epsilon, delta) {
        Ok(sigma) => vec![
            format!("in training, noise of σ {sigma:.1}, values cut to {cut}"),
            format!("training noise σ {sigma:.1}, cut to {cut}"),
            format!("training noise σ {sigma:.1}"),
        ],
        Err(error) => vec![error.to_string()],
    }
}

fn limit(scene: &Scene) -> String {
    let budget = scene.model.subject.privacy.budget.unwrap_or_default();
    format!("for {}, then {}", budget.over.label(), words::at_zero(budget.at_zero))
}

pub(crate) fn same(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * a.abs().max(1.0)
}

pub(crate) fn seconds(seconds: f64) -> String {
    length(jiff::SignedDuration::try_from_secs_f64(seconds).unwrap_or_default())
}

fn above(scene: &Scene, trace: Trace) -> String {
    let clients = scene.measured.clients.len();
    let above = (0..clients)
        .filter(|client| {
            let value = scene.watched.and_then(|w| w.value_at(*client, trace, scene.moment));
            value.is_some_and(|value| ratio(value, scene.limit(*client, trace)) > 1.0)
        })
        .count();
    format!("{above} of {clients} above")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wanted_rate_says_how_many_false_alarms_a_day_will_have() {
        let said = false_alarms(Knob::Arl0.at(2.0 * 86_400.0));
        let expected = [
            "one false alarm in 2d: about 0.5 a day, 95 %: 0 to 2",
            "about 0.5 a day, 95 %: 0 to 2",
            "0.5 a day, 95 %: 0 to 2",
            "one false alarm in 2d",
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn a_knob_turned_up_stands_further_right() {
        let tau = |p| place(Knob::TauC(None).at(Some(Tau::Percentile(p))));
        assert!(tau(90.0) < tau(95.0) && tau(99.9) < tau(99.99));
        assert_eq!(tau(50.0), Some(0.0));
        assert!(tau(99.99).is_some_and(|end| (end - 1.0).abs() < 1e-9));
        assert!(place(Knob::Arl0.at(3600.0)) < place(Knob::Arl0.at(86_400.0)));
        assert_eq!(place(Knob::EpsilonFlag.at(KnobValue::None)), None);
    }
}
