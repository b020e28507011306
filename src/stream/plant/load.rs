//! The grid's load, and the steam gate that follows it.

use std::f64::consts::TAU;

use super::FULL_SCALE;
use super::Switches;
use super::dynamics::{Lag, Wander};
use super::noise::{Noise, Source};
use super::operator::{Operator, SetPoint};
use super::tags::{PlantRow, Tag};

/// A swing of the load: a sine whose pace wanders, so that it never repeats itself.
#[derive(Debug, Clone)]
struct Swing {
    amplitude_mw: f64,
    period_s: f64,
    phase: f64,
}

impl Swing {
    /// The phase turns by `turn` radians with each seed, so that their days start differently.
    fn new(amplitude_mw: f64, period_s: f64, turn: f64, seed: u64) -> Self {
        Self { amplitude_mw, period_s, phase: (turn * seed as f64) % TAU }
    }

    fn step(&mut self, pace: f64) -> f64 {
        self.phase += TAU / self.period_s * pace;
        self.amplitude_mw * self.phase.sin()
    }
}

#[derive(Debug, Clone)]
pub(super) struct Load {
    switches: Switches,
    pace_fast: Wander,
    pace_slow: Wander,
    fast: Swing,
    slow: Swing,
    tide: Swing,
    wander: Wander,
    gate: Lag,
    gate_filtered: Lag,
    /// Load demand, MW.
    pub(super) demand_mw: f64,
    /// The part of it that is asked of the steam turbine, MW.
    pub(super) steam_mw: f64,
    /// The part that is asked of the hydro turbine when the load drives both, MW.
    pub(super) hydro_mw: f64,
    gate_recorded: f64,
}

impl Load {
    pub(super) fn new(seed: u64, switches: Switches) -> Self {
        Self {
            switches,
            pace_fast: Wander::new(1.0, 120.0),
            pace_slow: Wander::new(1.0, 120.0),
            fast: Swing::new(74.0, 240.0, 0.3, seed),
            slow: Swing::new(42.0, 790.0, 1.7, seed),
            tide: Swing::new(22.0, 2700.0, 0.9, seed),
            wander: Wander::new(6.0, 20.0),
            gate: Lag::limited(0.655, 3.0, 0.02),
            gate_filtered: Lag::new(0.655, 3.0),
            demand_mw: 0.0,
            steam_mw: 0.0,
            hydro_mw: 0.0,
            gate_recorded: 0.0,
        }
    }

    /// One second; gives the filtered gate opening that the boiler's demands follow.
    pub(super) fn step(
        &mut self,
        operator: &Operator,
        frequency_deviation: f64,
        noise: &mut Noise,
    ) -> f64 {
        let fast = 1.0 + 0.18 * self.pace_fast.step(noise.normal(Source::LoadPaceFast));
        let slow = 1.0 + 0.18 * self.pace_slow.step(noise.normal(Source::LoadPaceSlow));
        let swings = self.fast.step(fast) + self.slow.step(slow) + self.tide.step(1.0);
        let wander = self.wander.step(noise.normal(Source::LoadWander));
        let ripple = 0.8 * noise.normal(Source::LoadRipple);
        self.demand_mw = (349.0 + operator.get(SetPoint::SteamPower) + swings + wander + ripple)
            .clamp(225.0, 500.0);

        self.hydro_mw = (0.5 * (self.demand_mw - 303.0) + operator.get(SetPoint::HydroPower) - 4.0)
            .clamp(0.0, 90.0);
        self.steam_mw = if self.switches.confounded {
            self.demand_mw - self.hydro_mw
        } else {
            330.0 + 0.60 * (self.demand_mw - 363.0)
        };

        let wanted = (self.steam_mw / 506.7 - self.switches.grid_feedback * frequency_deviation)
            .clamp(0.30, 0.98);
        let gate = self.gate.toward(wanted);
        self.gate_recorded = (FULL_SCALE * gate + 8.0 * noise.normal(Source::GatePosition)).round();
        self.gate_filtered.toward(gate)
    }

    pub(super) fn record(&self, row: &mut PlantRow) {
        row[Tag::P4_LD] = self.demand_mw;
        row[Tag::P4_ST_LD] = self.steam_mw;
        row[Tag::P4_ST_GOV] = self.gate_recorded;
    }
}
