use proptest::prelude::*;

use super::foretell::Source;
use super::learn::{Learned, learn};
use super::regression::{Stretch, System};
use super::testing::{Edge, heard, lines, names, traces};
use super::*;

fn quiet(_: usize, _: usize) -> f32 {
    0.0
}

fn learned(clients: usize, edges: &[Edge], steps: usize) -> Learned {
    let (fit, held_out) =
        (traces(clients, edges, steps, 1, quiet), traces(clients, edges, steps, 2, quiet));
    let mut lines = lines(&fit);
    let fit = heard(&mut lines, &fit);
    let held_out = heard(&mut lines, &held_out);
    learn(&names(clients), 5.0, &fit, &held_out)
}

fn learned_edges(graph: &InfluenceGraph) -> Vec<(usize, usize)> {
    graph.edges().map(|edge| (edge.from, edge.to)).collect()
}

#[test]
fn an_influence_is_found_with_its_direction_and_its_delay() {
    let graph = learned(2, &[(0, 1, 3, 0.4)], 900).graph;
    assert_eq!(learned_edges(&graph), [(0, 1)], "{graph:?}");
    let influence = graph.between(0, 1).expect("a pair");
    assert_eq!(influence.delay_steps, Some(3));
    assert!(influence.evidence > 5.0 && influence.strength > 0.1, "{influence:?}");
    let path = graph.path(0, 1).expect("an edge is a path");
    assert_eq!((path.delay_s, path.learned), (Some(15.0), true));
    assert_eq!(graph.path(1, 0), None);
}

#[test]
fn influence_is_passed_on_over_a_chain_and_its_delays_add_up() {
    let graph = learned(3, &[(0, 1, 2, 0.5), (1, 2, 1, 0.5)], 900).graph;
    assert_eq!(learned_edges(&graph), [(0, 1), (1, 2)], "{graph:?}");
    let path = graph.path(0, 2).expect("a chain");
    assert_eq!((path.clients, path.delay_s), (vec![0, 1, 2], Some(15.0)));
    assert!(graph.reach(|pair| pair.learned).reaches(0, 2));
}

#[test]
fn clients_that_have_nothing_to_do_with_each_other_have_no_edge() {
    let graph = learned(3, &[], 900).graph;
    assert_eq!(learned_edges(&graph), []);
    assert!(graph.pairs.iter().all(|pair| pair.delay_steps.is_none()));
}

#[test]
fn what_cannot_be_learned_is_said() {
    let why = |learned: Learned| {
        assert!(learned.foreteller.is_none() && learned.graph.edges().next().is_none());
        learned.graph.unlearned.expect("a reason")
    };
    assert_eq!(why(learned(2, &[], 100)), "all clients spoke at 95 steps only");
    assert!(why(learned(1, &[], 300)).contains("nobody"));
    let many = learn(&names(17), 5.0, &[], &[]);
    assert!(why(many).contains("more than 16 clients"));
}

#[test]
fn a_declared_influence_is_an_edge_whose_delay_may_be_unknown() {
    let edge = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    let graph = learned(3, &[(0, 1, 2, 0.5)], 900).graph;
    let graph = graph.with_declared(&[edge("C2", "C3"), edge("C1", "nobody")]);
    let path = graph.path(0, 2).expect("learned, then declared");
    assert_eq!((path.clients, path.delay_s, path.learned), (vec![0, 1, 2], None, false));
    assert!(graph.between(1, 2).is_some_and(|pair| pair.declared && !pair.learned));
}

#[test]
fn a_graph_comes_back_from_json_as_it_was() {
    let graph = learned(2, &[(0, 1, 1, 0.4)], 400).graph;
    let text = serde_json::to_string(&graph).expect("written");
    let back: InfluenceGraph = serde_json::from_str(&text).expect("read");
    assert_eq!(learned_edges(&back), learned_edges(&graph));
    assert_eq!(serde_json::to_string(&back).expect("written"), text);
}

