//! Ctrl-C, SIGTERM and SIGHUP as a wish: the first one asks a long job to stop, the second one ends the
//! program. After a SIGTERM or SIGHUP the program also ends by itself when the job does not stop in time.
//! A SIGHUP that the program was started to ignore (`nohup`) stays ignored.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crate::base::atomic_file;
use crate::base::notice::print_notice;

/// So long after SIGTERM work that has not reached a point where it can stop is ended. Supervisors kill
/// after ten seconds or more.
#[cfg(unix)]
const GRACE: Duration = Duration::from_secs(5);
/// So long after Ctrl-C slow work is ended where it is. A little more than what it takes to show what is
/// finished.
const SLOW_GRACE: Duration = Duration::from_millis(2500);

/// A flag that the first Ctrl-C, SIGTERM or SIGHUP raises; `kept` says what becomes of what was done so
/// far. From the return on, no signal of these ends the program by itself.
pub(super) fn watch(kept: &'static str) -> Arc<AtomicBool> {
    watch_and(kept, None, HangUp::Ends)
}

/// The same for a program to which SIGHUP means something else.
pub(super) fn watch_without_hang_up(kept: &'static str) -> Arc<AtomicBool> {
    watch_and(kept, None, HangUp::IsNotOurs)
}

/// The same for work that may take minutes to reach a point where it can stop: after Ctrl-C it is ended
/// where it is, once there was time to show what is finished; SIGTERM ends the program at once. Both as a
/// failure that says `left`.
pub(super) fn watch_slow(kept: &'static str, left: &'static str) -> Arc<AtomicBool> {
    watch_and(kept, Some(left), HangUp::Ends)
}

/// What SIGHUP means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HangUp {
    Ends,
    IsNotOurs,
}

fn watch_and(
    kept: &'static str,
    at_once: Option<&'static str>,
    hang_up: HangUp,
) -> Arc<AtomicBool> {
    let wanted = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&wanted);
    let (ready, is_ready) = mpsc::channel::<()>();
    // Without this thread Ctrl-C still ends the program, only less gently: not worth an error.
    let _ = std::thread::Builder::new().name("interrupt".into()).spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        runtime.block_on(async {
            let Ok(mut signals) = Signals::new(hang_up) else { return };
            drop(ready);
            let first = signals.next().await;
            if first == Signal::Interrupt || at_once.is_none() {
                raised.store(true, Ordering::Relaxed);
                let _ = writeln!(io::stderr(), "\nstopping: {kept} (Ctrl-C again leaves at once)");
                let second = match first {
                    Signal::Interrupt if at_once.is_some() => {
                        let second = tokio::time::timeout(SLOW_GRACE, signals.next()).await;
                        Some(second.unwrap_or(Signal::TimeIsOver))
                    }
                    Signal::Interrupt | Signal::TimeIsOver => Some(signals.next().await),
                    // There is no second signal to wait for.
                    #[cfg(unix)]
                    Signal::Terminate => tokio::time::timeout(GRACE, signals.next()).await.ok(),
                };
                if second.is_none() {
                    leave();
                    let within = format!("ended within {} s of SIGTERM", GRACE.as_secs());
                    print_notice(format!("{within}, in the middle of its work"));
                    std::process::exit(1);
                }
                if second == Some(Signal::Interrupt) || at_once.is_none() {
                    leave();
                    std::process::exit(130);
                }
            }
            leave();
            print_notice(at_once.unwrap_or_default());
            std::process::exit(1);
        });
    });
    // The other end is dropped when the signals are caught, or when they cannot be.
    let _ = is_ready.recv();
    wanted
}

/// Ends the program in the middle of its work, as a failure.
pub(super) fn end(why: &str) -> ! {
    leave();
    print_notice(why);
    std::process::exit(1)
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
    /// SIGTERM or SIGHUP, where there is such a thing.
    #[cfg(unix)]
    Terminate,
    /// Nobody asked again, and the work goes on.
    TimeIsOver,
}

/// The signals that ask for an end.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    fn new(hang_up: HangUp) -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let ends = hang_up == HangUp::Ends && !ignores_hang_up();
        let hang_up = if ends { Some(signal(SignalKind::hangup())?) } else { None };
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: signal(SignalKind::terminate())?, hang_up })
    }

    async fn next(&mut self) -> Signal {
        let hang_up = async {
            match &mut self.hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
            _ = hang_up => Signal::Terminate,
        }
    }
}

/// Whether the program was started with SIGHUP ignored. Where that cannot be told it counts as ignored:
/// then SIGHUP means what it means to any program.
#[cfg(unix)]
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_none_or(|mask| mask & 1 != 0)
}

/// The signals that ask for an end.
#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn new(_: HangUp) -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) -> Signal {
        self.0.recv().await;
        Signal::Interrupt
    }
}
