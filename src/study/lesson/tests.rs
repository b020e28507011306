//! A whole lesson, small: what must hold of it whatever it finds.

use ndarray::Array2;

use super::*;
use crate::nn::train::test_support::plant;
use crate::score::metrics::Window;
use crate::study::catalogue;
use crate::study::detection::figures::Happened;

/// Two clients of which the second sees what the first does, with something wrong at the end.
fn ground() -> Ground {
    let (one, other) = (plant(260, 2, 1), plant(260, 3, 2));
    let other = Array2::from_shape_fn((260, 3), |(t, k)| other[[t, k]] + 0.8 * one[[t, 0]]);
    Ground {
        names: vec!["C1".into(), "C2".into()],
        rows: vec![one, other],
        delivered: None,
        states: None,
        anomalous: (0..260).map(|t| (240..250).contains(&t)).collect(),
        events: vec![Happened { window: Window::new(240, 249), origin: 0, affected: vec![1] }],
        period_s: 1.0,
        fit: 0..80,
        nominal: 80..220,
    }
}

fn small() -> Lesson {
    let effort = Effort {
        rows: 80,
        epochs: 1,
        passes: 2,
        oracle_rows: 60,
        oracle_epochs: 1,
        oracle_width: 6,
    };
    Lesson { plant: Plant::Twin(2), seed: 5, effort }
}

fn done(found: &Findings, family: &str) -> Done {
    let inputs = json!({ "family": family, "seed": 5 });
    Done { inputs, result: serde_json::to_value(found).unwrap() }
}

#[test]
fn a_lesson_says_the_same_each_time_and_is_read_back_as_it_was_written() {
    let found = small().on(&ground(), Some(0.5)).unwrap();
    assert_eq!(found, small().on(&ground(), Some(0.5)).unwrap());
    let read: Findings = done(&found, "A2").read().unwrap();
    assert_eq!(read, found);
    let other = Lesson { seed: 6, ..small() }.on(&ground(), None).unwrap();
    assert_ne!(other.courses, found.courses);
}

#[test]
fn bytes_are_counted_and_without_weight_nothing_is_sent_back() {
    let found = small().on(&ground(), None).unwrap();
    assert_eq!(found.courses.len(), ETA2.len());
    for course in &found.courses {
        assert_eq!(course.rounds, 2 * 79);
        // x̂_c and x_a up, one gradient down: two states of four bytes each, for two clients.
        assert_eq!(course.bytes_up, course.rounds as u64 * 2 * 2 * 2 * 4);
        let answers = if course.eta2 > 0.0 { course.rounds as u64 } else { 0 };
        assert_eq!(course.bytes_down, answers * 2 * 2 * 4);
        assert_eq!((course.passes.len(), course.end.len()), (2, 2));
        let last = course.passes[1];
        let mean = course.end.iter().map(|b| b.x_s).sum::<f64>() / 2.0;
        assert!((last.x_s - mean).abs() < 1e-12, "the last pass is the end");
    }
    let (silent, answered) = (found.course(0.0).unwrap(), found.course(10.0).unwrap());
    assert_ne!(silent.client_loss, answered.client_loss, "a gradient that is sent is used");
}

#[test]
fn maps_and_norms_are_of_every_client_and_model() {
    let found = small().on(&ground(), None).unwrap();
    let models: Vec<&str> = found.maps.iter().map(|map| map.model.as_str()).collect();
    assert_eq!(models, ["proprietary", "augmented", "server", "oracle"]);
    for map in &found.maps {
        assert_eq!(map.names, ["C1.1", "C1.2", "C2.1", "C2.2"]);
        assert!((0..4).all(|k| (map.values[5 * k] - 1.0).abs() < 1e-12));
        assert!(map.canonical + 1e-9 >= map.between && map.canonical <= 1.0, "{map:?}");
    }
    let steps: Vec<usize> = found.norms.iter().map(|norms| norms.steps).collect();
    assert_eq!(steps, [40, 140, 10, 40, 140, 10]);
    assert_eq!(found.traces.len(), 2);
    assert!(found.traces.iter().all(|t| t.first == 140 && t.r_c.len() == 120));
}

#[test]
fn what_is_said_about_lessons_is_made_of_their_numbers() {
    let found = small().on(&ground(), Some(0.4)).unwrap();
    let done = [done(&found, "A2"), done(&found, "A2"), done(&found, "plant")];
    for name in ["convergence", "correlation", "residuals"] {
        let study = catalogue::find(name).unwrap();
        let report = study.report(&Options::default(), &done).unwrap();
        assert!((2..=4).contains(&report.reading.len()), "{name}: {:?}", report.reading);
        assert!(report.reading.iter().all(|said| !said.contains("NaN")), "{:?}", report.reading);
        assert!(!report.tables.is_empty() && !report.charts.is_empty());
        let rows = serde_json::to_string(&report).unwrap();
        assert!(rows.contains("\"family\":\"A2\"") && rows.contains("\"family\":\"plant\""));
        assert!(study.report(&Options::default(), &[]).unwrap().reading.is_empty(), "{name}");
    }
}

#[test]
fn three_studies_share_their_lessons() {
    let quick = Options { quick: true, ..Options::default() };
    let inputs = |name: &str| -> Vec<serde_json::Value> {
        let jobs = catalogue::find(name).unwrap().jobs(&quick).unwrap();
        jobs.into_iter().map(|job| job.inputs).collect()
    };
    let first = inputs("convergence");
    assert_eq!(first.len(), 2);
    assert_eq!((&first, &first), (&inputs("correlation"), &inputs("residuals")));
}
