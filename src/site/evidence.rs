//! A site's half of evidence mode: its model and its grader, a symbol a step.

use super::enrolment::{self, Calibrated, Enrolled};
use super::grader::{Grader, Reading, SensorAlert, SiteSettings};
use super::informed::Informed;
use super::line::Line;
use super::prepared::PreparedSite;
use super::renewal::Renewal;
use super::severity::SeveritySender;
use super::stretch::Abnormal;
use super::whitening::Sample;
use super::{SiteError, SiteOptions};
use crate::base::rng;
use crate::evidence::likelihood::Hypotheses;
use crate::evidence::symbol::{MOST_LEVELS, Symbol};
use crate::evidence::watch::score;
use crate::nn::proprietary::{Proprietary as _, VendorModel};
use crate::privacy::{
    self, Account, Hooks, PrivacyError, Provenance, Randomness, Release, Released, Releaser,
    SparseVectorParams,
};
use crate::session::privacy::{AtZero, PrivacySettings, SendPolicy};
use crate::session::{Session, Tier};
use crate::wire::{Outgoing, Sender};

/// Sources of a client's seed.
const LIVE: u64 = 0x52;
const PAIRS: u64 = 0x50;
const SEVERITY: u64 = 0x53;
/// Source of a session's seed for the noise of states.
pub(crate) const INFLUENCE: u64 = 0x49;

/// What a site makes of a step, before anything is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Graded {
    pub(crate) own: Option<Symbol>,
    /// What of it the explainer does not explain (tier 2).
    pub(crate) beside: Option<Symbol>,
    /// How far it lies beyond the highest level.
    pub(crate) severity: Option<u8>,
}

/// How a site's symbols leave it: its mechanism, its send policy, its enrolment.
#[derive(Debug)]
pub(super) struct SymbolSender {
    pub(crate) client: usize,
    settings: SiteSettings,
    hypotheses: Hypotheses,
    releaser: Releaser,
    /// None where the session needs no severity.
    severity: Option<SeveritySender>,
    pairs: Randomness,
    /// What each level adds to a watched sum.
    scores: [f64; MOST_LEVELS],
    has_budget: bool,
    /// True symbols of the calibration, and in tier 2 who explains and the second ones.
    calibration: Vec<Option<Symbol>>,
    beside: Option<(usize, Vec<Option<Symbol>>)>,
    /// Stretches of the calibration that are set aside.
    abnormal: Option<Abnormal>,
}

impl SymbolSender {
    pub(crate) fn new(
        client: usize,
        prepared: &PreparedSite,
        session: &Session,
        privacy: &PrivacySettings,
        period_s: f64,
    ) -> Result<Self, PrivacyError> {
        let arl0_steps = session.thresholds.arl0.seconds / period_s;
        let settings = site_settings(privacy, arl0_steps);
        let hypotheses = Hypotheses::default();
        let provenance = Provenance::of(session);
        let seed = rng::child(session.seed, client as u64);
        let levels = settings.grading.levels() as u8;
        let random = Randomness::of(provenance, seed, LIVE);
        let informed = prepared.fit.informed.as_ref();
        let informed = informed.filter(|_| session.thresholds.tier == Tier::States);
        let severity = session
            .tells_severity()
            .then(|| {
                let random = Randomness::of(provenance, seed, SEVERITY);
                SeveritySender::new(settings.epsilon, random)
            })
            .transpose()?;
        Ok(Self {
            client,
            releaser: Releaser::for_symbols(privacy, levels, arl0_steps, random)?,
            severity,
            pairs: Randomness::of(provenance, seed, PAIRS),
            scores: score(&settings.grading, &hypotheses),
            has_budget: privacy.budget.is_some(),
            calibration: prepared.fit.grader.symbols(&settings.grading),
            beside: informed.map(|(by, fit)| (*by, fit.symbols(&settings.grading))),
            abnormal: if session.thresholds.set_aside && privacy.epsilon_flag.is_none() {
                abnormal(prepared, session, period_s)
            } else {
                None
            },
            settings,
            hypotheses,
        })
    }

