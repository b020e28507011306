//! The engine's output so far, in the shape the screen needs: the values of every client on one axis
//! of time, incidents, the log, the newest snapshot.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::known::Known;
use crate::engine::run::readout::ClientReadout;
use crate::engine::watch::{News, Snapshot};
use crate::evidence::threshold::{FlagThresholds, Flags};
use crate::fact::Fact;
use crate::history::{Bucket, Column, History};
use crate::incident::{ClientVerdict, Event, Incident, OperatorAction, What, verdict_at};

/// One quantity that is drawn over time for every client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trace {
    /// Mahalanobis distance of r_c.
    DistanceC,
    /// Mahalanobis distance of r_a.
    DistanceA,
    /// ‖r_c‖.
    NormC,
    /// ‖r_a‖.
    NormA,
    /// Distance of the whitened residual.
    Surprise,
    /// Level of the symbol: sent, or rehearsed while the look-up decides.
    Level,
    /// S_m by b_m.
    Evidence,
    /// Z_c, 0 or 1: sent, or rehearsed on this machine while evidence decides.
    FlagC,
    /// Z_a, likewise.
    FlagA,
}

impl Trace {
    const COUNT: usize = 9;
}

/// The flags of one client in one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlagCell {
    /// Before the first step or after the last.
    Outside,
    /// There should be flags, and there are none.
    Missing,
    /// Flags that were raised at some step of the column, and what they would be under the setting on
    /// trial where that differs.
    Flags { stands: Flags, trial: Option<Flags> },
    /// The highest grade of a symbol.
    Grade(u8),
}

impl FlagCell {
    fn raised(z_c: bool, z_a: bool) -> Self {
        Self::Flags { stands: Flags::new(z_c, z_a), trial: None }
    }

    pub(crate) fn grade(level: Bucket) -> Self {
        match level {
            Bucket::Outside => Self::Outside,
            Bucket::Missing => Self::Missing,
            Bucket::Values { high, .. } => Self::Grade(high.round().clamp(0.0, 9.0) as u8),
        }
    }

