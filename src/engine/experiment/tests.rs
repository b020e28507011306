//! A whole federation experiment, small.

use ndarray::Array2;

use serde_json::json;

use super::dataset::{Dataset, DatasetSource};
use super::federation::{ETA2, Effort, FederationExperiment, Results};
use crate::nn::train::test_support::plant;
use crate::score::metrics::Window;
use crate::score::steps::TruthEvent;
use crate::study::catalogue;
use crate::study::frame::{Done, StudyOptions};

/// Two clients of which the second sees what the first does, with something wrong at the end.
fn dataset() -> Dataset {
    let (one, other) = (plant(260, 2, 1), plant(260, 3, 2));
    let other = Array2::from_shape_fn((260, 3), |(t, k)| other[[t, k]] + 0.8 * one[[t, 0]]);
    Dataset {
        names: vec!["C1".into(), "C2".into()],
        rows: vec![one, other],
        delivered: None,
        states: None,
        anomalous: (0..260).map(|t| (240..250).contains(&t)).collect(),
        events: vec![TruthEvent {
            window: Window::new(240, 249),
            origin: 0,
            affected: vec![1],
            tail: 6,
        }],
        period_s: 1.0,
        fit: 0..80,
        nominal: 80..220,
    }
}

fn small() -> FederationExperiment {
    let effort = Effort {
        rows: 80,
        epochs: 1,
        passes: 2,
        oracle_epochs: 1,
        oracle_width: 6,
        augment_width: 16,
        constant_step: false,
    };
    FederationExperiment { source: DatasetSource::Twin(2), seed: 5, effort }
}

fn done(found: &Results, family: &str) -> Done {
    let inputs = json!({ "family": family, "seed": 5 });
    Done { inputs, result: serde_json::to_value(found).unwrap() }
}

#[test]
fn an_experiment_gives_the_same_results_each_time_and_they_are_read_back_as_written() {
    let found = small().on(&dataset(), Some(0.5)).unwrap();
    assert_eq!(found, small().on(&dataset(), Some(0.5)).unwrap());
    let read: Results = done(&found, "A2").read().unwrap();
    assert_eq!(read, found);
    let other = FederationExperiment { seed: 6, ..small() }.on(&dataset(), None).unwrap();
    assert_ne!(other.curves, found.curves);
}

#[test]
fn bytes_are_counted_and_without_weight_nothing_is_sent_back() {
    let found = small().on(&dataset(), None).unwrap();
    assert_eq!(found.curves.len(), ETA2.len());
    for curve in &found.curves {
        assert_eq!(curve.rounds, 2 * 79);
        // x̂_c and x_a up, one gradient down: two states of four bytes each, for two clients.
        assert_eq!(curve.bytes_up, curve.rounds as u64 * 2 * 2 * 2 * 4);
        let answers = if curve.eta2 > 0.0 { curve.rounds as u64 } else { 0 };
        assert_eq!(curve.bytes_down, answers * 2 * 2 * 4);
        assert_eq!((curve.passes.len(), curve.end.len()), (2, 2));
        let last = curve.passes[1];
        let mean = curve.end.iter().map(|b| b.x_s).sum::<f64>() / 2.0;
        assert!((last.x_s - mean).abs() < 1e-12, "the last pass is the end");
    }
    let (silent, answered) = (found.curve(0.0).unwrap(), found.curve(10.0).unwrap());
    assert_ne!(silent.client_loss, answered.client_loss, "a gradient that is sent is used");
}

#[test]
fn maps_and_norms_are_of_every_client_and_model() {
    let found = small().on(&dataset(), None).unwrap();
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
fn the_sentences_of_a_study_are_made_of_its_numbers() {
    let found = small().on(&dataset(), Some(0.4)).unwrap();
    let done = [done(&found, "A2"), done(&found, "A2"), done(&found, "plant")];
    for name in ["convergence", "correlation", "residuals"] {
        let study = catalogue::find(name).unwrap();
        let report = study.report(&StudyOptions::default(), &done).unwrap();
        assert!((2..=4).contains(&report.reading.len()), "{name}: {:?}", report.reading);
        assert!(
            report.reading.iter().all(|sentence| !sentence.contains("NaN")),
            "{:?}",
            report.reading
        );
        assert!(!report.tables.is_empty() && !report.charts.is_empty());
        let rows = serde_json::to_string(&report).unwrap();
        assert!(rows.contains("\"family\":\"A2\"") && rows.contains("\"family\":\"plant\""));
        assert!(study.report(&StudyOptions::default(), &[]).unwrap().reading.is_empty(), "{name}");
    }
}

#[test]
fn three_studies_share_their_experiments() {
    let quick = StudyOptions { quick: true, ..StudyOptions::default() };
    let inputs = |name: &str| -> Vec<serde_json::Value> {
        let jobs = (catalogue::find(name).unwrap().jobs)(&quick).unwrap();
        jobs.into_iter().map(|job| job.inputs).collect()
    };
    let first = inputs("convergence");
    assert_eq!(first.len(), 4, "the paper's plant and the built-in one, at both settings");
    assert_eq!((&first, &first), (&inputs("correlation"), &inputs("residuals")));
}
