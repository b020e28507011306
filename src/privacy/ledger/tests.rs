use super::*;
use crate::privacy::Bound;
use crate::privacy::budget::Budget;
use crate::privacy::mechanism::{Clip, Gaussian};
use crate::privacy::memory::FilterMemory;
use crate::privacy::randomness::Randomness;
use crate::privacy::release::{Estimate, Flag, Unprotected as _};
use crate::session::privacy::{AtZero, Sigma};

const DELTA: f64 = 1e-6;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_691_798_400 + second).unwrap()
}

fn terms(budget: Option<Budget>) -> Terms {
    Terms { delta: DELTA, memory: FilterMemory::NONE, budget }
}

fn flag(epsilon: f64, random: &mut Randomness) -> Guarded<Flag> {
    Response::binary(epsilon).unwrap().flag(Flag(false), random).unwrap()
}

/// A ledger with one flag of `epsilon` at each of `seconds`, and its text.
fn filled(epsilon: f64, seconds: impl IntoIterator<Item = i64>) -> (Ledger, String) {
    let mut random = Randomness::seeded(1, 0);
    let mut ledger = Ledger::open("P1", terms(None), at(0)).unwrap();
    for second in seconds {
        let guarded = flag(epsilon, &mut random);
        ledger
            .enter(at(second), What::ProprietaryFlag, Purpose::Routine, guarded)
            .expect("no budget, no refusal");
    }
    let text = ledger.take_lines();
    (ledger, text)
}

#[test]
fn a_day_of_flags_is_composed_over_every_scope() {
    let (ledger, _) = filled(0.1, (0..86_400).step_by(10));
    let now = at(86_399);
    let spent = |scope| ledger.spent(scope, now);
    let exact = |n| Tally::of(Spend::Response { epsilon: 0.1, symbols: 2 }, n).epsilon(DELTA).0;
    assert_eq!(spent(Scope::Sample).releases, 1);
    assert_eq!(spent(Scope::Minute).releases, 6);
    assert_eq!(spent(Scope::Hour).releases, 366);
    assert_eq!(spent(Scope::Day).releases, 8640);
    assert_eq!(spent(Scope::Lifetime).epsilon.to_bits(), exact(8640).to_bits());
    assert!((spent(Scope::Day).epsilon - 86.442_283_594_611_3).abs() < 1e-6);
    let costs: Vec<f64> = Scope::ALL.iter().map(|s| spent(*s).epsilon).collect();
    assert!(costs.is_sorted(), "{costs:?}");
    // An hour of silence later the hour is nearly free, but not the worst one.
    let later = at(86_400 + 7200);
    assert_eq!(ledger.spent(Scope::Hour, later).releases, 0);
    assert_eq!(ledger.worst(Scope::Hour).releases, 366);
    assert_eq!(ledger.spent(Scope::Lifetime, later).releases, 8640);
}

#[test]
fn a_budget_of_what_is_noised_counts_that_alone_admits_nothing_else_and_is_read_back() {
    let mut random = Randomness::seeded(1, 0);
    let mut ledger = Ledger::open("P1", terms(None), at(0)).unwrap();
    let enter = |ledger: &mut Ledger, second, guarded| {
        ledger.enter(at(second), What::ProprietaryFlag, Purpose::Routine, guarded).is_some()
    };
    assert!(enter(&mut ledger, 1, Flag(true).unprotected()));
    let budget = Budget::new(1.0, Scope::Day, AtZero::Stop).unwrap();
    assert!(ledger.set_budget(Some(budget), at(2)).is_err(), "it cannot cover what was told");
    ledger.set_budget(Some(budget.of_noised()), at(2)).unwrap();
    assert!(!enter(&mut ledger, 2, Flag(true).unprotected()), "noise is yet to begin");
    let mut sent = 0;
    while enter(&mut ledger, 3 + sent, flag(0.25, &mut random)) {
        sent += 1;
    }
    assert_eq!(sent, 4);
    assert!(ledger.counted_epsilon(at(9)) <= 1.0);
    assert!(ledger.spent(Scope::Day, at(9)).epsilon.is_infinite(), "what was told stays told");
    let restored = Ledger::restore(ledger.take_lines().as_bytes(), None).unwrap();
    assert_eq!(restored.terms().budget, Some(budget.of_noised()));
}

