//! Moving through time: looking back, marks, loops over the past, running ahead. What has been
//! computed is looked at; the engine is disturbed only when the future is asked for.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::goal::Goal;
use super::{Effect, Model, Screen, Stage};
use crate::console::window::ZOOMS;
use crate::engine::handle::Command;
use crate::engine::pace::Speed;

pub(crate) const FAR: i32 = 20;
/// Seconds before an incident that playing it begins.
const LEAD_S: i64 = 60;
/// Most data seconds per second while the past is played: faster is too fast to read.
const FASTEST: f64 = 600.0;
/// Seconds of a column in a close-up.
const CLOSE_UP_S: i64 = 5;
/// Columns of time that even a small screen has.
const WHOLE_COLUMNS: i64 = 48;
/// A picture of the past that moves is moved this often.
const TICK: Duration = Duration::from_millis(33);

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Playback {
    /// Where it begins again; without a beginning it runs into the newest data and ends there.
    pub from: Option<Timestamp>,
    pub until: Timestamp,
    pub paused: bool,
}

impl Model {
    pub(super) fn known(&self) -> Option<(Timestamp, Timestamp)> {
        let history = &self.measured.as_ref()?.history;
        Some((history.first()?, history.last()?))
    }

    /// Looks at `moment` as far as there is data; at the newest data it follows again.
    pub(super) fn look_at(&mut self, moment: Timestamp) {
        if let Some((first, newest)) = self.known() {
            self.look = (moment < newest).then_some(moment.max(first));
        }
    }

    /// Moves the look by `columns`; at the newest data it follows again.
    pub(super) fn look_by(&mut self, columns: i32) {
        self.playback = None;
        let Some(moment) = self.moment() else { return };
        let step = SignedDuration::from_secs(self.column_s()) * columns;
        let end = if columns < 0 { Timestamp::MIN } else { Timestamp::MAX };
        self.look_at(moment.checked_add(step).unwrap_or(end));
    }

    pub(super) fn follow(&mut self) {
        self.look = None;
        self.playback = None;
    }

    /// Longer or shorter columns: never shorter than the data's own period, and no longer than it
    /// takes to see all of the data on a small screen.
    pub(super) fn zoom_by(&mut self, out: bool) {
        let whole = self.known().map_or(i64::MAX, |(first, last)| self.day.seconds(first, last));
        let longest = ZOOMS.iter().position(|column_s| column_s * WHOLE_COLUMNS >= whole);
        let longest = longest.unwrap_or(ZOOMS.len() - 1).max(self.finest_zoom());
        if out && self.zoom >= longest {
            self.message("all of the data is on the screen");
        }
        self.close_up = None;
        self.zoom = if out {
            (self.zoom + 1).min(longest.max(self.zoom))
        } else {
            self.zoom.saturating_sub(1).max(self.finest_zoom()).min(self.zoom)
        };
    }

    /// The chosen incident in short columns; once more, as before.
    pub(super) fn close_up(&mut self) {
        if let Some(before) = self.close_up.take() {
            self.zoom = before;
            self.message("columns as before");
            return;
        }
        let Some(incident) = self.chosen_incident() else { return };
        let (onset, follows) = (incident.onset, incident.is_open() && self.look.is_none());
        self.close_up = Some(self.zoom);
        self.zoom = super::first_zoom(CLOSE_UP_S).max(self.finest_zoom());
        if !follows {
            self.playback = None;
            self.look_at(onset);
        }
    }

