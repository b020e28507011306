//! What a certificate lets its owner do, against a real broker with the access list that the program made.

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rumqttc::{
    Broker, Client, Event, IncomingPacketSizeLimit, MqttOptions, Packet, PublishOptions, QoS,
    TlsConfiguration, Transport,
};

use crate::remote::{Plant, SITES};

/// How long a broker is given to refuse or to deliver.
const A_WHILE: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_millis(500);

/// Somebody on the broker with the certificate of a party.
pub(crate) struct Party {
    client: Client,
    events: mpsc::Receiver<Packet>,
}

impl Party {
    pub(crate) fn connect(
        plant: &Plant,
        certificate: Option<&str>,
        id: &str,
    ) -> Result<Self, String> {
        let file = |path: String| fs::read(plant.path(&path)).expect("a file of `certs`");
        let mut options = MqttOptions::new(id, Broker::tcp("127.0.0.1", plant.port));
        options.set_clean_start(true);
        // A part of a lesson is longer than what a client takes usually.
        options.set_incoming_packet_size_limit(IncomingPacketSizeLimit::Bytes(2 << 20));
        let ca = file("certs/ca/ca.crt".to_owned());
        let own = |name: &str, end: &str| file(format!("certs/{name}/{name}.{end}"));
        let client_auth = certificate.map(|name| (own(name, "crt"), own(name, "key")));
        let tls = TlsConfiguration::Simple { ca, alpn: None, client_auth };
        options.set_transport(Transport::tls_with_config(tls));
        let (client, mut connection) =
            Client::builder(options).capacity(16).try_build().map_err(|why| why.to_string())?;
        let (sender, events) = mpsc::channel();
        let (is_up, up) = mpsc::channel();
        thread::spawn(move || {
            for event in connection.iter() {
                match event {
                    Ok(Event::Incoming(Packet::ConnAck(_))) => drop(is_up.send(Ok(()))),
                    Ok(Event::Incoming(packet)) => {
                        if sender.send(packet).is_err() {
                            return;
                        }
                    }
                    Ok(_) => {}
                    Err(why) => {
                        let _ = is_up.send(Err(why.to_string()));
                        return;
                    }
                }
            }
        });
        up.recv_timeout(A_WHILE).unwrap_or_else(|why| Err(why.to_string()))?;
        Ok(Self { client, events })
    }

    fn publish(&self, topic: &str, what: &str) {
        let how = PublishOptions::at_least_once();
        self.client.try_publish(topic, what.as_bytes().to_vec(), how).expect("sent");
    }

    pub(crate) fn subscribe(&self, topic: &str) {
        self.client.try_subscribe(topic, QoS::AtLeastOnce).expect("sent");
    }

    /// The next packet for which `find` has an answer.
    pub(crate) fn wait<T>(&self, find: impl Fn(&Packet) -> Option<T>) -> T {
        loop {
            let packet = self.events.recv_timeout(A_WHILE).expect("a packet in time");
            if let Some(found) = find(&packet) {
                return found;
            }
        }
    }

    /// Everything that is delivered until nothing comes for a while.
    pub(crate) fn delivered(&self) -> Vec<(String, Vec<u8>)> {
        let mut heard = Vec::new();
        while let Ok(packet) = self.events.recv_timeout(SILENCE) {
            if let Packet::Publish(publish) = packet {
                let topic = String::from_utf8_lossy(&publish.topic).into_owned();
                heard.push((topic, publish.payload.to_vec()));
            }
        }
        heard
    }

    /// The same as text.
    fn hears(&self) -> Vec<String> {
        let text = |(_, payload): (_, Vec<u8>)| String::from_utf8_lossy(&payload).into_owned();
        self.delivered().into_iter().map(text).collect()
    }
}

fn acknowledged(packet: &Packet) -> Option<String> {
    match packet {
        Packet::PubAck(ack) => Some(format!("{:?}", ack.reason)),
        _ => None,
    }
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn a_certificate_of_one_site_can_neither_publish_nor_read_for_another() {
    let plant = Plant::new("evidence");
    let _broker = plant.broker();
    let server = Party::connect(&plant, Some("server"), "any").expect("connected");
    let topic = |site: &str, end: &str| format!("headwater/1/short/{site}/{end}");
    for site in SITES {
        server.subscribe(&topic(site, "up"));
    }
    for _ in SITES {
        server.wait(|p| matches!(p, Packet::SubAck(_)).then_some(()));
    }
    let other = Party::connect(&plant, Some("P2"), "headwater-short-P1-1").expect("connected");
    other.publish(&topic("P1", "up"), "P2 as P1");
    assert_eq!(other.wait(acknowledged), "NotAuthorized");
    other.publish(&topic("P1", "state"), "offline");
    assert_eq!(other.wait(acknowledged), "NotAuthorized");
    other.publish(&topic("P1", "down"), "P2 as the server");
    assert_eq!(other.wait(acknowledged), "NotAuthorized");
    other.publish("elsewhere", "anything");
    assert_eq!(other.wait(acknowledged), "NotAuthorized");
    other.publish(&topic("P2", "up"), "P2 as itself");
    assert_eq!(other.wait(acknowledged), "Success");
    assert_eq!(server.hears(), ["P2 as itself"]);
    // What is for P1 reaches P1 alone, whatever P2 subscribes to.
    for filter in [&*topic("P1", "down"), "headwater/#", "#"] {
        other.subscribe(filter);
        other.wait(|p| matches!(p, Packet::SubAck(_)).then_some(()));
    }
    let one = Party::connect(&plant, Some("P1"), "any").expect("connected");
    one.subscribe(&topic("P1", "down"));
    one.wait(|p| matches!(p, Packet::SubAck(_)).then_some(()));
    server.publish(&topic("P1", "down"), "for P1");
    assert_eq!(server.wait(acknowledged), "Success");
    assert_eq!(one.hears(), ["for P1"]);
    assert_eq!(other.hears(), Vec::<String>::new());
    // The same client identifier does not push P1 off: the broker takes it from the certificate.
    let _again = Party::connect(&plant, Some("P3"), "P1").expect("connected");
    one.publish(&topic("P1", "up"), "still there");
    assert_eq!(one.wait(acknowledged), "Success");
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn nobody_without_a_certificate_of_the_authority_is_let_in() {
    let plant = Plant::new("evidence");
    let _broker = plant.broker();
    assert!(Party::connect(&plant, None, "nobody").is_err());
    // A certificate of the same name from another authority.
    plant.says(&["certs", "short.ron", "others", "--port", "1"]);
    let theirs = |end: &str| plant.path(&format!("others/P1/P1.{end}"));
    let ours = |end: &str| plant.path(&format!("certs/P1/P1.{end}"));
    for end in ["crt", "key"] {
        let copy = |from: &Path, to: &Path| fs::copy(from, to).map(drop).expect("copied");
        copy(&theirs(end), &ours(end));
    }
    assert!(Party::connect(&plant, Some("P1"), "stranger").is_err());
    assert!(Party::connect(&plant, Some("P2"), "known").is_ok());
}
