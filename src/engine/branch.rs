//! A recording run again from a moment on with another setting: up to the moment everything is as it
//! was, orders included; from there on nobody orders anything, and the server decides by the setting.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};

use super::error::OpenError;
use super::knob::{Knob, Turn};
use super::recorded::Recorded;
use super::run::Stepped;
use super::watch::{News, Watch};
use crate::incident::{Action, Incident, Order};
use crate::record::Recording;

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
    if !matches!(turn.knob, Knob::Vote | Knob::Arl0) {
        return Err(
            "a recording holds what crossed the wire: only what the server decides by can be \
                    changed (arl0, vote); open the session to change anything else"
                .into(),
        );
    }
    let recording = Recording::open(file)?;
    let mut old = recording.incidents()?;
    let mut recorded = Recorded::read(&recording)?;
    recorded.forget_orders_after(from);
    let mut watch = Watch::recorded(recorded, false)?;
    let before = watch.run().turned(turn.knob);
    let mut is_set = false;
    loop {
        let mut news = News::default();
        match watch.poll(&mut news)? {
            Stepped::Taken(time) if time >= from && !is_set => {
                is_set = true;
                let what = turn.knob.name(watch.run().annunciator().names());
                let action = Action::Set { what, to: turn.value() };
                let order = Order { who: WHO.to_owned(), action, why: None };
                watch.act(order, &mut news).map_err(|why| why.to_string())?;
            }
            Stepped::Taken(_) | Stepped::NotYet => {}
            Stepped::End => break,
        }
    }
    if !is_set {
        return Err("the recording ends before that moment".into());
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
