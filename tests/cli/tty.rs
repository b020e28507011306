//! A person at a terminal: keys in, a screen out. Waits for what is to be seen, never for a time.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use vt100::{Parser, Screen};

/// Long enough for a loaded machine with two cores and a build without optimisation.
const PATIENCE: Duration = Duration::from_mins(2);
/// How often the screen is looked at.
const GLANCE: Duration = Duration::from_millis(5);
/// What begins every picture.
const BEGIN: &[u8] = b"\x1b[?2026h";
/// What ends it.
const END: &[u8] = b"\x1b[?2026l";

/// A terminal with a program in it.
pub(crate) struct Tty {
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn Write + Send>,
    seen: Arc<Mutex<Seen>>,
}

/// What has come from the program so far.
pub(crate) struct Seen {
    parser: Parser,
    /// Every byte.
    pub(crate) bytes: Vec<u8>,
    /// Pictures that have begun to arrive.
    pub(crate) pictures: usize,
}

impl Seen {
    fn take(&mut self, bytes: &[u8]) {
        // A sequence may arrive in two pieces.
        let from = self.bytes.len().saturating_sub(BEGIN.len() - 1);
        self.bytes.extend_from_slice(bytes);
        self.pictures += self.bytes[from..].windows(BEGIN.len()).filter(|w| *w == BEGIN).count();
        self.parser.process(bytes);
    }

    /// Whether the last picture has come to its end: half of one shows things that never were.
    fn is_whole(&self) -> bool {
        let last = |mark: &[u8]| self.bytes.windows(mark.len()).rposition(|w| w == mark);
        !self.screen().alternate_screen() || last(BEGIN) <= last(END)
    }

    /// The screen.
    pub(crate) fn screen(&self) -> &Screen {
        self.parser.screen()
    }

    /// Its text.
    pub(crate) fn text(&self) -> String {
        self.screen().contents()
    }
}

fn at_least_one(cells: u16) -> NonZeroU16 {
    NonZeroU16::new(cells).expect("a terminal has a size")
}

impl Tty {
    /// Starts `program` in `folder`, in a terminal of so many columns and rows that knows 256 colours
    /// and UTF-8, unless `environment` says otherwise.
    pub(crate) fn start(
        program: &str,
        args: &[&str],
        folder: &Path,
        (columns, rows): (u16, u16),
        environment: &[(&str, &str)],
    ) -> Self {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pseudo-terminal");
        let mut command = CommandBuilder::new(program);
        command.args(args);
        command.cwd(folder);
        for name in ["NO_COLOR", "COLORTERM", "COLORFGBG", "LC_ALL", "LC_CTYPE", "RUST_BACKTRACE"] {
            command.env_remove(name);
        }
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        command.env("HEADWATER_CACHE", folder.join("cache"));
        command.env("HEADWATER_CONFIG", folder.join("config"));
        command.env("HEADWATER_LEDGERS", folder.join("ledgers"));
        command.env("HEADWATER_RECORDINGS", folder.join("recordings"));
        for (name, value) in environment {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).expect("the program starts");
        drop(pair.slave);
        let parser = Parser::new(at_least_one(rows), at_least_one(columns), 0);
        let seen = Seen { parser, bytes: Vec::new(), pictures: 0 };
        let seen = Arc::new(Mutex::new(seen));
        let mut output = pair.master.try_clone_reader().expect("the terminal can be read");
        let keyboard = pair.master.take_writer().expect("the terminal can be typed at");
        let shown = Arc::clone(&seen);
        thread::spawn(move || {
            let mut bytes = vec![0; 64 * 1024];
            while let Ok(read @ 1..) = output.read(&mut bytes) {
                shown.lock().expect("nobody panics while looking").take(&bytes[..read]);
            }
        });
        Self { master: pair.master, child, keyboard, seen }
    }

    /// What has come so far.
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("nobody panics while looking")
    }

    /// Types.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal can be typed at");
        self.keyboard.flush().expect("the terminal can be typed at");
    }

    /// Forgets the bytes of all whole pictures: a storm has hundreds of megabytes of them.
    pub(crate) fn forget(&self) {
        let mut seen = self.seen();
        if seen.is_whole() {
            let keep = seen.bytes.len().saturating_sub(BEGIN.len() - 1);
            seen.bytes.drain(..keep);
        }
    }

    /// Waits until `holds` of a whole picture; the failure shows the screen.
    pub(crate) fn wait(&self, what: &str, holds: impl Fn(&Seen) -> bool) {
        drop(self.picture(what, holds));
    }

    /// The same, to look at that picture.
    pub(crate) fn picture(
        &self,
        what: &str,
        holds: impl Fn(&Seen) -> bool,
    ) -> MutexGuard<'_, Seen> {
        let begun = Instant::now();
        loop {
            let seen = self.seen();
            if seen.is_whole() && holds(&seen) {
                return seen;
            }
            assert!(begun.elapsed() < PATIENCE, "never saw {what}:\n{}", seen.text());
            drop(seen);
            thread::sleep(GLANCE);
        }
    }

    /// Waits until the screen shows `text`.
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait(text, |seen| seen.text().contains(text));
    }

    /// Waits until the screen shows `text` no longer.
    pub(crate) fn wait_without(&self, text: &str) {
        self.wait(&format!("the end of {text}"), |seen| !seen.text().contains(text));
    }

    /// Clicks the left button on the first cell of `text`.
    pub(crate) fn click(&mut self, text: &str) {
        let (column, row) = self.find(text);
        self.keys(&format!("\x1b[<0;{column};{row}M\x1b[<0;{column};{row}m"));
    }

    /// Column and row of `text`, counted from 1.
    pub(crate) fn find(&self, text: &str) -> (usize, usize) {
        let screen = self.picture("a picture", |_| true).text();
        let place = screen.lines().enumerate().find_map(|(row, line)| {
            line.find(text).map(|at| (line[..at].chars().count() + 1, row + 1))
        });
        place.unwrap_or_else(|| panic!("{text} is not on the screen:\n{screen}"))
    }

    /// Another size.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        self.seen().parser.screen_mut().set_size(at_least_one(rows), at_least_one(columns));
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        self.master.resize(size).expect("a terminal can be resized");
    }

    /// The program's number.
    pub(crate) fn id(&self) -> u32 {
        self.child.process_id().expect("the program runs")
    }

    /// Waits for the end of the program and of what it says; its exit code.
    pub(crate) fn end(&mut self) -> u32 {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("the program can be waited for") {
                return status.exit_code();
            }
            let screen = self.seen().text();
            assert!(begun.elapsed() < PATIENCE, "the program does not end:\n{screen}");
            thread::sleep(GLANCE);
        }
    }

    /// Waits until the user has the terminal back as it was.
    pub(crate) fn wait_restored(&self) {
        self.wait("the terminal as it was", |seen| {
            let screen = seen.screen();
            !screen.alternate_screen()
                && !screen.hide_cursor()
                && !screen.bracketed_paste()
                && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
        });
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal, as a person does.
pub(crate) fn signal(name: &str, id: u32) {
    let sent = Command::new("kill").args([&format!("-{name}"), &id.to_string()]).status();
    assert!(sent.expect("kill runs").success(), "SIG{name} to {id}");
}
