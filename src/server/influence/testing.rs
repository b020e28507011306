//! Coupled clients whose influences are known.

use rand_distr::{Distribution as _, StandardNormal};

use super::heard::Heard;
use crate::base::rng;
use crate::nn::kernel::isa::Isa;
use crate::nn::proprietary::Filter;
use crate::nn::train::test_support::small_filter;
use crate::privacy::{Hooks, Provenance};
use crate::session::PrivacySettings;
use crate::site::line::Line;
use crate::site::messenger::{Messenger, Said, Trace};
use crate::wire::{Memory, Sender, Wire as _};

/// From, to, delay in steps, share of the state that is passed on.
pub(crate) type Edge = (usize, usize, usize, f32);

/// Two states and three sensors each: x(t) = 0.7 x(t−1) + Σ c x_parent(t − delay) + noise, and what
/// is new about x shows in the whitened residual. `push` is added to both states of a client.
pub(crate) fn traces(
    clients: usize,
    edges: &[Edge],
    steps: usize,
    seed: u64,
    push: impl Fn(usize, usize) -> f32,
) -> Vec<Trace> {
    let mut rng = rng::stream(seed, 0);
    let mut normal = || -> f32 { StandardNormal.sample(&mut rng) };
    let mut past: Vec<Vec<[f32; 2]>> = vec![vec![[0.0; 2]; steps]; clients];
    let mut traces = vec![Trace::new(2, 3); clients];
    for t in 0..steps {
        for m in 0..clients {
            let mut e = [normal() + push(m, t), normal() + push(m, t)];
            for (from, _, delay, share) in edges.iter().filter(|edge| edge.1 == m) {
                if let Some(then) = t.checked_sub(*delay) {
                    e[0] += share * past[*from][then][0];
                    e[1] -= share * past[*from][then][1];
                }
            }
            let before = if t > 0 { past[m][t - 1] } else { [0.0; 2] };
            let x = [0.7 * before[0] + e[0], 0.7 * before[1] + e[1]];
            past[m][t] = x;
            let noise = [0.1 * normal(), 0.1 * normal(), 0.1 * normal()];
            let r_w = [e[0] + noise[0], e[1] + noise[1], 0.5 * (e[0] - e[1]) + noise[2]];
            traces[m].push(Some(Said { x_hat: &x, e: &e, r_w: &r_w }));
        }
    }
    traces
}

/// A line for each of these clients, without noise.
pub(crate) fn lines(fit: &[Trace]) -> Vec<Line> {
    let privacy = PrivacySettings::default();
    let hooks = Hooks { privacy: &privacy, provenance: Provenance::Seeded };
    let model = Filter::new(&small_filter(3, false, 1), Isa::detect()).expect("a small filter");
    fit.iter()
        .enumerate()
        .map(|(m, trace)| {
            let sender = Sender::new(m, &model).expect("the paper's filter may send");
            Line::new(sender, Messenger::fit(trace), &hooks, 1).expect("nothing to protect")
        })
        .collect()
}

/// What a server hears of these stretches.
pub(crate) fn heard(lines: &mut [Line], traces: &[Trace]) -> Vec<Heard> {
    let told = lines.iter_mut().zip(traces).enumerate();
    told.map(|(m, (line, trace))| {
        let (mut wire, mut heard) = (Memory::default(), Heard::new(line.states()));
        for message in line.teach_stretch(trace) {
            wire.send(message.expect("numbers are finite")).expect("memory takes everything");
        }
        heard.receive(m, trace.steps(), std::iter::from_fn(|| wire.receive()));
        heard
    })
    .collect()
}

pub(crate) fn names(clients: usize) -> Vec<String> {
    (1..=clients).map(|m| format!("C{m}")).collect()
}
