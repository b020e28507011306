use super::*;
use crate::engine::experiment::flags::{FlagRuns, Span};
use crate::study::report::text::{Page, render};

fn figures(f1: f64, right: usize) -> Figures {
    Figures {
        precision: Some(f1),
        recall: Some(f1),
        f1: Some(f1),
        f1_from_first_event: Some(f1),
        step_f1: Some(f1 / 2.0),
        inside_precision: Some(f1),
        step_recall: Some(f1),
        inside_f1: Some(f1),
        etapr_f1: Some(f1),
        events: 10,
        detected: 10,
        right,
        false_alarms: 0,
        arl0: RunTotals { watched: 3000.0, ended: usize::from(f1 < 0.9), censored: 1 },
        arl1: RunTotals { watched: 20.0, ended: 10, censored: 0 },
        delays: vec![2.0; 10],
        named: vec![2.0; right],
        ac1: Some(f1),
        ac3: Some(1.0),
        avg5: Some(1.0),
        mrr: Some(1.0),
    }
}

fn done(family: &str, seed: u64, f1: f64) -> Done {
    let method = |name: &str, f1: f64| (name.to_owned(), figures(f1, 10));
    let runs = FlagRuns {
        arl0: RunTotals { watched: 6000.0, ended: 300, censored: 2 },
        arl1: RunTotals { watched: 5.0, ended: 10, censored: 0 },
    };
    let flags = |model: Variant| ModelFlags {
        model: model.name().into(),
        percentile: 95.0,
        span: Span::Step,
        runs,
    };
    let outcome = FamilyResult {
        methods: vec![
            method("pre-trained-95", 0.27),
            method("paper-95", 0.28),
            method("paper-99-vote", 0.9),
            method("evidence", f1),
        ],
        flags: vec![flags(Variant::OnlyProprietary), flags(Variant::Federated)],
        effects: Some([0.5, 0.0, 0.01, 0.49]),
    };
    Done {
        inputs: json!({ "family": family, "seed": seed }),
        result: serde_json::to_value(outcome).expect("plain data"),
    }
}

#[test]
fn the_report_says_what_holds_and_what_does_not() {
    let done = [done("A2", 1, 0.98), done("A2", 2, 1.0), done("B4", 1, 0.7)];
    let options = StudyOptions { seeds: Some(2), ..StudyOptions::default() };
    let report = STUDY.report(&options, &done).expect("a report");
    insta::assert_snapshot!(render(&report, Page { width: 120, charts: true }));
    assert_eq!(report.rows.len(), 2 + 2 * 4);
    let evidence = report.rows.iter().find(|row| {
        row.get("family") == Some(&json!("B4")) && row.get("method") == Some(&json!("evidence"))
    });
    let evidence = evidence.expect("a row of every method");
    assert_eq!(evidence.get("f1"), Some(&json!(0.7)));
    assert_eq!(evidence.get("seeds"), Some(&json!(1)));
}

#[test]
fn a_study_that_was_stopped_before_anything_was_finished_still_has_a_report() {
    let report = STUDY.report(&StudyOptions::default(), &[]).expect("an empty report");
    assert!(report.rows.is_empty() && report.reading.is_empty());
}

#[test]
fn a_quick_study_has_fewer_jobs_and_every_job_its_own_inputs() {
    let made = |quick| {
        let options = StudyOptions { quick, ..StudyOptions::default() };
        jobs(&options)
    };
    let (all, quick) = (made(false), made(true));
    assert_eq!(all.len(), 8 * 5 + 2 * 3);
    assert!(quick.len() < all.len() / 3);
    let mut inputs: Vec<String> = all.iter().map(|job| job.inputs.to_string()).collect();
    inputs.sort();
    inputs.dedup();
    assert_eq!(inputs.len(), all.len());
}
