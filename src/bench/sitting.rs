//! The program itself in a terminal: how soon it shows something, and what it costs while it shows the
//! same.

use std::path::Path;

use crate::session::Session;

/// What was measured; nothing where there is no pseudo-terminal, or where it could not be had.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sitting {
    /// Milliseconds from the start of the process to the end of its first picture; the best of several.
    pub(crate) first_frame_ms: Option<f64>,
    /// Milliseconds from a key to the picture that shows its effect, at full replay speed.
    pub(crate) key_to_frame_ms: Option<f64>,
    /// Percent of one core that a paused console uses.
    pub(crate) idle_cpu_percent: Option<f64>,
}

/// Sits at the console of `session`, whose models lie in `cache`.
#[cfg(unix)]
pub(crate) fn sit(session: &Session, cache: &Path) -> Sitting {
    unix::sit(session, cache).unwrap_or_default()
}

/// There is no pseudo-terminal to sit at.
#[cfg(not(unix))]
pub(crate) fn sit(_: &Session, _: &Path) -> Sitting {
    Sitting::default()
}

#[cfg(unix)]
mod unix {
    use std::ffi::OsStr;
    use std::fs::{File, OpenOptions};
    use std::io::{self, Read, Write};
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::process::{Child, Command};
    use std::sync::mpsc;
    use std::thread;
    use std::time::{Duration, Instant};

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::Sitting;
    use crate::session::Session;

    /// What ends a picture.
    const END: &[u8] = b"\x1b[?2026l";
    /// Words of the help that stand on no other screen. A picture has only changed cells, so one of
    /// them may be broken.
    const HELP: [&[u8]; 3] = [b"searches", b"closes", b"scrolls"];
    /// Keys that are timed, and the time between two.
    const KEYS: usize = 9;
    const PAUSE: Duration = Duration::from_millis(150);
    /// Starts that are timed.
    const STARTS: usize = 5;
    /// A console without output and without work for so long is at rest.
    const QUIET: Duration = Duration::from_secs(1);
    /// How long an idle console is watched.
    const WATCHED: Duration = Duration::from_secs(3);
    /// Nothing is waited for longer than this.
    const PATIENCE: Duration = Duration::from_secs(30);
    /// Ticks a second in which Linux counts a process's time, whatever its kernel's own are.
    const TICKS: f64 = 100.0;

    pub(crate) fn sit(session: &Session, cache: &Path) -> io::Result<Sitting> {
        let mut first = Duration::MAX;
        for _ in 2..STARTS {
            first = first.min(Seat::take(session, cache)?.first_picture()?);
        }
        let mut seat = Seat::take(session, cache)?;
        first = first.min(seat.first_picture()?);
        let idle_cpu_percent = seat.idle_percent()?;
        let mut seat = Seat::take(session, cache)?;
        first = first.min(seat.first_picture()?);
        let ms = |duration: Duration| Some(duration.as_secs_f64() * 1e3);
        let key_to_frame_ms = seat.key_to_frame().ok().and_then(ms);
        Ok(Sitting { first_frame_ms: ms(first), key_to_frame_ms, idle_cpu_percent })
    }

    /// A console in a terminal of its own.
    struct Seat {
        begun: Instant,
        child: Child,
        keyboard: File,
        output: mpsc::Receiver<Vec<u8>>,
    }

    impl Seat {
        fn take(session: &Session, cache: &Path) -> io::Result<Self> {
            let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
            grantpt(&ours)?;
            unlockpt(&ours)?;
            let name = ptsname(&ours, Vec::new())?;
            let theirs = OpenOptions::new()
                .read(true)
                .write(true)
                .open(Path::new(OsStr::from_bytes(name.to_bytes())))?;
            let begun = Instant::now();
            let child = Command::new(std::env::current_exe()?)
                .args(["open", &session.name])
                .env("HEADWATER_CACHE", cache)
                .env("HEADWATER_CONFIG", cache)
                .env("TERM", "xterm-256color")
                .stdin(theirs.try_clone()?)
                .stdout(theirs.try_clone()?)
                .stderr(theirs)
                .spawn()?;
            let (sender, output) = mpsc::channel();
            let mut screen = File::from(ours);
            let keyboard = screen.try_clone()?;
            thread::spawn(move || {
                let mut bytes = vec![0; 64 * 1024];
                while let Ok(read @ 1..) = screen.read(&mut bytes) {
                    if sender.send(bytes[..read].to_vec()).is_err() {
                        return;
                    }
                }
            });
            Ok(Self { begun, child, keyboard, output })
        }

        /// From the start to the end of the first picture.
        fn first_picture(&mut self) -> io::Result<Duration> {
            self.end_of_picture(&[END])?;
            Ok(self.begun.elapsed())
        }

        /// Waits for the end of a picture that shows one of `words`.
        fn end_of_picture(&mut self, words: &[&[u8]]) -> io::Result<()> {
            let place =
                |seen: &[u8], word: &[u8]| seen.windows(word.len()).position(|part| part == word);
            let mut seen = Vec::new();
            let until = Instant::now() + PATIENCE;
            loop {
                // A replay at full speed draws without end: the whole wait is bounded.
                let left = until.saturating_duration_since(Instant::now());
                let Ok(bytes) = self.output.recv_timeout(left) else {
                    return Err(io::ErrorKind::TimedOut.into());
                };
                if left.is_zero() {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                seen.extend_from_slice(&bytes);
                let shown = words.iter().filter_map(|word| place(&seen, word)).min();
                if shown.is_some_and(|at| place(&seen[at..], END).is_some()) {
                    return Ok(());
                }
            }
        }

        /// From a key to the end of the picture that shows its effect, while the day is replayed at full
        /// speed: the median of several. The key opens the help.
        fn key_to_frame(&mut self) -> io::Result<Duration> {
            thread::sleep(PAUSE);
            self.keyboard.write_all(b":speed max\r")?;
            let mut delays = Vec::new();
            for _ in 0..KEYS {
                thread::sleep(PAUSE);
                while self.output.try_recv().is_ok() {}
                let begun = Instant::now();
                self.keyboard.write_all(b"?")?;
                self.end_of_picture(&HELP)?;
                delays.push(begun.elapsed());
                self.keyboard.write_all(b"\x1b")?;
            }
            delays.sort_unstable();
            Ok(delays[KEYS / 2])
        }

        /// The share of a core it uses while it stands still; `None` where the system has no such figure.
        fn idle_percent(&mut self) -> io::Result<Option<f64>> {
            self.keyboard.write_all(b" ")?;
            let begun = Instant::now();
            let Some(mut before) = self.ticks() else { return Ok(None) };
            // A start on a busy machine may be silent and still have something to do.
            while begun.elapsed() < PATIENCE {
                let silent = self.output.recv_timeout(QUIET).is_err();
                let Some(now) = self.ticks() else { return Ok(None) };
                let at_rest = silent && now - before < 1.0;
                before = now;
                if at_rest {
                    break;
                }
            }
            thread::sleep(WATCHED);
            let used = self.ticks().map(|after| (after - before) / TICKS);
            Ok(used.map(|used| 100.0 * used / WATCHED.as_secs_f64()))
        }

        /// Ticks that the program has used so far.
        fn ticks(&self) -> Option<f64> {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
            // The name in brackets may hold anything; user and system time are the 12th and 13th
            // number behind it.
            let mut numbers = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
            let mut next = || numbers.next()?.parse::<f64>().ok();
            Some(next()? + next()?)
        }
    }

    impl Drop for Seat {
        fn drop(&mut self) {
            // It may have ended by itself.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
