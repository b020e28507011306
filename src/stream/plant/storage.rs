//! P3, the pumped storage: it discharges when steam power is short and pumps when there is plenty.
//!
//! Its numbers are raw counts of a converter, full scale [`FULL_SCALE`].

use super::FULL_SCALE;
use super::Switches;
use super::dynamics::{Lag, Slew};
use super::load::Load;
use super::noise::{Noise, Source};
use super::operator::{Operator, SetPoint};
use super::tags::{PlantRow, Tag};
use super::tampering::Tampering;

/// Hydro power per count of valve opening, MW.
const MW_PER_COUNT: f64 = 0.0047;
/// How fast a forced command runs to its value, on top of the normal slew, counts/s.
const FORCED_SLEW: f64 = 1500.0;

#[derive(Debug, Clone)]
pub(super) struct Storage {
    switches: Switches,
    steam_power_filtered: Lag,
    valve_command: Slew,
    pump_command: Slew,
    valve: Lag,
    pump: Lag,
    inflow: Lag,
    pump_pressure: Lag,
    level: f64,
    power_mw: Lag,
    frequency_deviation: Lag,
}

impl Storage {
    pub(super) fn new(switches: Switches) -> Self {
        Self {
            switches,
            steam_power_filtered: Lag::new(332.0, 12.0),
            valve_command: Slew::new(7200.0, 350.0),
            pump_command: Slew::new(3000.0, 300.0),
            valve: Lag::new(7200.0, 4.0),
            pump: Lag::new(3000.0, 2.0),
            inflow: Lag::new(0.0, 3.0),
            pump_pressure: Lag::new(17.0, 2.0),
            level: 14_900.0,
            power_mw: Lag::new(33.0, 3.0),
            frequency_deviation: Lag::new(0.0, 4.0),
        }
    }

    /// What the grid sees of the balance of load and generation.
    pub(super) fn frequency_deviation(&self) -> f64 {
        self.frequency_deviation.value
    }

    pub(super) fn step(
        &mut self,
        operator: &Operator,
        load: &Load,
        steam_power_mw: f64,
        tampering: &mut Tampering,
    ) {
        let steam = self.steam_power_filtered.toward(steam_power_mw);
        let make_up_mw = if self.switches.confounded {
            load.hydro_mw + 0.60 * (load.steam_mw - steam)
        } else {
            34.0 + (operator.get(SetPoint::HydroPower) - 4.0) + 0.60 * (320.0 - steam)
        };
        self.command(make_up_mw, tampering);
        self.flow();
        let balance_mw = steam_power_mw + self.power_mw.value - load.demand_mw;
        self.frequency_deviation.toward(balance_mw / 20_000.0);
    }

    /// The valve discharges and the pump fills; each gives way before the tank is empty or full.
    fn command(&mut self, make_up_mw: f64, tampering: &mut Tampering) {
        let level = self.level / FULL_SCALE;
        let above_low = ((level - 0.30) / 0.04).clamp(0.0, 1.0);
        let below_high = ((0.70 - level) / 0.04).clamp(0.0, 1.0);

        let discharge_mw = make_up_mw.clamp(0.0, 130.0) * above_low;
        self.valve_command.toward(discharge_mw / MW_PER_COUNT);
        force(&mut self.valve_command, Tag::P3_LCV01D, tampering);

        let refill_mw = 40.0 * (0.58 - level) / 0.2;
        let pumping = ((34.0 + refill_mw - make_up_mw) / 60.0).clamp(0.0, 1.45) * below_high;
        self.pump_command.toward(if pumping > 0.02 { 5600.0 + 8224.0 * pumping } else { 0.0 });
        force(&mut self.pump_command, Tag::P3_LCP01D, tampering);
    }

    fn flow(&mut self) {
        let valve = self.valve.toward(self.valve_command.value);
        let pump = self.pump.toward(self.pump_command.value);
        let inflow = self.inflow.toward(0.72 * (pump - 6200.0).max(0.0));
        self.pump_pressure.toward(4630.0 * (pump / 13_824.0).powi(3));
        let discharge = valve * (self.level / 14_895.0).sqrt();
        self.level = (self.level + 0.0160 * inflow - 0.002_20 * discharge).clamp(0.0, FULL_SCALE);
        self.power_mw.toward((MW_PER_COUNT * discharge).min(100.0));
    }

    pub(super) fn measure(&self, row: &mut PlantRow, noise: &mut Noise) {
        let mut n = |source| noise.normal(source);
        row[Tag::P3_FIT01] = (25.0 + self.inflow.value + 5.0 * n(Source::StorageFlow)).round();
        row[Tag::P3_LIT01] = (self.level + 30.0 * n(Source::StorageLevel)).round();
        row[Tag::P3_PIT01] =
            (18.0 + self.pump_pressure.value + 1.6 * n(Source::StoragePressure)).round();
        row[Tag::P3_LCP01D] =
            (self.pump_command.value + 6.0 * n(Source::StoragePumpCommand)).round();
        row[Tag::P3_LCV01D] =
            (self.valve_command.value + 40.0 * n(Source::StorageValveCommand)).round();
        row[Tag::P3_LH01] = 70.0;
        row[Tag::P3_LL01] = 30.0;
        row[Tag::P4_HT_PO] = self.power_mw.value;
        row[Tag::P4_HT_FD] = self.frequency_deviation.value;
    }
}

fn force(command: &mut Slew, tag: Tag, tampering: &mut Tampering) {
    if let Some(forced) = tampering.command(tag, command.value) {
        command.toward_at(forced, FORCED_SLEW);
    }
}
