//! A live source while it is watched: what arrives is taken at once, and how the source stands is
//! shown and entered in the log.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::{Gone, Pace, Player};
use crate::engine::carried::CarriedFiles;
use crate::engine::pace::Speed;
use crate::engine::protocol::EngineEvent;
use crate::engine::watch::News;
use crate::fact::{LatencyMs, Number};
use crate::output::Outputs;
use crate::output::metrics::{Figures, Metrics};
use crate::stream::live::status::{Shared, Standing, Status};

/// How long the engine rests when nothing has arrived: a row is taken so much later at most.
const REST: Duration = Duration::from_millis(20);
/// How often it is shown how the source stands.
const SHOWN: Duration = Duration::from_secs(1);
/// Latencies are counted in so many classes, each 1.25 times the one before, from 0.1 ms on.
const CLASSES: usize = 80;

/// A live source, as the engine follows it.
pub(super) struct Following {
    status: Shared,
    standing: Standing,
    shown: Option<Instant>,
    /// What arrived before this waited for the models, and says nothing about speed.
    begun: Instant,
    latencies: [u64; CLASSES],
}

impl Following {
    pub(super) fn new(status: Shared) -> Self {
        let (standing, begun) = (Standing::Live, Instant::now());
        Self { status, standing, shown: None, begun, latencies: [0; CLASSES] }
    }

    fn add_latency(&mut self, latency: Duration) {
        let class = (latency.as_secs_f64() / 1e-4).max(1.0).log(1.25) as usize;
        self.latencies[class.min(CLASSES - 1)] += 1;
    }

    fn timed(&self) -> u64 {
        self.latencies.iter().sum()
    }

    /// The latencies of the summary; none where no step was timed.
    pub(super) fn latency_ms(&self) -> Option<LatencyMs> {
        let ms = |share| Number::new(self.latency(share)?.as_secs_f64() * 1000.0);
        Some(LatencyMs { p50: ms(0.5)?, p99: ms(0.99)?, steps: self.timed() })
    }

    /// The latency that `share` of all steps do not exceed, to a quarter of it.
    fn latency(&self, share: f64) -> Option<Duration> {
        let all = self.timed();
        let mut seen = 0;
        let reached = |count: &u64| {
            seen += count;
            seen as f64 >= share * all as f64
        };
        let class = self.latencies.iter().position(reached).filter(|_| all > 0)?;
        Some(Duration::from_secs_f64(1e-4 * 1.25_f64.powf(class as f64 + 1.0)))
    }
}

impl Player {
    /// Goes at the speed of the source, if that is a live one.
    pub(in crate::engine) fn follow(&mut self, live: Option<Shared>) {
        if let Some(status) = &live {
            status.begin(Instant::now());
            self.pace = Pace { speed: Speed::Max, paused: false };
            self.pacer.set(Speed::Max, Instant::now());
        }
        self.live = live.map(Following::new);
    }

    /// Keeps for the next start what operators do.
    pub(in crate::engine) fn carry(&mut self, carried: CarriedFiles) {
        self.carried = carried;
    }

    /// Hands facts to these receivers, and serves figures at their address.
    pub(in crate::engine) fn hand_out(
        &mut self,
        outputs: Option<Outputs>,
        metrics: Option<Metrics>,
    ) {
        (self.outputs, self.metrics) = (outputs, metrics);
    }

    /// Nothing has arrived that would make a step: shows what there is, and obeys meanwhile.
    pub(super) fn wait_for_rows(&mut self, news: &mut News) -> Result<(), Gone> {
        if !self.is_watched() {
            self.pass_on(news);
        }
        for frame in news.frames.drain(..) {
            self.show(frame, 0.0, true)?;
        }
        self.look_at_source(news);
        self.add(news);
        self.send()?;
        if let Some(command) = self.next_command(REST)? {
            self.obey(command)?;
        }
        Ok(())
    }

