//! What a synthetic plant promises.

#![expect(clippy::float_cmp, reason = "runs that nothing tells apart agree to the last bit")]

mod frames;
mod network;

use std::sync::OnceLock;

use proptest::prelude::*;

use super::coupling::Coupling;
use super::fit::{Batch, LANES, Tape};
use super::lstm::{Linear, Lstm};
use super::packed::Packed;
use super::sources::{Purpose, Sources};
use super::target::Target;
use super::transition::Transition;
use super::*;
use crate::base::moments::Moments;
use crate::base::rng;
use crate::session::Family;

fn source(family: Family, clients: usize) -> TwinSource {
    TwinSource { family, clients, ..TwinSource::default() }
}

fn plant(family: Family, clients: usize, seed: u64) -> TwinPlant {
    TwinPlant::new(&source(family, clients), seed).unwrap()
}

/// Family A is dear to draw; all tests of it share this plant. Its faults are hastened.
fn paper_plant() -> TwinPlant {
    static PLANT: OnceLock<TwinPlant> = OnceLock::new();
    PLANT.get_or_init(|| hastened(plant(Family::A, 2, 3))).clone()
}

/// The plant as if its anomalous slice came first: a property of all steps is found in few.
fn hastened(mut plant: TwinPlant) -> TwinPlant {
    let before = plant.slices().anomalous.start;
    plant.faults.iter_mut().for_each(|fault| fault.start -= before);
    plant
}

/// Steps until every fault is over.
fn all_faults(plant: &TwinPlant) -> usize {
    plant.faults().last().map_or(0, |fault| fault.steps().end + 1)
}

/// Measurements and states of all steps up to `steps`.
fn run(plant: &mut TwinPlant, steps: usize) -> (Vec<Vec<f64>>, Vec<Vec<State>>) {
    let mut y = vec![f64::NAN; plant.graph().clients() * CHANNELS];
    (0..steps)
        .map(|_| {
            plant.step(&mut y);
            (y.clone(), plant.states().to_vec())
        })
        .unzip()
}

fn row(y: &[f64], client: usize) -> &[f64] {
    &y[client * CHANNELS..][..CHANNELS]
}

#[test]
fn two_clients_are_a_pair_and_more_are_an_acyclic_graph_of_the_right_density() {
    for seed in 0..20 {
        let edges = Graph::draw(2, 1..=4, &mut rng::stream(seed, 0)).edges().to_vec();
        assert_eq!((edges.len(), edges[0].parent, edges[0].child), (1, 0, 1));
    }
    assert!(Graph::draw(1, 1..=1, &mut rng::stream(0, 0)).edges().is_empty());

    let (clients, draws) = (8, 3000);
    let mut parents = vec![Moments::default(); clients];
    let mut delays = [0; 4];
    let mut last = vec![0; clients];
    for seed in 0..draws {
        let graph = Graph::draw(clients, 1..=4, &mut rng::stream(seed, 0));
        let place = |client| graph.order().iter().position(|c| *c == client).unwrap();
        for edge in graph.edges() {
            assert!(place(edge.parent) < place(edge.child));
            delays[edge.delay - 1] += 1;
        }
        for (place, &child) in graph.order().iter().enumerate() {
            parents[place].add(graph.edges_into(child).count() as f64);
        }
        last[graph.order()[clients - 1]] += 1;
    }
    let p = 3.0 / 7.0_f64;
    for (place, seen) in parents.iter().enumerate() {
        let earlier = place as f64;
        let adopted = if place == 0 { 0.0 } else { 0.7 * (1.0 - p).powf(earlier) };
        let expected = p * earlier + adopted;
        assert!((seen.mean() - expected).abs() < 0.1, "{place}: {} {expected}", seen.mean());
    }
    let all: i32 = delays.iter().sum();
    assert!(delays.iter().all(|n| (f64::from(*n) / f64::from(all) - 0.25).abs() < 0.02));
    assert!(last.iter().all(|n| (f64::from(*n) / draws as f64 - 0.125).abs() < 0.03));
}

#[test]
fn descendants_are_all_that_can_be_reached() {
    for seed in 0..50 {
        let graph = Graph::draw(7, 1..=4, &mut rng::stream(seed, 0));
        for root in 0..7 {
            let mut reached = vec![root];
            let mut next = 0;
            while next < reached.len() {
                let from = reached[next];
                for edge in graph.edges().iter().filter(|e| e.parent == from) {
                    if !reached.contains(&edge.child) {
                        reached.push(edge.child);
                    }
                }
                next += 1;
            }
            reached.remove(0);
            reached.sort_unstable();
            assert_eq!(graph.descendants(root), reached);
        }
    }
}

