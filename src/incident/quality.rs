//! Faults of data: reported when they begin and when they end.

use jiff::Timestamp;

use super::annunciator::Annunciator;
use super::event::{Event, What};
use super::group::SensorTrouble;
use super::input::{QualityKind, QualityNote};
use crate::fact::Fact;

/// Why a note stands in the log that is not about data or messages.
const OUTSIDE: &str = "outside";

impl Event {
    /// The words of a note about something that is neither in data nor in messages.
    pub(crate) fn outside_note(&self) -> Option<&str> {
        let What::Noted { client: None, text } = &self.what else { return None };
        (self.why.as_deref() == Some(OUTSIDE)).then_some(text)
    }
}

/// Something that is wrong with data, and when that was last seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Trouble {
    pub(super) note: QualityNote,
    seen: Timestamp,
}

impl Annunciator {
    /// A line when something goes wrong and one when it is well again, however long it lasts. Of a
    /// sensor that is believed only when it has been well for a while.
    pub(super) fn notice_quality(&mut self, notes: &[QualityNote]) {
        let like =
            |a: &QualityNote, b: &QualityNote| a.client == b.client && a.what.is_like(b.what);
        let known = |note: &&QualityNote| note.client.is_none_or(|c| c < self.posts.len());
        if notes.is_empty() && self.quality.is_empty() {
            return;
        }
        let mut present: Vec<Trouble> = Vec::new();
        for note in notes.iter().filter(known) {
            if !present.iter().any(|other| like(&other.note, note)) {
                let note = QualityNote { client: note.client, what: note.what.tidy() };
                present.push(Trouble { note, seen: self.now });
            }
        }
        let before = std::mem::take(&mut self.quality);
        let holds = |trouble: &Trouble| {
            trouble.note.is_of_a_sensor()
                && self.now.duration_since(trouble.seen) < self.rules.settled
        };
        let gone = |trouble: &&Trouble| !present.iter().any(|p| like(&p.note, &trouble.note));
        let (held, over): (Vec<Trouble>, Vec<Trouble>) =
            before.iter().filter(gone).copied().partition(holds);
        for Trouble { note, .. } in over {
            let still = |other: &Trouble| {
                other.note.client == note.client && other.note.what.is_of_calibration()
            };
            // Less believed, or a little more, is not as calibrated again.
            if !(note.what.is_of_calibration() && present.iter().any(still)) {
                self.enter(What::QualityOver { client: note.client, what: note.what });
            }
        }
        for Trouble { note, .. } in &present {
            if !before.iter().any(|other| like(&other.note, note)) {
                self.enter(What::Quality { client: note.client, what: note.what });
                self.quality_lines.push(self.now);
            }
        }
        self.quality = present;
        self.quality.extend(held);
    }

    /// An incident says which of its members have a sensor that is itself at fault.
    pub(super) fn mark_faults(&mut self) {
        let of_sensors: Vec<(usize, QualityKind)> = self
            .quality
            .iter()
            .filter(|trouble| trouble.note.is_of_a_sensor())
            .filter_map(|trouble| Some((trouble.note.client?, trouble.note.what)))
            .collect();
        for (client, what) in of_sensors {
            let Some(number) = self.home(client).map(|incident| incident.number) else { continue };
            let told = |fault: &SensorTrouble| fault.client == client && fault.what.is_like(what);
            if self.at(number).faults.iter().any(told) {
                continue;
            }
            let time = self.now;
            self.at_mut(number).faults.push(SensorTrouble { client, what, time });
            self.enter(What::SensorFault { incident: number, client, what });
        }
    }

    /// Something about data, or about what was learned from it, that is no trouble of one step: a line
    /// of the log and the fact.
    pub(crate) fn note(&mut self, time: Timestamp, client: Option<usize>, text: &str) -> Fact {
        let client = self.remark(time, client, text);
        self.quality_lines.push(time);
        self.quality_fact(time, client, text.to_owned(), None)
    }

    /// A note about something outside data and messages. A recording cannot compute it again, so it stores it.
    pub(crate) fn note_outside(&mut self, time: Timestamp, text: &str) -> Fact {
        let what = What::Noted { client: None, text: text.to_owned() };
        let why = Some(OUTSIDE.to_owned());
        self.log.add(Event { why, ..Event::of_data(time, what) });
        self.quality_lines.push(time);
        self.quality_fact(time, None, text.to_owned(), None)
    }

    /// Something that is good to know and no trouble: a line of the log alone. Answers the client
    /// that it is about, where there is one of that number.
    pub(crate) fn remark(
        &mut self,
        time: Timestamp,
        client: Option<usize>,
        text: &str,
    ) -> Option<usize> {
        let client = client.filter(|client| *client < self.names.len());
        let what = What::Noted { client, text: text.to_owned() };
        self.log.add(Event::of_data(time, what));
        client
    }
}
