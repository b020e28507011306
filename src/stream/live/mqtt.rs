//! Messages of an MQTT broker, received on a thread of its own.
//!
//! A message is acknowledged when the engine's queue has it, not before. While models are made the
//! queue is full: then the connection goes on, the broker keeps what it may not send, and nothing is
//! lost. What was not acknowledged when a connection was lost comes again, marked as sent before. That
//! may be much: mosquitto 2.0.11 had tens of thousands of messages on their way where it was allowed
//! a hundred.

use std::cell::Cell;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rumqttc::{AckMode, AsyncClient, Event, EventLoop, ManualAck, Packet, QoS};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::arrival::{Gone, Outbox, Phase, What};
use super::first_line;
use crate::base::broker::Access;
use crate::session::{MqttSource, MqttTopics, Session};
use crate::stream::StreamError;

/// Waits between two attempts to connect.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// A broker that comes back without its memory delivers nothing before the next attempt: it is soon.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Requests that may wait to be sent: subscriptions and acknowledgements.
const REQUESTS: usize = 256;
/// Messages that the broker may send before the first of them is acknowledged.
const UNACKNOWLEDGED: u16 = 4096;
/// Messages that may wait for room in the engine's queue: those that want no acknowledgement, or of a
/// broker that sends more than it may. Then nothing more is read.
const WAITING: usize = 65_536;

/// The topic that is subscribed to.
fn filter(topics: &MqttTopics) -> String {
    match topics {
        MqttTopics::Rows(topic) => topic.clone(),
        MqttTopics::Tags { topic, .. } => {
            // A tag is a level of its own, or a part of one: then all of that level are asked for.
            let level = |level: &str| {
                if level.contains("{tag}") { "+".to_owned() } else { level.to_owned() }
            };
            topic.split('/').map(level).collect::<Vec<_>>().join("/")
        }
    }
}

/// Subscribes to what `source` names.
pub(super) fn subscribe(
    source: &MqttSource,
    session: &Session,
    outbox: Outbox,
) -> Result<(), StreamError> {
    let beside = |file: &Option<String>| file.as_ref().map(|file| session.folder.join(file));
    let (ca, certificate, key): (Option<PathBuf>, Option<PathBuf>, Option<PathBuf>) =
        (beside(&source.ca), beside(&source.certificate), beside(&source.key));
    let access = Access {
        url: &source.broker,
        client_id: source.client_id.as_deref(),
        user: source.user.as_deref(),
        password_env: source.password_env.as_deref(),
        ca: ca.as_deref(),
        identity: certificate.as_deref().zip(key.as_deref()),
    };
    let trouble = |why: String| StreamError::Setting(format!("{}: {why}", source.broker));
    let mut options = access.options().map_err(trouble)?;
    options.set_ack_mode(AckMode::Manual);
    options.set_receive_maximum(Some(UNACKNOWLEDGED));
    let topic = filter(&source.topics);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(StreamError::io(&source.broker))?;
    let spawned = thread::Builder::new().name("mqtt".into()).spawn(move || {
        runtime.block_on(async {
            let (client, events) = AsyncClient::builder(options).capacity(REQUESTS).build();
            let (waiting, received) = channel(WAITING);
            let connection = Cell::new(0);
            // The end of either means that the engine is gone.
            tokio::select! {
                _gone = receive(&client, events, &topic, &connection, waiting) => {}
                _gone = hand_over(&client, received, &connection, &outbox) => {}
            }
        });
    });
    spawned.map_err(StreamError::io(&source.broker))?;
    Ok(())
}

/// Something on its way to the engine.
struct Waiting {
    at: Instant,
    what: What,
    /// The acknowledgement that the broker waits for, and the connection that it belongs to.
    ack: Option<(u64, ManualAck)>,
}

/// Hands over what has come, and acknowledges it.
async fn hand_over(
    client: &AsyncClient,
    mut received: Receiver<Waiting>,
    connection: &Cell<u64>,
    outbox: &Outbox,
) -> Result<(), Gone> {
    while let Some(Waiting { at, what, ack }) = received.recv().await {
        outbox.hand(at, what).await?;
        // An acknowledgement of a connection that is lost would end the present one.
        if let Some((of, ack)) = ack
            && of == connection.get()
        {
            client.manual_ack(ack).await.map_err(|_| Gone)?;
        }
    }
    Ok(())
}

/// Receives messages; connects again when a connection is lost.
async fn receive(
    client: &AsyncClient,
    mut events: EventLoop,
    topic: &str,
    connection: &Cell<u64>,
    waiting: Sender<Waiting>,
) -> Result<(), Gone> {
    let send = async |what, ack| {
        let waits = Waiting { at: Instant::now(), what, ack };
        waiting.send(waits).await.map_err(|_| Gone)
    };
    let phase = async |phase| send(What::Phase(phase), None).await;
    let mut wait = FIRST_WAIT;
    loop {
        match events.poll().await {
            Ok(Event::Incoming(Packet::ConnAck(_))) => {
                wait = FIRST_WAIT;
                // After every connection: a broker that was restarted knows no subscription.
                if let Err(why) = client.try_subscribe(topic, QoS::AtLeastOnce) {
                    phase(Phase::Reconnecting(why.to_string())).await?;
                }
            }
            // Nothing comes before the broker has agreed to send it.
            Ok(Event::Incoming(Packet::SubAck(ack))) => {
                let refused = ack.return_codes.iter().find(|code| is_refusal(**code));
                let stands = refused.map_or(Phase::Connected, |code| {
                    let why = format!("the broker refuses the topic {topic:?}: {code:?}");
                    Phase::Reconnecting(why)
                });
                phase(stands).await?;
            }
            Ok(Event::Incoming(Packet::Publish(message))) => {
                let ack = client.prepare_ack(&message).map(|ack| (connection.get(), ack));
                let (topic, payload) = (message.topic.to_vec(), message.payload.to_vec());
                send(What::Message { topic, payload, again: message.dup }, ack).await?;
            }
            Ok(_) => {}
            // Polling again connects again, at once: the wait is ours.
            Err(why) => {
                connection.set(connection.get() + 1);
                phase(Phase::Reconnecting(first_line(&why.to_string(), 80))).await?;
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
        }
    }
}

fn is_refusal(code: rumqttc::SubscribeReasonCode) -> bool {
    !matches!(code, rumqttc::SubscribeReasonCode::Success(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_of_tags_is_asked_for_with_a_wildcard() {
        let tags = |topic: &str| MqttTopics::Tags { topic: topic.into(), value: "v".into() };
        assert_eq!(filter(&tags("plant/{tag}/value")), "plant/+/value");
        assert_eq!(filter(&tags("plant/P1_{tag}")), "plant/+");
        assert_eq!(filter(&MqttTopics::Rows("plant/#".into())), "plant/#");
    }
}
