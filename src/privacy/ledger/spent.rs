//! What a ledger has spent, over any stretch of time.

use jiff::Timestamp;

use super::Ledger;
use crate::privacy::account::{Composed, Tally};
use crate::privacy::budget::Budget;
use crate::privacy::training::Stretch;
use crate::session::privacy::Scope;

impl Ledger {
    /// What has been spent outside of training.
    pub(crate) fn live(&self) -> Composed {
        self.live.composed(self.terms.delta)
    }

    /// What trainings have spent.
    pub(crate) fn trained(&self) -> Composed {
        let mut all = Tally::NOTHING;
        for stretch in &self.trainings {
            all.merge(&stretch.most(Scope::Lifetime));
        }
        all.composed(self.terms.delta)
    }

    /// The costlier of two tallies, by ρ.
    pub(super) fn costlier(a: Tally, b: Tally) -> Tally {
        if b.is_costlier_than(&a) { b } else { a }
    }

    /// What has been spent over `scope`, as of `now`.
    #[cfg(test)]
    pub(crate) fn spent(&self, scope: Scope, now: Timestamp) -> Composed {
        self.tally(scope, now).composed(self.terms.delta)
    }

    /// What the busiest stretch of that length has cost: the figure that holds for *any* of them.
    pub(crate) fn worst(&self, scope: Scope) -> Composed {
        if self.terms.memory.is_endless() && scope != Scope::Lifetime {
            // A run of the models begins anew with a training, and with what is live.
            let trained = self.trainings.iter().map(|s| s.most(Scope::Lifetime));
            return trained.fold(self.live.clone(), Self::costlier).composed(self.terms.delta);
        }
        let live = match scope {
            Scope::Sample => self.live_sample().clone(),
            Scope::Minute => self.minute.peak().clone(),
            Scope::Hour => self.hour.peak().clone(),
            Scope::Day => self.day.peak().clone(),
            Scope::Lifetime => return self.lifetime.composed(self.terms.delta),
        };
        let memory = &self.terms.memory;
        let live = live.and(&self.live_sample().echo(memory));
        let trained =
            self.trainings.iter().map(|s| s.most(scope).and(&s.one_sample().echo(memory)));
        trained.fold(live, Self::costlier).composed(self.terms.delta)
    }

    /// What `budget` counts at `now`.
    pub(crate) fn counted(&self, budget: &Budget, now: Timestamp) -> Tally {
        if !budget.noised_only {
            return self.tally(budget.over, now);
        }
        match budget.over {
            Scope::Lifetime => self.lifetime.noised(),
            scope if self.terms.memory.is_endless() => self.ever_since(scope, now).noised(),
            scope => {
                let within = self.within(scope, now).noised();
                if within.releases() == 0 {
                    return within;
                }
                within.and(&self.one_noised_sample().echo(&self.terms.memory))
            }
        }
    }

    /// ε of what the budget counts at `now`; 0 without one.
    pub(crate) fn counted_epsilon(&self, now: Timestamp) -> f64 {
        let budget = self.terms.budget.as_ref();
        budget.map_or(0.0, |budget| self.counted(budget, now).epsilon(self.terms.delta).0)
    }

    /// The releases counted over `scope` at `now`, the filter's memory included.
    pub(crate) fn tally(&self, scope: Scope, now: Timestamp) -> Tally {
        if scope == Scope::Lifetime {
            // Every release is counted in full: there is no later one to echo in.
            return self.lifetime.clone();
        }
        if self.terms.memory.is_endless() {
            return self.ever_since(scope, now);
        }
        let within = self.within(scope, now);
        if within.releases() == 0 {
            return within;
        }
        within.and(&self.one_sample().echo(&self.terms.memory))
    }

    /// What the samples within `scope` at `now` can have moved where nothing is forgotten: all that is
    /// live, and all of every training that some of them belong to.
    pub(super) fn ever_since(&self, scope: Scope, now: Timestamp) -> Tally {
        let mut all = self.live.clone();
        for stretch in &self.trainings {
            let seconds = scope.seconds().unwrap_or(0.0);
            if seconds > 0.0 && stretch.within(seconds, now).releases() > 0 {
                all.merge(&stretch.most(Scope::Lifetime));
            }
        }
        all
    }

    /// The releases about the samples within `scope` at `now`.
    pub(super) fn within(&self, scope: Scope, now: Timestamp) -> Tally {
        let second = now.as_second();
        let mut within = match scope {
            Scope::Sample => self.one_sample(),
            Scope::Minute => self.minute.total_at(second),
            Scope::Hour => self.hour.total_at(second),
            Scope::Day => self.day.total_at(second),
            Scope::Lifetime => self.lifetime.clone(),
        };
        if let Some(seconds) = scope.seconds() {
            for stretch in &self.trainings {
                within.merge(&stretch.within(seconds, now));
            }
        }
        within
    }

    /// The releases of one sample. The last may still lack some of its own, so the costlier of
    /// the last two speaks for both.
    pub(super) fn live_sample(&self) -> &Tally {
        match &self.sample {
            Some((_, last)) if last.rho() >= self.before.rho() => last,
            _ => &self.before,
        }
    }

    /// The noised releases of the costliest sample, by these.
    pub(super) fn one_noised_sample(&self) -> Tally {
        let last = self.sample.as_ref().map_or(Tally::NOTHING, |(_, tally)| tally.noised());
        let trained = self.trainings.iter().map(|stretch| stretch.one_sample().noised());
        trained.fold(Self::costlier(last, self.before.noised()), Self::costlier)
    }

    /// The releases of the costliest sample, live or of a training.
    pub(super) fn one_sample(&self) -> Tally {
        let trained = self.trainings.iter().map(Stretch::one_sample);
        trained.fold(self.live_sample().clone(), Self::costlier)
    }
}