#[test]
fn a_value_becomes_sendable_only_with_its_line() {
    let mut random = Randomness::operating_system();
    let mut ledger = Ledger::open("P2", terms(None), at(0)).unwrap();
    let first = ledger.take_lines();
    let clip = Clip::Box { bound: 5.0, dimension: 2 };
    let mechanism = Gaussian::new(clip, Sigma::Analytic, 1.0, 1e-5).unwrap();
    let state = [0.3, -0.7];
    let guarded = mechanism.noised(&Estimate::of_state(&state), &mut random).unwrap();
    let entered = ledger.enter(at(1), What::ProprietaryState, Purpose::Routine, guarded).unwrap();
    let line: serde_json::Value = serde_json::from_str(&ledger.take_lines()).unwrap();
    assert_eq!(line["client"], "P2");
    assert_eq!(line["what"], "x_c");
    assert_eq!(line["mechanism"], "gaussian");
    assert!((line["sensitivity"].as_f64().unwrap() - mechanism.sensitivity()).abs() < 1e-9);
    assert!((line["sigma"].as_f64().unwrap() - mechanism.sigma()).abs() < 1e-9);
    assert_eq!(line["randomness"], "operating system");
    assert_eq!(line["prev"], serde_json::from_str::<serde_json::Value>(&first).unwrap()["hash"]);
    assert_eq!(entered.value().as_slice().len(), 2);
    let sent: Vec<f64> = serde_json::from_value(serde_json::to_value(&entered).unwrap()).unwrap();
    let apart = |(sent, state): (&f64, &f64)| (sent - state).abs();
    assert!(sent.iter().zip(&state).map(apart).all(|apart| apart > 1e-6), "{sent:?}");
    assert!(ledger.provenance().is_private());
}

#[test]
fn one_value_in_the_clear_or_from_a_seed_is_never_forgotten() {
    let (mut ledger, _) = filled(1.0, 0..5);
    assert_eq!(ledger.provenance().label(), "seeded: not private");
    assert!(ledger.spent(Scope::Lifetime, at(5)).epsilon.is_finite());
    let clear = Flag(true).unprotected();
    ledger.enter(at(6), What::AugmentedFlag, Purpose::Routine, clear).unwrap();
    assert!(ledger.take_lines().contains("\"mechanism\":\"clear\""));
    let spent = ledger.spent(Scope::Lifetime, at(1_000_000));
    assert!(spent.epsilon.is_infinite());
    assert_eq!(spent.bound, Bound::Unbounded);
    assert!(ledger.spent(Scope::Minute, at(1_000_000)).epsilon < 1.0);
}

#[test]
fn a_restored_ledger_goes_on_where_it_ended() {
    let (mut ledger, mut text) = filled(1.098_612_288_668_109_8, 0..100);
    let mut again = Ledger::restore(text.as_bytes(), Some(ledger.head())).unwrap();
    assert_eq!(again.head(), ledger.head());
    for scope in Scope::ALL {
        let (a, b) = (ledger.spent(scope, at(99)), again.spent(scope, at(99)));
        assert_eq!(a.releases, b.releases);
        assert!((a.epsilon - b.epsilon).abs() < 1e-9, "{scope:?}");
    }
    let mut random = Randomness::seeded(2, 0);
    let next = |random: &mut Randomness| flag(1.098_612_288_668_109_8, random);
    let line = |ledger: &mut Ledger, guarded| {
        ledger.enter(at(100), What::AugmentedFlag, Purpose::Routine, guarded).unwrap();
        ledger.take_lines()
    };
    let (a, b) = (line(&mut ledger, next(&mut random)), line(&mut again, next(&mut random)));
    assert_eq!(a, b);
    text += &a;
    assert_eq!(Ledger::restore(text.as_bytes(), None).unwrap().head(), ledger.head());
    assert_eq!(again.spent(Scope::Lifetime, at(100)).bound, Bound::ExactBinomial);
}

