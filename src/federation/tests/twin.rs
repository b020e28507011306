//! The paper's plant with two clients.

use ndarray::{ArrayView2, Axis, Slice};

use super::super::{convergence, states, variant};
use super::*;
use crate::nn::oracle;
use crate::nn::train::{self, Job};
use crate::session::TwinSource;
use crate::session::settings::Proprietary;
use crate::stream::twin::TwinStream;
use crate::stream::{Frame, Stream as _};

/// Steps of the fit slice, and of the nominal rows after it that nothing was fitted to.
const FIT: usize = 4000;
const NOMINAL: usize = 2000;

/// Standardised rows of both clients: fit, then nominal.
fn rows(seed: u64) -> Vec<Array2<f32>> {
    let mut stream = TwinStream::open(&TwinSource::default(), seed).unwrap();
    let layout = stream.layout().clone();
    let mut frame = Frame::for_layout(&layout);
    let mut rows = vec![Array2::<f32>::zeros((FIT + NOMINAL, 4)); 2];
    for t in 0..FIT + NOMINAL {
        assert!(stream.next(&mut frame).unwrap());
        for (m, rows) in rows.iter_mut().enumerate() {
            let values = frame.row(&layout, m).raw_sensors();
            rows.row_mut(t).iter_mut().zip(values).for_each(|(to, v)| *to = *v as f32);
        }
    }
    for rows in &mut rows {
        for mut column in rows.columns_mut() {
            let fit = column.slice_axis(Axis(0), Slice::from(..FIT));
            let mean = fit.mean().unwrap();
            let deviation = fit.std(0.0);
            column.mapv_inplace(|v| (v - mean) / deviation);
        }
    }
    rows
}

fn part(rows: &Array2<f32>, range: std::ops::Range<usize>) -> ArrayView2<'_, f32> {
    rows.slice_axis(Axis(0), Slice::from(range))
}

fn proprietary(rows: &Array2<f32>, epochs: usize, seed: u64) -> ProprietaryWeights {
    let settings = ModelSettings { epochs, ..ModelSettings::default() };
    let job = Job {
        client: "C",
        kind: Proprietary::Paper,
        settings: &settings,
        fit: part(rows, 0..FIT),
        held_out: part(rows, 0..0),
        seed,
    };
    train::proprietary(&job, &|_| std::ops::ControlFlow::Continue(())).unwrap().weights
}

fn sites<'a>(
    models: &'a [ProprietaryWeights],
    rows: &'a [Array2<f32>],
    range: std::ops::Range<usize>,
) -> Vec<SiteData<'a>> {
    let sites = models.iter().zip(rows);
    sites
        .map(|(model, rows)| SiteData { name: "C", model, rows: part(rows, range.clone()) })
        .collect()
}

#[test]
fn training_on_the_paper_s_plant_reaches_a_server_loss_of_a_hundredth() {
    let rows = rows(0);
    let models: Vec<_> = rows.iter().map(|rows| proprietary(rows, 2, 1)).collect();
    let settings = ModelSettings::default();
    let mut federation =
        Federation::new(&sites(&models, &rows, 0..FIT), &settings, hooks(&open()), 1).unwrap();
    let outcome = federation.run(&mut on).unwrap();
    let replay = states::replay(&sites(&models, &rows, FIT..FIT + NOMINAL), &outcome.weights);
    let loss = replay.unwrap().server_loss(40);
    assert!(loss <= 0.01, "{loss}");
}

#[test]
fn a_federation_can_be_held_against_the_oracle() {
    let plant = Plant::new(400, &[3, 2], 1);
    let settings = ModelSettings { epochs: 1, oracle_width: 8, measurement_width: 6, ..small() };
    let weights = federation(&plant, &settings, 1).run(&mut on).unwrap().weights;
    let central = variant::Variant::CentralisedOracle
        .fit(&plant.sites(), &settings, hooks(&open()), 1, &mut on)
        .unwrap();
    let variant::Fitted::CentralisedOracle(oracle::Oracle { filter, layout }) = central else {
        panic!("the oracle was asked for")
    };
    let oracle = oracle::Oracle { filter, layout };
    let clients = convergence::compare(&plant.sites(), &weights, &oracle, 200).unwrap();
    assert_eq!(clients.len(), 2);
    for client in &clients {
        let numbers = [client.x_c, client.x_a, client.x_s, client.unexplained, client.c_x];
        assert!(numbers.iter().all(|v| v.is_finite() && *v >= 0.0), "{client:?}");
        assert!(client.l_f.max >= client.l_f.q95 && client.l_h.max > 0.0);
        assert_eq!(client.holds, client.rho.is_some());
        assert!(client.verdict().contains("hold"));
    }
    assert!(convergence::compare(&plant.sites(), &weights, &oracle, 400).is_err());
}
