//! How far one press turns a knob, and what can be typed for it.

use super::goal::seconds;
use crate::engine::run::knob::{Knob, Turn, Unsettable};
use crate::fact::{Number, Value};
use crate::session::settings::Span;
use crate::session::{Mode, Tau, Vote};

/// Percentiles that a press steps through: the further out, the finer.
const PERCENTILES: [f64; 26] = [
    50.0, 60.0, 70.0, 75.0, 80.0, 85.0, 90.0, 92.0, 94.0, 95.0, 96.0, 97.0, 97.5, 98.0, 98.5, 99.0,
    99.2, 99.4, 99.5, 99.6, 99.7, 99.8, 99.9, 99.95, 99.98, 99.99,
];
/// Votes, the stricter the further; below them every step speaks for itself.
const VOTES: [Vote; 6] = [
    Vote { k: 2, n: 3 },
    Vote { k: 3, n: 5 },
    Vote { k: 5, n: 8 },
    Vote { k: 8, n: 12 },
    Vote { k: 12, n: 20 },
    Vote { k: 20, n: 30 },
];
/// Shares of τ that a raised flag falls at.
const DEADBANDS: [f64; 11] = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0];
/// A press on a distance changes it by a twentieth.
const FACTOR: f64 = 1.05;
/// Seconds between false alarms.
const RUN_LENGTHS: [f64; 14] = [
    600.0,
    1200.0,
    1800.0,
    3600.0,
    2.0 * 3600.0,
    4.0 * 3600.0,
    8.0 * 3600.0,
    12.0 * 3600.0,
    86_400.0,
    2.0 * 86_400.0,
    4.0 * 86_400.0,
    7.0 * 86_400.0,
    14.0 * 86_400.0,
    30.0 * 86_400.0,
];
const EPSILONS: [f64; 19] = [
    0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 50.0,
    100.0,
];
/// ε of a whole budget: many symbols.
const BUDGETS: [f64; 18] = [
    1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5,
    5e5,
];
const DELTAS: [f64; 7] = [1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3];

/// `turn`, so many presses further. A client without a τ of its own starts from the `common` one.
pub(crate) fn stepped(turn: Turn, presses: i32, common: Option<Tau>) -> Turn {
    let tau = |own: Option<Tau>| {
        own.or(common).map(|tau| match tau {
            Tau::Percentile(p) => Tau::Percentile(along(&PERCENTILES, p, presses)),
            Tau::Value(d) => {
                let turned = d * FACTOR.powi(presses);
                Tau::Value(if turned.is_finite() && turned > 0.0 { turned } else { d })
            }
        })
    };
    match turn {
        Turn::TauC(client, own) => Turn::TauC(client, tau(own)),
        Turn::TauA(client, own) => Turn::TauA(client, tau(own)),
        Turn::Vote(now) => Turn::Vote(vote(now, presses)),
        Turn::Deadband(share) => Turn::Deadband(along(&DEADBANDS, share, presses)),
        Turn::Arl0(s) => Turn::Arl0(along(&RUN_LENGTHS, s, presses)),
        Turn::Mode(mode) if presses % 2 != 0 => Turn::Mode(match mode {
            Mode::Evidence => Mode::Paper,
            Mode::Paper => Mode::Evidence,
        }),
        Turn::Mode(mode) => Turn::Mode(mode),
        Turn::EpsilonFlag(e) => Turn::EpsilonFlag(epsilon(&EPSILONS, e, presses)),
        Turn::EpsilonC(e) => Turn::EpsilonC(epsilon(&EPSILONS, e, presses)),
        Turn::EpsilonA(e) => Turn::EpsilonA(epsilon(&EPSILONS, e, presses)),
        Turn::EpsilonG(e) => Turn::EpsilonG(epsilon(&EPSILONS, e, presses)),
        Turn::Budget(e) => Turn::Budget(epsilon(&BUDGETS, e, presses)),
        Turn::Delta(d) => Turn::Delta(along(&DELTAS, d, presses)),
    }
}

/// So many rungs up or down from `now`, which need not be a rung; the ends hold.
fn along(ladder: &[f64], now: f64, presses: i32) -> f64 {
    let steps = presses.unsigned_abs() as usize;
    let Some(steps) = steps.checked_sub(1) else { return now };
    if presses > 0 {
        let next = ladder.partition_point(|rung| *rung <= now * (1.0 + 1e-9));
        ladder.get((next + steps).min(ladder.len() - 1)).copied().map_or(now, |r| r.max(now))
    } else {
        let below = ladder.partition_point(|rung| *rung < now * (1.0 - 1e-9));
        let rung = below.saturating_sub(1 + steps);
        if below == 0 { now } else { ladder[rung].min(now) }
    }
}

