//! From verdicts to alarms: one incident per root cause, its effects folded under it, and an operator
//! who acknowledges, shelves, notes, accepts and undoes.
//!
//! ```text
//!  Step ──► Annunciator ──► Fact            opened, updated, closed, quality, setting
//!               ▲    └────► Event, Figures  log lines and recording rows; rates, floods
//!  Order ───────┘
//! ```
//!
//! The rules are those of control rooms. A flag is not an alarm, an incident is. The client that rose
//! first is evidence and not the verdict: both are shown, and whether they disagree. A root may be
//! unknown. When the root is corrected, the incident keeps its number and history, and its alarm asks
//! again. An effect is suppressed by design until it is no longer explained: then it is a second fault
//! behind the first. Nothing is ever deleted.
//!
//! There is one incident, [`group::Incident`]. Other modules see views of it or what it is made of:
//!
//! | type | what it is | why it is a type of its own |
//! |---|---|---|
//! | [`Disturbance`](crate::server::disturbance::Disturbance) | what the server follows, in steps | one incident can follow several disturbances with one root, or none |
//! | [`fact::Incident`](crate::fact::Incident) | the line of JSON about an incident, made by `facts` alone | its fields and their order are a contract |
//! | [`score::Alarm`](crate::score::Alarm) | what is judged, gathered from facts | it is also read from lines of other programs, which have fewer fields |
//!
//! Everything depends on data time alone: the same steps and the same orders give the same facts.
//! Nothing here knows a screen, a thread, a file or which method found the verdicts.
//!
//! | module | what it is for |
//! |---|---|
//! | [`input`] | the decision about a step, of either method |
//! | [`rules`] | the numbers that decide |
//! | [`state`] | the states of an alarm, as one table |
//! | [`group`] | one incident: root, effects, first-out, priority |
//! | [`annunciator`] | steps in, facts out |
//! | `fold`, `table` | how verdicts become incidents: of the sequential decision, of Table 1 |
//! | [`action`] | the actions of an operator |
//! | [`operate`] | how actions are carried out and undone |
//! | `carried` | the state that a run of a live session hands on to the next |
//! | [`event`] | the one event: log line, fact and recording row are made from it |
//! | `facts`, `quality` | events into facts; faults of the data |
//! | [`verdict`] | root cause, propagated effect, single or unknown, client by client |
//! | [`rate`], [`figures`] | alarms in ten minutes, floods, chattering, counts |

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

pub(crate) mod action;
pub(crate) mod annunciator;
mod carried;
pub(crate) mod event;
pub(crate) mod figures;
pub(crate) mod group;
pub(crate) mod input;
pub(crate) mod operate;
pub(crate) mod rate;
pub(crate) mod rules;
pub(crate) mod state;
mod verdict;

mod facts;
mod fold;
mod quality;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use crate::fact::Verdict;
pub(crate) use action::{OperatorAction, Refusal};
pub(crate) use annunciator::{Annunciator, Place};
pub(crate) use carried::{Carried, Changed};
pub(crate) use event::{Edit, Event, What};
pub(crate) use figures::Figures;
pub(crate) use group::{Closed, Incident, Member, Origin};
#[cfg(test)]
pub(crate) use input::{ClientState, Decision, Disturbance, Outcome};
pub(crate) use input::{Closing, QualityKind, QualityNote, Step, TableVerdict};
pub(crate) use operate::Order;
#[cfg(test)]
pub(crate) use operate::Receipt;
pub(crate) use rules::Rules;
pub(crate) use state::AlarmState;
pub(crate) use verdict::{ClientVerdict, verdict_at};
