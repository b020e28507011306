//! What privacy costs in accuracy: the paper's two figures, and ours against what is really spent.
//!
//! | module | figure |
//! |---|---|
//! | [`noise`] | losses of server and clients against σ, noise on states up and on gradients down |
//! | [`flips`] | run lengths and root causes of paper mode against the truth of Z_c and Z_a |
//! | [`spending`] | F1 and delay against ε composed over a day, both modes and every send policy |
//!
//! Choices where the paper is silent: σ on states is in nominal standard deviations, after a cut at five
//! of them, and gradients are cut to norm 1, since noise without a bound protects nothing; losses are
//! those of the trained models on nominal rows that nothing was fitted to, without noise, beside the
//! server's own losses in training; run lengths are those of Z_a (the paper prints equal figures for all
//! methods that have no Z_c, so it did the same); a day has as many steps as fit in it at the data's own
//! pace.

mod flips;
mod noise;
mod spending;
#[cfg(test)]
mod tests;

use serde::Serialize;
use serde_json::json;

use crate::session::Session;
use crate::session::settings::Federation;
use crate::study::detection::{AT_PAPERS, PAPERS, TWINS, Twin, as_published};
use crate::study::frame::{Done, Failure, Job, Study, StudyError, StudyOptions};
use crate::study::report::{Line, Report};

pub(super) const STUDY: Study = Study {
    name: "privacy",
    about: "what privacy costs in losses, run lengths and root causes (figures of the privacy analysis)",
    needs_data: false,
    first: None,
    jobs: |options| {
        let noise = jobs(NOISE, noise::rows, options);
        let flags = jobs(FLAGS, flips::rows, options);
        Ok(noise.chain(flags).chain(jobs(SPENDING, spending::rows, options)).collect())
    },
    report,
};

/// The paper's plant at our settings and at the paper's: its figures 3 and 4 are made of both.
const PLANTS: [Twin; 2] = [PAPERS, AT_PAPERS];

/// The parts of the study, in the order in which they are shown.
const NOISE: &str = "noise in training";
const FLAGS: &str = "randomised flags";
const SPENDING: &str = "spending of a day";

fn jobs<R: Serialize + 'static>(
    part: &'static str,
    rows: fn(u64, bool) -> Result<Vec<R>, Failure>,
    options: &StudyOptions,
) -> impl Iterator<Item = Job> {
    let quick = options.quick;
    options.seeds(3, 1).into_iter().map(move |seed| {
        let inputs = json!({ "part": part, "seed": seed, "quick": quick });
        Job::new(format!("{part}, seed {seed}"), inputs, move || rows(seed, quick))
    })
}

fn report(_: &StudyOptions, done: &[Done]) -> Result<Report, StudyError> {
    let noise = Done::with_input(done, "part", NOISE)?;
    let flags = Done::with_input(done, "part", FLAGS)?;
    let spent = Done::with_input(done, "part", SPENDING)?;
    let (noise, flags) = (noise::lines(&noise), flips::lines(&flags));
    let spent = Line::across(&spent, |row: &spending::SpendingRow| {
        (row.family.as_str(), row.method.as_str())
    });
    let mut report = Report {
        tables: vec![noise::table(&noise), flips::table(&flags), spending::table(&spent)],
        rows: noise::COLUMNS.rows(&noise),
        ..Report::default()
    };
    for twin in PLANTS {
        let (noise, flags) = (of_family(&noise, twin.name), of_family(&flags, twin.name));
        report.charts.push(noise::chart(&twin, &noise));
        report.charts.extend(flips::charts(&twin, &flags));
        report.reading.extend(noise::reading(&twin, &noise));
        report.reading.extend(flips::reading(&twin, &flags));
    }
    for family in spending::FAMILIES {
        report.charts.extend(spending::charts(&spent, family));
        report.reading.extend(spending::reading(&spent, family));
    }
    report.rows.extend(flips::COLUMNS.rows(&flags));
    report.rows.extend(spending::COLUMNS.rows(&spent));
    Ok(report)
}

fn of_family<'a, R: Clone>(lines: &[Line<'a, R>], family: &str) -> Vec<Line<'a, R>> {
    lines.iter().filter(|line| line.family == family).cloned().collect()
}

/// "At our settings", "At the paper's settings".
fn settings(twin: &Twin) -> &'static str {
    if twin.as_published { "At the paper's settings" } else { "At our settings" }
}

/// The name of a chart of a plant.
fn chart_name(twin: &Twin, what: &str) -> String {
    if twin.as_published { format!("{what}-paper") } else { what.into() }
}

/// A family of the detection study.
fn twin(name: &str) -> Twin {
    let found = TWINS.into_iter().find(|twin| twin.name == name);
    found.expect("families are named as in the detection study")
}

/// The published method on a family, flags at the 95th percentile; `quick` with models that are made
/// quickly.
fn published(twin: &Twin, seed: u64, quick: bool) -> Result<Session, Failure> {
    let mut session = twin.session(seed)?;
    as_published(&mut session, 95.0, false);
    if quick {
        session.model.epochs = 2;
        if !twin.as_published {
            session.model.federation = Federation::Online { passes: 2 };
        }
    }
    Ok(session)
}

/// A figure that exists.
fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}
