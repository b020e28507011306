//! Every deviation from the paper, with its reason and its measured effect.
//!
//! Deviations of models and training are undone one at a time in a federation of A2. The others have
//! figures of their own: the oracle's loss, σ, roots named by other rules or with other anomalies.

mod list;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use self::list::{DEVIATIONS, Deviation, Effect};
use crate::engine::experiment::dataset::DatasetSource;
use crate::engine::experiment::deviation::{
    Clients, OracleFigures, Outcome, Thresholds, oracles, train, with_p4,
};
use crate::engine::experiment::federation::Effort;
use crate::score::metrics::run_length::RunTotals;
use crate::score::steps::Truth;
use crate::session::settings::{Federation, ModelSettings, Optimiser, Printed, StepSize};
use crate::session::{PrintedPlant, Session};
use crate::study::detection::Models;
use crate::study::detection::figures::{Figures, MethodOutput};
use crate::study::detection::watch::watch;
use crate::study::frame::{Done, Failure, Job, Study, StudyError, StudyOptions};
use crate::study::report::columns::{self, all, json, mean, method, seeds};
use crate::study::report::{Cell, Columns, Figure, Report, Table};

pub(super) const STUDY: Study = Study {
    name: "deviations",
    about: "every deviation from the paper, with its reason and its measured effect",
    needs_data: false,
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
const ALL: &str = "all settings of the federation";

/// Those of the federation: all of them have the same proprietary models.
const FEDERATIONS: [Variant; 10] = [
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
    let mut results = Results::default();
    let mut arl0 = None;
    for variant in &FEDERATIONS {
        let thresholds = match variant.name {
            OF_FIT => Thresholds::Fit,
            UNRIDGED => Thresholds::WithoutRidge,
            _ => Thresholds::Calibration,
        };
        let outcome = train(&clients, &settings(variant, effort), PERCENTILE, thresholds)?;
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

/// False alarms in a thousand quiet steps: as runs of one verdict, and step by step.
fn of_episodes(outcome: &Outcome) -> Option<Pair> {
    let (names, truth) = (outcome.flags.look_up(None), &outcome.truth);
    let is_false = |t: &usize| !truth.events.iter().any(|event| event.is_answered_at(*t));
    let begins = |t: &usize| *t == 0 || names[*t - 1] != names[*t];
    let named = || (0..names.len()).filter(|t| names[*t].is_some()).filter(is_false);
    let quiet = truth.quiet_steps() as f64 / 1000.0;
    (quiet > 0.0).then(|| {
        let (runs, steps) = (named().filter(begins).count() as f64, named().count() as f64);
        let figure = "false alarms in 1000 quiet steps";
        Pair::new("every step by itself", figure, runs / quiet, steps / quiet)
    })
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

/// The session `plant-paper` with and without P4, and with sensors that repeat another.
fn of_sensors(seed: u64, _: Effort) -> Result<Results, Failure> {
    let mut session = Session::open("plant-paper")?;
    session.seed = seed;
    let figures = |session: &Session| -> Result<(Figures, f64), Failure> {
        let run = watch(session, &Arc::clone(Models::default().of(session)?))?;
        let Truth { steps, period_s, .. } = run.truth;
        Ok((run.figures(), steps as f64 * period_s / 86_400.0))
    };
    let (ours, days) = figures(&session)?;
    let mut repeating = session.clone();
    repeating.model.printed = &[Printed::RepeatedSensors];
    with_p4(&mut session);
    let right = |f: &Figures| f.right as f64 / f.events.max(1) as f64;
    let alarms = |f: &Figures| f.false_alarms as f64 / days.max(f64::MIN_POSITIVE);
    let mut pairs = Vec::new();
    for (name, session) in [("P4 is a client", &session), ("repeated sensors", &repeating)] {
        let (papers, _) = figures(session)?;
        let of = |figure, ours, papers| Pair::new(name, figure, ours, papers);
        pairs.push(of("attacks with the right root first", right(&ours), right(&papers)));
        pairs.push(of("false alarms a day", alarms(&ours), alarms(&papers)));
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

fn report(_: &StudyOptions, done: &[Done]) -> Result<Report, StudyError> {
    let results: Vec<Results> = done.iter().map(Done::read).collect::<Result<_, _>>()?;
    let rows = results.iter().flat_map(|r| &r.rows);
    let lines = Line::group(rows.map(|m| ("A2", m.variant.clone(), m)));
    let pairs = results.iter().flat_map(|r| &r.pairs);
    let pairs = PairLine::group(pairs.map(|p| (p.deviation.clone(), p.figure.clone(), p)));
    let measured = COLUMNS.table("One deviation undone at a time, on A2", 1, &lines).note(
        "Losses on nominal rows that nothing was fitted to, means over clients. (1,0) of effects: how \
         often a client that only feels an anomaly shows the flags of a propagated effect. Inside F1: \
         per step of anomalies; F1: per episode, named steps at most five apart being one. A line that is \
         equal to the first in every figure: what is clipped elsewhere does not occur on A2.",
    );
    let others = PAIRS.table("Deviations with figures of their own", 2, &pairs).note(
        "On A2 where no other data is named; P4 and repeated sensors on the session plant-paper. Every \
         step by itself: our episodes are runs of steps with one verdict.",
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
        };
        let effect = effect.unwrap_or_else(|| "not run".into());
        let cells = [*paper, *here, *why].map(Cell::words);
        table.lines.push(cells.into_iter().chain([Cell::words(effect)]).collect());
    }
    table.note("Effect: from ours to the paper's way, means over the seeds of the tables below.")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_deviation_is_measured() {
        let parts = [
            "oracle: H at the estimate before",
            "oracle: heads of width 4",
            "σ by Theorem 7.1",
            "classic σ",
            "P4 is a client",
            "repeated sensors",
            "σ by Theorem 7.2",
            "first false alarm in training",
            "Table 1 pair by pair",
            "every step by itself",
            "anomalies at all clients",
        ];
        for deviation in &DEVIATIONS {
            match deviation.effect {
                Effect::Row(name) => {
                    let variants = FEDERATIONS.iter().chain(&FILTERS).map(|variant| variant.name);
                    let mut names = variants.chain(PLANTS.map(|(name, _)| name));
                    assert!(names.any(|known| known == name), "{name}");
                }
                Effect::Pair(name) => assert!(parts.contains(&name), "{name}"),
            }
        }
    }

    #[test]
    fn an_effect_is_the_paper_s_way_held_against_ours() {
        let run = |variant: &str, client_loss, inside_f1| Measured {
            variant: variant.into(),
            server_loss: 2.0 * client_loss,
            client_loss,
            effects: Some(0.01),
            inside_f1: Some(inside_f1),
            f1: None,
        };
        let runs = [run(OURS, 1.0, 0.7), run("one pass", 1.5, 0.65)];
        let lines = Line::group(runs.iter().map(|m| ("A2", m.variant.clone(), m)));
        let words = effect_of(&lines, "one pass");
        assert_eq!(words.as_deref(), Some("L_s +50 %, L_a +50.0 %, inside F1 -0.050"));
        assert_eq!(effect_of(&lines, "φ of width 1"), None);
        let pairs = [Pair::new("classic σ", "σ", 3.0, 4.5), Pair::new("classic σ", "σ", 5.0, 5.5)];
        let lines = PairLine::group(pairs.iter().map(|p| (p.deviation.clone(), "σ", p)));
        assert_eq!(pairs_of(&lines, "classic σ").as_deref(), Some("σ 4.000 → 5.000"));
        assert_eq!(pairs_of(&lines, "another"), None);
    }
}
