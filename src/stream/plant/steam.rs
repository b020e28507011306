//! The grid's model of the steam turbine: what pressure, temperature and shaft speed are worth.

use super::Steam;
use super::dynamics::Lag;
use super::tags::{PlantRow, Tag};

/// Speed at which the nominal power is reached, rpm.
pub(super) const NOMINAL_RPM: f64 = 884.0;
const NOMINAL_BAR: f64 = 1.134;

#[derive(Debug, Clone)]
pub(super) struct SteamTurbine {
    pressure_filtered: Lag,
    mechanical_mw: Lag,
    frequency_deviation: Lag,
    /// Speed trim of sliding-pressure operation, rpm.
    pub(super) trim_rpm: f64,
    /// What a change of pressure does to the shaft before the trim has followed, rpm.
    pub(super) surge_rpm: f64,
    /// Electrical power, MW.
    pub(super) power_mw: f64,
    steam: Steam,
}

impl SteamTurbine {
    pub(super) fn new() -> Self {
        Self {
            pressure_filtered: Lag::new(NOMINAL_BAR, 6.0),
            mechanical_mw: Lag::new(332.35, 5.0),
            frequency_deviation: Lag::new(0.0, 6.0),
            trim_rpm: 720.5,
            surge_rpm: 0.0,
            power_mw: 332.35,
            steam: Steam { pressure_bar: NOMINAL_BAR, temperature_c: 30.8 },
        }
    }

    pub(super) fn step(&mut self, steam: Steam, demand_mw: f64) {
        let Steam { pressure_bar: p, temperature_c: t1 } = steam;
        let filtered = self.pressure_filtered.toward(p);
        let worth = 1.0 + 0.75 * (p - NOMINAL_BAR) / NOMINAL_BAR + 0.15 * (t1 - 30.78) / 10.0;
        let mechanical = self.mechanical_mw.toward(332.35 * worth.clamp(0.1, 2.0));
        self.frequency_deviation.toward((mechanical - demand_mw) / 9000.0);
        self.trim_rpm = 720.5 + 75.0 * (filtered - NOMINAL_BAR) + 1.5 * (t1 - 30.78);
        self.surge_rpm = (60.0 * (p - filtered)).clamp(-60.0, 60.0);
        self.steam = steam;
    }

    /// Power at this shaft speed, MW.
    pub(super) fn generate(&mut self, rpm: f64) -> f64 {
        let share = (1.0 + 4.0 * (rpm / NOMINAL_RPM - 1.0)).clamp(0.0, 1.5);
        self.power_mw = (self.mechanical_mw.value * share).min(520.0);
        self.power_mw
    }

    pub(super) fn record(&self, row: &mut PlantRow) {
        row[Tag::P2_SCST] = self.trim_rpm;
        row[Tag::P4_ST_FD] = self.frequency_deviation.value;
        row[Tag::P4_ST_PO] = self.power_mw;
        row[Tag::P4_ST_PT01] = 9978.2 + 283.0 * (self.steam.pressure_bar - NOMINAL_BAR);
        row[Tag::P4_ST_TT01] = 27145.0 + 96.7 * (self.steam.temperature_c - 30.784);
    }
}
