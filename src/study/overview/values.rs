//! The values of the overview: each from the rows of its study.

use super::{Found, number};
use crate::engine::experiment::Variant;
use crate::engine::experiment::flags::Span;
use crate::study::detection::AT_PAPERS;
use crate::study::published::{TABLE_2, Table4};

/// The models of Table 4.
const TABLE_4_MODELS: [Variant; 3] =
    [Variant::OnlyProprietary, Variant::Federated, Variant::CentralisedOracle];

/// A run length; where none ended, at least what was watched.
fn length(found: &Found, family: &str, method: &str, name: &str) -> Option<String> {
    let least =
        || Some(format!(">{:.1}", found.figure(family, method, &format!("{name}_at_least"))?));
    // Of less than six seconds one decimal of a minute would show nothing.
    let words =
        |value: f64| if value < 0.1 { format!("{value:.2}") } else { format!("{value:.1}") };
    found.figure(family, method, name).map(words).or_else(least)
}

fn lengths(found: &Found, family: &str, method: &str) -> Option<String> {
    let of = |name| length(found, family, method, name);
    Some(format!("{} / {}", of("arl0")?, of("arl1")?))
}

/// The paper's ARL0 and ARL1 of Table 2.
pub(super) fn table_2(model: Variant) -> String {
    let printed = TABLE_2.iter().find(|printed| printed.model == model);
    printed.map_or_else(String::new, |p| format!("{:.1} / {:.1}", p.arl0, p.arl1))
}

/// Its precision, recall and F1.
pub(super) fn roots_2(model: Variant) -> String {
    let printed = TABLE_2.iter().find(|printed| printed.model == model);
    let roots = printed.and_then(|printed| printed.root_cause);
    roots.map_or_else(String::new, |[p, r, f1]| format!("{p:.2} / {r:.2} / {f1:.2}"))
}

pub(super) fn table_4(model: Variant, percentile: f64) -> String {
    let printed = Table4::find(model, percentile);
    printed.map_or_else(String::new, |p| format!("{:.1} / {:.1}", p.arl0_min, p.arl1_min))
}

pub(super) fn roots_4(percentile: f64) -> String {
    let printed = Table4::find(Variant::Federated, percentile);
    let roots = printed.and_then(|printed| printed.root_cause);
    roots.map_or_else(String::new, |r| {
        format!("{:.0} % / {:.1} min", 100.0 * r.accuracy, r.delay_min.0)
    })
}

/// Share of attacks whose first alarm names the origin, and the mean time until it does.
pub(super) fn accuracy(found: &Found, family: &str, method: &str) -> Option<String> {
    let share = 100.0 * found.figure(family, method, "rca_accuracy")?;
    let delay = found.figure(family, method, "delay");
    let delay = delay.map_or_else(|| "–".into(), |minutes| format!("{minutes:.1} min"));
    Some(format!("{share:.0} % / {delay}"))
}

/// Words for both readings of "a flag per minute"; those of steps where a step is not a second.
fn by_the_minute(
    found: &Found,
    family: &str,
    percentile: f64,
    words: fn(&Found, &str, &str) -> Option<String>,
) -> Option<String> {
    let of = |reading| words(found, family, &format!("paper-{percentile}{reading}"));
    match (of("-any-minute"), of("-most-minute")) {
        (Some(any), Some(most)) => Some(format!("{any}; {most}")),
        _ => Some(format!("{} (steps)", of("")?)),
    }
}

/// Share and delay of right first alarms, of flags by the minute.
pub(super) fn minute_accuracy(found: &Found, family: &str, percentile: f64) -> Option<String> {
    by_the_minute(found, family, percentile, accuracy)
}

/// False alarms a day of flags by the minute.
pub(super) fn minute_false_alarms(found: &Found, family: &str, percentile: f64) -> Option<String> {
    by_the_minute(found, family, percentile, |found, family, method| {
        found.figures(family, method, &["false_alarms_per_day"], 0)
    })
}

/// Precision, recall and F1 per step of anomalies.
pub(super) fn inside(found: &Found, family: &str, method: &str) -> Option<String> {
    found.figures(family, method, &["inside_precision", "step_recall", "inside_f1"], 2)
}

