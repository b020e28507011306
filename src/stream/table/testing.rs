//! What tests of tables share.

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::TableStream;
use crate::session::source::missing_words;
use crate::session::{
    ClientSettings, Delimiter, Labels, Runs, Shape, TableSource, TimeColumn, TimeFormat,
};
use crate::stream::{Frame, Stream, StreamError};

/// A folder of files that goes away with the test.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn with(name: &str, content: impl AsRef<[u8]>) -> Self {
        let folder = Self::new();
        folder.write(name, content);
        folder
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path().join(name), content).expect("a writable folder");
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// `content`, compressed as one gzip member.
pub(crate) fn gz(content: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content.as_ref()).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}

/// A table with a column `t` of seconds.
pub(crate) fn source() -> TableSource {
    TableSource {
        data: String::new(),
        delimiter: Delimiter::Auto,
        time: TimeColumn {
            column: "t".into(),
            format: TimeFormat::Seconds { since: "1970-01-01 00:00".into() },
            utc_offset_h: 0.0,
        },
        shape: Shape::Wide,
        missing: missing_words(),
        runs: Runs::Joined,
        run_column: None,
        published: None,
    }
}

pub(crate) fn client(name: &str, columns: &[&str]) -> ClientSettings {
    ClientSettings {
        name: name.into(),
        title: String::new(),
        columns: columns.iter().map(ToString::to_string).collect(),
        except: Vec::new(),
        inputs: Vec::new(),
    }
}

/// Opens a table with one client that watches all.
pub(crate) fn open(
    source: &TableSource,
    folder: &Folder,
    files: &[&str],
    labels: &Labels,
) -> Result<TableStream, StreamError> {
    let files: Vec<String> = files.iter().map(ToString::to_string).collect();
    TableStream::open(source, folder.path(), &files, &[client("all", &["*"])], labels, None)
}

/// All frames of a stream and what ended it, if an error did.
pub(crate) fn drain(stream: &mut dyn Stream) -> (Vec<Frame>, Option<StreamError>) {
    let mut frame = Frame::for_layout(stream.layout());
    let mut frames = Vec::new();
    loop {
        match stream.next(&mut frame) {
            Ok(true) => frames.push(frame.clone()),
            Ok(false) => {
                assert!(matches!(stream.next(&mut frame), Ok(false)), "an end stays an end");
                return (frames, None);
            }
            Err(error) => {
                assert!(matches!(stream.next(&mut frame), Ok(false)), "after an error it is over");
                return (frames, Some(error));
            }
        }
    }
}

/// All frames of a stream that has no reason to fail.
pub(crate) fn frames(stream: &mut dyn Stream) -> Vec<Frame> {
    let (frames, error) = drain(stream);
    assert!(error.is_none(), "{}", error.map(|e| e.to_string()).unwrap_or_default());
    frames
}

/// Frames of one file `t.csv` with this content.
pub(crate) fn read(source: &TableSource, content: impl AsRef<[u8]>) -> (Vec<Frame>, String) {
    let folder = Folder::with("t.csv", content);
    let (frames, error) = match open(source, &folder, &["t.csv"], &Labels::Source) {
        Ok(mut stream) => drain(&mut stream),
        Err(error) => (Vec::new(), Some(error)),
    };
    let folder = format!("{}/", folder.path().display());
    (frames, error.map(|e| e.to_string().replace(&folder, "")).unwrap_or_default())
}

/// Seconds since the epoch of each frame.
pub(crate) fn seconds(frames: &[Frame]) -> Vec<f64> {
    frames.iter().map(|f| f.time.as_duration().as_secs_f64()).collect()
}

/// The values of each frame.
pub(crate) fn values(frames: &[Frame]) -> Vec<Vec<f64>> {
    frames.iter().map(|f| f.values.clone()).collect()
}
