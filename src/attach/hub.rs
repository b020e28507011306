//! The service's side: a socket that consoles join at, and what is sent to each of them.
//!
//! What was sent is kept for consoles that join later, the newest [`KEPT_BYTES`] of it; of what is older
//! only incidents and the last [`KEPT_EVENTS`] entries of the log stay.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};
use std::{fs, thread};

use super::desk::{Giver, OrderDesk};
use super::packet::{
    self, FROM_CONSOLE, Hello, NewsPacket, OrderPacket, PROTOCOL, Packet, Welcome, packed,
};
use crate::engine::handle::EngineEvent;
use crate::incident::Incident;
use crate::session::Session;

/// Bytes of measurements and news that are kept for consoles that join later.
const KEPT_BYTES: usize = 64 * 1024 * 1024;
/// Entries of the log that are kept beyond that.
const KEPT_EVENTS: usize = 10_000;
/// Consoles at a time.
const CONSOLES: usize = 16;
/// Bytes that a console may leave unread before it is left out.
const UNREAD_BYTES: usize = 16 * 1024 * 1024;
/// How long a console may take for its greeting, and for any single packet.
const GREETING: Duration = Duration::from_secs(2);
const STALLED: Duration = Duration::from_secs(10);
/// How long the last packets may take when the service ends.
const LAST_PACKETS: Duration = Duration::from_secs(2);

type Bytes = Arc<[u8]>;

/// One stretch of what happened.
struct Kept {
    bytes: Bytes,
    incidents: Vec<Incident>,
    events: Vec<String>,
}

/// A console that has joined.
struct Link {
    number: u64,
    packets: mpsc::Sender<Bytes>,
    unread: Arc<AtomicUsize>,
}

#[derive(Default)]
struct State {
    /// How far the models are, until the first measurement.
    training: Option<Bytes>,
    opened: Option<Bytes>,
    recording: Option<Bytes>,
    kept: VecDeque<Kept>,
    kept_bytes: usize,
    /// What is older than what is kept.
    incidents: BTreeMap<u64, Incident>,
    events: VecDeque<String>,
    standing: Option<Bytes>,
    last: Option<Bytes>,
    links: Vec<Link>,
}

/// The consoles of a running service.
pub(crate) struct Hub {
    path: PathBuf,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    desk: Arc<OrderDesk>,
    welcome: Vec<u8>,
    numbers: AtomicU64,
    /// Consoles that are being written to.
    writers: AtomicUsize,
}

/// A socket without consoles yet.
pub(crate) struct Listener {
    socket: UnixListener,
    path: PathBuf,
}

impl Listener {
    /// Makes the socket, which only this user may open. One that a killed service left is replaced.
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        let shown = path.display();
        if let Ok(found) = fs::symlink_metadata(path) {
            if !found.file_type().is_socket() {
                return Err(io::Error::other(format!("{shown} is there and no socket")));
            }
            if UnixStream::connect(path).is_ok() {
                return Err(io::Error::other(format!("another service listens at {shown}")));
            }
            fs::remove_file(path)?;
        }
        // No moment at which others could open it: the mode is there from the beginning.
        let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
        let socket = UnixListener::bind(path);
        rustix::process::umask(before);
        let socket = socket.map_err(|why| {
            io::Error::new(why.kind(), format!("{shown} cannot be listened at: {why}"))
        })?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        Ok(Self { socket, path: path.to_path_buf() })
    }

    /// Serves consoles from now on.
    pub(crate) fn serve(self, session: &Session, desk: Arc<OrderDesk>) -> io::Result<Hub> {
        let welcome = Welcome::to(session).map_err(io::Error::other)?;
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            desk,
            welcome: packet::greeting(&welcome)?,
            numbers: AtomicU64::new(1),
            writers: AtomicUsize::new(0),
        });
        let serving = Arc::clone(&shared);
        // Dropping the listener with the hub cannot wake a thread that waits in it: the thread ends
        // with the process.
        thread::Builder::new().name("consoles".into()).spawn(move || {
            for stream in self.socket.incoming() {
                match stream {
                    Ok(stream) => serve(&serving, stream),
                    // Too many open files, mostly: others may close theirs.
                    Err(_) => thread::sleep(Duration::from_millis(100)),
                }
            }
        })?;
        Ok(Hub { path: self.path, shared })
    }
}

