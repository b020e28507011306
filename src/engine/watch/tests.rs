mod again;
mod lasting;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::LazyLock;

use super::*;
use crate::engine::knob::KnobValue;
use crate::engine::prepare::prepare;
use crate::fact::Value;
use crate::incident::{Closing, OperatorAction};
use crate::privacy::{Ledger, What};
use crate::session::{Tau, Vote};

/// The first hours of an attack day, watched by models made in a moment.
const SESSION: &str = "Session(about: \"a morning\", \
    source: Plant(attacks: Day, history_h: 6, hours: 3), \
    ranges: (fit: (until: \"+3h\"), calibration: (from: \"+3h\", until: \"+6h\"), \
        replay: (from: \"+6h\")), \
    model: (federation: Online(passes: 1)), sampling: (decimate: Every(5)))";

static PREPARED: LazyLock<(Session, Prepared)> = LazyLock::new(|| {
    let session = Session::parse("morning", Path::new(""), SESSION).expect("a sound session");
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("kept.safetensors");
    let prepared = prepare(&session, &file, &mut |_| ControlFlow::Continue(())).expect("prepared");
    (session, prepared)
});

fn watch() -> Watch {
    let (session, prepared) = &*PREPARED;
    open(session, prepared)
}

/// Both methods along, with measurements.
fn open(session: &Session, prepared: &Prepared) -> Watch {
    let options = RunOptions { both: true, ..RunOptions::new(session.mode) };
    Watch::open(session, prepared, options, true).expect("data that can be read")
}

fn steps(watch: &mut Watch, count: usize) -> News {
    let mut news = News::default();
    for _ in 0..count {
        if watch.step(&mut news).expect("a built-in plant has no bad rows").is_none() {
            break;
        }
    }
    news
}

fn order(action: OperatorAction) -> Order {
    Order { who: "op1".into(), action, why: None }
}

fn set(what: &str, to: Value) -> Order {
    order(OperatorAction::Set { what: what.into(), to })
}

#[test]
fn deciding_again_under_the_same_settings_raises_the_same_alarms_in_either_mode() {
    let mut watch = watch();
    let news = steps(&mut watch, usize::MAX);
    assert_eq!(news.times.len(), 3 * 720);
    assert_eq!(news.frames.len(), 3 * 3600);
    let so_far = watch.so_far();
    assert!(so_far.alarms > 0, "the morning has attacks");
    // What is still open counts in both.
    let again = watch.what_if(Knob::Mode.at(Mode::Evidence)).expect("kept");
    assert_eq!((again.alarms, again.score), (so_far.alarms, so_far.score));
    let paper = watch.what_if(Knob::Mode.at(Mode::Paper)).expect("kept");
    assert!(paper.alarms > again.alarms, "{} at the 95th percentile", paper.alarms);
}

#[test]
fn a_higher_threshold_on_trial_spares_alarms_and_changes_nothing() {
    let mut watch = watch();
    steps(&mut watch, 1000);
    let mut news = News::default();
    watch.act(set("mode", Value::Text("paper".into())), &mut news).expect("both are along");
    steps(&mut watch, 1000);
    let before = watch.snapshot();
    let as_set = watch.what_if(Knob::Mode.at(Mode::Paper)).expect("kept");
    assert_eq!(watch.so_far().alarms, as_set.alarms, "held against what stands now");
    let alarms = |percentile| {
        let turn = Knob::TauC(None).at(Some(crate::session::Tau::Percentile(percentile)));
        watch.what_if(turn).expect("kept").alarms
    };
    assert!(alarms(99.9) < alarms(90.0));
    assert_eq!(watch.snapshot(), before);
    assert_eq!(watch.what_if(Knob::Delta.at(1e-6)), Err(NoAnswer::StillToCome));
}

