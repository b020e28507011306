//! An incident between its episodes: it stands until everybody who took part has recovered.

use super::{Change, Closing, Disturbance, Inference, Open};

/// An incident whose last episode has ended.
#[derive(Debug, Clone)]
pub(super) struct Stands {
    pub(crate) incident: Disturbance,
    pub(crate) said: bool,
    /// The step of its alarm. It may be shown later.
    pub(super) alarmed: u64,
    closing: Closing,
    /// The step at which that episode ended.
    since: u64,
}

impl Inference {
    /// An episode has ended: its incident stands, unless everybody has recovered already.
    pub(super) fn begin_to_stand(&mut self, open: Open, closing: Closing) {
        let Open { mut incident, said, alarmed, .. } = open;
        incident.stands = Some(closing);
        if said {
            self.changes.push(Change::Ended(incident.clone(), closing));
        }
        self.stands = Some(Stands { incident, said, alarmed, closing, since: self.step });
    }

    /// Closes what stands once everybody who took part has recovered.
    pub(super) fn stand(&mut self) {
        let Some(stands) = &self.stands else { return };
        let has_recovered = |m: usize| self.has_recovered(m, stands);
        let may_close = !self.outlasts(stands) && stands.incident.taking_part().all(has_recovered);
        if may_close {
            self.end_standing();
        }
    }

    /// What stands is over without a word: an operator has accepted it.
    pub(crate) fn stop_standing(&mut self) {
        self.stands = None;
    }

    /// What stands is over.
    pub(super) fn end_standing(&mut self) {
        if let Some(Stands { mut incident, closing, said, .. }) = self.stands.take()
            && said
        {
            incident.stands = None;
            self.changes.push(Change::Closed(incident, closing));
        }
    }

    /// What stands and is continued by an episode that `client` opens. What is not continued closes.
    ///
    /// A member that lies on no loop is judged by what it was before its new evidence began. If it had
    /// recovered, what it shows now is new, unless a member that reaches it has not recovered: what is
    /// left at those that it reaches itself explains nothing.
    pub(super) fn continued(&mut self, client: usize) -> Option<Stands> {
        let stands = self.stands.as_ref()?;
        let outlasts = self.outlasts(stands);
        let is_anew = !outlasts
            && !self.reach.may_return(client)
            && stands.incident.taking_part().any(|m| m == client)
            && self.clients[client].had_recovered;
        let is_disturbed = |m: usize| outlasts || !self.has_recovered(m, stands);
        let is_related = |m: usize| {
            self.reach.reaches(m, client)
                || (!is_anew && (m == client || self.reach.reaches(client, m)))
        };
        let is_continued = stands.incident.taking_part().any(|m| is_disturbed(m) && is_related(m));
        if !is_continued {
            self.end_standing();
        }
        self.stands.take()
    }

    /// Whether it stands whatever its members do: a change that stays was taken as normal by them.
    fn outlasts(&self, stands: &Stands) -> bool {
        stands.closing == Closing::PersistentChange && self.stands_early(stands)
    }

    fn stands_early(&self, stands: &Stands) -> bool {
        self.step < stands.since + self.rules.standing
    }

    /// Whether a client shows nothing of what it took part in, or nothing at all. Of one that is not
    /// believed nobody knows; it is waited for as long as for a change that stays.
    fn has_recovered(&self, client: usize, stands: &Stands) -> bool {
        let client = &self.clients[client];
        if !client.is_heard() {
            return !self.stands_early(stands);
        }
        client.recovered > self.rules.recovery || client.silent >= client.patience(&self.rules)
    }
}
