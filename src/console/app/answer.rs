//! What becomes of keys while a line is being typed or a question stands.

use crossterm::event::KeyCode;

use super::command::{self, Typed};
use super::filter::Filter;
use super::goal::{self, Goal};
use super::prompt::{Prompt, Purpose};
use super::question::Question;
use super::{Effect, Model, Stage, act};
use crate::console::key::Key;
use crate::console::theme::Theme;
use crate::engine::handle::Command;
use crate::incident::OperatorAction;

const KEPT: usize = 100;

impl Model {
    /// A key while a line is being typed.
    #[expect(clippy::wildcard_enum_match_arm, reason = "any other key edits the line")]
    pub(super) fn type_key(&mut self, mut prompt: Prompt, key: Key) -> Option<Effect> {
        prompt.error = None;
        match key.code() {
            KeyCode::Esc => return self.leave(&prompt),
            KeyCode::Enter => return self.finish(prompt),
            KeyCode::Tab => prompt.complete(true, &self.names),
            KeyCode::BackTab => prompt.complete(false, &self.names),
            KeyCode::Up => prompt.recall(true, &self.typed),
            KeyCode::Down => prompt.recall(false, &self.typed),
            KeyCode::Backspace if prompt.line.text().is_empty() => return self.leave(&prompt),
            _ if prompt.line.press(key) => prompt.forget_offers(),
            _ => {}
        }
        self.follow_line(&prompt);
        self.prompt = Some(prompt);
        None
    }

    /// Text that was pasted goes into the line.
    pub(super) fn paste(&mut self, text: &str) {
        if let Some(mut prompt) = self.prompt.take() {
            prompt.line.insert(text);
            prompt.forget_offers();
            self.follow_line(&prompt);
            self.prompt = Some(prompt);
        }
    }

    /// Filters show what they find while they are typed.
    fn follow_line(&mut self, prompt: &Prompt) {
        match prompt.purpose {
            Purpose::Filter => self.filter = Filter::read(prompt.line.text()),
            Purpose::Search => {
                prompt.line.text().clone_into(&mut self.search);
                self.help = Some(0);
            }
            Purpose::Go
            | Purpose::Command
            | Purpose::Note(_)
            | Purpose::Shelf(_)
            | Purpose::Value(_) => {}
        }
    }

    /// The line is given up; what it showed on the way is gone.
    fn leave(&mut self, prompt: &Prompt) -> Option<Effect> {
        if prompt.purpose == Purpose::Filter {
            self.filter = Filter::default();
        } else if prompt.purpose == Purpose::Search {
            self.search.clear();
        }
        None
    }

    /// The line is finished. It is carried out, or stays with the reason why not.
    fn finish(&mut self, mut prompt: Prompt) -> Option<Effect> {
        let text = prompt.line.text().to_owned();
        if text.trim().is_empty() && prompt.purpose != Purpose::Filter {
            return None;
        }
        let done = match prompt.purpose {
            Purpose::Filter | Purpose::Search => Ok(None),
            Purpose::Go => match Goal::read(&text) {
                Some(goal) => self.go(goal),
                None => Err(format!("expected {}", goal::EXPECTED)),
            },
            Purpose::Command => self.run_line(&text),
            Purpose::Note(incident) => Ok(Some(
                self.order(OperatorAction::Note { incident, text: text.trim().to_owned() }, None),
            )),
            Purpose::Shelf(incident) => match command::shelf(&text) {
                Some(seconds) => Ok(Some(self.shelve(incident, seconds))),
                None => Err("expected a time up to 24h, such as 30m".into()),
            },
            Purpose::Value(knob) => self.try_value(knob, &text, None),
        };
        match done {
            Ok(effect) => effect,
            Err(why) => {
                prompt.error = Some(crate::console::text::clean(&why));
                self.prompt = Some(prompt);
                None
            }
        }
    }

