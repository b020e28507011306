//! Paper mode against flags that are not always true.

use serde::Serialize;

use super::flags::{Clients, Told};
use super::{PrivacyStudyError, bed, mean};
use crate::privacy::Response;
use crate::privacy::composition::epsilon_of_truth;

/// One pair of probabilities.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlipRow {
    /// The family.
    pub family: &'static str,
    /// The chance that Z_c is told truly.
    pub p_c: f64,
    /// The chance that Z_a is told truly.
    pub p_a: f64,
    /// ε of a Z_c; none where it is always true.
    pub epsilon_c: Option<f64>,
    /// ε of a Z_a.
    pub epsilon_a: Option<f64>,
    /// Seeds.
    pub seeds: usize,
    /// Steps between false alarms of Z_a.
    pub arl0: Option<f64>,
    /// Steps from an anomaly to the next Z_a.
    pub arl1: Option<f64>,
    /// Incidents that name the origin of an anomaly they answer, of all incidents.
    pub precision: Option<f64>,
    /// Anomalies so answered.
    pub recall: Option<f64>,
    /// Their harmonic mean.
    pub f1: Option<f64>,
}

const TRUTHS: [f64; 8] = [0.55, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];
const QUICK: [f64; 4] = [0.6, 0.8, 0.95, 1.0];

/// The paper's figure 4: first p_c with every Z_a true, then p_a with every Z_c true.
pub fn flips(seeds: &[u64], quick: bool) -> Result<Vec<FlipRow>, PrivacyStudyError> {
    let family = "A2";
    let clients: Vec<Clients> = seeds
        .iter()
        .map(|seed| Clients::new(bed(family), *seed, quick))
        .collect::<Result<_, _>>()?;
    let flagged = clients.iter().map(Clients::flagged).collect::<Result<Vec<_>, _>>()?;
    let truths: &[f64] = if quick { &QUICK } else { &TRUTHS };
    let pairs = truths.iter().map(|p| (*p, 1.0)).chain(truths.iter().map(|p| (1.0, *p)));
    let mut rows = Vec::new();
    for (source, (p_c, p_a)) in (0..).zip(pairs) {
        let epsilon = |p: f64| (p < 1.0).then(|| epsilon_of_truth(p));
        let response = |p: f64| epsilon(p).map(Response::binary).transpose();
        let (c, a) = (response(p_c)?, response(p_a)?);
        let told: Vec<Told> =
            flagged.iter().map(|f| f.told(c, a, source)).collect::<Result<_, _>>()?;
        let rate = |of: fn(&Told) -> Option<f64>| mean(told.iter().map(of));
        rows.push(FlipRow {
            family,
            p_c,
            p_a,
            epsilon_c: epsilon(p_c),
            epsilon_a: epsilon(p_a),
            seeds: seeds.len(),
            arl0: rate(|t| t.arl0.mean.or(t.arl0.at_least)),
            arl1: rate(|t| t.arl1.mean),
            precision: rate(|t| t.end_to_end.rates.precision),
            recall: rate(|t| t.end_to_end.rates.recall),
            f1: rate(|t| t.end_to_end.rates.f1),
        });
    }
    Ok(rows)
}
