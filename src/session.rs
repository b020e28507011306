//! What to watch: a RON file becomes a [`Session`].
//!
//! A session names a source, its clients and their columns, what is known about disturbances, which
//! stretch of data is used for what, and every setting that can be tuned. It must not know how any
//! of it is carried out.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub(crate) mod bounds;
pub(crate) mod clock;
pub(crate) mod edit;
pub(crate) mod live;
mod locate;
pub(crate) mod mark;
pub(crate) mod opcua;
pub(crate) mod output;
pub(crate) mod privacy;
mod problem;
pub(crate) mod settings;
pub(crate) mod source;
pub(crate) mod suspend;
mod validate;

pub(crate) use clock::Clock;
pub(crate) use live::{LiveHistory, LiveInput, LiveSource, MqttSource, MqttTopics};
pub(crate) use mark::Mark;
pub(crate) use opcua::{OpcUaPast, OpcUaSecurity, OpcUaSource};
pub(crate) use privacy::{Alphabet, PrivacySettings, SendPolicy};
pub(crate) use problem::{Problem, SessionError};
pub(crate) use settings::{
    Decimation, Limits, Mode, ModelSettings, Proprietary, RecordSettings, ReplaySettings, Sampling,
    Span, Tau, Thresholds, Tier, Vote,
};
pub(crate) use source::{
    Attacks, Delimiter, Family, HaiSensors, HaiSource, PlantSource, PrintedPlant, Runs, Shape,
    Source, TableSource, TimeColumn, TimeFormat, TwinSource,
};

/// A RON file, understood and checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename = "Session")]
pub struct Session {
    /// Short name: the file's, without its ending.
    #[serde(skip)]
    pub(crate) name: String,
    /// The folder that a relative `data` path starts from.
    #[serde(skip)]
    pub(crate) folder: PathBuf,
    /// One line on what it is, shown by `headwater sessions`.
    pub(crate) about: String,
    pub(crate) source: Source,
    /// Who watches which columns. The built-in plants and HAI have clients of their own.
    #[serde(default)]
    pub(crate) clients: Vec<ClientSettings>,
    /// What is known about disturbances.
    #[serde(default)]
    pub(crate) labels: Labels,
    /// Which stretch of data is used for what.
    #[serde(default)]
    pub(crate) ranges: Ranges,
    #[serde(default)]
    pub(crate) sampling: Sampling,
    #[serde(default)]
    pub(crate) model: ModelSettings,
    #[serde(default)]
    pub(crate) mode: Mode,
    /// When a residual counts as anomalous.
    #[serde(default)]
    pub(crate) thresholds: Thresholds,
    /// Noise before anything leaves a client.
    #[serde(default)]
    pub(crate) privacy: PrivacySettings,
    /// How it is played.
    #[serde(default)]
    pub(crate) replay: ReplaySettings,
    /// What a recording of it holds.
    #[serde(default)]
    pub(crate) record: RecordSettings,
    /// How much preparing it may take.
    #[serde(default)]
    pub(crate) limits: Limits,
    /// Who gets facts besides the screen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) outputs: Vec<output::OutputSettings>,
    /// An address of this machine, such as "127.0.0.1:9464", that serves figures of a live session as
    /// Prometheus reads them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metrics: Option<String>,
    /// Start-up and maintenance: when alarms do not ask for attention.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) suspend: Vec<suspend::Suspension>,
    /// Influences that engineers know of, (from, to).
    #[serde(default)]
    pub(crate) edges: Vec<(String, String)>,
    /// Drives the built-in data and every drawn noise.
    #[serde(default = "one")]
    pub(crate) seed: u64,
    /// What the reader of the session should know: keys that have another name now.
    #[serde(skip)]
    pub(crate) notes: Vec<String>,
    /// Whether the seed was given on the command line: then noise is drawn from it,
    /// whatever the source.
    #[serde(skip)]
    pub(crate) seed_asked_for: bool,
}

