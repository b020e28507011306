//! What a broker delivers: it is listened to for a stated time, then a session is proposed.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use color_eyre::eyre::{Result, bail, eyre};
use jiff::Timestamp;
use rumqttc::{AsyncClient, Event, Packet, QoS};
use serde_json::{Map, Value};

use super::look::{Column, Holds, Tables, kind_of};
use crate::base::broker::Access;
use crate::session::{Span, TimeColumn, TimeFormat};
use crate::stream::table::clock::Clock;
use crate::stream::table::number::Numbers;

/// Messages that are looked at; what comes after them says nothing new.
const MESSAGES: usize = 20_000;
/// Values of a tag that are looked at.
const VALUES: usize = 500;
/// Keys that hold the value where a message has one tag.
const VALUE_KEYS: [&str; 4] = ["value", "v", "val", "Value"];
const QUALITY_KEYS: [&str; 4] = ["quality", "q", "status", "Quality"];
/// Second 0 of a clock that counts from 1970 on.
const EPOCH: &str = "1970-01-01 00:00:00";

/// How the broker is reached.
#[derive(Debug, Clone, Default)]
pub(super) struct Reached<'a> {
    pub(super) url: &'a str,
    pub(super) topic: &'a str,
    pub(super) user: Option<&'a str>,
    pub(super) password_env: Option<&'a str>,
    pub(super) ca: Option<&'a Path>,
}

/// How measurements lie in messages.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Layout {
    /// All of an instant in one object, under this topic.
    Rows(String),
    /// A topic a tag, with the keys of value and quality.
    Tags { topic: String, value: String, quality: Option<String> },
}

/// The messages that arrived.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) layout: Layout,
    /// Columns, time and period, as of a table.
    pub(super) tables: Tables,
    pub(super) messages: usize,
    pub(super) seconds: f64,
}

/// One message with its topic, read as JSON.
type Message = (String, Map<String, Value>);

/// Subscribes to a broker, and returns what it delivers.
pub(super) fn listen(reached: &Reached<'_>, time: Span) -> Result<Heard> {
    let access = Access {
        url: reached.url,
        user: reached.user,
        password_env: reached.password_env,
        ca: reached.ca,
        ..Access::default()
    };
    let options = access.options().map_err(|why| eyre!("{}: {why}", reached.url))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let longest = Duration::from_secs_f64(time.seconds);
    let begun = Instant::now();
    let mut messages: Vec<Message> = Vec::new();
    let mut others = 0_usize;
    let listening = async {
        let (client, mut events) = AsyncClient::builder(options).capacity(4).build();
        loop {
            match events.poll().await {
                Ok(Event::Incoming(Packet::ConnAck(_))) => {
                    let asked = client.try_subscribe(reached.topic, QoS::AtMostOnce);
                    asked.map_err(|why| eyre!("{}: {why}", reached.url))?;
                }
                Ok(Event::Incoming(Packet::Publish(message))) => {
                    let topic = String::from_utf8_lossy(&message.topic).into_owned();
                    match serde_json::from_slice(&message.payload) {
                        Ok(object) => messages.push((topic, object)),
                        Err(_) => others += 1,
                    }
                    if messages.len() >= MESSAGES {
                        return Ok(());
                    }
                }
                Ok(_) => {}
                Err(why) => return Err(eyre!("{}: {why}", reached.url)),
            }
        }
    };
    // The end of the time is the usual end.
    if let Ok(ended) = runtime.block_on(async { tokio::time::timeout(longest, listening).await }) {
        ended?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    if messages.is_empty() {
        let heard = match others {
            0 => "nothing was published".to_owned(),
            n => format!("{n} messages are no JSON objects"),
        };
        bail!(
            "{}: in {seconds:.0} s {heard} under the topic {:?}: --for and --topic change that",
            reached.url,
            reached.topic
        );
    }
    understand(&messages, seconds).map_err(|why| eyre!("{}: {why}", reached.url))
}

/// The layout of messages and what their tags hold.
fn understand(messages: &[Message], seconds: f64) -> Result<Heard, String> {
    let (time_key, format) = time_of(messages)?;
    let time = TimeColumn { column: time_key.clone(), format, utc_offset_h: 0.0 };
    let layout = layout_of(messages, &time_key)?;
    let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    let mut add = |name: &str, value: Option<f64>| {
        let Some(value) = value else { return };
        let known = values.entry(name.to_owned()).or_insert_with(|| {
            order.push(name.to_owned());
            Vec::new()
        });
        if known.len() < VALUES {
            known.push(value);
        }
    };
    let clock = Clock::new(&time).map_err(|why| why.to_string())?;
    let mut stamps: Vec<Timestamp> = Vec::new();
    let first_tag = messages.iter().find_map(|(topic, _)| tag_of(&layout, topic));
    for (topic, object) in messages {
        let mut is_stamp = false;
        match &layout {
            Layout::Rows(wanted) if wanted == topic => {
                is_stamp = true;
                for (name, value) in object.iter().filter(|(name, _)| **name != time_key) {
                    add(name, number(value));
                }
            }
            Layout::Tags { value, .. } => {
                if let Some(tag) = tag_of(&layout, topic) {
                    is_stamp = Some(&tag) == first_tag.as_ref();
                    add(&tag, object.get(value).and_then(number));
                }
            }
            Layout::Rows(_) => {}
        }
        if is_stamp && let Some(now) = object.get(&time_key).and_then(|v| stamp(v, &clock)) {
            stamps.push(now);
        }
    }
    let mut steps: Vec<f64> = stamps
        .windows(2)
        .map(|pair| pair[1].duration_since(pair[0]).as_secs_f64())
        .filter(|step| *step > 0.0)
        .collect();
    steps.sort_by(f64::total_cmp);
    let period_s = steps.get(steps.len() / 2).copied().ok_or_else(|| {
        format!("only {} rows came in {seconds:.0} s, too few to see their distance", stamps.len())
    })?;
    let describe = |name: &String| {
        let what = match kind_of(&values[name]) {
            // A minute says nothing about a sensor that seldom moves.
            Holds::Constant => Holds::Measurement,
            other => other,
        };
        Column { name: name.clone(), what }
    };
    let columns: Vec<Column> = order.iter().map(describe).collect();
    if columns.len() < 2 {
        return Err("messages hold fewer than two measurements".to_owned());
    }
    let tables = Tables {
        folder: std::path::PathBuf::new(),
        files: Vec::new(),
        columns,
        time: Some(time),
        period_s,
        unlabelled: Vec::new(),
        others: Vec::new(),
    };
    Ok(Heard { layout, tables, messages: messages.len(), seconds })
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_bool().map(|on| if on { 1.0 } else { 0.0 }))
}

