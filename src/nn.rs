//! The networks and filters, one definition each.
//!
//! candle defines and trains them; the kernels run them on flat buffers. It must not know where
//! measurements come from or what is decided with residuals.

#![allow(
    clippy::inline_always,
    reason = "an inner loop must be compiled inside the function that enables the instruction set"
)]

pub(crate) mod augment;
pub(crate) mod cell;
pub(crate) mod checkpoint;
#[cfg(test)]
mod ekf;
pub(crate) mod forgetting;
pub(crate) mod frozen;
pub(crate) mod kernel;
pub(crate) mod network;
pub(crate) mod online;
pub(crate) mod oracle;
pub(crate) mod proprietary;
pub(crate) mod step;
pub(crate) mod timing;
pub(crate) mod train;
pub(crate) mod weights;
