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
//! | [`overview`] | one line for every table and figure of the paper, from the rows of the studies |
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
//! | "expected time passed before a false alarm" | ARL0 of alarms: time outside events and their tails per alarm raised in it. ARL0 of flags: the same time in client-steps per flag | the stretch before the first event alone is short on a day of attacks |
//! | how long after an anomaly an alarm is still true | the tail of the session, `replay.tail`, in runs and in every study: 6 s, which are 6 steps, on the synthetic plants; 300 s on the built-in plant and HAI | a filter of a synthetic plant is back within steps, a plant takes minutes |
//! | how long a declared root holds | an episode of paper mode is a run of steps with one verdict, and its first step is the alarm: false alarms, ARL0, ARL1, delays and right roots count these, in every study as in a run; only precision, recall and F1 per episode put named steps at most 5 apart together, named by the majority | Algorithm 2 has no memory; one alarm a step is none |
//! | when a flag falls | as soon as its distance is not above τ; a dead-band below τ and a k-of-n vote can be set, and are off | this is the paper's equation; both can be set for a steadier flag |
//! | Table 1 for two clients only | of the clients with a flag every pair must be a row of the table; a client that alone has one stands with a quiet one; anything else is not in the table | "any two pair of clients": this declares the roots that Table 1 declares for every pair |
//! | minutes at 95 and 99.5 % on HAI, "a Boolean alarm flag per minute" | flags of steps, and beside them of minutes with any flag and of minutes of mostly flags: run lengths, root causes and their delay | the paper does not say how 60 distances become one flag |
//!
//! Choices about data stand with the data, in `stream::twin`; choices about models in `nn`. Every deviation
//! with its reason and, where it was measured, its effect is `headwater study deviations`.

pub(crate) mod catalogue;
mod detection;
mod experiments;
pub(crate) mod frame;
pub(crate) mod overview;
mod published;
pub(crate) mod report;
