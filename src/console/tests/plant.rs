//! A console over a real run: the first two attacks of the day, decided by models made in a moment.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use jiff::Timestamp;

use super::fixture::Console;
use crate::console::app::tuning::Found;
use crate::console::app::{Effect, Msg};
use crate::console::feed::{Bulletin, Opened, Report, Wish};
use crate::engine::prepare::{Prepared, prepare};
use crate::engine::watch::{News, Watch};
use crate::session::Session;

const SESSION: &str = r#"Session(
    about: "a morning",
    source: Plant(attacks: Day, history_h: 6, hours: 2.7),
    ranges: (
        fit: (until: "+3h"),
        calibration: (from: "+3h", until: "+6h"),
        replay: (from: "+440m"),
    ),
    model: (federation: Online(passes: 1)),
    sampling: (decimate: Every(5)),
    replay: (speed: 10),
)"#;

/// Steps of the morning: from 01:20 to 02:42, five seconds each.
pub const STEPS: usize = 82 * 12;
/// Steps until the first attack is over, at 01:32.
pub const FIRST_ATTACK: usize = 12 * 12;

static PREPARED: LazyLock<(Session, Arc<Prepared>)> = LazyLock::new(|| {
    let session = Session::parse("morning", Path::new(""), SESSION).expect("a sound session");
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("kept.safetensors");
    let prepared = prepare(&session, &file, &mut |_| ControlFlow::Continue(())).expect("prepared");
    (session, Arc::new(prepared))
});

pub fn session() -> Session {
    PREPARED.0.clone()
}

/// The morning, standing before its first step.
pub fn ready() -> (Watch, Arc<Prepared>) {
    let (session, prepared) = &*PREPARED;
    (Watch::open(session, prepared).expect("a built-in plant"), Arc::clone(prepared))
}

/// A console whose wishes a real engine carries out at once, without a thread and without a clock.
pub struct Desk {
    pub console: Console,
    pub watch: Watch,
    heard: usize,
}

impl Desk {
    /// The morning after so many steps.
    pub fn after(steps: usize) -> Self {
        let (watch, prepared) = ready();
        let opened = Opened {
            layout: watch.measurements().clone(),
            events: watch.events().to_vec(),
            period_s: watch.period_s(),
            prepared: Some(prepared),
        };
        let mut desk = Self { console: Console::bare(&session()), watch, heard: 0 };
        desk.console.report(Report::Opened(Box::new(opened)));
        desk.console.report(Report::Playing);
        desk.steps(steps);
        desk
    }

    /// The stream ended after so many steps.
    pub fn over(steps: usize) -> Self {
        let mut desk = Self::after(steps);
        let mut news = News::default();
        desk.watch.end(&mut news);
        desk.news(news);
        desk.console.report(Report::Ended);
        desk
    }

    /// The engine takes so many steps.
    pub fn steps(&mut self, steps: usize) {
        let mut news = News::default();
        for _ in 0..steps {
            self.watch.step(&mut news).expect("a built-in plant has no bad rows");
        }
        self.news(news);
    }

    fn news(&mut self, news: News) {
        let standing = Some(self.watch.standing());
        let bulletin = Bulletin { news, standing, ..Bulletin::default() };
        self.console.report(Report::News(Box::new(bulletin)));
    }

    /// Presses keys; what is wished for happens before the next key.
    pub fn keys(&mut self, keys: &str) -> &mut Self {
        for key in split(keys) {
            self.console.keys(&key);
            self.serve();
        }
        self
    }

    /// Presses keys while the engine is busy: nothing that is wished for happens.
    pub fn busy_keys(&mut self, keys: &str) -> &mut Self {
        self.console.keys(keys);
        self
    }

    /// Does what was wished for and not done yet.
    pub fn serve(&mut self) {
        while let Some(effect) = self.console.effects.get(self.heard).cloned() {
            self.heard += 1;
            match effect {
                Effect::Wish(Wish::Order(order)) => {
                    let mut news = News::default();
                    let done = self.watch.act(order, &mut news).map_err(|e| e.to_string());
                    self.news(news);
                    self.console.report(Report::Ordered(done));
                }
                Effect::Wish(Wish::WhatIf(turn)) => {
                    let (before, after) = (self.watch.so_far(), self.watch.what_if(turn));
                    self.console.report(Report::Found(Box::new(Found { turn, before, after })));
                }
                Effect::Wish(Wish::RunTo(goal)) => {
                    while self.console.model.newest().is_none_or(|newest| newest < goal) {
                        self.steps(1);
                    }
                }
                Effect::Wish(Wish::Step) => self.steps(1),
                _ => {}
            }
        }
    }

    /// Time passes on the wall.
    pub fn pass(&mut self, wall: Duration) {
        self.console.tell(Msg::Passed(wall));
    }

    /// The wishes so far.
    pub fn wishes(&self) -> Vec<&Wish> {
        let wish = |effect| match effect {
            &Effect::Wish(ref wish) => Some(wish),
            _ => None,
        };
        self.console.effects.iter().filter_map(wish).collect()
    }

    /// The moment looked at, as the plant's clock shows it.
    pub fn clock(&self) -> String {
        let moment = self.console.model.moment().expect("there is data");
        self.console.model.clock.time(moment)
    }

    pub fn moment(&self) -> Timestamp {
        self.console.model.moment().expect("there is data")
    }

    /// What is said to the operator.
    pub fn said(&self) -> &str {
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
