//! Two days under one cursor: two recordings, or two settings of one session, one above the other. Both
//! consoles stand at their ends; whatever is looked at in one is looked at in the other.
//!
//! ```text
//!  a: plant-attack-day            the console's own page
//!  ═ 10:42:10 ═ a #3 P1 · b – ═ differs ═══════════════════
//!  b: plant-attack-day arl0=8h    the console's own page
//! ```

use std::io;

use crossterm::event::Event;
use jiff::{SignedDuration, Timestamp};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};

use super::action::Action;
use super::app::{Effect, Model, Msg, update};
use super::input::{Input, Keys, Sent};
use super::key::Key;
use super::keymap::Meaning;
use super::run::{Appearance, ConsoleError, Ending, is_possible};
use super::signals::{Request, Signal, Signals};
use super::still::{FULL_SPEED, run_to};
use super::subject::Subject;
use super::term::{self, Term};
use super::text::clean;
use super::view::view;
use crate::engine::handle::Options;
use crate::incident::Incident;

/// Incidents that open within this time of each other are the same.
const SAME: SignedDuration = SignedDuration::from_mins(5);

/// What can be done in both at once: looking, and nothing that changes a run.
const SHARED: [Action; 30] = [
    Action::Back,
    Action::Forward,
    Action::FarBack,
    Action::FarForward,
    Action::PreviousIncident,
    Action::NextIncident,
    Action::Start,
    Action::Live,
    Action::GoTo,
    Action::ZoomIn,
    Action::ZoomOut,
    Action::CloseUp,
    Action::ShowOverview,
    Action::ShowClient,
    Action::ShowInfluence,
    Action::ShowIncident,
    Action::ShowPrivacy,
    Action::ShowLog,
    Action::Down,
    Action::Up,
    Action::Open,
    Action::Close,
    Action::PageDown,
    Action::PageUp,
    Action::Sort,
    Action::Truth,
    Action::Help,
    Action::Theme,
    Action::Redraw,
    Action::Quit,
];

/// Both days, each read to its end.
pub(crate) struct Both {
    models: [Model; 2],
    names: [String; 2],
    /// The one that keys are meant for; the other follows.
    leads: usize,
    /// How much later the second day is than the first; nothing where they overlap in time.
    shift: SignedDuration,
}

impl Both {
    /// Runs or reads both to their ends. `names` says what each is.
    pub(crate) fn read(
        subjects: [Subject; 2],
        names: [String; 2],
        look: Appearance,
    ) -> Result<Self, ConsoleError> {
        let theme = look.resolve();
        let mut models = Vec::new();
        for subject in subjects {
            let mut model = Model::new(subject.session(), theme);
            model.is_recording = true;
            run_to(&mut model, subject.spawn(Options::watched(FULL_SPEED), false)?)?;
            models.push(model);
        }
        let [Some(a), Some(b)] = [models.pop(), models.pop()] else {
            return Err(ConsoleError::FeedDied);
        };
        Ok(Self::of([b, a], names))
    }

    pub(super) fn of(mut models: [Model; 2], names: [String; 2]) -> Self {
        // Nothing is acknowledged here, so that leaving asks nothing.
        for model in &mut models {
            model.is_recording = true;
        }
        let spans = models.each_ref().map(Model::span);
        let shift = match spans {
            [Some(a), Some(b)] if a.0 > b.1 || b.0 > a.1 => b.0.duration_since(a.0),
            _ => SignedDuration::ZERO,
        };
        Self { models, names: names.map(|name| clean(&name)), leads: 0, shift }
    }

    /// A key; whether the view is left.
    pub(super) fn press(&mut self, key: Key) -> bool {
        let typing = {
            let model = &self.models[self.leads];
            model.prompt.is_some() || model.question.is_some()
        };
        if !typing {
            match self.models[self.leads].keymap.meaning(None, key) {
                Meaning::Do(Action::QuitNow) => return true,
                Meaning::Do(Action::NextPanel | Action::PreviousPanel) => {
                    self.leads = 1 - self.leads;
                    return false;
                }
                Meaning::Do(action) if !SHARED.contains(&action) => {
                    self.models[self.leads].remark = Some(super::remark::Remark::failed(
                        "two days are only looked at; open one of them to do that",
                    ));
                    return false;
                }
                Meaning::Do(_) | Meaning::Begins | Meaning::Nothing => {}
            }
        }
        let effect = update(&mut self.models[self.leads], Msg::Key(key));
        self.follow();
        matches!(effect, Some(Effect::Quit))
    }

    /// The other day shows the same moment in the same way.
    fn follow(&mut self) {
        let (first, second) = self.models.split_at_mut(1);
        let (a, b) = (&mut first[0], &mut second[0]);
        let (leader, other, shift) =
            if self.leads == 0 { (a, b, self.shift) } else { (b, a, -self.shift) };
        let moment = leader.moment().and_then(|moment| moment.checked_add(shift).ok());
        other.follow_view(leader, moment);
    }

