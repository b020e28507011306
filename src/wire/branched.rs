//! A carrier that delivers a log up to a moment, and other messages from there on.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::carrier::{Wire, WireError};
use super::message::{Content, Message, Outgoing};
use super::recorded::{Crossed, Entries, RecordedWire};
use super::to_site::{Order, ToSite};

/// Messages of a step, in the order in which the server receives them.
pub(crate) type Delivery = Vec<Message>;

/// What is delivered from a moment on.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// Before the next step, each time that the server takes what has arrived.
    pub(crate) at_once: VecDeque<Delivery>,
    /// One delivery a step.
    pub(crate) steps: VecDeque<Delivery>,
    /// The sensors that clients named, by client and step.
    answers: BTreeMap<(usize, u64), Message>,
}

/// Turns a carrier to other messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct Switch(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Where the carrier stands in its log.
    log: Vec<u8>,
    rest: Option<Rest>,
}

impl Switch {
    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the log still holds, by step: from `first` on, so many steps.
    pub(crate) fn rest(&self, first: u64, steps: usize) -> Rest {
        let mut rest = Rest { steps: vec![Vec::new(); steps].into(), ..Rest::default() };
        self.with(|state| {
            for entry in Entries::of(&state.log).map_while(Result::ok) {
                let Crossed::Up(message) = entry else { continue };
                if matches!(message.content(), Content::Sensors(_)) {
                    rest.answers.insert((message.client(), message.step()), message);
                    continue;
                }
                let at = message.step().checked_sub(first).map(|at| at as usize);
                // What has no step came with an order, and there are no orders any more.
                if let Some(delivery) = at.and_then(|at| rest.steps.get_mut(at)) {
                    delivery.push(message);
                }
            }
        });
        rest
    }

    /// From now on `rest` is delivered.
    pub(crate) fn turn_to(&self, rest: Rest) {
        self.with(|state| state.rest = Some(rest));
    }
}

/// The carrier.
pub(crate) struct Branched {
    recorded: RecordedWire,
    switch: Switch,
    /// What is being delivered.
    now: Option<VecDeque<Message>>,
}

impl Branched {
    /// The carrier of a log, and what turns it to other messages.
    pub(crate) fn new(recorded: RecordedWire) -> (Self, Switch) {
        let switch = Switch::default();
        switch.with(|state| state.log = recorded.left().to_vec());
        (Self { recorded, switch: switch.clone(), now: None }, switch)
    }
}

impl Wire for Branched {
    fn send(&mut self, _: Outgoing) -> Result<(), WireError> {
        Ok(())
    }

    fn receive(&mut self) -> Option<Message> {
        let Self { recorded, switch, now } = self;
        switch.with(|state| {
            let Some(rest) = &mut state.rest else {
                let message = recorded.receive();
                let gone = state.log.len() - recorded.left().len();
                state.log.drain(..gone);
                return message;
            };
            let delivery = now.get_or_insert_with(|| {
                let next = rest.at_once.pop_front().or_else(|| rest.steps.pop_front());
                next.unwrap_or_default().into()
            });
            let message = delivery.pop_front();
            if message.is_none() {
                *now = None;
            }
            message
        })
    }

    fn send_to_site(&mut self, message: ToSite) -> Result<(), WireError> {
        self.switch.with(|state| {
            if let (Some(rest), Order::NameSensors) = (&mut state.rest, message.order()) {
                // The answer is taken before the next step.
                let answer = rest.answers.get(&(message.client(), message.step())).cloned();
                rest.at_once.push_back(answer.into_iter().collect());
            }
        });
        Ok(())
    }

    fn receive_at_site(&mut self) -> Option<ToSite> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::testing::outgoing;
    use crate::wire::{CarrierLog, Logged, Memory};

    #[test]
    fn a_log_is_delivered_up_to_a_moment_and_other_messages_from_there_on() {
        let log = CarrierLog::default();
        let mut wire = Logged::new(Box::new(Memory::default()), log.clone());
        let flags = |raised| Content::Flags { z_c: raised, z_a: false };
        for step in 1..=4 {
            wire.send(outgoing(0, step, flags(false))).expect("in memory");
            while wire.receive().is_some() {}
        }
        let mut bytes = Vec::new();
        log.drain_into(&mut bytes);
        let (mut wire, switch) = Branched::new(RecordedWire::new(bytes).expect("a log"));
        for step in 1..=2 {
            assert_eq!(wire.receive().map(|message| message.step()), Some(step));
            assert_eq!(wire.receive(), None);
        }
        let mut rest = switch.rest(3, 2);
        assert_eq!(rest.steps.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1]);
        let other = outgoing(0, 4, flags(true)).delivered().expect("a message");
        rest.steps[1] = vec![other.clone()];
        rest.at_once.push_back(Vec::new());
        switch.turn_to(rest);
        assert_eq!(wire.receive(), None, "the order took what had arrived");
        assert_eq!(wire.receive().map(|message| message.step()), Some(3));
        assert_eq!(wire.receive(), None);
        // A question has its own answer, and does not take that of the step.
        wire.send_to_site(ToSite::name_sensors(0, 3)).expect("in memory");
        assert_eq!(wire.receive(), None);
        assert_eq!(wire.receive(), Some(other));
        assert_eq!((wire.receive(), wire.receive()), (None, None));
    }
}
