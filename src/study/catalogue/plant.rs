//! Table 4 on the built-in plant: its day of twenty attacks and a day without any, both modes.

use serde_json::json;

use super::watched::{self, JudgedRun, Line};
use crate::engine::experiment::dataset::DatasetSource;
use crate::engine::experiment::federation::Results;
use crate::engine::experiment::flags::{FlagRuns, ModelFlags};
use crate::score::metrics::run_length::RunTotals;
use crate::session::Session;
use crate::session::privacy::PrivacySettings;
use crate::study::experiments::{experiments_on, oracle_note};
use crate::study::frame::{Done, Job, Study, StudyError, StudyOptions};
use crate::study::report::Report;

pub(super) const STUDY: Study = Study {
    name: "plant",
    about: "the built-in plant's attack day and a normal day, both modes (Table 4)",
    needs_data: false,
    first: None,
    jobs: |options| Ok(jobs(options)),
    report,
};

const ATTACKS: &str = "plant-attack-day";
const NORMAL: &str = "plant-normal";
/// The shape of the paper's experiment on HAI.
const PAPERS: &str = "plant-paper";

fn jobs(options: &StudyOptions) -> Vec<Job> {
    let job = |name: &'static str, seed: u64| {
        let inputs = json!({ "session": name, "seed": seed });
        Job::new(format!("{name}, seed {seed}"), inputs, move || {
            let mut session = Session::open(name)?;
            session.seed = seed;
            // The paper's Table 4 is without noise.
            session.privacy = PrivacySettings::default();
            watched::watch(&session)
        })
    };
    let seeds = options.seeds(5, 2);
    let days = [ATTACKS, NORMAL, PAPERS]
        .into_iter()
        .flat_map(|name| seeds.iter().map(move |seed| job(name, *seed)));
    // The oracle sees the raw data of all clients; its flags come from the federation experiments.
    let models = experiments_on(DatasetSource::BuiltIn, options);
    let papers = experiments_on(DatasetSource::PlantPaper, options);
    days.chain(models).chain(papers).collect()
}

fn report(_: &StudyOptions, done: &[Done]) -> Result<Report, StudyError> {
    let attacked: Vec<Vec<JudgedRun>> = Done::with_input(done, "session", ATTACKS)?;
    let normal: Vec<Vec<JudgedRun>> = Done::with_input(done, "session", NORMAL)?;
    let papers: Vec<Vec<JudgedRun>> = Done::with_input(done, "session", PAPERS)?;
    let of = |source: DatasetSource| -> Result<(String, Vec<Results>), StudyError> {
        let name = source.name();
        Ok((name.clone(), Done::with_input(done, "family", &name)?))
    };
    let models = [of(DatasetSource::BuiltIn)?, of(DatasetSource::PlantPaper)?];
    let note = oracle_note(&models);
    let [flags, papers_flags] = models.map(|(_, found)| in_seconds(found));
    let at_papers = watched::lines(PAPERS, &papers);
    let days = watched::lines(ATTACKS, &attacked);
    let calm = watched::lines(NORMAL, &normal);
    let all: Vec<Line> = days.iter().chain(&calm).chain(&at_papers).cloned().collect();
    let rows = watched::COLUMNS
        .rows(&all)
        .into_iter()
        .chain(watched::flag_rows(&DatasetSource::BuiltIn.name(), &flags))
        .chain(watched::flag_rows(&DatasetSource::PlantPaper.name(), &papers_flags))
        .collect();
    let of_models = "Flags of each model on the attack day (left half of Table 4)";
    let flags = watched::flag_table(of_models, &flags.iter().collect::<Vec<_>>()).note(note);
    let title = "The attack day and a normal day of the built-in plant, and the paper's settings";
    let of_papers =
        "Flags of each model at the paper's settings (plant-paper, left half of Table 4)";
    let papers_flags = (!papers_flags.is_empty())
        .then(|| watched::flag_table(of_papers, &papers_flags.iter().collect::<Vec<_>>()));
    Ok(Report {
        tables: [watched::table(title, &all, false), flags]
            .into_iter()
            .chain(papers_flags)
            .chain([
                watched::attack_table("Every attack", &attacked),
                watched::attack_table("Every attack at the paper's settings", &papers),
            ])
            .collect(),
        charts: vec![watched::chart(ATTACKS, &days), watched::chart(PAPERS, &at_papers)],
        reading: watched::comparison(&days)
            .into_iter()
            .chain(targets(&days, &calm))
            .chain(watched::comparison(&at_papers))
            .collect(),
        rows,
        ..Report::default()
    })
}

/// The flags of these results with run lengths in seconds: the experiments count steps, Table 4 time.
pub(super) fn in_seconds(results: Vec<Results>) -> Vec<ModelFlags> {
    let of = |found: Results| {
        let period_s = found.period_s;
        let seconds = move |runs: RunTotals| RunTotals { watched: runs.watched * period_s, ..runs };
        found.flags.into_iter().map(move |flags| ModelFlags {
            runs: FlagRuns { arl0: seconds(flags.runs.arl0), arl1: seconds(flags.runs.arl1) },
            ..flags
        })
    };
    results.into_iter().flat_map(of).collect()
}

fn evidence<'l, 'a>(lines: &'l [Line<'a>]) -> Option<&'l Line<'a>> {
    lines.iter().find(|line| line.method == "evidence")
}

/// Of 20 attacks 18 right, at most 1.5 false alarms on the day, 30 s to the alarm, 1 false alarm on a
/// normal day.
fn targets(days: &[Line], calm: &[Line]) -> Option<String> {
    let (day, calm) = (evidence(days)?, evidence(calm)?);
    let right = watched::right(day) as f64 / day.runs.len() as f64;
    let of_all = watched::attacks(day) as f64 / day.runs.len() as f64;
    let false_alarms = day.mean(watched::false_alarms_per_day)?;
    let delay = watched::median_delay_s(day)?;
    let nominal = calm.mean(watched::false_alarms_per_day)?;
    let holds = |holds: bool| if holds { "holds" } else { "does not hold" };
    Some(format!(
        "Targets of evidence mode: {right:.1} of {of_all:.0} right (18 wanted: {}), {false_alarms:.1} \
         false alarms on the attack day (at most 1.5: {}), {delay:.0} s to the alarm (at most 30 s: \
         {}), {nominal:.1} false alarms on a normal day (at most 1: {}).",
        holds(right >= 18.0),
        holds(false_alarms <= 1.5),
        holds(delay <= 30.0),
        holds(nominal <= 1.0)
    ))
}
