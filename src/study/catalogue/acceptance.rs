//! What was promised, measured on data that nothing was tuned on: the built-in plant, data sets of
//! others, synthetic plants. Promises that are not kept are named.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::splices::{self, Spliced};
use super::sudden::{self, Sudden};
use crate::engine;
use crate::engine::experiment::recorded::with_data;
use crate::engine::handle::Options;
use crate::engine::prepare::{Prepared, Stage, cache_file, prepare};
use crate::score::rate::range_of_mean;
use crate::score::{Score, SensorScore};
use crate::session::{Session, Stretch};
use crate::study::detection::figures::Figures;
use crate::study::detection::watch::watch;
use crate::study::detection::{Models, TWINS, Twin};
use crate::study::frame::{Done, Failure, Job, Study, StudyError, StudyOptions};
use crate::study::report::columns::{self, all, family, json as figure, mean, seeds};
use crate::study::report::{Cell, Columns, Figure, Report, Row, Table};

pub(super) const OUTSIDE: Study = Study {
    name: "outside",
    about: "data of others: Tennessee Eastman, BATADAL, a lathe, HAI pieces, with incidents per fault",
    needs_data: true,
    first: None,
    jobs: |options| {
        let jobs = outside_jobs(options)?;
        if jobs.is_empty() {
            let how = "name the folder that holds tep, batadal, causrca and hai with --data";
            return Err(StudyError::NoData { study: "outside", how: how.into() });
        }
        Ok(jobs)
    },
    report: |_, done| report(done),
};

pub(super) const ACCEPTANCE: Study = Study {
    name: "acceptance",
    about: "every figure that was promised, on seeds and data that nothing was tuned on",
    needs_data: true,
    first: None,
    jobs: |options| {
        let mut jobs = outside_jobs(options)?;
        jobs.extend(plant_jobs(options));
        Ok(jobs)
    },
    report: |_, done| report(done),
};

/// First seeds of the built-in and of the synthetic plants, when none is asked for.
const PLANT_SEED: u64 = 200;
const TWIN_SEED: u64 = 90_001;

