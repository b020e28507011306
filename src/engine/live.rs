//! From a live source to what can be watched: its nominal rows are gathered first, where it delivers
//! them, and kept.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::mpsc;

use super::error::OpenError;
use super::player::source_figures;
use super::progress::Training;
use super::protocol::{EngineEvent, Options};
use crate::output::metrics::Metrics;
use crate::session::{Clock, LiveHistory, LiveSource, Mark, Session};
use crate::stream::live::LiveStream;
use crate::stream::live::kept::{self, Gathering};
use crate::stream::live::status::{Standing, Status};
use crate::stream::{self, Continuity, Frame, Next, Note, NoteKind, Part, Stream as _};

/// How long a source that has nothing yet is left alone.
const NAP: Duration = Duration::from_millis(20);
/// How often the progress of learning is reported.
const TELL: Duration = Duration::from_millis(250);
/// The effect of an interrupt while it learns.
pub(crate) const STOPPED: &str = "stopped while it learned what is normal; rows that were learned from \
                                  are kept where the session says `history: Learned`";
/// How often gathered rows are made to survive a crash.
const SYNC: Duration = Duration::from_mins(1);

/// Where the gathering of nominal rows begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GatherFrom {
    /// With the first row that arrives.
    FirstRow,
    /// With the first row of the next ten minutes of the data's clock: sites that are started within the
    /// same ten minutes learn from the same rows.
    TenMinutes,
}

impl GatherFrom {
    /// Whether rows from this time on count; `before` is the row before.
    fn is_reached(self, before: Option<Timestamp>, time: Timestamp) -> bool {
        let cell = |time: Timestamp| time.as_second().div_euclid(600);
        match (self, before) {
            (Self::FirstRow, _) => true,
            (Self::TenMinutes, None) => time.as_second().rem_euclid(600) == 0,
            (Self::TenMinutes, Some(before)) => cell(time) != cell(before),
        }
    }
}

/// What is done, how much of how much, and how the source stands; an error stops the learning.
type Tell<'a> = &'a mut dyn FnMut(String, Option<(usize, usize)>, &Status) -> Result<(), OpenError>;

/// Connects to the source of `session`, and gathers its nominal rows where they are not there yet.
/// Gives the source as it stands before the first row that is watched.
pub(super) fn begin(
    session: &Session,
    live: &LiveSource,
    options: &Options,
    metrics: Option<&Metrics>,
    sender: &mpsc::Sender<EngineEvent>,
) -> Result<LiveStream, OpenError> {
    let begun = Instant::now();
    let mut tell = |doing, steps, status: &Status| {
        let interrupt = options.interrupt.as_ref();
        if interrupt.is_some_and(|interrupt| interrupt.load(Ordering::Relaxed)) {
            return Err(STOPPED.into());
        }
        if let Some(metrics) = metrics {
            metrics.set(source_figures(status, Instant::now()));
        }
        let elapsed = begun.elapsed();
        let training =
            Training { doing, steps, losses: Vec::new(), bytes: None, elapsed, fact: None };
        match sender.try_send(EngineEvent::Training(training)) {
            // A word that finds the queue full is left out: the next one says more.
            Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => Err("the receiver has ended".into()),
        }
    };
    connect(session, live, GatherFrom::FirstRow, &mut tell)
}

/// The same, with reports on the progress.
pub(crate) fn connect(
    session: &Session,
    live: &LiveSource,
    from: GatherFrom,
    tell: Tell<'_>,
) -> Result<LiveStream, OpenError> {
    let layout = match live.history {
        LiveHistory::First => None,
        LiveHistory::Learned => kept::layout(session),
        LiveHistory::Table(_) => Some(stream::open(session, Part::Fit)?.layout().clone()),
    };
    let is_there = || match live.history {
        LiveHistory::First => false,
        LiveHistory::Learned => kept::complete(session).is_some(),
        LiveHistory::Table(_) => true,
    };
    if is_there() {
        return Ok(LiveStream::open(session, layout)?);
    }
    // Before the first row is waited for: whoever comes second is told at once.
    let lock = kept::lock(session)?;
    let mut source = LiveStream::open(session, layout)?;
    source.keep_lock(lock);
    source.status().begin(Instant::now());
    let mut learning = Learning { tell, from, told: None };
    while !source.meet()? {
        learning.report(&source, || ("waiting for the first row".into(), None))?;
    }
    gather(session, live, &mut source, &mut learning)?;
    Ok(source)
}