    /// Goes to a place in time. What lies ahead of the newest data is run to.
    pub(super) fn go(&mut self, goal: Goal) -> Result<Option<Effect>, String> {
        let (first, newest) = self.known().ok_or("there is no data yet")?;
        let moment = self.look.unwrap_or(newest);
        let outside = || "that is outside all time".to_owned();
        let time = match goal {
            Goal::Start => first,
            Goal::End => {
                self.follow();
                return Ok(None);
            }
            Goal::Clock(time) => {
                let civil = self.clock.civil(moment).date().to_datetime(time);
                self.clock.instant(civil).ok_or_else(outside)?
            }
            Goal::At(civil) => self.clock.instant(civil).ok_or_else(outside)?,
            Goal::By(seconds) => {
                moment.checked_add(SignedDuration::from_secs(seconds)).map_err(|_| outside())?
            }
            Goal::Incident(number) => {
                let watched = self.watched.as_ref();
                let incident = watched.and_then(|watched| watched.incident(number));
                let incident = incident.ok_or_else(|| format!("there is no incident #{number}"))?;
                let onset = incident.onset;
                self.incident = Some(number);
                self.focus = super::Focus::Incidents;
                onset
            }
            Goal::Mark(name) => {
                *self.marks.get(&name).ok_or_else(|| format!("there is no mark '{name}"))?
            }
        };
        self.playback = None;
        if time > newest {
            return self.run_to(time);
        }
        if time < first {
            self.message(format!("the data begins at {}", self.clock.date_time(first)));
        }
        self.look_at(time);
        Ok(None)
    }

    fn run_to(&mut self, time: Timestamp) -> Result<Option<Effect>, String> {
        if !matches!(self.stage, Stage::Playing | Stage::Reading) {
            return Err("there is no more data".into());
        }
        if self.is_live {
            return Err("live data goes at its own speed: what is ahead is not there yet".into());
        }
        self.follow();
        self.seeking = Some(time);
        Ok(Some(Effect::Command(Command::RunTo(time))))
    }

    pub(super) fn mark(&mut self, name: char) {
        if let Some(moment) = self.moment() {
            self.marks.insert(name, moment);
            self.message(format!("mark '{name} at {}", self.clock.time(moment)));
        }
    }

    /// One end of the loop is here. With both ends the stretch is played over and over.
    pub(super) fn set_loop(&mut self, end: usize) {
        let Some(moment) = self.moment() else { return };
        if end == 0 && self.playback.take().is_some_and(|playback| playback.from.is_some()) {
            // A second A ends the loop that runs.
            self.between = [None, None];
            self.message("loop ended");
            return;
        }
        self.between[end] = Some(moment);
        let time = self.clock.time(moment);
        match self.between {
            [Some(from), Some(until)] if from < until => {
                self.playback = Some(Playback { from: Some(from), until, paused: false });
                self.look_at(from);
                let (from, until) = (self.clock.time(from), self.clock.time(until));
                self.message(format!("loop {from} – {until}; A ends it"));
            }
            [Some(_), Some(_)] => {
                self.failure("a loop ends after it begins: A first, then B");
                self.between[end] = None;
            }
            _ if end == 0 => self.message(format!("loop from {time}; go on and press B")),
            _ => self.message(format!("loop until {time}; go back, press A")),
        }
    }

    /// Plays the past from the moment looked at until the newest data is reached.
    pub(super) fn play_from_here(&mut self) {
        if let Some(until) = self.newest() {
            self.playback = Some(Playback { from: None, until, paused: false });
        }
    }

    /// Looks one step of the engine further, and stands there.
    pub(super) fn look_one_step_on(&mut self) {
        self.playback = None;
        let period = self.watched.as_ref().map(|watched| watched.history.period());
        let (Some(look), Some(period)) = (self.look, period) else { return };
        self.look_at(look.checked_add(period).unwrap_or(look));
    }

    pub(super) fn play_incident(&mut self) {
        let Some(onset) = self.chosen_incident().map(|incident| incident.onset) else { return };
        let lead = onset.checked_sub(SignedDuration::from_secs(LEAD_S)).unwrap_or(onset);
        self.look_at(lead);
        if let (Some(_), Some(until)) = (self.look, self.newest()) {
            self.playback = Some(Playback { from: None, until, paused: false });
        }
    }

