//! Table 4 on the built-in plant: its day of twenty attacks and a day without any, both modes.

use serde_json::json;

use super::watched::{self, Line, Seen};
use crate::session::Session;
use crate::study::frame::{Done, Job, Options, Study, StudyError};
use crate::study::report::Report;

/// The study.
pub struct Plant;

const ATTACKS: &str = "plant-attack-day";
const NORMAL: &str = "plant-normal";

impl Study for Plant {
    fn name(&self) -> &'static str {
        "plant"
    }

    fn about(&self) -> &'static str {
        "the built-in plant's attack day and a normal day, both modes (Table 4)"
    }

    fn jobs(&self, options: &Options) -> Result<Vec<Job>, StudyError> {
        let job = |name: &'static str, seed: u64| {
            Job::new(
                format!("{name}, seed {seed}"),
                json!({ "session": name, "seed": seed }),
                move || {
                    let mut session = Session::open(name)?;
                    session.seed = seed;
                    watched::watch(&session)
                },
            )
        };
        let seeds = options.seeds(5, 2);
        Ok([ATTACKS, NORMAL]
            .into_iter()
            .flat_map(|name| seeds.iter().map(move |seed| job(name, *seed)))
            .collect())
    }

    fn report(&self, options: &Options, done: &[Done]) -> Result<Report, StudyError> {
        let runs = |name: &str| -> Result<Vec<Vec<Seen>>, StudyError> {
            let mut runs = Vec::new();
            for done in done {
                if done.input::<String>("session")? == name {
                    runs.push(done.read()?);
                }
            }
            Ok(runs)
        };
        let (attacked, normal) = (runs(ATTACKS)?, runs(NORMAL)?);
        let (days, calm) = (Line::all(ATTACKS, &attacked), Line::all(NORMAL, &normal));
        let title = "The attack day and a normal day of the built-in plant";
        let all: Vec<Line> =
            Line::all(ATTACKS, &attacked).into_iter().chain(Line::all(NORMAL, &normal)).collect();
        Ok(Report {
            study: self.name().into(),
            title: self.about().into(),
            command: options.command(self.name()),
            tables: vec![
                watched::table(title, &all, false),
                watched::attack_table("Every attack", &attacked),
            ],
            charts: vec![watched::chart(ATTACKS, &days)],
            reading: watched::comparison(&days).into_iter().chain(targets(&days, &calm)).collect(),
            rows: all.iter().map(Line::row).collect(),
        })
    }
}

/// Of 20 attacks 18 right, at most 1.5 false alarms on the day, 30 s to the alarm, 1 false alarm on a
/// normal day.
fn targets(days: &[Line], calm: &[Line]) -> Option<String> {
    let evidence = |lines: &'_ [Line]| lines.iter().position(|l| l.method.name == "evidence");
    let (day, calm) = (&days[evidence(days)?], &calm[evidence(calm)?]);
    let right = day.right() as f64 / day.seen.len() as f64;
    let of_all = day.attacks() as f64 / day.seen.len() as f64;
    let false_alarms = day.false_alarms_per_day()?.mean;
    let delay = day.median_delay_s()?;
    let nominal = calm.false_alarms_per_day()?.mean;
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
