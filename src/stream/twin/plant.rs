//! The generator: all clients of a synthetic plant, moved step by step.
//!
//! It must not know clocks, frames or files.

use std::num::NonZero;
use std::thread;

use super::client::{Client, Inflow};
use super::coupling::Coupling;
use super::fault::{self, Fault};
use super::graph::Graph;
use super::slices::{Slices, slices};
use super::sources::{Purpose, Sources};
use super::{CHANNELS, Measurements, State};
use crate::session::{Family, TwinSource};
use crate::stream::StreamError;

/// Longest delay of an influence, in steps.
const MAX_DELAY: usize = 4;
/// Steps before the first one shown: the plant is running when the stream begins.
const SETTLING: usize = 200;
/// More clients than any study needs; beyond it a session surely has a slip of the pen.
const MAX_CLIENTS: usize = 1024;

/// A synthetic plant with its graph, its faults and its true states.
#[derive(Debug, Clone)]
pub struct TwinPlant {
    graph: Graph,
    pub(super) clients: Vec<Client>,
    pub(super) faults: Vec<Fault>,
    slices: Slices,
    /// States of the steps before, per client, newest first.
    past: Vec<[State; MAX_DELAY]>,
    states: Vec<State>,
    /// The step that comes next.
    t: usize,
    /// The first fault that is not over yet.
    pending: usize,
}

impl TwinPlant {
    /// Draws a plant and brings it to its first step.
    pub fn new(source: &TwinSource, seed: u64) -> Result<Self, StreamError> {
        check(source)?;
        let sources = Sources::new(seed);
        let delays = match source.family {
            Family::A => 1..=1,
            Family::B | Family::H => 1..=MAX_DELAY,
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
            let inflows = inflows(source.family, &graph, client, sources);
            Client::random(source.family, client, inflows, sources)
        });
        rehearse(source.family, &graph, &mut clients, sources);

        let mut plant = Self {
            past: vec![[[0.0; 2]; MAX_DELAY]; clients.len()],
            states: vec![[0.0; 2]; clients.len()],
            graph,
            clients,
            faults,
            slices,
            t: 0,
            pending: 0,
        };
        for _ in 0..SETTLING {
            plant.advance(None);
        }
        Ok(plant)
    }

    /// The same plant with its faults left out: what would have been. It equals the faulty run,
    /// bit by bit, wherever no fault reaches.
    #[must_use]
    pub fn without_faults(mut self) -> Self {
        self.faults.clear();
        self.pending = 0;
        self
    }

    /// Who drives whom.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The staged anomalies, in the order of their start.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Which steps are meant for what.
    #[must_use]
    pub fn slices(&self) -> &Slices {
        &self.slices
    }

    /// The true states of all clients at the step measured last.
    #[must_use]
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// What `client` is ("two tanks").
    #[must_use]
    pub fn title(&self, client: usize) -> &'static str {
        self.clients[client].title()
    }

    /// Standard deviation of the channels of `client` in nominal operation, without noise.
    #[must_use]
    pub fn channel_std(&self, client: usize) -> Measurements {
        self.clients[client].channel_std
    }

    /// Standard deviation of the measurement noise of `client`.
    #[must_use]
    pub fn noise_std(&self, client: usize) -> Measurements {
        self.clients[client].noise_std()
    }

    /// Moves the plant by one step and writes what all sensors show, client by client, into
    /// `measured` (as far as it is long). Returns the fault that is at work, by its place in
    /// [`TwinPlant::faults`].
    pub fn step(&mut self, measured: &mut [f64]) -> Option<usize> {
        let t = self.t;
        self.t += 1;
        if self.faults.get(self.pending).is_some_and(|f| f.steps().end <= t) {
            self.pending += 1;
        }
        let active = self.faults.get(self.pending).is_some_and(|f| f.steps().contains(&t));
        let active = active.then_some(self.pending);
        self.advance(active.map(|fault| (fault, t)));

        let fault = active.map(|fault| &self.faults[fault]);
        let (rows, _) = measured.as_chunks_mut::<CHANNELS>();
        for (index, (client, row)) in self.clients.iter_mut().zip(rows).enumerate() {
            let fault = fault.filter(|f| f.root == index).map(|f| (f, t));
            *row = client.measure(self.states[index], fault);
        }
        active
    }

    /// Moves all states; `fault` is one's place and the step.
    fn advance(&mut self, fault: Option<(usize, usize)>) {
        let fault = fault.map(|(place, t)| (&self.faults[place], t));
        for (index, client) in self.clients.iter_mut().enumerate() {
            let push = match fault {
                Some((fault, t)) if fault.root == index => fault.push(t),
                _ => [0.0; 2],
            };
            // Others are seen through `past` only, so the order of clients does not matter.
            let driven = client.driven(&self.past);
            self.states[index] = client.advance(self.past[index][0], driven, push);
        }
        for (past, state) in self.past.iter_mut().zip(&self.states) {
            past.rotate_right(1);
            past[0] = *state;
        }
    }
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
fn inflows(family: Family, graph: &Graph, child: usize, sources: Sources) -> Vec<Inflow> {
    graph
        .edges_into(child)
        .map(|edge| {
            let mut rng = sources.edge(Purpose::Coupling, edge.parent, child);
            let coupling = match family {
                Family::A => Coupling::lstm(&mut rng),
                Family::B => Coupling::tanh(0.5, &mut rng),
                Family::H => Coupling::tanh(0.9, &mut rng),
            };
            Inflow { parent: edge.parent, delay: edge.delay, coupling }
        })
        .collect()
}

/// Runs the plant nominally, parents before children, to find the scale of couplings and channels.
fn rehearse(family: Family, graph: &Graph, clients: &mut [Client], sources: Sources) {
    let steps = match family {
        // g_dep is dear; its signal repeats with the target's period and amplitude block.
        Family::A => 2000,
        // Set points wander slowly; a short run would see too few of them.
        Family::B | Family::H => 20_000,
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
    let workers = thread::available_parallelism().map_or(1, NonZero::get).min(n);
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
