//! Studies on data sets that the user has: HAI in any release, Tennessee Eastman, BATADAL.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::watched::{self, Line, Seen};
use crate::session::{Session, Source};
use crate::stream::{self, Part, StreamError};
use crate::study::frame::{Done, Job, Options, Study, StudyError};
use crate::study::report::Report;

/// A study of a data set.
pub(crate) struct Recorded {
    name: &'static str,
    about: &'static str,
    /// Shipped sessions that can read it, the paper's own first.
    sessions: &'static [&'static str],
}

/// The paper's own recording.
const PAPERS: &str = "hai-23.05-aug-12";

/// HAI, whichever release is there.
pub(crate) static HAI: Recorded = Recorded {
    name: "hai",
    about: "the HAI testbed, whichever releases are there, both modes (Table 4)",
    sessions: &[PAPERS, "hai-22.04", "hai-21.03", "hai-20.07"],
};

pub(crate) static TEP: Recorded = Recorded {
    name: "tep",
    about: "Tennessee Eastman: fifteen faults in five units, both modes",
    sessions: &["tep"],
};

pub(crate) static BATADAL: Recorded = Recorded {
    name: "batadal",
    about: "BATADAL's water network: seven attacks on six stations, both modes",
    sessions: &["batadal"],
};

impl Recorded {
    /// The sessions whose data is there, and the complaint about the first whose data is not.
    fn found(
        &self,
        data: Option<&Path>,
    ) -> Result<(Vec<Session>, Option<StreamError>), StudyError> {
        let (mut sessions, mut complaint) = (Vec::new(), None);
        for name in self.sessions {
            match find(&Session::open(name)?, data)? {
                Ok(session) => sessions.push(session),
                Err(missing) => complaint = complaint.or(Some(missing)),
            }
        }
        Ok((sessions, complaint))
    }
}

/// The session with the folder that holds its data: the one given, one of its own name in that, or
/// the one it names itself. The inner error says which files are missing.
fn find(
    session: &Session,
    data: Option<&Path>,
) -> Result<Result<Session, StreamError>, StreamError> {
    let own = match &session.source {
        Source::Table(table) => PathBuf::from(&table.data),
        Source::Hai(hai) => PathBuf::from(&hai.data),
        Source::Plant(_) | Source::Twin(_) => PathBuf::new(),
    };
    let folders = match data {
        Some(data) => vec![data.to_owned(), data.join(&own)],
        None => vec![own],
    };
    let mut complaint = None;
    for folder in folders {
        let mut session = session.clone();
        session.set_data_folder(&folder);
        match Part::ALL.into_iter().try_for_each(|part| stream::open(&session, part).map(|_| ())) {
            Ok(()) => return Ok(Ok(session)),
            Err(missing @ StreamError::MissingFiles { .. }) => {
                complaint = complaint.or(Some(missing));
            }
            Err(other) => return Err(other),
        }
    }
    complaint.map_or_else(|| Ok(Ok(session.clone())), |missing| Ok(Err(missing)))
}

/// What the data is known by: names, sizes and times of change of the files in its folder.
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

impl Study for Recorded {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn jobs(&self, options: &Options) -> Result<Vec<Job>, StudyError> {
        let (sessions, complaint) = self.found(options.data.as_deref())?;
        if let (true, Some(missing)) = (sessions.is_empty(), complaint) {
            return Err(StudyError::NoData { study: self.name, how: missing.to_string() });
        }
        let seeds = options.seeds(1, 1);
        let job = |session: &Session, seed: u64| {
            let inputs = json!({ "session": session.name, "seed": seed, "files": files(session) });
            let mut session = session.clone();
            session.seed = seed;
            let label = format!("{}, seed {seed}", session.name);
            Job::new(label, inputs, move || watched::watch(&session))
        };
        Ok(sessions
            .iter()
            .flat_map(|session| seeds.iter().map(move |seed| job(session, *seed)))
            .collect())
    }

    fn report(&self, options: &Options, done: &[Done]) -> Result<Report, StudyError> {
        let mut runs: Vec<(&str, Vec<Vec<Seen>>)> = Vec::new();
        for name in self.sessions {
            let mut of_session = Vec::new();
            for done in done {
                if done.input::<String>("session")? == *name {
                    of_session.push(done.read()?);
                }
            }
            if !of_session.is_empty() {
                runs.push((name, of_session));
            }
        }
        let mut report = Report {
            study: self.name.into(),
            title: self.about.into(),
            command: format!("{} --data DIR", options.command(self.name)),
            ..Report::default()
        };
        for (name, runs) in &runs {
            let lines = Line::all(name, runs);
            report.tables.push(watched::table(name, &lines, *name == PAPERS));
            let flags: Vec<_> = runs.iter().flatten().flat_map(|seen| &seen.flags).collect();
            report.tables.push(watched::flag_table("Flags of each model", &flags));
            report.tables.push(watched::attack_table("Every event", runs));
            report.charts.push(watched::chart(name, &lines));
            report.reading.extend(watched::comparison(&lines));
            report.reading.extend(hard_cases(&lines));
            report.rows.extend(lines.iter().map(Line::row));
        }
        Ok(report)
    }
}

/// The events that evidence mode missed or pinned on another client.
fn hard_cases(lines: &[Line]) -> Option<String> {
    let evidence = lines.iter().find(|line| line.method.name == "evidence")?;
    let first = evidence.seen.first()?;
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
