use super::*;
use crate::privacy::Budget;
use crate::privacy::budget::Terms;
use crate::privacy::memory::FilterMemory;
use crate::session::privacy::Scope;

const PARAMS: SparseVectorParams =
    SparseVectorParams { epsilon: 8.0, burst: 4, quiet_steps: 1000.0 };

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_691_798_400 + second).unwrap()
}

fn ledger(budget: Option<Budget>) -> Ledger {
    let terms = Terms { delta: 1e-6, memory: FilterMemory::NONE, budget };
    Ledger::unwritten("P1", terms).unwrap()
}

fn releaser(epsilon: Option<f64>, policy: SendPolicy) -> Releaser {
    Releaser::new(epsilon, 5, policy, PARAMS, Randomness::seeded(7, 0)).unwrap()
}

/// What is heard when the level is `level(t)` and scores follow it.
fn heard(
    releaser: &mut Releaser,
    ledger: &mut Ledger,
    steps: i64,
    level: impl Fn(i64) -> u8,
) -> Vec<Release<u8>> {
    (0..steps)
        .map(|t| {
            let score = if level(t) > 1 { 1.0 } else { -1.0 };
            let mut account = Account { ledger, time: at(t) };
            releaser.symbol(&mut account, Symbol(level(t)), score).map(|said| said.value().0)
        })
        .collect()
}

fn releases(ledger: &Ledger, what: What) -> u64 {
    ledger.counts().iter().filter(|c| c.what == what).map(|c| c.count).sum()
}

#[test]
fn every_step_is_said_and_paid_for_once() {
    let mut ledger = ledger(None);
    let said = heard(&mut releaser(Some(2.0), SendPolicy::EveryStep), &mut ledger, 50, |_| 3);
    assert!(said.iter().all(|s| matches!(s, Release::Symbol(_))));
    assert_eq!(ledger.live().releases, 50);
    let clear = heard(&mut releaser(None, SendPolicy::EveryStep), &mut ledger, 3, |t| t as u8);
    assert_eq!(clear, [Release::Symbol(0), Release::Symbol(1), Release::Symbol(2)]);
    assert!(ledger.live().epsilon.is_infinite());
}

#[test]
fn a_window_is_said_once_by_its_strongest_step() {
    let mut ledger = ledger(None);
    let mut releaser = releaser(Some(50.0), SendPolicy::Window(4));
    let said = heard(&mut releaser, &mut ledger, 8, |t| u8::from(t == 5) * 4);
    let silence = Release::Nothing;
    assert_eq!(said[..4], [silence, silence, silence, Release::Symbol(0)]);
    assert_eq!(said[4..], [silence, silence, silence, Release::Symbol(4)]);
    assert_eq!(releases(&ledger, What::Symbol), 2);
}

#[test]
fn a_watch_pays_for_its_arming_and_for_what_follows_an_alarm() {
    let mut ledger = ledger(None);
    let mut releaser = releaser(Some(2.0), SendPolicy::WhileRaised);
    let said = heard(&mut releaser, &mut ledger, 300, |t| if t < 200 { 0 } else { 4 });
    let raised: Vec<usize> = (0..300).filter(|t| matches!(said[*t], Release::Raised(_))).collect();
    assert!(
        said[..190].iter().filter(|s| matches!(s, Release::Quiet(_))).count() > 180,
        "{said:?}"
    );
    let first = *raised.iter().find(|t| **t >= 200).expect("a long fault raises the watch");
    assert!(first < 240, "raised at {first}");
    assert!(said[first + 1..first + 4].iter().all(|s| matches!(s, Release::Symbol(_))));
    let armings = releases(&ledger, What::Watch);
    assert!(armings == raised.len() as u64 || armings == raised.len() as u64 + 1);
    let symbols = said.iter().filter(|s| matches!(s, Release::Raised(_) | Release::Symbol(_)));
    assert_eq!(releases(&ledger, What::Symbol), symbols.count() as u64);
}

#[test]
fn a_spent_budget_ends_it_and_what_is_kept_for_alarms_serves_the_watch() {
    let budget = |at_zero| Budget::new(60.0, Scope::Lifetime, at_zero).ok();
    let mut stopped = ledger(budget(AtZero::Stop));
    let said = heard(&mut releaser(Some(2.0), SendPolicy::EveryStep), &mut stopped, 300, |_| 0);
    let last = said.iter().rposition(|s| *s != Release::Nothing).expect("some are said");
    assert!(said[..last].iter().all(|s| matches!(s, Release::Symbol(_))), "no gap before the end");
    assert!(last < 100 && stopped.live().epsilon <= 60.0);

    let mut kept = ledger(budget(AtZero::AlarmsOnly { reserve: 40.0 }));
    let mut releaser = releaser(Some(2.0), SendPolicy::EveryStep);
    let said = heard(&mut releaser, &mut kept, 300, |t| if t < 250 { 0 } else { 4 });
    assert!(said.iter().any(|s| matches!(s, Release::Quiet(_))));
    assert!(said[250..].iter().any(|s| matches!(s, Release::Raised(_))), "{said:?}");
    assert!(kept.live().epsilon <= 60.0);
}

