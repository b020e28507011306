//! How finely each sensor measures, in nominal and in live data, and one grid for both.
//!
//! A model that was fitted to nine digits sees two digits as noise it has never met: what is live
//! must be as coarse as what was nominal, and the other way round. Each sensor's step is estimated
//! from the first rows of every range, and where they differ all ranges are rounded to the coarsest.
//!
//! Looking at the first live rows is no look at the answer. Labels are not read, and of the values
//! only the grid they lie on is kept, which is a property of the transmitter or the historian and
//! known to an engineer before the first sample arrives. A sensor's level, spread and movement, from
//! which an attack could be recognised, stay unseen.

use serde::{Deserialize, Serialize};

use super::wild::{Range, believable, distinct};
use super::{Event, Frame, Layout, Next, Part, Stream, StreamError, UnusedRows, is_same_period};
use crate::session::{Session, Source};

/// Rows looked at in each nominal range.
const NOMINAL_ROWS: usize = 5000;
/// Rows looked at in the live range.
const LIVE_ROWS: usize = 1000;
/// A grid needs so many different values; fewer may be the positions of a switch.
const FEWEST_VALUES: usize = 20;
/// Steps that differ by less than this are one step, estimated twice.
const SAME_STEP: f64 = 1.5;

/// A sensor must move by this many steps of its resolution to be worth monitoring.
const FEWEST_STEPS: f64 = 3.0;

/// The step between neighbouring values that a sensor can report; 0 when it seems continuous.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
pub(crate) struct Resolution(f64);

impl Resolution {
    /// Estimates the step from values: the smallest difference between two that differ, if many
    /// values are a whole number of such steps apart.
    ///
    /// The majority of the different values decides: what is far outside their range does not
    /// count. A value inside of it counts, also where it lies off the grid: it can make a sensor
    /// look finer than it is, which takes no sensor away.
    pub(crate) fn estimate(values: &[f64]) -> Self {
        let mut sorted = distinct(values);
        if let Some(usual) = Range::usual(&sorted) {
            usual.keep_if_most_lie_inside(&mut sorted);
        }
        let (Some(low), Some(high)) = (sorted.first().copied(), sorted.last().copied()) else {
            return Self(0.0);
        };
        // Differences of a few ulps are the rounding of the same decimal number.
        let ulps = 1e-9 * low.abs().max(high.abs());
        let gaps: Vec<f64> =
            sorted.windows(2).map(|w| w[1] - w[0]).filter(|gap| *gap > ulps).collect();
        let Some(step) = gaps.iter().copied().min_by(f64::total_cmp) else { return Self(0.0) };
        if fits(step, &gaps) { Self(step) } else { Self(0.0) }
    }

    /// The step; 0 for a continuous sensor.
    pub(crate) fn step(self) -> f64 {
        self.0
    }

    /// The coarser of two, to which data from both sources must be rounded to be comparable.
    pub(crate) fn coarser(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// The nearest value that such a sensor can report.
    pub(crate) fn round(self, value: f64) -> f64 {
        if self.0 > 0.0 { (value / self.0).round() * self.0 } else { value }
    }

    /// Whether a sensor of this spread says enough to be monitored.
    pub(crate) fn suffices(self, std: f64) -> bool {
        std.is_finite() && std >= FEWEST_STEPS * self.0
    }
}

/// Whether nine gaps in ten are whole numbers of steps.
fn fits(step: f64, gaps: &[f64]) -> bool {
    let on_grid = |gap: f64| {
        let steps = gap / step;
        (steps - steps.round()).abs() < 0.01 * steps.max(1.0).sqrt()
    };
    let gridded = gaps.iter().filter(|gap| on_grid(**gap)).count();
    gridded * 10 >= gaps.len() * 9
}

/// The grids of a session's sensors, in the order of [`Layout`].
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Grids {
    coarsest: Vec<Resolution>,
    rounding: Vec<Resolution>,
}

impl Grids {
    /// Looks at the first rows of every range. The built-in plants have one kind of sensor from the
    /// first row to the last: there is nothing to compare.
    pub(crate) fn of(session: &Session) -> Result<Self, StreamError> {
        if matches!(session.source, Source::Plant(_) | Source::Twin(_)) {
            return Ok(Self::default());
        }
        // A live source delivers nominal and live rows in one way. Files of nominal data may be
        // coarser; what is live is then as coarse as they are.
        if session.live().is_some_and(|live| live.table().is_none()) {
            return Ok(Self::default());
        }
        let parts_there = if session.live().is_some() { &Part::ALL[..2] } else { &Part::ALL[..] };
        let mut parts = Vec::new();
        let mut fit_s = None;
        for &part in parts_there {
            let rows = if part == Part::Replay { LIVE_ROWS } else { NOMINAL_ROWS };
            let (columns, period_s) = first_rows(session, part, rows)?;
            if columns.first().is_some_and(|column| column.len() >= FEWEST_VALUES) {
                check_period(part, period_s, *fit_s.get_or_insert(period_s))?;
            }
            parts.push(columns);
        }
        let sensors = parts.iter().map(Vec::len).min().unwrap_or(0);
        let grids = (0..sensors).map(|i| {
            let nominal = Part::ALL.iter().zip(&parts).filter(|(part, _)| **part != Part::Replay);
            let nominal: Vec<f64> = nominal.flat_map(|(_, part)| part[i].iter().copied()).collect();
            let usual = Range::usual(&distinct(&nominal));
            parts.iter().map(|part| Seen::in_values(&part[i], usual)).collect()
        });
        let (coarsest, rounding) = grids.map(|seen: Vec<Seen>| common(&seen)).unzip();
        Ok(Self { coarsest, rounding })
    }