fn one() -> u64 {
    1
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientSettings {
    /// Short name used in every verdict.
    pub(crate) name: String,
    /// What it is, in a word or two.
    #[serde(default)]
    pub(crate) title: String,
    /// Monitored columns: names, or patterns with `*` and `?`.
    pub(crate) columns: Vec<String>,
    /// Columns that a pattern above takes in but that are not wanted.
    #[serde(default)]
    pub(crate) except: Vec<String>,
    /// Set points and commands that the client's model may know; never monitored.
    #[serde(default)]
    pub(crate) inputs: Vec<String>,
}

/// What is known about disturbances in the data.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum Labels {
    /// What the source itself knows: the built-in plants and HAI know all; a table knows nothing.
    #[default]
    Source,
    /// A column of the table.
    Column {
        name: String,
        /// Values that mean "not known".
        #[serde(default)]
        unlabelled: Vec<f64>,
        /// The client a file's disturbance starts in, by pattern of the file name.
        #[serde(default)]
        origins: Vec<(String, String)>,
    },
    Events(Vec<EventSettings>),
    /// A table of events.
    EventFile {
        /// The file, beside the data.
        file: String,
        /// Header of the start column.
        #[serde(default = "start_column")]
        start: String,
        /// Header of the end column; the end is inclusive.
        #[serde(default = "end_column")]
        end: String,
        /// Header of the column that names the client (several joined by `+`).
        #[serde(default = "origin_column")]
        origin: String,
        /// Header of the column that names the event; numbered when absent.
        #[serde(default)]
        id: Option<String>,
    },
}

fn start_column() -> String {
    "start".into()
}

fn end_column() -> String {
    "end".into()
}

fn origin_column() -> String {
    "origin".into()
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventSettings {
    pub(crate) id: String,
    /// First instant, civil time of the data's clock.
    pub(crate) start: String,
    /// Last instant, inclusive.
    pub(crate) end: String,
    /// Clients it started in.
    #[serde(default)]
    pub(crate) origins: Vec<String>,
    /// What was done, in a few words.
    #[serde(default)]
    pub(crate) what: String,
}

/// Which stretch of data is used for what. They should not overlap.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Ranges {
    /// Normal operation that models and scaling are fitted to.
    pub(crate) fit: Stretch,
    /// Normal operation, not used for fitting, that thresholds are set on.
    pub(crate) calibration: Stretch,
    pub(crate) replay: Stretch,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Stretch {
    /// File names or patterns, in this order; the matches of a pattern in the order of their names.
    pub(crate) files: Vec<String>,
    pub(crate) from: Option<Mark>,
    /// Up to but without this.
    pub(crate) until: Option<Mark>,
}

/// A session that comes with the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shipped {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(Shipped { name: $name, text: include_str!(concat!("../sessions/", $name, ".ron")) }),*]
    };
}

/// All sessions that come with the program, the default one first.
pub(crate) const SHIPPED: &[Shipped] = shipped![
    "plant-attack-day",
    "plant-normal",
    "plant-live",
    "plant-live-mqtt",
    "plant-live-opcua",
    "plant-paper",
    "twin",
    "twin-8",
    "hai-23.05-aug-12",
    "hai-23.05-aug-12-paper",
    "hai-23.05-test2",
    "hai-22.04",
    "hai-21.03",
    "hai-21.03-fragments",
    "hai-20.07",
    "tep",
    "batadal",
    "causrca",
];

impl Session {
    /// Whether clients send how severe steps of a burst are: where the session asks for it and it is of use. A budget is kept for symbols.
    pub(crate) fn tells_severity(&self) -> bool {
        self.privacy.tell_severity
            && self.edges.is_empty()
            && self.thresholds.tier == Tier::Symbols
            && self.privacy.send == SendPolicy::EveryStep
            && self.privacy.budget.is_none()
    }

