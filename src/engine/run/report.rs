//! The reports of a run beside its incidents: thresholds, notes about data, the score, the summary.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{Ending, Run};
use crate::fact::{self, Fact, Number};
use crate::incident::Place;
use crate::privacy::Provenance;
use crate::score::{Judgement, Watched};
use crate::server::health::{CalibrationHealth, insensitive};
use crate::session::Mode;
use crate::site::grader::SETTLING;
use crate::site::material::LeftOut;
use crate::stream::UnusedRows;

impl Run {
    /// The thresholds of every client. They are percentiles of its distances: where flags are
    /// protected they are no fact, and stand on the client's own screen alone.
    pub(crate) fn calibrated(&self) -> Vec<Fact> {
        let hidden = self.session.privacy.protects_flags();
        let told = |tau: f32| if hidden { None } else { Number::new(f64::from(tau)) };
        let server = self.exchange.server();
        // Sites elsewhere may have calibrated themselves.
        let tau = |m: usize| self.thresholds.get(m);
        let not_judged = |m: usize| {
            let site = self.exchange.sites().get(m).filter(|_| !hidden)?;
            let steps = site.not_judged_steps();
            (server.mode() == Mode::Evidence && steps != SETTLING).then_some(steps as u64)
        };
        self.names()
            .enumerate()
            .map(|(m, client)| {
                Fact::Calibrated(fact::Calibrated {
                    client,
                    tau_c: tau(m).and_then(|tau| told(tau.tau_c)),
                    tau_a: tau(m).and_then(|tau| told(tau.tau_a)),
                    arl0_target: Number::new(self.session.thresholds.arl0.seconds),
                    alarm_steps: self.alarm_steps(m),
                    not_judged_steps: not_judged(m),
                })
            })
            .collect()
    }

    /// Sensors that cannot be watched, and clients whose calibration cannot be relied on.
    pub(super) fn add_health(&mut self, facts: &mut Vec<Fact>) {
        let time = self.frame.time;
        // Which sensors are not watched follows from measurements: it is reported like their faults.
        let told = if self.session.privacy.tells_faults() { &self.left_out[..] } else { &[] };
        for (client, left_out) in told.iter().enumerate() {
            // What data has shown to be too coarse is news; the rest is as the plant is built.
            let (coarse, usual): (Vec<_>, Vec<_>) =
                left_out.iter().partition(|(_, why)| *why == LeftOut::TooCoarse);
            for (sensor, why) in coarse {
                let what = format!("without {sensor}: {why}");
                facts.push(self.annunciator.note(time, Some(client), &what));
            }
            // Which ones is for the client's own view: the log names no sensor.
            let what = match usual.len() {
                0 => continue,
                1 => "1 sensor is not watched".to_owned(),
                n => format!("{n} sensors are not watched"),
            };
            self.annunciator.remark(time, Some(client), &what);
        }
        if let Some(what) = self.unused_nominal().summary("nominal data") {
            facts.push(self.annunciator.note(time, None, &what));
        }
        if !self.session.privacy.tells_faults() {
            let what = "sensors at fault are known to their client alone (privacy.reveal_faults)";
            facts.push(self.annunciator.note(time, None, what));
        }
        for (client, what) in self.insensitive() {
            facts.push(self.annunciator.note(time, Some(client), &what));
        }
        for (client, what) in self.abnormal.iter().enumerate() {
            if let Some(what) = what {
                facts.push(self.annunciator.note(time, Some(client), what));
            }
        }
        for client in 0..self.layout.clients.len() {
            let Some(health) = self.exchange.server().calibration(client) else { continue };
            let what = match health {
                CalibrationHealth::Healthy => continue,
                CalibrationHealth::Short { .. } => health.to_string(),
                CalibrationHealth::HalvesDisagree { .. } | CalibrationHealth::Empty => {
                    format!("out of calibration: {health}")
                }
            };
            facts.push(self.annunciator.note(time, Some(client), &what));
        }
    }

    /// Steps of nothing but the strongest symbol after which a client alarms, where symbols decide.
    pub(crate) fn alarm_steps(&self, client: usize) -> Option<Number> {
        self.exchange.server().alarm_steps(client).and_then(Number::new)
    }

    /// Clients that need too many steps for an alarm, with a message about each.
    pub(crate) fn insensitive(&self) -> Vec<(usize, String)> {
        let server = self.exchange.server();
        let of = |m: usize| Some((m, insensitive(server.alarm_steps(m)?)?));
        (0..self.layout.clients.len()).filter_map(of).collect()
    }

    /// A message about each calibration that looks abnormal in places.
    pub(crate) fn abnormal(&self) -> &[Option<String>] {
        &self.abnormal
    }

