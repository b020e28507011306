//! The client's half of tier 2: what another explains is taken out of the whitened residual, and what
//! is left is graded by itself.
//!
//! r_g = r_w − H̄ᵀ[ε̂, 1], with ε̂ within what nominal data showed of it and foretold from the state of
//! one other client, the explainer. Since ε̂ depends on what another says, r_g never speaks for an alarm
//! or a root: the server hears it only as to whether an alarm of this client is explained, see
//! [`inference`](super::inference).

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::cusum::{self, Tail};
use super::features::bounded;
use super::influence::foretell::Foreteller;
use super::influence::line::{Heard, Line};
use super::influence::messenger::Trace;
use super::likelihood::{Hypotheses, Ratios, Tables};
use super::ridge::Ridge;
use super::site::{Enrolment, Nominal, SiteSettings};
use super::symbol::{Grading, LevelCounts, LevelCuts, RandomisedResponse, Symbol};
use super::threshold::NominalDistances;
use crate::link::Tap;
use crate::privacy::PrivacyError;
use crate::rng::Rng;

/// Ridge penalty of H̄.
const LAMBDA: f64 = 1.0;

/// What came back from the server over a stretch.
#[derive(Debug, Clone, Default)]
pub struct Answers(Vec<Option<Vec<f64>>>);

impl Answers {
    /// What the server foretells each client from what it heard from all, as it comes back.
    pub fn gather(
        foreteller: &Foreteller,
        heard: &[Heard],
        lines: &mut [impl std::borrow::BorrowMut<Line>],
        tap: &Tap,
    ) -> Result<Vec<Self>, PrivacyError> {
        let mut memory = foreteller.memory();
        let mut answers = vec![Self::default(); heard.len()];
        let mut epsilon = Vec::new();
        for t in 0..heard.iter().map(Heard::steps).min().unwrap_or(0) {
            for (m, answers) in answers.iter_mut().enumerate() {
                let told = foreteller.foretell(&memory, m, &mut epsilon);
                answers.0.push(if told {
                    Some(lines[m].borrow_mut().hear(t, &epsilon, tap)?.epsilon().to_vec())
                } else {
                    None
                });
            }
            for (m, heard) in heard.iter().enumerate() {
                foreteller.hear(&mut memory, m, heard.z(t));
            }
        }
        Ok(answers)
    }

    fn at(&self, t: usize) -> Option<&[f64]> {
        self.0.get(t)?.as_deref()
    }
}

/// One client that is told what others explain.
#[derive(Debug, Clone)]
pub struct Informed {
    /// The largest of each number of ε̂ in the fit range.
    largest: Vec<f64>,
    /// H̄: one row per sensor, the intercept last.
    h: Vec<f64>,
    nominal: Nominal,
    cuts: LevelCuts,
    // Of the step at hand.
    r_g: Vec<f32>,
}

impl Informed {
    /// Fits H̄ on one nominal stretch and calibrates on another; also the symbols of the latter,
    /// none where there is no residual or no answer.
    #[must_use]
    pub fn fit(
        states: usize,
        grading: &Grading,
        fit: (&Trace, &Answers),
        calibration: (&Trace, &Answers),
    ) -> (Self, Vec<Option<Symbol>>) {
        let sensors = fit.0.sensors();
        let mut largest = vec![0.0f64; states];
        let mut ridge = Ridge::new(states + 1, sensors);
        let mut x = vec![1.0; states + 1];
        let mut y = vec![0.0; sensors];
        for (r_w, epsilon) in told(fit) {
            largest.iter_mut().zip(epsilon).for_each(|(l, e)| *l = l.max(e.abs()));
            x.iter_mut().zip(epsilon).for_each(|(x, e)| *x = *e);
            y.iter_mut().zip(r_w).for_each(|(y, r)| *y = f64::from(*r));
            ridge.add(&x, &y);
        }
        let mut informed = Self {
            largest,
            h: ridge.solve(LAMBDA).as_slice().to_vec(),
            nominal: Nominal::fit(sensors, &[]),
            cuts: LevelCuts::new(grading, &NominalDistances::default()),
            r_g: vec![f32::NAN; sensors],
        };
        let mut rows = Vec::new();
        for (r_w, epsilon) in told(calibration) {
            informed.subtract(r_w, epsilon);
            rows.extend_from_slice(&informed.r_g);
        }
        informed.nominal = Nominal::fit(sensors, &rows);
        let distances = informed.distances(calibration);
        let nominal = NominalDistances::new(distances.iter().copied());
        informed.cuts = LevelCuts::new(grading, &nominal);
        let symbols = distances.iter().map(|d| informed.cuts.symbol(*d)).collect();
        (informed, symbols)
    }

