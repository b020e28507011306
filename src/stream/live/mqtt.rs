//! Messages of an MQTT broker, received on a thread of its own.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rumqttc::{AsyncClient, Event, EventLoop, Packet, QoS};

use super::arrival::{Gone, Outbox, Phase, What};
use crate::base::broker::Access;
use crate::session::{MqttSource, MqttTopics, Session};
use crate::stream::StreamError;

/// Waits between two attempts to connect.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// A broker that comes back without its memory delivers nothing before the next attempt: it is soon.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Requests that may wait to be sent: subscriptions only.
const REQUESTS: usize = 16;

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
    let options = access.options().map_err(trouble)?;
    let topic = filter(&source.topics);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(StreamError::io(&source.broker))?;
    let spawned = thread::Builder::new().name("mqtt".into()).spawn(move || {
        runtime.block_on(async {
            let (client, events) = AsyncClient::builder(options).capacity(REQUESTS).build();
            // A hang-up means that the engine is gone.
            let _gone = receive(&client, events, &topic, &outbox).await;
        });
    });
    spawned.map_err(StreamError::io(&source.broker))?;
    Ok(())
}

async fn receive(
    client: &AsyncClient,
    mut events: EventLoop,
    topic: &str,
    outbox: &Outbox,
) -> Result<(), Gone> {
    let mut wait = FIRST_WAIT;
    loop {
        match events.poll().await {
            Ok(Event::Incoming(Packet::ConnAck(_))) => {
                wait = FIRST_WAIT;
                // After every connection: a broker that was restarted knows no subscription.
                match client.try_subscribe(topic, QoS::AtLeastOnce) {
                    Ok(()) => outbox.send(What::Phase(Phase::Connected))?,
                    Err(why) => outbox.send(What::Phase(Phase::Reconnecting(why.to_string())))?,
                }
            }
            Ok(Event::Incoming(Packet::SubAck(ack))) => {
                if let Some(code) = ack.return_codes.iter().find(|code| is_refusal(**code)) {
                    let why = format!("the broker refuses the topic {topic:?}: {code:?}");
                    outbox.send(What::Phase(Phase::Reconnecting(why)))?;
                }
            }
            Ok(Event::Incoming(Packet::Publish(message))) => {
                let topic = String::from_utf8_lossy(&message.topic).into_owned();
                let payload = message.payload.to_vec();
                // While too much lies unread the broker is not answered, and keeps the rest.
                outbox.send(What::Message { topic, payload })?;
            }
            Ok(_) => {}
            // Polling again connects again, at once: the wait is ours.
            Err(why) => {
                outbox.send(What::Phase(Phase::Reconnecting(short(&why.to_string()))))?;
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
        }
    }
}

fn is_refusal(code: rumqttc::SubscribeReasonCode) -> bool {
    !matches!(code, rumqttc::SubscribeReasonCode::Success(_))
}

/// The first line of an error, as far as it fits on a screen.
fn short(why: &str) -> String {
    why.lines().next().unwrap_or_default().chars().take(80).collect()
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
