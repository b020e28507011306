//! P1, the boiler: water is pumped through a heat exchanger into a return tank and back.
//!
//! ```text
//!  TK01 ─ pump ─ exchanger ─ TIT01 ─ PCV01 ─ PIT01 ─ FT01 ─ LCV01 ─ TK03 (LIT01) ─ FCV03 ─ FT03 ─ TK01
//!  TK02 (TIT02, heater) ─ pump ─ PIT02 ─ FCV01 ─ FT02 ─ exchanger ─ TK02;  FCV02 goes round
//!  TK01 (TIT03) is cooled by PP04
//! ```

use super::Steam;
use super::dynamics::{Lag, Wander};
use super::noise::{Noise, Source};
use super::operator::Operator;
use super::tags::{PlantRow, Tag};
use super::tampering::Tampering;

mod control;

use control::{Control, Measured};

/// Heat capacity of water, kJ/(kg K).
const CP: f64 = 4.186;
/// Litres per millimetre of level in the return tank.
const TANK_L_PER_MM: f64 = 0.20;

#[derive(Debug, Clone)]
pub(super) struct Boiler {
    control: Control,
    measured: Measured,
    pcv01: Lag,
    pcv02: Lag,
    lcv01: Lag,
    fcv01: Lag,
    fcv02: Lag,
    fcv03: Lag,
    pp04: Lag,
    head: Wander,
    ambient: Wander,
    /// Steam pressure P, bar.
    pressure: Lag,
    /// Flow into and out of the return tank, l/h.
    inflow: f64,
    outflow: f64,
    /// Level L of the return tank, mm.
    level: f64,
    /// Hot water flow, l/h, and the pressure behind its pump, bar.
    hot_flow: f64,
    hot_pressure: f64,
    heating: bool,
    /// Temperatures, °C: behind the exchanger, hot tank, main tank, return tank.
    t1: Lag,
    t2: f64,
    t3: f64,
    t4: f64,
}

impl Boiler {
    pub(super) fn new() -> Self {
        let control = Control::new();
        let start = control.commands();
        let valve = |command| Lag::limited(command, 2.0, 4.0);
        Self {
            measured: Measured {
                pressure_bar: 1.134,
                outflow_lph: 993.0,
                level_mm: 352.0,
                steam_c: 30.8,
                main_tank_c: 28.2,
            },
            pcv01: valve(start.pcv01),
            pcv02: Lag::new(start.pcv02, 2.0),
            lcv01: valve(start.lcv01),
            fcv01: valve(start.fcv01),
            fcv02: valve(start.fcv02),
            fcv03: valve(start.fcv03),
            pp04: Lag::new(start.pp04, 5.0),
            head: Wander::new(0.004, 60.0),
            ambient: Wander::new(0.5, 3000.0),
            pressure: Lag::new(1.134, 3.0),
            inflow: 0.0,
            outflow: 0.0,
            level: 352.0,
            hot_flow: 0.0,
            hot_pressure: 0.0,
            heating: true,
            t1: Lag::new(30.8, 25.0),
            t2: 36.0,
            t3: 28.2,
            t4: 30.5,
            control,
        }
    }

    /// One second; gives the steam that the turbine gets.
    pub(super) fn step(
        &mut self,
        operator: &Operator,
        gate: f64,
        tampering: &mut Tampering,
        noise: &mut Noise,
    ) -> Steam {
        self.control.step(operator, gate, &self.measured, tampering);
        self.move_actuators();
        self.flow(noise);
        self.heat(noise);
        Steam { pressure_bar: self.pressure.value, temperature_c: self.t1.value }
    }

    fn move_actuators(&mut self) {
        let commands = self.control.commands();
        self.pcv01.toward(commands.pcv01);
        self.pcv02.toward(commands.pcv02);
        self.lcv01.toward(commands.lcv01);
        self.fcv01.toward(commands.fcv01);
        self.fcv02.toward(commands.fcv02);
        self.fcv03.toward(commands.fcv03);
        self.pp04.toward(commands.pp04);
    }

    fn flow(&mut self, noise: &mut Noise) {
        let wander = self.head.step(noise.normal(Source::PumpHead));
        let head = 2.6 * (1.0 + wander) * (1.0 - 0.004 * (self.pcv02.value - 12.0));
        // Two valves in a row share the head by the squares of their conductances.
        let x = (29.6 * self.pcv01.value).powi(2);
        let y = (63.26 * self.lcv01.value.max(0.3)).powi(2);
        let pressure = self.pressure.toward(head * x / (x + y));

        self.inflow = 63.26 * self.lcv01.value * pressure.sqrt();
        self.outflow = 18.52 * self.fcv03.value * (self.level.max(1.0) / 352.0).sqrt();
        self.level =
            (self.level + (self.inflow - self.outflow) / 3600.0 / TANK_L_PER_MM).clamp(0.0, 720.0);
    }

