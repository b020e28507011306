//! A console that shows the same as another: two days are looked at under one cursor.

use jiff::Timestamp;

use super::{Model, Screen};

impl Model {
    /// The first and the last instant of its data.
    pub(crate) fn span(&self) -> Option<(Timestamp, Timestamp)> {
        self.known()
    }

    /// Shows what `leader` shows, at `moment` of its own time.
    pub(crate) fn follow_view(&mut self, leader: &Model, moment: Option<Timestamp>) {
        self.screen = match leader.screen {
            // Numbers of incidents are of one run.
            Screen::Incident(_) => match moment.and_then(|moment| self.incident_near(moment)) {
                Some(number) => Screen::Incident(number),
                None => Screen::Overview,
            },
            same @ (Screen::Overview
            | Screen::Client
            | Screen::Influence
            | Screen::Training
            | Screen::Privacy
            | Screen::Log
            | Screen::Sessions) => same,
        };
        self.scroll = leader.scroll;
        self.zoom = leader.zoom;
        self.sorting = leader.sorting;
        self.chosen = leader.chosen.min(self.names.len().saturating_sub(1));
        (self.truth_shown, self.prose) = (leader.truth_shown, leader.prose);
        self.theme = leader.theme;
        self.incident = moment.and_then(|moment| self.incident_near(moment));
        match (leader.look, moment) {
            (Some(_), Some(moment)) => self.look_at(moment),
            _ => self.follow(),
        }
    }

    /// The incident whose beginning is nearest to a moment.
    fn incident_near(&self, moment: Timestamp) -> Option<u64> {
        let incidents = self.watched.as_ref()?.incidents.iter();
        let nearest = incidents.min_by_key(|i| i.onset.duration_since(moment).abs());
        nearest.map(|incident| incident.number)
    }
}
