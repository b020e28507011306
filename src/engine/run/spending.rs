//! What the privacy knobs of a run cost and buy, now and if they were turned.

use super::Run;
use crate::evidence::likelihood::Hypotheses;
use crate::evidence::symbol::Grading;
use crate::privacy::outlook::{self, Rung};
use crate::privacy::{Budget, Knob, Outlook, PrivacyError, Situation};
use crate::session::Mode;
use crate::session::privacy::BudgetSettings;

impl Run {
    /// Every knob of one client as it stands.
    pub(crate) fn spending(&self, client: usize) -> Result<Vec<Outlook>, PrivacyError> {
        self.situated(client, |run, situation| {
            Outlook::all(run.exchange.sites()[client].ledger(), situation, run.now())
        })
    }

    /// One knob of one client, if it stood at `epsilon` from now on (none: in the clear).
    pub(crate) fn spending_with(
        &self,
        client: usize,
        knob: Knob,
        epsilon: Option<f64>,
    ) -> Result<Outlook, PrivacyError> {
        self.situated(client, |run, situation| {
            let ledger = run.exchange.sites()[client].ledger();
            Outlook::with_epsilon(ledger, knob, situation, epsilon, run.now())
        })
    }

    /// What other ε of the symbols or flags that are sent now would mean.
    pub(crate) fn ladder(&self) -> Result<Vec<Rung>, PrivacyError> {
        self.situated(0, |_, situation| outlook::ladder(situation))
    }

    /// States of a client's sending model.
    pub(crate) fn states(&self, client: usize) -> usize {
        self.states[client]
    }

    /// Whether every client may have this much to spend, over the session's stretch of time.
    pub(super) fn check_budget(&self, epsilon: Option<f64>) -> Result<(), PrivacyError> {
        let settings = epsilon.map(|epsilon| BudgetSettings { epsilon, ..self.budget });
        let budget = settings.map(Budget::try_from).transpose()?;
        self.ledgers().try_for_each(|ledger| ledger.check_budget(budget, self.now()))
    }

    fn situated<T>(
        &self,
        client: usize,
        look: impl FnOnce(&Self, &Situation<'_>) -> Result<T, PrivacyError>,
    ) -> Result<T, PrivacyError> {
        let grading = match self.mode {
            Mode::Evidence => Grading::from(self.session.privacy.symbol),
            Mode::Paper => Grading::one_bit(),
        };
        let root_cause = Hypotheses::default().root_cause;
        let (quiet, faulty) =
            (grading.level_probabilities(1.0), grading.level_probabilities(root_cause));
        let situation = Situation {
            settings: &self.session.privacy,
            states: self.states[client],
            arl0_steps: self.session.thresholds.arl0.seconds / self.layout.period_s,
            period_s: self.layout.period_s,
            quiet: &quiet,
            faulty: &faulty,
            pairs: self.mode == Mode::Paper,
        };
        look(self, &situation)
    }
}
