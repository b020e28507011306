//! Where measurements come from: the built-in plants, a table of any historian, a HAI release.

use serde::{Deserialize, Serialize};

use super::live::LiveSource;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::large_enum_variant,
    reason = "a session has one, and RON reads it as it is written"
)]
pub(crate) enum Source {
    /// The built-in plant: boiler, turbine, pumped storage and a simulated grid, at 1 Hz.
    Plant(PlantSource),
    /// The synthetic plants of the paper and of our studies, with known graph and root causes.
    Twin(TwinSource),
    /// CSV files with one row per instant, or one per instant and tag.
    Table(TableSource),
    /// A release of the HAI data set.
    Hai(HaiSource),
    /// Values that arrive now.
    Live(LiveSource),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PlantSource {
    /// Which attacks are staged on the day.
    pub(crate) attacks: Attacks,
    /// Hours of normal operation before the day begins (fit and calibration data).
    pub(crate) history_h: f64,
    /// Length of the day itself, in hours.
    pub(crate) hours: f64,
    /// Midnight of the day, civil time.
    pub(crate) start: String,
    /// The load drives boiler and pumped storage together, as in HAI: a hidden common cause.
    pub(crate) confounded: bool,
    /// Gain of the loop from grid frequency to the steam gate; 0 leaves it open, 10 makes a cycle.
    pub(crate) grid_feedback: f64,
}

impl Default for PlantSource {
    fn default() -> Self {
        Self {
            attacks: Attacks::Nothing,
            history_h: 40.0,
            hours: 24.0,
            start: "2022-08-12 00:00:00".into(),
            confounded: false,
            grid_feedback: 0.0,
        }
    }
}

/// Attacks that the built-in plant knows, in the order of its day.
pub(crate) const PLANT_ATTACKS: [&str; 20] = [
    "S101", "S102", "S103", "S104", "S105", "S106", "S107", "S108", "S109", "S110", "S111", "S201",
    "S202", "S203", "S204", "S205", "S301", "S302", "S303", "S304",
];

/// Attacks staged in the built-in plant.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum Attacks {
    #[default]
    Nothing,
    /// The day of twenty.
    Day,
    /// Those of the day with these ids ("S101"), at their own time of day.
    Only(Vec<String>),
    /// The day of twenty in ten pairs: every second attack begins so many seconds after the end of the
    /// one before it.
    Pairs(u32),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TwinSource {
    pub(crate) family: Family,
    pub(crate) clients: usize,
    /// Size of the anomaly added to the target of family A (Δ).
    pub(crate) delta: f64,
    /// Civil time of the first step; steps are one second apart.
    pub(crate) start: String,
    /// No key of a session: what `headwater study deviations` does as the paper prints it.
    #[serde(skip)]
    pub(crate) printed: Option<PrintedPlant>,
}

/// The paper's way to make the plant of family A where this program goes another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PrintedPlant {
    /// Anomalies are at all clients at once, as the paper also says.
    AnomaliesEverywhere,
    /// `g_dep` keeps the scale of its random weights.
    CouplingsAsDrawn,
    /// The sinusoidal target is the state itself, without f_m.
    StateIsTarget,
}

impl Default for TwinSource {
    fn default() -> Self {
        Self {
            family: Family::A,
            clients: 2,
            delta: 2.0,
            start: "2026-01-01 00:00:00".into(),
            printed: None,
        }
    }
}

/// The families of synthetic plants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum Family {
    /// The paper's LSTM plant.
    #[default]
    A,
    /// Oscillators, two-tank systems and saturating reactors with delayed couplings.
    B,
    /// B made hard: strong coupling, uneven noise, process faults only.
    H,
    /// B in short runs, each struck near its start by an accident that all clients feel at once.
    S,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TableSource {
    /// Folder of the files; relative to the session file, or to the working directory for a
    /// shipped session.
    pub(crate) data: String,
    /// What stands between two cells.
    #[serde(default)]
    pub(crate) delimiter: Delimiter,
    pub(crate) time: TimeColumn,
    /// Whether a row holds all measurements of an instant or one of them. It is written only where
    /// it says something, so that the models of older sessions still fit.
    #[serde(default, skip_serializing_if = "Shape::is_wide")]
    pub(crate) shape: Shape,
    /// Words that stand for a missing value, besides the empty cell and NaN; case is ignored.
    #[serde(default = "missing_words")]
    pub(crate) missing: Vec<String>,
    /// Whether several files continue each other or have nothing to do with each other.
    #[serde(default)]
    pub(crate) runs: Runs,
    /// A column whose change begins a new run inside a file.
    #[serde(default)]
    pub(crate) run_column: Option<String>,
    /// Where the data set can be had.
    #[serde(default)]
    pub(crate) published: Option<String>,
}

