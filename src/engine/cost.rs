//! Time and memory that preparing a session takes, estimated before anything is allocated.
//!
//! The model adds up the work of each part of a preparation and multiplies it by constants that were
//! measured on one machine. It takes no sample of the present machine: a short one differs by a factor
//! of three and more under load, and whether a session is refused must not depend on that.
//!
//! | part | seconds on the machine that was measured |
//! |---|---|
//! | drawing the synthetic plant | 1.0 a client of family A, 0.05 of B and H |
//! | reading and simulating | 2 µs a row |
//! | a step of a filter in training | 1 µs + 1.5 ns (LSTM and MLP) + 0.9 ns (P³ + D³ + P D (P + D)) |
//! | a round of the federation | a client 1 µs + 1.5 ns (LSTM of φ), the server 0.4 ns (LSTM of f_s) |
//! | a step of batched rounds | the same four times |
//! | calibration | two steps of a filter a row |
//!
//! The number of products of an LSTM is 4 w (i + w) + w o for i inputs, width w and o outputs. A
//! training makes as many steps as there are windows, times their length, times `epochs`.
//!
//! How good it is: for sessions that fix their decimation, with up to 13 sensors a client, it is within
//! a factor of three of what was measured (the test below lists them). `decimate: Auto` is taken as no
//! decimation at all, which was 6 to 7 times too high for one session. More sensors than 13 were not
//! measured. That is enough to tell a minute from a week, and not more.

use std::{fmt, fs};

use thiserror::Error;

use super::vendor;
use crate::session::settings::Federation;
use crate::session::{Decimation, Family, ModelSettings, Proprietary, Session, Source};
use crate::stream::StreamError;
use crate::stream::extent::{Extent, extent};

/// Hours of processor time that a preparation may take when the session says nothing.
const USUAL_H: f64 = 12.0;
/// Bytes of memory that are assumed where the system does not report what is free.
const USUAL_BYTES: f64 = 16e9;

/// Estimated time and memory of preparing a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Estimate {
    /// Most memory that is held at once.
    pub(crate) bytes: f64,
    /// Processor time on the machine that was measured.
    pub(crate) seconds: f64,
}

/// More than a preparation may take.
#[derive(Debug, Error)]
#[error(
    "preparing this session needs about {estimate}, and the limit is {limit}; make it smaller \
     (model.states, widths, epochs, clients), or allow it with `limits: ({key}: …)` in the session"
)]
pub(crate) struct TooMuch {
    estimate: Estimate,
    limit: String,
    key: &'static str,
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of memory and {} of processor time", memory(self.bytes), time(self.seconds))
    }
}

fn memory(bytes: f64) -> String {
    if bytes < 1e9 {
        format!("{:.0} MB", (bytes / 1e7).ceil() * 10.0)
    } else if bytes < 1e13 {
        format!("{:.1} GB", bytes / 1e9)
    } else {
        format!("{:.0} TB", bytes / 1e12)
    }
}

fn time(seconds: f64) -> String {
    let units = [("years", 31_557_600.0), ("days", 86_400.0), ("h", 3600.0), ("min", 60.0)];
    let unit = units.into_iter().find(|(_, length)| seconds >= 2.0 * length);
    match unit {
        Some((name, length)) => format!("{:.0} {name}", seconds / length),
        None => format!("{:.0} s", seconds.ceil()),
    }
}

/// What preparing `session` takes. The same session and data give the same estimate everywhere.
pub(crate) fn estimate(session: &Session) -> Result<Estimate, StreamError> {
    let extent = extent(session)?;
    let work = Work::of(session, &extent);
    Ok(Estimate { bytes: work.bytes(), seconds: work.seconds() })
}

/// Refuses a session whose preparation takes more than it may.
pub(crate) fn allow(session: &Session, estimate: Estimate) -> Result<(), TooMuch> {
    let limits = session.limits;
    let spare = limits.memory_gb.map_or_else(|| free_bytes().unwrap_or(USUAL_BYTES), |gb| gb * 1e9);
    let hours = limits.preparation_h.unwrap_or(USUAL_H);
    let too_much = |limit: String, key| Err(TooMuch { estimate, limit, key });
    // What is no number is no estimate, and nothing is allowed by it.
    match (estimate.bytes <= spare, estimate.seconds <= hours * 3600.0) {
        (true, true) => Ok(()),
        (false, _) => too_much(memory(spare), "memory_gb"),
        (true, false) => too_much(time(hours * 3600.0), "preparation_h"),
    }
}

/// Free memory, where the system gives it.
fn free_bytes() -> Option<f64> {
    let told = fs::read_to_string("/proc/meminfo").ok()?;
    let line = told.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024.0)
}

/// Products of an LSTM with a layer on its output.
fn lstm(inputs: f64, width: f64, outputs: f64) -> f64 {
    4.0 * width * (inputs + width) + width * outputs
}

