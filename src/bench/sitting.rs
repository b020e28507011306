//! The program itself in a terminal: how soon it shows something, and what it costs while it shows the
//! same.

use std::path::Path;

use crate::session::Session;

#[cfg(unix)]
mod screen;

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
    use rustix::termios::{Winsize, tcsetwinsize};

    use super::Sitting;
    use super::screen::Screen;
    use crate::bench::processor_s;
    use crate::session::Session;

    /// Words of the help that stand on no other screen.
    const HELP: &str = "esc closes";
    const SIZE: Winsize = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
    /// Keys that are timed. At full speed the day is over after a fraction of a second, so each has a
    /// console of its own.
    const KEYS: u32 = 9;
    /// Keys are spread evenly over this time after a picture: the next one is due at its end.
    const FRAME: Duration = Duration::from_millis(33);
    /// Starts that are timed beside those of the other measurements.
    const STARTS: usize = 5;
    /// A console without output and without work for so long is at rest.
    const QUIET: Duration = Duration::from_secs(1);
    /// How long an idle console is watched.
    const WATCHED: Duration = Duration::from_secs(3);
    /// Nothing is waited for longer than this.
    const PATIENCE: Duration = Duration::from_secs(30);
    /// Half a tick of the system's clock: a program that used less than this had nothing to do.
    const NOTHING_S: f64 = 0.005;

    pub(crate) fn sit(session: &Session, cache: &Path) -> io::Result<Sitting> {
        let mut first = Duration::MAX;
        for _ in 1..STARTS {
            first = first.min(Seat::take(session, cache)?.first_picture()?);
        }
        let mut seat = Seat::take(session, cache)?;
        first = first.min(seat.first_picture()?);
        let idle_cpu_percent = seat.idle_percent()?;
        let mut delays = Vec::new();
        for key in 0..KEYS {
            let mut seat = Seat::take(session, cache)?;
            first = first.min(seat.first_picture()?);
            // What takes too long once is not waited for again.
            let Ok(delay) = seat.key_to_frame(FRAME * key / KEYS) else { break };
            delays.push(delay);
        }
        delays.sort_unstable();
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        let key_to_frame_ms = delays.get(delays.len() / 2).copied().map(ms);
        let first_frame_ms = Some(ms(first));
        Ok(Sitting { first_frame_ms, key_to_frame_ms, idle_cpu_percent })
    }

    /// A console in a terminal of its own.
    struct Seat {
        begun: Instant,
        child: Child,
        keyboard: File,
        output: mpsc::Receiver<Vec<u8>>,
        screen: Screen,
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
            // A new pseudo-terminal has no rows and no columns.
            tcsetwinsize(&theirs, SIZE)?;
            let begun = Instant::now();
            let child = Command::new(std::env::current_exe()?)
                .args(["open", &session.name, "--no-record"])
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
            Ok(Self { begun, child, keyboard, output, screen: Screen::default() })
        }

        /// From the start to the end of the first picture.
        fn first_picture(&mut self) -> io::Result<Duration> {
            self.end_of_picture(|_| true)?;
            Ok(self.begun.elapsed())
        }

        /// Waits for the end of a picture that is as `wanted`.
        fn end_of_picture(&mut self, wanted: impl Fn(&Screen) -> bool) -> io::Result<()> {
            let until = Instant::now() + PATIENCE;
            loop {
                // A replay at full speed draws without end: the whole wait is bounded.
                let left = until.saturating_duration_since(Instant::now());
                let bytes = self.output.recv_timeout(left);
                let (false, Ok(bytes)) = (left.is_zero(), bytes) else {
                    return Err(io::ErrorKind::TimedOut.into());
                };
                if self.screen.show(&bytes, &wanted) {
                    return Ok(());
                }
            }
        }

        /// From a key to the end of the picture that shows its effect, while the day is replayed at full
        /// speed: the key opens the help. The built-in day is over in a fraction of a second then, so
        /// the key follows the order of the speed by [`FRAME`] and `after`.
        fn key_to_frame(&mut self, after: Duration) -> io::Result<Duration> {
            self.end_of_picture(|screen| screen.contains("REPLAY"))?;
            self.keyboard.write_all(b":speed max\r")?;
            thread::sleep(FRAME + after);
            let begun = Instant::now();
            self.keyboard.write_all(b"?")?;
            self.end_of_picture(|screen| screen.contains(HELP))?;
            Ok(begun.elapsed())
        }

        /// The share of a core it uses while it stands still; `None` where the system has no such figure.
        fn idle_percent(&mut self) -> io::Result<Option<f64>> {
            self.keyboard.write_all(b" ")?;
            let begun = Instant::now();
            let used_s = || processor_s(self.child.id());
            let Some(mut before) = used_s() else { return Ok(None) };
            // A start on a busy machine may be silent and still have something to do.
            while begun.elapsed() < PATIENCE {
                let silent = self.output.recv_timeout(QUIET).is_err();
                let Some(now) = used_s() else { return Ok(None) };
                let at_rest = silent && now - before < NOTHING_S;
                before = now;
                if at_rest {
                    break;
                }
            }
            thread::sleep(WATCHED);
            Ok(used_s().map(|after| 100.0 * (after - before) / WATCHED.as_secs_f64()))
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
