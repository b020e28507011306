//! How a live source stands: connected or not, how long ago something arrived, what was left out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::arrival::Phase;
use super::assembler::Counts;
use super::reader::Reader;

/// Rows that may be overdue before a source counts as late.
const LATE_ROWS: f64 = 3.0;
/// Seconds over which the rate of values is averaged, or two rows where these take longer.
const RATE_S: f64 = 2.0;

/// How one client of a live source stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Heard {
    /// How long ago a value of it arrived; `None` before the first.
    pub(crate) ago: Option<Duration>,
    /// Its tags that have stopped to send.
    pub(crate) silent: usize,
    pub(crate) first_silent: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Status {
    /// The source in words.
    pub(crate) place: String,
    pub(crate) phase: Phase,
    /// Since when it stands so.
    pub(crate) since: Instant,
    /// When something arrived last.
    pub(crate) heard: Option<Instant>,
    /// Time of the newest row, and when its first value arrived.
    pub(crate) newest: Option<(Timestamp, Instant)>,
    /// Values a second, over the last seconds.
    pub(crate) values_per_s: f64,
    pub(crate) counts: Counts,
    /// Lines or messages that cannot be read, and the last of them in words.
    pub(crate) unreadable: u64,
    pub(crate) trouble: Option<String>,
    /// Tags that came and that no client watches.
    pub(crate) unknown: Vec<String>,
    /// How often the connection was lost.
    pub(crate) reconnects: u64,
    /// How each client stands, in the order of the session.
    pub(crate) clients: Vec<Heard>,
    /// Seconds from one row to the next.
    pub(crate) grid_s: f64,
    /// Values at the time that [`Status::values_per_s`] was worked out.
    counted: (u64, Instant),
}

/// The state of a source in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Standing {
    Connecting,
    Live,
    /// Nothing has arrived for longer than three rows take.
    Late,
    Reconnecting,
    Ended,
}

impl Status {
    /// How many rows came, and what was left out, in words.
    pub(crate) fn left_out(&self) -> String {
        let counts = self.counts;
        format!(
            "{}: {} rows, {} incomplete; values left out: {} late, {} doubled, {} bad, {} wrongly \
             stamped; {} lines not readable; {} times reconnected",
            self.place,
            counts.rows,
            counts.incomplete,
            counts.late,
            counts.doubled,
            counts.bad,
            counts.wrong_stamp,
            self.unreadable,
            self.reconnects,
        )
    }

    pub(crate) fn standing(&self, now: Instant) -> Standing {
        match &self.phase {
            Phase::Connecting => Standing::Connecting,
            Phase::Reconnecting(_) => Standing::Reconnecting,
            Phase::Ended => Standing::Ended,
            Phase::Connected if self.silence(now) > self.patience() => Standing::Late,
            Phase::Connected => Standing::Live,
        }
    }

    /// How long nothing has arrived.
    pub(crate) fn silence(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.heard.unwrap_or(self.since))
    }

    /// How long nothing may arrive before a source, or a client of it, counts as late.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs_f64(LATE_ROWS * self.grid_s).max(Duration::from_secs(2))
    }

    /// Works out the rate of values, where enough time has passed since it was done last.
    fn work_out_rate(&mut self, now: Instant) {
        let (values, since) = self.counted;
        let seconds = now.saturating_duration_since(since).as_secs_f64();
        if seconds >= RATE_S.max(2.0 * self.grid_s) {
            self.values_per_s = (self.counts.values - values) as f64 / seconds;
            self.counted = (self.counts.values, now);
        }
    }

    /// The standing in words.
    pub(crate) fn words(&self, now: Instant) -> String {
        let place = &self.place;
        match self.standing(now) {
            Standing::Connecting => format!("{place}: connecting"),
            Standing::Live => format!("{place}: connected"),
            Standing::Late => {
                format!("{place}: nothing has arrived for {} s", self.silence(now).as_secs())
            }
            Standing::Reconnecting => {
                let Phase::Reconnecting(why) = &self.phase else { return place.clone() };
                let seconds = now.saturating_duration_since(self.since).as_secs();
                format!("{place}: reconnecting for {seconds} s ({why})")
            }
            Standing::Ended => format!("{place}: ended"),
        }
    }
}

