//! Studies on data sets that the user has: HAI in any release, Tennessee Eastman, BATADAL.

use serde_json::json;

use super::plant::in_seconds;
use super::watched::{self, JudgedRun, Line};
use super::{correlation, residuals};
use crate::engine::experiment::dataset::DatasetSource;
use crate::engine::experiment::federation::{Effort, FederationExperiment, Results};
use crate::engine::experiment::recorded::with_data;
use crate::session::Session;
use crate::study::experiments::oracle_note;
use crate::study::frame::{Done, Job, Study, StudyError, StudyOptions};
use crate::study::report::Report;

/// The paper's own recording.
const PAPERS: &str = "hai-23.05-aug-12";

/// The same at the paper's settings.
const AT_PAPERS: &str = "hai-23.05-aug-12-paper";

/// Shipped sessions that can read each data set, the paper's own first.
const HAI_SESSIONS: [&str; 6] =
    [AT_PAPERS, PAPERS, "hai-23.05-test2", "hai-22.04", "hai-21.03", "hai-20.07"];

pub(super) const HAI: Study = Study {
    name: "hai",
    about: "the HAI testbed, whichever releases are there, both modes (Table 4, Fig. 6 and 7)",
    needs_data: true,
    first: None,
    jobs: |options| jobs("hai", &HAI_SESSIONS, options),
    report: |_, done| with_figures(done),
};

pub(super) const TEP: Study = Study {
    name: "tep",
    about: "Tennessee Eastman: fifteen faults in five units, both modes",
    needs_data: true,
    first: None,
    jobs: |options| jobs("tep", &["tep"], options),
    report: |_, done| report(&["tep"], done),
};

pub(super) const BATADAL: Study = Study {
    name: "batadal",
    about: "BATADAL's water network: seven attacks on six stations, both modes",
    needs_data: true,
    first: None,
    jobs: |options| jobs("batadal", &["batadal"], options),
    report: |_, done| report(&["batadal"], done),
};

fn jobs(
    study: &'static str,
    names: &[&str],
    options: &StudyOptions,
) -> Result<Vec<Job>, StudyError> {
    let (mut sessions, mut complaint) = (Vec::new(), None);
    for name in names {
        let session = Session::open(name).map_err(|error| StudyError::Session(error.into()))?;
        let found = with_data(&session, options.data.as_deref());
        match found.map_err(|error| StudyError::Session(error.into()))? {
            Ok(session) => sessions.push(session),
            Err(missing) => complaint = complaint.or(Some(missing)),
        }
    }
    if let (true, Some(missing)) = (sessions.is_empty(), complaint) {
        return Err(StudyError::NoData { study, how: missing.to_string() });
    }
    let seeds = options.seeds(1, 1);
    let job = |session: &Session, seed: u64| {
        let inputs = json!({ "session": session.name, "seed": seed, "files": files(session) });
        let mut session = session.clone();
        session.seed = seed;
        let label = format!("{}, seed {seed}", session.name);
        Job::new(label, inputs, move || watched::watch(&session))
    };
    // The oracle sees the raw data of all clients, so no session can ask for it.
    let models = |session: &Session, seed: u64| {
        let of = if session.name == AT_PAPERS { Effort::published } else { Effort::new };
        let effort = of(options.quick);
        let inputs = json!({
            "models": session.name, "seed": seed, "files": files(session), "effort": effort
        });
        let mut session = session.clone();
        session.seed = seed;
        let label = format!("{}, models and oracle, seed {seed}", session.name);
        Job::new(label, inputs, move || {
            let source = DatasetSource::PlantPaper;
            FederationExperiment { source, seed, effort }.on_session(&session)
        })
        .costing(3)
    };
    let all = |session| {
        let of = move |seed: &u64| [job(session, *seed), models(session, *seed)];
        seeds.iter().flat_map(of)
    };
    Ok(sessions.iter().flat_map(all).collect())
}

fn report(names: &[&str], done: &[Done]) -> Result<Report, StudyError> {
    let mut report = Report::default();
    for name in names {
        let runs: Vec<Vec<JudgedRun>> = Done::with_input(done, "session", name)?;
        if runs.is_empty() {
            continue;
        }
        let lines = watched::lines(name, &runs);
        let models: Vec<Results> = Done::with_input(done, "models", name)?;
        let models = [((*name).to_owned(), models)];
        let note = oracle_note(&models);
        let [(_, models)] = models;
        let flags = in_seconds(models);
        report.tables.extend([
            watched::table(name, &lines, [PAPERS, AT_PAPERS].contains(name)),
            watched::flag_table("Flags of each model", &flags.iter().collect::<Vec<_>>())
                .note(note),
            watched::attack_table("Every event", &runs),
        ]);
        report.charts.push(watched::chart(name, &lines));
        report.reading.extend(watched::comparison(&lines));
        report.reading.extend(hard_cases(&lines));
        report.rows.extend(watched::COLUMNS.rows(&lines));
        report.rows.extend(watched::flag_rows(name, &flags));
    }
    Ok(report)
}

/// With the paper's Fig. 6 and 7, which are of this data set, from the same results.
fn with_figures(done: &[Done]) -> Result<Report, StudyError> {
    let mut report = report(&HAI_SESSIONS, done)?;
    let mut families = Vec::new();
    for name in HAI_SESSIONS {
        let found: Vec<Results> = Done::with_input(done, "models", name)?;
        if !found.is_empty() {
            families.push((name.to_owned(), found));
        }
    }
    if families.is_empty() {
        return Ok(report);
    }
    for (table, rows) in [correlation::table_of(&families), residuals::table_of(&families)] {
        report.tables.push(table);
        report.rows.extend(rows);
    }
    report.charts.extend(families.iter().flat_map(correlation::charts));
    report.charts.extend(families.iter().flat_map(residuals::charts));
    Ok(report)
}

/// Identifies the data: names, sizes and times of change of the files in its folder.
fn files(session: &Session) -> Vec<String> {
    let folder = session.data_folder().unwrap_or_default();
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let known = entry.metadata().ok()?;
            let name = entry.file_name();
            let changed = known.modified().ok();
            Some(format!("{} {} {changed:?}", name.to_string_lossy(), known.len()))
        })
        .collect();
    files.sort();
    files
}

/// The events that evidence mode missed or pinned on another client.
fn hard_cases(lines: &[Line]) -> Option<String> {
    let evidence = lines.iter().find(|line| line.method == "evidence")?;
    let first = evidence.runs.first()?;
    let list = |wanted: &dyn Fn(&watched::Attack) -> bool| {
        let mut ids: Vec<&str> =
            first.attacks.iter().filter(|a| wanted(a)).map(|a| a.id.as_str()).collect();
        ids.dedup();
        if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
    };
    Some(format!(
        "Evidence mode misses {}, and pins on another client {}.",
        list(&|attack| attack.delay_s.is_none()),
        list(&|attack| attack.delay_s.is_some() && !attack.right)
    ))
}