#[test]
fn a_threshold_that_is_set_and_undone_stands_as_before() {
    let mut watch = watch();
    steps(&mut watch, 50);
    let before = watch.snapshot();
    let mut news = News::default();
    watch.act(set("tau_c P2", Value::Text("99.5%".into())), &mut news).expect("a good value");
    assert!(news.facts.iter().any(|fact| matches!(fact, Fact::Setting(s) if s.what == "tau_c P2")));
    let after = watch.snapshot();
    assert!(after.thresholds[1].tau_c > before.thresholds[1].tau_c);
    assert_eq!(after.thresholds[0], before.thresholds[0]);
    let entry = after.undoable.expect("a change can be undone");
    watch.act(order(OperatorAction::Undo { entry }), &mut news).expect("not overtaken");
    assert_eq!(watch.snapshot().thresholds, before.thresholds);
}

/// The same morning with other thresholds: nothing of it changes what was trained.
fn watch_judged(change: impl FnOnce(&mut Session)) -> Watch {
    let (session, prepared) = &*PREPARED;
    let mut session = session.clone();
    session.mode = Mode::Paper;
    // Some flags are turned round: what was drawn must hold by another rule, too.
    session.privacy.epsilon_flag = Some(3.0);
    change(&mut session);
    open(&session, prepared)
}

fn flags(news: &News) -> Vec<Option<Flags>> {
    news.readouts.iter().map(ClientReadout::flags).collect()
}

#[test]
fn a_threshold_or_dead_band_that_is_set_judges_the_whole_run_anew_and_undone_as_before() {
    let mut watch = watch_judged(|_| {});
    let sent = flags(&steps(&mut watch, 1000));
    let as_if = |change: fn(&mut Session)| flags(&steps(&mut watch_judged(change), 1000));
    let low = as_if(|session| session.thresholds.tau_c = Tau::Percentile(60.0));
    let banded = as_if(|session| {
        session.thresholds.tau_c = Tau::Percentile(60.0);
        session.thresholds.deadband = 0.8;
    });
    assert!(low != sent && banded != low, "each of them is seen in the flags");

    let mut news = News::default();
    let facts = watch.run().annunciator().log().events().len();
    watch.act(set("tau_c", Value::Text("60%".into())), &mut news).expect("a good value");
    assert_eq!(news.flags.take(), Some(low.clone()), "as if it had stood from the start");
    assert_eq!(watch.run().annunciator().log().events().len(), facts + 1, "history stays");
    watch.act(set("deadband", number(0.8)), &mut news).expect("a good value");
    assert_eq!(news.flags.take(), Some(banded));
    for expected in [low, sent] {
        let entry = watch.snapshot().undoable.expect("a change can be undone");
        watch.act(order(OperatorAction::Undo { entry }), &mut news).expect("not overtaken");
        assert_eq!(news.flags.take(), Some(expected));
    }
    watch.act(set("vote", Value::Text("3 of 5".into())), &mut news).expect("a good value");
    assert_eq!(news.flags, None, "a vote is no flag");
}

#[test]
fn a_vote_and_a_dead_band_on_trial_say_what_a_run_with_them_would_have_said() {
    let mut plain = watch_judged(|_| {});
    steps(&mut plain, 2000);
    let run = |change: fn(&mut Session)| {
        let mut watch = watch_judged(change);
        let flags = flags(&steps(&mut watch, 2000));
        (watch.so_far().alarms, flags)
    };
    let tried = |turn: Turn| {
        let outlook = plain.what_if(turn).expect("kept");
        (outlook.alarms, outlook.flags)
    };
    let vote = Vote { k: 3, n: 5 };
    let voted = tried(Knob::Vote.at(Some(vote)));
    assert_eq!(voted, run(|session| session.thresholds.vote = Some(Vote { k: 3, n: 5 })));
    assert!(voted.0 < plain.so_far().alarms, "{} and {}", voted.0, plain.so_far().alarms);
    let banded = tried(Knob::Deadband.at(0.8));
    assert_eq!(banded, run(|session| session.thresholds.deadband = 0.8));
    assert_eq!(
        plain.snapshot().knobs[2..4],
        [Knob::Vote.at(KnobValue::None), Knob::Deadband.at(1.0)]
    );
}

