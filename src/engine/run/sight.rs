//! What can be seen of every client at a step, for whoever looks on.

use crate::server::ServerView;
use crate::site::LocalView;

/// One client at one step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sight {
    /// What its site shows on its own machine.
    pub local: LocalView,
    /// How the server sees it.
    pub server: ServerView,
}
