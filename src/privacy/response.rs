//! Randomised response: a flag or graded symbol is sent truly with probability
//! p = e^ε/(e^ε + k − 1), and otherwise replaced by one of the k − 1 others (theorem 7.3 is
//! k = 2). It knows symbols, not what they stand for.

use serde::{Deserialize, Serialize};

use super::PrivacyError;
use super::randomness::Randomness;
use super::release::{Flag, Guarded, Spend, Symbol};

/// Randomised response over `symbols` symbols.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Response {
    epsilon: f64,
    symbols: u8,
}

impl Response {
    /// ε-private response over `symbols` ≥ 2 symbols.
    pub(crate) fn new(epsilon: f64, symbols: u8) -> Result<Self, PrivacyError> {
        if !(epsilon.is_finite() && epsilon > 0.0) {
            return Err(PrivacyError::Setting {
                what: "ε of a flag",
                expected: "a number above 0",
                found: epsilon,
            });
        }
        if symbols < 2 {
            return Err(PrivacyError::Setting {
                what: "number of symbols",
                expected: "at least 2",
                found: f64::from(symbols),
            });
        }
        Ok(Self { epsilon, symbols })
    }

    /// ε-private response for a binary flag.
    pub(crate) fn binary(epsilon: f64) -> Result<Self, PrivacyError> {
        Self::new(epsilon, 2)
    }

    /// ε of one answer.
    #[cfg(test)]
    pub(crate) fn epsilon(&self) -> f64 {
        self.epsilon
    }

    pub(crate) fn symbols(&self) -> u8 {
        self.symbols
    }

    /// The chance p that an answer is true.
    pub(crate) fn truth(&self) -> f64 {
        1.0 / (1.0 + f64::from(self.symbols - 1) * (-self.epsilon).exp())
    }

    /// The chance 1 − p that an answer is not true, exact also when it is tiny.
    pub(crate) fn flip(&self) -> f64 {
        let others = f64::from(self.symbols - 1);
        others / (self.epsilon.exp() + others)
    }

    /// The chance of one particular wrong answer.
    pub(crate) fn each_lie(&self) -> f64 {
        self.flip() / f64::from(self.symbols - 1)
    }

    /// The distribution of answers when the truth is distributed as `shares`.
    pub(crate) fn answers(&self, shares: &[f64]) -> Vec<f64> {
        let (truth, lie) = (self.truth(), self.each_lie());
        let total: f64 = shares.iter().sum();
        shares.iter().map(|&share| share * truth + (total - share) * lie).collect()
    }

    /// What might be answered: for simulations, never for sending.
    pub(crate) fn rehearse(&self, truth: u8, random: &mut Randomness) -> Result<u8, PrivacyError> {
        if truth >= self.symbols {
            let (expected, found) = (usize::from(self.symbols), usize::from(truth) + 1);
            return Err(PrivacyError::Dimension { expected, found });
        }
        self.answer(truth, random)
    }

    /// A private answer about a flag.
    pub(crate) fn flag(
        &self,
        flag: Flag,
        random: &mut Randomness,
    ) -> Result<Guarded<Flag>, PrivacyError> {
        if self.symbols != 2 {
            return Err(PrivacyError::Dimension { expected: 2, found: usize::from(self.symbols) });
        }
        let heard = self.answer(u8::from(flag.0), random)?;
        Ok(Guarded::new(Flag(heard == 1), self.spend(), random.provenance()))
    }

    /// A private answer about a symbol.
    pub(crate) fn symbol(
        &self,
        symbol: Symbol,
        random: &mut Randomness,
    ) -> Result<Guarded<Symbol>, PrivacyError> {
        if symbol.0 >= self.symbols {
            return Err(PrivacyError::Dimension {
                expected: usize::from(self.symbols),
                found: usize::from(symbol.0) + 1,
            });
        }
        let heard = self.answer(symbol.0, random)?;
        Ok(Guarded::new(Symbol(heard), self.spend(), random.provenance()))
    }

    pub(crate) fn spend(&self) -> Spend {
        Spend::Response { epsilon: self.epsilon, symbols: self.symbols }
    }

    /// The answer itself, decided by one 64-bit integer. The chance of a lie is rounded up to a
    /// multiple of 2⁻⁶⁴ and past the error of its own computation, so the ε really given is
    /// never above the one claimed.
    pub(super) fn answer(&self, truth: u8, random: &mut Randomness) -> Result<u8, PrivacyError> {
        let lies = (self.flip() * (1.0 + 1e-15) * 2.0_f64.powi(64)).ceil().max(1.0) as u64;
        let (lie, other) = (random.word()? < lies, random.below(u64::from(self.symbols - 1))?);
        // `other` is drawn in either case: the time of an answer must not tell a lie from a truth.
        let other = other as u8;
        Ok(if lie { other + u8::from(other >= truth) } else { truth })
    }
}

#[cfg(test)]
mod tests {
    use super::super::reference::{after, channel, debias};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn settings_without_meaning_are_refused() {
        assert!(Response::binary(0.0).is_err());
        assert!(Response::binary(f64::NAN).is_err());
        assert!(Response::new(1.0, 1).is_err());
        let five = Response::new(1.0, 5).unwrap();
        let mut random = Randomness::seeded(1, 0);
        assert!(five.flag(Flag(true), &mut random).is_err());
        assert!(five.symbol(Symbol(5), &mut random).is_err());
    }

    #[test]
    fn the_binary_case_is_theorem_7_3() {
        for epsilon in [0.1, 1.0, 4.0] {
            let truth = super::super::reference::truth_7_3(epsilon);
            assert!((Response::binary(epsilon).unwrap().truth() - truth).abs() < 1e-15);
        }
    }

    #[test]
    fn two_answers_in_a_row_protect_better_than_either() {
        let (first, second) = (Response::new(2.0, 3).unwrap(), Response::new(1.0, 3).unwrap());
        let both = after(&second, &first);
        assert!(both < 1.0 && both > 0.0, "ε {both}");
        assert!((both - after(&first, &second)).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn channel_rows_sum_to_one_and_never_differ_by_more_than_epsilon(
            epsilon in 0.01_f64..20.0, symbols in 2_u8..12,
        ) {
            let response = Response::new(epsilon, symbols).unwrap();
            let channel = channel(&response);
            for row in &channel {
                prop_assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                for other in &channel {
                    for (a, b) in row.iter().zip(other) {
                        prop_assert!((a / b).ln() <= epsilon * (1.0 + 1e-12));
                    }
                }
            }
        }

        #[test]
        fn debiasing_undoes_the_channel(epsilon in 0.1_f64..8.0, share in 0.0_f64..1.0) {
            let response = Response::new(epsilon, 3).unwrap();
            let heard = response.answers(&[share, 0.5 * (1.0 - share), 0.5 * (1.0 - share)]);
            prop_assert!((debias(&response, heard[0]) - share).abs() < 1e-9);
        }
    }
}
