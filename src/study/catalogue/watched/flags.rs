//! The flags of each model while a session is watched: the left half of Table 4.

use jiff::Timestamp;

use super::minutes;
use crate::engine::run::sight::Sight;
use crate::evidence::threshold::Flags;
use crate::federation::variant::Variant;
use crate::score::metrics::Tick;
use crate::score::metrics::run_length;
use crate::stream::{Event, Layout};
use crate::study::detection::figures::Runs;
use crate::study::detection::flags::{FlagLine, FlagRuns, ModelFlags};
use crate::study::published::Table4;
use crate::study::report::{Cell, Table};

/// Flags step by step, a row of clients each.
#[derive(Debug, Default)]
pub(super) struct Raised {
    times: Vec<Tick>,
    flags: Vec<Option<Flags>>,
}

impl Raised {
    pub(crate) fn step(&mut self, time: Timestamp, sights: &[Sight]) {
        self.times.push(time.as_second());
        self.flags.extend(sights.iter().map(Sight::flags));
    }

    /// Both models' run lengths in seconds. Time within an event or its tail is not nominal.
    pub(crate) fn judge(
        &self,
        percentile: f64,
        layout: &Layout,
        events: &[Event],
        tail_s: f64,
    ) -> Vec<ModelFlags> {
        let (Some(first), Some(last)) = (self.times.first(), self.times.last()) else {
            return Vec::new();
        };
        let tail = tail_s.ceil() as Tick;
        let events: Vec<&Event> = events
            .iter()
            .filter(|event| (*first..=*last).contains(&event.start.as_second()))
            .collect();
        let is_nominal = |time: Tick| {
            !events.iter().any(|event| {
                (event.start.as_second()..=event.end.as_second() + tail).contains(&time)
            })
        };
        let nominal: Vec<bool> = self.times.iter().map(|time| is_nominal(*time)).collect();
        let onsets: Vec<Tick> = events.iter().map(|event| event.start.as_second()).collect();
        let runs = run_length::runs(&onsets, *last);
        let of = |model: Variant, z: fn(&Flags) -> bool| {
            let clients = layout.clients.len();
            let raised = |client: usize, step: usize| {
                self.flags[step * clients + client].as_ref().is_some_and(z)
            };
            let calm = nominal.iter().filter(|nominal| **nominal).count() * clients;
            let falsely = (0..self.times.len())
                .filter(|step| nominal[*step])
                .map(|step| (0..clients).filter(|client| raised(*client, step)).count())
                .sum();
            let (mut watched, mut ended) = (0.0, 0);
            for (run, event) in runs.iter().zip(&events) {
                let origins: Vec<usize> = (0..clients)
                    .filter(|m| event.origins.contains(&layout.clients[*m].name))
                    .collect();
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
                runs: FlagRuns {
                    arl0: Runs {
                        watched: calm as f64 * layout.period_s,
                        ended: falsely,
                        censored: clients,
                    },
                    arl1: Runs { watched, ended, censored: runs.len() - ended },
                },
            }
        };
        vec![of(Variant::OnlyProprietary, |z| z.z_c), of(Variant::Federated, |z| z.z_a)]
    }
}

/// Flags of the models, in minutes, with the paper's own beside them.
pub(in crate::study::catalogue) fn flag_table(title: &str, flags: &[&ModelFlags]) -> Table {
    let columns =
        ["percentile", "model", "ARL0 min", "paper", "ARL1 min", "paper", "censored", "runs"];
    let mut table = Table::new(title, 2, &columns);
    for line in FlagLine::all(flags) {
        let paper = Table4::find(line.model, line.percentile);
        table.line(vec![
            Cell::text(format!("{} %", line.percentile)),
            Cell::text(line.model.name()),
            minutes(&line.arl0),
            Cell::number(paper.map(|p| p.arl0_min), 1),
            minutes(&line.arl1),
            Cell::number(paper.map(|p| p.arl1_min), 1),
            Cell::text(format!(
                "{} of {}",
                line.arl1.censored,
                line.arl1.ended + line.arl1.censored
            )),
            Cell::count(line.seeds),
        ]);
    }
    table.note(
        "ARL0: nominal time of a client per flag. ARL1: from an onset to the next flag of the client \
         it is in; a run without one until the next onset is censored and counts with its full \
         length. Flags of single steps, before any look-up.",
    );
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ServerView;
    use crate::stream::ClientColumns;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    #[test]
    fn flags_outside_events_are_false_and_an_event_waits_for_its_own_client() {
        let client = |name: &str| ClientColumns {
            name: name.into(),
            title: String::new(),
            sensors: Vec::new(),
            inputs: Vec::new(),
        };
        let layout = Layout { clients: ["P1", "P2"].map(client).into(), period_s: 10.0 };
        let event = |start: i64, origin: &str| Event {
            id: String::new(),
            start: at(start),
            end: at(start + 40),
            origins: vec![origin.into()],
            affected: Vec::new(),
            what: String::new(),
        };
        let mut raised = Raised::default();
        for step in 0..40_i64 {
            // P1's own model cries at step 3 and 22, the augmented one never; P2's both at step 21.
            let z = |m: usize| Flags {
                z_c: (m == 0 && (step == 3 || step == 22)) || (m == 1 && step == 21),
                z_a: m == 1 && step == 21,
            };
            let sights = [0, 1].map(|m| {
                let server = ServerView { flags: Some(z(m)), ..ServerView::default() };
                Sight { server, ..Sight::default() }
            });
            raised.step(at(10 * step), &sights);
        }
        let events = [event(200, "P1"), event(300, "P2"), event(1000, "P1")];
        let found = raised.judge(95.0, &layout, &events, 20.0);
        let [own, augmented] = [&found[0].runs, &found[1].runs];
        // Steps 20 to 26 and 30 to 36 are of events: 26 nominal ones of two clients.
        assert_eq!(own.arl0, Runs { watched: 520.0, ended: 1, censored: 2 });
        assert_eq!(augmented.arl0.ended, 0);
        // P1 after 20 s, P2 never until the end; the event after the end is not waited for.
        assert_eq!(own.arl1, Runs { watched: 20.0 + 90.0, ended: 1, censored: 1 });
        assert_eq!(augmented.arl1, Runs { watched: 99.0 + 90.0, ended: 0, censored: 2 });
        assert!(Raised::default().judge(95.0, &layout, &events, 20.0).is_empty());
    }
}