#[test]
fn leaving_a_block_out_is_the_same_as_fitting_without_it() {
    let fit = traces(3, &[(0, 1, 2, 0.5), (2, 1, 1, 0.3)], 500, 3, quiet);
    let mut lines = lines(&fit);
    let heard = heard(&mut lines, &fit);
    let sources: Vec<Source> = heard
        .iter()
        .map(|h| Source::fit(h.states(), (0..h.steps()).filter_map(|t| h.z(t))))
        .collect();
    let stretch = Stretch::new(&sources, &heard);
    let system = System::fit(&stretch).expect("a solution");
    let block: Vec<usize> = stretch.block(0).collect();
    let rest: Vec<usize> = (0..stretch.width()).filter(|i| !block.contains(i)).collect();
    let by_formula = system.coefficients() - system.without(&block);
    let by_fit = system.alone(&rest, stretch.outputs(1)).expect("a solution");
    for (row, place) in rest.iter().enumerate() {
        for (column, output) in stretch.outputs(1).enumerate() {
            let (a, b) = (by_formula[(*place, output)], by_fit[(row, column)]);
            assert!((a - b).abs() < 1e-8, "{a} {b}");
        }
    }
    assert!(block.iter().all(|i| by_formula.row(*i).amax() < 1e-8));
}

#[test]
fn the_order_of_the_clients_does_not_matter() {
    let edges = [(0, 1, 2, 0.5), (1, 2, 1, 0.5)];
    let (fit, held_out) = (traces(3, &edges, 600, 1, quiet), traces(3, &edges, 600, 2, quiet));
    let of = |order: [usize; 3]| {
        let turned = |traces: &[crate::site::messenger::Trace]| order.map(|m| traces[m].clone());
        let mut lines = lines(&turned(&fit));
        let fit = heard(&mut lines, &turned(&fit));
        let held_out = heard(&mut lines, &turned(&held_out));
        learn(&names(3), 5.0, &fit, &held_out).graph
    };
    let straight = of([0, 1, 2]);
    let order = [2, 0, 1];
    let turned = of(order);
    for pair in &turned.pairs {
        let same = straight.between(order[pair.from], order[pair.to]).expect("a pair");
        assert!((pair.evidence - same.evidence).abs() < 1e-6, "{pair:?} {same:?}");
        assert_eq!((pair.learned, pair.delay_steps), (same.learned, same.delay_steps));
    }
}

fn any_graph() -> impl Strategy<Value = InfluenceGraph> {
    (2usize..7).prop_flat_map(|clients| {
        let figures = prop::collection::vec((-0.01f64..0.1, -5.0f64..30.0), clients * clients);
        figures.prop_map(move |figures| {
            let mut graph = InfluenceGraph::unlearned(&names(clients), 1.0, "");
            for (pair, (strength, evidence)) in graph.pairs.iter_mut().zip(figures) {
                (pair.strength, pair.evidence) = (strength, evidence);
            }
            graph
        })
    })
}

proptest! {
    #[test]
    fn a_learned_graph_has_no_cycle_and_its_strongest_influence(mut graph in any_graph()) {
        graph.settle();
        let reach = graph.reach(|pair| pair.learned);
        for pair in graph.edges() {
            prop_assert!(pair.is_evident() && !reach.reaches(pair.to, pair.from));
        }
        let evident = graph.pairs.iter().filter(|pair| pair.is_evident());
        if let Some(first) = evident.max_by(|a, b| a.evidence.total_cmp(&b.evidence)) {
            prop_assert!(first.learned);
        }
        // Whoever is left out would have closed a cycle.
        for pair in graph.pairs.iter().filter(|pair| pair.is_evident() && !pair.learned) {
            prop_assert!(reach.reaches(pair.to, pair.from));
        }
    }

    #[test]
    fn there_is_a_path_exactly_where_there_is_reach(mut graph in any_graph()) {
        graph.settle();
        let reach = graph.reach(|pair| pair.learned);
        for (from, to) in ordered_pairs(graph.clients.len()) {
            let path = graph.path(from, to);
            prop_assert_eq!(path.is_some(), reach.reaches(from, to));
            if let Some(path) = path {
                prop_assert_eq!((path.clients[0], path.clients[path.clients.len() - 1]), (from, to));
                let steps = path.clients.windows(2);
                prop_assert!(steps.into_iter().all(|w| graph.between(w[0], w[1]).is_some_and(|e| e.learned)));
            }
        }
    }
}
