//! The states of an alarm and every way between them, as one table.
//!
//! ```text
//!                      raise                    acknowledge
//!            normal ──────────► unacknowledged ────────────► acknowledged
//!              ▲ ▲                 │      ▲                     │    │
//!              │ │ acknowledge     │return└─────ask again───────┘    │
//!              │ └───── returned ◄─┘                                 │
//!              └────────────────────────────────────────── return ───┘
//! ```
//!
//! Shelved, suppressed by design and out of service silence an alarm from any of these. Leaving them,
//! an alarm whose condition still holds asks for acknowledgement, any other is normal. Latched is an
//! alarm whose condition did not end but was taken for a change that stays: only the operator
//! releases it.

use serde::{Deserialize, Serialize};

/// How an alarm stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum AlarmState {
    Normal,
    /// On, and not acknowledged.
    Unacknowledged,
    Acknowledged,
    /// Over before it was acknowledged.
    Returned,
    Shelved,
    /// An effect: the alarm is that of its root.
    SuppressedByDesign,
    OutOfService,
    /// Over only because the change stays and is tolerated; held until an operator has seen it.
    Latched,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum AlarmEvent {
    Raise,
    Return,
    /// Its condition stays and is tolerated from here on.
    Latch,
    /// An operator has seen it.
    Acknowledge,
    /// Its content has changed: another root, a higher priority.
    AskAgain,
    /// An operator silences it for a time.
    Shelve,
    /// That time is over, or was ended.
    Unshelve,
    /// It turns out to be an effect.
    Suppress,
    /// It is an effect no more.
    Release,
    /// Its client is taken out of service.
    TakeOut,
    /// Its client is put back.
    PutBack,
    /// An operator takes its condition as the new normal.
    Accept,
}

/// An answer of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Stay,
    To(AlarmState),
    /// Unacknowledged while the condition holds, otherwise normal.
    Resume,
    /// An operator cannot ask for this here.
    Refuse,
}

/// An operator's wish that has no meaning in the alarm's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an alarm that is {} cannot be {}", state.word(), event.participle())]
pub(crate) struct NotNow {
    pub(crate) state: AlarmState,
    pub(crate) event: AlarmEvent,
}

const STATES: usize = 8;
const EVENTS: usize = 12;

const STAY: Answer = Answer::Stay;
const RESU: Answer = Answer::Resume;
const ____: Answer = Answer::Refuse;
const NORM: Answer = Answer::To(AlarmState::Normal);
const UNAK: Answer = Answer::To(AlarmState::Unacknowledged);
const ACKD: Answer = Answer::To(AlarmState::Acknowledged);
const RTRN: Answer = Answer::To(AlarmState::Returned);
const SHLV: Answer = Answer::To(AlarmState::Shelved);
const SUPP: Answer = Answer::To(AlarmState::SuppressedByDesign);
const OUTS: Answer = Answer::To(AlarmState::OutOfService);
const LTCH: Answer = Answer::To(AlarmState::Latched);

/// One row a state, one column an event, both in the order of their types.
///
/// Events of the data are never refused; an operator's may be.
#[rustfmt::skip]
const TABLE: [[Answer; EVENTS]; STATES] = [
    //                    raise return latch  ack  again shelve unshlv suppr releas out  back accept
    /* normal         */ [UNAK, STAY, STAY,  ____, STAY, SHLV,  ____,  SUPP, STAY, OUTS, ____, ____],
    /* unacknowledged */ [STAY, RTRN, LTCH,  ACKD, STAY, SHLV,  ____,  SUPP, STAY, OUTS, ____, NORM],
    /* acknowledged   */ [STAY, NORM, LTCH,  ____, UNAK, SHLV,  ____,  SUPP, STAY, OUTS, ____, NORM],
    /* returned       */ [UNAK, STAY, STAY,  NORM, STAY, SHLV,  ____,  SUPP, STAY, OUTS, ____, NORM],
    /* shelved        */ [STAY, STAY, STAY,  ____, STAY, SHLV,  RESU,  SUPP, STAY, OUTS, ____, NORM],
    /* suppressed     */ [STAY, STAY, STAY,  ____, STAY, ____,  ____,  STAY, RESU, OUTS, ____, NORM],
    /* out of service */ [STAY, STAY, STAY,  ____, STAY, ____,  ____,  STAY, STAY, ____, RESU, STAY],
    /* latched        */ [UNAK, STAY, STAY,  NORM, STAY, SHLV,  ____,  SUPP, STAY, OUTS, ____, NORM],
];

