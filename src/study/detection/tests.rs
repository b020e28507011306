use super::figures::Figures;
use super::watch::watch;
use super::*;
use crate::engine::run::Run;
use crate::score::metrics::delay::Delays;

/// A family on linear models, with the settings that a test asks for.
fn figures(name: &str, seed: u64, change: fn(&mut Session)) -> Figures {
    let twin = TWINS.iter().find(|twin| twin.name == name).expect("a family of the study");
    let mut session = twin.session(seed).expect("the shipped session");
    linear(&mut session);
    change(&mut session);
    let mut models = Models::default();
    let prepared = models.of(&session).expect("synthetic data can be learned");
    watch(&session, prepared).expect("a synthetic plant").figures()
}

#[test]
fn faults_of_the_papers_plant_are_found_and_named() {
    let found = figures("A2", 1, |_| {});
    assert!(found.f1 >= Some(0.95), "{found:?}");
    assert_eq!(found.right, found.detected);
    assert!(found.delays.iter().all(|delay| (0.0..16.0).contains(delay)), "{found:?}");
}

#[test]
fn one_randomised_bit_a_step_is_enough_for_the_papers_plant() {
    let found = figures("A2", 1, |session| one_bit(session, Some(4.0)));
    assert!(found.f1 >= Some(0.93), "{found:?}");
}

#[test]
fn the_paper_mode_of_the_engine_is_judged_by_its_flags_and_its_alarms() {
    let plain = figures("B4", 3, |session| as_published(session, 99.0, false));
    let voted = figures("B4", 3, |session| as_published(session, 99.0, true));
    assert_eq!(plain.events, voted.events);
    assert!(voted.false_alarms < plain.false_alarms, "{voted:?} {plain:?}");
    assert!(plain.step_recall > Some(0.1) && plain.right > 10, "{plain:?}");
}

#[test]
fn models_are_made_once_for_all_sessions_that_need_the_same() {
    let mut session = PAPERS.session(1).expect("the shipped session");
    linear(&mut session);
    let mut models = Models::default();
    models.of(&session).expect("synthetic data can be learned");
    as_published(&mut session, 99.5, true);
    one_bit(&mut session, Some(2.0));
    models.of(&session).expect("there already");
    assert_eq!(models.0.len(), 1);
    assert!(!models.0[0].1.file.exists(), "nothing stays behind");
}

#[test]
fn a_study_counts_what_a_run_of_the_same_session_scores() {
    let twin = TWINS.iter().find(|twin| twin.name == "B4").expect("a family of the study");
    let mut session = twin.session(4).expect("the shipped session");
    linear(&mut session);
    let mut models = Models::default();
    let modes: [fn(&mut Session); 3] =
        [|_| {}, |s| as_published(s, 95.0, false), |s| as_published(s, 99.0, true)];
    for change in modes {
        change(&mut session);
        let prepared = models.of(&session).expect("synthetic data can be learned");
        let mut run = Run::open(&session, prepared, session.mode, None).expect("a synthetic plant");
        let mut facts = Vec::new();
        while run.step(&mut facts).expect("synthetic data has no bad rows").is_some() {}
        run.end();
        let score = run.judgement().expect("events are known").score();
        let found = watch(&session, prepared).expect("a synthetic plant").figures();
        assert_eq!(
            (found.events, found.detected, found.right, found.false_alarms),
            (score.labelled, score.detected, score.root_right, score.false_alarms),
            "{:?}",
            session.mode
        );
        let seconds: f64 = found.delays.iter().sum();
        assert!(seconds > 0.0 && (session.mode == Mode::Evidence || found.false_alarms > 0));
        assert_eq!(Delays::of(&found.delays), score.delay_s);
    }
}
