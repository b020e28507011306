//! One disturbance is one incident, and a final root can be revised by what explains it.

use super::*;

/// Reports of levels, one row a step.
fn levels(rows: &[[usize; 4]]) -> Vec<Vec<Report>> {
    rows.iter().map(|row| row.iter().map(|level| Report::Symbol(at(*level))).collect()).collect()
}

/// Client 1 is in trouble, its evidence ends, and it has not recovered.
fn trouble_at_1() -> Vec<[usize; 4]> {
    let of = |level| [0, level, 0, 0];
    let mut rows = vec![[0; 4]; 30];
    rows.extend(vec![of(4); 10]);
    rows.extend([0, 1, 1, 1, 0, 0, 0].map(of));
    rows
}

/// What each change says.
fn course(changes: &[Change]) -> Vec<(&'static str, u64, Option<usize>)> {
    let of = |change: &Change| match change {
        Change::Opened(i) => Some(("opened", i.number, i.root)),
        Change::Continued(i) => Some(("continued", i.number, i.root)),
        Change::Revised(i) => Some(("revised", i.number, i.root)),
        Change::Ended(i, _) => Some(("ended", i.number, i.root)),
        Change::Closed(i, _) => Some(("closed", i.number, i.root)),
        Change::Frozen(_) => None,
    };
    changes.iter().filter_map(of).collect()
}

#[test]
fn an_incident_stands_until_everybody_has_recovered() {
    let mut server = server(4, &[]);
    let mut changes = Vec::new();
    for reports in levels(&trouble_at_1()) {
        changes.extend(server.step(&reports).to_vec());
    }
    assert_eq!(course(&changes), [("opened", 1, Some(1)), ("ended", 1, Some(1))]);
    assert!(server.incident().is_none() && server.standing_incident().is_some());
    let closed = server.step(&levels(&[[0; 4]])[0]).to_vec();
    assert_eq!(course(&closed), [("closed", 1, Some(1))], "one more quiet step is enough");
    assert!(matches!(closed[0], Change::Closed(_, Closing::Quiet)));
}

#[test]
fn what_shows_itself_again_before_it_has_recovered_is_the_same_incident() {
    let mut rows = trouble_at_1();
    rows.extend(vec![[0, 4, 0, 0]; 4]);
    let mut server = server(4, &[]);
    let mut changes = Vec::new();
    for reports in levels(&rows) {
        changes.extend(server.step(&reports).to_vec());
    }
    let expected = [("opened", 1, Some(1)), ("ended", 1, Some(1)), ("continued", 1, Some(1))];
    assert_eq!(course(&changes), expected);
    let incident = server.incident().expect("it is open again");
    assert_eq!((incident.continued, incident.latest, incident.root), (1, Some(1), Some(1)));
}

#[test]
fn a_stranger_opens_an_incident_of_its_own_while_another_stands_and_a_relative_continues_it() {
    let mut rows = trouble_at_1();
    // Client 1 is not quite quiet, so that its incident stands, while client 2 raises an alarm.
    rows.extend(vec![[0, 1, 4, 0]; 4]);
    let said = |edges: &[(usize, usize)]| {
        let mut server = server(4, edges);
        let changes: Vec<Change> =
            levels(&rows).iter().flat_map(|r| server.step(r).to_vec()).collect();
        course(&changes)
    };
    let strangers = said(&[]);
    let begin = [("opened", 1, Some(1)), ("ended", 1, Some(1))];
    assert_eq!(strangers[..2], begin, "{strangers:?}");
    assert_eq!(strangers[2..4], [("closed", 1, Some(1)), ("opened", 2, Some(2))], "{strangers:?}");
    for edges in [[(2, 1)], [(1, 2)]] {
        let related = said(&edges);
        assert!(related.iter().all(|(_, number, _)| *number == 1), "{edges:?}: {related:?}");
    }
}

/// Client 1 is saturated, fades to what `faded` says and is saturated again.
fn swelling_at_1(faded: &[usize]) -> Vec<[usize; 4]> {
    let of = |level: usize| [0, level, 0, 0];
    let mut rows = vec![[0; 4]; 30];
    rows.extend(vec![of(4); 20]);
    rows.extend(faded.iter().map(|level| of(*level)));
    rows.extend(vec![of(4); 10]);
    rows
}

