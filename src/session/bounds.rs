//! The range of every number of a session: one table of key, range and unit.
//!
//! A number outside its range is refused before anything is made of it. The ranges are wider than any
//! sensible setting. They keep sizes from overflowing and keep arithmetic away from infinity. What is
//! inside them and still asks for too much is found by the estimate of `engine::cost`.

use std::fmt;

/// The range of one number of a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bound {
    /// Its key, such as `model.states`.
    pub(crate) key: &'static str,
    /// The choice it belongs to where a key has several, such as `Percentile`.
    pub(crate) choice: &'static str,
    pub(crate) least: f64,
    pub(crate) most: f64,
    /// Whether the least and the most are themselves refused.
    pub(crate) open: [bool; 2],
    /// What is counted, in plural.
    pub(crate) unit: &'static str,
}

const fn from(least: f64, most: f64, key: &'static str, unit: &'static str) -> Bound {
    Bound { key, choice: "", least, most, open: [false; 2], unit }
}

impl Bound {
    const fn of(self, choice: &'static str) -> Self {
        Self { choice, ..self }
    }

    const fn open(self, least: bool, most: bool) -> Self {
        Self { open: [least, most], ..self }
    }

    /// Whether `value` is inside. What is no number never is.
    pub(crate) fn holds(&self, value: f64) -> bool {
        let [open_below, open_above] = self.open;
        let above = if open_below { value > self.least } else { value >= self.least };
        let below = if open_above { value < self.most } else { value <= self.most };
        above && below
    }
}

/// As a sentence continues after "expected".
impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = (plain(self.least), plain(self.most));
        match self.open {
            [false, false] => write!(f, "{least} to {most}")?,
            [true, false] => write!(f, "more than {least} and at most {most}")?,
            [false, true] => write!(f, "at least {least} and less than {most}")?,
            [true, true] => write!(f, "more than {least} and less than {most}")?,
        }
        if self.unit.is_empty() { Ok(()) } else { write!(f, " {}", self.unit) }
    }
}

/// A number as a person writes it: without a row of zeros.
pub(super) fn plain(number: f64) -> String {
    let size = number.abs();
    if number != 0.0 && !(1e-4..1e10).contains(&size) {
        format!("{number:e}")
    } else {
        number.to_string()
    }
}

/// Hours of 366 days.
const YEAR_H: f64 = 8784.0;
/// Seconds of a hundred years. Sums of a longer time and an instant would leave the calendar.
pub(crate) const CENTURY_S: f64 = 36_525.0 * 86_400.0;
/// Steps of three hundred years at one a second.
pub(crate) const MOST_STEPS: u64 = 10_000_000_000;

/// Hours that a civil clock on Earth can be ahead of UTC.
pub(crate) const HOURS_AHEAD: Bound =
    from(-12.0, 14.0, "source.time.utc_offset_h", "hours ahead of UTC");

/// Every number of a session, in the order of its keys. Its seed may be any whole number of 64 bits.
pub(crate) const BOUNDS: &[Bound] = &[
    from(0.0, YEAR_H, "source.history_h", "hours"),
    from(0.0, YEAR_H, "source.hours", "hours").open(true, false),
    from(-1000.0, 1000.0, "source.grid_feedback", ""),
    from(2.0, 1024.0, "source.clients", "clients"),
    from(-1e6, 1e6, "source.delta", ""),
    HOURS_AHEAD,
    from(1e-3, 86_400.0, "source.grid_s", "seconds"),
    from(0.0, 3600.0, "source.lateness_s", "seconds"),
    from(0.0, 604_800.0, "source.hold_s", "seconds"),
    from(50.0, 60_000.0, "source.input.publishing_ms", "milliseconds"),
    from(-1e15, 1e15, "labels.unlabelled", ""),
    from(1e-3, CENTURY_S, "sampling.period_s", "seconds"),
    from(1.0, 3600.0, "sampling.decimate", "samples").of("Every"),
    from(1.0, 256.0, "model.states", "states"),
    from(1.0, 1024.0, "model.transition_width", "units"),
    from(1.0, 4096.0, "model.measurement_width", "units"),
    from(1.0, 1024.0, "model.augment_width", "units"),
    from(1.0, 4096.0, "model.server_width", "units"),
    from(1.0, 4096.0, "model.oracle_width", "units"),
    from(1e-9, 1e9, "model.q", ""),
    from(1e-9, 1e9, "model.r", ""),
    from(5.0, 10_000.0, "model.window", "steps (the first 4 are not judged)"),
    from(1.0, 10_000.0, "model.batch", "windows"),
    from(1.0, 10_000.0, "model.epochs", "passes"),
    from(0.0, 10.0, "model.learning_rate", "").open(true, false),
    from(1.0, 10_000.0, "model.federation.passes", "passes"),
    from(1.0, 10_000_000.0, "model.federation.rounds", "batches"),
    from(0.0, 1e6, "model.eta1", ""),
    from(0.0, 1e6, "model.eta2", ""),
    from(0.0, 10.0, "model.eta3", "").open(true, false),
    from(0.0, 10.0, "model.augment_scale", "").open(true, false),
    from(0.0, 100.0, "thresholds.tau_c", "percent").of("Percentile").open(true, true),
    from(0.0, 1e9, "thresholds.tau_c", "").of("Value").open(true, false),
    from(0.0, 100.0, "thresholds.tau_a", "percent").of("Percentile").open(true, true),
    from(0.0, 1e9, "thresholds.tau_a", "").of("Value").open(true, false),
    from(1.0, 1000.0, "thresholds.vote.k", "steps"),
    from(1.0, 1000.0, "thresholds.vote.n", "steps"),
    from(0.5, 1.0, "thresholds.deadband", "of τ"),
    from(0.0, CENTURY_S, "thresholds.arl0", "seconds").open(true, false),
    from(1e-6, 1e6, "privacy.epsilon_c", ""),
    from(1e-6, 1e6, "privacy.epsilon_a", ""),
    from(1e-6, 1e6, "privacy.epsilon_g", ""),
    from(1e-6, 1e6, "privacy.epsilon_flag", ""),
    from(1e-6, 1e6, "privacy.epsilon_flag_a", ""),
    from(1e-30, 1.0, "privacy.delta", "").open(false, true),
    from(1e-6, 1e6, "privacy.clip_state", "standard deviations"),
    from(1e-6, 1e6, "privacy.clip_gradient", ""),
    from(0.0, 1.0, "privacy.contraction", "").open(false, true),
    from(1.0, 100_000.0, "privacy.send", "steps").of("Window"),
    from(1e-6, 1e6, "privacy.send.permanent", ""),
    from(1e-3, 1e6, "privacy.watch.epsilon", ""),
    from(1.0, 100_000.0, "privacy.watch.burst", "symbols"),
    from(1e-6, 1e9, "privacy.budget.epsilon", ""),
    from(1e-6, 1e9, "privacy.budget.at_zero.reserve", "").open(false, true),
    from(1e-3, 1e9, "replay.speed", "seconds of data a second"),
    from(0.0, CENTURY_S, "replay.tail", "seconds"),
    from(1.0, 1e6, "record.most_mb", "MB"),
    from(1.0, 1e6, "limits.memory_gb", "GB"),
    from(1e-3, YEAR_H, "limits.preparation_h", "hours"),
];

/// The range of the number under `key`, where its choice is `choice`.
pub(crate) fn bound(key: &str, choice: &str) -> Option<&'static Bound> {
    BOUNDS.iter().find(|bound| bound.key == key && bound.choice == choice)
}

#[cfg(test)]
mod tests;
