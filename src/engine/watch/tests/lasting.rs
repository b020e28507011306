//! Changes that last: closed as such or accepted, lived with, and taken back.

use std::fmt::Write as _;

use rand_distr::{Distribution as _, StandardNormal};

use super::*;
use crate::base::rng;

/// What is wrong with a client's two sensors: whose, from which to which step, how much noise, how far
/// off.
pub(super) type Wrong = (usize, std::ops::Range<usize>, f64, f64);

/// Three clients whose sensors wander about zero, a step a second; `gap` seconds are missing after so
/// many steps.
fn table(steps: usize, seed: u64, wrong: &[Wrong], gap: Option<(usize, usize)>) -> String {
    let mut rng = rng::stream(seed, 0);
    let mut text = String::from("time,A1,A2,B1,B2,C1,C2\n");
    let mut x = [0.0f64; 6];
    for t in 0..steps {
        let second = gap.map_or(t, |(at, length)| if t < at { t } else { t + length });
        let (h, m, s) = (second / 3600, second / 60 % 60, second % 60);
        let _ = write!(text, "2024-01-0{} {h:02}:{m:02}:{s:02}", 1 + seed);
        for (i, x) in x.iter_mut().enumerate() {
            let mut draw = || -> f64 { StandardNormal.sample(&mut rng) };
            *x = 0.6 * *x + draw();
            let is_on = |(c, window, ..): &&Wrong| *c == i / 2 && window.contains(&t);
            let shown = wrong
                .iter()
                .filter(is_on)
                .fold(*x, |x, (_, _, noise, off)| x + noise * draw() + off);
            let _ = write!(text, ",{shown:.4}");
        }
        text.push('\n');
    }
    text
}

/// The watch, and the folder that it reads.
fn watch_over(wrong: &[Wrong], gap: Option<(usize, usize)>) -> (Watch, tempfile::TempDir) {
    watched(wrong, gap, |_| {})
}

/// The same of a session that says otherwise about something models do not depend on.
pub(super) fn watch_over_with(
    wrong: &[Wrong],
    change: impl FnOnce(&mut Session),
) -> (Watch, tempfile::TempDir) {
    watched(wrong, None, change)
}

fn watched(
    wrong: &[Wrong],
    gap: Option<(usize, usize)>,
    change: impl FnOnce(&mut Session),
) -> (Watch, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = |name: &str, text: String| {
        std::fs::write(folder.path().join(name), text).expect("room for a table");
    };
    file("fit.csv", table(1500, 1, &[], None));
    file("calm.csv", table(4000, 2, &[], None));
    file("live.csv", table(1400, 3, wrong, gap));
    let text = "Session(about: \"three that wander\", \
        source: Table(data: \".\", time: (column: \"time\")), \
        clients: [(name: \"A\", columns: [\"A*\"]), (name: \"B\", columns: [\"B*\"]), \
            (name: \"C\", columns: [\"C*\"])], \
        ranges: (fit: (files: [\"fit.csv\"]), calibration: (files: [\"calm.csv\"]), \
            replay: (files: [\"live.csv\"])), \
        edges: [(\"A\", \"B\")], thresholds: (arl0: \"1h\"), \
        sampling: (decimate: Every(1)), model: (proprietary: Linear, federation: Online(passes: 1)))";
    let mut session = Session::parse("wander", folder.path(), text).expect("a sound session");
    change(&mut session);
    let kept = folder.path().join("kept.safetensors");
    let prepared = prepare(&session, &kept, &mut |_| ControlFlow::Continue(())).expect("prepared");
    (open(&session, &prepared), folder)
}

fn all(watch: &Watch) -> Vec<(Option<usize>, Option<Closing>)> {
    let incidents = watch.run().annunciator().incidents();
    incidents.iter().map(|i| (i.root, i.closed.map(|closed| closed.why))).collect()
}

