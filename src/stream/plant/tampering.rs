//! Attacks at work: what they add to set points, do to commands and hide from the record.

use super::attack::{Action, Attack, Shape};
use super::tags::{PlantRow, Tag};

/// An attack that is to begin at a given step of the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Staged {
    pub(crate) attack: &'static Attack,
    pub(crate) start: u64,
}

impl Staged {
    /// The step after its last.
    pub(crate) fn end(&self) -> u64 {
        self.start + u64::from(self.attack.duration_s)
    }
}

/// A staged attack and, for each of its actions, where the command stood when it began.
#[derive(Debug, Clone)]
struct Running {
    staged: Staged,
    stood: Vec<f64>,
}

/// All attacks of a run.
#[derive(Debug, Clone)]
pub(super) struct Tampering {
    schedule: Vec<Option<Running>>,
    step: u64,
    /// Index of the attack that is on.
    active: Option<usize>,
    tape: Tape,
}

impl Tampering {
    pub(super) fn new(schedule: &[Staged]) -> Self {
        let longest = schedule.iter().map(|s| s.attack.replay_s()).max().unwrap_or(0);
        Self {
            schedule: schedule
                .iter()
                .map(|&staged| {
                    Some(Running { staged, stood: vec![0.0; staged.attack.actions.len()] })
                })
                .collect(),
            step: 0,
            active: None,
            tape: Tape::new(longest as usize),
        }
    }

    /// Takes an attack out of the run, as if it had never been planned.
    pub(super) fn forgo(&mut self, index: usize) {
        self.schedule[index] = None;
    }

    /// Comes to step `step`; gives the index of the attack that is on.
    pub(super) fn begin(&mut self, step: u64) -> Option<usize> {
        self.step = step;
        self.active = self.schedule.iter().position(|slot| {
            slot.as_ref().is_some_and(|r| (r.staged.start..r.staged.end()).contains(&step))
        });
        self.active
    }

    /// What is added to a set point or limit inside its controller.
    pub(super) fn offset(&self, tag: Tag) -> f64 {
        let Some(running) = self.active.and_then(|i| self.schedule[i].as_ref()) else {
            return 0.0;
        };
        let elapsed = self.step - running.staged.start;
        let attack = running.staged.attack;
        attack
            .actions
            .iter()
            .map(|action| match *action {
                Action::Shift { tag: shifted, by, shape } if shifted == tag => {
                    by * level(shape, elapsed, attack.duration_s).unwrap_or(0.0)
                }
                _ => 0.0,
            })
            .sum()
    }

    /// Where a command is put instead of `normal`, if somewhere else.
    pub(super) fn command(&mut self, tag: Tag, normal: f64) -> Option<f64> {
        let running = self.schedule[self.active?].as_mut()?;
        let elapsed = self.step - running.staged.start;
        let attack = running.staged.attack;
        for (action, stood) in attack.actions.iter().zip(&mut running.stood) {
            match *action {
                Action::Move { tag: moved, by, shape } if moved == tag => {
                    if elapsed == 0 {
                        *stood = normal;
                    }
                    return level(shape, elapsed, attack.duration_s).map(|l| *stood + by * l);
                }
                Action::Force { tag: forced, to } if forced == tag => return Some(to),
                _ => {}
            }
        }
        None
    }

    /// Replays what is to be hidden, and keeps the record for replays to come.
    pub(super) fn record(&mut self, row: &mut PlantRow) {
        if let Some(running) = self.active.and_then(|i| self.schedule[i].as_ref()) {
            let attack = running.staged.attack;
            for action in attack.actions {
                if let Action::Replay { tag } = *action
                    && let Some(then) = self.tape.back(attack.duration_s as usize)
                {
                    row[tag] = then[tag];
                }
            }
        }
        self.tape.push(row);
    }
}

/// How much of a change is there; none between two pulses, when the controller has its way.
fn level(shape: Shape, elapsed: u64, duration_s: u32) -> Option<f64> {
    match shape {
        Shape::Step => Some(1.0),
        Shape::Pulse => (elapsed % 20 < 8).then_some(1.0),
        Shape::Trapezoid => {
            let x = elapsed as f64 / f64::from(duration_s);
            Some((x.min(1.0 - x) / 0.2).clamp(0.0, 1.0))
        }
    }
}

/// The last rows as they were recorded.
#[derive(Debug, Clone)]
struct Tape {
    rows: Vec<PlantRow>,
    length: usize,
    next: usize,
}

impl Tape {
    fn new(length: usize) -> Self {
        Self { rows: Vec::with_capacity(length), length, next: 0 }
    }

    fn push(&mut self, row: &PlantRow) {
        if self.rows.len() < self.length {
            self.rows.push(*row);
        } else if self.length > 0 {
            self.rows[self.next] = *row;
            self.next = (self.next + 1) % self.length;
        }
    }

    /// The row `seconds` before the one that comes next; none when the run is younger than that.
    fn back(&self, seconds: usize) -> Option<&PlantRow> {
        let place = self.rows.len().checked_sub(seconds)?;
        self.rows.get((self.next + place) % self.length)
    }
}
