//! The lines of the overview: where each value stands in the rows of its study.

use super::{Found, Line, Section, number};
use crate::engine::experiment::Variant;
use crate::engine::experiment::flags::Span;
use crate::study::detection::{AT_PAPERS, PAPERS};
use crate::study::published::{TABLE_2, TABLE_3, Table4};

/// Families of the paper's plant and of the stand-in for its testbed: at the paper's settings, at ours.
const SYNTHETIC: [&str; 2] = [AT_PAPERS.name, PAPERS.name];
const PLANT: [&str; 2] = ["plant-paper", "plant"];
const DAYS: [&str; 2] = ["plant-paper", "plant-attack-day"];
const TABLE_4_MODELS: [Variant; 3] =
    [Variant::OnlyProprietary, Variant::Federated, Variant::CentralisedOracle];
const HAI: [&str; 2] = ["hai-23.05-aug-12-paper", "hai-23.05-aug-12"];

/// A run length; where none ended, at least what was watched.
fn length(found: &Found, family: &str, method: &str, name: &str) -> Option<String> {
    let least =
        || Some(format!(">{:.1}", found.figure(family, method, &format!("{name}_at_least"))?));
    found.figure(family, method, name).map(|value| format!("{value:.1}")).or_else(least)
}

fn lengths(found: &Found, family: &str, method: &str) -> Option<String> {
    let of = |name| length(found, family, method, name);
    Some(format!("{} / {}", of("arl0")?, of("arl1")?))
}

/// The paper's ARL0 and ARL1 of Table 2.
fn table_2(model: Variant) -> String {
    let printed = TABLE_2.iter().find(|printed| printed.model == model);
    printed.map_or_else(String::new, |p| format!("{:.1} / {:.1}", p.arl0, p.arl1))
}

/// Its precision, recall and F1.
fn roots_2(model: Variant) -> String {
    let printed = TABLE_2.iter().find(|printed| printed.model == model);
    let roots = printed.and_then(|printed| printed.root_cause);
    roots.map_or_else(String::new, |[p, r, f1]| format!("{p:.2} / {r:.2} / {f1:.2}"))
}

fn table_4(model: Variant, percentile: f64) -> String {
    let printed = Table4::find(model, percentile);
    printed.map_or_else(String::new, |p| format!("{:.1} / {:.1}", p.arl0_min, p.arl1_min))
}

fn roots_4(percentile: f64) -> String {
    let printed = Table4::find(Variant::Federated, percentile);
    let roots = printed.and_then(|printed| printed.root_cause);
    roots.map_or_else(String::new, |r| {
        format!("{:.0} % / {:.1} min", 100.0 * r.accuracy, r.delay_min.0)
    })
}

/// Share of attacks whose first alarm names the origin, and the mean time until it does.
fn accuracy(found: &Found, family: &str, method: &str) -> Option<String> {
    let share = 100.0 * found.figure(family, method, "rca_accuracy")?;
    let delay = found.figure(family, method, "delay");
    let delay = delay.map_or_else(|| "–".into(), |minutes| format!("{minutes:.1} min"));
    Some(format!("{share:.0} % / {delay}"))
}

/// Precision, recall and F1 per step of anomalies.
fn inside(found: &Found, family: &str, method: &str) -> Option<String> {
    found.figures(family, method, &["inside_precision", "step_recall", "inside_f1"], 2)
}

/// |corr| between clients of the four models.
fn correlations(found: &Found, family: &str) -> Option<String> {
    let models = ["proprietary", "augmented", "server", "oracle"];
    let of = |model| Some(format!("{:.2}", found.figure(family, model, "correlation")?));
    Some(models.into_iter().map(of).collect::<Option<Vec<_>>>()?.join(" / "))
}

/// The most noise in a direction with which a loss stays within twice its value without any.
fn stable(found: &Found, family: &str, direction: &str, loss: &str) -> Option<f64> {
    let wanted = [("family", family), ("direction", direction)];
    let losses: Vec<(f64, Option<f64>)> = found
        .rows(&wanted)
        .filter_map(|row| Some((number(row, "sigma")?, number(row, loss))))
        .collect();
    let clean = losses.iter().find(|(sigma, _)| *sigma == 0.0)?.1?;
    let is_kept = |(_, loss): &&(f64, Option<f64>)| loss.is_some_and(|loss| loss <= 2.0 * clean);
    losses.iter().take_while(is_kept).last().map(|(sigma, _)| *sigma)
}

/// The same for both losses.
fn stable_losses(found: &Found, family: &str, direction: &str) -> Option<String> {
    let of = |loss| stable(found, family, direction, loss);
    Some(format!("{} / {}", of("server_loss")?, of("client_loss")?))
}

