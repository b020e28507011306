//! The built-in plant as messages to an MQTT broker: one JSON object a row.
//!
//! Credentials come from the environment: `HEADWATER_MQTT_USER`, `HEADWATER_MQTT_PASSWORD` and
//! `HEADWATER_MQTT_CA` (a file in PEM).

use std::env;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use rumqttc::{AsyncClient, ConnectionError, Event, Packet, PublishOptions, QoS};

use super::live::Sink;
use super::{MakeError, is_wanted};
use crate::base::broker::Access;
use crate::stream::plant::{Row, Tag};

/// The topic of a row.
pub(crate) const TOPIC: &str = "plant/row";
/// Rows that may wait to be sent.
const WAITING: usize = 256;
const RETRY: Duration = Duration::from_millis(500);
/// How long the last rows may take to be acknowledged.
const LAST_ROWS: Duration = Duration::from_mins(1);

pub(crate) struct Publisher {
    rows: SyncSender<Vec<u8>>,
    published: u64,
    acknowledged: Arc<AtomicU64>,
}

impl Publisher {
    /// Connects to the broker at `url`, and goes on trying until `stop` is raised.
    pub(crate) fn connect(url: &str, stop: &AtomicBool) -> Result<Self, MakeError> {
        let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let (user, ca) = (set("HEADWATER_MQTT_USER"), set("HEADWATER_MQTT_CA").map(PathBuf::from));
        let access = Access {
            url,
            user: user.as_deref(),
            password_env: set("HEADWATER_MQTT_PASSWORD").map(|_| "HEADWATER_MQTT_PASSWORD"),
            ca: ca.as_deref(),
            ..Access::default()
        };
        let options = access.options().map_err(MakeError::Broker)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (rows, waiting) = mpsc::sync_channel::<Vec<u8>>(WAITING);
        let acknowledged = Arc::new(AtomicU64::new(0));
        let connected = Arc::new(AtomicBool::new(false));
        let (counted, is_connected) = (Arc::clone(&acknowledged), Arc::clone(&connected));
        let (client, mut events) = AsyncClient::builder(options).capacity(WAITING).build();
        thread::Builder::new().name("publish".into()).spawn(move || {
            runtime.block_on(async {
                loop {
                    match events.poll().await {
                        Ok(Event::Incoming(Packet::ConnAck(_))) => {
                            is_connected.store(true, Ordering::Relaxed);
                        }
                        Ok(Event::Incoming(Packet::PubAck(_))) => {
                            counted.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(_) => {}
                        // The plant is over, and every row was acknowledged.
                        Err(ConnectionError::RequestsDone) => return,
                        Err(why) => {
                            let _ = writeln!(std::io::stderr(), "headwater: broker: {why}");
                            tokio::time::sleep(RETRY).await;
                        }
                    }
                }
            });
        })?;
        let sender = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name("rows".into()).spawn(move || {
            sender.block_on(async {
                while let Ok(row) = waiting.recv() {
                    let options = PublishOptions::new(QoS::AtLeastOnce);
                    if client.publish(TOPIC, row, options).await.is_err() {
                        return;
                    }
                }
            });
        })?;
        while !connected.load(Ordering::Relaxed) && !is_wanted(stop) {
            thread::sleep(Duration::from_millis(20));
        }
        Ok(Self { rows, published: 0, acknowledged })
    }
}

impl Sink for Publisher {
    fn take(&mut self, time: Timestamp, row: &Row) -> Result<(), MakeError> {
        let mut text = Vec::with_capacity(4096);
        write!(text, "{{\"timestamp\":\"{time}\"")?;
        for (tag, value) in Tag::ALL.iter().zip(&row.0) {
            write!(text, ",\"{}\":{value}", tag.name())?;
        }
        text.push(b'}');
        let gone = |_| MakeError::Broker("the connection to the broker ended".into());
        self.rows.send(text).map_err(gone)?;
        self.published += 1;
        Ok(())
    }

    /// Waits until the broker has all rows.
    fn flush(&mut self) -> Result<(), MakeError> {
        let mut waited = Duration::ZERO;
        let nap = Duration::from_millis(2);
        while self.acknowledged.load(Ordering::Relaxed) < self.published {
            if waited > LAST_ROWS {
                return Err(MakeError::Broker("the broker does not acknowledge the rows".into()));
            }
            thread::sleep(nap);
            waited += nap;
        }
        Ok(())
    }
}
