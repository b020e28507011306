//! What all parts of one picture have in common: one moment, one axis of time.

use jiff::{SignedDuration, Timestamp};
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{Canvas, columns, cut, width};
use crate::console::app::Model;
use crate::console::measured::Measured;
use crate::console::mouse::Target;
use crate::console::theme::Theme;
use crate::console::watched::{FlagCell, Trace, Watched};
use crate::console::window::{Window, ZOOMS};
use crate::engine::watch::Snapshot;
use crate::evidence::threshold::FlagThresholds;
use crate::federation::History;
use crate::history::{Bucket, Column};
use crate::incident::{Figures, Incident};
use crate::server::StateCorrelation;
use crate::server::influence::InfluenceGraph;
use crate::session::Mode;
use crate::site::material::LeftOut;

pub(crate) struct Scene<'a> {
    pub model: &'a Model,
    pub theme: &'a Theme,
    pub measured: &'a Measured,
    pub watched: Option<&'a Watched>,
    pub moment: Timestamp,
    pub newest: Timestamp,
}

impl<'a> Scene<'a> {
    pub(crate) fn new(model: &'a Model) -> Option<Self> {
        let measured = model.measured.as_ref()?;
        let (moment, newest) = (model.moment()?, model.newest()?);
        let watched = model.watched.as_ref();
        Some(Self { model, theme: &model.theme, measured, watched, moment, newest })
    }

    /// An axis of `columns` columns that begins `margin` cells from the left.
    pub(crate) fn axis(&self, margin: u16, columns: u16) -> Axis {
        let first = self.measured.history.first().unwrap_or(self.newest);
        let data = first..=self.newest.max(first);
        let window = Window::around(self.moment, data, self.model.column_s(), columns);
        self.axis_of(margin, window, columns)
    }

    fn axis_of(&self, margin: u16, window: Window, columns: u16) -> Axis {
        let steps = match self.watched {
            Some(watched) => (0..i64::from(columns))
                .map(|at| watched.history.column(window.start(at), window.start(at + 1)))
                .collect(),
            None => vec![Column::Outside; usize::from(columns)],
        };
        let cursor = self.model.look.and_then(|look| window.column_of(look));
        Axis { margin, columns, window, steps, cursor }
    }

    /// An axis over a stretch of time of its own, with a little of what came before. What is short
    /// begins in the first third, so that there is room for what follows.
    pub(crate) fn axis_over(
        &self,
        margin: u16,
        columns: u16,
        from: Timestamp,
        until: Timestamp,
    ) -> Axis {
        let seconds = until.duration_since(from).as_secs().max(1);
        let wanted = seconds + seconds / 4;
        let period_s = self.watched.map_or(1, |w| w.history.period().as_secs().max(1));
        let column_s = ZOOMS
            .into_iter()
            .find(|column_s| *column_s >= period_s && column_s * i64::from(columns) >= wanted)
            .unwrap_or(ZOOMS[ZOOMS.len() - 1]);
        let room = SignedDuration::from_secs(column_s * i64::from(columns) * 2 / 3);
        let end = from.saturating_add(room).map_or(until, |end| end.max(until));
        self.axis_of(margin, Window::around(end, from..=end, column_s, columns), columns)
    }

