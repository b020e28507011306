mod accident;
mod course;
mod informed;
mod joining;
mod liar;
mod properties;

use super::*;
use crate::base::rng;
use crate::evidence::enrolment::Remainder;
use crate::evidence::symbol::Symbol;
use crate::server::inbox::Inbox;
use crate::wire::Content;
use crate::wire::testing::message;
use proptest::prelude::*;

use informed::{pairs, ring, ring_server};

const ARL0: f64 = 3000.0;

fn at(level: usize) -> Symbol {
    Grading::five_levels().symbol(level).expect("a level of the grading")
}

/// Symbols of p-values that follow Beta(a, 1); a = 1 is nominal.
fn draw(a: f64, rng: &mut rng::Rng) -> Symbol {
    let p = rng.random::<f64>().powf(1.0 / a);
    at(Grading::five_levels().cuts().iter().filter(|c| p < **c).count())
}

fn enrolments(clients: usize) -> Vec<Enrolment> {
    let grading = Grading::five_levels();
    (0..clients)
        .map(|m| {
            let mut rng = rng::stream(99, m as u64);
            let symbols: Vec<_> = (0..4000).map(|_| Some(draw(1.0, &mut rng))).collect();
            Enrolment::of_symbols(&symbols, &grading, None, &mut rng)
        })
        .collect()
}

/// A number comes as the symbol of a client: one that is no level is none.
fn receive(inbox: &mut Inbox, client: usize, step: u64, number: f64) {
    let own = if number.is_nan() { u8::MAX } else { number as u8 };
    inbox.take(&message(client, step, Content::Symbol { own, beside: None, raised: false }));
}

fn server(clients: usize, edges: &[(usize, usize)]) -> Inference {
    let reach = Reach::from_edges(clients, edges.iter().copied());
    Inference::new(Grading::five_levels(), Rules::with_arl0(ARL0), &enrolments(clients), reach)
}

/// Nominal reports, with p-values of Beta(a) at `client` during `window`.
fn world(
    clients: usize,
    steps: usize,
    seed: u64,
    faults: &[(usize, std::ops::Range<usize>, f64)],
) -> Vec<Vec<Report>> {
    let mut rng = rng::stream(seed, 7);
    (0..steps)
        .map(|t| {
            (0..clients)
                .map(|m| {
                    let fault = faults.iter().find(|(c, window, _)| *c == m && window.contains(&t));
                    Report::Symbol(draw(fault.map_or(1.0, |f| f.2), &mut rng))
                })
                .collect()
        })
        .collect()
}

fn run(server: &mut Inference, world: &[Vec<Report>]) -> Vec<Change> {
    let mut changes: Vec<Change> = world.iter().flat_map(|r| server.step(r).to_vec()).collect();
    changes.extend_from_slice(server.end(Closing::EndOfRun));
    changes
}

fn closed(changes: &[Change]) -> Vec<(Disturbance, Closing)> {
    changes
        .iter()
        .filter_map(|c| match c {
            Change::Closed(incident, closing) => Some((incident.clone(), *closing)),
            _ => None,
        })
        .collect()
}

fn roots(changes: &[Change]) -> Vec<Option<usize>> {
    changes
        .iter()
        .filter_map(|c| match c {
            Change::Opened(incident) | Change::Frozen(incident) | Change::Closed(incident, _) => {
                Some(incident.root)
            }
            _ => None,
        })
        .collect()
}

#[test]
fn a_fault_is_found_named_dated_and_closed() {
    let mut server = server(4, &[]);
    let changes = run(&mut server, &world(4, 1000, 1, &[(2, 500..520, 0.1)]));
    let closed = closed(&changes);
    assert_eq!(closed.len(), 1, "{closed:?}");
    let (incident, closing) = &closed[0];
    assert_eq!((incident.root, *closing), (Some(2), Closing::Quiet));
    assert!((498..=504).contains(&incident.onset), "{incident:?}");
    assert!(
        incident.opened <= 508 && (518..=524).contains(&incident.last_evidence),
        "{incident:?}"
    );
    assert!(incident.posterior[2] > 0.99);
    assert_eq!((incident.root, incident.affected.len()), (Some(2), 0));
    assert!(incident.affected.iter().all(|effect| effect.client != 0));
}

#[test]
fn effects_join_their_root_with_their_own_onset() {
    let faults = [(1, 500..540, 0.1), (3, 506..540, 0.25)];
    let mut server = server(4, &[]);
    let changes = run(&mut server, &world(4, 800, 2, &faults));
    let closed = closed(&changes);
    assert_eq!(closed.len(), 1, "an effect that lasts is no incident of its own: {closed:?}");
    let incident = &closed[0].0;
    assert_eq!(incident.root, Some(1));
    assert_eq!(incident.root, Some(1));
    assert!(incident.affected.iter().any(|effect| effect.client == 3));
    let effect = incident.affected.iter().find(|e| e.client == 3).expect("client 3 is affected");
    assert!((503..=512).contains(&effect.onset), "{effect:?}");
}