#[test]
fn what_a_dead_band_remembers_is_counted_as_endless_while_flags_are_sent() {
    let endless =
        |watch: &Watch| watch.run().ledgers().all(|ledger| ledger.terms().memory.is_endless());
    assert!(endless(&watch_judged(|session| session.thresholds.deadband = 0.9)));
    let mut watch = watch_judged(|session| session.mode = Mode::Evidence);
    steps(&mut watch, 10);
    let mut news = News::default();
    watch.act(set("deadband", number(0.9)), &mut news).expect("a good value");
    assert!(!endless(&watch), "symbols know no dead-band");
    watch.act(set("mode", Value::Text("paper".into())), &mut news).expect("both are along");
    assert!(endless(&watch), "flags do");
}

#[test]
fn nonsense_is_refused_and_nothing_is_logged() {
    let mut watch = watch();
    let mut news = News::default();
    assert_eq!(
        watch.act(set("arl0", Value::Switch(true)), &mut news),
        Err(ActError::NotBegun),
        "nothing has been seen yet"
    );
    steps(&mut watch, 10);
    for (what, to) in [("arl0", Value::Switch(true)), ("taste", Value::Unset)] {
        let refused = watch.act(set(what, to), &mut news).expect_err("nonsense");
        assert!(matches!(refused, ActError::Unsettable(_)), "{refused}");
    }
    assert!(news.is_empty());
}

#[test]
fn another_method_closes_what_the_one_before_found() {
    let mut watch = watch();
    let mut opened = None;
    while opened.is_none() {
        let news = steps(&mut watch, 1);
        assert!(!news.times.is_empty(), "an incident opens before the end");
        opened = news.incidents.first().map(|incident| incident.number);
    }
    let mut news = News::default();
    watch.act(set("mode", Value::Text("paper".into())), &mut news).expect("both are along");
    let closed = news.incidents.first().and_then(|incident| incident.closed);
    assert_eq!(closed.map(|closed| closed.why), Some(Closing::MethodChanged));
    assert_eq!(watch.snapshot().mode, Mode::Paper);
}

#[test]
fn what_is_accepted_as_the_new_normal_closes_and_does_not_come_back_at_once() {
    let mut watch = watch();
    let mut number = None;
    while number.is_none() {
        let news = steps(&mut watch, 1);
        assert!(!news.times.is_empty(), "an incident opens before the end");
        number = news.incidents.first().map(|incident| incident.number);
    }
    steps(&mut watch, 6);
    let incident = number.expect("an incident");
    let mut news = News::default();
    watch.act(order(OperatorAction::Accept { incident }), &mut news).expect("it is open");
    let closed = watch.run().annunciator().incident(incident).and_then(|i| i.closed);
    assert_eq!(closed.map(|closed| closed.why), Some(Closing::Accepted));
    let root = watch.run().annunciator().incident(incident).and_then(|i| i.root);
    let after = steps(&mut watch, 5);
    assert!(after.incidents.iter().all(|i| i.number == incident || i.root != root));
}

#[test]
fn noise_on_the_flags_begins_when_it_is_asked_for() {
    let mut watch = watch();
    steps(&mut watch, 100);
    let mut news = News::default();
    let epsilon = Value::Number(crate::fact::Number::or_zero(0.5));
    watch.act(set("epsilon_flag", epsilon), &mut news).expect("a good value");
    let noisy = steps(&mut watch, 200);
    let raised = noisy.readouts.iter().filter(|s| s.flags().is_some_and(|f| f.z_c)).count();
    // At ε = 0.5 about 38 % of all flags are turned round.
    assert!(raised * 4 > noisy.readouts.len(), "{raised} of {}", noisy.readouts.len());
}

/// The same morning with other privacy settings: nothing of it changes what was trained.
fn watch_with(change: impl FnOnce(&mut crate::session::privacy::PrivacySettings)) -> Watch {
    let (session, prepared) = &*PREPARED;
    let mut session = session.clone();
    change(&mut session.privacy);
    open(&session, prepared)
}

fn number(n: f64) -> Value {
    Value::Number(crate::fact::Number::or_zero(n))
}

fn ledger(watch: &Watch) -> &Ledger {
    watch.run.ledgers().next().expect("three clients")
}

