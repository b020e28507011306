//! P2, the turbine: speed control of a shaft, its vibration, and the trip that protects it.

use super::dynamics::{Lag, Slew, Wander};
use super::noise::{Noise, Source};
use super::operator::{Operator, SetPoint};
use super::steam::{NOMINAL_RPM, SteamTurbine};
use super::tags::{PlantRow, Tag};
use super::tampering::Tampering;

/// Controller output that holds the shaft at [`HELD_RPM`].
const NEUTRAL_OUTPUT: f64 = 54_639.0;
const HELD_RPM: f64 = 883.9;
const OUTPUT_PER_RPM: f64 = 5.0;
const TRIP_RPM: f64 = 2880.0;
const TRIP_UM: f64 = 50.0;
/// A tripped turbine stands at least so long.
const STANDSTILL_S: u32 = 90;

/// A probe of shaft displacement.
struct Probe {
    tag: Tag,
    limit: Tag,
    drift: Source,
    noise: Source,
    /// Mean displacement, µm.
    mean: f64,
    /// Displacement per 10 rpm, per 35 MW, slow drift and noise, µm.
    by_speed: f64,
    by_power: f64,
    drift_sigma: f64,
    noise_sigma: f64,
}

const PROBES: [Probe; 4] = [
    Probe {
        tag: Tag::P2_VIBTR01,
        limit: Tag::P2_VTR01,
        drift: Source::ShaftDrift1,
        noise: Source::Vibration1,
        mean: 6.50,
        by_speed: 0.15,
        by_power: 0.10,
        drift_sigma: 0.15,
        noise_sigma: 0.327,
    },
    Probe {
        tag: Tag::P2_VIBTR02,
        limit: Tag::P2_VTR02,
        drift: Source::ShaftDrift2,
        noise: Source::Vibration2,
        mean: -2.89,
        by_speed: -0.12,
        by_power: -0.06,
        drift_sigma: 0.12,
        noise_sigma: 0.329,
    },
    Probe {
        tag: Tag::P2_VIBTR03,
        limit: Tag::P2_VTR03,
        drift: Source::ShaftDrift3,
        noise: Source::Vibration3,
        mean: 9.19,
        by_speed: 0.10,
        by_power: 0.06,
        drift_sigma: 0.18,
        noise_sigma: 0.194,
    },
    Probe {
        tag: Tag::P2_VIBTR04,
        limit: Tag::P2_VTR04,
        drift: Source::ShaftDrift4,
        noise: Source::Vibration4,
        mean: -0.64,
        by_speed: -0.10,
        by_power: -0.05,
        drift_sigma: 0.17,
        noise_sigma: 0.159,
    },
];

#[derive(Debug, Clone)]
enum State {
    Running,
    Tripped { seconds: u32 },
}

#[derive(Debug, Clone)]
pub(super) struct Turbine {
    state: State,
    integral: f64,
    output: Slew,
    /// Shaft speed n, rpm.
    rpm: Lag,
    drifts: [Wander; 4],
    /// The last readings, which control and trip act on.
    speed_seen: f64,
    vibration_seen: [f64; 4],
}

impl Turbine {
    pub(super) fn new() -> Self {
        Self {
            state: State::Running,
            integral: 0.0,
            output: Slew::new(NEUTRAL_OUTPUT, 300.0),
            rpm: Lag::new(NOMINAL_RPM, 6.0),
            drifts: PROBES.map(|probe| Wander::new(probe.drift_sigma, 2400.0)),
            speed_seen: NOMINAL_RPM,
            vibration_seen: PROBES.map(|probe| probe.mean),
        }
    }

    /// One second of shaft, generator and probes.
    pub(super) fn step(
        &mut self,
        operator: &Operator,
        steam: &mut SteamTurbine,
        tampering: &mut Tampering,
        noise: &mut Noise,
    ) {
        self.protect(tampering);
        match &mut self.state {
            State::Running => {
                let wanted = operator.get(SetPoint::Speed)
                    + steam.trim_rpm
                    + 44.0
                    + tampering.offset(Tag::P2_AutoSD);
                self.control(wanted, tampering);
                let held = HELD_RPM + (self.output.value - NEUTRAL_OUTPUT) / OUTPUT_PER_RPM;
                self.rpm.toward(held + steam.surge_rpm);
            }
            State::Tripped { seconds } => {
                *seconds += 1;
                self.output.toward_at(0.0, 6000.0);
                self.rpm.toward_in(0.0, 25.0);
            }
        }
        let power_mw = steam.generate(self.rpm.value);
        self.probe(power_mw, noise);
    }