    fn run_line(&mut self, text: &str) -> Result<Option<Effect>, String> {
        let command = command::read(text, &self.names)?;
        if self.typed.last().is_none_or(|last| last != text) {
            self.typed.push(text.to_owned());
            if self.typed.len() > KEPT {
                self.typed.remove(0);
            }
        }
        Ok(match command {
            Typed::Do(action) => act::act(self, action),
            Typed::Set(knob, value, why) => self.try_value(knob, &value, why)?,
            Typed::Go(goal) => self.go(goal)?,
            Typed::Theme(choice) => {
                self.theme = Theme::new(choice, self.theme.terminal);
                None
            }
            Typed::Speed(speed) => Some(self.set_speed(speed)),
            Typed::Filter(text) => {
                self.filter = Filter::read(&text);
                self.show(super::Screen::Log);
                None
            }
            Typed::Note(text) => {
                let incident = self.chosen_incident().map(|i| i.number).ok_or("no incident yet")?;
                Some(self.order(OperatorAction::Note { incident, text }, None))
            }
            Typed::Shelve(seconds) => {
                let incident = self.chosen_incident().map(|i| i.number).ok_or("no incident yet")?;
                Some(self.shelve(incident, seconds))
            }
            Typed::Open(name) => Some(Effect::CheckData(name)),
            Typed::Bell(on) => {
                self.bell = on;
                None
            }
            Typed::Suspend(why) => self.suspend_all(why.as_deref()),
            Typed::Pay => {
                let trial = self.tuning.as_ref().map(|tuning| tuning.trial);
                let trial = trial.ok_or("no setting is on trial")?;
                Some(Effect::Command(Command::WhatIfPaid(trial)))
            }
        })
    }

    /// A key while a question stands. Any other key leaves it unanswered; enter is no answer, since
    /// it is what led to the question.
    pub(super) fn answer(&mut self, question: Question, key: Key) -> Option<Effect> {
        if key.code() == KeyCode::Enter {
            self.question = Some(question);
            return None;
        }
        let letter = key.typed();
        let mark = letter.filter(|c| goal::is_mark(*c));
        let choices = question.choices(&self.names);
        let at = choices.iter().position(|(key, _)| Some(*key) == letter);
        let yes = at.filter(|at| *at == 0);
        match question {
            Question::Mark => {
                self.mark(mark?);
                None
            }
            Question::ToMark => self.go(Goal::Mark(mark?)).unwrap_or_else(|why| {
                self.failure(why);
                None
            }),
            Question::Shelve { incident, shift_s } => match at? {
                0 => Some(self.shelve(incident, 600)),
                1 => Some(self.shelve(incident, 3600)),
                2 => Some(self.shelve(incident, shift_s)),
                _ => {
                    self.prompt = Some(Prompt::new(Purpose::Shelf(incident), ""));
                    None
                }
            },
            Question::Correct { incident, roots } => {
                let root = *roots.get(at?)?;
                Some(self.order(OperatorAction::Correct { incident, root }, None))
            }
            Question::Accept { incident } => {
                yes.map(|_| self.order(OperatorAction::Accept { incident }, None))
            }
            Question::TakeOut { client } => {
                yes.map(|_| self.order(OperatorAction::TakeOut { client }, None))
            }
            Question::Commit { to, why, along, .. } => yes.map(|_| match along {
                // In this order the enrolments of clients at the new ε cost nothing.
                Some(along) => self.order_turns(&[to, along], why.as_deref()),
                None => self.order_turn(to, why),
            }),
            Question::Write { changes, .. } => {
                yes.map(|_| Effect::Write(changes.into_iter().map(|(_, to)| to).collect()))
            }
            Question::Open(name) => yes.map(|_| Effect::Open(name)),
            Question::Quit { .. } => yes.map(|_| Effect::Quit),
        }
    }

    /// Whether the engine can still be asked for anything.
    pub(super) fn is_watched(&self) -> bool {
        self.watched.is_some() && !matches!(self.stage, Stage::Preparing)
    }
}
