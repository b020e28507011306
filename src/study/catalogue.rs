//! The studies by name, in the order in which `all` runs them.

mod acceptance;
mod calibration;
mod convergence;
mod correlation;
mod detection;
mod deviations;
mod graph;
mod plant;
mod privacy;
mod recorded;
mod residuals;
mod scalability;
mod splices;
mod sudden;
mod threshold;
mod watched;

use super::frame::Study;
use crate::base::suggest;

/// Every study.
pub(crate) const ALL: [&Study; 18] = [
    &detection::STUDY,
    &scalability::STUDY,
    &threshold::STUDY,
    &privacy::STUDY,
    &convergence::STUDY,
    &correlation::STUDY,
    &residuals::STUDY,
    &graph::STUDY,
    &deviations::STUDY,
    &plant::STUDY,
    &recorded::HAI,
    &recorded::TEP,
    &recorded::BATADAL,
    &splices::STUDY,
    &sudden::STUDY,
    &calibration::STUDY,
    &acceptance::OUTSIDE,
    &acceptance::ACCEPTANCE,
];

impl Study {
    /// Whether it measures again what the others measure, or for long: `all` leaves it out.
    pub(crate) fn repeats(&self) -> bool {
        let long = [splices::STUDY.name, sudden::STUDY.name, calibration::STUDY.name];
        let again = [acceptance::OUTSIDE.name, acceptance::ACCEPTANCE.name];
        long.contains(&self.name) || again.contains(&self.name)
    }
}

pub(crate) fn find(name: &str) -> Option<&'static Study> {
    ALL.into_iter().find(|study| study.name == name)
}

/// The name that was probably meant.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    let others = ["all", super::overview::NAME];
    suggest::nearest(name, ALL.into_iter().map(|study| study.name).chain(others))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn studies_have_names_of_their_own_and_are_found_by_them() {
        for (i, study) in ALL.into_iter().enumerate() {
            let name = study.name;
            assert_eq!(ALL.iter().position(|other| other.name == name), Some(i));
            assert_eq!(find(name).map(|found| found.about), Some(study.about));
            assert!(name != "all" && !study.about.is_empty());
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
