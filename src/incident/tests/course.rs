//! An incident that stands, goes on, or gets another root after it was final.

use super::*;

fn said(facts: &[Fact]) -> String {
    let why = |fact: &Fact| match fact {
        Fact::Updated(incident) | Fact::Closed(incident) => incident.why.clone(),
        _ => None,
    };
    facts.iter().filter_map(why).collect::<Vec<_>>().join("; ")
}

/// #1 with root P1, final and acknowledged.
fn final_and_seen() -> Scene {
    let mut scene = Scene::fault_at_p1();
    scene.steps(6);
    assert!(scene.incident(1).frozen);
    scene.done(OperatorAction::Acknowledge { incident: 1 });
    scene
}

fn change(scene: &mut Scene, change: impl FnOnce(&mut Outcome)) {
    change(scene.outcome.as_mut().expect("the decision follows an incident"));
}

#[test]
fn an_incident_whose_evidence_ends_stands_and_is_not_closed() {
    let mut scene = final_and_seen();
    change(&mut scene, |outcome| outcome.disturbance.stands = Some(Closing::Quiet));
    let facts = scene.step();
    assert_eq!(said(&facts), "quiet; it stands until everybody has recovered");
    assert!(scene.incident(1).is_open() && lines(&facts).contains("\"stands\":true"));
    assert_eq!(said(&scene.step()), "", "it is said once");
    scene.over(Closing::Quiet).step();
    assert!(!scene.incident(1).is_open());
}

#[test]
fn nobody_joins_an_incident_while_it_stands() {
    let mut scene = final_and_seen();
    change(&mut scene, |outcome| outcome.disturbance.stands = Some(Closing::Quiet));
    let second = scene.second();
    scene.raise(P3, second).steps(2);
    assert!(scene.incident(1).member(P3).is_none());
}

#[test]
fn what_goes_on_keeps_its_number_and_asks_again_only_for_a_new_root() {
    for (root, asks) in [(P1, false), (P3, true)] {
        let mut scene = final_and_seen();
        change(&mut scene, |outcome| outcome.disturbance.stands = Some(Closing::Quiet));
        scene.step();
        change(&mut scene, |outcome| {
            let found = &mut outcome.disturbance;
            (found.stands, found.continued, found.latest) = (None, 1, Some(root));
        });
        let facts = scene.step();
        let name = &scene.desk.names()[root];
        assert!(
            said(&facts).contains(&format!("again: {name}, 80 s after the first alarm")),
            "{}",
            said(&facts)
        );
        assert_eq!(scene.desk.incidents().len(), 1);
        let expected = if asks { AlarmState::Unacknowledged } else { AlarmState::Acknowledged };
        assert_eq!(scene.state(1), expected, "{name}");
        assert_eq!(scene.incident(1).root, Some(P1), "its root stays");
        assert!(scene.log().iter().any(|line| line.contains("#1 again: ")));
    }
}

#[test]
fn a_revised_root_says_why_and_asks_again() {
    let mut scene = final_and_seen();
    change(&mut scene, |outcome| {
        let found = &mut outcome.disturbance;
        (found.root, found.revised_from) = (Some(P4), Some(P1));
    });
    let facts = scene.step();
    let expected = "root P1 → P4: P4 alarms too; it reaches P1, and P1 does not reach it";
    assert!(said(&facts).contains(expected), "{}", said(&facts));
    assert_eq!((scene.incident(1).root, scene.state(1)), (Some(P4), AlarmState::Unacknowledged));
    assert!(scene.log().iter().any(|line| line.contains(expected)));
    assert_eq!(said(&scene.step()), "", "once");
}

#[test]
fn a_silent_source_is_a_second_name_and_no_root() {
    let mut scene = Scene::fault_at_p1();
    change(&mut scene, |outcome| outcome.silent_source = Some(P4));
    let facts = scene.steps(6);
    assert!(lines(&facts).contains("\"silent_source\":\"P4\""));
    let expected = "#1 root P1 confirmed, or P4 above it, not visible in its own sensors";
    assert!(scene.log().iter().any(|line| line == expected), "{:?}", scene.log());
}