#[test]
fn faults_come_at_their_spacing_with_their_length_and_kind_and_a_uniform_root() {
    for (family, spacing, lengths, kinds) in
        [(Family::A, 100, 10..=10, 1), (Family::B, 120, 15..=40, 6), (Family::H, 120, 15..=40, 3)]
    {
        let slices = slices(&source(family, 4));
        let mut roots = [0.0; 4];
        let mut names = std::collections::BTreeMap::new();
        let mut total = 0.0;
        for seed in 0..60 {
            let rng = &mut rng::stream(seed, 0);
            let faults = fault::schedule(family, 2.0, 4, slices.anomalous.clone(), rng);
            assert_eq!(faults.len(), slices.anomalous.len() / spacing);
            assert!(faults.windows(2).all(|f| f[1].start - f[0].start == spacing));
            for fault in &faults {
                assert!(lengths.contains(&fault.length));
                assert!(slices.anomalous.contains(&fault.start));
                assert!(fault.steps().end <= slices.anomalous.end);
                assert!(family != Family::H || fault.kind.moves_the_state());
                roots[fault.root] += 1.0;
                *names.entry(fault.kind.name()).or_insert(0.0) += 1.0;
                total += 1.0;
            }
        }
        assert!(roots.iter().all(|n| (n / total - 0.25_f64).abs() < 0.04), "{roots:?}");
        assert_eq!(names.len(), kinds as usize);
        let fair = 1.0 / f64::from(kinds);
        assert!(names.values().all(|n| (n / total - fair).abs() < 0.04), "{names:?}");
    }
}

#[test]
fn faults_have_their_specified_size() {
    let mut seen = 0;
    for seed in 0..40 {
        let rng = &mut rng::stream(seed, 0);
        for fault in fault::schedule(Family::B, 2.0, 4, 9000..18_000, rng) {
            let size = |push: State| push[0].hypot(push[1]);
            let largest = fault.steps().map(|t| size(fault.push(t))).fold(0.0, f64::max);
            let range = 1.5 * 0.25..1.5 * 0.6;
            match fault.kind {
                FaultKind::Step { push } => {
                    assert!(range.contains(&size(push)) && (largest - size(push)).abs() < 1e-12);
                }
                FaultKind::Ramp { push } => {
                    assert!(range.contains(&size(push)));
                    assert!((largest - 1.6 * size(push)).abs() < 1e-12);
                }
                FaultKind::Oscillation { push, period } => {
                    assert!(range.contains(&size(push)) && (6..=11).contains(&period));
                    assert!((1.1..1.300_001).contains(&(largest / size(push))));
                }
                FaultKind::Bias { offset_std } => {
                    let hit: Vec<f64> =
                        offset_std.iter().map(|o| o.abs()).filter(|o| *o > 0.0).collect();
                    assert!(!hit.is_empty() && hit.iter().all(|o| (0.6..1.5).contains(o)));
                }
                FaultKind::StuckAt { channels } => {
                    assert!(channels.iter().filter(|c| **c).count() >= 2);
                }
                FaultKind::NoiseBurst { channels } => assert!(channels.contains(&true)),
                FaultKind::TargetShift { .. } => panic!("only family A has a target"),
                FaultKind::Accident { .. } => panic!("only family S has accidents"),
            }
            seen += 1;
        }
    }
    assert_eq!(seen, 40 * 75);
}

#[test]
fn the_same_seed_gives_the_same_frames_and_another_seed_does_not() {
    let frames = |seed| {
        let mut stream = TwinStream::open(&source(Family::B, 3), seed).unwrap();
        let mut frame = Frame::for_layout(stream.layout());
        let mut all = Vec::new();
        while stream.next(&mut frame).unwrap() {
            all.push(frame.clone());
        }
        (all, stream.events().to_vec())
    };
    assert_eq!(frames(1), frames(1));
    assert_ne!(frames(1).0, frames(2).0);

    let first = run(&mut paper_plant(), 300);
    assert_eq!(first, run(&mut hastened(plant(Family::A, 2, 3)), 300));
}

/// Asserts that a run with its faults and one without differ where they must, and nowhere else.
fn compare_with_counterfactual(with: &TwinPlant, steps: usize) {
    let (y0, x0) = run(&mut with.clone().without_faults(), steps);
    let (y1, x1) = run(&mut with.clone(), steps);
    let [fault] = with.faults() else { panic!("one fault at a time") };
    let reached = with.graph().descendants(fault.root);
    for client in 0..with.graph().clients() {
        let states_differ = (0..steps).any(|t| x0[t][client] != x1[t][client]);
        let shown_differ = (0..steps).any(|t| row(&y0[t], client) != row(&y1[t], client));
        let root = client == fault.root;
        let feels = fault.kind.moves_the_state() && (root || reached.contains(&client));
        assert_eq!(states_differ, feels, "state of client {client}, {fault:?}");
        assert_eq!(shown_differ, feels || root, "sensors of client {client}, {fault:?}");
    }
    assert_eq!(y0[..fault.start], y1[..fault.start]);
}