    fn protect(&mut self, tampering: &Tampering) {
        let violated = self.speed_seen > TRIP_RPM + tampering.offset(Tag::P2_RTR)
            || PROBES.iter().zip(self.vibration_seen).any(|(probe, vibration)| {
                vibration.abs() > TRIP_UM + tampering.offset(probe.limit)
            });
        match self.state {
            State::Running if violated => self.state = State::Tripped { seconds: 0 },
            State::Tripped { seconds } if seconds > STANDSTILL_S && !violated => {
                self.state = State::Running;
                self.integral = self.rpm.value - HELD_RPM;
                self.output.value = NEUTRAL_OUTPUT + OUTPUT_PER_RPM * self.integral;
            }
            _ => {}
        }
    }

    fn control(&mut self, wanted_rpm: f64, tampering: &mut Tampering) {
        let error = (wanted_rpm - self.speed_seen).clamp(-150.0, 150.0);
        self.set_integral(self.integral + 0.06 * error);
        self.output.toward(NEUTRAL_OUTPUT + OUTPUT_PER_RPM * (0.6 * error + self.integral));
        if let Some(forced) = tampering.command(Tag::P2_SCO, self.output.value) {
            self.output.value = forced;
            self.set_integral((forced - NEUTRAL_OUTPUT) / OUTPUT_PER_RPM);
        }
    }

    fn set_integral(&mut self, rpm: f64) {
        self.integral = rpm.clamp(-900.0, 400.0);
    }

    /// Displacement grows toward the critical speed of 1250 rpm and fades at standstill.
    fn probe(&mut self, power_mw: f64, noise: &mut Noise) {
        let rpm = self.rpm.value;
        let r = rpm / 1250.0;
        let resonance = r * r / ((1.0 - r * r).powi(2) + (0.24 * r).powi(2)).sqrt();
        let amplitude = (resonance / 0.9474).clamp(0.02, 4.0);
        let running = (rpm / 300.0).clamp(0.0, 1.0);
        let deviation = (rpm - NOMINAL_RPM).max(-284.0);
        for (i, probe) in PROBES.iter().enumerate() {
            self.vibration_seen[i] = probe.mean * (0.4 + 0.6 * running)
                + probe.by_speed * deviation / 10.0
                + probe.by_power * (power_mw - 332.0) / 35.0 * running
                + self.drifts[i].step(noise.normal(probe.drift))
                + probe.noise_sigma * amplitude * noise.normal(probe.noise);
        }
        let flutter = 0.9 * noise.normal(Source::ShaftSpeed) * (rpm / 200.0).min(1.0);
        self.speed_seen = (rpm + flutter).max(0.0);
    }

    pub(super) fn record(&self, row: &mut PlantRow, noise: &mut Noise) {
        let running = matches!(self.state, State::Running);
        row[Tag::P2_24Vdc] = 28.033 + 0.003 * noise.normal(Source::SupplyVoltage);
        row[Tag::P2_ATSW_Lamp] = 1.0;
        row[Tag::P2_AutoGO] = 1.0;
        row[Tag::P2_TripEx] = 1.0;
        row[Tag::P2_ManualSD] = 12.0;
        row[Tag::P2_OnOff] = f64::from(u8::from(running));
        row[Tag::P2_Emerg] = f64::from(u8::from(!running));
        row[Tag::P2_RTR] = TRIP_RPM;
        row[Tag::P2_SCO] = self.output.value.round();
        row[Tag::P2_SIT01] = self.speed_seen;
        row[Tag::P2_VT01] = 11.954
            + 0.0012 * (self.rpm.value - NOMINAL_RPM)
            + 0.0425 * noise.normal(Source::KeyPhasor);
        for (probe, vibration) in PROBES.iter().zip(self.vibration_seen) {
            row[probe.tag] = vibration;
            row[probe.limit] = TRIP_UM;
        }
    }
}
