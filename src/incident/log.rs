//! The sequence of events: what happened and what operators did, in order. Nothing is ever deleted
//! from it; undoing something is one more entry.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::action::Action;
use super::group::{Alarm, Closed, Origin};
use super::input::{Closing, QualityKind};
use crate::fact::{Priority, Value};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Counted from 1.
    pub(crate) number: u64,
    pub(crate) time: Timestamp,
    /// The operator; none when the data did it.
    pub(crate) who: Option<String>,
    pub(crate) what: What,
    /// Every value an operator changed by it, old and new.
    pub(crate) edits: Vec<Edit>,
    pub(crate) why: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum What {
    Opened {
        incident: u64,
        /// How it came to be.
        origin: Origin,
        root: Option<usize>,
    },
    /// Who rose first in a new incident.
    FirstOut {
        incident: u64,
        client: usize,
        disagrees: bool,
    },
    Joined {
        incident: u64,
        client: usize,
        /// How long after the root.
        delay_s: f64,
    },
    /// A client is no effect of an incident any more.
    Left {
        incident: u64,
        client: usize,
    },
    RootMoved {
        incident: u64,
        from: Option<usize>,
        to: Option<usize>,
    },
    RootFinal {
        incident: u64,
        root: Option<usize>,
    },
    /// It has become more urgent.
    Rose {
        incident: u64,
        priority: Priority,
    },
    Closed {
        incident: u64,
        why: Closing,
    },
    /// It was shelved, and is back.
    WasShelved {
        incident: u64,
    },
    /// Something is wrong with data.
    Quality {
        client: Option<usize>,
        what: QualityKind,
    },
    QualityOver {
        client: Option<usize>,
        what: QualityKind,
    },
    /// A sensor of a client that takes part in an incident is at fault.
    SensorFault {
        incident: u64,
        client: usize,
        /// What is wrong with it.
        what: QualityKind,
    },
    /// Something about data, or about what was learned from it, in words.
    Noted {
        client: Option<usize>,
        text: String,
    },
    /// More flags than anybody could follow.
    FlagFlood {
        flags: usize,
        /// That became so many incidents.
        incidents: usize,
    },
    /// More alarms than anybody can answer.
    Flood {
        alarms: usize,
    },
    FloodOver,
    Did(Action),
}

/// A value that an operator changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Edit {
    /// How an incident's alarm stands.
    Alarm {
        incident: u64,
        from: Alarm,
        to: Alarm,
    },
    /// Until when a client's alarms are shelved.
    Shelf {
        client: usize,
        from: Option<Timestamp>,
        to: Option<Timestamp>,
    },
    /// Whether a client is out of service.
    OutOfService {
        client: usize,
        from: bool,
        to: bool,
    },
    /// The note on an incident.
    Note {
        incident: u64,
        from: String,
        to: String,
    },
    /// Whether and how an incident is over.
    Closed {
        incident: u64,
        from: Option<Closed>,
        to: Option<Closed>,
    },
    /// The root of an incident.
    Root {
        incident: u64,
        from: Option<usize>,
        to: Option<usize>,
    },
    Setting {
        what: String,
        from: Value,
        to: Value,
    },
}

