//! Rows of a server's own history: normal data to learn from, and rows that were missed.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use opcua::client::HistoryReadAction;
use opcua::types::{
    ByteString, DataValue, HistoryData, HistoryReadValueId, NodeId, NumericRange, QualifiedName,
    ReadRawModifiedDetails, ReadValueId, StatusCode, TimestampsToReturn,
};

use super::browse::{is_unknown, lost, number};
use super::link::Link;
use super::{Failure, Known, Plan, date_time, hand, timestamp};
use crate::session::OpcUaPast;
use crate::stream::live::arrival::{Outbox, Served, What};

/// Values of one tag that are asked for at once, and tags of one request: small servers answer too.
const VALUES: u32 = 1000;
const TAGS: usize = 20;
/// Tags whose present value is asked for at once.
const READ: usize = 500;
/// How much of the past is looked at to understand a tag.
const RECENT: Duration = Duration::from_mins(15);
/// The next time that a server can tell apart.
const TICK: Duration = Duration::from_nanos(100);

/// The present values of all tags, where they are there.
pub(super) async fn present(
    link: &Link,
    nodes: &[Option<NodeId>],
) -> Result<Vec<Option<DataValue>>, Failure> {
    let mut values: Vec<Option<DataValue>> = vec![None; nodes.len()];
    let there: Vec<(usize, &NodeId)> =
        nodes.iter().enumerate().filter_map(|(tag, node)| Some((tag, node.as_ref()?))).collect();
    for tags in there.chunks(READ) {
        let asked: Vec<ReadValueId> =
            tags.iter().map(|(_, node)| ReadValueId::new_value((*node).clone())).collect();
        let read = link.session.read(&asked, TimestampsToReturn::Both, 0.0).await.map_err(lost)?;
        for ((tag, _), value) in tags.iter().zip(read) {
            values[*tag] = Some(value);
        }
    }
    Ok(values)
}

/// What is wrong with a tag, as its present value says.
pub(super) fn complaint(value: &DataValue) -> Option<String> {
    match value.status {
        Some(status) if is_unknown(status) => Some("the server has no such node".into()),
        Some(StatusCode::BadUserAccessDenied | StatusCode::BadNotReadable) => {
            Some("the server does not let us read it".into())
        }
        _ => match &value.value {
            Some(value) if number(value).is_none() => Some("it holds no number".into()),
            _ => None,
        },
    }
}

/// The newest stamp of these values.
pub(super) fn newest(values: &[Option<DataValue>]) -> Option<Timestamp> {
    values.iter().flatten().filter_map(stamp).max()
}

/// The stamp of a value: that of its source, where there is one.
pub(super) fn stamp(value: &DataValue) -> Option<Timestamp> {
    let time = value.source_timestamp.or(value.server_timestamp)?;
    timestamp(time)
}

/// Reads the normal data of the session, up to the newest value there is.
pub(super) async fn learn(
    plan: &Plan,
    known: &mut Known,
    link: &Link,
    nodes: &[Option<NodeId>],
    newest: Option<Timestamp>,
    outbox: &Outbox,
) -> Result<(), Failure> {
    let (Some(length), Some(newest)) = (plan.learns, newest) else { return Ok(()) };
    let from = match plan.source.past {
        OpcUaPast::From(time) => time,
        OpcUaPast::Before | OpcUaPast::Unread => newest - length + plan.grid,
    };
    let pages = Pages { plan, link, nodes };
    // What was read before the connection was lost is not read again.
    let read = known.newest.iter().flatten().max().copied();
    let from = read.map_or(from, |last| from.max(pages.time(pages.slot(last) + 1)));
    let rows = pages.hand_over(known, from, newest, outbox).await?;
    if rows == 0 && read.is_none() {
        let what = "the server keeps no history of these tags: what is normal is learned from what \
                    comes";
        hand(outbox, What::Server(Served::Trouble(what.into()))).await?;
    }
    Ok(())
}

/// Reads the rows since the last one that was handed over, and that one again.
pub(super) async fn catch_up(
    plan: &Plan,
    known: &mut Known,
    link: &Link,
    nodes: &[Option<NodeId>],
    outbox: &Outbox,
) -> Result<(), Failure> {
    let Some(last) = known.newest.iter().flatten().max().copied() else { return Ok(()) };
    let Some(newest) = newest(&present(link, nodes).await?) else { return Ok(()) };
    if newest > last {
        let pages = Pages { plan, link, nodes };
        // The last row may lack values that were on their way: it is read again.
        let from = pages.time(pages.slot(last));
        pages.hand_over(known, from, newest, outbox).await?;
    }
    Ok(())
}

