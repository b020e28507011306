//! From verdicts to alarms: one incident per root cause, its effects folded under it, and an operator
//! who acknowledges, shelves, notes, accepts and undoes.
//!
//! ```text
//!  Step ──► Annunciator ──► Fact            opened, updated, closed, quality, setting
//!               ▲    └────► Log, Figures    sequence of events, rates, floods
//!  Order ───────┘
//! ```
//!
//! The rules are those of control rooms. A flag is not an alarm, an incident is. The client that rose
//! first is evidence and not the verdict: both are said, and that they disagree. A root may be
//! unknown. A root that is corrected keeps its number and its history, and asks again to be seen. An
//! effect is suppressed by design until it stops being explained: then it is a second fault behind
//! the first. Nothing is ever deleted.
//!
//! Everything depends on data time alone: the same steps and the same orders give the same facts.
//! Nothing here knows a screen, a thread, a file or which method found the verdicts.
//!
//! | module | what it is for |
//! |---|---|
//! | [`input`] | what is told about a step, whichever method found it |
//! | [`rules`] | the numbers that decide |
//! | [`state`] | the states of an alarm, as one table |
//! | [`group`] | one incident: root, effects, first-out, priority |
//! | [`annunciator`] | steps in, facts out |
//! | [`action`] | what an operator can do |
//! | [`operate`] | how it is done and undone |
//! | [`log`] | the sequence of events |
//! | [`rate`], [`figures`] | alarms in ten minutes, floods, chattering, counts |

pub mod action;
pub mod annunciator;
pub mod figures;
pub mod group;
pub mod input;
pub mod log;
pub mod operate;
pub mod rate;
pub mod rules;
pub mod state;

mod fold;
mod tell;
#[cfg(test)]
mod tests;

pub use action::{Action, Refusal};
pub use annunciator::{Annunciator, Place};
pub use figures::Figures;
pub use group::{Closed, Continuation, Incident, Member, Origin, SensorTrouble};
pub use input::{ClientState, Closing, Outcome, QualityKind, QualityNote, Step};
pub use log::{Edit, Entry, Log, What};
pub use operate::{Order, Receipt};
pub use rules::Rules;
pub use state::{AlarmEvent, AlarmState};
