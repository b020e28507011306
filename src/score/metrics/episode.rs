//! Which alarm belongs to which event, and precision, recall and F1 per episode.
//!
//! The rule, the same for `run`, `score` and every study:
//!
//! - An alarm belongs to an event when it opens inside the event's window, or in the tail after it:
//!   physics recovers more slowly than a label ends.
//! - A window goes before a tail. Of several windows the one that started last is meant, of several
//!   tails the one whose event ended last.
//! - The first alarm of an event decides when it was detected and what it was taken for. Later
//!   ones are repeats: neither false nor a second success.
//! - Every other alarm is false.
//!
//! Where an alarm belongs depends on its own time alone, so another alarm can never take a
//! detection away.

#[cfg(test)]
use super::Rates;
use super::{Tick, Window};

/// The result of one alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Belongs {
    /// The first one of this event.
    First(usize),
    /// A later one of this event.
    Repeat(usize),
    False,
}

/// Alarms and events, brought together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Matching {
    /// For each event its first alarm.
    pub(crate) first: Vec<Option<usize>>,
    /// For each alarm where it belongs.
    pub(crate) alarms: Vec<Belongs>,
}

impl Matching {
    /// Brings the times at which alarms opened together with `events`. Of alarms that open at the
    /// same tick the one that stands earlier in the list is the first.
    pub(crate) fn new(events: &[Window], opened: &[Tick], tail: Tick) -> Self {
        let mut order: Vec<usize> = (0..opened.len()).collect();
        order.sort_by_key(|&alarm| opened[alarm]);
        let mut matching =
            Self { first: vec![None; events.len()], alarms: vec![Belongs::False; opened.len()] };
        for alarm in order {
            let Some(event) = event_at(events, opened[alarm], tail) else { continue };
            matching.alarms[alarm] = if matching.first[event].is_none() {
                matching.first[event] = Some(alarm);
                Belongs::First(event)
            } else {
                Belongs::Repeat(event)
            };
        }
        matching
    }

    /// Events with an alarm.
    #[cfg(test)]
    pub(crate) fn detected(&self) -> usize {
        self.first.iter().flatten().count()
    }

    /// Alarms that belong to no event.
    #[cfg(test)]
    pub(crate) fn false_alarms(&self) -> usize {
        self.alarms.iter().filter(|a| **a == Belongs::False).count()
    }

    /// Precision over first and false alarms, recall over events.
    #[cfg(test)]
    pub(crate) fn rates(&self) -> Rates {
        let hits = self.detected();
        Rates::from_counts(hits, hits + self.false_alarms(), self.first.len())
    }
}

fn event_at(events: &[Window], tick: Tick, tail: Tick) -> Option<usize> {
    let inside = (0..events.len())
        .filter(|&e| events[e].contains(tick))
        .max_by_key(|&e| (events[e].start, e));
    inside.or_else(|| {
        (0..events.len())
            .filter(|&e| events[e].with_tail(tail).contains(tick))
            .max_by_key(|&e| (events[e].end, e))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn windows(list: &[(Tick, Tick)]) -> Vec<Window> {
        list.iter().map(|&(a, b)| Window::new(a, b)).collect()
    }

    #[test]
    fn an_alarm_counts_inside_the_window_and_in_the_tail_and_nowhere_else() {
        let events = windows(&[(10, 20)]);
        let matching = Matching::new(&events, &[9, 10, 20, 25, 26], 5);
        assert_eq!(
            matching.alarms,
            [
                Belongs::False,
                Belongs::First(0),
                Belongs::Repeat(0),
                Belongs::Repeat(0),
                Belongs::False
            ]
        );
        assert_eq!(matching.rates(), Rates::from_counts(1, 3, 1));
    }

    #[test]
    fn a_window_goes_before_the_tail_of_the_event_before_it() {
        let events = windows(&[(10, 20), (24, 30)]);
        let matching = Matching::new(&events, &[23, 25], 10);
        assert_eq!(matching.alarms, [Belongs::First(0), Belongs::First(1)]);
    }

    #[test]
    fn of_two_open_windows_the_later_start_is_meant() {
        let events = windows(&[(10, 50), (30, 40)]);
        let matching = Matching::new(&events, &[35, 45], 0);
        assert_eq!(matching.alarms, [Belongs::First(1), Belongs::First(0)]);
    }

    #[test]
    fn the_first_alarm_is_the_earliest_whatever_the_order_of_the_list() {
        let matching = Matching::new(&windows(&[(10, 20)]), &[18, 12, 15], 0);
        assert_eq!(matching.first, [Some(1)]);
    }

    fn events() -> impl Strategy<Value = Vec<Window>> {
        prop::collection::vec((0i64..300, 0i64..30), 0..8)
            .prop_map(|list| list.into_iter().map(|(a, n)| Window::new(a, a + n)).collect())
    }

    proptest! {
        #[test]
        fn every_share_is_bounded_and_every_alarm_is_accounted_for(
            events in events(), opened in prop::collection::vec(0i64..400, 0..20), tail in 0i64..20,
        ) {
            let matching = Matching::new(&events, &opened, tail);
            let repeats =
                matching.alarms.iter().filter(|a| matches!(a, Belongs::Repeat(_))).count();
            prop_assert_eq!(matching.detected() + repeats + matching.false_alarms(), opened.len());
            let Rates { precision, recall, f1 } = matching.rates();
            for rate in [precision, recall, f1].into_iter().flatten() {
                prop_assert!((0.0..=1.0).contains(&rate));
            }
        }

        #[test]
        fn the_order_of_alarms_does_not_matter(
            events in events(),
            opened in prop::collection::vec(0i64..400, 0..20).prop_flat_map(|list| {
                (Just(list.clone()), Just(list).prop_shuffle())
            }),
        ) {
            let (one, other) = opened;
            let (one, other) = (Matching::new(&events, &one, 9), Matching::new(&events, &other, 9));
            prop_assert_eq!(one.rates(), other.rates());
        }

        #[test]
        fn a_false_alarm_never_raises_precision_and_a_right_one_never_lowers_recall(
            events in events(), opened in prop::collection::vec(0i64..400, 0..20), more in 0i64..400,
        ) {
            let before = Matching::new(&events, &opened, 9);
            let mut longer = opened.clone();
            longer.push(more);
            let after = Matching::new(&events, &longer, 9);
            match after.alarms[opened.len()] {
                Belongs::False => prop_assert!(
                    after.rates().precision <= before.rates().precision.or(Some(1.0))
                ),
                _ => prop_assert!(after.rates().recall >= before.rates().recall),
            }
        }

        #[test]
        fn one_alarm_at_the_start_of_each_event_is_perfect(
            gaps in prop::collection::vec((1i64..40, 0i64..30), 1..8),
        ) {
            let mut at = 0;
            let events: Vec<Window> = gaps.into_iter().map(|(gap, length)| {
                let window = Window::new(at + gap, at + gap + length);
                at = window.end;
                window
            }).collect();
            let opened: Vec<Tick> = events.iter().map(|e| e.start).collect();
            let rates = Matching::new(&events, &opened, 5).rates();
            prop_assert_eq!(rates, Rates::new(Some(1.0), Some(1.0)));
        }
    }
}
