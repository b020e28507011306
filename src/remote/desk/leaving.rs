//! Sites that leave for good while a run goes on, and come back.

use super::super::envelope::Down;
use super::Desk;

/// What it means that a site has left.
pub(in crate::remote) const WITHOUT: &str = "has left: its own faults are not seen, and it is no root and explains nobody; the others keep their \
     models and their calibration";

impl Desk {
    /// A site leaves for good: from the present step on nobody waits for it.
    pub(super) fn lets_go(&mut self, client: usize) {
        if self.inquires || self.next == 0 || self.joining.is_absent(client) {
            let why =
                "nobody can leave before all have enrolled: take the client out of the session";
            return self.tell(client, &Down::Refused { why: why.to_owned() });
        }
        if !self.gone[client] {
            (self.left[client], self.gone[client]) = (true, true);
            self.note(|journal| journal.note_gone(client, true));
            self.tell_all(client, WITHOUT);
        }
        self.tell(client, &Down::Stop);
    }

    /// A site that had left is there again, with the models of the run.
    pub(super) fn takes_back(&mut self, client: usize) {
        (self.left[client], self.gone[client]) = (false, false);
        self.note(|journal| journal.note_gone(client, false));
        self.tell_all(
            client,
            "has returned: it is heard from the present step on; no client is calibrated again",
        );
        self.tell(client, &Down::Models);
    }

    /// Says something of a site to people and in facts.
    pub(in crate::remote) fn tell_all(&mut self, client: usize, what: &str) {
        self.notes.push((client, what.to_owned()));
        let words = format!("{} {what}", self.accounts[client].name);
        self.say(&words);
    }
}
