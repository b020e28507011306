//! A recording run again from a moment on with another setting: up to the moment everything is as it
//! was, orders included; from there on there are no orders, and the server decides by the setting.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};

use super::error::OpenError;
use super::knob::{Knob, Turn};
use super::recorded::Recorded;
use super::run::what_if::NoAnswer;
use super::run::{Stepped, recalled};
use super::watch::{News, Watch};
use crate::incident::{Event, Incident, OperatorAction, Order};
use crate::record::recording::StoredEvent;
use crate::record::{Recording, StepMark};
use crate::wire::{Branched, CarrierLog, Logged, Rest, Switch, Wire};

#[cfg(test)]
mod tests;

/// Who makes the setting.
const WHO: &str = "run again";

/// Incidents that open within this time of each other are the same.
const SAME: SignedDuration = SignedDuration::from_mins(5);

/// The incidents as they were, and as they are with another setting.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Branch {
    pub(crate) from: Timestamp,
    pub(crate) turn: Turn,
    /// How the setting stood.
    pub(crate) before: Turn,
    /// Incidents that were open at the moment or came later.
    pub(crate) old: Vec<Incident>,
    pub(crate) new: Vec<Incident>,
}

impl Branch {
    /// Old and new incidents side by side, in the order of time.
    pub(crate) fn pairs(&self) -> Vec<(Option<&Incident>, Option<&Incident>)> {
        let mut rest: Vec<&Incident> = self.new.iter().collect();
        let mut pairs = Vec::new();
        for old in &self.old {
            let distance = |new: &Incident| new.opened.duration_since(old.opened).abs();
            let near = (0..rest.len()).filter(|at| distance(rest[*at]) <= SAME);
            let nearest = near.min_by_key(|at| (rest[*at].root != old.root, distance(rest[*at])));
            pairs.push((Some(old), nearest.map(|at| rest.remove(at))));
        }
        pairs.extend(rest.into_iter().map(|new| (None, Some(new))));
        pairs.sort_by_key(|(old, new)| old.or(*new).map(|incident| incident.opened));
        pairs
    }
}

/// Runs the recording in `file` again from `from` on with a knob turned.
pub(crate) fn branch(file: &Path, from: Timestamp, turn: Turn) -> Result<Branch, OpenError> {
    let recording = Recording::open(file)?;
    let mut old = recording.incidents()?;
    let mut again = Again::read(&recording, from, |wire| wire)?;
    let before = again.play(&[turn])?.before;
    let mut new = again.watch.run().annunciator().incidents().to_vec();
    let concerned = |incident: &Incident| {
        incident.opened >= from || incident.closed.is_none_or(|closed| closed.time >= from)
    };
    old.retain(concerned);
    new.retain(concerned);
    Ok(Branch { from, turn, before, old, new })
}

/// The recording in `file` as it would be with these settings from its start on. Where the server alone
/// goes by them, it is the same recording with another session. Otherwise it holds what its sites would
/// have sent; the settings are made after its first step, and there are no other orders.
pub(crate) fn with_settings(file: &Path, turns: &[Turn]) -> Result<Recorded, OpenError> {
    let recording = Recording::open(file)?;
    let mut recorded = Recorded::read(&recording)?;
    if turns.iter().all(|turn| is_of_server(turn.knob)) {
        for turn in turns {
            if let Some(why) = recalled::never_in_a_recording(turn.knob, recorded.mode) {
                return Err(refusal(&[], *turn, &why));
            }
            turn.write_to(&mut recorded.session);
        }
        return Ok(recorded);
    }
    let Some(first) = recorded.steps.first() else { return Ok(recorded) };
    let log = CarrierLog::default();
    let mut again =
        Again::read(&recording, first.time, |wire| Box::new(Logged::new(wire, log.clone())))?;
    let step = recorded.first;
    let orders = again.play(turns)?.orders;
    let stored = |event| StoredEvent { step, after_end: false, event };
    recorded.orders = orders.into_iter().map(stored).collect();
    recorded.log.clear();
    log.drain_into(&mut recorded.log);
    Ok(recorded)
}

/// Whether the server alone goes by a setting, on the messages that it gets anyway.
fn is_of_server(knob: Knob) -> bool {
    matches!(knob, Knob::Vote | Knob::Arl0)
}

/// A recording that is run again, up to a moment as it was.
struct Again {
    watch: Watch,
    marks: Vec<StepMark>,
    /// The step after which settings are made.
    at: usize,
    /// An order that is forgotten changed what sites sent.
    changed_later: bool,
    switch: Switch,
}

/// The result of other settings.
struct Made {
    /// How the first of them stood.
    before: Turn,
    /// They themselves, as entries of the log.
    orders: Vec<Event>,
}