    /// Rows that had to be left out, and clocks that moved: a fact and a line of the log a stretch.
    pub(super) fn add_notes(&mut self, facts: &mut Vec<Fact>) {
        for (file, what) in self.unused.take(self.steps, &self.frame.notes) {
            let fact = self.annunciator.note(self.frame.time, None, &what);
            facts.push(in_file(fact, file));
        }
    }

    /// A word about the source, for the log; none before the first step.
    pub(crate) fn note(&mut self, what: &str) -> Option<Fact> {
        (self.steps > 0).then(|| self.annunciator.note_outside(self.now(), what))
    }

    pub(super) fn quality(&self, client: Option<String>, what: String) -> Fact {
        let time = self.frame.time;
        let Place { file, run } = self.place();
        Fact::Quality(fact::Quality { client, time, what, seconds: None, file, run })
    }

    /// Where the data of the last step came from, as facts say it.
    pub(super) fn place(&self) -> Place {
        let text = |name: &Option<std::sync::Arc<str>>| name.as_ref().map(ToString::to_string);
        Place { file: text(&self.place.file), run: text(&self.place.run) }
    }

    /// How many rows were left out so far.
    pub(crate) fn unused_rows(&self) -> UnusedRows {
        self.unused.counts()
    }

    /// How many rows and values of the nominal data were left out.
    pub(crate) fn unused_nominal(&self) -> UnusedRows {
        // Which values are wild follows from measurements: it is reported like faults of sensors.
        let told = self.session.privacy.tells_faults();
        let wild_values = if told { self.unused_nominal.wild_values } else { 0 };
        UnusedRows { wild_values, ..self.unused_nominal }
    }

    pub(super) fn not_watched(&self) -> Vec<fact::NotWatched> {
        let of = |(client, left_out): (String, &Vec<(String, LeftOut)>)| {
            let sensor = |(sensor, why): &(String, LeftOut)| fact::NotWatched {
                client: client.clone(),
                sensor: sensor.clone(),
                why: why.to_string(),
            };
            left_out.iter().map(sensor).collect::<Vec<_>>()
        };
        let told = self.session.privacy.tells_faults();
        self.names().zip(&self.left_out).filter(|_| told).flat_map(of).collect()
    }

    /// What was watched: every step says something of the time since the step before it, and of
    /// gaps nothing is said.
    pub(super) fn watched(&self) -> Watched {
        let period = SignedDuration::try_from_secs_f64(self.layout.period_s).unwrap_or_default();
        let since = |from: Timestamp| from.checked_sub(period).unwrap_or(from);
        Watched::Spans(self.spans.iter().map(|(from, until)| (since(*from), *until)).collect())
    }

    /// The score of the run; none where the data has no labels.
    pub(crate) fn judgement(&self) -> Option<Judgement<'_>> {
        let events = self.stream.events();
        (self.labelled || !events.is_empty()).then(|| {
            let watched = self.watched();
            let tail_s = self.session.replay.tail.seconds;
            Judgement::new(events, self.alarms.list(), &watched, tail_s)
        })
    }

    /// The data of the summary; `wall` is how long the run took.
    pub(crate) fn ending(&self, wall: Duration) -> Ending {
        let events = self.stream.events().to_vec();
        Ending {
            summary: self.summary(wall),
            is_labelled: self.labelled || !events.is_empty(),
            events,
            alarms: self.alarms.list().to_vec(),
            watched: self.watched(),
            tail_s: self.session.replay.tail.seconds,
        }
    }

    /// The last fact; `wall` is how long the run took.
    pub(crate) fn summary(&self, wall: Duration) -> fact::Summary {
        fact::Summary {
            session: self.session.name.clone(),
            mode: self.mode,
            seed: self.session.is_seeded().then_some(self.session.seed),
            clients: self.layout.clients.len() as u64,
            steps: self.steps,
            incidents: self.annunciator.incidents().len() as u64,
            wall_s: Number::new(wall.as_secs_f64()),
            steps_per_s: Number::new(self.steps as f64 / wall.as_secs_f64()),
            score: self.judgement().map(|judgement| judgement.score()),
            verdicts: self.annunciator.table_counts(),
            from: self.spans.first().map(|span| span.0),
            until: self.spans.last().map(|span| span.1),
            randomness: Some(Provenance::of(&self.session).label().to_owned()),
            unused_rows: self.unused_rows(),
            unused_nominal_rows: self.unused_nominal(),
            not_watched: self.not_watched(),
            suspended: self.suspended_stretches(),
            latency_ms: None,
            ledger: None,
        }
    }
}

/// A note about `file`, which may not be the file of the present step.
pub(super) fn in_file(mut fact: Fact, file: String) -> Fact {
    if let Fact::Quality(fact) = &mut fact
        && fact.file.as_ref().is_some_and(|known| *known != file)
    {
        (fact.file, fact.run) = (Some(file), None);
    }
    fact
}
