use std::ops::ControlFlow;
use std::path::Path;

use super::fingerprint::json;
use super::stored::restore;
use super::*;
use crate::nn::checkpoint::Checkpoint;
use crate::server::Estimator;

const SHORT: &str = "Session(about: \"short\", source: Plant(history_h: 3, hours: 1), \
    sampling: (decimate: Every(5)))";

/// Its models come with the program, so that only the federation takes time.
const QUICK: &str = "Session(about: \"short\", source: Plant(history_h: 1, hours: 1), \
    sampling: (decimate: Every(5)), model: (federation: Online(passes: 1)))";

const SMALL: &str = "Session(about: \"short\", source: Twin(clients: 2), \
    model: (proprietary: Linear, federation: Batched(rounds: 1)))";

fn session(text: &str) -> Session {
    Session::parse("short", Path::new(""), text).expect("a sound session")
}

#[test]
fn what_was_prepared_is_loaded_the_next_time_with_the_same_bits() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("kept.safetensors");
    let session = session(SHORT);
    let mut rounds = 0;
    let fresh = prepare(&session, &file, &mut |stage| {
        rounds += usize::from(matches!(stage, Stage::Federation(_)));
        ControlFlow::Continue(())
    })
    .expect("prepared");
    assert!(rounds > 1, "training is told as it happens");
    let kept = prepare(&session, &file, &mut |_| panic!("nothing is left to do")).expect("loaded");
    assert!(fresh.fresh && !kept.fresh);
    let rounds = |prepared: &Prepared| prepared.history.as_ref().map(|history| history.rounds);
    assert_eq!(rounds(&fresh), rounds(&kept), "the course of training is kept");
    assert_eq!(fresh.spent, kept.spent, "what training released is kept with what it made");
    let states: u64 = kept.spent.clients[0]
        .iter()
        .filter(|trained| !trained.what.is_derived())
        .map(|trained| trained.count)
        .sum();
    let learning: u64 = kept.influences.released[0].iter().map(|counted| counted.count).sum();
    assert_eq!(Some(states), rounds(&fresh).map(|rounds| learning + 2 * rounds as u64));
    assert_eq!(fresh.server, kept.server);
    assert_eq!(fresh.together, kept.together, "how states move together is kept");
    let mut kept = kept;
    let states: usize = kept.together.as_ref().map_or(0, |known| known.states.iter().sum());
    keep_oracle(&mut kept, vec![0.5; states * states]).expect("kept");
    let again = prepare(&session, &file, &mut |_| panic!("nothing is left to do"));
    let again = again.expect("loaded").together.expect("kept");
    assert!(again.map(Estimator::Oracle).is_some_and(|map| map.size() == states));
    for (fresh, kept) in fresh.clients.iter().zip(&kept.clients) {
        assert_eq!(fresh.nominal_a, kept.nominal_a);
        assert_eq!(fresh.phi, kept.phi);
    }
}

#[test]
fn a_file_of_models_that_cannot_be_used_is_named_with_what_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("kept.safetensors");
    let session = session(SMALL);
    let go_on = &mut |_: Stage| ControlFlow::Continue(());
    prepare(&session, &file, go_on).expect("prepared");
    let kept = Checkpoint::load(&file, None).expect("kept");
    let why = |change: &dyn Fn(&mut Checkpoint)| {
        let mut checkpoint = kept.clone();
        change(&mut checkpoint);
        let why = restore(checkpoint, &file, &session).expect_err("something is wrong");
        why.to_string().replace(&file.display().to_string(), "FILE")
    };
    // JSON has no form for what is no number: it is written as null.
    let null = why(&|kept| {
        kept.thresholds = kept.thresholds.replacen("\"mean\":[", "\"mean\":[null,", 1);
    });
    let expected = "FILE: the calibration cannot be read: invalid type: null, expected f64";
    assert!(null.starts_with(expected), "{null}");
    assert_eq!(why(&|kept| kept.server = None), "FILE: the server has no model");
    assert_eq!(why(&|kept| kept.clients[1].augment = None), "FILE: C2 has no network φ");
    assert_eq!(
        why(&|kept| drop(kept.clients.pop())),
        "FILE: 1 clients have models, but 2 are calibrated and 2 fitted"
    );
    let cut = why(&|kept| kept.fits.truncate(40));
    assert!(cut.starts_with("FILE: the fits of the sites cannot be read: "), "{cut}");
}

#[test]
fn a_kept_file_with_a_flipped_bit_is_said_and_made_again() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("kept.safetensors");
    let session = session(QUICK);
    let go_on = &mut |_: Stage| ControlFlow::Continue(());
    prepare(&session, &file, go_on).expect("prepared");
    let written = std::fs::read(&file).expect("kept");
    for place in [20, written.len() / 2] {
        let mut flipped = written.clone();
        flipped[place] ^= 4;
        std::fs::write(&file, flipped).expect("written");
        let mut notices = Vec::new();
        let made = prepare(&session, &file, &mut |stage| {
            if let Stage::Notice(notice) = stage {
                notices.push(notice.to_owned());
            }
            ControlFlow::Continue(())
        });
        assert!(made.expect("made again").fresh, "{place}");
        let [notice] = &notices[..] else { panic!("{place}: {notices:?}") };
        assert!(notice.ends_with("; the models are made again"), "{notice}");
        assert_eq!(std::fs::read(&file).expect("kept"), written, "the same bits again");
    }
}

