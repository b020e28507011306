//! All that the engine has said so far, in the shape the screen needs it: what was seen of every
//! client on one axis of time, incidents, the log, how everything stands.

use jiff::Timestamp;

use crate::engine::run::sight::Sight;
use crate::engine::watch::{News, Standing};
use crate::evidence::threshold::FlagThresholds;
use crate::fact::Priority;
use crate::history::{Bucket, Column, History};
use crate::incident::{Action, Entry, Incident, Origin, What};

/// One quantity that is drawn over time for every client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trace {
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
    /// Level of the symbol sent.
    Level,
    /// S_m by b_m.
    Evidence,
    /// Z_c as sent, 0 or 1.
    FlagC,
    /// Z_a as sent, 0 or 1.
    FlagA,
}

impl Trace {
    const COUNT: usize = 9;
}

/// What a client was at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Nothing is the matter with it.
    Quiet,
    /// Root of this incident.
    Root(u64),
    /// It feels this incident.
    Effect(u64),
    /// An anomaly of its own, without more, or one candidate among several.
    Single(u64),
}

/// The flags of one client in one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagCell {
    /// Before or after what is known.
    Outside,
    /// There should be flags, and there are none.
    Missing,
    /// Whether either was raised at some step of the column.
    Flags {
        /// Z_c.
        z_c: bool,
        /// Z_a.
        z_a: bool,
    },
}

/// What the engine has said.
#[derive(Debug, Clone)]
pub struct Watched {
    clients: usize,
    /// One row a step; see [`Trace`].
    pub history: History,
    /// Incident `n` stands at `n − 1`, as it stands now.
    pub incidents: Vec<Incident>,
    /// The sequence of events.
    pub log: Vec<Entry>,
    /// What was seen of every client at the last step.
    pub latest: Vec<Sight>,
    /// How everything stands; nothing before the first step.
    pub standing: Option<Standing>,
    row: Vec<f64>,
}

impl Watched {
    /// Nothing yet, of so many clients that take a step every `period_s` seconds.
    #[must_use]
    pub fn new(clients: usize, period_s: f64) -> Self {
        Self {
            clients,
            history: History::new(period_s, clients * Trace::COUNT),
            incidents: Vec::new(),
            log: Vec::new(),
            latest: Vec::new(),
            standing: None,
            row: vec![f64::NAN; clients * Trace::COUNT],
        }
    }

    /// Takes what is new.
    pub fn take(&mut self, news: &News) {
        let rows = news.sights.chunks_exact(self.clients.max(1));
        for (time, sights) in news.times.iter().zip(rows) {
            for (row, sight) in self.row.chunks_exact_mut(Trace::COUNT).zip(sights) {
                row.copy_from_slice(&values(sight));
            }
            self.latest.clear();
            self.latest.extend_from_slice(sights);
            // A run that starts again before the end of the last one cannot be drawn on one axis.
            let _ = self.history.push(*time, &self.row);
        }
        for incident in &news.incidents {
            match self.incidents.get_mut(incident.number as usize - 1) {
                Some(known) => known.clone_from(incident),
                None => self.incidents.push(incident.clone()),
            }
        }
        self.log.extend_from_slice(&news.entries);
    }

    /// The channel of `trace` of a client in the history.
    #[must_use]
    pub fn channel(client: usize, trace: Trace) -> usize {
        client * Trace::COUNT + trace as usize
    }

    /// What `trace` of a client shows in `column`.
    #[must_use]
    pub fn bucket(&self, client: usize, trace: Trace, column: &Column) -> Bucket {
        self.history.bucket(Self::channel(client, trace), column)
    }

    /// The value of a trace at a moment.
    #[must_use]
    pub fn value_at(&self, client: usize, trace: Trace, moment: Timestamp) -> Option<f32> {
        self.history.value_at(Self::channel(client, trace), moment)
    }

    /// The thresholds that stand now, as squared distances.
    #[must_use]
    pub fn thresholds(&self, client: usize) -> Option<FlagThresholds> {
        self.standing.as_ref()?.thresholds.get(client).copied()
    }

    /// The flags of a client in a column at some thresholds: distances are kept, so that another τ
    /// is another picture at once.
    #[must_use]
    pub fn flags_at(&self, client: usize, column: &Column, tau: FlagThresholds) -> FlagCell {
        let above = |trace, tau: f32| match self.bucket(client, trace, column) {
            Bucket::Values { high, .. } => Ok(high * high > tau),
            Bucket::Missing => Err(FlagCell::Missing),
            Bucket::Outside => Err(FlagCell::Outside),
        };
        match (above(Trace::DistanceC, tau.tau_c), above(Trace::DistanceA, tau.tau_a)) {
            (Ok(z_c), Ok(z_a)) => FlagCell::Flags { z_c, z_a },
            (Err(cell), _) | (_, Err(cell)) => cell,
        }
    }

