//! The HAI data set (a boiler, a turbine and a water treatment joined by a simulated grid), in any
//! of its four releases.
//!
//! Columns go by the names of manual v4.0 whatever a release calls them, so that a session fits all
//! of them. Labels come from wherever the release keeps them: columns of the data, a file beside
//! it, or, when a piece of data has lost them, the list of attacks. Times are Korean civil time
//! taken as UTC, as they are written: every list of attacks uses the same clock.

use std::path::Path;

use super::table::clock::Clock;
use super::table::clocks::Clocks;
use super::table::files;
use super::table::header::{FlagColumn, Wanted};
use super::table::labels::during;
use super::table::number::Numbers;
use super::table::wide::{Plan, Wide};
use super::{Event, Frame, Label, Layout, Stream, StreamError};
use crate::session::source::missing_words;
use crate::session::{ClientSettings, Delimiter, HaiSource, Runs};

pub(crate) mod attacks;
mod known;
mod label_file;
pub(crate) mod tags;
#[cfg(test)]
mod tests;

use known::Known;
use label_file::LabelFile;
pub(crate) use tags::Version;

/// Where the data set can be had.
pub(crate) const PUBLISHED: &str = "https://github.com/icsdataset/hai";

/// Label columns of the releases that have them: of the whole, and of each process.
const FLAGS: [&[&str]; 4] = [&["attack", "Attack"], &["attack_P1"], &["attack_P2"], &["attack_P3"]];

/// The frames of a HAI release.
pub(crate) struct HaiStream {
    wide: Wide,
    known: Known,
    /// For each file, where its labels are when they are not in its columns.
    elsewhere: Vec<Elsewhere>,
    /// The file of labels that goes with the file of this number.
    labels: Option<(usize, LabelFile)>,
    over: bool,
}

/// Labels that are not in the data's own columns.
enum Elsewhere {
    /// In a file that goes with the data row by row.
    File(std::path::PathBuf),
    /// Normal operation, by the manual.
    Training,
    /// In the list of attacks, partly to the minute only.
    List,
    Nowhere,
}

impl HaiStream {
    /// Opens `files` (names or patterns, in this order; `.gz` or not) of `folder`.
    ///
    /// Without `clients` the processes P1, P2 and P3 are the clients. Files are joined in time:
    /// some go on without a gap where another ends.
    pub(crate) fn open(
        source: &HaiSource,
        folder: &Path,
        files: &[String],
        clients: &[ClientSettings],
    ) -> Result<Self, StreamError> {
        let version = Version::named(&source.version).ok_or_else(|| {
            let names = Version::ALL.map(Version::name).join(", ");
            let found = &source.version;
            StreamError::Setting(format!("expected a HAI release of {names}, found {found:?}"))
        })?;
        let mut files = files::find(folder, files, Some(PUBLISHED))?;
        // A pattern such as `*test*` takes in files of labels, which are read beside the data.
        files.retain(|file| !files::stem(file).starts_with("label-"));
        if files.is_empty() {
            let what = "only files of labels are named: name files of measurements";
            return Err(StreamError::Setting(what.into()));
        }
        let stems: Vec<String> = files.iter().map(|file| files::stem(file)).collect();
        let elsewhere = files.iter().zip(&stems).map(|(f, s)| Elsewhere::of(version, f, s));
        let elsewhere = elsewhere.collect::<Result<Vec<_>, _>>()?;
        let defaults;
        let clients = if clients.is_empty() {
            defaults = tags::clients(version, source.sensors);
            &defaults
        } else {
            clients
        };
        let plan = Plan {
            files,
            delimiter: Delimiter::Auto,
            numbers: Numbers::new(&missing_words()),
            clocks: Clocks::same(Clock::utc()),
            long: None,
            runs: Runs::Joined,
            wanted: Wanted {
                time: ["time", "timestamp"].map(String::from).to_vec(),
                time_needed: true,
                run: None,
                flags: FLAGS
                    .map(|names| FlagColumn {
                        names: names.iter().map(ToString::to_string).collect(),
                        needed: false,
                    })
                    .into(),
                naming: Box::new(move |header| tags::sensor(header, version)),
            },
        };
        let wide = Wide::open(plan, clients, None)?;
        let known = Known::new(version, &stems, wide.layout());
        Ok(Self { wide, known, elsewhere, labels: None, over: false })
    }

