//! Table 2: who detects an anomaly, and who names its root, on every family of synthetic plants.

mod reading;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::engine::experiment::Variant;
use crate::engine::experiment::flags::{ModelFlags, of_variant};
use crate::score::metrics::delay::Delays;
use crate::score::metrics::run_length::{RunLength, RunTotals};
use crate::score::metrics::share;
use crate::session::{Mode, Session, Tau, Tier};
use crate::study::detection::figures::{Figures, MethodOutput};
use crate::study::detection::flags;
use crate::study::detection::watch::{WatchedRun, watch};
use crate::study::detection::{
    AT_PAPERS, Models, PAPERS, TWINS, Twin, as_published, linear, one_bit,
};
use crate::study::frame::{Done, Failure, Job, Study, StudyError, StudyOptions};
use crate::study::published::{TABLE_2, Table2};
use crate::study::report::columns::{self, all, family, json, mean, seeds, shown};
use crate::study::report::{Axis, Bar, Chart, Columns, Figure, Report, Table};

pub(super) const STUDY: Study = Study {
    name: "detection",
    about: "detection and root causes on synthetic plants: all models of the paper, both modes (Table 2)",
    needs_data: false,
    first: None,
    jobs: |options| Ok(jobs(options)),
    report,
};

/// The paper's own experiment; only here all five models are made.
const PAPER_FAMILY: &str = PAPERS.name;

/// Families of a study in a hurry.
const QUICK: [&str; 3] = ["A2", "A4", "B4"];

/// A method that names roots.
struct Method {
    /// For other programs.
    name: &'static str,
    /// For people.
    label: &'static str,
    way: Way,
}

/// How a method is run.
enum Way {
    /// The family's session with other settings.
    Session(fn(&mut Session)),
    /// The same for the published method, which is also run at the paper's own settings.
    Published(fn(&mut Session)),
    /// The look-up on one of the paper's other models, on the paper's own plant only.
    Baseline(Variant),
}

impl Method {
    const fn published(name: &'static str, label: &'static str, change: fn(&mut Session)) -> Self {
        Self { name, label, way: Way::Published(change) }
    }

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
    Method::published("paper-95", "paper, 95 %", |s| as_published(s, PERCENTILE, false)),
    Method::published("paper-99.5", "paper, 99.5 %", |s| as_published(s, 99.5, false)),
    Method::of("paper-99-vote", "paper, 99 %, 3 of 5", |s| as_published(s, 99.0, true)),
    Method::of("evidence", "evidence", |_| {}),
    Method::of("evidence-linear-model", "same, linear model", linear),
    Method::of("evidence-tier-2", "evidence, tier 2", |s| s.thresholds.tier = Tier::States),
    Method::of("evidence-1-bit", "evidence, 1 bit", |s| one_bit(s, None)),
    Method::of("evidence-1-bit-eps-4", "evidence, 1 bit, ε=4", |s| one_bit(s, Some(4.0))),
    Method::of("evidence-1-bit-eps-2", "evidence, 1 bit, ε=2", |s| one_bit(s, Some(2.0))),
    Method::of("evidence-1-bit-eps-1", "evidence, 1 bit, ε=1", |s| one_bit(s, Some(1.0))),
];

/// One family with one seed.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct FamilyResult {
    methods: Vec<(String, Figures)>,
    flags: Vec<ModelFlags>,
    /// Shares of (Z_c, Z_a) = 00, 01, 10, 11 at clients that only feel an anomaly, at the 95th
    /// percentile.
    effects: Option<[f64; 4]>,
}

fn families(options: &StudyOptions) -> impl Iterator<Item = Twin> {
    let quick = options.quick;
    let own = TWINS.into_iter().filter(move |twin| !quick || QUICK.contains(&twin.name));
    own.chain([AT_PAPERS])
}

/// Models without flags to look up: they take long to learn and are only flagged, on A2.
const SLOW: [Variant; 2] = [Variant::CentralisedOracle, Variant::WithoutProprietary];

/// Seeds of these at most.
const SLOW_SEEDS: usize = 3;