    /// The flags of a client in a column as they were sent, noise and all.
    #[must_use]
    pub fn flags_sent(&self, client: usize, column: &Column) -> FlagCell {
        let raised = |trace| match self.bucket(client, trace, column) {
            Bucket::Values { high, .. } => Ok(high > 0.5),
            Bucket::Missing => Err(FlagCell::Missing),
            Bucket::Outside => Err(FlagCell::Outside),
        };
        match (raised(Trace::FlagC), raised(Trace::FlagA)) {
            (Ok(z_c), Ok(z_a)) => FlagCell::Flags { z_c, z_a },
            (Err(cell), _) | (_, Err(cell)) => cell,
        }
    }

    /// A line of the log in words: what is undone or done again is said by its own.
    #[must_use]
    pub fn words(&self, entry: &Entry, names: &[String]) -> String {
        let undoes = |entry: &Entry| match entry.what {
            What::Did(Action::Undo { entry }) => self.log.iter().find(|e| e.number == entry),
            _ => None,
        };
        let (what, entry) = match undoes(entry).map(|undone| (undone, undoes(undone))) {
            None => ("", entry),
            Some((undone, None)) => ("undone: ", undone),
            Some((_, Some(done))) => ("done again: ", done),
        };
        format!("{what}{}", entry.words(names))
    }

    /// The incident of that number.
    #[must_use]
    pub fn incident(&self, number: u64) -> Option<&Incident> {
        self.incidents.get((number as usize).checked_sub(1)?)
    }

    /// Incidents whose evidence had begun by a moment, as is known today, the newest first.
    pub fn begun_by(&self, moment: Timestamp) -> impl Iterator<Item = &Incident> {
        self.incidents.iter().rev().filter(move |incident| incident.onset <= moment)
    }

    /// What a client was at a moment, as is known today: an incident is there from the first of its
    /// evidence on, also where it was found later.
    #[must_use]
    pub fn role_at(&self, client: usize, moment: Timestamp) -> Role {
        let concerns =
            |i: &&Incident| i.member(client).is_some_and(|member| member.onset <= moment);
        let lasts = |i: &&Incident| i.closed.is_none_or(|closed| closed.time > moment);
        let Some(incident) = self.begun_by(moment).filter(lasts).find(concerns) else {
            return Role::Quiet;
        };
        if incident.root != Some(client) {
            // Without a named root everyone who shows something is a candidate, and no effect.
            return match incident.root {
                Some(_) => Role::Effect(incident.number),
                None => Role::Single(incident.number),
            };
        }
        if incident.origin == Origin::Single || incident.priority == Priority::P3 {
            Role::Single(incident.number)
        } else {
            Role::Root(incident.number)
        }
    }
}

fn values(sight: &Sight) -> [f64; Trace::COUNT] {
    let flag = |z: Option<bool>| z.map_or(f64::NAN, |z| if z { 1.0 } else { 0.0 });
    [
        f64::from(sight.d_c),
        f64::from(sight.d_a),
        f64::from(sight.r_c),
        f64::from(sight.r_a),
        f64::from(sight.surprise),
        sight.level.map_or(f64::NAN, f64::from),
        f64::from(sight.evidence),
        flag(sight.flags.map(|flags| flags.z_c)),
        flag(sight.flags.map(|flags| flags.z_a)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::threshold::Flags;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a small second is an instant")
    }

    #[test]
    fn a_column_is_flagged_by_its_largest_distance_and_follows_another_threshold_at_once() {
        let mut watched = Watched::new(1, 1.0);
        let sight =
            |d_c, d_a| Sight { d_c, d_a, flags: Some(Flags::new(false, true)), ..Sight::default() };
        let news = News {
            times: (0..4).map(at).collect(),
            sights: vec![sight(1.0, 1.0), sight(3.0, 1.0), sight(1.0, 1.0), Sight::default()],
            ..News::default()
        };
        watched.take(&news);
        let cell = |from, until, tau_c| {
            let column = watched.history.column(at(from), at(until));
            watched.flags_at(0, &column, FlagThresholds { tau_c, tau_a: 4.0 })
        };
        assert_eq!(cell(0, 3, 4.0), FlagCell::Flags { z_c: true, z_a: false });
        assert_eq!(cell(0, 3, 9.5), FlagCell::Flags { z_c: false, z_a: false });
        assert_eq!(cell(3, 4, 4.0), FlagCell::Missing);
        assert_eq!(cell(10, 12, 4.0), FlagCell::Outside);
        let column = watched.history.column(at(0), at(3));
        assert_eq!(watched.flags_sent(0, &column), FlagCell::Flags { z_c: false, z_a: true });
    }
}
