//! What the privacy knobs of a run cost and buy, now and if they were turned.

use super::Run;
use crate::evidence::likelihood::Hypotheses;
use crate::evidence::symbol::Grading;
use crate::privacy::{Budget, Knob, Outlook, PrivacyError, Situation};
use crate::session::Mode;

impl Run {
    /// Every knob of one client as it stands.
    pub fn spending(&self, client: usize) -> Result<Vec<Outlook>, PrivacyError> {
        self.situated(client, |run, situation| {
            Outlook::all(&run.books.ledgers()[client], situation, run.now())
        })
    }

    /// One knob of one client, if it stood at `epsilon` from now on (none: in the clear).
    pub fn spending_with(
        &self,
        client: usize,
        knob: Knob,
        epsilon: Option<f64>,
    ) -> Result<Outlook, PrivacyError> {
        self.situated(client, |run, situation| {
            let ledger = &run.books.ledgers()[client];
            Outlook::with_epsilon(ledger, knob, situation, epsilon, run.now())
        })
    }

    /// Another budget for every client from now on; refused when one has spent more already.
    pub fn set_budget(&mut self, budget: Option<Budget>) -> Result<(), PrivacyError> {
        let now = self.now();
        self.books.set_budget(budget, now)
    }

    fn situated<T>(
        &self,
        client: usize,
        look: impl FnOnce(&Self, &Situation<'_>) -> Result<T, PrivacyError>,
    ) -> Result<T, PrivacyError> {
        let grading = match self.mode {
            Mode::Evidence => Grading::five_levels(),
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
        };
        look(self, &situation)
    }
}
