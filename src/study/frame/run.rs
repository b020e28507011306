//! Does the jobs of a study on the cores there are.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::Value;

use super::{Done, Job, Options, Store, Study, StudyError};
use crate::study::report::Report;

/// Progress of a study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress<'a> {
    /// So many jobs are to be done.
    Jobs(usize),
    /// A job has begun.
    Begun(&'a str),
    /// A job is done, or was kept from before.
    Done(&'a str),
    /// A kept result cannot be read and is made again, or a result cannot be kept.
    Notice(&'a str),
}

/// How jobs are done.
pub(crate) struct Bench<'a> {
    /// Where results are kept.
    pub(crate) store: &'a Store,
    /// Jobs at a time.
    pub(crate) threads: usize,
    /// Raised when nothing more is to be begun.
    pub(crate) stop: &'a AtomicBool,
    /// Told of every job.
    pub(crate) on_progress: &'a (dyn Fn(Progress) + Sync),
}

/// A study that was run.
#[derive(Debug)]
pub(crate) struct Ran {
    /// What it says about the jobs that were done.
    pub(crate) report: Report,
    /// Jobs that were not done because of a wish to stop.
    pub(crate) left: usize,
    /// Jobs that could not be done.
    pub(crate) failures: Vec<StudyError>,
}

/// Runs a study: kept results are taken as they are, all others are made.
pub(crate) fn run(study: &dyn Study, options: &Options, bench: &Bench) -> Result<Ran, StudyError> {
    let jobs = study.jobs(options)?;
    (bench.on_progress)(Progress::Jobs(jobs.len()));
    let results = work(study.name(), &jobs, bench);
    let (mut done, mut failures, mut left) = (Vec::new(), Vec::new(), 0);
    for (job, result) in jobs.iter().zip(results) {
        match result {
            Some(Ok(result)) => done.push(Done { inputs: job.inputs.clone(), result }),
            Some(Err(error)) => failures
                .push(StudyError::Job { label: job.label.clone(), reason: error.to_string() }),
            None => left += 1,
        }
    }
    Ok(Ran { report: study.report(options, &done)?, left, failures })
}

type Outcome = Option<Result<Value, StudyError>>;

/// One outcome per job in the order of the jobs, whatever the order in which they were done.
fn work(study: &str, jobs: &[Job], bench: &Bench) -> Vec<Outcome> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&job| std::cmp::Reverse(jobs[job].cost));
    let outcomes: Vec<Mutex<Outcome>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        while let Some(&at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            if bench.stop.load(Ordering::Relaxed) {
                return;
            }
            let outcome = one(study, &jobs[at], bench);
            *outcomes[at].lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(outcome);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..bench.threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(worker);
        }
    });
    let inner = |outcome: Mutex<Outcome>| {
        outcome.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    };
    outcomes.into_iter().map(inner).collect()
}

fn one(study: &str, job: &Job, bench: &Bench) -> Result<Value, StudyError> {
    let study = job.shared.unwrap_or(study);
    let kept = bench.store.find(study, &job.inputs).unwrap_or_else(|why| {
        (bench.on_progress)(Progress::Notice(&format!("{why}; the result is made again")));
        None
    });
    let result = if let Some(kept) = kept {
        kept
    } else {
        (bench.on_progress)(Progress::Begun(&job.label));
        let (result, kept) = bench.store.keep(study, &job.inputs, &(job.work)()?);
        if let Err(why) = kept {
            // The folder, not the file: one notice serves all jobs.
            let (folder, why) = (bench.store.folder().display(), why.source);
            let notice = format!(
                "cannot write to {folder}: {why}; the study goes on, and its results are not kept"
            );
            (bench.on_progress)(Progress::Notice(&notice));
        }
        result
    };
    (bench.on_progress)(Progress::Done(&job.label));
    Ok(result)
}
