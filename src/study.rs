//! How good the answers are: what the literature measures, the score of one list of alarms, and
//! every table and figure as a command.
//!
//! A study compares what was said with what is known. [`metrics`] and [`score`] see verdicts and
//! labels only and must not know how a verdict came about; [`detection`] brings it about.
//!
//! | module | what it is for |
//! |---|---|
//! | [`detection`] | data in, alarms out, judged: the end-to-end figures of both modes |
//! | [`metrics`] | pure functions: episodes, steps, run lengths, rankings, delays, eTaPR |
//! | [`score`] | the figures of one run, or of any truth file and any alarm file |
//! | [`frame`] | jobs of a study: done on all cores, kept, taken up again |
//! | [`report`] | tables, charts and sentences of a study, as text, SVG and JSON |
//! | [`lesson`] | one federation looked at from every side: losses, states, residuals, the oracle |
//! | [`scale`] | a federation of so many clients: loss, bytes and time of a round |
//! | [`published`] | what the paper prints |
//! | [`catalogue`] | the studies by name |

pub mod catalogue;
pub mod detection;
pub mod frame;
pub mod lesson;
pub mod metrics;
pub mod published;
pub mod report;
pub mod scale;
pub mod score;
