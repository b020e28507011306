//! How good the answers are: what the literature measures, and the score of one list of alarms.
//!
//! A study compares what was said with what is known. [`metrics`] and [`score`] see verdicts and
//! labels only and must not know how a verdict came about; [`detection`] brings it about.
//!
//! | module | what it is for |
//! |---|---|
//! | [`detection`] | data in, alarms out, judged: the end-to-end figures of evidence mode |
//! | [`metrics`] | pure functions: episodes, steps, run lengths, rankings, delays, eTaPR |
//! | [`privacy`] | what privacy costs in accuracy, against what is really spent |
//! | [`score`] | the figures of one run, or of any truth file and any alarm file |

pub mod detection;
pub mod metrics;
pub mod privacy;
pub mod score;
