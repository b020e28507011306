//! The flags of each model while a session is watched: the left half of Table 4.

use jiff::Timestamp;

use crate::engine::experiment::Variant;
use crate::engine::experiment::flags::{FlagRuns, ModelFlags, Span};
use crate::score::metrics::run_length::{self, RunLength, RunTotals};
use crate::score::metrics::{Tick, Window};
use crate::study::detection::flags;
use crate::study::published::Table4;
use crate::study::report::columns::{all, json, seeds, shown};
use crate::study::report::{Columns, Figure, Line, Row, Table};

/// Flags step by step, a row of clients each.
#[derive(Debug, Default)]
pub(super) struct Raised {
    times: Vec<Tick>,
    /// Z_c and Z_a.
    flags: Vec<Option<[bool; 2]>>,
}

/// An event: its seconds, and the clients it started in.
pub(super) type FlagEvent = (Window, Vec<usize>);

impl Raised {
    /// Adds a step: Z_c and Z_a of every client.
    pub(super) fn step(&mut self, time: Timestamp, flags: impl Iterator<Item = Option<[bool; 2]>>) {
        self.times.push(time.as_second());
        self.flags.extend(flags);
    }

    /// Both models' run lengths in seconds. Time within an event or its tail is not nominal.
    pub(super) fn judge(
        &self,
        percentile: f64,
        period_s: f64,
        events: &[FlagEvent],
        tail_s: f64,
    ) -> Vec<ModelFlags> {
        let (Some(first), Some(last)) = (self.times.first(), self.times.last()) else {
            return Vec::new();
        };
        let clients = self.flags.len() / self.times.len();
        let tail = tail_s.ceil() as Tick;
        let is_watched = |(window, _): &&FlagEvent| (*first..=*last).contains(&window.start);
        let events: Vec<&FlagEvent> = events.iter().filter(is_watched).collect();
        let is_nominal =
            |time: &Tick| !events.iter().any(|(window, _)| window.with_tail(tail).contains(*time));
        let nominal: Vec<bool> = self.times.iter().map(is_nominal).collect();
        let onsets: Vec<Tick> = events.iter().map(|(window, _)| window.start).collect();
        let runs = run_length::runs(&onsets, *last);
        let of = |model: Variant, z: usize| {
            let raised = |client: usize, step: usize| {
                self.flags[step * clients + client].is_some_and(|flags| flags[z])
            };
            let calm = nominal.iter().filter(|nominal| **nominal).count() * clients;
            let falsely = (0..self.times.len())
                .filter(|step| nominal[*step])
                .map(|step| (0..clients).filter(|client| raised(*client, step)).count())
                .sum();
            let (mut watched, mut ended) = (0.0, 0);
            for (run, (_, origins)) in runs.iter().zip(&events) {
                let steps = (0..self.times.len())
                    .filter(|step| origins.iter().any(|origin| raised(*origin, *step)));
                let alarms: Vec<Tick> = steps.map(|step| self.times[step]).collect();
                let length = run_length::arl1(std::slice::from_ref(run), &alarms);
                watched += length.at_least.unwrap_or(0.0);
                ended += length.ended;
            }
            ModelFlags {
                model: model.name().into(),
                percentile,
                span: Span::Step,
                runs: FlagRuns {
                    arl0: RunTotals {
                        watched: calm as f64 * period_s,
                        ended: falsely,
                        censored: clients,
                    },
                    arl1: RunTotals { watched, ended, censored: runs.len() - ended },
                },
            }
        };
        vec![of(Variant::OnlyProprietary, 0), of(Variant::Federated, 1)]
    }
}

fn arl0_min(line: &Line<'_, ModelFlags>) -> RunLength {
    flags::arl0(line).scaled(1.0 / 60.0)
}

fn arl1_min(line: &Line<'_, ModelFlags>) -> RunLength {
    flags::arl1(line).scaled(1.0 / 60.0)
}

/// Flags of the models, in minutes, with the paper's own beside them.
const COLUMNS: Columns<ModelFlags> = Columns(&[
    shown("percentile", 0, |line| Figure::Text(flags::percentile(line))),
    shown("model", 0, |line| Figure::Text(flags::model(line))),
    all("arl0", "ARL0 min", 1, |line| Figure::RunLength(arl0_min(line))),
    json("arl0_at_least", |line| Figure::Number(arl0_min(line).at_least)),
    shown("paper", 1, |line| Figure::Number(printed(line).map(|p| p.arl0_min))),
    all("arl1", "ARL1 min", 1, |line| Figure::RunLength(arl1_min(line))),
    json("arl1_at_least", |line| Figure::Number(arl1_min(line).at_least)),
    json("arl1_censored", |line| Figure::Count(flags::arl1(line).censored)),
    json("unit", |_| Figure::Text("min".into())),
    shown("paper", 1, |line| Figure::Number(printed(line).map(|p| p.arl1_min))),
    shown("censored", 0, |line| Figure::Text(flags::censored(line))),
    seeds("runs"),
]);

fn printed(line: &Line<'_, ModelFlags>) -> Option<&'static Table4> {
    let flags = line.runs.first()?;
    let model = Variant::ALL.into_iter().find(|model| model.name() == flags.model)?;
    Table4::find(model, flags.percentile)
}

/// The same for other programs.
pub(in crate::study::catalogue) fn flag_rows(family: &str, flags: &[ModelFlags]) -> Vec<Row> {
    COLUMNS.rows(&flags::lines(family, &flags.iter().collect::<Vec<_>>()))
}

pub(in crate::study::catalogue) fn flag_table(title: &str, flags: &[&ModelFlags]) -> Table {
    COLUMNS.table(title, 2, &flags::lines("", flags)).note(
        "ARL0: nominal time of a client per flag. ARL1: from an onset to the next flag of the client \
         it is in; a run without one until the next onset is censored and counts with its full \
         length. Flags of single steps, before any look-up.",
    )
    .note(
        "Of training: thresholds of the training rows, and ARL0 the time from the first of them to the \
         first flagged minute, mean over clients. That is what the paper says of its ARL0.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_outside_events_are_false_and_an_event_waits_for_its_own_client() {
        let mut raised = Raised::default();
        for step in 0..40_i64 {
            // The first client's own model raises its flag at steps 3 and 22, its augmented one never;
            // both of the second client at step 21.
            let z = [[step == 3 || step == 22, false], [step == 21, step == 21]];
            let time = Timestamp::from_second(10 * step).expect("a time");
            raised.step(time, z.into_iter().map(Some));
        }
        let event = |start: Tick, origin: usize| (Window::new(start, start + 40), vec![origin]);
        let events = [event(200, 0), event(300, 1), event(1000, 0)];
        let found = raised.judge(95.0, 10.0, &events, 20.0);
        let [own, augmented] = [&found[0].runs, &found[1].runs];
        // Steps 20 to 26 and 30 to 36 are of events: 26 nominal ones of two clients.
        assert_eq!(own.arl0, RunTotals { watched: 520.0, ended: 1, censored: 2 });
        assert_eq!(augmented.arl0.ended, 0);
        // The first after 20 s, the second never until the end; the event after the end is not waited for.
        assert_eq!(own.arl1, RunTotals { watched: 20.0 + 90.0, ended: 1, censored: 1 });
        assert_eq!(augmented.arl1, RunTotals { watched: 99.0 + 90.0, ended: 0, censored: 2 });
        assert!(Raised::default().judge(95.0, 10.0, &events, 20.0).is_empty());
    }
}
