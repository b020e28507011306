//! Every deviation from the paper, with its reason and, where it was measured, its effect.
//!
//! Deviations of models and training are undone one at a time in a federation of A2. The others have
//! figures of their own: the oracle's loss, σ, roots named by other rules or with other anomalies.

mod list;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use self::list::{DEVIATIONS, Deviation, Effect};
use crate::engine::experiment::dataset::DatasetSource;
use crate::engine::experiment::deviation::{
    Clients, OracleFigures, Outcome, Thresholds, oracles, train, with_p4,
};
use crate::engine::experiment::federation::Effort;
use crate::engine::experiment::flags::Span;
use crate::score::metrics::run_length::RunTotals;
use crate::session::settings::{Federation, ModelSettings, Optimiser, Printed, StepSize};
use crate::session::{Decimation, PrintedPlant, Session};
use crate::study::detection::Models;
use crate::study::detection::figures::{Figures, MethodOutput};
use crate::study::detection::watch::{WatchedRun, watch};
use crate::study::frame::{Done, Failure, Job, Study, StudyError, StudyOptions};
use crate::study::report::columns::{self, all, json, mean, method, seeds};
use crate::study::report::{Cell, Columns, Figure, Report, Table};

pub(super) const STUDY: Study = Study {
    name: "deviations",
    about: "every deviation from the paper, with its reason and its effect where it was measured",
    needs_data: false,
    first: Some(|kept| Ok(the_list(&read(kept)?))),
    jobs: |options| Ok(jobs(options)),
    report,
};

/// A federation of A2 with one deviation undone.
struct Variant {
    name: &'static str,
    change: fn(&mut ModelSettings),
}

const OURS: &str = "as here";
const OF_FIT: &str = "thresholds of the training rows";
const UNRIDGED: &str = "Σ without a ridge";
const ESTIMATED: &str = "memory in the state";
const ALL: &str = "all settings of the federation";

/// Those of the federation: all of them have the same proprietary models.
const FEDERATIONS: [Variant; 11] = [
    Variant { name: OURS, change: |_| {} },
    Variant { name: "φ of width 1", change: |model| model.augment_width = 1 },
    Variant {
        name: "one pass",
        change: |model| model.federation = Federation::Online { passes: 1 },
    },
    Variant { name: "constant step", change: |model| model.step_size = StepSize::Constant },
    Variant { name: "φ not scaled", change: |model| model.augment_scale = 1.0 },
    Variant {
        name: "plain gradient descent",
        change: |model| {
            // The printed rule; Adam's step sizes.
            model.optimiser = Optimiser::Sgd;
            (model.eta1, model.eta2, model.eta3) = (1e-3, 1e-3, 1e-3);
        },
    },
    // θ does not enter L_c, so that its gradient is zero.
    Variant { name: "∇L_c in line 10", change: |model| model.eta1 = 0.0 },
    Variant { name: OF_FIT, change: |_| {} },
    Variant { name: UNRIDGED, change: |_| {} },
    Variant { name: ESTIMATED, change: |_| {} },
    Variant { name: ALL, change: federation_as_printed },
];

/// Those of the proprietary models, each with models of its own.
const FILTERS: [Variant; 6] = [
    Variant {
        name: "update not clipped",
        change: |model| model.printed = &[Printed::UnclippedUpdate],
    },
    Variant {
        name: "gradient not clipped",
        change: |model| model.printed = &[Printed::UnclippedGradient],
    },
    Variant {
        name: "gradient through K",
        change: |model| model.printed = &[Printed::GradientThroughGain],
    },
    Variant {
        name: "loss over whole windows",
        change: |model| model.printed = &[Printed::WholeWindow],
    },
    Variant { name: "no memory", change: |model| model.printed = &[Printed::NoMemory] },
    Variant {
        name: "the same, filters too",
        change: |model| {
            federation_as_printed(model);
            model.printed =
                &[Printed::UnclippedUpdate, Printed::UnclippedGradient, Printed::WholeWindow];
        },
    },
];

/// Plants with one part exactly as the paper prints it, each with models of its own.
const PLANTS: [(&str, PrintedPlant); 2] = [
    ("state is the target", PrintedPlant::StateIsTarget),
    ("g_dep as drawn", PrintedPlant::CouplingsAsDrawn),
];

fn federation_as_printed(model: &mut ModelSettings) {
    model.federate_as_published();
    model.augment_scale = 1.0;
}