#[test]
fn the_root_is_final_after_a_few_steps_and_what_would_now_be_said_is_shown() {
    // A short fault, then a long and strong one elsewhere while the first incident is open.
    let faults = [(0, 500..508, 0.1), (1, 508..560, 0.03)];
    let mut server = server(4, &[(0, 1)]);
    let (mut frozen, mut disagreed) = (None, false);
    for reports in world(4, 560, 3, &faults) {
        for change in server.step(&reports) {
            if let Change::Frozen(incident) = change {
                frozen = incident.root;
            }
        }
        if let Some(incident) = server.incident().filter(|i| i.frozen) {
            assert_eq!(incident.root, frozen, "a final root stays");
            disagreed |= incident.would_now_say != incident.root;
        }
    }
    assert_eq!(frozen, Some(0));
    assert!(disagreed, "all evidence comes to speak for the second");
}

#[test]
fn a_declared_edge_lets_the_effect_speak_for_its_root() {
    // The child shows more than its parent, whose own evidence is weak.
    let faults = [(0, 500..540, 0.35), (1, 500..540, 0.2)];
    let right = |edges: &[(usize, usize)]| {
        (0..40)
            .filter(|seed| {
                let mut server = server(4, edges);
                let changes = run(&mut server, &world(4, 600, 100 + seed, &faults));
                closed(&changes).first().is_some_and(|(incident, _)| incident.root == Some(0))
            })
            .count()
    };
    let (without, with) = (right(&[]), right(&[(0, 1)]));
    assert!(with > without + 5, "{without} without, {with} with the edge, of 40");
}

#[test]
fn a_change_that_stays_is_closed_as_one_and_its_client_is_heard_again_once_it_lives_with_it() {
    let mut server = server(4, &[(1, 2)]);
    let (change, later) = ((1, 300..451, 0.1), [(1, 700..730, 0.1), (2, 1000..1030, 0.1)]);
    // Once it is closed, client 1 takes what it shows as normal: its symbols are ordinary again.
    let world = world(4, 1500, 4, &[change, later[0].clone(), later[1].clone()]);
    let closed = closed(&run(&mut server, &world));
    let said: Vec<_> = closed.iter().map(|(incident, closing)| (incident.root, *closing)).collect();
    let expected = [
        (Some(1), Closing::PersistentChange),
        (Some(1), Closing::Quiet),
        (Some(2), Closing::Quiet),
    ];
    assert_eq!(said, expected, "{closed:?}");
    assert_eq!(server.standing(1), Standing::Trusted);
}

#[test]
fn an_incident_whose_root_falls_silent_is_over_for_want_of_data() {
    let mut server = server(4, &[]);
    let mut world = world(4, 900, 7, &[(3, 500..900, 0.1)]);
    world.iter_mut().skip(520).for_each(|reports| reports[3] = Report::Missing);
    let closed = closed(&run(&mut server, &world));
    assert_eq!(closed.len(), 1, "{closed:?}");
    assert_eq!((closed[0].0.root, closed[0].1), (Some(3), Closing::NoData));
}

#[test]
fn bystanders_are_seldom_taken_for_effects() {
    let joined: usize = (0..40)
        .map(|seed| {
            let mut server = server(4, &[]);
            let changes = run(&mut server, &world(4, 700, 7000 + seed, &[(1, 500..620, 0.1)]));
            let closed = closed(&changes);
            assert!(closed.iter().any(|(incident, _)| incident.root == Some(1)), "seed {seed}");
            closed.iter().map(|(incident, _)| incident.affected.len()).sum::<usize>()
        })
        .sum();
    assert!(joined <= 8, "{joined} in 40 incidents of 120 steps");
}

#[test]
fn a_client_that_the_root_cannot_reach_has_a_fault_of_its_own_and_is_heard_when_the_root_is_quiet()
{
    // 0 → 1 and 3 → 2; what 3 shows is no effect of 1, nor can it explain 1. It outlasts it.
    let faults = [(1, 500..540, 0.05), (3, 510..620, 0.1)];
    let mut server = server(4, &[(0, 1), (3, 2)]);
    let (mut own, mut changes) = (0, Vec::new());
    for reports in world(4, 700, 8, &faults) {
        changes.extend(server.step(&reports).to_vec());
        own += usize::from(server.has_own_fault(3));
        assert!(!server.has_own_fault(0) && !server.has_own_fault(1) && !server.has_own_fault(2));
    }
    assert!(own > 10, "{own} steps");
    let closed = closed(&changes);
    let roots: Vec<_> = closed.iter().map(|(incident, _)| incident.root).collect();
    assert_eq!(roots, [Some(1), Some(3)], "{closed:?}");
    let effects = &closed[0].0.affected;
    assert!(effects.iter().all(|effect| effect.client != 3), "it was never an effect");
    assert!(closed[1].0.opened < 560, "nothing glows on that was no effect: {closed:?}");
}