    fn find_frame(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        let more = self.wide.next(frame)?;
        self.compare_rows()?;
        if more {
            frame.label = self.label(frame)?;
        }
        Ok(more)
    }

    fn label(&mut self, frame: &Frame) -> Result<Label, StreamError> {
        let file = self.wide.finished().len();
        let flags = self.wide.flags();
        let anomalous = match &self.elsewhere[file] {
            _ if flags.iter().any(Option::is_some) => is_labelled(flags),
            Elsewhere::Training => Some(false),
            Elsewhere::Nowhere => None,
            Elsewhere::List => return Ok(during(self.known.events(), frame.time)),
            Elsewhere::File(path) => {
                let labels = match &mut self.labels {
                    Some((of, labels)) if *of == file => labels,
                    other => &mut other.insert((file, LabelFile::open(path)?)).1,
                };
                match labels.flag(self.wide.row())? {
                    Some(flag) => (!flag.is_nan()).then_some(flag != 0.0),
                    None => return Err(self.too_few_labels(file)?),
                }
            }
        };
        Ok(self.known.label(frame.time, frame.continuity, anomalous))
    }

    /// Once a file is over, its labels must be over too.
    fn compare_rows(&mut self) -> Result<(), StreamError> {
        let Some((file, labels)) = &mut self.labels else { return Ok(()) };
        let Some(&data_rows) = self.wide.finished().get(*file) else { return Ok(()) };
        let label_rows = labels.count_rows()?;
        if label_rows == data_rows {
            self.labels = None;
            return Ok(());
        }
        let labels = labels.path().to_path_buf();
        let data = self.wide.path(*file).to_path_buf();
        Err(StreamError::LabelRows { labels, label_rows, data, data_rows })
    }

    fn too_few_labels(&mut self, file: usize) -> Result<StreamError, StreamError> {
        let data_rows = self.wide.count_rows()?;
        let data = self.wide.path(file).to_path_buf();
        let (labels, label_rows) = match &mut self.labels {
            Some((_, labels)) => (labels.path().to_path_buf(), labels.count_rows()?),
            None => (data.clone(), 0),
        };
        Ok(StreamError::LabelRows { labels, label_rows, data, data_rows })
    }
}

impl Stream for HaiStream {
    fn layout(&self) -> &Layout {
        self.wide.layout()
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        if self.over {
            frame.notes.clear();
            return Ok(false);
        }
        let answer = self.find_frame(frame);
        self.over = !matches!(answer, Ok(true));
        answer
    }

    fn events(&self) -> &[Event] {
        self.known.events()
    }
}

impl Elsewhere {
    /// Where the labels of a file are when its columns have none. A file of labels is opened to
    /// see its header.
    fn of(version: Version, file: &Path, stem: &str) -> Result<Self, StreamError> {
        if let Some(path) = LabelFile::beside(file) {
            LabelFile::open(&path)?;
            return Ok(Self::File(path));
        }
        let stem_is_of = |prefix: &str| {
            stem.strip_prefix(prefix)
                .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        };
        Ok(if stem_is_of("train") || stem_is_of("hai-train") {
            Self::Training
        } else if attacks::attacks(version).any(|attack| attack.file == stem) {
            Self::List
        } else {
            Self::Nowhere
        })
    }
}

/// What label columns say; `None` when their cells are empty. A row is anomalous when one of them
/// says so: in one file of 21.03 the whole is flagged where no process is.
fn is_labelled(flags: &[Option<f64>]) -> Option<bool> {
    let mut values = flags.iter().flatten().filter(|flag| !flag.is_nan()).peekable();
    values.peek()?;
    Some(values.any(|flag| *flag != 0.0))
}

/// The cells of a shipped table, without its header. None of its cells holds a comma or a quote.
fn lines<const N: usize>(text: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    text.lines().skip(1).map(|line| {
        let mut cells = line.split(',');
        let row = std::array::from_fn(|_| cells.next().expect("a shipped table is not ragged"));
        assert!(cells.next().is_none(), "a shipped table is not ragged");
        row
    })
}
