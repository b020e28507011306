//! Operator input: read on a separate thread, kept in a queue of limited length.
//!
//! Guarantees:
//! - Reading never waits for the console, so Ctrl-C is seen however much was sent before it.
//! - An unfinished paste or sequence does not hide it either.
//! - Ctrl-C discards what still waits before it, as a terminal does that makes a signal of it.
//! - Movements of the mouse that wait one behind the other become one: the last.
//! - No more than [`MOST`] events wait. What comes beyond is left out, counted and reported.
//! - After [`Input::stop`] nothing more is read: keys typed from then on are the shell's.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, mem};

use crossterm::event::{Event, KeyCode, KeyModifiers, MouseEventKind};
use tokio::sync::Notify;

#[cfg(unix)]
mod bytes;
mod reader;

use reader::Reader;

/// Events that may wait. Only a paste without brackets has more.
const MOST: usize = 1024;

/// Where keys come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Keys {
    #[default]
    StandardInput,
    /// The terminal that the program was started from: standard input brings measurements.
    Terminal,
}

impl Keys {
    /// Whether they can come from there.
    pub(crate) fn are_there(self) -> bool {
        match self {
            Self::StandardInput => io::IsTerminal::is_terminal(&io::stdin()),
            Self::Terminal => std::fs::File::open("/dev/tty").is_ok(),
        }
    }
}

/// Reads bytes as a terminal sends them, in pieces of this length: how many events they are, and how many
/// of these are Ctrl-C.
#[cfg(unix)]
pub(crate) fn read_keys(bytes: &[u8], piece: usize) -> (usize, usize) {
    let mut parser = bytes::Parser::default();
    let (mut events, mut interrupts) = (0, 0);
    for part in bytes.chunks(piece.max(1)) {
        parser.read(part, false, &mut |event| {
            events += 1;
            interrupts += usize::from(is_interrupt(&event));
        });
    }
    (events, interrupts)
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Event(Event),
    /// So many events came faster than they could be answered, and were left out.
    LeftOut(u64),
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Event>,
    left_out: u64,
    end: Option<io::Error>,
}

impl Queue {
    #[expect(clippy::wildcard_enum_match_arm, reason = "every other event waits")]
    fn add(&mut self, event: Event) {
        match &event {
            event if is_interrupt(event) => {
                self.waiting.clear();
                self.left_out = 0;
            }
            // The size is asked for when a picture is drawn: one word that it changed is enough, and
            // that one is never left out.
            Event::Resize(..) if self.waiting.iter().any(|e| matches!(e, Event::Resize(..))) => {
                return;
            }
            Event::Resize(..) => {}
            // What is left out is one stretch: without it, letters of a text would be picked at
            // random and taken for commands.
            _ if self.left_out > 0 || self.waiting.len() >= MOST && !self.replaces_last(&event) => {
                self.left_out += 1;
                return;
            }
            _ => {}
        }
        if self.replaces_last(&event) {
            self.waiting.pop_back();
        }
        self.waiting.push_back(event);
    }

    /// Whether `event` moves the mouse on from where the last event that waits has moved it.
    fn replaces_last(&self, event: &Event) -> bool {
        let (Some(Event::Mouse(last)), Event::Mouse(event)) = (self.waiting.back(), event) else {
            return false;
        };
        let moves = matches!(event.kind, MouseEventKind::Moved | MouseEventKind::Drag(_));
        moves && self.left_out == 0 && last.kind == event.kind && last.modifiers == event.modifiers
    }

    fn take(&mut self) -> Option<io::Result<Sent>> {
        if let Some(event) = self.waiting.pop_front() {
            return Some(Ok(Sent::Event(event)));
        }
        if self.left_out > 0 {
            return Some(Ok(Sent::LeftOut(mem::take(&mut self.left_out))));
        }
        self.end.take().map(Err)
    }
}

