//! The mouse: what stands where on the screen, and what was done to it.
//!
//! A view hands out its hits with the picture; nothing is remembered in it. Later hits lie on top.

use std::time::{Duration, Instant};

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use jiff::Timestamp;
use ratatui::layout::{Position, Rect};

use super::action::Action;
use crate::engine::knob::Knob;

/// Two clicks within this time at the same place are a double click.
const DOUBLE: Duration = Duration::from_millis(400);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    pub area: Rect,
    pub target: Target,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Do(Action),
    /// A client by its number: a click chooses it, a double click opens it.
    Client(usize),
    /// The line of all time, from its left to its right edge: a click or drag looks there.
    Seek {
        start: Timestamp,
        end: Timestamp,
    },
    /// A trend, from its left to its right edge: a click looks there, the wheel zooms.
    Trend {
        start: Timestamp,
        end: Timestamp,
    },
    Incident(u64),
    /// A line of the log by its number, likewise.
    Entry(u64),
    /// A session by its place in the list, likewise.
    Session(usize),
    /// A knob: a click chooses it, the wheel turns it on trial.
    Knob(Knob),
    Scroll,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gesture {
    Click,
    DoubleClick,
    /// The pointer moved with the button down; it stays with what it went down on.
    Drag,
    Wheel {
        down: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spot {
    pub target: Target,
    pub column: u16,
    pub width: u16,
}

impl Spot {
    /// The instant under the pointer on a target from `start` to `end`: the middle of its column.
    pub(crate) fn instant(&self, start: Timestamp, end: Timestamp) -> Timestamp {
        let length = end.duration_since(start).as_secs_f64();
        let part = (f64::from(self.column) + 0.5) / f64::from(self.width.max(1));
        let seconds = (start.as_second() as f64 + length * part).round() as i64;
        Timestamp::from_second(seconds).unwrap_or(start).clamp(start, end)
    }
}

/// What was done, and to what: the topmost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Point {
    pub gesture: Gesture,
    pub spots: Vec<Spot>,
}

#[derive(Debug, Default)]
pub(crate) struct Mouse {
    last: Option<(Instant, Position)>,
    held: Vec<Hit>,
}

impl Mouse {
    /// What `event` did to the picture that `hits` came with, if anything.
    #[expect(clippy::wildcard_enum_match_arm, reason = "other buttons do nothing")]
    pub(crate) fn point(&mut self, event: MouseEvent, hits: &[Hit], now: Instant) -> Option<Point> {
        let at = Position::new(event.column, event.row);
        let under = || hits.iter().rev().filter(|hit| hit.area.contains(at)).copied().collect();
        let (gesture, hits): (Gesture, Vec<Hit>) = match event.kind {
            MouseEventKind::Down(MouseButton::Left) => {
                let again = self.last.take().is_some_and(|(then, place)| {
                    place == at && now.saturating_duration_since(then) <= DOUBLE
                });
                self.last = (!again).then_some((now, at));
                self.held = under();
                (if again { Gesture::DoubleClick } else { Gesture::Click }, self.held.clone())
            }
            MouseEventKind::Drag(MouseButton::Left) => {
                self.last = None;
                (Gesture::Drag, self.held.clone())
            }
            MouseEventKind::ScrollDown => (Gesture::Wheel { down: true }, under()),
            MouseEventKind::ScrollUp => (Gesture::Wheel { down: false }, under()),
            MouseEventKind::Up(_) => {
                self.held.clear();
                return None;
            }
            _ => return None,
        };
        let spot = |hit: Hit| Spot {
            target: hit.target,
            column: at.x.saturating_sub(hit.area.x).min(hit.area.width.saturating_sub(1)),
            width: hit.area.width,
        };
        let spots: Vec<Spot> = hits.into_iter().map(spot).collect();
        (!spots.is_empty()).then_some(Point { gesture, spots })
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyModifiers;

    use super::*;

    const ROW: Hit = Hit { area: Rect::new(0, 2, 40, 1), target: Target::Client(1) };
    const HINT: Hit = Hit { area: Rect::new(10, 2, 5, 1), target: Target::Do(Action::Help) };

    fn event(kind: MouseEventKind, column: u16, row: u16) -> MouseEvent {
        MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }
    }

    fn down(column: u16) -> MouseEvent {
        event(MouseEventKind::Down(MouseButton::Left), column, 2)
    }

    #[test]
    fn the_topmost_target_comes_first() {
        let point = Mouse::default().point(down(12), &[ROW, HINT], Instant::now());
        let point = point.expect("something is there");
        let spot = |hit: Hit, column| Spot { target: hit.target, column, width: hit.area.width };
        assert_eq!(point.gesture, Gesture::Click);
        assert_eq!(point.spots, [spot(HINT, 2), spot(ROW, 12)]);
        assert_eq!(Mouse::default().point(down(50), &[ROW, HINT], Instant::now()), None);
    }

    #[test]
    fn two_quick_clicks_at_one_place_are_one_double_click() {
        let (mut mouse, start) = (Mouse::default(), Instant::now());
        let mut click = |column, ms| {
            let now = start + Duration::from_millis(ms);
            mouse.point(down(column), &[ROW], now).map(|point| point.gesture)
        };
        assert_eq!(click(3, 0), Some(Gesture::Click));
        assert_eq!(click(3, 200), Some(Gesture::DoubleClick));
        assert_eq!(click(3, 300), Some(Gesture::Click), "a third begins anew");
        assert_eq!(click(4, 400), Some(Gesture::Click));
        assert_eq!(click(4, 900), Some(Gesture::Click), "too slow");
    }

    #[test]
    fn a_drag_stays_with_what_it_began_on() {
        let mut mouse = Mouse::default();
        mouse.point(down(3), &[ROW], Instant::now());
        let drag = event(MouseEventKind::Drag(MouseButton::Left), 90, 9);
        let point = mouse.point(drag, &[ROW], Instant::now()).expect("held");
        assert_eq!(point.gesture, Gesture::Drag);
        assert_eq!((point.spots[0].target, point.spots[0].column), (ROW.target, 39));
        mouse.point(event(MouseEventKind::Up(MouseButton::Left), 90, 9), &[ROW], Instant::now());
        assert_eq!(mouse.point(drag, &[ROW], Instant::now()), None);
    }

    #[test]
    fn a_spot_on_a_line_of_time_is_an_instant() {
        let at = |s| Timestamp::from_second(s).expect("a small second");
        let spot = |column| Spot { target: Target::Scroll, column, width: 10 };
        assert_eq!(spot(0).instant(at(0), at(100)), at(5));
        assert_eq!(spot(9).instant(at(0), at(100)), at(95));
        let none = Spot { target: Target::Scroll, column: 3, width: 0 };
        assert_eq!(none.instant(at(0), at(100)), at(100));
    }
}