#[test]
fn what_was_accepted_can_be_taken_back_and_then_ends_as_any_other() {
    let mut server = server(4, &[]);
    let world = world(4, 600, 9, &[(2, 300..400, 0.1)]);
    let mut closed_after = Vec::new();
    for (t, reports) in world.iter().enumerate() {
        closed_after.extend(closed(server.step(reports)));
        if t == 320 {
            let number = server.incident().expect("the fault is on").number;
            server.end(Closing::Accepted);
            assert!(server.incident().is_none());
            assert!(server.take_back() && !server.take_back());
            assert_eq!(server.incident().map(|incident| incident.number), Some(number));
        }
    }
    assert_eq!(closed_after.len(), 1, "{closed_after:?}");
    let (incident, closing) = &closed_after[0];
    assert_eq!((incident.root, *closing), (Some(2), Closing::Quiet));
    assert!((395..410).contains(&incident.last_evidence), "{incident:?}");
}

#[test]
fn nominal_symbols_raise_alarms_no_more_often_than_wanted() {
    let alarms: usize = (0..5)
        .map(|seed| {
            let mut server = server(4, &[]);
            closed(&run(&mut server, &world(4, 12_000, 50 + seed, &[]))).len()
        })
        .sum();
    // 60 000 steps at one in 3000 would be 20; the bound is conservative.
    assert!(alarms <= 20, "{alarms}");
}

#[test]
fn a_client_that_vanishes_leaves_the_verdicts_of_the_rest_alone() {
    let world = world(4, 1000, 5, &[(2, 500..520, 0.1)]);
    let vanished: Vec<Vec<Report>> = world
        .iter()
        .enumerate()
        .map(|(t, reports)| {
            let mut reports = reports.clone();
            if t >= 200 {
                reports[0] = Report::Missing;
            }
            reports
        })
        .collect();
    let named = |world: &[Vec<Report>]| {
        let mut server = server(4, &[]);
        let closed = closed(&run(&mut server, world));
        closed.into_iter().map(|(i, c)| (i.root, i.onset, i.opened, c)).collect::<Vec<_>>()
    };
    assert_eq!(named(&world), named(&vanished));
}

/// What a client may do instead of telling the truth.
#[derive(Debug, Clone, Copy)]
enum Lie {
    Always(f64),
    Inverted,
    Replayed,
    Huge,
    NotANumber,
    Alternating,
}

const LIES: [Lie; 8] = [
    Lie::Always(1.0),
    Lie::Always(3.0),
    Lie::Always(4.0),
    Lie::Inverted,
    Lie::Replayed,
    Lie::Huge,
    Lie::NotANumber,
    Lie::Alternating,
];

impl Lie {
    fn tell(self, t: usize, past: &[f64]) -> f64 {
        match self {
            Lie::Always(level) => level,
            Lie::Inverted => 4.0 - past[t],
            Lie::Replayed => past[t % 100],
            Lie::Huge => 1e18,
            Lie::NotANumber => f64::NAN,
            Lie::Alternating => [0.0, 4.0][t % 2],
        }
    }
}

/// Client `liar` lies from step 300 on; its own truth holds a fault at 20..40 to be replayed. Gives what
/// changed since then, who had a fault of its own, and whether the liar was found unreliable.
fn with_liar(
    lie: Lie,
    liar: usize,
    seed: u64,
    faults: &[(usize, std::ops::Range<usize>, f64)],
) -> (Vec<Change>, Vec<usize>, bool) {
    let mut faults = faults.to_vec();
    faults.push((liar, 20..40, 0.1));
    let world = world(5, 1500, seed, &faults);
    let level = |report: &Report| match report {
        Report::Symbol(symbol) => symbol.level() as f64,
        _ => f64::NAN,
    };
    let truth: Vec<f64> = world.iter().map(|reports| level(&reports[liar])).collect();
    let mut server = server(5, &[(0, 1), (1, 2), (3, 2)]);
    let mut inbox = Inbox::new(5, Grading::five_levels(), 0);
    let (mut changes, mut own_faults, mut unreliable) = (Vec::new(), Vec::new(), false);
    for (t, reports) in world.iter().enumerate() {
        for (m, report) in reports.iter().enumerate() {
            let told = if m == liar && t >= 300 { lie.tell(t, &truth) } else { level(report) };
            receive(&mut inbox, m, t as u64, told);
        }
        let new = server.step(inbox.reports()).to_vec();
        if t >= 300 {
            changes.extend(new);
            own_faults.extend((0..5).filter(|m| server.has_own_fault(*m)));
            unreliable |= server.standing(liar) == Standing::Unreliable;
        }
        inbox.turn_to(t as u64 + 1);
    }
    (changes, own_faults, unreliable)
}

