//! The control room: set points changed at random times, as the HAI manual has it.
//!
//! Three hidden Markov models, each for some of the eight set points. A model waits, lets its state
//! put one set point to a new place in its range, moves on to its next state, and waits again.

use rand::RngExt as _;

use super::dynamics::Slew;
use super::noise::Source;
use super::tags::{PlantRow, Tag};
use crate::base::rng::{self, Rng};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetPoint {
    /// Return tank level, mm.
    Level,
    /// Return tank outflow, l/h.
    Outflow,
    /// Steam pressure, bar.
    Pressure,
    /// Steam temperature, °C.
    Temperature,
    /// Main tank temperature, °C.
    Cooler,
    /// Turbine speed, rpm.
    Speed,
    /// Scheduled hydro power, MW.
    HydroPower,
    /// Scheduled steam power, MW.
    SteamPower,
}

struct Range {
    tag: Tag,
    start: f64,
    rate_per_s: f64,
    low: f64,
    high: f64,
}

const fn range(tag: Tag, start: f64, rate_per_s: f64, low: f64, high: f64) -> Range {
    Range { tag, start, rate_per_s, low, high }
}

/// In the order of [`SetPoint`].
const RANGES: [Range; 8] = [
    range(Tag::P1_B3004, 352.0, 0.1, 302.0, 398.0),
    range(Tag::P1_B3005, 993.0, 0.5, 950.0, 1050.0),
    range(Tag::P1_B2004, 0.149, 0.0005, 0.05, 0.20),
    range(Tag::P1_B4002, 27.15, 0.02, 25.2, 28.0),
    range(Tag::P1_PP04SP, 27.9, 0.02, 27.1, 28.0),
    range(Tag::P2_AutoSD, 119.0, 0.5, 106.0, 128.0),
    range(Tag::P4_HT_PS, 4.0, 0.1, 0.0, 7.8),
    range(Tag::P4_ST_PS, 14.0, 0.2, 1.0, 29.0),
];

/// A state sets one of these set points, each as likely as the others, and is followed by one of
/// those states.
struct State {
    sets: &'static [SetPoint],
    next: &'static [(usize, f64)],
}

struct Model {
    first: &'static [(usize, f64)],
    states: &'static [State],
}

const MODELS: [Model; 3] = [
    // Boiler flows: level, outflow, pressure.
    Model {
        first: &[(0, 1.0)],
        states: &[
            State { sets: &[SetPoint::Level], next: &[(1, 0.9), (2, 0.1)] },
            State { sets: &[SetPoint::Outflow], next: &[(2, 0.9), (0, 0.1)] },
            State { sets: &[SetPoint::Pressure], next: &[(0, 1.0)] },
        ],
    },
    // Boiler temperatures and turbine: temperature or cooler, speed, manual speed. The turbine has
    // no manual mode here, so the last state sets nothing.
    Model {
        first: &[(1, 0.7), (0, 0.3)],
        states: &[
            State { sets: &[SetPoint::Temperature, SetPoint::Cooler], next: &[(0, 0.3), (1, 0.7)] },
            State { sets: &[SetPoint::Speed], next: &[(1, 0.5), (0, 0.4), (2, 0.1)] },
            State { sets: &[], next: &[(1, 1.0)] },
        ],
    },
    // Grid schedule: hydro, steam.
    Model {
        first: &[(0, 0.8), (1, 0.2)],
        states: &[
            State { sets: &[SetPoint::HydroPower], next: &[(0, 0.5), (1, 0.5)] },
            State { sets: &[SetPoint::SteamPower], next: &[(0, 1.0)] },
        ],
    },
];

#[derive(Debug, Clone)]
struct Chain {
    rng: Rng,
    state: usize,
    wait_s: f64,
}

impl Chain {
    fn new(mut rng: Rng, model: &Model) -> Self {
        let state = draw(&mut rng, model.first);
        let wait_s = 150.0 + uniform(&mut rng, 0.0, 600.0);
        Self { rng, state, wait_s }
    }

    /// The set point that is changed in this second, and its new target.
    fn step(&mut self, model: &Model) -> Option<(SetPoint, f64)> {
        self.wait_s -= 1.0;
        if self.wait_s > 0.0 {
            return None;
        }
        let State { sets, next } = &model.states[self.state];
        let change = (!sets.is_empty()).then(|| {
            let set_point = sets[self.rng.random_range(0..sets.len())];
            let Range { low, high, .. } = RANGES[set_point as usize];
            (set_point, uniform(&mut self.rng, low, high))
        });
        self.state = draw(&mut self.rng, next);
        self.wait_s += uniform(&mut self.rng, 150.0, 600.0);
        change
    }
}

fn uniform(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low + (high - low) * rng.random::<f64>()
}

/// One of `choices` with the probability that stands beside it.
fn draw(rng: &mut Rng, choices: &[(usize, f64)]) -> usize {
    let mut left: f64 = rng.random();
    for &(choice, probability) in choices {
        left -= probability;
        if left < 0.0 {
            return choice;
        }
    }
    // Rounding may leave a hair of probability over.
    choices[choices.len() - 1].0
}

/// The operators and the set points as they stand.
#[derive(Debug, Clone)]
pub(super) struct Operator {
    chains: [Chain; 3],
    targets: [f64; 8],
    set_points: [Slew; 8],
}

impl Operator {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            chains: std::array::from_fn(|i| {
                Chain::new(rng::stream(seed, (Source::COUNT + i) as u64), &MODELS[i])
            }),
            targets: RANGES.map(|r| r.start),
            set_points: RANGES.map(|r| Slew::new(r.start, r.rate_per_s)),
        }
    }

    pub(super) fn step(&mut self) {
        for (chain, model) in self.chains.iter_mut().zip(&MODELS) {
            if let Some((set_point, target)) = chain.step(model) {
                self.targets[set_point as usize] = target;
            }
        }
        for (set_point, target) in self.set_points.iter_mut().zip(self.targets) {
            set_point.toward(target);
        }
    }

    pub(super) fn get(&self, set_point: SetPoint) -> f64 {
        self.set_points[set_point as usize].value
    }

    pub(super) fn record(&self, row: &mut PlantRow) {
        for (range, set_point) in RANGES.iter().zip(&self.set_points) {
            row[range.tag] = set_point.value;
        }
    }
}
