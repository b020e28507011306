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

/// What a client sends for one step, as it comes over the wire: nobody has checked the numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Posted {
    /// Who says so.
    pub client: usize,
    /// For which step.
    pub step: u64,
    /// What.
    pub says: Says,
}

/// What is said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Says {
    /// A symbol.
    Symbol(f64),
    /// The first symbol after its watch was raised.
    Raised(f64),
    /// Two of them (tier 2).
    Informed([f64; 2]),
    /// Nothing, as agreed while its watch is armed.
    Quiet,
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

    /// Takes a symbol.
    pub fn receive(&mut self, client: usize, step: u64, number: f64) -> Receipt {
        self.take(Posted { client, step, says: Says::Symbol(number) })
    }

    /// Takes what came, whenever it came.
    pub fn take(&mut self, posted: Posted) -> Receipt {
        let Some(report) = self.reports.get_mut(posted.client) else { return Receipt::Stranger };
        match posted.step.cmp(&self.step) {
            std::cmp::Ordering::Less => return Receipt::Late,
            std::cmp::Ordering::Greater => return Receipt::Early,
            std::cmp::Ordering::Equal => {}
        }
        let Some(received) = posted.says.read(&self.grading) else {
            *report = Report::Invalid;
            return Receipt::Invalid;
        };
        match (*report, received) {
            (held, received) if held == received => Receipt::Duplicate,
            (Report::Missing | Report::Quiet, received) => {
                *report = received;
                Receipt::Taken
            }
            // Silence contradicts nothing: whoever speaks was not silent.
            (_, Report::Quiet) => Receipt::Duplicate,
            _ => {
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
        self.turn_to(self.step + 1);
    }

    /// Goes on to any other step.
    pub fn turn_to(&mut self, step: u64) {
        self.step = step;
        self.reports.fill(Report::Missing);
    }
}

impl Says {
    /// The report, if every number is a symbol.
    fn read(self, grading: &Grading) -> Option<Report> {
        Some(match self {
            Self::Symbol(number) => Report::Symbol(grading.receive(number)?),
            Self::Raised(number) => Report::Raised(grading.receive(number)?),
            Self::Informed([own, beside]) => {
                Report::Informed(grading.receive(own)?, grading.receive(beside)?)
            }
            Self::Quiet => Report::Quiet,
        })
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
        let pair = |client, numbers| Posted { client, step: 0, says: Says::Informed(numbers) };
        assert_eq!(slate.take(pair(0, [4.0, 1.0])), Receipt::Taken);
        assert_eq!(slate.take(pair(0, [4.0, 1.0])), Receipt::Duplicate);
        assert_eq!(slate.reports()[0], Report::Informed(at(4), at(1)));
        assert_eq!(slate.take(pair(1, [4.0, f64::NAN])), Receipt::Invalid);
        assert_eq!(slate.take(pair(2, [1.0, 1.0])), Receipt::Taken);
        assert_eq!(slate.receive(2, 0, 1.0), Receipt::Contradiction);
        assert_eq!(slate.reports()[2], Report::Invalid);
    }

    #[test]
    fn who_speaks_was_not_silent_whichever_is_heard_first() {
        let mut slate = Slate::new(2, Grading::five_levels(), 0);
        let says = |client, says| Posted { client, step: 0, says };
        assert_eq!(slate.take(says(0, Says::Quiet)), Receipt::Taken);
        assert_eq!(slate.take(says(0, Says::Raised(3.0))), Receipt::Taken);
        assert_eq!(slate.take(says(1, Says::Raised(3.0))), Receipt::Taken);
        assert_eq!(slate.take(says(1, Says::Quiet)), Receipt::Duplicate);
        assert_eq!(slate.reports()[0], slate.reports()[1]);
    }

    fn says() -> impl Strategy<Value = Says> {
        let number = || prop_oneof![Just(0.0), Just(3.0), Just(9.0), Just(f64::NAN)];
        prop_oneof![
            3 => number().prop_map(Says::Symbol),
            1 => number().prop_map(Says::Raised),
            1 => (number(), number()).prop_map(|(own, beside)| Says::Informed([own, beside])),
            1 => Just(Says::Quiet),
        ]
    }

    proptest! {
        #[test]
        fn the_order_of_arrival_does_not_matter(
            messages in prop::collection::vec((0usize..5, 4u64..7, says()), 0..20),
            turn in 0usize..20,
        ) {
            let gather = |messages: &[(usize, u64, Says)]| {
                let mut slate = Slate::new(4, Grading::five_levels(), 5);
                for (client, step, says) in messages {
                    slate.take(Posted { client: *client, step: *step, says: *says });
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
