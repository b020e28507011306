//! The screen of one site of a federation: its own sensors, what it made of them, and what left it.
//!
//! ```text
//!  site P1 · short · evidence · step 512 · 2022-08-12 10:38:25
//!  sensor                now  last steps
//!  P1_FT01           201.345  ▁▁▂▃▃▂▁▁▂▃▄▅▅▄▃▂
//!  …
//!  surprise 1.23 · symbol level 2
//!  513 envelopes sent · ε 0.412 in 512 releases
//!  Only this site's own data. Its ledger counts everything that leaves it.  q stops
//! ```

use std::io;
use std::sync::atomic::AtomicBool;

use ratatui::buffer::Buffer;
use ratatui::style::{Modifier, Style};

use super::federation::{Lines, PartyView, fitting, watch};
use super::view::pen::indented;
use crate::remote::account::SpentSoFar;
use crate::remote::site::SiteBoard;
use crate::site::local::measurements;

const OWN: &str = "Only this site's own data. Its ledger counts everything that leaves it.";
/// Columns of names and of numbers.
const NAME: usize = 16;
const NUMBER: usize = 10;

/// Shows a site until the run is `over`; `q` or Ctrl-C asks for its end by `interrupt`.
pub(crate) fn watch_site(
    view: &PartyView<SiteBoard>,
    interrupt: &AtomicBool,
    over: &AtomicBool,
) -> io::Result<()> {
    watch(view, draw, |_| {}, interrupt, over)
}

fn draw(buffer: &mut Buffer, title: &str, board: &SiteBoard, lines: &Lines) {
    let area = buffer.area;
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mut rows: Vec<(String, Style)> = Vec::new();
    let (plain, bold) = (Style::new(), Style::new().add_modifier(Modifier::BOLD));
    let time = board
        .time
        .map_or_else(String::new, |time| format!(" · {}", time.strftime("%Y-%m-%d %H:%M:%S")));
    rows.push((fitting(format!("site {title} · step {}{time}", board.step), width), bold));
    rows.push((format!("{:<NAME$} {:>NUMBER$}  last steps", "sensor", "now"), bold));
    let sensors = sensors(board, width.saturating_sub(NAME + NUMBER + 4));
    // Steps made and messages need room too.
    let room = height.saturating_sub(7).max(1);
    let left_out = sensors.len().saturating_sub(room);
    rows.extend(sensors.into_iter().take(room).map(|row| (row, plain)));
    if left_out > 0 {
        rows.push((format!("… and {left_out} more"), plain));
    }
    rows.push((made(board), plain));
    rows.push((sent(board), plain));
    let source = board.source.iter().flat_map(|source| indented(source, "  ", width as u16));
    rows.extend(source.map(|row| (row, plain)));
    let last = height.saturating_sub(1);
    rows.truncate(last);
    let free = last - rows.len();
    let said: Vec<String> =
        lines.last(free).iter().flat_map(|line| indented(line, "  ", width as u16)).collect();
    let skipped = said.len().saturating_sub(free);
    rows.extend(said.into_iter().skip(skipped).map(|row| (row, plain)));
    for (y, (text, style)) in rows.iter().enumerate() {
        buffer.set_stringn(area.x, area.y + y as u16, text, width, *style);
    }
    if height > 3 {
        let style = Style::new().add_modifier(Modifier::DIM);
        let foot = format!("{OWN}  q stops");
        buffer.set_stringn(area.x, area.y + last as u16, &foot, width, style);
    }
}

/// One line for each sensor of the client.
fn sensors(board: &SiteBoard, steps: usize) -> Vec<String> {
    let Some((layout, client)) = &board.layout else {
        return vec!["nothing yet: it waits for the server, or learns".to_owned()];
    };
    let skipped = board.recent.len().saturating_sub(steps);
    let rows: Vec<&[f64]> = board
        .recent
        .iter()
        .skip(skipped)
        .map(|frame| measurements(frame.row(layout, *client)))
        .collect();
    let of = |(i, sensor): (usize, &crate::stream::Sensor)| {
        let values: Vec<f64> = rows.iter().map(|row| row[i]).collect();
        let now = values.last().copied().filter(|value| value.is_finite());
        let now = now.map_or_else(|| "missing".to_owned(), |now| format!("{now:.3}"));
        let name: String = sensor.name.chars().take(NAME).collect();
        format!("{name:<NAME$} {now:>NUMBER$}  {}", bars(&values))
    };
    layout.clients[*client].sensors.iter().enumerate().map(of).collect()
}