impl AlarmState {
    /// All of them, in the order of the table.
    #[cfg(test)]
    pub(crate) const ALL: [Self; STATES] = [
        Self::Normal,
        Self::Unacknowledged,
        Self::Acknowledged,
        Self::Returned,
        Self::Shelved,
        Self::SuppressedByDesign,
        Self::OutOfService,
        Self::Latched,
    ];

    /// The state after `event`. `condition` says whether what the alarm is about still holds; it
    /// decides what becomes of an alarm that is silenced no more.
    pub(crate) fn after(self, event: AlarmEvent, condition: bool) -> Result<Self, NotNow> {
        match TABLE[self as usize][event as usize] {
            Answer::Stay => Ok(self),
            Answer::To(state) => Ok(state),
            Answer::Resume if condition => Ok(Self::Unacknowledged),
            Answer::Resume => Ok(Self::Normal),
            Answer::Refuse => Err(NotNow { state: self, event }),
        }
    }

    /// Whether it is on the list of those that want to be seen.
    pub(crate) fn wants_acknowledgement(self) -> bool {
        matches!(self, Self::Unacknowledged | Self::Returned | Self::Latched)
    }

    /// Whether it is silenced, by an operator or by design.
    pub(crate) fn is_silenced(self) -> bool {
        matches!(self, Self::Shelved | Self::SuppressedByDesign | Self::OutOfService)
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Unacknowledged => "unacknowledged",
            Self::Acknowledged => "acknowledged",
            Self::Returned => "returned",
            Self::Shelved => "shelved",
            Self::SuppressedByDesign => "suppressed by design",
            Self::OutOfService => "out of service",
            Self::Latched => "latched",
        }
    }
}

impl AlarmEvent {
    /// All of them, in the order of the table.
    #[cfg(test)]
    pub(crate) const ALL: [Self; EVENTS] = [
        Self::Raise,
        Self::Return,
        Self::Latch,
        Self::Acknowledge,
        Self::AskAgain,
        Self::Shelve,
        Self::Unshelve,
        Self::Suppress,
        Self::Release,
        Self::TakeOut,
        Self::PutBack,
        Self::Accept,
    ];

    /// Whether an operator asks for it; the rest comes from the data.
    #[cfg(test)]
    pub(crate) fn is_of_operator(self) -> bool {
        use AlarmEvent::{Accept, Acknowledge, PutBack, Shelve, TakeOut, Unshelve};
        matches!(self, Acknowledge | Shelve | Unshelve | TakeOut | PutBack | Accept)
    }

