//! What the clients sent for one step, gathered in whatever order it came.
//!
//! A slate is the same whatever the order of arrival: the same symbol twice is one symbol, two that
//! contradict each other are none, and what comes for another step is not for this slate.

use super::health::Report;
use super::symbol::Grading;

/// The reports of one step.
#[derive(Debug, Clone)]
pub struct Slate {
    grading: Grading,
    step: u64,
    reports: Vec<Report>,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receipt {
    /// It counts.
    Taken,
    /// The same was already there.
    Duplicate,
    /// It contradicts what was there; neither counts.
    Contradiction,
    /// It is no symbol.
    Invalid,
    /// Its step is over: the verdict does not wait.
    Late,
    /// Its step has not begun.
    Early,
    /// Nobody enrolled under that number.
    Stranger,
}

impl Slate {
    /// An empty slate for `step`.
    #[must_use]
    pub fn new(clients: usize, grading: Grading, step: u64) -> Self {
        Self { grading, step, reports: vec![Report::Missing; clients] }
    }

    /// Which step it is for.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Takes a message as it came over the wire.
    pub fn receive(&mut self, client: usize, step: u64, number: f64) -> Receipt {
        self.take(client, step, |grading| Some(Report::Symbol(grading.receive(number)?)))
    }

    /// Takes a message of tier 2.
    pub fn receive_informed(&mut self, client: usize, step: u64, numbers: [f64; 2]) -> Receipt {
        self.take(client, step, |grading| {
            let [own, informed] = numbers;
            Some(Report::Informed(grading.receive(own)?, grading.receive(informed)?))
        })
    }

    fn take(
        &mut self,
        client: usize,
        step: u64,
        read: impl Fn(&Grading) -> Option<Report>,
    ) -> Receipt {
        let Some(report) = self.reports.get_mut(client) else { return Receipt::Stranger };
        match step.cmp(&self.step) {
            std::cmp::Ordering::Less => return Receipt::Late,
            std::cmp::Ordering::Greater => return Receipt::Early,
            std::cmp::Ordering::Equal => {}
        }
        let Some(received) = read(&self.grading) else {
            *report = Report::Invalid;
            return Receipt::Invalid;
        };
        match *report {
            Report::Missing | Report::Quiet => {
                *report = received;
                Receipt::Taken
            }
            held if held == received => Receipt::Duplicate,
            Report::Raised(held) if received == Report::Symbol(held) => Receipt::Duplicate,
            Report::Symbol(_) | Report::Raised(_) | Report::Informed(..) | Report::Invalid => {
                *report = Report::Invalid;
                Receipt::Contradiction
            }
        }
    }

    /// Who sent something that counts or is held against him.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.reports.contains(&Report::Missing)
    }

    /// The reports, one a client.
    #[must_use]
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// Goes on to the next step.
    pub fn turn(&mut self) {
        self.step += 1;
        self.reports.fill(Report::Missing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_of_other_steps_and_strangers_change_nothing() {
        let mut slate = Slate::new(2, Grading::five_levels(), 7);
        assert_eq!(slate.receive(0, 6, 4.0), Receipt::Late);
        assert_eq!(slate.receive(0, 8, 4.0), Receipt::Early);
        assert_eq!(slate.receive(5, 7, 4.0), Receipt::Stranger);
        assert_eq!(slate.reports(), [Report::Missing; 2]);
        assert_eq!(slate.receive(0, 7, 1.0), Receipt::Taken);
        assert_eq!(slate.receive(0, 7, 1.0), Receipt::Duplicate);
        slate.turn();
        assert_eq!((slate.step(), slate.reports()[0]), (8, Report::Missing));
    }

    #[test]
    fn a_pair_counts_only_if_both_are_symbols_and_only_once() {
        let mut slate = Slate::new(3, Grading::five_levels(), 0);
        let at = |level| Grading::five_levels().symbol(level).expect("a level of the grading");
        assert_eq!(slate.receive_informed(0, 0, [4.0, 1.0]), Receipt::Taken);
        assert_eq!(slate.receive_informed(0, 0, [4.0, 1.0]), Receipt::Duplicate);
        assert_eq!(slate.reports()[0], Report::Informed(at(4), at(1)));
        assert_eq!(slate.receive_informed(1, 0, [4.0, f64::NAN]), Receipt::Invalid);
        assert_eq!(slate.receive_informed(2, 0, [1.0, 1.0]), Receipt::Taken);
        assert_eq!(slate.receive(2, 0, 1.0), Receipt::Contradiction);
        assert_eq!(slate.reports()[2], Report::Invalid);
    }

    proptest! {
        #[test]
        fn the_order_of_arrival_does_not_matter(
            messages in prop::collection::vec(
                (0usize..4, 4u64..7, prop_oneof![Just(0.0), Just(3.0), Just(9.0), Just(f64::NAN)]), 0..20,
            ),
            turn in 0usize..20,
        ) {
            let gather = |messages: &[(usize, u64, f64)]| {
                let mut slate = Slate::new(4, Grading::five_levels(), 5);
                for (client, step, number) in messages {
                    slate.receive(*client, *step, *number);
                }
                slate.reports().to_vec()
            };
            let mut other = messages.clone();
            other.reverse();
            let turn = turn.min(other.len());
            other.rotate_left(turn);
            prop_assert_eq!(gather(&messages), gather(&other));
        }
    }
}
