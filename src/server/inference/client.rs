//! What the server knows of one client, and what one report of it says.

use super::Rules;
use super::accident::Strikes;
use crate::evidence::cusum::{Cusum, alarm_threshold};
use crate::evidence::enrolment::Enrolment;
use crate::evidence::likelihood::{Hypotheses, Ratios, Tables};
use crate::evidence::symbol::{Grading, Symbol};
use crate::evidence::watch::Odds;
use crate::server::health::{Report, Standing, Watch};
use crate::session::SendPolicy;

/// What the server knows of one client.
#[derive(Debug, Clone)]
pub(super) struct Client {
    /// It has enrolled. Else it is only named by the session: it says nothing and is no candidate.
    pub(crate) is_here: bool,
    pub(crate) enrolment: Enrolment,
    pub(crate) tables: Tables,
    pub(crate) ratios: Ratios,
    pub(crate) threshold: f64,
    pub(crate) cusum: Cusum,
    /// What is left once its explainer is known.
    pub(crate) left: Option<Left>,
    pub(crate) watch: Watch,
    /// Evidence that it is quiet again, while an incident is open or glows on.
    pub(crate) quiet: f64,
    /// B: evidence that it is back to normal.
    pub(crate) recovered: f64,
    /// Whether it had recovered when its present evidence began.
    pub(crate) had_recovered: bool,
    /// What its reports say for not having recovered, for fading, for being saturated and
    /// for being nearly quiet.
    disturbed: Shape,
    fading: Shape,
    saturated: Shape,
    nearly_quiet: Shape,
    /// Until when it raises no alarm.
    pub(crate) glows_until: u64,
    /// Steps since it said anything.
    pub(crate) silent: u64,
    /// What silence and a raised watch say.
    pub(crate) odds: Odds,
    /// Its last bursts of highest symbols.
    pub(crate) strikes: Strikes,
    /// Its watch was raised: what it sends now was chosen by that, and tells nothing of its standing.
    pub(crate) raised: bool,
}

impl Client {
    /// A client that has enrolled as number `at` of `clients`, of whom `members` are here, and said
    /// nothing yet.
    pub(crate) fn enrol(
        grading: &Grading,
        rules: &Rules,
        enrolment: Enrolment,
        at: usize,
        (clients, members): (usize, usize),
    ) -> Self {
        let tables = enrolment.tables(grading, &rules.hypotheses);
        // Nobody explains itself, and a stranger explains nobody.
        let remainder =
            enrolment.remainder.as_ref().filter(|r| r.explainer != at && r.explainer < clients);
        let left = remainder.map(|remainder| Left {
            explainer: remainder.explainer,
            ratios: remainder.ratios(grading, &rules.hypotheses, enrolment.epsilon),
            threshold: alarm_threshold(&remainder.tail, members, rules.arl0),
            cusum: Cusum::default(),
        });
        let shape = |a| Shape::new(&enrolment, grading, &rules.hypotheses, a);
        Self {
            is_here: true,
            recovered: 2.0 * rules.recovery,
            had_recovered: true,
            disturbed: shape(rules.disturbed),
            fading: shape(rules.fading),
            saturated: shape(rules.saturated),
            nearly_quiet: shape(rules.nearly_quiet),
            odds: enrolment.odds(grading, &rules.hypotheses),
            strikes: Strikes::default(),
            raised: false,
            threshold: alarm_threshold(&enrolment.tail, members, rules.arl0),
            left,
            ratios: tables.ratios(&rules.hypotheses),
            watch: Watch::new(&tables.nominal),
            tables,
            enrolment,
            cusum: Cusum::default(),
            quiet: 0.0,
            glows_until: 0,
            silent: 0,
        }
    }

    pub(crate) fn is_heard(&self) -> bool {
        self.watch.standing() != Standing::Unreliable
    }

    /// Whether it can be the root of anything.
    pub(crate) fn is_candidate(&self) -> bool {
        self.is_here && self.is_heard()
    }

    /// What its report says.
    pub(crate) fn weigh(&self, report: Report) -> Weights {
        let of = |symbol| Weights::of(self.ratios, symbol);
        match report {
            Report::Symbol(symbol) | Report::Severe(symbol, _) => of(symbol),
            Report::Raised(symbol) => of(symbol).and(self.odds.raised()),
            Report::Quiet => Weights::default().and(self.odds.quiet()),
            Report::Informed(own, beside) => {
                let (own, left) = (of(own), self.left.as_ref());
                Weights { left: left.map_or(own.left, |l| l.ratios.root_cause(beside)), ..own }
            }
            Report::Missing | Report::Invalid => Weights::default(),
        }
    }

