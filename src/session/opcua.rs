//! A live source that is an OPC UA server.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// An OPC UA server. Reading it needs a program that was built with the feature `opcua`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpcUaSource {
    /// `opc.tcp://host:4840`, and a path where the server has one.
    pub(crate) url: String,
    /// The URI of the namespace that holds the tags. Its number may change from start to start of a
    /// server, so that it is looked up at every connection.
    #[serde(default)]
    pub(crate) namespace: Option<String>,
    /// How the connection is protected: always signed and encrypted, or not at all.
    #[serde(default)]
    pub(crate) security: OpcUaSecurity,
    #[serde(default)]
    pub(crate) user: Option<String>,
    /// The environment variable that holds the password: it never stands in a session.
    #[serde(default)]
    pub(crate) password_env: Option<String>,
    /// The folder of this program's own key and of the certificates that are trusted; relative to the
    /// session file. Beside the history of the session when absent.
    #[serde(default)]
    pub(crate) pki: Option<String>,
    /// How often the server sends what is new, in milliseconds.
    #[serde(default = "half_a_second")]
    pub(crate) publishing_ms: f64,
    /// The node of each tag, such as `"P1_FT01": "s=Boiler.FT01"`. Where there is none, every variable
    /// of the namespace is a tag under its own name.
    #[serde(default)]
    pub(crate) tags: BTreeMap<String, String>,
    /// Which of its own history the server is asked for: normal data, and rows that were missed.
    #[serde(default)]
    pub(crate) past: OpcUaPast,
}

fn half_a_second() -> f64 {
    500.0
}

/// A security policy of OPC UA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum OpcUaSecurity {
    /// Open: any machine on the way can read and change the data.
    #[default]
    Open,
    Basic256Sha256,
    Aes128Sha256RsaOaep,
    Aes256Sha256RsaPss,
}

/// Past values that a server is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum OpcUaPast {
    /// Nothing.
    #[default]
    Unread,
    /// As much before its newest value as the fit and calibration ranges need.
    Before,
    /// Everything from this time on. What is beyond the calibration range is watched.
    From(Timestamp),
}
