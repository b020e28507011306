//! The readout of every client at a step, for screens.

use super::Run;
use crate::evidence::threshold::{FlagThresholds, Flags};
use crate::incident::{QualityKind, QualityNote};
use crate::nn::kernel::WeightsError;
use crate::server::ServerView;
use crate::server::health::Standing;
use crate::site::flags::FlagRule;
use crate::site::meter::Meters;
use crate::site::{LocalView, Site};

/// One client at one step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct ClientReadout {
    /// The local readout of its site.
    pub(crate) local: LocalView,
    /// How the server that decides sees it: by what crossed the wire.
    pub(crate) server: ServerView,
    /// How the other method would see it, rehearsed on this machine; nothing where it is not.
    pub(crate) rehearsed: ServerView,
}

impl ClientReadout {
    /// (Z_c, Z_a) as they were sent, or rehearsed while evidence decides.
    pub(crate) fn flags(&self) -> Option<Flags> {
        self.server.flags.or(self.rehearsed.flags)
    }

    /// Level of the symbol as it was sent, or rehearsed while the look-up decides.
    pub(crate) fn level(&self) -> Option<u8> {
        self.server.level.or(self.rehearsed.level)
    }

    /// S_m by b_m, of the server or of the rehearsal; NaN where there is none.
    pub(crate) fn evidence(&self) -> f32 {
        let own = self.server.evidence;
        if own.is_nan() { self.rehearsed.evidence } else { own }
    }
}

impl Run {
    /// Sites on this machine, each with the rule of its flags: for their own recording.
    pub(crate) fn sites(&self) -> impl Iterator<Item = (&Site, FlagRule)> {
        let deadband = self.session.thresholds.deadband as f32;
        let rule =
            move |thresholds: &FlagThresholds| FlagRule { thresholds: *thresholds, deadband };
        self.exchange.sites().iter().zip(self.thresholds.iter().map(rule))
    }

    /// What measures the residuals of sites that do not do it themselves; none where they do.
    pub(crate) fn meters(&self) -> Result<Option<Meters>, WeightsError> {
        Meters::of(self.exchange.sites())
    }
}

/// How far clients are believed is known by the method that weighs what they send.
pub(super) fn note_standings(readouts: &[ClientReadout], quality: &mut Vec<QualityNote>) {
    for (client, readout) in readouts.iter().enumerate() {
        let what = match readout.server.standing {
            Standing::Trusted => continue,
            Standing::OutOfCalibration => QualityKind::OutOfCalibration,
            Standing::Unreliable => QualityKind::Unbelievable,
        };
        quality.push(QualityNote { client: Some(client), what });
    }
}
