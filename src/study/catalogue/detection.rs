//! Table 2: who detects an anomaly, and who names its root, on every family of synthetic plants.

mod reading;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::federation::variant::Variant;
use crate::score::metrics::delay::Delays;
use crate::score::metrics::run_length::RunLength;
use crate::score::metrics::share;
use crate::session::{Mode, Session, Tau, Tier};
use crate::study::detection::figures::{Figures, MethodOutput, Runs};
use crate::study::detection::flags::{FlagLine, ModelFlags};
use crate::study::detection::watch::{Watched, watch};
use crate::study::detection::{
    Models, PAPERS, TWINS, Twin, as_published, baseline, linear, one_bit,
};
use crate::study::frame::{Done, Job, Options, Study, StudyError};
use crate::study::published::TABLE_2;
use crate::study::report::{Axis, Bar, Cell, Chart, Drawing, Report, Row, Spread, Table};

pub(crate) struct Detection;

/// The paper's own experiment; only here all five models are made.
const PAPER_FAMILY: &str = PAPERS.name;

/// Families of a study in a hurry.
const QUICK: [&str; 3] = ["A2", "A4", "B4"];

/// A way from data to named roots.
struct Method {
    name: &'static str,
    label: &'static str,
    way: Way,
}

/// How a method is run.
enum Way {
    /// The family's session with other settings.
    Session(fn(&mut Session)),
    /// The look-up on one of the paper's other models, on the paper's own plant only.
    Baseline(Variant),
}

impl Method {
    const fn of(name: &'static str, label: &'static str, change: fn(&mut Session)) -> Self {
        Self { name, label, way: Way::Session(change) }
    }
}

/// The percentile of the paper's tables.
const PERCENTILE: f64 = 95.0;

/// In the order in which they are shown.
const METHODS: [Method; 11] = [
    Method {
        name: "pre-trained-95",
        label: "pre-trained, 95 %",
        way: Way::Baseline(Variant::PreTrainedClients),
    },
    Method::of("paper-95", "paper, 95 %", |s| as_published(s, PERCENTILE, false)),
    Method::of("paper-99.5", "paper, 99.5 %", |s| as_published(s, 99.5, false)),
    Method::of("paper-99-vote", "paper, 99 %, 3 of 5", |s| as_published(s, 99.0, true)),
    Method::of("evidence", "evidence", |_| {}),
    Method::of("evidence-linear-model", "same, linear model", linear),
    Method::of("evidence-tier-2", "evidence, tier 2", |s| s.thresholds.tier = Tier::States),
    Method::of("evidence-1-bit", "evidence, 1 bit", |s| one_bit(s, None)),
    Method::of("evidence-1-bit-eps-4", "evidence, 1 bit, ε=4", |s| one_bit(s, Some(4.0))),
    Method::of("evidence-1-bit-eps-2", "evidence, 1 bit, ε=2", |s| one_bit(s, Some(2.0))),
    Method::of("evidence-1-bit-eps-1", "evidence, 1 bit, ε=1", |s| one_bit(s, Some(1.0))),
];

/// What one family with one seed gives.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Outcome {
    methods: Vec<(String, Figures)>,
    flags: Vec<ModelFlags>,
    /// Shares of (Z_c, Z_a) = 00, 01, 10, 11 at clients that only feel an anomaly, at the 95th
    /// percentile.
    effects: Option<[f64; 4]>,
}

fn families(options: &Options) -> impl Iterator<Item = Twin> {
    let quick = options.quick;
    TWINS.into_iter().filter(move |twin| !quick || QUICK.contains(&twin.name))
}

/// Models without flags to look up: they take long to learn and are only flagged, on A2.
const SLOW: [Variant; 2] = [Variant::CentralisedOracle, Variant::WithoutProprietary];

/// Seeds of these at most.
const SLOW_SEEDS: usize = 3;

impl Study for Detection {
    fn name(&self) -> &'static str {
        "detection"
    }

    fn about(&self) -> &'static str {
        "detection and root causes on synthetic plants: all models of the paper, both modes (Table 2)"
    }

    fn jobs(&self, options: &Options) -> Result<Vec<Job>, StudyError> {
        let seeds = options.seeds(5, 2);
        let job = |twin: Twin, seed: u64| {
            let family = twin.name;
            let inputs = json!({ "family": family, "seed": seed });
            Job::new(format!("{family}, seed {seed}"), inputs, move || outcome(&twin, seed))
                .costing(twin.clients as u32)
        };
        // Fewer must do for the models that take minutes to learn.
        let slow_seeds = &seeds[..seeds.len().min(if options.quick { 1 } else { SLOW_SEEDS })];
        let slow =
            SLOW.into_iter().flat_map(|model| slow_seeds.iter().map(move |s| flags(model, *s)));
        let families =
            families(options).flat_map(|twin| seeds.iter().map(move |seed| job(twin, *seed)));
        Ok(families.chain(slow).collect())
    }

    fn report(&self, options: &Options, done: &[Done]) -> Result<Report, StudyError> {
        let mut runs: Vec<(String, Outcome)> = Vec::new();
        for done in done {
            runs.push((done.input("family")?, done.read()?));
        }
        let lines = summed(&runs);
        let flags = flag_lines(&runs);
        let rows = flags.iter().map(flag_row).chain(lines.iter().map(Line::row)).collect();
        Ok(Report {
            study: self.name().into(),
            title: self.about().into(),
            command: options.command(self.name()),
            tables: vec![flag_table(&flags), root_table(&lines), ranking_table(&lines)],
            charts: vec![chart(&lines)],
            reading: reading::sentences(&lines, &flags, &runs),
            rows,
        })
    }
}

