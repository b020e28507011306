//! The connection to the broker: a thread that reads it, reconnects by itself and subscribes again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rumqttc::{
    Broker as Address, Client, Event, IncomingPacketSizeLimit, LastWill, MqttOptions,
    NetworkOptions, Outgoing, Packet, PublishOptions, QoS, TlsConfiguration, Transport,
};
use thiserror::Error;

use super::envelope::{MOST_BYTES, level};

/// Seconds of silence after which a broker counts a client as gone.
const KEEP_ALIVE_S: u16 = 5;
/// Messages on their way that a broker has not acknowledged. Room for them is taken when a connection is
/// made: the usual 65,535 take megabytes and tens of milliseconds each.
const UNACKNOWLEDGED: u16 = 1024;
/// Requests that may wait for the network.
const WAITING: usize = 16_384;
/// What may come on one topic in a second; the rest is dropped and counted. The server is asked for
/// every step, so that a site that behaves sends far less.
const MOST_A_SECOND: u64 = 20_000;
const MOST_BYTES_A_SECOND: usize = 32 << 20;
/// What may wait to be read.
const MOST_WAITING_BYTES: usize = 64 << 20;
/// Time between two attempts to connect.
const AGAIN: Duration = Duration::from_millis(200);
/// What a retained state says.
pub(super) const ONLINE: &[u8] = b"online";
const OFFLINE: &[u8] = b"offline";

/// Why there is no connection.
#[derive(Debug, Error)]
pub(crate) enum LinkError {
    #[error("{0:?} is no broker: expected mqtt://HOST[:PORT] or mqtts://HOST[:PORT]")]
    Url(String),
    #[error("mqtts:// needs --certs DIR with ca.crt, NAME.crt and NAME.key")]
    NoCerts,
    #[error(
        "mqtt:// is not encrypted and proves nobody's identity: use mqtts:// with --certs, or add --insecure"
    )]
    Insecure,
    #[error("{}: {why}", path.display())]
    Certificate { path: PathBuf, why: std::io::Error },
    #[error("the connection to the broker cannot be set up: {0}")]
    Setup(String),
    #[error("the connection to the broker has ended")]
    Closed,
}

/// Where the broker is and how it is spoken to.
#[derive(Debug, Clone)]
pub(crate) struct Broker {
    host: String,
    port: u16,
    certs: Option<PathBuf>,
}

impl Broker {
    /// `mqtts://HOST[:PORT]` with a folder of certificates, or `mqtt://HOST[:PORT]` where that was asked
    /// for.
    pub(crate) fn parse(
        url: &str,
        certs: Option<&Path>,
        insecure: bool,
    ) -> Result<Self, LinkError> {
        let wrong = || LinkError::Url(url.to_owned());
        let (is_encrypted, rest) = match url.split_once("://") {
            Some(("mqtts", rest)) => (true, rest),
            Some(("mqtt", rest)) => (false, rest),
            _ => return Err(wrong()),
        };
        let usual = if is_encrypted { 8883 } else { 1883 };
        let rest = rest.trim_end_matches('/');
        // An address of IPv6 has colons of its own and stands in brackets.
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| wrong())?)
            }
            _ => (rest, usual),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || host.contains('/') {
            return Err(wrong());
        }
        match (is_encrypted, certs, insecure) {
            (true, None, _) => Err(LinkError::NoCerts),
            (false, _, false) => Err(LinkError::Insecure),
            (true, certs, _) => {
                Ok(Self { host: host.to_owned(), port, certs: certs.map(Path::to_owned) })
            }
            (false, _, true) => Ok(Self { host: host.to_owned(), port, certs: None }),
        }
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.certs.is_some()
    }

    /// What a connection as `name` needs.
    pub(super) fn options(&self, name: &str, id: &str) -> Result<MqttOptions, LinkError> {
        let mut options = MqttOptions::new(id, Address::tcp(self.host.clone(), self.port));
        options.set_keep_alive(KEEP_ALIVE_S);
        options.set_clean_start(true);
        options.set_outgoing_inflight_upper_limit(UNACKNOWLEDGED);
        let limit = MOST_BYTES as u32 + 4096;
        options.set_incoming_packet_size_limit(IncomingPacketSizeLimit::Bytes(limit));
        options.set_transport(self.transport(name)?);
        let mut network = NetworkOptions::new();
        // Without it a round trip takes 88 ms instead of 0.15 ms.
        network.set_tcp_nodelay(true);
        options.set_network_options(network);
        Ok(options)
    }

    fn transport(&self, name: &str) -> Result<Transport, LinkError> {
        let Some(certs) = &self.certs else { return Ok(Transport::tcp()) };
        let name = level(name);
        // The folder of one party, or the one that `certs` wrote with all of them.
        let own = certs.join(&name);
        let folder = if own.is_dir() { &own } else { certs };
        let read = |file: String| {
            let path = folder.join(file);
            std::fs::read(&path).map_err(|why| LinkError::Certificate { path, why })
        };
        let ca = read("ca.crt".to_owned())?;
        let client_auth = Some((read(format!("{name}.crt"))?, read(format!("{name}.key"))?));
        Ok(Transport::tls_with_config(TlsConfiguration::Simple { ca, alpn: None, client_auth }))
    }
}