/// The percentile of the paper's tables.
const PERCENTILE: f64 = 95.0;

/// One variant on one seed.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Measured {
    variant: String,
    server_loss: f64,
    client_loss: f64,
    /// Share of (Z_c, Z_a) = (1, 0) at clients that only feel an anomaly.
    effects: Option<f64>,
    inside_f1: Option<f64>,
    f1: Option<f64>,
}

/// A figure with a deviation and without it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Pair {
    deviation: String,
    figure: String,
    ours: f64,
    papers: f64,
}

impl Pair {
    fn new(deviation: &str, figure: &str, ours: f64, papers: f64) -> Self {
        Self { deviation: deviation.into(), figure: figure.into(), ours, papers }
    }
}

/// The result of one job.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Results {
    rows: Vec<Measured>,
    pairs: Vec<Pair>,
}

type Part = fn(u64, Effort) -> Result<Results, Failure>;

fn jobs(options: &StudyOptions) -> Vec<Job> {
    let effort = Effort::new(options.quick);
    let parts: [(&str, Part); 4] = [
        ("federations of A2", federations),
        ("oracles", of_oracles),
        ("look-up on A4", of_look_up),
        ("sensors of plant-paper", of_sensors),
    ];
    let mut jobs = Vec::new();
    for seed in options.seeds(5, 1) {
        for (name, part) in parts {
            let inputs = json!({ "part": name, "seed": seed, "effort": effort });
            let work = move || part(seed, effort);
            jobs.push(Job::new(format!("{name}, seed {seed}"), inputs, work).costing(4));
        }
        for (name, way) in PLANTS {
            let inputs = json!({ "part": name, "seed": seed, "effort": effort });
            let label = format!("{name}, seed {seed}");
            jobs.push(Job::new(label, inputs, move || plants(name, way, seed, effort)));
        }
        for variant in &FILTERS {
            let inputs = json!({ "part": variant.name, "seed": seed, "effort": effort });
            let label = format!("{}, seed {seed}", variant.name);
            jobs.push(Job::new(label, inputs, move || filters(variant, seed, effort)));
        }
    }
    jobs
}

/// The settings of a variant.
fn settings(variant: &Variant, effort: Effort) -> ModelSettings {
    let mut settings = ModelSettings { epochs: effort.epochs, ..ModelSettings::default() };
    (variant.change)(&mut settings);
    settings
}

fn filters(variant: &Variant, seed: u64, effort: Effort) -> Result<Results, Failure> {
    let settings = settings(variant, effort);
    let clients = Clients::new(DatasetSource::Twin(2), seed, &settings)?;
    let outcome = train(&clients, &settings, PERCENTILE, Thresholds::Calibration)?;
    Ok(Results { rows: vec![judged(variant.name, &outcome)], ..Results::default() })
}

fn plants(name: &str, way: PrintedPlant, seed: u64, effort: Effort) -> Result<Results, Failure> {
    let usual = settings(&FEDERATIONS[0], effort);
    let clients = Clients::new(DatasetSource::TwinPrinted(2, way), seed, &usual)?;
    let outcome = train(&clients, &usual, PERCENTILE, Thresholds::Calibration)?;
    Ok(Results { rows: vec![judged(name, &outcome)], ..Results::default() })
}

fn federations(seed: u64, effort: Effort) -> Result<Results, Failure> {
    let usual = settings(&FEDERATIONS[0], effort);
    let clients = Clients::new(DatasetSource::Twin(2), seed, &usual)?;
    let with_memory = clients.with_estimated_memory();
    let mut results = Results::default();
    let mut arl0 = None;
    for variant in &FEDERATIONS {
        let thresholds = match variant.name {
            OF_FIT => Thresholds::Fit,
            UNRIDGED => Thresholds::WithoutRidge,
            _ => Thresholds::Calibration,
        };
        let clients = if variant.name == ESTIMATED { &with_memory } else { &clients };
        let outcome = train(clients, &settings(variant, effort), PERCENTILE, thresholds)?;
        results.rows.push(judged(variant.name, &outcome));
        let mean = |runs: &RunTotals| RunTotals::pooled([runs]).mean;
        if variant.name == OF_FIT {
            let figure = "ARL0 of Z_a, steps";
            let pair =
                |ours, papers| Pair::new("first false alarm in training", figure, ours, papers);
            results.pairs.extend(Option::zip(arl0, mean(&outcome.first)).map(|(a, b)| pair(a, b)));
        }
        if variant.name == OURS {
            arl0 = mean(&outcome.arl0);
            let everywhere = clients.with_anomalies_everywhere()?;
            let other = train(&everywhere, &usual, PERCENTILE, Thresholds::Calibration)?;
            results.pairs.extend(of_episodes(&outcome));
            results.pairs.extend(of_first_steps(&outcome));
            results.pairs.extend(of_anomalies(&outcome, &other));
        }
    }
    Ok(results)
}

