//! A session's privacy settings, made into the mechanisms that keep them.
//!
//! Where a setting is absent the value is sent as it is, and priced as such: the choice is the
//! session's, and the ledger says what it means.

use super::PrivacyError;
use super::channel::Channel;
use super::gaussian::SigmaRule;
use super::mechanism::{Clip, Gaussian};
use super::randomness::{Provenance, Randomness};
#[cfg(test)]
use super::release::Flag;
#[cfg(test)]
use super::release::Symbol;
use super::release::{Estimate, Guarded, Numbers, Spend, Unprotected as _};
use super::response::Response;
use crate::session::Session;
use crate::session::settings::PrivacySettings;

/// What stands between values and messages, in both directions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hooks<'a> {
    /// What is noised and how much; what is absent is sent as it is, and counted as such.
    pub(crate) privacy: &'a PrivacySettings,
    /// How σ follows from (ε, δ).
    pub(crate) rule: SigmaRule,
    /// Where noise comes from.
    pub(crate) provenance: Provenance,
}

impl<'a> Hooks<'a> {
    /// Those of a session.
    pub(crate) fn of(session: &'a Session) -> Self {
        Self {
            privacy: &session.privacy,
            rule: session.privacy.sigma.into(),
            provenance: Provenance::of(session),
        }
    }
}

/// What stands between a client's values and its messages.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Protection {
    proprietary: Option<Gaussian>,
    augmented: Option<Gaussian>,
    gradient: Option<Gaussian>,
    flag: Option<Response>,
    symbol: Option<Response>,
}

impl Protection {
    /// The mechanisms for states of `states` components and symbols of `symbols` grades.
    pub(crate) fn new(
        settings: &PrivacySettings,
        rule: SigmaRule,
        states: usize,
        symbols: u8,
    ) -> Result<Self, PrivacyError> {
        let gaussian = |epsilon: Option<f64>, clip| {
            epsilon.map(|epsilon| Gaussian::new(clip, rule, epsilon, settings.delta)).transpose()
        };
        let state = Clip::Box { bound: settings.clip_state, dimension: states };
        let gradient = Clip::Ball { bound: settings.clip_gradient };
        let response =
            |symbols| settings.epsilon_flag.map(|e| Response::new(e, symbols)).transpose();
        Ok(Self {
            proprietary: gaussian(settings.epsilon_c, state)?,
            augmented: gaussian(settings.epsilon_a, state)?,
            gradient: gaussian(settings.epsilon_g, gradient)?,
            flag: response(2)?,
            symbol: response(symbols)?,
        })
    }

    /// The mechanisms of the paper's experiments: noise of a given σ on states (in nominal standard
    /// deviations) and on gradients, whatever it protects. Flags and symbols are left as they are.
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
            flag: None,
            symbol: None,
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

    /// What one gradient would cost if it told anything new.
    pub(crate) fn gradient_spend(&self) -> Spend {
        self.gradient.as_ref().map_or(Spend::Clear, Gaussian::spend)
    }

    /// A flag on its way out.
    #[cfg(test)]
    pub(crate) fn flag(
        &self,
        flag: Flag,
        random: &mut Randomness,
    ) -> Result<Guarded<Flag>, PrivacyError> {
        match &self.flag {
            Some(response) => response.flag(flag, random),
            None => Ok(flag.unprotected()),
        }
    }

    /// A graded symbol on its way out.
    #[cfg(test)]
    pub(crate) fn symbol(
        &self,
        symbol: Symbol,
        random: &mut Randomness,
    ) -> Result<Guarded<Symbol>, PrivacyError> {
        match &self.symbol {
            Some(response) => response.symbol(symbol, random),
            None => Ok(symbol.unprotected()),
        }
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
        let open = Protection::new(&PrivacySettings::default(), SigmaRule::Analytic, 2, 3).unwrap();
        let mut random = Randomness::seeded(1, 0);
        let state = open.proprietary_state(Estimate::of_state(&[9.75, -3.5]), &mut random).unwrap();
        assert_eq!(state.spend(), Spend::Clear);
        assert_eq!(state.value.as_slice(), [9.75, -3.5]);
        assert_eq!(open.flag(Flag(true), &mut random).unwrap().spend(), Spend::Clear);
        assert_eq!(open.symbol(Symbol(2), &mut random).unwrap().spend(), Spend::Clear);
    }

    #[test]
    fn every_setting_reaches_its_own_mechanism() {
        let settings = PrivacySettings {
            epsilon_c: Some(1.0),
            epsilon_a: Some(2.0),
            epsilon_g: Some(4.0),
            epsilon_flag: Some(0.5),
            ..PrivacySettings::default()
        };
        let protection = Protection::new(&settings, SigmaRule::Analytic, 2, 3).unwrap();
        let mut random = Randomness::seeded(1, 0);
        let c = protection
            .proprietary_state(Estimate::of_state(&[0.0; 2]), &mut random)
            .unwrap()
            .spend();
        let a = protection.augmented_channel(Randomness::seeded(1, 0)).spend();
        let g = protection.gradient_spend();
        let strengths = [c, a, g].map(|spend| spend.strength().unwrap());
        assert!(strengths.is_sorted(), "{strengths:?}");
        let flag = protection.flag(Flag(false), &mut random).unwrap().spend();
        assert_eq!(flag, Spend::Response { epsilon: 0.5, symbols: 2 });
        let symbol = protection.symbol(Symbol(1), &mut random).unwrap().spend();
        assert_eq!(symbol, Spend::Response { epsilon: 0.5, symbols: 3 });
        let wrong = PrivacySettings { epsilon_c: Some(-1.0), ..settings };
        assert!(Protection::new(&wrong, SigmaRule::Analytic, 2, 3).is_err());
    }
}