/// What comes from the broker.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// The connection stands, for the first time or again.
    Connected,
    Message {
        topic: String,
        payload: Vec<u8>,
    },
    /// A message beyond what may come; it was dropped.
    Dropped {
        topic: String,
    },
}

/// How much came on each topic in the present second.
#[derive(Debug)]
struct Rate {
    since: Instant,
    seen: HashMap<Vec<u8>, (u64, usize)>,
}

impl Rate {
    fn new(now: Instant) -> Self {
        Self { since: now, seen: HashMap::new() }
    }

    /// Whether one more message on `topic` is within what may come in a second.
    fn admits(&mut self, topic: &[u8], bytes: usize, now: Instant) -> bool {
        if now.duration_since(self.since) >= Duration::from_secs(1) {
            *self = Self::new(now);
        }
        if !self.seen.contains_key(topic) {
            self.seen.insert(topic.to_vec(), (0, 0));
        }
        let Some((messages, sum)) = self.seen.get_mut(topic) else { return false };
        *messages += 1;
        *sum += bytes;
        *messages <= MOST_A_SECOND && *sum <= MOST_BYTES_A_SECOND
    }
}

/// A connection. Dropping it tells the broker that its owner has left.
pub(crate) struct Link {
    client: Client,
    incoming: mpsc::Receiver<Incoming>,
    state: String,
    /// The connection ends because its owner leaves, and is not made again.
    left: Arc<AtomicBool>,
    /// Bytes that were received and are not read yet.
    waiting: Arc<AtomicUsize>,
}

impl Link {
    /// Connects as `name`, subscribes to `topics`, and keeps `state` as a retained message: online, and
    /// offline once the connection is gone.
    pub(crate) fn open(
        broker: &Broker,
        name: &str,
        id: &str,
        topics: Vec<String>,
        state: String,
    ) -> Result<Self, LinkError> {
        let mut options = broker.options(name, id)?;
        options.set_last_will(LastWill::new(&*state, OFFLINE, QoS::AtLeastOnce, true, None));
        let built = Client::builder(options).capacity(WAITING).try_build();
        let (client, mut connection) = built.map_err(|why| LinkError::Setup(why.to_string()))?;
        let (sender, incoming) = mpsc::channel();
        let (subscriber, at) = (client.clone(), state.clone());
        let left = Arc::new(AtomicBool::new(false));
        let leaves = Arc::clone(&left);
        let waiting = Arc::new(AtomicUsize::new(0));
        let received = Arc::clone(&waiting);
        let mut rate = Rate::new(Instant::now());
        let read = move || {
            for event in connection.iter() {
                let sent = match event {
                    Ok(Event::Incoming(Packet::ConnAck(_))) => {
                        // A broker that began anew has forgotten the subscriptions.
                        let subscribed = topics
                            .iter()
                            .try_for_each(|topic| {
                                subscriber.try_subscribe(topic.as_str(), QoS::AtLeastOnce)
                            })
                            .and_then(|()| {
                                let retained = PublishOptions::at_least_once().retained();
                                subscriber.try_publish(at.as_str(), ONLINE, retained)
                            });
                        subscribed.is_ok() && sender.send(Incoming::Connected).is_ok()
                    }
                    Ok(Event::Incoming(Packet::Publish(publish))) => {
                        let bytes = publish.payload.len();
                        let is_in_time = rate.admits(&publish.topic, bytes, Instant::now());
                        let has_room = received.load(Ordering::Relaxed) < MOST_WAITING_BYTES;
                        let topic = String::from_utf8_lossy(&publish.topic).into_owned();
                        let incoming = if is_in_time && has_room {
                            received.fetch_add(bytes, Ordering::Relaxed);
                            Incoming::Message { topic, payload: publish.payload.to_vec() }
                        } else {
                            Incoming::Dropped { topic }
                        };
                        sender.send(incoming).is_ok()
                    }
                    Ok(Event::Outgoing(Outgoing::Disconnect)) => false,
                    Ok(_) => true,
                    Err(_) if leaves.load(Ordering::Relaxed) => false,
                    // The next turn connects again.
                    Err(_) => {
                        thread::sleep(AGAIN);
                        true
                    }
                };
                if !sent {
                    return;
                }
            }
        };
        let spawned = thread::Builder::new().name("broker".into()).spawn(read);
        spawned.map_err(|why| LinkError::Setup(why.to_string()))?;
        Ok(Self { client, incoming, state, left, waiting })
    }