    pub(crate) fn settings(&self) -> &SiteSettings {
        &self.settings
    }

    /// Its enrolment, with the price.
    pub(crate) fn enrol(&mut self) -> Result<Enrolled, PrivacyError> {
        let beside = self.beside.as_ref().map(|(by, symbols)| (*by, &symbols[..]));
        let abnormal = self.abnormal.as_ref();
        let calibrated = Calibrated { symbols: &self.calibration, abnormal, beside };
        let Self { settings, hypotheses, releaser, pairs, has_budget, .. } = self;
        enrolment::enrol(calibrated, settings, hypotheses, releaser, pairs, *has_budget)
    }

    pub(crate) fn check_epsilon(&self, epsilon: Option<f64>) -> Result<(), PrivacyError> {
        self.releaser.check_epsilon(epsilon)
    }

    /// Another ε of every symbol from now on; the server needs a new enrolment.
    pub(crate) fn set_epsilon(&mut self, epsilon: Option<f64>) -> Result<(), PrivacyError> {
        self.releaser.set_epsilon(epsilon)?;
        if let Some(severity) = &mut self.severity {
            severity.set_epsilon(epsilon)?;
        }
        self.settings.epsilon = epsilon;
        Ok(())
    }

    /// Whether its enrolment must not cost anything.
    pub(crate) fn set_budget(&mut self, has_budget: bool) {
        self.has_budget = has_budget;
    }

    /// A new run begins.
    pub(crate) fn reset(&mut self) {
        self.releaser.reset();
        self.severity.iter_mut().for_each(SeveritySender::reset);
    }

    fn release(
        &mut self,
        symbol: Option<Symbol>,
        account: &mut Account<'_>,
    ) -> Release<Released<privacy::Symbol>> {
        let Some(symbol) = symbol else { return Release::Nothing };
        let level = privacy::Symbol(symbol.level() as u8);
        self.releaser.symbol(account, level, self.scores[symbol.level()])
    }

    /// What leaves of a step. In between, `between` sends the other messages about it.
    pub(crate) fn send(
        &mut self,
        step: u64,
        own: Option<Symbol>,
        severity: Option<u8>,
        account: &mut Account<'_>,
        between: impl FnOnce(&mut Account<'_>) -> Option<Symbol>,
    ) -> Option<Outgoing> {
        let said = self.release(own, account);
        let severity = match (&said, &mut self.severity) {
            (Release::Symbol(said), Some(sender)) => {
                let highest = self.settings.grading.highest().level();
                let is_highest = usize::from(said.value().0) == highest;
                sender.release(step, is_highest, severity, account)
            }
            _ => None,
        };
        let beside = between(account);
        let beside = match self.release(beside, account) {
            Release::Symbol(beside) => Some(beside),
            Release::Raised(_) | Release::Quiet(_) | Release::Nothing => None,
        };
        match said {
            Release::Symbol(own) => Some(match severity {
                Some(severity) => Outgoing::severe(self.client, step, &own, &severity),
                None => Outgoing::symbol(self.client, step, &own, beside.as_ref()),
            }),
            Release::Raised(own) => Some(Outgoing::raised(self.client, step, &own)),
            Release::Quiet(quiet) => Some(Outgoing::quiet(self.client, step, &quiet)),
            Release::Nothing => None,
        }
    }
}

/// Stretches of a site's calibration that look abnormal. Where the session leaves its clients to its
/// source there is one for all that is known here, which lowers a threshold by ln M.
pub(crate) fn abnormal(
    prepared: &PreparedSite,
    session: &Session,
    period_s: f64,
) -> Option<Abnormal> {
    let arl0_steps = session.thresholds.arl0.seconds / period_s;
    let grading = site_settings(&session.privacy, arl0_steps).grading;
    let clients = session.clients.len().max(1);
    Abnormal::find(&prepared.fit.grader, &grading, &Hypotheses::default(), clients, arl0_steps)
}

/// A site's half of evidence mode.
#[derive(Debug)]
pub(super) struct EvidenceHalf {
    model: VendorModel,
    /// For a model whose memory need not fade.
    renewal: Option<Renewal>,
    grader: Grader,
    pub(crate) sender: SymbolSender,
    tier2: Option<Tier2>,
    /// Distance of the whitened residual at the last step.
    pub(crate) distance: f32,
    /// What the last step was before it was released.
    pub(crate) graded: Graded,
}

/// What tier 2 adds.
#[derive(Debug)]
struct Tier2 {
    /// The model whose states are sent, where another one watches.
    sending: Option<VendorModel>,
    line: Line,
    /// None for a client without an explainer.
    informed: Option<Informed>,
    /// What the server predicts of the step at hand; empty when it does not.
    predicted: Vec<f32>,
}

impl EvidenceHalf {
    pub(crate) fn new(options: &SiteOptions<'_>) -> Result<Self, SiteError> {
        let SiteOptions { client, prepared, session, period_s, .. } = *options;
        let model = VendorModel::new(&prepared.watching)?;
        let sender = SymbolSender::new(client, prepared, session, &session.privacy, period_s)?;
        let grader = Grader::new(&prepared.fit.grader, sender.settings().clone());
        let tier2 = match session.thresholds.tier {
            Tier::Symbols => None,
            Tier::States => Some(Tier2::new(options, &model, sender.settings())?),
        };
        let is_lasting = prepared.watching.has_lasting_memory();
        let fresh = is_lasting.then(|| VendorModel::new(&prepared.watching)).transpose()?;
        Ok(Self {
            model,
            renewal: fresh.map(Renewal::new),
            grader,
            sender,
            tier2,
            distance: f32::NAN,
            graded: Graded::default(),
        })
    }

