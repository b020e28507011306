//! Every noise of the plant, each with a generator of its own.
//!
//! No source ever draws for another: a plant that is changed in one place (an attack left out)
//! therefore keeps all its other noises, and the difference between the two runs is the effect of
//! the change and nothing else.

use rand::RngExt as _;
use rand_distr::StandardNormal;

use crate::base::rng::{self, Rng};

/// Where a standard normal number is needed. The place in this list is the generator's number:
/// a new source goes to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    LoadPaceFast,
    LoadPaceSlow,
    LoadWander,
    LoadRipple,
    PumpHead,
    Ambient,
    ShaftDrift1,
    ShaftDrift2,
    ShaftDrift3,
    ShaftDrift4,
    Vibration1,
    Vibration2,
    Vibration3,
    Vibration4,
    KeyPhasor,
    ShaftSpeed,
    InflowMeter,
    HotFlowMeterGain,
    HotFlowMeterZero,
    OutflowMeter,
    SteamPressure,
    HotPumpPressure,
    TankLevel,
    SteamTemperature,
    HotTankTemperature,
    MainTankTemperature,
    StorageFlow,
    StorageLevel,
    StoragePressure,
    StoragePumpCommand,
    StorageValveCommand,
    HotValvePosition,
    RecirculationPosition,
    OutflowValvePosition,
    PressureValvePosition,
    InflowValvePosition,
    BypassPosition,
    GatePosition,
    SupplyVoltage,
}

impl Source {
    /// How many there are.
    pub(super) const COUNT: usize = Source::SupplyVoltage as usize + 1;
}

/// The generators of all sources.
#[derive(Debug, Clone)]
pub(super) struct Noise {
    generators: [Rng; Source::COUNT],
}

impl Noise {
    pub(super) fn new(seed: u64) -> Self {
        Self { generators: std::array::from_fn(|source| rng::stream(seed, source as u64)) }
    }

    /// A fresh standard normal number.
    pub(super) fn normal(&mut self, source: Source) -> f64 {
        self.generators[source as usize].sample(StandardNormal)
    }
}
