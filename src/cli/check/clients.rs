//! Whether every client has a sensor that its model can watch: without one a run cannot begin.

use color_eyre::eyre::{Result, bail};

use crate::engine::prepare::{self, Unmodelled};
use crate::session::{Decimation, Session, Source};
use crate::stream::extent::extent;

/// Bytes of nominal data that are read even where the whole is not asked for: it takes a second or two.
const SMALL: f64 = 50e6;
/// Bytes of a value, about.
const VALUE: f64 = 8.0;

/// A client that has no sensor for its model is an error.
pub(super) fn refuse_blind(clients: &[Unmodelled]) -> Result<()> {
    if let Some(blind) = clients.iter().find(|client| client.sensors == 0) {
        bail!(
            "{}: none of its columns moves in the fit range, so that no model can watch it; give \
             it a column that moves, or leave the client out",
            blind.client
        );
    }
    Ok(())
}

/// Looks for a client without a sensor where that takes a moment. Otherwise, why nobody looked.
pub(super) fn look(session: &Session) -> Result<Option<String>> {
    match session.source {
        // Every sensor of the synthetic plant moves, and drawing it takes long.
        Source::Twin(_) => return Ok(None),
        Source::Plant(_) => {}
        Source::Table(_) | Source::Hai(_) | Source::Live(_) => {
            let extent = extent(session)?;
            let columns: usize = extent.sensors.iter().sum();
            let rows = extent.fit_rows + extent.calibration_rows;
            if rows * columns as f64 * VALUE > SMALL {
                return Ok(Some("the nominal data is large".to_owned()));
            }
        }
    }
    let mut session = session.clone();
    // A block mean moves where its column does, and finding its length takes longer than reading.
    if session.sampling.decimate == Decimation::Auto {
        session.sampling.decimate = Decimation::Every(1);
    }
    match prepare::unmodelled(&session) {
        Ok(clients) => refuse_blind(&clients).map(|()| None),
        Err(why) => Ok(Some(why.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Two clients in a table of 400 rows; the first column of the second is `b`.
    fn looked(b: impl Fn(usize) -> f64) -> Result<Option<String>> {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let row = |t: usize| {
            let wave = |period: f64| (t as f64 / period).sin();
            format!("{t},{:.3},{:.3},{}\n", wave(7.0), wave(11.0), b(t))
        };
        let rows: String = (0..400).map(row).collect();
        std::fs::write(folder.path().join("data.csv"), format!("t,a1,a2,b\n{rows}"))
            .expect("written");
        let text = format!(
            "Session(about: \"x\", source: Table(data: {:?}, time: (column: \"t\", format: \
             Seconds(since: \"2000-01-01 00:00:00\"))), clients: [(name: \"A\", columns: \
             [\"a1\", \"a2\"]), (name: \"B\", columns: [\"b\"])], ranges: (fit: (files: \
             [\"data.csv\"], until: \"+200s\"), calibration: (files: [\"data.csv\"], from: \
             \"+200s\", until: \"+300s\"), replay: (files: [\"data.csv\"], from: \"+300s\")))",
            folder.path().to_string_lossy()
        );
        let session = Session::parse("x", Path::new(""), &text).expect("a sound session");
        look(&session)
    }

    #[test]
    fn a_client_without_a_sensor_that_moves_is_an_error_of_a_plain_check() {
        let why = looked(|_| 7.0).expect_err("it stands still").to_string();
        assert!(why.starts_with("B: none of its columns moves in the fit range"), "{why}");
        assert_eq!(looked(|t| (t as f64 / 5.0).cos()).expect("it moves"), None);
    }
}
