//! How good the answers are: every table and figure as a command.
//!
//! A study judges what a user gets: sessions are run through the [`engine`](crate::engine) and their
//! facts are scored. Models that no session can ask for come from
//! [`engine::experiment`](crate::engine::experiment).
//!
//! | module | purpose |
//! |---|---|
//! | [`catalogue`] | the studies by name |
//! | [`detection`] | sessions run to their end and judged: the end-to-end figures of both modes |
//! | [`experiments`] | jobs that several studies share |
//! | [`frame`] | jobs of a study: done on all cores, kept, continued |
//! | [`report`] | tables, charts and sentences of a study, as text, SVG and JSON |
//! | [`published`] | the paper's figures |
//!
//! # Where the paper is silent or contradicts itself
//!
//! | the paper | here | why |
//! |---|---|---|
//! | anomalies "uniformly across all clients", yet one root cause | one client at a time, drawn uniformly | with all of them there is no root to find, with always the same one a constant answer is perfect |
//! | ARL1 of 112 steps for anomalies of 10 steps every 100 | an onset is followed until the next one; a run without an alarm is censored, counted with its full length and stated | a run length cannot exceed the time it is followed |
//! | precision and recall without a definition | per episode end to end, false alarms included; beside it per step over everything, and per step inside anomalies only | the last reading comes nearest to the printed figures and is the most lenient: it is never shown alone |
//! | run lengths of "our framework" | those of Z_a; per client and step | its printed ARLs equal those of models that have no Z_c |
//! | how long a declared root holds | named steps at most 5 apart are one incident, named by the majority of its first 5 steps; of models that the engine does not run, by the majority of all | one alarm a step is none |
//! | when a flag falls | as soon as its distance is not above τ; a dead-band below τ and a k-of-n vote can be set, and are off | this is the paper's equation; both can be set for a steadier flag |
//! | Table 1 for two clients only | client m is the root when its flags are (1, 1) and no other client has Z_a = 1 | the reading that declares the roots Table 1 declares for every pair |
//! | minutes at 95 and 99.5 % on HAI, flags per minute | alarms at the data's own pace; delays until the right name stands | a flag is not yet an alarm |
//!
//! Choices about data stand with the data, in `stream::twin`; choices about models in `nn`.

pub(crate) mod catalogue;
mod detection;
mod experiments;
pub(crate) mod frame;
mod published;
pub(crate) mod report;
