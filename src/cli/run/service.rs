//! `run` as a service of systemd: reports that the program is ready, and that it still lives.
//!
//! Elsewhere nothing happens: the environment does not ask for it.

use std::io;
use std::time::{Duration, Instant};

use tracing_subscriber::EnvFilter;

/// Logs go to standard error, as much as `HEADWATER_LOG` asks for ("warn" when it does not).
pub(super) fn log() {
    // The state of the source says what the OPC UA library would log, in words of this program.
    let usual = "warn,opcua_client=off,opcua_core=off,opcua_crypto=off,opcua_types=off";
    let filter = EnvFilter::try_from_env("HEADWATER_LOG").unwrap_or_else(|_| EnvFilter::new(usual));
    // A second attempt in one process changes nothing.
    let _ = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_env_filter(filter)
        .try_init();
}

/// The supervisor of the program, such as systemd.
#[derive(Debug)]
pub(super) struct Service {
    socket: Option<String>,
    /// How often a sign of life is wanted, and when the last one was given.
    every: Option<Duration>,
    told: Option<Instant>,
}

impl Service {
    pub(super) fn of_environment() -> Self {
        let socket = std::env::var("NOTIFY_SOCKET").ok().filter(|socket| !socket.is_empty());
        let micros = std::env::var("WATCHDOG_USEC").ok().and_then(|text| text.parse().ok());
        // Half of what is asked for, so that one that comes late is not too late.
        let every = micros.map(|micros: u64| Duration::from_micros(micros) / 2);
        Self { socket, every, told: None }
    }

    /// The engine has given a sign of life.
    pub(super) fn lives(&mut self) {
        let Some(socket) = &self.socket else { return };
        let now = Instant::now();
        if self.told.is_none() {
            self.told = Some(now);
            send(socket, "READY=1");
        } else if let (Some(every), Some(told)) = (self.every, self.told)
            && now.duration_since(told) >= every
        {
            self.told = Some(now);
            send(socket, "WATCHDOG=1");
        }
    }

    pub(super) fn stops(&self) {
        if let Some(socket) = &self.socket {
            send(socket, "STOPPING=1");
        }
    }
}

#[cfg(target_os = "linux")]
fn send(socket: &str, state: &str) {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    let send = || -> io::Result<usize> {
        let address = match socket.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(socket)?,
        };
        UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)
    };
    if let Err(why) = send() {
        tracing::warn!("the service manager cannot be reached: {why}");
    }
}

#[cfg(not(target_os = "linux"))]
fn send(_socket: &str, _state: &str) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn the_service_manager_hears_that_it_is_ready_and_lives() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).expect("a socket");
        let mut service = Service {
            socket: Some(path.to_string_lossy().into_owned()),
            every: Some(Duration::ZERO),
            told: None,
        };
        service.lives();
        service.lives();
        service.stops();
        let heard = || {
            let mut bytes = [0; 64];
            let read = manager.recv(&mut bytes).expect("a word");
            String::from_utf8_lossy(&bytes[..read]).into_owned()
        };
        assert_eq!([heard(), heard(), heard()], ["READY=1", "WATCHDOG=1", "STOPPING=1"]);
    }
}
