//! A curve as an SVG drawing within a page.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::html::escape;
use super::{Curve, Report};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 130.0;
/// Room for numbers at the left, and for times below.
const LEFT: f64 = 48.0;
const BELOW: f64 = 20.0;
const ABOVE: f64 = 14.0;
/// A curve is drawn with so many columns at most: the highest value of each.
const COLUMNS: usize = 900;

pub(super) fn draw(out: &mut String, curve: &Curve, report: &Report) -> std::fmt::Result {
    let (from, to) = (report.shown.from, report.shown.to);
    let span_s = to.duration_since(from).as_secs_f64().max(1.0);
    let x = |time: Timestamp| {
        LEFT + (WIDTH - LEFT - 4.0) * time.duration_since(from).as_secs_f64() / span_s
    };
    let finite = || curve.points.iter().map(|(_, value)| *value).filter(|v| v.is_finite());
    let top = finite().fold(curve.limit.map_or(1e-9, |limit| limit * 1.2), f64::max);
    let bottom = finite().fold(0.0, f64::min);
    let y = |value: f64| {
        ABOVE + (HEIGHT - ABOVE - BELOW) * (1.0 - (value - bottom) / (top - bottom).max(1e-9))
    };
    let name = escape(&curve.client);
    writeln!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{name}: {}\" \
         font-family=\"system-ui,sans-serif\" font-size=\"11\">",
        curve.what
    )?;
    let base = HEIGHT - BELOW;
    writeln!(out, "<path d=\"M{LEFT} {ABOVE}V{base}H{WIDTH}\" fill=\"none\" stroke=\"#888\"/>")?;
    for value in [bottom, top] {
        let at = y(value) + 4.0;
        let right = LEFT - 5.0;
        writeln!(out, "<text x=\"{right}\" y=\"{at:.1}\" text-anchor=\"end\">{value:.2}</text>")?;
    }
    let times = [(from, "start"), (to, "end")];
    for (time, anchor) in times {
        let label = escape(&report.clock.date_time(time));
        let (at, below) = (x(time), HEIGHT - 5.0);
        writeln!(out, "<text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"{anchor}\">{label}</text>")?;
    }
    if let Some(limit) = curve.limit {
        let at = y(limit);
        writeln!(
            out,
            "<path d=\"M{LEFT} {at:.1}H{WIDTH}\" stroke=\"#b00\" stroke-dasharray=\"5 4\"/>"
        )?;
    }
    for (time, word) in report.marks.iter().filter(|(time, _)| report.shown.holds(*time)) {
        let (at, word) = (x(*time), escape(word));
        writeln!(
            out,
            "<path d=\"M{at:.1} {ABOVE}V{base}\" stroke=\"#06c\" stroke-dasharray=\"2 3\">\
             <title>{word}</title></path>"
        )?;
        // Labels that would lie on each other are left to the title.
        if word.ends_with("opened") || word.ends_with(&format!("{name} onset")) {
            let at = at + 3.0;
            let row = if word.ends_with("opened") { ABOVE - 3.0 } else { ABOVE + 9.0 };
            writeln!(out, "<text x=\"{at:.1}\" y=\"{row}\" fill=\"#06c\">{word}</text>")?;
        }
    }
    let colour = if curve.is_root { "#b00" } else { "#222" };
    let path = path(&curve.points, x, y);
    writeln!(out, "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.2\"/>")?;
    writeln!(out, "</svg>")
}

/// The curve with a gap wherever a value is missing.
fn path(
    points: &[(Timestamp, f64)],
    x: impl Fn(Timestamp) -> f64,
    y: impl Fn(f64) -> f64,
) -> String {
    let mut path = String::new();
    let mut pen_is_down = false;
    for part in points.chunks(points.len().div_ceil(COLUMNS).max(1)) {
        let highest =
            part.iter().filter(|(_, value)| value.is_finite()).max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((time, value)) = highest else {
            pen_is_down = false;
            continue;
        };
        let letter = if pen_is_down { 'L' } else { 'M' };
        pen_is_down = true;
        // A string takes every character.
        let _ = write!(path, "{letter}{:.1} {:.1}", x(*time), y(*value));
    }
    path
}