/// The values of the last minutes, tag by tag, where the server has them.
pub(super) async fn recent(
    plan: &Plan,
    link: &Link,
    nodes: &[Option<NodeId>],
    newest: Option<Timestamp>,
) -> Result<Vec<Vec<f64>>, Failure> {
    let mut recent = vec![Vec::new(); nodes.len()];
    let Some(newest) = newest else { return Ok(recent) };
    let pages = Pages { plan, link, nodes };
    let there: Vec<(usize, &NodeId)> =
        nodes.iter().enumerate().filter_map(|(tag, node)| Some((tag, node.as_ref()?))).collect();
    for tags in there.chunks(TAGS) {
        let values = pages.values(tags, newest - RECENT, newest + TICK).await?;
        for ((tag, _), values) in tags.iter().zip(values) {
            recent[*tag] = values.into_iter().map(|(_, value)| value).collect();
        }
    }
    Ok(recent)
}

/// One value of history.
type Past = (Timestamp, f64);

struct Pages<'a> {
    plan: &'a Plan,
    link: &'a Link,
    nodes: &'a [Option<NodeId>],
}

impl Pages<'_> {
    fn grid(&self) -> i128 {
        i128::from((self.plan.grid.as_nanos() as i64).max(1))
    }

    /// The row that a stamp belongs to.
    fn slot(&self, time: Timestamp) -> i128 {
        time.as_nanosecond().div_euclid(self.grid())
    }

    fn time(&self, slot: i128) -> Timestamp {
        Timestamp::from_nanosecond(slot * self.grid()).unwrap_or(Timestamp::MAX)
    }

    /// Hands all rows from `from` to `newest` to the engine; says how many. The last row is left out
    /// while it lacks values: the rest of it is still to come.
    async fn hand_over(
        &self,
        known: &mut Known,
        from: Timestamp,
        newest: Timestamp,
        outbox: &Outbox,
    ) -> Result<usize, Failure> {
        let (mut slot, last) = (self.slot(from), self.slot(newest));
        let mut held: Vec<Option<(i128, f64)>> = vec![None; self.nodes.len()];
        let hold = i128::from(self.plan.hold.as_nanos() as i64) / self.grid();
        let mut all = 0;
        while slot <= last {
            let end = (slot + i128::from(VALUES)).min(last + 1);
            let mut rows = self.page(slot, end).await?;
            let is_whole = |row: &Vec<f64>| {
                row.iter().zip(self.nodes).all(|(v, node)| v.is_finite() || node.is_none())
            };
            if rows.get(&last).is_some_and(|row| !is_whole(row)) {
                rows.remove(&last);
            }
            let mut page = Vec::with_capacity(rows.len());
            let mut newest = known.newest.clone();
            for (slot, mut row) in rows {
                let time = self.time(slot);
                let tags = row.iter_mut().zip(&mut held).zip(&mut newest);
                for ((value, held), newest) in tags {
                    if value.is_finite() {
                        *newest = (*newest).max(Some(time));
                        *held = Some((slot, *value));
                    } else if let Some((since, older)) = held
                        && slot - *since <= hold
                    {
                        *value = *older;
                    }
                }
                page.push((time, row));
            }
            if !page.is_empty() {
                all += page.len();
                hand(outbox, What::Server(Served::Rows(page))).await?;
                (known.newest, known.was_of_use) = (newest, true);
            }
            slot = end;
        }
        Ok(all)
    }

    /// The rows of some slots. Of two values for one row the first counts, as it does live.
    async fn page(&self, first: i128, end: i128) -> Result<BTreeMap<i128, Vec<f64>>, Failure> {
        let mut rows: BTreeMap<i128, Vec<f64>> = BTreeMap::new();
        let there: Vec<(usize, &NodeId)> = (self.nodes.iter().enumerate())
            .filter_map(|(tag, node)| Some((tag, node.as_ref()?)))
            .collect();
        let (from, until) = (self.time(first), self.time(end));
        for tags in there.chunks(TAGS) {
            for ((tag, _), values) in tags.iter().zip(self.values(tags, from, until).await?) {
                let mut filled = None;
                for (time, value) in values.into_iter().filter(|(t, _)| *t >= from && *t < until) {
                    let slot = self.slot(time);
                    let row = rows.entry(slot).or_insert_with(|| vec![f64::NAN; self.nodes.len()]);
                    if filled != Some(slot) {
                        row[*tag] = value;
                        filled = Some(slot);
                    }
                }
            }
        }
        Ok(rows)
    }

    /// All values of some tags between two times. A server may give a part with a point at which it
    /// goes on, or a part without: then the rest is asked for by time.
    async fn values(
        &self,
        tags: &[(usize, &NodeId)],
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Vec<Past>>, Failure> {
        let mut all: Vec<Vec<Past>> = vec![Vec::new(); tags.len()];
        let mut open: Vec<(usize, ByteString)> =
            (0..tags.len()).map(|tag| (tag, ByteString::null())).collect();
        let mut cut_off = Vec::new();
        while !open.is_empty() {
            let nodes: Vec<(&NodeId, ByteString)> =
                open.iter().map(|(tag, point)| (tags[*tag].1, point.clone())).collect();
            let parts = self.part(&nodes, from, until).await?;
            let mut rest = Vec::new();
            for ((tag, _), (values, point)) in open.iter().zip(parts) {
                let is_full = values.len() >= VALUES as usize;
                all[*tag].extend(values);
                if !point.is_null_or_empty() {
                    rest.push((*tag, point));
                } else if is_full {
                    cut_off.push(*tag);
                }
            }
            open = rest;
        }
        for tag in cut_off {
            let node = tags[tag].1;
            while let Some((last, _)) = all[tag].last().copied().filter(|(last, _)| *last < until) {
                let asked = [(node, ByteString::null())];
                let parts = self.part(&asked, last + TICK, until).await?;
                let Some((values, _)) = parts.into_iter().next() else { break };
                // A server that gives the same again has no more.
                let newer: Vec<Past> = values.into_iter().filter(|(t, _)| *t > last).collect();
                let is_full = newer.len() >= VALUES as usize;
                all[tag].extend(newer);
                if !is_full {
                    break;
                }
            }
        }
        Ok(all)
    }

    async fn part(
        &self,
        nodes: &[(&NodeId, ByteString)],
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<(Vec<Past>, ByteString)>, Failure> {
        let details = ReadRawModifiedDetails {
            is_read_modified: false,
            start_time: date_time(from),
            end_time: date_time(until),
            num_values_per_node: VALUES,
            return_bounds: false,
        };
        let ask = |(node, point): &(&NodeId, ByteString)| HistoryReadValueId {
            node_id: (*node).clone(),
            index_range: NumericRange::None,
            data_encoding: QualifiedName::null(),
            continuation_point: point.clone(),
        };
        let asked: Vec<HistoryReadValueId> = nodes.iter().map(ask).collect();
        let action = HistoryReadAction::ReadRawModifiedDetails(details);
        let read =
            self.link.session.history_read(action, TimestampsToReturn::Source, false, &asked);
        let results = match read.await {
            Ok(results) => results,
            Err(why) if has_none(why.status()) => return Ok(vec![Default::default(); nodes.len()]),
            Err(why) => return Err(lost(why)),
        };
        let mut parts = Vec::with_capacity(results.len());
        for result in results {
            if result.status_code.is_bad() && !has_none(result.status_code) {
                return Err(lost(format!("history: {}", result.status_code)));
            }
            let data = result.history_data.into_inner_as::<HistoryData>();
            let values = data.and_then(|data| data.data_values).unwrap_or_default();
            let values = values.iter().filter_map(past).collect();
            parts.push((values, result.continuation_point));
        }
        parts.resize(nodes.len(), Default::default());
        Ok(parts)
    }
}

/// Whether a status says that a server keeps no history, or none of the asked time.
fn has_none(status: StatusCode) -> bool {
    [
        StatusCode::BadHistoryOperationUnsupported,
        StatusCode::BadServiceUnsupported,
        StatusCode::BadUserAccessDenied,
        StatusCode::BadNoData,
        StatusCode::BadNodeIdUnknown,
    ]
    .contains(&status)
}

/// Time and value; NaN where the value is bad.
fn past(value: &DataValue) -> Option<Past> {
    let is_bad = value.status.is_some_and(|status| status.is_bad());
    let number = value.value.as_ref().and_then(number).filter(|_| !is_bad);
    Some((stamp(value)?, number.unwrap_or(f64::NAN)))
}
