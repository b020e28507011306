//! Accidents that strike several clients at once.

use super::*;

/// Quiet steps, then every client is struck: each at its step after step 100, with its severity. Two steps
/// later all are equally severe.
fn struck(strikes: &[(usize, u8)], before: &[(usize, usize, usize)]) -> Vec<Vec<Report>> {
    let report = |t: usize, client: usize| {
        let (delay, severity) = strikes[client];
        let begins = 100 + delay;
        let noise = before.iter().find(|(at, who, _)| (*at, *who) == (t, client));
        if t < begins {
            Report::Symbol(at(noise.map_or(0, |(.., level)| *level)))
        } else if t == begins {
            Report::Severe(at(4), severity)
        } else if t == begins + 2 {
            Report::Severe(at(4), 2)
        } else {
            Report::Symbol(at(4))
        }
    };
    (0..120).map(|t| (0..strikes.len()).map(|client| report(t, client)).collect()).collect()
}

fn outcome(server: &mut Inference, world: &[Vec<Report>]) -> Disturbance {
    let closed = closed(&run(server, world));
    assert_eq!(closed.len(), 1, "{closed:?}");
    closed[0].0.clone()
}

#[test]
fn clients_struck_alike_are_a_tie_of_all() {
    let incident = outcome(&mut server(4, &[]), &struck(&[(0, 3); 4], &[]));
    assert_eq!((incident.root, &incident.tied[..]), (None, &[0, 1, 2, 3][..]));
    assert!(incident.posterior.iter().all(|p| (p - 0.25).abs() < 1e-9), "{incident:?}");
}

#[test]
fn noise_before_the_onset_does_not_break_a_tie() {
    let before = [(98, 2, 3), (99, 2, 3)];
    let incident = outcome(&mut server(4, &[]), &struck(&[(0, 3); 4], &before));
    assert_eq!((incident.root, incident.tied.len()), (None, 4));
}

#[test]
fn the_most_severe_of_those_struck_at_once_is_named_where_it_leads_clearly() {
    let strikes = [(0, 4), (0, 4), (0, 12), (0, 2)];
    let incident = outcome(&mut server(4, &[]), &struck(&strikes, &[]));
    assert_eq!((incident.root, incident.tied.len()), (Some(2), 0));
    let close = [(0, 4), (0, 11), (0, 12), (0, 4)];
    let incident = outcome(&mut server(4, &[]), &struck(&close, &[]));
    assert_eq!((incident.root, &incident.tied[..]), (None, &[2, 1][..]), "{incident:?}");
    assert!(incident.posterior[2] > incident.posterior[1] && incident.posterior[2] < 0.8);
}

#[test]
fn who_is_struck_first_is_named_although_another_is_struck_harder() {
    let strikes = [(0, 2), (1, 4), (1, 3), (1, 2)];
    let incident = outcome(&mut server(4, &[]), &struck(&strikes, &[]));
    assert_eq!(incident.root, Some(0), "{incident:?}");
}

#[test]
fn declared_influences_decide_where_there_are_any() {
    let strikes = [(0, 2), (0, 2), (0, 9), (0, 1)];
    let incident = outcome(&mut server(4, &[(0, 1), (1, 2), (2, 3)]), &struck(&strikes, &[]));
    assert_eq!((incident.root, incident.tied.len()), (Some(0), 0));
}

#[test]
fn a_client_with_one_highest_symbol_by_chance_is_not_part_of_a_tie() {
    let mut world = struck(&[(0, 3), (0, 3)], &[]);
    for reports in &mut world[101..] {
        reports[1] = Report::Symbol(at(0));
    }
    let incident = outcome(&mut server(2, &[]), &world);
    assert_eq!((incident.root, incident.tied.len()), (Some(0), 0), "{incident:?}");
}

#[test]
fn of_clients_struck_alike_the_one_that_is_less_severe_two_steps_later_is_named() {
    let mut world = struck(&[(0, 6); 4], &[]);
    for (client, severity) in [(0, 10), (1, 2), (2, 11), (3, 10)] {
        world[102][client] = Report::Severe(at(4), severity);
    }
    let incident = outcome(&mut server(4, &[]), &world);
    assert_eq!((incident.root, incident.tied.len()), (Some(1), 0), "{incident:?}");
    // A third step that is not of the highest level is not severe at all.
    world[102][1] = Report::Symbol(at(3));
    let incident = outcome(&mut server(4, &[]), &world);
    assert_eq!(incident.root, Some(1), "{incident:?}");
}

#[test]
fn a_severity_two_steps_after_a_broken_burst_begins_a_new_one() {
    let mut world = struck(&[(0, 6); 4], &[]);
    // C1 is less than saturated in between, so that its severity at 102 is the first of another burst.
    world[101][0] = Report::Symbol(at(3));
    let incident = outcome(&mut server(4, &[]), &world);
    // Its first burst counts as one whose third step is not severe; those of the others are.
    assert_eq!((incident.root, incident.tied.first()), (None, Some(&0)), "{incident:?}");
    assert!(incident.posterior[0] > 1.5 * incident.posterior[1], "{incident:?}");
}

#[test]
fn a_third_severity_that_did_not_come_says_nothing() {
    let mut world = struck(&[(0, 6); 4], &[]);
    world[102][0] = Report::Missing;
    let incident = outcome(&mut server(4, &[]), &world);
    // What is not known of C1 is no sign that its deviation has decayed.
    assert_eq!((incident.root, incident.tied.len()), (None, 4), "{incident:?}");
    let lost = incident.posterior[0];
    let mut world = struck(&[(0, 6); 4], &[]);
    world[102][0] = Report::Symbol(at(3));
    let incident = outcome(&mut server(4, &[]), &world);
    assert!(incident.posterior[0] > 1.2 * lost, "{incident:?} {lost}");
}
