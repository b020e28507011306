use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use super::*;
use crate::engine;
use crate::engine::handle::{Options, RecordTo};
use crate::engine::pace::Speed;
use crate::engine::prepare::{Prepared, prepare};
use crate::session::{Mode, Session, Tau, Vote};

/// The first hours of an attack day, watched by models made in a moment.
const SESSION: &str = "Session(about: \"a morning\", \
    source: Plant(attacks: Day, history_h: 6, hours: 3), \
    ranges: (fit: (until: \"+3h\"), calibration: (from: \"+3h\", until: \"+6h\"), \
        replay: (from: \"+6h\")), \
    model: (federation: Online(passes: 1)), sampling: (decimate: Every(5)))";

struct Place {
    folder: tempfile::TempDir,
    session: Session,
    prepared: Arc<Prepared>,
}

static PLACE: LazyLock<Place> = LazyLock::new(|| {
    let session = Session::parse("morning", Path::new(""), SESSION).expect("a sound session");
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("kept.safetensors");
    let prepared = prepare(&session, &file, &mut |_| ControlFlow::Continue(())).expect("prepared");
    Place { folder, session, prepared: Arc::new(prepared) }
});

/// Records a run in a mode, with these settings from its start.
fn record(name: &str, mode: Mode, settings: &[Turn]) -> PathBuf {
    let file = PLACE.folder.path().join(name);
    let mut session = PLACE.session.clone();
    session.mode = mode;
    for turn in settings {
        turn.write_to(&mut session);
    }
    let options = Options {
        record: Some(RecordTo::File(file.clone())),
        prepared: Some(Arc::clone(&PLACE.prepared)),
        ..Options::facts(Speed::Max)
    };
    let engine = engine::spawn(&session, options).expect("a thread");
    engine.into_end(|_, _| {}).expect("the plant has no bad rows");
    file
}

fn incidents(file: &Path) -> Vec<Incident> {
    Recording::open(file).and_then(|recording| recording.incidents()).expect("a recording")
}

fn first_step(file: &Path) -> Timestamp {
    let steps = Recording::open(file).and_then(|recording| recording.steps()).expect("readable");
    steps[0].time
}

/// The incidents that come of the messages of a recording.
fn decided_again(recorded: Recorded) -> Vec<Incident> {
    let mut watch = Watch::recorded(recorded, false).expect("it can be run");
    while watch.step(&mut News::default()).expect("no bad rows").is_some() {}
    watch.end(&mut News::default());
    watch.run().annunciator().incidents().to_vec()
}

/// When each incident opened, by whom, and when it was over.
fn said(incidents: &[Incident]) -> Vec<(Timestamp, Option<usize>, Option<Timestamp>)> {
    let of = |i: &Incident| (i.opened, i.root, i.closed.map(|closed| closed.time));
    incidents.iter().map(of).collect()
}

