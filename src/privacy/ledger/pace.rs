//! How fast a ledger spends now, and when its budget will be gone.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Ledger;
use crate::privacy::account::Tally;
use crate::privacy::budget::Purpose;
use crate::session::privacy::Scope;

/// When a budget will be gone at the present pace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Exhaustion {
    NoBudget,
    /// Not at this pace.
    Never,
    /// In so many seconds, or a little later.
    Seconds(f64),
    /// The next release like the last ones does not fit.
    Now,
}

/// Releases as they are made now, and in how many seconds.
#[derive(Debug, Clone)]
struct Pace {
    tally: Tally,
    seconds: f64,
}

/// A pace older than this is no pace.
const PACE_S: f64 = 3600.0;

/// Nobody plans further ahead.
const CENTURY_S: f64 = 100.0 * 365.25 * 86_400.0;

impl Ledger {
    /// ε that one more hour at the present pace would add to the lifetime.
    pub(crate) fn burn_per_hour(&self, now: Timestamp) -> f64 {
        let pace = self.pace(now);
        if pace.tally.releases() == 0 {
            return 0.0;
        }
        let later = self.lifetime.and(&pace.tally.times(3600.0 / pace.seconds));
        let spent = self.lifetime.epsilon(self.terms.delta).0;
        let after = later.epsilon(self.terms.delta).0;
        if after.is_infinite() && spent.is_infinite() { f64::INFINITY } else { after - spent }
    }

    /// When the budget will be gone if the present pace goes on. For a window nothing is taken
    /// to leave it, so the true time is this or later; what holds out for a whole window holds
    /// out for ever, because by then the window holds nothing but that pace.
    pub(crate) fn exhaustion(&self, now: Timestamp) -> Exhaustion {
        let Some(budget) = self.terms.budget else { return Exhaustion::NoBudget };
        let Pace { tally: pace, seconds } = self.pace(now);
        let pace = if budget.noised_only { pace.noised() } else { pace };
        let spent = self.counted(&budget, now);
        let limit = budget.limit(Purpose::Routine);
        let fits = |later_s: f64| {
            let tally = spent.and(&pace.times(later_s / seconds));
            tally.epsilon(self.terms.delta).0 <= limit
        };
        let horizon = match budget.over {
            _ if self.terms.memory.is_endless() => CENTURY_S,
            Scope::Sample => return if fits(0.0) { Exhaustion::Never } else { Exhaustion::Now },
            Scope::Minute => self.minute.seconds() as f64,
            Scope::Hour => self.hour.seconds() as f64,
            Scope::Day => self.day.seconds() as f64,
            Scope::Lifetime => CENTURY_S,
        };
        if pace.releases() == 0 {
            return if fits(0.0) { Exhaustion::Never } else { Exhaustion::Now };
        }
        // Doubling from one release on: long times are dear to compose and seldom needed.
        let (mut low, mut high) = (0.0, seconds / pace.releases() as f64);
        while fits(high) {
            if high >= horizon {
                return Exhaustion::Never;
            }
            (low, high) = (high, (2.0 * high).min(horizon));
        }
        if low == 0.0 {
            return Exhaustion::Now;
        }
        // Counts are whole, so a few digits are all there is to find.
        while high - low > 1e-4 * high {
            let middle = 0.5 * (low + high);
            if fits(middle) { low = middle } else { high = middle }
        }
        Exhaustion::Seconds(low)
    }

    /// The releases of the last hour, or of the ledger's life if that is shorter, and in how many
    /// seconds they were made.
    fn pace(&self, now: Timestamp) -> Pace {
        let age = self.since.map_or(0.0, |since| now.duration_since(since).as_secs_f64());
        let tally = self.hour.total_at(now.as_second());
        Pace { tally, seconds: (age + 1.0).clamp(1.0, PACE_S) }
    }
}