    /// The incident before the moment looked at, or after it; the screen of an incident follows.
    pub(super) fn next_incident(&mut self, forward: bool) {
        let (Some(watched), Some(moment)) = (&self.watched, self.moment()) else { return };
        let all = watched.incidents.iter();
        let found = match (self.screen, forward) {
            (Screen::Incident(number), true) => watched.incident(number + 1),
            (Screen::Incident(number), false) => watched.incident(number.saturating_sub(1)),
            (_, true) => all.filter(|i| i.onset > moment).min_by_key(|i| i.onset),
            (_, false) => all.filter(|i| i.onset < moment).max_by_key(|i| i.onset),
        };
        let found = found.map(|incident| (incident.number, incident.onset));
        if let Some((start, text)) = self.missed_before(forward, found.map(|(_, onset)| onset)) {
            self.playback = None;
            self.look_at(start);
            self.message(text);
            return;
        }
        let Some((number, onset)) = found else {
            let over = matches!(self.stage, Stage::Ended);
            self.message(match (forward, over) {
                (false, _) => "no earlier incident",
                (true, true) => "no later incident",
                (true, false) => "no later incident so far; g runs ahead to a time",
            });
            return;
        };
        self.playback = None;
        self.incident = Some(number);
        self.focus = super::Focus::Incidents;
        if let Screen::Incident(shown) = &mut self.screen {
            *shown = number;
            self.scroll = 0;
        }
        self.look_at(onset);
    }

    /// How long after its end an attack still owns an alarm.
    pub(crate) fn tail(&self) -> SignedDuration {
        SignedDuration::try_from_secs_f64(self.subject.replay.tail.seconds).unwrap_or_default()
    }

    /// While the truth is shown: the attack that no incident answered and that lies between the
    /// moment and the next incident on the way.
    fn missed_before(
        &self,
        forward: bool,
        incident: Option<Timestamp>,
    ) -> Option<(Timestamp, String)> {
        let (watched, measured) = (self.watched.as_ref()?, self.measured.as_ref()?);
        let (moment, newest) = (self.moment()?, self.newest()?);
        if !self.truth_shown || matches!(self.screen, Screen::Incident(_)) {
            return None;
        }
        let opened: Vec<Timestamp> = watched.incidents.iter().map(|i| i.opened).collect();
        let missed = measured.truth.missed(&opened, self.tail(), newest);
        let nearest = if forward {
            missed.filter(|event| event.start > moment).min_by_key(|event| event.start)
        } else {
            missed.filter(|event| event.start < moment).max_by_key(|event| event.start)
        };
        let nearer = |start: Timestamp| match incident {
            Some(onset) if forward => start < onset,
            Some(onset) => start > onset,
            None => true,
        };
        let event = nearest.filter(|event| nearer(event.start))?;
        let over = event.end.checked_add(self.tail()).unwrap_or(Timestamp::MAX) <= newest;
        let what = if over { "missed" } else { "not found so far" };
        let origins = event.origins.join(" + ");
        Some((event.start, format!("{what}: {} {origins}, {}", event.id, event.what)))
    }

    /// How long until time passing changes something; `None` while it changes nothing.
    pub(crate) fn wake_in(&self) -> Option<Duration> {
        let playing = self.playback.is_some_and(|playback| !playback.paused);
        playing.then_some(TICK)
    }

    pub(super) fn pass(&mut self, wall: Duration) {
        let Some(playback) = self.playback.filter(|playback| !playback.paused) else { return };
        let times = match self.pace.speed {
            Speed::Times(times) => times.min(FASTEST),
            Speed::Max => FASTEST,
        };
        let step = SignedDuration::try_from_secs_f64(wall.as_secs_f64() * times);
        let moment = self.look.zip(step.ok()).and_then(|(look, step)| look.checked_add(step).ok());
        let (Some(moment), Some(newest)) = (moment, self.newest()) else {
            self.playback = None;
            return;
        };
        match playback.from {
            Some(from) if moment > playback.until => self.look_at(from),
            // New data came meanwhile: it is run into, not jumped over.
            None if moment >= newest => self.follow(),
            _ => self.look_at(moment),
        }
    }
}
