//! The console's side: an engine that runs in a service elsewhere on this machine.
//!
//! A service that goes away is waited for: the console shows what it has, says that it is cut off, and
//! begins anew when the service is back.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc as std_mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::packet::{self, FROM_SERVICE, Hello, OrderPacket, PROTOCOL, Packet, Welcome, packed};
use super::sound::Sound;
use crate::engine::Handle;
use crate::engine::handle::{Command, EngineEvent, Update};
use crate::incident::Order;
use crate::session::Session;
use crate::stream::live::status::{Shown, Standing};

/// Events that may lie unread on this side; the rest waits at the service.
const QUEUE: usize = 64;
/// Commands that may lie unread.
const COMMANDS: usize = 32;
/// How long a service may take for its greeting.
const GREETING: Duration = Duration::from_secs(5);
/// How often a service that is gone is looked for.
const AGAIN: Duration = Duration::from_millis(500);

/// A service that was joined.
pub(crate) struct Joined {
    stream: UnixStream,
    address: PathBuf,
    read_only: bool,
    /// What the service runs.
    pub(crate) session: Session,
}

/// The connection as it stands: none while the service is gone.
type Line = Arc<Mutex<Option<UnixStream>>>;

impl Joined {
    /// Joins the service that listens at `address`.
    pub(crate) fn join(address: &Path, read_only: bool) -> Result<Self, String> {
        let shown = address.display();
        if !address.exists() && address.to_string_lossy().contains(':') {
            return Err(format!(
                "{shown} is no address of a service: it is the path of a local socket, as in \
                 `headwater run SESSION --listen PATH`"
            ));
        }
        let (stream, session) =
            connect(address, read_only).map_err(|why| format!("no service at {shown}: {why}"))?;
        Ok(Self { stream, address: address.to_path_buf(), read_only, session })
    }

    pub(crate) fn address(&self) -> &Path {
        &self.address
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// The engine of the service, as if it ran here.
    pub(crate) fn spawn(self) -> io::Result<Handle> {
        let (sender, events) = mpsc::channel(QUEUE);
        let (command_sender, commands) = std_mpsc::sync_channel(COMMANDS);
        let line: Line = Arc::new(Mutex::new(Some(self.stream.try_clone()?)));
        let (heard, ordered) = (Arc::clone(&line), sender.clone());
        thread::Builder::new().name("service".into()).spawn(move || {
            self.follow(&heard, &sender);
        })?;
        thread::Builder::new().name("orders".into()).spawn(move || {
            for command in commands {
                let done = match command {
                    Command::Order(order) => write_order(&line, &order),
                    Command::Pace(_) | Command::Step | Command::RunTo(_) => {
                        Err("a service goes at its own speed".to_owned())
                    }
                    Command::WhatIf(_) | Command::WhatIfPaid(_) | Command::Branch { .. } => {
                        Err("a service keeps no past to try settings on".to_owned())
                    }
                };
                if let Err(why) = done
                    && ordered.blocking_send(EngineEvent::Ordered(Err(why))).is_err()
                {
                    break;
                }
            }
            // The console has gone: nothing more is read.
            close(&line);
        })?;
        Ok(Handle::elsewhere(events, command_sender))
    }

    /// Hands on the events of the service, and looks for it again where it is gone.
    fn follow(mut self, line: &Line, events: &mpsc::Sender<EngineEvent>) {
        loop {
            let why = match self.read_all(events) {
                Ok(()) => return,
                Err(why) => why,
            };
            close(line);
            let since = Instant::now();
            loop {
                if events.blocking_send(self.gone(since, &why)).is_err() {
                    return;
                }
                if let Ok((stream, _)) = connect(&self.address, self.read_only) {
                    let kept = stream.try_clone().ok();
                    *line.lock().unwrap_or_else(PoisonError::into_inner) = kept;
                    self.stream = stream;
                    break;
                }
                thread::sleep(AGAIN);
            }
        }
    }

    /// Reads until the console is gone; an error says why the service is.
    fn read_all(&mut self, events: &mpsc::Sender<EngineEvent>) -> Result<(), String> {
        let mut sound = Sound::default();
        loop {
            let packet: Packet =
                packet::read_packet(&mut self.stream, FROM_SERVICE).map_err(|why| {
                    match why.kind() {
                        io::ErrorKind::UnexpectedEof => {
                            "it has ended, or left this console out".into()
                        }
                        _ => why.to_string(),
                    }
                })?;
            let event = sound.event(packet)?;
            if events.blocking_send(event).is_err() {
                return Ok(());
            }
        }
    }

    /// The service is gone: how that is shown.
    fn gone(&self, since: Instant, why: &str) -> EngineEvent {
        let seconds = since.elapsed().as_secs();
        let place = self.address.display();
        let live = Shown {
            standing: Standing::Reconnecting,
            since: since.elapsed(),
            words: format!("service {place}: gone for {seconds} s ({why})"),
            lag: None,
            values_per_s: 0.0,
            left_out: 0,
            stale: Vec::new(),
        };
        EngineEvent::News(Box::new(Update { live: Some(Box::new(live)), ..Update::default() }))
    }
}

fn connect(address: &Path, read_only: bool) -> Result<(UnixStream, Session), String> {
    let greet = || -> io::Result<(UnixStream, Welcome)> {
        let mut stream = UnixStream::connect(address)?;
        stream.set_read_timeout(Some(GREETING))?;
        let hello = Hello { protocol: PROTOCOL, read_only };
        packet::write(&mut stream, &packet::greeting(&hello)?)?;
        let welcome = packet::read_greeting(&mut stream, FROM_SERVICE)?;
        stream.set_read_timeout(None)?;
        Ok((stream, welcome))
    };
    let (stream, welcome) = greet().map_err(|why| why.to_string())?;
    Ok((stream, welcome.session()?))
}

fn write_order(line: &Line, order: &Order) -> Result<(), String> {
    let mut line = line.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(stream) = line.as_mut() else {
        return Err("the service is gone: nothing was done".to_owned());
    };
    let packet = OrderPacket::of(order).map_err(|why| why.to_string())?;
    let bytes = packed(&packet).map_err(|why| why.to_string())?;
    packet::write(stream, &bytes).map_err(|why| format!("nothing was done: {why}"))
}

fn close(line: &Line) {
    if let Some(stream) = line.lock().unwrap_or_else(PoisonError::into_inner).take() {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}
