//! Many simulated sites over one broker: how long a step takes.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use crate::remote::RemoteError;
use crate::remote::link::Broker;
use crate::remote::load;

/// What `bench --federation` prints.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct FederationFigures {
    pub(crate) sites: usize,
    pub(crate) steps: usize,
    /// Until all sites had connected and enrolled.
    pub(crate) enrol_s: f64,
    /// From asking all sites for a step to having the answers of all.
    pub(crate) step_ms: StepMs,
    pub(crate) messages_per_s: f64,
    /// Bytes of envelopes of one site in one step, both ways.
    pub(crate) bytes_per_site_step: f64,
    pub(crate) duplicates: u64,
    pub(crate) refused: u64,
    pub(crate) asked_again: u64,
}

/// Milliseconds of a step.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct StepMs {
    pub(crate) median: f64,
    pub(crate) p95: f64,
    pub(crate) longest: f64,
}

/// Measures `sites` simulated sites over `steps` steps.
pub(crate) fn federation(
    broker: &Broker,
    sites: usize,
    steps: usize,
    interrupt: &Arc<AtomicBool>,
) -> Result<FederationFigures, RemoteError> {
    let measured = load::measure(broker, sites, steps, interrupt)?;
    let mut ms: Vec<f64> = measured.steps.iter().map(|step| step.as_secs_f64() * 1e3).collect();
    let all_s = ms.iter().sum::<f64>() / 1e3;
    ms.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = (ms.len().saturating_sub(1) as f64 * share).round() as usize;
        ms.get(place).copied().unwrap_or_default()
    };
    let counts = measured.counts;
    let exchanged = (sites * ms.len()).max(1) as f64;
    Ok(FederationFigures {
        sites,
        steps: ms.len(),
        enrol_s: measured.enrolled.as_secs_f64(),
        step_ms: StepMs { median: at(0.5), p95: at(0.95), longest: at(1.0) },
        messages_per_s: 2.0 * exchanged / all_s.max(1e-9),
        bytes_per_site_step: (counts.bytes_up + counts.bytes_down) as f64 / exchanged,
        duplicates: counts.duplicates,
        refused: counts.refused(),
        asked_again: counts.asked_again,
    })
}
