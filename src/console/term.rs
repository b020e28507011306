//! The terminal: taken, given back whatever happens, and written to once per frame.

use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{mem, panic};

use crossterm::cursor::{Hide, Show};
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{
    self, BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen,
};
use crossterm::{execute, queue, style};
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tokio::sync::Notify;

mod base64;
mod capture;

use capture::{Capture, Release};

/// Whether the terminal is ours right now. It is one for the whole process, and the panic hook must
/// be able to give it back from any thread.
static TAKEN: AtomicBool = AtomicBool::new(false);
static PANICKED: Notify = Notify::const_new();

/// A terminal that shows one picture after the other. Giving it up restores the user's screen.
#[derive(Debug)]
pub(crate) struct Term {
    shown: Buffer,
    next: Buffer,
    whole: bool,
    mouse: bool,
}

impl Term {
    pub(crate) fn take(mouse: bool) -> io::Result<Self> {
        restore_on_panic();
        // Styles are ours to choose: crossterm's own reading of NO_COLOR resets bold and reverse.
        style::force_color_output(true);
        let mut term =
            Self { shown: Buffer::default(), next: Buffer::default(), whole: true, mouse };
        term.enter()?;
        Ok(term)
    }

    /// Takes it again after [`restore`], as it is now, and forgets what it showed. Also right when
    /// it was never given away but may have been touched.
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        TAKEN.store(true, Ordering::SeqCst);
        // Out of raw mode and into it again: the modes in force may not be ours any more.
        terminal::disable_raw_mode()?;
        terminal::enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, Hide, EnableBracketedPaste)?;
        self.capture(self.mouse)?;
        self.repaint();
        Ok(())
    }

    /// Forgets what is shown, so that the next picture is drawn whole, at whatever size the terminal
    /// then has: a storm of new sizes costs one picture, not one each.
    ///
    /// `ratatui::Terminal::clear` is not used: it asks the terminal for the cursor's place and
    /// waits for an answer that the thread reading the keys would take away.
    pub(crate) fn repaint(&mut self) {
        self.whole = true;
    }

    pub(crate) fn area(&self) -> Rect {
        self.shown.area
    }

    pub(crate) fn capture(&mut self, mouse: bool) -> io::Result<()> {
        self.mouse = mouse;
        if mouse { execute!(io::stdout(), Capture) } else { execute!(io::stdout(), Release) }
    }

    /// Shows what `view` draws: the cells that changed, in one write, and nothing if none did.
    /// Returns what `view` returned.
    pub(crate) fn draw<T: Default>(
        &mut self,
        view: impl FnOnce(&mut Buffer) -> T,
    ) -> io::Result<T> {
        if !TAKEN.load(Ordering::SeqCst) {
            return Ok(T::default());
        }
        let whole = mem::take(&mut self.whole);
        if whole {
            let (columns, rows) = terminal::size()?;
            let area = Rect::new(0, 0, columns, rows);
            self.shown = Buffer::empty(area);
            self.next = Buffer::empty(area);
        } else {
            self.next.reset();
        }
        let told = view(&mut self.next);
        let page = page(&self.shown, &self.next, whole)?;
        if !page.is_empty() {
            let mut out = io::stdout().lock();
            out.write_all(&page)?;
            out.flush()?;
            mem::swap(&mut self.shown, &mut self.next);
        }
        Ok(told)
    }
}

/// The bytes that turn one picture into the next, as one update that the terminal shows at once; none
/// where nothing changes.
pub(crate) fn page(shown: &Buffer, next: &Buffer, whole: bool) -> io::Result<Vec<u8>> {
    let changes = shown.diff(next);
    if changes.is_empty() && !whole {
        return Ok(Vec::new());
    }
    let mut page = Vec::with_capacity(16 * 1024);
    queue!(page, BeginSynchronizedUpdate)?;
    if whole {
        queue!(page, Clear(ClearType::All))?;
    }
    CrosstermBackend::new(&mut page).draw(changes.into_iter())?;
    queue!(page, EndSynchronizedUpdate)?;
    Ok(page)
}

impl Drop for Term {
    fn drop(&mut self) {
        restore();
    }
}

/// Hands `text` to the clipboard of the operator's own machine, however far away (OSC 52).
pub(crate) fn copy(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "\x1b]52;c;{}\x1b\\", base64::encode(text.as_bytes()))?;
    out.flush()
}

pub(crate) fn ring() -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(b"\x07")?;
    out.flush()
}

/// Gives the terminal back if it is taken. A failure cannot be reported any more.
pub(crate) fn restore() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(
            io::stdout(),
            EndSynchronizedUpdate,
            Release,
            DisableBracketedPaste,
            LeaveAlternateScreen,
            Show
        );
        let _ = terminal::disable_raw_mode();
    }
}

/// Returns once a thread has panicked: the terminal has been given back and the panic printed there, and
/// whatever that thread did is not being done any more.
pub(crate) async fn panicked() {
    PANICKED.notified().await;
}

/// A panic of any thread is printed on the user's own screen.
fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let tell = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore();
            tell(info);
            PANICKED.notify_one();
        }));
    });
}