/// A session over data of others.
struct Outside {
    label: &'static str,
    session: &'static str,
    /// Files of fit, calibration and replay, where they are not those of the session.
    files: Option<[&'static str; 3]>,
}

const DATA: [Outside; 6] = [
    Outside { label: "tep", session: "tep", files: None },
    Outside { label: "batadal", session: "batadal", files: None },
    Outside { label: "lathe", session: "causrca", files: None },
    // Two-fold cross-validation over the normal runs of the lathe.
    Outside {
        label: "lathe, normal runs",
        session: "causrca",
        files: Some(["real_[23]*", "real_4*", "real_[5-9]*"]),
    },
    Outside {
        label: "lathe, normal runs",
        session: "causrca",
        files: Some(["real_5*", "real_[6-9]*", "real_[1-4]*"]),
    },
    Outside { label: "hai pieces", session: "hai-21.03-fragments", files: None },
];

impl Outside {
    /// The session where its data is; none where it is not.
    fn open(&self, data: Option<&Path>) -> Result<Option<Session>, Failure> {
        let mut session = Session::open(self.session)?;
        if let Some(files) = self.files {
            let stretch =
                |file: &str| Stretch { files: vec![file.to_owned()], ..Stretch::default() };
            session.ranges.fit = stretch(files[0]);
            session.ranges.calibration = stretch(files[1]);
            session.ranges.replay = stretch(files[2]);
        }
        Ok(with_data(&session, data)?.ok())
    }
}

fn outside_jobs(options: &StudyOptions) -> Result<Vec<Job>, StudyError> {
    let mut jobs = Vec::new();
    for outside in &DATA {
        let session = outside.open(options.data.as_deref());
        let Some(session) = session.map_err(StudyError::Session)? else {
            continue;
        };
        let label = outside.label;
        let replay = session.ranges.replay.files.join(" ");
        let inputs = json!({ "data": label, "replay": replay });
        jobs.push(Job::new(format!("{label}, {replay}"), inputs, move || scored(&session)));
    }
    Ok(jobs)
}

fn plant_jobs(options: &StudyOptions) -> Vec<Job> {
    let mut jobs = Vec::new();
    for seed in options.seeds_from(PLANT_SEED, 20, 2) {
        for name in ["plant-attack-day", "plant-normal"] {
            let inputs = json!({ "data": name, "seed": seed });
            jobs.push(Job::new(format!("{name}, seed {seed}"), inputs, move || {
                let mut session = Session::open(name)?;
                session.seed = seed;
                // The truth knows which sensors are tampered with; naming one changes no verdict.
                session.privacy.reveal_sensor = true;
                scored(&session)
            }));
        }
    }
    jobs.extend(splices::jobs(options.quick));
    jobs.extend(sudden::jobs(options));
    for twin in TWINS {
        for seed in options.seeds_from(TWIN_SEED, 5, 1) {
            let inputs = json!({ "family": twin.name, "seed": seed });
            let label = format!("{}, seed {seed}", twin.name);
            let job = Job::new(label, inputs, move || figures(&twin, seed));
            jobs.push(job.costing(twin.clients as u32));
        }
    }
    jobs
}

/// Runs a session in its own mode and scores it.
fn scored(session: &Session) -> Result<Option<Score>, Failure> {
    let go_on = &mut |_: Stage| ControlFlow::Continue(());
    judged(session, Arc::new(prepare(session, &cache_file(session), go_on)?))
}

/// The score of a run with models that are there.
pub(super) fn judged(session: &Session, prepared: Arc<Prepared>) -> Result<Option<Score>, Failure> {
    let (_, ending) = engine::spawn(session, Options::study(prepared))?.into_end(|_, _| {})?;
    Ok(ending.judgement().map(|judgement| judgement.score()))
}

fn figures(twin: &Twin, seed: u64) -> Result<Figures, Failure> {
    let session = twin.session(seed)?;
    let mut models = Models::default();
    Ok(watch(&session, models.of(&session)?)?.figures())
}

type Line<'a> = columns::Line<'a, Score>;

fn right(line: &Line<'_>, of: fn(&Score) -> usize) -> Figure {
    Figure::Count(line.sum(of))
}

/// The share of right roots whose first sensor is right, where that is known.
fn sensors_right(line: &Line<'_>) -> Option<f64> {
    let of = |count: fn(SensorScore) -> usize| -> usize {
        line.runs.iter().filter_map(|score| score.sensors.map(count)).sum()
    };
    let known = of(|sensors| sensors.known);
    (known > 0).then(|| of(|sensors| sensors.right) as f64 / known as f64)
}

/// The mean numbers of false alarms in as long a time that fit the number that was seen.
fn range_of_false_alarms(line: &Line<'_>) -> String {
    let (least, most) = range_of_mean(line.sum(|score| score.false_alarms) as u64);
    format!("{least:.1} to {most:.1}")
}

fn incidents_a_fault(line: &Line<'_>) -> Option<f64> {
    let detected = line.sum(|score| score.detected);
    let all = detected + line.sum(|score| score.repeats);
    (detected > 0).then(|| all as f64 / detected as f64)
}

/// The middle of the delays of all runs.
fn delay_s(line: &Line<'_>) -> Option<f64> {
    let events = line.runs.iter().flat_map(|score| &score.events);
    let mut delays: Vec<f64> = events.filter_map(|event| event.delay_s).collect();
    delays.sort_by(f64::total_cmp);
    delays.get(delays.len() / 2).copied()
}

const COLUMNS: Columns<Score> = Columns(&[
    family("data"),
    seeds("runs"),
    all("faults", "faults", 0, |line| right(line, |score| score.labelled)),
    all("detected", "detected", 0, |line| right(line, |score| score.detected)),
    all("right_at_alarm", "right at alarm", 0, |line| right(line, |s| s.roots.at_alarm)),
    all("right_after_5_steps", "after 5 steps", 0, |line| right(line, |s| s.roots.after_5_steps)),
    all("right_at_close", "at close", 0, |line| right(line, |s| s.roots.at_close)),
    all("right_or_source", "or source", 0, |line| right(line, |s| s.roots.with_source)),
    all("sensor_right", "sensor right", 2, |line| Figure::Number(sensors_right(line))),
    all("false_alarms", "false alarms", 0, |line| right(line, |score| score.false_alarms)),
    all("false_alarms_95", "95 %", 0, |line| Figure::Text(range_of_false_alarms(line))),
    figure("quiet_days", |line| {
        Figure::Number(Some(line.runs.iter().map(|score| score.quiet_days).sum()))
    }),
    all("incidents_per_fault", "incidents a fault", 2, |line| {
        Figure::Number(incidents_a_fault(line))
    }),
    all("delay_s", "delay s", 0, |line| Figure::Number(delay_s(line))),
]);

fn report(done: &[Done]) -> Result<Report, StudyError> {
    let mut runs: Vec<(String, Score)> = Vec::new();
    let mut families: Vec<(String, Vec<f64>)> = Vec::new();
    let mut spliced: Vec<Spliced> = Vec::new();
    let mut twins: Vec<(String, Figures)> = Vec::new();
    let mut accidents: Vec<Sudden> = Vec::new();
    for done in done {
        if let Some(name) = done.input::<Option<String>>("data")? {
            runs.extend(done.read::<Option<Score>>()?.map(|score| (name, score)));
        } else if done.input::<Option<u32>>(splices::DATA)?.is_some() {
            spliced.push(done.read()?);
        } else if done.input::<Option<String>>(sudden::DATA)?.is_some() {
            accidents.push(done.read()?);
        } else {
            let (family, figures): (String, Figures) = (done.input("family")?, done.read()?);
            add(&mut families, family.clone(), figures.f1);
            twins.push((family, figures));
        }
    }
    let lines = Line::group(runs.iter().map(|(name, score)| (name, "evidence", score)));
    let mut promised = Table::new("Promises", 1, ["what", "wanted", "measured", "holds"]);
    let mut broken = Vec::new();
    let mut all_spliced = Spliced::default();
    for seed in &spliced {
        all_spliced.add(seed);
    }
    let of_all: Vec<Promise> = promises(&lines, &families)
        .into_iter()
        .chain(of_splices(&all_spliced))
        .chain(of_accidents(&accidents))
        .collect();
    for promise in &of_all {
        let wanted = format!("{} {}", promise.relation, promise.wanted);
        promised.lines.push(vec![
            Cell::words(promise.what.clone()),
            Cell::words(wanted.clone()),
            Figure::Number(Some(promise.measured)).cell(2),
            Cell::words(if promise.holds { "yes" } else { "NO" }),
        ]);
        if !promise.holds {
            broken.push(format!("{} is {:.2}, wanted {wanted}", promise.what, promise.measured));
        }
    }
    let reading = if broken.is_empty() {
        "All promises that were measured are kept.".to_owned()
    } else {
        format!("Not kept: {}.", broken.join("; "))
    };
    Ok(Report {
        tables: vec![COLUMNS.table("Runs", 1, &lines), promised],
        reading: vec![reading],
        rows: rows(&lines, &twins, &spliced, &accidents, &of_all),
        ..Report::default()
    })
}

const OF_FAMILIES: Columns<Figures> = Columns(&[
    mean("precision", "", 3, |run| run.precision),
    mean("recall", "", 3, |run| run.recall),
    mean("f1", "", 3, |run| run.f1),
    figure("detected", |line| Figure::Count(line.sum(|run| run.detected))),
    figure("false_alarms", |line| Figure::Count(line.sum(|run| run.false_alarms))),
]);

const OF_PROMISES: Columns<Promise> = Columns(&[
    figure("relation", |line| Figure::Text(line.runs[0].relation.to_owned())),
    figure("wanted", |line| Figure::Number(Some(line.runs[0].wanted))),
    figure("measured", |line| Figure::Number(Some(line.runs[0].measured))),
    figure("holds", |line| Figure::Text(if line.runs[0].holds { "yes" } else { "no" }.to_owned())),
]);

/// Runs, synthetic families, second attacks and promises, for other programs.
fn rows(
    runs: &[Line<'_>],
    twins: &[(String, Figures)],
    spliced: &[Spliced],
    accidents: &[Sudden],
    promises: &[Promise],
) -> Vec<Row> {
    let twins = columns::Line::group(twins.iter().map(|(name, run)| (name, "evidence", run)));
    let promises = columns::Line::group(promises.iter().map(|p| ("promise", &p.what[..], p)));
    let mut rows = COLUMNS.rows(runs);
    rows.extend(OF_FAMILIES.rows(&twins));
    rows.extend(splices::rows(spliced));
    rows.extend(sudden::rows(accidents));
    rows.extend(OF_PROMISES.rows(&promises));
    rows
}

fn add(groups: &mut Vec<(String, Vec<f64>)>, name: String, value: Option<f64>) {
    let place = groups.iter().position(|(known, _)| *known == name);
    let place = place.unwrap_or_else(|| {
        groups.push((name, Vec::new()));
        groups.len() - 1
    });
    groups[place].1.extend(value);
}

/// One promise and what came of it.
struct Promise {
    what: String,
    relation: &'static str,
    wanted: f64,
    measured: f64,
    holds: bool,
}

impl Promise {
    fn at_least(what: impl Into<String>, wanted: f64, measured: f64) -> Self {
        let holds = measured >= wanted;
        Self { what: what.into(), relation: "at least", wanted, measured, holds }
    }

    fn at_most(what: impl Into<String>, wanted: f64, measured: f64) -> Self {
        let holds = measured <= wanted;
        Self { what: what.into(), relation: "at most", wanted, measured, holds }
    }
}

/// What was promised about second attacks, where there were any; in proportion where they are fewer.
fn of_splices(spliced: &Spliced) -> Vec<Promise> {
    if spliced.pairs == 0 {
        return Vec::new();
    }
    let wanted = splices::WANTED * spliced.pairs as f64 / 60.0;
    vec![
        Promise::at_least("second attacks: own incident", wanted, spliced.own as f64),
        Promise::at_most("second attacks: not announced", 0.0, spliced.unsaid() as f64),
    ]
}

/// What was promised about accidents that strike everybody at once, where there were any.
fn of_accidents(accidents: &[Sudden]) -> Vec<Promise> {
    let all = Sudden::sum(&accidents.iter().collect::<Vec<_>>());
    if all.accidents == 0 {
        return Vec::new();
    }
    let share = |n: usize| n as f64 / all.accidents as f64;
    vec![
        Promise::at_least("sudden accidents: named rightly", sudden::RIGHT, share(all.right)),
        Promise::at_most(
            "sudden accidents: neither named rightly nor a tie with the root",
            sudden::WRONG,
            share(all.not_right()),
        ),
    ]
}

/// The promises about what was measured. A figure that is missing is no number, and not kept.
fn promises(lines: &[Line<'_>], families: &[(String, Vec<f64>)]) -> Vec<Promise> {
    let mut all = Vec::new();
    for line in lines {
        let a_run = |of: fn(&Score) -> usize| line.sum(of) as f64 / line.runs.len() as f64;
        let right = line.sum(|score| score.roots.at_close) as f64;
        let false_alarms = line.sum(|score| score.false_alarms) as f64;
        let incidents = incidents_a_fault(line).unwrap_or(f64::NAN);
        let delay = delay_s(line).unwrap_or(f64::NAN);
        let sensor = sensors_right(line).unwrap_or(f64::NAN);
        let false_a_run = a_run(|score| score.false_alarms);
        let right_a_run = a_run(|score| score.roots.at_close);
        match line.family.as_str() {
            "plant-attack-day" => all.extend([
                Promise::at_least("plant: right roots of 20", 19.7, right_a_run),
                Promise::at_most("plant: false alarms, attack day", 0.5, false_a_run),
                Promise::at_most("plant: median delay, s", 30.0, delay),
                Promise::at_least("plant: first sensor right", 0.8, sensor),
            ]),
            "plant-normal" => {
                all.push(Promise::at_most("plant: false alarms, normal day", 0.5, false_a_run));
            }
            "tep" => all.extend([
                Promise::at_least("Tennessee Eastman: right at close of 30", 17.0, right),
                Promise::at_most("Tennessee Eastman: incidents a fault", 2.0, incidents),
            ]),
            "batadal" => all.extend([
                Promise::at_least("BATADAL: right of 7", 7.0, right),
                Promise::at_most("BATADAL: false alarms", 3.0, false_alarms),
            ]),
            "lathe" => all.push(Promise::at_least("lathe: right of 50", 48.0, right)),
            "lathe, normal runs" => {
                all.push(Promise::at_most("lathe: false alarms, two-fold", 2.0, false_alarms));
            }
            "hai pieces" => all.push(Promise::at_least("HAI pieces: right of 3", 3.0, right)),
            _ => {}
        }
    }
    for (family, f1) in families {
        let wanted = match family.as_str() {
            "A2" | "A4" | "A8" => 0.97,
            "B4" | "B8" => 0.85,
            "H4" => 0.57,
            _ => 0.46,
        };
        let mean = f1.iter().sum::<f64>() / f1.len() as f64;
        all.push(Promise::at_least(format!("{family}: F1"), wanted, mean));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_that_is_not_kept_is_named_and_one_without_a_figure_is_not_kept() {
        let families = [
            ("A2".to_owned(), vec![0.99, 0.97]),
            ("B4".to_owned(), vec![0.8]),
            ("H4".to_owned(), vec![]),
        ];
        let found = promises(&[], &families);
        let broken: Vec<&str> =
            found.iter().filter(|p| !p.holds).map(|promise| &promise.what[..]).collect();
        assert_eq!(broken, ["B4: F1", "H4: F1"]);
    }

    #[test]
    fn other_programs_get_promises_with_what_was_measured() {
        let promises = [Promise::at_most("x", 2.0, 10.0), Promise::at_least("y", 1.0, 1.0)];
        let rows = rows(&[], &[], &[Spliced::default()], &[], &promises);
        let text = serde_json::to_string(&rows).expect("plain data");
        assert!(text.contains(r#""not_mentioned":0"#), "{text}");
        assert!(text.contains(r#""method":"x","seeds":1,"relation":"at most","wanted":2.0,"measured":10.0,"holds":"no""#), "{text}");
    }

    #[test]
    fn without_data_the_outside_study_says_what_it_needs() {
        let nowhere = tempfile::tempdir().expect("a folder for the test");
        let data = Some(nowhere.path().to_owned());
        let options = StudyOptions { data, quick: true, ..StudyOptions::default() };
        assert!(matches!((OUTSIDE.jobs)(&options), Err(StudyError::NoData { .. })));
        let jobs = (ACCEPTANCE.jobs)(&options).expect("plants need no data");
        assert_eq!(jobs.len(), 2 * 2 + 1 + 1 + TWINS.len());
    }
}