#[test]
fn a_ledger_of_someone_else_or_of_nobody_is_not_restored() {
    assert_eq!(
        Ledger::restore(&b""[..], None).unwrap_err().why,
        Why::OutOfPlace("the ledger is empty")
    );
    let mut chain = Chain::default();
    let open = chain.append(at(0), "P1", Entry::Opened(terms(None)));
    let other = chain.append(at(1), "P2", Entry::Budget { budget: None });
    let broken = Ledger::restore(format!("{open}{other}").as_bytes(), None).unwrap_err();
    assert_eq!((broken.line, broken.sound_bytes), (2, open.len() as u64));
    let mut senseless = Chain::default();
    let first = senseless.append(at(0), "P1", Entry::Opened(terms(None)));
    let second = senseless.append(
        at(1),
        "P1",
        Entry::Released {
            what: What::Symbol,
            spend: Spend::Response { epsilon: -1.0, symbols: 2 },
            p: None,
            randomness: Provenance::OperatingSystem,
        },
    );
    assert_eq!(Ledger::restore(format!("{first}{second}").as_bytes(), None).unwrap_err().line, 2);
    let mut headless = Chain::default();
    let line = headless.append(at(0), "P1", Entry::Budget { budget: None });
    assert_eq!(Ledger::restore(line.as_bytes(), None).unwrap_err().line, 1);
}

/// Enters a flag a second until the first refusal, for at most `seconds`.
fn until_refused(ledger: &mut Ledger, from: i64, seconds: i64, purpose: Purpose) -> Option<i64> {
    let mut random = Randomness::seeded(3, 0);
    (from..from + seconds).find(|second| {
        let guarded = flag(0.5, &mut random);
        ledger.enter(at(*second), What::Symbol, purpose, guarded).is_none()
    })
}

#[test]
fn a_stopped_budget_is_never_overdrawn() {
    let budget = Budget::new(20.0, Scope::Lifetime, AtZero::Stop).unwrap();
    let mut ledger = Ledger::open("P1", terms(Some(budget)), at(0)).unwrap();
    let stopped = until_refused(&mut ledger, 0, 1000, Purpose::Routine).unwrap();
    assert!(ledger.spent(Scope::Lifetime, at(stopped)).epsilon <= 20.0);
    let one_more = Tally::of(Spend::Response { epsilon: 0.5, symbols: 2 }, stopped as u64 + 1);
    assert!(one_more.epsilon(DELTA).0 > 20.0);
    let spend = Spend::Response { epsilon: 0.5, symbols: 2 };
    assert!(!ledger.admits(at(stopped + 100_000), Purpose::Alarm, spend));
    assert_eq!(ledger.exhaustion(at(stopped)), Exhaustion::Now);
}

#[test]
fn a_slower_budget_lets_through_what_its_window_allows() {
    let budget = Budget::new(10.0, Scope::Minute, AtZero::Slower).unwrap();
    let mut ledger = Ledger::open("P1", terms(Some(budget)), at(0)).unwrap();
    let mut random = Randomness::seeded(4, 0);
    let mut entered = 0;
    for second in 0..600 {
        let guarded = flag(0.5, &mut random);
        if ledger.enter(at(second), What::Symbol, Purpose::Routine, guarded).is_some() {
            entered += 1;
        }
        assert!(ledger.spent(Scope::Minute, at(second)).epsilon <= 10.0);
    }
    assert!((150..300).contains(&entered), "{entered} of 600 releases");
    assert!(ledger.worst(Scope::Minute).epsilon <= 10.0);
}

