//! Flags on what each of the three models leaves over.

use ndarray::{Array2, Axis, Slice};

use super::ground::Ground;
use crate::federation::states::{Replay, Series};
use crate::federation::variant::{Residuals, Variant};
use crate::nn::oracle::Layout;
use crate::study::detection::figures::Happened;
use crate::study::detection::flags::{Flagged, ModelFlags};

/// Thresholds are those of the first half of the nominal rows that nothing was fitted to; what comes
/// after it is watched.
pub(super) fn flags(
    ground: &Ground,
    federation: &Replay,
    central: &Series,
    layout: &Layout,
) -> Vec<ModelFlags> {
    let from = ground.nominal.start;
    let calibration = ground.nominal.len() / 2;
    let events = Happened::later(&ground.events, from + calibration);
    let judged = |model: Variant, of: &dyn Fn(usize) -> Array2<f32>| {
        let clients = 0..ground.names.len();
        let rows = |all: Array2<f32>| all.slice_axis_move(Axis(0), Slice::from(from..));
        let residuals: Vec<Residuals> =
            clients.map(|m| Residuals { c: rows(of(m)), a: None }).collect();
        ModelFlags::of(model, &Flagged::new(&residuals, calibration), &events)
    };
    let own = |m: usize| federation.clients[m].r_c.clone();
    let augmented = |m: usize| {
        let client = &federation.clients[m];
        client.augmented.as_ref().map_or_else(|| client.r_c.clone(), |a| a.r_a.clone())
    };
    let oracle = |m: usize| layout.extract_rows(m, &central.r_c.view()).to_owned();
    let mut all = judged(Variant::OnlyProprietary, &own);
    all.extend(judged(Variant::Federated, &augmented));
    all.extend(judged(Variant::CentralisedOracle, &oracle));
    all
}
