//! Steps of sites whose sources are live: their times follow from their numbers, and a step is closed at
//! its deadline.
//!
//! The deadline counts from the moment that half of the awaited sites have sent the step, so that one site
//! alone cannot hurry the others. A site that missed [`PATIENCE`] steps in a row is not awaited until it is
//! near again: it costs the others no time.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::super::envelope::{Step, nanosecond};
use super::Desk;
use crate::stream::Continuity;

/// Steps that a site may miss in a row before nobody waits for it.
const PATIENCE: u32 = 3;

/// The time grid of live sources, and who keeps to it.
#[derive(Debug)]
pub(in crate::remote) struct Grid {
    /// Nanoseconds of a step.
    period: i64,
    /// The time of step 1; none before every site has enrolled.
    pub(super) first: Option<i64>,
    /// Steps that each site has missed in a row.
    missed: Vec<u32>,
    /// Who was there and had no row for the present step.
    nothing: Vec<bool>,
}

impl Grid {
    pub(in crate::remote) fn new(period_s: f64, clients: usize) -> Self {
        Self {
            period: ((period_s * 1e9).round() as i64).max(1),
            first: None,
            missed: vec![0; clients],
            nothing: vec![false; clients],
        }
    }

    fn nanosecond(&self, step: u64) -> Option<i64> {
        let after = i64::try_from(step.checked_sub(1)?).ok()?.checked_mul(self.period)?;
        self.first?.checked_add(after)
    }

    fn time(&self, step: u64) -> Option<Timestamp> {
        Timestamp::from_nanosecond(i128::from(self.nanosecond(step)?)).ok()
    }
}

impl Desk {
    /// Whether a step has the time that its number says. Without live sources all sites must agree instead.
    pub(super) fn is_in_time(&self, step: &Step) -> bool {
        let Some(grid) = &self.grid else { return true };
        step.number == 0 || grid.nanosecond(step.number) == Some(nanosecond(step.time()))
    }

    /// A site was there and had no row for a step.
    pub(super) fn has_nothing(&mut self, client: usize, step: u64) {
        let is_next = step == self.next && step > 0 && self.came[client].is_none();
        match &mut self.grid {
            Some(grid) if is_next && !grid.nothing[client] => grid.nothing[client] = true,
            _ => self.accounts[client].counts.duplicates += 1,
        }
    }

    /// A step came after its end: whoever is that near is awaited again.
    pub(super) fn is_near(&mut self, client: usize, step: u64) {
        if let Some(grid) = &mut self.grid
            && step.saturating_add(u64::from(PATIENCE)) >= self.next
        {
            grid.missed[client] = 0;
        }
    }

    /// Waits until every awaited site has answered, or the deadline has passed.
    pub(super) fn wait_for_live_step(&mut self) {
        let mut half: Option<Instant> = None;
        while self.failed.is_none() && !self.is_answered(&mut half) {
            self.listen();
        }
    }

    fn is_answered(&self, half: &mut Option<Instant>) -> bool {
        let Some(grid) = &self.grid else { return true };
        let has_answered =
            |m: usize| self.came[m].is_some() || grid.nothing[m] || self.ended[m].is_some();
        let (mut all, mut awaited, mut answered) = (0, 0, 0);
        for client in self.clients().filter(|m| !self.has_left(*m)) {
            let has_answered = has_answered(client);
            all += 1;
            answered += usize::from(has_answered);
            let is_awaited = self.next == 0 || grid.missed[client] < PATIENCE || has_answered;
            awaited += usize::from(is_awaited);
        }
        if awaited == 0 {
            awaited = all;
        }
        if answered == awaited {
            return true;
        }
        // Nobody can be left out of the enrolment.
        if self.next == 0 || 2 * answered < awaited {
            return false;
        }
        let since = half.get_or_insert_with(Instant::now).elapsed();
        since >= self.deadline.unwrap_or(Duration::MAX)
    }

    /// The step as its number says; none where the data of everybody has ended. The enrolment is at the
    /// time of step 1: the first that every site has.
    pub(super) fn on_grid(&mut self) -> Option<Step> {
        let is_over = |m: usize| self.ended[m].is_some() || self.has_left(m);
        if self.clients().all(is_over) {
            return None;
        }
        let times = self.came.iter().flatten().map(|(step, _)| nanosecond(step.time()));
        let latest = times.max();
        self.step_of_grid(latest)
    }

    /// The step that is next; `latest` is the latest time that a site enrolled with.
    pub(super) fn step_of_grid(&mut self, latest: Option<i64>) -> Option<Step> {
        let grid = self.grid.as_mut()?;
        if self.next == 0 {
            grid.first = latest;
        }
        let time = grid.time(self.next.max(1))?;
        let continuity = if self.next <= 1 { Continuity::NewRun } else { Continuity::Next };
        Some(Step::new(self.next, time, continuity, Vec::new()))
    }

    /// Counts who was not there, now that the step is closed.
    pub(super) fn count_misses(&mut self) {
        for client in self.clients() {
            let Some(grid) = &mut self.grid else { return };
            let had_nothing = std::mem::take(&mut grid.nothing[client]);
            if self.came[client].is_some() || had_nothing {
                grid.missed[client] = 0;
            } else {
                grid.missed[client] = grid.missed[client].saturating_add(1);
            }
            if self.came[client].is_none() {
                if had_nothing {
                    // It will not come later.
                    self.accounts[client].counts.missing += 1;
                } else {
                    self.accounts[client].miss(self.next);
                }
            }
        }
    }
}
