//! All that has been measured so far, in the shape the screen needs it.

use std::ops::Range;

use jiff::Timestamp;

use super::scale::{Place, Scale};
use super::text::clean;
use super::truth::Truth;
use crate::engine::handle::Opened;
use crate::history::History;
use crate::site::local;
use crate::stream::{ClientColumns, Frame, Sensor};

/// One client's part of the measurements. Its texts are safe to show.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub name: String,
    pub title: String,
    pub sensors: Vec<Sensor>,
    pub channels: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    pub missing: usize,
    pub beyond: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Measured {
    pub clients: Vec<Client>,
    pub history: History,
    pub scales: Vec<Scale>,
    pub truth: Truth,
    pub left_out: u64,
}

impl Measured {
    /// Nothing yet, of the stream just opened.
    pub(crate) fn new(opened: &Opened) -> Self {
        let layout = &opened.layout;
        let client = |(at, columns): (usize, &ClientColumns)| Client {
            name: clean(&columns.name),
            title: clean(&columns.title),
            sensors: columns
                .sensors
                .iter()
                .map(|sensor| Sensor::new(clean(&sensor.name), clean(&sensor.unit)))
                .collect(),
            channels: layout.span(at),
        };
        let history = History::new(layout.period_s, layout.width());
        let period_s = history.period().as_secs_f64();
        Self {
            clients: layout.clients.iter().enumerate().map(client).collect(),
            scales: vec![Scale::new(period_s); layout.width()],
            history,
            truth: Truth::new(&opened.events),
            left_out: 0,
        }
    }

    /// Takes a frame. One that is not later than the last is left out, and counted.
    pub(crate) fn take(&mut self, frame: &Frame) {
        self.left_out += frame.notes.iter().map(|note| note.rows).sum::<u64>();
        let values = local::measurements_of(frame);
        if self.history.push(frame.time, values).is_err() {
            self.left_out += 1;
            return;
        }
        for (scale, value) in self.scales.iter_mut().zip(values) {
            scale.push(*value);
        }
        self.truth.take(frame);
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.scales.iter().all(|scale| scale.ends().is_none() || scale.is_settled())
    }

    /// Whether any value of a client is there.
    pub(crate) fn has_data(&self, client: &Client, moment: Timestamp) -> bool {
        client.channels.clone().any(|channel| self.history.value_at(channel, moment).is_some())
    }

    pub(crate) fn tally(&self, client: &Client, moment: Timestamp) -> Tally {
        client.channels.clone().fold(Tally::default(), |tally, channel| {
            match self.history.value_at(channel, moment) {
                None => Tally { missing: tally.missing + 1, ..tally },
                Some(value) if self.is_beyond(channel, f64::from(value)) => {
                    Tally { beyond: tally.beyond + 1, ..tally }
                }
                Some(_) => tally,
            }
        })
    }

    fn is_beyond(&self, channel: usize, value: f64) -> bool {
        self.scales.get(channel).is_some_and(|scale| !matches!(scale.place(value), Place::On(_)))
    }
}
