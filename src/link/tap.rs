//! Listening to everything that crosses: for a proof of what does, and for nothing else.

use std::sync::{Arc, Mutex, PoisonError};

use super::Message;

type Listener = dyn FnMut(&Message<'_>) + Send;

/// A place where messages can be listened to; nobody listens unless told so.
#[derive(Clone, Default)]
pub struct Tap(Option<Arc<Mutex<Listener>>>);

impl Tap {
    /// Every message is shown to `listener` as it crosses.
    #[must_use]
    pub fn new(listener: impl FnMut(&Message<'_>) + Send + 'static) -> Self {
        Self(Some(Arc::new(Mutex::new(listener))))
    }

    /// A message crosses.
    pub fn hear(&self, message: &Message<'_>) {
        if let Some(listener) = &self.0 {
            listener.lock().unwrap_or_else(PoisonError::into_inner)(message);
        }
    }
}

impl std::fmt::Debug for Tap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Tap(listened to)" } else { "Tap" })
    }
}