#[test]
fn models_that_cannot_be_kept_are_used_all_the_same() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    std::fs::write(folder.path().join("in the way"), "").expect("written");
    let file = folder.path().join("in the way").join("kept.safetensors");
    let session = session(QUICK);
    let mut notices = Vec::new();
    let made = prepare(&session, &file, &mut |stage| {
        if let Stage::Notice(notice) = stage {
            notices.push(notice.to_owned());
        }
        ControlFlow::Continue(())
    });
    let made = made.expect("prepared without a cache");
    assert!(made.fresh && made.not_kept.is_some());
    let [notice] = &notices[..] else { panic!("{notices:?}") };
    assert!(notice.starts_with("cannot write ") && notice.contains("in the way"), "{notice}");
    let kept = folder.path().join("kept.safetensors");
    let other = prepare(&session, &kept, &mut |_| ControlFlow::Continue(())).expect("kept");
    assert_eq!(made.server, other.server, "the models are those that would have been kept");
}

#[test]
fn the_same_session_under_another_name_or_in_another_folder_has_the_same_models() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let below = folder.path().join("below");
    std::fs::create_dir(&below).expect("a folder");
    std::fs::write(folder.path().join("data.csv"), "time,a,b\n").expect("written");
    let table = |data: &str| {
        format!(
            "Session(about: \"a\", source: Table(data: {data:?}, time: (column: \"time\")), \
             clients: [(name: \"A\", columns: [\"a\"]), (name: \"B\", columns: [\"b\"])], \
             ranges: (fit: (files: [\"data.csv\"], until: \"+9s\"), \
             calibration: (files: [\"data.csv\"], from: \"+9s\"), \
             replay: (files: [\"data.csv\"])))"
        )
    };
    let of = |name: &str, folder: &Path, data: &str| {
        let session = Session::parse(name, folder, &table(data)).expect("a sound session");
        (fingerprint(&session).expect("a session is JSON"), cache_file(&session))
    };
    let one = of("one.ron", folder.path(), ".");
    assert_eq!(one, of("two.ron", folder.path(), "."));
    assert_eq!(one, of("one.ron", &below, ".."));
    assert_eq!(one, of("one.ron", Path::new(""), &folder.path().to_string_lossy()));
    assert_ne!(one, of("one.ron", &below, "."), "other data");
    assert_ne!(fingerprint(&session(SHORT)).ok(), Some(one.0));
}

#[test]
fn what_has_no_json_form_is_an_error_and_not_an_empty_text() {
    let no_json = std::collections::BTreeMap::from([((1, 2), 3)]);
    let why = json("the session", &no_json).expect_err("keys of JSON are texts").to_string();
    assert!(why.starts_with("the session cannot be written as JSON: key must be"), "{why}");
}

#[test]
fn a_decimation_that_is_left_to_the_data_is_decided_once_and_kept() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("kept.safetensors");
    let session = session(SMALL);
    let go_on = &mut |_: Stage| ControlFlow::Continue(());
    let fresh = prepare(&session, &file, go_on).expect("prepared");
    let kept = prepare(&session, &file, &mut |_| panic!("nothing is left to do"));
    assert_eq!(fresh.every, decimation::every(&session).expect("decided"));
    assert_eq!(kept.expect("loaded").every, fresh.every);
}

#[test]
fn a_change_that_shapes_the_models_is_another_preparation_and_others_are_not() {
    let of = |text: &str| fingerprint(&session(text)).expect("a session is JSON");
    let base = of(SHORT);
    assert_ne!(base, of(&SHORT.replace("Every(5)", "Every(6)")));
    assert_ne!(base, of(&SHORT.replace("hours: 1)", "hours: 1), seed: 2")));
    assert_ne!(base, of(&SHORT.replace("hours: 1)", "hours: 1), model: (eta2: 0)")));
    assert_eq!(base, of(&SHORT.replace("\"short\"", "\"another word\"")));
    assert_eq!(base, of(&SHORT.replace("hours: 1)", "hours: 1), replay: (speed: 5)")));
    let private =
        |text: &str| of(&SHORT.replace("hours: 1)", &format!("hours: 1), privacy: ({text})")));
    assert_ne!(base, private("epsilon_c: 4"));
    assert_ne!(private("epsilon_c: 4"), private("epsilon_c: 4, sigma: Classic"));
    assert_eq!(base, private("epsilon_flag: 4, send: Window(3)"), "symbols come after training");
}
