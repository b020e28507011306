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
pub(super) const PATIENCE: u32 = 3;

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

    /// Whether a step is closed, by who has answered; `half` is when half of the awaited sites had. Without
    /// a deadline everybody is awaited.
    fn is_closed(
        &self,
        there: impl Iterator<Item = (usize, bool)>,
        half: &mut Option<Instant>,
        deadline: Option<Duration>,
    ) -> bool {
        let (mut all, mut awaited, mut answered) = (0, 0, 0);
        for (client, has_answered) in there {
            let is_awaited = deadline.is_none() || has_answered || self.missed[client] < PATIENCE;
            all += 1;
            awaited += usize::from(is_awaited);
            answered += usize::from(has_answered);
        }
        if awaited == 0 {
            awaited = all;
        }
        if answered == awaited {
            return true;
        }
        if 2 * answered < awaited {
            return false;
        }
        let since = half.get_or_insert_with(Instant::now).elapsed();
        deadline.is_some_and(|deadline| since >= deadline)
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
        let there = self.clients().filter(|m| !self.has_left(*m)).map(|m| (m, has_answered(m)));
        // Nobody can be left out of the enrolment.
        let deadline = self.deadline.filter(|_| self.next > 0);
        grid.is_closed(there, half, deadline)
    }

    /// The step as its number says; none where the data of everybody has ended. The enrolment is at the
    /// time of step 1.
    pub(super) fn on_grid(&mut self) -> Option<Step> {
        let is_over = |m: usize| self.ended[m].is_some() || self.has_left(m);
        if self.clients().all(is_over) {
            return None;
        }
        let times = self.came.iter().flatten().map(|(step, _)| nanosecond(step.time())).collect();
        self.step_of_grid(times)
    }

    /// The step that is next; `times` are those that sites enrolled with: their first rows.
    pub(super) fn step_of_grid(&mut self, mut times: Vec<i64>) -> Option<Step> {
        let grid = self.grid.as_mut()?;
        if self.next == 0 {
            times.sort_unstable();
            // Half of the sites have a row by then. The latest would let one site put off the run for ever.
            grid.first = times.get(times.len() / 2).copied();
        }
        let time = grid.time(self.next.max(1))?;
        let continuity = if self.next <= 1 { Continuity::NewRun } else { Continuity::Next };
        Some(Step::new(self.next, time, continuity, Vec::new()))
    }

    /// Counts who was not there, now that the step is closed.
    pub(super) fn count_misses(&mut self) {
        for client in self.clients() {
            if self.joining.is_absent(client) {
                continue;
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_step_follows_from_its_number_and_nothing_overflows() {
        let mut grid = Grid::new(5.0, 2);
        assert_eq!(grid.time(1), None, "before everybody has enrolled");
        grid.first = Some(1_000_000_000);
        assert_eq!(grid.nanosecond(0), None, "the enrolment has no time of its own");
        assert_eq!(grid.nanosecond(1), Some(1_000_000_000));
        assert_eq!(grid.nanosecond(3), Some(11_000_000_000));
        assert_eq!(grid.nanosecond(u64::MAX), None);
        assert_eq!(Grid::new(0.0, 0).period, 1, "a period is never nothing");
    }

    #[test]
    fn one_site_alone_closes_no_step_and_one_that_missed_three_is_not_awaited() {
        let mut grid = Grid::new(5.0, 4);
        let at_once = Some(Duration::ZERO);
        let closed = |grid: &Grid, answered: [bool; 4], deadline| {
            grid.is_closed(answered.into_iter().enumerate(), &mut None, deadline)
        };
        let one = [true, false, false, false];
        let two = [true, true, false, false];
        assert!(!closed(&grid, one, at_once), "less than half of them");
        assert!(closed(&grid, two, at_once));
        assert!(!closed(&grid, two, Some(Duration::from_hours(1))), "the deadline is not over");
        assert!(closed(&grid, [true; 4], None));
        grid.missed = vec![0, 0, PATIENCE, PATIENCE];
        assert!(closed(&grid, two, Some(Duration::from_hours(1))), "nobody else is awaited");
        assert!(!closed(&grid, two, None), "without a deadline everybody is");
        grid.missed = vec![PATIENCE; 4];
        assert!(!closed(&grid, [false; 4], at_once), "somebody must have answered");
    }
}
