//! What was known at every moment so far: incidents as they stood then, sensors as they were ranked,
//! clients out of service, the method that decided. What was learned later is not mixed in.

use jiff::{SignedDuration, Timestamp};

use crate::engine::knob::Knob;
use crate::engine::watch::News;
use crate::fact::Priority;
use crate::incident::figures::ByPriority;
use crate::incident::{AlarmState, Edit, Event, Figures, Incident, What};
use crate::session::Mode;

/// The rate of alarms counts over this stretch.
const RATE: SignedDuration = SignedDuration::from_mins(10);
/// A probability that moved by less is not worth another version of an incident.
const MOVED: f64 = 0.005;

/// Values with the moments from which on they held, in order.
type Course<T> = Vec<(Timestamp, T)>;

#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    /// Versions of incident `n` stand at `n − 1`.
    incidents: Vec<Course<Incident>>,
    /// Ranked sensors of every client while it takes part in an incident.
    ranked: Vec<Course<Vec<String>>>,
    out_of_service: Course<(usize, bool)>,
    modes: Course<(Mode, Mode)>,
    /// Lines on data quality.
    quality: Vec<Timestamp>,
}

impl Known {
    pub(crate) fn take(&mut self, news: &News) {
        for (time, incident) in &news.versions {
            let at = incident.number as usize - 1;
            if self.incidents.len() <= at {
                self.incidents.resize_with(at + 1, Vec::new);
            }
            let course = &mut self.incidents[at];
            match course.last_mut() {
                Some((last, known)) if *last == *time => known.clone_from(incident),
                Some((_, known)) if is_same(known, incident) => {}
                Some(_) | None => course.push((*time, incident.clone())),
            }
        }
        for (time, client, sensors) in &news.ranked {
            if self.ranked.len() <= *client {
                self.ranked.resize_with(client + 1, Vec::new);
            }
            let course = &mut self.ranked[*client];
            if course.last().is_none_or(|(_, known)| known != sensors) {
                course.push((*time, sensors.clone()));
            }
        }
        news.events.iter().for_each(|event| self.take_event(event));
    }

    fn take_event(&mut self, event: &Event) {
        if matches!(event.what, What::Quality { .. }) {
            self.quality.push(event.time);
        }
        for edit in &event.edits {
            match edit {
                Edit::OutOfService { client, to, .. } => {
                    self.out_of_service.push((event.time, (*client, *to)));
                }
                Edit::Setting { what, from, to } if Knob::named(what, &[]) == Some(Knob::Mode) => {
                    let mode = |value| Knob::Mode.turn(value, &[]).ok()?.to.mode();
                    if let (Some(from), Some(to)) = (mode(from), mode(to)) {
                        self.modes.push((event.time, (from, to)));
                    }
                }
                Edit::Setting { .. }
                | Edit::Alarm { .. }
                | Edit::Shelf { .. }
                | Edit::Note { .. }
                | Edit::Closed { .. }
                | Edit::Root { .. } => {}
            }
        }
    }

    /// An incident as it stood at `moment`, or as it stood first where it was found later.
    pub(crate) fn incident(&self, number: u64, moment: Timestamp) -> Option<&Incident> {
        let course = self.incidents.get((number as usize).checked_sub(1)?)?;
        at(course, moment).or_else(|| course.first().map(|(_, incident)| incident))
    }

    /// Incidents that had been found by `moment`, as they stood then, the newest first.
    pub(crate) fn found_by(&self, moment: Timestamp) -> impl Iterator<Item = &Incident> {
        let found = self.incidents.iter().rev().filter_map(move |course| at(course, moment));
        found.filter(move |incident| incident.opened <= moment)
    }

    /// The sensors of a client that deviated most at `moment`; none where it took part in nothing.
    pub(crate) fn ranked(&self, client: usize, moment: Timestamp) -> Option<&[String]> {
        let involved = self.found_by(moment).any(|incident| {
            incident.is_open() && incident.member(client).is_some_and(|m| m.onset <= moment)
        });
        let course = self.ranked.get(client).filter(|_| involved)?;
        at(course, moment).map(Vec::as_slice)
    }