    /// Opens one part of a session's data, with values rounded where that makes parts comparable.
    pub(crate) fn open(
        &self,
        session: &Session,
        part: Part,
    ) -> Result<Box<dyn Stream>, StreamError> {
        Ok(self.rounded(super::open(session, part)?))
    }

    /// A stream with values rounded where that makes parts comparable.
    pub(crate) fn rounded(&self, stream: Box<dyn Stream>) -> Box<dyn Stream> {
        if self.rounding.iter().all(|r| r.step() == 0.0) {
            return stream;
        }
        Box::new(Rounded { inner: stream, to: self.rounding.clone() })
    }

    /// The coarsest step of a sensor; 0 when it is continuous everywhere.
    pub(crate) fn coarsest(&self, sensor: usize) -> Resolution {
        self.coarsest.get(sensor).copied().unwrap_or_default()
    }

    /// All that preparing a session takes from them.
    pub(crate) fn steps(&self) -> impl Iterator<Item = f64> + '_ {
        self.coarsest.iter().chain(&self.rounding).map(|r| r.step())
    }
}

/// What some values of one sensor show of its grid.
#[derive(Debug, Clone, Copy)]
struct Seen {
    step: Resolution,
    /// It takes enough different values to know the grid from a handful of positions.
    varied: bool,
    moves: bool,
}

impl Seen {
    /// Looks at values of a sensor whose nominal ones lie in the `usual` range.
    fn in_values(values: &[f64], usual: Option<Range>) -> Self {
        let believable = believable(values, usual);
        let different = distinct(&believable).len();
        Self {
            step: Resolution::estimate(&believable),
            varied: different >= FEWEST_VALUES,
            moves: different > 1,
        }
    }
}

/// The coarsest step, and the step to round to (none when all parts share it).
fn common(parts: &[Seen]) -> (Resolution, Resolution) {
    let moving = || parts.iter().filter(|seen| seen.moves);
    let coarsest = moving().fold(Resolution::default(), |c, seen| c.coarser(seen.step));
    let varied = || parts.iter().filter(|seen| seen.varied);
    let rounding = varied().fold(Resolution::default(), |c, seen| c.coarser(seen.step));
    let finer = varied().any(|seen| seen.step.step() * SAME_STEP < rounding.step());
    (coarsest, if finer { rounding } else { Resolution::default() })
}

/// Models that were made from one period cannot judge rows of another.
fn check_period(part: Part, period_s: f64, fit_s: f64) -> Result<(), StreamError> {
    if is_same_period(period_s, fit_s) {
        return Ok(());
    }
    Err(StreamError::Setting(format!(
        "the {} range has a row every {period_s} s and the fit range one every {fit_s} s: models of \
         the one cannot judge the other; both need the same distance between rows",
        part.name()
    )))
}

