//! The networks and filters, one definition each.
//!
//! | module | what it is for |
//! |---|---|
//! | [`weights`] | the numbers of every network, by the names candle-nn gives its tensors |
//! | [`network`] | the networks as candle-nn modules |
//! | [`train`] | how proprietary models, predictor and oracle are made |
//! | [`oracle`] | one filter over the data of all clients |
//! | [`checkpoint`] | trained models on disk |
//! | [`kernel`] | the same networks on flat buffers, for one streaming step |
//! | [`proprietary`] | the vendors' models: filter, linear predictor, both together |
//! | [`augment`], [`step`] | the augmented chain; everything a client computes at a step |
//! | [`online`], [`frozen`] | φ_m and f_s learning one step at a time, through f_m and h_m that do not change |
//! | [`forgetting`] | how long a changed sample is felt |
//! | [`cell`], [`adam`] | the LSTM cell and the optimiser of everything that is written by hand |
//! | [`timing`] | how long a step takes on this machine |
//!
//! # What exists more than once, and why
//!
//! The LSTM cell and Adam: candle-nn's define the networks and train what candle trains; [`cell`] and
//! [`adam`] serve all hand-written code. [`train`] says where that is and how much faster it is.
//!
//! This module must not know where measurements come from or what is decided with residuals.

#![allow(
    clippy::inline_always,
    reason = "an inner loop must be compiled inside the function that enables the instruction set"
)]

pub(crate) mod adam;
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
