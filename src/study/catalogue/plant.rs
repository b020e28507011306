//! Table 4 on the built-in plant: its day of twenty attacks and a day without any, both modes.

use serde_json::json;

use super::watched::{self, Line, Seen};
use crate::session::Session;
use crate::study::detection::figures::Runs;
use crate::study::detection::flags::{FlagRuns, ModelFlags};
use crate::study::frame::{Done, Job, Options, Study, StudyError};
use crate::study::lesson::{self, Findings};
use crate::study::report::Report;

pub(crate) struct PlantDay;

const ATTACKS: &str = "plant-attack-day";
const NORMAL: &str = "plant-normal";

impl Study for PlantDay {
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
        let days = [ATTACKS, NORMAL]
            .into_iter()
            .flat_map(|name| seeds.iter().map(move |seed| job(name, *seed)));
        // The oracle sees the raw data of all clients; it is made where all lessons are.
        Ok(days.chain(lesson::jobs_of(lesson::Plant::BuiltIn, options)).collect())
    }

    fn report(&self, options: &Options, done: &[Done]) -> Result<Report, StudyError> {
        let runs = |name: &str| -> Result<Vec<Vec<Seen>>, StudyError> {
            let mut runs = Vec::new();
            for done in done {
                if done.input::<Option<String>>("session")?.as_deref() == Some(name) {
                    runs.push(done.read()?);
                }
            }
            Ok(runs)
        };
        let lessons: Vec<&Done> =
            done.iter().filter(|done| done.inputs.get("session").is_none()).collect();
        let flags = in_seconds(&lessons)?;
        let (attacked, normal) = (runs(ATTACKS)?, runs(NORMAL)?);
        let (days, calm) = (Line::all(ATTACKS, &attacked), Line::all(NORMAL, &normal));
        let of_models = "Flags of each model on the attack day (left half of Table 4)";
        let mut flags = watched::flag_table(of_models, &flags.iter().collect::<Vec<_>>());
        flags.note(lesson::oracle_note(options));
        let title = "The attack day and a normal day of the built-in plant";
        let all: Vec<Line> =
            Line::all(ATTACKS, &attacked).into_iter().chain(Line::all(NORMAL, &normal)).collect();
        Ok(Report {
            study: self.name().into(),
            title: self.about().into(),
            command: options.command(self.name()),
            tables: vec![
                watched::table(title, &all, false),
                flags,
                watched::attack_table("Every attack", &attacked),
            ],
            charts: vec![watched::chart(ATTACKS, &days)],
            reading: watched::comparison(&days).into_iter().chain(targets(&days, &calm)).collect(),
            rows: all.iter().map(Line::row).collect(),
        })
    }
}

/// The flags of every lesson; lessons count steps, Table 4 time.
fn in_seconds(lessons: &[&Done]) -> Result<Vec<ModelFlags>, StudyError> {
    let mut all = Vec::new();
    for lesson in lessons {
        let found: Findings = lesson.read()?;
        let seconds = |runs: Runs| Runs { watched: runs.watched * found.period_s, ..runs };
        all.extend(found.flags.into_iter().map(|flags| ModelFlags {
            runs: FlagRuns { arl0: seconds(flags.runs.arl0), arl1: seconds(flags.runs.arl1) },
            ..flags
        }));
    }
    Ok(all)
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