/// A filter of one client in training.
#[derive(Debug, Clone, Copy)]
struct Filter {
    sensors: f64,
    states: f64,
}

impl Filter {
    fn products(self, model: &ModelSettings) -> f64 {
        let (p, d) = (self.states, self.sensors);
        lstm(p, model.transition_width as f64, p) + model.measurement_width as f64 * (p + d)
    }

    /// Seconds of a step in training.
    fn step_s(self, model: &ModelSettings) -> f64 {
        let (p, d) = (self.states, self.sensors);
        let algebra = p.powi(3) + d.powi(3) + p * d * (p + d);
        1e-6 + 1.5e-9 * self.products(model) + 0.9e-9 * algebra
    }

    /// Numbers that a step in training keeps for the way back.
    fn kept(self, model: &ModelSettings) -> f64 {
        let (p, d) = (self.states, self.sensors);
        let width = model.transition_width as f64;
        4.0 * p * p
            + p * d
            + d * d
            + 8.0 * width
            + 4.0 * width * p
            + 2.0 * model.measurement_width as f64
    }
}

/// The work of a preparation.
struct Work<'a> {
    model: &'a ModelSettings,
    sensors: &'a [usize],
    /// Passes of training; none where the models are delivered.
    epochs: f64,
    /// Seconds to draw a synthetic plant.
    draw_s: f64,
    /// Rows as they stand in the data, over all times they are read.
    read_rows: f64,
    fit_rows: f64,
    calibration_rows: f64,
}

impl<'a> Work<'a> {
    fn of(session: &'a Session, extent: &'a Extent) -> Self {
        let (every, looks) = match session.sampling.decimate {
            Decimation::Every(every) => (f64::from(every), 3.0),
            // Every candidate is tried on all of the data; at worst the first one is taken.
            Decimation::Auto => (1.0, 10.0),
        };
        let draw_s = match &session.source {
            Source::Twin(twin) => {
                let one = if twin.family == Family::A { 1.0 } else { 0.05 };
                one * twin.clients as f64 * looks / 3.0
            }
            Source::Plant(_) | Source::Table(_) | Source::Hai(_) | Source::Live(_) => 0.0,
        };
        let delivered = match session.sampling.decimate {
            Decimation::Every(every) => vendor::delivered(session, every).is_some(),
            Decimation::Auto => false,
        };
        Self {
            model: &session.model,
            epochs: if delivered { 0.0 } else { session.model.epochs as f64 },
            sensors: &extent.sensors,
            draw_s,
            read_rows: looks * (extent.fit_rows + extent.calibration_rows),
            fit_rows: extent.fit_rows / every,
            calibration_rows: extent.calibration_rows / every,
        }
    }

    fn clients(&self) -> f64 {
        self.sensors.len() as f64
    }

