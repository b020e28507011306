//! `headwater study`: tables and figures, ours beside the paper's.

use std::collections::HashSet;
use std::convert::Infallible;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use color_eyre::eyre::{Result, eyre};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{interrupt, remove_stale};
use crate::base::atomic_file::AtomicFile;
use crate::base::notice::print_notice;
use crate::study::catalogue;
use crate::study::frame::{self, Progress, Store, Study, StudyError, StudyOptions, Workshop};
use crate::study::overview;
use crate::study::report::Report;
use crate::study::report::svg::{self, Theme};
use crate::study::report::text::{self, Page};

/// Columns where there is no terminal to ask.
const USUAL_WIDTH: usize = 120;

/// Between two lines of progress where there is no terminal.
const BETWEEN_LINES: Duration = Duration::from_mins(1);

#[derive(Debug, Args)]
pub(super) struct StudyArgs {
    /// Which study, `overview` or `all`; a list of them when absent
    #[arg(value_parser = known)]
    name: Option<String>,
    /// Seeds, or models of recorded data; each study has a usual number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: Option<u64>,
    /// The first seed; the following ones are taken after it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=u64::MAX - 1000))]
    seed_from: Option<u64>,
    /// Fewer seeds and families: an answer in minutes
    #[arg(long)]
    quick: bool,
    /// One JSON object a study instead of tables
    #[arg(long)]
    json: bool,
    /// Draw the charts
    #[arg(long)]
    plot: bool,
    /// Write the charts as SVG files, for light and dark pages
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// Folder with recorded data (HAI, Tennessee Eastman, BATADAL, the lathe of causRCA)
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// The number of threads of candle, which reads it from the environment only.
const CANDLE_THREADS: &str = "RAYON_NUM_THREADS";

/// Starts the program again with one thread of candle a job, unless the environment says how many.
///
/// A study runs a job on each processor. By default candle spreads each job over all processors again
/// and its threads wait without sleeping: the same results for twice the processor time. Within a running
/// program the environment cannot be changed safely. Where the program cannot be started again, the study
/// only takes longer.
#[cfg(unix)]
fn with_one_thread_a_job() {
    use std::os::unix::process::CommandExt as _;
    let mut args = std::env::args_os();
    let (Some(name), Ok(program)) = (args.next(), std::env::current_exe()) else { return };
    if std::env::var_os(CANDLE_THREADS).is_none() {
        let mut again = std::process::Command::new(program);
        let _ = again.arg0(name).args(args).env(CANDLE_THREADS, "1").exec();
    }
}

#[cfg(not(unix))]
fn with_one_thread_a_job() {}

fn known(name: &str) -> Result<String, String> {
    if ["all", overview::NAME].contains(&name) || catalogue::find(name).is_some() {
        return Ok(name.to_owned());
    }
    let names: Vec<&str> = catalogue::ALL.into_iter().map(|study| study.name).collect();
    let meant = catalogue::nearest(name);
    let meant = meant.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
    Err(format!("{meant}there are {}, {} and all", names.join(", "), overview::NAME))
}

pub(super) fn run(out: &mut impl Write, args: &StudyArgs) -> Result<()> {
    let Some(name) = &args.name else { return list(out) };
    with_one_thread_a_job();
    let studies: Vec<&Study> = match name.as_str() {
        // Studies of promises repeat what the others measure.
        "all" | overview::NAME => {
            catalogue::ALL.into_iter().filter(|study| !study.repeats()).collect()
        }
        name => catalogue::find(name).into_iter().collect(),
    };
    let options = StudyOptions {
        seeds: args.seeds.map(|seeds| seeds as usize),
        first_seed: args.seed_from,
        quick: args.quick,
        data: args.data.clone(),
    };
    let stop = interrupt::watch_slow(
        "what is finished is kept and shown",
        "interrupted: what is finished is kept, and the same command goes on",
    );
    let store = Store::of_process();
    let mut failures = Vec::new();
    let mut left = 0;
    let mut begun = 0;
    let is_overview = name == overview::NAME;
    let mut reports = Vec::new();
    let is_begun = match studies[..] {
        [study] if !args.json => show_before(out, study, &options, &store, args)?,
        _ => false,
    };
    for study in &studies {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        begun += 1;
        let is_first = reports.is_empty() && !is_begun;
        // Jobs that are under way a while after Ctrl-C end with the program.
        let mut on_stuck = |ran: Result<frame::Ran, StudyError>| -> Infallible {
            let shown = match ran {
                Ok(ran) if is_overview => Ok(ran.left),
                Ok(ran) => show(out, &ran.report, args, is_first).map(|()| ran.left),
                Err(why) => Err(why.into()),
            };
            match shown {
                Ok(jobs) => {
                    let why = interrupted(left + jobs, studies.len() - begun);
                    interrupt::end(&why.unwrap_or_default())
                }
                Err(why) => interrupt::end(&why.to_string()),
            }
        };
        match one(study, &options, &store, &stop, &mut on_stuck) {
            Ok(ran) => {
                if !is_overview {
                    show(out, &ran.report, args, is_first)?;
                }
                reports.push(ran.report);
                left += ran.left;
                if ran.left > 0 {
                    print_notice(format!("{}: {} jobs left", study.name, ran.left));
                }
                failures.extend(ran.failures.iter().map(ToString::to_string));
            }
            Err(StudyError::NoData { study, how }) if studies.len() > 1 => {
                print_notice(format!("{study} is left out: {how}"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    if studies.len() > 1 {
        show(out, &overview::overview(&reports), args, is_overview)?;
    }
    failures.extend(interrupted(left, studies.len() - begun));
    if failures.is_empty() { Ok(()) } else { Err(eyre!("{}", failures.join("; "))) }
}

/// Shows what a study can say before its jobs, which may take hours. Whether there was anything.
fn show_before(
    out: &mut impl Write,
    study: &Study,
    options: &StudyOptions,
    store: &Store,
    args: &StudyArgs,
) -> Result<bool> {
    let report = frame::before(study, options, store)?;
    report.as_ref().map_or(Ok(()), |report| show(out, report, args, true))?;
    Ok(report.is_some())
}

/// The failure of an unfinished study. Its tables and its exit code both say that it is incomplete.
fn interrupted(jobs: usize, studies: usize) -> Option<String> {
    let count = |n: usize, one: &str, many: &str| match n {
        0 => None,
        1 => Some(format!("1 {one}")),
        n => Some(format!("{n} {many}")),
    };
    let left = [count(jobs, "job", "jobs"), count(studies, "study", "studies")];
    let left = left.into_iter().flatten().reduce(|all, more| format!("{all} and {more}"))?;
    Some(format!(
        "interrupted: {left} left; what is finished is kept, and the same command goes on"
    ))
}

fn list(out: &mut impl Write) -> Result<()> {
    for study in catalogue::ALL {
        writeln!(out, "{:<12} {}", study.name, study.about)?;
    }
    writeln!(out, "{:<12} {}", overview::NAME, overview::ABOUT)?;
    writeln!(out, "{:<12} all of them, one after the other, then the overview", "all")?;
    Ok(())
}

fn one(
    study: &Study,
    options: &StudyOptions,
    store: &Store,
    stop: &AtomicBool,
    on_stuck: &mut dyn FnMut(Result<frame::Ran, StudyError>) -> Infallible,
) -> Result<frame::Ran, StudyError> {
    let bar = bar(study.name);
    // Jobs run side by side, and all of them find the same folder full.
    let said = Mutex::new(HashSet::new());
    // Without a terminal there is no bar: a study of an hour says now and then how far it is.
    let last = (!io::stderr().is_terminal()).then(|| Mutex::new(Instant::now()));
    let on_progress = |progress: Progress| match progress {
        Progress::Notice(what) => {
            let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
            if said.insert(what.to_owned()) {
                bar.suspend(|| print_notice(what));
            }
        }
        Progress::Jobs(jobs) => bar.set_length(jobs as u64),
        Progress::Begun(label) => bar.set_message(label.to_owned()),
        Progress::Done(_) => {
            bar.inc(1);
            let Some(last) = &last else { return };
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.elapsed() >= BETWEEN_LINES {
                *last = Instant::now();
                let (done, all) = (bar.position(), bar.length().unwrap_or(0));
                print_notice(format!("{}: {done} of {all} jobs", study.name));
            }
        }
    };
    let threads = crate::base::threads::threads();
    let shop = Workshop { store, threads, stop, on_progress: &on_progress };
    let ran = frame::run(study, options, &shop, &mut |ran| {
        bar.finish_and_clear();
        on_stuck(ran)
    });
    bar.finish_and_clear();
    ran
}

fn bar(study: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len} {elapsed} {msg}");
    let bar = ProgressBar::new(0)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_prefix(study);
    if io::stderr().is_terminal() {
        bar.enable_steady_tick(Duration::from_millis(200));
    } else {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar
}

fn show(out: &mut impl Write, report: &Report, args: &StudyArgs, is_first: bool) -> Result<()> {
    if args.json {
        writeln!(out, "{}", serde_json::to_string(report)?)?;
    } else {
        if !is_first {
            writeln!(out)?;
        }
        let page = Page { width: width(), charts: args.plot };
        write!(out, "{}", text::render(report, page))?;
    }
    // While the next study runs, this one can be read.
    out.flush()?;
    if let Some(folder) = &args.svg {
        write_charts(folder, report)?;
    }
    Ok(())
}

fn width() -> usize {
    if io::stdout().is_terminal()
        && let Ok((columns, _)) = crossterm::terminal::size()
    {
        return usize::from(columns);
    }
    USUAL_WIDTH
}

fn write_charts(folder: &Path, report: &Report) -> Result<()> {
    for chart in &report.charts {
        for theme in Theme::ALL {
            let name = format!("{}-{}-{}.svg", report.study, chart.name, theme.name());
            remove_stale(folder, &name);
            let mut draft = AtomicFile::create(folder, &name)?;
            draft.fill(|file| file.write_all(svg::draw(chart, theme).as_bytes()))?;
            draft.publish()?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::interrupted;

    #[test]
    fn a_study_with_anything_left_is_a_failure_that_says_so() {
        assert_eq!(interrupted(0, 0), None);
        let cases = [(3, 0, "3 jobs"), (0, 2, "2 studies"), (1, 1, "1 job and 1 study")];
        for (jobs, studies, left) in cases {
            let failure = interrupted(jobs, studies).expect("something is left");
            assert!(failure.starts_with(&format!("interrupted: {left} left")), "{failure}");
        }
    }
}