    fn heat(&mut self, noise: &mut Noise) {
        let opening = 0.01854 * (self.fcv01.value + self.fcv02.value);
        self.hot_pressure = 1.6 / (1.0 + opening * opening);
        self.hot_flow = (63.85 * self.fcv01.value * self.hot_pressure.sqrt()).clamp(5.0, 3190.0);
        let cold_flow = self.inflow.max(50.0);
        let effectiveness = 0.20 + 0.30 * (1.0 - (-0.8 * self.hot_flow / cold_flow).exp());
        let t1 = self.t1.toward(self.t3 + effectiveness * (self.t2 - self.t3));

        if self.t2 < 33.3 {
            self.heating = true;
        } else if self.t2 > 38.8 {
            self.heating = false;
        }
        let heater_kw = if self.heating { 7.0 } else { 0.0 };
        let exchanged_kw = cold_flow / 3600.0 * CP * (t1 - self.t3).max(0.0);
        self.t2 += (heater_kw - exchanged_kw - 0.03 * (self.t2 - 24.0)) / (320.0 * CP);

        let content_l = (TANK_L_PER_MM * self.level).max(5.0);
        self.t4 += self.inflow / 3600.0 / content_l * (t1 - self.t4);

        let ambient = self.ambient.step(noise.normal(Source::Ambient));
        let returned_kw = self.outflow / 3600.0 * CP * (self.t4 - self.t3);
        let cooled_kw = 0.0140 * self.pp04.value * (self.t3 - 18.0 - ambient);
        self.t3 += (returned_kw - cooled_kw) / (250.0 * CP);
    }

    /// Reads the sensors; what the loops need of them is kept for the next second.
    pub(super) fn measure(&mut self, row: &mut PlantRow, noise: &mut Noise) {
        let mut n = |source| noise.normal(source);

        let ft01 = 61.48 * (self.inflow / 993.0).powi(2) + 0.5 * n(Source::InflowMeter);
        let ft02 = ((self.hot_flow / 63.8).powi(2) * (1.0 + 0.002 * n(Source::HotFlowMeterGain))
            + 0.3 * n(Source::HotFlowMeterZero))
        .max(0.0);
        let ft03 = (self.outflow / 63.8).powi(2) + 0.35 * n(Source::OutflowMeter);
        self.measured = Measured {
            pressure_bar: self.pressure.value + 0.004 * n(Source::SteamPressure),
            outflow_lph: flow_lph(ft03),
            level_mm: self.level + 0.17 * n(Source::TankLevel),
            steam_c: self.t1.value + 0.02 * n(Source::SteamTemperature),
            main_tank_c: self.t3 + 0.01 * n(Source::MainTankTemperature),
        };

        row[Tag::P1_FT01] = ft01;
        row[Tag::P1_FT01Z] = flow_lph(ft01);
        row[Tag::P1_FT02] = ft02;
        row[Tag::P1_FT02Z] = flow_lph(ft02);
        row[Tag::P1_FT03] = ft03;
        row[Tag::P1_FT03Z] = self.measured.outflow_lph;
        row[Tag::P1_LIT01] = self.measured.level_mm;
        row[Tag::P1_PIT01] = self.measured.pressure_bar;
        row[Tag::P1_PIT02] = self.hot_pressure + 0.004 * n(Source::HotPumpPressure);
        row[Tag::P1_TIT01] = self.measured.steam_c;
        row[Tag::P1_TIT02] = self.t2 + 0.02 * n(Source::HotTankTemperature);
        row[Tag::P1_TIT03] = self.measured.main_tank_c;

        row[Tag::P1_B400B] = self.hot_flow;
        row[Tag::P1_FCV01Z] = self.fcv01.value + 0.05 * n(Source::HotValvePosition);
        row[Tag::P1_FCV02Z] =
            0.995 * self.fcv02.value - 2.4 + 0.05 * n(Source::RecirculationPosition);
        row[Tag::P1_FCV03Z] = 1.0125 * self.fcv03.value + 0.05 * n(Source::OutflowValvePosition);
        row[Tag::P1_PCV01Z] = 1.016 * self.pcv01.value + 0.05 * n(Source::PressureValvePosition);
        row[Tag::P1_PCV02Z] = self.pcv02.value + 0.02 * n(Source::BypassPosition);
        row[Tag::P1_LCV01Z] = self.lcv01.value - 0.11 + 0.04 * n(Source::InflowValvePosition);

        for switched_on in
            [Tag::P1_PP01BD, Tag::P1_PP01BR, Tag::P1_PP02D, Tag::P1_PP02R, Tag::P1_STSP]
        {
            row[switched_on] = 1.0;
        }
        row[Tag::P1_PIT01_HH] = 10.0;
        self.control.record(row);
    }
}

/// Flow in l/h behind a differential pressure in mmH2O, by the transmitter's own table: a square
/// root drawn with eight points.
fn flow_lph(dp: f64) -> f64 {
    const X: [f64; 8] = [0.0, 150.0, 250.0, 500.0, 1000.0, 1500.0, 2000.0, 2500.0];
    if dp <= 0.0 {
        return 0.0;
    }
    let Some(i) = X.iter().position(|&x| dp < x) else { return 3190.0 };
    let (low, high) = (63.8 * X[i - 1].sqrt(), 63.8 * X[i].sqrt());
    low + (high - low) * (dp - X[i - 1]) / (X[i] - X[i - 1])
}