fn gather(
    session: &Session,
    live: &LiveSource,
    source: &mut LiveStream,
    learning: &mut Learning,
) -> Result<(), OpenError> {
    let Some(Mark::After(all_s)) = session.ranges.calibration.until else {
        return Err("a live source learns for a stated time: `ranges.calibration.until`".into());
    };
    let (until, clock) = (Mark::After(all_s), Clock::of(session));
    // A history that is read again begins anew.
    let goes_on = live.history == LiveHistory::Learned && !live.reads_past();
    let mut gathering = Gathering::begin(session, source.layout(), goes_on)?;
    let mut frame = Frame::for_layout(source.layout());
    let (mut done_s, mut synced) = (0.0, Instant::now());
    let mut before = None;
    loop {
        match source.poll(&mut frame)? {
            Next::Frame
                if gathering.first().is_none()
                    && !learning.from.is_reached(before.replace(frame.time), frame.time) => {}
            Next::Frame => {
                note(source, &mut frame, &mut gathering);
                let first = gathering.first().unwrap_or(frame.time);
                // A clock that jumps must not end the learning: only the time that rows cover counts.
                let time = gathering.seen().at(frame.time);
                done_s = time.duration_since(first).as_secs_f64();
                if until.is_reached(clock, first, gathering.rows(), time) {
                    // The first row that is watched.
                    frame.continuity = Continuity::NewRun;
                    source.hold(&frame);
                    gathering.finish()?;
                    return Ok(());
                }
                gathering.add(&frame)?;
            }
            Next::NotYet => thread::sleep(NAP),
            Next::End => {
                return Err(format!(
                    "{} ended after {} of history, and {} are needed before anything is watched",
                    stream::live::place(&live.input),
                    length(done_s),
                    length(all_s)
                )
                .into());
            }
        }
        if synced.elapsed() > SYNC {
            gathering.sync()?;
            synced = Instant::now();
        }
        let told = learning.report(source, || {
            let doing = stage(session, done_s, all_s);
            (doing, Some((done_s.max(0.0) as usize, all_s as usize)))
        });
        if let Err(stopped) = told {
            gathering.sync()?;
            return Err(stopped);
        }
    }
}

/// Keeps what was left out before this row, and whether the clock moved. A clock that went forward shows as
/// a gap in a run; a history would not show it.
fn note(source: &LiveStream, frame: &mut Frame, gathering: &mut Gathering) {
    let is_told = frame.notes.iter().any(|note| matches!(note.what, NoteKind::ClockMoved { .. }));
    if let Some((from, to)) = source.clock_moved().filter(|_| !is_told) {
        let (place, line) = (source.status().get().place, gathering.rows());
        gathering.note(Note { place, line, rows: 0, what: NoteKind::ClockMoved { from, to } });
    }
    frame.notes.drain(..).for_each(|left_out| gathering.note(left_out));
}

/// How the source stands while its rows are gathered.
fn source_words(status: &Status, now: Instant) -> String {
    match status.standing(now) {
        Standing::Live => format!("{}, {:.0} values/s", status.words(now), status.values_per_s),
        _ => status.words(now),
    }
}

/// What is being learned, and what cannot be trusted until it is learned.
fn stage(session: &Session, done_s: f64, all_s: f64) -> String {
    let (done, all) = (length(done_s), length(all_s));
    let what = match session.ranges.fit.until {
        Some(Mark::After(fit_s)) if done_s < fit_s => "rows to fit models",
        Some(_) | None => "rows to calibrate alarms",
    };
    format!(
        "learning what is normal, {what}: {done} of {all} arrived. Nothing is watched yet, and what \
         happens now counts as normal: a fault of today would not be found tomorrow"
    )
}

/// Takes how far the learning is, and may stop it.
struct Learning<'a> {
    tell: Tell<'a>,
    from: GatherFrom,
    told: Option<Instant>,
}

impl Learning<'_> {
    /// Says what is done and how the source stands, now and then; an error stops the learning.
    fn report(
        &mut self,
        source: &LiveStream,
        words: impl FnOnce() -> (String, Option<(usize, usize)>),
    ) -> Result<(), OpenError> {
        if self.told.is_some_and(|told| told.elapsed() < TELL) {
            return Ok(());
        }
        self.told = Some(Instant::now());
        let (status, now) = (source.status().get(), Instant::now());
        let (doing, steps) = words();
        let doing = format!("{doing}. {}", source_words(&status, now));
        (self.tell)(doing, steps, &status)
    }
}

/// A length of time in words.
fn length(seconds: f64) -> String {
    let (hours, minutes) = (seconds / 3600.0, seconds / 60.0);
    if hours >= 48.0 {
        format!("{:.1} d", hours / 24.0)
    } else if hours >= 1.0 {
        format!("{hours:.1} h")
    } else {
        format!("{minutes:.0} min")
    }
}