fn jobs(options: &StudyOptions) -> Vec<Job> {
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
        SLOW.into_iter().flat_map(|model| slow_seeds.iter().map(move |s| flag_job(model, *s)));
    let families =
        families(options).flat_map(|twin| seeds.iter().map(move |seed| job(twin, *seed)));
    families.chain(slow).collect()
}

fn report(_: &StudyOptions, done: &[Done]) -> Result<Report, StudyError> {
    let mut runs: Vec<(String, FamilyResult)> = Vec::new();
    for done in done {
        runs.push((done.input("family")?, done.read()?));
    }
    let lines = lines(&runs);
    let flags_of = |wanted: &'static str| {
        let of_family = runs.iter().filter(|(family, _)| family == wanted);
        let flags: Vec<&ModelFlags> = of_family.flat_map(|(_, outcome)| &outcome.flags).collect();
        flags::lines(wanted, &flags)
    };
    let (flags, published) = (flags_of(PAPER_FAMILY), flags_of(AT_PAPERS.name));
    let mut rows = FLAGS.rows(&flags);
    rows.extend(FLAGS.rows(&published));
    let with_ranks = ROOTS.rows(&lines).into_iter().zip(&lines);
    rows.extend(with_ranks.map(|(row, line)| RANKING.add_to(row, line)));
    Ok(Report {
        tables: [flag_table("Anomaly flags of each model on A2", &flags)]
            .into_iter()
            .chain((!published.is_empty()).then(|| {
                let title =
                    "The same at the paper's settings: φ of width 1, one pass, a constant step";
                flag_table(title, &published)
            }))
            .chain([root_table(&lines), ranking_table(&lines)])
            .collect(),
        charts: vec![chart(&lines)],
        reading: reading::sentences(&lines, &flags, &runs),
        rows,
        ..Report::default()
    })
}

/// The job of flagging A2 with one of the slow models.
fn flag_job(model: Variant, seed: u64) -> Job {
    let inputs = json!({ "family": PAPER_FAMILY, "seed": seed, "model": model.name() });
    Job::new(format!("{}, seed {seed}", model.name()), inputs, move || {
        let session = PAPERS.session(seed)?;
        let (distances, truth) = of_variant(model, &session, Models::default().of(&session)?)?;
        Ok(FamilyResult {
            methods: Vec::new(),
            flags: ModelFlags::of(model, &distances, &truth.events),
            effects: None,
        })
    })
    .costing(20)
}

/// One job: every method on one family with one seed, on models that are made once.
fn outcome(twin: &Twin, seed: u64) -> Result<FamilyResult, Failure> {
    let mut found = FamilyResult { methods: Vec::new(), flags: Vec::new(), effects: None };
    let models = &mut Models::default();
    for method in &METHODS {
        match method.way {
            Way::Session(_) if twin.as_published => {}
            Way::Session(change) | Way::Published(change) => {
                let mut session = twin.session(seed)?;
                change(&mut session);
                let watched = watch(&session, models.of(&session)?)?;
                found.methods.push((method.name.to_owned(), watched.figures()));
                found.add_flags(twin, &session, &watched);
            }
            Way::Baseline(model) if is_papers(twin) => {
                let session = twin.session(seed)?;
                let (distances, truth) = of_variant(model, &session, models.of(&session)?)?;
                found.flags.extend(ModelFlags::of(model, &distances, &truth.events));
                if let Some(flags) = distances.at(PERCENTILE) {
                    let output = MethodOutput::from_names(flags.look_up(None));
                    found.methods.push((method.name.to_owned(), Figures::of(&truth, &output)));
                }
            }
            Way::Baseline(_) => {}
        }
    }
    Ok(found)
}

/// The paper's own plant, with whichever settings.
fn is_papers(twin: &Twin) -> bool {
    [PAPERS, AT_PAPERS].contains(twin)
}

impl FamilyResult {
    /// Adds the flags of a run at a percentile, each step for itself.
    fn add_flags(&mut self, twin: &Twin, session: &Session, watched: &WatchedRun) {
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
        if is_papers(twin) {
            self.flags.extend(watched.flags.models(percentile, events));
        }
    }
}

/// All seeds of one method on one family.
type Line<'a> = columns::Line<'a, Figures>;

