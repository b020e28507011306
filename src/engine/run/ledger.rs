//! The releases of a client as a fact.

use jiff::Timestamp;

use crate::fact::{self, Fact, Number};
use crate::privacy::{Composed, FilterMemory, Ledger};
use crate::session::privacy::Scope;

/// The fact about a ledger as of `now`; none where nothing was released.
pub(crate) fn ledger_fact(ledger: &Ledger, now: Timestamp) -> Option<Fact> {
    if ledger.tally(Scope::Lifetime, now).releases() == 0 {
        return None;
    }
    let live = ledger.live();
    let epsilon = Number::new(live.epsilon).filter(|_| live.releases > 0);
    Some(Fact::Ledger(fact::Ledger {
        client: ledger.client().to_owned(),
        epsilon,
        delta: epsilon.and_then(|_| Number::new(ledger.terms().delta)),
        releases: live.releases,
        basic: Number::new(live.basic).filter(|_| live.releases > 0),
        training: Some(figures(None, &ledger.trained())),
        spent: Scope::ALL.iter().map(|s| figures(Some(*s), &ledger.worst(*s))).collect(),
        mechanisms: ledger.counts().to_vec(),
        randomness: Some(ledger.provenance().label().to_owned()),
        memory: Some(remembered(&ledger.terms().memory)),
    }))
}

fn remembered(memory: &FilterMemory) -> fact::Memory {
    let fades = !memory.is_endless();
    fact::Memory {
        contraction: Number::new(memory.contraction()).filter(|_| fades),
        later_symbols: fades.then(|| memory.later_symbols()),
        known: memory.known().label().to_owned(),
    }
}

fn figures(scope: Option<Scope>, composed: &Composed) -> fact::Spent {
    fact::Spent {
        over: scope.map(|scope| scope.label().to_owned()),
        epsilon: Number::new(composed.epsilon),
        basic: Number::new(composed.basic),
        releases: composed.releases,
        bound: composed.bound.label().to_owned(),
    }
}