fn most_spent(watch: &Watch) -> f64 {
    let now = watch.last.expect("it has begun");
    let hour =
        |ledger: &crate::privacy::Ledger| ledger.spent(crate::session::privacy::Scope::Hour, now);
    watch.run.ledgers().map(|l| hour(l).epsilon).fold(0.0, f64::max)
}

#[test]
fn a_budget_is_a_knob_that_is_never_below_what_is_spent() {
    use crate::session::privacy::{AtZero, BudgetSettings, Scope};
    let form = BudgetSettings { epsilon: 1e5, over: Scope::Hour, at_zero: AtZero::Stop };
    let mut watch = watch_with(|privacy| {
        privacy.epsilon_flag = Some(2.0);
        privacy.budget = Some(form);
    });
    steps(&mut watch, 100);
    let mut news = News::default();
    let refused = watch.act(set("budget", number(5.0)), &mut news).expect_err("spent already");
    assert!(matches!(refused, ActError::Released(_)), "{refused}");
    assert!(refused.to_string().contains("over any hour already"), "{refused}");
    assert_eq!(watch.snapshot().undoable, None, "nothing is logged");

    let first = most_spent(&watch) + 20.0;
    watch.act(set("budget", number(first)), &mut news).expect("enough");
    assert!(news.facts.iter().any(|fact| matches!(fact, Fact::Setting(s) if s.what == "budget")));
    let standing = watch.snapshot();
    assert!(standing.knobs.contains(&Knob::Budget.at(Some(first))));
    assert!(standing.spent.iter().all(|spent| spent.budget.is_some()));
    steps(&mut watch, 200);
    assert!(most_spent(&watch) <= first, "it is kept to");
    let stopped = ledger(&watch).live().releases;
    steps(&mut watch, 50);
    assert_eq!(ledger(&watch).live().releases, stopped);

    watch.act(set("budget", number(1e5)), &mut news).expect("more");
    let raised = watch.snapshot().undoable.expect("a change can be undone");
    steps(&mut watch, 100);
    let refused = watch.act(order(OperatorAction::Undo { entry: raised }), &mut news);
    assert!(matches!(refused, Err(ActError::Released(_))), "{refused:?}");
    watch.act(set("budget", Value::Unset), &mut news).expect("no budget covers everything");
    let taken = watch.snapshot().undoable.expect("a change can be undone");
    watch
        .act(order(OperatorAction::Undo { entry: taken }), &mut news)
        .expect("it covers what is spent");
    assert!(watch.snapshot().knobs.contains(&Knob::Budget.at(Some(1e5))));
}

#[test]
fn a_budget_set_after_steps_without_noise_counts_what_is_sent_with_noise_and_admits_nothing_else() {
    let mut watch = watch_with(|privacy| privacy.epsilon_flag = None);
    steps(&mut watch, 100);
    let mut news = News::default();
    watch.act(set("budget", number(1000.0)), &mut news).expect("a budget can always be set");
    let unprotected = ledger(&watch).live().releases;
    steps(&mut watch, 10);
    assert_eq!(ledger(&watch).live().releases, unprotected, "nothing leaves without noise");
    watch.act(set("epsilon_flag", number(4.0)), &mut news).expect("noise may begin");
    steps(&mut watch, 10);
    let releases = ledger(&watch).live().releases - unprotected;
    assert_eq!(releases, 10, "the new enrolment costs nothing, symbols are sent");
    let counted = |watch: &Watch| {
        let now = watch.last.expect("it has begun");
        watch.run.ledgers().map(|ledger| ledger.counted_epsilon(now)).fold(0.0, f64::max)
    };
    assert!(counted(&watch) > 0.0 && counted(&watch) <= 1000.0, "{}", counted(&watch));
    assert!(ledger(&watch).live().epsilon.is_infinite(), "what was sent before stays sent");
    let refused = watch.act(set("epsilon_flag", Value::Unset), &mut news);
    assert!(matches!(refused, Err(ActError::BudgetStands)), "{refused:?}");
    steps(&mut watch, 900);
    assert!(counted(&watch) <= 1000.0, "it is kept to: {}", counted(&watch));
    let stopped = ledger(&watch).live().releases;
    steps(&mut watch, 10);
    assert_eq!(ledger(&watch).live().releases, stopped, "it is gone");
}

