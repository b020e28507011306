//! What a send policy keeps between two steps: the strongest symbol of a window, answers that are drawn
//! once. It must not know what the symbols mean.

use super::PrivacyError;
use super::randomness::Randomness;
use super::release::{Guarded, Symbol};
use super::response::Response;

/// The strongest symbol of each window. A sample is in one window only, so it is reported once.
#[derive(Debug, Clone)]
pub(crate) struct StrongestOf {
    steps: u64,
    seen: u64,
    strongest: Symbol,
}

impl StrongestOf {
    /// Windows of `steps` ≥ 1 steps.
    pub(crate) fn new(steps: u64) -> Self {
        Self { steps: steps.max(1), seen: 0, strongest: Symbol(0) }
    }

    /// Takes one step's symbol and, at the end of a window, gives the strongest.
    pub(crate) fn push(&mut self, symbol: Symbol) -> Option<Symbol> {
        self.strongest = self.strongest.max(symbol);
        self.seen += 1;
        if self.seen < self.steps {
            return None;
        }
        self.seen = 0;
        Some(std::mem::replace(&mut self.strongest, Symbol(0)))
    }
}

/// Remembered answers (RAPPOR, Erlingsson and others 2014): each symbol gets one permanent
/// answer, and every report is a fresh answer about that one.
///
/// Averaging many reports finds the permanent answer and no more, so a symbol that never changes
/// costs the permanent ε at most, however long it is reported. A symbol that changes does not
/// have that protection: each report then costs its own ε, and that is what the ledger counts.
#[derive(Debug, Clone)]
pub(crate) struct Memoised {
    permanent: Response,
    report: Response,
    answers: Vec<Option<u8>>,
}

impl Memoised {
    /// A permanent answer by `permanent`, reported by `report`, over the same symbols.
    pub(crate) fn new(permanent: Response, report: Response) -> Result<Self, PrivacyError> {
        if permanent.symbols() != report.symbols() {
            return Err(PrivacyError::Dimension {
                expected: usize::from(permanent.symbols()),
                found: usize::from(report.symbols()),
            });
        }
        let answers = vec![None; usize::from(permanent.symbols())];
        Ok(Self { permanent, report, answers })
    }

    /// The same permanent answers, reported by another `report` from now on.
    pub(crate) fn reporting(self, report: Response) -> Self {
        Self { report, ..self }
    }

    pub(crate) fn symbol(
        &mut self,
        symbol: Symbol,
        random: &mut Randomness,
    ) -> Result<Guarded<Symbol>, PrivacyError> {
        let permanent = self.permanent(symbol, random)?;
        self.report.symbol(permanent, random)
    }

    /// The permanent answer about `symbol`, drawn if it never was. It stays with the client.
    pub(super) fn permanent(
        &mut self,
        symbol: Symbol,
        random: &mut Randomness,
    ) -> Result<Symbol, PrivacyError> {
        let place = usize::from(symbol.0);
        let found = place + 1;
        let expected = self.answers.len();
        let answer =
            self.answers.get_mut(place).ok_or(PrivacyError::Dimension { expected, found })?;
        Ok(Symbol(match *answer {
            Some(known) => known,
            None => *answer.insert(self.permanent.answer(symbol.0, random)?),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response() -> Response {
        Response::binary(1.0).unwrap()
    }

    #[test]
    fn a_window_tells_its_strongest_symbol_once() {
        let mut window = StrongestOf::new(3);
        let told: Vec<_> = [0, 2, 1, 0, 0, 0, 1].iter().map(|s| window.push(Symbol(*s))).collect();
        assert_eq!(told, [None, None, Some(Symbol(2)), None, None, Some(Symbol(0)), None]);
    }

    #[test]
    fn a_remembered_answer_is_all_that_averaging_finds() {
        let mut memo = Memoised::new(response(), Response::binary(2.0).unwrap()).unwrap();
        let mut random = Randomness::seeded(33, 0);
        let n = 20_000;
        let ones: u32 =
            (0..n).map(|_| u32::from(memo.symbol(Symbol(0), &mut random).unwrap().value.0)).sum();
        let share = f64::from(ones) / f64::from(n);
        let report = Response::binary(2.0).unwrap();
        let permanent = memo.answers[0].unwrap();
        let expected = if permanent == 1 { report.truth() } else { report.flip() };
        assert!((share - expected).abs() < 0.02, "{share}");
        assert!(memo.symbol(Symbol(2), &mut random).is_err());
        assert!(Memoised::new(response(), Response::new(1.0, 3).unwrap()).is_err());
    }
}