    /// How everything stood after the last step; nothing before the first.
    pub(crate) fn snapshot(&self) -> Option<&'a Snapshot> {
        self.watched?.snapshot.as_ref()
    }

    /// An incident as it stood at the moment, or as it stood first where it was found later.
    pub(crate) fn incident(&self, number: u64) -> Option<&'a Incident> {
        self.watched?.incident_then(number, self.model.look)
    }

    /// Whether an incident had not been found at the moment.
    pub(crate) fn is_found_later(&self, incident: &Incident) -> bool {
        self.model.look.is_some_and(|look| incident.opened > look)
    }

    /// The figures of the header as of the moment; nothing counts before the first step.
    pub(crate) fn figures(&self) -> Figures {
        self.model.figures().unwrap_or_default()
    }

    pub(crate) fn history(&self) -> Option<&'a History> {
        match &self.model.prepared {
            Some(prepared) => prepared.history.as_ref(),
            None => self.model.losses.as_ref(),
        }
    }

    pub(crate) fn graph(&self) -> Option<&'a InfluenceGraph> {
        Some(&self.model.prepared.as_ref()?.influences.graph)
    }

    /// The sensors of a client that no model looks at, where that is kept with the models.
    pub(crate) fn not_watched(&self, client: usize) -> &'a [(String, LeftOut)] {
        let prepared = self.model.prepared.as_ref().and_then(|p| p.clients.get(client));
        prepared.map_or(&[], |client| client.left_out.as_slice())
    }

    /// How states move together, where that is kept with the models of these clients.
    pub(crate) fn together(&self) -> Option<&'a StateCorrelation> {
        let together = self.model.prepared.as_ref()?.together.as_ref()?;
        (together.states.len() == self.measured.clients.len()).then_some(together)
    }

    /// The method that decided at the moment.
    pub(crate) fn mode(&self) -> Mode {
        self.model.mode_then()
    }

    /// The style of what passes its limit: alarming only where the method that decides looks at it.
    pub(crate) fn over(&self, trace: Trace) -> Style {
        match (self.mode(), trace) {
            (Mode::Evidence, Trace::Evidence)
            | (Mode::Paper, Trace::DistanceC | Trace::DistanceA) => self.theme.over,
            _ => self.theme.text,
        }
    }

    pub(crate) fn name(&self, client: usize) -> &'a str {
        self.measured.clients.get(client).map_or("?", |client| client.name.as_str())
    }

    /// A client's name and what it is: `P1 boiler`.
    pub(crate) fn full_name(&self, client: usize) -> String {
        let known = self.measured.clients.get(client);
        let title = known.map_or("", |client| client.title.as_str());
        format!("{} {title}", self.name(client)).trim_end().to_owned()
    }

    /// Cells of the widest of these.
    pub(crate) fn full_name_cells(&self, most: u16) -> u16 {
        let clients = 0..self.measured.clients.len();
        let widest = clients.map(|client| width(&self.full_name(client))).max();
        widest.unwrap_or(0).clamp(2, most)
    }

    pub(crate) fn names(&self) -> &'a [String] {
        &self.model.names
    }

    pub(crate) fn name_cells(&self, most: u16) -> u16 {
        let widest = self.measured.clients.iter().map(|client| width(&client.name)).max();
        widest.unwrap_or(0).clamp(2, most)
    }

    /// A client's name in a column of its own, with a blank behind it.
    pub(crate) fn padded_name(&self, client: usize) -> String {
        let cells = self.name_cells(10);
        format!("{:<width$} ", cut(self.name(client), cells), width = usize::from(cells))
    }

    /// The sensors of a client that deviate most, for its own screen. Of a moment looked back at it is
    /// known while the client took part in an incident.
    pub(crate) fn ranked(&self, client: usize) -> Option<&'a [String]> {
        match self.model.look {
            Some(look) => self.watched?.known().ranked(client, look),
            None => self.snapshot()?.sensors.get(client).map(Vec::as_slice),
        }
    }

    pub(crate) fn limit(&self, client: usize, trace: Trace) -> f32 {
        let tau = self.thresholds(client);
        match trace {
            Trace::DistanceC => tau.map_or(f32::INFINITY, |tau| tau.tau_c.max(0.0).sqrt()),
            Trace::DistanceA => tau.map_or(f32::INFINITY, |tau| tau.tau_a.max(0.0).sqrt()),
            Trace::Evidence => 1.0,
            Trace::NormC
            | Trace::NormA
            | Trace::Surprise
            | Trace::Level
            | Trace::FlagC
            | Trace::FlagA => f32::INFINITY,
        }
    }

    /// The thresholds that trends are scaled by: those on trial where there are any.
    pub(crate) fn thresholds(&self, client: usize) -> Option<FlagThresholds> {
        self.trial(client).or_else(|| self.watched?.thresholds(client))
    }

    pub(crate) fn trial(&self, client: usize) -> Option<FlagThresholds> {
        self.model.tuning.as_ref()?.ghost()?.get(client).copied()
    }
}

/// An axis of time and where it stands in its area.
pub(crate) struct Axis {
    pub margin: u16,
    pub columns: u16,
    pub window: Window,
    pub steps: Vec<Column>,
    pub cursor: Option<u16>,
}

impl Axis {
    /// A trace of a client, a bucket a column.
    pub(crate) fn trace(&self, scene: &Scene, client: usize, trace: Trace) -> Vec<Bucket> {
        let Some(watched) = scene.watched else { return Vec::new() };
        self.steps.iter().map(|column| watched.bucket(client, trace, column)).collect()
    }

    /// The flags of a client, with what a threshold on trial makes of them.
    pub(crate) fn flags(&self, scene: &Scene, client: usize) -> Vec<FlagCell> {
        let Some(watched) = scene.watched else { return Vec::new() };
        let trial = scene.trial(client);
        let said = |column| {
            let now = watched.flags(client, column);
            trial.map_or(now, |tau| now.on_trial(watched.flags_on_trial(client, column, tau)))
        };
        self.steps.iter().map(said).collect()
    }

    pub(crate) fn grades(&self, scene: &Scene, client: usize) -> Vec<FlagCell> {
        self.trace(scene, client, Trace::Level).into_iter().map(FlagCell::grade).collect()
    }

    pub(crate) fn ends(&self) -> (Timestamp, Timestamp) {
        (self.window.start(0), self.window.start(i64::from(self.columns)))
    }

    /// The part of `area` that has the axis' columns.
    pub(crate) fn trend(&self, area: Rect) -> Rect {
        columns(area, self.margin, self.columns)
    }

    pub(crate) fn hit(&self, area: Rect, canvas: &mut Canvas) {
        let (start, end) = self.ends();
        canvas.hit(self.trend(area), Target::Trend { start, end });
    }
}
