//! Values as a server sends them; what was lost on the way is asked for again.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use opcua::client::{MonitoredItemMap, OnSubscriptionNotificationCore};
use opcua::types::{
    DataChangeFilter, DataChangeNotification, DataChangeTrigger, DataValue, ExtensionObject,
    MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters, NodeId, NotificationMessage,
    ReadValueId, StatusChangeNotification, TimestampsToReturn,
};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::browse::{lost, number};
use super::link::{Change, Link};
use super::past::stamp;
use super::{Failure, Known, Never, Plan, SILENCE, first_line, hand};
use crate::session::OpcUaPast;
use crate::stream::live::arrival::{Outbox, Phase, Served, What};
use crate::stream::live::assembler::Quality;

/// Messages that may wait while rows before them are read.
const WAITING: usize = 8192;
/// Publishing intervals without news after which a server says that it is there, and after which it
/// gives a subscription up that is not fetched.
const KEEP_ALIVE: u32 = 4;
const LIFETIME: u32 = 240;
/// Values of a tag that a server is asked to keep until they are fetched.
const QUEUE: u32 = 1000;
/// Tags of one request.
const TAGS: usize = 500;
/// Messages that are asked for again at most.
const MOST_LOST: u32 = 1000;
/// How long the library tries to reach a session again.
const AWAY: Duration = Duration::from_secs(45);
/// The library is ready to publish so long after it says that it is connected.
const KICK: Duration = Duration::from_millis(100);

/// Hands messages over. It is called while the library holds its locks: it must not wait.
struct Receiver(mpsc::Sender<(Instant, NotificationMessage)>);

impl OnSubscriptionNotificationCore for Receiver {
    fn on_subscription_notification(
        &mut self,
        notification: NotificationMessage,
        _items: MonitoredItemMap<'_>,
    ) {
        // One that finds no room is missed by its number, and asked for again.
        let _ = self.0.try_send((Instant::now(), notification));
    }
}

pub(super) struct Subscription {
    id: u32,
    messages: mpsc::Receiver<(Instant, NotificationMessage)>,
    /// The number of the last message.
    sequence: Option<u32>,
    /// Tags that have sent a value.
    seen: Vec<bool>,
    /// Whether the loss of values on the server was reported.
    is_overflow_told: bool,
}

/// Subscribes to all tags that are there.
pub(super) async fn begin(
    plan: &Plan,
    known: &Known,
    link: &Link,
    nodes: &[Option<NodeId>],
    outbox: &Outbox,
) -> Result<Subscription, Failure> {
    let (sender, messages) = mpsc::channel(WAITING);
    let every = Duration::from_secs_f64(plan.source.publishing_ms / 1000.0);
    let id = link
        .session
        .create_subscription(every, LIFETIME, KEEP_ALIVE, 0, 0, true, Receiver(sender))
        .await
        .map_err(lost)?;
    // With the usual trigger a sensor that does not change sends nothing.
    let filter = DataChangeFilter {
        trigger: DataChangeTrigger::StatusValueTimestamp,
        deadband_type: 0,
        deadband_value: 0.0,
    };
    let item = |(tag, node): (usize, &NodeId)| MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId::new_value(node.clone()),
        monitoring_mode: MonitoringMode::Reporting,
        requested_parameters: MonitoringParameters {
            client_handle: tag as u32 + 1,
            // Twice a row, so that none is missed.
            sampling_interval: plan.grid.as_secs_f64() * 500.0,
            filter: ExtensionObject::from_message(filter.clone()),
            queue_size: QUEUE,
            discard_oldest: true,
        },
    };
    let there = nodes.iter().enumerate().filter_map(|(tag, node)| Some((tag, node.as_ref()?)));
    let there: Vec<(usize, &NodeId)> = there.collect();
    for tags in there.chunks(TAGS) {
        let items = tags.iter().copied().map(item).collect();
        let made = link.session.create_monitored_items(id, TimestampsToReturn::Both, items).await;
        for ((tag, _), made) in tags.iter().zip(made.map_err(lost)?) {
            let status = made.result.status_code;
            if !status.is_good() {
                let what = format!("{}: the server does not send it ({status})", known.names[*tag]);
                hand(outbox, What::Server(Served::Trouble(what))).await?;
            }
        }
    }
    let seen = vec![false; nodes.len()];
    Ok(Subscription { id, messages, sequence: None, seen, is_overflow_told: false })
}

