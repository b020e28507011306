//! Delivers the facts of one queue, in their order, on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::queue::Queue;
use super::receiver::Deliver;
use crate::session::output::{FactKind, OutputSettings};

/// How often a queue is looked at without a signal that something came.
const LOOK: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct Worker {
    name: String,
    facts: Vec<FactKind>,
    ends: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Worker {
    pub(super) fn start(
        settings: &OutputSettings,
        mut receiver: Box<dyn Deliver>,
        mut queue: Queue,
    ) -> std::io::Result<Self> {
        let ends = Arc::new(AtomicBool::new(false));
        let (name, is_over) = (settings.name.clone(), Arc::clone(&ends));
        let thread = thread::Builder::new().name("output".into()).spawn({
            let name = name.clone();
            move || {
                while !is_over.load(Ordering::Relaxed) {
                    turn(&name, &mut queue, receiver.as_mut(), now_s());
                    thread::park_timeout(LOOK);
                }
                turn(&name, &mut queue, receiver.as_mut(), now_s());
            }
        })?;
        Ok(Self { name, facts: settings.facts.clone(), ends, thread })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn wants(&self, kind: FactKind) -> bool {
        self.facts.contains(&kind)
    }

    pub(super) fn wake(&self) {
        self.thread.thread().unpark();
    }

    pub(super) fn finish(self, longest: Duration) {
        self.ends.store(true, Ordering::Relaxed);
        self.wake();
        let begun = Instant::now();
        while !self.thread.is_finished() && begun.elapsed() < longest {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn now_s() -> f64 {
    Timestamp::now().as_nanosecond() as f64 / 1e9
}

/// Delivers what is due at `now_s`, until something fails or nothing is left; how many facts.
fn turn(name: &str, queue: &mut Queue, receiver: &mut dyn Deliver, now_s: f64) -> u64 {
    let mut delivered = 0;
    loop {
        let waiting = match queue.due(name, now_s) {
            Ok(Some(waiting)) => waiting,
            Ok(None) => return delivered,
            Err(why) => {
                tracing::error!("output {name}: {why}");
                return delivered;
            }
        };
        let kept = match receiver.deliver(waiting.number, &waiting.line) {
            Ok(()) => {
                delivered += 1;
                queue.done(&waiting)
            }
            Err(why) => {
                tracing::warn!("output {name}: {why}; it is tried again");
                return match queue.failed(&waiting, now_s) {
                    Ok(_) => delivered,
                    Err(why) => {
                        tracing::error!("output {name}: {why}");
                        delivered
                    }
                };
            }
        };
        if let Err(why) = kept {
            tracing::error!("output {name}: {why}");
            return delivered;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A receiver that is away until a time.
    #[derive(Debug, Default)]
    struct Away {
        gone: bool,
        attempts: u64,
        got: Vec<String>,
    }

    impl Deliver for Away {
        fn deliver(&mut self, _number: i64, line: &str) -> Result<(), String> {
            self.attempts += 1;
            if self.gone {
                return Err("away".into());
            }
            self.got.push(line.to_owned());
            Ok(())
        }
    }

    #[test]
    fn a_receiver_that_is_away_for_an_hour_gets_everything_in_order() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let mut queue = Queue::open(&folder.path().join("queue")).expect("a queue");
        let mut receiver = Away { gone: true, ..Away::default() };
        // A fact a second for an hour, and a look twice a second.
        for half in 0..7200_u32 {
            if half % 2 == 0 {
                queue.push("a", &format!("{}", half / 2)).expect("pushed");
            }
            turn("a", &mut queue, &mut receiver, f64::from(half) / 2.0);
        }
        assert_eq!(receiver.got.len(), 0);
        assert!(receiver.attempts < 25, "it is left alone: {} attempts", receiver.attempts);
        receiver.gone = false;
        // Within the longest wait everything is there.
        for second in 3600..3901_u32 {
            turn("a", &mut queue, &mut receiver, f64::from(second));
        }
        let expected: Vec<String> = (0..3600).map(|i| i.to_string()).collect();
        assert_eq!(receiver.got, expected);
        assert_eq!(queue.waiting("a").expect("counted"), 0);
        assert_eq!(queue.given_up("a").expect("counted"), 0);
    }
}
