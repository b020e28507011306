//! Privacy settings that no mechanism or ledger can hold, or that cannot be meant.

use super::Check;
use crate::session::Session;
use crate::session::privacy::{AtZero, BudgetSettings, PrivacySettings, Scope, SendPolicy};

impl Check {
    pub(super) fn privacy(&mut self, session: &Session) {
        let privacy = &session.privacy;
        for (key, value) in [
            ("privacy.epsilon_c", privacy.epsilon_c),
            ("privacy.epsilon_a", privacy.epsilon_a),
            ("privacy.epsilon_g", privacy.epsilon_g),
            ("privacy.epsilon_flag", privacy.epsilon_flag),
            ("privacy.epsilon_flag_a", privacy.epsilon_flag_a),
            ("privacy.delta", Some(privacy.delta)),
            ("privacy.clip_state", Some(privacy.clip_state)),
            ("privacy.clip_gradient", Some(privacy.clip_gradient)),
            ("privacy.contraction", privacy.contraction),
        ] {
            if let Some(value) = value {
                self.number(key, value);
            }
        }
        self.send(privacy);
        if let Some(budget) = privacy.budget {
            self.budget(privacy, budget);
        }
    }

    fn send(&mut self, privacy: &PrivacySettings) {
        self.number("privacy.watch.epsilon", privacy.watch.epsilon);
        self.number("privacy.watch.burst", privacy.watch.burst as f64);
        let key = "privacy.send";
        match privacy.send {
            SendPolicy::EveryStep | SendPolicy::WhileRaised => {}
            SendPolicy::Window(steps) => self.number_at(key, key, "Window", steps as f64),
            SendPolicy::Memoised { permanent } => self.number("privacy.send.permanent", permanent),
        }
        self.that(
            privacy.send == SendPolicy::EveryStep || privacy.epsilon_flag.is_some(),
            "privacy.send",
            "saving needs a price: set epsilon_flag, without it symbols are sent without noise",
        );
    }

    fn budget(&mut self, privacy: &PrivacySettings, budget: BudgetSettings) {
        self.number("privacy.budget.epsilon", budget.epsilon);
        self.that(
            privacy.epsilon_flag.is_some(),
            "privacy.budget",
            "a budget needs epsilon_flag: what is sent without noise fits no budget",
        );
        if budget.over == Scope::Lifetime {
            self.that(
                privacy.epsilon_c.is_some() && privacy.epsilon_a.is_some(),
                "privacy.budget.over",
                "a budget for the whole history needs epsilon_c and epsilon_a: without them \
                 training sends states without noise, and nothing is left from the start",
            );
        }
        match budget.at_zero {
            AtZero::AlarmsOnly { reserve } => {
                let key = "privacy.budget.at_zero.reserve";
                self.number(key, reserve);
                self.that(
                    reserve < budget.epsilon,
                    key,
                    format!("expected a part of the budget of {}, found {reserve}", budget.epsilon),
                );
            }
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
