//! The studies by name, in the order in which `all` runs them.

mod detection;
mod plant;
mod recorded;
mod threshold;
mod watched;

use super::frame::Study;

/// Every study there is.
#[must_use]
pub fn all() -> Vec<&'static dyn Study> {
    vec![
        &detection::Detection,
        &threshold::Threshold,
        &plant::Plant,
        &recorded::HAI,
        &recorded::TEP,
        &recorded::BATADAL,
    ]
}

/// The study of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Study> {
    all().into_iter().find(|study| study.name() == name)
}

/// The name that was probably meant.
#[must_use]
pub fn nearest(name: &str) -> Option<&'static str> {
    let names = all().into_iter().map(Study::name).chain(["all"]);
    let near = names.map(|known| (strsim::damerau_levenshtein(name, known), known));
    near.min().filter(|(distance, known)| *distance <= known.len() / 2).map(|(_, known)| known)
}