    /// Opens a session by path, or by the name of a shipped one.
    pub(crate) fn open(path_or_name: &str) -> Result<Self, SessionError> {
        let path = Path::new(path_or_name);
        if let Some(shipped) = SHIPPED.iter().find(|s| s.name == path_or_name) {
            return Self::parse(shipped.name, Path::new(""), shipped.text);
        }
        let text = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(source) => return Err(SessionError::unreadable(path_or_name, &source)),
        };
        let text = String::from_utf8(text).map_err(|e| {
            let sound = String::from_utf8_lossy(&e.as_bytes()[..e.utf8_error().valid_up_to()]);
            let line = 1 + sound.matches('\n').count();
            SessionError::not_text(path_or_name, line)
        })?;
        // Some editors put a byte-order mark in front.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        Self::parse(path_or_name, &folder, text)
    }

    /// Understands and checks the text of a session. `place` is shown in front of every complaint.
    pub(crate) fn parse(place: &str, folder: &Path, text: &str) -> Result<Self, SessionError> {
        let mut session: Session =
            dialect().from_str(text).map_err(|e| SessionError::from_ron(place, text, &e))?;
        session.name = Path::new(place)
            .file_name()
            .map(|n| n.to_string_lossy().trim_end_matches(".ron").to_owned())
            .unwrap_or_default();
        session.folder = folder.to_path_buf();
        session.notes = old_keys(place, text);
        session.divide_built_in_data();
        let problems = validate::problems(&session);
        if problems.is_empty() {
            Ok(session)
        } else {
            Err(SessionError::from_problems(place, text, problems))
        }
    }

    /// A session that another process of this program has written down, with every key in it.
    pub(crate) fn of_program(text: &str) -> Result<Self, String> {
        let session: Session = ron::from_str(text).map_err(|why| why.to_string())?;
        let problems = validate::problems(&session);
        if problems.is_empty() {
            Ok(session)
        } else {
            Err(SessionError::from_problems("session", text, problems).to_string())
        }
    }

    /// The built-in sources know how their data is best divided, when the session does not say.
    fn divide_built_in_data(&mut self) {
        if self.ranges != Ranges::default() {
            return;
        }
        let (fit_end, calibration_end) = match &self.source {
            Source::Plant(plant) if plant.history_h > 0.0 => {
                let history_s = (plant.history_h * 3600.0).floor();
                (Mark::After((history_s / 5.0).floor()), Mark::After(history_s))
            }
            Source::Twin(_) => (Mark::Step(4000), Mark::Step(6000)),
            _ => return,
        };
        self.ranges.fit.until = Some(fit_end);
        self.ranges.calibration.from = Some(fit_end);
        self.ranges.calibration.until = Some(calibration_end);
        self.ranges.replay.from = Some(calibration_end);
    }

    /// The folder that the session's files stand in; none for the built-in sources.
    pub(crate) fn data_folder(&self) -> Option<PathBuf> {
        let data = match &self.source {
            Source::Table(table) => &table.data,
            Source::Hai(hai) => &hai.data,
            Source::Live(live) => &live.table()?.data,
            Source::Plant(_) | Source::Twin(_) => return None,
        };
        Some(self.folder.join(data))
    }

    /// Whether its measurements are made by the program itself: there is nothing to protect.
    pub(crate) fn is_built_in(&self) -> bool {
        matches!(self.source, Source::Plant(_) | Source::Twin(_))
    }

    /// Whether noise is drawn from the seed, and so protects nothing.
    pub(crate) fn is_seeded(&self) -> bool {
        self.is_built_in() || self.seed_asked_for
    }

    pub(crate) fn live(&self) -> Option<&LiveSource> {
        match &self.source {
            Source::Live(live) => Some(live),
            Source::Plant(_) | Source::Twin(_) | Source::Table(_) | Source::Hai(_) => None,
        }
    }

    /// Whether its measurements come from standard input.
    pub(crate) fn reads_standard_input(&self) -> bool {
        self.live().is_some_and(|live| live.input == LiveInput::Stdin)
    }

    /// Takes its measurements from standard input.
    pub(crate) fn read_standard_input(&mut self) -> Result<(), String> {
        match &mut self.source {
            Source::Live(live) => live.input = LiveInput::Stdin,
            Source::Table(table) => {
                let mut live = LiveSource::of_table(table)?;
                live.grid_s = self.sampling.period_s.unwrap_or(live.grid_s);
                self.source = Source::Live(live);
                self.labels = Labels::Source;
                self.ranges.replay = Stretch::default();
            }
            Source::Plant(_) | Source::Twin(_) | Source::Hai(_) => {
                let name = &self.name;
                return Err(format!(
                    "{name} has no live rows: a session with `source: Live(…)` or `Table(…)` has"
                ));
            }
        }
        Ok(())
    }

    /// Draws everything from `seed`.
    pub(crate) fn set_seed(&mut self, seed: u64) {
        (self.seed, self.seed_asked_for) = (seed, true);
    }

    /// Reads its files from `folder` instead, or from the folder in it that bears the name of the
    /// session's own: the root of a clone of a data set holds one folder a release.
    pub(crate) fn find_data_in(&mut self, folder: &Path) {
        let own = match &self.source {
            Source::Table(table) => Path::new(&table.data).file_name(),
            Source::Hai(hai) => Path::new(&hai.data).file_name(),
            Source::Plant(_) | Source::Twin(_) | Source::Live(_) => None,
        };
        let inner = own.map(|own| folder.join(own)).filter(|inner| inner.is_dir());
        self.set_data_folder(inner.as_deref().unwrap_or(folder));
    }

    /// Reads its files from `folder` instead.
    pub(crate) fn set_data_folder(&mut self, folder: &Path) {
        let text = folder.to_string_lossy().into_owned();
        match &mut self.source {
            Source::Table(table) => table.data = text,
            Source::Hai(hai) => hai.data = text,
            Source::Live(LiveSource { history: LiveHistory::Table(table), .. }) => {
                table.data = text;
            }
            Source::Live(_) | Source::Plant(_) | Source::Twin(_) => return,
        }
        self.folder = PathBuf::new();
    }
}

