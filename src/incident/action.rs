//! The actions of an operator, and why one may be refused.

use serde::{Deserialize, Serialize};

use super::state::NotNow;
use crate::fact::Value;
use crate::session::settings::Span;

/// Longest time an alarm may be shelved: longer is out of service, and should say so.
pub(crate) const LONGEST_SHELF_S: u32 = 24 * 3600;

/// Who gives the orders of the session's plan, as the log has it.
pub(crate) const SCHEDULE: &str = "schedule";

/// Something an operator does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum OperatorAction {
    Acknowledge {
        incident: u64,
    },
    /// Silences an incident, and what its root raises next, for a time.
    Shelve {
        incident: u64,
        seconds: u32,
    },
    Unshelve {
        incident: u64,
    },
    /// Silences a client until it is put back.
    TakeOut {
        client: usize,
    },
    PutBack {
        client: usize,
    },
    Note {
        incident: u64,
        text: String,
    },
    /// Takes what an incident shows as normal from now on.
    Accept {
        incident: u64,
    },
    /// Another member is the root of an incident whose root is final.
    Correct {
        incident: u64,
        root: usize,
    },
    Set {
        what: String,
        to: Value,
    },
    /// Takes back what an event did.
    Undo {
        entry: u64,
    },
}

/// Why something cannot be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(transparent)]
    NotNow(#[from] NotNow),
    #[error("there is no incident #{0}")]
    NoIncident(u64),
    #[error("there is no such client")]
    NoClient,
    #[error("incident #{0} is over")]
    Over(u64),
    #[error("there is no setting called {0:?}")]
    NoSetting(String),
    #[error("nothing would change")]
    NoChange,
    #[error("an alarm is shelved for 1 s to 24 h; for longer take the client out of service")]
    ShelfTime,
    #[error("the root of #{0} is not confirmed yet")]
    NotFinal(u64),
    #[error("that client takes no part in #{0}")]
    NoMember(u64),
    #[error("that client is the root of #{0}, or takes part in it")]
    Taken(u64),
    #[error("entry {0} of the log is nothing that can be undone")]
    NotUndoable(u64),
    #[error("entry {0} was undone already")]
    AlreadyUndone(u64),
    #[error("what entry {0} changed has changed again since")]
    Overtaken(u64),
}

impl OperatorAction {
    /// The incident that it is about.
    pub(crate) fn incident(&self) -> Option<u64> {
        match self {
            Self::Acknowledge { incident }
            | Self::Shelve { incident, .. }
            | Self::Unshelve { incident }
            | Self::Note { incident, .. }
            | Self::Accept { incident }
            | Self::Correct { incident, .. } => Some(*incident),
            Self::TakeOut { .. } | Self::PutBack { .. } | Self::Set { .. } | Self::Undo { .. } => {
                None
            }
        }
    }

    pub(super) fn words(&self, names: &[String]) -> String {
        let name = |client: &usize| names.get(*client).map_or("?", String::as_str);
        match self {
            Self::Acknowledge { incident } => format!("#{incident} acknowledged"),
            Self::Shelve { incident, seconds } => {
                let span = Span { seconds: f64::from(*seconds) };
                format!("#{incident} shelved for {span}")
            }
            Self::Unshelve { incident } => format!("#{incident} unshelved"),
            Self::TakeOut { client } => format!("{} out of service", name(client)),
            Self::PutBack { client } => format!("{} back in service", name(client)),
            Self::Note { incident, text } => format!("#{incident} note: {text}"),
            Self::Accept { incident } => format!("#{incident} accepted as new normal"),
            Self::Correct { incident, root } => format!("#{incident} root is {}", name(root)),
            Self::Set { what, to } => format!("{what} {}", to.words(what)),
            Self::Undo { entry } => format!("entry {entry} undone"),
        }
    }
}