impl Again {
    fn read(
        recording: &Recording,
        from: Timestamp,
        wrap: impl FnOnce(Box<dyn Wire>) -> Box<dyn Wire>,
    ) -> Result<Self, OpenError> {
        let mut recorded = Recorded::read(recording)?;
        let marks = recorded.steps.clone();
        let at = marks.iter().position(|mark| mark.time >= from);
        let at = at.ok_or("the recording ends before that moment")?;
        let changed_later = recorded.forget_orders_after(from);
        let mut switch = None;
        let watch = Watch::recorded_over(recorded, true, |wire| {
            let (wire, turns_it) = Branched::new(wire);
            switch = Some(turns_it);
            wrap(Box::new(wire))
        })?;
        let switch = switch.ok_or("the recording has no carrier")?;
        Ok(Self { watch, marks, at, changed_later, switch })
    }

    /// Runs all of it, and makes the settings at the moment.
    fn play(&mut self, turns: &[Turn]) -> Result<Made, OpenError> {
        let turns = in_order(turns)?;
        let before = turns.first().copied().ok_or("there is no setting to make")?;
        let mut made = Made { before, orders: Vec::new() };
        let mut steps = 0..;
        loop {
            let mut news = News::default();
            match self.watch.poll(&mut news)? {
                Stepped::Taken(_) if steps.next() == Some(self.at) => {
                    made = self.make(&turns, before)?;
                }
                Stepped::Taken(_) | Stepped::NotYet => {}
                Stepped::End => break,
            }
        }
        self.watch.end(&mut News::default());
        Ok(made)
    }

    /// Makes the settings: sites send anew with the last of their own, when the others stand.
    fn make(&mut self, turns: &[Turn], first: Turn) -> Result<Made, OpenError> {
        let Self { watch, marks, at, changed_later, switch } = self;
        let before = watch.run().turned(first.knob);
        let mode = turns.iter().find_map(|turn| turn.to.mode()).unwrap_or(watch.run().mode());
        let names = watch.run().annunciator().names().to_vec();
        for turn in turns.iter().filter(|turn| turn.knob != Knob::Mode) {
            if let Some(why) = recalled::never_in_a_recording(turn.knob, mode) {
                return Err(refusal(&names, *turn, &why));
            }
        }
        let last = turns.iter().rposition(|turn| !is_of_server(turn.knob)).unwrap_or(0);
        let mut orders = Vec::new();
        for (place, turn) in turns.iter().enumerate() {
            if place == last {
                let messages = messages(watch, *turn, *changed_later, &marks[*at + 1..], switch);
                switch.turn_to(messages.map_err(|why| refusal(&names, *turn, &why))?);
            }
            let action = OperatorAction::Set { what: turn.knob.name(&names), to: turn.value() };
            let order = Order { who: WHO.to_owned(), action, why: None };
            let mut news = News::default();
            watch.act(order, &mut news).map_err(|why| why.to_string())?;
            orders.extend(news.events.into_iter().filter(|event| event.who.is_some()));
        }
        Ok(Made { before, orders })
    }
}

/// Settings in the order in which they can be made. The server takes new messages with a new ε of the
/// flags and with a new method: that comes last of what sites go by.
fn in_order(turns: &[Turn]) -> Result<Vec<Turn>, OpenError> {
    let of_sites = turns.iter().filter(|turn| !is_of_server(turn.knob));
    if turns.iter().any(|turn| turn.knob == Knob::Mode) && of_sites.count() > 1 {
        return Err("in a recording the method cannot be changed together with what sites go by: \
                    name the session instead"
            .into());
    }
    let mut turns = turns.to_vec();
    turns.sort_by_key(|turn| match turn.knob {
        knob if is_of_server(knob) => 2,
        Knob::EpsilonFlag => 1,
        _ => 0,
    });
    Ok(turns)
}

/// The messages of the server after this step: those of then, or what sites would have sent.
fn messages(
    watch: &mut Watch,
    turn: Turn,
    changed_later: bool,
    marks: &[StepMark],
    switch: &Switch,
) -> Result<Rest, NoAnswer> {
    let run = watch.run_mut();
    let mut rest = switch.rest(run.steps() + 1, marks.len());
    // Where an order that is forgotten now changed what sites sent, they send as if it had not come.
    if changed_later || !is_of_server(turn.knob) {
        run.resend(turn, marks, &mut rest)?;
    }
    Ok(rest)
}

fn refusal(names: &[String], turn: Turn, why: &NoAnswer) -> OpenError {
    let name = turn.knob.name(names);
    format!("{name} cannot be changed in this recording: {why}").into()
}
