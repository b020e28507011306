use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::evidence::threshold::Flags;
use crate::session;
use crate::stream::{ClientColumns, Event, Layout};

fn at(step: usize) -> Timestamp {
    Timestamp::UNIX_EPOCH + std::time::Duration::from_secs(step as u64)
}

/// Three clients watched for 100 steps from step 10 on; C2 is disturbed at 50 to 59 and C1 at 80 to
/// 89 of what is watched. What began before is not counted, nor what begins afterwards.
fn truth() -> Truth {
    let client = |name: &str| ClientColumns {
        name: name.into(),
        title: String::new(),
        sensors: Vec::new(),
        inputs: Vec::new(),
    };
    let event = |id: &str, origin: &str, start: usize| Event {
        id: id.into(),
        start: at(10 + start),
        end: at(10 + start + 9),
        origins: vec![origin.into()],
        affected: vec!["C3".into()],
        sensors: Vec::new(),
        what: String::new(),
    };
    let layout = Layout { clients: ["C1", "C2", "C3"].map(client).into(), period_s: 1.0 };
    let times: Vec<Timestamp> = (10..110).map(at).collect();
    let before = Event { start: at(5), end: at(12), ..event("0", "C3", 0) };
    let events = [before, event("1", "C2", 50), event("2", "C1", 80), event("3", "C1", 100)];
    Truth::new(&layout, &times, &events, session::Span { seconds: 6.0 })
}

fn declared(onset: usize, last: usize, root: usize) -> Declared {
    Declared {
        onset,
        opened: onset + 2,
        last,
        root: Some(root),
        candidates: Vec::new(),
        suspects: vec![(0, 0.2), (1, 0.5), (2, 0.3)],
    }
}

#[test]
fn a_false_alarm_a_right_name_and_a_wrong_one() {
    let said = MethodOutput::from_incidents(
        vec![declared(20, 24, 2), declared(51, 58, 1), declared(81, 85, 1)],
        100,
    );
    let figures = Figures::of(&truth(), &said);
    assert_eq!((figures.events, figures.detected, figures.right), (2, 2, 1));
    assert_eq!((figures.precision, figures.false_alarms), (Some(1.0 / 3.0), 1));
    assert_eq!(figures.recall, Some(0.5));
    // The false alarm came before anything had happened.
    assert_eq!((figures.f1, figures.f1_from_first_event), (Some(0.4), Some(0.5)));
    assert_eq!(figures.delays, [3.0, 3.0]);
    // All steps outside both anomalies and their tails, one alarm in them; both anomalies answered
    // three steps after their onset.
    let watched = 100.0 - 2.0 * (10.0 + 6.0);
    assert_eq!(figures.arl0, RunTotals { watched, ended: 1, censored: 1 });
    assert_eq!(figures.arl1, RunTotals { watched: 6.0, ended: 2, censored: 0 });
    // C2 was named first of all; C1 has the least weight of the three.
    assert_eq!((figures.ac1, figures.ac3), (Some(0.5), Some(1.0)));
    assert_eq!(figures.mrr, Some(f64::midpoint(1.0, 1.0 / 3.0)));
    // Of 20 anomalous steps 8 bear the right name, of 13 named ones inside 8 are right.
    assert_eq!(figures.step_recall, Some(0.4));
    assert_eq!(figures.inside_precision, Some(8.0 / 13.0));
}

#[test]
fn names_said_step_by_step_become_incidents() {
    let mut steps = vec![None; 100];
    steps[52] = Some(1);
    steps[53] = Some(1);
    steps[55] = Some(0);
    steps[90] = Some(2);
    let said = MethodOutput::from_names(steps.clone());
    let alarms: Vec<_> = said.alarms.iter().map(|d| (d.opened, d.last, d.root)).collect();
    assert_eq!(alarms, [(52, 53, Some(1)), (55, 55, Some(0)), (90, 90, Some(2))]);
    let episodes: Vec<_> =
        said.episodes.iter().map(|e| (e.window.start, e.window.end, e.name)).collect();
    assert_eq!(episodes, [(52, 55, Some(1)), (90, 90, Some(2))]);
    let apart = MethodOutput::from_runs(steps);
    assert_eq!((apart.alarms, apart.episodes.len()), (said.alarms, 3));
}