/// Steps until an incident is open, and its number.
fn until_open(watch: &mut Watch) -> u64 {
    loop {
        let news = steps(watch, 1);
        assert!(!news.times.is_empty(), "an incident opens before the end");
        if let Some(incident) = news.incidents.iter().find(|incident| incident.is_open()) {
            return incident.number;
        }
    }
}

fn act(watch: &mut Watch, action: OperatorAction) {
    watch.act(order(action), &mut News::default()).expect("possible now");
}

/// B becomes noisier for good; later it fails, and later still C does.
const NOISIER: [Wrong; 3] =
    [(1, 300..1400, 4.0, 0.0), (1, 900..930, 0.0, 60.0), (2, 1200..1230, 6.0, 0.0)];

#[test]
fn a_change_that_stays_is_lived_with_and_its_client_can_still_be_seen_to_fail() {
    let (mut watch, _folder) = watch_over(&NOISIER, None);
    steps(&mut watch, usize::MAX);
    let incidents = watch.run().annunciator().incidents();
    let closed = incidents[0].closed.map(|closed| closed.why);
    assert_eq!((incidents[0].root, closed), (Some(1), Some(Closing::PersistentChange)));
    let named = |root: usize, steps: std::ops::Range<u64>| {
        incidents.iter().any(|i| i.root == Some(root) && steps.contains(&i.opened_step))
    };
    assert!(named(1, 900..932) && named(2, 1200..1232), "{incidents:?}");
    // What is learned from a window can be a little off: one alarm too many is not a flood.
    assert!(incidents.len() <= 4, "{incidents:?}");
}

#[test]
fn what_is_accepted_does_not_alarm_again_until_it_changes() {
    let (mut watch, _folder) = watch_over(&NOISIER, None);
    let incident = until_open(&mut watch);
    steps(&mut watch, 3);
    act(&mut watch, OperatorAction::Accept { incident });
    steps(&mut watch, 500);
    assert_eq!(all(&watch), [(Some(1), Some(Closing::Accepted))]);
    steps(&mut watch, usize::MAX);
    let roots: Vec<_> = all(&watch).into_iter().map(|(root, _)| root).collect();
    assert_eq!(roots, [Some(1), Some(1), Some(2)], "what changes again alarms again");
}

#[test]
fn an_acceptance_that_is_undone_leaves_an_incident_that_ends_with_its_evidence() {
    let (mut watch, _folder) = watch_over(&[(1, 300..420, 6.0, 0.0)], None);
    let incident = until_open(&mut watch);
    steps(&mut watch, 5);
    act(&mut watch, OperatorAction::Accept { incident });
    steps(&mut watch, 10);
    let entry = watch.snapshot().undoable.expect("an acceptance can be undone");
    act(&mut watch, OperatorAction::Undo { entry });
    steps(&mut watch, 60);
    assert_eq!(all(&watch), [(Some(1), None)], "it is open again, under its number");
    steps(&mut watch, 100);
    assert_eq!(all(&watch), [(Some(1), Some(Closing::Quiet))]);
}

#[test]
fn what_was_accepted_outlives_a_gap_and_what_is_open_ends_in_it_for_want_of_data() {
    let (mut watch, _folder) =
        watch_over(&[(1, 300..1400, 4.0, 0.0), (2, 680..700, 8.0, 0.0)], Some((700, 600)));
    let incident = until_open(&mut watch);
    steps(&mut watch, 3);
    act(&mut watch, OperatorAction::Accept { incident });
    steps(&mut watch, usize::MAX);
    let expected = [(Some(1), Some(Closing::Accepted)), (Some(2), Some(Closing::NoData))];
    assert_eq!(all(&watch), expected);
}

#[test]
fn an_ancestor_that_alarms_later_takes_the_root_over() {
    // A → B is declared: A explains B, and B cannot explain A.
    let (mut watch, _folder) =
        watch_over(&[(1, 300..400, 6.0, 0.0), (0, 320..440, 6.0, 0.0)], None);
    steps(&mut watch, usize::MAX);
    let roots: Vec<_> = all(&watch).into_iter().map(|(root, _)| root).collect();
    assert_eq!(roots, [Some(0)]);
}