fn course_of(
    edges: &[(usize, usize)],
    rows: &[[usize; 4]],
) -> Vec<(&'static str, u64, Option<usize>)> {
    let mut server = server(4, edges);
    let changes: Vec<Change> = levels(rows).iter().flat_map(|r| server.step(r).to_vec()).collect();
    course(&changes)
}

#[test]
fn what_fades_and_swells_again_inside_its_episode_is_an_incident_of_its_own_where_nothing_feeds_it_back()
 {
    let rows = swelling_at_1(&[3, 2, 2, 2, 2, 2, 2]);
    let apart = course_of(&[(0, 1), (1, 2)], &rows);
    assert_eq!(
        apart,
        [("opened", 1, Some(1)), ("closed", 1, Some(1)), ("opened", 2, Some(1))],
        "no loop"
    );
    let expected = [("opened", 1, Some(1)), ("continued", 1, Some(1))];
    assert_eq!(course_of(&[(1, 2), (2, 1)], &rows), expected, "a loop");
    assert_eq!(course_of(&[], &rows), expected, "nothing is known");
}

#[test]
fn what_hardly_fades_is_said_once_it_swells_again_and_a_single_lower_step_is_not() {
    let edges = [(0, 1), (1, 2)];
    let hardly = course_of(&edges, &swelling_at_1(&[2, 2]));
    assert_eq!(hardly, [("opened", 1, Some(1)), ("continued", 1, Some(1))]);
    assert_eq!(course_of(&edges, &swelling_at_1(&[2])), [("opened", 1, Some(1))]);
}

#[test]
fn behind_a_saturated_root_a_second_disturbance_is_announced_where_an_effect_feels_it_again() {
    let edges = [(1, 2)];
    let rows = |effect: &[(usize, usize)]| {
        let mut rows = vec![[0; 4]; 30];
        let levels = effect.iter().flat_map(|(level, steps)| vec![*level; *steps]);
        rows.extend(levels.map(|level| [0, 4, level, 0]));
        rows
    };
    let once = course_of(&edges, &rows(&[(4, 10), (0, 30)]));
    assert_eq!(once, [("opened", 1, Some(1))]);
    let again = course_of(&edges, &rows(&[(4, 10), (0, 20), (4, 10)]));
    assert_eq!(again, [("opened", 1, Some(1)), ("continued", 1, Some(1))]);
    let soon = course_of(&edges, &rows(&[(4, 10), (0, 10), (4, 10), (0, 10), (4, 10)]));
    assert_eq!(soon, again, "a client is mentioned once in a propagation window");
    let late = course_of(&edges, &rows(&[(0, 80), (4, 10)]));
    assert_eq!(late, again, "an effect that was quiet for longer than that");
}

#[test]
fn a_root_that_is_nearly_quiet_and_rises_to_middle_levels_is_announced() {
    let edges = [(0, 1), (1, 2)];
    let of = |level: usize| [0, level, 0, 0];
    let mut rows = vec![[0; 4]; 30];
    rows.extend(vec![of(4); 20]);
    rows.extend(vec![of(1); 9]);
    let faded = course_of(&edges, &rows);
    assert_eq!(faded, [("opened", 1, Some(1))]);
    rows.extend(vec![of(3); 10]);
    let risen = course_of(&edges, &rows);
    assert_eq!(risen, [("opened", 1, Some(1)), ("continued", 1, Some(1))]);
}

#[test]
fn a_member_that_had_recovered_opens_an_incident_of_its_own_while_its_effect_still_lingers() {
    // Client 1 is quiet again for long; client 2, which it reaches, is not quite.
    let mut rows = vec![[0; 4]; 30];
    rows.extend(vec![[0, 4, 4, 0]; 12]);
    rows.extend(vec![[0, 0, 1, 0]; 12]);
    rows.extend(vec![[0, 4, 1, 0]; 4]);
    let opened = |edges: &[(usize, usize)]| {
        let course = course_of(edges, &rows);
        course.iter().filter(|(what, ..)| *what == "opened").count()
    };
    assert_eq!(opened(&[(1, 2)]), 2, "{:?}", course_of(&[(1, 2)], &rows));
    assert_eq!(opened(&[(1, 2), (2, 1)]), 1, "{:?}", course_of(&[(1, 2), (2, 1)], &rows));
}

