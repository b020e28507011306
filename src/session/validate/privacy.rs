//! Privacy settings that no mechanism, no ledger or nobody's intention can hold.

use super::Check;
use crate::session::Session;
use crate::session::privacy::{AtZero, BudgetSettings, PrivacySettings, Scope, Thrift};

/// The longest window of one symbol, and the longest burst of symbols.
const LONGEST: u64 = 100_000;

impl Check {
    pub(super) fn privacy(&mut self, session: &Session) {
        let privacy = &session.privacy;
        for (key, epsilon) in [
            ("epsilon_c", privacy.epsilon_c),
            ("epsilon_a", privacy.epsilon_a),
            ("epsilon_g", privacy.epsilon_g),
            ("epsilon_flag", privacy.epsilon_flag),
        ] {
            if let Some(epsilon) = epsilon {
                self.positive(&format!("privacy.{key}"), epsilon);
            }
        }
        self.that(
            privacy.delta > 0.0 && privacy.delta < 1.0,
            "privacy.delta",
            format!("expected a probability between 0 and 1, found {}", privacy.delta),
        );
        self.positive("privacy.clip_state", privacy.clip_state);
        self.positive("privacy.clip_gradient", privacy.clip_gradient);
        if let Some(contraction) = privacy.contraction {
            self.that(
                (0.0..1.0).contains(&contraction),
                "privacy.contraction",
                format!("expected 0 or more and less than 1, found {contraction}"),
            );
        }
        self.thrift(privacy);
        if let Some(budget) = privacy.budget {
            self.budget(privacy, budget);
        }
    }

    fn thrift(&mut self, privacy: &PrivacySettings) {
        self.that(
            privacy.watch.epsilon.is_finite() && privacy.watch.epsilon >= 1e-3,
            "privacy.watch.epsilon",
            format!("expected 0.001 or more, found {}", privacy.watch.epsilon),
        );
        self.that(
            (1..=LONGEST).contains(&privacy.watch.burst),
            "privacy.watch.burst",
            format!("expected 1 to {LONGEST} symbols, found {}", privacy.watch.burst),
        );
        match privacy.thrift {
            Thrift::EveryStep | Thrift::WhileRaised => {}
            Thrift::Window(steps) => self.that(
                (1..=LONGEST).contains(&steps),
                "privacy.thrift",
                format!("expected a window of 1 to {LONGEST} steps, found {steps}"),
            ),
            Thrift::Memoised { permanent } => {
                self.positive("privacy.thrift.permanent", permanent);
            }
        }
        self.that(
            privacy.thrift == Thrift::EveryStep || privacy.epsilon_flag.is_some(),
            "privacy.thrift",
            "saving needs a price: set epsilon_flag, without it symbols are sent as they are",
        );
    }

    fn budget(&mut self, privacy: &PrivacySettings, budget: BudgetSettings) {
        self.positive("privacy.budget.epsilon", budget.epsilon);
        self.that(
            privacy.epsilon_flag.is_some(),
            "privacy.budget",
            "a budget needs epsilon_flag: what is sent as it is fits no budget",
        );
        if budget.over == Scope::Lifetime {
            self.that(
                privacy.epsilon_c.is_some() && privacy.epsilon_a.is_some(),
                "privacy.budget.over",
                "a budget for the whole history needs epsilon_c and epsilon_a: without them \
                 training sends states as they are, and nothing is left from the start",
            );
        }
        match budget.at_zero {
            AtZero::AlarmsOnly { reserve } => self.that(
                reserve > 0.0 && reserve < budget.epsilon,
                "privacy.budget.at_zero.reserve",
                format!("expected a part of the budget of {}, found {reserve}", budget.epsilon),
            ),
            AtZero::Slower => self.that(
                !matches!(budget.over, Scope::Lifetime | Scope::Sample),
                "privacy.budget.at_zero",
                "only a minute, an hour or a day lets go of older releases; expected over: Minute, \
                 Hour or Day, or at_zero: Stop",
            ),
            AtZero::Stop => {}
        }
    }
}
