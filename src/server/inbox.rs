//! The messages of one step, gathered in whatever order they came.
//!
//! Guarantees: the order of arrival does not matter. The same message twice is one message, two that
//! contradict each other are none, and what comes for another step changes nothing.

use super::health::Report;
use crate::evidence::severity::SEVERITIES;
use crate::evidence::symbol::{Grading, Symbol};
use crate::evidence::threshold::Flags;
use crate::wire::{Content, Message, Numbers};

/// What the clients sent for one step.
#[derive(Debug, Clone)]
pub(crate) struct Inbox {
    grading: Grading,
    step: u64,
    reports: Vec<Report>,
    flags: Vec<FlagReport>,
    /// z of each client (tier 2).
    summaries: Vec<Option<Numbers>>,
}

/// A client's flags at a step, as they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum FlagReport {
    #[default]
    Missing,
    Flags(Flags),
    /// Two that contradict each other.
    Invalid,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receipt {
    Taken,
    /// The same was already there.
    Duplicate,
    /// It contradicts what was there; neither counts.
    Contradiction,
    /// Its content is not possible.
    Invalid,
    /// Its step is over: the verdict does not wait.
    Late,
    /// Its step has not begun.
    Early,
    /// Nobody enrolled under that number.
    Stranger,
    /// It has no place here: another part of the server takes such messages.
    Misplaced,
}

impl Inbox {
    /// An empty inbox for `step`.
    pub(crate) fn new(clients: usize, grading: Grading, step: u64) -> Self {
        Self {
            grading,
            step,
            reports: vec![Report::Missing; clients],
            flags: vec![FlagReport::Missing; clients],
            summaries: vec![None; clients],
        }
    }

    pub(crate) fn step(&self) -> u64 {
        self.step
    }

    /// Takes a message about a step, whenever it came.
    pub(crate) fn take(&mut self, message: &Message) -> Receipt {
        let client = message.client();
        if client >= self.reports.len() {
            return Receipt::Stranger;
        }
        match message.step().cmp(&self.step) {
            std::cmp::Ordering::Less => return Receipt::Late,
            std::cmp::Ordering::Greater => return Receipt::Early,
            std::cmp::Ordering::Equal => {}
        }
        match message.content() {
            Content::Symbol { own, beside, raised } => {
                self.report(client, self.read(*own, *beside, *raised))
            }
            Content::Severe { own, severity } => {
                let own = self.grading.symbol(usize::from(*own));
                let own = own.filter(|_| *severity < SEVERITIES);
                self.report(client, own.map(|own| Report::Severe(own, *severity)))
            }
            Content::Quiet => self.report(client, Some(Report::Quiet)),
            Content::Flags { z_c, z_a } => self.flag(client, Flags::new(*z_c, *z_a)),
            Content::Summary { z, .. } => {
                let held = &mut self.summaries[client];
                match held {
                    Some(known) if known == z => Receipt::Duplicate,
                    Some(known) => {
                        // No state has no numbers.
                        known.clear();
                        Receipt::Contradiction
                    }
                    None => {
                        *held = Some(z.clone());
                        Receipt::Taken
                    }
                }
            }
            Content::States { .. }
            | Content::Enrolment(_)
            | Content::Faults(_)
            | Content::Sensors(_) => Receipt::Misplaced,
        }
    }

    /// The report, if every number is a symbol.
    fn read(&self, own: u8, beside: Option<u8>, raised: bool) -> Option<Report> {
        let symbol = |level: u8| -> Option<Symbol> { self.grading.symbol(usize::from(level)) };
        Some(match (beside, raised) {
            (None, false) => Report::Symbol(symbol(own)?),
            (None, true) => Report::Raised(symbol(own)?),
            (Some(beside), false) => Report::Informed(symbol(own)?, symbol(beside)?),
            // After a raised watch there is one symbol.
            (Some(_), true) => return None,
        })
    }

    fn report(&mut self, client: usize, received: Option<Report>) -> Receipt {
        let held = &mut self.reports[client];
        let Some(received) = received else {
            *held = Report::Invalid;
            return Receipt::Invalid;
        };
        match (*held, received) {
            (held, received) if held == received => Receipt::Duplicate,
            (Report::Missing | Report::Quiet, received) => {
                *held = received;
                Receipt::Taken
            }
            // Silence contradicts nothing: whoever speaks was not silent.
            (_, Report::Quiet) => Receipt::Duplicate,
            _ => {
                *held = Report::Invalid;
                Receipt::Contradiction
            }
        }
    }

    fn flag(&mut self, client: usize, flags: Flags) -> Receipt {
        let held = &mut self.flags[client];
        match *held {
            FlagReport::Missing => {
                *held = FlagReport::Flags(flags);
                Receipt::Taken
            }
            FlagReport::Flags(known) if known == flags => Receipt::Duplicate,
            FlagReport::Flags(_) | FlagReport::Invalid => {
                *held = FlagReport::Invalid;
                Receipt::Contradiction
            }
        }
    }

    /// What came of each client's symbols.
    pub(crate) fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// The flags of a client; none where there are none that count.
    pub(crate) fn flags(&self, client: usize) -> Option<Flags> {
        match self.flags[client] {
            FlagReport::Flags(flags) => Some(flags),
            FlagReport::Missing | FlagReport::Invalid => None,
        }
    }

    /// z of a client, where it came.
    pub(crate) fn summary(&self, client: usize) -> Option<&Numbers> {
        self.summaries[client].as_ref()
    }

    /// Goes on to another step.
    pub(crate) fn turn_to(&mut self, step: u64) {
        self.step = step;
        self.reports.fill(Report::Missing);
        self.flags.fill(FlagReport::Missing);
        self.summaries.fill(None);
    }

