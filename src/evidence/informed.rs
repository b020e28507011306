//! The client's half of tier 2: what others explain is taken out of the whitened residual, and what
//! is left is graded by itself.
//!
//! r_g = r_w − H̄ᵀ[ε̂, 1]. The server sends ε̂ part by part, one part per client that has an
//! influence; a step counts as surprising only as far as it stays so whichever one of these parts is
//! left out. So no single client can make another look anomalous: neither one that lies about its
//! state nor one whose sensors are at fault.

use super::influence::foretell::Foreteller;
use super::influence::messenger::Trace;
use super::influence::line::{Heard, Line};
use super::cusum::{self, Tail};
use super::likelihood::{Hypotheses, JointCounts, JointTables, Tables};
use super::ridge::Ridge;
use super::site::{Enrolment, Nominal, SiteSettings};
use super::symbol::{Grading, LevelCounts, LevelCuts, Symbol};
use super::threshold::NominalDistances;
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
    ) -> Result<Vec<Self>, PrivacyError> {
        let mut memory = foreteller.memory();
        let mut answers = vec![Self::default(); heard.len()];
        let mut parts = Vec::new();
        for t in 0..heard.iter().map(Heard::steps).min().unwrap_or(0) {
            for (m, answers) in answers.iter_mut().enumerate() {
                let told = foreteller.foretell(&memory, m, &mut parts);
                answers.0.push(if told {
                    Some(lines[m].borrow_mut().hear(t, &parts)?.parts().to_vec())
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
    /// Numbers in ε.
    states: usize,
    /// H̄: one row per sensor, the intercept last.
    h: Vec<f64>,
    nominal: Nominal,
    cuts: LevelCuts,
    // Of the step at hand.
    sum: Vec<f64>,
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
        let mut informed = Self {
            states,
            h: vec![0.0; sensors * (states + 1)],
            nominal: Nominal::fit(sensors, &[]),
            cuts: LevelCuts::new(grading, &NominalDistances::default()),
            sum: vec![0.0; states],
            r_g: vec![f32::NAN; sensors],
        };
        let mut ridge = Ridge::new(states + 1, sensors);
        let mut x = vec![1.0; states + 1];
        let mut y = vec![0.0; sensors];
        for (r_w, parts) in told(fit) {
            informed.add_up(parts, None);
            x.iter_mut().zip(&informed.sum).for_each(|(x, sum)| *x = *sum);
            y.iter_mut().zip(r_w).for_each(|(y, r)| *y = f64::from(*r));
            ridge.add(&x, &y);
        }
        informed.h = ridge.solve(LAMBDA).as_slice().to_vec();
        let mut rows = Vec::new();
        for (r_w, parts) in told(calibration) {
            informed.add_up(parts, None);
            informed.subtract(r_w);
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

    fn distances(&mut self, (trace, answers): (&Trace, &Answers)) -> Vec<f32> {
        (0..trace.steps())
            .map(|t| match trace.at(t).zip(answers.at(t)) {
                Some((said, parts)) => self.distance(said.r_w, parts),
                None => f32::NAN,
            })
            .collect()
    }

    /// The symbol of a step; none when its residual is missing or the answer is not one.
    pub fn symbol(&mut self, r_w: &[f32], parts: &[f64]) -> Option<Symbol> {
        let distance = self.distance(r_w, parts);
        self.cuts.symbol(distance)
    }

    /// The smallest d² with every part, and with any one of them left out.
    fn distance(&mut self, r_w: &[f32], parts: &[f64]) -> f32 {
        let sound = self.states > 0
            && parts.len() % self.states == 0
            && parts.iter().all(|p| p.is_finite());
        if !sound {
            return f32::NAN;
        }
        let mut smallest = f32::NAN;
        for left_out in (0..parts.len() / self.states).map(Some).chain([None]) {
            self.add_up(parts, left_out);
            self.subtract(r_w);
            smallest = smallest.min(self.nominal.squared(&self.r_g));
        }
        smallest
    }

    /// ε̂, with one part left out.
    fn add_up(&mut self, parts: &[f64], left_out: Option<usize>) {
        self.sum.fill(0.0);
        for (i, part) in parts.chunks_exact(self.states.max(1)).enumerate() {
            if Some(i) != left_out {
                self.sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
            }
        }
    }

    /// r_g = r_w − H̄ᵀ[ε̂, 1].
    fn subtract(&mut self, r_w: &[f32]) {
        let rows = self.h.chunks_exact(self.states + 1);
        for ((out, r), row) in self.r_g.iter_mut().zip(r_w).zip(rows) {
            let explained: f64 = row.iter().zip(&self.sum).map(|(h, e)| h * e).sum();
            *out = (f64::from(*r) - explained - row[self.states]) as f32;
        }
    }
}

impl Enrolment {
    /// Of a client that will send pairs: its true symbols, and beside them what of each step the
    /// others do not explain, where they had something to say.
    pub fn informed(
        symbols: &[Option<Symbol>],
        beside: &[Option<Symbol>],
        settings: &SiteSettings,
        hypotheses: &Hypotheses,
        rng: &mut Rng,
    ) -> Self {
        let response = settings.response();
        let levels = settings.grading.levels();
        let counts = LevelCounts::of(levels, symbols.iter().flatten().copied());
        let steps = || symbols.iter().zip(beside).filter_map(|(own, beside)| Some(((*own)?, *beside)));
        let pairs = steps().filter_map(|(own, beside)| Some((own, beside?)));
        let joint = JointCounts::of(levels, pairs);
        let alone = Tables::new(&settings.grading, hypotheses, &counts, &response).ratios(hypotheses);
        let both =
            JointTables::new(&settings.grading, hypotheses, &joint, &response).ratios(hypotheses);
        let peaks = cusum::excursion_peaks(steps().map(|(own, beside)| {
            let own = response.rehearse(own, rng);
            match beside.map(|beside| response.rehearse(beside, rng)) {
                Some(beside) => both.root_cause(own, beside),
                None => alone.root_cause(own),
            }
        }));
        let tail = Tail::fit(&peaks, counts.total() as usize);
        Self { counts, tail, epsilon: settings.epsilon, informed: Some(joint) }
    }
}

/// Residuals of the steps for which there is an answer.
fn told<'a>(
    (trace, answers): (&'a Trace, &'a Answers),
) -> impl Iterator<Item = (&'a [f32], &'a [f64])> {
    (0..trace.steps())
        .filter_map(move |t| Some((trace.at(t)?.r_w, answers.at(t)?)))
}