#[test]
fn kept_answers_refuse_to_be_shown_and_may_be_told_of_at_another_epsilon() {
    use crate::session::privacy::SendPolicy;
    let mut watch = watch_with(|privacy| {
        privacy.epsilon_flag = Some(2.0);
        privacy.send = SendPolicy::Memoised { permanent: 1.0 };
    });
    steps(&mut watch, 60);
    let mut news = News::default();
    let refused = watch.act(set("epsilon_flag", Value::Unset), &mut news).expect_err("kept");
    assert!(refused.to_string().contains("kept"), "{refused}");
    assert!(watch.snapshot().knobs.contains(&Knob::EpsilonFlag.at(Some(2.0))));
    watch.act(set("epsilon_flag", number(1.0)), &mut news).expect("another report");
    steps(&mut watch, 10);
    assert!(watch.snapshot().knobs.contains(&Knob::EpsilonFlag.at(Some(1.0))));
    let counts = ledger(&watch).counts().to_vec();
    let told = |epsilon: f64| {
        let spend = crate::privacy::Spend::Response { epsilon, symbols: 5 };
        counts
            .iter()
            .filter(|c| c.what == What::Symbol && c.spend == spend)
            .map(|c| c.count)
            .sum::<u64>()
    };
    assert_eq!((told(2.0), told(1.0)), (20, 10), "{counts:?}");
}

#[test]
fn another_delta_is_what_the_ledger_is_read_at() {
    let mut watch = watch_with(|privacy| privacy.epsilon_flag = Some(0.5));
    steps(&mut watch, 100);
    let before = most_spent(&watch);
    let mut news = News::default();
    watch.act(set("delta", number(1e-8)), &mut news).expect("a good value");
    assert!(most_spent(&watch) > before, "a smaller chance to fail costs more");
    assert!((ledger(&watch).terms().delta - 1e-8).abs() < 1e-15);
}

#[test]
fn epsilon_is_priced_for_what_the_deciding_method_sends() {
    let mut watch = watch_with(|privacy| privacy.epsilon_flag = Some(2.0));
    steps(&mut watch, 5);
    let at_two = |watch: &Watch| {
        *watch.snapshot().ladder.iter().find(|r| r.epsilon == Some(2.0)).expect("a rung")
    };
    let symbols = at_two(&watch);
    let mut news = News::default();
    watch.act(set("mode", Value::Text("paper".into())), &mut news).expect("both are along");
    let flags = at_two(&watch);
    let odds = 2.0_f64.exp();
    assert!((symbols.flip - 4.0 / (odds + 4.0)).abs() < 1e-9, "four lies beside one truth");
    assert!((flags.flip - 1.0 / (odds + 1.0)).abs() < 1e-9, "one lie beside one truth");
    assert!(flags.day > 1.9 * symbols.day, "two flags a step");
    assert!(symbols.delay_s.is_some() && flags.delay_s.is_some());
}

#[test]
fn what_a_client_remembers_of_a_sample_is_measured_and_told() {
    let mut watch = watch();
    let news = steps(&mut watch, 60);
    assert!(!news.times.is_empty());
    for spent in watch.snapshot().spent.iter() {
        assert_eq!(spent.memory.known(), crate::privacy::Known::Measured);
    }
    let fades = watch.snapshot().spent.iter().map(|s| !s.memory.is_endless()).collect::<Vec<_>>();
    assert!(fades.contains(&true), "{fades:?}");
    let facts = watch.run.end();
    let told = facts.iter().filter_map(|fact| match fact {
        Fact::Ledger(ledger) => ledger.memory.clone(),
        _ => None,
    });
    let told: Vec<_> = told.collect();
    assert_eq!(told.len(), 3);
    assert!(told.iter().all(|memory| memory.known == "measured"), "{told:?}");
    assert_eq!(told.iter().map(|m| m.contraction.is_some()).collect::<Vec<_>>(), fades);
}
