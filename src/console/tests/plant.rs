//! A console over a real run: the first hours of an attack day, decided by models made in a moment.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use jiff::Timestamp;

use super::fixture::Console;
use crate::console::app::{Effect, Msg};
use crate::engine::handle::{Command, EngineEvent, Opened, Options, Tried, Update};
use crate::engine::pace::Pace;
use crate::engine::prepare::{Prepared, prepare};
use crate::engine::run::RunOptions;
use crate::engine::watch::{News, Watch};
use crate::incident::Order;
use crate::session::{Mark, Session};
use crate::stream::Event;

const SESSION: &str = r#"Session(
    about: "a morning",
    source: Plant(attacks: Day, history_h: 6, hours: 3),
    ranges: (fit: (until: "+3h"), calibration: (from: "+3h", until: "+6h"), replay: (from: "+6h")),
    model: (federation: Online(passes: 1)),
    sampling: (decimate: Every(5)),
    replay: (speed: 10),
)"#;

/// Steps from 01:20 to 01:35, five seconds each: the first attack and a while before and after it.
pub(crate) const ATTACK: usize = 15 * 12;

static PREPARED: LazyLock<(Session, Arc<Prepared>)> = LazyLock::new(|| {
    let session = Session::parse("morning", Path::new(""), SESSION).expect("a sound session");
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("kept.safetensors");
    let prepared = prepare(&session, &file, &mut |_| ControlFlow::Continue(())).expect("prepared");
    (session, Arc::new(prepared))
});

pub(crate) fn session() -> Session {
    PREPARED.0.clone()
}

/// A session with its models, standing before its first step.
pub(crate) type Ready = (Watch, Arc<Prepared>);

fn open(session: &Session) -> Ready {
    let options = RunOptions { both: true, ..RunOptions::new(session.mode) };
    let watch = Watch::open(session, &PREPARED.1, options, true).expect("a built-in plant");
    (watch, Arc::clone(&PREPARED.1))
}

/// How an engine of its own plays it.
pub(crate) fn options(pace: Pace) -> Options {
    Options { prepared: Some(Arc::clone(&PREPARED.1)), ..Options::watched(pace) }
}

/// The morning, standing before its first step.
pub(crate) fn ready() -> Ready {
    open(&PREPARED.0)
}

/// Only its first attack, from 01:20 to 01:35.
pub(crate) fn attack_session() -> Session {
    let mut session = session();
    session.ranges.replay.from = Some(Mark::After(7.0 * 3600.0 + 20.0 * 60.0));
    session.ranges.replay.until = Some(Mark::After(7.0 * 3600.0 + 35.0 * 60.0));
    session
}

/// The attack, standing before its first step.
fn attack_ready() -> Ready {
    open(&attack_session())
}

/// What was said about the attack: enough for whoever only looks.
static SAID: LazyLock<(Opened, Vec<Update>)> = LazyLock::new(|| {
    let (mut watch, prepared) = attack_ready();
    let opened = Opened::of(&watch, Some(prepared));
    let bulletins = (0..ATTACK).map(|_| {
        let mut news = News::default();
        watch.step(&mut news).expect("a built-in plant has no bad rows");
        Update { news, snapshot: Some(watch.snapshot()), ..Update::default() }
    });
    let bulletins = bulletins.collect();
    (opened, bulletins)
});

/// A console whose wishes a real engine carries out at once, without a thread and without a clock.
pub(crate) struct Desk {
    pub console: Console,
    watch: Option<Watch>,
    heard: usize,
}

impl Desk {
    pub(crate) fn after(steps: usize) -> Self {
        Self::over_watch(ready(), steps)
    }

    pub(crate) fn attacked(steps: usize) -> Self {
        Self::over_watch(attack_ready(), steps)
    }

    /// The same of a session that says otherwise about something models do not depend on.
    pub(crate) fn attacked_where(steps: usize, change: impl FnOnce(&mut Session)) -> Self {
        let mut session = attack_session();
        change(&mut session);
        Self::over_watch(open(&session), steps)
    }

    fn over_watch((watch, prepared): Ready, steps: usize) -> Self {
        let opened = Opened::of(&watch, Some(prepared));
        let console = Console::bare(&session());
        let mut desk = Self { console, watch: Some(watch), heard: 0 };
        desk.console.report(EngineEvent::Opened(Box::new(opened)));
        desk.console.report(EngineEvent::Playing);
        desk.steps(steps);
        desk
    }

    /// The whole attack, without an engine behind it.
    pub(crate) fn looking() -> Self {
        Self::looking_after(ATTACK)
    }

    /// The same of a data set that also labels `missed`.
    pub(crate) fn looking_where_labelled(missed: Event) -> Self {
        let (opened, bulletins) = &*SAID;
        let mut opened = opened.clone();
        opened.events.push(missed);
        let mut desk = Self::blank();
        desk.console.report(EngineEvent::Opened(Box::new(opened)));
        desk.console.report(EngineEvent::Playing);
        desk.hear_on(bulletins);
        desk
    }