#[test]
fn a_recording_run_again_from_its_start_gives_what_a_run_with_that_setting_gives() {
    let tau = |percentile| Some(Tau::Percentile(percentile));
    let (evidence, paper) = (Mode::Evidence, Mode::Paper);
    let cases = [
        (evidence, Knob::Arl0.at(4.0 * 3600.0)),
        (evidence, Knob::EpsilonFlag.at(Some(4.0))),
        (evidence, Knob::Mode.at(paper)),
        (paper, Knob::TauC(None).at(tau(99.9))),
        (paper, Knob::TauA(None).at(tau(80.0))),
        (paper, Knob::Deadband.at(0.7)),
        (paper, Knob::Vote.at(Some(Vote { k: 3, n: 5 }))),
        (paper, Knob::EpsilonFlag.at(Some(3.0))),
        (paper, Knob::EpsilonFlagA.at(Some(3.0))),
    ];
    let recorded = [record("evidence.hwrec", evidence, &[]), record("paper.hwrec", paper, &[])];
    for (n, (mode, turn)) in cases.into_iter().enumerate() {
        let file = &recorded[usize::from(mode == paper)];
        let again = branch(file, first_step(file), turn);
        let again = again.unwrap_or_else(|why| panic!("{turn:?} in {mode:?}: {why}"));
        let wanted = incidents(&record(&format!("{n}.hwrec"), mode, &[turn]));
        assert_eq!(said(&again.new), said(&wanted), "{turn:?} in {mode:?}");
        assert_eq!(again.old.len(), incidents(file).len());
        assert_ne!(said(&again.old), said(&again.new), "{turn:?} in {mode:?} changes something");
        // The same as a separate recording: two days are compared by their recordings.
        let recorded = with_settings(file, &[turn]).expect("it was answered above");
        assert_eq!(said(&decided_again(recorded)), said(&wanted), "{turn:?} in {mode:?}");
    }
    // Several at once.
    let several = [
        Knob::Vote.at(Some(Vote { k: 2, n: 3 })),
        Knob::EpsilonFlag.at(Some(3.0)),
        Knob::TauC(None).at(tau(99.5)),
        Knob::TauA(None).at(tau(90.0)),
    ];
    let wanted = incidents(&record("several.hwrec", paper, &several));
    let recorded = with_settings(&recorded[1], &several).expect("sites go by them");
    assert_eq!(said(&decided_again(recorded)), said(&wanted));
}

#[test]
fn a_moment_later_everything_before_it_is_as_it_was() {
    let file = record("later.hwrec", Mode::Paper, &[]);
    let all = incidents(&file);
    let from = all[all.len() / 2].opened;
    let again =
        branch(&file, from, Knob::TauC(None).at(Some(Tau::Percentile(99.9)))).expect("kept");
    assert!(again.old.iter().all(|i| i.closed.is_none_or(|closed| closed.time >= from)));
    assert!(again.new.len() < again.old.len(), "fewer flags, fewer incidents");
    // A τ of its own at the value that it has anyway changes nothing.
    let own = Knob::TauC(Some(0)).at(again.before.to.tau());
    let same = branch(&file, from, own).expect("kept");
    assert_eq!(said(&same.old), said(&same.new));
}

#[test]
fn a_knob_that_a_recording_cannot_answer_for_is_refused_with_the_reason() {
    let file = record("refused.hwrec", Mode::Evidence, &[]);
    let refused = |turn: Turn| {
        branch(&file, first_step(&file), turn).expect_err("cannot be answered").to_string()
    };
    let cases = [
        (Knob::TauC(None).at(Some(Tau::Percentile(99.0))), "evidence mode does not decide by it"),
        (Knob::Vote.at(Some(Vote { k: 3, n: 5 })), "evidence mode does not decide by it"),
        (Knob::EpsilonG.at(Some(1.0)), "shapes the models"),
        (Knob::Delta.at(1e-6), "how releases are counted"),
        (Knob::Budget.at(Some(50.0)), "the ledger step by step"),
    ];
    for (turn, why) in cases {
        assert!(refused(turn).contains(why), "{}", refused(turn));
    }
    let both = [Knob::Mode.at(Mode::Paper), Knob::TauC(None).at(Some(Tau::Percentile(99.0)))];
    let why = with_settings(&file, &both).err().expect("not together").to_string();
    assert!(why.contains("together"), "{why}");
    let why = with_settings(&file, &[Knob::Vote.at(Some(Vote { k: 3, n: 5 }))]).err();
    let why = why.expect("no vote in evidence mode").to_string();
    assert!(why.contains("evidence mode does not decide by it"), "{why}");
    let paper = record("refused-paper.hwrec", Mode::Paper, &[]);
    let why = branch(&paper, first_step(&paper), Knob::Mode.at(Mode::Evidence));
    let why = why.expect_err("no symbols were made").to_string();
    assert!(why.contains("carried one method along"), "{why}");
}
