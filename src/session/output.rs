//! Where facts go besides the screen: files, web hooks, syslog, a broker, a command; and figures for
//! a monitoring system.

use serde::{Deserialize, Serialize};

/// One receiver of facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutputSettings {
    /// The name of its queue; the same name goes on with the same queue after a restart.
    pub(crate) name: String,
    pub(crate) to: Receiver,
    /// Which facts it gets.
    #[serde(default = "alarms")]
    pub(crate) facts: Vec<FactKind>,
}

fn alarms() -> Vec<FactKind> {
    vec![FactKind::Opened, FactKind::Updated, FactKind::Closed, FactKind::Quality]
}

/// The kinds of facts that can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FactKind {
    Opened,
    Updated,
    Closed,
    Verdict,
    Setting,
    Ledger,
    Quality,
}

/// Who gets facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum Receiver {
    /// A file of JSON lines, beside the session; each line is appended.
    File(String),
    /// An HTTP address that takes a fact as the body of a POST.
    Webhook {
        /// `http://…` or `https://…`.
        url: String,
        /// The environment variable that holds the secret of the signature, `X-Headwater-Signature`.
        #[serde(default)]
        secret_env: Option<String>,
    },
    /// Syslog as RFC 5424 writes it: `udp://host:514`, `tcp://host:601` or `tls://host:6514`.
    Syslog(String),
    Mqtt {
        broker: String,
        topic: String,
        #[serde(default)]
        user: Option<String>,
        #[serde(default)]
        password_env: Option<String>,
        /// The certificate (PEM) of the authority that signed the broker's.
        #[serde(default)]
        ca: Option<String>,
    },
    /// A program and its arguments; it gets the fact on its standard input. Runs only with
    /// `--allow-exec`.
    Command(Vec<String>),
}
