//! A session's privacy settings, made into the mechanisms that keep them.
//!
//! Where a setting is absent the value is sent unprotected, and priced as such: the choice is the
//! session's, and the ledger says what it means.

use super::PrivacyError;
use super::channel::Channel;
use super::mechanism::{Clip, Gaussian};
use super::randomness::{Provenance, Randomness};
use super::release::{Estimate, Guarded, Numbers, Spend, Unprotected as _};
use crate::session::Session;
use crate::session::settings::PrivacySettings;

/// What stands between values and messages, in both directions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hooks<'a> {
    /// What is noised and how much; what is absent is sent unprotected, and counted as such.
    pub(crate) privacy: &'a PrivacySettings,
    pub(crate) provenance: Provenance,
}

impl<'a> Hooks<'a> {
    pub(crate) fn of(session: &'a Session) -> Self {
        Self { privacy: &session.privacy, provenance: Provenance::of(session) }
    }
}

/// What stands between a client's values and its messages.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Protection {
    proprietary: Option<Gaussian>,
    augmented: Option<Gaussian>,
    gradient: Option<Gaussian>,
}

impl Protection {
    /// The mechanisms for states of `states` components.
    pub(crate) fn new(settings: &PrivacySettings, states: usize) -> Result<Self, PrivacyError> {
        let PrivacySettings { sigma, delta, .. } = *settings;
        let gaussian = |epsilon: Option<f64>, clip| {
            epsilon.map(|epsilon| Gaussian::new(clip, sigma, epsilon, delta)).transpose()
        };
        let state = Clip::Box { bound: settings.clip_state, dimension: states };
        let gradient = Clip::Ball { bound: settings.clip_gradient };
        Ok(Self {
            proprietary: gaussian(settings.epsilon_c, state)?,
            augmented: gaussian(settings.epsilon_a, state)?,
            gradient: gaussian(settings.epsilon_g, gradient)?,
        })
    }

    /// The mechanisms of the paper's experiments: noise of a given σ on states (in nominal standard
    /// deviations) and on gradients, whatever it protects.
    pub(crate) fn with_sigma(
        settings: &PrivacySettings,
        up: Option<f64>,
        down: Option<f64>,
        states: usize,
    ) -> Result<Self, PrivacyError> {
        let state = Clip::Box { bound: settings.clip_state, dimension: states };
        let gradient = Clip::Ball { bound: settings.clip_gradient };
        let noised = |sigma: Option<f64>, clip| {
            sigma.map(|sigma| Gaussian::with_sigma(clip, sigma)).transpose()
        };
        Ok(Self {
            proprietary: noised(up, state)?,
            augmented: noised(up, state)?,
            gradient: noised(down, gradient)?,
        })
    }

    /// `x̂_c` on its way out.
    pub(crate) fn proprietary_state(
        &self,
        state: Estimate<'_>,
        random: &mut Randomness,
    ) -> Result<Guarded<Numbers>, PrivacyError> {
        guard(self.proprietary.as_ref(), state, random)
    }

    /// The stream of `x̂_c` in training.
    pub(crate) fn proprietary_channel(&self, random: Randomness) -> Channel {
        Channel::new(self.proprietary.clone(), random)
    }

    /// The stream of `x_a` in training.
    pub(crate) fn augmented_channel(&self, random: Randomness) -> Channel {
        Channel::new(self.augmented.clone(), random)
    }

    /// The stream of gradients in training.
    pub(crate) fn gradient_channel(&self, random: Randomness) -> Channel {
        Channel::new(self.gradient.clone(), random)
    }

    /// What one gradient would cost if it revealed anything new.
    pub(crate) fn gradient_spend(&self) -> Spend {
        self.gradient.as_ref().map_or(Spend::Clear, Gaussian::spend)
    }
}

fn guard(
    mechanism: Option<&Gaussian>,
    estimate: Estimate<'_>,
    random: &mut Randomness,
) -> Result<Guarded<Numbers>, PrivacyError> {
    match mechanism {
        Some(gaussian) => gaussian.noised(&estimate, random),
        None => Ok(estimate.unprotected()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::release::Spend;

    #[test]
    fn absent_settings_send_everything_in_the_clear_and_price_it_so() {
        let open = Protection::new(&PrivacySettings::default(), 2).unwrap();
        let mut random = Randomness::seeded(1, 0);
        let state = open.proprietary_state(Estimate::of_state(&[9.75, -3.5]), &mut random).unwrap();
        assert_eq!(state.spend(), Spend::Clear);
        assert_eq!(state.value.as_slice(), [9.75, -3.5]);
    }

    #[test]
    fn every_setting_reaches_its_own_mechanism() {
        let settings = PrivacySettings {
            epsilon_c: Some(1.0),
            epsilon_a: Some(2.0),
            epsilon_g: Some(4.0),
            ..PrivacySettings::default()
        };
        let protection = Protection::new(&settings, 2).unwrap();
        let mut random = Randomness::seeded(1, 0);
        let c = protection
            .proprietary_state(Estimate::of_state(&[0.0; 2]), &mut random)
            .unwrap()
            .spend();
        let a = protection.augmented_channel(Randomness::seeded(1, 0)).spend();
        let g = protection.gradient_spend();
        let strengths = [c, a, g].map(|spend| spend.strength().unwrap());
        assert!(strengths.is_sorted(), "{strengths:?}");
        let wrong = PrivacySettings { epsilon_c: Some(-1.0), ..settings };
        assert!(Protection::new(&wrong, 2).is_err());
    }
}
