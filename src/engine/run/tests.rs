//! Four clients of the paper's plant, watched as a session has them watched.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::LazyLock;

use super::*;
use crate::engine::prepare::prepare;
use crate::evidence::slate::{Posted, Says};
use crate::privacy::outlook::Cost;
use crate::privacy::{Knob, Spend};
use crate::session::Alphabet;

/// 1,500 normal steps, then an anomaly of ten steps every hundred.
const SESSION: &str = "Session(about: \"four clients\", \
    source: Twin(family: A, clients: 4, delta: 2.0), \
    ranges: (fit: (until: \"+2000 steps\"), \
        calibration: (from: \"+2000 steps\", until: \"+7500 steps\"), \
        replay: (from: \"+7500 steps\")), \
    sampling: (decimate: Every(1)), \
    model: (proprietary: Linear, epochs: 1, federation: Batched(rounds: 1)), \
    thresholds: (arl0: \"3000s\"))";

static PREPARED: LazyLock<(Session, Prepared)> = LazyLock::new(|| {
    let session = Session::parse("four", Path::new(""), SESSION).expect("a sound session");
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("kept.safetensors");
    let prepared = prepare(&session, &file, &mut |_| ControlFlow::Continue(())).expect("prepared");
    (session, prepared)
});

fn open(session: &Session, mode: Mode, steps: u64) -> Run {
    Run::open(session, &PREPARED.1, mode, Some(Mark::Step(steps))).expect("a synthetic plant")
}

/// Runs to the end; what was said, and the log in words.
fn said(run: &mut Run) -> (Vec<Fact>, Vec<String>) {
    let mut facts = Vec::new();
    while run.step(&mut facts).expect("synthetic data has no bad rows").is_some() {}
    facts.extend(run.end());
    let (annunciator, names) = (run.annunciator(), run.annunciator().names());
    let log = annunciator.log().entries().iter().map(|entry| entry.words(names)).collect();
    (facts, log)
}

fn named(facts: &[Fact]) -> Vec<String> {
    let root = |fact: &Fact| match fact {
        Fact::Opened(incident) | Fact::Updated(incident) | Fact::Closed(incident) => {
            incident.root.clone()
        }
        _ => None,
    };
    facts.iter().filter_map(root).collect()
}

#[test]
fn a_session_that_asks_for_one_bit_sends_one_and_finds_anomalies_with_it() {
    let mut session = PREPARED.0.clone();
    (session.privacy.symbol, session.privacy.epsilon_flag) = (Alphabet::OneBit, Some(4.0));
    let mut run = open(&session, Mode::Evidence, 2500);
    let mut facts = Vec::new();
    while run.step(&mut facts).expect("synthetic data has no bad rows").is_some() {
        assert!(run.sights().iter().all(|sight| sight.level.is_none_or(|level| level < 2)));
    }
    facts.extend(run.end());
    let bits = |fact: &Fact| match fact {
        Fact::Ledger(ledger) => ledger
            .mechanisms
            .iter()
            .any(|m| m.spend == Spend::Response { epsilon: 4.0, symbols: 2 }),
        _ => false,
    };
    assert_eq!(facts.iter().filter(|fact| bits(fact)).count(), 4, "{facts:?}");
    let priced = run.spending_with(0, Knob::Flags, Some(2.0)).expect("a price");
    assert!(matches!(priced.cost, Cost::Answers { symbols: 2, .. }), "{priced:?}");
    let score = run.judgement().expect("labels").score();
    assert!(score.labelled >= 9 && score.root_right * 10 >= score.labelled * 7, "{score:?}");
}

/// Everything twice, back to front, with something late, something early and a stranger in between.
fn in_disorder(step: u64, post: &mut Vec<Posted>) {
    let sent = post.clone();
    post.extend(sent.iter().map(|posted| Posted { step: step - 1, ..*posted }));
    post.extend(sent.iter().map(|posted| Posted { step: step + 1, ..*posted }));
    post.extend(sent.iter().map(|posted| Posted { client: 77, ..*posted }));
    post.extend(sent);
    post.reverse();
    let turn = step as usize % post.len().max(1);
    post.rotate_left(turn);
}

#[test]
fn what_is_said_does_not_depend_on_the_order_in_which_clients_are_heard() {
    let said_with = |tamper: Option<evidence::Tamper>| {
        let mut run = open(&PREPARED.0, Mode::Evidence, 2200);
        run.methods.evidence.as_mut().expect("it decides").tamper = tamper;
        said(&mut run)
    };
    let plain = said_with(None);
    assert!(!named(&plain.0).is_empty(), "there are anomalies");
    assert_eq!(said_with(Some(in_disorder)), plain);
}

/// Who lies, from which step on.
const LIAR: usize = 1;
const FROM: u64 = 300;

fn lie(step: u64, post: &mut [Posted], tell: impl Fn(f64) -> f64) {
    for posted in post.iter_mut().filter(|posted| posted.client == LIAR && step >= FROM) {
        if let Says::Symbol(level) = &mut posted.says {
            *level = tell(*level);
        }
    }
}