    /// The symbols of a stretch.
    pub fn symbols(&mut self, trace: &Trace, answers: &Answers) -> Vec<Option<Symbol>> {
        let distances = self.distances((trace, answers));
        distances.iter().map(|d| self.cuts.symbol(*d)).collect()
    }

    /// The symbol of a step; none when its residual is missing or the answer is not one.
    pub fn symbol(&mut self, r_w: &[f32], epsilon: &[f64]) -> Option<Symbol> {
        let distance = self.distance(r_w, epsilon);
        self.cuts.symbol(distance)
    }

    fn distances(&mut self, (trace, answers): (&Trace, &Answers)) -> Vec<f32> {
        (0..trace.steps())
            .map(|t| match trace.at(t).zip(answers.at(t)) {
                Some((said, epsilon)) => self.distance(said.r_w, epsilon),
                None => f32::NAN,
            })
            .collect()
    }

    fn distance(&mut self, r_w: &[f32], epsilon: &[f64]) -> f32 {
        if epsilon.len() != self.largest.len() {
            return f32::NAN;
        }
        self.subtract(r_w, epsilon);
        self.nominal.squared(&self.r_g)
    }

    /// r_g = r_w − H̄ᵀ[ε̂, 1].
    fn subtract(&mut self, r_w: &[f32], epsilon: &[f64]) {
        let rows = self.h.chunks_exact(self.largest.len() + 1);
        for ((out, r), row) in self.r_g.iter_mut().zip(r_w).zip(rows) {
            let known = epsilon.iter().zip(&self.largest).map(|(e, l)| bounded(*e, *l));
            let explained: f64 = row.iter().zip(known.chain([1.0])).map(|(h, e)| h * e).sum();
            *out = (f64::from(*r) - explained) as f32;
        }
    }
}

/// What a client tells about what its explainer leaves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Remainder {
    /// Whose state explains.
    pub explainer: usize,
    /// How often each level of the second symbol occurred in calibration.
    pub counts: LevelCounts,
    /// The tail of its calibration excursions.
    pub tail: Tail,
}

impl Remainder {
    /// What each second symbol says.
    #[must_use]
    pub fn ratios(
        &self,
        grading: &Grading,
        hypotheses: &Hypotheses,
        epsilon: Option<f64>,
    ) -> Ratios {
        let response = RandomisedResponse::new(grading.levels(), epsilon);
        Tables::new(grading, hypotheses, &self.counts, &response).ratios(hypotheses)
    }
}

impl Enrolment {
    /// The same of a client that will send pairs: its true symbols, and beside them what of each
    /// step `explainer` does not explain, where it had something to say.
    #[must_use]
    pub fn explained_by(
        self,
        explainer: usize,
        [symbols, beside]: [&[Option<Symbol>]; 2],
        settings: &SiteSettings,
        hypotheses: &Hypotheses,
        rng: &mut Rng,
    ) -> Self {
        let response = settings.response();
        let grading = &settings.grading;
        let counts = LevelCounts::of(grading.levels(), beside.iter().flatten().copied());
        let mut remainder = Remainder { explainer, counts, tail: Tail::fit(&[], 0) };
        let own = self.tables(grading, hypotheses).ratios(hypotheses);
        let left = remainder.ratios(grading, hypotheses, settings.epsilon);
        let steps = symbols.iter().zip(beside).filter_map(|(own, beside)| Some(((*own)?, *beside)));
        let peaks = cusum::excursion_peaks(steps.map(|(symbol, beside)| match beside {
            Some(beside) => left.root_cause(response.rehearse(beside, rng)),
            None => own.root_cause(response.rehearse(symbol, rng)),
        }));
        remainder.tail = Tail::fit(&peaks, self.counts.total() as usize);
        Self { remainder: Some(remainder), ..self }
    }
}

/// Residuals of the steps for which there is an answer.
fn told<'a>(
    (trace, answers): (&'a Trace, &'a Answers),
) -> impl Iterator<Item = (&'a [f32], &'a [f64])> {
    (0..trace.steps()).filter_map(move |t| Some((trace.at(t)?.r_w, answers.at(t)?)))
}
