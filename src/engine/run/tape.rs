//! What crossed from the clients to the server, step by step: enough to decide the whole run again
//! under other settings.

use jiff::Timestamp;

use super::alarms::Alarms;
use super::told::Told;
use super::{evidence, paper};
use crate::evidence::health::Report;
use crate::evidence::threshold::Flags;
use crate::incident::{Annunciator, Closing};

/// How a step follows the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follows {
    /// Directly, or over a gap that was bridged.
    On,
    /// As the first of another run.
    Anew,
}

/// The record of a run. Rows are steps, columns are clients.
#[derive(Debug, Clone, Default)]
pub(super) struct Tape {
    times: Vec<Timestamp>,
    follows: Vec<Follows>,
    reports: Vec<Report>,
    measured: Vec<paper::Measured>,
}

/// The server's part of either method.
pub(super) enum Desk {
    Evidence(Box<evidence::Desk>),
    Paper(Box<paper::Desk>),
}

impl Tape {
    /// Keeps a step.
    pub fn keep(
        &mut self,
        time: Timestamp,
        anew: bool,
        reports: Option<&[Report]>,
        measured: Option<&[paper::Measured]>,
    ) {
        self.times.push(time);
        self.follows.push(if anew { Follows::Anew } else { Follows::On });
        self.reports.extend_from_slice(reports.unwrap_or_default());
        self.measured.extend_from_slice(measured.unwrap_or_default());
    }

    /// The flags of every step and client as `desk` judges them, in the rows of the steps; nothing
    /// where no distances were kept.
    pub fn flag_again(&self, mut desk: paper::Desk) -> Vec<Option<Flags>> {
        let clients = self.measured.len() / self.times.len().max(1);
        let mut flags = Vec::with_capacity(self.measured.len());
        for (row, follows) in self.measured.chunks_exact(clients.max(1)).zip(&self.follows) {
            if *follows == Follows::Anew {
                desk.reset();
            }
            flags.extend_from_slice(desk.flag(row));
        }
        flags
    }

    /// Decides everything again: the alarms there would have been.
    pub fn decide_again(&self, mut desk: Desk, mut annunciator: Annunciator) -> Alarms {
        let clients = annunciator.names().len();
        let mut told = Told::new(clients);
        let mut alarms = Alarms::default();
        for (t, (time, follows)) in self.times.iter().zip(&self.follows).enumerate() {
            told.clear();
            let row = t * clients..(t + 1) * clients;
            if *follows == Follows::Anew && t > 0 {
                alarms.hear_all(&annunciator.end(Closing::EndOfRun));
                match &mut desk {
                    Desk::Evidence(desk) => desk.reset(),
                    Desk::Paper(desk) => desk.reset(),
                }
            }
            match &mut desk {
                Desk::Evidence(desk) => desk.step(&self.reports[row], *time, &mut told),
                Desk::Paper(desk) => desk.step(&self.measured[row], *time, &mut told),
            }
            let facts = annunciator.step(&told.step(*time, t as u64 + 1));
            alarms.hear_all(&facts);
        }
        alarms.hear_all(&annunciator.end(Closing::EndOfRun));
        alarms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::threshold::FlagThresholds;

    #[test]
    fn a_day_of_three_clients_is_flagged_anew_in_a_moment_run_by_run() {
        let mut tape = Tape::default();
        let measured = |t: i64| paper::Measured {
            d2_c: (997 - t % 997) as f32,
            d2_a: 0.0,
            flip_c: false,
            flip_a: false,
            sent: true,
        };
        for t in 0..86_400 {
            let time = Timestamp::from_second(t).expect("a second of a day");
            tape.keep(time, t == 400, None, Some(&[measured(t); 3]));
        }
        let tau = FlagThresholds { tau_c: 900.0, tau_a: 900.0 };
        let rule = paper::Rule { thresholds: vec![tau; 3], deadband: 0.5, vote: None };
        let start = std::time::Instant::now();
        let flags = tape.flag_again(paper::Desk::new(rule));
        assert!(start.elapsed().as_millis() < 1000, "{:?} unoptimised", start.elapsed());
        assert_eq!(flags.len(), 3 * 86_400);
        let z_c = |t: usize| flags[3 * t].is_some_and(|flags| flags.z_c);
        assert!(z_c(0) && z_c(399), "raised, and held inside the band");
        assert!(!z_c(400), "another run remembers nothing of it");
        assert!(z_c(997 + 400) && !z_c(997 + 800), "held down to half of τ");
    }
}
