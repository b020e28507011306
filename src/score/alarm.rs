//! One alarm, and the alarms of a run gathered from its facts.
//!
//! An alarm is not a fact's incident: it is also read from tables and from lines of other programs, which
//! have fewer fields, and it keeps how the root moved from fact to fact.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

use super::course::Course;
use super::read::When;

/// One alarm, as far as it is judged.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Alarm {
    pub(crate) opened: Timestamp,
    /// When it closed, where known.
    pub(crate) closed: Option<Timestamp>,
    /// The root it names: the final one, not the first guess.
    pub(crate) root: Option<String>,
    /// Since when that root stands; since the opening when absent.
    pub(crate) named: Option<Timestamp>,
    /// How probable each client is as the root, in any order; may be empty.
    pub(crate) posterior: Vec<(String, f64)>,
    /// Clients it takes for propagated effects.
    pub(crate) effects: Vec<String>,
    /// Its root and effects on the way, where they are known.
    pub(crate) course: Course,
}

impl Alarm {
    /// An alarm about which nothing more is known.
    pub(crate) fn new(opened: Timestamp, root: Option<String>) -> Self {
        let course = Course::new(root.clone());
        let (posterior, effects) = (Vec::new(), Vec::new());
        Self { opened, closed: None, root, named: None, posterior, effects, course }
    }

    /// By time; alarms of one instant by root and posterior, so that no figure depends on the order of
    /// a list.
    pub(super) fn in_time(&self, other: &Self) -> Ordering {
        fn weights(alarm: &Alarm) -> impl Iterator<Item = (&str, u64)> {
            alarm.posterior.iter().map(|(name, p)| (name.as_str(), p.to_bits()))
        }
        let named = |alarm: &Self| (alarm.opened, alarm.root.is_none());
        named(self)
            .cmp(&named(other))
            .then_with(|| self.root.cmp(&other.root))
            .then_with(|| weights(self).cmp(weights(other)))
    }
}

/// The part of an `opened` or `updated` fact that is scored: of a run, or of a line that another program
/// wrote. What is absent stays as it was.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct AlarmUpdate {
    pub(crate) incident: u64,
    #[serde(deserialize_with = "when")]
    pub(crate) time: Timestamp,
    #[serde(default, deserialize_with = "present")]
    pub(crate) root: RootUpdate,
    #[serde(default, deserialize_with = "pairs")]
    pub(crate) posterior: Option<Vec<(String, f64)>>,
    pub(crate) effects: Option<Vec<Effect>>,
    pub(crate) step: Option<u64>,
    pub(crate) silent_source: Option<String>,
    /// The sensors of the root that deviate most, where it says so.
    #[serde(default)]
    pub(crate) sensors: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub(crate) enum RootUpdate {
    #[default]
    Unchanged,
    /// This root, or none that can be named.
    To(Option<String>),
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Effect {
    pub(crate) client: String,
}

fn when<'de, D: Deserializer<'de>>(value: D) -> Result<Timestamp, D::Error> {
    When::deserialize(value).map(|when| when.0)
}

/// Distinguishes `"root": null`, which names no client, from no `root` at all.
fn present<'de, D: Deserializer<'de>>(value: D) -> Result<RootUpdate, D::Error> {
    Option::deserialize(value).map(RootUpdate::To)
}

fn pairs<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Vec<(String, f64)>>, D::Error> {
    let map = Option::<BTreeMap<_, _>>::deserialize(value)?;
    Ok(map.map(|posterior| posterior.into_iter().collect()))
}

/// The alarms of a run, gathered from its facts in their order. Of an incident its opening counts as the
/// alarm, and as its root that of the last update: by then the root is final.
#[derive(Debug, Clone, Default)]
pub(crate) struct Alarms {
    list: Vec<Alarm>,
    /// Where each incident stands in the list.
    places: HashMap<u64, usize>,
}

impl Alarms {
    pub(crate) fn open(&mut self, update: AlarmUpdate) {
        self.places.insert(update.incident, self.list.len());
        let root = match &update.root {
            RootUpdate::To(root) => root.clone(),
            RootUpdate::Unchanged => None,
        };
        let mut alarm = Alarm::new(update.time, root.clone());
        alarm.course.take(root.as_ref(), update.step, true);
        self.list.push(alarm);
        self.update(update);
    }

    /// Nothing when the incident was never opened.
    pub(crate) fn update(&mut self, update: AlarmUpdate) -> Option<()> {
        let alarm = self.get(update.incident)?;
        if let RootUpdate::To(root) = update.root
            && root != alarm.root
        {
            alarm.named = root.is_some().then_some(update.time);
            alarm.root = root;
        }
        alarm.posterior = update.posterior.unwrap_or(std::mem::take(&mut alarm.posterior));
        if let Some(effects) = update.effects {
            alarm.effects = effects.into_iter().map(|effect| effect.client).collect();
        }
        alarm.course.take(alarm.root.as_ref(), update.step, false);
        alarm.course.take_sensor(alarm.root.as_ref(), update.sensors.into_iter().next());
        alarm.course.take_effects(alarm.effects.iter(), update.time);
        alarm.course.silent_source = update.silent_source;
        Some(())
    }

    /// The alarm that was closed; nothing when it was never opened.
    pub(crate) fn close(&mut self, incident: u64, time: Timestamp) -> Option<&Alarm> {
        let alarm = self.get(incident)?;
        alarm.closed = Some(time);
        Some(alarm)
    }

    pub(crate) fn list(&self) -> &[Alarm] {
        &self.list
    }

    pub(crate) fn into_list(self) -> Vec<Alarm> {
        self.list
    }

    fn get(&mut self, incident: u64) -> Option<&mut Alarm> {
        self.list.get_mut(*self.places.get(&incident)?)
    }
}
