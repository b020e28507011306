//! What privacy costs in accuracy: the paper's two figures, and ours against what is really spent.
//!
//! | function | figure |
//! |---|---|
//! | [`losses`] | losses of server and clients against σ, noise on states up and on gradients down |
//! | [`flips`] | run lengths and root causes of paper mode against the truth of Z_c and Z_a |
//! | [`spending`] | F1 and delay against ε composed over a day, both modes and every thrifty manner |
//!
//! Choices where the paper is silent: σ on states is in nominal standard deviations, after a cut at
//! five of them, and gradients are cut to norm 1, since noise without a bound protects nothing; losses
//! are those of the trained models on nominal rows that nothing was fitted to, without noise, beside
//! what the server saw while it was trained; run lengths are those of Z_a (the paper's equal figures
//! for all methods that have no Z_c show that it did the same); a day has as many steps as fit in it
//! at the data's own pace.
//!
//! Rows come in a fixed order and depend on the seeds alone.

mod flips;
mod losses;
mod spending;

pub(crate) use flips::flips;
pub(crate) use losses::losses;
#[cfg(test)]
pub(crate) use spending::SpendingRow;
pub(crate) use spending::{FAMILIES, PERMANENT, WATCH, WINDOW, spending};

use super::detection::{TWINS, Twin, as_published};
use super::frame::StudyError;
use crate::session::Session;
use crate::session::settings::Federation;

/// A family of the detection study.
fn twin(name: &str) -> Twin {
    let found = TWINS.into_iter().find(|twin| twin.name == name);
    found.expect("families are named as in the detection study")
}

/// The published method on a family, flags at the 95th percentile; with models that are made quickly
/// for whoever is in a hurry.
fn published(family: &str, seed: u64, quick: bool) -> Result<Session, StudyError> {
    let mut session = twin(family).session(seed)?;
    as_published(&mut session, 95.0, false);
    if quick {
        session.model.epochs = 2;
        session.model.federation = Federation::Online { passes: 2 };
    }
    Ok(session)
}

/// Mean of what there is; none of nothing.
fn mean(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    let values: Vec<f64> = values.into_iter().flatten().filter(|v| v.is_finite()).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests;
