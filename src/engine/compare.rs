//! The models of a prepared session on nominal rows that nothing was fitted to: residual norms,
//! losses, correlations, and the distance to a model that sees everything.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use ndarray::Array2;

use super::prepare;
use super::prepare::{FEDERATION, PrepareError, Prepared};
use crate::base::rng;
use crate::federation::convergence::{self, OracleDistance};
use crate::federation::correlation::{between_clients, correlation};
use crate::federation::states::{replay, series, square_norm};
use crate::federation::variant::{Fitted, Variant};
use crate::federation::{self, FederatedWeights, Federation, Hooks};
use crate::nn::train::SETTLING;
use crate::nn::weights::ProprietaryWeights;
use crate::privacy::Provenance;
use crate::session::Session;
use crate::site::material::{ClientMaterial, Material};
use crate::site::training::SiteData;

/// Source of the oracle's seed.
const ORACLE: u64 = 0x4F;

/// Figures of the calibration range.
#[derive(Debug, Clone)]
pub(crate) struct Comparison {
    /// L_s.
    pub(crate) server_loss: f64,
    /// Clients in the order of the session.
    pub(crate) clients: Vec<ClientComparison>,
    /// Mean |correlation| between states of different clients, by model.
    pub(crate) correlation: Vec<(&'static str, f64)>,
    /// Correlation of every pair of the oracle's states, row by row, where one was made.
    pub(crate) oracle: Option<Vec<f32>>,
}

#[derive(Debug, Clone)]
pub(crate) struct ClientComparison {
    pub(crate) name: String,
    /// Mean ‖r_c‖².
    pub(crate) r_c: f64,
    /// Mean ‖r_a‖².
    pub(crate) r_a: f64,
    /// Distances from the oracle after every pass of training, where one was made; the last is the end.
    pub(crate) beside: Vec<OracleDistance>,
}

/// Compares; with `oracle` the centralised model is trained too, which takes a while.
pub(crate) fn compare(
    session: &Session,
    prepared: &Prepared,
    oracle: bool,
) -> Result<Comparison, PrepareError> {
    let views = || Some(prepared.clients.iter().map(|c| c.view.clone()).collect());
    let material = Material::read(session, prepared.every, &|_| views())?;
    let weights = FederatedWeights {
        phi: prepared.clients.iter().map(|c| c.phi.clone()).collect(),
        server: prepared.server.clone(),
    };
    let models = || material.clients.iter().zip(&prepared.clients);
    let nominal: Vec<SiteData> =
        models().map(|(material, client)| material.calibration_site(&client.sending)).collect();
    let states = replay(&nominal, &weights)?;
    let sizes: Vec<usize> = states.clients.iter().map(|c| c.x_c.ncols()).collect();
    let coupling =
        |states: &Array2<f32>| between_clients(&correlation(&states.view()).view(), &sizes);
    let mut correlations = vec![
        ("proprietary", coupling(&states.x_hat_c())),
        ("augmented", coupling(&states.x_a())),
        ("server", coupling(&states.x_s)),
    ];
    let mut beside = vec![Vec::new(); nominal.len()];
    let mut of_oracle = None;
    if oracle {
        let fit: Vec<SiteData> =
            models().map(|(material, client)| material.fit_site(&client.sending)).collect();
        let seed = rng::child(session.seed, ORACLE);
        let mut go_on = |_: federation::Progress| ControlFlow::Continue(());
        let fitted = Variant::CentralisedOracle.fit(
            &fit,
            &session.model,
            hooks(session),
            seed,
            &mut go_on,
        )?;
        if let Fitted::CentralisedOracle(oracle) = fitted {
            let half = material.clients.first().map_or(0, ClientMaterial::calibration_rows) / 2;
            for weights in passes(session, &fit)? {
                for (m, found) in
                    convergence::compare(&nominal, &weights, &oracle, half)?.into_iter().enumerate()
                {
                    beside[m].push(found);
                }
            }
            let rows: Vec<_> = nominal.iter().map(|site| site.rows).collect();
            if let Ok(joint) = ndarray::concatenate(ndarray::Axis(1), &rows) {
                let model = ProprietaryWeights::Filter(oracle.filter.clone());
                let central = series(&model, None, &joint.view())?;
                correlations.push(("oracle", coupling(&central.x_hat_c)));
                let all = correlation(&central.x_hat_c.view());
                of_oracle = Some(all.iter().map(|value| *value as f32).collect());
            }
        }
    }
    let clients = states.clients.iter().zip(&prepared.clients).zip(beside);
    Ok(Comparison {
        server_loss: states.server_loss(SETTLING),
        clients: clients
            .map(|((series, client), beside)| ClientComparison {
                name: client.name.clone(),
                r_c: square_norm(&series.r_c, SETTLING),
                r_a: series.augmented.as_ref().map_or(0.0, |a| square_norm(&a.r_a, SETTLING)),
                beside,
            })
            .collect(),
        correlation: correlations,
        oracle: of_oracle,
    })
}

/// What is compared sees the data of all clients anyway, so its noise is drawn from the seed: it must be the
/// same again, and it must not pretend to protect.
fn hooks(session: &Session) -> Hooks<'_> {
    Hooks { provenance: Provenance::Seeded, ..prepare::hooks(session) }
}

/// The weights after every pass of the session's own federated training, run once more: the same
/// seed gives the same course.
fn passes(session: &Session, fit: &[SiteData]) -> Result<Vec<FederatedWeights>, PrepareError> {
    let seed = rng::child(session.seed, FEDERATION);
    let mut federation = Federation::new(fit, &session.model, hooks(session), seed)?;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keeper = Arc::clone(&seen);
    federation.monitor(move |weights| {
        keeper.lock().unwrap_or_else(PoisonError::into_inner).push(weights.clone());
    });
    let outcome = federation.run(&mut |_| ControlFlow::Continue(()))?;
    let mut seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    if seen.is_empty() {
        seen.push(outcome.weights);
    }
    Ok(seen)
}
