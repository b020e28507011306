//! Whether what a service sends fits together. A screen shows clients and incidents by their numbers, so a
//! number without a client or an incident is refused here.

use super::packet::{NewsPacket, OpenedPacket, Packet};
use crate::engine::handle::EngineEvent;
use crate::incident::Incident;

/// No session has more clients.
const MOST_CLIENTS: usize = 1024;
/// No plant has more sensors.
const MOST_SENSORS: usize = 100_000;

/// What is known of a service from its packets so far.
#[derive(Debug, Default)]
pub(super) struct Sound {
    clients: usize,
    sensors: usize,
    incidents: u64,
}

impl Sound {
    /// The event that a packet stands for, or why it cannot be one.
    pub(super) fn event(&mut self, packet: Packet) -> Result<EngineEvent, String> {
        match &packet {
            Packet::Opened(opened) => self.open(opened)?,
            Packet::News(news) => self.check(news)?,
            Packet::Notice(_)
            | Packet::Recording(_)
            | Packet::Training(_)
            | Packet::Playing
            | Packet::Ordered(_)
            | Packet::Ended(_)
            | Packet::Failed(_) => {}
        }
        packet.event().map_err(|why| format!("a packet that cannot be read: {why}"))
    }

    fn open(&mut self, opened: &OpenedPacket) -> Result<(), String> {
        let clients = opened.layout.clients.len();
        if clients > MOST_CLIENTS || opened.steps.clients.len() != clients {
            return Err(format!("a plant of {clients} clients that does not fit together"));
        }
        let sensors = opened.layout.width();
        if sensors > MOST_SENSORS {
            return Err(format!("a plant of {sensors} sensors: at most {MOST_SENSORS} are taken"));
        }
        *self = Self { clients, sensors, incidents: 0 };
        Ok(())
    }

    fn check(&mut self, news: &NewsPacket) -> Result<(), String> {
        if news.frames.iter().any(|frame| frame.values.len() != self.sensors) {
            return Err("a row of other sensors than the plant has".to_owned());
        }
        if news.readouts.len() != news.times.len() * self.clients {
            return Err("steps of other clients than the plant has".to_owned());
        }
        if news.ranked.iter().any(|(_, client, _)| *client >= self.clients) {
            return Err("sensors of a client that the plant does not have".to_owned());
        }
        for incident in &news.incidents {
            // Numbers are consecutive: a gap means that an incident is missing.
            if incident.number > self.incidents + 1 {
                return Err(format!("incident {} after {}", incident.number, self.incidents));
            }
            self.incidents = self.incidents.max(incident.number);
            self.check_incident(incident)?;
        }
        for (_, incident) in &news.versions {
            self.check_incident(incident)?;
        }
        Ok(())
    }

    fn check_incident(&self, incident: &Incident) -> Result<(), String> {
        if incident.number <= self.incidents && incident.is_of(self.clients) {
            return Ok(());
        }
        Err(format!("incident {} names what the plant does not have", incident.number))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::engine::handle::Update;
    use crate::incident::Origin;
    use crate::stream::Frame;

    /// A plant without sensors and with so many clients, whose incidents have these numbers.
    fn checked(
        clients: usize,
        numbers: &[u64],
        change: impl Fn(&mut Incident),
    ) -> Result<(), String> {
        let mut sound = Sound { clients, sensors: 0, incidents: 0 };
        let incident = |number: &u64| {
            let time = Timestamp::UNIX_EPOCH;
            let mut incident = Incident::new(*number, Origin::Decided, (time, 0), time);
            change(&mut incident);
            incident
        };
        let mut update = Update::default();
        update.news.incidents = numbers.iter().map(incident).collect();
        sound.check(&NewsPacket::of(&update))
    }

    #[test]
    fn what_a_service_sends_that_does_not_fit_together_is_refused() {
        assert_eq!(checked(2, &[1, 2, 1], |_| {}), Ok(()));
        assert_eq!(checked(2, &[1], |incident| incident.root = Some(1)), Ok(()));
        checked(2, &[0], |_| {}).expect_err("numbers begin with 1");
        checked(2, &[1, 3], |_| {}).expect_err("one is left out");
        checked(2, &[u64::MAX], |_| {}).expect_err("so many would be made room for");
        checked(2, &[1], |incident| incident.root = Some(2)).expect_err("no such client");
        checked(2, &[1], |incident| incident.candidates = vec![9]).expect_err("no such client");
        let mut update = Update::default();
        update.news.frames = vec![Frame::with_values(vec![1.0])];
        let mut sound = Sound { clients: 2, sensors: 2, incidents: 0 };
        sound.check(&NewsPacket::of(&update)).expect_err("a row of another plant");
        update.news.frames = vec![Frame::with_values(vec![1.0, 2.0])];
        sound.check(&NewsPacket::of(&update)).expect("a row of this plant");
        update.news.times = vec![Timestamp::UNIX_EPOCH];
        sound.check(&NewsPacket::of(&update)).expect_err("a step without clients");
    }
}