#[test]
fn a_fault_changes_nothing_but_its_root_and_the_descendants() {
    for seed in 0..8 {
        let mut plant = hastened(plant(Family::B, 5, seed));
        plant.faults.truncate(1);
        let steps = plant.faults[0].steps().end + 20;
        compare_with_counterfactual(&plant, steps);
    }
    for root in 0..2 {
        let mut plant = paper_plant();
        plant.faults.retain(|f| f.root == root);
        plant.faults.truncate(1);
        let steps = plant.faults[0].steps().end + 20;
        compare_with_counterfactual(&plant, steps);
    }
}

#[test]
fn what_is_left_of_a_fault_of_the_paper_plant_fades() {
    let mut with = paper_plant();
    with.faults.truncate(1);
    let (end, steps) = (with.faults[0].steps().end, with.faults[0].steps().end + 60);
    let (_, x0) = run(&mut with.clone().without_faults(), steps);
    let (_, x1) = run(&mut with.clone(), steps);
    let root = with.faults[0].root;
    let start = with.faults[0].start;
    let apart = |t: usize| (x0[t][root][0] - x1[t][root][0]).hypot(x0[t][root][1] - x1[t][root][1]);
    assert!(apart(start - 1) == 0.0 && apart(start) > 1.0, "it acts from its first step");
    assert!(apart(end - 1) > 1.0 && apart(steps - 1) < 0.05 * apart(end - 1));
}

/// For every fault, the largest move of the root's sensors in nominal standard deviations.
fn largest_moves(with: &TwinPlant) -> Vec<f64> {
    let steps = all_faults(with);
    let (y0, _) = run(&mut with.clone().without_faults(), steps);
    let (y1, _) = run(&mut with.clone(), steps);
    let moves = with.faults().iter().map(|fault| {
        let std = with.channel_std(fault.root);
        let move_at = |t: usize| {
            let (a, b) = (row(&y0[t], fault.root), row(&y1[t], fault.root));
            (0..CHANNELS).map(|c| (a[c] - b[c]).abs() / std[c]).fold(0.0, f64::max)
        };
        fault.steps().map(move_at).fold(0.0, f64::max)
    });
    moves.collect()
}

#[test]
fn a_shift_of_two_is_seen_at_its_root_and_a_smaller_one_is_seen_less() {
    let mut plant = paper_plant();
    plant.faults.truncate(20);
    let large = largest_moves(&plant);
    // k Δ = 1 at once, against a state that swings by 0.7 to 1.5.
    let seen = large.iter().filter(|moved| **moved > 1.2).count();
    assert!(seen * 10 >= large.len() * 9, "{seen} of {}: {large:?}", large.len());
    for fault in &mut plant.faults {
        fault.kind = FaultKind::TargetShift { delta: 0.5 };
    }
    let small = largest_moves(&plant);
    assert!(large.iter().zip(&small).all(|(large, small)| small < large));
}

#[test]
fn the_coupling_of_the_paper_plant_matters() {
    let coupled = paper_plant().without_faults();
    let mut alone = coupled.clone();
    alone.clients[1].inflows.clear();
    let (_, with) = run(&mut coupled.clone(), 3000);
    let (_, without) = run(&mut alone, 3000);
    for dim in 0..2 {
        let pairs = || with.iter().zip(&without);
        assert!(pairs().all(|(x, y)| x[0] == y[0]), "C1 is driven by nobody");
        let difference: Moments = pairs().map(|(x, y)| x[1][dim] - y[1][dim]).collect();
        let spread: Moments = without.iter().map(|x| x[1][dim]).collect();
        assert!(difference.std() > 0.2 * spread.std(), "{difference:?} of {spread:?}");
    }
}

#[test]
fn a_fault_of_the_paper_plant_is_felt_by_the_child() {
    let mut plant = paper_plant();
    plant.faults.retain(|f| f.root == 0);
    plant.faults.truncate(10);
    let steps = all_faults(&plant);
    let (_, x0) = run(&mut plant.clone().without_faults(), steps);
    let (_, x1) = run(&mut plant.clone(), steps);
    for fault in plant.faults() {
        let apart = |t: usize| (x0[t][1][0] - x1[t][1][0]).hypot(x0[t][1][1] - x1[t][1][1]);
        let felt = fault.steps().map(apart).fold(0.0, f64::max);
        // Process noise is 0.1 a dimension.
        assert!(felt > 0.2, "{felt}");
    }
}