impl Hub {
    /// Sends to all consoles, and keeps it for those that join later. Waits for none.
    pub(crate) fn send(&self, event: &EngineEvent) {
        let mut state = self.shared.lock();
        let Some(packet) = Packet::of(event) else { return };
        match packet {
            Packet::News(mut news) => {
                let standing = Packet::News(Box::new(news.take_state()));
                if !news.is_state_only() {
                    let (incidents, events) = (news.incidents.clone(), news.events.clone());
                    if let Some(bytes) = state.send(&Packet::News(news)) {
                        state.keep(Kept { bytes, incidents, events });
                    }
                }
                state.standing = state.send(&standing).or(state.standing.take());
            }
            Packet::Training(_) => state.training = state.send(&packet),
            Packet::Recording(_) => state.recording = state.send(&packet),
            Packet::Opened(_) => {
                state.opened = state.send(&packet);
                state.send(&Packet::Playing);
            }
            Packet::Ended(_) | Packet::Failed(_) => state.last = state.send(&packet),
            Packet::Notice(_) | Packet::Playing | Packet::Ordered(_) => {
                state.send(&packet);
            }
        }
    }

    /// Tells the console that gave an order what became of it.
    pub(crate) fn answer(&self, console: u64, done: &Result<(), String>) {
        self.shared.answer(console, done.clone());
    }

    /// The service ends: consoles get what they have not read, for a while.
    pub(crate) fn finish(self) {
        self.shared.lock().links.clear();
        let until = Instant::now() + LAST_PACKETS;
        while self.shared.writers.load(Ordering::Acquire) > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        // A socket that stays is replaced by the next service.
        let _ = fs::remove_file(&self.path);
    }
}

impl State {
    /// Sends a packet to every console; those that have left too much unread are left out.
    fn send(&mut self, packet: &Packet) -> Option<Bytes> {
        let bytes: Bytes = packed(packet).ok()?.into();
        self.links.retain(|link| link.send(&bytes));
        Some(bytes)
    }

    fn keep(&mut self, kept: Kept) {
        self.kept_bytes += kept.bytes.len();
        self.kept.push_back(kept);
        while self.kept_bytes > KEPT_BYTES
            && let Some(old) = self.kept.pop_front()
        {
            self.kept_bytes -= old.bytes.len();
            self.incidents.extend(old.incidents.into_iter().map(|i| (i.number, i)));
            self.events.extend(old.events);
            let too_many = self.events.len().saturating_sub(KEPT_EVENTS);
            self.events.drain(..too_many);
        }
    }

    /// All that a console has to know that joins now.
    fn past(&self) -> Vec<Bytes> {
        let mut packets: Vec<Bytes> = self.recording.iter().cloned().collect();
        let Some(opened) = &self.opened else {
            packets.extend(self.training.iter().chain(&self.last).cloned());
            return packets;
        };
        packets.push(Arc::clone(opened));
        let incidents = self.incidents.values().cloned().collect();
        let older = NewsPacket::of_past(incidents, self.events.iter().cloned().collect());
        packets.extend(packed(&Packet::News(Box::new(older))).ok().map(Bytes::from));
        packets.extend(self.kept.iter().map(|kept| Arc::clone(&kept.bytes)));
        packets.extend(self.standing.iter().cloned());
        packets.extend(packed(&Packet::Playing).ok().map(Bytes::from));
        packets.extend(self.last.iter().cloned());
        packets
    }
}