/// Values as bars between their smallest and their largest; a gap where one is missing.
fn bars(values: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let there = || values.iter().copied().filter(|value| value.is_finite());
    let low = there().fold(f64::INFINITY, f64::min);
    let high = there().fold(f64::NEG_INFINITY, f64::max);
    let bar = |value: &f64| match value.is_finite() {
        true if high > low => BARS[((value - low) / (high - low) * 7.0).round() as usize],
        true => BARS[0],
        false => ' ',
    };
    values.iter().map(bar).collect()
}

/// What the site made of its last step.
fn made(board: &SiteBoard) -> String {
    let distance = |what: &str, value: f32| value.is_finite().then(|| format!("{what} {value:.2}"));
    let level = board.truth.own.map(|level| format!("symbol level {level}"));
    let flag = |z: bool| if z { "raised" } else { "quiet" };
    let flags =
        board.truth.flags.map(|flags| format!("Z_c {}, Z_a {}", flag(flags.z_c), flag(flags.z_a)));
    let parts = [
        distance("surprise", board.local.surprise),
        distance("d_c", board.local.d_c),
        distance("d_a", board.local.d_a),
        level,
        flags,
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "no step yet".to_owned() } else { parts.join(" · ") }
}

/// What left the site.
fn sent(board: &SiteBoard) -> String {
    let SpentSoFar { epsilon, releases } = board.spent;
    let spent = epsilon.map_or_else(
        || format!("{releases} releases, no bound on ε"),
        |epsilon| format!("ε {epsilon:.3} in {releases} releases"),
    );
    format!("{} envelopes sent · {spent}", board.sent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{ClientColumns, Frame, Layout, Sensor};
    use ratatui::layout::Rect;

    fn shown(columns: u16, rows: u16) -> Vec<String> {
        let of = |name: &str, sensors: &[&str]| ClientColumns {
            name: name.to_owned(),
            title: String::new(),
            sensors: sensors.iter().map(|sensor| Sensor::new(*sensor, "")).collect(),
            inputs: Vec::new(),
        };
        let clients = vec![of("A", &["a1"]), of("B", &["b1", "b2"])];
        let mut board = SiteBoard {
            layout: Some((Layout { clients, period_s: 1.0 }, 1)),
            step: 3,
            sent: 4,
            spent: SpentSoFar { epsilon: Some(0.5), releases: 3 },
            ..SiteBoard::default()
        };
        for values in [[9.0, 1.0, 2.0], [9.0, 2.0, f64::NAN], [9.0, 3.0, 2.0]] {
            board.recent.push_back(Frame::with_values(values.to_vec()));
        }
        (board.local.surprise, board.truth.own) = (1.5, Some(2));
        let lines = Lines::default();
        lines.push("connected to the broker");
        let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
        draw(&mut buffer, "B · short", &board, &lines);
        let row = |y: u16| -> String {
            (0..columns).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>()
        };
        (0..rows).map(|y| row(y).trim_end().to_owned()).collect()
    }

    #[test]
    fn a_site_shows_its_own_sensors_and_nobody_elses_and_what_left_it() {
        let rows = shown(90, 12);
        assert_eq!(rows[0], "site B · short · step 3");
        assert_eq!(rows[2], "b1                    3.000  ▁▅█");
        assert_eq!(rows[3], "b2                    2.000  ▁ ▁");
        assert_eq!(rows[4], "surprise 1.50 · symbol level 2");
        assert_eq!(rows[5], "4 envelopes sent · ε 0.500 in 3 releases");
        assert_eq!(rows[6], "connected to the broker");
        assert!(rows[11].starts_with("Only this site's own data."));
        assert!(rows.iter().all(|row| !row.contains("a1")), "{rows:?}");
        for (columns, height) in [(1, 1), (20, 3), (3, 40)] {
            shown(columns, height);
        }
    }

    #[test]
    fn at_80_columns_a_site_shows_whole_sentences_and_the_key_that_stops() {
        let rows = shown(80, 24);
        assert!(rows[23].ends_with("leaves it.  q stops"), "{rows:?}");
        let rows = shown(20, 24);
        assert_eq!(rows[6..8], ["connected to the", "  broker"]);
    }
}