fn stamp(value: &Value, clock: &Clock) -> Option<Timestamp> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    clock.read(text.as_bytes(), &Numbers::default(), false)
}

/// The key that holds the time in nearly all messages, and how it is written.
fn time_of(messages: &[Message]) -> Result<(String, TimeFormat), String> {
    let is_named = |name: &str| {
        let name = name.to_lowercase();
        name.contains("time") || name.contains("date") || ["ts", "t"].contains(&&name[..])
    };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in messages.iter().flat_map(|(_, object)| object.keys()).filter(|n| is_named(n)) {
        *counts.entry(name).or_default() += 1;
    }
    let usual = counts.into_iter().max_by_key(|(_, count)| *count);
    let Some((key, _)) = usual else {
        return Err("no key of the messages is called like a time (timestamp, time, ts)".into());
    };
    let seconds = TimeFormat::Seconds { since: EPOCH.into() };
    for format in [TimeFormat::Auto, seconds] {
        let time = TimeColumn { column: key.to_owned(), format, utc_offset_h: 0.0 };
        let Ok(clock) = Clock::new(&time) else { continue };
        let values = || messages.iter().filter_map(|(_, object)| object.get(key));
        let read = values().filter_map(|value| stamp(value, &clock)).count();
        // Milliseconds since 1970 would lie far in the future.
        let last = values().filter_map(|value| stamp(value, &clock)).next_back();
        let is_sane = last.is_none_or(|last| last.as_second() < 10_000_000_000);
        if read * 10 >= values().count() * 9 && is_sane {
            return Ok((key.to_owned(), time.format));
        }
    }
    Err(format!(
        "the times under {key:?} can be read neither as a date nor as seconds since 1970; name a \
         `time.format` in a session of your own"
    ))
}

