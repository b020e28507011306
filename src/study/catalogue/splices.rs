//! A second attack soon after a first one: does it keep an incident of its own, or is it at least
//! announced as a continuation?

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::engine;
use crate::engine::experiment::Failure;
use crate::engine::handle::Options;
use crate::fact::Fact;
use crate::session::{Attacks, Session, Source};
use crate::study::detection::Models;
use crate::study::frame::{Done, Job, Study};
use crate::study::report::columns::{self, all, seeds};
use crate::study::report::{Columns, Figure, Report, Row};

/// Seconds between the end of the first attack and the start of the second.
const GAP_S: u32 = 120;
/// First seed, and how many seeds make sixty pairs.
const SEED: u64 = 200;
const SEEDS: usize = 6;
/// Pairs of which the second attack must keep an incident of its own, of sixty.
pub(super) const WANTED: f64 = 52.0;
/// Name of these jobs in a report of many.
pub(super) const DATA: &str = "splices";

pub(super) const STUDY: Study = Study {
    name: "splices",
    about: "a second attack 120 s after a first one: an incident of its own, or announced",
    needs_data: false,
    first: None,
    jobs: |options| Ok(options.seeds_from(SEED, SEEDS, 1).into_iter().map(job).collect()),
    report: |_, done| {
        let seeds = done.iter().map(Done::read).collect::<Result<Vec<Spliced>, _>>()?;
        Ok(report(&seeds))
    },
};

type Line<'a> = columns::Line<'a, Spliced>;

const COLUMNS: Columns<Spliced> = Columns(&[
    seeds("seeds"),
    all("pairs", "pairs", 0, |line| Figure::Count(line.sum(|seed| seed.pairs))),
    all("own_incident", "own incident", 0, |line| Figure::Count(line.sum(|seed| seed.own))),
    all("announced", "announced as a continuation", 0, |line| {
        Figure::Count(line.sum(|seed| seed.announced))
    }),
    all("not_mentioned", "neither", 0, |line| Figure::Count(line.sum(Spliced::unsaid))),
    all("not_mentioned_attacks", "which", 0, |line| {
        let names: Vec<&str> =
            line.runs.iter().flat_map(|seed| &seed.neither).map(String::as_str).collect();
        Figure::Text(names.join(" "))
    }),
]);

fn report(seeds: &[Spliced]) -> Report {
    let lines = lines(seeds);
    let mut all = Spliced::default();
    for seed in seeds {
        all.add(seed);
    }
    Report {
        tables: vec![COLUMNS.table("Second attacks", 0, &lines)],
        reading: vec![all.reading()],
        rows: COLUMNS.rows(&lines),
        ..Report::default()
    }
}

/// All seeds in one line; none where there is no seed.
fn lines(seeds: &[Spliced]) -> Vec<Line<'_>> {
    Line::group(seeds.iter().map(|seed| ("plant", "evidence", seed)))
}

/// What became of second attacks, for other programs.
pub(super) fn rows(seeds: &[Spliced]) -> Vec<Row> {
    COLUMNS.rows(&lines(seeds))
}

/// Jobs of the usual seeds, or of the first.
pub(super) fn jobs(quick: bool) -> impl Iterator<Item = Job> {
    (SEED..).take(if quick { 1 } else { SEEDS }).map(job)
}

fn job(seed: u64) -> Job {
    let inputs = json!({ (DATA): GAP_S, "seed": seed });
    Job::new(format!("pairs of attacks, seed {seed}"), inputs, move || spliced(seed))
}

/// What became of second attacks.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Spliced {
    pub(super) pairs: usize,
    /// With an incident of their own.
    pub(super) own: usize,
    /// Joined to the incident of the first attack, and announced.
    announced: usize,
    /// Neither: their names, once for every seed.
    neither: Vec<String>,
}

impl Spliced {
    pub(super) fn add(&mut self, other: &Self) {
        self.pairs += other.pairs;
        self.own += other.own;
        self.announced += other.announced;
        self.neither.extend_from_slice(&other.neither);
    }

    /// Those that no incident answers.
    pub(super) fn unsaid(&self) -> usize {
        self.neither.len()
    }

    fn reading(&self) -> String {
        format!(
            "Of {} second attacks that begin {GAP_S} s after the end of another {} have an incident of \
             their own and {} are announced as a continuation.",
            self.pairs, self.own, self.announced
        )
    }
}

fn spliced(seed: u64) -> Result<Spliced, Failure> {
    let mut session = Session::open("plant-attack-day")?;
    session.seed = seed;
    if let Source::Plant(plant) = &mut session.source {
        plant.attacks = Attacks::Pairs(GAP_S);
    }
    let mut models = Models::default();
    let options = Options::study(std::sync::Arc::clone(models.of(&session)?));
    let (mut opened, mut continued): (Vec<Timestamp>, Vec<Timestamp>) = (Vec::new(), Vec::new());
    let mut known: Vec<(u64, u64)> = Vec::new();
    let (_, ending) = engine::spawn(&session, options)?.into_end(|_, update| {
        for fact in &update.news.facts {
            match fact {
                Fact::Opened(incident) => opened.push(incident.time),
                Fact::Updated(incident) => {
                    let before = known.iter_mut().find(|(number, _)| *number == incident.incident);
                    match before {
                        Some((_, times)) if incident.continued > *times => {
                            *times = incident.continued;
                            continued.push(incident.time);
                        }
                        None => {
                            known.push((incident.incident, incident.continued));
                            if incident.continued > 0 {
                                continued.push(incident.time);
                            }
                        }
                        Some(_) => {}
                    }
                }
                _ => {}
            }
        }
    })?;
    let tail = SignedDuration::from_secs_f64(session.replay.tail.seconds);
    let mut found = Spliced::default();
    for pair in ending.events.chunks_exact(2) {
        let second = &pair[1];
        let in_it = |time: &Timestamp| second.start <= *time && *time <= second.end + tail;
        found.pairs += 1;
        if opened.iter().any(in_it) {
            found.own += 1;
        } else if continued.iter().any(in_it) {
            found.announced += 1;
        } else {
            found.neither.push(second.id.clone());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_get_every_count_and_the_names_of_what_was_not_mentioned() {
        let seed = |own, neither: &[&str]| Spliced {
            pairs: 10,
            own,
            announced: 10 - own - neither.len(),
            neither: neither.iter().map(|id| (*id).to_owned()).collect(),
        };
        let report = report(&[seed(8, &["S110"]), seed(9, &[])]);
        assert_eq!(
            serde_json::to_string(&report.rows).expect("plain data"),
            r#"[{"family":"plant","method":"evidence","seeds":2,"pairs":20,"own_incident":17,"announced":2,"not_mentioned":1,"not_mentioned_attacks":"S110"}]"#
        );
        assert_eq!(report.tables[0].lines.len(), 1);
    }
}