#[test]
fn the_dependency_signal_has_mean_zero_and_unit_spread_on_nominal_data() {
    let mut plant = paper_plant();
    let (_, x) = run(&mut plant.clone().without_faults(), 4000);
    let Coupling::Lstm(g) = &mut plant.clients[1].inflows[0].coupling else {
        panic!("family A is coupled by networks")
    };
    let signal = g.raw(&x.iter().map(|x| x[0]).collect::<Vec<_>>());
    for dim in 0..2 {
        let seen: Moments = signal.iter().map(|s| s[dim]).collect();
        assert!(seen.mean().abs() < 0.1 && (seen.std() - 1.0).abs() < 0.15, "{seen:?}");
    }
}

#[test]
fn states_of_the_processes_stay_within_six_and_are_seldom_held_there() {
    let (mut held, mut all) = (0, 0);
    for seed in 0..8 {
        let (_, x) = run(&mut plant(Family::B, 4, seed), 4000);
        for state in x.iter().flatten().flatten() {
            assert!(state.abs() <= 6.0);
            held += usize::from(state.abs() == 6.0);
            all += 1;
        }
    }
    // Two tanks with several parents pulling the same way do reach the bound.
    assert!(held * 10 < all, "{held} of {all}");
}

#[test]
fn measurement_noise_has_its_share_of_the_channel() {
    let share = |family, seed| {
        let plant = plant(family, 4, seed);
        let (y, x) = run(&mut plant.clone().without_faults(), 9000);
        let clients = (0..4).map(move |client| {
            let shares = (0..CHANNELS).map(|channel| {
                let clean = |t: usize| plant.clients[client].clean(x[t][client])[channel];
                let noise: Moments =
                    (0..9000).map(|t| row(&y[t], client)[channel] - clean(t)).collect();
                let signal: Moments = (0..9000).map(clean).collect();
                noise.std() / signal.std()
            });
            shares.sum::<f64>() / CHANNELS as f64
        });
        clients.collect::<Vec<_>>()
    };
    for seed in 0..2 {
        assert!(share(Family::B, seed).iter().all(|s| (0.07..0.14).contains(s)));
        assert!(share(Family::H, seed).iter().all(|s| (0.03..0.8).contains(s)));
    }
    let plants = (0..8).map(|seed| plant(Family::H, 10, seed));
    let shares: Moments = plants
        .flat_map(|p| (0..10).map(move |c| p.noise_std(c)[0] / p.channel_std(c)[0]))
        .collect();
    assert!((shares.mean() - 0.325).abs() < 0.06 && (shares.std() - 0.159).abs() < 0.03);
    let paper = paper_plant();
    assert!((paper.noise_std(0)[2] / paper.channel_std(0)[2] - 0.1).abs() < 1e-12);
}

#[test]
fn faulty_sensors_do_what_their_fault_says() {
    let mut seen = [0; 3];
    for seed in 0..3 {
        let plant = hastened(plant(Family::B, 2, seed));
        let steps = all_faults(&plant);
        let (sound, _) = run(&mut plant.clone().without_faults(), steps);
        let (faulty, _) = run(&mut plant.clone(), steps);
        // Only faults of the state precede and would blur what is compared here.
        for fault in plant.faults().iter().filter(|f| !f.kind.moves_the_state()) {
            let std = plant.channel_std(fault.root);
            for channel in 0..CHANNELS {
                let show = |y: &[Vec<f64>], t: usize| row(&y[t], fault.root)[channel];
                let added = |t| show(&faulty, t) - show(&sound, t);
                match fault.kind {
                    FaultKind::StuckAt { channels } if channels[channel] => {
                        let first = show(&faulty, fault.start);
                        assert!(fault.steps().all(|t| show(&faulty, t) == first));
                        assert_ne!(show(&faulty, fault.steps().end), first);
                        seen[0] += 1;
                    }
                    FaultKind::Bias { offset_std } => {
                        let change = added(fault.start + 1) - added(fault.start - 1);
                        let wanted = offset_std[channel] * std[channel];
                        assert!((change - wanted).abs() < 0.3 * std[channel]);
                        seen[1] += 1;
                    }
                    FaultKind::NoiseBurst { channels } if channels[channel] => {
                        let noise: Moments = fault.steps().map(added).collect();
                        assert!((0.2..0.9).contains(&(noise.std() / std[channel])));
                        seen[2] += 1;
                    }
                    _ => {}
                }
            }
        }
    }
    assert!(seen.iter().all(|n| *n > 20), "{seen:?}");
}
