use super::*;

fn verdict(scene: &Scene, client: usize, second: i64) -> Option<Verdict> {
    verdict_at(scene.desk.incidents().iter().rev(), client, at(second)).map(|found| found.verdict)
}

#[test]
fn a_verdict_holds_from_the_first_evidence_until_the_incident_closes() {
    let mut scene = Scene::fault_at_p1();
    assert_eq!([9, 10].map(|t| verdict(&scene, P1, t)), [None, Some(Verdict::RootCause)]);
    assert_eq!([29, 30].map(|t| verdict(&scene, P2, t)), [None, Some(Verdict::PropagatedEffect)]);
    assert_eq!(verdict(&scene, P3, 30), None, "it takes no part");
    scene.over(Closing::Quiet).step();
    let closed = scene.second();
    assert_eq!(verdict(&scene, P1, closed - 1), Some(Verdict::RootCause));
    assert_eq!(verdict(&scene, P1, closed), None);
}

#[test]
fn without_a_named_root_no_member_is_an_effect() {
    let mut scene = Scene::new();
    scene.raise(P1, 10).raise(P2, 20).decide(1, 10, None).steps(2);
    let second = scene.second();
    for client in [P1, P2] {
        assert_eq!(verdict(&scene, client, second), Some(Verdict::Unknown));
    }
}

#[test]
fn an_event_is_the_same_after_it_was_written_down() {
    let mut scene = Scene::fault_at_p1();
    scene.quality.push(QualityNote { client: Some(P2), what: QualityKind::Gap { seconds: 30.0 } });
    scene.steps(8);
    scene.done(OperatorAction::Acknowledge { incident: 1 });
    scene.done(OperatorAction::Note { incident: 1, text: "pump".to_owned() });
    scene.over(Closing::Quiet).step();
    assert!(scene.desk.log().events().len() > 6);
    for event in scene.desk.log().events() {
        let row = serde_json::to_string(event).expect("an event has a JSON form");
        assert_eq!(serde_json::from_str::<Event>(&row).expect("it is read back"), *event);
    }
}