/// The first values of every sensor, sensor by sensor, and the seconds from row to row.
fn first_rows(
    session: &Session,
    part: Part,
    rows: usize,
) -> Result<(Vec<Vec<f64>>, f64), StreamError> {
    let mut stream = super::open(session, part)?;
    let mut frame = Frame::for_layout(stream.layout());
    let mut columns = vec![Vec::new(); stream.layout().width()];
    let mut unused = UnusedRows::default();
    for row in 0..rows {
        let more = stream.next(&mut frame)?;
        for note in &frame.notes {
            unused.add(note.what, note.rows);
        }
        if !more && row == 0 {
            return Err(StreamError::empty(part, &unused));
        }
        if !more {
            break;
        }
        columns.iter_mut().zip(&frame.values).for_each(|(column, v)| column.push(*v));
    }
    Ok((columns, stream.layout().period_s))
}

/// A stream whose sensors report on a coarser grid.
struct Rounded {
    inner: Box<dyn Stream>,
    to: Vec<Resolution>,
}

impl Stream for Rounded {
    fn layout(&self) -> &Layout {
        self.inner.layout()
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        let more = self.inner.next(frame)?;
        frame.values.iter_mut().zip(&self.to).for_each(|(v, grid)| *v = grid.round(*v));
        Ok(more)
    }

    fn poll(&mut self, frame: &mut Frame) -> Result<Next, StreamError> {
        let next = self.inner.poll(frame)?;
        frame.values.iter_mut().zip(&self.to).for_each(|(v, grid)| *v = grid.round(*v));
        Ok(next)
    }

    fn events(&self) -> &[Event] {
        self.inner.events()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fmt::Write as _;
    use std::path::Path;

    fn fine(t: usize) -> f64 {
        (t as f64 * 0.37).sin()
    }

    fn wave(t: usize, digits: i32) -> f64 {
        let scale = 10f64.powi(digits);
        ((t as f64 * 0.37).sin() * 5.0 * scale).round() / scale
    }

    /// Two files of one sensor and one switch: `fine` with nine digits, `coarse` with one.
    fn session(folder: &Path) -> Session {
        for (name, digits) in [("fine", 9), ("coarse", 1)] {
            let mut text = String::from("time,level,pump\n");
            for t in 0..600 {
                let second = t % 60;
                let (minute, pump) = (t / 60, u8::from(t % 50 < 20));
                let level = wave(t, digits);
                writeln!(text, "2020-01-01 00:{minute:02}:{second:02},{level},{pump}")
                    .expect("a text takes everything");
            }
            std::fs::write(folder.join(format!("{name}.csv")), text).expect("written");
        }
        let text = "Session(about: \"x\", source: Table(data: \".\", time: (column: \"time\")), \
            clients: [(name: \"A\", columns: [\"level\", \"pump\"])], ranges: (\
            fit: (files: [\"fine.csv\"], until: \"+5m\"), \
            calibration: (files: [\"fine.csv\"], from: \"+5m\"), \
            replay: (files: [\"coarse.csv\"])))";
        Session::parse("x", folder, text).expect("a sound session")
    }

    #[test]
    fn nominal_data_is_made_as_coarse_as_what_is_live() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let session = session(folder.path());
        let grids = Grids::of(&session).expect("readable");
        let mut fit = grids.open(&session, Part::Fit).expect("readable");
        let mut frame = Frame::for_layout(fit.layout());
        for t in 0..300 {
            assert!(fit.next(&mut frame).expect("readable"));
            assert!((frame.values[0] - wave(t, 1)).abs() < 1e-9, "{t}: {frame:?}");
        }
        // A switch is as coarse as it ever was: nothing to round, too coarse to be monitored.
        assert_eq!(grids.rounding[1], Resolution::default());
        assert!(!grids.coarsest(1).suffices(0.5) && grids.coarsest(0).suffices(3.5));
    }

