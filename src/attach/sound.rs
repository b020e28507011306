//! Whether what a service sends fits together. A screen shows clients and incidents by their numbers, so a
//! number that belongs to nobody is found here and not there.

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
            // Numbers follow one another: a gap would be an incident that nobody has seen.
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