    /// Sends without waiting for the network; what finds no room is lost and asked for again.
    pub(crate) fn send(&self, topic: &str, payload: Vec<u8>) {
        let _ = self.client.try_publish(topic, payload, PublishOptions::at_least_once());
    }

    /// The same without a copy at the broker: for a round of a training, which is asked for again when it
    /// is lost. It saves both acknowledgements.
    pub(crate) fn send_once(&self, topic: &str, payload: Vec<u8>) {
        let _ = self.client.try_publish(topic, payload, PublishOptions::at_most_once());
    }

    /// The next thing that comes within `wait`.
    pub(crate) fn next(&self, wait: Duration) -> Result<Option<Incoming>, LinkError> {
        match self.incoming.recv_timeout(wait) {
            Ok(incoming) => {
                if let Incoming::Message { payload, .. } = &incoming {
                    self.waiting.fetch_sub(payload.len(), Ordering::Relaxed);
                }
                Ok(Some(incoming))
            }
            Err(mpsc::RecvTimeoutError::Timeout) => Ok(None),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(LinkError::Closed),
        }
    }

    /// Leaves in order: what was sent is delivered first.
    pub(crate) fn leave(&self) {
        self.left.store(true, Ordering::Relaxed);
        let retained = PublishOptions::at_least_once().retained();
        let _ = self.client.try_publish(self.state.as_str(), OFFLINE, retained);
        let _ = self.client.try_disconnect();
        // The thread ends with the connection; what is on its way gets a moment.
        let until = Instant::now() + Duration::from_secs(2);
        while Instant::now() < until && self.next(Duration::from_millis(50)).is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_may_come_in_a_second_is_dropped_and_other_sites_do_not_suffer() {
        let begin = Instant::now();
        let mut rate = Rate::new(begin);
        assert!((0..MOST_A_SECOND).all(|_| rate.admits(b"a", 10, begin)));
        assert!(!rate.admits(b"a", 10, begin), "one more");
        assert!(rate.admits(b"b", MOST_BYTES_A_SECOND, begin), "another site");
        assert!(!rate.admits(b"b", 1, begin), "its bytes are used up");
        assert!(rate.admits(b"a", 10, begin + Duration::from_secs(1)), "the next second");
    }

    #[test]
    fn a_broker_is_named_by_its_url_and_plain_tcp_must_be_asked_for() {
        let folder = Path::new("certs");
        let plain = Broker::parse("mqtt://127.0.0.1:1999", None, true).expect("a broker");
        assert_eq!((&*plain.host, plain.port, plain.is_encrypted()), ("127.0.0.1", 1999, false));
        let usual = Broker::parse("mqtts://plant.example/", Some(folder), false).expect("a broker");
        assert_eq!((&*usual.host, usual.port, usual.is_encrypted()), ("plant.example", 8883, true));
        let six = Broker::parse("mqtt://[::1]", None, true).expect("a broker");
        assert_eq!((&*six.host, six.port), ("::1", 1883));
        assert!(matches!(Broker::parse("mqtt://a", None, false), Err(LinkError::Insecure)));
        assert!(matches!(Broker::parse("mqtts://a", None, true), Err(LinkError::NoCerts)));
        for wrong in ["a", "http://a", "mqtt://", "mqtt://a:b", "mqtt://a/b"] {
            assert!(matches!(Broker::parse(wrong, None, true), Err(LinkError::Url(_))), "{wrong}");
        }
    }
}