/// So many votes stricter or laxer; no vote at all is the laxest.
fn vote(now: Option<Vote>, presses: i32) -> Option<Vote> {
    let laxer = |limit: u32| VOTES.iter().filter(|vote| vote.k < limit).count();
    let (k, steps) = (now.map_or(0, |vote| vote.k), presses.unsigned_abs() as usize);
    // Rungs are counted from 1: 0 is no vote.
    let rung = match presses {
        0 => return now,
        1.. => laxer(k + 1) + steps,
        _ => (laxer(k) + 1).saturating_sub(steps),
    };
    let rung = rung.min(VOTES.len());
    let found = rung.checked_sub(1).map(|at| VOTES[at]);
    // Never the wrong way, where what stands is beyond the last rung.
    if presses > 0 && found.map_or(0, |vote| vote.k) < k { now } else { found }
}

/// No protection at all, or no budget, lies above the largest ε.
fn epsilon(ladder: &[f64], now: Option<f64>, presses: i32) -> Option<f64> {
    let top = ladder.last().copied().unwrap_or(f64::INFINITY);
    match now {
        None if presses < 0 => Some(along(ladder, top * 1.01, presses)),
        None => None,
        Some(e) if e >= top && presses > 0 => None,
        Some(e) => Some(along(ladder, e, presses)),
    }
}

/// `knob` at what was typed: `97.5%`, `3.2`, `3 of 5`, `8h`, `paper`, `none`.
pub(crate) fn typed(knob: Knob, text: &str, clients: &[String]) -> Result<Turn, Unsettable> {
    let text = text.trim();
    let number = |n: f64| Number::new(n).map(Value::Number);
    let value = match text.to_lowercase().as_str() {
        "" | "none" | "off" | "default" => Value::Unset,
        _ if knob == Knob::Arl0 => {
            seconds(text).and_then(|s| number(s as f64)).unwrap_or_else(|| Value::Text(text.into()))
        }
        word => match word.parse().ok().and_then(number) {
            Some(number) => number,
            None => Value::Text(word.to_owned()),
        },
    };
    knob.turn(&value, clients)
}

/// A value as people read it: `97.5%`, `d² 3.2`, `3 of 5`, `8h`, `paper`, `none`.
pub(crate) fn shown(turn: Turn) -> String {
    match turn {
        Turn::TauC(_, None) | Turn::TauA(_, None) => "as all".into(),
        Turn::TauC(_, Some(Tau::Value(d))) | Turn::TauA(_, Some(Tau::Value(d))) => {
            format!("d² {d:.2}")
        }
        Turn::Arl0(s) => length(s),
        Turn::Deadband(share) if share >= 1.0 => "off".into(),
        Turn::Vote(None)
        | Turn::EpsilonFlag(None)
        | Turn::EpsilonC(None)
        | Turn::EpsilonA(None)
        | Turn::EpsilonG(None)
        | Turn::Budget(None) => "none".into(),
        Turn::Delta(d) => format!("{d:e}"),
        other => other.to_string(),
    }
}

/// A length of time in its largest fitting unit.
pub(crate) fn length(seconds: f64) -> String {
    Span { seconds }.to_string()
}

