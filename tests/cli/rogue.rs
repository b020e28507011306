//! Somebody on a broker without certificates who publishes as if he were a site.

use std::collections::HashSet;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rumqttc::{Broker, Client, Event, MqttOptions, Packet, PublishOptions, QoS};

use crate::remote::{Plant, Running, incidents};
use crate::tables::{session, wide};

/// Envelopes of sites that the rogue uses.
const MOST: usize = 200;

/// Hears everything and publishes, for each envelope of a site: the same again, the same as another site,
/// a part of it, and bytes that are none.
fn interfere(port: u16, over: &AtomicBool) -> usize {
    let mut options = MqttOptions::new("rogue", Broker::tcp("127.0.0.1", port));
    options.set_clean_start(true);
    let (client, mut connection) =
        Client::builder(options).capacity(4096).try_build().expect("a client");
    // He hears what he publishes, and uses every envelope of a site once.
    let mut seen = HashSet::new();
    let publish = |topic: &str, payload: Vec<u8>| {
        let _ = client.try_publish(topic, payload, PublishOptions::at_least_once());
    };
    let mut used = 0;
    while !over.load(Ordering::Relaxed) {
        match connection.recv_timeout(Duration::from_millis(100)) {
            Ok(Ok(Event::Incoming(Packet::ConnAck(_)))) => {
                client.try_subscribe("headwater/#", QoS::AtLeastOnce).expect("asked");
            }
            Ok(Ok(Event::Incoming(Packet::Publish(heard)))) if used < MOST => {
                let topic = String::from_utf8_lossy(&heard.topic).into_owned();
                let payload = heard.payload.to_vec();
                let Some((site, _)) = topic.rsplit_once("/up") else { continue };
                if !seen.insert(payload.clone()) {
                    continue;
                }
                used += 1;
                let other = if site.ends_with("/A") { "B" } else { "A" };
                publish(&format!("headwater/1/short/{other}/up"), payload.clone());
                let half = payload[..payload.len() / 2].to_vec();
                seen.extend([half.clone(), vec![0xFF; 100]]);
                publish(&topic, half);
                publish(&topic, vec![0xFF; 100]);
                publish(&topic, payload);
            }
            _ => {}
        }
    }
    used
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn what_a_rogue_publishes_is_refused_whole_and_counted_and_changes_nothing() {
    let files = [("fit.csv", wide(0, 6000)), ("day.csv", wide(6000, 7000))];
    let plant = Plant::of(&session("", "\"day.csv\""), "evidence", &files);
    let alone = plant.alone();
    let port = plant.port;
    let plain = format!("listener {port} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\n");
    fs::write(plant.path("plain.conf"), plain).expect("written");
    let broker = Command::new("mosquitto")
        .env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default()))
        .arg("-c")
        .arg(plant.path("plain.conf"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _broker = Running(broker.expect("a broker"));
    let over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&over);
    let rogue = thread::spawn(move || interfere(port, &ends));
    let mut server = plant.start_plain(port, "serve", &["--speed", "200"], "server");
    let mut sites =
        ["A", "B"].map(|name| plant.start_plain(port, "site", &["--client", name], name));
    assert!(server.ends_well(), "{}", plant.read("server.err"));
    for site in &mut sites {
        assert!(site.ends_well());
    }
    over.store(true, Ordering::Relaxed);
    let used = rogue.join().expect("the rogue ends");
    let said = plant.read("server.err");
    assert!(said.contains("INSECURE"), "{said}");
    assert!(plant.read("A.err").contains("INSECURE"));
    assert_eq!(incidents(&plant.read("server")), alone, "{said}");
    for site in ["A", "B"] {
        let about = said.lines().find(|line| line.starts_with(&format!("headwater: {site}: ")));
        let about = about.expect(&said);
        for what in [" malformed", " replayed", " of another client or step"] {
            let (before, _) = about.split_once(what).expect(about);
            let count: usize = before.rsplit(' ').next().and_then(|n| n.parse().ok()).expect(about);
            assert!(count > 10, "{what}: {about}");
        }
    }
    println!("{used} envelopes were used by the rogue\n{said}");
}