fn lines(runs: &[(String, FamilyResult)]) -> Vec<Line<'_>> {
    let all = runs.iter().flat_map(|(family, outcome)| {
        outcome.methods.iter().map(move |(method, figures)| (family, method, figures))
    });
    Line::group(all)
}

fn label(line: &Line) -> &'static str {
    METHODS.iter().find(|method| method.name == line.method).map_or("", |method| method.label)
}

fn detected(line: &Line) -> usize {
    line.sum(|figures| figures.detected)
}

/// Right names of all events detected.
fn attribution(line: &Line) -> Option<f64> {
    share(line.sum(|figures| figures.right), detected(line))
}

fn arl0(line: &Line) -> RunLength {
    RunTotals::pooled(line.runs.iter().map(|figures| &figures.arl0))
}

fn arl1(line: &Line) -> RunLength {
    RunTotals::pooled(line.runs.iter().map(|figures| &figures.arl1))
}

fn delay(line: &Line) -> Delays {
    let delays: Vec<f64> = line.runs.iter().flat_map(|f| f.delays.iter().copied()).collect();
    Delays::of(&delays)
}

/// Precision, recall and F1 that the paper prints for this line.
fn printed(line: &Line) -> Option<[f64; 3]> {
    let model = match line.method.as_str() {
        "pre-trained-95" => Variant::PreTrainedClients,
        "paper-95" => Variant::Federated,
        _ => return None,
    };
    let of_paper = TABLE_2.iter().find(|printed| printed.model == model)?;
    of_paper.root_cause.filter(|_| [PAPER_FAMILY, AT_PAPERS.name].contains(&line.family.as_str()))
}

const FLAGS: Columns<ModelFlags> = Columns(&[
    shown("percentile", 0, |line| Figure::Text(flags::percentile(line))),
    shown("model", 0, |line| Figure::Text(flags::model(line))),
    all("arl0", "ARL0", 1, |line| Figure::RunLength(flags::arl0(line))),
    json("arl0_at_least", |line| Figure::Number(flags::arl0(line).at_least)),
    json("false_alarms", |line| Figure::Count(flags::arl0(line).ended)),
    shown("paper", 2, |line| Figure::Number(printed_flags(line).map(|p| p.arl0))),
    all("arl1", "ARL1", 1, |line| Figure::RunLength(flags::arl1(line))),
    json("arl1_at_least", |line| Figure::Number(flags::arl1(line).at_least)),
    json("arl1_censored", |line| Figure::Count(flags::arl1(line).censored)),
    shown("paper", 2, |line| Figure::Number(printed_flags(line).map(|p| p.arl1))),
    shown("censored", 0, |line| Figure::Text(flags::censored(line))),
    seeds("seeds"),
]);

