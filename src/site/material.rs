//! Nominal rows of every client: what its models are fitted to, and what they are calibrated on.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use ndarray::{Array2, Axis, Slice};
use serde::{Deserialize, Serialize};

use super::fit::is_measured;
use super::grader::SETTLING;
use super::seen::SeenFit;
use super::stretch::{self, Mark, Stretch};
use super::training::SiteData;
use crate::nn::train::Job;
use crate::nn::train::sensors::duplicates;
use crate::nn::weights::ProprietaryWeights;
use crate::session::{ModelSettings, Proprietary, Session, Source};
use crate::stream::decimate::Decimated;
use crate::stream::resolution::{Grids, Resolution};
use crate::stream::scaling::Scaling;
use crate::stream::{
    Continuity, Frame, Label, Layout, Part, Row, Sensor, Stream, StreamError, UnusedRows, wild,
};

/// The nominal rows of a session.
#[derive(Debug, Clone)]
pub(crate) struct Material {
    /// What decimated frames look like.
    pub(crate) layout: Layout,
    /// Samples in a block mean.
    pub(crate) every: u32,
    /// Clients in the order of the session.
    pub(crate) clients: Vec<ClientMaterial>,
    /// First and last instant of the fit range.
    pub(crate) fit_span: (Timestamp, Timestamp),
    /// First and last instant of the calibration range.
    pub(crate) calibration_span: (Timestamp, Timestamp),
    /// Rows of both ranges that were not used.
    pub(crate) unused: UnusedRows,
}

/// The nominal rows of one client. They never leave it.
#[derive(Debug, Clone)]
pub(crate) struct ClientMaterial {
    pub(crate) name: String,
    /// Which of its sensors are used, and how they are scaled.
    pub(crate) view: SensorView,
    /// Sensors and known inputs of whose nominal values some are wild and were taken out, and how many.
    pub(crate) wild: Vec<(String, u64)>,
    /// Sensors that are not used, with the reason.
    pub(crate) left_out: Vec<(String, LeftOut)>,
    /// What those of them show that are watched by their values alone.
    pub(crate) seen: SeenFit,
    /// Known inputs that vary in the fit range, and how they are scaled.
    pub(crate) inputs: SensorView,
    /// Standardised rows of the fit range, used sensors only. A row of NaN stands between runs.
    pub(super) fit: Array2<f32>,
    /// The same of the calibration range.
    pub(super) calibration: Array2<f32>,
    /// The stretches of the calibration range.
    pub(super) stretches: Vec<Stretch>,
    /// Known inputs beside each row of the fit range.
    pub(super) fit_inputs: Array2<f32>,
    /// The same of the calibration range.
    pub(super) calibration_inputs: Array2<f32>,
}

impl ClientMaterial {
    /// Rows of the fit range.
    pub(crate) fn fit_rows(&self) -> usize {
        self.fit.nrows()
    }

    /// Rows of the calibration range.
    pub(crate) fn calibration_rows(&self) -> usize {
        self.calibration.nrows()
    }

    /// Whether anything was measured at row `t` of the calibration range.
    pub(crate) fn is_measured(&self, t: usize) -> bool {
        is_measured(self.calibration.row(t).iter())
    }

    /// A model of this client to be made from its fit range, and judged on its calibration range.
    pub(crate) fn job<'a>(
        &'a self,
        kind: Proprietary,
        settings: &'a ModelSettings,
        seed: u64,
    ) -> Job<'a> {
        Job {
            client: &self.name,
            kind,
            settings,
            fit: self.fit.view(),
            held_out: self.calibration.view(),
            seed,
        }
    }

    /// The same, judged on nothing.
    pub(crate) fn unjudged_job<'a>(
        &'a self,
        kind: Proprietary,
        settings: &'a ModelSettings,
    ) -> Job<'a> {
        Job {
            held_out: self.fit.slice_axis(Axis(0), Slice::from(0..0)),
            ..self.job(kind, settings, 0)
        }
    }

    /// What this site brings into a federation that learns from its fit range.
    pub(crate) fn fit_site<'a>(&'a self, model: &'a ProprietaryWeights) -> SiteData<'a> {
        SiteData { name: &self.name, model, rows: self.fit.view() }
    }

    /// The same for its calibration range.
    pub(crate) fn calibration_site<'a>(&'a self, model: &'a ProprietaryWeights) -> SiteData<'a> {
        SiteData { name: &self.name, model, rows: self.calibration.view() }
    }
}