/// The job of flagging A2 with one of the slow models.
fn flags(model: Variant, seed: u64) -> Job {
    let inputs = json!({ "family": PAPER_FAMILY, "seed": seed, "model": model.name() });
    Job::new(format!("{}, seed {seed}", model.name()), inputs, move || {
        let (flagged, truth) = baseline::flagged(model, seed, &mut Models::default())?;
        Ok(Outcome {
            methods: Vec::new(),
            flags: ModelFlags::of(model, &flagged, &truth.events),
            effects: None,
        })
    })
    .costing(20)
}

/// One job: every method on one family with one seed, on models that are made once.
fn outcome(twin: &Twin, seed: u64) -> Result<Outcome, StudyError> {
    let mut found = Outcome { methods: Vec::new(), flags: Vec::new(), effects: None };
    let models = &mut Models::default();
    for method in &METHODS {
        match method.way {
            Way::Session(change) => {
                let mut session = twin.session(seed)?;
                change(&mut session);
                let watched = watch(&session, models.of(&session)?)?;
                found.methods.push((method.name.to_owned(), watched.figures()));
                found.add_flags(twin, &session, &watched);
            }
            Way::Baseline(model) if *twin == PAPERS => {
                let (flagged, truth) = baseline::flagged(model, seed, models)?;
                found.flags.extend(ModelFlags::of(model, &flagged, &truth.events));
                if let Some(flags) = flagged.at(PERCENTILE) {
                    let output = MethodOutput::from_names(flags.look_up(None));
                    found.methods.push((method.name.to_owned(), Figures::of(&truth, &output)));
                }
            }
            Way::Baseline(_) => {}
        }
    }
    Ok(found)
}

impl Outcome {
    /// What a run at a percentile, each step for itself, says about the flags.
    fn add_flags(&mut self, twin: &Twin, session: &Session, watched: &Watched) {
        let (Mode::Paper, None, Tau::Percentile(percentile)) =
            (session.mode, session.thresholds.vote, session.thresholds.tau_a)
        else {
            return;
        };
        let events = &watched.truth.events;
        if (percentile - PERCENTILE).abs() < 1e-9 {
            self.effects = watched.flags.pair_shares(|client, step| {
                events.iter().any(|e| e.is_on(step) && e.affected.contains(&client))
            });
        }
        if *twin == PAPERS {
            self.flags.extend(watched.flags.models(percentile, events));
        }
    }
}

/// All seeds of one method on one family.
struct Line {
    family: String,
    method: &'static Method,
    seeds: usize,
    events: usize,
    detected: usize,
    right: usize,
    precision: Option<Spread>,
    recall: Option<Spread>,
    f1: Option<Spread>,
    f1_from_first_event: Option<Spread>,
    step_f1: Option<Spread>,
    inside: [Option<Spread>; 3],
    etapr_f1: Option<Spread>,
    arl0: RunLength,
    arl1: RunLength,
    delay: Delays,
    ac1: Option<Spread>,
    ac3: Option<Spread>,
    avg5: Option<Spread>,
    mrr: Option<Spread>,
}

impl Line {
    fn of(family: &str, method: &'static Method, figures: &[&Figures]) -> Self {
        let spread = |of: fn(&Figures) -> Option<f64>| Spread::of(figures.iter().map(|f| of(f)));
        let sum = |of: fn(&Figures) -> usize| figures.iter().map(|f| of(f)).sum();
        let delays: Vec<f64> = figures.iter().flat_map(|f| f.delays.iter().copied()).collect();
        Self {
            family: family.into(),
            method,
            seeds: figures.len(),
            events: sum(|f| f.events),
            detected: sum(|f| f.detected),
            right: sum(|f| f.right),
            precision: spread(|f| f.precision),
            recall: spread(|f| f.recall),
            f1: spread(|f| f.f1),
            f1_from_first_event: spread(|f| f.f1_from_first_event),
            step_f1: spread(|f| f.step_f1),
            inside: [
                spread(|f| f.inside_precision),
                spread(|f| f.step_recall),
                spread(|f| f.inside_f1),
            ],
            etapr_f1: spread(|f| f.etapr_f1),
            arl0: Runs::pooled(figures.iter().map(|f| &f.arl0)),
            arl1: Runs::pooled(figures.iter().map(|f| &f.arl1)),
            delay: Delays::of(&delays),
            ac1: spread(|f| f.ac1),
            ac3: spread(|f| f.ac3),
            avg5: spread(|f| f.avg5),
            mrr: spread(|f| f.mrr),
        }
    }