    #[test]
    fn data_of_one_kind_is_left_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let mut session = session(folder.path());
        session.ranges.replay.files = vec!["fine.csv".into()];
        let grids = Grids::of(&session).expect("readable");
        assert_eq!(grids.rounding, [Resolution::default(); 2]);
    }

    #[test]
    fn resolution_is_found_for_rounded_and_not_for_continuous_values() {
        let rounded: Vec<f64> = (0..3000).map(|t| (fine(t) * 40.0).round() / 100.0).collect();
        assert!((Resolution::estimate(&rounded).step() - 0.01).abs() < 1e-9);
        let continuous: Vec<f64> = (0..3000).map(|t| fine(t) * 40.0).collect();
        assert_eq!(Resolution::estimate(&continuous), Resolution::default());
        assert_eq!(Resolution::estimate(&[2.0; 9]), Resolution::default());
        assert!(!Resolution(0.01).suffices(0.02) && Resolution(0.01).suffices(0.05));
        assert!((Resolution(0.5).coarser(Resolution(0.1)).round(1.3) - 1.5).abs() < 1e-12);
    }

    /// How steps were estimated before single values could not change them.
    fn by_every_value(values: &[f64]) -> f64 {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (Some(low), Some(high)) = (sorted.first().copied(), sorted.last().copied()) else {
            return 0.0;
        };
        let ulps = 1e-9 * low.abs().max(high.abs());
        let gaps: Vec<f64> =
            sorted.windows(2).map(|w| w[1] - w[0]).filter(|gap| *gap > ulps).collect();
        let Some(step) = gaps.iter().copied().min_by(f64::total_cmp) else { return 0.0 };
        if fits(step, &gaps) { step } else { 0.0 }
    }

    #[test]
    #[cfg_attr(no_shared, ignore = "needs ../shared, which is absent")]
    fn on_real_data_the_majority_says_what_every_value_says() {
        let mut compared = 0;
        for (name, data) in
            [("tep", "data/tep"), ("batadal", "data/batadal"), ("hai-21.03-fragments", "data/hai")]
        {
            let mut session = Session::open(name).expect("a shipped session");
            session.set_data_folder(&crate::shared::path(data));
            for part in Part::ALL {
                let rows = if part == Part::Replay { LIVE_ROWS } else { NOMINAL_ROWS };
                let (columns, _) = first_rows(&session, part, rows).expect("readable");
                let (nominal, _) = first_rows(&session, Part::Fit, NOMINAL_ROWS).expect("readable");
                for (i, (values, nominal)) in columns.iter().zip(&nominal).enumerate() {
                    let usual = Range::usual(&distinct(nominal));
                    let seen = Seen::in_values(values, usual);
                    let before = by_every_value(values);
                    assert!(
                        seen.step.step().to_bits() == before.to_bits(),
                        "{name} {part:?} sensor {i}: {} and not {before}",
                        seen.step.step()
                    );
                    assert_eq!(seen.varied, distinct(values).len() >= FEWEST_VALUES);
                    assert_eq!(seen.moves, distinct(values).len() > 1);
                    compared += 1;
                }
            }
        }
        assert_eq!(compared, 342, "sensors and ranges");
    }

    #[test]
    fn wild_values_do_not_take_a_sensor_away_from_its_model() {
        let nominal: Vec<f64> = (0..3000).map(|t| wave(t, 9)).collect();
        let usual = Range::usual(&distinct(&nominal));
        let clean: Vec<f64> = (0..1000).map(|t| wave(t, 1)).collect();
        let expected = Seen::in_values(&clean, usual);
        for (wild, rows) in [(1e10, 1), (-2_147_483_648.0, 20), (1e300, 1), (f64::MAX, 20)] {
            let mut values = clean.clone();
            values[100..100 + rows].fill(wild);
            let seen = Seen::in_values(&values, usual);
            assert_eq!((seen.step, seen.varied), (expected.step, true), "{wild} × {rows}");
            // A sensor that stands still in the live data and is wild once does not move.
            let mut still = vec![2.5; 1000];
            still[7..7 + rows].fill(wild);
            assert!(!Seen::in_values(&still, usual).moves);
        }
    }

    proptest! {
        #[test]
        fn a_single_wild_value_never_changes_an_estimated_resolution(
            digits in 0_i32..4, rows in 200_usize..600, at: prop::sample::Index,
            wild in prop_oneof![
                prop::num::f64::NORMAL.prop_map(|v| if v.abs() < 10.0 { 10.0 + v } else { v }),
                10.0_f64..1e5,
                Just(-2_147_483_648.0),
                Just(1e10),
            ],
        ) {
            // A wave between −5 and 5 in steps of its last digit, and one value outside of it.
            let mut values: Vec<f64> = (0..rows).map(|t| wave(t, digits)).collect();
            let row = at.index(rows);
            values[row] = f64::NAN;
            let clean = Resolution::estimate(&values);
            values[row] = wild;
            let found = Resolution::estimate(&values);
            prop_assert!((clean.0 - found.0).abs() <= 1e-6 * clean.0, "{clean:?} {found:?}");
        }
    }
}
