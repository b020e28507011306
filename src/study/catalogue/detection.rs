//! Table 2: who detects an anomaly, and who names its root, on every family of synthetic plants.

mod reading;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::federation::variant::Variant;
use crate::session::{Family, Proprietary};
use crate::study::detection::figures::{Figures, Runs};
use crate::study::detection::flags::{FlagLine, ModelFlags, Thresholds};
use crate::study::detection::{BEDS, Bed, Setup, Trial};
use crate::study::frame::{Done, Job, Options, Study, StudyError};
use crate::study::metrics::delay::Delays;
use crate::study::metrics::run_length::RunLength;
use crate::study::metrics::share;
use crate::study::published::TABLE_2;
use crate::study::report::{Axis, Bar, Cell, Chart, Drawing, Report, Row, Spread, Table};

/// The study.
pub struct Detection;

/// The paper's own experiment; only here all five models are made.
const PAPER_FAMILY: &str = "A2";

/// Families of a study in a hurry.
const QUICK: [&str; 3] = ["A2", "A4", "B4"];

/// A way from data to named roots.
struct Method {
    /// For other programs.
    name: &'static str,
    /// For people.
    label: &'static str,
}

/// In the order in which they are shown.
const METHODS: [Method; 11] = [
    Method { name: "pre-trained-95", label: "pre-trained, 95 %" },
    Method { name: "paper-95", label: "paper, 95 %" },
    Method { name: "paper-99.5", label: "paper, 99.5 %" },
    Method { name: "paper-99-vote", label: "paper, 99 %, 3 of 5" },
    Method { name: "evidence", label: "evidence" },
    Method { name: "evidence-linear-model", label: "same, linear model" },
    Method { name: "evidence-tier-2", label: "evidence, tier 2" },
    Method { name: "evidence-1-bit", label: "evidence, 1 bit" },
    Method { name: "evidence-1-bit-eps-4", label: "evidence, 1 bit, ε=4" },
    Method { name: "evidence-1-bit-eps-2", label: "evidence, 1 bit, ε=2" },
    Method { name: "evidence-1-bit-eps-1", label: "evidence, 1 bit, ε=1" },
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

fn families(options: &Options) -> impl Iterator<Item = (&'static str, Bed)> {
    let quick = options.quick;
    BEDS.into_iter()
        .filter(move |(name, bed)| matches!(bed, Bed::Twin(..)) && (!quick || QUICK.contains(name)))
}

/// Clients of a family: what its jobs cost beside each other.
fn cost(bed: Bed) -> u32 {
    match bed {
        Bed::Twin(_, clients, _) => clients as u32,
        Bed::Plant { .. } => 1,
    }
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
        let job = |family: &'static str, bed: Bed, seed: u64| {
            let inputs = json!({ "family": family, "seed": seed });
            Job::new(format!("{family}, seed {seed}"), inputs, move || outcome(family, bed, seed))
                .costing(cost(bed))
        };
        // Fewer must do for the models that take minutes to learn.
        let slow_seeds = &seeds[..seeds.len().min(if options.quick { 1 } else { SLOW_SEEDS })];
        let slow =
            SLOW.into_iter().flat_map(|model| slow_seeds.iter().map(move |s| flags(model, *s)));
        let families = families(options)
            .flat_map(|(family, bed)| seeds.iter().map(move |seed| job(family, bed, *seed)));
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
        let trial = Trial::new(Bed::Twin(Family::A, 2, 2.0), seed)?;
        let flagged = trial.flagged(model, &trial.models(Proprietary::Paper)?)?;
        Ok(Outcome {
            methods: Vec::new(),
            flags: ModelFlags::of(model, &flagged, &trial.events()),
            effects: None,
        })
    })
    .costing(20)
}

/// One job: data and models once, every method on them.
fn outcome(family: &str, bed: Bed, seed: u64) -> Result<Outcome, StudyError> {
    let trial = Trial::new(bed, seed)?;
    let filters = trial.models(Proprietary::Paper)?;
    let events = trial.events();
    let mut methods = Vec::new();
    let mut flags = Vec::new();
    let is_papers = family == PAPER_FAMILY;
    let variants = Variant::ALL
        .into_iter()
        .filter(|v| (is_papers && !SLOW.contains(v)) || *v == Variant::Federated);
    let mut effects = None;
    for variant in variants {
        let flagged = trial.flagged(variant, &filters)?;
        flags.extend(ModelFlags::of(variant, &flagged, &events));
        let settings: &[(&str, Thresholds)] = match variant {
            Variant::PreTrainedClients => &[("pre-trained-95", Thresholds::at(95.0))],
            Variant::Federated => &[
                ("paper-95", Thresholds::at(95.0)),
                ("paper-99.5", Thresholds::at(99.5)),
                ("paper-99-vote", Thresholds::at(99.0).voted()),
            ],
            _ => &[],
        };
        for (name, thresholds) in settings {
            if let Some(said) = flagged.look_up(*thresholds) {
                methods.push(((*name).to_owned(), trial.judge(&said)));
            }
        }
        if variant == Variant::Federated {
            effects = flagged.pair_shares(Thresholds::at(95.0), |client, step| {
                events.iter().any(|e| e.is_on(step) && e.affected.contains(&client))
            });
        }
    }
    // Both modes stand on the same filters.
    let setup = || Setup { models: Some(Arc::clone(&filters)), ..Setup::new(Proprietary::Paper) };
    for (name, setup) in [
        ("evidence", setup()),
        ("evidence-linear-model", Setup::new(Proprietary::Linear)),
        ("evidence-tier-2", setup().with_states()),
        ("evidence-1-bit", setup().one_bit(None)),
        ("evidence-1-bit-eps-4", setup().one_bit(Some(4.0))),
        ("evidence-1-bit-eps-2", setup().one_bit(Some(2.0))),
        ("evidence-1-bit-eps-1", setup().one_bit(Some(1.0))),
    ] {
        methods.push((name.to_owned(), trial.judge(&trial.evidence(&setup)?)));
    }
    Ok(Outcome { methods, flags, effects })
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
    let families = BEDS.iter().map(|(name, _)| *name);
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
        "Paper: look-up on the flags of the federated models at a percentile. Evidence: five levels \
         on the same proprietary filters; below it the same on a linear predictor. \
         Tier 2: states are sent too.",
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
