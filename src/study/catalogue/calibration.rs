//! How near false alarms come to the chosen rate: normal days of the built-in plant, each with models
//! and a calibration of its own.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json as object;

use super::acceptance::judged;
use crate::engine::experiment::Failure;
use crate::score::rate::{expected_a_day, poisson_range};
use crate::session::{Session, Span};
use crate::study::detection::Models;
use crate::study::frame::{Job, Study};
use crate::study::report::columns::json;
use crate::study::report::{Cell, Columns, Figure, Line, Report, Table};

/// First seed and number of days.
const SEED: u64 = 7001;
const DAYS: usize = 200;
/// Chosen run lengths, in hours.
const HOURS: [f64; 3] = [6.0, 24.0, 96.0];
/// Times the chosen rate that is still kept.
const MOST: f64 = 1.5;

pub(super) const STUDY: Study = Study {
    name: "calibration",
    about: "false alarms on normal plant days at a chosen rate of one in 6 h, a day and 4 days",
    needs_data: false,
    first: None,
    jobs: |options| Ok(options.seeds_from(SEED, DAYS, 4).into_iter().map(job).collect()),
    report: |_, done| {
        let mut days = Vec::new();
        for done in done {
            days.push(done.read::<Day>()?);
        }
        Ok(report(&days))
    },
};

/// False alarms of one day at each of [`HOURS`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Day {
    false_alarms: [usize; 3],
    days: f64,
}

fn job(seed: u64) -> Job {
    Job::new(format!("a normal day, seed {seed}"), object!({ "seed": seed }), move || day(seed))
}

fn day(seed: u64) -> Result<Day, Failure> {
    let mut session = Session::open("plant-normal")?;
    session.seed = seed;
    let mut models = Models::default();
    let mut day = Day { false_alarms: [0; 3], days: 0.0 };
    for (hours, count) in HOURS.into_iter().zip(&mut day.false_alarms) {
        session.thresholds.arl0 = Span { seconds: 3600.0 * hours };
        if let Some(score) = judged(&session, Arc::clone(models.of(&session)?))? {
            (*count, day.days) = (score.false_alarms, score.days);
        }
    }
    Ok(day)
}

fn report(days: &[Day]) -> Report {
    let heads =
        ["one in, h", "a day to expect", "days", "95 %", "false alarms", "a day", "of chosen"];
    let mut table = Table::new("False alarms", 1, heads);
    let watched: f64 = days.iter().map(|day| day.days).sum();
    let mut broken = Vec::new();
    let mut rates = Vec::new();
    for (place, hours) in HOURS.into_iter().enumerate() {
        let found: usize = days.iter().map(|day| day.false_alarms[place]).sum();
        let expected = watched * 24.0 / hours;
        let (least, most) = poisson_range(expected);
        let ratio = found as f64 / expected;
        table.lines.push(vec![
            Figure::Number(Some(hours)).cell(0),
            Cell::words(expected_a_day(3600.0 * hours)),
            Figure::Number(Some(watched)).cell(0),
            Cell::words(format!("{least} to {most}")),
            Figure::Count(found).cell(0),
            Figure::Number(Some(found as f64 / watched)).cell(2),
            Figure::Number(Some(ratio)).cell(2),
        ]);
        rates.push(Rate { hours, expected, found, watched });
        if ratio > MOST {
            broken.push(format!("one in {hours} h: {ratio:.2} times as many"));
        }
    }
    let reading = if broken.is_empty() {
        format!("At every chosen rate there are at most {MOST} times as many false alarms.")
    } else {
        format!("More than {MOST} times the chosen rate: {}.", broken.join("; "))
    };
    let lines = Line::group(rates.iter().map(|rate| ("plant-normal", rate.name(), rate)));
    let rows = COLUMNS.rows(&lines);
    Report { tables: vec![table], reading: vec![reading], rows, ..Report::default() }
}

/// False alarms at one chosen rate.
struct Rate {
    hours: f64,
    expected: f64,
    found: usize,
    /// Days.
    watched: f64,
}

impl Rate {
    fn name(&self) -> String {
        format!("one in {} h", self.hours)
    }
}

const COLUMNS: Columns<Rate> = Columns(&[
    json("days", |line| Figure::Number(Some(line.runs[0].watched))),
    json("expected", |line| Figure::Number(Some(line.runs[0].expected))),
    json("false_alarms", |line| Figure::Count(line.runs[0].found)),
]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_is_not_kept_is_named() {
        let day = |six| Day { false_alarms: [six, 1, 0], days: 1.0 };
        assert!(report(&[day(4), day(7)]).reading[0].starts_with("At every chosen rate"));
        let broken = report(&[day(9), day(9)]);
        assert!(broken.reading[0].contains("one in 6 h: 2.25 times as many"), "{broken:?}");
        let rows = serde_json::to_string(&broken.rows[0]).expect("plain data");
        assert!(rows.contains(r#""days":2.0,"expected":8.0,"false_alarms":18"#), "{rows}");
    }
}
