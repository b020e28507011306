//! The guide: what users and developers may rely on. It holds documentation only.
//!
//! | page | what it says |
//! |---|---|
//! | [`across_machines`] | sites and server as processes of their own, over a broker |
//! | [`guarantees`] | what is promised under which fault, and the test that shows it |
//! | [`manual`] | keys, data, models, root causes, privacy, results, speed and scores in detail |
//! | [`paper`] | the published method to the letter, every table and figure with its command |
//! | [`recordings`] | what is stored of a run, how it is read again, the tables |
//! | [`hostile`] | how the program is attacked, and how to attack it with other seeds |

pub mod across_machines;
pub mod guarantees;
pub mod hostile;
pub mod manual;
pub mod paper;
pub mod recordings;