#[test]
fn whatever_one_client_tells_the_operator_sees_no_innocent_named() {
    let lies: [(&str, evidence::Tamper); 7] = [
        ("always 1", |step, post| lie(step, post, |_| 1.0)),
        ("always the highest", |step, post| lie(step, post, |_| 4.0)),
        ("inverted", |step, post| lie(step, post, |level| 4.0 - level)),
        ("replayed", |step, post| lie(step, post, |_| if step % 100 < 20 { 4.0 } else { 0.0 })),
        ("huge", |step, post| lie(step, post, |_| 1e18)),
        ("not a number", |step, post| lie(step, post, |_| f64::NAN)),
        ("silent", |step, post| post.retain(|p| p.client != LIAR || step < FROM)),
    ];
    let told = |tamper: Option<evidence::Tamper>| {
        let mut run = open(&PREPARED.0, Mode::Evidence, 1500);
        run.methods.evidence.as_mut().expect("it decides").tamper = tamper;
        let liar = run.layout().clients[LIAR].name.clone();
        let (facts, log) = said(&mut run);
        let innocent: Vec<String> =
            named(&facts).into_iter().filter(|name| *name != liar).collect();
        (innocent, log)
    };
    assert!(told(None).0.is_empty(), "nothing is wrong while all tell the truth: {:?}", told(None));
    for (name, tamper) in lies {
        let (innocent, log) = told(Some(tamper));
        assert!(innocent.is_empty(), "{name}: {innocent:?} in {log:?}");
        if name == "not a number" {
            assert!(log.iter().any(|line| line.contains("not to be believed")), "{name}: {log:?}");
        }
    }
}

/// A stream in which one sensor of client 2 stands still for a while.
struct Stuck {
    stream: Box<dyn Stream>,
    step: u64,
    held: f64,
}

impl Stream for Stuck {
    fn layout(&self) -> &Layout {
        self.stream.layout()
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        let more = self.stream.next(frame)?;
        let layout = self.stream.layout();
        let before: usize = layout.clients[..2].iter().map(|client| client.sensors.len()).sum();
        self.step += 1;
        match self.step {
            400 => self.held = frame.values[before],
            401..500 => frame.values[before] = self.held,
            _ => {}
        }
        Ok(more)
    }

    fn events(&self) -> &[Event] {
        self.stream.events()
    }
}

#[test]
fn in_either_mode_a_sensor_that_stands_still_is_said_and_its_incident_says_so_too() {
    let session = &PREPARED.0;
    for mode in [Mode::Evidence, Mode::Paper] {
        let stream = Grids::of(session).and_then(|grids| grids.open(session, Part::Replay));
        let stream =
            Box::new(Stuck { stream: stream.expect("synthetic"), step: 0, held: f64::NAN });
        let until = Some(Mark::Step(700));
        let run = Run::over(stream, session, &PREPARED.1, mode, until, Along::Deciding);
        let mut run = run.expect("a synthetic plant");
        let name = run.layout().clients[2].name.clone();
        let (facts, log) = said(&mut run);
        let quality: Vec<&str> = facts
            .iter()
            .filter_map(|fact| match fact {
                Fact::Quality(quality) if quality.client.as_ref() == Some(&name) => {
                    Some(quality.what.as_str())
                }
                _ => None,
            })
            .filter(|what| what.contains("stuck") || what.contains("move"))
            .collect();
        assert_eq!(quality, ["stuck", "sensors move again"], "{mode:?}: {log:?}");
        assert!(log.contains(&format!("{name}: a sensor stands still")), "{mode:?}: {log:?}");
        let faulty = |fact: &Fact| {
            matches!(fact, Fact::Opened(i) | Fact::Updated(i)
                if i.root.as_ref() == Some(&name) && i.faults.iter().any(|f| f.client == name))
        };
        assert!(mode == Mode::Paper || facts.iter().any(faulty), "{mode:?}: {log:?}");
    }
}

/// A stream that lacks most of its rows.
struct Pieces(Box<dyn Stream>, u64);

impl Stream for Pieces {
    fn layout(&self) -> &Layout {
        self.0.layout()
    }

    fn next(&mut self, frame: &mut Frame) -> Result<bool, StreamError> {
        let mut missing = 0;
        while self.0.next(frame)? {
            self.1 += 1;
            if self.1 % 100 < 20 {
                if missing > 0 {
                    frame.continuity = Continuity::Gap { seconds: f64::from(missing) };
                }
                return Ok(true);
            }
            missing += 1;
        }
        Ok(false)
    }

    fn events(&self) -> &[Event] {
        self.0.events()
    }
}

#[test]
fn only_time_that_was_watched_counts_as_days() {
    let session = &PREPARED.0;
    let stream = Grids::of(session).and_then(|grids| grids.open(session, Part::Replay));
    let stream = Box::new(Pieces(stream.expect("synthetic"), 0));
    let until = Some(Mark::Step(400));
    let run = Run::over(stream, session, &PREPARED.1, Mode::Paper, until, Along::Deciding);
    let mut run = run.expect("a synthetic plant");
    said(&mut run);
    let score = run.judgement().expect("labels").score();
    assert!((score.days - 400.0 / 86_400.0).abs() < 1e-9, "{score:?}");
}
