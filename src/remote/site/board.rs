//! How one site stands, for a screen on its own machine.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

use super::super::account::SpentSoFar;
use super::worker::Worker;
use crate::site::{LocalView, Truth};
use crate::stream::{Frame, Layout};

/// Steps that a screen can look back.
const LOOK_BACK: usize = 120;

/// What a screen of one site shows.
#[derive(Debug, Clone, Default)]
pub(crate) struct SiteBoard {
    /// What frames look like, and the place of the client among them.
    pub(crate) layout: Option<(Layout, usize)>,
    /// The last steps. They hold measurements: a board stays on the machine of the site.
    pub(crate) recent: VecDeque<Frame>,
    pub(crate) step: u64,
    pub(crate) time: Option<Timestamp>,
    /// Of the last step: residuals and what was made of them before anything was released.
    pub(crate) local: LocalView,
    pub(crate) truth: Truth,
    pub(crate) spent: SpentSoFar,
    /// Steps that were sent.
    pub(crate) sent: u64,
    /// What came from a live source, in words.
    pub(crate) source: Option<String>,
}

/// A board that the site writes and its screen reads; nobody writes where nobody reads.
pub(crate) type SharedBoard = Option<Arc<Mutex<SiteBoard>>>;

/// Shows the last step of a site.
pub(super) fn post(board: &SharedBoard, worker: &Worker, source: Option<String>) {
    let Some(board) = board else { return };
    let mut board = board.lock().unwrap_or_else(PoisonError::into_inner);
    board.sent += 1;
    board.source = source.or(board.source.take());
    board.spent = worker.spent_ever();
    let step = worker.taken.unwrap_or(0);
    if board.layout.is_none() {
        board.layout = Some((worker.stream.layout().clone(), worker.column));
    }
    if step == 0 || step == board.step {
        return;
    }
    (board.step, board.time) = (step, Some(worker.time));
    (board.local, board.truth) = (worker.site.local(), worker.site.truth());
    board.recent.push_back(worker.frame.clone());
    if board.recent.len() > LOOK_BACK {
        board.recent.pop_front();
    }
}
