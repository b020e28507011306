//! Detection and attribution end to end: a session goes through the engine, and its alarms are judged
//! against the known events.
//!
//! A study measures what a user gets. So every figure comes from the facts of a run, with all that
//! stands between a decision and an alarm: the margin of a root, the grouping of incidents, the watch on
//! sensors. Methods differ in the settings of the session.
//!
//! | module | purpose |
//! |---|---|
//! | [`watch`] | a session run to its end: incidents, flags, ledgers, and the truth beside them |
//! | [`figures`] | all figures of one method, from its incidents |
//! | [`flags`] | lines of tables of flags |

pub(crate) mod figures;
pub(crate) mod flags;
#[cfg(test)]
mod tests;
pub(crate) mod watch;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::engine::experiment::Failure;
use crate::engine::prepare::{Prepared, fingerprint, prepare};
use crate::session::settings::Federation;
use crate::session::{Alphabet, Family, Mode, Proprietary, Session, Source, Tau, TwinSource, Vote};

/// A family of synthetic plants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Twin {
    pub name: &'static str,
    pub family: Family,
    pub clients: usize,
    /// Size of the anomaly in family A.
    pub delta: f64,
    /// Whether the federation has the paper's settings instead of ours.
    pub as_published: bool,
}

impl Twin {
    pub(crate) const fn new(
        name: &'static str,
        family: Family,
        clients: usize,
        delta: f64,
    ) -> Self {
        Self { name, family, clients, delta, as_published: false }
    }
}

/// The paper's own experiment.
pub(crate) const PAPERS: Twin = Twin::new("A2", Family::A, 2, 2.0);

/// The same at the paper's own settings.
pub(crate) const AT_PAPERS: Twin = Twin { name: "A2-paper", as_published: true, ..PAPERS };

/// The families of the detection study.
pub(crate) const TWINS: [Twin; 7] = [
    PAPERS,
    Twin::new("A4", Family::A, 4, 2.0),
    Twin::new("A8", Family::A, 8, 2.0),
    Twin::new("A4d05", Family::A, 4, 0.5),
    Twin::new("B4", Family::B, 4, 0.0),
    Twin::new("B8", Family::B, 8, 0.0),
    Twin::new("H4", Family::H, 4, 0.0),
];

impl Twin {
    /// The shipped synthetic session over this family, in evidence mode. Its clients have the
    /// paper's filters, so that both modes stand on the same models.
    pub(crate) fn session(&self, seed: u64) -> Result<Session, Failure> {
        let mut session = Session::open("twin")?;
        let Self { name, family, clients, delta, as_published } = *self;
        name.clone_into(&mut session.name);
        session.source =
            Source::Twin(TwinSource { family, clients, delta, ..TwinSource::default() });
        session.mode = Mode::Evidence;
        session.seed = seed;
        if as_published {
            session.model.federate_as_published();
        }
        Ok(session)
    }
}

/// The published method: flags at a percentile and, where a vote is asked for, three of five steps
/// that must agree.
pub(crate) fn as_published(session: &mut Session, percentile: f64, is_voted: bool) {
    session.mode = Mode::Paper;
    session.thresholds.tau_c = Tau::Percentile(percentile);
    session.thresholds.tau_a = Tau::Percentile(percentile);
    session.thresholds.vote = is_voted.then_some(Vote { k: 3, n: 5 });
}

/// One bit a step, at a budget.
pub(crate) fn one_bit(session: &mut Session, epsilon: Option<f64>) {
    session.privacy.symbol = Alphabet::OneBit;
    session.privacy.epsilon_flag = epsilon;
}

/// Clients watch with a linear predictor. Their federation is not used then, so it is made as quickly as
/// possible.
pub(crate) fn linear(session: &mut Session) {
    session.model.proprietary = Proprietary::Linear;
    session.model.epochs = 1;
    session.model.federation = Federation::Batched { rounds: 1 };
}

/// Models by what they were made from: sessions that differ in thresholds, symbols or mode share them.
///
/// They are made anew and kept for one job only: the cache may be of an older build.
#[derive(Debug, Default)]
pub(crate) struct Models(Vec<(String, Arc<Prepared>)>);

impl Models {
    /// The models of a session, made if none of the sessions before needed the same.
    pub(crate) fn of(&mut self, session: &Session) -> Result<&Arc<Prepared>, Failure> {
        let wanted = fingerprint(session)?.to_string();
        let known = self.0.iter().position(|(known, _)| *known == wanted);
        let place = known.unwrap_or(self.0.len());
        if known.is_none() {
            self.0.push((wanted, Arc::new(make(session)?)));
        }
        Ok(&self.0[place].1)
    }
}

fn make(session: &Session) -> Result<Prepared, Failure> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let name = format!("headwater-study-{}-{number}.safetensors", std::process::id());
    let file = std::env::temp_dir().join(name);
    let made = prepare(session, &file, &mut |_| ControlFlow::Continue(()));
    // One that stays behind takes room and does no harm.
    let _ = std::fs::remove_file(&file);
    Ok(made?)
}
