//! One run of a plant as standardised rows per client, with what is known about it.

use std::ops::Range;

use jiff::Timestamp;
use ndarray::{Array2, ArrayView2, Axis, Slice};

use super::Failure;
use crate::base::rng;
use crate::engine::{decimation, vendor};
use crate::federation::correlation::{between_clients, correlation};
use crate::nn::weights::ProprietaryWeights;
use crate::score::metrics::Window;
use crate::score::steps::{TruthEvent, tail_in_steps, tick};
use crate::session::{Clock, Family, Mark, PrintedPlant, Session, Source, Span, TwinSource};
use crate::site::training::SiteData;
use crate::stream::decimate::Decimated;
use crate::stream::plant::PlantStream;
use crate::stream::resolution::Grids;
use crate::stream::twin::TwinStream;
use crate::stream::{Event, Frame, Label, Layout, Part, Stream};

/// States of a client of the synthetic plant.
const STATES: usize = 2;

/// Source of the seed of a plant that has nothing to do with this one.
const OTHER_PLANT: u64 = 0x53;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatasetSource {
    /// The paper's LSTM plant with so many clients.
    Twin(usize),
    /// The same plant, for models of the paper's own settings.
    TwinPaper(usize),
    /// The same plant with one part exactly as the paper prints it.
    TwinPrinted(usize, PrintedPlant),
    /// The built-in plant's attack day and the two days before it, with its models as delivered. It
    /// stands where the paper has HAI 23.05.
    BuiltIn,
    /// The session `plant-paper`: the built-in plant with models of the paper's own settings.
    PlantPaper,
}

/// Rows of all clients, step by step.
#[derive(Debug, Clone)]
pub(crate) struct Dataset {
    pub names: Vec<String>,
    /// Rows of each client, standardised by its fit slice or as its delivered model wants it.
    pub rows: Vec<Array2<f32>>,
    /// The clients' models, where they come with the program.
    pub delivered: Option<Vec<ProprietaryWeights>>,
    /// True states of all clients side by side, where they are known.
    pub states: Option<Array2<f32>>,
    /// Whether something was wrong at a step, anywhere.
    pub anomalous: Vec<bool>,
    /// Known events, in steps from the first.
    pub events: Vec<TruthEvent>,
    /// Seconds between two steps.
    pub period_s: f64,
    /// Normal operation to learn from.
    pub fit: Range<usize>,
    /// Normal operation that nothing is fitted to.
    pub nominal: Range<usize>,
}

impl DatasetSource {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Twin(clients) => format!("A{clients}"),
            Self::TwinPaper(clients) => format!("A{clients}-paper"),
            Self::TwinPrinted(clients, way) => format!("A{clients}, {way:?}"),
            Self::BuiltIn => "plant".into(),
            Self::PlantPaper => "plant-paper".into(),
        }
    }

    pub(crate) fn clients(self) -> usize {
        match self {
            Self::Twin(clients) | Self::TwinPaper(clients) | Self::TwinPrinted(clients, _) => {
                clients
            }
            Self::BuiltIn | Self::PlantPaper => 3,
        }
    }

    /// The first `steps` steps of its run with this seed, or all there are.
    pub(crate) fn dataset(self, seed: u64, steps: usize) -> Result<Dataset, Failure> {
        match self {
            Self::Twin(clients) | Self::TwinPaper(clients) => twin(clients, None, seed, steps),
            Self::TwinPrinted(clients, way) => twin(clients, Some(way), seed, steps),
            Self::BuiltIn => {
                let mut session = Session::open("plant-attack-day")?;
                session.seed = seed;
                built_in(&session, steps)
            }
            Self::PlantPaper => {
                let mut session = Session::open("plant-paper")?;
                session.seed = seed;
                of_session(&session, decimation::every(&session)?)
            }
        }
    }

    /// Mean |correlation| between the true states of client m here and n ≠ m of another plant of
    /// this kind: the correlation of plants that nothing connects.
    pub(crate) fn null_correlation(
        self,
        seed: u64,
        here: &Dataset,
    ) -> Result<Option<f64>, Failure> {
        let Some(states) = &here.states else { return Ok(None) };
        let there = self.dataset(rng::child(seed, OTHER_PLANT), here.nominal.end)?;
        let Some(others) = &there.states else { return Ok(None) };
        Ok(Some(across(states, others, &here.nominal)))
    }
}