/// The least and the greatest truth of a flag: a figure of the look-up with it.
fn randomised(
    found: &Found,
    family: &str,
    flag: &str,
    figure: &str,
    digits: usize,
) -> Option<String> {
    let other = if flag == "p_a" { "p_c" } else { "p_a" };
    let wanted = [("family", family)];
    let mut rows: Vec<(f64, f64)> = found
        .rows(&wanted)
        .filter(|row| number(row, other) == Some(1.0))
        .filter_map(|row| Some((number(row, flag)?, number(row, figure)?)))
        .collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let ((_, clean), (_, noised)) = (rows.first()?, rows.last()?);
    Some(format!("{clean:.digits$} → {noised:.digits$}"))
}

/// A figure at the lowest and at the highest percentile of τ_a.
fn over_tau(found: &Found, family: &str, figure: &str, digits: usize) -> Option<String> {
    let wanted = [("family", family)];
    let values: Vec<f64> = found.rows(&wanted).filter_map(|row| number(row, figure)).collect();
    Some(format!("{:.digits$} → {:.digits$}", values.first()?, values.last()?))
}

fn losses(found: &Found, settings: &str) -> Option<String> {
    let method =
        if settings == AT_PAPERS.name { "federated, the paper's settings" } else { "federated" };
    let of = |clients: usize| {
        let loss = found.figure(&format!("A{clients}"), method, "server_loss")?;
        Some(format!("{loss:.3}"))
    };
    Some([2, 4, 8, 16].into_iter().map(of).collect::<Option<Vec<_>>>()?.join(" / "))
}

/// ARL0 and ARL1 in minutes of a model's flags, of steps.
fn of_steps(found: &Found, family: &str, model: Variant, percentile: f64) -> Option<String> {
    lengths(found, family, &format!("{}, flags at {percentile} %", model.name()))
}

/// The same of minutes, in both readings of "a flag per minute"; of steps where a step is not a second.
fn of_minutes(found: &Found, family: &str, model: Variant, percentile: f64) -> Option<String> {
    let of = |span: Span| {
        let method = format!("{}{}, flags at {percentile} %", model.name(), span.words());
        lengths(found, family, &method)
    };
    match (of(Span::AnyOfAMinute), of(Span::MostOfAMinute)) {
        (Some(any), Some(most)) => Some(format!("{any}; {most}")),
        _ => Some(format!("{} (steps)", of_steps(found, family, model, percentile)?)),
    }
}

/// Minutes from the first training row to the first flagged minute, by the thresholds of those rows, in both
/// readings of it: proprietary, framework, oracle.
fn in_training(found: &Found, family: &str, percentile: f64) -> Option<String> {
    let of = |span: Span| {
        let of_model = |model: Variant| {
            let method = format!("{}{}, flags at {percentile} %", model.name(), span.words());
            length(found, family, &method, "arl0")
        };
        Some(TABLE_4_MODELS.map(of_model).into_iter().collect::<Option<Vec<_>>>()?.join(" / "))
    };
    Some(format!("{}; {}", of(Span::AnyInTraining)?, of(Span::MostInTraining)?))
}

/// The paper's ARL0 of the same models.
fn arl0_4(percentile: f64) -> String {
    let of = |model| Table4::find(model, percentile).map(|p| format!("{:.1}", p.arl0_min));
    TABLE_4_MODELS.into_iter().filter_map(of).collect::<Vec<_>>().join(" / ")
}

/// False alarms a day of the look-up at both percentiles, and of evidence mode.
fn false_alarms(found: &Found, family: &str) -> Option<String> {
    let of = |method| found.figure(family, method, "false_alarms_per_day");
    let [low, high, evidence] = ["paper-95", "paper-99.5", "evidence"].map(of);
    Some(format!("{:.0} / {:.0} / {:.1}", low?, high?, evidence?))
}

/// F1 per episode of the look-up, and of evidence mode where it was run: it has no federation, so that
/// the paper's settings do not change it.
fn end_to_end(found: &Found, family: &str) -> Option<String> {
    let paper = found.figures(family, "paper-95", &["f1"], 2)?;
    let evidence = found.figures(family, "evidence", &["f1"], 2);
    Some(evidence.map_or_else(|| paper.clone(), |f1| format!("{paper}; evidence {f1}")))
}

/// For how many clients the condition of Theorem 6.10 holds.
fn condition(found: &Found, family: &str) -> Option<String> {
    let of = |name| found.figure(family, "η2 = 1", name);
    Some(format!("{:.0} of {:.0}", of("condition_holds")?, of("clients")?))
}

const NOTHING: fn() -> String = || "–".into();