/// Whether most messages are rows or single values, and under which topic.
fn layout_of(messages: &[Message], time_key: &str) -> Result<Layout, String> {
    let value_key = |object: &Map<String, Value>| {
        VALUE_KEYS.into_iter().find(|key| object.get(*key).and_then(number).is_some())
    };
    let is_single = |object: &Map<String, Value>| object.len() <= 5 && value_key(object).is_some();
    let singles: Vec<&Message> = messages.iter().filter(|(_, o)| is_single(o)).collect();
    if singles.len() * 2 > messages.len() {
        let topics: std::collections::BTreeSet<&str> =
            singles.iter().map(|(topic, _)| &topic[..]).collect();
        let (_, first) = singles[0];
        let value = value_key(first).unwrap_or(VALUE_KEYS[0]).to_owned();
        let quality = QUALITY_KEYS.into_iter().find(|key| first.contains_key(*key));
        let topic = template(&topics)?;
        return Ok(Layout::Tags { topic, value, quality: quality.map(str::to_owned) });
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (topic, object) in messages {
        let numbers = object.iter().filter(|(key, v)| *key != time_key && number(v).is_some());
        *counts.entry(topic).or_default() += numbers.count();
    }
    let fullest = counts.into_iter().max_by_key(|(_, numbers)| *numbers);
    fullest
        .filter(|(_, numbers)| *numbers > 0)
        .map(|(topic, _)| Layout::Rows(topic.to_owned()))
        .ok_or_else(|| "messages hold no numbers".to_owned())
}

/// Topics that differ in one level, with `{tag}` in its place.
fn template(topics: &std::collections::BTreeSet<&str>) -> Result<String, String> {
    let split: Vec<Vec<&str>> = topics.iter().map(|topic| topic.split('/').collect()).collect();
    let depth = split[0].len();
    let differing: Vec<usize> = (0..depth)
        .filter(|at| split.iter().any(|levels| levels.get(*at) != split[0].get(*at)))
        .collect();
    let one_depth = split.iter().all(|levels| levels.len() == depth);
    match differing[..] {
        [at] if one_depth => {
            let level = |(i, level): (usize, &&str)| {
                if i == at { "{tag}".to_owned() } else { (*level).to_owned() }
            };
            Ok(split[0].iter().enumerate().map(level).collect::<Vec<_>>().join("/"))
        }
        _ => Err(format!(
            "the topics of the values do not differ in exactly one level ({} of them, such as {:?}); \
             --topic narrows what is looked at",
            topics.len(),
            topics.iter().next().copied().unwrap_or_default()
        )),
    }
}

/// The tag that a topic stands for.
fn tag_of(layout: &Layout, topic: &str) -> Option<String> {
    let Layout::Tags { topic: template, .. } = layout else { return None };
    let (levels, wanted): (Vec<&str>, Vec<&str>) =
        (topic.split('/').collect(), template.split('/').collect());
    if levels.len() != wanted.len() {
        return None;
    }
    let mut tag = None;
    for (level, wanted) in levels.into_iter().zip(wanted) {
        match wanted {
            "{tag}" => tag = Some(level.to_owned()),
            wanted if wanted != level => return None,
            _ => {}
        }
    }
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(topic: &str, json: &str) -> Message {
        (topic.to_owned(), serde_json::from_str(json).expect("an object"))
    }

    #[test]
    fn rows_and_single_values_are_told_apart() {
        let rows: Vec<Message> = (0..20)
            .map(|s| {
                let json =
                    format!(r#"{{"ts":{}, "A_x":{s}.5, "A_y":1, "B_x":2}}"#, 1_700_000_000 + s);
                message("plant/row", &json)
            })
            .collect();
        let heard = understand(&rows, 20.0).expect("rows");
        assert_eq!(heard.layout, Layout::Rows("plant/row".into()));
        assert_eq!(heard.tables.columns.len(), 3);
        assert!((heard.tables.period_s - 1.0).abs() < 1e-9);
        let tags: Vec<Message> = (0..20)
            .flat_map(|s| {
                ["A_x", "A_y"].map(|tag| {
                    let json =
                        format!(r#"{{"time":"2026-01-01T00:00:{s:02}Z","v":{s}.25,"q":"good"}}"#);
                    message(&format!("site/{tag}/now"), &json)
                })
            })
            .collect();
        let heard = understand(&tags, 20.0).expect("tags");
        let expected = Layout::Tags {
            topic: "site/{tag}/now".into(),
            value: "v".into(),
            quality: Some("q".into()),
        };
        assert_eq!(heard.layout, expected);
        let names: Vec<&str> = heard.tables.columns.iter().map(|c| &c.name[..]).collect();
        assert_eq!(names, ["A_x", "A_y"]);
    }

    #[test]
    fn messages_without_a_time_are_refused_in_words() {
        let rows = [message("a", r#"{"x":1,"y":2}"#)];
        assert!(understand(&rows, 1.0).expect_err("no time").contains("called like a time"));
    }
}
