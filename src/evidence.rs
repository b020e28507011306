//! From residuals to a verdict: who is the root cause, who only feels it.
//!
//! ```text
//!  client: residual ─► whitening ─► distance ─► level ─► (randomised response) ─► Symbol
//!  server: Symbols ─► likelihood ratios ─► CUSUM per client ─► alarm ─► attribution ─► Incident
//! ```
//!
//! Two methods stand side by side. Paper mode is the published one: flags at a percentile
//! ([`threshold`]) and the look-up table ([`lookup`]). Evidence mode adds up what symbols say and
//! raises an alarm at a false-alarm rate chosen in advance. Nothing here knows a screen, a file or a
//! carrier; the client's half ([`site`] and what it uses) never hands out a measurement.
//!
//! | module | what it is for |
//! |---|---|
//! | [`threshold`] | τ as percentile or distance, flags Z, what-ifs over a stored history |
//! | [`lookup`] | Table 1, its extension to M clients, the k-of-n vote |
//! | [`features`], [`ridge`], [`whitening`] | the client's own past is taken out of its residual |
//! | [`sensor`] | flat lines, gaps, ranges, resolution, ranking of sensors |
//! | [`symbol`] | graded symbols and randomised response |
//! | [`site`], `new_normal` | the client's half: sample in, symbol out; changes that it lives with |
//! | [`enrolment`], [`watch`] | what a client tells of itself first; what its silence says |
//! | [`likelihood`] | nominal, root-cause and propagated-effect tables |
//! | [`cusum`] | floored CUSUM, tail-fitted alarm threshold, choice of decimation |
//! | [`health`] | calibration before arming, live standing of each client |
//! | [`reach`] | which clients a root can affect |
//! | [`influence`] | who influences whom, learned from nominal states |
//! | [`informed`] | tier 2: what another explains is taken out of a client's residual too |
//! | [`slate`] | the reports of one step, in whatever order they come |
//! | [`inference`] | the server's half: symbols in, incidents out |
#![doc = include_str!("evidence/tried.md")]

pub mod cusum;
pub mod enrolment;
pub mod features;
pub mod health;
pub mod inference;
pub mod influence;
pub mod informed;
pub mod likelihood;
pub mod lookup;
mod new_normal;
pub mod reach;
pub mod ridge;
pub mod sensor;
pub mod site;
pub mod slate;
pub mod symbol;
pub mod threshold;
pub mod watch;
pub mod whitening;

use serde::{Deserialize, Serialize};

/// What an incident is to one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Verdict {
    /// The trouble started here and others feel it.
    RootCause,
    /// It feels what started elsewhere.
    PropagatedEffect,
    /// The trouble started here and nobody else feels it.
    Single,
    /// Something is wrong, and nothing says whether it started here.
    Unknown,
}
