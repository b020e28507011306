//! Where knobs stand in a session file.

use super::{Knob, Turn};
use crate::session::Session;

impl Knob {
    /// The key of a session that holds its value; a client's own τ goes by the common one.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::TauC(_) => "thresholds.tau_c",
            Self::TauA(_) => "thresholds.tau_a",
            Self::Vote => "thresholds.vote",
            Self::Deadband => "thresholds.deadband",
            Self::Arl0 => "thresholds.arl0",
            Self::Mode => "mode",
            Self::EpsilonFlag => "privacy.epsilon_flag",
            Self::EpsilonFlagA => "privacy.epsilon_flag_a",
            Self::EpsilonC => "privacy.epsilon_c",
            Self::EpsilonA => "privacy.epsilon_a",
            Self::EpsilonG => "privacy.epsilon_g",
            Self::Delta => "privacy.delta",
            Self::Budget => "privacy.budget",
        }
    }

    /// Its value as a session has it.
    pub(crate) fn as_written(self, session: &Session) -> Turn {
        let (tau, privacy) = (&session.thresholds, &session.privacy);
        match self {
            Self::TauC(_) => self.at(tau.tau_c),
            Self::TauA(_) => self.at(tau.tau_a),
            Self::Vote => self.at(tau.vote),
            Self::Deadband => self.at(tau.deadband),
            Self::Arl0 => self.at(tau.arl0.seconds),
            Self::Mode => self.at(session.mode),
            Self::EpsilonFlag => self.at(privacy.epsilon_flag),
            Self::EpsilonFlagA => self.at(privacy.epsilon_flag_a),
            Self::EpsilonC => self.at(privacy.epsilon_c),
            Self::EpsilonA => self.at(privacy.epsilon_a),
            Self::EpsilonG => self.at(privacy.epsilon_g),
            Self::Delta => self.at(privacy.delta),
            Self::Budget => self.at(privacy.budget.map(|budget| budget.epsilon)),
        }
    }
}
