//! A disturbance that fades and swells again before its episode has ended.
//!
//! ```text
//! v = ln F/T      F = Beta([`Rules::fading`]), T = Beta([`Rules::saturated`]) of the root's p-values
//! W = max(0, W − v)    the root has been saturated:   W > 16
//! G = Σ v since v < 0   then it has faded:             G > 3
//! U = max(0, U − v)    then it has swelled again:     U > 6.5, and what its symbols say since U last
//!                                                     stood at zero would raise an alarm by itself
//! ```
//!
//! What swells again is said. It is a new incident if G was above 8 and the root is declared to lie on
//! no loop: in a loop, or where nobody knows, a disturbance may come back by itself.

use super::again::Again;
use super::{Change, Closing, Inference, Open};

/// W from which on a root has been saturated: about eight steps of the highest level.
const SATURATED: f64 = 16.0;
/// G from which on it has faded so far that swelling again is said.
const FADED: f64 = 3.0;
/// G from which on what swells again is a disturbance of its own.
const GONE: f64 = 8.0;
/// U from which on it has swelled again.
const SWELLED: f64 = 6.5;

/// How the root of an open episode fades and swells again.
#[derive(Debug, Clone, Default)]
pub(super) struct Resurgence {
    /// The root that is followed.
    root: Option<usize>,
    /// W.
    saturation: f64,
    /// G, and the highest it has been.
    fading: f64,
    faded: f64,
    /// U.
    swelling: f64,
    has_swelled: bool,
    /// What the root's symbols say since U last stood at zero, and that step.
    evidence: f64,
    zero_at: u64,
    /// When it was said last.
    pub(super) said_at: Option<u64>,
}

impl Resurgence {
    /// Takes a step of `root`: `fades` is v and `own` is λ^RC.
    fn add(&mut self, root: usize, fades: f64, own: f64, step: u64) {
        if self.root != Some(root) {
            *self = Self { root: Some(root), said_at: self.said_at, ..Self::default() };
        }
        if self.saturation <= SATURATED {
            self.saturation = (self.saturation - fades).max(0.0);
            return;
        }
        // One step that speaks for saturation ends a fading: a noisy disturbance is no faded one.
        self.fading = if fades < 0.0 { 0.0 } else { self.fading + fades };
        if self.faded <= FADED {
            self.faded = self.faded.max(self.fading);
            self.zero_at = step;
            return;
        }
        self.faded = self.faded.max(self.fading);
        self.swelling = (self.swelling - fades).max(0.0);
        if self.swelling == 0.0 {
            (self.evidence, self.zero_at, self.has_swelled) = (0.0, step, false);
        } else {
            self.evidence += own;
            self.has_swelled |= self.swelling > SWELLED;
        }
    }

    /// Begins again with what has swelled. Gives how far it had faded, what speaks for it and since when.
    fn take(&mut self, threshold: f64) -> Option<(f64, f64, u64)> {
        if !self.has_swelled || self.evidence <= threshold {
            return None;
        }
        let taken = (self.faded, self.evidence, self.zero_at + 1);
        *self = Self {
            root: self.root,
            saturation: self.swelling,
            said_at: self.said_at,
            ..Self::default()
        };
        Some(taken)
    }
}

impl Inference {
    /// Follows how the final root of an open episode fades and swells again. Gives the episode back
    /// unless a new incident has begun.
    pub(super) fn resurge(&mut self, mut open: Open) -> Option<Open> {
        let Some(root) = open.root.filter(|_| open.frozen) else { return Some(open) };
        open.resurgence.add(root, self.fades[root], self.own[root], self.step);
        let Some((faded, evidence, onset)) = open.resurgence.take(self.clients[root].threshold)
        else {
            return Some(open);
        };
        if faded > GONE && !self.reach.may_return(root) {
            self.begin_anew(open, root, evidence, onset);
            return None;
        }
        let is_due = |said_at: u64| self.step >= said_at + self.rules.afterglow;
        if open.said && open.resurgence.said_at.is_none_or(is_due) {
            open.resurgence.said_at = Some(self.step);
            if let Some(member) = open.members.get_mut(root) {
                *member = Some(Again::said(self.step));
            }
            self.announce(&mut open, root);
        }
        Some(open)
    }

    /// The incident is over, and what `root` has shown since `onset` opens another.
    fn begin_anew(&mut self, mut open: Open, root: usize, evidence: f64, onset: u64) {
        self.let_go(&mut open, Closing::Quiet);
        open.incident.frozen = true;
        if open.said {
            self.changes.push(Change::Closed(open.incident, Closing::Quiet));
        }
        self.accepted = None;
        self.clients[root].cusum.begin(evidence, onset);
        self.detect();
    }
}
