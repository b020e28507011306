//! The generator: all clients of a synthetic plant, moved step by step.
//!
//! It must not know clocks, frames or files.

use std::thread;

#[cfg(test)]
use super::Measurements;
use super::client::{Client, Inflow};
use super::coupling::{BLOCK, Coupling};
use super::fault::{self, Fault};
use super::graph::Graph;
use super::slices::{PAUSE, RUN, Slices, slices};
use super::sources::{Purpose, Sources};
use super::{CHANNELS, State};
use crate::session::{Family, PrintedPlant, TwinSource};
use crate::stream::StreamError;

/// Longest delay of an influence, in steps.
const MAX_DELAY: usize = 4;
/// Steps before the first one shown: the plant is running when the stream begins.
const SETTLING: usize = 200;
/// More clients than any study needs: a larger number in a session is a typing error.
const MAX_CLIENTS: usize = 1024;

/// A synthetic plant with its graph, its faults and its true states.
#[derive(Debug, Clone)]
pub(crate) struct TwinPlant {
    graph: Graph,
    pub(super) clients: Vec<Client>,
    pub(super) faults: Vec<Fault>,
    /// Faults are at all clients, not only at their root.
    everywhere: bool,
    /// It is watched in short runs.
    in_runs: bool,
    slices: Slices,
    /// States of each client: the last few before the block that was worked out ahead, then those
    /// of the block.
    tracks: Vec<Vec<State>>,
    /// How much of the block has been shown.
    shown: usize,
    states: Vec<State>,
    t: usize,
}

impl TwinPlant {
    /// Draws a plant and brings it to its first step.
    pub(crate) fn new(source: &TwinSource, seed: u64) -> Result<Self, StreamError> {
        check(source)?;
        let sources = Sources::new(seed);
        let delays = match source.family {
            Family::A => 1..=1,
            Family::B | Family::H | Family::S => 1..=MAX_DELAY,
        };
        let graph = Graph::draw(source.clients, delays, &mut sources.plant(Purpose::Graph));
        let slices = slices(source);
        let faults = fault::schedule(
            source.family,
            source.delta,
            source.clients,
            slices.anomalous.clone(),
            &mut sources.plant(Purpose::Faults),
        );
        let mut clients = in_parallel(source.clients, |client| {
            let inflows = inflows(source, &graph, client, sources);
            let is_target = source.printed == Some(PrintedPlant::StateIsTarget);
            Client::random(source.family, is_target, client, inflows, sources)
        });
        rehearse(source.family, &graph, &mut clients, sources);

        let mut plant = Self {
            tracks: vec![vec![[0.0; 2]; MAX_DELAY]; clients.len()],
            shown: 0,
            states: vec![[0.0; 2]; clients.len()],
            graph,
            clients,
            faults,
            everywhere: source.printed == Some(PrintedPlant::AnomaliesEverywhere),
            in_runs: source.family == Family::S,
            slices,
            t: 0,
        };
        for done in (0..SETTLING).step_by(BLOCK) {
            plant.look_ahead(BLOCK.min(SETTLING - done), None);
        }
        plant.shown = plant.ahead();
        Ok(plant)
    }

    /// The same plant, not yet begun, with its faults left out: what would have been. It equals the
    /// faulty run, bit by bit, wherever no fault reaches.
    #[cfg(test)]
    #[must_use]
    pub(crate) fn without_faults(mut self) -> Self {
        debug_assert_eq!(self.t, 0, "what is worked out ahead has its faults already");
        self.faults.clear();
        self
    }

    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The staged anomalies, in the order of their start.
    pub(crate) fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Which steps are meant for what.
    pub(crate) fn slices(&self) -> &Slices {
        &self.slices
    }

    /// The true states of all clients at the step measured last.
    pub(crate) fn states(&self) -> &[State] {
        &self.states
    }

    /// Whether a run begins with step `t`.
    pub(crate) fn begins_run(&self, t: usize) -> bool {
        t == 0 || self.in_runs && t.is_multiple_of(RUN)
    }

    /// Seconds from the first step to step `t`.
    pub(crate) fn clock(&self, t: usize) -> usize {
        if self.in_runs { t + t / RUN * PAUSE } else { t }
    }