    /// Enters in the log when the source stands otherwise than before, and shows it now and then.
    pub(super) fn look_at_source(&mut self, news: &mut News) {
        let Some(following) = &mut self.live else { return };
        let now = Instant::now();
        if !news.times.is_empty()
            && let Some((_, arrived)) = following.status.get().newest
            && arrived >= following.begun
        {
            following.add_latency(now.saturating_duration_since(arrived));
        }
        if following.shown.is_some_and(|shown| now.saturating_duration_since(shown) < SHOWN) {
            return;
        }
        following.shown = Some(now);
        let status = following.status.get();
        let standing = status.standing(now);
        if following.standing != standing && standing != Standing::Ended {
            let words = status.words(now);
            following.standing = standing;
            tracing::info!("{words}");
            self.note(&words, news);
        }
        if let Some(trouble) = self.outputs.as_mut().and_then(Outputs::take_trouble) {
            self.note(&trouble, news);
        }
        if let Some(metrics) = &self.metrics {
            let steps = self.watch.run().steps();
            let open = self.watch.run().annunciator().figures().open;
            let waiting = self.outputs.as_ref().map(Outputs::waiting).unwrap_or_default();
            metrics.set(figures(&status, now, steps, open, &waiting));
        }
        self.batch.live = Some(Box::new(status.shown(now)));
    }

    /// Enters a word from outside in the log, and in the recording.
    fn note(&mut self, words: &str, news: &mut News) {
        let mut said = News::default();
        self.watch.note(words, &mut said);
        self.record.news(&said);
        news.facts.append(&mut said.facts);
        news.events.append(&mut said.events);
        news.incidents.append(&mut said.incidents);
    }

    /// Says how the source did, once it is over.
    pub(super) fn sum_up_source(&self) -> Result<(), Gone> {
        let Some(following) = &self.live else { return Ok(()) };
        self.send_event(EngineEvent::Notice(summary(following, &following.status.get())))
    }
}

/// The figures of a source for a monitoring system, before anything is watched.
pub(in crate::engine) fn source_figures(status: &Status, now: Instant) -> Figures {
    figures(status, now, 0, 0, &[])
}

/// The figures for a monitoring system.
fn figures(
    status: &Status,
    now: Instant,
    steps: u64,
    open: usize,
    waiting: &[(String, u64, u64)],
) -> Figures {
    let standing = status.standing(now);
    let counts = status.counts;
    let left_out = [
        ("late", counts.late),
        ("doubled", counts.doubled),
        ("bad", counts.bad),
        ("wrong_stamp", counts.wrong_stamp),
        ("unreadable", status.unreadable),
    ];
    let mut values = vec![
        ("headwater_source_up".to_owned(), f64::from(u8::from(standing == Standing::Live))),
        ("headwater_silence_seconds".to_owned(), status.silence(now).as_secs_f64()),
        ("headwater_values_total".to_owned(), counts.values as f64),
        ("headwater_values_per_second".to_owned(), status.values_per_s),
        ("headwater_rows_total".to_owned(), counts.rows as f64),
        ("headwater_steps_total".to_owned(), steps as f64),
        ("headwater_reconnects_total".to_owned(), status.reconnects as f64),
        ("headwater_incidents_open".to_owned(), open as f64),
    ];
    for (why, count) in left_out {
        values.push((format!("headwater_left_out_total{{why=\"{why}\"}}"), count as f64));
    }
    for (name, count, given_up) in waiting {
        let name = name.replace(['"', '\\', '\n'], "_");
        values.push((format!("headwater_queue{{output=\"{name}\"}}"), *count as f64));
        let given_up = *given_up as f64;
        values.push((format!("headwater_given_up_total{{output=\"{name}\"}}"), given_up));
    }
    let trouble = (standing != Standing::Live).then(|| status.words(now));
    Figures { values, trouble }
}

fn summary(following: &Following, status: &Status) -> String {
    let mut text = status.left_out();
    if let Some(LatencyMs { p50, p99, .. }) = following.latency_ms() {
        let (half, most) = (p50.get(), p99.get());
        // Text has room.
        let _ = write!(text, "; from arrival to decision {half:.1} ms (p50), {most:.1} ms (p99)");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_told_to_a_quarter() {
        let mut following = Following::new(crate::stream::live::status::shared("test", 1.0));
        assert_eq!(following.latency(0.5), None);
        for ms in 1..=100 {
            following.add_latency(Duration::from_millis(ms));
        }
        let half = following.latency(0.5).expect("there are some").as_secs_f64();
        let most = following.latency(0.99).expect("there are some").as_secs_f64();
        assert!((0.050..0.0625).contains(&half), "{half}");
        assert!((0.099..0.125).contains(&most), "{most}");
    }
}
