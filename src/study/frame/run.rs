//! Does the jobs of a study on the cores there are.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Done, Failure, Job, Store, Study, StudyError, StudyOptions};
use crate::study::report::Report;

/// So long after `stop` jobs under way are waited for.
const PATIENCE: Duration = Duration::from_millis(1200);
/// How often it is looked whether to stop.
const GLANCE: Duration = Duration::from_millis(50);

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
pub(crate) struct Workshop<'a> {
    pub store: &'a Store,
    /// Jobs at a time.
    pub threads: usize,
    /// Raised when no further job is to be begun.
    pub stop: &'a AtomicBool,
    pub on_progress: &'a (dyn Fn(Progress) + Sync),
}

/// A study that was run.
#[derive(Debug)]
pub(crate) struct Ran {
    /// On the finished jobs.
    pub report: Report,
    /// Number of jobs that were not finished because of `stop`.
    pub left: usize,
    pub failures: Vec<StudyError>,
}

/// Runs a study: kept results are taken as they are, all others are made. Jobs cannot be broken off: where
/// some are still under way a while after `stop`, `on_stuck` gets what is finished, and ends the
/// program.
pub(crate) fn run(
    study: &Study,
    options: &StudyOptions,
    shop: &Workshop,
    on_stuck: &mut dyn FnMut(Result<Ran, StudyError>) -> Infallible,
) -> Result<Ran, StudyError> {
    let jobs = (study.jobs)(options)?;
    (shop.on_progress)(Progress::Jobs(jobs.len()));
    let mut stuck = |results| on_stuck(sum_up(study, options, &jobs, results));
    let results = work(study.name, &jobs, shop, &mut stuck);
    sum_up(study, options, &jobs, results)
}

/// The first table of a study, to be shown before its jobs; none where it has no such table or where nothing
/// is left to do, so that the whole report comes at once.
pub(crate) fn before(
    study: &Study,
    options: &StudyOptions,
    store: &Store,
) -> Result<Option<Report>, StudyError> {
    let Some(first) = study.first else { return Ok(None) };
    let jobs = (study.jobs)(options)?;
    let kept: Vec<Done> = (jobs.iter())
        .filter_map(|job| {
            let name = job.shared.unwrap_or(study.name);
            // One that cannot be read is made again, and said then.
            let result = store.find(name, &job.inputs).ok().flatten()?;
            Some(Done { inputs: job.inputs.clone(), result })
        })
        .collect();
    let left = jobs.len() - kept.len();
    if left == 0 {
        return Ok(None);
    }
    let table = first(&kept)?.note(format!(
        "{left} of {} jobs are to be done now. Then the same follows with what they measure; Ctrl-C keeps what \
         is finished.",
        jobs.len()
    ));
    Ok(Some(Report {
        study: study.name.into(),
        title: study.about.into(),
        command: options.command(study),
        tables: vec![table],
        ..Report::default()
    }))
}

fn sum_up(
    study: &Study,
    options: &StudyOptions,
    jobs: &[Job],
    results: Vec<Outcome>,
) -> Result<Ran, StudyError> {
    let (mut done, mut failures, mut left) = (Vec::new(), Vec::new(), 0);
    for (job, result) in jobs.iter().zip(results) {
        match result {
            Some(Ok(result)) => done.push(Done { inputs: job.inputs.clone(), result }),
            Some(Err(reason)) => {
                failures.push(StudyError::Job { label: job.label.clone(), reason });
            }
            None => left += 1,
        }
    }
    Ok(Ran { report: study.report(options, &done)?, left, failures })
}

type Outcome = Option<Result<Value, Failure>>;

/// One outcome per job in the order of the jobs, whatever the order in which they were done.
fn work(
    study: &str,
    jobs: &[Job],
    shop: &Workshop,
    on_stuck: &mut dyn FnMut(Vec<Outcome>) -> Infallible,
) -> Vec<Outcome> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&job| std::cmp::Reverse(jobs[job].cost));
    let outcomes: Vec<Mutex<Outcome>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        while let Some(&at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            if shop.stop.load(Ordering::Relaxed) {
                return;
            }
            let outcome = one(study, &jobs[at], shop);
            *outcomes[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        }
    };
    std::thread::scope(|scope| {
        let (working, is_over) = mpsc::channel::<()>();
        for _ in 0..shop.threads.clamp(1, jobs.len().max(1)) {
            let working = working.clone();
            scope.spawn(|| {
                worker();
                drop(working);
            });
        }
        drop(working);
        if is_stuck(&is_over, shop.stop) {
            let take = |outcome: &Mutex<Outcome>| {
                outcome.lock().unwrap_or_else(PoisonError::into_inner).take()
            };
            on_stuck(outcomes.iter().map(take).collect());
        }
    });
    let inner =
        |outcome: Mutex<Outcome>| outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.into_iter().map(inner).collect()
}

/// Waits until nobody works any more, or not for long after `stop`; whether somebody still works.
fn is_stuck(is_over: &mpsc::Receiver<()>, stop: &AtomicBool) -> bool {
    let mut stopped: Option<Instant> = None;
    while is_over.recv_timeout(GLANCE) != Err(mpsc::RecvTimeoutError::Disconnected) {
        if stop.load(Ordering::Relaxed)
            && stopped.get_or_insert_with(Instant::now).elapsed() >= PATIENCE
        {
            return true;
        }
    }
    false
}

fn one(study: &str, job: &Job, shop: &Workshop) -> Result<Value, Failure> {
    let study = job.shared.unwrap_or(study);
    let kept = shop.store.find(study, &job.inputs).unwrap_or_else(|why| {
        (shop.on_progress)(Progress::Notice(&format!("{why}; the result is made again")));
        None
    });
    let result = if let Some(kept) = kept {
        kept
    } else {
        (shop.on_progress)(Progress::Begun(&job.label));
        let (result, kept) = shop.store.keep(study, &job.inputs, &(job.work)()?);
        if let Err(why) = kept {
            // The folder, not the file: one notice serves all jobs.
            let (folder, why) = (shop.store.folder().display(), why.source);
            let notice = format!(
                "cannot write to {folder}: {why}; the study goes on, and its results are not kept"
            );
            (shop.on_progress)(Progress::Notice(&notice));
        }
        result
    };
    (shop.on_progress)(Progress::Done(&job.label));
    Ok(result)
}
