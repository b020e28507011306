use std::ops::ControlFlow;
use std::path::Path;
use std::sync::LazyLock;

use crate::engine::prepare::{Prepared, prepare};
use crate::engine::run::{Run, RunError};
use crate::evidence::influence::InfluenceGraph;
use crate::fact::Fact;
use crate::session::{Mark, Mode, Session, Tier};

/// The first attack of a day, watched by models made in a moment.
const SESSION: &str = "Session(about: \"a morning\", \
    source: Plant(attacks: Day, history_h: 6, hours: 2), \
    ranges: (fit: (until: \"+3h\"), calibration: (from: \"+3h\", until: \"+6h\"), \
        replay: (from: \"+6h\")), edges: [(\"P1\", \"P2\"), (\"P2\", \"P3\")], \
    model: (federation: Online(passes: 1)), sampling: (decimate: Every(5)))";

static PREPARED: LazyLock<(Session, Prepared)> = LazyLock::new(|| {
    let session = Session::parse("morning", Path::new(""), SESSION).expect("a sound session");
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("kept.safetensors");
    let prepared = prepare(&session, &file, &mut |_| ControlFlow::Continue(())).expect("prepared");
    (session, prepared)
});

fn facts(session: &Session, prepared: &Prepared) -> Vec<Fact> {
    let until = Some(Mark::Step(1200));
    let mut run = Run::open(session, prepared, Mode::Evidence, until).expect("a built-in plant");
    let mut facts = Vec::new();
    while run.step(&mut facts).expect("a built-in plant has no bad rows").is_some() {}
    facts.extend(run.end());
    facts
}

fn incidents(facts: &[Fact]) -> impl Iterator<Item = &crate::fact::Incident> {
    facts.iter().filter_map(|fact| match fact {
        Fact::Opened(incident) | Fact::Updated(incident) | Fact::Closed(incident) => Some(incident),
        _ => None,
    })
}

#[test]
fn with_states_a_run_says_the_same_every_time_and_its_ledger_has_no_end() {
    let (session, prepared) = &*PREPARED;
    let mut session = session.clone();
    session.privacy.epsilon_flag = Some(4.0);
    let symbols = facts(&session, prepared);
    session.thresholds.tier = Tier::States;
    let states = facts(&session, prepared);
    assert_eq!(states, facts(&session, prepared));
    assert!(incidents(&states).next().is_some(), "the morning has attacks");
    let ledger = |facts: &[Fact]| -> Vec<(bool, u64)> {
        let of = |fact: &Fact| match fact {
            Fact::Ledger(ledger) => Some((ledger.epsilon.is_some(), ledger.releases)),
            _ => None,
        };
        facts.iter().filter_map(of).collect()
    };
    for (symbols, states) in ledger(&symbols).into_iter().zip(ledger(&states)) {
        assert!(symbols.0 && !states.0, "states in the clear have no finite price");
        assert!(states.1 > symbols.1, "{states:?} {symbols:?}");
    }
}

#[test]
fn without_a_graph_there_is_no_tier_of_states_and_the_reason_is_said() {
    let (session, prepared) = &*PREPARED;
    let mut session = session.clone();
    session.thresholds.tier = Tier::States;
    let mut prepared = prepared.clone();
    let names = prepared.influences.graph.clients.clone();
    prepared.influences.foreteller = None;
    prepared.influences.graph = InfluenceGraph::unlearned(&names, 5.0, "nobody spoke");
    let Err(RunError::Tier(why)) = Run::open(&session, &prepared, Mode::Evidence, None) else {
        panic!("nothing foretells")
    };
    assert_eq!(why, "nobody spoke");
}

#[test]
fn effects_are_explained_by_known_influences_and_sensors_are_named_only_where_allowed() {
    let (session, prepared) = &*PREPARED;
    let counted: u64 = prepared.influences.released[0].iter().map(|counted| counted.count).sum();
    assert!(counted > 0, "learning is counted");
    let graph = &prepared.influences.graph;
    let plain = facts(session, prepared);
    for incident in incidents(&plain) {
        assert!(incident.sensors.is_empty());
        for effect in &incident.effects {
            let place = |name: &String| graph.clients.iter().position(|client| client == name);
            let root = incident.root.as_ref().and_then(place);
            let path = root.zip(place(&effect.client)).and_then(|(a, b)| graph.path(a, b));
            assert_eq!(effect.via.is_some(), path.is_some(), "{incident:?}");
        }
    }
    let mut session = session.clone();
    session.privacy.reveal_sensor = true;
    let telling = facts(&session, prepared);
    let opened = |fact: &Fact| match fact {
        Fact::Opened(incident) if incident.root.is_some() => Some(incident.sensors.len()),
        _ => None,
    };
    let named: Vec<usize> = telling.iter().filter_map(opened).collect();
    assert!(!named.is_empty() && named.iter().all(|n| *n == 3), "{named:?}");
}
