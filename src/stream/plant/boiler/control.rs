//! The boiler's loops: pressure (PC), outflow (FC), level (LC), temperature (TC) and cooler (CC).

use crate::stream::plant::dynamics::{Pi, Slew};
use crate::stream::plant::operator::{Operator, SetPoint};
use crate::stream::plant::tags::{PlantRow, Tag};
use crate::stream::plant::tampering::Tampering;

/// What the loops read: the true sensors of the second before, never replayed ones.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    pub(super) pressure_bar: f64,
    pub(super) outflow_lph: f64,
    pub(super) level_mm: f64,
    pub(super) steam_c: f64,
    pub(super) main_tank_c: f64,
}

/// A PI loop, its command and the limits of both.
#[derive(Debug, Clone)]
struct Loop {
    tag: Tag,
    pi: Pi,
    limits: (f64, f64),
    command: Slew,
}

impl Loop {
    fn step(&mut self, error: f64, tampering: &mut Tampering) {
        let wanted = self.pi.step(error).clamp(self.limits.0, self.limits.1);
        self.command.toward(wanted);
        if let Some(forced) = tampering.command(self.tag, self.command.value) {
            self.command.value = forced;
            self.pi.follow(forced);
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Control {
    pressure: Loop,
    outflow: Loop,
    /// Its integral part is the trim of a feed-forward, and winds up when the command is forced.
    level: Pi,
    inflow_valve: Slew,
    temperature: Loop,
    bypass: f64,
    recirculation: Slew,
    recirculate: bool,
    cooling: bool,
    cooling_pump: Slew,
    pressure_demand_bar: f64,
    temperature_demand_c: f64,
}

/// Where the loops want the actuators, in per cent.
pub(super) struct Commands {
    pub(super) pcv01: f64,
    pub(super) pcv02: f64,
    pub(super) lcv01: f64,
    pub(super) fcv01: f64,
    pub(super) fcv02: f64,
    pub(super) fcv03: f64,
    pub(super) pp04: f64,
}

impl Control {
    pub(super) fn new() -> Self {
        let pi = |tag, kp, ti_s, start, limits, rate| Loop {
            tag,
            pi: Pi::new(kp, ti_s, start, limits),
            limits,
            command: Slew::new(start, rate),
        };
        Self {
            pressure: pi(Tag::P1_PCV01D, 20.0, 12.0, 27.7, (5.0, 100.0), 2.0),
            outflow: pi(Tag::P1_FCV03D, 0.01, 8.0, 53.62, (20.0, 100.0), 1.0),
            level: Pi::new(0.15, 120.0, 0.0, (-15.0, 25.0)),
            inflow_valve: Slew::new(14.74, 0.5),
            temperature: pi(Tag::P1_FCV01D, 6.0, 150.0, 30.0, (0.0, 92.0), 1.0),
            bypass: 12.0,
            recirculation: Slew::new(15.0, 1.0),
            recirculate: false,
            cooling: true,
            cooling_pump: Slew::new(25.0, 0.2),
            pressure_demand_bar: 0.0,
            temperature_demand_c: 0.0,
        }
    }

    pub(super) fn commands(&self) -> Commands {
        Commands {
            pcv01: self.pressure.command.value,
            pcv02: self.bypass,
            lcv01: self.inflow_valve.value,
            fcv01: self.temperature.command.value,
            fcv02: self.recirculation.value,
            fcv03: self.outflow.command.value,
            pp04: self.cooling_pump.value,
        }
    }

    /// One second; `gate` is the filtered opening of the steam gate.
    pub(super) fn step(
        &mut self,
        operator: &Operator,
        gate: f64,
        seen: &Measured,
        tampering: &mut Tampering,
    ) {
        self.pressure_demand_bar = operator.get(SetPoint::Pressure) + 1.5 * gate;
        self.temperature_demand_c = operator.get(SetPoint::Temperature) + 0.77 + 4.6 * gate;

        let set_point = self.pressure_demand_bar + tampering.offset(Tag::P1_B2016);
        self.pressure.step(set_point - seen.pressure_bar, tampering);
        self.bypass = 12.0 + 0.5 * (20.5 - self.pressure.command.value).max(0.0);

        let set_point = operator.get(SetPoint::Outflow) + tampering.offset(Tag::P1_B3005);
        self.outflow.step(set_point - seen.outflow_lph, tampering);

        let set_point = operator.get(SetPoint::Level) + tampering.offset(Tag::P1_B3004);
        let trim = self.level.step(set_point - seen.level_mm);
        let feed_forward = 0.2749 * self.outflow.command.value;
        self.inflow_valve.toward((feed_forward + trim).clamp(0.0, 100.0));
        if let Some(forced) = tampering.command(Tag::P1_LCV01D, self.inflow_valve.value) {
            self.inflow_valve.value = forced;
        }

        let set_point = self.temperature_demand_c + tampering.offset(Tag::P1_B4002);
        self.temperature.step(set_point - seen.steam_c, tampering);
        self.split_hot_water();
        self.cool(seen.main_tank_c - operator.get(SetPoint::Cooler));
    }

    /// Hot water that the exchanger does not take goes round; a band keeps the valve from hunting.
    fn split_hot_water(&mut self) {
        let to_exchanger = self.temperature.command.value;
        if to_exchanger < 12.0 {
            self.recirculate = true;
        } else if to_exchanger > 16.0 {
            self.recirculate = false;
        }
        self.recirculation.toward(if self.recirculate { 100.0 } else { 15.0 });
    }

    fn cool(&mut self, excess_c: f64) {
        if excess_c > 1.1 {
            self.cooling = true;
        } else if excess_c < -1.3 {
            self.cooling = false;
        }
        let wanted = if self.cooling { (40.0 + 3.0 * excess_c).clamp(0.0, 45.0) } else { 0.0 };
        self.cooling_pump.toward(wanted);
    }

    pub(super) fn record(&self, row: &mut PlantRow) {
        let commands = self.commands();
        row[Tag::P1_B2016] = self.pressure_demand_bar;
        row[Tag::P1_B4022] = self.temperature_demand_c;
        row[Tag::P1_B4005] = commands.fcv01 / 0.92;
        row[Tag::P1_PCV01D] = commands.pcv01;
        row[Tag::P1_PCV02D] = commands.pcv02;
        row[Tag::P1_LCV01D] = commands.lcv01;
        row[Tag::P1_FCV01D] = commands.fcv01;
        row[Tag::P1_FCV02D] = commands.fcv02;
        row[Tag::P1_FCV03D] = commands.fcv03;
        row[Tag::P1_PP04] = commands.pp04;
    }
}
