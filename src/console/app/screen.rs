//! What fills the screen, what is chosen on it, and the ways between screens.

use super::{Model, filter};
use crate::console::action::TABLE;
use crate::engine::knob::{Knob, Turn};
use crate::incident::{ClientVerdict, Event, Figures, Incident, Verdict};
use crate::session::Mode;

const PAGE: usize = 6;

/// What fills the screen. Digits choose it, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Screen {
    Overview,
    /// The chosen client alone; the first sensors are scrolled off by [`Model::scroll`].
    Client,
    Influence,
    Incident(u64),
    Training,
    Privacy,
    Log,
    Sessions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Focus {
    Incidents,
    Clients,
    Knobs,
}

impl Focus {
    fn next(self, forward: bool) -> Self {
        match (self, forward) {
            (Self::Incidents, true) | (Self::Knobs, false) => Self::Clients,
            (Self::Clients, true) | (Self::Incidents, false) => Self::Knobs,
            (Self::Knobs, true) | (Self::Clients, false) => Self::Incidents,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sorting {
    /// As in the plant: rows never move by themselves.
    Plant,
    /// Roots first, then effects, then the rest; the plant's order among equals.
    Severity,
}

impl Model {
    /// What up and down move in: a list that is empty is passed over.
    pub(crate) fn focus(&self) -> Focus {
        match self.screen {
            Screen::Privacy => Focus::Knobs,
            Screen::Client | Screen::Influence | Screen::Training => Focus::Clients,
            Screen::Overview | Screen::Incident(_) | Screen::Log | Screen::Sessions => {
                let empty = match self.focus {
                    Focus::Incidents => self.listed().next().is_none(),
                    Focus::Knobs => self.knobs().is_empty(),
                    Focus::Clients => false,
                };
                if empty { Focus::Clients } else { self.focus }
            }
        }
    }

    /// Incidents whose evidence had begun by the moment looked at, the newest first, as they stood
    /// then. Those that were found later are among them, as they stood first.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &Incident> {
        let begun = self.watched.as_ref().zip(self.moment());
        begun.into_iter().flat_map(|(watched, moment)| watched.begun_by(moment, self.look))
    }

    /// An incident as it stands now, whatever moment is looked at: what an operator does, he does now.
    pub(crate) fn present(&self, number: u64) -> Option<&Incident> {
        self.watched.as_ref()?.incident(number)
    }

    /// The chosen incident: the one on the screen, of the chosen line of the log, the one pointed
    /// at, or the newest.
    pub(crate) fn chosen_incident(&self) -> Option<&Incident> {
        let number = match self.screen {
            Screen::Incident(number) => Some(number),
            Screen::Log => {
                let number = self.chosen_entry()?.incident()?;
                return self.watched.as_ref()?.incident_then(number, self.look);
            }
            Screen::Overview
            | Screen::Client
            | Screen::Influence
            | Screen::Training
            | Screen::Privacy
            | Screen::Sessions => self.incident,
        };
        let known =
            number.and_then(|number| self.watched.as_ref()?.incident_then(number, self.look));
        known.or_else(|| self.listed().next())
    }

    pub(crate) fn rows(&self) -> Vec<usize> {
        let clients = self.measured.as_ref().map_or(0, |measured| measured.clients.len());
        let mut rows: Vec<usize> = (0..clients).collect();
        if self.sorting == Sorting::Severity {
            rows.sort_by_key(|client| match self.verdict(*client).map(|found| found.verdict) {
                Some(Verdict::RootCause) => 0,
                Some(Verdict::Single | Verdict::Unknown) => 1,
                Some(Verdict::PropagatedEffect) => 2,
                None => 3,
            });
        }
        rows
    }

    /// The engine's verdict about a client at the moment looked at.
    pub(crate) fn verdict(&self, client: usize) -> Option<ClientVerdict> {
        self.watched.as_ref()?.verdict_at(client, self.moment()?)
    }

    /// Lines of the log that the filter lets through, up to the moment looked at, the newest first.
    pub(crate) fn entries(&self) -> Vec<&Event> {
        let Some(watched) = &self.watched else { return Vec::new() };
        let seen = |entry: &&Event| self.look.is_none_or(|look| entry.time <= look);
        let log = watched.log.iter().rev();
        let says = |entry: &Event| watched.words(entry, &self.names);
        log.filter(seen).filter(|entry| self.filter.shows(entry, &says, &self.names)).collect()
    }

    /// The chosen line of the log: the one pointed at, or the newest.
    pub(crate) fn chosen_entry(&self) -> Option<&Event> {
        let entries = self.entries();
        let at = self.entry.and_then(|number| entries.iter().position(|e| e.number == number));
        entries.get(at.unwrap_or(0)).copied()
    }

    pub(crate) fn knobs(&self) -> &[Turn] {
        self.snapshot().map_or(&[], |snapshot| &snapshot.knobs)
    }

    /// How one of them stands.
    pub(crate) fn setting(&self, knob: Knob) -> Option<Turn> {
        self.knobs().iter().copied().find(|turn| turn.knob == knob)
    }

    /// Those of them that change something while the method that stands decides: what it goes by
    /// first, then what only changes what is shown of the other method.
    pub(crate) fn offered_knobs(&self) -> impl Iterator<Item = Turn> {
        let mode = self.mode();
        let of = move |decides: bool| {
            self.knobs().iter().copied().filter(move |turn| {
                turn.knob().matters_in(mode) && turn.knob().decides_in(mode) == decides
            })
        };
        of(true).chain(of(false))
    }

    pub(crate) fn chosen_knob(&self) -> Option<Turn> {
        let known = |knob: Knob| self.offered_knobs().find(|turn| turn.knob() == knob);
        let chosen = self.knob.and_then(known);
        chosen.or_else(|| known(self.first_knob())).or_else(|| self.offered_knobs().next())
    }

    pub(crate) fn mode(&self) -> Mode {
        self.snapshot().map_or(Mode::Evidence, |snapshot| snapshot.mode)
    }

    /// The method that decided at the moment looked at.
    pub(crate) fn mode_then(&self) -> Mode {
        let (now, then) = (self.mode(), self.look.zip(self.watched.as_ref()));
        then.map_or(now, |(look, watched)| watched.known().mode(look, now))
    }

    /// The figures of the first line as of the moment looked at; none before the first step.
    pub(crate) fn figures(&self) -> Option<Figures> {
        let now = &self.snapshot()?.figures;
        let then = self.look.zip(self.watched.as_ref());
        Some(then.map_or_else(
            || now.clone(),
            |(look, watched)| watched.known().figures(look, self.names.len()),
        ))
    }

    fn first_knob(&self) -> Knob {
        match self.mode() {
            Mode::Evidence => Knob::Arl0,
            Mode::Paper => Knob::TauC(None),
        }
    }

    /// Goes across to another screen: from there the way up leads to the overview.
    pub(super) fn show(&mut self, screen: Screen) {
        if self.screen != screen {
            self.scroll = 0;
        }
        self.help = None;
        self.trail.clear();
        if screen != Screen::Overview {
            self.trail.push(Screen::Overview);
        }
        self.screen = screen;
    }

    /// Goes down to another screen: from there the way up leads back here.
    pub(super) fn enter(&mut self, screen: Screen) {
        if self.screen != screen {
            self.trail.push(self.screen);
            self.screen = screen;
            self.scroll = 0;
        }
    }

    /// One level up; `false` at the top.
    pub(super) fn close(&mut self) -> bool {
        if self.help.take().is_some() {
            self.search.clear();
            return true;
        }
        if self.branch.take().is_some() {
            self.scroll = 0;
            return true;
        }
        if self.tuning.take().is_some() || self.playback.take().is_some() {
            return true;
        }
        if self.screen == Screen::Log && !self.filter.is_empty() {
            self.filter = filter::Filter::default();
            return true;
        }
        if let Some(above) = self.trail.pop() {
            self.screen = above;
            self.scroll = 0;
            return true;
        }
        if self.focus == Focus::Knobs {
            self.focus = Focus::Incidents;
            return true;
        }
        false
    }

    pub(super) fn change_focus(&mut self, forward: bool) {
        if self.screen != Screen::Overview {
            return;
        }
        let from = self.focus();
        self.focus = from.next(forward);
        if self.focus() == from {
            self.focus = self.focus.next(forward);
        }
    }

    /// Chooses what stands so many rows further down.
    pub(super) fn choose(&mut self, rows: isize) {
        if self.help.is_some() {
            return self.page(rows > 0);
        }
        match self.screen {
            Screen::Incident(_) => self.scroll = self.scroll.saturating_add_signed(rows).min(200),
            Screen::Log => {
                let entries: Vec<u64> = self.entries().iter().map(|entry| entry.number).collect();
                let now = self.chosen_entry().map(|entry| entry.number);
                self.entry = neighbour(&entries, now, rows);
            }
            Screen::Sessions => {
                let last = self.sessions.len().saturating_sub(1);
                self.session = self.session.saturating_add_signed(rows).min(last);
            }
            Screen::Overview
            | Screen::Client
            | Screen::Influence
            | Screen::Training
            | Screen::Privacy => match self.focus() {
                Focus::Clients => {
                    self.chosen = neighbour(&self.rows(), Some(self.chosen), rows).unwrap_or(0);
                    self.scroll = 0;
                }
                Focus::Incidents => {
                    let listed: Vec<u64> = self.listed().map(|i| i.number).collect();
                    let now = self.chosen_incident().map(|incident| incident.number);
                    self.incident = neighbour(&listed, now, rows);
                }
                Focus::Knobs => {
                    let knobs: Vec<Knob> = self.offered_knobs().map(Turn::knob).collect();
                    let now = self.chosen_knob().map(Turn::knob);
                    self.knob = neighbour(&knobs, now, rows);
                    self.tuning = None;
                }
            },
        }
    }

    pub(super) fn page(&mut self, forward: bool) {
        let turn = |at: &mut usize, last: usize| {
            *at = if forward { (*at + PAGE).min(last) } else { at.saturating_sub(PAGE) };
        };
        if let Some(line) = &mut self.help {
            turn(line, TABLE.len());
            return;
        }
        let rows = PAGE.cast_signed() * if forward { 1 } else { -1 };
        match self.screen {
            Screen::Client => {
                let sensors = self.chosen_client().map_or(0, |client| client.sensors.len());
                turn(&mut self.scroll, sensors.saturating_sub(1));
            }
            Screen::Log | Screen::Sessions => self.choose(rows),
            Screen::Overview if self.focus() == Focus::Incidents => self.choose(rows),
            Screen::Overview => {}
            Screen::Incident(_) | Screen::Influence | Screen::Training | Screen::Privacy => {
                turn(&mut self.scroll, 200);
            }
        }
    }
}

/// The item so many places behind `now`; the ends hold.
fn neighbour<T: Copy + PartialEq>(items: &[T], now: Option<T>, rows: isize) -> Option<T> {
    let at = now.and_then(|now| items.iter().position(|item| *item == now)).unwrap_or(0);
    items.get(at.saturating_add_signed(rows).min(items.len().checked_sub(1)?)).copied()
}
