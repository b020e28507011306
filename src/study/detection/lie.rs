//! What a client may say instead of the truth.

use crate::evidence::health::Report;
use crate::evidence::influence::line::Heard;
use crate::evidence::symbol::{Grading, Symbol};

/// A way to lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// The same at every step.
    Always,
    /// The opposite of the truth.
    Inverted,
    /// What was true earlier, over and over.
    Replayed,
    /// Numbers beyond all bounds.
    Huge,
    /// What is no number.
    NotANumber,
    /// From one end to the other at every step.
    Swinging,
    /// The same for a while, then its opposite.
    Stepping,
    /// Nothing.
    Silent,
}

impl Lie {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Always,
        Self::Inverted,
        Self::Replayed,
        Self::Huge,
        Self::NotANumber,
        Self::Swinging,
        Self::Stepping,
        Self::Silent,
    ];

    /// Steps that are replayed, and for which a stepping lie stays.
    const STRETCH: usize = 300;

    /// What is told of a state; the largest state is one of five nominal deviations.
    fn z(self, truth: &Heard, t: usize) -> Option<Vec<f64>> {
        let all = |value: f64| Some(vec![value; truth.states()]);
        let sign = |positive: bool| if positive { 1.0 } else { -1.0 };
        match self {
            Self::Always => all(1.0),
            Self::Inverted => truth.z(t).map(|z| z.iter().map(|z| -z).collect()),
            Self::Replayed => truth.z(t % Self::STRETCH).map(<[f64]>::to_vec),
            Self::Huge => all(1e18),
            Self::NotANumber => all(f64::NAN),
            Self::Swinging => all(5.0 * sign(t.is_multiple_of(2))),
            Self::Stepping => all(5.0 * sign((t / Self::STRETCH).is_multiple_of(2))),
            Self::Silent => None,
        }
    }

    /// What is told of a level.
    fn report(self, grading: &Grading, truth: &[Option<Symbol>], t: usize) -> Report {
        let highest = grading.highest().level() as f64;
        let level = |t: usize| truth.get(t).copied().flatten().map(|s| s.level() as f64);
        let ends = |high: bool| Some(if high { highest } else { 0.0 });
        let number = match self {
            Self::Always => Some(1.0),
            Self::Inverted => level(t).map(|level| highest - level),
            Self::Replayed => level(t % Self::STRETCH),
            Self::Huge => Some(1e18),
            Self::NotANumber => Some(f64::NAN),
            Self::Swinging => ends(t.is_multiple_of(2)),
            Self::Stepping => ends((t / Self::STRETCH).is_multiple_of(2)),
            Self::Silent => None,
        };
        number.map_or(Report::Missing, |number| {
            grading.receive(number).map_or(Report::Invalid, Report::Symbol)
        })
    }
}

/// A client that lies from the first step that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Liar {
    /// Who.
    pub client: usize,
    /// How.
    pub lie: Lie,
    /// Whether it lies about its symbols too, and not only about its states.
    pub about_symbols: bool,
}

impl Liar {
    /// What the server hears of the states of `client`.
    pub(super) fn states(self, client: usize, truth: &Heard) -> Heard {
        if client != self.client {
            return truth.clone();
        }
        let mut heard = Heard::new(truth.states());
        for t in 0..truth.steps() {
            heard.hear(self.lie.z(truth, t).as_deref(), None);
        }
        heard
    }

    /// What the server hears instead of the true report of `client`, whose true levels are known.
    pub(super) fn report(
        self,
        grading: &Grading,
        truth: &[Option<Symbol>],
        t: usize,
        beside: Option<Symbol>,
    ) -> Report {
        // Of what is left it tells what suits its lie best: that nothing is.
        match (self.lie.report(grading, truth, t), beside.and(grading.symbol(0))) {
            (Report::Symbol(own), Some(nothing)) => Report::Informed(own, nothing),
            (report, _) => report,
        }
    }
}
