//! Events: everything that happens to incidents, typed and with numbers in place of names. The fact
//! line, the words of the log and the row of a recording are all made from them. No event is ever
//! deleted: undoing something is one more event.

mod words;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub(super) use self::words::moved;
use self::words::{again_words, moved_because, name_of, stands_words, table_words};
use super::action::OperatorAction;
use super::group::{Alarm, Closed, Origin};
use super::input::{Closing, QualityKind, TableVerdict};
use crate::fact::{Priority, Value};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Event {
    /// Counted from 1.
    pub(crate) number: u64,
    pub(crate) time: Timestamp,
    /// The operator; none when the data did it.
    pub(crate) who: Option<String>,
    pub(crate) what: What,
    /// Every value an operator changed by it, old and new.
    pub(crate) edits: Vec<Edit>,
    /// The operator's reason.
    pub(crate) why: Option<String>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum What {
    Opened {
        incident: u64,
        origin: Origin,
        root: Option<usize>,
    },
    /// Who rose first in a new incident, and whether the root is another client.
    FirstOut {
        incident: u64,
        client: usize,
        disagrees: bool,
    },
    /// A client is affected, so long after the root.
    Joined {
        incident: u64,
        client: usize,
        delay_s: f64,
    },
    /// A client is no effect of an incident any more.
    Left {
        incident: u64,
        client: usize,
    },
    /// Another root is named. Where the one before was final, the new one explains it.
    RootMoved {
        incident: u64,
        from: Option<usize>,
        to: Option<usize>,
        #[serde(default)]
        is_revised: bool,
    },
    /// The root is final; a declared source above it may show nothing itself.
    RootFinal {
        incident: u64,
        root: Option<usize>,
        #[serde(default)]
        silent_source: Option<usize>,
    },
    /// The evidence of an incident has ended; not all members have recovered.
    Stands {
        incident: u64,
        why: Closing,
    },
    /// The disturbance of an incident that stood shows itself again, so long after the first alarm.
    WentOn {
        incident: u64,
        root: Option<usize>,
        after_s: f64,
    },
    /// The incident has become more urgent.
    Rose {
        incident: u64,
        priority: Priority,
    },
    Closed {
        incident: u64,
        why: Closing,
    },
    /// The time of a shelved incident ran out.
    WasShelved {
        incident: u64,
    },
    /// Something is wrong with the data of a client, or of all.
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
        what: QualityKind,
    },
    /// Table 1 declared this, and no root, for a run of steps; the clients had flags in it.
    TableVerdict {
        verdict: TableVerdict,
        since: Timestamp,
        until: Timestamp,
        steps: u64,
        clients: Vec<usize>,
    },
    /// A note of the engine about data, or about what was learned from it.
    Noted {
        client: Option<usize>,
        text: String,
    },
    /// More flags in ten minutes than an operator could follow, and the incidents they became.
    FlagFlood {
        flags: usize,
        incidents: usize,
    },
    /// More alarms in ten minutes than an operator can answer.
    Flood {
        alarms: usize,
    },
    FloodOver,
    /// An operator did something.
    Did(OperatorAction),
}