    /// Right names of all events detected.
    fn attribution(&self) -> Option<f64> {
        share(self.right, self.detected)
    }

    fn row(&self) -> Row {
        let row = Row::new(&self.family, self.method.name, self.seeds)
            .with("episodes", self.events)
            .spread("precision", self.precision)
            .spread("recall", self.recall)
            .spread("f1", self.f1)
            .spread("f1_from_first_event", self.f1_from_first_event)
            .spread("step_f1", self.step_f1)
            .spread("inside_precision", self.inside[0])
            .spread("step_recall", self.inside[1])
            .spread("inside_f1", self.inside[2])
            .spread("etapr_f1", self.etapr_f1);
        run_lengths(row, &self.arl0, &self.arl1)
            .with("delay", self.delay.median)
            .with("delay_p95", self.delay.p95)
            .with("detected", self.detected)
            .with("attribution", self.attribution())
            .spread("ac1", self.ac1)
            .spread("ac3", self.ac3)
            .spread("avg5", self.avg5)
            .spread("mrr", self.mrr)
    }
}

/// Both run lengths and what they rest on.
pub(super) fn run_lengths(row: Row, arl0: &RunLength, arl1: &RunLength) -> Row {
    row.with("arl0", arl0.mean)
        .with("arl0_at_least", arl0.at_least)
        .with("false_alarms", arl0.ended)
        .with("arl1", arl1.mean)
        .with("arl1_at_least", arl1.at_least)
        .with("arl1_censored", arl1.censored)
}

/// A run length in a table.
pub(super) fn run_length(length: &RunLength, digits: usize) -> Cell {
    match (length.mean, length.at_least) {
        (Some(mean), _) => Cell::Number(mean, digits),
        (None, Some(least)) => Cell::AtLeast(least, digits),
        (None, None) => Cell::Nothing,
    }
}

fn summed(runs: &[(String, Outcome)]) -> Vec<Line> {
    let families = TWINS.iter().map(|twin| twin.name);
    let lines = families.flat_map(|family| {
        METHODS.iter().filter_map(move |method| {
            let figures: Vec<&Figures> = runs
                .iter()
                .filter(|(name, _)| name == family)
                .flat_map(|(_, outcome)| &outcome.methods)
                .filter(|(name, _)| name == method.name)
                .map(|(_, figures)| figures)
                .collect();
            (!figures.is_empty()).then(|| Line::of(family, method, &figures))
        })
    });
    lines.collect()
}

fn flag_row(line: &FlagLine) -> Row {
    let method = format!("{}, flags at {} %", line.model.name(), line.percentile);
    run_lengths(Row::new(PAPER_FAMILY, &method, line.seeds), &line.arl0, &line.arl1)
}

fn flag_lines(runs: &[(String, Outcome)]) -> Vec<FlagLine> {
    let papers = runs.iter().filter(|(family, _)| family == PAPER_FAMILY);
    let flags: Vec<&ModelFlags> = papers.flat_map(|(_, outcome)| &outcome.flags).collect();
    FlagLine::all(&flags)
}

fn flag_table(lines: &[FlagLine]) -> Table {
    let columns = ["percentile", "model", "ARL0", "paper", "ARL1", "paper", "censored", "seeds"];
    let title = "Anomaly flags of each model on A2, in steps (left half of Table 2)";
    let mut table = Table::new(title, 2, &columns);
    for line in lines {
        let printed = TABLE_2
            .iter()
            .find(|printed| printed.model == line.model && (line.percentile - 95.0).abs() < 1e-9);
        table.line(vec![
            Cell::text(format!("{} %", line.percentile)),
            Cell::text(line.model.name()),
            run_length(&line.arl0, 1),
            Cell::number(printed.map(|p| p.arl0), 2),
            run_length(&line.arl1, 1),
            Cell::number(printed.map(|p| p.arl1), 2),
            Cell::text(format!(
                "{} of {}",
                line.arl1.censored,
                line.arl1.ended + line.arl1.censored
            )),
            Cell::count(line.seeds),
        ]);
    }
    table.note(
        "ARL0: nominal client-steps per flag. ARL1: from an onset to the next flag of the client it \
         is in, 0 when the first anomalous step is flagged; a run without a flag until the next \
         onset is censored and counts with its full length.",
    );
    table
}