#[test]
fn one_liar_among_five_never_makes_another_client_the_named_root() {
    for lie in LIES {
        for liar in 0..5 {
            for seed in 0..3 {
                let (changes, own_faults, _) = with_liar(lie, liar, 1000 + seed, &[]);
                let named = roots(&changes).into_iter().flatten().chain(own_faults);
                let others: Vec<_> = named.filter(|root| *root != liar).collect();
                assert!(others.is_empty(), "{lie:?} by {liar}, seed {seed}: named {others:?}");
            }
        }
    }
}

#[test]
fn beside_a_liar_a_real_fault_is_never_pinned_on_an_innocent() {
    for lie in LIES {
        for (liar, guilty, felt) in [(0, 3, 2), (3, 0, 1), (2, 4, 3), (3, 0, 2), (2, 0, 1)] {
            // Somebody downstream of the guilty one feels it.
            let faults = [(guilty, 1200..1230, 0.1), (felt, 1204..1230, 0.3)];
            let faults = &faults[..if guilty == 4 { 1 } else { 2 }];
            let (changes, own_faults, _) = with_liar(lie, liar, 2000, faults);
            let named: Vec<_> = roots(&changes).into_iter().flatten().chain(own_faults).collect();
            let innocent = named.iter().any(|root| *root != liar && *root != guilty);
            assert!(!innocent, "{lie:?} by {liar}, fault at {guilty}: named {named:?}");
        }
    }
}

#[test]
fn those_who_send_nonsense_are_called_unreliable_and_the_others_are_still_heard() {
    for lie in [Lie::Huge, Lie::NotANumber, Lie::Always(4.0), Lie::Inverted] {
        let (changes, _, unreliable) = with_liar(lie, 4, 3000, &[(0, 1200..1230, 0.1)]);
        assert!(unreliable, "{lie:?}");
        assert_eq!(roots(&changes).last(), Some(&Some(0)), "{lie:?}");
    }
}

#[test]
fn who_may_be_explained_by_a_liar_is_not_named() {
    // Client 0 reaches 1 and 2; once it cannot be believed, a fault of 2 may be its doing.
    let (changes, ..) = with_liar(Lie::NotANumber, 0, 4000, &[(2, 1200..1230, 0.1)]);
    let last = closed(&changes).pop().expect("the fault is seen").0;
    assert_eq!(last.root, None);
    assert!(last.root.is_none() && last.affected.iter().any(|effect| effect.client == 2));
}

#[test]
fn a_new_enrolment_is_the_new_normal() {
    let mut server = server(4, &[]);
    let world = world(4, 400, 6, &[(1, 200..400, 0.1)]);
    for reports in &world[..260] {
        server.step(reports);
    }
    assert_eq!(server.incident().and_then(|i| i.root), Some(1));
    assert!(matches!(server.end(Closing::Accepted), [Change::Closed(_, Closing::Accepted)]));
    let mut rng = rng::stream(1, 1);
    let new_normal: Vec<_> = (0..3000).map(|_| Some(draw(0.1, &mut rng))).collect();
    let grading = Grading::five_levels();
    let enrolment = Enrolment::of_symbols(&new_normal, &grading, None, &mut rng);
    server.enrol_again(1, enrolment);
    let changes: Vec<_> = world[260..].iter().flat_map(|r| server.step(r).to_vec()).collect();
    assert!(changes.is_empty(), "{changes:?}");
}

#[test]
fn what_the_server_remembers_does_not_grow_with_the_steps_of_a_what_if() {
    // The work of a step is over what is remembered: it must be the same all day.
    let world = world(4, 17_280, 8, &[(2, 500..520, 0.1)]);
    let mut server = server(4, &[]);
    server.set_arl0(500.0);
    let (begin, rest) = world.split_at(1000);
    assert!(!closed(&run(&mut server, begin)).is_empty(), "the fault is an incident");
    let remembered = server.recent.len();
    run(&mut server, rest);
    assert_eq!(server.recent.len(), remembered);
    assert_eq!((server.own.len(), server.felt.len()), (4, 4));
}

fn any_report() -> impl Strategy<Value = Report> {
    prop_oneof![
        6 => (0usize..5).prop_map(|l| Report::Symbol(at(l))),
        1 => Just(Report::Missing),
        1 => Just(Report::Invalid),
    ]
}
