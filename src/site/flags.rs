//! A site's half of paper mode: distances of both residuals against τ, two flags a step.

use super::prepared::PreparedSite;
use super::residuals::Residuals;
use super::{LocalView, SiteError, SiteOptions};
use crate::base::rng;
use crate::evidence::threshold::{FlagThresholds, Flagging, Flags};
use crate::privacy::{
    Account, Flag, PrivacyError, Provenance, Randomness, Release, Released, Releaser,
};
use crate::session::{PrivacySettings, Session, Tau, Thresholds};
use crate::wire::Outgoing;

/// Source of a client's seed.
const LIVE: u64 = 0x5A;

/// When a client is flagged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FlagRule {
    /// τ_c and τ_a as squared distances.
    pub(crate) thresholds: FlagThresholds,
    /// The share of τ that a raised flag falls at.
    pub(crate) deadband: f32,
}

/// What a site measured at a step, and which of its two flags its randomised response turned round.
/// Flags follow from it by any rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Measured {
    /// d² of r_c; NaN where there is none.
    pub(crate) d2_c: f32,
    /// d² of r_a.
    pub(crate) d2_a: f32,
    /// What is sent for Z_c is its contrary.
    pub(crate) flip_c: bool,
    /// What is sent for Z_a is its contrary.
    pub(crate) flip_a: bool,
    /// Flags are sent at all.
    pub(crate) sent: bool,
}

impl Measured {
    pub(crate) const NOTHING: Self =
        Self { d2_c: f32::NAN, d2_a: f32::NAN, flip_c: false, flip_a: false, sent: false };

    /// What was or would have been sent with these true flags.
    pub(crate) fn sent(self, truth: Option<Flags>) -> Option<Flags> {
        let flags = truth.filter(|_| self.sent)?;
        Some(Flags::new(flags.z_c ^ self.flip_c, flags.z_a ^ self.flip_a))
    }
}

/// How a site's flags leave it.
#[derive(Debug)]
pub(super) struct FlagSender {
    client: usize,
    releaser: Releaser,
}

impl FlagSender {
    pub(crate) fn new(
        client: usize,
        session: &Session,
        privacy: &PrivacySettings,
        period_s: f64,
    ) -> Result<Self, PrivacyError> {
        let seed = rng::child(session.seed, client as u64);
        let random = Randomness::of(Provenance::of(session), seed, LIVE);
        let arl0_steps = session.thresholds.arl0.seconds / period_s;
        Ok(Self { client, releaser: Releaser::for_flags(privacy, arl0_steps, random)? })
    }

    pub(crate) fn set_epsilon(&mut self, epsilon: Option<f64>) -> Result<(), PrivacyError> {
        self.releaser.set_epsilon(epsilon)
    }

    pub(crate) fn set_epsilon_a(&mut self, epsilon: Option<f64>) -> Result<(), PrivacyError> {
        self.releaser.set_epsilon_a(epsilon)
    }

    pub(crate) fn check_epsilon(&self, epsilon: Option<f64>) -> Result<(), PrivacyError> {
        self.releaser.check_epsilon(epsilon)
    }

    pub(crate) fn reset(&mut self) {
        self.releaser.reset();
    }

    /// What leaves the client, and the flags in it.
    pub(crate) fn send(
        &mut self,
        step: u64,
        truth: Flags,
        account: &mut Account<'_>,
    ) -> Option<(Outgoing, Flags)> {
        match self.releaser.flags(account, Flag(truth.z_c), Flag(truth.z_a)) {
            Release::Symbol((z_c, z_a)) | Release::Raised((z_c, z_a)) => {
                Some(self.pack(step, z_c, z_a))
            }
            Release::Quiet(_) | Release::Nothing => None,
        }
    }

    fn pack(&self, step: u64, z_c: Released<Flag>, z_a: Released<Flag>) -> (Outgoing, Flags) {
        let sent = Flags::new(z_c.value().0, z_a.value().0);
        (Outgoing::flags(self.client, step, &z_c, &z_a), sent)
    }
}

/// A site's half of paper mode.
#[derive(Debug)]
pub(super) struct FlagHalf {
    residuals: Residuals,
    pub(crate) sender: FlagSender,
    rule: FlagRule,
    flagging: Flagging,
    pub(crate) measured: Measured,
    /// The flags of the last step before they were released.
    pub(crate) truth: Option<Flags>,
    /// What was sent at the last step.
    pub(crate) sent: Option<Flags>,
}

impl FlagHalf {
    pub(crate) fn new(options: &SiteOptions<'_>) -> Result<Self, SiteError> {
        let SiteOptions { client, prepared, session, period_s, .. } = *options;
        Ok(Self {
            residuals: Residuals::new(prepared)?,
            sender: FlagSender::new(client, session, &session.privacy, period_s)?,
            rule: FlagRule {
                thresholds: thresholds(prepared, &session.thresholds),
                deadband: session.thresholds.deadband as f32,
            },
            flagging: Flagging::default(),
            measured: Measured::NOTHING,
            truth: None,
            sent: None,
        })
    }

    pub(crate) fn set_rule(&mut self, rule: FlagRule) {
        self.rule = rule;
    }

    /// Measures a step and sends its flags; nothing while the filter finds its state.
    pub(crate) fn step(
        &mut self,
        step: u64,
        y: &[f32],
        account: &mut Account<'_>,
    ) -> Option<Outgoing> {
        (self.measured, self.truth, self.sent) = (Measured::NOTHING, None, None);
        let (d2_c, d2_a) = self.residuals.step(y)?;
        self.measured = Measured { d2_c, d2_a, ..Measured::NOTHING };
        let truth = self.flagging.step(d2_c, d2_a, self.rule.thresholds, self.rule.deadband)?;
        self.truth = Some(truth);
        // With two symbols to choose from, whether a flag is turned round does not depend on it:
        // what was drawn holds by any other rule too.
        let (message, sent) = self.sender.send(step, truth, account)?;
        self.measured.flip_c = sent.z_c != truth.z_c;
        self.measured.flip_a = sent.z_a != truth.z_a;
        self.measured.sent = true;
        self.sent = Some(sent);
        Some(message)
    }

    /// A new run begins.
    pub(crate) fn reset(&mut self) {
        self.residuals.reset();
        self.sender.reset();
        self.flagging = Flagging::default();
    }

    /// `steps` without data: the models predict.
    pub(crate) fn skip(&mut self, steps: usize) {
        self.residuals.skip(steps);
    }

    pub(crate) fn show(&self, view: &mut LocalView) {
        self.residuals.show((self.measured.d2_c, self.measured.d2_a), view);
    }
}

/// τ_c and τ_a of a site as distances.
pub(crate) fn thresholds(prepared: &PreparedSite, wanted: &Thresholds) -> FlagThresholds {
    thresholds_at(prepared, [wanted.tau_c, wanted.tau_a])
}

/// The same for any τ of r_c and r_a.
pub(crate) fn thresholds_at(prepared: &PreparedSite, tau: [Tau; 2]) -> FlagThresholds {
    FlagThresholds {
        tau_c: prepared.nominal_c.distances.threshold(tau[0]),
        tau_a: prepared.nominal_a.distances.threshold(tau[1]),
    }
}