    /// The same with what a setting on trial would make of it.
    pub(crate) fn on_trial(self, trial: Self) -> Self {
        match (self, trial) {
            (Self::Flags { stands, .. }, Self::Flags { stands: trial, .. }) => {
                Self::Flags { stands, trial: Some(trial).filter(|trial| *trial != stands) }
            }
            (other, _) => other,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Watched {
    clients: usize,
    /// One row a step; see [`Trace`].
    pub history: History,
    /// Incident `n` stands at `n − 1`, as it stands now.
    pub incidents: Vec<Incident>,
    known: Known,
    pub log: Vec<Event>,
    /// What was seen of every client at the last step.
    pub latest: Vec<ClientReadout>,
    /// How everything stands; nothing before the first step.
    pub snapshot: Option<Snapshot>,
    /// Flags of the past that are no longer judged as they were sent.
    judged: Option<Judged>,
    /// Flags as they would be under the setting on trial.
    trial: Option<History>,
    /// Sensors that the root of an incident was allowed to name, by the incident's number.
    named: BTreeMap<u64, Vec<String>>,
    from_shelf: BTreeSet<u64>,
    /// Steps that the history has no row of.
    refused: Vec<usize>,
    row: Vec<f64>,
    flag_row: Vec<f64>,
}

/// Flags judged anew, two channels a client.
#[derive(Debug, Clone)]
struct Judged {
    until: Timestamp,
    flags: History,
}

impl Watched {
    pub(crate) fn new(clients: usize, period_s: f64) -> Self {
        Self {
            clients,
            history: History::new(period_s, clients * Trace::COUNT),
            incidents: Vec::new(),
            known: Known::default(),
            log: Vec::new(),
            latest: Vec::new(),
            snapshot: None,
            judged: None,
            trial: None,
            named: BTreeMap::new(),
            from_shelf: BTreeSet::new(),
            refused: Vec::new(),
            row: vec![f64::NAN; clients * Trace::COUNT],
            flag_row: vec![f64::NAN; 2 * clients],
        }
    }

    pub(crate) fn take(&mut self, news: &News) {
        let rows = news.readouts.chunks_exact(self.clients.max(1));
        for (time, readouts) in news.times.iter().zip(rows) {
            for (row, readout) in self.row.chunks_exact_mut(Trace::COUNT).zip(readouts) {
                row.copy_from_slice(&values(readout));
            }
            self.latest.clear();
            self.latest.extend_from_slice(readouts);
            // A run that starts again before the end of the last one cannot be drawn on one axis.
            if self.history.push(*time, &self.row).is_err() {
                self.refused.push(self.history.len() + self.refused.len());
            } else if let Some(judged) = &mut self.judged {
                for (row, readout) in self.flag_row.chunks_exact_mut(2).zip(readouts) {
                    row.copy_from_slice(&pair(readout.flags()));
                }
                let _ = judged.flags.push(*time, &self.flag_row);
            }
        }
        if let Some(flags) = &news.flags {
            self.judge(flags);
        }
        for fact in &news.facts {
            if let Fact::Opened(incident) | Fact::Updated(incident) = fact
                && !incident.sensors.is_empty()
            {
                self.named.insert(incident.incident, incident.sensors.clone());
            }
        }
        for incident in &news.incidents {
            match self.incidents.get_mut(incident.number as usize - 1) {
                Some(known) => known.clone_from(incident),
                None => self.incidents.push(incident.clone()),
            }
        }
        for entry in &news.events {
            if let What::WasShelved { incident } = entry.what {
                self.from_shelf.insert(incident);
            } else if let What::Did(OperatorAction::Shelve { incident, .. }) = entry.what {
                self.from_shelf.remove(&incident);
            }
        }
        self.known.take(news);
        let is_new = |event: &&Event| !is_in_incident(event, &news.events);
        self.log.extend(news.events.iter().filter(is_new).cloned());
    }

    /// From now on the flags of the past are these, a row of clients a step.
    fn judge(&mut self, flags: &[Option<Flags>]) {
        let judged = self.flags_beside(flags);
        let sent = |row: usize, client: usize| {
            [Trace::FlagC, Trace::FlagA]
                .map(|trace| self.history.value(Self::channel(client, trace), row))
        };
        let same = |row: usize, client: usize| {
            let now = [0, 1].map(|which| judged.value(2 * client + which, row));
            let value = |v: Option<f32>| v.filter(|v| !v.is_nan());
            sent(row, client).map(value) == now.map(value)
        };
        let as_sent =
            (0..self.history.len()).all(|row| (0..self.clients).all(|client| same(row, client)));
        let until = self.history.last();
        self.judged = until.filter(|_| !as_sent).map(|until| Judged { until, flags: judged });
    }

    /// What the setting on trial would have made of the flags of the past, a row of clients a step.
    pub(crate) fn try_out(&mut self, flags: Option<&[Option<Flags>]>) {
        self.trial = flags.filter(|flags| !flags.is_empty()).map(|flags| self.flags_beside(flags));
    }

    /// Two channels a client on the axis of the history.
    fn flags_beside(&self, flags: &[Option<Flags>]) -> History {
        let clients = self.clients;
        let mut step = 0;
        self.history.beside(2 * clients, |_, row| {
            while self.refused.binary_search(&step).is_ok() {
                step += 1;
            }
            let of = |client: usize| flags.get(step * clients + client).copied().flatten();
            for (client, row) in row.chunks_exact_mut(2).enumerate() {
                row.copy_from_slice(&pair(of(client)));
            }
            step += 1;
        })
    }

    /// Until when flags are shown as they are judged now and not as they were sent, where these
    /// differ.
    pub(crate) fn judged_until(&self) -> Option<Timestamp> {
        self.judged.as_ref().map(|judged| judged.until)
    }

    /// The sensors that the root of an incident named, where the session lets it.
    pub(crate) fn named_sensors(&self, incident: u64) -> &[String] {
        self.named.get(&incident).map_or(&[], Vec::as_slice)
    }

    /// Whether an incident came back by itself when its time on the shelf was over.
    pub(crate) fn was_shelved(&self, incident: u64) -> bool {
        self.from_shelf.contains(&incident)
    }

    pub(crate) fn channel(client: usize, trace: Trace) -> usize {
        client * Trace::COUNT + trace as usize
    }

    pub(crate) fn bucket(&self, client: usize, trace: Trace, column: &Column) -> Bucket {
        self.history.bucket(Self::channel(client, trace), column)
    }

    pub(crate) fn value_at(&self, client: usize, trace: Trace, moment: Timestamp) -> Option<f32> {
        self.history.value_at(Self::channel(client, trace), moment)
    }

    /// The thresholds that stand now, as squared distances.
    pub(crate) fn thresholds(&self, client: usize) -> Option<FlagThresholds> {
        self.snapshot.as_ref()?.thresholds.get(client).copied()
    }

    /// The flags of a client in a column at some thresholds: distances are kept, so that another τ
    /// is another picture at once.
    pub(crate) fn flags_at(&self, client: usize, column: &Column, tau: FlagThresholds) -> FlagCell {
        let above = |trace, tau: f32| match self.bucket(client, trace, column) {
            Bucket::Values { high, .. } => Ok(high * high > tau),
            Bucket::Missing => Err(FlagCell::Missing),
            Bucket::Outside => Err(FlagCell::Outside),
        };
        match (above(Trace::DistanceC, tau.tau_c), above(Trace::DistanceA, tau.tau_a)) {
            (Ok(z_c), Ok(z_a)) => FlagCell::raised(z_c, z_a),
            (Err(cell), _) | (_, Err(cell)) => cell,
        }
    }

    /// The flags of a client in a column by the thresholds that stand, noise and all: as they were
    /// sent where nothing was changed since.
    pub(crate) fn flags(&self, client: usize, column: &Column) -> FlagCell {
        match &self.judged {
            Some(judged) => cell(&judged.flags, [2 * client, 2 * client + 1], column),
            None => self.flags_sent(client, column),
        }
    }

    /// The flags of a client in a column as they were sent, noise and all.
    pub(crate) fn flags_sent(&self, client: usize, column: &Column) -> FlagCell {
        let channels = [Trace::FlagC, Trace::FlagA].map(|trace| Self::channel(client, trace));
        cell(&self.history, channels, column)
    }

    /// The flags of a client in a column under the setting on trial; steps that came after its
    /// answer are judged by `tau` alone.
    pub(crate) fn flags_on_trial(
        &self,
        client: usize,
        column: &Column,
        tau: FlagThresholds,
    ) -> FlagCell {
        let known = self.trial.as_ref().filter(|trial| match column {
            Column::Rows { rows, .. } => rows.end <= trial.len(),
            Column::Outside | Column::Gap => true,
        });
        match known {
            Some(trial) => cell(trial, [2 * client, 2 * client + 1], column),
            None => self.flags_at(client, column, tau),
        }
    }

    /// A line of the log in words. An undo names what it undoes.
    pub(crate) fn words(&self, entry: &Event, names: &[String]) -> String {
        let undoes = |entry: &Event| {
            let What::Did(OperatorAction::Undo { entry }) = entry.what else { return None };
            self.log.iter().find(|e| e.number == entry)
        };
        let (what, entry) = match undoes(entry).map(|undone| (undone, undoes(undone))) {
            None => ("", entry),
            Some((undone, None)) => ("undone: ", undone),
            Some((_, Some(done))) => ("done again: ", done),
        };
        format!("{what}{}", entry.words(names))
    }

    /// An incident as it stands now.
    pub(crate) fn incident(&self, number: u64) -> Option<&Incident> {
        self.incidents.get((number as usize).checked_sub(1)?)
    }

    /// An incident as it stood at the moment looked back at, as it stood first where it was found
    /// later, or as it stands now.
    pub(crate) fn incident_then(&self, number: u64, look: Option<Timestamp>) -> Option<&Incident> {
        let then = look.and_then(|look| self.known.incident(number, look));
        then.or_else(|| self.incident(number))
    }

    /// Incidents whose evidence had begun by `moment`, the newest first, as they stood at the moment
    /// looked back at.
    pub(crate) fn begun_by(
        &self,
        moment: Timestamp,
        look: Option<Timestamp>,
    ) -> impl Iterator<Item = &Incident> {
        let begun = self.incidents.iter().rev().filter(move |incident| incident.onset <= moment);
        begun.filter_map(move |incident| self.incident_then(incident.number, look))
    }

    /// The engine's verdict about a client at a moment: as it was known then, else as it was found
    /// later.
    pub(crate) fn verdict_at(&self, client: usize, moment: Timestamp) -> Option<ClientVerdict> {
        verdict_at(self.known.found_by(moment), client, moment).or_else(|| {
            let today = self.incidents.iter().rev();
            verdict_at(today, client, moment).filter(|verdict| verdict.found > moment)
        })
    }

    pub(crate) fn known(&self) -> &Known {
        &self.known
    }
}

/// Whether an incident has the same fault of the same client at the same time: one fault of a
/// sensor is one line.
fn is_in_incident(event: &Event, events: &[Event]) -> bool {
    let What::Quality { client: Some(client), what } = event.what else { return false };
    let same = |other: &Event| matches!(other.what, What::SensorFault { client: c, what: w, .. } if c == client && w == what);
    events.iter().any(|other| other.time == event.time && same(other))
}

fn pair(flags: Option<Flags>) -> [f64; 2] {
    let number = |z: bool| if z { 1.0 } else { 0.0 };
    flags.map_or([f64::NAN; 2], |flags| [number(flags.z_c), number(flags.z_a)])
}

/// The flags in the two channels of Z_c and Z_a.
fn cell(history: &History, channels: [usize; 2], column: &Column) -> FlagCell {
    let raised = |channel| match history.bucket(channel, column) {
        Bucket::Values { high, .. } => Ok(high > 0.5),
        Bucket::Missing => Err(FlagCell::Missing),
        Bucket::Outside => Err(FlagCell::Outside),
    };
    match channels.map(raised) {
        [Ok(z_c), Ok(z_a)] => FlagCell::raised(z_c, z_a),
        [Err(cell), _] | [_, Err(cell)] => cell,
    }
}

fn values(readout: &ClientReadout) -> [f64; Trace::COUNT] {
    let local = &readout.local;
    let [z_c, z_a] = pair(readout.flags());
    [
        f64::from(local.d_c),
        f64::from(local.d_a),
        f64::from(local.r_c),
        f64::from(local.r_a),
        f64::from(local.surprise),
        readout.level().map_or(f64::NAN, f64::from),
        f64::from(readout.evidence()),
        z_c,
        z_a,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::threshold::Flags;
    use crate::server::ServerView;
    use crate::site::LocalView;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a small second is an instant")
    }

    fn flagged(flags: Flags) -> ServerView {
        ServerView { flags: Some(flags), ..ServerView::default() }
    }

    #[test]
    fn a_column_is_flagged_by_its_largest_distance_and_follows_another_threshold_at_once() {
        let mut watched = Watched::new(1, 1.0);
        let readout = |d_c, d_a| ClientReadout {
            local: LocalView { d_c, d_a, ..LocalView::default() },
            server: flagged(Flags::new(false, true)),
            ..ClientReadout::default()
        };
        let news = News {
            times: (0..4).map(at).collect(),
            readouts: vec![
                readout(1.0, 1.0),
                readout(3.0, 1.0),
                readout(1.0, 1.0),
                ClientReadout::default(),
            ],
            ..News::default()
        };
        watched.take(&news);
        let cell = |from, until, tau_c| {
            let column = watched.history.column(at(from), at(until));
            watched.flags_at(0, &column, FlagThresholds { tau_c, tau_a: 4.0 })
        };
        assert_eq!(cell(0, 3, 4.0), FlagCell::raised(true, false));
        assert_eq!(cell(0, 3, 9.5), FlagCell::raised(false, false));
        assert_eq!(cell(3, 4, 4.0), FlagCell::Missing);
        assert_eq!(cell(10, 12, 4.0), FlagCell::Outside);
        let column = watched.history.column(at(0), at(3));
        assert_eq!(watched.flags_sent(0, &column), FlagCell::raised(false, true));
    }

    #[test]
    fn flags_judged_anew_stand_at_their_own_steps_where_one_could_not_be_drawn() {
        let mut watched = Watched::new(1, 1.0);
        let readout =
            ClientReadout { server: flagged(Flags::new(false, false)), ..ClientReadout::default() };
        // The third step lies before the second: another run, for which there is no axis.
        let news = News {
            times: [0, 1, 0, 2].map(at).to_vec(),
            readouts: vec![readout; 4],
            ..News::default()
        };
        watched.take(&news);
        let flags = [false, true, false, false].map(|z| Some(Flags::new(z, false))).to_vec();
        watched.take(&News { flags: Some(flags), ..News::default() });
        assert_eq!(watched.judged_until(), Some(at(2)));
        let z_c = |watched: &Watched, second: i64| {
            let column = watched.history.column(at(second), at(second + 1));
            watched.flags(0, &column) == FlagCell::raised(true, false)
        };
        assert_eq!([0, 1, 2].map(|second| z_c(&watched, second)), [false, true, false]);
        let raised =
            ClientReadout { server: flagged(Flags::new(true, false)), ..ClientReadout::default() };
        watched.take(&News { times: vec![at(3)], readouts: vec![raised], ..News::default() });
        assert!(z_c(&watched, 3), "what came later stands as it was sent");
        let sent = [false, false, false, false, true].map(|z| Some(Flags::new(z, false))).to_vec();
        watched.take(&News { flags: Some(sent), ..News::default() });
        assert_eq!(watched.judged_until(), None, "nothing differs any more");
    }
}