fn root_table(lines: &[Line]) -> Table {
    let columns = [
        "family",
        "method",
        "precision",
        "recall",
        "F1",
        "F1 later",
        "paper F1",
        "right",
        "ARL0",
        "ARL1",
        "missed",
        "delay",
        "seeds",
        "n",
    ];
    let mut table = Table::new("Root causes per episode, end to end", 2, &columns);
    for line in lines {
        table.line(vec![
            Cell::text(line.family.as_str()),
            Cell::text(line.method.label),
            Cell::spread(line.precision, 2),
            Cell::spread(line.recall, 2),
            Cell::spread(line.f1, 2),
            Cell::spread(line.f1_from_first_event, 2),
            Cell::number(printed(line).map(|p| p[2]), 2),
            Cell::number(line.attribution(), 3),
            run_length(&line.arl0, 0),
            run_length(&line.arl1, 1),
            Cell::count(line.arl1.censored),
            Cell::number(line.delay.median, 0),
            Cell::count(line.seeds),
            Cell::count(line.events),
        ]);
    }
    table.note(
        "An incident is right when it overlaps an anomaly or the 6 steps after it and names its \
         client; every other incident is false, in nominal stretches too. Mean ± standard deviation \
         over seeds, n episodes in all. F1 later: the same from the first anomaly on, without the \
         3000 nominal steps that come before. Right: share of what was detected whose first alarm names \
         the client.",
    );
    table.note(
        "Incidents are those that a run of the same session reports: roots that cannot be told apart \
         are not named. Paper: look-up on the flags of the federated models at a percentile. \
         Evidence: five levels on the same proprietary filters; below it the same on a linear \
         predictor. Tier 2: states are sent too. Pre-trained clients are no session: their incidents \
         are named steps, grouped.",
    );
    table.note(
        "ARL0: nominal steps per false incident (>: none in all that was watched). ARL1: from an \
         onset to the next alarm; missed runs are censored at the next onset and count with their \
         full length. Delay: median steps to the first alarm of what was detected.",
    );
    table.note("The paper does not say how it counts; its F1 stands beside the family it used.");
    table
}

fn printed(line: &Line) -> Option<[f64; 3]> {
    let model = match line.method.name {
        "pre-trained-95" => Variant::PreTrainedClients,
        "paper-95" => Variant::Federated,
        _ => return None,
    };
    let of_paper = TABLE_2.iter().find(|printed| printed.model == model)?;
    of_paper.root_cause.filter(|_| line.family == PAPER_FAMILY)
}

fn ranking_table(lines: &[Line]) -> Table {
    let columns = [
        "family",
        "method",
        "step F1",
        "inside P",
        "inside R",
        "inside F1",
        "paper P",
        "paper R",
        "paper F1",
        "eTaPR F1",
        "AC@1",
        "AC@3",
        "Avg@5",
        "MRR",
    ];
    let mut table = Table::new("The same per step, and as rankings", 2, &columns);
    for line in lines {
        let paper = printed(line);
        table.line(vec![
            Cell::text(line.family.as_str()),
            Cell::text(line.method.label),
            Cell::spread(line.step_f1, 2),
            Cell::spread(line.inside[0], 2),
            Cell::spread(line.inside[1], 2),
            Cell::spread(line.inside[2], 2),
            Cell::number(paper.map(|p| p[0]), 2),
            Cell::number(paper.map(|p| p[1]), 2),
            Cell::number(paper.map(|p| p[2]), 2),
            Cell::spread(line.etapr_f1, 2),
            Cell::spread(line.ac1, 2),
            Cell::spread(line.ac3, 2),
            Cell::spread(line.avg5, 2),
            Cell::spread(line.mrr, 2),
        ]);
    }
    table.note(
        "Inside: steps of anomalies only, so that false alarms elsewhere cost nothing; the most \
         lenient reading, and the nearest to the paper's figures. eTaPR with θp = 0.5, θr = 0.1. \
         AC@k, Avg@5 and MRR over all episodes, missed ones included.",
    );
    table
}

fn chart(lines: &[Line]) -> Chart {
    let shown = ["paper-95", "paper-99-vote", "evidence", "evidence-1-bit-eps-4"];
    let bars = lines
        .iter()
        .filter(|line| shown.contains(&line.method.name))
        .map(|line| Bar { name: format!("{} {}", line.family, line.method.label), value: line.f1 })
        .collect();
    Chart {
        name: "f1".into(),
        title: "Root causes end to end: F1 per episode".into(),
        drawing: Drawing::Bars { value: Axis::linear("F1"), bars },
    }
}