/// Keys that had another name: (old, new).
const RENAMED: &[(&str, &str)] = &[("privacy.thrift", "send")];

/// A note for each key of the text that has another name now.
fn old_keys(place: &str, text: &str) -> Vec<String> {
    let note = |(old, new): &(&str, &str)| {
        let value = locate::find(text, old)?;
        let old = old.rsplit('.').next().unwrap_or(old);
        let at = locate::place(text, text[..value].rfind(old)?);
        Some(format!("{place}:{}:{}: `{old}` is now called `{new}`", at.line, at.column))
    };
    RENAMED.iter().filter_map(note).collect()
}

/// RON as people like to write it: `Some` may be left out, and so may a second pair of brackets.
fn dialect() -> ron::Options {
    use ron::extensions::Extensions;
    ron::Options::default()
        .with_default_extension(Extensions::IMPLICIT_SOME | Extensions::UNWRAP_VARIANT_NEWTYPES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_of_a_clone_leads_to_the_folder_of_the_release() {
        let root = tempfile::tempdir().expect("a folder for the test");
        let release = root.path().join("hai-23.05");
        let found = |folder: &Path| {
            let mut session = Session::open("hai-23.05-test2").expect("a shipped session");
            session.find_data_in(folder);
            session.data_folder()
        };
        assert_eq!(found(root.path()), Some(root.path().to_owned()), "there is no such folder yet");
        std::fs::create_dir(&release).expect("a folder can be made");
        assert_eq!(found(root.path()), Some(release.clone()));
        assert_eq!(found(&release), Some(release.clone()), "the folder itself is taken as it is");
    }

    #[test]
    fn sessions_named_after_the_paper_have_its_settings() {
        for name in ["hai-23.05-aug-12-paper", "plant-paper"] {
            let session = Session::open(name).expect("a shipped session");
            let model = &session.model;
            assert_eq!(session.ranges.fit.until, Some(Mark::Step(10_000)), "{name}");
            assert_eq!(session.sampling.decimate, Decimation::Every(1), "{name}");
            assert_eq!((model.augment_width, model.proprietary), (1, Proprietary::Paper));
            assert_eq!(model.federation, settings::Federation::Online { passes: 1 });
            assert!(model.step_size == settings::StepSize::Constant && model.repeated_sensors);
            let mut published = model.clone();
            published.federate_as_published();
            assert_eq!(published, *model, "{name}: the studies' settings are the same");
            assert_eq!((session.mode, session.thresholds.vote), (Mode::Paper, None));
        }
    }

    #[test]
    fn an_old_key_is_read_and_noted_with_its_place() {
        let read = |key: &str| {
            let text = format!(
                "Session(about: \"x\", source: Twin(),\n  privacy: (epsilon_flag: 2, {key}: Window(3)))"
            );
            Session::parse("old.ron", Path::new(""), &text).expect("a sound session")
        };
        let (old, new) = (read("thrift"), read("send"));
        assert_eq!(old.privacy.send, SendPolicy::Window(3));
        assert_eq!(old.privacy, new.privacy);
        assert_eq!(old.notes, ["old.ron:2:30: `thrift` is now called `send`"]);
        assert_eq!(new.notes, Vec::<String>::new());
    }

    #[test]
    fn a_list_of_known_keys_has_new_names_only() {
        let text = "Session(about: \"x\", source: Twin(), privacy: (sent: EveryStep))";
        let error = Session::parse("x.ron", Path::new(""), text).expect_err("no such key");
        let error = error.to_string();
        assert!(error.contains("did you mean `send`?") && !error.contains("thrift"), "{error}");
    }
}