#[test]
fn the_reserve_is_for_alarms() {
    let at_zero = AtZero::AlarmsOnly { reserve: 5.0 };
    let budget = Budget::new(20.0, Scope::Lifetime, at_zero).unwrap();
    let mut ledger = Ledger::open("P1", terms(Some(budget)), at(0)).unwrap();
    let routine = until_refused(&mut ledger, 0, 1000, Purpose::Routine).unwrap();
    assert!(ledger.spent(Scope::Lifetime, at(routine)).epsilon <= 15.0);
    let alarms = until_refused(&mut ledger, routine, 1000, Purpose::Alarm).unwrap();
    assert!(alarms > routine + 5, "{routine} and {alarms}");
    assert!(ledger.spent(Scope::Lifetime, at(alarms)).epsilon <= 20.0);
}

#[test]
fn the_time_to_exhaustion_is_when_it_happens() {
    let budget = Budget::new(60.0, Scope::Lifetime, AtZero::Stop).unwrap();
    let mut ledger = Ledger::open("P1", terms(Some(budget)), at(0)).unwrap();
    assert_eq!(ledger.exhaustion(at(0)), Exhaustion::Never);
    assert_eq!(until_refused(&mut ledger, 0, 50, Purpose::Routine), None);
    let Exhaustion::Seconds(left) = ledger.exhaustion(at(49)) else {
        panic!("a budget of 60 is neither gone nor endless");
    };
    assert!(ledger.burn_per_hour(at(49)) > 60.0);
    let stopped = until_refused(&mut ledger, 50, 10_000, Purpose::Routine).unwrap() - 50;
    assert!((left - stopped as f64).abs() <= 2.0, "said {left}, was {stopped}");
    let silent = Ledger::open("P1", terms(None), at(0)).unwrap();
    assert_eq!(silent.exhaustion(at(0)), Exhaustion::NoBudget);
    assert!(silent.burn_per_hour(at(0)) == 0.0);
}

#[test]
fn a_window_that_holds_out_once_holds_out_for_ever() {
    let budget = Budget::new(60.0, Scope::Minute, AtZero::Slower).unwrap();
    let mut ledger = Ledger::open("P1", terms(Some(budget)), at(0)).unwrap();
    assert_eq!(until_refused(&mut ledger, 0, 3000, Purpose::Routine), None);
    assert_eq!(ledger.exhaustion(at(2999)), Exhaustion::Never);
}

#[test]
fn a_budget_below_what_is_spent_is_refused_and_a_change_is_written_down() {
    let (mut ledger, mut text) = filled(0.5, 0..100);
    let spent = ledger.spent(Scope::Lifetime, at(100)).epsilon;
    let budget = |epsilon| Budget::new(epsilon, Scope::Lifetime, AtZero::Stop).unwrap();
    let refused = ledger.set_budget(Some(budget(0.9 * spent)), at(100));
    assert!(matches!(refused, Err(PrivacyError::BelowSpent { .. })));
    ledger.set_budget(Some(budget(2.0 * spent)), at(100)).unwrap();
    text += &ledger.take_lines();
    let again = Ledger::restore(text.as_bytes(), Some(ledger.head())).unwrap();
    let kept = again.terms().budget.unwrap();
    assert!((kept.epsilon - 2.0 * spent).abs() < 1e-9);
    assert_eq!(kept.over, Scope::Lifetime);
}

