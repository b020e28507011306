//! How far one press turns a knob, and what can be typed for it.

use super::goal::seconds;
use crate::engine::knob::{Knob, KnobValue, Steps, Turn, Unsettable};
use crate::fact::{Number, Value};
use crate::session::settings::Span;
use crate::session::{Mode, Tau, Vote};

/// Percentiles that a press steps through: the further out, the finer.
const PERCENTILES: [f64; 26] = [
    50.0, 60.0, 70.0, 75.0, 80.0, 85.0, 90.0, 92.0, 94.0, 95.0, 96.0, 97.0, 97.5, 98.0, 98.5, 99.0,
    99.2, 99.4, 99.5, 99.6, 99.7, 99.8, 99.9, 99.95, 99.98, 99.99,
];
/// Votes, the stricter the further; below them there is no vote.
const VOTES: [Vote; 6] = [
    Vote { k: 2, n: 3 },
    Vote { k: 3, n: 5 },
    Vote { k: 5, n: 8 },
    Vote { k: 8, n: 12 },
    Vote { k: 12, n: 20 },
    Vote { k: 20, n: 30 },
];
/// A press on a distance changes it by a twentieth.
const FACTOR: f64 = 1.05;

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
    turn.knob.at(match turn.knob.row().steps {
        Steps::Taus => tau(turn.to.tau()).into(),
        Steps::Votes => vote(turn.to.vote(), presses).into(),
        Steps::Modes if presses % 2 == 0 => turn.to,
        Steps::Modes => match turn.to.mode() {
            Some(Mode::Paper) => KnobValue::Mode(Mode::Evidence),
            Some(Mode::Evidence) | None => KnobValue::Mode(Mode::Paper),
        },
        Steps::Numbers(ladder) => turn.to.number().map(|now| along(ladder, now, presses)).into(),
        Steps::NumbersOrNone(ladder) => epsilon(ladder, turn.to.number(), presses).into(),
    })
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

/// `knob` at what was typed: `97.5%`, `d² 3.2`, `3 of 5`, `8h`, `paper`, `none`. A bare number has
/// the unit of `shown`, the value that stands beside the knob: `97.5` is a percentile where one is
/// shown, `8` is eight hours where hours are.
pub(crate) fn typed(
    knob: Knob,
    text: &str,
    shown: Option<Turn>,
    clients: &[String],
) -> Result<Turn, Unsettable> {
    let text = text.trim();
    let with_unit = bare_number(text).and_then(|_| unit(knob, shown)).map(|unit| match unit {
        Unit::Before(unit) => format!("{unit}{text}"),
        Unit::Behind(unit) => format!("{text}{unit}"),
    });
    let text = with_unit.as_deref().unwrap_or(text);
    let number = |n: f64| Number::new(n).map(Value::Number);
    let value = match text.to_lowercase().as_str() {
        "" | "none" | "off" | "default" => Value::Unset,
        _ if knob == Knob::Arl0 => {
            seconds(text).and_then(|s| number(s as f64)).unwrap_or_else(|| Value::Text(text.into()))
        }
        word => match distance(knob, word).or_else(|| bare_number(word)).and_then(number) {
            // A distance is written with its sign; without it and without a knob that shows one, a
            // number is no threshold.
            Some(_) if is_tau(knob) && distance(knob, word).is_none() => Value::Text(word.into()),
            Some(number) => number,
            None => Value::Text(word.to_owned()),
        },
    };
    knob.turn(&value, clients)
}

/// Where the unit of a number stands.
enum Unit {
    Before(&'static str),
    Behind(String),
}

fn is_tau(knob: Knob) -> bool {
    knob.row().steps == Steps::Taus
}

fn bare_number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|n: &f64| n.is_finite())
}

/// The number of `d² 3.2` or `d2 3.2`.
fn distance(knob: Knob, text: &str) -> Option<f64> {
    let number = text.strip_prefix("d²").or_else(|| text.strip_prefix("d2"))?;
    bare_number(number.trim()).filter(|_| is_tau(knob))
}

