//! Orders on their way to the engine. It answers them in their order, so that it is enough to keep the
//! row of those who wait.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::engine::handle::{Command, Commander};
use crate::incident::Order;

/// Who has given an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Giver {
    /// The service itself: its session file was read again.
    Service,
    Console(u64),
}

/// Takes orders for one engine.
#[derive(Debug)]
pub(crate) struct OrderDesk {
    engine: Commander,
    waiting: Mutex<VecDeque<Giver>>,
}

impl OrderDesk {
    pub(crate) fn new(engine: Commander) -> Self {
        Self { engine, waiting: Mutex::default() }
    }

    /// Hands an order over; it is not where the engine has too much to do.
    pub(crate) fn hand_in(&self, giver: Giver, order: &Order) -> bool {
        // Under one lock: the row of those who wait is the row of their orders.
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = self.engine.send(Command::Order(order.clone()));
        if taken {
            waiting.push_back(giver);
        }
        taken
    }

    /// Whose order was answered now.
    pub(crate) fn answered(&self) -> Option<Giver> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}