    /// Adds what a report says about its recovery: B ← clamp(B + ln N/D, 0, 2·bound).
    pub(crate) fn recover(&mut self, report: Report, rules: &Rules) {
        let disturbed = self.disturbed.ratio(report);
        self.recovered = (self.recovered - disturbed).clamp(0.0, 2.0 * rules.recovery);
    }

    /// What a report says for fading, against being saturated.
    pub(crate) fn fades(&self, report: Report) -> f64 {
        self.fading.ratio(report) - self.saturated.ratio(report)
    }

    /// What a report says for being nearly quiet, against the root cause of which `weights` speak.
    pub(crate) fn calms(&self, report: Report, weights: Weights) -> f64 {
        self.nearly_quiet.ratio(report) - weights.root_cause
    }

    /// Adds what a step says to its evidence.
    pub(crate) fn add(&mut self, weights: Weights, step: u64) {
        self.cusum.add(weights.root_cause, step);
        if let Some(left) = &mut self.left {
            left.cusum.add(weights.left, step);
        }
    }

    pub(crate) fn forget(&mut self, step: u64) {
        self.cusum.reset(step);
        if let Some(left) = &mut self.left {
            left.cusum.reset(step);
        }
    }

    /// How far its evidence is beyond its threshold.
    pub(crate) fn beyond(&self) -> Option<f64> {
        let over = self.cusum.value() - self.threshold;
        (over > 0.0).then_some(over)
    }

    /// Who explains its alarm.
    pub(crate) fn explained_by(&self) -> Option<usize> {
        let left = self.left.as_ref().filter(|_| self.beyond().is_some())?;
        (left.cusum.value() <= UNEXPLAINED * left.threshold).then_some(left.explainer)
    }

    /// The share of its evidence that its explainer explains, where it has both.
    pub(crate) fn explained(&self) -> Option<f64> {
        let (own, left) = (self.cusum.value(), self.left.as_ref()?.cusum.value());
        (own > 0.0).then(|| (1.0 - left / own).clamp(0.0, 1.0))
    }

    /// Steps after which its silence is one: a client that reports once in a window is not silent
    /// between two reports.
    pub(crate) fn patience(&self, rules: &Rules) -> u64 {
        match self.enrolment.send {
            SendPolicy::Window(steps) => rules.silence.max(3 * steps),
            SendPolicy::EveryStep | SendPolicy::WhileRaised | SendPolicy::Memoised { .. } => {
                rules.silence
            }
        }
    }
}

/// Reports of a client whose p-values follow Beta(a, 1), against those of a nominal one.
#[derive(Debug, Clone)]
struct Shape {
    ratios: Ratios,
    odds: Odds,
}

impl Shape {
    fn new(enrolment: &Enrolment, grading: &Grading, usual: &Hypotheses, a: f64) -> Self {
        let hypotheses = Hypotheses { root_cause: a, ..*usual };
        Self {
            ratios: enrolment.tables(grading, &hypotheses).ratios(&hypotheses),
            odds: enrolment.odds(grading, &hypotheses),
        }
    }

    /// ln of its likelihood by that of N.
    fn ratio(&self, report: Report) -> f64 {
        match report {
            Report::Symbol(symbol) | Report::Severe(symbol, _) | Report::Informed(symbol, _) => {
                self.ratios.root_cause(symbol)
            }
            Report::Raised(symbol) => self.odds.raised().0 + self.ratios.root_cause(symbol),
            Report::Quiet => self.odds.quiet().0,
            Report::Missing | Report::Invalid => 0.0,
        }
    }
}

/// What the second symbols of a client say.
#[derive(Debug, Clone)]
pub(super) struct Left {
    pub(crate) explainer: usize,
    pub(crate) ratios: Ratios,
    pub(crate) threshold: f64,
    /// L_m.
    pub(crate) cusum: Cusum,
}

/// What one report says.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Weights {
    /// λ^RC.
    pub(crate) root_cause: f64,
    /// λ^PE.
    pub(crate) propagated_effect: f64,
    /// λ^RC of what is left; of everything where nothing is known to explain it.
    pub(crate) left: f64,
}

impl Weights {
    pub(crate) fn of(ratios: Ratios, symbol: Symbol) -> Self {
        let root_cause = ratios.root_cause(symbol);
        let propagated_effect = ratios.propagated_effect(symbol);
        Self { root_cause, propagated_effect, left: root_cause }
    }

    /// With what a raised or silent watch says besides, for a root cause and for who feels one.
    pub(crate) fn and(self, (root_cause, propagated_effect): (f64, f64)) -> Self {
        Self {
            root_cause: self.root_cause + root_cause,
            propagated_effect: self.propagated_effect + propagated_effect,
            left: self.left + root_cause,
        }
    }
}

/// Share of its threshold from which on what is left of an alarm counts as unexplained.
const UNEXPLAINED: f64 = 0.5;