/// |corr| between clients of the four models.
pub(super) fn correlations(found: &Found, family: &str) -> Option<String> {
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
pub(super) fn stable_losses(found: &Found, family: &str, direction: &str) -> Option<String> {
    let of = |loss| stable(found, family, direction, loss);
    Some(format!("{} / {}", of("server_loss")?, of("client_loss")?))
}

/// The least and the greatest truth of a flag: a figure of the look-up with it.
pub(super) fn randomised(
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
pub(super) fn over_tau(found: &Found, family: &str, figure: &str, digits: usize) -> Option<String> {
    let wanted = [("family", family)];
    let values: Vec<f64> = found.rows(&wanted).filter_map(|row| number(row, figure)).collect();
    Some(format!("{:.digits$} → {:.digits$}", values.first()?, values.last()?))
}

pub(super) fn losses(found: &Found, settings: &str) -> Option<String> {
    let of = |clients: usize| {
        let loss = found.figure(&format!("A{clients}"), federated(settings), "server_loss")?;
        Some(format!("{loss:.3}"))
    };
    Some([2, 4, 8, 16].into_iter().map(of).collect::<Option<Vec<_>>>()?.join(" / "))
}

/// Bytes that all clients send in a round.
pub(super) fn bytes(found: &Found, settings: &str) -> Option<String> {
    let of = |clients: usize| {
        let family = format!("A{clients}");
        Some(format!("{:.0}", found.figure(&family, federated(settings), "bytes_up")?))
    };
    Some([2, 4, 8, 16].into_iter().map(of).collect::<Option<Vec<_>>>()?.join(" / "))
}

/// The name of the federation with these settings.
fn federated(settings: &str) -> &'static str {
    if settings == AT_PAPERS.name { "federated, the paper's settings" } else { "federated" }
}

/// ARL0 and ARL1 in minutes of a model's flags, of steps.
pub(super) fn of_steps(
    found: &Found,
    family: &str,
    model: Variant,
    percentile: f64,
) -> Option<String> {
    lengths(found, family, &format!("{}, flags at {percentile} %", model.name()))
}

/// The same of minutes, in both readings of "a flag per minute"; of steps where a step is not a second.
pub(super) fn of_minutes(
    found: &Found,
    family: &str,
    model: Variant,
    percentile: f64,
) -> Option<String> {
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
pub(super) fn in_training(found: &Found, family: &str, percentile: f64) -> Option<String> {
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
pub(super) fn arl0_4(percentile: f64) -> String {
    let of = |model| Table4::find(model, percentile).map(|p| format!("{:.1}", p.arl0_min));
    TABLE_4_MODELS.into_iter().filter_map(of).collect::<Vec<_>>().join(" / ")
}

/// False alarms a day of the look-up at both percentiles, and of evidence mode.
pub(super) fn false_alarms(found: &Found, family: &str) -> Option<String> {
    let of = |method| found.figure(family, method, "false_alarms_per_day");
    let [low, high, evidence] = ["paper-95", "paper-99.5", "evidence"].map(of);
    Some(format!("{:.0} / {:.0} / {:.1}", low?, high?, evidence?))
}

/// F1 per episode of the look-up, and of evidence mode where it was run: it has no federation, so that
/// the paper's settings do not change it.
pub(super) fn end_to_end(found: &Found, family: &str) -> Option<String> {
    let paper = found.figures(family, "paper-95", &["f1"], 2)?;
    let evidence = found.figures(family, "evidence", &["f1"], 2);
    Some(evidence.map_or_else(|| paper.clone(), |f1| format!("{paper}; evidence {f1}")))
}

/// For how many clients the condition of Theorem 6.10 holds.
pub(super) fn condition(found: &Found, family: &str) -> Option<String> {
    let of = |name| found.figure(family, "η2 = 1", name);
    Some(format!("{:.0} of {:.0}", of("condition_holds")?, of("clients")?))
}

/// The share of steps whose residuals stand in the paper's order, mean over clients and conditions.
pub(super) fn ordered(found: &Found, family: &str) -> Option<String> {
    found.mean(family, "ordered").map(|share| format!("{:.0} %", 100.0 * share))
}
