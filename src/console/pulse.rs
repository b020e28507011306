//! What happens next: keys before pictures, pictures before reports, and never more than 30 pictures a
//! second, however much the engine has to tell.

use std::io;

use crossterm::event::Event;
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant, sleep_until};

use super::feed::Report;

/// The shortest time between two pictures: 30 a second.
pub const FRAME: Duration = Duration::from_millis(33);

/// What happened.
#[derive(Debug)]
pub enum Beat {
    /// The terminal told something; nothing more comes when it is none.
    Input(Option<io::Result<Event>>),
    /// What has changed is to be drawn.
    Draw,
    /// So much time has passed since this was last said.
    Passed(Duration),
    /// The feed told something; nothing more comes when it is none.
    Report(Option<Report>),
}

/// Keeps the time between pictures.
#[derive(Debug)]
pub struct Pulse {
    drawn: Instant,
    dirty: bool,
    /// When the model was last told that time has passed, while it wants to hear of it.
    told: Option<Instant>,
}

impl Pulse {
    /// A picture is to be drawn at once.
    #[must_use]
    pub fn new() -> Self {
        let now = Instant::now();
        Self { drawn: now.checked_sub(FRAME).unwrap_or(now), dirty: true, told: None }
    }

    /// Something has changed.
    pub fn touch(&mut self) {
        self.dirty = true;
    }

    /// Waits for what happens next; `wake` is how long until time passing changes something, and
    /// `feeding` whether reports are still to come. Without changes and without events it sleeps.
    pub async fn next(
        &mut self,
        input: &mut mpsc::Receiver<io::Result<Event>>,
        reports: &mut mpsc::Receiver<Report>,
        feeding: bool,
        wake: Option<Duration>,
    ) -> Beat {
        let woken = if let Some(after) = wake {
            *self.told.get_or_insert_with(Instant::now) + after
        } else {
            self.told = None;
            self.drawn
        };
        tokio::select! {
            biased;
            event = input.recv() => {
                self.dirty = true;
                Beat::Input(event)
            }
            () = sleep_until(self.drawn + FRAME), if self.dirty => {
                self.drawn = Instant::now();
                self.dirty = false;
                Beat::Draw
            }
            () = sleep_until(woken), if wake.is_some() => {
                let now = Instant::now();
                let passed = self.told.replace(now).map_or(Duration::ZERO, |told| now - told);
                self.dirty = true;
                Beat::Passed(passed)
            }
            report = reports.recv(), if feeding => {
                self.dirty |= report.is_some();
                Beat::Report(report)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;

    use super::*;
    use crate::console::app::{Msg, update};
    use crate::console::feed::{Bulletin, Report};
    use crate::console::key::Key;
    use crate::console::tests::fixture;
    use crate::console::view::view;
    use crate::engine::watch::News;
    use crate::stream::Frame;

    /// How long the storm lasts.
    const STORM: Duration = Duration::from_secs(2);

    /// A thousand reports a second, as the feed sends them: it waits when four lie unread.
    fn storm(frame: &Frame) -> mpsc::Receiver<Report> {
        let (sender, reports) = mpsc::channel(4);
        let mut frame = frame.clone();
        thread::spawn(move || {
            let begun = std::time::Instant::now();
            while begun.elapsed() < STORM {
                frame.time += jiff::SignedDuration::from_secs(1);
                let news = News { frames: vec![frame.clone()], ..News::default() };
                let bulletin = Bulletin { news, ..Bulletin::default() };
                if sender.blocking_send(Report::News(Box::new(bulletin))).is_err() {
                    return;
                }
                thread::sleep(std::time::Duration::from_micros(900));
            }
        });
        reports
    }

    /// A key every 100 ms, with the time it was pressed.
    fn keys() -> (mpsc::Receiver<io::Result<Event>>, std::sync::mpsc::Receiver<Instant>) {
        let (sender, events) = mpsc::channel(16);
        let (pressed, times) = std::sync::mpsc::channel();
        thread::spawn(move || {
            for _ in 0..15 {
                thread::sleep(std::time::Duration::from_millis(100));
                let key = KeyEvent::new(KeyCode::Char('t'), KeyModifiers::NONE);
                let now = Instant::now();
                if pressed.send(now).is_err() || sender.blocking_send(Ok(Event::Key(key))).is_err()
                {
                    return;
                }
            }
            thread::sleep(std::time::Duration::from_secs(3));
        });
        (events, times)
    }

    #[test]
    fn a_thousand_reports_a_second_neither_raise_the_frame_rate_nor_hold_up_a_key() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime for the test");
        let mut console = fixture::playing();
        let mut reports = storm(console.last_frame());
        let (mut events, times) = keys();
        let (mut frames, mut told, mut slowest) = (0_u32, 0_u32, Duration::ZERO);
        let mut picture = Buffer::empty(Rect::new(0, 0, 80, 24));
        let begun = Instant::now();
        runtime.block_on(async {
            let mut pulse = Pulse::new();
            loop {
                match pulse.next(&mut events, &mut reports, true, None).await {
                    Beat::Input(Some(Ok(Event::Key(key)))) => {
                        let key = Key::pressed(key).expect("a press");
                        update(&mut console.model, Msg::Key(key));
                    }
                    Beat::Input(_) | Beat::Passed(_) => unreachable!("only keys come"),
                    Beat::Draw => {
                        picture.reset();
                        view(&console.model, &mut picture);
                        frames += 1;
                        let now = Instant::now();
                        slowest = times.try_iter().map(|at| now - at).fold(slowest, Duration::max);
                    }
                    Beat::Report(Some(report)) => {
                        told += 1;
                        update(&mut console.model, Msg::Report(report));
                    }
                    Beat::Report(None) => break,
                }
            }
        });
        let seconds = begun.elapsed().as_secs_f64();
        assert!(told > 200, "{told} reports are no storm");
        assert!(
            f64::from(frames) <= seconds * 1.0 / FRAME.as_secs_f64() + 2.0,
            "{frames} pictures"
        );
        // The machine may be busy with other tests: what is asked for here is that the key waits
        // for one picture and not for the reports.
        assert!(slowest < Duration::from_millis(250), "a key took {slowest:?}");
    }

    #[test]
    fn without_anything_to_do_it_sleeps() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime for the test").block_on(async {
            let (_input, mut events) = mpsc::channel(1);
            let (_feed, mut reports) = mpsc::channel(1);
            let mut pulse = Pulse::new();
            let first = pulse.next(&mut events, &mut reports, true, None).await;
            assert!(matches!(first, Beat::Draw));
            let next = pulse.next(&mut events, &mut reports, true, None);
            let waited = tokio::time::timeout(Duration::from_millis(200), next).await;
            assert!(waited.is_err(), "nothing happened, and nothing was drawn");
        });
    }
}
