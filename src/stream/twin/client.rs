//! One client of a synthetic plant: its dynamics, what drives it, its sensors and its noise.
//!
//! It must not know the other clients beyond the states that are handed to it.

use rand::RngExt as _;
use rand_distr::{Distribution as _, StandardNormal};

use super::coupling::Coupling;
use super::fault::{BURST_STD, Fault, FaultKind};
use super::process::Process;
use super::sensing::Sensing;
use super::sources::{Purpose, Sources};
use super::target::Target;
use super::transition::Transition;
use super::{CHANNELS, Measurements, State};
use crate::base::moments::Moments;
use crate::base::rng::Rng;
use crate::session::Family;

/// Pull of the target on the state of family A (k).
const PULL: f64 = 0.5;
/// Bound of every state of families B and H.
const LIMIT: f64 = 6.0;

/// How a state moves by itself.
#[derive(Debug, Clone)]
enum Dynamics {
    Lstm {
        f: Transition,
        target: Target,
        /// k.
        pull: f64,
    },
    Process(Process),
}

/// What one parent does to this client.
#[derive(Debug, Clone)]
pub(super) struct Inflow {
    pub(super) parent: usize,
    pub(super) delay: usize,
    pub(super) coupling: Coupling,
}

/// A client and every random source of its own.
#[derive(Debug, Clone)]
pub(super) struct Client {
    dynamics: Dynamics,
    sensing: Sensing,
    pub(super) inflows: Vec<Inflow>,
    /// Standard deviation of measurement noise in units of the channel's.
    noise_share: f64,
    /// Standard deviation of each channel without noise, in nominal operation.
    pub(super) channel_std: Measurements,
    /// What stuck channels show.
    held: Measurements,
    process_noise: Rng,
    measurement_noise: Rng,
    burst_noise: Rng,
}

impl Client {
    /// Client number `index` of a plant of `family`, whose state may be its target. Its channels' scale
    /// is unknown until [`Client::rehearse`].
    pub(super) fn random(
        family: Family,
        is_target: bool,
        index: usize,
        inflows: Vec<Inflow>,
        sources: Sources,
    ) -> Self {
        let of = |purpose| sources.client(purpose, index);
        let mut plant = of(Purpose::Dynamics);
        let drift = of(Purpose::Drift);
        let dynamics = match family {
            Family::A => {
                let target = Target::random(&mut plant, drift);
                let mut lesson = target.clone();
                lesson.restart(of(Purpose::FitDrift));
                let f = Transition::fit(lesson, &mut of(Purpose::Fit));
                Dynamics::Lstm { f, target, pull: if is_target { 1.0 } else { PULL } }
            }
            Family::B | Family::H | Family::S => {
                Dynamics::Process(Process::random(&mut plant, drift))
            }
        };
        let mut of_sensing = of(Purpose::Sensing);
        let sensing = match family {
            Family::A => Sensing::network(&mut of_sensing),
            Family::B | Family::H | Family::S => Sensing::mixture(&mut of_sensing),
        };
        let noise_share = match family {
            Family::A | Family::B | Family::S => 0.1,
            Family::H => of(Purpose::NoiseShare).random_range(0.05..0.6),
        };
        Self {
            dynamics,
            sensing,
            inflows,
            noise_share,
            channel_std: [0.0; CHANNELS],
            held: [0.0; CHANNELS],
            process_noise: of(Purpose::ProcessNoise),
            measurement_noise: of(Purpose::MeasurementNoise),
            burst_noise: of(Purpose::BurstNoise),
        }
    }

