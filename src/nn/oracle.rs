//! The centralised oracle: one Extended Kalman Filter over the data of all clients, the upper bound
//! the federation is compared with (paper, Definition 6.1).
//!
//! `x_o = f(x̂_o)` is one wide LSTM over the states of all clients, so it can learn what flows
//! between them. The measurement is one head per client, `ŷ_m = h_m(Extract_m x_o)`, as the paper
//! defines the oracle's residual; the heads lie as blocks in one network, so that the oracle is a filter like
//! any other and runs in the same kernels. The paper prints a head of width 4, fewer than most
//! clients have sensors; the heads here are as wide as the clients' own, so that the oracle stays
//! an upper bound. This module sees all raw data and so must never be part of a federation.

use std::ops::Range;

use ndarray::{ArrayView2, Axis, Slice};

use super::train::{
    CORRECTION, Job, OnProgress, TrainError, Trained, WEIGHTS, conduct, filter, filter_by_candle,
    sensors,
};
use super::weights::{FilterWeights, LstmFc, Mlp, Parameters as _};
use crate::base::rng;
use crate::session::settings::{ModelSettings, Proprietary};

/// Adam's step size for the oracle.
pub(crate) const LEARNING_RATE: f64 = 5e-3;

/// Which part of the joint vectors belongs to which client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    states: Vec<Range<usize>>,
    sensors: Vec<Range<usize>>,
}

fn consecutive(sizes: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    let mut end = 0;
    let range = |size| {
        end += size;
        end - size..end
    };
    sizes.map(range).collect()
}

impl Layout {
    /// Clients one after the other, each with its (states, sensors).
    pub(crate) fn new(clients: &[(usize, usize)]) -> Self {
        Self {
            states: consecutive(clients.iter().map(|c| c.0)),
            sensors: consecutive(clients.iter().map(|c| c.1)),
        }
    }

    pub(crate) fn clients(&self) -> usize {
        self.states.len()
    }

    /// P of all clients together.
    pub(crate) fn total_states(&self) -> usize {
        self.states.last().map_or(0, |r| r.end)
    }

    /// D of all clients together.
    pub(crate) fn total_sensors(&self) -> usize {
        self.sensors.last().map_or(0, |r| r.end)
    }

    /// Where the states of client `m` stand.
    pub(crate) fn states(&self, m: usize) -> Range<usize> {
        self.states[m].clone()
    }

    /// Where the sensors of client `m` stand.
    pub(crate) fn sensors(&self, m: usize) -> Range<usize> {
        self.sensors[m].clone()
    }

    /// `Extract_m` of a joint state.
    #[cfg(test)]
    pub(crate) fn extract_state<'a, T>(&self, m: usize, x: &'a [T]) -> &'a [T] {
        &x[self.states(m)]
    }

    /// `Extract_m` of a joint measurement or residual.
    #[cfg(test)]
    pub(crate) fn extract_sensors<'a, T>(&self, m: usize, y: &'a [T]) -> &'a [T] {
        &y[self.sensors(m)]
    }

    /// `Extract_m` of joint rows.
    pub(crate) fn extract_rows<'a>(
        &self,
        m: usize,
        rows: &ArrayView2<'a, f32>,
    ) -> ArrayView2<'a, f32> {
        rows.slice_axis_move(Axis(1), Slice::from(self.sensors(m)))
    }

    /// `Extract_m` of the joint gain K (P × D, row-major): the `P_m` × `D_m` block of client `m`.
    pub(crate) fn extract_gain<T: Copy>(&self, m: usize, gain: &[T]) -> Vec<T> {
        let total = self.total_sensors();
        let rows = self.states(m).map(|p| &gain[p * total..(p + 1) * total]);
        rows.flat_map(|row| row[self.sensors(m)].iter().copied()).collect()
    }
}

/// The oracle's filter and whose its parts are.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Oracle {
    /// A filter over all states and sensors.
    pub(crate) filter: FilterWeights,
    pub(crate) layout: Layout,
}

/// Trains the oracle. `job` holds the rows of all clients side by side, `sensors` how many columns
/// each of them has.
///
/// `Residual` gives every client as many states as sensors, any other kind the paper's few.
pub(crate) fn train(
    job: &Job,
    sensors: &[usize],
    on_progress: OnProgress,
) -> Result<Trained<Oracle>, TrainError> {
    job.check()?;
    if sensors.iter().sum::<usize>() != job.fit.ncols() || sensors.contains(&0) {
        let what = format!("{} columns for clients of {sensors:?} sensors", job.fit.ncols());
        return Err(TrainError::Settings { client: job.client.to_owned(), what });
    }
    let residual = job.kind == Proprietary::Residual;
    let states = |d: usize| if residual { d } else { job.settings.states };
    let clients: Vec<_> = sensors.iter().map(|&d| (states(d), d)).collect();
    let layout = Layout::new(&clients);
    let settings = ModelSettings { learning_rate: LEARNING_RATE, ..job.settings.clone() };
    let job = Job { settings: &settings, ..*job };
    let initial = initial(&job, &layout);
    let mut mask = initial.clone();
    mask.slices_mut().into_iter().for_each(|values| values.fill(1.0));
    keep_blocks(&layout, &mut mask.measurement);
    let (filter, course, samples) =
        filter_by_candle(&job, initial, Some(&mask), &job.fit, on_progress)?;
    let report = job.report(&filter::innovations(&filter, &job.held_out), course, samples);
    Ok(Trained { weights: Oracle { filter, layout }, report })
}

