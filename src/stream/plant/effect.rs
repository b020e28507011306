//! What an attack does to each process, measured against the run without it.

use super::tags::{COUNT, PlantRow, Process, Tag};
use super::{Plant, Switches};

/// Seconds after the end of an attack in which its effects are still looked for.
const TAIL_S: u64 = 300;
/// Differences are judged by their mean over so many seconds.
const MEAN_S: usize = 5;
/// A process is affected when the mean is beyond one sigma for so many seconds.
const AFFECTED_S: u32 = 15;

/// The standard deviation of every tag in normal operation: the yardstick of all effects.
#[derive(Debug, Clone)]
pub(crate) struct NominalSigma([f64; COUNT]);

impl NominalSigma {
    /// Measured on a day of the plant without attacks. Always the day of seed 1, so that figures
    /// from different runs compare; computed anew rather than written down, because the switches
    /// change it, and because a table would silently outlive the equations it was measured on.
    pub(crate) fn measure(switches: Switches) -> Self {
        let mut plant = Plant::new(1, switches, &[]);
        let mut row = PlantRow::default();
        let mut moments = Moments::default();
        for _ in 0..86_400 {
            plant.step(&mut row);
            moments.add(&row);
        }
        Self(moments.sigma())
    }
}

/// Running mean and spread of every tag, by Welford's recurrence: plain sums of squares would lose
/// a small noise on a large value.
#[derive(Debug)]
pub(super) struct Moments {
    n: f64,
    pub(super) mean: [f64; COUNT],
    squares: [f64; COUNT],
}

impl Default for Moments {
    fn default() -> Self {
        Self { n: 0.0, mean: [0.0; COUNT], squares: [0.0; COUNT] }
    }
}

impl Moments {
    pub(super) fn add(&mut self, row: &PlantRow) {
        self.n += 1.0;
        for ((x, mean), squares) in row.0.iter().zip(&mut self.mean).zip(&mut self.squares) {
            let delta = x - *mean;
            *mean += delta / self.n;
            *squares += delta * (x - *mean);
        }
    }

    pub(super) fn sigma(&self) -> [f64; COUNT] {
        self.squares.map(|squares| (squares / self.n).sqrt())
    }
}

/// What was found in the physical sensors of one process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Effect {
    /// Seconds from the start of the attack until the mean difference first passed one sigma.
    pub(crate) onset_s: Option<u32>,
    /// Seconds that it stayed there.
    pub(crate) over_s: u32,
    /// The largest mean difference, in sigmas.
    pub(crate) peak_sigma: f64,
    /// The sensor it was found in.
    pub(crate) peak_tag: Tag,
    /// Not one recorded value differs, in any bit.
    pub(crate) untouched: bool,
}

impl Effect {
    /// Whether the process counts as affected.
    pub(crate) fn is_felt(&self) -> bool {
        self.over_s >= AFFECTED_S
    }
}

/// An attack under observation: the attacked plant's rows against those of its twin that goes on
/// unharmed, with the same noise.
#[derive(Debug, Clone)]
pub(crate) struct Comparison<'a> {
    twin: Plant,
    sigma: &'a NominalSigma,
    start: u64,
    until: u64,
    /// The last differences, a place per second modulo [`MEAN_S`].
    recent: [PlantRow; MEAN_S],
    effects: [Effect; 3],
}

impl<'a> Comparison<'a> {
    /// Begins before the first step of the attack at `index` of `plant`'s schedule, which lasts
    /// `duration_s`.
    pub(crate) fn begin(
        plant: &Plant,
        index: usize,
        duration_s: u32,
        sigma: &'a NominalSigma,
    ) -> Self {
        let mut twin = plant.clone();
        twin.forgo(index);
        let start = plant.next_step();
        Self {
            twin,
            sigma,
            start,
            until: start + u64::from(duration_s) + TAIL_S,
            recent: [PlantRow::default(); MEAN_S],
            effects: Process::ALL.map(|process| Effect {
                onset_s: None,
                over_s: 0,
                peak_sigma: 0.0,
                peak_tag: process.kept()[0],
                untouched: true,
            }),
        }
    }

    /// Takes the attacked plant's next row; `false` once the tail is over and nothing is taken.
    pub(crate) fn observe(&mut self, attacked: &PlantRow) -> bool {
        let step = self.twin.next_step();
        if step >= self.until {
            return false;
        }
        let mut unharmed = PlantRow::default();
        self.twin.step(&mut unharmed);
        let elapsed = step - self.start;
        let slot = (elapsed % MEAN_S as u64) as usize;
        for (process, effect) in Process::ALL.into_iter().zip(&mut self.effects) {
            let mut beyond = false;
            for &tag in process.kept() {
                let difference = attacked[tag] - unharmed[tag];
                effect.untouched &= attacked[tag].to_bits() == unharmed[tag].to_bits();
                self.recent[slot][tag] = difference;
                let sum: f64 = self.recent.iter().map(|row| row[tag]).sum();
                let sigmas = (sum / MEAN_S as f64).abs() / self.sigma.0[tag as usize];
                if sigmas > effect.peak_sigma {
                    effect.peak_sigma = sigmas;
                    effect.peak_tag = tag;
                }
                beyond |= sigmas > 1.0;
            }
            if beyond {
                effect.over_s += 1;
                effect.onset_s.get_or_insert(elapsed as u32);
            }
        }
        true
    }

    /// Seconds observed so far.
    pub(crate) fn observed_s(&self) -> u64 {
        self.twin.next_step() - self.start
    }

    /// What was found so far, for each of [`Process::ALL`].
    pub(crate) fn effects(&self) -> &[Effect; 3] {
        &self.effects
    }
}
