//! What the system may ask of the program while it runs.

use std::io;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    End(Signal),
    Stop,
    /// To go on after having been stopped: another program may have used the terminal.
    GoOn,
    /// To draw at the terminal's new size.
    Resize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signal {
    pub name: &'static str,
    pub number: u8,
}

#[cfg(not(unix))]
pub(crate) use other::Signals;
#[cfg(unix)]
pub(crate) use unix::Signals;

#[cfg(unix)]
mod unix {
    use std::time::Duration;

    use rustix::process::{
        Signal as Number, getpgid, getpgrp, getppid, getsid, kill_current_process_group,
    };
    use tokio::signal::unix::{Signal as Listener, SignalKind, signal};

    use super::{Request, Signal, io};

    /// How long to wait for a stop that may never come.
    const STOP: Duration = Duration::from_millis(100);

    pub(crate) struct Signals {
        hang_up: Listener,
        interrupt: Listener,
        quit: Listener,
        terminate: Listener,
        stop: Listener,
        go_on: Listener,
        resize: Listener,
    }

    impl Signals {
        pub(crate) fn listen() -> io::Result<Self> {
            Ok(Self {
                hang_up: signal(SignalKind::hangup())?,
                interrupt: signal(SignalKind::interrupt())?,
                quit: signal(SignalKind::quit())?,
                terminate: signal(SignalKind::terminate())?,
                stop: signal(SignalKind::from_raw(Number::TSTP.as_raw()))?,
                go_on: signal(SignalKind::from_raw(Number::CONT.as_raw()))?,
                resize: signal(SignalKind::window_change())?,
            })
        }

        pub(crate) async fn next(&mut self) -> Request {
            let end =
                |name, number: Number| Request::End(Signal { name, number: number.as_raw() as u8 });
            tokio::select! {
                _ = self.hang_up.recv() => end("SIGHUP", Number::HUP),
                _ = self.interrupt.recv() => end("SIGINT", Number::INT),
                _ = self.quit.recv() => end("SIGQUIT", Number::QUIT),
                _ = self.terminate.recv() => end("SIGTERM", Number::TERM),
                _ = self.stop.recv() => Request::Stop,
                _ = self.go_on.recv() => Request::GoOn,
                _ = self.resize.recv() => Request::Resize,
            }
        }

        /// Stops the program and its parents in the same job, and returns when it goes on.
        ///
        /// The stop is one that cannot be caught, since the one that can is ours now. The system would
        /// spare a job that could not be woken again; this returns at once then.
        pub(crate) async fn stop(&mut self) -> io::Result<()> {
            if !has_shell() {
                return Ok(());
            }
            kill_current_process_group(Number::STOP)?;
            tokio::select! {
                _ = self.go_on.recv() => {}
                () = tokio::time::sleep(STOP) => {}
            }
            Ok(())
        }
    }

    /// Whether the parent is in the same session and in another job: a shell that can wake this one.
    fn has_shell() -> bool {
        let Some(parent) = getppid() else { return false };
        getsid(Some(parent)).is_ok_and(|session| getsid(None) == Ok(session))
            && getpgid(Some(parent)).is_ok_and(|job| job != getpgrp())
    }
}

#[cfg(not(unix))]
mod other {
    use super::{Request, Signal, io};

    pub(crate) struct Signals;

    impl Signals {
        pub(crate) fn listen() -> io::Result<Self> {
            Ok(Self)
        }

        pub(crate) async fn next(&mut self) -> Request {
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
            Request::End(Signal { name: "interrupt", number: 2 })
        }

        pub(crate) async fn stop(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}