/// The knob's name as the screen writes it.
pub(crate) fn title(knob: Knob, clients: &[String]) -> String {
    let of = |what: &str, client: Option<usize>| match client.and_then(|m| clients.get(m)) {
        Some(name) => format!("{what} {name}"),
        None => what.to_owned(),
    };
    match knob {
        Knob::TauC(client) => of("τ_c", client),
        Knob::TauA(client) => of("τ_a", client),
        Knob::Vote => "vote".into(),
        Knob::Deadband => "dead-band".into(),
        Knob::Arl0 => "ARL0".into(),
        Knob::Mode => "mode".into(),
        Knob::EpsilonFlag => "ε flags".into(),
        Knob::EpsilonC => "ε x̂_c".into(),
        Knob::EpsilonA => "ε x_a".into(),
        Knob::EpsilonG => "ε gradient".into(),
        Knob::Delta => "δ".into(),
        Knob::Budget => "ε budget".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_press_goes_one_rung_and_the_ends_hold() {
        let tau = |p| Turn::TauC(None, Some(Tau::Percentile(p)));
        assert_eq!(stepped(tau(97.5), 1, None), tau(98.0));
        assert_eq!(stepped(tau(97.5), -1, None), tau(97.0));
        assert_eq!(stepped(tau(97.7), 1, None), tau(98.0), "what is no rung goes to the next one");
        assert_eq!(stepped(tau(97.7), -1, None), tau(97.5));
        assert_eq!(stepped(tau(99.9), 10, None), tau(99.99));
        assert_eq!(stepped(tau(51.0), -10, None), tau(50.0));
        assert_eq!(stepped(Turn::Arl0(3600.0), 3, None), Turn::Arl0(8.0 * 3600.0));
        assert_eq!(stepped(Turn::Delta(1e-5), -1, None), Turn::Delta(1e-6));
        assert_eq!(stepped(Turn::Arl0(1e9), 1, None), Turn::Arl0(1e9), "never the wrong way");
    }

    #[test]
    fn a_vote_grows_stricter_press_by_press_and_none_is_the_laxest() {
        let vote = |k, n| Turn::Vote(Some(Vote { k, n }));
        assert_eq!(stepped(Turn::Vote(None), 1, None), vote(2, 3));
        assert_eq!(stepped(vote(2, 3), 1, None), vote(3, 5));
        assert_eq!(stepped(vote(4, 9), 1, None), vote(5, 8), "what is no rung goes to the next");
        assert_eq!(stepped(vote(4, 9), -1, None), vote(3, 5));
        assert_eq!(stepped(vote(2, 3), -1, None), Turn::Vote(None));
        assert_eq!(stepped(Turn::Vote(None), -1, None), Turn::Vote(None));
        assert_eq!(stepped(Turn::Vote(None), 10, None), vote(20, 30));
        assert_eq!(stepped(vote(50, 90), 1, None), vote(50, 90), "never the wrong way");
        assert_eq!(stepped(Turn::Deadband(1.0), -2, None), Turn::Deadband(0.9));
        assert_eq!(stepped(Turn::Deadband(1.0), 1, None), Turn::Deadband(1.0));
    }

    #[test]
    fn no_protection_lies_above_the_largest_epsilon() {
        let e = Turn::EpsilonFlag;
        assert_eq!(stepped(e(Some(50.0)), 1, None), e(Some(100.0)));
        assert_eq!(stepped(e(Some(100.0)), 1, None), e(None));
        assert_eq!(stepped(e(None), 1, None), e(None));
        assert_eq!(stepped(e(None), -1, None), e(Some(100.0)));
        assert_eq!(stepped(e(None), -2, None), e(Some(50.0)));
        let budget = Turn::Budget;
        assert_eq!(stepped(budget(Some(20.0)), 1, None), budget(Some(50.0)));
        assert_eq!(stepped(budget(Some(5e5)), 1, None), budget(None), "no budget, no end");
    }

    #[test]
    fn a_client_without_its_own_threshold_starts_from_the_common_one() {
        let common = Some(Tau::Percentile(99.0));
        let own = Some(Tau::Percentile(99.2));
        assert_eq!(stepped(Turn::TauA(Some(1), None), 1, common), Turn::TauA(Some(1), own));
    }

    #[test]
    fn values_are_typed_as_people_write_them() {
        let clients = ["P1".to_owned()];
        let read = |knob, text| typed(knob, text, &clients);
        let tau = Some(Tau::Percentile(97.5));
        assert_eq!(read(Knob::TauC(None), " 97.5% "), Ok(Turn::TauC(None, tau)));
        assert_eq!(read(Knob::TauA(None), "3.2"), Ok(Turn::TauA(None, Some(Tau::Value(3.2)))));
        assert_eq!(read(Knob::TauC(Some(0)), "default"), Ok(Turn::TauC(Some(0), None)));
        let vote = Turn::Vote(Some(Vote { k: 3, n: 5 }));
        assert_eq!((read(Knob::Vote, "3 of 5"), read(Knob::Vote, "3/5")), (Ok(vote), Ok(vote)));
        assert_eq!(read(Knob::Vote, "none"), Ok(Turn::Vote(None)));
        assert_eq!(read(Knob::Deadband, "0.9"), Ok(Turn::Deadband(0.9)));
        assert_eq!(read(Knob::Deadband, "off"), Ok(Turn::Deadband(1.0)));
        assert_eq!(
            read(Knob::TauC(None), "12%"),
            Ok(Turn::TauC(None, Some(Tau::Percentile(12.0))))
        );
        assert_eq!(read(Knob::Arl0, "8h"), Ok(Turn::Arl0(28_800.0)));
        assert_eq!(read(Knob::Mode, "Paper"), Ok(Turn::Mode(Mode::Paper)));
        assert_eq!(read(Knob::EpsilonFlag, "none"), Ok(Turn::EpsilonFlag(None)));
        assert_eq!(read(Knob::Delta, "1e-6"), Ok(Turn::Delta(1e-6)));
        assert_eq!(read(Knob::Budget, "300"), Ok(Turn::Budget(Some(300.0))));
        assert_eq!(read(Knob::Budget, "none"), Ok(Turn::Budget(None)));
        assert!(read(Knob::Arl0, "soon").is_err() && read(Knob::TauC(None), "120%").is_err());
    }

    #[test]
    fn what_is_shown_can_be_typed_again() {
        let vote = Turn::Vote(Some(Vote { k: 3, n: 5 }));
        for turn in [
            Turn::Arl0(28_800.0),
            Turn::EpsilonFlag(None),
            Turn::Delta(1e-6),
            vote,
            Turn::Deadband(0.85),
            Turn::Deadband(1.0),
        ] {
            assert_eq!(typed(turn.knob(), &shown(turn), &[]), Ok(turn));
        }
        assert_eq!(length(90.0), "90s");
    }
}