/// Why a sensor is not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LeftOut {
    /// It never changed in the fit range.
    Constant,
    /// It had no value in the fit range.
    NoValue,
    /// It says what another one says.
    Repeats(String),
    /// It moves by less than three steps of its resolution, in nominal or in live data.
    TooCoarse,
    /// The delivered model does not know it.
    UnknownToTheModel,
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LeftOut::Constant => f.write_str("never changes"),
            LeftOut::NoValue => f.write_str("has no value in the fit range"),
            LeftOut::Repeats(other) => write!(f, "repeats {other}"),
            LeftOut::TooCoarse => f.write_str("too coarse: it moves by less than three steps"),
            LeftOut::UnknownToTheModel => f.write_str("unknown to the delivered model"),
        }
    }
}

/// Which sensors of a client a model sees, and in which units.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct SensorView {
    /// Places in the client's row.
    pub(crate) used: Vec<usize>,
    pub(crate) names: Vec<String>,
    /// Mean of each.
    pub(crate) mean: Vec<f64>,
    /// Standard deviation of each.
    pub(crate) std: Vec<f64>,
}

impl SensorView {
    /// Writes what the model sees of a client's sensors; missing stays NaN.
    pub(crate) fn see(&self, row: Row<'_>, out: &mut [f32]) {
        self.standardise(row.raw_sensors(), out);
    }

    /// Writes what the model sees of a client's columns; missing stays NaN.
    pub(crate) fn standardise(&self, row: &[f64], out: &mut [f32]) {
        for (k, out) in out.iter_mut().enumerate() {
            let value = row[self.used[k]];
            let scaled = ((value - self.mean[k]) / self.std[k]) as f32;
            // What is too large for the model is out of range, and not missing.
            *out = if value.is_finite() { scaled.clamp(f32::MIN, f32::MAX) } else { scaled };
        }
    }
}

/// Rows as they were measured; nothing stands between two runs.
type Rows = Vec<Option<Vec<f64>>>;

/// Rows of a client as they were measured, runs kept apart.
#[derive(Default)]
struct Measured {
    rows: Rows,
    inputs: Rows,
}

fn seen_by(view: &SensorView, rows: &[Option<Vec<f64>>]) -> Array2<f32> {
    let mut out = Array2::from_elem((rows.len(), view.used.len()), f32::NAN);
    for (row, mut out) in rows.iter().zip(out.axis_iter_mut(Axis(0))) {
        if let (Some(row), Some(out)) = (row, out.as_slice_mut()) {
            view.standardise(row, out);
        }
    }
    out
}

/// A layout, the rows of every client, when each was measured, and the first and last instant.
type Read = (Layout, Vec<Measured>, Vec<Mark>, (Timestamp, Timestamp));