impl Edit {
    /// The edit that takes this one back.
    pub(crate) fn inverse(&self) -> Self {
        macro_rules! swapped {
            ($($kind:ident { $($key:ident)? }),*) => {
                match self.clone() {
                    $(Self::$kind { $($key,)? from, to } => {
                        Self::$kind { $($key,)? from: to, to: from }
                    })*
                }
            };
        }
        swapped!(
            Alarm { incident },
            Shelf { client },
            OutOfService { client },
            Note { incident },
            Closed { incident },
            Root { incident },
            Setting { what }
        )
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Log {
    entries: Vec<Entry>,
}

impl Log {
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry of that number.
    pub(crate) fn entry(&self, number: u64) -> Option<&Entry> {
        self.entries.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    /// Whether an entry was taken back, and that was not taken back in turn.
    pub(crate) fn is_undone(&self, number: u64) -> bool {
        self.undone().contains(&number)
    }

    /// The last thing an operator did that can be taken back; an undoing is taken back by name only,
    /// so that undoing twice goes two steps back.
    pub(crate) fn last_undoable(&self) -> Option<u64> {
        self.last(|action| !matches!(action, Action::Undo { .. }))
    }

    /// The last undoing that can itself be taken back.
    pub(crate) fn last_redoable(&self) -> Option<u64> {
        self.last(|action| matches!(action, Action::Undo { .. }))
    }

    fn last(&self, wanted: impl Fn(&Action) -> bool) -> Option<u64> {
        let undone = self.undone();
        let done = |entry: &&Entry| matches!(&entry.what, What::Did(action) if wanted(action));
        let mut numbers = self.entries.iter().rev().filter(done).map(|entry| entry.number);
        numbers.find(|number| !undone.contains(number))
    }

    /// From the end, since an undoing counts only if no later one took it back.
    fn undone(&self) -> BTreeSet<u64> {
        let mut undone = BTreeSet::new();
        for entry in self.entries.iter().rev() {
            if let What::Did(Action::Undo { entry: earlier }) = entry.what
                && !undone.contains(&entry.number)
            {
                undone.insert(earlier);
            }
        }
        undone
    }

    pub(super) fn add(&mut self, mut entry: Entry) -> u64 {
        entry.number = self.entries.len() as u64 + 1;
        self.entries.push(entry);
        self.entries.len() as u64
    }
}

impl Entry {
    /// The line in words, with the clients' names.
    pub(crate) fn words(&self, names: &[String]) -> String {
        let name = |client: usize| names.get(client).map_or("?", String::as_str);
        let maybe = |client: Option<usize>| client.map_or("?", name);
        match &self.what {
            What::Opened { incident, origin, root } => {
                let origin = match origin {
                    Origin::Decided => String::new(),
                    Origin::Single => ", one client alone".to_owned(),
                    Origin::SplitFrom(other) => format!(", hidden behind #{other}"),
                };
                format!("#{incident} opened, root {}{origin}", maybe(*root))
            }
            What::FirstOut { incident, client, disagrees } => {
                let disagrees = if *disagrees { ", DISAGREES with root" } else { "" };
                format!("#{incident} first out {}{disagrees}", name(*client))
            }
            What::Joined { incident, client, delay_s } => {
                format!("{} effect, joined #{incident} at {delay_s:+} s", name(*client))
            }
            What::Left { incident, client } => {
                format!("{} no longer explained by #{incident}", name(*client))
            }
            What::RootMoved { incident, from, to } => {
                format!("#{incident} root {} → {}", maybe(*from), maybe(*to))
            }
            What::RootFinal { incident, root } => {
                format!("#{incident} root {} final", maybe(*root))
            }
            What::Rose { incident, priority } => {
                // A client may well be called P1, too.
                let number = priority.to_string();
                format!("#{incident} is now of priority {}", number.trim_start_matches('P'))
            }
            What::Closed { incident, why } => format!("#{incident} closed: {why}"),
            What::WasShelved { incident } => format!("#{incident} was shelved"),
            What::Quality { client, what } => {
                format!("{}: {}", client.map_or("all clients", name), what.said())
            }
            What::QualityOver { client, what } => {
                format!("{}: {}", client.map_or("all clients", name), what.said_over())
            }
            What::SensorFault { incident, client, what } => {
                format!("#{incident} {}: {}", name(*client), what.said())
            }
            What::Noted { client, text } => {
                format!("{}: {text}", client.map_or("all clients", name))
            }
            What::FlagFlood { flags, incidents } => {
                format!("FLOOD: {flags} flags → {incidents} incidents")
            }
            What::Flood { alarms } => format!("FLOOD: {alarms} alarms in 10 min"),
            What::FloodOver => "flood over".to_owned(),
            What::Did(action) => action.words(names, &self.edits),
        }
    }
}
