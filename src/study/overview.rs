//! Every table and figure of the paper in one line each: the paper's value, ours at the paper's settings,
//! ours at our settings.
//!
//! The lines are made of the rows of other studies. A line whose study was not run says so.

#[cfg(test)]
mod tests;

use serde_json::Value;

use super::detection::{AT_PAPERS, PAPERS};
use super::published::{TABLE_2, TABLE_3, Table4};
use super::report::{Cell, Report, Row, Table};
use crate::engine::experiment::Variant;

/// The name under which `headwater study` knows it.
pub(crate) const NAME: &str = "overview";

pub(crate) const ABOUT: &str =
    "one line for every table and figure of the paper, from the results of the other studies";

/// Families of the paper's plant and of the stand-in for its testbed: at the paper's settings, at ours.
const SYNTHETIC: [&str; 2] = [AT_PAPERS.name, PAPERS.name];
const PLANT: [&str; 2] = ["plant-paper", "plant"];
const DAYS: [&str; 2] = ["plant-paper", "plant-attack-day"];
const HAI: [&str; 2] = ["hai-23.05-aug-12-paper", "hai-23.05-aug-12"];

/// A table or figure of the paper, and the study that makes its lines.
#[derive(Clone, Copy)]
struct Section {
    of: &'static str,
    study: &'static str,
    /// At the paper's settings and at ours.
    families: [&'static str; 2],
    lines: &'static [Line],
}

struct Line {
    figure: &'static str,
    printed: fn() -> String,
    value: fn(&Found, &str) -> Option<String>,
}

/// The rows of a study.
struct Found<'a>(&'a [Row]);

impl Found<'_> {
    fn rows<'r>(&'r self, wanted: &'r [(&'r str, &'r str)]) -> impl Iterator<Item = &'r Row> {
        let has = |row: &Row, (name, value): &(&str, &str)| {
            row.get(name).and_then(Value::as_str) == Some(value)
        };
        self.0.iter().filter(move |row| wanted.iter().all(|pair| has(row, pair)))
    }

    /// A figure of the first row of a family and a method.
    fn figure(&self, family: &str, method: &str, name: &str) -> Option<f64> {
        number(self.rows(&[("family", family), ("method", method)]).next()?, name)
    }

    /// Figures of one row with one number of decimals.
    fn figures(&self, family: &str, method: &str, names: &[&str], digits: usize) -> Option<String> {
        let words = names
            .iter()
            .map(|name| self.figure(family, method, name).map(|value| format!("{value:.digits$}")));
        Some(words.collect::<Option<Vec<_>>>()?.join(" / "))
    }

    /// The mean of a figure over all rows of a family.
    fn mean(&self, family: &str, name: &str) -> Option<f64> {
        let wanted = [("family", family)];
        let values: Vec<f64> = self.rows(&wanted).filter_map(|row| number(row, name)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }
}