/// A status at one moment, for a screen that has no clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Shown {
    pub(crate) standing: Standing,
    /// How long it has been connected, or reconnecting.
    pub(crate) since: Duration,
    pub(crate) words: String,
    /// How long ago the first value of the newest row arrived.
    pub(crate) lag: Option<Duration>,
    pub(crate) values_per_s: f64,
    /// Values that were left out: late, doubled, bad, wrongly stamped, not readable.
    pub(crate) left_out: u64,
    /// Clients that nothing has arrived of for too long, and for how long.
    pub(crate) stale: Vec<(usize, Option<Duration>)>,
}

impl Status {
    pub(crate) fn shown(&self, now: Instant) -> Shown {
        let standing = self.standing(now);
        // A client is stale while others send: otherwise it is the source that is late.
        let is_stale = |heard: &Heard| heard.ago.is_none_or(|ago| ago > self.patience());
        let clients = self.clients.iter().enumerate();
        let stale = clients
            .filter(|(_, heard)| standing == Standing::Live && is_stale(heard))
            .map(|(client, heard)| (client, heard.ago));
        let Counts { late, doubled, bad, wrong_stamp, .. } = self.counts;
        Shown {
            standing,
            since: now.saturating_duration_since(self.since),
            words: self.words(now),
            lag: self.newest.map(|(_, arrived)| now.saturating_duration_since(arrived)),
            values_per_s: self.values_per_s,
            left_out: late + doubled + bad + wrong_stamp + self.unreadable,
            stale: stale.collect(),
        }
    }
}

/// A status that one thread changes and others read.
#[derive(Debug, Clone)]
pub(crate) struct Shared(Arc<Mutex<Status>>);

pub(crate) fn shared(place: &str, grid_s: f64) -> Shared {
    let now = Instant::now();
    Shared(Arc::new(Mutex::new(Status {
        place: place.to_owned(),
        phase: Phase::Connecting,
        since: now,
        heard: None,
        newest: None,
        values_per_s: 0.0,
        counts: Counts::default(),
        unreadable: 0,
        trouble: None,
        unknown: Vec::new(),
        reconnects: 0,
        clients: Vec::new(),
        grid_s,
        counted: (0, now),
    })))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Status> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self) -> Status {
        self.lock().clone()
    }

    pub(super) fn set_phase(&self, phase: Phase, at: Instant) {
        let mut status = self.lock();
        if status.phase != phase {
            if matches!(phase, Phase::Reconnecting(_))
                && !matches!(status.phase, Phase::Reconnecting(_))
            {
                status.reconnects += 1;
            }
            // Another reason for the same is no new beginning.
            let same =
                matches!((&status.phase, &phase), (Phase::Reconnecting(_), Phase::Reconnecting(_)));
            status.since = if same { status.since } else { at };
            status.phase = phase;
        }
    }

    /// The source is read from now on: it was not late before.
    pub(crate) fn begin(&self, now: Instant) {
        self.lock().heard = Some(now);
    }

    pub(super) fn arrived(&self, at: Instant) {
        self.lock().heard = Some(at);
    }

    pub(super) fn row(&self, time: Timestamp, arrived: Instant) {
        self.lock().newest = Some((time, arrived));
    }

    pub(super) fn publish(&self, reader: &Reader, clients: Vec<Heard>) {
        let mut status = self.lock();
        status.counts = reader.counts();
        status.unreadable = reader.trouble().unreadable;
        if status.trouble != reader.trouble().what {
            status.trouble.clone_from(&reader.trouble().what);
        }
        if status.unknown.len() != reader.unknown().len() {
            status.unknown = reader.unknown().to_vec();
        }
        status.clients = clients;
        status.work_out_rate(Instant::now());
    }
}
