//! Sending the run again under other settings: what it gives, and what it costs.

use super::lasting::watch_over_with;
use super::*;
use crate::session::Tau;
use crate::site::again::AgainError;

#[test]
fn in_a_seeded_run_another_epsilon_on_trial_gives_what_a_run_with_it_gives() {
    for mode in [Mode::Evidence, Mode::Paper] {
        let (session, prepared) = &*PREPARED;
        let with = |epsilon| {
            let mut session = session.clone();
            session.mode = mode;
            session.privacy.epsilon_flag = epsilon;
            let mut watch = open(&session, prepared);
            steps(&mut watch, 1500);
            watch
        };
        let (plain, noised) = (with(None), with(Some(4.0)));
        let tried = plain.what_if(Turn::EpsilonFlag(Some(4.0))).expect("a seeded run is free");
        assert_eq!((tried.alarms, tried.score), (noised.so_far().alarms, noised.so_far().score));
        assert_ne!(tried.alarms, 0, "{mode:?}");
        let releases = |watch: &Watch| ledger(watch).live().releases;
        let again = plain.what_if(Turn::EpsilonFlag(Some(0.1))).expect("a seeded run is free");
        assert_ne!(again.alarms, tried.alarms, "{mode:?}: noise has an effect");
        assert_eq!(releases(&plain), releases(&with(None)), "nothing was entered");
    }
}

#[test]
fn with_real_noise_a_trial_that_sends_again_must_be_agreed_to_and_is_paid_for() {
    let (mut watch, _folder) = watch_over_with(&[(0, 900..960, 0.0, 6.0)], |session| {
        session.mode = Mode::Paper;
        session.privacy.epsilon_flag = Some(4.0);
    });
    steps(&mut watch, 1000);
    let tau = Turn::TauC(None, Some(Tau::Percentile(99.9)));
    let spent = |watch: &Watch| ledger(watch).live().releases;
    let before = spent(&watch);
    let refused = watch.what_if(tau).expect_err("the sites would send their flags again");
    assert_eq!(refused, NoAnswer::Again(AgainError::Costs { releases: 1000 }));
    assert!(
        watch.what_if(Turn::Vote(Some(Vote { k: 3, n: 5 }))).is_ok(),
        "the server's own affair"
    );
    assert_eq!(spent(&watch), before, "asking costs nothing");
    let paid = watch.run.what_if_paid(tau).expect("agreed");
    assert_eq!(paid.thresholds.len(), 3);
    // Two flags a step once the filter has settled, and the same again.
    assert_eq!(spent(&watch), 2 * before);
}