fn judged(variant: &str, outcome: &Outcome) -> Measured {
    let Outcome { server_loss, client_loss, flags, truth, .. } = outcome;
    let figures = Figures::of(truth, &MethodOutput::from_names(flags.look_up(None)));
    let felt = |client: usize, step: usize| {
        truth.events.iter().any(|e| e.is_on(step) && e.affected.contains(&client))
    };
    Measured {
        variant: variant.to_owned(),
        server_loss: *server_loss,
        client_loss: *client_loss,
        effects: flags.pair_shares(felt).map(|shares| shares[2]),
        inside_f1: figures.inside_f1,
        f1: figures.f1,
    }
}

/// False alarms in a thousand quiet steps, as runs of one verdict and step by step; and F1 per episode with
/// and without joining named steps.
fn of_episodes(outcome: &Outcome) -> Vec<Pair> {
    let (names, truth) = (outcome.flags.look_up(None), &outcome.truth);
    let is_false = |t: &usize| !truth.events.iter().any(|event| event.is_answered_at(*t));
    let named = (0..names.len()).filter(|t| names[*t].is_some()).filter(is_false).count();
    let quiet = truth.quiet_steps() as f64 / 1000.0;
    let joined = Figures::of(truth, &MethodOutput::from_names(names.clone()));
    let apart = Figures::of(truth, &MethodOutput::from_runs(names));
    let steps = (quiet > 0.0).then(|| {
        let figure = "false alarms in 1000 quiet steps";
        let ours = joined.false_alarms as f64 / quiet;
        Pair::new("every step by itself", figure, ours, named as f64 / quiet)
    });
    let f1 = joined.f1.zip(apart.f1);
    let f1 = f1.map(|(ours, papers)| Pair::new("every run is an episode", "F1", ours, papers));
    steps.into_iter().chain(f1).collect()
}

/// Losses with the steps in which a filter has no state yet.
fn of_first_steps(outcome: &Outcome) -> [Pair; 2] {
    let Outcome { server_loss, client_loss, losses_from_the_first: [server, client], .. } = outcome;
    let pair = |figure, ours, papers| Pair::new("judged from the first step", figure, ours, papers);
    [pair("L_s", *server_loss, *server), pair("L_a", *client_loss, *client)]
}

/// How often Table 1 names a root in an anomaly: of one client, and of all of them at once.
fn of_anomalies(one: &Outcome, all: &Outcome) -> Option<Pair> {
    let share = |outcome: &Outcome| {
        let (names, truth) = (outcome.flags.look_up(None), &outcome.truth);
        let on = |t: &usize| truth.events.iter().any(|event| event.is_on(*t));
        let steps = (0..names.len()).filter(on).count();
        let named = (0..names.len()).filter(on).filter(|t| names[*t].is_some()).count();
        (steps > 0).then(|| named as f64 / steps as f64)
    };
    let figure = "steps of anomalies with a root";
    Some(Pair::new("anomalies at all clients", figure, share(one)?, share(all)?))
}

fn of_oracles(seed: u64, effort: Effort) -> Result<Results, Failure> {
    let clients = Clients::new(DatasetSource::Twin(2), seed, &settings(&FEDERATIONS[0], effort))?;
    let OracleFigures {
        ours,
        earlier_jacobian,
        narrow_heads,
        sigma_used,
        sigma_c,
        sigma_a,
        sigma_g_used,
        sigma_g,
        sigma_least,
        sigma_classic,
    } = oracles(&clients, effort)?;
    let loss = "mean r_o² on new rows";
    let pairs = vec![
        Pair::new("oracle: H at the estimate before", loss, ours, earlier_jacobian),
        Pair::new("oracle: heads of width 4", loss, ours, narrow_heads),
        Pair::new("σ by Theorem 7.1", "σ_c at ε = 1, in std of the state", sigma_used, sigma_c),
        Pair::new("σ by Theorem 7.1", "σ_a at ε = 1, in std of the state", sigma_used, sigma_a),
        Pair::new("σ by Theorem 7.2", "σ_g at ε = 1", sigma_g_used, sigma_g),
        Pair::new("classic σ", "σ at ε = 1, δ = 1e-5, sensitivity 1", sigma_least, sigma_classic),
    ];
    Ok(Results { pairs, ..Results::default() })
}

