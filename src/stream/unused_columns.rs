//! Columns of a session's data that no client watches or knows.
//!
//! Commands and set points are the ones to look for: a command that is watched, and a set point that
//! is known, turn a forged one into a surprise at the process that it hits.

use super::columns::glob;
use super::hai::{Version, tags};
use super::table::files;
use super::table::header::Header as _;
use super::table::rows::Rows;
use super::{Layout, StreamError, plant};
use crate::session::{Labels, Session, Shape, Source};

/// What an unused column is, where that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    /// A controller's output to a valve or a pump.
    Command,
    /// The set point of a controller.
    SetPoint,
    /// The data does not say.
    Unknown,
}

/// Whether the name of a column says that it labels rows as disturbed.
pub(crate) fn is_label(name: &str) -> bool {
    let name = name.to_lowercase();
    ["attack", "att_flag", "label", "fault", "anomal", "normal/"].iter().any(|w| name.contains(w))
}

/// The columns that no client uses and that may be commands or set points, in the order of the data. Of
/// data whose tags are described, other columns are left out.
pub(crate) fn unused_columns(
    session: &Session,
    layout: &Layout,
) -> Result<Vec<(String, ColumnKind)>, StreamError> {
    let all: Vec<(String, ColumnKind)> = match &session.source {
        Source::Plant(_) => plant::header().into_iter().filter_map(|s| known(s.name)).collect(),
        Source::Hai(hai) => Version::named(&hai.version)
            .into_iter()
            .flat_map(tags::tags)
            .filter_map(|tag| known(tag.name.to_owned()))
            .collect(),
        Source::Table(table) if table.shape == Shape::Wide => {
            let folder = session.data_folder().unwrap_or_default();
            let found = files::find(&folder, &session.ranges.fit.files, None)?;
            let Some(file) = found.first() else { return Ok(Vec::new()) };
            let rows = Rows::open(file, table.delimiter)?;
            let label = match &session.labels {
                Labels::Column { name, .. } => Some(name),
                Labels::Source | Labels::Events(_) | Labels::EventFile { .. } => None,
            };
            let is_other = |name: &&String| {
                **name != table.time.column
                    && Some(*name) != table.run_column.as_ref()
                    && Some(*name) != label
                    && !is_label(name)
            };
            let unknown = |name: &String| (name.clone(), ColumnKind::Unknown);
            rows.names().iter().filter(is_other).map(unknown).collect()
        }
        Source::Table(_) | Source::Twin(_) | Source::Live(_) => Vec::new(),
    };
    let is_used = |name: &str| {
        let mut columns = layout.clients.iter().flat_map(|c| c.sensors.iter().chain(&c.inputs));
        columns.any(|sensor| sensor.name == name)
    };
    // What an author leaves out by name is not overlooked.
    let is_excepted = |name: &str| {
        let mut patterns = session.clients.iter().flat_map(|client| &client.except);
        patterns.any(|pattern| glob(pattern, name))
    };
    let is_unused = |(name, _): &(String, ColumnKind)| !is_used(name) && !is_excepted(name);
    Ok(all.into_iter().filter(is_unused).collect())
}

/// A command or a set point of the testbed's three processes.
fn known(name: String) -> Option<(String, ColumnKind)> {
    let tag = tags::tag(&name).filter(|tag| tag.process != "P4")?;
    let kind = match tag.kind {
        "cmd" => ColumnKind::Command,
        "sp" => ColumnKind::SetPoint,
        _ => return None,
    };
    Some((name, kind))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::stream::{self, Part};

    fn unused(text: &str) -> Vec<(String, ColumnKind)> {
        let session = Session::parse("x", Path::new(""), text).expect("a sound session");
        let stream = stream::open(&session, Part::Fit).expect("a built-in plant");
        unused_columns(&session, stream.layout()).expect("a header")
    }

    #[test]
    fn commands_and_set_points_of_the_plant_are_unused_until_a_client_names_them() {
        let plain = unused("Session(about: \"x\", source: Plant())");
        let has =
            |of: &[(String, ColumnKind)], name: &str, kind| of.contains(&(name.to_owned(), kind));
        assert!(has(&plain, "P1_PCV01D", ColumnKind::Command));
        assert!(has(&plain, "P1_B2016", ColumnKind::SetPoint));
        assert!(!plain.iter().any(|(name, _)| name == "P1_PIT01" || name.starts_with("P4")));
        let shipped = Session::open("plant-attack-day").expect("a shipped session");
        let stream = stream::open(&shipped, Part::Fit).expect("a built-in plant");
        let left = unused_columns(&shipped, stream.layout()).expect("a header");
        assert!(!has(&left, "P1_PCV01D", ColumnKind::Command));
        assert!(!has(&left, "P1_B2016", ColumnKind::SetPoint));
        assert!(left.len() < plain.len());
    }

    #[test]
    fn columns_of_a_table_that_nobody_names_are_unused_and_its_own_columns_are_not() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let row = |t: u32| format!("{t},1,2,3,0,0\n");
        let rows: String = (0..40).map(row).collect();
        // A label that the session does not use is still no measurement.
        let text = format!("t,a,b,valve,flag,ATT_FLAG\n{rows}");
        std::fs::write(folder.path().join("data.csv"), text).expect("written");
        let text = format!(
            "Session(about: \"x\", source: Table(data: {:?}, time: (column: \"t\", format: \
             Seconds(since: \"2000-01-01 00:00:00\"))), clients: [(name: \"A\", columns: [\"a\"]), \
             (name: \"B\", columns: [\"b\"])], labels: Column(name: \"flag\"), ranges: (\
             fit: (files: [\"data.csv\"], until: \"+9s\"), calibration: (files: [\"data.csv\"], \
             from: \"+9s\", until: \"+20s\"), replay: (files: [\"data.csv\"], from: \"+20s\")))",
            folder.path().to_string_lossy()
        );
        assert_eq!(unused(&text), [("valve".to_owned(), ColumnKind::Unknown)]);
    }
}