impl Subscription {
    /// Hands over what comes, until the subscription is lost.
    pub(super) async fn follow(
        &mut self,
        plan: &Plan,
        known: &mut Known,
        link: &mut Link,
        outbox: &Outbox,
    ) -> Result<Never, Failure> {
        let begun = Instant::now();
        let mut heard = Instant::now();
        let mut is_away = false;
        let mut tick = interval(Duration::from_secs(1));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                // A loss is seen before anything that came after it.
                biased;
                change = link.changes.recv() => match change {
                    None => return Err(Failure::Lost("the client library gave up".into())),
                    Some(Change::Over(why)) => return Err(lost(why)),
                    Some(Change::New) => {
                        return Err(Failure::Lost("the server began a new session".into()));
                    }
                    // What the library sends after a loss may leave rows out. Begun anew, they are read
                    // from the history, in order and before anything newer.
                    Some(Change::Lost(why)) if plan.source.past != OpcUaPast::Unread => {
                        return Err(lost(why));
                    }
                    Some(Change::Lost(why)) => {
                        is_away = true;
                        let why = first_line(&why.to_string(), 200);
                        hand(outbox, What::Phase(Phase::Reconnecting(why))).await?;
                    }
                    Some(Change::Back) => {
                        (is_away, heard) = (false, Instant::now());
                        hand(outbox, What::Phase(Phase::Connected)).await?;
                        // Without this the library publishes nothing more.
                        sleep(KICK).await;
                        link.session.trigger_publish_now();
                    }
                },
                message = self.messages.recv() => {
                    let Some((at, message)) = message else {
                        return Err(Failure::Lost("the subscription ended".into()));
                    };
                    heard = Instant::now();
                    for message in self.in_order(message, plan, link, outbox).await? {
                        self.take(&message, at < begun, plan, known, outbox).await?;
                    }
                },
                _ = tick.tick() => {
                    let limit = if is_away { AWAY } else { SILENCE };
                    if heard.elapsed() > limit {
                        let seconds = heard.elapsed().as_secs();
                        let why = format!("the server has said nothing for {seconds} s");
                        return Err(Failure::Lost(why));
                    }
                },
            }
        }
    }

    /// The message, and before it those that its number says were lost.
    async fn in_order(
        &mut self,
        message: NotificationMessage,
        plan: &Plan,
        link: &Link,
        outbox: &Outbox,
    ) -> Result<Vec<NotificationMessage>, Failure> {
        let number = message.sequence_number;
        let is_empty = message.notification_data.as_ref().is_none_or(Vec::is_empty);
        let expected = self.sequence.map_or(number, |last| last.wrapping_add(1));
        let lost = number.wrapping_sub(expected);
        let mut messages = Vec::new();
        if (1..MOST_LOST).contains(&lost) {
            let mut away = 0;
            for missed in 0..lost {
                match link.session.republish(self.id, expected.wrapping_add(missed)).await {
                    Ok(again) => messages.push(again),
                    Err(_) => away += 1,
                }
            }
            if away > 0 && plan.source.past != OpcUaPast::Unread {
                // Begun anew, the rows in between are read from the history.
                return Err(Failure::Lost(format!("{away} messages were lost")));
            }
            if away > 0 {
                let what = format!("{away} messages were lost, and the server has them no more");
                hand(outbox, What::Server(Served::Trouble(what))).await?;
            }
        }
        // An empty message has the number of the next one that is not.
        self.sequence = Some(if is_empty { number.wrapping_sub(1) } else { number });
        messages.push(message);
        Ok(messages)
    }

    /// Hands over the values of a message. `is_old` means that rows of its time may have been read from
    /// the history meanwhile.
    async fn take(
        &mut self,
        message: &NotificationMessage,
        is_old: bool,
        plan: &Plan,
        known: &mut Known,
        outbox: &Outbox,
    ) -> Result<(), Failure> {
        let parts = message.notification_data.iter().flatten();
        let mut came: Vec<(usize, Timestamp, &DataValue)> = Vec::new();
        let mut trouble = None;
        for part in parts {
            if let Some(change) = part.inner_as::<StatusChangeNotification>() {
                let why = format!("the server ended the subscription ({})", change.status);
                return Err(Failure::Lost(why));
            }
            let Some(change) = part.inner_as::<DataChangeNotification>() else { continue };
            for item in change.monitored_items.iter().flatten() {
                let tag = (item.client_handle as usize).wrapping_sub(1);
                let Some(name) = known.names.get(tag) else { continue };
                let status = item.value.status.unwrap_or_default();
                let time = stamp(&item.value);
                if time.is_none() && status.is_bad() {
                    // That is how some servers say that a node is not there.
                    trouble = Some(format!("{name}: {status}"));
                    continue;
                }
                if status.overflow() && !self.is_overflow_told {
                    self.is_overflow_told = true;
                    trouble = Some(format!(
                        "{name}: values were lost on the server, its queue is too short"
                    ));
                }
                came.push((tag, time.unwrap_or_else(Timestamp::now), &item.value));
            }
        }
        if let Some(what) = trouble {
            hand(outbox, What::Server(Served::Trouble(what))).await?;
        }
        // The first value of a tag is the one that was there already: it may be of any age.
        let grid = i128::from((plan.grid.as_nanos() as i64).max(1));
        let slot = |time: Timestamp| time.as_nanosecond().div_euclid(grid);
        let youngest = came.iter().map(|(_, time, _)| slot(*time)).max().unwrap_or_default();
        let hold = i128::from(plan.hold.as_nanos() as i64) / grid;
        let mut values = Vec::with_capacity(came.len());
        for (tag, time, value) in came {
            let is_first = !std::mem::replace(&mut self.seen[tag], true);
            let is_known = known.newest[tag].is_some_and(|newest| slot(time) <= slot(newest));
            if (is_first || is_old) && is_known || is_first && slot(time) < youngest - hold {
                continue;
            }
            known.newest[tag] = known.newest[tag].max(Some(time));
            let status = value.status.unwrap_or_default();
            let quality = if status.is_bad() {
                Quality::Bad
            } else if status.is_uncertain() {
                Quality::Uncertain
            } else {
                Quality::Good
            };
            let number = value.value.as_ref().and_then(number).unwrap_or(f64::NAN);
            values.push((tag, time, number, quality));
        }
        if !values.is_empty() {
            known.was_of_use = true;
            known.has_begun = true;
            hand(outbox, What::Server(Served::Values(values))).await?;
        }
        Ok(())
    }
}
