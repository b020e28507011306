use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;

use super::*;
use crate::study::report::{Columns, Line, columns};

/// Counts the jobs that were really done.
static DONE: AtomicUsize = AtomicUsize::new(0);

/// Squares numbers.
const SQUARES: Study = Study {
    name: "squares",
    about: "squares of seeds",
    needs_data: false,
    first: None,
    jobs: |options| {
        let job = |seed: u64| {
            Job::new(format!("seed {seed}"), json!({ "seed": seed }), move || {
                DONE.fetch_add(1, Ordering::Relaxed);
                if seed == 13 {
                    return Err("bad luck".into());
                }
                Ok((seed * seed) as f64 / 3.0)
            })
            .costing(seed as u32)
        };
        Ok(options.seeds(4, 2).into_iter().map(job).collect())
    },
    report: |_, done| {
        let runs: Vec<(u64, f64)> = done
            .iter()
            .map(|done| Ok((done.input("seed")?, done.read()?)))
            .collect::<Result<_, StudyError>>()?;
        let lines = Line::group(runs.iter().map(|run| ("squares", run.0.to_string(), run)));
        let columns: Columns<(u64, f64)> =
            Columns(const { &[columns::mean("value", "value", 2, |run| Some(run.1))] });
        Ok(Report { rows: columns.rows(&lines), ..Report::default() })
    },
};

fn ran(options: &StudyOptions, store: &Store, threads: usize, stop_after: usize) -> Ran {
    let stop = AtomicBool::new(stop_after == 0);
    let done = AtomicUsize::new(0);
    let on_progress = |progress: Progress| {
        if matches!(progress, Progress::Done(_))
            && done.fetch_add(1, Ordering::Relaxed) + 1 >= stop_after
        {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let shop = Workshop { store, threads, stop: &stop, on_progress: &on_progress };
    run(&SQUARES, options, &shop, &mut |_| unreachable!("no job takes so long"))
        .expect("a study that needs nothing")
}

fn json(ran: &Ran) -> String {
    serde_json::to_string(&ran.report).expect("plain data")
}

/// One test, since the number of jobs that were really done is counted for the whole process.
#[test]
fn finished_jobs_are_kept_and_only_the_rest_is_done_the_next_time() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let store = Store::new(folder.path().to_owned(), "this program".into());
    let times = || DONE.load(Ordering::Relaxed);
    let options = StudyOptions::default();

    let stopped = ran(&options, &store, 1, 3);
    assert_eq!((stopped.left, times()), (1, 3));
    // The longest job is begun first, the order of rows is that of the jobs.
    assert_eq!(
        json(&stopped).matches("\"method\":\"").count(),
        3,
        "what was finished is in the report"
    );
    assert!(!json(&stopped).contains(r#""method":"1""#));

    let resumed = ran(&options, &store, 1, usize::MAX);
    assert_eq!((resumed.left, times()), (0, 4));
    let again = ran(&options, &store, 2, usize::MAX);
    assert_eq!((json(&again), times()), (json(&resumed), 4));

    let elsewhere = tempfile::tempdir().expect("a folder for the test");
    let fresh = Store::new(elsewhere.path().to_owned(), "this program".into());
    assert_eq!(json(&ran(&options, &fresh, 3, usize::MAX)), json(&resumed));
    assert_eq!(times(), 8);

    let rebuilt = Store::new(folder.path().to_owned(), "another program".into());
    assert_eq!(json(&ran(&options, &rebuilt, 2, usize::MAX)), json(&resumed));
    assert_eq!(times(), 12, "another program does its own jobs");

    let unlucky = ran(&StudyOptions { seeds: Some(13), ..options }, &store, 2, usize::MAX);
    assert_eq!(unlucky.failures.len(), 1);
    assert!(unlucky.failures[0].to_string().starts_with("seed 13: "));
    assert_eq!(json(&unlucky).matches("method").count(), 12, "the others are reported");
    assert_eq!(unlucky.report.command, "headwater study squares --seeds 13");
}

/// A store with one result in it, and the file of that result.
fn kept(folder: &std::path::Path) -> (Store, std::path::PathBuf) {
    let store = Store::new(folder.to_owned(), "this program".into());
    let (result, kept) = store.keep("squares", &json!({ "seed": 3 }), &json!([1.5, "nine"]));
    kept.expect("kept");
    assert_eq!(store.find("squares", &json!({ "seed": 3 })), Ok(Some(result)));
    let file = std::fs::read_dir(folder).expect("a folder").next().expect("a file").expect("one");
    (store, file.path())
}

#[test]
fn every_flipped_bit_of_a_kept_result_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let (store, file) = kept(folder.path());
    let bytes = std::fs::read(&file).expect("kept");
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[place] ^= 1 << bit;
            std::fs::write(&file, flipped).expect("written");
            let found = store.find("squares", &json!({ "seed": 3 }));
            let why = found.expect_err("noticed");
            assert!(why.ends_with("cannot be read: checksum differs"), "{why}");
        }
    }
    std::fs::write(&file, "").expect("written");
    assert!(store.find("squares", &json!({ "seed": 3 })).is_err(), "cut to nothing");
}

#[test]
fn results_that_cannot_be_kept_are_reported_all_the_same() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let in_the_way = folder.path().join("in the way");
    std::fs::write(&in_the_way, "").expect("written");
    let store = Store::new(in_the_way.join("studies"), "this program".into());
    let (result, kept) = store.keep("squares", &json!({ "seed": 3 }), &json!(9.0));
    assert_eq!(result, json!(9.0));
    assert!(kept.expect_err("no folder").to_string().contains("in the way"));
    assert_eq!(store.find("squares", &json!({ "seed": 3 })), Ok(None));
}

#[test]
fn a_first_table_is_there_before_the_jobs_and_not_once_all_are_kept() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Store::new(folder.path().to_owned(), "program".into());
    let study = Study {
        name: "listed",
        first: Some(|kept| Ok(Table::new("list", 1, ["kept"]).note(kept.len().to_string()))),
        jobs: |_| {
            let job = |seed: u64| Job::new("job", json!({ "seed": seed }), move || Ok(seed));
            Ok(vec![job(1), job(2)])
        },
        ..SQUARES
    };
    let options = StudyOptions::default();
    let shown = || before(&study, &options, &store).expect("nothing fails");
    let table = shown().expect("nothing is kept").tables.remove(0);
    assert!(table.notes[0] == "0" && table.notes[1].starts_with("2 of 2 jobs"), "{table:?}");
    for (seed, left) in [(1, Some("1 of 2 jobs")), (2, None)] {
        store.keep("listed", &json!({ "seed": seed }), &json!(seed)).1.expect("it can be kept");
        let notes = shown().map(|mut report| report.tables.remove(0).notes);
        assert_eq!(notes.is_some(), left.is_some());
        assert!(notes.is_none_or(|notes| notes[1].starts_with(left.unwrap_or_default())));
    }
    assert_eq!(before(&SQUARES, &options, &store).expect("nothing fails"), None);
}
