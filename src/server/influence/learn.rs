//! From the summaries that the server received to the graph and to a model that predicts.

use super::foretell::{Part, Source, StatePredictor};
use super::heard::Heard;
use super::regression::{Stretch, System};
use super::{Influence, InfluenceGraph, LAGS, MOST_CLIENTS, ordered_pairs};

/// Fewer rows than this give no influence.
const FEWEST_ROWS: usize = 200;

/// Why influence among so many clients is not learned at all.
pub(crate) fn refusal(clients: usize) -> Option<String> {
    match clients {
        0 | 1 => Some("there is nobody to influence".to_owned()),
        2..=MOST_CLIENTS => None,
        _ => Some(format!("more than {MOST_CLIENTS} clients: the regression would be too large")),
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Learned {
    pub(crate) graph: InfluenceGraph,
    /// What foretells; none where nothing could be learned.
    pub(crate) foreteller: Option<StatePredictor>,
}

/// Fits on one stretch how every client's past predicts every other's ε, and judges by another.
pub(crate) fn learn(
    clients: &[String],
    period_s: f64,
    fit: &[Heard],
    held_out: &[Heard],
) -> Learned {
    let unlearned = |why: String| Learned {
        graph: InfluenceGraph::unlearned(clients, period_s, why),
        foreteller: None,
    };
    if let Some(why) = refusal(clients.len()) {
        return unlearned(why);
    }
    let sources: Vec<Source> = fit
        .iter()
        .map(|heard| Source::fit(heard.states(), (0..heard.steps()).filter_map(|t| heard.z(t))))
        .collect();
    let (fit, held_out) = (Stretch::new(&sources, fit), Stretch::new(&sources, held_out));
    let rows = fit.rows().min(held_out.rows());
    if rows < FEWEST_ROWS {
        return unlearned(format!("all clients spoke at {rows} steps only"));
    }
    let Some(system) = System::fit(&fit) else {
        return unlearned("the regression has no solution".to_owned());
    };
    let mut graph = InfluenceGraph {
        clients: clients.to_vec(),
        period_s,
        pairs: pairs(&system, &held_out, clients.len()),
        unlearned: None,
    };
    graph.settle();
    let parts = (0..clients.len()).map(|to| part(&system, &fit, &graph, to)).collect();
    Learned { graph, foreteller: Some(StatePredictor::new(sources, parts)) }
}

fn pairs(system: &System, held_out: &Stretch<'_>, clients: usize) -> Vec<Influence> {
    let without: Vec<_> =
        (0..clients).map(|n| system.without(&held_out.block(n).collect::<Vec<usize>>())).collect();
    let judged = system.judge(held_out, &without);
    let mut pairs: Vec<Influence> = ordered_pairs(clients)
        .map(|(from, to)| Influence {
            from,
            to,
            strength: judged.strength(from, to),
            evidence: judged.evidence(from, to),
            delay_steps: None,
            learned: false,
            declared: false,
        })
        .collect();
    for from in 0..clients {
        let of_client = |pair: &Influence| pair.from == from && pair.is_evident();
        if pairs.iter().any(of_client) {
            // With one lag alone: whichever loses least carries most.
            let but_one: Vec<_> = (0..LAGS)
                .map(|lag| {
                    let kept = held_out.lag(from, lag);
                    let left_out = held_out.block(from).filter(|i| !kept.contains(i));
                    system.without(&left_out.collect::<Vec<usize>>())
                })
                .collect();
            let judged = system.judge(held_out, &but_one);
            for pair in pairs.iter_mut().filter(|pair| of_client(pair)) {
                let loss = |lag: &usize| judged.strength(*lag, pair.to);
                let best = (0..LAGS).min_by(|a, b| loss(a).total_cmp(&loss(b)));
                pair.delay_steps = best.map(|lag| lag as u32 + 1);
            }
        }
    }
    pairs
}

/// What foretells the ε of `to`: the strongest of its influences alone, so that it depends on one
/// client's word; beside its own past, which takes its share in the fit and is then left to the
/// client's own whitening.
fn part(system: &System, fit: &Stretch<'_>, graph: &InfluenceGraph, to: usize) -> Option<Part> {
    let influences = graph.pairs.iter().filter(|pair| pair.to == to && pair.learned);
    let from = influences.max_by(|a, b| a.strength.total_cmp(&b.strength))?.from;
    let (own, other) = (fit.block(to), fit.block(from));
    let regressors: Vec<usize> = own.clone().chain(other.clone()).collect();
    let solution = system.alone(&regressors, fit.outputs(to))?;
    let rows = solution.rows(own.len(), other.len());
    let coefficients = rows.column_iter().flat_map(|c| c.iter().copied().collect::<Vec<_>>());
    Some(Part { from, coefficients: coefficients.collect() })
}
