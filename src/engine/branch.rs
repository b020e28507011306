//! A recording run again from a moment on with another setting: up to the moment everything is as it
//! was, orders included; from there on nobody orders anything, and the server decides by the setting.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};

use super::error::OpenError;
use super::knob::{Knob, Turn};
use super::recorded::Recorded;
use super::run::what_if::NoAnswer;
use super::run::{Stepped, recalled};
use super::watch::{News, Watch};
use crate::incident::{Action, Incident, Order};
use crate::record::{Recording, StepMark};
use crate::wire::{Branched, Rest, Switch};

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
    let mut recorded = Recorded::read(&recording)?;
    let marks = recorded.steps.clone();
    let at = marks.iter().position(|mark| mark.time >= from);
    let at = at.ok_or("the recording ends before that moment")?;
    let changed_later = recorded.forget_orders_after(from);
    let mut switch = None;
    let mut watch = Watch::recorded_over(recorded, true, |wire| {
        let (wire, turns_it) = Branched::new(wire);
        switch = Some(turns_it);
        Box::new(wire)
    })?;
    let switch = switch.ok_or("the recording has no carrier")?;
    let mut before = turn;
    let mut steps = 0..;
    loop {
        let mut news = News::default();
        match watch.poll(&mut news)? {
            Stepped::Taken(_) if steps.next() == Some(at) => {
                before = watch.run().turned(turn.knob);
                let rest = &marks[at + 1..];
                let messages = messages(&mut watch, turn, changed_later, rest, &switch);
                switch.turn_to(messages.map_err(|why| refusal(&watch, turn, &why))?);
                let what = turn.knob.name(watch.run().annunciator().names());
                let action = Action::Set { what, to: turn.value() };
                let order = Order { who: WHO.to_owned(), action, why: None };
                watch.act(order, &mut news).map_err(|why| why.to_string())?;
            }
            Stepped::Taken(_) | Stepped::NotYet => {}
            Stepped::End => break,
        }
    }
    watch.end(&mut News::default());
    let mut new = watch.run().annunciator().incidents().to_vec();
    let concerned = |incident: &Incident| {
        incident.opened >= from || incident.closed.is_none_or(|closed| closed.time >= from)
    };
    old.retain(concerned);
    new.retain(concerned);
    Ok(Branch { from, turn, before, old, new })
}

/// What the server hears after this step: what it heard then, or what sites would have sent.
fn messages(
    watch: &mut Watch,
    turn: Turn,
    changed_later: bool,
    marks: &[StepMark],
    switch: &Switch,
) -> Result<Rest, NoAnswer> {
    let run = watch.run_mut();
    if let Some(why) = recalled::never_in_a_recording(turn.knob, run.mode()) {
        return Err(why);
    }
    let mut rest = switch.rest(run.steps() + 1, marks.len());
    // Where an order that is forgotten now changed what sites sent, they send as if it had not come.
    if changed_later || !matches!(turn.knob, Knob::Vote | Knob::Arl0) {
        run.resend(turn, marks, &mut rest)?;
    }
    Ok(rest)
}

fn refusal(watch: &Watch, turn: Turn, why: &NoAnswer) -> OpenError {
    let name = turn.knob.name(watch.run().annunciator().names());
    format!("{name} cannot be changed in this recording: {why}").into()
}
