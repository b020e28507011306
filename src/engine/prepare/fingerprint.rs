//! What a preparation depends on: sessions with one fingerprint have the same models.

use std::path::Path;

use serde::Serialize;

use crate::engine::error::PrepareError;
use crate::nn::checkpoint::{Fingerprint, Hasher};
use crate::privacy::Provenance;
use crate::session::{LiveHistory, LiveInput, Session, Source, Tier};
use crate::stream::Part;
use crate::stream::live::kept;
use crate::stream::resolution::Grids;

/// What a preparation consists of: one that lacks something is made anew.
const CONTENT: &str = "models, federation, calibration, influence, memory, correlation, sites, unused rows, moved clocks, \
     values, standing states, stretches, settling, chosen lags, whitening on both ranges where \
     rows are few";

/// `value` as JSON. An empty text instead of an error would give all sessions one fingerprint.
pub(super) fn json(what: &'static str, value: &impl Serialize) -> Result<String, PrepareError> {
    serde_json::to_string(value).map_err(|source| PrepareError::Json { what, source })
}

/// What a preparation depends on: the parts of the session that shape it, and its nominal data.
///
/// Neither the session's name nor the place of its file counts, nor words that are only shown. Data
/// counts by its folder, wherever the session is read from, and by the name, size and time of change of
/// its files: reading them through would take longer than most preparations.
pub(crate) fn fingerprint(session: &Session) -> Result<Fingerprint, PrepareError> {
    let mut hasher = Hasher::new();
    hasher.text(env!("CARGO_PKG_VERSION"));
    hasher.text(CONTENT);
    let clients: Vec<_> =
        session.clients.iter().map(|c| (&c.name, &c.columns, &c.except, &c.inputs)).collect();
    let parts = (
        without_place(&session.source),
        clients,
        (&session.ranges.fit, &session.ranges.calibration),
        &session.sampling,
        &session.model,
        noise_of_training(session),
        session.seed,
    );
    hasher.text(&json("the session", &parts)?);
    if session.thresholds.tier == Tier::States {
        hasher.text("tier 2");
    }
    if let Some(kept) = session.live().and_then(|_| kept::complete(session)) {
        hasher.text(&kept.digest);
    }
    if let Some(folder) = session.data_folder() {
        let place = std::fs::canonicalize(&folder).unwrap_or_else(|_| folder.clone());
        hasher.text(&place.to_string_lossy());
        for part in [Part::Fit, Part::Calibration] {
            for file in data_files(&folder, &part.stretch(session).files) {
                hasher.text(&file);
            }
        }
        // Nominal data is rounded to what live data can show. Where the data cannot be read there
        // is nothing prepared that could be found under this name.
        for step in Grids::of(session).unwrap_or_default().steps() {
            hasher.text(&step.to_string());
        }
    }
    Ok(hasher.finish())
}

/// A source without the path of its data, which may be written in many ways, and without the address
/// at which the data is published.
fn without_place(source: &Source) -> Source {
    let mut source = source.clone();
    match &mut source {
        Source::Table(table) => (table.data, table.published) = (String::new(), None),
        Source::Hai(hai) => hai.data = String::new(),
        // How rows arrive has no part in what is learned from them.
        Source::Live(live) => {
            live.input = LiveInput::Stdin;
            if let LiveHistory::Table(table) = &mut live.history {
                (table.data, table.published) = (String::new(), None);
            }
        }
        Source::Plant(_) | Source::Twin(_) => {}
    }
    source
}

/// The part of the privacy settings that shapes models. Models that were trained with noise from a
/// seed are not those of a run that wants it from the operating system.
fn noise_of_training(session: &Session) -> impl Serialize {
    let p = &session.privacy;
    let epsilons = [p.epsilon_c, p.epsilon_a, p.epsilon_g];
    let noised = epsilons.iter().any(Option::is_some);
    noised.then(|| {
        let bounds = (p.delta, p.clip_state, p.clip_gradient);
        (epsilons, bounds, p.sigma, Provenance::of(session).label())
    })
}

/// Name, size and time of change of the files that patterns mean.
fn data_files(folder: &Path, patterns: &[String]) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let wanted = |p: &String| crate::stream::columns::glob(p, &name);
            let known = entry.metadata().ok().filter(|_| patterns.iter().any(wanted))?;
            Some(format!("{name} {} {:?}", known.len(), known.modified().ok()))
        })
        .collect();
    files.sort();
    files
}