/// A value that an operator changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Edit {
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
    OutOfService {
        client: usize,
        from: bool,
        to: bool,
    },
    Note {
        incident: u64,
        from: String,
        to: String,
    },
    Closed {
        incident: u64,
        from: Option<Closed>,
        to: Option<Closed>,
    },
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
            ($($kind:ident { $key:ident }),*) => {
                match self.clone() {
                    $(Self::$kind { $key, from, to } => Self::$kind { $key, from: to, to: from },)*
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

impl Edit {
    /// The old and the new value in words, for values that the action does not name.
    fn words(&self, names: &[String]) -> Option<String> {
        match self {
            Self::Root { incident, from, to } => {
                Some(format!("#{incident} {}", moved(*from, *to, names)))
            }
            Self::Setting { what, from, to } => {
                Some(format!("{what} {} → {}", from.words(what), to.words(what)))
            }
            Self::Alarm { .. }
            | Self::Shelf { .. }
            | Self::OutOfService { .. }
            | Self::Note { .. }
            | Self::Closed { .. } => None,
        }
    }
}

/// All events, in order.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Log {
    events: Vec<Event>,
}

impl Log {
    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    pub(crate) fn event(&self, number: u64) -> Option<&Event> {
        self.events.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    /// Whether an event was taken back, and that was not taken back in turn.
    pub(crate) fn is_undone(&self, number: u64) -> bool {
        self.undone().contains(&number)
    }

    /// The last thing an operator did that can be taken back; an undoing is taken back by name only,
    /// so that undoing twice goes two steps back.
    pub(crate) fn last_undoable(&self) -> Option<u64> {
        self.last(|action| !matches!(action, OperatorAction::Undo { .. }))
    }

    /// The last undoing that can itself be taken back.
    pub(crate) fn last_redoable(&self) -> Option<u64> {
        self.last(|action| matches!(action, OperatorAction::Undo { .. }))
    }

    fn last(&self, wanted: impl Fn(&OperatorAction) -> bool) -> Option<u64> {
        let undone = self.undone();
        let done = |event: &&Event| matches!(&event.what, What::Did(action) if wanted(action));
        let mut numbers = self.events.iter().rev().filter(done).map(|event| event.number);
        numbers.find(|number| !undone.contains(number))
    }

    /// From the end, since an undoing counts only if no later one took it back.
    fn undone(&self) -> BTreeSet<u64> {
        let mut undone = BTreeSet::new();
        for event in self.events.iter().rev() {
            if let What::Did(OperatorAction::Undo { entry }) = event.what
                && !undone.contains(&event.number)
            {
                undone.insert(entry);
            }
        }
        undone
    }

    pub(super) fn add(&mut self, mut event: Event) -> u64 {
        event.number = self.events.len() as u64 + 1;
        self.events.push(event);
        self.events.len() as u64
    }
}

impl Event {
    /// Something that the data did.
    pub(super) fn of_data(time: Timestamp, what: What) -> Self {
        Self { number: 0, time, who: None, what, edits: Vec::new(), why: None }
    }

    /// The incident that it is about.
    pub(crate) fn incident(&self) -> Option<u64> {
        match &self.what {
            What::Opened { incident, .. }
            | What::FirstOut { incident, .. }
            | What::Joined { incident, .. }
            | What::Left { incident, .. }
            | What::RootMoved { incident, .. }
            | What::RootFinal { incident, .. }
            | What::Stands { incident, .. }
            | What::WentOn { incident, .. }
            | What::Rose { incident, .. }
            | What::Closed { incident, .. }
            | What::WasShelved { incident }
            | What::SensorFault { incident, .. } => Some(*incident),
            What::Did(action) => action.incident(),
            What::Quality { .. }
            | What::QualityOver { .. }
            | What::TableVerdict { .. }
            | What::Noted { .. }
            | What::FlagFlood { .. }
            | What::Flood { .. }
            | What::FloodOver => None,
        }
    }

    /// The clients that it is about.
    pub(crate) fn clients(&self) -> Vec<usize> {
        match &self.what {
            What::Opened { root: client, .. }
            | What::RootFinal { root: client, .. }
            | What::WentOn { root: client, .. }
            | What::Quality { client, .. }
            | What::QualityOver { client, .. }
            | What::Noted { client, .. } => client.iter().copied().collect(),
            What::FirstOut { client, .. }
            | What::Joined { client, .. }
            | What::Left { client, .. }
            | What::SensorFault { client, .. }
            | What::Did(OperatorAction::TakeOut { client } | OperatorAction::PutBack { client }) => {
                vec![*client]
            }
            What::TableVerdict { clients, .. } => clients.clone(),
            What::RootMoved { from, to, .. } => from.iter().chain(to).copied().collect(),
            What::Did(OperatorAction::Correct { .. }) => self
                .moved_root()
                .map_or(Vec::new(), |(from, to)| from.into_iter().chain(to).collect()),
            What::Did(
                OperatorAction::Acknowledge { .. }
                | OperatorAction::Shelve { .. }
                | OperatorAction::Unshelve { .. }
                | OperatorAction::Note { .. }
                | OperatorAction::Accept { .. }
                | OperatorAction::Set { .. }
                | OperatorAction::Undo { .. },
            )
            | What::Stands { .. }
            | What::Rose { .. }
            | What::Closed { .. }
            | What::WasShelved { .. }
            | What::FlagFlood { .. }
            | What::Flood { .. }
            | What::FloodOver => Vec::new(),
        }
    }

    /// The root before and after it, where an operator corrected it.
    fn moved_root(&self) -> Option<(Option<usize>, Option<usize>)> {
        self.edits.iter().find_map(|edit| {
            if let Edit::Root { from, to, .. } = edit { Some((*from, *to)) } else { None }
        })
    }

    /// The words of the log, with the clients' names.
    pub(crate) fn words(&self, names: &[String]) -> String {
        let name = |client: usize| name_of(Some(client), names);
        let of_all = |client: Option<usize>| client.map_or("all clients", name);
        match &self.what {
            What::Opened { incident, origin, root } => {
                let origin = match origin {
                    Origin::Decided => String::new(),
                    Origin::Single => ", one client alone".to_owned(),
                    Origin::SplitFrom(other) => format!(", hidden behind #{other}"),
                };
                format!("#{incident} opened, root {}{origin}", name_of(*root, names))
            }
            What::FirstOut { incident, client, disagrees } => {
                let disagrees = if *disagrees { ", DISAGREES with root" } else { "" };
                format!("#{incident} {} alarmed first{disagrees}", name(*client))
            }
            What::Joined { incident, client, delay_s } => {
                format!("{} effect, joined #{incident} at {delay_s:+} s", name(*client))
            }
            What::Left { incident, client } => {
                format!("{} no longer explained by #{incident}", name(*client))
            }
            What::RootMoved { incident, from, to, is_revised } => {
                format!("#{incident} {}", moved_because(*from, *to, *is_revised, names))
            }
            What::RootFinal { incident, root, silent_source } => {
                let above = silent_source.map_or(String::new(), |source| {
                    format!(", or {} above it, not visible in its own sensors", name(source))
                });
                format!("#{incident} root {} confirmed{above}", name_of(*root, names))
            }
            What::Stands { incident, why } => format!("#{incident} {}", stands_words(*why)),
            What::WentOn { incident, root, after_s } => {
                format!("#{incident} {}", again_words(*root, *after_s, names))
            }
            What::Rose { incident, priority } => {
                format!("#{incident} is now of priority {}", priority.number())
            }
            What::Closed { incident, why } => format!("#{incident} closed: {why}"),
            What::WasShelved { incident } => format!("#{incident} was shelved"),
            What::Quality { client, what } => format!("{}: {}", of_all(*client), what.words()),
            What::QualityOver { client, what } => {
                format!("{}: {}", of_all(*client), what.words_over())
            }
            What::SensorFault { incident, client, what } => {
                format!("#{incident} {}: {}", name(*client), what.words())
            }
            What::TableVerdict { verdict, since, steps, clients, .. } => {
                table_words(*verdict, *since, *steps, clients, names)
            }
            What::Noted { client, text } => format!("{}: {text}", of_all(*client)),
            What::FlagFlood { flags, incidents } => {
                format!("FLOOD: {flags} flags → {incidents} incidents")
            }
            What::Flood { alarms } => format!("FLOOD: {alarms} alarms in 10 min"),
            What::FloodOver => "flood over".to_owned(),
            What::Did(action @ OperatorAction::Undo { .. }) => action.words(names),
            What::Did(action) => self
                .edits
                .iter()
                .find_map(|edit| edit.words(names))
                .unwrap_or_else(|| action.words(names)),
        }
    }

    /// The words of a fact for what is new about the incident.
    pub(super) fn update(&self, names: &[String]) -> Option<String> {
        let name = |client: usize| name_of(Some(client), names);
        match &self.what {
            What::Joined { client, delay_s, .. } => {
                Some(format!("{} joined at {delay_s:+} s", name(*client)))
            }
            What::Left { client, .. } => Some(format!("{} no longer explained", name(*client))),
            What::RootMoved { from, to, is_revised, .. } => {
                Some(moved_because(*from, *to, *is_revised, names))
            }
            What::RootFinal { .. } => Some("root confirmed".to_owned()),
            What::Stands { why, .. } => Some(stands_words(*why)),
            What::WentOn { root, after_s, .. } => Some(again_words(*root, *after_s, names)),
            What::Rose { priority, .. } => Some(format!("now of priority {}", priority.number())),
            What::SensorFault { client, what, .. } => {
                Some(format!("{}: {}", name(*client), what.words()))
            }
            What::Opened { .. }
            | What::FirstOut { .. }
            | What::Closed { .. }
            | What::WasShelved { .. }
            | What::Quality { .. }
            | What::QualityOver { .. }
            | What::TableVerdict { .. }
            | What::Noted { .. }
            | What::FlagFlood { .. }
            | What::Flood { .. }
            | What::FloodOver
            | What::Did(_) => None,
        }
    }
}
