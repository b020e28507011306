//! The arithmetic of one streaming step on flat buffers: networks in `f32`, covariance in `f64`,
//! no allocation after construction.
//!
//! | module | what it is for |
//! |---|---|
//! | [`isa`] | the instruction set of this machine, chosen once |
//! | `lanes` | a few numbers side by side, and their arithmetic |
//! | `activation` | tanh, sigmoid and SELU on lanes |
//! | `packed` | a matrix laid out so that inner loops run over contiguous lanes |
//! | `rows` | the buffers a network writes: a value, its derivatives, a second value |
//! | [`lstm`], [`mlp`] | the networks with their analytic Jacobians |
//! | `covariance` | P of the filter: prediction and update |
//! | [`gaussian`] | the nominal distribution of a residual |
//! | [`mahalanobis`] | distance of a residual from its nominal distribution |
//!
//! A weight matrix is repacked once. Every product is then a sum of columns, `out += w[:, j] v[j]`,
//! over lanes of fixed width that the compiler keeps in registers; sums have one fixed order, so a
//! result does not depend on threads or on what ran before. This module must not know what a
//! client, a session or a server is.

pub(crate) mod activation;
pub(crate) mod covariance;
pub(crate) mod gaussian;
pub(crate) mod isa;
pub(crate) mod lanes;
pub(crate) mod lstm;
pub(crate) mod mahalanobis;
pub(crate) mod mlp;
pub(crate) mod packed;
#[cfg(test)]
pub(crate) mod reference;
pub(crate) mod rows;

use thiserror::Error;

use super::weights::Parameters;

/// Weights that no kernel can run.
#[derive(Debug, Clone, PartialEq, Error)]
pub(crate) enum WeightsError {
    /// A tensor does not have the size its network declares.
    #[error("{tensor} has {found} numbers, expected {expected}")]
    Size {
        /// Name of the tensor, as in candle.
        tensor: String,
        /// Numbers the declared sizes ask for.
        expected: usize,
        found: usize,
    },
    /// A tensor holds NaN or infinity.
    #[error("{tensor} holds a number that is not finite")]
    NotFinite {
        /// Name of the tensor, as in candle.
        tensor: String,
    },
    /// A network without inputs, units or outputs.
    #[error("{tensor} holds no numbers")]
    Empty {
        /// Name of the tensor, as in candle.
        tensor: String,
    },
    /// A dimension that must be the same in two networks is not.
    #[error("{what} is {found}, expected {expected}")]
    Dimension {
        what: &'static str,
        /// The dimension the rest of the model has.
        expected: usize,
        found: usize,
    },
    /// A noise that makes no covariance.
    #[error("{what} = {found} is not a variance")]
    Noise {
        /// Letter of the noise in the literature.
        what: &'static str,
        found: f64,
    },
}

/// A tensor of exactly `expected` finite numbers.
pub(crate) fn check(tensor: &str, values: &[f32], expected: usize) -> Result<(), WeightsError> {
    let (tensor, found) = (|| tensor.to_owned(), values.len());
    if found != expected {
        return Err(WeightsError::Size { tensor: tensor(), expected, found });
    }
    if values.iter().any(|v| !v.is_finite()) {
        return Err(WeightsError::NotFinite { tensor: tensor() });
    }
    Ok(())
}

/// A network whose tensors have their declared sizes, none of them empty, and finite numbers.
pub(crate) fn check_network(weights: &impl Parameters) -> Result<(), WeightsError> {
    for ((tensor, shape), values) in weights.shapes().iter().zip(weights.slices()) {
        let expected = shape.iter().product();
        if expected == 0 {
            return Err(WeightsError::Empty { tensor: tensor.clone() });
        }
        check(tensor, values, expected)?;
    }
    Ok(())
}

/// A dimension that the rest of the model fixes.
pub(crate) fn check_dimension(
    what: &'static str,
    found: usize,
    expected: usize,
) -> Result<(), WeightsError> {
    if found == expected { Ok(()) } else { Err(WeightsError::Dimension { what, expected, found }) }
}
