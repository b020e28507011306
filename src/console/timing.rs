//! How long a picture takes.

use std::hint::black_box;
use std::mem;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::app::Model;
use super::still::{FULL_SPEED, run_to};
use super::subject::Subject;
use super::term::page;
use super::theme::{Terminal, Theme, ThemeChoice};
use super::view::view;
use crate::engine::handle::{OpenError, Options};
use crate::engine::prepare::{Stage, prepare};
use crate::engine::{self};
use crate::session::Session;

/// Twelve clients whose models are made in a moment: what is drawn matters here, not what is found.
const TWELVE: &str = r#"Session(
    about: "twelve clients",
    source: Twin(family: B, clients: 12),
    ranges: (
        fit: (until: "+1000 steps"),
        calibration: (from: "+1000 steps", until: "+2000 steps"),
        replay: (from: "+6000 steps", until: "+7200 steps"),
    ),
    sampling: (decimate: Every(1)),
    model: (proprietary: Linear, federation: Online(passes: 1)),
    thresholds: (arl0: "3000s"),
)"#;

/// Pictures of one sample, each of another moment.
const PICTURES: u32 = 8;
/// How long each size is measured for.
const LONG: Duration = Duration::from_millis(600);

/// The console on twelve clients, for pictures to be taken of it.
pub(crate) struct Twelve {
    model: Model,
    last: Timestamp,
}

impl Twelve {
    /// Makes the models, keeping them in `folder`, and runs to the end.
    pub(crate) fn new(folder: &Path) -> Result<Self, OpenError> {
        let session = Session::parse("twelve", Path::new(""), TWELVE)?;
        let mut go_on = |_: Stage| ControlFlow::Continue(());
        let prepared = prepare(&session, &folder.join("twelve.safetensors"), &mut go_on)?;
        let mut model = Model::new(&session, Theme::new(ThemeChoice::Auto, Terminal::default()));
        let prepared = Some(Arc::new(prepared));
        let options = Options { prepared, ..Options::watched(FULL_SPEED) };
        run_to(&mut model, engine::spawn(&session, options)?)?;
        let last = model.newest().ok_or("the plant gave no measurement")?;
        Ok(Self { model, last })
    }

    /// Microseconds of one picture of so many columns and rows: drawn, compared with the one before,
    /// and turned into bytes. Every picture is of another moment, so that most of it changes.
    pub(crate) fn frame_us(&mut self, columns: u16, rows: u16) -> Result<f64, OpenError> {
        let area = Rect::new(0, 0, columns, rows);
        let (mut shown, mut next) = (Buffer::empty(area), Buffer::empty(area));
        let mut best = Duration::MAX;
        let begun = Instant::now();
        while begun.elapsed() < LONG {
            let sample = Instant::now();
            for at in 0..PICTURES {
                let back = SignedDuration::from_secs(i64::from(7 * at + 1));
                self.model.look = Some(self.last.checked_sub(back)?);
                next.reset();
                black_box(view(&self.model, &mut next));
                black_box(page(&shown, &next, false)?);
                mem::swap(&mut shown, &mut next);
            }
            best = best.min(sample.elapsed() / PICTURES);
        }
        Ok(best.as_secs_f64() * 1e6)
    }
}

/// Instants of a recording that are looked at.
const SEEKS: i32 = 400;

/// A console on a recording, for the time that seeking takes.
pub(crate) struct Reopened {
    model: Model,
}

impl Reopened {
    /// Reads the recording to its end and draws the first picture.
    pub(crate) fn open(file: &Path) -> Result<Self, OpenError> {
        let subject = Subject::recording(file)?;
        let theme = Theme::new(ThemeChoice::Auto, Terminal::default());
        let mut model = Model::new(subject.session(), theme);
        model.is_recording = true;
        run_to(&mut model, subject.spawn(Options::watched(FULL_SPEED), false)?)?;
        black_box(view(&model, &mut Buffer::empty(Rect::new(0, 0, 120, 40))));
        Ok(Self { model })
    }

    /// Milliseconds of the slowest of many jumps to another instant, up to the bytes of its picture.
    pub(crate) fn slowest_seek_ms(&mut self) -> Result<f64, OpenError> {
        let (first, last) = self.model.span().ok_or("the recording has no steps")?;
        let length = last.duration_since(first);
        let area = Rect::new(0, 0, 120, 40);
        let (mut shown, mut next) = (Buffer::empty(area), Buffer::empty(area));
        let mut slowest = Duration::ZERO;
        for seek in 0..SEEKS {
            // Far from the one before, and over the whole length.
            let share = seek.wrapping_mul(151) % SEEKS;
            let begin = Instant::now();
            self.model.look = Some(first.checked_add(length / SEEKS * share)?);
            next.reset();
            black_box(view(&self.model, &mut next));
            black_box(page(&shown, &next, false)?);
            slowest = slowest.max(begin.elapsed());
            mem::swap(&mut shown, &mut next);
        }
        Ok(slowest.as_secs_f64() * 1e3)
    }
}
