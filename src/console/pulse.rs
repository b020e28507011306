//! What happens next: keys before pictures, pictures before reports, and never more than 30 pictures a
//! second, however much the engine reports. A key is answered sooner, after a sixtieth of a second at
//! most. A picture that is due waits for one key and not for all that are sent.

use std::io;

use tokio::sync::mpsc;
use tokio::time::{Duration, Instant, sleep_until};

use super::input::{Input, Sent};
use crate::engine::handle::EngineEvent;

/// The shortest time between two pictures: 30 a second.
pub(crate) const FRAME: Duration = Duration::from_millis(33);

/// The shortest time between two pictures of which the second answers a key.
const ANSWER: Duration = Duration::from_millis(16);

#[derive(Debug)]
pub(crate) enum Beat {
    /// The operator sent something; an error is the last.
    Input(io::Result<Sent>),
    Draw,
    /// Wall time since the last such beat.
    Passed(Duration),
    /// The engine reported something; none when nothing more comes.
    Report(Option<EngineEvent>),
}

#[derive(Debug)]
pub(crate) struct Pulse {
    drawn: Instant,
    dirty: bool,
    answered: bool,
    /// When the last such beat was, while the model waits for time to pass.
    told: Option<Instant>,
}

impl Pulse {
    /// A picture is to be drawn at once.
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            drawn: now.checked_sub(FRAME).unwrap_or(now),
            dirty: true,
            answered: false,
            told: None,
        }
    }

    pub(crate) fn touch(&mut self) {
        self.dirty = true;
    }

    /// Waits for what happens next; `wake` is how long until time passing changes something, and
    /// `feeding` whether reports are still to come. Without changes and without events it sleeps.
    pub(crate) async fn next(
        &mut self,
        input: &mut Input,
        reports: &mut mpsc::Receiver<EngineEvent>,
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
            () = sleep_until(self.drawn + ANSWER), if self.dirty && self.answered => self.draw(),
            sent = input.next() => {
                (self.dirty, self.answered) = (true, true);
                Beat::Input(sent)
            }
            () = sleep_until(self.drawn + FRAME), if self.dirty && !self.answered => self.draw(),
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

    fn draw(&mut self) -> Beat {
        self.drawn = Instant::now();
        (self.dirty, self.answered) = (false, false);
        Beat::Draw
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::wildcard_enum_match_arm,
        reason = "a test looks at the beats that it is about"
    )]

    use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

    use super::*;

    /// Runs a test on a simulated clock, which advances only when the test says so or sleeps.
    fn block_on(test: impl Future<Output = ()>) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build();
        runtime.expect("a runtime for the test").block_on(test);
    }

    fn press(input: &Input) {
        input.send(Event::Key(KeyEvent::new(KeyCode::Char('t'), KeyModifiers::NONE)));
    }

    #[test]
    fn a_key_goes_before_any_report_and_pictures_keep_their_distance_however_much_is_told() {
        block_on(async {
            let mut input = Input::default();
            let (feed, mut reports) = mpsc::channel(4);
            let mut pulse = Pulse::new();
            let (mut drawn, mut told, mut keys, mut pressed) = (Vec::new(), 0, 0, false);
            while drawn.len() < 10 || keys == 0 {
                tokio::time::advance(Duration::from_millis(1)).await;
                // The engine always has more to tell than is read.
                while feed.try_send(EngineEvent::Playing).is_ok() {}
                if told % 20 == 19 && !pressed {
                    press(&input);
                    pressed = true;
                }
                match pulse.next(&mut input, &mut reports, true, None).await {
                    Beat::Input(Ok(_)) if pressed => {
                        keys += 1;
                        pressed = false;
                    }
                    Beat::Draw => drawn.push(pulse.drawn),
                    beat if pressed => panic!("a key waits for {beat:?}"),
                    Beat::Report(Some(_)) => {}
                    beat => unreachable!("{beat:?} without a cause"),
                }
                told += 1;
            }
            let distances = drawn.windows(2).map(|pair| pair[1] - pair[0]);
            assert!(distances.min() >= Some(ANSWER), "pictures follow too fast");
        });
    }

    #[test]
    fn a_key_is_answered_sooner_than_a_report_is_shown() {
        block_on(async {
            let mut input = Input::default();
            let (_feed, mut reports) = mpsc::channel(1);
            let mut pulse = Pulse::new();
            let first = pulse.next(&mut input, &mut reports, true, None).await;
            assert!(matches!(first, Beat::Draw));
            let mut after = async |pulse: &mut Pulse| {
                let before = pulse.drawn;
                while !matches!(pulse.next(&mut input, &mut reports, true, None).await, Beat::Draw)
                {
                }
                pulse.drawn - before
            };
            pulse.touch();
            assert!(after(&mut pulse).await >= FRAME, "a report");
            (pulse.dirty, pulse.answered) = (true, true);
            let answered = after(&mut pulse).await;
            assert!((ANSWER..FRAME).contains(&answered), "a key: {answered:?}");
        });
    }

    #[test]
    fn pictures_are_drawn_while_keys_come_without_a_pause() {
        block_on(async {
            let mut input = Input::default();
            let (_feed, mut reports) = mpsc::channel(1);
            let mut pulse = Pulse::new();
            let mut drawn = 0;
            while drawn < 5 {
                tokio::time::advance(Duration::from_millis(1)).await;
                press(&input);
                let beat = pulse.next(&mut input, &mut reports, true, None).await;
                drawn += usize::from(matches!(beat, Beat::Draw));
            }
        });
    }

    #[test]
    fn without_anything_to_do_it_sleeps() {
        block_on(async {
            let mut input = Input::default();
            let (_feed, mut reports) = mpsc::channel(1);
            let mut pulse = Pulse::new();
            let first = pulse.next(&mut input, &mut reports, true, None).await;
            assert!(matches!(first, Beat::Draw));
            let next = pulse.next(&mut input, &mut reports, true, None);
            let waited = tokio::time::timeout(Duration::from_millis(200), next).await;
            assert!(waited.is_err(), "nothing happened, and nothing was drawn");
        });
    }
}