impl Material {
    /// Reads the fit and calibration ranges of `session` by block means over `every` samples.
    ///
    /// A client with a `given` view (its model was delivered) is scaled by that; the others by their
    /// own fit range, without sensors that say nothing of their own.
    pub(crate) fn read(
        session: &Session,
        every: u32,
        given: &dyn Fn(&Layout) -> Option<Vec<SensorView>>,
    ) -> Result<Self, StreamError> {
        let grids = Grids::of(session)?;
        let mut unused = UnusedRows::default();
        let (layout, mut fit, _, fit_span) =
            measured(session, &grids, Part::Fit, every, &mut unused)?;
        let (_, mut calibration, marks, calibration_span) =
            measured(session, &grids, Part::Calibration, every, &mut unused)?;
        let mut wild = without_wild_values(session, &layout, &mut fit, &mut calibration);
        unused.wild_values = wild.iter().flatten().map(|(_, values)| values).sum();
        let views = given(&layout);
        let clients = (0..layout.clients.len())
            .map(|c| {
                let columns = &layout.clients[c];
                let names: Vec<&str> = columns.sensors.iter().map(|s| s.name.as_str()).collect();
                let (view, left_out) = if let Some(views) = &views {
                    delivered(&names, &views[c])
                } else {
                    let steps: Vec<_> = layout.span(c).map(|i| grids.coarsest(i)).collect();
                    own_view(&names, &fit[c].rows, &steps, session.model.repeated_sensors)
                };
                let unmodelled = unmodelled(&names, &left_out);
                let nominal = [&fit[c].rows[..], &calibration[c].rows[..]];
                let seen = SeenFit::new(&unmodelled, &nominal, SETTLING);
                let inputs: Vec<&str> = columns.inputs.iter().map(|s| s.name.as_str()).collect();
                // An input may stand still in a live run and is not monitored: only what never
                // moved in the fit range is of no use.
                let (inputs, _) = moving(&inputs, &fit[c].inputs);
                let calibration_rows = seen_by(&view, &calibration[c].rows);
                ClientMaterial {
                    name: columns.name.clone(),
                    wild: std::mem::take(&mut wild[c]),
                    fit: seen_by(&view, &fit[c].rows),
                    stretches: stretch::of_rows(&calibration_rows.view(), &marks),
                    calibration: calibration_rows,
                    fit_inputs: seen_by(&inputs, &fit[c].inputs),
                    calibration_inputs: seen_by(&inputs, &calibration[c].inputs),
                    view,
                    left_out,
                    seen,
                    inputs,
                }
            })
            .collect();
        Ok(Self { layout, every, clients, fit_span, calibration_span, unused })
    }
}

fn measured(
    session: &Session,
    grids: &Grids,
    part: Part,
    every: u32,
    unused: &mut UnusedRows,
) -> Result<Read, StreamError> {
    let mut stream = Decimated::new(grids.open(session, part)?, every);
    let layout = stream.layout().clone();
    let mut clients: Vec<Measured> = layout.clients.iter().map(|_| Measured::default()).collect();
    let mut frame = Frame::for_layout(&layout);
    let (mut span, mut marks) = (None, Vec::new());
    loop {
        let more = stream.next(&mut frame)?;
        // What was left out after the last frame comes with none.
        for note in &frame.notes {
            unused.add(note.what, note.rows);
        }
        if !more {
            break;
        }
        if matches!(frame.label, Label::Anomalous { .. }) {
            unused.labelled_anomalous += 1;
        }
        let (first, _) = *span.get_or_insert((frame.time, frame.time));
        span = Some((first, frame.time));
        if frame.continuity != Continuity::Next && !marks.is_empty() {
            marks.push(None);
        }
        marks.push(Some((frame.time, frame.place.file.clone())));
        for (c, client) in clients.iter_mut().enumerate() {
            if frame.continuity != Continuity::Next && !client.rows.is_empty() {
                client.rows.push(None);
                client.inputs.push(None);
            }
            let row = frame.row(&layout, c);
            client.rows.push(Some(row.raw_sensors().to_vec()));
            client.inputs.push(Some(row.raw_inputs().to_vec()));
        }
    }
    let span = span.ok_or_else(|| StreamError::empty(part, unused))?;
    Ok((layout, clients, marks, span))
}

/// Takes wild values out of the nominal rows; the columns that had some, client by client, with their
/// number. The built-in plants have none.
fn without_wild_values(
    session: &Session,
    layout: &Layout,
    fit: &mut [Measured],
    calibration: &mut [Measured],
) -> Vec<Vec<(String, u64)>> {
    if matches!(session.source, Source::Plant(_) | Source::Twin(_)) {
        return vec![Vec::new(); layout.clients.len()];
    }
    let parts = fit.iter_mut().zip(calibration);
    let clients = layout.clients.iter().zip(parts);
    let of = |names: &[Sensor], fit: &mut Rows, calibration: &mut Rows| {
        let mut found = Vec::new();
        for (i, sensor) in names.iter().enumerate() {
            let rows = fit.iter_mut().chain(calibration.iter_mut()).flatten();
            let wild = wild::take_out(&mut rows.map(|row| &mut row[i]).collect::<Vec<_>>());
            found.extend((wild > 0).then(|| (sensor.name.clone(), wild)));
        }
        found
    };
    clients
        .map(|(columns, (fit, calibration))| {
            let mut found = of(&columns.sensors, &mut fit.rows, &mut calibration.rows);
            found.extend(of(&columns.inputs, &mut fit.inputs, &mut calibration.inputs));
            found
        })
        .collect()
}

