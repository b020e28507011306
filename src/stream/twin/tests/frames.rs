//! Frames of a synthetic plant: times, labels, slices, and numbers that are finite.

use super::*;

#[test]
fn a_stream_tells_time_labels_and_events() {
    let source = TwinSource { start: "2026-03-01 12:00:00".into(), ..source(Family::B, 3) };
    let mut stream = TwinStream::open(&source, 4).unwrap();
    let names: Vec<_> = stream.layout().clients.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["C1", "C2", "C3"]);
    assert_eq!(stream.layout().clients[1].sensors[3].name, "C2_y4");
    assert!(stream.layout().clients.iter().all(|c| !c.title.is_empty()));
    let events = stream.events().to_vec();
    assert_eq!((events.len(), events[0].id.as_str()), (75, "F001"));

    let mut frame = Frame::default();
    let mut t = 0;
    while stream.next(&mut frame).unwrap() {
        assert_eq!(frame.time, at("2026-03-01T12:00:00Z".parse().unwrap(), t));
        assert_eq!(frame.continuity == Continuity::NewRun, t == 0);
        let known = events.iter().position(|e| (e.start..=e.end).contains(&frame.time));
        let label = known.map_or(Label::Normal, |e| Label::Anomalous { event: Some(e as u32) });
        assert_eq!(frame.label, label);
        t += 1;
    }
    assert_eq!(t, slices(&source).steps());
    assert!(!stream.next(&mut frame).unwrap(), "the end stays the end");

    for (event, fault) in events.iter().zip(stream.plant().faults()) {
        assert_eq!(event.origins, [name(fault.root)]);
        let reached = stream.plant().graph().descendants(fault.root);
        let felt = if fault.kind.moves_the_state() { reached.len() } else { 0 };
        assert_eq!(event.affected.len(), felt);
        assert!(!event.affected.contains(&event.origins[0]));
    }
}

#[test]
fn accidents_strike_everybody_near_the_start_of_a_run() {
    let mut stream = TwinStream::open(&source(Family::S, 4), 4).unwrap();
    let start = stream.start;
    let mut frame = Frame::default();
    for t in 0..250 {
        assert!(stream.next(&mut frame).unwrap());
        assert_eq!(frame.continuity == Continuity::NewRun, t % 100 == 0);
        assert_eq!(frame.time, at(start, t + t / 100 * 100));
    }
    let slices = stream.plant().slices().clone();
    assert_eq!((stream.events().len(), slices.steps()), (100, 19_000));
    for (event, fault) in stream.events().iter().zip(stream.plant().faults()) {
        assert!(slices.anomalous.contains(&fault.start));
        assert!((8..=30).contains(&(fault.start % 100)) && fault.steps().end % 100 > 8);
        assert_eq!((event.affected.len(), &event.what[..]), (3, "accident"));
        let felt: Vec<_> = (0..4).map(|client| fault.felt_by(client, fault.start + 1)).collect();
        let size = |push: State| push[0].hypot(push[1]);
        let whole = size(fault.push(fault.start));
        assert!((2.5..=5.0).contains(&whole));
        assert!(felt.iter().all(|push| size(push.expect("a push")) <= 0.6 * whole + 1e-9));
    }
}

#[test]
fn slices_follow_each_other() {
    for (family, steps) in [(Family::A, 15_000), (Family::B, 18_000), (Family::H, 18_000)] {
        let s = slices(&source(family, 2));
        let lengths = [s.fit.len(), s.calibration.len(), s.nominal.len(), s.anomalous.len()];
        assert_eq!(lengths, [4000, 2000, 3000, steps - 9000]);
        assert_eq!([s.calibration.start, s.nominal.start, s.anomalous.start], [4000, 6000, 9000]);
        assert_eq!(s.steps(), steps);
    }
}

#[test]
fn settings_that_make_no_plant_are_errors() {
    let wrong = |source: TwinSource| TwinStream::open(&source, 1).unwrap_err().to_string();
    let of = |clients| source(Family::B, clients);
    assert!(wrong(of(0)).starts_with("clients: expected 1 to 1024"));
    assert!(wrong(of(usize::MAX)).starts_with("clients:"));
    assert!(wrong(TwinSource { delta: f64::NAN, ..of(2) }).starts_with("delta:"));
    let start = |text: &str| wrong(TwinSource { start: text.into(), ..of(2) });
    assert!(start("yesterday").ends_with("found \"yesterday\""));
    assert!(start("9999-12-31 23:59:59").starts_with("start:"));
    assert!(TwinStream::open(&of(1), 1).is_ok());
}

/// Every row has its width and every number of it is finite, nominal or not.
fn is_sound(family: Family, clients: usize, seed: u64) -> Result<(), TestCaseError> {
    let mut stream = TwinStream::open(&source(family, clients), seed).unwrap();
    stream.plant = hastened(stream.plant);
    let mut frame = Frame::for_layout(stream.layout());
    for _ in 0..400 {
        prop_assert!(stream.next(&mut frame).unwrap());
        prop_assert_eq!(frame.values.len(), clients * CHANNELS);
        prop_assert!(frame.values.iter().all(|y| y.is_finite()));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_plant_of_processes_shows_finite_rows_of_the_right_width(
        hard: bool, clients in 2_usize..=10, seed: u64,
    ) {
        is_sound(if hard { Family::H } else { Family::B }, clients, seed)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2))]
    #[test]
    fn any_paper_plant_shows_finite_rows_of_the_right_width(clients in 2_usize..=10, seed: u64) {
        is_sound(Family::A, clients, seed)?;
    }
}
