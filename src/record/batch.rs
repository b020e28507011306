//! What the engine hands to the writer: the rows of some steps.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::fact::Fact;
use crate::incident::{Event, Incident};
use crate::privacy::Ledger;
use crate::server::ServerView;
use crate::site::meter::{Meters, Unmeasured};
use crate::site::{LocalView, Truth};
use crate::stream::{Continuity, Frame, Label, Note};

/// When a step was, and how it follows the one before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct StepMark {
    pub(crate) time: Timestamp,
    pub(crate) continuity: Continuity,
    pub(crate) label: Label,
}

/// What few steps have: rows that were left out before it, or another place of the data.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct StepNote {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<Note>,
    /// File and run of the data from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<(Option<String>, Option<String>)>,
}

impl StepNote {
    pub(crate) fn is_empty(&self) -> bool {
        self.notes.is_empty() && self.place.is_none()
    }
}

/// What can be seen of one client at one step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Seen {
    pub(crate) local: LocalView,
    pub(crate) server: ServerView,
    pub(crate) rehearsed: ServerView,
    /// What its step was before anything of it was released.
    pub(crate) truth: Truth,
}

/// A row that does not come with every step.
#[derive(Debug)]
pub(super) enum Row {
    About {
        table: AboutTable,
        key: &'static str,
        value: String,
    },
    Model {
        table: ModelTable,
        kind: &'static str,
        data: Vec<u8>,
    },
    Note {
        step: u64,
        note: StepNote,
    },
    Fact {
        step: u64,
        line: String,
    },
    Event {
        step: u64,
        after_end: bool,
        event: Event,
    },
    Incident(Box<Incident>),
    /// What it comes to is worked out by whoever writes it.
    Ledger {
        step: u64,
        client: usize,
        time: Timestamp,
        ledger: Box<Ledger>,
        fact: LedgerFact,
    },
}

/// Makes the fact about a ledger as of an instant; none where nothing was released.
pub(crate) type LedgerFact = fn(&Ledger, Timestamp) -> Option<Fact>;

/// Whose tables a recording has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Holds {
    /// Sites and server were one process.
    #[default]
    Both,
    /// Sites were processes of their own.
    Server,
    /// One site of its own: the client at this place.
    Site(usize),
}

impl Holds {
    pub(crate) fn has_sites(self) -> bool {
        self != Self::Server
    }

    pub(crate) fn has_server(self) -> bool {
        !matches!(self, Self::Site(_))
    }
}

/// Which table an entry about the run stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AboutTable {
    Both,
    Site,
    Server,
}

impl AboutTable {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Both => "about",
            Self::Site => "site_about",
            Self::Server => "server_about",
        }
    }
}

/// Whose model it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelTable {
    Site,
    Server,
}

impl ModelTable {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Site => "site_models",
            Self::Server => "server_models",
        }
    }
}

/// Rows in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The number of its first step, where it has one.
    pub(super) first: u64,
    pub(super) steps: Vec<StepMark>,
    /// A row of clients a step.
    pub(super) seen: Vec<Seen>,
    /// Rows of sites whose residuals are still to be measured, with what measures them.
    pub(super) unmeasured: Unmeasured,
    pub(super) meters: Option<Meters>,
    pub(super) messages: Vec<u8>,
    pub(super) rows: Vec<Row>,
    pub(super) frames: Vec<Frame>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
            && self.messages.is_empty()
            && self.rows.is_empty()
            && self.frames.is_empty()
    }
}