/// Mean |correlation| of states of client m of one plant with those of n ≠ m of another.
fn across(here: &Array2<f32>, there: &Array2<f32>, rows: &Range<usize>) -> f64 {
    let clients = here.ncols() / STATES;
    let pairs = (0..clients).flat_map(|m| (0..clients).map(move |n| (m, n)));
    let pairs: Vec<f64> = pairs
        .filter(|(m, n)| m != n)
        .map(|(m, n)| {
            let of = |x: &Array2<f32>, client: usize| {
                x.slice_axis(Axis(0), Slice::from(rows.clone()))
                    .slice_axis_move(Axis(1), Slice::from(client * STATES..(client + 1) * STATES))
                    .to_owned()
            };
            let both = ndarray::concatenate![Axis(1), of(here, m), of(there, n)];
            between_clients(&correlation(&both.view()).view(), &[STATES, STATES])
        })
        .collect();
    pairs.iter().sum::<f64>() / pairs.len().max(1) as f64
}

impl Dataset {
    pub(super) fn steps(&self) -> usize {
        self.anomalous.len()
    }

    pub(crate) fn view(&self, m: usize, rows: Range<usize>) -> ArrayView2<'_, f32> {
        self.rows[m].slice_axis(Axis(0), Slice::from(rows))
    }

    /// All clients with their models over given rows.
    pub(crate) fn sites<'a>(
        &'a self,
        models: &'a [ProprietaryWeights],
        rows: Range<usize>,
    ) -> Vec<SiteData<'a>> {
        let clients = self.names.iter().zip(models).enumerate();
        clients
            .map(|(m, (name, model))| SiteData { name, model, rows: self.view(m, rows.clone()) })
            .collect()
    }
}

fn twin(
    clients: usize,
    printed: Option<PrintedPlant>,
    seed: u64,
    steps: usize,
) -> Result<Dataset, Failure> {
    let tail = Session::open("twin")?.replay.tail;
    let source = TwinSource { family: Family::A, clients, printed, ..TwinSource::default() };
    let mut stream = TwinStream::open(&source, seed)?;
    let layout = stream.layout().clone();
    let slices = stream.plant().slices().clone();
    let steps = steps.min(slices.steps());
    let mut measured = Array2::<f64>::zeros((steps, layout.width()));
    let mut states = Array2::<f32>::zeros((steps, STATES * clients));
    let mut labels = Vec::with_capacity(steps);
    let mut frame = Frame::for_layout(&layout);
    for t in 0..steps {
        if !stream.next(&mut frame)? {
            break;
        }
        measured
            .row_mut(t)
            .iter_mut()
            .zip(crate::site::local::measurements_of(&frame))
            .for_each(|(to, v)| *to = *v);
        let x = stream.plant().states().as_flattened();
        states.row_mut(t).iter_mut().zip(x).for_each(|(to, x)| *to = *x as f32);
        labels.push(frame.label);
    }
    let fit = slices.fit.start..slices.fit.end.min(steps);
    let rows = (0..clients).map(|m| {
        let own = measured.slice_axis(Axis(1), Slice::from(layout.span(m)));
        standardised(&own, &fit)
    });
    Ok(Dataset {
        names: layout.clients.iter().map(|client| client.name.clone()).collect(),
        rows: rows.collect(),
        delivered: None,
        states: Some(states),
        anomalous: labels.iter().copied().map(is_anomalous).collect(),
        events: events_in_steps(&labels, stream.events(), &layout, tail),
        period_s: layout.period_s,
        nominal: slices.calibration.start.min(steps)..slices.nominal.end.min(steps),
        fit,
    })
}

fn is_anomalous(label: Label) -> bool {
    matches!(label, Label::Anomalous { .. })
}

/// Each known event from the first to the last step that is labelled with it.
fn events_in_steps(
    labels: &[Label],
    events: &[Event],
    layout: &Layout,
    tail: Span,
) -> Vec<TruthEvent> {
    let tail = tail_in_steps(tail, layout.period_s);
    let place = |name: &String| layout.client(name);
    let found = events.iter().enumerate().filter_map(|(e, event)| {
        let of_event =
            |label: &Label| matches!(label, Label::Anomalous { event: Some(n) } if *n as usize == e);
        let first = labels.iter().position(of_event)?;
        let last = labels.iter().rposition(of_event)?;
        Some(TruthEvent {
            window: Window::new(tick(first), tick(last)),
            origin: place(event.origins.first()?)?,
            affected: event.affected.iter().filter_map(place).collect(),
            tail,
        })
    });
    found.collect()
}

fn standardised(measured: &ArrayView2<f64>, fit: &Range<usize>) -> Array2<f32> {
    let mut rows = measured.to_owned();
    for mut column in rows.columns_mut() {
        let seen = column.slice_axis(Axis(0), Slice::from(fit.clone()));
        let (mean, std) = (seen.mean().unwrap_or(0.0), seen.std(0.0));
        column.mapv_inplace(|v| (v - mean) / std);
    }
    rows.mapv(|v| v as f32)
}

