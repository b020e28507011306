//! The statistics that sites and server share: what a symbol is, what it says, when evidence is enough.
//!
//! ```text
//!  site:   residual ─► distance ─► level ─► Symbol        server: Symbol ─► likelihood ratio ─► CUSUM
//! ```
//!
//! Nothing here sees a measurement or decides anything.
//!
//! | module | what it is for |
//! |---|---|
//! | [`threshold`] | τ as percentile or distance, flags Z |
//! | [`symbol`] | graded symbols and randomised response |
//! | [`severity`] | how far a step lies beyond the highest level |
//! | [`likelihood`] | nominal, root-cause and propagated-effect tables |
//! | [`cusum`] | floored CUSUM, tail-fitted alarm threshold, choice of decimation |
//! | [`enrolment`] | what a client tells of its calibration |
//! | [`watch`] | what the silence of a client says whose private watch speaks for it |
//! | [`features`], [`ridge`] | regressions on states and residuals |
#![doc = include_str!("evidence/tried.md")]

pub(crate) mod cusum;
pub(crate) mod enrolment;
pub(crate) mod features;
pub(crate) mod likelihood;
pub(crate) mod ridge;
pub(crate) mod severity;
pub(crate) mod symbol;
pub(crate) mod threshold;
pub(crate) mod watch;