fn of_look_up(seed: u64, effort: Effort) -> Result<Results, Failure> {
    let usual = settings(&FEDERATIONS[0], effort);
    let clients = Clients::new(DatasetSource::Twin(4), seed, &usual)?;
    let Outcome { flags, truth, .. } =
        train(&clients, &usual, PERCENTILE, Thresholds::Calibration)?;
    let figures = |names| Figures::of(&truth, &MethodOutput::from_names(names));
    let (ours, pairs) = (figures(flags.look_up(None)), figures(flags.look_up_pairs(truth.clients)));
    let pair = |figure: &str, of: fn(&Figures) -> Option<f64>| {
        Some(Pair::new("Table 1 pair by pair", figure, of(&ours)?, of(&pairs)?))
    };
    let found = [pair("inside F1 on A4", |f| f.inside_f1), pair("F1 on A4", |f| f.f1)];
    Ok(Results { pairs: found.into_iter().flatten().collect(), ..Results::default() })
}

/// The session `plant-paper` with and without P4, the sensors that repeat another and block means, and its
/// flags by the minute.
fn of_sensors(seed: u64, _: Effort) -> Result<Results, Failure> {
    let mut session = Session::open("plant-paper")?;
    session.seed = seed;
    let watched = |session: &Session| -> Result<WatchedRun, Failure> {
        watch(session, &Arc::clone(Models::default().of(session)?))
    };
    let right = |figures: &Figures| figures.right as f64 / figures.events.max(1) as f64;
    // The share of attacks whose first alarm is right, and false alarms a day.
    let figures = |run: &WatchedRun| {
        let figures = run.figures();
        let days = run.quiet_days().max(f64::MIN_POSITIVE);
        [right(&figures), figures.false_alarms as f64 / days]
    };
    let run = watched(&session)?;
    let three = figures(&run);
    let mut single = session.clone();
    single.model.repeated_sensors = false;
    let single = figures(&watched(&single)?);
    let mut blocks = session.clone();
    blocks.sampling.decimate = Decimation::Every(5);
    let blocks = figures(&watched(&blocks)?);
    with_p4(&mut session);
    let four = figures(&watched(&session)?);
    let names = ["attacks with the right root first", "false alarms a day"];
    let mut pairs = Vec::new();
    for (way, ours, papers) in [
        ("P4 is a client", three, four),
        ("repeated sensors", single, three),
        ("every second", blocks, three),
    ] {
        let of = |i: usize| Pair::new(way, names[i], ours[i], papers[i]);
        pairs.extend([of(0), of(1)]);
    }
    for span in Span::MINUTES {
        let minutes = Figures::of_minutes(&run.truth, &run.flags, span);
        let figure = format!("{}{}", names[0], span.words());
        pairs.extend(minutes.map(|f| Pair::new("flags of minutes", &figure, three[0], right(&f))));
    }
    Ok(Results { pairs, ..Results::default() })
}

type Line<'a> = columns::Line<'a, Measured>;

const COLUMNS: Columns<Measured> = Columns(&[
    method("A2"),
    json("family", |_| Figure::Text("A2".into())),
    mean("server_loss", "L_s", 4, |m| Some(m.server_loss)),
    mean("client_loss", "L_a", 4, |m| Some(m.client_loss)),
    mean("effects", "(1,0) of effects", 3, |m| m.effects),
    mean("inside_f1", "inside F1", 3, |m| m.inside_f1),
    mean("f1", "F1", 3, |m| m.f1),
    seeds("seeds"),
]);

type PairLine<'a> = columns::Line<'a, Pair>;

const PAIRS: Columns<Pair> = Columns(&[
    columns::family("the paper's way"),
    all("figure", "figure", 0, |line| Figure::Text(line.method.clone())),
    json("family", |line| Figure::Text(line.family.clone())),
    mean("ours", "ours", 4, |p| Some(p.ours)),
    mean("papers", "the paper's", 4, |p| Some(p.papers)),
    seeds("seeds"),
]);

fn read(done: &[Done]) -> Result<Vec<Results>, StudyError> {
    done.iter().map(Done::read).collect()
}

