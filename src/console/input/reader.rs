//! The thread that reads the terminal, and its end.

use std::io;

use crossterm::event::Event;

#[cfg(not(unix))]
pub(super) use other::Reader;
#[cfg(unix)]
pub(super) use unix::Reader;

#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::io::{ErrorKind, PipeReader, PipeWriter, Read as _, stdin};
    use std::os::fd::AsFd as _;
    use std::thread::{self, JoinHandle};
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, poll};

    use super::super::Keys;
    use super::super::bytes::Parser;
    use super::{Event, io};

    /// A thread that reads until this is dropped.
    #[derive(Debug)]
    pub(crate) struct Reader {
        /// Closing it ends the thread, also while the thread waits for a key.
        stop: Option<PipeWriter>,
        thread: Option<JoinHandle<()>>,
    }

    impl Reader {
        /// Reads the terminal. `on_end` gets the reason where nothing more can come.
        pub(crate) fn start(
            keys: Keys,
            on_event: impl FnMut(Event) + Send + 'static,
            on_end: impl FnOnce(io::Error) + Send + 'static,
        ) -> io::Result<Self> {
            // Without the buffer of the standard library: an escape is a key only if nothing waits
            // behind it.
            let terminal = match keys {
                Keys::StandardInput => File::from(stdin().as_fd().try_clone_to_owned()?),
                Keys::Terminal => File::open("/dev/tty")?,
            };
            Self::of(terminal, on_event, on_end)
        }

        pub(super) fn of(
            terminal: File,
            mut on_event: impl FnMut(Event) + Send + 'static,
            on_end: impl FnOnce(io::Error) + Send + 'static,
        ) -> io::Result<Self> {
            let (stopped, stop) = io::pipe()?;
            let read = move || {
                if let Some(error) = read(terminal, &stopped, &mut on_event) {
                    on_end(error);
                }
            };
            let thread = thread::Builder::new().name("keys".into()).spawn(read)?;
            Ok(Self { stop: Some(stop), thread: Some(thread) })
        }
    }

    impl Drop for Reader {
        fn drop(&mut self) {
            self.stop = None;
            if let Some(thread) = self.thread.take() {
                // A panic of the thread was reported by its hook.
                let _ = thread.join();
            }
        }
    }

    /// Reads events until it is stopped or nothing more can come; the reason of the latter.
    ///
    /// crossterm would wait for the end of a paste before it reports anything more, Ctrl-C included.
    fn read(
        mut terminal: File,
        stopped: &PipeReader,
        on_event: &mut dyn FnMut(Event),
    ) -> Option<io::Error> {
        let mut parser = Parser::default();
        let mut bytes = [0; 4096];
        loop {
            let (is_stopped, is_ready) = {
                let wait = PollFlags::IN;
                let mut both = [PollFd::new(stopped, wait), PollFd::new(&terminal, wait)];
                match poll(&mut both, None) {
                    Ok(_) => (!both[0].revents().is_empty(), !both[1].revents().is_empty()),
                    Err(error) if error == rustix::io::Errno::INTR => (false, false),
                    Err(error) => return Some(error.into()),
                }
            };
            if is_stopped {
                return None;
            }
            if !is_ready {
                continue;
            }
            match terminal.read(&mut bytes) {
                Ok(0) => return Some(ErrorKind::UnexpectedEof.into()),
                Ok(read) => parser.read(&bytes[..read], read == bytes.len(), on_event),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Another program made the terminal one that does not wait.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    thread::sleep(Duration::from_millis(10));
                }
                Err(error) => return Some(error),
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use std::io::Write as _;
        use std::os::fd::OwnedFd;
        use std::sync::mpsc;

        use super::*;

        #[test]
        fn what_is_typed_after_the_reader_was_stopped_is_left_for_the_shell() {
            let (mut shell, mut keyboard) = io::pipe().expect("a pipe");
            let (sender, events) = mpsc::channel();
            for round in 0..50 {
                let terminal = File::from(OwnedFd::from(shell.try_clone().expect("a pipe")));
                let sender = sender.clone();
                let on_event = move |event| sender.send(event).expect("the test listens");
                let reader = Reader::of(terminal, on_event, |error| panic!("{error}"));
                let reader = reader.expect("a thread");
                keyboard.write_all(b"a").expect("the pipe has room");
                events.recv().expect("a key");
                drop(reader);
                keyboard.write_all(b"ls").expect("the pipe has room");
                let mut typed = [0; 2];
                shell.read_exact(&mut typed).expect("the shell reads");
                assert_eq!((&typed, events.try_recv().is_err()), (b"ls", true), "round {round}");
            }
        }
    }
}

#[cfg(not(unix))]
mod other {
    use std::thread;

    use super::super::Keys;
    use super::{Event, io};

    /// A thread that reads. It cannot be stopped here: crossterm's wait has no end.
    #[derive(Debug)]
    pub(crate) struct Reader;

    impl Reader {
        pub(crate) fn start(
            _keys: Keys,
            mut on_event: impl FnMut(Event) + Send + 'static,
            on_end: impl FnOnce(io::Error) + Send + 'static,
        ) -> io::Result<Self> {
            let read = move || {
                loop {
                    match crossterm::event::read() {
                        Ok(event) => on_event(event),
                        Err(error) => return on_end(error),
                    }
                }
            };
            thread::Builder::new().name("keys".into()).spawn(read)?;
            Ok(Self)
        }
    }
}