    /// What `client` is ("two tanks").
    pub(crate) fn title(&self, client: usize) -> &'static str {
        self.clients[client].title()
    }

    /// Standard deviation of the channels of `client` in nominal operation, without noise.
    #[cfg(test)]
    pub(crate) fn channel_std(&self, client: usize) -> Measurements {
        self.clients[client].channel_std
    }

    /// Standard deviation of the measurement noise of `client`.
    #[cfg(test)]
    pub(crate) fn noise_std(&self, client: usize) -> Measurements {
        self.clients[client].noise_std()
    }

    /// Moves the plant by one step and writes what all sensors show, client by client, into
    /// `measured` (as far as it is long). Returns the fault that is at work, by its place in
    /// [`TwinPlant::faults`].
    pub(crate) fn step(&mut self, measured: &mut [f64]) -> Option<usize> {
        let t = self.t;
        self.t += 1;
        if self.shown == self.ahead() {
            let mut steps = BLOCK;
            if self.in_runs {
                let done = t % RUN;
                if done == 0 && t > 0 {
                    self.look_ahead(PAUSE, None);
                }
                steps = steps.min(RUN - done);
            }
            self.look_ahead(steps, Some(t));
            self.shown = 0;
        }
        for (state, track) in self.states.iter_mut().zip(&self.tracks) {
            *state = track[MAX_DELAY + self.shown];
        }
        self.shown += 1;

        let active = active(&self.faults, t);
        let fault = active.map(|fault| &self.faults[fault]);
        let (rows, _) = measured.as_chunks_mut::<CHANNELS>();
        for (index, (client, row)) in self.clients.iter_mut().zip(rows).enumerate() {
            let fault = fault.filter(|f| self.everywhere || f.root == index).map(|f| (f, t));
            *row = client.measure(self.states[index], fault);
        }
        active
    }

    /// Steps that are worked out.
    fn ahead(&self) -> usize {
        self.tracks.first().map_or(0, |track| track.len() - MAX_DELAY)
    }

    /// Works out `steps` steps, with their faults where the first of them is step `from`; before a
    /// run begins there are none.
    ///
    /// One client after the other, parents before children: the networks of an influence are then
    /// fetched once a block and not once a step, and every number is what it would be otherwise.
    fn look_ahead(&mut self, steps: usize, from: Option<usize>) {
        let Self { graph, clients, tracks, faults, everywhere, .. } = self;
        for track in tracks.iter_mut() {
            track.drain(..track.len() - MAX_DELAY);
        }
        for &index in graph.order() {
            let mut x = tracks[index][MAX_DELAY - 1];
            let driven = clients[index].driven(tracks, MAX_DELAY, steps);
            for (k, driven) in driven.into_iter().enumerate() {
                let at_work = from.and_then(|from| {
                    let fault = &faults[active(faults, from + k)?];
                    if *everywhere || fault.root == index {
                        return Some(fault.push(from + k));
                    }
                    fault.felt_by(index, from + k)
                });
                x = clients[index].advance(x, driven, at_work.unwrap_or_default());
                tracks[index].push(x);
            }
        }
    }
}

/// The fault at work at step `t`, by its place; they stand in order and never overlap.
fn active(faults: &[Fault], t: usize) -> Option<usize> {
    let first = faults.partition_point(|fault| fault.steps().end <= t);
    faults.get(first)?.steps().contains(&t).then_some(first)
}

fn check(source: &TwinSource) -> Result<(), StreamError> {
    let wrong = |what: String| Err(StreamError::Setting(what));
    if !(1..=MAX_CLIENTS).contains(&source.clients) {
        return wrong(format!("clients: expected 1 to {MAX_CLIENTS}, found {}", source.clients));
    }
    if !source.delta.is_finite() {
        return wrong(format!("delta: expected a finite number, found {}", source.delta));
    }
    Ok(())
}

/// Random couplings for every edge into `child`.
fn inflows(source: &TwinSource, graph: &Graph, child: usize, sources: Sources) -> Vec<Inflow> {
    let as_drawn = source.printed == Some(PrintedPlant::CouplingsAsDrawn);
    graph
        .edges_into(child)
        .map(|edge| {
            let mut rng = sources.edge(Purpose::Coupling, edge.parent, child);
            let coupling = match source.family {
                Family::A => Coupling::lstm(as_drawn, &mut rng),
                Family::B | Family::S => Coupling::tanh(0.5, &mut rng),
                Family::H => Coupling::tanh(0.9, &mut rng),
            };
            Inflow { parent: edge.parent, delay: edge.delay, coupling }
        })
        .collect()
}

/// Runs the plant nominally, parents before children, to find the scale of couplings and channels.
fn rehearse(family: Family, graph: &Graph, clients: &mut [Client], sources: Sources) {
    let steps = match family {
        // g_dep is slow to run; its signal repeats with the target's period and amplitude block.
        Family::A => 2000,
        // Set points wander slowly; a short run would see too few of them.
        Family::B | Family::H | Family::S => 20_000,
    };
    let mut trajectories = vec![Vec::new(); clients.len()];
    for &client in graph.order() {
        let parents: Vec<&[State]> =
            graph.edges_into(client).map(|edge| trajectories[edge.parent].as_slice()).collect();
        trajectories[client] = clients[client].rehearse(client, &parents, steps, SETTLING, sources);
    }
}

/// `make(0), make(1), …, make(n - 1)` on all cores. The result does not depend on their number.
fn in_parallel<T: Send>(n: usize, make: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let workers = crate::base::threads::threads().min(n);
    let share = n.div_ceil(workers);
    let mut made: Vec<Option<T>> = (0..n).map(|_| None).collect();
    thread::scope(|scope| {
        for (worker, slots) in made.chunks_mut(share).enumerate() {
            let make = &make;
            scope.spawn(move || {
                for (place, slot) in slots.iter_mut().enumerate() {
                    *slot = Some(make(worker * share + place));
                }
            });
        }
    });
    made.into_iter().map(|slot| slot.expect("every slot is filled by its worker")).collect()
}