fn initial(job: &Job, layout: &Layout) -> FilterWeights {
    let s = job.settings;
    let residual = job.kind == Proprietary::Residual;
    let scale = if residual { CORRECTION } else { 1.0 };
    let mut rng = rng::stream(job.seed, WEIGHTS);
    let states = layout.total_states();
    let transition = LstmFc::init(states, s.oracle_width, states, scale, &mut rng);
    let heads: Vec<Mlp> = (0..layout.clients())
        .map(|m| {
            let (p, d) = (layout.states(m).len(), layout.sensors(m).len());
            Mlp::init(p, s.measurement_width, d, scale, &mut rng)
        })
        .collect();
    let loadings = residual.then(|| {
        let mut joint = vec![0.0; layout.total_sensors() * states];
        for m in 0..layout.clients() {
            let own = sensors::loadings(&layout.extract_rows(m, &job.fit));
            place(&mut joint, states, layout.sensors(m), layout.states(m), &own);
        }
        joint
    });
    FilterWeights {
        transition,
        measurement: join(layout, &heads),
        loadings,
        q: s.q,
        r: s.r,
        conduct: conduct(s),
    }
}

/// Puts `block` at (rows, columns) of a row-major matrix with `width` columns.
fn place(
    matrix: &mut [f32],
    width: usize,
    rows: Range<usize>,
    columns: Range<usize>,
    block: &[f32],
) {
    for (row, values) in rows.zip(block.chunks_exact(columns.len())) {
        matrix[row * width..][columns.clone()].copy_from_slice(values);
    }
}

/// Where the hidden units of client `m`'s head stand, all heads having the same width.
fn units(layout: &Layout, width: usize, m: usize) -> Range<usize> {
    let each = width / layout.clients();
    m * each..(m + 1) * each
}

/// The heads as blocks of one network.
fn join(layout: &Layout, heads: &[Mlp]) -> Mlp {
    let (inputs, outputs) = (layout.total_states(), layout.total_sensors());
    let width = heads.iter().map(|h| h.width).sum();
    let mut joint = Mlp {
        inputs,
        width,
        outputs,
        weight_1: vec![0.0; width * inputs],
        bias_1: heads.iter().flat_map(|h| h.bias_1.clone()).collect(),
        weight_2: vec![0.0; outputs * width],
        bias_2: heads.iter().flat_map(|h| h.bias_2.clone()).collect(),
    };
    for (m, head) in heads.iter().enumerate() {
        let units = units(layout, width, m);
        place(&mut joint.weight_1, inputs, units.clone(), layout.states(m), &head.weight_1);
        place(&mut joint.weight_2, width, layout.sensors(m), units, &head.weight_2);
    }
    joint
}

/// Zero outside the blocks: a weight there starts at zero and, with no gradient, stays so.
fn keep_blocks(layout: &Layout, mlp: &mut Mlp) {
    let (inputs, width) = (mlp.inputs, mlp.width);
    for m in 0..layout.clients() {
        let units = units(layout, width, m);
        let (states, sensors) = (layout.states(m), layout.sensors(m));
        for unit in units.clone() {
            zero_outside(&mut mlp.weight_1[unit * inputs..(unit + 1) * inputs], &states);
        }
        for sensor in sensors {
            zero_outside(&mut mlp.weight_2[sensor * width..(sensor + 1) * width], &units);
        }
    }
}

fn zero_outside(row: &mut [f32], kept: &Range<usize>) {
    row[..kept.start].fill(0.0);
    row[kept.end..].fill(0.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::train::test_support::{on, plant};
    use ndarray::concatenate;

    #[test]
    fn extract_takes_a_clients_part_of_every_joint_thing() {
        let layout = Layout::new(&[(1, 2), (2, 1)]);
        assert_eq!((layout.clients(), layout.total_states(), layout.total_sensors()), (2, 3, 3));
        assert_eq!(layout.extract_state(1, &[10, 11, 12]), [11, 12]);
        assert_eq!(layout.extract_sensors(0, &[20, 21, 22]), [20, 21]);
        let gain = [0, 1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(layout.extract_gain(0, &gain), [0, 1]);
        assert_eq!(layout.extract_gain(1, &gain), [5, 8]);
    }

    #[test]
    fn it_learns_and_its_heads_stay_apart() {
        let joint = |seed| {
            let (a, b) = (plant(300, 3, seed), plant(300, 2, seed + 50));
            concatenate![Axis(1), a, b]
        };
        let (fit, held_out) = (joint(1), joint(2));
        let settings = ModelSettings {
            epochs: 3,
            oracle_width: 24,
            measurement_width: 8,
            ..ModelSettings::default()
        };
        for kind in [Proprietary::Paper, Proprietary::Residual] {
            let job = Job {
                client: "oracle",
                kind,
                settings: &settings,
                fit: fit.view(),
                held_out: held_out.view(),
                seed: 4,
            };
            let trained = train(&job, &[3, 2], &on).unwrap();
            let losses = &trained.report.epoch_loss;
            assert!(losses[2] < losses[0], "{losses:?}");
            let Oracle { filter, layout } = trained.weights;
            let mut apart = filter.measurement.clone();
            keep_blocks(&layout, &mut apart);
            assert_eq!(apart, filter.measurement);
            let states = if kind == Proprietary::Residual { 5 } else { 4 };
            assert_eq!((filter.states(), filter.sensors()), (states, 5));
        }
    }

    #[test]
    fn columns_that_do_not_add_up_are_refused() {
        let fit = plant(100, 3, 1);
        let settings = ModelSettings::default();
        let job = Job {
            client: "oracle",
            kind: Proprietary::Paper,
            settings: &settings,
            fit: fit.view(),
            held_out: fit.view(),
            seed: 4,
        };
        let error = train(&job, &[2, 2], &on).unwrap_err().to_string();
        assert_eq!(error, "oracle: cannot train with 3 columns for clients of [2, 2] sensors");
    }
}
