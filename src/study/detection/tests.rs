use super::*;

fn judged(bed: &str, seed: u64, setup: &Setup) -> Judged {
    let (_, bed) = BEDS.iter().find(|(name, _)| *name == bed).expect("a family of the study");
    run(*bed, seed, setup).expect("synthetic data can be had and learned")
}

fn linear() -> Setup {
    Setup { decimate: Some(1), ..Setup::new(Proprietary::Linear) }
}

#[test]
fn faults_of_the_papers_plant_are_found_and_named() {
    let judged = judged("A2", 1, &linear());
    assert!(judged.f1 >= Some(0.95), "{judged:?}");
    assert_eq!(judged.right, judged.detected);
}

#[test]
fn one_randomised_bit_a_step_is_enough_for_the_papers_plant() {
    let judged = judged("A2", 1, &linear().one_bit(Some(4.0)));
    assert!(judged.f1 >= Some(0.93), "{judged:?}");
}

#[test]
fn the_same_seed_says_the_same_and_another_one_something_else() {
    let (setup, other) = (linear(), linear().one_bit(Some(2.0)));
    assert_eq!(judged("B4", 3, &setup), judged("B4", 3, &setup));
    assert_ne!(judged("B4", 3, &setup), judged("B4", 3, &other));
}

#[test]
fn a_row_sums_up_its_runs() {
    let run = judged("A2", 2, &linear());
    let row = Row::of("A2", "evidence", &[run.clone(), run.clone()]);
    assert_eq!((row.seeds, row.f1), (2, run.f1));
    assert!((row.events - run.events as f64).abs() < 1e-12);
}