    pub(super) fn title(&self) -> &'static str {
        match &self.dynamics {
            Dynamics::Lstm { .. } => "LSTM plant",
            Dynamics::Process(process) => process.kind.title(),
        }
    }

    /// Standard deviation of each channel's measurement noise.
    pub(super) fn noise_std(&self) -> Measurements {
        self.channel_std.map(|std| self.noise_share * std)
    }

    /// Begins a run: no memory, and drift and process noise drawn from `sources`.
    fn restart(&mut self, index: usize, sources: Sources) {
        let drift = sources.client(Purpose::Drift, index);
        match &mut self.dynamics {
            Dynamics::Lstm { f, target, .. } => {
                f.forget();
                target.restart(drift);
            }
            Dynamics::Process(process) => process.restart(drift),
        }
        self.process_noise = sources.client(Purpose::ProcessNoise, index);
    }

    /// Runs in nominal operation, driven by `parents` (one whole trajectory for every inflow), and
    /// returns its own trajectory. Finds the scale of couplings and channels on the way, and is
    /// then ready for the run with `sources`.
    pub(super) fn rehearse(
        &mut self,
        index: usize,
        parents: &[&[State]],
        steps: usize,
        settling: usize,
        sources: Sources,
    ) -> Vec<State> {
        let mut driven = vec![[0.0; 2]; steps];
        for (inflow, parent) in self.inflows.iter_mut().zip(parents) {
            let before = std::iter::repeat_n([0.0; 2], inflow.delay);
            let seen: Vec<State> = before.chain(parent.iter().copied()).take(steps).collect();
            let influence = inflow.coupling.rehearse(&seen, settling);
            driven.iter_mut().zip(influence).for_each(|(sum, x)| *sum = add(*sum, x));
        }

        self.restart(index, sources.rehearsal());
        let mut x = [0.0; 2];
        let mut channels = [Moments::default(); CHANNELS];
        let mut trajectory = Vec::with_capacity(steps);
        for (t, driven) in driven.into_iter().enumerate() {
            x = self.advance(x, driven, [0.0; 2]);
            trajectory.push(x);
            if t >= settling {
                let clean = self.clean(x);
                channels.iter_mut().zip(clean).for_each(|(seen, y)| seen.add(y));
            }
        }
        self.channel_std = channels.map(|seen| seen.std());
        self.restart(index, sources);
        trajectory
    }

    /// Sum of what all parents do in each of the next `steps` steps, given the states of every
    /// client from `past` steps before them on.
    pub(super) fn driven(
        &mut self,
        tracks: &[Vec<State>],
        past: usize,
        steps: usize,
    ) -> Vec<State> {
        let mut driven = vec![[0.0; 2]; steps];
        for inflow in &mut self.inflows {
            let seen = &tracks[inflow.parent][past - inflow.delay..][..steps];
            let influence = inflow.coupling.influence(seen);
            driven.iter_mut().zip(influence).for_each(|(sum, x)| *sum = add(*sum, x));
        }
        driven
    }

    /// The next state, with what parents (`driven`) and a fault (`push`) do to it.
    pub(super) fn advance(&mut self, x: State, driven: State, push: State) -> State {
        let mut noise = || -> f64 { StandardNormal.sample(&mut self.process_noise) };
        let noise = [noise(), noise()];
        match &mut self.dynamics {
            Dynamics::Lstm { f, target, pull } => {
                let (own, target) = (f.step(x), target.next());
                std::array::from_fn(|d| {
                    (1.0 - *pull) * own[d]
                        + *pull * (target[d] + push[d])
                        + driven[d]
                        + 0.1 * noise[d]
                })
            }
            Dynamics::Process(process) => {
                let own = process.step(x);
                std::array::from_fn(|d| {
                    (own[d] + driven[d] + push[d] + 0.06 * noise[d]).clamp(-LIMIT, LIMIT)
                })
            }
        }
    }

    /// What noiseless sensors would show in state `x`.
    pub(super) fn clean(&self, x: State) -> Measurements {
        self.sensing.clean(x)
    }

    /// What the sensors show in state `x`; `fault` with the step, while one is at this client.
    pub(super) fn measure(&mut self, x: State, fault: Option<(&Fault, usize)>) -> Measurements {
        let (clean, noise_std) = (self.clean(x), self.noise_std());
        let y = std::array::from_fn(|channel| {
            let noise: f64 = StandardNormal.sample(&mut self.measurement_noise);
            clean[channel] + noise_std[channel] * noise
        });
        match fault {
            Some((fault, t)) => self.distort(y, fault, t == fault.start),
            None => y,
        }
    }

    /// What faulty sensors make of `y`.
    fn distort(&mut self, y: Measurements, fault: &Fault, first: bool) -> Measurements {
        let std = self.channel_std;
        match fault.kind {
            FaultKind::Bias { offset_std } => {
                std::array::from_fn(|channel| y[channel] + offset_std[channel] * std[channel])
            }
            FaultKind::StuckAt { channels } => {
                if first {
                    self.held = y;
                }
                let held = self.held;
                std::array::from_fn(
                    |channel| {
                        if channels[channel] { held[channel] } else { y[channel] }
                    },
                )
            }
            FaultKind::NoiseBurst { channels } => std::array::from_fn(|channel| {
                let noise: f64 = StandardNormal.sample(&mut self.burst_noise);
                let size = if channels[channel] { BURST_STD * std[channel] } else { 0.0 };
                y[channel] + size * noise
            }),
            FaultKind::TargetShift { .. }
            | FaultKind::Step { .. }
            | FaultKind::Ramp { .. }
            | FaultKind::Oscillation { .. }
            | FaultKind::Accident { .. } => y,
        }
    }
}

fn add(x: State, y: State) -> State {
    [x[0] + y[0], x[1] + y[1]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_is_its_target_does_not_depend_on_the_state_before() {
        let next = |is_target, x: State| {
            let sources = Sources::new(3);
            let mut client = Client::random(Family::A, is_target, 0, Vec::new(), sources);
            client.advance(x, [0.0; 2], [0.0; 2]).map(f64::to_bits)
        };
        let (here, there) = ([0.0, 0.0], [1.0, -1.0]);
        assert_eq!(next(true, here), next(true, there));
        assert_ne!(next(false, here), next(false, there));
    }
}