fn is_interrupt(event: &Event) -> bool {
    let Event::Key(key) = event else { return false };
    key.is_press()
        && key.code == KeyCode::Char('c')
        && key.modifiers.contains(KeyModifiers::CONTROL)
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    added: Notify,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Input {
    shared: Arc<Shared>,
    reader: Option<Reader>,
    keys: Keys,
}

impl Input {
    /// Reads the terminal from now on. The thread sleeps in the system until something is sent.
    pub(crate) fn listen(keys: Keys) -> io::Result<Self> {
        let mut input = Self { keys, ..Self::default() };
        input.resume()?;
        Ok(input)
    }

    /// Reads no more. What was read and not answered stays in the queue. To be called before the
    /// terminal is given back, or the reader takes keys that are meant for the shell.
    pub(crate) fn stop(&mut self) {
        self.reader = None;
    }

    /// Reads again after [`Input::stop`].
    pub(crate) fn resume(&mut self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let ended = Arc::clone(&self.shared);
        self.reader = Some(Reader::start(
            self.keys,
            move |event| {
                shared.queue().add(event);
                shared.added.notify_one();
            },
            move |error| {
                ended.queue().end = Some(error);
                ended.added.notify_one();
            },
        )?);
        Ok(())
    }

    /// The next thing that was sent; an error is the last. Nothing is lost if this is not waited for
    /// to its end.
    pub(crate) async fn next(&mut self) -> io::Result<Sent> {
        loop {
            // Signals and the time of the next picture are looked at between two turns of the
            // runtime: a flood must leave room for them.
            tokio::task::coop::consume_budget().await;
            let taken = self.shared.queue().take();
            match taken {
                Some(sent) => return sent,
                // Something added in the meantime has left its word.
                None => self.shared.added.notified().await,
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn send(&self, event: Event) {
        self.shared.queue().add(event);
        self.shared.added.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyEvent, MouseButton, MouseEvent};
    use proptest::prelude::*;

    use super::*;

    fn key(c: char) -> Event {
        Event::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE))
    }

    fn control_c() -> Event {
        Event::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL))
    }

    fn mouse(kind: MouseEventKind, column: u16) -> Event {
        Event::Mouse(MouseEvent { kind, column, row: 2, modifiers: KeyModifiers::NONE })
    }

    fn all(queue: &mut Queue) -> Vec<Sent> {
        std::iter::from_fn(|| queue.take()).map(|sent| sent.expect("nothing fails")).collect()
    }

    #[test]
    fn control_c_overtakes_everything_that_waits() {
        let mut queue = Queue::default();
        (0..1_000_000).for_each(|_| queue.add(key('a')));
        queue.add(control_c());
        queue.add(key('b'));
        let sent = all(&mut queue);
        assert_eq!(sent, [Sent::Event(control_c()), Sent::Event(key('b'))]);
    }

    #[test]
    fn a_flood_is_cut_once_counted_and_told_and_the_keys_after_it_count_again() {
        let mut queue = Queue::default();
        (0..MOST + 7).for_each(|_| queue.add(key('a')));
        // One is answered: there is room, but the text has its hole already.
        assert_eq!(queue.take().map(Result::ok), Some(Some(Sent::Event(key('a')))));
        queue.add(key('b'));
        queue.add(Event::Resize(80, 24));
        let sent = all(&mut queue);
        assert_eq!(sent.len(), MOST - 1 + 2);
        let last = [Sent::Event(Event::Resize(80, 24)), Sent::LeftOut(8)];
        assert_eq!(sent[MOST - 1..], last, "a new size is never left out");
        queue.add(key('c'));
        assert_eq!(all(&mut queue), [Sent::Event(key('c'))]);
    }

    #[test]
    fn movements_of_the_mouse_become_the_last_one_and_notches_of_the_wheel_all_count() {
        let mut queue = Queue::default();
        let drag = MouseEventKind::Drag(MouseButton::Left);
        queue.add(mouse(MouseEventKind::Down(MouseButton::Left), 1));
        (1..=200).for_each(|column| queue.add(mouse(drag, column)));
        queue.add(mouse(MouseEventKind::Up(MouseButton::Left), 200));
        (0..3).for_each(|_| queue.add(mouse(MouseEventKind::ScrollDown, 200)));
        let sent = all(&mut queue);
        assert_eq!(sent.len(), 6);
        assert_eq!(sent[1], Sent::Event(mouse(drag, 200)));
    }

    proptest! {
        #[test]
        fn the_queue_never_grows_beyond_its_bound_and_every_key_is_answered_or_counted(
            sent in prop::collection::vec((0_u8..4, 0_usize..3000), 0..12)
        ) {
            let mut queue = Queue::default();
            let (mut keys, mut answered) = (0, 0);
            for (what, count) in sent {
                for _ in 0..count {
                    match what {
                        0 | 1 => {
                            keys += 1;
                            queue.add(key('a'));
                        }
                        2 => queue.add(Event::Resize(80, 24)),
                        _ => match queue.take() {
                            Some(Ok(Sent::Event(Event::Key(_)))) => answered += 1,
                            Some(Ok(Sent::LeftOut(count))) => answered += count,
                            _ => {}
                        },
                    }
                    prop_assert!(queue.waiting.len() <= MOST + 1);
                }
            }
            for sent in all(&mut queue) {
                match sent {
                    Sent::Event(Event::Key(_)) => answered += 1,
                    Sent::Event(_) => {}
                    Sent::LeftOut(count) => answered += count,
                }
            }
            prop_assert_eq!(answered, keys);
        }
    }
}
