//! Ctrl-C and SIGTERM as a wish: the first one asks a long job to stop, the second one ends the
//! program.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use crate::draft;

/// A flag that the first Ctrl-C or SIGTERM raises; `kept` says what becomes of what was done so far.
/// From the return on, no signal of these ends the program by itself.
pub(super) fn watch(kept: &'static str) -> Arc<AtomicBool> {
    let wanted = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&wanted);
    let (ready, is_ready) = mpsc::channel::<()>();
    // Without this thread Ctrl-C still ends the program, only less gently: not worth an error.
    let _ = std::thread::Builder::new().name("interrupt".into()).spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        runtime.block_on(async {
            let Ok(mut signals) = Signals::new() else { return };
            drop(ready);
            signals.next().await;
            raised.store(true, Ordering::Relaxed);
            let _ = writeln!(io::stderr(), "\nstopping: {kept} (Ctrl-C again leaves at once)");
            signals.next().await;
            let partial = draft::leave().len();
            if partial > 0 {
                let files = if partial == 1 { "file is" } else { "files are" };
                let _ = writeln!(io::stderr(), "left at once: {partial} partial {files} removed");
            }
            std::process::exit(130);
        });
    });
    // The other end is dropped when the signals are caught, or when they cannot be.
    let _ = is_ready.recv();
    wanted
}

/// The signals that ask for an end.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// The signals that ask for an end.
#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn new() -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) {
        self.0.recv().await;
    }
}