#[test]
fn steps_that_are_apart_are_two_false_alarms_and_one_episode() {
    let mut steps = vec![None; 100];
    steps[20] = Some(1);
    steps[22] = Some(1);
    let figures = Figures::of(&truth(), &MethodOutput::from_names(steps.clone()));
    assert_eq!((figures.false_alarms, figures.arl0.ended), (2, 2));
    // C2 is named two and four steps after its onset: one episode of two is right, or two runs of four.
    (steps[52], steps[54]) = (Some(1), Some(1));
    let precision = |output| Figures::of(&truth(), &output).precision;
    assert_eq!(precision(MethodOutput::from_names(steps.clone())), Some(0.5));
    let figures = Figures::of(&truth(), &MethodOutput::from_runs(steps));
    assert_eq!((figures.precision, figures.right, figures.false_alarms), (Some(0.5), 1, 2));
    assert_eq!((figures.delays, figures.named), (vec![2.0], vec![2.0]));
}

#[test]
fn flags_of_minutes_are_judged_in_minutes() {
    // The second client has both flags in most of the fourth minute, the first in one step of the first.
    let mut flags = FlagSeries::new(2);
    let both = |raised: bool| Some(Flags::new(raised, raised));
    for t in 0..610 {
        flags.push([both(t == 30), both((200..240).contains(&t))].into_iter());
    }
    let event =
        TruthEvent { window: Window::new(185, 250), origin: 1, affected: Vec::new(), tail: 60 };
    let truth = Truth { clients: 2, steps: 610, period_s: 1.0, events: vec![event] };
    let of = |span| Figures::of_minutes(&truth, &flags, span).expect("a step is a second");
    let (any, most) = (of(Span::AnyOfAMinute), of(Span::MostOfAMinute));
    assert_eq!((any.right, any.false_alarms, any.named), (1, 1, vec![0.0]));
    assert_eq!((most.right, most.false_alarms, most.named), (1, 0, vec![0.0]));
    // Ten minutes, of which the event and its tail touch three.
    assert!((any.arl0.watched - 7.0).abs() < 1e-9, "{:?}", any.arl0);
    let slow = Truth { period_s: 5.0, ..truth };
    assert_eq!(Figures::of_minutes(&slow, &flags, Span::AnyOfAMinute), None);
}

#[test]
fn silence_has_no_precision_and_every_anomaly_is_censored() {
    let figures = Figures::of(&truth(), &MethodOutput::from_incidents(Vec::new(), 100));
    assert_eq!((figures.precision, figures.recall, figures.f1), (None, Some(0.0), Some(0.0)));
    assert_eq!((figures.arl1.ended, figures.arl1.censored), (0, 2));
    assert_eq!(RunTotals::pooled([&figures.arl0]).mean, None);
}

proptest! {
    #[test]
    fn figures_are_bounded_and_do_not_depend_on_the_order_of_incidents(
        incidents in prop::collection::vec((0usize..95, 0usize..12, 0usize..3), 0..8)
            .prop_flat_map(|l| (Just(l.clone()), Just(l).prop_shuffle())),
    ) {
        let judged = |list: &[(usize, usize, usize)]| {
            let mut incidents: Vec<Declared> =
                list.iter().map(|(a, n, root)| declared(*a, (a + n).min(99), *root)).collect();
            incidents.sort_by_key(|i| (i.onset, i.last, i.root));
            Figures::of(&truth(), &MethodOutput::from_incidents(incidents, 100))
        };
        let figures = judged(&incidents.0);
        prop_assert_eq!(&figures, &judged(&incidents.1));
        for figure in [
            figures.precision, figures.recall, figures.f1, figures.step_f1, figures.etapr_f1,
            figures.inside_precision, figures.step_recall, figures.ac1, figures.ac3, figures.mrr,
        ].into_iter().flatten() {
            prop_assert!((0.0..=1.0 + 1e-12).contains(&figure));
        }
        prop_assert!(figures.right <= figures.detected && figures.detected <= figures.events);
        prop_assert!(figures.ac1 <= figures.ac3);
    }
}