    /// The model and the grader take a step.
    pub(crate) fn look(&mut self, y: &[f32], inputs: &[f32], alert: SensorAlert) -> Reading {
        let reading = self.look_only(y, inputs, alert);
        if let Some(sending) = self.tier2.as_mut().and_then(|tier2| tier2.sending.as_mut()) {
            sending.step(y, None);
        }
        reading
    }

    /// What leaves of the step that was looked at; says what it was before it was released.
    pub(crate) fn send(
        &mut self,
        step: u64,
        reading: Reading,
        account: &mut Account<'_>,
        out: &mut dyn FnMut(Outgoing),
    ) -> Graded {
        let Self { model, renewal, grader, sender, tier2, .. } = self;
        let highest = grader.settings().grading.highest();
        let r_w = grader.whitened();
        let by_distance = reading.symbol == Some(highest) && !reading.alert;
        let severity = by_distance.then_some(reading.severity);
        let mut graded = Graded { own: reading.symbol, beside: None, severity };
        let message = sender.send(step, reading.symbol, severity, account, |account| {
            let tier2 = tier2.as_mut()?;
            let beside = tier2.step(step, reading, model, r_w, highest, account, out);
            graded.beside = beside;
            beside
        });
        // What was released decides, so that it reveals nothing more.
        let is_highest = message.as_ref().and_then(Outgoing::level) == Some(highest.level() as u8);
        if let Some(renewal) = renewal {
            renewal.decide(model, is_highest);
        }
        message.into_iter().for_each(out);
        self.graded = graded;
        graded
    }

    /// What the server predicts of a step.
    pub(crate) fn predicted(&mut self, epsilon: &[f32], account: &mut Account<'_>) {
        if let Some(tier2) = &mut self.tier2 {
            tier2.predicted.clear();
            tier2.predicted.extend_from_slice(epsilon);
            tier2.line.note_prediction(account);
        }
    }

    /// A step is over: what was predicted of it is not for the next.
    pub(crate) fn forget_prediction(&mut self) {
        if let Some(tier2) = &mut self.tier2 {
            tier2.predicted.clear();
        }
    }