/// The unit that the value shown beside a knob has; none where it is a plain number.
fn unit(knob: Knob, shown: Option<Turn>) -> Option<Unit> {
    if is_tau(knob) {
        return Some(match shown.and_then(|turn| turn.to.tau()) {
            Some(Tau::Value(_)) => Unit::Before("d² "),
            Some(Tau::Percentile(_)) | None => Unit::Behind("%".into()),
        });
    }
    let shown = shown.filter(|_| knob == Knob::Arl0)?.to_string();
    let unit = shown.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    Some(Unit::Behind(unit.to_owned()))
}

/// A length of time in its largest fitting unit.
pub(crate) fn length(seconds: f64) -> String {
    Span { seconds }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_press_goes_one_rung_and_the_ends_hold() {
        let tau = |p| Knob::TauC(None).at(Some(Tau::Percentile(p)));
        assert_eq!(stepped(tau(97.5), 1, None), tau(98.0));
        assert_eq!(stepped(tau(97.5), -1, None), tau(97.0));
        assert_eq!(stepped(tau(97.7), 1, None), tau(98.0), "what is no rung goes to the next one");
        assert_eq!(stepped(tau(97.7), -1, None), tau(97.5));
        assert_eq!(stepped(tau(99.9), 10, None), tau(99.99));
        assert_eq!(stepped(tau(51.0), -10, None), tau(50.0));
        assert_eq!(stepped(Knob::Arl0.at(3600.0), 3, None), Knob::Arl0.at(8.0 * 3600.0));
        assert_eq!(stepped(Knob::Delta.at(1e-5), -1, None), Knob::Delta.at(1e-6));
        assert_eq!(stepped(Knob::Arl0.at(1e9), 1, None), Knob::Arl0.at(1e9), "never the wrong way");
    }

    #[test]
    fn a_vote_grows_stricter_press_by_press_and_none_is_the_laxest() {
        let vote = |k, n| Knob::Vote.at(Some(Vote { k, n }));
        assert_eq!(stepped(Knob::Vote.at(KnobValue::None), 1, None), vote(2, 3));
        assert_eq!(stepped(vote(2, 3), 1, None), vote(3, 5));
        assert_eq!(stepped(vote(4, 9), 1, None), vote(5, 8), "what is no rung goes to the next");
        assert_eq!(stepped(vote(4, 9), -1, None), vote(3, 5));
        assert_eq!(stepped(vote(2, 3), -1, None), Knob::Vote.at(KnobValue::None));
        assert_eq!(
            stepped(Knob::Vote.at(KnobValue::None), -1, None),
            Knob::Vote.at(KnobValue::None)
        );
        assert_eq!(stepped(Knob::Vote.at(KnobValue::None), 10, None), vote(20, 30));
        assert_eq!(stepped(vote(50, 90), 1, None), vote(50, 90), "never the wrong way");
        assert_eq!(stepped(Knob::Deadband.at(1.0), -2, None), Knob::Deadband.at(0.9));
        assert_eq!(stepped(Knob::Deadband.at(1.0), 1, None), Knob::Deadband.at(1.0));
    }

    #[test]
    fn no_protection_lies_above_the_largest_epsilon() {
        let e = |to: Option<f64>| Knob::EpsilonFlag.at(to);
        assert_eq!(stepped(e(Some(50.0)), 1, None), e(Some(100.0)));
        assert_eq!(stepped(e(Some(100.0)), 1, None), e(None));
        assert_eq!(stepped(e(None), 1, None), e(None));
        assert_eq!(stepped(e(None), -1, None), e(Some(100.0)));
        assert_eq!(stepped(e(None), -2, None), e(Some(50.0)));
        let budget = |to: Option<f64>| Knob::Budget.at(to);
        assert_eq!(stepped(budget(Some(20.0)), 1, None), budget(Some(50.0)));
        assert_eq!(stepped(budget(Some(5e5)), 1, None), budget(None), "no budget, no end");
    }

    #[test]
    fn a_client_without_its_own_threshold_starts_from_the_common_one() {
        let common = Some(Tau::Percentile(99.0));
        let own = Some(Tau::Percentile(99.2));
        assert_eq!(
            stepped(Knob::TauA(Some(1)).at(KnobValue::None), 1, common),
            Knob::TauA(Some(1)).at(own)
        );
    }

    #[test]
    fn values_are_typed_as_people_write_them() {
        let clients = ["P1".to_owned()];
        let read = |knob, text| typed(knob, text, None, &clients);
        let tau = Some(Tau::Percentile(97.5));
        assert_eq!(read(Knob::TauC(None), " 97.5% "), Ok(Knob::TauC(None).at(tau)));
        let distance = Ok(Knob::TauA(None).at(Some(Tau::Value(3.2))));
        assert_eq!(read(Knob::TauA(None), "d² 3.2"), distance);
        assert_eq!(read(Knob::TauA(None), "d2 3.2"), distance);
        assert_eq!(
            read(Knob::TauC(Some(0)), "default"),
            Ok(Knob::TauC(Some(0)).at(KnobValue::None))
        );
        let vote = Knob::Vote.at(Some(Vote { k: 3, n: 5 }));
        assert_eq!((read(Knob::Vote, "3 of 5"), read(Knob::Vote, "3/5")), (Ok(vote), Ok(vote)));
        assert_eq!(read(Knob::Vote, "none"), Ok(Knob::Vote.at(KnobValue::None)));
        assert_eq!(read(Knob::Deadband, "0.9"), Ok(Knob::Deadband.at(0.9)));
        assert_eq!(read(Knob::Deadband, "off"), Ok(Knob::Deadband.at(1.0)));
        assert_eq!(
            read(Knob::TauC(None), "12%"),
            Ok(Knob::TauC(None).at(Some(Tau::Percentile(12.0))))
        );
        assert_eq!(read(Knob::Arl0, "8h"), Ok(Knob::Arl0.at(28_800.0)));
        assert_eq!(read(Knob::Mode, "Paper"), Ok(Knob::Mode.at(Mode::Paper)));
        assert_eq!(read(Knob::EpsilonFlag, "none"), Ok(Knob::EpsilonFlag.at(KnobValue::None)));
        assert_eq!(read(Knob::Delta, "1e-6"), Ok(Knob::Delta.at(1e-6)));
        assert_eq!(read(Knob::Budget, "300"), Ok(Knob::Budget.at(Some(300.0))));
        assert_eq!(read(Knob::Budget, "none"), Ok(Knob::Budget.at(KnobValue::None)));
        assert!(read(Knob::Arl0, "soon").is_err() && read(Knob::TauC(None), "120%").is_err());
    }

    #[test]
    fn a_bare_number_has_the_unit_that_is_shown() {
        let tau = |tau| Knob::TauC(None).at(Some(tau));
        let read = |shown: Turn, text| typed(shown.knob(), text, Some(shown), &[]);
        let percentile = tau(Tau::Percentile(95.0));
        assert_eq!(read(percentile, "97.5"), Ok(tau(Tau::Percentile(97.5))));
        assert_eq!(read(tau(Tau::Value(4.0)), "3.2"), Ok(tau(Tau::Value(3.2))));
        assert_eq!(read(tau(Tau::Value(4.0)), "97.5%"), Ok(tau(Tau::Percentile(97.5))));
        assert!(read(percentile, "120").is_err(), "no percentile, and not silently a distance");
        let arl0 = |seconds: f64| Knob::Arl0.at(seconds);
        assert_eq!(read(arl0(4.0 * 3600.0), "8"), Ok(arl0(8.0 * 3600.0)), "hours are shown");
        assert_eq!(read(arl0(86_400.0), "2"), Ok(arl0(2.0 * 86_400.0)), "days are shown");
        assert_eq!(read(arl0(86_400.0), "30s"), Ok(arl0(30.0)));
        let epsilon = |to: f64| Knob::EpsilonFlag.at(Some(to));
        assert_eq!(read(epsilon(4.0), "2"), Ok(epsilon(2.0)));
    }

    #[test]
    fn what_is_shown_can_be_typed_again() {
        let vote = Knob::Vote.at(Some(Vote { k: 3, n: 5 }));
        for turn in [
            Knob::Arl0.at(28_800.0),
            Knob::EpsilonFlag.at(KnobValue::None),
            Knob::Delta.at(1e-6),
            vote,
            Knob::Deadband.at(0.85),
            Knob::Deadband.at(1.0),
        ] {
            assert_eq!(typed(turn.knob(), &turn.to_string(), None, &[]), Ok(turn));
        }
        assert_eq!(length(90.0), "90s");
    }
}