/// In the order of the paper.
pub(super) const SECTIONS: [Section; 15] = [
    Section {
        of: "Table 2",
        study: "detection",
        families: SYNTHETIC,
        lines: &[
            Line {
                figure: "ARL0 / ARL1 of the framework, steps",
                printed: || table_2(Variant::Federated),
                value: |found, family| of_steps(found, family, Variant::Federated, 95.0),
            },
            Line {
                figure: "the same of the proprietary model",
                printed: || table_2(Variant::OnlyProprietary),
                value: |found, family| of_steps(found, family, Variant::OnlyProprietary, 95.0),
            },
            Line {
                figure: "the same of pre-trained clients",
                printed: || table_2(Variant::PreTrainedClients),
                value: |found, family| of_steps(found, family, Variant::PreTrainedClients, 95.0),
            },
        ],
    },
    // Neither of these has a φ or a federation: there is one setting.
    Section {
        of: "Table 2",
        study: "detection",
        families: [PAPERS.name, PAPERS.name],
        lines: &[
            Line {
                figure: "the same without a proprietary model",
                printed: || table_2(Variant::WithoutProprietary),
                value: |found, family| of_steps(found, family, Variant::WithoutProprietary, 95.0),
            },
            Line {
                figure: "the same of the oracle",
                printed: || table_2(Variant::CentralisedOracle),
                value: |found, family| of_steps(found, family, Variant::CentralisedOracle, 95.0),
            },
        ],
    },
    Section {
        of: "Table 2",
        study: "detection",
        families: SYNTHETIC,
        lines: &[
            Line {
                figure: "precision / recall / F1 inside anomalies",
                printed: || roots_2(Variant::Federated),
                value: |found, family| inside(found, family, "paper-95"),
            },
            Line {
                figure: "the same, pre-trained clients",
                printed: || roots_2(Variant::PreTrainedClients),
                value: |found, family| inside(found, family, "pre-trained-95"),
            },
            Line {
                figure: "F1 end to end, false alarms included",
                printed: NOTHING,
                value: end_to_end,
            },
        ],
    },
    Section {
        of: "Table 3",
        study: "scalability",
        families: SYNTHETIC,
        lines: &[Line {
            figure: "L_s with 2 / 4 / 8 / 16 clients",
            printed: || TABLE_3.map(|line| format!("{:.3}", line.server_loss)).join(" / "),
            value: losses,
        }],
    },
    Section {
        of: "Table 4",
        study: "plant",
        families: PLANT,
        lines: &[
            Line {
                figure: "plant, 95 %: ARL0 / ARL1 of flags, min",
                printed: || table_4(Variant::Federated, 95.0),
                value: |found, family| of_steps(found, family, Variant::Federated, 95.0),
            },
            Line {
                figure: "a flag a minute: of any step; of most steps",
                printed: || table_4(Variant::Federated, 95.0),
                value: |found, family| of_minutes(found, family, Variant::Federated, 95.0),
            },
            Line {
                figure: "the same of the proprietary model",
                printed: || table_4(Variant::OnlyProprietary, 95.0),
                value: |found, family| of_minutes(found, family, Variant::OnlyProprietary, 95.0),
            },
            Line {
                figure: "the same of the oracle",
                printed: || table_4(Variant::CentralisedOracle, 95.0),
                value: |found, family| of_minutes(found, family, Variant::CentralisedOracle, 95.0),
            },
            Line {
                figure: "plant, 99.5 %: a flag a minute, the framework",
                printed: || table_4(Variant::Federated, 99.5),
                value: |found, family| of_minutes(found, family, Variant::Federated, 99.5),
            },
            Line {
                figure: "the same of the proprietary model at 99.5 %",
                printed: || table_4(Variant::OnlyProprietary, 99.5),
                value: |found, family| of_minutes(found, family, Variant::OnlyProprietary, 99.5),
            },
            Line {
                figure: "the same of the oracle at 99.5 %",
                printed: || table_4(Variant::CentralisedOracle, 99.5),
                value: |found, family| of_minutes(found, family, Variant::CentralisedOracle, 99.5),
            },
            Line {
                figure: "ARL0 in training rows: proprietary / framework / oracle",
                printed: || arl0_4(95.0),
                value: |found, family| in_training(found, family, 95.0),
            },
            Line {
                figure: "the same in training rows at 99.5 %",
                printed: || arl0_4(99.5),
                value: |found, family| in_training(found, family, 99.5),
            },
        ],
    },
    Section {
        of: "Table 4",
        study: "plant",
        families: DAYS,
        lines: &[
            Line {
                figure: "plant, 95 %: RCA accuracy / delay",
                printed: || roots_4(95.0),
                value: |found, family| accuracy(found, family, "paper-95"),
            },
            Line {
                figure: "plant, 99.5 %: the same",
                printed: || roots_4(99.5),
                value: |found, family| accuracy(found, family, "paper-99.5"),
            },
            Line {
                figure: "plant: the same in evidence mode",
                printed: NOTHING,
                value: |found, family| accuracy(found, family, "evidence"),
            },
            Line {
                figure: "false alarms a day, 95 % / 99.5 % / evidence",
                printed: NOTHING,
                value: false_alarms,
            },
        ],
    },
    Section {
        of: "Table 4",
        study: "hai",
        families: HAI,
        lines: &[
            Line {
                figure: "HAI 23.05, 95 %: RCA accuracy / delay",
                printed: || roots_4(95.0),
                value: |found, family| accuracy(found, family, "paper-95"),
            },
            Line {
                figure: "HAI 23.05, 99.5 %: the same",
                printed: || roots_4(99.5),
                value: |found, family| accuracy(found, family, "paper-99.5"),
            },
            Line {
                figure: "HAI 23.05, 95 %: a flag a minute, ARL0 / ARL1",
                printed: || table_4(Variant::Federated, 95.0),
                value: |found, family| of_minutes(found, family, Variant::Federated, 95.0),
            },
        ],
    },
    Section {
        of: "Fig. 2",
        study: "correlation",
        families: SYNTHETIC,
        lines: &[Line {
            figure: "|corr|: proprietary / augmented / server / oracle",
            printed: || "picture: first dark, others alike".into(),
            value: correlations,
        }],
    },
    Section {
        of: "Fig. 3",
        study: "privacy",
        families: SYNTHETIC,
        lines: &[
            Line {
                figure: "σ with L_s / L_a at most doubled, states",
                printed: || "picture: 10 / 100000".into(),
                value: |found, family| stable_losses(found, family, "states up"),
            },
            Line {
                figure: "the same, gradients",
                printed: || "picture: 10 / 100000".into(),
                value: |found, family| stable_losses(found, family, "gradients down"),
            },
        ],
    },
    Section {
        of: "Fig. 4",
        study: "privacy",
        families: SYNTHETIC,
        lines: &[
            Line {
                figure: "ARL0 of Z_a, p_a from 1 to the least",
                printed: || "picture: sensitive".into(),
                value: |found, family| randomised(found, family, "p_a", "arl0", 1),
            },
            Line {
                figure: "ARL1 of Z_a, p_a from 1 to the least",
                printed: || "picture: sensitive".into(),
                value: |found, family| randomised(found, family, "p_a", "arl1", 2),
            },
            Line {
                figure: "ARL0 of Z_a, p_c from 1 to the least",
                printed: || "picture: stable".into(),
                value: |found, family| randomised(found, family, "p_c", "arl0", 1),
            },
            Line {
                figure: "recall inside anomalies, p_a from 1 to the least",
                printed: || "picture: falls".into(),
                value: |found, family| randomised(found, family, "p_a", "inside_recall", 2),
            },
            Line {
                figure: "the same, p_c from 1 to the least",
                printed: || "picture: stable".into(),
                value: |found, family| randomised(found, family, "p_c", "inside_recall", 2),
            },
            Line {
                figure: "precision inside anomalies, p_a from 1 to the least",
                printed: || "picture: falls".into(),
                value: |found, family| randomised(found, family, "p_a", "inside_precision", 2),
            },
        ],
    },
    Section {
        of: "Fig. 5",
        study: "threshold",
        families: SYNTHETIC,
        lines: &[
            Line {
                figure: "ARL0, τ_a from the 75th to the 97.5th percentile",
                printed: || "picture: rises".into(),
                value: |found, family| over_tau(found, family, "arl0", 1),
            },
            Line {
                figure: "ARL1, the same",
                printed: || "picture: rises exponentially".into(),
                value: |found, family| over_tau(found, family, "arl1_at_least", 2),
            },
            Line {
                figure: "recall inside anomalies, the same",
                printed: || "picture: stable".into(),
                value: |found, family| over_tau(found, family, "step_recall", 2),
            },
        ],
    },
    Section {
        of: "Fig. 6",
        study: "correlation",
        families: PLANT,
        lines: &[Line {
            figure: "|corr| on the plant, as Fig. 2",
            printed: || "picture: as Fig. 2".into(),
            value: correlations,
        }],
    },
    Section {
        of: "Fig. 7",
        study: "residuals",
        families: PLANT,
        lines: &[Line {
            figure: "steps with r_c > r_a > r_o",
            printed: || "picture: most".into(),
            value: |found, family| {
                found.mean(family, "ordered").map(|share| format!("{:.0} %", 100.0 * share))
            },
        }],
    },
    Section {
        of: "Th. 6.10",
        study: "convergence",
        families: SYNTHETIC,
        lines: &[Line {
            figure: "clients of A2 for whom the condition holds",
            printed: || "assumed".into(),
            value: condition,
        }],
    },
    Section {
        of: "Th. 6.10",
        study: "convergence",
        families: PLANT,
        lines: &[Line {
            figure: "the same on the plant",
            printed: || "assumed".into(),
            value: condition,
        }],
    },
];