fn printed_flags(line: &columns::Line<'_, ModelFlags>) -> Option<&'static Table2> {
    let flags = line.runs.first().filter(|flags| (flags.percentile - PERCENTILE).abs() < 1e-9)?;
    TABLE_2.iter().find(|printed| printed.model.name() == flags.model)
}

const ROOTS: Columns<Figures> = Columns(&[
    family("family"),
    shown("method", 0, |line| Figure::Text(label(line).into())),
    mean("precision", "precision", 2, |f| f.precision),
    mean("recall", "recall", 2, |f| f.recall),
    mean("f1", "F1", 2, |f| f.f1),
    mean("f1_from_first_event", "F1 later", 2, |f| f.f1_from_first_event),
    shown("paper F1", 2, |line| Figure::Number(printed(line).map(|p| p[2]))),
    all("attribution", "right", 3, |line| Figure::Number(attribution(line))),
    all("arl0", "ARL0", 0, |line| Figure::RunLength(arl0(line))),
    json("arl0_at_least", |line| Figure::Number(arl0(line).at_least)),
    json("false_alarms", |line| Figure::Count(arl0(line).ended)),
    all("arl1", "ARL1", 1, |line| Figure::RunLength(arl1(line))),
    json("arl1_at_least", |line| Figure::Number(arl1(line).at_least)),
    all("arl1_censored", "missed", 0, |line| Figure::Count(arl1(line).censored)),
    all("delay", "delay", 0, |line| Figure::Number(delay(line).median)),
    json("delay_p95", |line| Figure::Number(delay(line).p95)),
    json("detected", |line| Figure::Count(detected(line))),
    seeds("seeds"),
    all("episodes", "n", 0, |line| Figure::Count(line.sum(|f| f.events))),
]);

const RANKING: Columns<Figures> = Columns(&[
    family("family"),
    shown("method", 0, |line| Figure::Text(label(line).into())),
    mean("step_f1", "step F1", 2, |f| f.step_f1),
    mean("inside_precision", "inside P", 2, |f| f.inside_precision),
    mean("step_recall", "inside R", 2, |f| f.step_recall),
    mean("inside_f1", "inside F1", 2, |f| f.inside_f1),
    shown("paper P", 2, |line| Figure::Number(printed(line).map(|p| p[0]))),
    shown("paper R", 2, |line| Figure::Number(printed(line).map(|p| p[1]))),
    shown("paper F1", 2, |line| Figure::Number(printed(line).map(|p| p[2]))),
    mean("etapr_f1", "eTaPR F1", 2, |f| f.etapr_f1),
    mean("ac1", "AC@1", 2, |f| f.ac1),
    mean("ac3", "AC@3", 2, |f| f.ac3),
    mean("avg5", "Avg@5", 2, |f| f.avg5),
    mean("mrr", "MRR", 2, |f| f.mrr),
]);

fn flag_table(title: &str, lines: &[columns::Line<'_, ModelFlags>]) -> Table {
    FLAGS.table(&format!("{title}, in steps (left half of Table 2)"), 2, lines).note(
        "ARL0: nominal client-steps per flag. ARL1: from an onset to the next flag of the client it \
         is in, 0 when the first anomalous step is flagged; a run without a flag until the next \
         onset is censored and counts with its full length.",
    )
}

fn root_table(lines: &[Line]) -> Table {
    ROOTS
        .table("Root causes per episode, end to end", 2, lines)
        .note(
            "An incident is right when it overlaps an anomaly or the 6 steps after it and names its \
             client; every other incident is false, in nominal stretches too. Mean ± standard \
             deviation over seeds, n episodes in all. F1 later: the same from the first anomaly on, \
             without the 3000 nominal steps that come before. Right: share of detected episodes \
             whose first alarm names the client.",
        )
        .note(
            "Incidents of evidence mode are those that a run of the same session reports: roots that \
             cannot be distinguished are not named. Paper and pre-trained: look-up on the flags of the \
             models at a percentile. For precision, recall and F1 named steps at most five apart are one \
             incident; right, ARL0, ARL1 and delay count alarms: one for each run of steps with one root, \
             as a run of the same session does. Evidence: five levels on the same proprietary filters; \
             below it the same on a linear predictor. Tier 2: states are sent too.",
        )
        .note(
            "ARL0: nominal steps per false alarm (>: none in all that was watched). ARL1: from an \
             onset to the next alarm; missed runs are censored at the next onset and count with their \
             full length. Delay: median steps to the first alarm of what was detected.",
        )
        .note("The paper does not define its counting; its F1 stands beside the family it used.")
}

fn ranking_table(lines: &[Line]) -> Table {
    RANKING.table("The same per step, and as rankings", 2, lines).note(
        "Inside: steps of anomalies only, so that false alarms elsewhere cost nothing; the most \
         lenient reading, and the nearest to the paper's figures. eTaPR with θp = 0.5, θr = 0.1. \
         AC@k, Avg@5 and MRR over all episodes, missed ones included.",
    )
}

fn chart(lines: &[Line]) -> Chart {
    let shown = ["paper-95", "paper-99-vote", "evidence", "evidence-1-bit-eps-4"];
    let bar = |line: &Line| Bar {
        name: format!("{} {}", line.family, label(line)),
        value: line.spread(|figures| figures.f1),
    };
    let bars = lines.iter().filter(|line| shown.contains(&line.method.as_str())).map(bar);
    let title = "Root causes end to end: F1 per episode";
    Chart::bars("f1", title, Axis::linear("F1"), bars.collect())
}
