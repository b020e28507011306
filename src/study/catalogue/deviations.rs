//! Every deviation from the paper, with its reason and, where a setting can undo it, its measured effect.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::engine::experiment::deviation::{Clients, Outcome, train};
use crate::session::settings::{Federation, ModelSettings, Optimiser, StepSize};
use crate::study::detection::figures::{Figures, MethodOutput};
use crate::study::frame::{Done, Failure, Job, Study, StudyError, StudyOptions};
use crate::study::report::columns::{self, json, mean, method, seeds};
use crate::study::report::{Cell, Columns, Figure, Report, Table};

pub(super) const STUDY: Study = Study {
    name: "deviations",
    about: "every deviation from the paper, with its reason and its measured effect",
    needs_data: false,
    jobs: |options| Ok(jobs(options)),
    report,
};

/// Where a deviation's effect is to be seen.
enum Effect {
    /// A row of this study: the variant that undoes it.
    Row(&'static str),
    /// Another study, and what to look at.
    Study(&'static str),
    /// Nothing can be switched off, so nothing is measured.
    Fixed,
}

struct Deviation {
    paper: &'static str,
    here: &'static str,
    why: &'static str,
    effect: Effect,
}

const fn deviation(
    paper: &'static str,
    here: &'static str,
    why: &'static str,
    effect: Effect,
) -> Deviation {
    Deviation { paper, here, why, effect }
}

/// In the order of the paper: models, training, oracle, privacy, inference.
const DEVIATIONS: [Deviation; 20] = [
    deviation(
        "φ of width 1",
        "width 16; the -paper sessions have 1",
        "one unit cannot carry two states of nine sensors",
        Effect::Row("φ of width 1"),
    ),
    deviation(
        "one pass over t = 1..T",
        "eight passes; the -paper sessions have one",
        "losses still fall after the first pass",
        Effect::Row("one pass"),
    ),
    deviation(
        "constant step size (theorems 6.10, 6.13)",
        "falling to a fiftieth in the second half; step_size: Constant is an option",
        "single steps are noisy, and the last rows would weigh most",
        Effect::Row("constant step"),
    ),
    deviation(
        "φ without a scale",
        "its output layer begins at a tenth (augment_scale)",
        "an untrained φ moves the state by as much as the state itself",
        Effect::Row("φ not scaled"),
    ),
    deviation(
        "θ − η1 ∇L_a − η2 ∇L_s",
        "Adam on the same sum; optimiser: Sgd is the printed rule",
        "the appendix trains with Adam; η1 and η2 then act as weights",
        Effect::Row("plain gradient descent"),
    ),
    deviation(
        "EKF update with y as measured",
        "y clipped at 5 standard deviations in the update only",
        "one spike would throw the state for many steps; residuals are not clipped",
        Effect::Fixed,
    ),
    deviation(
        "no gradient clipping",
        "gradient norm clipped at 1 when a proprietary model is made",
        "gradients through the filter reach norms of 10^4",
        Effect::Fixed,
    ),
    deviation(
        "gradient through K",
        "stopped at the gain",
        "the same norms, and no gain in accuracy seen",
        Effect::Fixed,
    ),
    deviation(
        "loss over all L = 20 steps of a window",
        "the first 4 steps are not in the loss; the first 40 of a run are not judged",
        "a filter begins without a state",
        Effect::Fixed,
    ),
    deviation(
        "LSTM memory in the EKF: not said",
        "carried beside the state, frozen in the Jacobian",
        "the covariance is of x alone; a memory that is reset predicts worse",
        Effect::Fixed,
    ),
    deviation(
        "oracle: H at the estimate x̂_o(t − 1)",
        "H at the predicted state, as for the clients",
        "the paper gives two definitions; the clients' one is that of an EKF",
        Effect::Fixed,
    ),
    deviation(
        "oracle: measurement head of width 4",
        "one head of width 32 for each client",
        "four units for 21 sensors would make a bound that clients beat",
        Effect::Fixed,
    ),
    deviation(
        "four processes, then P1 to P3",
        "three clients",
        "the appendix drops P4, which has one sensor left",
        Effect::Fixed,
    ),
    deviation(
        "sensitivity from ‖ΔK‖, L_h, sup ‖r‖ (Theorem 7.1)",
        "a public clip of ±5 standard deviations",
        "a noise scale that depends on the data reveals it, and ‖ΔK‖ needs the oracle",
        Effect::Study("convergence: σ printed beside σ used"),
    ),
    deviation(
        "classic σ for every ε",
        "the least σ that gives (ε, δ); sigma: Classic is the printed one",
        "the printed rule is unproved from ε = 1 on",
        Effect::Study("privacy"),
    ),
    deviation(
        "thresholds at percentiles of the training data",
        "of rows that follow it",
        "fitted models make them too low",
        Effect::Fixed,
    ),
    deviation(
        "Table 1 for two clients",
        "for M: of the clients with a flag every pair must be a row",
        "the paper says \"any two pair of clients\"",
        Effect::Fixed,
    ),
    deviation(
        "how long a verdict holds: not said",
        "an episode is a run of steps with one verdict and one root; its effects may change",
        "an effect that flickers is no new root",
        Effect::Fixed,
    ),
    deviation(
        "anomalies at all clients, yet one root",
        "one client at a time, drawn uniformly",
        "with all of them there is no root to find",
        Effect::Fixed,
    ),
    deviation(
        "Algorithm 1, line 10: ∇(L_m)_c",
        "∇(L_m)_a",
        "θ does not enter L_c: a misprint",
        Effect::Fixed,
    ),
];

/// A federation of A2 with one deviation undone.
struct Variant {
    name: &'static str,
    change: fn(&mut ModelSettings),
}

const OURS: &str = "as here";

const VARIANTS: [Variant; 7] = [
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
    Variant {
        name: "all of the paper's",
        change: |model| {
            model.augment_width = 1;
            model.augment_scale = 1.0;
            model.federation = Federation::Online { passes: 1 };
            model.step_size = StepSize::Constant;
        },
    },
];

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

fn jobs(options: &StudyOptions) -> Vec<Job> {
    let job = |seed: u64| {
        let inputs = json!({ "family": "A2", "seed": seed });
        Job::new(format!("A2, seed {seed}"), inputs, move || measured(seed))
    };
    options.seeds(5, 1).into_iter().map(job).collect()
}

fn measured(seed: u64) -> Result<Vec<Measured>, Failure> {
    let clients = Clients::new(seed)?;
    let of = |variant: &Variant| {
        let mut settings = ModelSettings::default();
        (variant.change)(&mut settings);
        let Outcome { server_loss, client_loss, flags, truth } =
            train(&clients, &settings, PERCENTILE)?;
        let figures = Figures::of(&truth, &MethodOutput::from_names(flags.look_up(None)));
        let felt = |client: usize, step: usize| {
            truth.events.iter().any(|e| e.is_on(step) && e.affected.contains(&client))
        };
        Ok(Measured {
            variant: variant.name.to_owned(),
            server_loss,
            client_loss,
            effects: flags.pair_shares(felt).map(|shares| shares[2]),
            inside_f1: figures.inside_f1,
            f1: figures.f1,
        })
    };
    VARIANTS.iter().map(of).collect()
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

fn report(_: &StudyOptions, done: &[Done]) -> Result<Report, StudyError> {
    let runs: Vec<Vec<Measured>> = done.iter().map(Done::read).collect::<Result<_, _>>()?;
    let lines = Line::across(&runs, |m| ("A2", m.variant.clone()));
    let measured = COLUMNS.table("One deviation undone at a time, on A2", 1, &lines).note(
        "Losses on nominal rows that nothing was fitted to, means over clients. (1,0) of effects: how \
         often a client that only feels an anomaly shows the flags of a propagated effect. Inside F1: \
         per step of anomalies; F1: per episode, named steps at most five apart being one.",
    );
    Ok(Report {
        tables: vec![list(&lines), measured],
        reading: reading(&lines).into_iter().collect(),
        rows: COLUMNS.rows(&lines),
        ..Report::default()
    })
}

fn list(lines: &[Line]) -> Table {
    let mut table =
        Table::new("Every deviation from the paper", 1, ["paper", "here", "reason", "effect"]);
    for Deviation { paper, here, why, effect } in &DEVIATIONS {
        let effect = match effect {
            Effect::Row(name) => effect_of(lines, name).unwrap_or_else(|| "not run".into()),
            Effect::Study(name) => format!("headwater study {name}"),
            Effect::Fixed => "no switch: not measured".into(),
        };
        let cells = [*paper, *here, *why].map(Cell::words);
        table.lines.push(cells.into_iter().chain([Cell::words(effect)]).collect());
    }
    table.note("Effect: the paper's way instead of ours, means over the seeds of the table below.")
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
    Some(format!("L_s {server:+.0} %, L_a {client:+.1} %, inside F1 {:+.3}", after - before))
}

fn reading(lines: &[Line]) -> Option<String> {
    let all = effect_of(lines, "all of the paper's")?;
    let effects = lines.iter().filter_map(|line| line.mean(|m| m.effects)).fold(0.0_f64, f64::max);
    Some(format!(
        "With all of the paper's settings together: {all}. Under no setting a client that only feels an \
         anomaly shows (1,0) in more than {:.1} % of its steps.",
        100.0 * effects
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_deviation_with_a_row_has_its_variant() {
        for deviation in &DEVIATIONS {
            if let Effect::Row(name) = deviation.effect {
                assert!(VARIANTS.iter().any(|variant| variant.name == name), "{name}");
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
        let runs = vec![vec![run(OURS, 1.0, 0.7), run("one pass", 1.5, 0.65)]];
        let lines = Line::across(&runs, |m| ("A2", m.variant.clone()));
        let words = effect_of(&lines, "one pass");
        assert_eq!(words.as_deref(), Some("L_s +50 %, L_a +50.0 %, inside F1 -0.050"));
        assert_eq!(effect_of(&lines, "φ of width 1"), None);
    }
}
