//! How many steps at the start of a run say nothing, measured on the starts of a calibration's own runs.
//!
//! A model that has just been started does not know where its process stands, so its first residuals are
//! large. How long that lasts depends on the model and on the data. A calibration of many runs shows it:
//! a run is judged from the first step on after which its starts look like the rest of the calibration.
//! The steps from there on belong to the calibration, so thresholds know of them. With few runs nothing
//! is known of starts, and [`SETTLING`] steps are not judged; nor of a client of nothing but switches.

use super::Site;
use super::grader::{Nominal, SETTLING};
use super::seen::{FEWEST_RUNS, MOST_VALUES as SWITCH_VALUES};
use super::whitening::{Recording, Whitening};
use crate::evidence::cusum::excursion_peaks;
use crate::evidence::likelihood::{Hypotheses, Ratios, Tables};
use crate::evidence::symbol::{Grading, LevelCounts, LevelCuts, RandomisedResponse, Symbol};
use crate::evidence::threshold::NominalDistances;

/// The first steps of a run are never judged: a model needs its own lags.
const SHORTEST: usize = 2;
/// So many times the elevated steps of the rest of the calibration, beyond chance, are too many.
const MOST: f64 = 1.5;
/// Standard deviations that count as chance.
const CHANCE: f64 = 2.0;
/// Steps that are looked at by themselves: a short transient must not hide among calm steps.
const WINDOW: usize = 4;

/// At most one run in so many may rise higher at its start than the rest of the calibration ever does: a
/// transient is in every run, and a record is broken by chance.
const ONE_IN: usize = 10;

impl Site {
    /// Steps at the start of a run that are not judged in evidence mode.
    pub(crate) fn not_judged_steps(&self) -> usize {
        self.prepared.fit.grader.settling()
    }
}

/// Steps at the start of a run that are not judged.
pub(super) fn of(whitening: &Whitening, calibration: &Recording) -> usize {
    let starts: Vec<bool> = calibration.iter().map(|(starts, _)| starts).collect();
    if starts.iter().filter(|starts| **starts).count() < FEWEST_RUNS {
        return SETTLING;
    }
    if (0..whitening.sensors()).all(|sensor| is_switch(calibration, sensor)) {
        return SETTLING;
    }
    let (all, settled) = (whitening.rows(calibration, 0), whitening.rows(calibration, SETTLING));
    let sensors = whitening.sensors();
    let mut nominal = Nominal::fit(sensors, &settled);
    let mut squared = |rows: &[f32]| -> Vec<f32> {
        rows.chunks_exact(sensors.max(1)).map(|row| nominal.squared(row)).collect()
    };
    let (all, settled) = (squared(&all), squared(&settled));
    let grading = Grading::five_levels();
    let cuts = LevelCuts::new(&grading, &NominalDistances::new(settled.iter().copied()));
    let symbols = |distances: &[f32]| -> Vec<Option<Symbol>> {
        distances.iter().map(|distance| cuts.symbol(*distance)).collect()
    };
    let (all, settled) = (symbols(&all), symbols(&settled));
    let counts = LevelCounts::of(grading.levels(), settled.iter().flatten().copied());
    let hypotheses = Hypotheses::default();
    let response = RandomisedResponse::new(grading.levels(), None);
    let ratios = Tables::new(&grading, &hypotheses, &counts, &response).ratios(&hypotheses);
    let Some(usual) = counts.share_from(grading.elevated()) else { return SETTLING };
    let settled: Vec<Symbol> = settled.iter().flatten().copied().collect();
    let record = peak(settled.iter().copied(), &ratios);
    let runs = runs(&starts, &all);
    let looks_settled = |after: usize| {
        let is_usual = |until: usize| {
            let seen = runs.iter().filter_map(|run| run.get(after..until.min(run.len())));
            let seen: Vec<Symbol> = seen.flatten().flatten().copied().collect();
            let elevated = seen.iter().filter(|s| s.level() >= grading.elevated()).count() as f64;
            let expected = usual * seen.len() as f64;
            elevated <= MOST * expected + CHANCE * expected.sqrt()
        };
        let is_high = |run: &&&[Option<Symbol>]| {
            let start = run.get(after..SETTLING.min(run.len())).unwrap_or(&[]);
            peak(start.iter().flatten().copied(), &ratios) > record
        };
        let high = runs.iter().filter(is_high).count();
        is_usual(after + WINDOW) && is_usual(SETTLING) && high * ONE_IN <= runs.len()
    };
    (SHORTEST..SETTLING).find(|after| looks_settled(*after)).unwrap_or(SETTLING)
}

/// Whether a sensor shows a few values only. A client of nothing but switches repeats its rows, and its
/// first steps are judged by few changes.
fn is_switch(calibration: &Recording, sensor: usize) -> bool {
    let mut values: Vec<u32> = Vec::new();
    calibration.iter().all(|(_, sample)| {
        let bits = sample.y[sensor].to_bits();
        if !values.contains(&bits) {
            values.push(bits);
        }
        values.len() <= SWITCH_VALUES
    })
}

/// The symbols of each run.
fn runs<'a>(starts: &[bool], symbols: &'a [Option<Symbol>]) -> Vec<&'a [Option<Symbol>]> {
    let places = starts.iter().enumerate().filter(|(_, starts)| **starts).map(|(place, _)| place);
    let ends = places.clone().skip(1).chain([symbols.len()]);
    places.zip(ends).map(|(from, until)| &symbols[from..until]).collect()
}

/// The highest evidence for a fault in some steps.
fn peak(symbols: impl Iterator<Item = Symbol>, ratios: &Ratios) -> f64 {
    let peaks = excursion_peaks(symbols.map(|symbol| ratios.root_cause(symbol)));
    peaks.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng;
    use crate::site::whitening::Sample;
    use rand_distr::{Distribution as _, StandardNormal};

    /// White residuals in runs of 80 steps; the first `transient` of each are ten times as large.
    fn recording(runs: usize, transient: usize, seed: u64) -> Recording {
        let mut rng = rng::stream(seed, 0);
        let mut recording = Recording::new(2, 1);
        for _ in 0..runs {
            recording.new_run();
            for t in 0..80 {
                let mut draw = || -> f32 { StandardNormal.sample(&mut rng) };
                let size = if t < transient { 10.0 } else { 1.0 };
                let r = [size * draw(), size * draw()];
                recording.push(Sample {
                    y: &r,
                    y_hat: &[0.0; 2],
                    r: &r,
                    x_hat: &[0.0],
                    inputs: &[],
                });
            }
        }
        recording
    }

    fn settling(runs: usize, transient: usize) -> usize {
        let whitening = Whitening::fit(&recording(40, transient, 1), SETTLING);
        of(&whitening, &recording(runs, transient, 2))
    }

    #[test]
    fn a_run_is_judged_once_its_transient_is_over() {
        assert_eq!(settling(30, 0), SHORTEST);
        let after = settling(30, 12);
        assert!((12..20).contains(&after), "{after}");
    }

    #[test]
    fn few_runs_tell_nothing_of_starts() {
        assert_eq!(settling(FEWEST_RUNS - 1, 0), SETTLING);
    }
}
