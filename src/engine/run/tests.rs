//! Four clients of the paper's plant, watched as a session has them watched.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};

use super::*;
use crate::engine::prepare::prepare;
use crate::privacy::{Spend, What};
use crate::session::Alphabet;
use crate::site::{Sent, SiteOptions};
use crate::wire::testing::{Tampered, message};
use crate::wire::{Content, Direction, Encoded, Message};

/// 1,500 normal steps, then an anomaly of ten steps every hundred.
const SESSION: &str = "Session(about: \"four clients\", \
    source: Twin(family: A, clients: 4, delta: 2.0), \
    ranges: (fit: (until: \"+2000 steps\"), \
        calibration: (from: \"+2000 steps\", until: \"+7500 steps\"), \
        replay: (from: \"+7500 steps\")), \
    sampling: (decimate: Every(1)), \
    model: (proprietary: Linear, epochs: 1, federation: Batched(rounds: 1)), \
    thresholds: (arl0: \"3000s\"))";

pub(super) static PREPARED: LazyLock<(Session, Prepared)> = LazyLock::new(|| {
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
    let log = annunciator.log().events().iter().map(|entry| entry.words(names)).collect();
    (facts, log)
}

fn named(facts: &[Fact]) -> Vec<String> {
    facts.iter().filter_map(|fact| fact.incident()?.root.clone()).collect()
}

#[test]
fn a_session_that_asks_for_one_bit_sends_one_and_finds_anomalies_with_it() {
    let mut session = PREPARED.0.clone();
    (session.privacy.symbol, session.privacy.epsilon_flag) = (Alphabet::OneBit, Some(4.0));
    let mut run = open(&session, Mode::Evidence, 2500);
    let mut facts = Vec::new();
    while run.step(&mut facts).expect("synthetic data has no bad rows").is_some() {
        assert!(
            run.readouts().iter().all(|readout| readout.server.level.is_none_or(|level| level < 2))
        );
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
    let options = run.ladder().expect("a price");
    let two = options.iter().find(|option| option.epsilon == Some(2.0)).expect("it is listed");
    assert!((two.flip - 1.0 / (2.0_f64.exp() + 1.0)).abs() < 1e-12, "one of two answers: {two:?}");
    let score = run.judgement().expect("labels").score();
    assert!(score.labelled >= 9 && score.root_right * 10 >= score.labelled * 7, "{score:?}");
}

/// What becomes of the messages of a step on their way.
type Tamper = fn(u64, &mut Vec<Message>);

/// Runs with messages that are tampered with, and says what came of it.
fn said_with(session: &Session, steps: u64, tamper: Option<Tamper>) -> (Vec<Fact>, Vec<String>) {
    let wire = Tampered::new(move |sent: &mut Vec<Message>| {
        // Enrolments are about no step.
        let step = sent.iter().map(Message::step).max().unwrap_or(0);
        if let Some(tamper) = tamper.filter(|_| step > 0) {
            tamper(step, sent);
        }
    });
    let until = Some(Mark::Step(steps));
    let options = RunOptions { until, wire: Box::new(wire), ..RunOptions::new(Mode::Evidence) };
    let run = Run::open_with(session, &PREPARED.1, options);
    said(&mut run.expect("a synthetic plant"))
}

/// Everything twice, back to front, with something late, something early and a stranger in between.
fn in_disorder(step: u64, sent: &mut Vec<Message>) {
    let honest = sent.clone();
    let other = |client: Option<usize>, step: u64| {
        let of =
            move |m: &Message| message(client.unwrap_or(m.client()), step, m.content().clone());
        honest.iter().map(of).collect::<Vec<_>>()
    };
    let (late, early, stranger) =
        (other(None, step - 1), other(None, step + 1), other(Some(77), step));
    sent.extend(late);
    sent.extend(early);
    sent.extend(stranger);
    sent.extend(honest);
    sent.reverse();
    let turn = step as usize % sent.len().max(1);
    sent.rotate_left(turn);
}

#[test]
fn what_is_said_does_not_depend_on_the_order_in_which_clients_are_heard() {
    let plain = said_with(&PREPARED.0, 2200, None);
    assert!(!named(&plain.0).is_empty(), "there are anomalies");
    assert_eq!(said_with(&PREPARED.0, 2200, Some(in_disorder)), plain);
}

/// Who lies, from which step on.
const LIAR: usize = 1;
const FROM: u64 = 300;

fn lie(step: u64, sent: &mut [Message], tell: impl Fn(u8) -> u8) {
    for sent in sent.iter_mut().filter(|sent| sent.client() == LIAR && step >= FROM) {
        if let Content::Symbol { own, beside, raised } = *sent.content() {
            *sent = message(LIAR, step, Content::Symbol { own: tell(own), beside, raised });
        }
    }
}

#[test]
fn whatever_one_client_tells_the_operator_sees_no_innocent_named() {
    let lies: [(&str, Tamper); 7] = [
        ("always 1", |step, sent| lie(step, sent, |_| 1)),
        ("always the highest", |step, sent| lie(step, sent, |_| 4)),
        ("inverted", |step, sent| lie(step, sent, |level| 4 - level)),
        ("replayed", |step, sent| lie(step, sent, |_| if step % 100 < 20 { 4 } else { 0 })),
        ("huge", |step, sent| lie(step, sent, |_| u8::MAX)),
        ("no level", |step, sent| lie(step, sent, |_| 5)),
        ("silent", |step, sent| sent.retain(|sent| sent.client() != LIAR || step < FROM)),
    ];
    let liar = PREPARED.1.clients[LIAR].name.clone();
    let told = |tamper: Option<Tamper>| {
        let (facts, log) = said_with(&PREPARED.0, 1500, tamper);
        let innocent: Vec<String> =
            named(&facts).into_iter().filter(|name| *name != liar).collect();
        (innocent, log)
    };
    assert!(told(None).0.is_empty(), "nothing is wrong while all tell the truth: {:?}", told(None));
    for (name, tamper) in lies {
        let (innocent, log) = told(Some(tamper));
        assert!(innocent.is_empty(), "{name}: {innocent:?} in {log:?}");
        if name == "no level" {
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
            400 => self.held = frame.raw_values()[before],
            401..500 => frame.raw_values_mut()[before] = self.held,
            _ => {}
        }
        Ok(more)
    }

    fn events(&self) -> &[stream::Event] {
        self.stream.events()
    }
}

#[test]
fn a_sample_costs_the_epsilon_of_every_symbol_that_it_can_turn() {
    let mut session = PREPARED.0.clone();
    let prices = |session: &Session| {
        open(session, Mode::Evidence, 50).prices_of_a_sample().expect("sound settings")
    };
    assert_eq!(prices(&session), None, "nothing is protected");
    session.privacy.epsilon_flag = Some(4.0);
    let found = prices(&session).expect("symbols are protected");
    assert_eq!(found.len(), 4);
    for price in found {
        let symbols = price.symbols.expect("these models forget") as f64;
        assert!(symbols > 1.0, "models look back: {price:?}");
        assert!((price.epsilon - 4.0 * symbols).abs() < 0.01, "{price:?}");
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
        let options = RunOptions { until, ..RunOptions::new(mode) };
        let run = Run::over(stream, session, &PREPARED.1, options);
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

/// What is said of a client's stuck sensor, and what its ledger has of it.
fn told_of_a_stuck_sensor(session: &Session) -> (Vec<Fact>, u64) {
    let stream = Grids::of(session).and_then(|grids| grids.open(session, Part::Replay));
    let stream = Box::new(Stuck { stream: stream.expect("synthetic"), step: 0, held: f64::NAN });
    let options = RunOptions { until: Some(Mark::Step(700)), ..RunOptions::new(Mode::Evidence) };
    let run = Run::over(stream, session, &PREPARED.1, options);
    let mut run = run.expect("a synthetic plant");
    let (facts, _) = said(&mut run);
    let ledger = run.ledgers().nth(2).expect("four clients");
    let faults = ledger.counts().iter().filter(|counted| counted.what == What::Faults);
    (facts, faults.map(|counted| counted.count).sum())
}

#[test]
fn that_a_sensor_is_at_fault_is_a_priced_release_or_stays_with_its_client() {
    let of_sensors = |facts: &[Fact]| {
        let stuck = |fact: &&Fact| matches!(fact, Fact::Quality(q) if q.what == "stuck");
        facts.iter().filter(stuck).count()
    };
    let mut session = PREPARED.0.clone();
    let (facts, released) = told_of_a_stuck_sensor(&session);
    assert!(of_sensors(&facts) > 0 && released >= 2, "said and over: {released}");
    session.privacy.epsilon_flag = Some(4.0);
    let (facts, released) = told_of_a_stuck_sensor(&session);
    assert_eq!((of_sensors(&facts), released), (0, 0), "it stays with the client");
    let said = |fact: &Fact| matches!(fact, Fact::Quality(q) if q.what.contains("reveal_faults"));
    assert!(facts.iter().any(said), "and that is said");
    session.privacy.reveal_faults = true;
    let (facts, released) = told_of_a_stuck_sensor(&session);
    assert!(of_sensors(&facts) > 0 && released >= 2, "{released}");
    let priced = |fact: &Fact| match fact {
        Fact::Ledger(ledger) => {
            let faults = ledger.mechanisms.iter().find(|m| m.what == What::Faults);
            faults.is_some_and(|faults| faults.spend == Spend::Clear)
        }
        _ => false,
    };
    assert!(facts.iter().any(priced), "unprotected, and priced as such");
}

#[test]
fn a_site_by_itself_sends_what_it_sends_among_others() {
    const CLIENT: usize = 2;
    let mut session = PREPARED.0.clone();
    session.privacy.epsilon_flag = Some(2.0);
    let sent = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&sent);
    let wire = Encoded::new(move |direction, bytes: &[u8]| {
        if direction == Direction::Up {
            keep.lock().expect("one at a time").push(Message::decode(bytes).expect("a message"));
        }
    });
    let until = Some(Mark::Step(300));
    let options = RunOptions { until, wire: Box::new(wire), ..RunOptions::new(Mode::Evidence) };
    let run = Run::open_with(&session, &PREPARED.1, options);
    said(&mut run.expect("a synthetic plant"));
    let sent = sent.lock().expect("nobody sends any more");
    let among_others: Vec<&Message> = sent.iter().filter(|m| m.client() == CLIENT).collect();

    let stream = Grids::of(&session).and_then(|grids| grids.open(&session, Part::Replay));
    let mut stream = stream.expect("synthetic");
    let layout = stream.layout().clone();
    let options = SiteOptions {
        client: CLIENT,
        prepared: &PREPARED.1.clients[CLIENT],
        session: &session,
        period_s: layout.period_s,
        mode: Mode::Evidence,
        both: false,
        keep: false,
    };
    let spent = (PREPARED.1.spent.from, &PREPARED.1.spent.clients[CLIENT][..]);
    let mut site = Site::new(&options, None, spent).expect("a site");
    let mut alone = Vec::new();
    let mut bytes = Vec::new();
    let mut send = |sent: Sent| {
        let Sent::ToServer(message) = sent else { return };
        bytes.clear();
        message.encode(&mut bytes);
        alone.push(Message::decode(&bytes).expect("a message"));
    };
    site.enrol(&mut send).expect("a seed gives random numbers");
    let mut frame = Frame::for_layout(&layout);
    for step in 1..=300 {
        assert!(stream.next(&mut frame).expect("synthetic data has no bad rows"));
        let follows = if step == 1 { Follows::NewRun } else { Follows::Next };
        let tick = Tick { step, time: frame.time, follows };
        site.begin(tick);
        site.step(frame.row(&layout, CLIENT), tick, &mut send);
    }
    assert!(alone.len() > 250);
    assert_eq!(alone.iter().collect::<Vec<_>>(), among_others);
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

    fn events(&self) -> &[stream::Event] {
        self.0.events()
    }
}

#[test]
fn only_time_that_was_watched_counts_as_days() {
    let session = &PREPARED.0;
    let stream = Grids::of(session).and_then(|grids| grids.open(session, Part::Replay));
    let stream = Box::new(Pieces(stream.expect("synthetic"), 0));
    let until = Some(Mark::Step(400));
    let options = RunOptions { until, ..RunOptions::new(Mode::Paper) };
    let run = Run::over(stream, session, &PREPARED.1, options);
    let mut run = run.expect("a synthetic plant");
    said(&mut run);
    let score = run.judgement().expect("labels").score();
    assert!((score.days - 400.0 / 86_400.0).abs() < 1e-9, "{score:?}");
}
