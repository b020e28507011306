//! Accidents that strike all clients within a step or two, near the start of a run: is the root named, is
//! another client named, or is the incident a tie that shows the root among others?

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::engine::experiment::Failure;
use crate::session::Family;
use crate::study::detection::watch::{WatchedRun, watch};
use crate::study::detection::{Models, Twin, linear};
use crate::study::frame::{Done, Job, Study, StudyOptions};
use crate::study::report::columns::{self, all, family, seeds};
use crate::study::report::{Columns, Figure, Report, Row};

/// First seed and number of plants.
const SEED: u64 = 90_001;
const SEEDS: usize = 5;
/// Shares of accidents: named rightly at least, wrong at most.
pub(super) const RIGHT: f64 = 0.6;
pub(super) const WRONG: f64 = 0.1;
/// Name of these jobs in a report of many.
pub(super) const DATA: &str = "sudden";

const PLANT: Twin = Twin::new("S4", Family::S, 4, 0.0);

pub(super) const STUDY: Study = Study {
    name: "sudden",
    about: "accidents that strike all clients at once: named, wrong, or a tie with the root among them",
    needs_data: false,
    first: None,
    jobs: |options| Ok(jobs(options)),
    report: |_, done| {
        let seeds = done.iter().map(Done::read).collect::<Result<Vec<Sudden>, _>>()?;
        Ok(report(&seeds))
    },
};

type Line<'a> = columns::Line<'a, Sudden>;

const COLUMNS: Columns<Sudden> = Columns(&[
    family("family"),
    seeds("seeds"),
    all("accidents", "accidents", 0, |line| Figure::Count(line.sum(|seed| seed.accidents))),
    all("right", "right", 0, |line| Figure::Count(line.sum(|seed| seed.right))),
    all("tied", "tie with the root", 0, |line| Figure::Count(line.sum(|seed| seed.tied))),
    all("wrong", "wrong name", 0, |line| Figure::Count(line.sum(|seed| seed.wrong))),
    all("tied_without", "tie without it", 0, |line| {
        Figure::Count(line.sum(|seed| seed.tied_without))
    }),
    all("missed", "missed", 0, |line| Figure::Count(line.sum(|seed| seed.missed))),
    all("shown", "names in a tie", 1, |line| Figure::Number(Sudden::sum(&line.runs).names_shown())),
    all("false_alarms", "false alarms", 0, |line| {
        Figure::Count(line.sum(|seed| seed.false_alarms))
    }),
    all("quiet_steps", "quiet steps", 0, |line| Figure::Count(line.sum(|seed| seed.quiet_steps))),
]);

fn report(seeds: &[Sudden]) -> Report {
    let lines = lines(seeds);
    let reading = Sudden::sum(&seeds.iter().collect::<Vec<_>>()).reading();
    Report {
        tables: vec![COLUMNS.table("Sudden accidents", 1, &lines)],
        reading: vec![reading],
        rows: COLUMNS.rows(&lines),
        ..Report::default()
    }
}

fn lines(seeds: &[Sudden]) -> Vec<Line<'_>> {
    Line::group(seeds.iter().map(|seed| (PLANT.name, "evidence", seed)))
}

/// What became of accidents, for other programs.
pub(super) fn rows(seeds: &[Sudden]) -> Vec<Row> {
    COLUMNS.rows(&lines(seeds))
}

pub(super) fn jobs(options: &StudyOptions) -> Vec<Job> {
    let job = |seed: u64| {
        let inputs = json!({ (DATA): PLANT.name, "seed": seed });
        Job::new(format!("sudden accidents, seed {seed}"), inputs, move || sudden(seed))
    };
    options.seeds_from(SEED, SEEDS, 1).into_iter().map(job).collect()
}

/// What became of accidents.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Sudden {
    pub(super) accidents: usize,
    /// The root was named.
    pub(super) right: usize,
    /// Another client was named.
    wrong: usize,
    /// Nobody was named, and the root was among those shown.
    tied: usize,
    tied_without: usize,
    missed: usize,
    /// Names shown in ties.
    names: usize,
    false_alarms: usize,
    /// Steps outside accidents.
    quiet_steps: usize,
}

impl Sudden {
    pub(super) fn sum(seeds: &[&Self]) -> Self {
        let of = |count: fn(&Self) -> usize| seeds.iter().map(|seed| count(seed)).sum();
        Self {
            accidents: of(|s| s.accidents),
            right: of(|s| s.right),
            wrong: of(|s| s.wrong),
            tied: of(|s| s.tied),
            tied_without: of(|s| s.tied_without),
            missed: of(|s| s.missed),
            names: of(|s| s.names),
            false_alarms: of(|s| s.false_alarms),
            quiet_steps: of(|s| s.quiet_steps),
        }
    }

    /// Everything but the right name and a tie with the root: nothing is hidden between the two.
    pub(super) fn not_right(&self) -> usize {
        self.wrong + self.tied_without + self.missed
    }

    fn names_shown(&self) -> Option<f64> {
        let ties = self.tied + self.tied_without;
        (ties > 0).then(|| self.names as f64 / ties as f64)
    }

    fn reading(&self) -> String {
        let share = |n: usize| 100.0 * n as f64 / self.accidents.max(1) as f64;
        format!(
            "Of {} accidents the root is named in {:.0} %, {:.0} % are ties with the root among those \
             shown, and {:.0} % have another name, a tie without the root, or no alarm.",
            self.accidents,
            share(self.right),
            share(self.tied),
            share(self.not_right())
        )
    }

    fn of(run: &WatchedRun) -> Self {
        let figures = run.figures();
        let mut sudden = Self {
            accidents: run.truth.events.len(),
            false_alarms: figures.false_alarms,
            quiet_steps: run.truth.quiet_steps(),
            ..Self::default()
        };
        for event in &run.truth.events {
            let mut incidents = run.output.alarms.iter();
            let Some(found) = incidents.find(|found| event.is_answered_at(found.opened)) else {
                sudden.missed += 1;
                continue;
            };
            match found.root {
                Some(root) if root == event.origin => sudden.right += 1,
                Some(_) => sudden.wrong += 1,
                None => {
                    sudden.names += found.candidates.len();
                    if found.candidates.contains(&event.origin) {
                        sudden.tied += 1;
                    } else {
                        sudden.tied_without += 1;
                    }
                }
            }
        }
        sudden
    }
}

fn sudden(seed: u64) -> Result<Sudden, Failure> {
    let mut session = PLANT.session(seed)?;
    linear(&mut session);
    session.privacy.tell_severity = true;
    let mut models = Models::default();
    Ok(Sudden::of(&watch(&session, models.of(&session)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_neither_right_nor_a_tie_with_the_root_counts_against_it() {
        let one = Sudden { accidents: 10, right: 5, wrong: 1, tied: 2, ..Sudden::default() };
        let other = Sudden { accidents: 10, right: 6, tied_without: 1, missed: 3, ..one.clone() };
        let sum = Sudden::sum(&[&one, &other]);
        assert_eq!((sum.right, sum.not_right()), (11, 6));
        assert!(sum.reading().contains("named in 55 %"), "{}", sum.reading());
    }
}