    /// Puts in what was recorded of a step.
    pub(super) fn restore(&mut self, reports: &[Report], flags: &[Option<Flags>]) {
        self.reports[..reports.len()].copy_from_slice(reports);
        for (held, flags) in self.flags.iter_mut().zip(flags) {
            *held = flags.map_or(FlagReport::Missing, FlagReport::Flags);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::testing::message;
    use proptest::prelude::*;

    fn symbol(own: u8) -> Content {
        Content::Symbol { own, beside: None, raised: false }
    }

    fn take(inbox: &mut Inbox, client: usize, step: u64, content: Content) -> Receipt {
        inbox.take(&message(client, step, content))
    }

    #[test]
    fn messages_of_other_steps_and_strangers_change_nothing() {
        let mut inbox = Inbox::new(2, Grading::five_levels(), 7);
        assert_eq!(take(&mut inbox, 0, 6, symbol(4)), Receipt::Late);
        assert_eq!(take(&mut inbox, 0, 8, symbol(4)), Receipt::Early);
        assert_eq!(take(&mut inbox, 5, 7, symbol(4)), Receipt::Stranger);
        assert_eq!(inbox.reports(), [Report::Missing; 2]);
        assert_eq!(take(&mut inbox, 0, 7, symbol(1)), Receipt::Taken);
        assert_eq!(take(&mut inbox, 0, 7, symbol(1)), Receipt::Duplicate);
        inbox.turn_to(8);
        assert_eq!((inbox.step(), inbox.reports()[0]), (8, Report::Missing));
    }

    #[test]
    fn a_pair_counts_only_if_both_are_symbols_and_only_once() {
        let mut inbox = Inbox::new(3, Grading::five_levels(), 0);
        let at = |level| Grading::five_levels().symbol(level).expect("a level of the grading");
        let pair = |own, beside| Content::Symbol { own, beside: Some(beside), raised: false };
        assert_eq!(take(&mut inbox, 0, 0, pair(4, 1)), Receipt::Taken);
        assert_eq!(take(&mut inbox, 0, 0, pair(4, 1)), Receipt::Duplicate);
        assert_eq!(inbox.reports()[0], Report::Informed(at(4), at(1)));
        assert_eq!(take(&mut inbox, 1, 0, pair(4, 9)), Receipt::Invalid);
        assert_eq!(take(&mut inbox, 2, 0, pair(1, 1)), Receipt::Taken);
        assert_eq!(take(&mut inbox, 2, 0, symbol(1)), Receipt::Contradiction);
        assert_eq!(inbox.reports()[2], Report::Invalid);
    }

    #[test]
    fn who_speaks_was_not_silent_whichever_is_heard_first() {
        let mut inbox = Inbox::new(2, Grading::five_levels(), 0);
        let raised = || Content::Symbol { own: 3, beside: None, raised: true };
        assert_eq!(take(&mut inbox, 0, 0, Content::Quiet), Receipt::Taken);
        assert_eq!(take(&mut inbox, 0, 0, raised()), Receipt::Taken);
        assert_eq!(take(&mut inbox, 1, 0, raised()), Receipt::Taken);
        assert_eq!(take(&mut inbox, 1, 0, Content::Quiet), Receipt::Duplicate);
        assert_eq!(inbox.reports()[0], inbox.reports()[1]);
    }

    #[test]
    fn flags_that_contradict_each_other_are_none() {
        let mut inbox = Inbox::new(1, Grading::one_bit(), 0);
        let flags = |z_c| Content::Flags { z_c, z_a: false };
        assert_eq!(take(&mut inbox, 0, 0, flags(true)), Receipt::Taken);
        assert_eq!(inbox.flags(0), Some(Flags::new(true, false)));
        assert_eq!(take(&mut inbox, 0, 0, flags(false)), Receipt::Contradiction);
        assert_eq!(take(&mut inbox, 0, 0, flags(true)), Receipt::Contradiction);
        assert_eq!(inbox.flags(0), None);
    }

    fn content() -> impl Strategy<Value = Content> {
        let level = || prop_oneof![Just(0u8), Just(3), Just(9)];
        prop_oneof![
            3 => level().prop_map(symbol),
            1 => level().prop_map(|own| Content::Symbol { own, beside: None, raised: true }),
            1 => (level(), level()).prop_map(|(own, beside)| {
                Content::Symbol { own, beside: Some(beside), raised: false }
            }),
            1 => (level(), prop_oneof![Just(2u8), Just(31), Just(32)])
                .prop_map(|(own, severity)| Content::Severe { own, severity }),
            1 => Just(Content::Quiet),
            1 => (any::<bool>(), any::<bool>())
                .prop_map(|(z_c, z_a)| Content::Flags { z_c, z_a }),
        ]
    }

    proptest! {
        #[test]
        fn the_order_of_arrival_does_not_matter(
            messages in prop::collection::vec((0usize..5, 4u64..7, content()), 0..20),
            turn in 0usize..20,
        ) {
            let gather = |messages: &[(usize, u64, Content)]| {
                let mut inbox = Inbox::new(4, Grading::five_levels(), 5);
                for (client, step, content) in messages {
                    take(&mut inbox, *client, *step, content.clone());
                }
                let flags: Vec<_> = (0..4).map(|m| inbox.flags(m)).collect();
                (inbox.reports().to_vec(), flags)
            };
            let mut other = messages.clone();
            other.reverse();
            let turn = turn.min(other.len());
            other.rotate_left(turn);
            prop_assert_eq!(gather(&messages), gather(&other));
        }
    }
}
