//! The studies by name, in the order in which `all` runs them.

mod convergence;
mod correlation;
mod detection;
mod plant;
mod privacy;
mod recorded;
mod residuals;
mod scalability;
mod threshold;
mod watched;

use super::frame::Study;

/// Every study there is.
pub(crate) fn all() -> Vec<&'static dyn Study> {
    vec![
        &detection::Detection,
        &scalability::Scalability,
        &threshold::Threshold,
        &privacy::Privacy,
        &convergence::Convergence,
        &correlation::Correlation,
        &residuals::Residuals,
        &plant::PlantDay,
        &recorded::HAI,
        &recorded::TEP,
        &recorded::BATADAL,
    ]
}

/// The study of this name.
pub(crate) fn find(name: &str) -> Option<&'static dyn Study> {
    all().into_iter().find(|study| study.name() == name)
}

/// The name that was probably meant.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    let names = all().into_iter().map(Study::name).chain(["all"]);
    let near = names.map(|known| (strsim::damerau_levenshtein(name, known), known));
    near.min().filter(|(distance, known)| *distance <= known.len() / 2).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn studies_have_names_of_their_own_and_are_found_by_them() {
        for (i, study) in all().into_iter().enumerate() {
            let name = study.name();
            assert_eq!(all().iter().position(|other| other.name() == name), Some(i));
            assert_eq!(find(name).map(Study::about), Some(study.about()));
            assert!(name != "all" && !study.about().is_empty());
        }
        assert!(find("all").is_none() && find("").is_none());
    }

    #[test]
    fn the_nearest_name_is_offered_and_nothing_far_away() {
        assert_eq!(nearest("detecton"), Some("detection"));
        assert_eq!(nearest("treshold"), Some("threshold"));
        assert_eq!(nearest("al"), Some("all"));
        assert_eq!(nearest("zzzzzzzz"), None);
    }
}