#[test]
fn a_filter_that_remembers_makes_one_sample_dearer() {
    let memory = FilterMemory::new(0.9, 1.0, 0.1).unwrap();
    let clip = Clip::Box { bound: 5.0, dimension: 2 };
    let mechanism = Gaussian::with_sigma(clip, 100.0).unwrap();
    let mut random = Randomness::seeded(5, 0);
    let mut spent = |memory| {
        let terms = Terms { delta: DELTA, memory, budget: None };
        let mut ledger = Ledger::open("P1", terms, at(0)).unwrap();
        for second in 0..10 {
            let state = [0.0; 2];
            let guarded = mechanism.noised(&Estimate::of_state(&state), &mut random).unwrap();
            let entered =
                ledger.enter(at(second), What::ProprietaryState, Purpose::Routine, guarded);
            entered.unwrap();
            let guarded = flag(0.2, &mut random);
            let entered =
                ledger.enter(at(second), What::ProprietaryFlag, Purpose::Routine, guarded);
            entered.unwrap();
        }
        let tally = ledger.tally(Scope::Sample, at(9));
        (tally, ledger.spent(Scope::Lifetime, at(9)))
    };
    let (without, lifetime) = spent(FilterMemory::NONE);
    let (with, same_lifetime) = spent(memory);
    let squares = |tally: &Tally| -> f64 {
        tally.entries().filter_map(|(s, n)| s.strength().map(|mu| mu * mu * n as f64)).sum()
    };
    assert!((squares(&with) / squares(&without) - memory.squared()).abs() < 1e-9);
    let flags = |tally: &Tally| -> u64 {
        tally.entries().filter(|(s, _)| s.strength().is_none()).map(|(_, n)| n).sum()
    };
    assert_eq!((flags(&without), flags(&with)), (1, 1 + memory.later_symbols()));
    assert!(with.epsilon(DELTA).0 > without.epsilon(DELTA).0);
    assert_eq!(lifetime, same_lifetime);
}

#[test]
fn where_nothing_is_forgotten_a_sample_costs_what_everything_after_it_costs() {
    let mut random = Randomness::seeded(6, 0);
    let terms = Terms { delta: DELTA, memory: FilterMemory::ENDLESS, budget: None };
    let mut ledger = Ledger::open("P1", terms, at(0)).unwrap();
    for second in 0..300 {
        let guarded = flag(0.2, &mut random);
        let entered = ledger.enter(at(second), What::ProprietaryFlag, Purpose::Routine, guarded);
        entered.unwrap();
    }
    let text = ledger.take_lines();
    for scope in Scope::ALL {
        assert_eq!(ledger.worst(scope).releases, 300, "{scope:?}");
        assert_eq!(ledger.spent(scope, at(299)).releases, 300, "{scope:?}");
    }
    let again = Ledger::restore(text.as_bytes(), None).unwrap();
    assert!(again.terms().memory.is_endless(), "{text}");
    // A budget of a minute is one of everything.
    let budget = Budget::new(20.0, Scope::Minute, AtZero::Slower).unwrap();
    let terms = Terms { budget: Some(budget), ..terms };
    let mut ledger = Ledger::open("P1", terms, at(0)).unwrap();
    let stopped = until_refused(&mut ledger, 0, 1000, Purpose::Routine).unwrap();
    assert_eq!(until_refused(&mut ledger, 100_000, 10, Purpose::Routine), Some(100_000));
    assert!(stopped > 20);
}

#[test]
fn another_delta_and_another_memory_are_written_down() {
    let (mut ledger, mut text) = filled(0.5, 0..100);
    let before = ledger.spent(Scope::Lifetime, at(100)).epsilon;
    ledger.set_delta(1e-9, at(100)).unwrap();
    assert!(ledger.spent(Scope::Lifetime, at(100)).epsilon > before);
    let memory = FilterMemory::new(0.5, 1.0, 0.1).unwrap().behind(5, 1);
    ledger.set_memory(memory, at(100)).unwrap();
    text += &ledger.take_lines();
    let again = Ledger::restore(text.as_bytes(), Some(ledger.head())).unwrap();
    assert_eq!(again.terms(), ledger.terms());
    // What is spent at the budget's own δ may be too much at a smaller one.
    let budget = Budget::new(before + 0.01, Scope::Lifetime, AtZero::Stop).unwrap();
    let (mut ledger, _) = filled(0.5, 0..100);
    ledger.set_budget(Some(budget), at(100)).unwrap();
    assert!(matches!(ledger.set_delta(1e-12, at(100)), Err(PrivacyError::BelowSpent { .. })));
    assert!(ledger.set_delta(2.0, at(100)).is_err());
}
