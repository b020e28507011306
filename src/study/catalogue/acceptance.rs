//! What was promised, measured on data that nothing was tuned on: the built-in plant, data sets of
//! others, synthetic plants. Promises that are not kept are named.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::recorded::find;
use crate::engine;
use crate::engine::handle::Options as EngineOptions;
use crate::engine::prepare::{Stage, cache_file, prepare};
use crate::score::Score;
use crate::session::{Session, Stretch};
use crate::study::detection::figures::Figures;
use crate::study::detection::watch::watch;
use crate::study::detection::{Models, TWINS, Twin};
use crate::study::frame::{Done, Job, Options, Study, StudyError};
use crate::study::report::{Cell, Report, Row, Table};

/// A study of promises.
pub(crate) struct Promises {
    name: &'static str,
    about: &'static str,
    /// Whether the built-in and the synthetic plants belong to it.
    has_plants: bool,
}

/// Data sets of others alone.
pub(crate) static OUTSIDE: Promises = Promises {
    name: "outside",
    about: "data of others: Tennessee Eastman, BATADAL, a lathe, HAI pieces, with incidents per fault",
    has_plants: false,
};

/// Everything.
pub(crate) static ACCEPTANCE: Promises = Promises {
    name: "acceptance",
    about: "every figure that was promised, on seeds and data that nothing was tuned on",
    has_plants: true,
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
    fn open(&self, data: Option<&Path>) -> Result<Option<Session>, StudyError> {
        let mut session = Session::open(self.session)?;
        if let Some(files) = self.files {
            let stretch =
                |file: &str| Stretch { files: vec![file.to_owned()], ..Stretch::default() };
            session.ranges.fit = stretch(files[0]);
            session.ranges.calibration = stretch(files[1]);
            session.ranges.replay = stretch(files[2]);
        }
        Ok(find(&session, data)?.ok())
    }
}

/// Runs a session in its own mode and scores it.
fn scored(session: &Session) -> Result<Option<Score>, StudyError> {
    let go_on = &mut |_: Stage| ControlFlow::Continue(());
    let prepared = Arc::new(prepare(session, &cache_file(session), go_on)?);
    let ended = engine::spawn(session, EngineOptions::study(prepared))?.to_end(|_, _| {});
    let (_, ending) = ended.map_err(StudyError::Run)?;
    Ok(ending.judgement().map(|judgement| judgement.score()))
}

fn figures(twin: &Twin, seed: u64) -> Result<Figures, StudyError> {
    let session = twin.session(seed)?;
    let mut models = Models::default();
    Ok(watch(&session, models.of(&session)?)?.figures())
}

impl Study for Promises {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn jobs(&self, options: &Options) -> Result<Vec<Job>, StudyError> {
        let mut jobs = Vec::new();
        for outside in &DATA {
            let Some(session) = outside.open(options.data.as_deref())? else { continue };
            let label = outside.label;
            let replay = session.ranges.replay.files.join(" ");
            let inputs = json!({ "data": label, "replay": replay });
            jobs.push(Job::new(format!("{label}, {replay}"), inputs, move || scored(&session)));
        }
        if !self.has_plants {
            if jobs.is_empty() {
                let how = "name the folder that holds tep, batadal, causrca and hai with --data";
                return Err(StudyError::NoData { study: self.name, how: how.into() });
            }
            return Ok(jobs);
        }
        for seed in options.seeds_from(PLANT_SEED, 20, 2) {
            for name in ["plant-attack-day", "plant-normal"] {
                let inputs = json!({ "data": name, "seed": seed });
                jobs.push(Job::new(format!("{name}, seed {seed}"), inputs, move || {
                    let mut session = Session::open(name)?;
                    session.seed = seed;
                    scored(&session)
                }));
            }
        }
        let seeds = if options.quick { 1 } else { 5 };
        for twin in TWINS {
            for seed in TWIN_SEED..TWIN_SEED + seeds {
                let inputs = json!({ "family": twin.name, "seed": seed });
                let label = format!("{}, seed {seed}", twin.name);
                let job = Job::new(label, inputs, move || figures(&twin, seed));
                jobs.push(job.costing(twin.clients as u32));
            }
        }
        Ok(jobs)
    }

    fn report(&self, options: &Options, done: &[Done]) -> Result<Report, StudyError> {
        let mut data: Vec<(String, Vec<Score>)> = Vec::new();
        let mut families: Vec<(String, Vec<f64>)> = Vec::new();
        for done in done {
            if let Some(name) = done.input::<Option<String>>("data")? {
                add(&mut data, name, done.read::<Option<Score>>()?);
            } else {
                let figures: Figures = done.read()?;
                add(&mut families, done.input("family")?, figures.f1);
            }
        }
        let mut table = Table::new(
            "What was seen",
            1,
            &[
                "data",
                "runs",
                "faults",
                "detected",
                "right at alarm",
                "after 5 steps",
                "at close",
                "or source",
                "false alarms",
                "a quiet day",
                "incidents a fault",
                "delay s",
            ],
        );
        let mut rows = Vec::new();
        for (name, scores) in &data {
            let sum = Sum::of(scores);
            table.line(sum.cells(name));
            rows.push(sum.row(name));
        }
        let mut promised = Table::new("Promises", 1, &["what", "wanted", "measured", "holds"]);
        let mut broken = Vec::new();
        for promise in promises(&data, &families) {
            let holds = if promise.holds { "yes" } else { "NO" };
            let wanted = format!("{} {}", promise.relation, promise.wanted);
            promised.line(vec![
                Cell::text(promise.what.clone()),
                Cell::text(wanted.clone()),
                Cell::number(Some(promise.measured), 2),
                Cell::text(holds),
            ]);
            if !promise.holds {
                broken
                    .push(format!("{} is {:.2}, wanted {wanted}", promise.what, promise.measured));
            }
        }
        let reading = if broken.is_empty() {
            "All promises that could be measured are kept.".to_owned()
        } else {
            format!("Not kept: {}.", broken.join("; "))
        };
        Ok(Report {
            study: self.name.into(),
            title: self.about.into(),
            command: format!("{} --data DIR", options.command(self.name)),
            tables: vec![table, promised],
            reading: vec![reading],
            rows,
            ..Report::default()
        })
    }
}

