//! What a client tells the server about itself before it is heard: how often each of its symbols
//! occurred in calibration, how bursty they were, and in which send it will send them.
//!
//! The site makes it (`site::enrolment`), the server reads it. It must not know how.

use serde::{Deserialize, Serialize};

use super::cusum::Tail;
use super::likelihood::{Hypotheses, Ratios, Tables};
use super::symbol::{Grading, LevelCounts, MOST_LEVELS, RandomisedResponse};
use super::watch::Odds;
use crate::privacy::SparseVectorParams;
pub(crate) use crate::privacy::forecast::strongest;
use crate::session::SendPolicy;

/// A client's word about itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Enrolment {
    /// How often each level occurred in calibration; with windows, as the strongest of one; with
    /// kept answers, as that answer.
    pub(crate) counts: LevelCounts,
    /// How often each level occurred in either half of the calibration; none where that stays with
    /// the client.
    pub(crate) halves: Option<[LevelCounts; 2]>,
    /// The tail of its calibration excursions, after randomised response.
    pub(crate) tail: Tail,
    /// ε of each symbol it will send.
    pub(crate) epsilon: Option<f64>,
    /// How often it will send one.
    pub(crate) send: SendPolicy,
    /// Its watch, where it sends while raised or its budget keeps what is left for alarms.
    pub(crate) watch: Option<SparseVectorParams>,
    /// How often its watch was raised in calibration, and how often it was looked at.
    pub(crate) raised: (u64, u64),
    /// What it tells of its second symbols, where it will send them (tier 2).
    pub(crate) remainder: Option<Remainder>,
}

/// What a client tells about what its explainer leaves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Remainder {
    pub(crate) explainer: usize,
    /// How often each level of the second symbol occurred in calibration.
    pub(crate) counts: LevelCounts,
    /// The tail of its calibration excursions.
    pub(crate) tail: Tail,
}

impl Remainder {
    /// What each second symbol says.
    pub(crate) fn ratios(
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
    /// The distributions of its symbols, as the server will hear them.
    pub(crate) fn tables(&self, grading: &Grading, hypotheses: &Hypotheses) -> Tables {
        let levels = grading.levels();
        let response = RandomisedResponse::new(levels, self.epsilon);
        let of = |shape: &dyn Fn(Vec<f64>) -> Vec<f64>| {
            Tables::shaped(grading, hypotheses, &self.counts, &response, shape)
        };
        match self.send {
            SendPolicy::EveryStep | SendPolicy::WhileRaised => of(&|levels| levels),
            SendPolicy::Window(steps) => of(&|levels| strongest(&levels, steps as f64)),
            SendPolicy::Memoised { permanent } => {
                let kept = RandomisedResponse::new(levels, Some(permanent));
                of(&|levels| kept.through(&levels))
            }
        }
    }

    /// What its silence and its raised watch say.
    pub(crate) fn odds(&self, grading: &Grading, hypotheses: &Hypotheses) -> Odds {
        self.watch.map_or_else(Odds::default, |params| {
            Odds::new(grading, hypotheses, &params, self.raised)
        })
    }

    /// Whether the numbers can be those of a calibration: what comes over a wire may be anything.
    pub(crate) fn is_sound(&self) -> bool {
        let remainder = self.remainder.as_ref();
        let counts = [&self.counts].into_iter().chain(self.halves.iter().flatten());
        let mut counts = counts.chain(remainder.map(|remainder| &remainder.counts));
        let mut tails = [&self.tail].into_iter().chain(remainder.map(|remainder| &remainder.tail));
        let positive = |x: f64| x.is_finite() && x > 0.0;
        let watches =
            |params: &SparseVectorParams| positive(params.epsilon) && positive(params.quiet_steps);
        let send = match self.send {
            SendPolicy::EveryStep => true,
            SendPolicy::Window(steps) => steps > 0,
            SendPolicy::WhileRaised => self.watch.is_some(),
            SendPolicy::Memoised { permanent } => positive(permanent),
        };
        counts.all(LevelCounts::is_sound)
            && tails.all(Tail::is_sound)
            && self.epsilon.is_none_or(positive)
            && self.watch.as_ref().is_none_or(watches)
            && send
    }
}

impl LevelCounts {
    fn is_sound(&self) -> bool {
        let counts = self.counts();
        (1..=MOST_LEVELS).contains(&counts.len())
            && counts.iter().all(|c| c.is_finite() && *c >= 0.0)
    }
}

impl Tail {
    fn is_sound(&self) -> bool {
        let numbers = self.largest.iter().chain([&self.u, &self.omega]);
        self.largest.len() <= MOST_PEAKS
            && numbers.into_iter().all(|x| x.is_finite())
            && self.omega > 0.0
    }
}

/// No tail is told by more peaks.
const MOST_PEAKS: usize = 64;

#[cfg(test)]
impl Enrolment {
    /// What a client tells that sends a symbol at every step, at `epsilon` each.
    pub(crate) fn of_symbols(
        symbols: &[Option<super::symbol::Symbol>],
        grading: &Grading,
        epsilon: Option<f64>,
        rng: &mut crate::base::rng::Rng,
    ) -> Self {
        let hypotheses = Hypotheses::default();
        let response = RandomisedResponse::new(grading.levels(), epsilon);
        let counts = LevelCounts::of(grading.levels(), symbols.iter().flatten().copied());
        let ratios = Tables::new(grading, &hypotheses, &counts, &response).ratios(&hypotheses);
        let sent = symbols.iter().flatten().map(|s| response.rehearse(*s, rng));
        let peaks = super::cusum::excursion_peaks(sent.map(|s| ratios.root_cause(s)));
        let tail = Tail::fit(&peaks, counts.total() as usize);
        let (send, raised) = (SendPolicy::EveryStep, (0, 0));
        Self { counts, halves: None, tail, epsilon, send, watch: None, raised, remainder: None }
    }
}
