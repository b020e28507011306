//! What a console is opened on: a session that runs, a recording that is shown again, or a service
//! that runs elsewhere on this machine.

use std::io;
use std::path::Path;

#[cfg(unix)]
use crate::attach::joined::Joined;
use crate::engine::handle::{Handle, OpenError, Options, RecordTo};
use crate::engine::pace::{Pace, Speed};
use crate::engine::recorded::Recorded;
use crate::engine::{self};
use crate::record::{self, Recording};
use crate::session::Session;

/// What a console may do at a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Orders are carried out for all consoles.
    Order,
    LookOn,
}

pub(crate) enum Subject {
    Session(Box<Session>),
    /// A run that is over. All of it is there at once.
    Recording(Box<Recorded>),
    /// A run of a service that was joined.
    #[cfg(unix)]
    Service(Box<Joined>),
}

impl Subject {
    /// Reads a recording.
    pub(crate) fn recording(file: &Path) -> Result<Self, OpenError> {
        Ok(Self::Recording(Box::new(Recorded::read(&Recording::open(file)?)?)))
    }

    /// What `open` was asked for: a recording, a session file, or the name of a shipped session.
    pub(crate) fn named(name: &str) -> Result<Self, OpenError> {
        if record::is_recording(Path::new(name)) {
            return Self::recording(Path::new(name));
        }
        Ok(Self::Session(Box::new(Session::open(name)?)))
    }

    pub(crate) fn session(&self) -> &Session {
        match self {
            Self::Session(session) => session,
            Self::Recording(recorded) => &recorded.session,
            #[cfg(unix)]
            Self::Service(joined) => &joined.session,
        }
    }

    /// The session, where it is one that runs.
    pub(crate) fn session_mut(&mut self) -> Option<&mut Session> {
        match self {
            Self::Session(session) => Some(session),
            Self::Recording(_) => None,
            #[cfg(unix)]
            Self::Service(_) => None,
        }
    }

    /// Whether it is the run of a service, and whether that may only be looked at.
    pub(crate) fn service(&self) -> Option<Reach> {
        match self {
            #[cfg(unix)]
            Self::Service(joined) if joined.is_read_only() => Some(Reach::LookOn),
            #[cfg(unix)]
            Self::Service(_) => Some(Reach::Order),
            Self::Session(_) | Self::Recording(_) => None,
        }
    }

    /// How fast it is played at first: a recording is read as a whole.
    pub(crate) fn pace(&self) -> Pace {
        let speed = match self {
            Self::Session(session) => Speed::new(session.replay.speed),
            Self::Recording(_) => Speed::Max,
            #[cfg(unix)]
            Self::Service(_) => Speed::Max,
        };
        Pace { speed, paused: false }
    }

    /// Its name on the screen.
    pub(crate) fn title(&self) -> String {
        match self {
            Self::Session(session) => session.name.clone(),
            Self::Recording(recorded) => format!("recording of {}", recorded.session.name),
            #[cfg(unix)]
            Self::Service(joined) => {
                let address = joined.address().display();
                format!("{} of the service at {address}", joined.session.name)
            }
        }
    }

    /// Plays it. Only a session is recorded.
    pub(crate) fn spawn(self, options: Options, record: bool) -> io::Result<Handle> {
        match self {
            Self::Session(session) => {
                let record = record.then_some(RecordTo::Folder);
                engine::spawn(&session, Options { record, ..options })
            }
            Self::Recording(recorded) => engine::spawn_recorded(*recorded, options),
            #[cfg(unix)]
            Self::Service(joined) => joined.spawn(),
        }
    }
}