    pub(crate) fn is_out_of_service(&self, client: usize, moment: Timestamp) -> bool {
        let by_then = self.out_of_service.iter().rev().filter(|(time, _)| *time <= moment);
        by_then.map(|(_, change)| change).find(|(of, _)| *of == client).is_some_and(|(_, out)| *out)
    }

    /// The method that decided at `moment`; `now` is the one that decides today.
    pub(crate) fn mode(&self, moment: Timestamp, now: Mode) -> Mode {
        let next = self.modes.iter().find(|(time, _)| *time > moment);
        next.map_or(now, |(_, (from, _))| *from)
    }

    /// The figures of the first line as they were at `moment`. Rates of flags and floods are known of
    /// now only.
    pub(crate) fn figures(&self, moment: Timestamp, clients: usize) -> Figures {
        let found: Vec<&Incident> = self.found_by(moment).collect();
        let open = || found.iter().filter(|incident| incident.is_open());
        let stands = |state: AlarmState| {
            found.iter().filter(|incident| incident.alarm.state == state).count()
        };
        let since = moment.checked_sub(RATE).unwrap_or(Timestamp::MIN);
        let recent = |time: Timestamp| time > since && time <= moment;
        let mut today = ByPriority::default();
        let day = |time: Timestamp| time.as_second().div_euclid(86_400);
        for incident in found.iter().filter(|incident| day(incident.opened) == day(moment)) {
            match incident.priority {
                Priority::P1 => today.p1 += 1,
                Priority::P2 => today.p2 += 1,
                Priority::P3 => today.p3 += 1,
            }
        }
        let quality = |time: &&Timestamp| **time <= moment && day(**time) == day(moment);
        today.p3 += self.quality.iter().filter(quality).count();
        Figures {
            open: open().count(),
            standing: open().filter(|incident| !incident.alarm.state.is_silenced()).count(),
            unacknowledged: stands(AlarmState::Unacknowledged),
            returned: stands(AlarmState::Returned),
            latched: stands(AlarmState::Latched),
            shelved: stands(AlarmState::Shelved),
            grouped: open().map(|incident| incident.effects().count()).sum(),
            out_of_service: (0..clients).filter(|m| self.is_out_of_service(*m, moment)).count(),
            alarms_10min: self
                .incidents
                .iter()
                .map(|course| asked(course).filter(|time| recent(*time)).count())
                .sum(),
            incidents_10min: found.iter().filter(|incident| recent(incident.opened)).count(),
            today,
            ..Figures::default()
        }
    }
}

/// The value that held at `moment`.
fn at<T>(course: &Course<T>, moment: Timestamp) -> Option<&T> {
    let after = course.partition_point(|(time, _)| *time <= moment);
    course.get(after.checked_sub(1)?).map(|(_, value)| value)
}

/// When an alarm began to ask for an acknowledgement.
fn asked(course: &Course<Incident>) -> impl Iterator<Item = Timestamp> {
    let asks = |incident: &Incident| incident.alarm.state == AlarmState::Unacknowledged;
    let before = std::iter::once(false).chain(course.iter().map(move |(_, i)| asks(i)));
    let now = course.iter().map(move |(time, incident)| (*time, asks(incident)));
    now.zip(before).filter(|((_, now), before)| *now && !before).map(|((time, _), _)| time)
}

/// Whether two versions say the same, but for probabilities that hardly moved.
fn is_same(a: &Incident, b: &Incident) -> bool {
    let close = a.posterior.len() == b.posterior.len()
        && a.posterior.iter().zip(&b.posterior).all(|(a, b)| (a - b).abs() < MOVED);
    let plain = |incident: &Incident| {
        let members = incident.members.iter();
        members.map(|m| (m.client, m.onset, m.joined, m.quiet_since)).collect::<Vec<_>>()
    };
    close
        && a.root == b.root
        && a.alarm == b.alarm
        && a.closed == b.closed
        && a.priority == b.priority
        && a.frozen == b.frozen
        && a.would_now_say == b.would_now_say
        && a.candidates == b.candidates
        && a.stands == b.stands
        && a.silent_source == b.silent_source
        && a.first_out == b.first_out
        && a.note == b.note
        && a.faults == b.faults
        && a.corrections == b.corrections
        && a.continuations == b.continuations
        && plain(a) == plain(b)
}