fn number(row: &Row, name: &str) -> Option<f64> {
    row.get(name).and_then(Value::as_f64)
}

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
fn randomised(found: &Found, family: &str, flag: &str, figure: &str) -> Option<String> {
    let other = if flag == "p_a" { "p_c" } else { "p_a" };
    let wanted = [("family", family)];
    let mut rows: Vec<(f64, f64)> = found
        .rows(&wanted)
        .filter(|row| number(row, other) == Some(1.0))
        .filter_map(|row| Some((number(row, flag)?, number(row, figure)?)))
        .collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let ((_, clean), (_, noised)) = (rows.first()?, rows.last()?);
    Some(format!("{clean:.2} → {noised:.2}"))
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

/// In the order of the paper.
const SECTIONS: [Section; 11] = [
    Section {
        of: "Table 2",
        study: "detection",
        families: SYNTHETIC,
        lines: &[
            Line {
                figure: "ARL0 / ARL1 of the framework, steps",
                printed: || table_2(Variant::Federated),
                value: |found, family| lengths(found, family, "federated, flags at 95 %"),
            },
            Line {
                figure: "the same of the proprietary model",
                printed: || table_2(Variant::OnlyProprietary),
                value: |found, family| {
                    lengths(found, family, "only proprietary model, flags at 95 %")
                },
            },
            Line {
                figure: "precision / recall / F1 inside anomalies",
                printed: || roots_2(Variant::Federated),
                value: |found, family| inside(found, family, "paper-95"),
            },
            Line {
                figure: "the same of pre-trained clients",
                printed: || roots_2(Variant::PreTrainedClients),
                value: |found, family| inside(found, family, "pre-trained-95"),
            },
            Line {
                figure: "F1 end to end; ours is evidence mode",
                printed: || "–".into(),
                value: |found, family| {
                    let method = if family == AT_PAPERS.name { "paper-95" } else { "evidence" };
                    found.figures(family, method, &["f1"], 2)
                },
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
                value: |found, family| lengths(found, family, "federated, flags at 95 %"),
            },
            Line {
                figure: "the same of the oracle",
                printed: || table_4(Variant::CentralisedOracle, 95.0),
                value: |found, family| lengths(found, family, "centralised oracle, flags at 95 %"),
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
                printed: || "–".into(),
                value: |found, family| accuracy(found, family, "evidence"),
            },
        ],
    },
    Section {
        of: "Table 4",
        study: "hai",
        families: HAI,
        lines: &[Line {
            figure: "HAI 23.05, 95 %: RCA accuracy / delay",
            printed: || roots_4(95.0),
            value: |found, family| accuracy(found, family, "paper-95"),
        }],
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
                figure: "recall inside anomalies, p_a from 1 to the least",
                printed: || "picture: falls".into(),
                value: |found, family| randomised(found, family, "p_a", "inside_recall"),
            },
            Line {
                figure: "the same, p_c from 1 to the least",
                printed: || "picture: stable".into(),
                value: |found, family| randomised(found, family, "p_c", "inside_recall"),
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
];

fn lines() -> impl Iterator<Item = (&'static Section, &'static Line)> {
    SECTIONS.iter().flat_map(|section| section.lines.iter().map(move |line| (section, line)))
}

/// Words where a study was not run, or has no such line.
const ABSENT: &str = "not run";

/// The overview of these reports.
pub(crate) fn overview(reports: &[Report]) -> Report {
    let headings = ["paper", "figure", "study", "paper's", "at the paper's settings", "at ours"];
    let mut table = Table::new("Every table and figure of the paper", 2, headings);
    let mut rows = Vec::new();
    for (section, line) in lines() {
        let (Section { of, study, families, .. }, figure) = (*section, line.figure);
        let report = reports.iter().find(|report| report.study == study);
        let found = Found(report.map_or(&[], |report| &report.rows));
        let (printed, values) = ((line.printed)(), families.map(|f| (line.value)(&found, f)));
        let words = |value: &Option<String>| value.clone().unwrap_or_else(|| ABSENT.into());
        let cells = [of.into(), figure.into(), study.into(), printed.clone()];
        table
            .lines
            .push(cells.into_iter().chain(values.iter().map(words)).map(Cell::words).collect());
        let [published, ours] = values.map(|value| value.map_or(Value::Null, Value::from));
        rows.push(Row::of(&[
            ("paper", of.into()),
            ("figure", figure.into()),
            ("study", study.into()),
            ("printed", printed.into()),
            ("at_papers_settings", published),
            ("at_our_settings", ours),
        ]));
    }
    let table = table
        .note(
            "The paper's settings: φ of width 1, one pass of Algorithm 1, a constant step size; on the \
             plant also its first 10,000 s, every second. Families A2-paper and A2, plant-paper and \
             plant (in Table 4 plant-attack-day).",
        )
        .note(
            "Fig. 1 is a diagram. Table 1 is `--mode paper` itself: a test compares every episode with \
             Algorithm 2 by hand. The built-in plant stands for HAI 23.05, which `--data DIR` adds.",
        );
    let command = "headwater study overview --data DIR".into();
    let title = "every table and figure of the paper, beside ours".into();
    Report { study: NAME.into(), title, command, tables: vec![table], rows, ..Report::default() }
}