#[test]
fn after_a_change_that_stays_an_incident_stands_for_its_time() {
    let mut server = server(4, &[]);
    let mut ended = None;
    let mut closed = None;
    for (t, reports) in world(4, 900, 4, &[(1, 300..452, 0.1)]).iter().enumerate() {
        for change in server.step(reports) {
            match change {
                Change::Ended(_, closing) => {
                    assert_eq!(*closing, Closing::PersistentChange);
                    ended = Some(t);
                }
                Change::Closed(..) => closed = Some(t),
                _ => {}
            }
        }
    }
    let (ended, closed) = (ended.expect("it ended"), closed.expect("it closed"));
    assert!((150..170).contains(&(closed - ended)), "{ended} to {closed}");
}

#[test]
fn a_strict_ancestor_that_alarms_soon_after_revises_the_root() {
    let faults = [(1, 500..560, 0.05), (0, 512..580, 0.1)];
    let mut server = server(4, &[(0, 1), (1, 2)]);
    let mut changes = Vec::new();
    for reports in world(4, 700, 8, &faults) {
        changes.extend(server.step(&reports).to_vec());
        assert!((0..4).all(|m| !server.has_own_fault(m)), "it explains the root");
    }
    let course = course(&changes);
    assert_eq!(course[..2], [("opened", 1, Some(1)), ("revised", 1, Some(0))], "{course:?}");
    let closed = closed(&changes);
    assert_eq!(closed.len(), 1, "{closed:?}");
    assert_eq!((closed[0].0.root, closed[0].0.revised_from), (Some(0), Some(1)));
}

#[test]
fn an_ancestor_that_alarms_after_the_window_leaves_the_root_alone() {
    let faults = [(1, 500..640, 0.05), (0, 590..700, 0.05)];
    let mut server = server(4, &[(0, 1), (1, 2)]);
    let mut changes = Vec::new();
    for reports in world(4, 800, 8, &faults) {
        changes.extend(server.step(&reports).to_vec());
        assert!(!server.has_own_fault(0), "it may explain the root");
    }
    assert!(course(&changes).iter().all(|(what, ..)| *what != "revised"));
    assert_eq!(closed(&changes)[0].0.root, Some(1));
}

#[test]
fn in_a_loop_nobody_is_a_strict_ancestor() {
    let faults = [(1, 500..560, 0.05), (0, 512..580, 0.1)];
    let mut server = server(4, &[(0, 1), (1, 0)]);
    let changes = run(&mut server, &world(4, 700, 8, &faults));
    assert!(course(&changes).iter().all(|(what, ..)| *what != "revised"));
}

#[test]
fn a_quiet_source_above_the_root_is_known_as_a_second_name() {
    let server_of = |faults: &[(usize, std::ops::Range<usize>, f64)]| {
        let mut server = server(4, &[(0, 1), (1, 2)]);
        for reports in world(4, 520, 8, faults) {
            server.step(&reports);
        }
        server
    };
    let quiet = server_of(&[(1, 500..520, 0.1)]);
    assert_eq!(quiet.incident().and_then(|i| i.root), Some(1));
    assert_eq!(quiet.silent_source(1), Some(0));
    assert_eq!(quiet.silent_source(2), None, "its parent is no source");
    let stirring = server_of(&[(1, 500..520, 0.1), (0, 500..520, 0.1)]);
    assert_eq!(stirring.silent_source(1), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn evidence_of_recovery_stays_between_nothing_and_twice_its_bound(
        levels in prop::collection::vec(0usize..5, 1..200),
    ) {
        let mut server = server(1, &[]);
        for level in levels {
            server.step(&[Report::Symbol(at(level))]);
            let (b, bound) = (server.clients[0].recovered, server.rules.recovery);
            prop_assert!((0.0..=2.0 * bound).contains(&b));
            // The highest level takes everything away; from then on five quiet steps are enough.
            if level == 4 {
                prop_assert!(b < 1e-9 || b < 2.0 * bound);
            }
        }
        (0..5).for_each(|_| { server.step(&[Report::Symbol(at(0))]); });
        prop_assert!(server.clients[0].recovered > server.rules.recovery);
    }

    #[test]
    fn an_incident_never_stands_and_is_open_at_once(
        reports in prop::collection::vec(prop::collection::vec(any_report(), 4), 1..250),
    ) {
        let mut server = server(4, &[(0, 1), (1, 2)]);
        for reports in &reports {
            server.step(reports);
            prop_assert!(server.incident().is_none() || server.standing_incident().is_none());
        }
    }
}