/// Places and names of the sensors that no model sees, without those that repeat another one.
fn unmodelled<'a>(names: &[&'a str], left_out: &[(String, LeftOut)]) -> Vec<(usize, &'a str)> {
    let is_wanted = |name: &str| {
        left_out.iter().any(|(out, why)| out == name && !matches!(why, LeftOut::Repeats(_)))
    };
    names.iter().copied().enumerate().filter(|(_, name)| is_wanted(name)).collect()
}

/// The view of a delivered model: its own sensors in its own units.
fn delivered(names: &[&str], view: &SensorView) -> (SensorView, Vec<(String, LeftOut)>) {
    let left_out = names
        .iter()
        .enumerate()
        .filter(|(i, _)| !view.used.contains(i))
        .map(|(_, name)| ((*name).to_owned(), LeftOut::UnknownToTheModel))
        .collect();
    (view.clone(), left_out)
}

/// Sensors that move, fine enough, and say something of their own, scaled by the fit range. If
/// `keeps_repeats`, those that repeat another are kept.
fn own_view(
    names: &[&str],
    fit: &[Option<Vec<f64>>],
    steps: &[Resolution],
    keeps_repeats: bool,
) -> (SensorView, Vec<(String, LeftOut)>) {
    let (moving, mut left_out) = moving(names, fit);
    let mut fine = SensorView::default();
    for k in 0..moving.used.len() {
        if steps[moving.used[k]].suffices(moving.std[k]) {
            fine.take(&moving, k);
        } else {
            left_out.push((moving.names[k].clone(), LeftOut::TooCoarse));
        }
    }
    if fine.used.is_empty() {
        // A client of switches only is watched by its switches.
        left_out.retain(|(_, why)| *why != LeftOut::TooCoarse);
        fine = moving;
    }
    if keeps_repeats {
        return (fine, left_out);
    }
    let repeats = duplicates(&seen_by(&fine, fit).view());
    let mut view = SensorView::default();
    for k in 0..fine.used.len() {
        match repeats.iter().find(|(column, _)| *column == k) {
            Some((_, first)) => {
                let reason = LeftOut::Repeats(fine.names[*first].clone());
                left_out.push((fine.names[k].clone(), reason));
            }
            None => view.take(&fine, k),
        }
    }
    (view, left_out)
}

/// Columns that move in the fit range, scaled by it; the others with the reason.
fn moving(names: &[&str], fit: &[Option<Vec<f64>>]) -> (SensorView, Vec<(String, LeftOut)>) {
    let mut scaling = Scaling::gather(names.len());
    for row in fit.iter().flatten() {
        scaling.add(row);
    }
    let scaling = scaling.finish();
    let mut left_out = Vec::new();
    let mut moving = SensorView::default();
    for (i, sensor) in scaling.sensors.iter().enumerate() {
        if sensor.constant {
            let has_value = fit.iter().flatten().any(|row| row[i].is_finite());
            let why = if has_value { LeftOut::Constant } else { LeftOut::NoValue };
            left_out.push((names[i].to_owned(), why));
        } else {
            moving.push(i, names[i], sensor.mean, sensor.std);
        }
    }
    (moving, left_out)
}

impl SensorView {
    fn push(&mut self, place: usize, name: &str, mean: f64, std: f64) {
        self.used.push(place);
        self.names.push(name.to_owned());
        self.mean.push(mean);
        self.std.push(std);
    }

    fn take(&mut self, other: &Self, k: usize) {
        self.push(other.used[k], &other.names[k], other.mean[k], other.std[k]);
    }
}
