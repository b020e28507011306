//! How good the answers are: every table and figure as a command.
//!
//! A study compares what was said with what is known. What is judged is what a user gets: [`detection`] runs sessions through the [`engine`](crate::engine) and takes their facts. Only the
//! paper's other models, which no session can ask for, are made here.
//!
//! | module | what it is for |
//! |---|---|
//! | [`detection`] | sessions run to their end, their alarms judged: the end-to-end figures of both modes |
//! | [`privacy`] | what privacy costs in accuracy, against what is really spent |
//! | [`frame`] | jobs of a study: done on all cores, kept, taken up again |
//! | [`report`] | tables, charts and sentences of a study, as text, SVG and JSON |
//! | [`lesson`] | one federation looked at from every side: losses, states, residuals, the oracle |
//! | [`scale`] | a federation of so many clients: loss, bytes and time of a round |
//! | [`published`] | what the paper prints |
//! | [`catalogue`] | the studies by name |
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
//! | when a flag falls | as soon as its distance is not above τ; a dead-band below τ and a k-of-n vote can be set, and are off | this is what its equation says; whoever wants a steadier flag says so |
//! | Table 1 for two clients only | client m is the root when its flags are (1, 1) and no other client has Z_a = 1 | the reading that declares the roots Table 1 declares for every pair |
//! | minutes at 95 and 99.5 % on HAI, flags per minute | alarms at the data's own pace; delays until the right name stands | a flag is not yet an alarm |
//!
//! Choices about data and models stand with them, in [`stream::twin`](crate::stream::twin) and
//! [`nn`](crate::nn).

pub(crate) mod catalogue;
pub(crate) mod detection;
pub(crate) mod frame;
pub(crate) mod lesson;
pub(crate) mod privacy;
pub(crate) mod published;
pub(crate) mod report;
pub(crate) mod scale;