fn add<T>(groups: &mut Vec<(String, Vec<T>)>, name: String, value: Option<T>) {
    let place = groups.iter().position(|(known, _)| *known == name);
    let place = place.unwrap_or_else(|| {
        groups.push((name, Vec::new()));
        groups.len() - 1
    });
    groups[place].1.extend(value);
}

/// The scores of several runs together.
#[derive(Debug, Default)]
struct Sum {
    runs: usize,
    labelled: usize,
    detected: usize,
    right: [usize; 4],
    false_alarms: usize,
    quiet_days: f64,
    incidents: usize,
    delays_s: Vec<f64>,
}

impl Sum {
    fn of(scores: &[Score]) -> Self {
        let mut sum = Self { runs: scores.len(), ..Self::default() };
        for score in scores {
            let course = score.roots;
            let right =
                [course.at_alarm, course.after_5_steps, course.at_close, course.with_source];
            sum.right.iter_mut().zip(right).for_each(|(sum, n)| *sum += n);
            sum.labelled += score.labelled;
            sum.detected += score.detected;
            sum.false_alarms += score.false_alarms;
            sum.quiet_days += score.quiet_days;
            sum.incidents += score.detected + score.repeats;
            sum.delays_s.extend(score.events.iter().filter_map(|event| event.delay_s));
        }
        sum.delays_s.sort_by(f64::total_cmp);
        sum
    }

    fn right_a_run(&self) -> f64 {
        self.right[2] as f64 / self.runs.max(1) as f64
    }

    fn false_alarms_a_run(&self) -> f64 {
        self.false_alarms as f64 / self.runs.max(1) as f64
    }

    fn false_alarms_a_day(&self) -> Option<f64> {
        (self.quiet_days > 0.0).then(|| self.false_alarms as f64 / self.quiet_days)
    }

    fn incidents_a_fault(&self) -> Option<f64> {
        (self.detected > 0).then(|| self.incidents as f64 / self.detected as f64)
    }

    fn delay_s(&self) -> Option<f64> {
        self.delays_s.get(self.delays_s.len() / 2).copied()
    }

    fn cells(&self, name: &str) -> Vec<Cell> {
        let [at_alarm, after_5, at_close, with_source] = self.right;
        let mut cells = vec![Cell::text(name)];
        let counts = [self.runs, self.labelled, self.detected, at_alarm, after_5, at_close];
        cells.extend(counts.into_iter().chain([with_source, self.false_alarms]).map(Cell::count));
        cells.push(Cell::number(self.false_alarms_a_day(), 2));
        cells.push(Cell::number(self.incidents_a_fault(), 2));
        cells.push(Cell::number(self.delay_s(), 0));
        cells
    }

    fn row(&self, name: &str) -> Row {
        let [at_alarm, after_5, at_close, with_source] = self.right;
        Row::new(name, "evidence", self.runs)
            .with("faults", self.labelled)
            .with("detected", self.detected)
            .with("right_at_alarm", at_alarm)
            .with("right_after_5_steps", after_5)
            .with("right_at_close", at_close)
            .with("right_or_source", with_source)
            .with("false_alarms", self.false_alarms)
            .with("quiet_days", self.quiet_days)
            .with("incidents_per_fault", self.incidents_a_fault())
            .with("delay_s", self.delay_s())
    }
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

/// The promises about what was measured. What was not measured is no number, and not kept.
fn promises(data: &[(String, Vec<Score>)], families: &[(String, Vec<f64>)]) -> Vec<Promise> {
    let mut all = Vec::new();
    for (name, scores) in data {
        let sum = Sum::of(scores);
        let right = sum.right[2] as f64;
        let false_alarms = sum.false_alarms as f64;
        let incidents = sum.incidents_a_fault().unwrap_or(f64::NAN);
        let delay = sum.delay_s().unwrap_or(f64::NAN);
        match name.as_str() {
            "plant-attack-day" => all.extend([
                Promise::at_least("plant: right roots of 20", 19.7, sum.right_a_run()),
                Promise::at_most("plant: false alarms, attack day", 0.5, sum.false_alarms_a_run()),
                Promise::at_most("plant: median delay, s", 30.0, delay),
            ]),
            "plant-normal" => all.push(Promise::at_most(
                "plant: false alarms, normal day",
                0.5,
                sum.false_alarms_a_run(),
            )),
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
    fn without_data_the_outside_study_says_what_it_needs() {
        let nowhere = tempfile::tempdir().expect("a folder for the test");
        let options = Options { data: Some(nowhere.path().to_owned()), ..Options::default() };
        assert!(matches!(OUTSIDE.jobs(&options), Err(StudyError::NoData { .. })));
        let quick = Options { quick: true, ..options };
        let jobs = ACCEPTANCE.jobs(&quick).expect("plants need no data");
        assert_eq!(jobs.len(), 2 * 2 + TWINS.len());
    }
}
