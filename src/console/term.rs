//! The terminal: taken, given back whatever happens, and written to once per frame.

use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{mem, panic};

use crossterm::cursor::{Hide, Show};
use crossterm::terminal::{
    self, BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen,
};
use crossterm::{execute, queue, style};
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Whether the terminal is ours right now. It is one for the whole process, and the panic hook must
/// be able to give it back from any thread.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// A terminal that shows one picture after the other. Giving it up restores the user's screen.
#[derive(Debug)]
pub struct Term {
    shown: Buffer,
    next: Buffer,
}

impl Term {
    /// Takes the terminal.
    pub fn take() -> io::Result<Self> {
        restore_on_panic();
        // Styles are ours to choose: crossterm's own reading of NO_COLOR resets bold and reverse.
        style::force_color_output(true);
        let mut term = Self { shown: Buffer::default(), next: Buffer::default() };
        term.enter()?;
        Ok(term)
    }

    /// Takes it again after [`restore`], as it is now, and forgets what it showed. Also right when
    /// it was never given away but may have been touched.
    pub fn enter(&mut self) -> io::Result<()> {
        TAKEN.store(true, Ordering::SeqCst);
        // Out of raw mode and into it again: the modes in force may not be ours any more.
        terminal::disable_raw_mode()?;
        terminal::enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        self.repaint()
    }

    /// Forgets what is shown and measures the terminal, so that the next picture is drawn whole.
    ///
    /// `ratatui::Terminal::clear` is not used: it asks the terminal for the cursor's place and
    /// waits for an answer that the thread reading the keys would take away.
    pub fn repaint(&mut self) -> io::Result<()> {
        let (columns, rows) = terminal::size()?;
        let area = Rect::new(0, 0, columns, rows);
        self.shown = Buffer::empty(area);
        self.next = Buffer::empty(area);
        execute!(io::stdout(), Clear(ClearType::All))
    }

    /// Shows what `view` draws: the cells that changed, in one write, and nothing if none did.
    pub fn draw(&mut self, view: impl FnOnce(&mut Buffer)) -> io::Result<()> {
        if !TAKEN.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.next.reset();
        view(&mut self.next);
        let changes = self.shown.diff(&self.next);
        if changes.is_empty() {
            return Ok(());
        }
        let mut page = Vec::with_capacity(16 * 1024);
        queue!(page, BeginSynchronizedUpdate)?;
        CrosstermBackend::new(&mut page).draw(changes.into_iter())?;
        queue!(page, EndSynchronizedUpdate)?;
        let mut out = io::stdout().lock();
        out.write_all(&page)?;
        out.flush()?;
        mem::swap(&mut self.shown, &mut self.next);
        Ok(())
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back if it is taken. Nobody is left to hear about a failure.
pub fn restore() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(io::stdout(), EndSynchronizedUpdate, LeaveAlternateScreen, Show);
        let _ = terminal::disable_raw_mode();
    }
}

/// A panic of any thread is told on the user's own screen.
fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let tell = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore();
            tell(info);
        }));
    });
}
