use std::ops::ControlFlow;
use std::path::Path;
use std::sync::LazyLock;

use jiff::Timestamp;

use crate::engine::prepare::{Prepared, prepare};
use crate::engine::run::{Run, RunError, RunOptions};
use crate::fact::Fact;
use crate::server::influence::InfluenceGraph;
use crate::session::{Mark, Mode, Session, Tier};
use crate::wire::testing::{Tampered, message};
use crate::wire::{Content, Message, Numbers};

/// The first attack of a day, watched by models made in a moment.
const SESSION: &str = "Session(about: \"a morning\", \
    source: Plant(attacks: Day, history_h: 6, hours: 2), \
    ranges: (fit: (until: \"+3h\"), calibration: (from: \"+3h\", until: \"+6h\"), \
        replay: (from: \"+6h\")), edges: [(\"P1\", \"P2\"), (\"P2\", \"P3\")], \
    model: (federation: Online(passes: 1)), sampling: (decimate: Every(5)))";

/// The session, with models that serve either tier.
static PREPARED: LazyLock<(Session, Prepared)> = LazyLock::new(|| {
    let session = Session::parse("morning", Path::new(""), SESSION).expect("a sound session");
    let mut states = session.clone();
    states.thresholds.tier = Tier::States;
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("kept.safetensors");
    let prepared = prepare(&states, &file, &mut |_| ControlFlow::Continue(())).expect("prepared");
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
    facts.iter().filter_map(Fact::incident)
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

/// Four clients that influence each other: 3,000 normal steps, then a fault every hundred.
const COUPLED: &str = "Session(about: \"four coupled clients\", \
    source: Twin(family: B, clients: 4), sampling: (decimate: Every(1)), \
    model: (proprietary: Paper, epochs: 1, federation: Batched(rounds: 1)), \
    thresholds: (arl0: \"3000s\", tier: States), seed: 51)";

/// The client that lies.
const LIAR: usize = 1;

/// Steps that a replayed lie repeats, and for which a stepping lie stays.
const STRETCH: usize = 300;

/// What a liar says instead of its state at a step; none when it says nothing.
type StateLie = fn(u64, &[f32]) -> Option<Vec<f32>>;

/// What it says instead of a level; none when it says nothing.
type SymbolLie = fn(u64, u8) -> Option<u8>;

fn all(z: &[f32], value: f32) -> Vec<f32> {
    vec![value; z.len()]
}

fn ends(positive: bool) -> f32 {
    if positive { 5.0 } else { -5.0 }
}

/// What arrives of a message in place of what was sent. A liar that lies about its level says that
/// nothing of it is left unexplained.
fn lied(
    sent: &Message,
    about_states: Option<StateLie>,
    about_symbols: Option<SymbolLie>,
) -> Option<Message> {
    let step = sent.step();
    let content = match (sent.content(), about_states, about_symbols) {
        (Content::Summary { z, .. }, Some(lie), _) => {
            Content::Summary { z: Numbers::from_vec(lie(step, z)?), epsilon: None }
        }
        (Content::Symbol { own, beside, raised }, _, Some(lie)) => {
            let beside = beside.map(|_| 0);
            Content::Symbol { own: lie(step, *own)?, beside, raised: *raised }
        }
        (honest, _, _) => honest.clone(),
    };
    Some(message(sent.client(), step, content))
}

/// A way to lie, about states and about symbols.
struct Lie {
    name: &'static str,
    states: StateLie,
    symbols: SymbolLie,
}

const LIES: [Lie; 8] = [
    Lie { name: "always the same", states: |_, z| Some(all(z, 1.0)), symbols: |_, _| Some(1) },
    Lie {
        name: "inverted",
        states: |_, z| Some(z.iter().map(|z| -z).collect()),
        symbols: |_, level| Some(4 - level),
    },
    Lie {
        name: "replayed",
        states: |t, z| Some(all(z, ((t as usize % STRETCH) as f32 * 0.1).sin())),
        symbols: |t, _| Some(if t % 100 < 20 { 4 } else { 0 }),
    },
    Lie { name: "huge", states: |_, z| Some(all(z, 1e18)), symbols: |_, _| Some(u8::MAX) },
    Lie { name: "not a number", states: |_, z| Some(all(z, f32::NAN)), symbols: |_, _| Some(99) },
    Lie {
        name: "swinging",
        states: |t, z| Some(all(z, ends(t.is_multiple_of(2)))),
        symbols: |t, _| Some(if t.is_multiple_of(2) { 4 } else { 0 }),
    },
    Lie {
        name: "stepping",
        states: |t, z| Some(all(z, ends((t as usize / STRETCH).is_multiple_of(2)))),
        symbols: |t, _| Some(if (t as usize / STRETCH).is_multiple_of(2) { 4 } else { 0 }),
    },
    Lie { name: "silent", states: |_, _| None, symbols: |_, _| None },
];

/// The onset and the root of every incident that names one.
fn named(
    session: &Session,
    prepared: &Prepared,
    about_states: Option<StateLie>,
    about_symbols: Option<SymbolLie>,
) -> Vec<(Timestamp, usize)> {
    let wire = Tampered::new(move |arrived: &mut Vec<Message>| {
        *arrived = std::mem::take(arrived)
            .into_iter()
            .filter_map(|sent| {
                if sent.client() == LIAR {
                    lied(&sent, about_states, about_symbols)
                } else {
                    Some(sent)
                }
            })
            .collect();
    });
    let options = RunOptions {
        until: Some(Mark::Step(4000)),
        wire: Box::new(wire),
        ..RunOptions::new(Mode::Evidence)
    };
    let mut run = Run::open_with(session, prepared, options).expect("a synthetic plant");
    let mut facts = Vec::new();
    while run.step(&mut facts).expect("synthetic data has no bad rows").is_some() {}
    run.end();
    let incidents = run.annunciator().incidents().iter();
    incidents.filter_map(|incident| Some((incident.onset, incident.root?))).collect()
}

#[test]
fn whoever_lies_about_states_or_symbols_no_innocent_becomes_the_root_in_tier_2() {
    let states = Session::parse("coupled", Path::new(""), COUPLED).expect("a sound session");
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("kept.safetensors");
    let prepared = prepare(&states, &file, &mut |_| ControlFlow::Continue(())).expect("prepared");
    let mut symbols = states.clone();
    symbols.thresholds.tier = Tier::Symbols;
    let mut said = 0;
    for Lie { name, states: about_states, symbols: lie } in LIES {
        for about_symbols in [None, Some(lie)] {
            let both = named(&states, &prepared, Some(about_states), about_symbols);
            let alone = named(&symbols, &prepared, None, about_symbols);
            for incident in both {
                assert!(alone.contains(&incident), "{name}: {incident:?} is not in {alone:?}");
                said += 1;
            }
        }
    }
    assert!(said > 50, "there was enough to be wrong about: {said}");
}
