//! The built-in plant: boiler, turbine and pumped storage on a simulated grid, with the tags of
//! HAI 22.04, one row a second.
//!
//! ```text
//!  operators ─► load (P4) ─► P1 boiler ─► P2 turbine ─► P3 pumped storage ─► grid frequency (P4)
//!                               └───────── steam power ─────┘
//! ```
//!
//! Two things are other than in HAI, and on purpose: shaft speed matters for power, so that an
//! attack on the turbine has an effect; and the storage follows steam power instead of the load, so
//! that no unobserved signal drives two processes. [`Switches`] take the second one back, or close
//! a loop through the grid. It must not know who watches, nor what becomes of the rows.

mod attack;
mod boiler;
mod day;
mod dynamics;
mod effect;
mod load;
mod noise;
mod operator;
mod steam;
mod storage;
mod tags;
mod tampering;
mod turbine;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use attack::Attack;
#[cfg(test)]
pub(crate) use attack::CATALOGUE;
#[cfg(test)]
pub(crate) use attack::find as attack;
#[cfg(test)]
pub(crate) use attack::ids as attack_ids;
pub(crate) use day::{Day, PlantStream, default_clients};
pub(crate) use effect::{Comparison, Effect, NominalSigma};
#[cfg(test)]
pub(crate) use tags::COUNT;
pub(crate) use tags::{PlantRow, Process, Tag, header};
pub(crate) use tampering::Staged;

use boiler::Boiler;
use load::Load;
use noise::Noise;
use operator::Operator;
use steam::SteamTurbine;
use storage::Storage;
use tampering::Tampering;
use turbine::Turbine;

/// Full scale of a converter, counts.
const FULL_SCALE: f64 = 27_648.0;

/// Departures from the plant's causal order; none by default.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Switches {
    /// The load drives boiler and storage together: a hidden common cause, as in HAI.
    pub(crate) confounded: bool,
    /// Gain from grid frequency back to the steam gate: above zero, P3 reaches P1.
    pub(crate) grid_feedback: f64,
}

/// What the boiler hands to the turbine.
#[derive(Debug, Clone, Copy)]
struct Steam {
    pressure_bar: f64,
    temperature_c: f64,
}

/// The plant as it stands after some second.
///
/// A clone goes on exactly like the original, noise included. With one attack taken out of it
/// ([`Plant::forgo`]) it is the counterfactual: the same run, had that attack never come.
#[derive(Debug, Clone)]
pub(crate) struct Plant {
    step: u64,
    noise: Noise,
    operator: Operator,
    load: Load,
    boiler: Boiler,
    steam: SteamTurbine,
    turbine: Turbine,
    storage: Storage,
    tampering: Tampering,
}

impl Plant {
    /// A plant in its initial state. Attacks must not overlap; of two that do, the first in
    /// `schedule` is carried out.
    pub(crate) fn new(seed: u64, switches: Switches, schedule: &[Staged]) -> Self {
        Self {
            step: 0,
            noise: Noise::new(seed),
            operator: Operator::new(seed),
            load: Load::new(seed, switches),
            boiler: Boiler::new(),
            steam: SteamTurbine::new(),
            turbine: Turbine::new(),
            storage: Storage::new(switches),
            tampering: Tampering::new(schedule),
        }
    }

    /// Takes the attack at `index` of the schedule out of the rest of the run.
    pub(crate) fn forgo(&mut self, index: usize) {
        self.tampering.forgo(index);
    }

    /// The step that comes next, counted from 0.
    pub(crate) fn next_step(&self) -> u64 {
        self.step
    }

    /// One second: fills `row`, and gives the index in the schedule of the attack that is on.
    pub(crate) fn step(&mut self, row: &mut PlantRow) -> Option<usize> {
        let Self { noise, operator, load, boiler, steam, turbine, storage, tampering, .. } = self;
        let attack = tampering.begin(self.step);

        operator.step();
        let gate = load.step(operator, storage.frequency_deviation(), noise);
        let supply = boiler.step(operator, gate, tampering, noise);
        steam.step(supply, load.steam_mw);
        turbine.step(operator, steam, tampering, noise);
        storage.step(operator, load, steam.power_mw, tampering);

        // Switches and lamps that never change stay at 0, whatever the caller's row held.
        *row = PlantRow::default();
        operator.record(row);
        load.record(row);
        boiler.measure(row, noise);
        steam.record(row);
        turbine.record(row, noise);
        storage.measure(row, noise);
        tampering.record(row);

        self.step += 1;
        attack
    }
}