/// Words that historians write where a value is missing.
pub(crate) fn missing_words() -> Vec<String> {
    ["bad", "bad input", "no data", "i/o timeout", "null", "none", "na", "n/a", "-"]
        .map(String::from)
        .to_vec()
}

/// What a row of a table holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum Shape {
    /// All measurements of an instant, a column each.
    #[default]
    Wide,
    /// One measurement: time, tag, value. Rows stand in the order of time; those of one instant
    /// become one frame, and a tag without a row is missing in it. What a session calls a column
    /// (of a client, of labels) is a tag.
    Long {
        /// Header of the column of tags.
        tag: String,
        /// Header of the column of values.
        value: String,
        /// All tags that are of interest, where the beginning of the files does not show them.
        #[serde(default)]
        tags: Vec<String>,
    },
}

impl Shape {
    /// Whether a row holds all measurements of an instant.
    pub(crate) fn is_wide(&self) -> bool {
        *self == Self::Wide
    }
}

/// What stands between two cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum Delimiter {
    /// Whichever of the others the header line uses most.
    #[default]
    Auto,
    /// `,`
    Comma,
    /// `;`
    Semicolon,
    Tab,
}

/// The time column of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TimeColumn {
    pub(crate) column: String,
    #[serde(default)]
    pub(crate) format: TimeFormat,
    /// Hours that the data's clock is ahead of UTC.
    #[serde(default)]
    pub(crate) utc_offset_h: f64,
}

/// How a time cell is written.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum TimeFormat {
    /// `yyyy-MM-dd HH:mm[:ss[.f]]`, with `T` or a blank, `/` or `-`, `yyyyMMdd HH:mm:ss`, RFC 3339.
    #[default]
    Auto,
    /// A `strftime` pattern, for example `%d/%m/%y %H`.
    Pattern(String),
    /// Seconds since the given civil time.
    Seconds {
        /// Civil time of second 0.
        since: String,
    },
    /// The row number counts: the first row stands at `since`, each later one a period after.
    Rows {
        /// Civil time of the first row.
        since: String,
    },
    /// Whichever of these reads the first time cells of a file; every file is looked at by itself,
    /// and `check` says what was found. A file that two of them read differently is refused.
    Detect(Vec<TimeFormat>),
    /// By the name of the file (`*` and `?` are allowed): the first line that fits counts.
    PerFile(Vec<(String, TimeFormat)>),
}

impl std::fmt::Display for TimeFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.write_str("a common notation"),
            Self::Pattern(pattern) => write!(f, "{pattern:?}"),
            Self::Seconds { since } => write!(f, "seconds since {since}"),
            Self::Rows { since } => write!(f, "rows counted from {since}"),
            Self::Detect(_) => f.write_str("detected in each file"),
            Self::PerFile(_) => f.write_str("named for each file"),
        }
    }
}

/// How several files belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum Runs {
    /// One continues the other; a hole between them is a gap.
    #[default]
    Joined,
    /// Each file is a run of its own: filters start anew. Runs are placed one after the other in time.
    PerFile,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HaiSource {
    /// "20.07", "21.03", "22.04" or "23.05".
    pub(crate) version: String,
    pub(crate) data: String,
    /// Which columns the default clients P1, P2, P3 watch.
    #[serde(default)]
    pub(crate) sensors: HaiSensors,
}

/// Which HAI columns are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum HaiSensors {
    /// Physical sensors only, as the paper.
    #[default]
    Kept,
    /// Every column of the process.
    All,
}