#[test]
fn z_c_and_z_a_can_have_an_epsilon_of_their_own_and_the_ledger_prices_each() {
    let (mut ledger, steps) = (ledger(None), 4000);
    let random = Randomness::seeded(7, 0);
    let mut releaser = Releaser::new(Some(4.0), 2, SendPolicy::EveryStep, PARAMS, random).unwrap();
    releaser.set_epsilon_a(Some(1.0)).unwrap();
    let (mut lies_c, mut lies_a) = (0, 0);
    for t in 0..steps {
        let mut account = Account { ledger: &mut ledger, time: at(t) };
        let said = releaser.flags(&mut account, Flag(true), Flag(false));
        let Release::Symbol((z_c, z_a)) = said else { panic!("sent at every step") };
        lies_c += usize::from(!z_c.value().0);
        lies_a += usize::from(z_a.value().0);
    }
    // 1 − p = 1/(1 + e^ε), Theorem 7.3.
    let share = |lies: usize| lies as f64 / steps as f64;
    assert!((share(lies_c) - 1.0 / (1.0 + 4.0_f64.exp())).abs() < 0.01, "{lies_c}");
    assert!((share(lies_a) - 1.0 / (1.0 + 1.0_f64.exp())).abs() < 0.03, "{lies_a}");
    let priced = |what: What| {
        let of = ledger.counts().iter().find(|counted| counted.what == what);
        of.map(|counted| counted.spend)
    };
    let response = |epsilon| Some(Spend::Response { epsilon, symbols: 2 });
    assert_eq!(priced(What::ProprietaryFlag), response(4.0));
    assert_eq!(priced(What::AugmentedFlag), response(1.0));
    releaser.set_epsilon_a(None).unwrap();
    let mut account = Account { ledger: &mut ledger, time: at(steps) };
    releaser.flags(&mut account, Flag(true), Flag(false));
    let of_a = ledger.counts().iter().filter(|counted| counted.what == What::AugmentedFlag);
    assert_eq!(of_a.count(), 2, "with none of its own it has that of Z_c");
}

#[test]
fn flags_of_a_pair_are_two_releases() {
    let mut ledger = ledger(None);
    let mut releaser =
        Releaser::new(Some(60.0), 2, SendPolicy::EveryStep, PARAMS, Randomness::seeded(1, 0))
            .unwrap();
    let mut account = Account { ledger: &mut ledger, time: at(0) };
    let said = releaser.flags(&mut account, Flag(true), Flag(false));
    let said = said.map(|(c, a)| (c.value().0, a.value().0));
    assert_eq!(said, Release::Symbol((true, false)));
    assert_eq!(ledger.counts().len(), 2);
}

#[test]
fn a_kept_answer_is_always_the_same() {
    let mut releaser = releaser(Some(50.0), SendPolicy::Memoised { permanent: 0.5 });
    let kept: Vec<Symbol> = (0..5).map(|level| releaser.kept_answer(Symbol(level))).collect();
    for _ in 0..20 {
        for level in 0..5 {
            let said = releaser.rehearse(Symbol(level), 0.0);
            assert_eq!(said, Release::Symbol(kept[usize::from(level)]));
        }
    }
    assert_eq!(releaser.rehearsed().releases(), 100);
    releaser.set_epsilon(Some(60.0)).unwrap();
    assert_eq!(releaser.kept_answer(Symbol(2)), kept[2]);
}

#[test]
fn what_kept_answers_hid_is_not_given_away_afterwards() {
    let mut ledger = ledger(None);
    let mut releaser = releaser(Some(2.0), SendPolicy::Memoised { permanent: 1.0 });
    heard(&mut releaser, &mut ledger, 5, |_| 3);
    assert!(matches!(releaser.set_epsilon(None), Err(PrivacyError::Kept)));
    heard(&mut releaser, &mut ledger, 5, |_| 3);
    releaser.set_epsilon(Some(1.0)).unwrap();
    heard(&mut releaser, &mut ledger, 5, |_| 3);
    let told: Vec<(Spend, u64)> = ledger.counts().iter().map(|c| (c.spend, c.count)).collect();
    let at = |epsilon| Spend::Response { epsilon, symbols: 5 };
    assert_eq!(told, [(at(2.0), 10), (at(1.0), 5)], "each report at the ε of its day");
    let mut plain = self::releaser(Some(2.0), SendPolicy::EveryStep);
    assert!(plain.set_epsilon(None).is_ok(), "a step in the clear tells of no other step");
}
