//! How much an operator is asked: alarms in ten minutes, floods, chattering.
//!
//! The limits are those of ISA-18.2 and EEMUA 191. Only data time counts, so that a replay at any
//! speed gives the same figures.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

/// The span over which alarms are counted.
pub(crate) const TEN_MINUTES: SignedDuration = SignedDuration::from_mins(10);
/// The span over which a chattering client is found.
pub(crate) const MINUTE: SignedDuration = SignedDuration::from_mins(1);
/// A flood begins above this many alarms in ten minutes.
pub(crate) const FLOOD_ABOVE: usize = 10;
/// And ends below this many.
pub(crate) const FLOOD_ENDS_BELOW: usize = 5;
/// A client chatters when it rises this often in a minute.
pub(crate) const CHATTER: usize = 3;
/// An alarm that has been on for this long is stale.
pub(crate) const STALE: SignedDuration = SignedDuration::from_hours(24);

/// Instants of the last while.
#[derive(Debug, Clone)]
pub(crate) struct Recent {
    span: SignedDuration,
    times: VecDeque<Timestamp>,
}

impl Recent {
    /// Keeps instants for `span`.
    pub(crate) fn new(span: SignedDuration) -> Self {
        Self { span, times: VecDeque::new() }
    }

    pub(crate) fn push(&mut self, time: Timestamp) {
        self.times.push_back(time);
    }

    /// Forgets what is out of the span at `now`.
    pub(crate) fn forget(&mut self, now: Timestamp) {
        self.times.retain(|time| now.duration_since(*time) < self.span);
    }

    pub(crate) fn count(&self) -> usize {
        self.times.len()
    }
}

/// Too much at once. It begins and ends at different levels, so that it does not flicker.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Flood {
    since: Option<Timestamp>,
    seconds: f64,
}

/// The beginning or end of a flood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FloodChange {
    Began,
    Ended,
}

impl Flood {
    pub(crate) fn since(&self) -> Option<Timestamp> {
        self.since
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.seconds
    }

    /// One step: `count` in the last ten minutes, `elapsed_s` since the step before.
    pub(crate) fn step(
        &mut self,
        count: usize,
        now: Timestamp,
        elapsed_s: f64,
    ) -> Option<FloodChange> {
        if self.since.is_some() {
            self.seconds += elapsed_s.max(0.0);
        }
        match self.since {
            None if count > FLOOD_ABOVE => {
                self.since = Some(now);
                Some(FloodChange::Began)
            }
            Some(_) if count < FLOOD_ENDS_BELOW => {
                self.since = None;
                Some(FloodChange::Ended)
            }
            _ => None,
        }
    }
}

/// Everything that is counted in time.
#[derive(Debug, Clone)]
pub(super) struct Rates {
    /// Alarms that asked for acknowledgement.
    pub(crate) alarms: Recent,
    pub(crate) incidents: Recent,
    /// Clients whose evidence rose: the alarms there would be without grouping.
    pub(crate) flags: Recent,
    pub(crate) chatter: Vec<Recent>,
    pub(crate) flood: Flood,
    pub(crate) flag_flood: Flood,
}

impl Rates {
    pub(crate) fn new(clients: usize) -> Self {
        Self {
            alarms: Recent::new(TEN_MINUTES),
            incidents: Recent::new(TEN_MINUTES),
            flags: Recent::new(TEN_MINUTES),
            chatter: vec![Recent::new(MINUTE); clients],
            flood: Flood::default(),
            flag_flood: Flood::default(),
        }
    }

    pub(crate) fn flag(&mut self, client: usize, now: Timestamp) {
        self.flags.push(now);
        self.chatter[client].push(now);
    }

    pub(crate) fn forget(&mut self, now: Timestamp) {
        let all = [&mut self.alarms, &mut self.incidents, &mut self.flags];
        all.into_iter().chain(&mut self.chatter).for_each(|recent| recent.forget(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a small second is an instant")
    }

    #[test]
    fn an_alarm_counts_for_ten_minutes_and_not_a_second_longer() {
        let mut alarms = Recent::new(TEN_MINUTES);
        alarms.push(at(0));
        alarms.forget(at(599));
        assert_eq!(alarms.count(), 1);
        alarms.forget(at(600));
        assert_eq!(alarms.count(), 0);
    }

    #[test]
    fn a_flood_begins_above_ten_and_ends_below_five() {
        let mut flood = Flood::default();
        let turns: Vec<_> =
            [10, 11, 10, 5, 4, 10].iter().map(|count| flood.step(*count, at(0), 10.0)).collect();
        let expected = [None, Some(FloodChange::Began), None, None, Some(FloodChange::Ended), None];
        assert_eq!(turns, expected);
        assert!((flood.seconds() - 30.0).abs() < 1e-9);
    }
}
