//! The synthetic plants of the studies, with known graph, states and root causes.
//!
//! Family A is the paper's LSTM plant; B is made of processes that no client's model resembles;
//! H is B made hard; S is B struck by sudden accidents. A stream is one run, only S is watched in short
//! runs: fit, calibration and nominal slices, then a slice with faults ([`slices`]). Measurements are in
//! raw units; readers scale them.
//!
//! With P = 2 states and D = 4 channels a client m of family A moves by
//!
//! ```text
//! x_m(t) = (1 − k) f_m(x_m(t−1)) + k (s_m(t) + δ_m(t)) + Σ_n g_nm(x_n(t−1)) + N(0, 0.1²),  k = 0.5
//! y_m(t) = h_m(x_m(t)) + noise of 0.1 of the channel's standard deviation
//! ```
//!
//! and one of B or H by its own process, 0.5 (H: 0.9) `tanh(W x_n(t − delay))` for every parent n
//! and N(0, 0.06²), within ±6.
//!
//! # Choices that the paper and our own notes leave open
//!
//! | question | choice |
//! |---|---|
//! | noise on the sinusoidal target | none; it could not be told from process noise |
//! | when amplitudes change | for all clients at the same steps, to independent values |
//! | windows that `f_m` is fitted on | 8 × 30 steps from a series of 4000, the first 5 steps of each muted |
//! | biases of an LSTM | one a gate, begun as the sum of the customary two |
//! | W of `g_dep` | has a bias, since scaling alone cannot bring a mean to zero; each output by itself |
//! | couplings | drawn per edge; delay 1 in family A |
//! | nominal data behind scales | a rehearsal with random sources of its own: 2000 steps (A), 20 000 (B, H) |
//! | start | 200 steps are run before the first one shown |
//! | first fault | half a spacing into the slice, so that each has quiet steps on both sides |
//! | course of ramp and oscillation | counted from 1: their first step already acts |
//! | channels of a sensor fault | every set of at least 1 (stuck-at: 2) channels equally likely |
//! | sensor bias | one size a fault, a sign for every channel |
//! | stuck-at | the first value is measured, noise included, then held |
//! | clients affected by a fault | descendants of the root; none when only sensors are faulty; all (S) |
//! | accidents (S) | one in each run of 100 steps, 8 to 30 steps after its start, 20 to 40 steps long; the root is pushed by 2.5 to 5, every other client by 0.2 to 0.6 of that, in a direction of its own, in the same step or the next |
//! | between runs (S) | the plant goes on for 100 steps that nobody sees |
//! | whole numbers | lengths, delays, periods and times between set points include both ends |
//!
//! Networks are compiled for wider registers too, where the machine has them; products and sums are
//! never fused nor reordered, so all machines give the same bits.

#![allow(
    clippy::inline_always,
    reason = "an inner loop must be compiled inside the function that enables the instruction set"
)]

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::Offset;

use super::{ClientColumns, Continuity, Event, Frame, Label, Layout, Sensor, Stream, StreamError};
use crate::session::TwinSource;
use crate::session::mark::civil;

mod activation;
mod client;
mod coupling;
mod fault;
mod fit;
mod graph;
mod lstm;
mod packed;
mod plant;
mod process;
mod sensing;
mod slices;
mod sources;
mod target;
#[cfg(test)]
mod tests;
mod transition;

pub(crate) use fault::Fault;
pub(crate) use fault::FaultKind;
#[cfg(test)]
pub(crate) use graph::Graph;
pub(crate) use plant::TwinPlant;
pub(crate) use slices::slices;

pub(crate) const CHANNELS: usize = 4;

/// A client's true state.
pub(crate) type State = [f64; 2];

/// What a client's sensors show at one step.
pub(crate) type Measurements = [f64; CHANNELS];

/// A synthetic plant as a stream, one step a second.
#[derive(Debug, Clone)]
pub(crate) struct TwinStream {
    plant: TwinPlant,
    layout: Layout,
    events: Vec<Event>,
    start: Timestamp,
    step: usize,
}

impl TwinStream {
    /// Draws the plant of `source` and `seed` and stands before its first frame.
    pub(crate) fn open(source: &TwinSource, seed: u64) -> Result<Self, StreamError> {
        let start = start(source)?;
        let plant = TwinPlant::new(source, seed)?;
        let layout = Layout {
            clients: (0..source.clients).map(|c| columns(c, plant.title(c))).collect(),
            period_s: 1.0,
        };
        let events = plant.faults().iter().enumerate();
        let events = events.map(|(place, fault)| event(place, fault, &plant, start)).collect();
        Ok(Self { plant, layout, events, start, step: 0 })
    }

    /// The plant behind the frames; its states are those of the frame read last.
    pub(crate) fn plant(&self) -> &TwinPlant {
        &self.plant
    }
}

impl Stream for TwinStream {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        if self.step == self.plant.slices().steps() {
            return Ok(false);
        }
        frame.time = at(self.start, self.plant.clock(self.step));
        let is_first = self.plant.begins_run(self.step);
        frame.continuity = if is_first { Continuity::NewRun } else { Continuity::Next };
        frame.values.resize(self.layout.width(), f64::NAN);
        frame.inputs.clear();
        frame.notes.clear();
        frame.label = match self.plant.step(&mut frame.values) {
            Some(fault) => Label::Anomalous { event: u32::try_from(fault).ok() },
            None => Label::Normal,
        };
        self.step += 1;
        Ok(true)
    }

    fn events(&self) -> &[Event] {
        &self.events
    }
}

/// The instant of the first frame; civil time is read as UTC, and the whole run fits the calendar.
fn start(source: &TwinSource) -> Result<Timestamp, StreamError> {
    let run = Duration::from_secs(2 * slices(source).steps() as u64);
    civil(&source.start)
        .and_then(|civil| Offset::UTC.to_timestamp(civil).ok())
        .filter(|start| start.checked_add(run).is_ok())
        .ok_or_else(|| {
            let found = &source.start;
            StreamError::Setting(format!(
                "start: expected a time such as \"2026-01-01 00:00:00\", found {found:?}"
            ))
        })
}

fn at(start: Timestamp, step: usize) -> Timestamp {
    start + Duration::from_secs(step as u64)
}

fn columns(client: usize, title: &str) -> ClientColumns {
    let name = name(client);
    let sensors = (1..=CHANNELS).map(|c| Sensor::new(format!("{name}_y{c}"), "")).collect();
    ClientColumns { sensors, name, title: title.into(), inputs: Vec::new() }
}

/// What client number `client` is called.
fn name(client: usize) -> String {
    format!("C{}", client + 1)
}

fn event(place: usize, fault: &Fault, plant: &TwinPlant, start: Timestamp) -> Event {
    let affected = if matches!(fault.kind, FaultKind::Accident { .. }) {
        (0..plant.graph().clients()).filter(|client| *client != fault.root).collect()
    } else if fault.kind.moves_the_state() {
        plant.graph().descendants(fault.root)
    } else {
        Vec::new()
    };
    Event {
        id: format!("F{:03}", place + 1),
        start: at(start, plant.clock(fault.start)),
        end: at(start, plant.clock(fault.steps().end - 1)),
        origins: vec![name(fault.root)],
        affected: affected.into_iter().map(name).collect(),
        sensors: Vec::new(),
        what: fault.kind.name().into(),
    }
}