impl Link {
    /// Whether the console still reads.
    fn send(&self, bytes: &Bytes) -> bool {
        let unread = self.unread.fetch_add(bytes.len(), Ordering::AcqRel);
        unread < UNREAD_BYTES && self.packets.send(Arc::clone(bytes)).is_ok()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, console: u64, done: Result<(), String>) {
        let Ok(bytes) = packed(&Packet::Ordered(done)) else { return };
        let (bytes, mut state) = (Bytes::from(bytes), self.lock());
        state.links.retain(|link| link.number != console || link.send(&bytes));
    }
}

/// Serves one console, on threads of its own.
fn serve(shared: &Arc<Shared>, stream: UnixStream) {
    let shared = Arc::clone(shared);
    let served = thread::Builder::new().name("console".into()).spawn(move || {
        shared.writers.fetch_add(1, Ordering::AcqRel);
        // A console that has gone, or speaks no sense, is no trouble of the service.
        if let Err(why) = serve_one(&shared, stream) {
            tracing::info!("a console is left out: {why}");
        }
        shared.writers.fetch_sub(1, Ordering::AcqRel);
    });
    if let Err(why) = served {
        tracing::warn!("a console cannot be served: {why}");
    }
}

fn serve_one(shared: &Arc<Shared>, mut stream: UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(GREETING))?;
    stream.set_write_timeout(Some(STALLED))?;
    let hello: Hello = packet::read_greeting(&mut stream, FROM_CONSOLE)?;
    let refused = if hello.protocol != PROTOCOL {
        Some(format!(
            "the service speaks version {PROTOCOL} of the protocol, the console version {}: use \
             the same version of the program for both",
            hello.protocol
        ))
    } else if shared.lock().links.len() >= CONSOLES {
        Some(format!("{CONSOLES} consoles have joined already, and more may not"))
    } else {
        None
    };
    if let Some(why) = refused {
        return packet::write(&mut stream, &packet::greeting(&Welcome::Refused(why))?);
    }
    packet::write(&mut stream, &shared.welcome)?;
    stream.set_read_timeout(None)?;
    let number = shared.numbers.fetch_add(1, Ordering::Relaxed);
    let (packets, queue) = mpsc::channel();
    let unread = Arc::new(AtomicUsize::new(0));
    let past = {
        // Under one lock: nothing is missed between the past and what follows it.
        let mut state = shared.lock();
        state.links.push(Link { number, packets, unread: Arc::clone(&unread) });
        state.past()
    };
    let (orders, reads) = (Arc::clone(shared), stream.try_clone()?);
    thread::Builder::new().name("orders".into()).spawn(move || {
        take_orders(&orders, number, hello.read_only, reads);
        orders.lock().links.retain(|link| link.number != number);
    })?;
    let written = write_all(&mut stream, past, &queue, &unread);
    shared.lock().links.retain(|link| link.number != number);
    // Wakes the thread that reads.
    let _ = stream.shutdown(std::net::Shutdown::Both);
    written
}

/// Writes until the sender is gone, or the console does not read.
fn write_all(
    stream: &mut UnixStream,
    past: Vec<Bytes>,
    queue: &mpsc::Receiver<Bytes>,
    unread: &AtomicUsize,
) -> io::Result<()> {
    for bytes in past {
        packet::write(stream, &bytes)?;
    }
    for bytes in queue {
        packet::write(stream, &bytes)?;
        unread.fetch_sub(bytes.len(), Ordering::AcqRel);
    }
    Ok(())
}

/// Reads orders until the console is gone.
fn take_orders(shared: &Shared, number: u64, read_only: bool, mut stream: UnixStream) {
    while let Ok(packet) = packet::read_packet::<OrderPacket>(&mut stream, FROM_CONSOLE) {
        let done = match packet.order() {
            Ok(_) if read_only => Err("a console that looks on orders nothing".to_owned()),
            Ok(order) if shared.desk.hand_in(Giver::Console(number), &order) => Ok(()),
            Ok(_) => Err("the engine is busy; try again".to_owned()),
            Err(why) => Err(format!("an order that cannot be read: {why}")),
        };
        // What the engine makes of an order comes from it.
        if done.is_err() {
            shared.answer(number, done);
        }
    }
}