    /// A new run begins.
    pub(crate) fn reset(&mut self) {
        self.model.reset();
        self.renewal.iter_mut().for_each(Renewal::reset);
        self.grader.reset();
        self.sender.reset();
        if let Some(tier2) = &mut self.tier2 {
            tier2.sending.iter_mut().for_each(VendorModel::reset);
        }
    }

    /// `steps` without data for the model whose states are sent; the watching one is stepped with
    /// missing values by the site.
    pub(crate) fn skip_sending(&mut self, steps: usize) {
        if let Some(sending) = self.tier2.as_mut().and_then(|tier2| tier2.sending.as_mut()) {
            sending.skip(steps);
        }
    }

    /// The same for a step of which nothing is sent: in a gap the model predicts, and the grader sees
    /// nothing.
    pub(crate) fn look_only(&mut self, y: &[f32], inputs: &[f32], alert: SensorAlert) -> Reading {
        self.model.step(y, None);
        let out = self.model.output();
        let sample = Sample { y, y_hat: &out.y_hat, r: &out.r, x_hat: &out.x_hat, inputs };
        let reading = self.grader.step(sample, alert);
        self.distance = reading.distance;
        self.renewal.iter_mut().for_each(|renewal| renewal.see(y));
        reading
    }

    pub(crate) fn grader(&self) -> &Grader {
        &self.grader
    }

    pub(crate) fn grader_mut(&mut self) -> &mut Grader {
        &mut self.grader
    }
}

impl Tier2 {
    fn new(
        options: &SiteOptions<'_>,
        watching: &VendorModel,
        settings: &SiteSettings,
    ) -> Result<Self, SiteError> {
        let SiteOptions { client, prepared, session, .. } = *options;
        let sending = if watching.may_send_states() {
            None
        } else {
            Some(VendorModel::new(&prepared.sending)?)
        };
        let right = Sender::new(client, sending.as_ref().unwrap_or(watching))?;
        let summary = prepared.fit.summary.clone().ok_or(SiteError::NoSummary)?;
        let seed = rng::child(session.seed, INFLUENCE);
        let informed = prepared.fit.informed.as_ref();
        Ok(Self {
            sending,
            line: Line::new(right, summary, &Hooks::of(session), seed)?,
            informed: informed.map(|(_, fit)| Informed::new(fit, &settings.grading)),
            predicted: Vec::new(),
        })
    }

    /// The client's state goes out; what of its step its explainer does not explain comes back, where
    /// that one had something to say.
    #[allow(clippy::too_many_arguments)] // One step of one client, with all that takes part in it.
    fn step(
        &mut self,
        step: u64,
        reading: Reading,
        watching: &VendorModel,
        r_w: &[f32],
        highest: Symbol,
        account: &mut Account<'_>,
        out: &mut dyn FnMut(Outgoing),
    ) -> Option<Symbol> {
        // A client that says nothing about its step says nothing about its state.
        reading.symbol?;
        let model = self.sending.as_ref().unwrap_or(watching);
        self.line.summary(step, &model.output().x_hat, account).into_iter().for_each(out);
        if self.predicted.is_empty() {
            return None;
        }
        let beside = self.informed.as_mut()?.symbol(r_w, &self.predicted)?;
        // No other client explains a flat line, or a value never seen.
        Some(if reading.alert { highest } else { beside })
    }
}

/// How a session's clients grade and send.
fn site_settings(privacy: &PrivacySettings, arl0_steps: f64) -> SiteSettings {
    let at_zero = privacy.budget.map(|budget| budget.at_zero);
    let watches = privacy.send == SendPolicy::WhileRaised
        || matches!(at_zero, Some(AtZero::AlarmsOnly { .. }));
    SiteSettings {
        grading: privacy.symbol.into(),
        epsilon: privacy.epsilon_flag,
        send: privacy.send,
        watch: watches.then(|| SparseVectorParams::of(privacy, arl0_steps)),
        ..SiteSettings::default()
    }
}
