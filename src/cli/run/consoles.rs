//! `run --listen PATH`: consoles that join the run, and orders that come from elsewhere than the screen.

use std::path::Path;
use std::sync::Arc;

use color_eyre::eyre::{Result, eyre};

use crate::attach::desk::{Giver, OrderDesk};
#[cfg(unix)]
use crate::attach::hub::{Hub, Listener};
use crate::engine::Handle;
use crate::engine::handle::EngineEvent;
use crate::session::Session;

/// A socket that consoles will be served at.
pub(super) struct Joining {
    #[cfg(unix)]
    listener: Listener,
}

impl Joining {
    /// Makes the socket, before anything that could take time.
    #[cfg(unix)]
    pub(super) fn bind(path: &Path) -> Result<Self> {
        Ok(Self { listener: Listener::bind(path)? })
    }

    #[cfg(not(unix))]
    pub(super) fn bind(_path: &Path) -> Result<Self> {
        Err(eyre!("--listen needs a local socket, which this system has not"))
    }
}

/// Who may order something of the run.
pub(super) struct Consoles {
    desk: Arc<OrderDesk>,
    #[cfg(unix)]
    hub: Option<Hub>,
}

impl Consoles {
    pub(super) fn serve(
        joining: Option<Joining>,
        session: &Session,
        engine: &Handle,
    ) -> Result<Self> {
        let engine = engine.commander().ok_or_else(|| eyre!("the engine takes no orders"))?;
        let desk = Arc::new(OrderDesk::new(engine));
        #[cfg(unix)]
        let hub = joining.map(|joining| joining.listener.serve(session, Arc::clone(&desk)));
        #[cfg(not(unix))]
        let _ = (joining, session);
        Ok(Self {
            desk,
            #[cfg(unix)]
            hub: hub.transpose()?,
        })
    }

    /// Where orders of the service itself are handed in.
    pub(super) fn desk(&self) -> Arc<OrderDesk> {
        Arc::clone(&self.desk)
    }

    /// Tells all consoles; an answer goes to the one that has asked. A refusal that belongs to the
    /// service comes back.
    pub(super) fn send(&self, event: &EngineEvent) -> Option<String> {
        if let EngineEvent::Ordered(done) = event {
            return match self.desk.answered() {
                Some(Giver::Console(number)) => {
                    #[cfg(unix)]
                    if let Some(hub) = &self.hub {
                        hub.answer(number, done);
                    }
                    #[cfg(not(unix))]
                    let _ = number;
                    None
                }
                Some(Giver::Service) | None => done.as_ref().err().cloned(),
            };
        }
        #[cfg(unix)]
        if let Some(hub) = &self.hub {
            hub.send(event);
        }
        None
    }

    /// The run is over: consoles get what they have not read.
    pub(super) fn finish(self) {
        #[cfg(unix)]
        if let Some(hub) = self.hub {
            hub.finish();
        }
    }
}