/// The first `steps` steps of a session of the built-in plant, divided by the session's ranges.
fn built_in(session: &Session, steps: usize) -> Result<Dataset, Failure> {
    let every = decimation::every(session)?;
    let (views, models) = vendor::delivered(session, every)
        .expect("the shipped plant is the one that models come for");
    let Source::Plant(source) = &session.source else {
        unreachable!("the shipped plant session is of the plant")
    };
    let stream = PlantStream::open(source, &session.clients, session.seed)?;
    let mut stream = Decimated::new(stream, every);
    let layout = stream.layout().clone();
    let mut frame = Frame::for_layout(&layout);
    let mut values: Vec<Vec<f32>> = vec![Vec::new(); views.len()];
    let mut labels = Vec::new();
    let mut times = Vec::new();
    while labels.len() < steps && stream.next(&mut frame)? {
        for (m, (view, values)) in views.iter().zip(&mut values).enumerate() {
            let start = values.len();
            values.resize(start + view.used.len(), f32::NAN);
            view.see(frame.row(&layout, m), &mut values[start..]);
        }
        labels.push(frame.label);
        times.push(frame.time);
    }
    let rows = values.into_iter().zip(&views).map(|(values, view)| {
        Array2::from_shape_vec((labels.len(), view.used.len()), values)
            .expect("every row holds one value of each sensor")
    });
    Ok(Dataset {
        names: layout.clients.iter().map(|client| client.name.clone()).collect(),
        rows: rows.collect(),
        delivered: Some(models.iter().map(|client| client.federated().clone()).collect()),
        states: None,
        anomalous: labels.iter().copied().map(is_anomalous).collect(),
        events: events_in_steps(&labels, stream.events(), &layout, session.replay.tail),
        period_s: layout.period_s,
        fit: rows_of(session, Part::Fit, every, &times),
        nominal: rows_of(session, Part::Calibration, every, &times),
    })
}

/// The rows of a session's three parts one after the other, as means of `every` samples, each sensor
/// standardised by the fit range. Sensors that stand still there are left out.
pub(super) fn of_session(session: &Session, every: u32) -> Result<Dataset, Failure> {
    let grids = Grids::of(session)?;
    let (mut values, mut labels, mut ends) = (Vec::<f64>::new(), Vec::new(), Vec::new());
    let (mut found, mut known) = (None, Vec::new());
    for part in Part::ALL {
        let mut stream = Decimated::new(grids.open(session, part)?, every);
        let layout = stream.layout().clone();
        let mut frame = Frame::for_layout(&layout);
        while stream.next(&mut frame)? {
            values.extend_from_slice(crate::site::local::measurements_of(&frame));
            // Only in what is replayed an event is to be found.
            let is_replay = part == Part::Replay;
            labels.push(if is_replay { frame.label } else { Label::Unlabelled });
        }
        known = stream.events().to_vec();
        ends.push(labels.len());
        found = Some(layout);
    }
    let Some(layout) = found else { return Err("a session without parts".into()) };
    let (fit, nominal) = (0..ends[0], ends[0]..ends[1]);
    let measured = Array2::from_shape_vec((labels.len(), layout.width()), values)?;
    let rows = (0..layout.clients.len()).map(|m| {
        let own = measured.slice_axis(Axis(1), Slice::from(layout.span(m)));
        moving(&own, &fit)
    });
    Ok(Dataset {
        names: layout.clients.iter().map(|client| client.name.clone()).collect(),
        rows: rows.collect(),
        delivered: None,
        states: None,
        anomalous: labels.iter().copied().map(is_anomalous).collect(),
        events: events_in_steps(&labels, &known, &layout, session.replay.tail),
        period_s: layout.period_s,
        fit,
        nominal,
    })
}