    /// Draws both into the whole of `buffer`.
    pub(super) fn draw(&self, buffer: &mut Buffer) {
        let area = buffer.area;
        let rows = [
            Constraint::Length(1),
            Constraint::Fill(1),
            Constraint::Length(1),
            Constraint::Fill(1),
        ];
        let [top, upper, middle, lower] = Layout::vertical(rows).areas(area);
        for (side, area) in [upper, lower].into_iter().enumerate() {
            let mut page = Buffer::empty(Rect::new(0, 0, area.width, area.height));
            view(&self.models[side], &mut page);
            for y in 0..area.height {
                for x in 0..area.width {
                    if let (Some(from), Some(to)) =
                        (page.cell((x, y)), buffer.cell_mut((area.x + x, area.y + y)))
                    {
                        *to = from.clone();
                    }
                }
            }
        }
        let theme = &self.models[0].theme;
        for (side, row) in [top, middle].into_iter().enumerate() {
            let leads = side == self.leads;
            let style = if leads { theme.cursor } else { theme.strong };
            buffer.set_style(row, style);
            let letter = ["a", "b"][side];
            let text = if side == 0 {
                format!(" {letter}: {}   {}", self.names[side], self.difference())
            } else {
                format!(" {letter}: {}   tab: the other day   q: leave", self.names[side])
            };
            buffer.set_stringn(row.x, row.y, text, usize::from(row.width), style);
        }
        theme.finish(buffer);
    }

    /// What both say about the moment looked at, and whether that differs.
    fn difference(&self) -> String {
        let moments = [0, 1].map(|side| self.models[side].moment());
        let at = [0, 1].map(|side| moments[side].and_then(|at| self.at(side, at)));
        let words = |side: usize| match at[side] {
            None => "–".to_owned(),
            Some(incident) => {
                let names = &self.models[side].names;
                let root = incident.root.and_then(|root| names.get(root));
                format!("#{} {}", incident.number, root.map_or("root unknown", String::as_str))
            }
        };
        let root = |side: usize| at[side].map(|incident| incident.root);
        let differs = if root(0) == root(1) { "" } else { "   differs" };
        let time = moments[0].map_or_else(String::new, |at| self.models[0].clock.date_time(at));
        format!("at {time}   a {}   b {}{differs}", words(0), words(1))
    }

    /// The incident of a day that was open at a moment, or that opened within a few minutes of it.
    fn at(&self, side: usize, moment: Timestamp) -> Option<&Incident> {
        let watched = self.models[side].watched.as_ref()?;
        let is_open = |incident: &&Incident| {
            incident.opened.duration_since(moment) <= SignedDuration::ZERO
                && incident.closed.is_none_or(|closed| closed.time >= moment)
        };
        let open = watched.incidents.iter().rev().find(is_open);
        let distance = |incident: &&Incident| incident.opened.duration_since(moment).abs();
        let near = || watched.incidents.iter().filter(|i| distance(i) <= SAME).min_by_key(distance);
        open.or_else(near)
    }

    #[cfg(test)]
    pub(super) fn models(&self) -> &[Model; 2] {
        &self.models
    }
}

/// Shows both until the operator leaves.
pub(crate) fn compare(mut both: Both, keys: Keys) -> Result<Ending, ConsoleError> {
    if !is_possible(keys) {
        return Err(ConsoleError::NotATerminal);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let mut term = Term::take(false)?;
        let mut input = Input::listen(keys)?;
        let ending = shown(&mut both, &mut signals, &mut term, &mut input).await;
        input.stop();
        drop(term);
        ending
    })
}

async fn shown(
    both: &mut Both,
    signals: &mut Signals,
    term: &mut Term,
    input: &mut Input,
) -> Result<Ending, ConsoleError> {
    loop {
        term.draw(|buffer| both.draw(buffer))?;
        tokio::select! {
            biased;
            request = signals.next() => match request {
                Request::End(Signal { name, number }) => {
                    return Ok(Ending::Signal { name, number });
                }
                Request::Stop => suspend(signals, term, input).await?,
                Request::GoOn => term.enter()?,
                Request::Resize => term.repaint(),
            },
            () = term::panicked() => return Err(ConsoleError::Panicked),
            sent = input.next() => match sent? {
                Sent::Event(Event::Key(key)) => {
                    if let Some(key) = Key::pressed(key)
                        && both.press(key)
                    {
                        return Ok(Ending::Quit);
                    }
                }
                Sent::Event(Event::Resize(..)) => term.repaint(),
                Sent::Event(_) | Sent::LeftOut(_) => {}
            },
        }
    }
}

async fn suspend(signals: &mut Signals, term: &mut Term, input: &mut Input) -> io::Result<()> {
    input.stop();
    term::restore();
    signals.stop().await?;
    term.enter()?;
    input.resume()
}
