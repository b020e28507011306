//! Ctrl-C and SIGTERM as a wish: the first one asks a long job to stop, the second one ends the
//! program. After a SIGTERM the program also ends by itself when the job does not stop in time.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use crate::base::atomic_file;

/// So long after SIGTERM work that has not reached a point where it can stop is ended. Supervisors kill
/// after ten seconds or more.
#[cfg(unix)]
const GRACE: std::time::Duration = std::time::Duration::from_secs(5);

/// A flag that the first Ctrl-C or SIGTERM raises; `kept` says what becomes of what was done so far.
/// From the return on, no signal of these ends the program by itself.
pub(super) fn watch(kept: &'static str) -> Arc<AtomicBool> {
    watch_and(kept, None)
}

/// The same for work that may take minutes to reach a point where it can stop: Ctrl-C waits for
/// that, SIGTERM ends the program at once, as a failure that says `left`.
pub(super) fn watch_slow(kept: &'static str, left: &'static str) -> Arc<AtomicBool> {
    watch_and(kept, Some(left))
}

fn watch_and(kept: &'static str, at_once: Option<&'static str>) -> Arc<AtomicBool> {
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
            let first = signals.next().await;
            if first == Signal::Interrupt || at_once.is_none() {
                raised.store(true, Ordering::Relaxed);
                let _ = writeln!(io::stderr(), "\nstopping: {kept} (Ctrl-C again leaves at once)");
                let second = match first {
                    Signal::Interrupt => Some(signals.next().await),
                    // There is no second signal to wait for.
                    #[cfg(unix)]
                    Signal::Terminate => tokio::time::timeout(GRACE, signals.next()).await.ok(),
                };
                if second.is_none() {
                    leave();
                    let _ = writeln!(
                        io::stderr(),
                        "headwater: ended within {} s of SIGTERM, in the middle of its work",
                        GRACE.as_secs()
                    );
                    std::process::exit(1);
                }
                if second == Some(Signal::Interrupt) || at_once.is_none() {
                    leave();
                    std::process::exit(130);
                }
            }
            leave();
            let _ = writeln!(io::stderr(), "headwater: {}", at_once.unwrap_or_default());
            std::process::exit(1);
        });
    });
    // The other end is dropped when the signals are caught, or when they cannot be.
    let _ = is_ready.recv();
    wanted
}

/// Removes the partial files of a program that is about to end.
fn leave() {
    let partial = atomic_file::leave().len();
    if partial > 0 {
        let files = if partial == 1 { "file is" } else { "files are" };
        let _ = writeln!(io::stderr(), "left at once: {partial} partial {files} removed");
    }
}

/// Who asks for an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, where there is such a thing.
    #[cfg(unix)]
    Terminate,
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

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
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

    async fn next(&mut self) -> Signal {
        self.0.recv().await;
        Signal::Interrupt
    }
}