/// The columns that move in `fit`, standardised by it; NaN stays NaN.
fn moving(measured: &ArrayView2<f64>, fit: &Range<usize>) -> Array2<f32> {
    let mut kept = Array2::zeros((measured.nrows(), 0));
    for column in measured.columns() {
        let seen: Vec<f64> =
            fit.clone().map(|t| column[t]).filter(|value| value.is_finite()).collect();
        let n = seen.len().max(1) as f64;
        let mean = seen.iter().sum::<f64>() / n;
        let std = (seen.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
        if std > 1e-9 * mean.abs().max(1e-9) {
            let scaled = column.mapv(|v| ((v - mean) / std) as f32);
            kept.push_column(scaled.view()).expect("columns of one table are of one length");
        }
    }
    kept
}

/// The rows of a part of a session, where all rows stand at `times`.
fn rows_of(session: &Session, part: Part, every: u32, times: &[Timestamp]) -> Range<usize> {
    let (stretch, clock) = (part.stretch(session), Clock::of(session));
    let reached = |mark: Mark| {
        // Marks count samples, and a row is the mean of several.
        let is_before = |(row, time): &(usize, &Timestamp)| {
            !mark.is_reached(clock, times[0], *row as u64 * u64::from(every), **time)
        };
        times.iter().enumerate().take_while(is_before).count()
    };
    let from = stretch.from.map_or(0, reached);
    from..stretch.until.map_or(times.len(), reached).max(from)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::stream;

    #[test]
    fn the_built_in_plant_is_divided_as_its_session_says() {
        // Four fifths for calibration without ranges, a half with these.
        let ranges =
            "ranges: (fit: (until: \"+90m\"), calibration: (from: \"+90m\", until: \"+3h\"))";
        for ranges in ["", ranges] {
            let text = format!(
                "Session(about: \"short\", source: Plant(history_h: 3, hours: 1), \
                 sampling: (decimate: Every(5)), {ranges})"
            );
            let session = Session::parse("short", Path::new(""), &text).expect("a sound session");
            let dataset = built_in(&session, usize::MAX).expect("a built-in plant");
            let rows = |part| {
                let stream = stream::open(&session, part).expect("a built-in plant");
                let mut stream = Decimated::new(stream, 5);
                let mut frame = Frame::for_layout(stream.layout());
                let mut rows = 0;
                while stream.next(&mut frame).expect("a built-in plant has no bad rows") {
                    rows += 1;
                }
                rows
            };
            let (fit, calibration) = (rows(Part::Fit), rows(Part::Calibration));
            assert_eq!(dataset.fit, 0..fit, "{ranges}");
            assert_eq!(dataset.nominal, fit..fit + calibration, "{ranges}");
        }
    }

    #[test]
    fn the_parts_of_a_session_stand_one_after_the_other_scaled_by_the_first() {
        let text = "Session(about: \"short\", source: Plant(attacks: Day, history_h: 2, hours: 2), \
             ranges: (fit: (until: \"+1h\"), calibration: (from: \"+1h\", until: \"+2h\"), \
             replay: (from: \"+2h\")), sampling: (decimate: Every(5)))";
        let session = Session::parse("short", Path::new(""), text).expect("a sound session");
        let dataset = of_session(&session, 5).expect("a built-in plant");
        assert_eq!((dataset.fit, dataset.nominal), (0..720, 720..1440));
        assert_eq!(dataset.anomalous.len(), 2880);
        assert!(!dataset.events.is_empty() && !dataset.anomalous[..1440].contains(&true));
        assert!(
            dataset.events.iter().all(|event| event.tail == 60),
            "300 s of a session, 5 s each"
        );
        let twin = twin(2, None, 1, 9200).expect("a synthetic plant");
        assert!(!twin.events.is_empty() && twin.events.iter().all(|event| event.tail == 6));
        for rows in &dataset.rows {
            assert!(rows.ncols() > 0);
            for column in rows.slice_axis(Axis(0), Slice::from(0..720)).columns() {
                let (mean, std) = (column.mean().expect("rows"), column.std(0.0));
                assert!(mean.abs() < 1e-3 && (std - 1.0).abs() < 1e-3, "{mean} {std}");
            }
        }
        let still = Array2::from_shape_fn((10, 2), |(t, i)| if i == 0 { 7.0 } else { t as f64 });
        assert_eq!(moving(&still.view(), &(0..10)).ncols(), 1, "one of them stands still");
    }

    #[test]
    fn null_correlation_are_compared_across_plants_and_never_with_their_like() {
        let wave = |t: usize, k: f64| (t as f64 * k).sin() as f32;
        // Both clients here move alike; of the two there, the first moves like them.
        let here = Array2::from_shape_fn((600, 4), |(t, _)| wave(t, 0.3));
        let there =
            Array2::from_shape_fn((600, 4), |(t, i)| wave(t, if i < 2 { 0.3 } else { 0.71 }));
        let found = across(&here, &there, &(0..600));
        // C2 here with C1 there is the pair that correlates, C1 here with C2 there the one that
        // does not; C1 with C1 would and is left out.
        assert!((found - 0.5).abs() < 0.02, "{found}");
    }

    #[test]
    fn rows_are_scaled_by_what_is_learned_from() {
        let measured = Array2::from_shape_fn((300, 2), |(t, i)| {
            let level = if t < 200 { 5.0 } else { 50.0 };
            level + (t as f64 * 0.7).sin() * (i + 1) as f64
        });
        let rows = standardised(&measured.view(), &(0..200));
        for column in rows.slice_axis(Axis(0), Slice::from(0..200)).columns() {
            assert!(column.mean().unwrap().abs() < 1e-5 && (column.std(0.0) - 1.0).abs() < 1e-5);
        }
        assert!(rows.iter().skip(2 * 200).all(|v| *v > 20.0), "a later shift is not scaled away");
    }
}