fn lines(results: &[Results]) -> (Vec<Line<'_>>, Vec<PairLine<'_>>) {
    let rows = results.iter().flat_map(|r| &r.rows);
    let pairs = results.iter().flat_map(|r| &r.pairs);
    (
        Line::group(rows.map(|m| ("A2", m.variant.clone(), m))),
        PairLine::group(pairs.map(|p| (p.deviation.clone(), p.figure.clone(), p))),
    )
}

/// The list with the effects that these results know.
fn the_list(results: &[Results]) -> Table {
    let (lines, pairs) = lines(results);
    list(&lines, &pairs)
}

fn report(_: &StudyOptions, done: &[Done]) -> Result<Report, StudyError> {
    let results = read(done)?;
    let (lines, pairs) = lines(&results);
    let measured = COLUMNS.table("One deviation undone at a time, on A2", 1, &lines).note(
        "Losses on nominal rows that nothing was fitted to, means over clients. (1,0) of effects: how \
         often a client that only feels an anomaly shows the flags of a propagated effect. Inside F1: \
         per step of anomalies; F1: per episode, named steps at most five apart being one. A line that is \
         equal to the first in every figure: what is clipped elsewhere does not occur on A2.",
    );
    let others = PAIRS.table("Deviations with figures of their own", 2, &pairs).note(
        "On A2 where no other data is named; P4, repeated sensors, every second and flags of minutes on the \
         session plant-paper. Every step by itself: our alarms are runs of steps with one root.",
    );
    Ok(Report {
        tables: vec![list(&lines, &pairs), measured, others],
        reading: reading(&lines).into_iter().collect(),
        rows: COLUMNS.rows(&lines).into_iter().chain(PAIRS.rows(&pairs)).collect(),
        ..Report::default()
    })
}

fn list(lines: &[Line], pairs: &[PairLine]) -> Table {
    let mut table =
        Table::new("Every deviation from the paper", 1, ["paper", "here", "reason", "effect"]);
    for Deviation { paper, here, why, effect } in &DEVIATIONS {
        let effect = match effect {
            Effect::Row(name) => effect_of(lines, name),
            Effect::Pair(name) => pairs_of(pairs, name),
            Effect::Words(words) => Some((*words).to_owned()),
        };
        let effect = effect.unwrap_or_else(|| "not run".into());
        let cells = [*paper, *here, *why].map(Cell::words);
        table.lines.push(cells.into_iter().chain([Cell::words(effect)]).collect());
    }
    table.note(
        "Effect: from ours to the paper's way, means over the seeds of the tables below. Not measured: no \
         part of this study undoes it.",
    )
}

/// "L_a +3 %, inside F1 −0.01".
fn effect_of(lines: &[Line], name: &str) -> Option<String> {
    let of = |name: &str| lines.iter().find(|line| line.method == name);
    let (ours, theirs) = (of(OURS)?, of(name)?);
    let change =
        |figure: fn(&Measured) -> Option<f64>| Some((ours.mean(figure)?, theirs.mean(figure)?));
    let percent = |(ours, theirs): (f64, f64)| 100.0 * (theirs / ours - 1.0);
    let client = percent(change(|m| Some(m.client_loss))?);
    let server = percent(change(|m| Some(m.server_loss))?);
    let (before, after) = change(|m| m.inside_f1)?;
    let whole = change(|m| m.f1)
        .map_or_else(String::new, |(before, after)| format!(", F1 {:+.3}", after - before));
    let inside = after - before;
    Some(format!("L_s {server:+.0} %, L_a {client:+.1} %, inside F1 {inside:+.3}{whole}"))
}

/// "mean r_o² on new rows 0.12 → 0.14".
fn pairs_of(pairs: &[PairLine], name: &str) -> Option<String> {
    let of = |line: &PairLine| {
        let (ours, papers) = (line.mean(|p| Some(p.ours))?, line.mean(|p| Some(p.papers))?);
        Some(format!("{} {ours:.3} → {papers:.3}", line.method))
    };
    let words: Vec<String> = pairs.iter().filter(|l| l.family == name).filter_map(of).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

fn reading(lines: &[Line]) -> Option<String> {
    let all = effect_of(lines, ALL)?;
    let effects = lines.iter().filter_map(|line| line.mean(|m| m.effects)).fold(0.0_f64, f64::max);
    Some(format!(
        "With all of the paper's settings of the federation together: {all}. Under no setting a client \
         that only feels an anomaly shows (1,0) in more than {:.1} % of its steps.",
        100.0 * effects
    ))
}
