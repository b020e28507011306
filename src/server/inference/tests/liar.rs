//! One liar among four, whose symbols are five grades or one bit that passes a randomised response.

use super::*;
use crate::evidence::symbol::RandomisedResponse;

/// What one client says instead of the truth, which is `level` of `highest`.
type Lie = fn(step: usize, level: f64, highest: f64) -> f64;

const LIES: [(&str, Lie); 7] = [
    ("always 1", |_, _, _| 1.0),
    ("always the highest", |_, _, highest| highest),
    ("inverted", |_, level, highest| highest - level),
    ("replayed", |step, _, highest| if step % 100 < 20 { highest } else { 0.0 }),
    ("huge", |_, _, _| 1e18),
    ("not a number", |_, _, _| f64::NAN),
    ("alternating", |step, _, highest| if step.is_multiple_of(2) { 0.0 } else { highest }),
];

/// Four honest clients with symbols of a grading at an ε but for `liar`, who lies from step 300 on; what is new since.
fn among_four(
    (grading, epsilon): (&Grading, Option<f64>),
    lie: Lie,
    liar: usize,
    seed: u64,
    fault: Option<usize>,
) -> Vec<Change> {
    let mut rng = rng::stream(seed, 7);
    let mut draw = |a: f64| {
        let p = rng.random::<f64>().powf(1.0 / a);
        grading.symbol(grading.cuts().iter().filter(|cut| p < **cut).count())
    };
    let calibration: Vec<Vec<Option<Symbol>>> =
        (0..4).map(|_| (0..3000).map(|_| draw(1.0)).collect()).collect();
    let mut noise = rng::stream(seed, 8);
    let enrolments: Vec<Enrolment> = calibration
        .iter()
        .map(|symbols| Enrolment::of_symbols(symbols, grading, epsilon, &mut noise))
        .collect();
    let reach = Reach::from_edges(4, [(0, 1), (1, 2), (3, 2)]);
    let mut server = Inference::new(grading.clone(), Rules::with_arl0(ARL0), &enrolments, reach);
    let mut inbox = Inbox::new(4, grading.clone(), 0);
    let response = RandomisedResponse::new(grading.levels(), epsilon);
    let highest = grading.highest().level() as f64;
    let mut changes = Vec::new();
    for t in 0..1500 {
        for m in 0..4 {
            let at_fault = fault == Some(m) && (1200..1230).contains(&t);
            let truth = draw(if at_fault { 0.1 } else { 1.0 }).expect("a level of the grading");
            let told = response.rehearse(truth, &mut noise).level() as f64;
            let lies = m == liar && t >= 300;
            let told = if lies { lie(t, told, highest) } else { told };
            receive(&mut inbox, m, t as u64, told);
        }
        let new = server.step(inbox.reports()).to_vec();
        changes.extend(new.into_iter().filter(|_| t >= 300));
        inbox.turn_to(t as u64 + 1);
    }
    changes
}

fn named(changes: &[Change]) -> Vec<usize> {
    roots(changes).into_iter().flatten().collect()
}

/// Five grades as they are, and one bit at ε 4 and 2.
fn manners() -> [(Grading, Option<f64>); 3] {
    let bit = |epsilon| (Grading::one_bit(), Some(epsilon));
    [(Grading::five_levels(), None), bit(4.0), bit(2.0)]
}

#[test]
fn one_liar_among_four_never_makes_another_client_the_named_root() {
    for (grading, epsilon) in manners() {
        for (name, lie) in LIES {
            for liar in 0..4 {
                for seed in 0..3 {
                    let told =
                        |lie| named(&among_four((&grading, epsilon), lie, liar, 5000 + seed, None));
                    // A false alarm that comes without the liar is not his doing.
                    let honest = told(|_, level, _| level);
                    let blamed = told(lie).into_iter();
                    let others: Vec<usize> =
                        blamed.filter(|root| *root != liar && !honest.contains(root)).collect();
                    assert!(
                        others.is_empty(),
                        "{name} by {liar}, ε {epsilon:?}, seed {seed}: {others:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn beside_a_liar_among_four_a_real_fault_is_never_pinned_on_an_innocent() {
    for (grading, epsilon) in manners() {
        for (name, lie) in LIES {
            for (liar, guilty) in [(0, 3), (3, 0), (2, 1), (1, 3)] {
                let told =
                    |lie| named(&among_four((&grading, epsilon), lie, liar, 6000, Some(guilty)));
                let (honest, blamed) = (told(|_, level, _| level), told(lie));
                let fair = |root: &usize| [liar, guilty].contains(root) || honest.contains(root);
                assert!(honest.contains(&guilty), "the fault is found: {honest:?}");
                assert!(
                    blamed.iter().all(fair),
                    "{name} by {liar}, fault at {guilty}, ε {epsilon:?}: {blamed:?}"
                );
            }
        }
    }
}
