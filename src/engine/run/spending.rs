//! Cost and benefit of the privacy knobs of a run, now and if they were turned.

use super::Run;
use crate::evidence::likelihood::Hypotheses;
use crate::evidence::symbol::Grading;
use crate::privacy::forecast::epsilon_options;
use crate::privacy::{Budget, EpsilonOption, ForecastInput, Ledger, PrivacyError, Response, Tally};
use crate::session::Mode;
use crate::session::privacy::{BudgetSettings, Scope, SendPolicy};

/// The cost of one sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SamplePrice {
    /// ε of all symbols that the sample can turn, at the session's δ.
    pub(crate) epsilon: f64,
    /// How many those are; none where the models were not seen to forget a sample.
    pub(crate) symbols: Option<u64>,
}

impl Run {
    /// The effect of other ε of the symbols or flags that are sent now.
    pub(crate) fn ladder(&self) -> Result<Vec<EpsilonOption>, PrivacyError> {
        let grading = match self.mode {
            Mode::Evidence => Grading::from(self.session.privacy.symbol),
            Mode::Paper => Grading::one_bit(),
        };
        let root_cause = Hypotheses::default().root_cause;
        epsilon_options(&ForecastInput {
            settings: &self.session.privacy,
            arl0_steps: self.session.thresholds.arl0.seconds / self.layout.period_s,
            period_s: self.layout.period_s,
            quiet: &grading.level_probabilities(1.0),
            faulty: &grading.level_probabilities(root_cause),
            pairs: self.mode == Mode::Paper,
        })
    }

    /// What one sample of each client costs while it is watched in evidence mode. None where symbols are
    /// unprotected, or are not sent at every step.
    pub(crate) fn prices_of_a_sample(&self) -> Result<Option<Vec<SamplePrice>>, PrivacyError> {
        let settings = &self.session.privacy;
        let Some(epsilon) = settings
            .epsilon_flag
            .filter(|_| self.mode == Mode::Evidence && settings.send == SendPolicy::EveryStep)
        else {
            return Ok(None);
        };
        let symbol = Tally::of(Response::new(epsilon, settings.symbol.symbols())?.spend(), 1);
        let price = |ledger: &Ledger| {
            let memory = &ledger.terms().memory;
            let all = symbol.and(&symbol.echo(memory));
            let symbols = (!memory.is_endless()).then(|| all.releases());
            SamplePrice { epsilon: all.epsilon(settings.delta).0, symbols }
        };
        Ok(Some(self.ledgers().map(price).collect()))
    }

    /// States of a client's sending model.
    pub(crate) fn states(&self, client: usize) -> usize {
        self.states.get(client).copied().unwrap_or(0)
    }

    /// The budget of so much for every client, over the session's stretch of time. Where values were
    /// sent without noise before, it counts what is sent with noise and admits nothing else. The whole
    /// history is another matter: no budget covers a history of which a part was sent unprotected.
    pub(super) fn budget_of(&self, epsilon: Option<f64>) -> Result<Option<Budget>, PrivacyError> {
        let settings = epsilon.map(|epsilon| BudgetSettings { epsilon, ..self.budget });
        let Some(budget) = settings.map(Budget::try_from).transpose()? else { return Ok(None) };
        let check = |budget| {
            self.ledgers().try_for_each(|ledger| ledger.check_budget(Some(budget), self.now()))
        };
        match check(budget) {
            Err(PrivacyError::BelowSpent { spent, .. })
                if spent.is_infinite() && budget.over != Scope::Lifetime =>
            {
                check(budget.of_noised())?;
                Ok(Some(budget.of_noised()))
            }
            checked => checked.map(|()| Some(budget)),
        }
    }
}