    /// As in "cannot be …".
    pub(crate) fn participle(self) -> &'static str {
        match self {
            Self::Raise => "raised",
            Self::Return => "returned",
            Self::Latch => "latched",
            Self::Acknowledge => "acknowledged",
            Self::AskAgain => "asked about again",
            Self::Shelve => "shelved",
            Self::Unshelve => "unshelved",
            Self::Suppress => "suppressed",
            Self::Release => "released",
            Self::TakeOut => "taken out of service",
            Self::PutBack => "put back in service",
            Self::Accept => "accepted as new normal",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written a second time, in words, from the rules and not from the table.
    fn expected(state: AlarmState, event: AlarmEvent, condition: bool) -> Option<AlarmState> {
        use AlarmEvent as E;
        use AlarmState as S;
        let resumed = if condition { S::Unacknowledged } else { S::Normal };
        match event {
            E::Raise if !state.is_silenced() && state != S::Acknowledged => Some(S::Unacknowledged),
            E::Return if state == S::Unacknowledged => Some(S::Returned),
            E::Return if state == S::Acknowledged => Some(S::Normal),
            E::Latch if matches!(state, S::Unacknowledged | S::Acknowledged) => Some(S::Latched),
            E::AskAgain if state == S::Acknowledged => Some(S::Unacknowledged),
            E::Suppress if state != S::OutOfService => Some(S::SuppressedByDesign),
            E::Release if state == S::SuppressedByDesign => Some(resumed),
            E::Raise | E::Return | E::Latch | E::AskAgain | E::Suppress | E::Release => Some(state),
            E::Acknowledge => match state {
                S::Unacknowledged => Some(S::Acknowledged),
                S::Returned | S::Latched => Some(S::Normal),
                _ => None,
            },
            E::Shelve => {
                (!matches!(state, S::SuppressedByDesign | S::OutOfService)).then_some(S::Shelved)
            }
            E::Unshelve => (state == S::Shelved).then_some(resumed),
            E::TakeOut => (state != S::OutOfService).then_some(S::OutOfService),
            E::PutBack => (state == S::OutOfService).then_some(resumed),
            E::Accept => match state {
                S::Normal => None,
                S::OutOfService => Some(S::OutOfService),
                _ => Some(S::Normal),
            },
        }
    }

    #[test]
    fn every_state_has_a_defined_answer_to_every_event() {
        for state in AlarmState::ALL {
            for event in AlarmEvent::ALL {
                for condition in [false, true] {
                    let found = state.after(event, condition);
                    let expected = expected(state, event, condition).ok_or(NotNow { state, event });
                    assert_eq!(found, expected, "{state:?} {event:?} {condition}");
                }
            }
        }
    }

    #[test]
    fn what_the_data_does_is_never_refused() {
        for state in AlarmState::ALL {
            for event in AlarmEvent::ALL {
                if !event.is_of_operator() {
                    assert!(state.after(event, true).is_ok(), "{state:?} {event:?}");
                }
            }
        }
    }

    #[test]
    fn acknowledging_an_alarm_that_is_on_does_not_clear_it() {
        let seen = AlarmState::Unacknowledged.after(AlarmEvent::Acknowledge, true);
        assert_eq!(seen, Ok(AlarmState::Acknowledged));
    }

    #[test]
    fn a_silenced_alarm_never_asks_for_acknowledgement_by_what_the_data_does() {
        for state in AlarmState::ALL.into_iter().filter(|state| state.is_silenced()) {
            for event in AlarmEvent::ALL {
                let released = event == AlarmEvent::Release;
                if !event.is_of_operator() && !released {
                    let after = state.after(event, true).expect("data is never refused");
                    assert!(after.is_silenced(), "{state:?} {event:?} → {after:?}");
                }
            }
        }
    }

    #[test]
    fn every_state_can_be_reached_and_left() {
        for target in AlarmState::ALL {
            let moves = |from: AlarmState, to: AlarmState| {
                AlarmEvent::ALL.iter().any(|e| from.after(*e, true) == Ok(to))
                    || AlarmEvent::ALL.iter().any(|e| from.after(*e, false) == Ok(to))
            };
            let others = || AlarmState::ALL.into_iter().filter(move |state| *state != target);
            assert!(others().any(|other| moves(other, target)), "{target:?} is never reached");
            assert!(others().any(|other| moves(target, other)), "{target:?} is never left");
        }
    }

    #[test]
    fn a_refusal_is_said_in_words() {
        let refusal = AlarmState::Normal.after(AlarmEvent::Acknowledge, false).unwrap_err();
        assert_eq!(refusal.to_string(), "an alarm that is normal cannot be acknowledged");
    }
}