    /// Nothing has been said yet, and no engine is there.
    pub(crate) fn blank() -> Self {
        Self { console: Console::bare(&session()), watch: None, heard: 0 }
    }

    /// The first of what was said, one report a step.
    pub(crate) fn looking_after(steps: usize) -> Self {
        let (opened, bulletins) = &*SAID;
        let mut desk = Self::blank();
        desk.console.report(EngineEvent::Opened(Box::new(opened.clone())));
        desk.console.report(EngineEvent::Playing);
        desk.hear_on(&bulletins[..steps]);
        desk
    }

    /// All that was said after so many steps.
    pub(crate) fn hear_from(&mut self, steps: usize) {
        self.hear_on(&SAID.1[steps..]);
    }

    fn hear_on(&mut self, bulletins: &[Update]) {
        for bulletin in bulletins {
            self.console.report(EngineEvent::News(Box::new(bulletin.clone())));
        }
    }

    pub(crate) fn watch(&mut self) -> &mut Watch {
        self.watch.as_mut().expect("this desk has an engine")
    }

    pub(crate) fn end(&mut self) -> &mut Self {
        let mut news = News::default();
        self.watch().end(&mut news);
        self.news(news);
        let ending = self.watch().run().ending(Duration::ZERO);
        self.console.report(EngineEvent::Ended(Box::new(ending)));
        self
    }

    /// A person enters the run here.
    pub(crate) fn enter(&mut self) {
        let mut news = News::default();
        self.watch().enter_here(&mut news);
        self.news(news);
    }

    pub(crate) fn steps(&mut self, steps: usize) {
        let mut news = News::default();
        for _ in 0..steps {
            self.watch().step(&mut news).expect("a built-in plant has no bad rows");
        }
        self.news(news);
    }

    fn news(&mut self, news: News) {
        let snapshot = Some(self.watch().snapshot());
        let bulletin = Update { news, snapshot, ..Update::default() };
        self.console.report(EngineEvent::News(Box::new(bulletin)));
    }

    /// Presses keys; what is wished for happens before the next key.
    pub(crate) fn keys(&mut self, keys: &str) -> &mut Self {
        for key in split(keys) {
            self.console.keys(&key);
            self.serve();
        }
        self
    }

    /// Presses keys while the engine is busy: nothing that is wished for happens.
    pub(crate) fn busy_keys(&mut self, keys: &str) -> &mut Self {
        self.console.keys(keys);
        self
    }

    /// Does what was wished for and not done yet.
    pub(crate) fn serve(&mut self) {
        while let Some(effect) = self.console.effects.get(self.heard).cloned() {
            self.heard += 1;
            match effect {
                Effect::Command(Command::Order(order)) => self.carry_out(order),
                Effect::Commands(commands) => {
                    for command in commands {
                        if let Command::Order(order) = command {
                            self.carry_out(order);
                        }
                    }
                }
                Effect::Command(Command::WhatIf(turn)) => {
                    let watch = self.watch();
                    let (before, after) = (watch.so_far(), watch.what_if(turn));
                    self.console.report(EngineEvent::Tried(Box::new(Tried {
                        turn,
                        before,
                        after,
                    })));
                }
                Effect::Command(Command::RunTo(goal)) => {
                    while self.console.model.newest().is_none_or(|newest| newest < goal) {
                        self.steps(1);
                    }
                }
                Effect::Command(Command::Step) => self.steps(1),
                _ => {}
            }
        }
    }

    fn carry_out(&mut self, order: Order) {
        let mut news = News::default();
        let done = self.watch().act(order, &mut news).map_err(|e| e.to_string());
        self.news(news);
        self.console.report(EngineEvent::Ordered(done));
    }

    pub(crate) fn pass(&mut self, wall: Duration) {
        self.console.tell(Msg::Passed(wall));
    }

    pub(crate) fn wishes(&self) -> Vec<&Command> {
        let mut wishes = Vec::new();
        for effect in &self.console.effects {
            if let Effect::Command(wish) = effect {
                wishes.push(wish);
            }
        }
        wishes
    }

    /// The moment looked at, as the plant's clock shows it.
    pub(crate) fn clock(&self) -> String {
        let moment = self.console.model.moment().expect("there is data");
        self.console.model.clock.time(moment)
    }

    pub(crate) fn moment(&self) -> Timestamp {
        self.console.model.moment().expect("there is data")
    }

    pub(crate) fn said(&self) -> &str {
        self.console.model.remark.as_ref().map_or("", |remark| &remark.text)
    }
}

/// Single keys of a macro: characters, and names in `<>`.
fn split(keys: &str) -> Vec<String> {
    let mut rest = keys;
    let mut all = Vec::new();
    while let Some(first) = rest.chars().next() {
        let end = match rest.strip_prefix('<').and_then(|r| r.find('>')) {
            Some(end) => end + 2,
            None => first.len_utf8(),
        };
        let (key, after) = rest.split_at(end);
        all.push(key.to_owned());
        rest = after;
    }
    all
}
