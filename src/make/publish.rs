//! The built-in plant as messages to an MQTT broker: one JSON object a row.
//!
//! Credentials come from the environment: `HEADWATER_MQTT_USER`, `HEADWATER_MQTT_PASSWORD` and
//! `HEADWATER_MQTT_CA` (a file in PEM).

use std::collections::VecDeque;
use std::env;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use rumqttc::{AsyncClient, Event, MqttOptions, Packet, PublishOptions, QoS};
use tokio::sync::mpsc;

use super::live::Sink;
use super::{MakeError, is_wanted};
use crate::base::broker::Access;
use crate::base::notice::print_notice;
use crate::stream::plant::{PlantRow, Tag};

/// The topic of a row.
pub(crate) const TOPIC: &str = "plant/row";
/// Rows that may wait for the broker's acknowledgement, and as many more to be sent.
const WAITING: usize = 256;
const RETRY: Duration = Duration::from_millis(500);
/// How long the last rows may take to be acknowledged.
const LAST_ROWS: Duration = Duration::from_mins(1);

pub(crate) struct Publisher {
    rows: mpsc::Sender<Vec<u8>>,
    published: u64,
    progress: Arc<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    connected: AtomicBool,
    acknowledged: AtomicU64,
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
        let (rows, waiting) = mpsc::channel(WAITING);
        let progress = Arc::new(Progress::default());
        let theirs = Arc::clone(&progress);
        thread::Builder::new()
            .name("publish".into())
            .spawn(move || runtime.block_on(deliver(options, waiting, &theirs)))?;
        while !progress.connected.load(Ordering::Relaxed) && !is_wanted(stop) {
            thread::sleep(Duration::from_millis(20));
        }
        Ok(Self { rows, published: 0, progress })
    }
}

/// Sends `rows` until they end and the broker has acknowledged all of them.
///
/// A broker that was restarted knows nothing of rows on their way, and the MQTT client gives them up. So
/// a row is kept here until it is acknowledged. After a lost connection what is kept is sent again, in
/// order and before anything newer.
async fn deliver(options: MqttOptions, mut rows: mpsc::Receiver<Vec<u8>>, progress: &Progress) {
    let mut kept: VecDeque<Vec<u8>> = VecDeque::new();
    let mut is_over = false;
    loop {
        let (client, mut events) = AsyncClient::builder(options.clone()).capacity(WAITING).build();
        let (sender, mut received) = mpsc::channel(WAITING);
        // Polling is not interrupted by a new row: that would begin a connection anew.
        tokio::spawn(async move {
            loop {
                let event = events.poll().await;
                let is_lost = event.is_err();
                if sender.send(event).await.is_err() || is_lost {
                    return;
                }
            }
        });
        // How many of the kept rows were sent over this connection.
        let mut sent = 0;
        let why = loop {
            while let Some(row) = kept.get(sent) {
                let options = PublishOptions::new(QoS::AtLeastOnce);
                if client.try_publish(TOPIC, row.clone(), options).is_err() {
                    break;
                }
                sent += 1;
            }
            tokio::select! {
                row = rows.recv(), if !is_over && kept.len() < WAITING => match row {
                    Some(row) => kept.push_back(row),
                    None => is_over = true,
                },
                event = received.recv() => match event {
                    Some(Ok(Event::Incoming(Packet::ConnAck(_)))) => {
                        progress.connected.store(true, Ordering::Relaxed);
                    }
                    // Acknowledgements come in the order of the rows.
                    Some(Ok(Event::Incoming(Packet::PubAck(_)))) if sent > 0 => {
                        kept.pop_front();
                        sent -= 1;
                        progress.acknowledged.fetch_add(1, Ordering::Relaxed);
                    }
                    Some(Ok(_)) => {}
                    Some(Err(why)) => break why.to_string(),
                    None => break "the connection ended".into(),
                },
            }
            if is_over && kept.is_empty() {
                return;
            }
        };
        print_notice(format!("broker: {why}"));
        tokio::time::sleep(RETRY).await;
    }
}

impl Sink for Publisher {
    fn take(&mut self, time: Timestamp, row: &PlantRow) -> Result<(), MakeError> {
        let mut text = Vec::with_capacity(4096);
        write!(text, "{{\"timestamp\":\"{time}\"")?;
        for (tag, value) in Tag::ALL.iter().zip(&row.0) {
            write!(text, ",\"{}\":{value}", tag.name())?;
        }
        text.push(b'}');
        let gone = |_| MakeError::Broker("the connection to the broker ended".into());
        self.rows.blocking_send(text).map_err(gone)?;
        self.published += 1;
        Ok(())
    }

    /// Waits until the broker has all rows.
    fn flush(&mut self) -> Result<(), MakeError> {
        let mut waited = Duration::ZERO;
        let nap = Duration::from_millis(2);
        while self.progress.acknowledged.load(Ordering::Relaxed) < self.published {
            if waited > LAST_ROWS {
                return Err(MakeError::Broker("the broker does not acknowledge the rows".into()));
            }
            thread::sleep(nap);
            waited += nap;
        }
        Ok(())
    }
}
