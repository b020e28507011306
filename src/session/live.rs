//! A live source: where values arrive from, how they become rows, and where normal data comes from.

use serde::{Deserialize, Serialize};

use super::opcua::{OpcUaPast, OpcUaSource};
use super::source::{Shape, TableSource, TimeColumn, TimeFormat, missing_words};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LiveSource {
    pub(crate) input: LiveInput,
    /// Seconds from one row to the next.
    #[serde(default = "one_second")]
    pub(crate) grid_s: f64,
    /// Seconds that a row waits for values, from the arrival of its first.
    #[serde(default = "two_seconds")]
    pub(crate) lateness_s: f64,
    /// Seconds that a value may stand for later ones that did not come: for tags that are sent only
    /// when they change.
    #[serde(default)]
    pub(crate) hold_s: f64,
    /// Where a row or value says its time: the header of a column, or the key of a JSON object.
    #[serde(default = "time_column")]
    pub(crate) time: TimeColumn,
    /// Whether a line or message holds all measurements of an instant or one of them.
    #[serde(default)]
    pub(crate) shape: Shape,
    /// The column or key that says how far a single value can be trusted, where there is one.
    #[serde(default = "quality_column")]
    pub(crate) quality: String,
    /// Words that stand for a missing value, besides the empty cell, null and NaN.
    #[serde(default = "missing_words")]
    pub(crate) missing: Vec<String>,
    /// Where the data comes from that models are fitted to and thresholds are set on.
    #[serde(default)]
    pub(crate) history: LiveHistory,
}

fn one_second() -> f64 {
    1.0
}

fn two_seconds() -> f64 {
    2.0
}

fn time_column() -> TimeColumn {
    TimeColumn { column: "timestamp".into(), format: TimeFormat::Auto, utc_offset_h: 0.0 }
}

fn quality_column() -> String {
    "quality".into()
}

/// Where values arrive from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum LiveInput {
    /// Lines of CSV with a header, or JSON objects, one a line.
    Stdin,
    /// The same in a file that grows; it may be rotated, cut off or replaced.
    Follow {
        /// The file; relative to the session file.
        file: String,
    },
    /// Messages of an MQTT broker.
    Mqtt(MqttSource),
    /// Values of an OPC UA server.
    OpcUa(OpcUaSource),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MqttSource {
    /// `mqtt://host:1883` or `mqtts://host:8883`.
    pub(crate) broker: String,
    /// Which messages are measurements.
    pub(crate) topics: MqttTopics,
    /// The name under which the broker keeps messages while this program is away. Two programs must
    /// not use one name.
    #[serde(default)]
    pub(crate) client_id: Option<String>,
    #[serde(default)]
    pub(crate) user: Option<String>,
    /// The environment variable that holds the password: it never stands in a session.
    #[serde(default)]
    pub(crate) password_env: Option<String>,
    /// The certificate (PEM) of the authority that signed the broker's; those of the system when
    /// absent.
    #[serde(default)]
    pub(crate) ca: Option<String>,
    /// This program's own certificate and key (PEM), where the broker asks for one.
    #[serde(default)]
    pub(crate) certificate: Option<String>,
    #[serde(default)]
    pub(crate) key: Option<String>,
}

/// Which messages of a broker are measurements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum MqttTopics {
    /// One JSON object a message, as a line of standard input: all measurements of an instant, or
    /// one, as `shape` says. `+` and `#` are allowed.
    Rows(String),
    /// One topic a tag, such as `plant/boiler/{tag}`; a message is a JSON object with time, value
    /// and quality.
    Tags {
        topic: String,
        /// The key of the value.
        #[serde(default = "value_key")]
        value: String,
    },
}

fn value_key() -> String {
    "value".into()
}

/// Where nominal data comes from.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::large_enum_variant,
    reason = "a session has one, and RON reads it as it is written"
)]
pub(crate) enum LiveHistory {
    /// The source delivers it at every start, before the rows that are watched.
    #[default]
    First,
    /// The first rows that ever arrive are learned from, and kept: the next start watches at once.
    Learned,
    /// Files of a historian, named in `ranges`.
    Table(TableSource),
}

impl LiveSource {
    /// Files of nominal data, where there are any.
    pub(crate) fn table(&self) -> Option<&TableSource> {
        match &self.history {
            LiveHistory::Table(table) => Some(table),
            LiveHistory::First | LiveHistory::Learned => None,
        }
    }

    /// Whether normal data is read from the source's own history.
    pub(crate) fn reads_past(&self) -> bool {
        matches!(&self.input, LiveInput::OpcUa(opcua) if opcua.past != OpcUaPast::Unread)
    }

    /// Standard input instead of whatever it is, or an explanation why that is impossible.
    pub(crate) fn of_table(table: &TableSource) -> Result<Self, String> {
        if !matches!(
            table.time.format,
            TimeFormat::Auto | TimeFormat::Pattern(_) | TimeFormat::Seconds { .. }
        ) {
            return Err(
                "live rows say their time themselves: `time.format` must be Auto, Pattern \
                        or Seconds"
                    .into(),
            );
        }
        Ok(Self {
            input: LiveInput::Stdin,
            grid_s: one_second(),
            lateness_s: two_seconds(),
            hold_s: 0.0,
            time: table.time.clone(),
            shape: table.shape.clone(),
            quality: quality_column(),
            missing: table.missing.clone(),
            history: LiveHistory::Table(table.clone()),
        })
    }
}
