//! Clients that enrol while others are at work.

use super::*;

/// Three clients of whom the last has not enrolled.
fn without_the_last(edges: &[(usize, usize)]) -> Inference {
    let mut enrolled: Vec<_> = enrolments(3).into_iter().map(Some).collect();
    enrolled[2] = None;
    let (rules, reach) = (Rules::with_arl0(ARL0), Reach::from_edges(3, edges.iter().copied()));
    Inference::among(Grading::five_levels(), rules, &enrolled, reach).expect("two have enrolled")
}

/// What is new, without the place of the last client in lists of all.
fn of_two(changes: &[Change]) -> Vec<String> {
    let mut changes = changes.to_vec();
    for change in &mut changes {
        if let Change::Opened(incident)
        | Change::Frozen(incident)
        | Change::Continued(incident)
        | Change::Revised(incident)
        | Change::Ended(incident, _)
        | Change::Closed(incident, _) = change
        {
            assert!(incident.posterior.get(2).is_none_or(|p| *p == 0.0), "{incident:?}");
            incident.posterior.truncate(2);
        }
    }
    changes.iter().map(|change| format!("{change:?}")).collect()
}

#[test]
fn as_long_as_a_client_has_not_enrolled_all_is_decided_as_if_the_session_did_not_name_it() {
    for edges in [&[][..], &[(0, 1)]] {
        let faults = [(1, 300..330, 0.1), (0, 600..640, 0.1), (2, 800..850, 0.05)];
        let three = world(3, 1000, 4, &faults);
        let two: Vec<Vec<Report>> = three.iter().map(|reports| reports[..2].to_vec()).collect();
        let alone = run(&mut server(2, edges), &two);
        assert!(roots(&alone).contains(&Some(1)) && roots(&alone).contains(&Some(0)));
        // What it says is not heard: nobody knows what its symbols mean.
        let with_it = run(&mut without_the_last(edges), &three);
        assert_eq!(of_two(&with_it), of_two(&alone));
    }
}

#[test]
fn a_client_that_enrols_late_is_named_from_then_on_and_shares_the_rate_of_false_alarms() {
    let mut late = without_the_last(&[]);
    let reports = world(3, 1000, 4, &[(2, 300..330, 0.05), (2, 700..730, 0.05)]);
    let before = late.threshold(0);
    let early: Vec<Change> = reports[..500].iter().flat_map(|r| late.step(r).to_vec()).collect();
    assert_eq!(roots(&early), []);
    late.enrol_again(2, enrolments(3).remove(2));
    let full = server(3, &[]);
    assert!(late.threshold(0) > before);
    assert!((0..3).all(|m| late.threshold(m) == full.threshold(m)));
    assert!(roots(&run(&mut late, &reports[500..])).contains(&Some(2)));
}
