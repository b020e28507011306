//! The paper's figure 3 on its plant of two clients: losses against σ, in each direction. A session
//! noises by ε; here σ is given.

use serde::{Deserialize, Serialize};

use super::{PLANTS, chart_name, finite, published, settings};
use crate::engine::experiment::Failure;
use crate::engine::experiment::noise::{Direction, NoisedTraining};
use crate::study::detection::{Models, Twin};
use crate::study::report::columns::{self, all, family, mean, seeds, shown};
use crate::study::report::{Axis, Chart, Columns, Figure, Table};

const DIRECTIONS: [(&str, Direction); 2] =
    [("states up", Direction::StatesUp), ("gradients down", Direction::GradientsDown)];
const SIGMAS: [f64; 9] = [0.0, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4, 1e5];
const QUICK: [f64; 5] = [0.0, 1e-1, 1e1, 1e3, 1e5];

/// One σ in one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct NoiseRow {
    pub family: String,
    pub direction: String,
    /// Zero is no mechanism at all, neither noise nor clipping.
    pub sigma: f64,
    /// Mean L_s of the trained models on nominal rows that nothing was fitted to.
    pub server_loss: Option<f64>,
    /// Mean L_a likewise.
    pub client_loss: Option<f64>,
    /// Mean L_s at the end of training, noise included.
    pub server_loss_seen: Option<f64>,
    pub is_diverged: bool,
}

type Line<'a> = columns::Line<'a, NoiseRow>;

fn direction<'a>(line: &Line<'a>) -> &'a str {
    line.runs.first().map_or("", |row| &row.direction)
}

fn sigma(line: &Line) -> f64 {
    line.runs.first().map_or(0.0, |row| row.sigma)
}

fn diverged(row: &NoiseRow) -> usize {
    usize::from(row.is_diverged)
}

pub(super) const COLUMNS: Columns<NoiseRow> = Columns(&[
    family("family"),
    all("direction", "direction", 0, |line| Figure::Text(direction(line).into())),
    all("sigma", "", 0, |line| Figure::Number(Some(sigma(line)))),
    shown("σ", 0, |line| Figure::Text(sigma(line).to_string())),
    mean("server_loss", "L_s", 4, |row| row.server_loss),
    mean("server_loss_seen", "L_s seen", 4, |row| row.server_loss_seen),
    mean("client_loss", "L_a", 4, |row| row.client_loss),
    mean("diverged", "", 0, |row| Some(diverged(row) as f64)),
    shown("diverged", 0, |line| Figure::Count(line.sum(diverged))),
    seeds("seeds"),
]);

pub(super) fn lines(seeds: &[Vec<NoiseRow>]) -> Vec<Line<'_>> {
    Line::across(seeds, |row| (row.family.as_str(), format!("{}, σ {}", row.direction, row.sigma)))
}

pub(super) fn table(lines: &[Line]) -> Table {
    COLUMNS.table("Losses of trained models against noise in training (Fig. 3)", 3, lines).note(
        "A2-paper: the same plant at the paper's settings. σ of states in nominal deviations after a cut at five of them, of gradients after a cut to \
         norm 1. Losses without noise on rows that nothing was fitted to; seen: by the server while \
         it learned.",
    )
}

pub(super) fn chart(twin: &Twin, lines: &[Line]) -> Chart {
    let series = |name: &str, wanted: &str, figure: &str| {
        COLUMNS.series(name, ("sigma", figure), lines.iter().filter(|l| direction(l) == wanted))
    };
    let [states, gradients] = DIRECTIONS.map(|(name, _)| name);
    Chart::lines(
        chart_name(twin, "noise"),
        format!("{}: losses against noise in training", twin.name),
        (Axis::logarithmic("σ"), Axis::logarithmic("loss")),
        vec![
            series("L_s, states noised", states, "server_loss"),
            series("L_a, states noised", states, "client_loss"),
            series("L_s, gradients noised", gradients, "server_loss"),
            series("L_a, gradients noised", gradients, "client_loss"),
        ],
    )
}

/// Up to which noise a loss stays within twice its value without any.
pub(super) fn reading(twin: &Twin, lines: &[Line]) -> Option<String> {
    let stable = |wanted: &str, loss: fn(&NoiseRow) -> Option<f64>| {
        let losses: Vec<(f64, f64)> = lines
            .iter()
            .filter(|line| direction(line) == wanted)
            .filter_map(|line| Some((sigma(line), line.mean(loss)?)))
            .collect();
        let clean = losses.iter().find(|(sigma, _)| *sigma == 0.0)?.1;
        let kept = losses.iter().take_while(|(_, loss)| *loss <= 2.0 * clean).last()?;
        Some(kept.0)
    };
    let [states, gradients] = DIRECTIONS.map(|(name, _)| name);
    Some(format!(
        "{}, with noise on states, the server's loss stays within twice its clean value up to σ = {} and \
         the clients' up to σ = {}; with noise on gradients the server's up to {} and the clients' up \
         to {}. The paper reads its own figure as the server's losses stable up to 10 and the clients' \
         up to 100000.",
        settings(twin),
        stable(states, |row| row.server_loss)?,
        stable(states, |row| row.client_loss)?,
        stable(gradients, |row| row.server_loss)?,
        stable(gradients, |row| row.client_loss)?
    ))
}

pub(super) fn rows(seed: u64, quick: bool) -> Result<Vec<NoiseRow>, Failure> {
    let sigmas: &[f64] = if quick { &QUICK } else { &SIGMAS };
    let mut rows = Vec::new();
    for twin in PLANTS {
        rows.extend(of_plant(&twin, seed, quick, sigmas)?);
    }
    Ok(rows)
}

fn of_plant(twin: &Twin, seed: u64, quick: bool, sigmas: &[f64]) -> Result<Vec<NoiseRow>, Failure> {
    let session = published(twin, seed, quick)?;
    let training = NoisedTraining::new(&session, Models::default().of(&session)?)?;
    let mut rows = Vec::new();
    for (name, direction) in DIRECTIONS {
        for &sigma in sigmas {
            let losses = training.losses(direction, sigma)?;
            rows.push(NoiseRow {
                family: twin.name.into(),
                direction: name.into(),
                sigma,
                server_loss: losses.and_then(|losses| finite(losses.server)),
                client_loss: losses.and_then(|losses| finite(losses.client)),
                server_loss_seen: losses.and_then(|losses| finite(losses.seen)),
                is_diverged: losses.is_none(),
            });
        }
    }
    Ok(rows)
}
