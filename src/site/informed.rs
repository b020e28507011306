//! The site's half of tier 2: what another explains is taken out of the whitened residual, and what is
//! left is graded by itself.
//!
//! r_g = r_w − H̄ᵀ[ε̂, 1], with ε̂ within what nominal data showed of it and predicted from the state of
//! one other client, the explainer. Since ε̂ depends on the messages of another, r_g never supports an alarm
//! or a root: the server uses it only as to whether an alarm of this client is explained, see
//! [`inference`](crate::server::inference).

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::grader::Nominal;
use super::messenger::Trace;
use crate::evidence::features::bounded;
use crate::evidence::ridge::Ridge;
use crate::evidence::symbol::{Grading, LevelCuts, Symbol};
use crate::evidence::threshold::NominalDistances;
use crate::nn::kernel::gaussian::Gaussian;
use crate::wire::{Order, ToSite};

/// Ridge penalty of H̄.
const LAMBDA: f64 = 1.0;

/// What came back from the server over a stretch: ε̂ of each step, where there was one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answers(Vec<Option<Vec<f32>>>);

impl Answers {
    /// Nothing came back about any of so many steps.
    pub(crate) fn none(steps: usize) -> Self {
        Self(vec![None; steps])
    }

    /// What the server sent about one step; anything but ε̂ is not for here.
    pub(crate) fn hear(&mut self, message: &ToSite) {
        if let (Order::Prediction(epsilon), Some(answer)) =
            (message.order(), self.0.get_mut(message.step() as usize))
        {
            *answer = Some(epsilon.to_vec());
        }
    }

    fn at(&self, t: usize) -> Option<&[f32]> {
        self.0.get(t)?.as_deref()
    }
}

/// What is fitted once: it is kept with the client's models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct InformedFit {
    /// The largest of each number of ε̂ in the fit range.
    largest: Vec<f64>,
    /// H̄: one row per sensor, the intercept last.
    h: Vec<f64>,
    nominal: Gaussian,
    /// d² of every calibration step, NaN where there is no residual or no answer.
    distances: Vec<f32>,
}

impl InformedFit {
    /// Fits H̄ on one nominal stretch and calibrates on another.
    pub(crate) fn new(
        states: usize,
        fit: (&Trace, &Answers),
        calibration: (&Trace, &Answers),
    ) -> Self {
        let sensors = fit.0.sensors();
        let mut largest = vec![0.0f64; states];
        let mut ridge = Ridge::new(states + 1, sensors);
        let mut x = vec![1.0; states + 1];
        let mut y = vec![0.0; sensors];
        for (r_w, epsilon) in answered(fit) {
            let epsilon = || epsilon.iter().map(|e| f64::from(*e));
            largest.iter_mut().zip(epsilon()).for_each(|(l, e)| *l = l.max(e.abs()));
            x.iter_mut().zip(epsilon()).for_each(|(x, e)| *x = e);
            y.iter_mut().zip(r_w).for_each(|(y, r)| *y = f64::from(*r));
            ridge.add(&x, &y);
        }
        let mut residual = Remaining {
            largest,
            h: ridge.solve(LAMBDA).as_slice().to_vec(),
            r_g: vec![f32::NAN; sensors],
        };
        let mut rows = Vec::new();
        for (r_w, epsilon) in answered(calibration) {
            residual.subtract(r_w, epsilon);
            rows.extend_from_slice(&residual.r_g);
        }
        let mut nominal = Nominal::fit(sensors, &rows);
        let (trace, answers) = calibration;
        let distances = (0..trace.steps())
            .map(|t| match trace.at(t).zip(answers.at(t)) {
                Some((said, epsilon)) => residual.distance(&mut nominal, said.r_w, epsilon),
                None => f32::NAN,
            })
            .collect();
        let Remaining { largest, h, .. } = residual;
        Self { largest, h, nominal: nominal.gaussian().clone(), distances }
    }

    /// The same without the calibration steps for which `keep` is false.
    #[must_use]
    pub(crate) fn keeping(mut self, keep: impl Fn(usize) -> bool) -> Self {
        let mut at = 0;
        self.distances.retain(|_| {
            at += 1;
            keep(at - 1)
        });
        self
    }

    /// Whether the parts fit together: what is read from a file may not.
    pub(crate) fn is_whole(&self) -> bool {
        self.h.len() == (self.largest.len() + 1) * self.nominal.sensors()
    }

    /// The true second symbol of every calibration step; none where there is no distance.
    pub(crate) fn symbols(&self, grading: &Grading) -> Vec<Option<Symbol>> {
        let cuts = self.cuts(grading);
        self.distances.iter().map(|d| cuts.symbol(*d)).collect()
    }

    fn cuts(&self, grading: &Grading) -> LevelCuts {
        LevelCuts::new(grading, &NominalDistances::new(self.distances.iter().copied()))
    }
}

/// r_g of a step.
#[derive(Debug, Clone)]
struct Remaining {
    largest: Vec<f64>,
    h: Vec<f64>,
    // Of the step at hand.
    r_g: Vec<f32>,
}

impl Remaining {
    fn distance(&mut self, nominal: &mut Nominal, r_w: &[f32], epsilon: &[f32]) -> f32 {
        if epsilon.len() != self.largest.len() {
            return f32::NAN;
        }
        self.subtract(r_w, epsilon);
        nominal.squared(&self.r_g)
    }

    /// r_g = r_w − H̄ᵀ[ε̂, 1].
    fn subtract(&mut self, r_w: &[f32], epsilon: &[f32]) {
        let rows = self.h.chunks_exact(self.largest.len() + 1);
        for ((out, r), row) in self.r_g.iter_mut().zip(r_w).zip(rows) {
            let known = epsilon.iter().zip(&self.largest).map(|(e, l)| bounded(f64::from(*e), *l));
            let explained: f64 = row.iter().zip(known.chain([1.0])).map(|(h, e)| h * e).sum();
            *out = (f64::from(*r) - explained) as f32;
        }
    }
}

/// One client that receives what others explain.
#[derive(Debug, Clone)]
pub(crate) struct Informed {
    remaining: Remaining,
    nominal: Nominal,
    cuts: LevelCuts,
}

impl Informed {
    /// A client with what was fitted for it.
    pub(crate) fn new(fit: &InformedFit, grading: &Grading) -> Self {
        let sensors = fit.nominal.sensors();
        Self {
            remaining: Remaining {
                largest: fit.largest.clone(),
                h: fit.h.clone(),
                r_g: vec![f32::NAN; sensors],
            },
            nominal: Nominal::of(fit.nominal.clone()),
            cuts: fit.cuts(grading),
        }
    }

    /// The symbol of a step; none when its residual is missing or the answer is not one.
    pub(crate) fn symbol(&mut self, r_w: &[f32], epsilon: &[f32]) -> Option<Symbol> {
        let distance = self.remaining.distance(&mut self.nominal, r_w, epsilon);
        self.cuts.symbol(distance)
    }
}

/// Residuals of the steps for which there is an answer.
fn answered<'a>(
    (trace, answers): (&'a Trace, &'a Answers),
) -> impl Iterator<Item = (&'a [f32], &'a [f32])> {
    (0..trace.steps()).filter_map(move |t| Some((trace.at(t)?.r_w, answers.at(t)?)))
}