    /// All filters that are trained: the one that watches, and the one whose states may be sent.
    fn filters(&self) -> impl Iterator<Item = Filter> + '_ {
        let model = self.model;
        self.sensors.iter().flat_map(move |sensors| {
            let sensors = *sensors as f64;
            let paper = Filter { sensors, states: model.states as f64 };
            let watching = match model.proprietary {
                Proprietary::Residual => Some(Filter { sensors, states: sensors }),
                Proprietary::Paper | Proprietary::OwnLag | Proprietary::Linear => None,
            };
            watching.into_iter().chain([paper])
        })
    }

    fn seconds(&self) -> f64 {
        let model = self.model;
        let steps = self.fit_rows * model.window as f64 * self.epochs;
        let training: f64 = self.filters().map(|filter| steps * filter.step_s(model)).sum();
        let judged = 2.0 * (self.fit_rows + self.calibration_rows);
        let calibration: f64 = self.filters().map(|filter| judged * filter.step_s(model)).sum();
        let rounds = match model.federation {
            Federation::Online { passes } => self.fit_rows * passes as f64,
            // Gradients through time: four times the work of a round.
            Federation::Batched { rounds } => 4.0 * (rounds * model.batch * model.window) as f64,
        };
        self.draw_s + 2e-6 * self.read_rows + training + calibration + rounds * self.round_s()
    }

    fn round_s(&self) -> f64 {
        let (states, width) = (self.model.states as f64, self.model.augment_width as f64);
        let phi = |sensors: &usize| 1e-6 + 1.5e-9 * lstm(*sensors as f64, width, states);
        self.sensors.iter().map(phi).sum::<f64>() + 0.4e-9 * self.server()
    }

    /// Products of f_s.
    fn server(&self) -> f64 {
        let all = self.clients() * self.model.states as f64;
        lstm(all, self.model.server_width as f64, all)
    }

    fn bytes(&self) -> f64 {
        let model = self.model;
        let rows = self.fit_rows + self.calibration_rows;
        let material: f64 =
            self.sensors.iter().map(|sensors| rows * (200.0 + 30.0 * *sensors as f64)).sum();
        // Weights, their gradients and what Adam remembers, in several copies.
        let phi =
            |sensors: usize| lstm(sensors as f64, model.augment_width as f64, model.states as f64);
        let filters: f64 = self.filters().map(|filter| filter.products(model)).sum();
        let phis: f64 = self.sensors.iter().map(|sensors| phi(*sensors)).sum();
        let weights = 32.0 * (filters + phis + self.server());
        let window = (model.window * model.batch) as f64;
        let largest = self.filters().map(|filter| filter.kept(model)).fold(0.0, f64::max);
        let tape = 4.0 * window * largest;
        let batched = match model.federation {
            Federation::Online { .. } => 0.0,
            Federation::Batched { .. } => {
                let width = model.server_width as f64 + self.clients() * model.augment_width as f64;
                4.0 * window * 16.0 * width
            }
        };
        15e6 + material + weights + tape + batched
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::session::SHIPPED;

    fn session(text: &str) -> Session {
        Session::parse("test", Path::new(""), text).expect("a sound session")
    }

    fn of(text: &str) -> Estimate {
        estimate(&session(text)).expect("a built-in source")
    }

    #[test]
    fn the_estimate_of_a_fixed_decimation_is_within_a_factor_of_three_of_what_was_measured() {
        let twin = |clients: usize, model: &str| {
            of(&format!(
                "Session(about: \"x\", source: Twin(clients: {clients}), sampling: (decimate: \
                 Every(1)), model: (proprietary: Paper, {model}))"
            ))
        };
        let plant = |hours: usize, every: u32, model: &str| {
            of(&format!(
                "Session(about: \"x\", source: Plant(history_h: {hours}, hours: 1), sampling: \
                 (decimate: Every({every})), model: ({model}))"
            ))
        };
        let short = |more: &str| format!("epochs: 1, federation: Online(passes: 1), {more}");
        // Seconds of processor time and MB of memory of `headwater train`, release build, November 2026.
        for (estimate, seconds, mb) in [
            (twin(2, ""), 7.0, 15.9),
            (twin(8, ""), 28.8, 34.6),
            (twin(2, &short("")), 2.1, 15.1),
            (twin(16, &short("")), 21.5, 68.6),
            (twin(64, &short("")), 77.6, 104.2),
            (twin(2, &short("states: 16")), 2.9, 23.8),
            (twin(2, &short("states: 32")), 6.8, 31.5),
            (twin(2, &short("transition_width: 64")), 5.2, 19.9),
            (twin(2, &short("batch: 512")), 1.8, 15.2),
            (twin(2, "epochs: 1, federation: Batched(rounds: 100)"), 8.3, 40.3),
            (twin(2, "epochs: 1, federation: Batched(rounds: 400)"), 30.7, 39.4),
            (plant(6, 5, ""), 0.3, 15.9),
            (plant(24, 1, &short("")), 11.4, 94.8),
        ] {
            let within = |estimate: f64, measured: f64| {
                let share = estimate / measured;
                (1.0 / 3.0..=3.0).contains(&share)
            };
            assert!(within(estimate.seconds, seconds), "{estimate:?} for {seconds} s");
            assert!(within(estimate.bytes, mb * 1e6), "{estimate:?} for {mb} MB");
        }
    }

    #[test]
    fn what_nobody_would_wait_for_is_refused_with_its_estimate_and_the_way_to_allow_it() {
        for (text, key) in [
            ("source: Twin(clients: 1024), model: (epochs: 10000)", "preparation_h"),
            ("source: Twin(), model: (states: 256, epochs: 1000)", "preparation_h"),
            ("source: Plant(history_h: 8784), model: (epochs: 100)", "preparation_h"),
            ("source: Twin(clients: 1024), model: (states: 256, server_width: 4096)", "memory_gb"),
        ] {
            // A machine with plenty of memory or patience is asked for, so that one limit decides.
            let limit = if key == "memory_gb" { "memory_gb: 8" } else { "memory_gb: 1e6" };
            let text = format!("Session(about: \"x\", {text}, limits: ({limit}))");
            let why = allow(&session(&text), of(&text)).expect_err("too much").to_string();
            assert!(why.contains(&format!("`limits: ({key}: …)`")), "{text}: {why}");
            assert!(why.contains("needs about"), "{why}");
        }
        let text =
            "Session(about: \"x\", source: Twin(clients: 8), limits: (preparation_h: 0.001))";
        assert!(allow(&session(text), of(text)).is_err(), "a limit of one's own");
        assert!(allow(&session(text), Estimate { bytes: f64::NAN, seconds: 1.0 }).is_err());
    }

    #[test]
    fn every_shipped_session_without_files_is_allowed() {
        for shipped in SHIPPED {
            let session = Session::open(shipped.name).expect("a shipped session");
            if session.is_built_in() {
                let estimate = of(shipped.text);
                assert!(allow(&session, estimate).is_ok(), "{}: {estimate}", shipped.name);
            }
        }
    }
}
