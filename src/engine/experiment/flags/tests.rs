use ndarray::Array2;
use rand_distr::{Distribution as _, StandardNormal};

use super::*;
use crate::base::rng;
use crate::score::metrics::Window;
use crate::score::metrics::incident::{GAP, group};

const CALIBRATION: usize = 1000;

/// Noise of two sensors; the second client's is ten times as large in steps 200 to 219 of what
/// is watched, and its augmented residual with it.
fn residuals() -> Vec<Residuals> {
    let noise = |client: u64| {
        let mut rng = rng::stream(client, 0);
        let shape = (CALIBRATION + 500, 2);
        let mut r: Array2<f32> =
            Array2::from_shape_simple_fn(shape, || StandardNormal.sample(&mut rng));
        if client == 1 {
            for mut row in r.outer_iter_mut().skip(CALIBRATION + 200).take(20) {
                row.mapv_inplace(|v| 10.0 * v + 20.0);
            }
        }
        r
    };
    (0..2).map(|m| Residuals { c: noise(m), a: Some(noise(m)) }).collect()
}

fn event() -> TruthEvent {
    TruthEvent { window: Window::new(200, 219), origin: 1, affected: vec![0], tail: 6 }
}

#[test]
fn the_look_up_names_the_client_whose_flags_stand() {
    let flagged = ModelDistances::new(&residuals(), CALIBRATION);
    let at = |percentile, vote| {
        let named = flagged.at(percentile).expect("there is an r_a").look_up(vote);
        group(&named, GAP)
    };
    let voted = at(99.0, Some(Vote { k: 3, n: 5 }));
    let named: Vec<_> = voted.iter().map(|i| (i.name, i.window.start)).collect();
    assert_eq!(named, [(1, 202)]);
    assert!(at(80.0, None).len() > 10, "every fifth step is flagged somewhere");
}

#[test]
fn a_minute_is_flagged_by_any_or_by_most_of_its_steps() {
    let raised = [false, true, false, true, true, false, false, false, false, true];
    assert_eq!(Span::AnyOfAMinute.gather(&raised, 3), [true, true, false]);
    assert_eq!(Span::MostOfAMinute.gather(&raised, 3), [false, true, false]);
    let flagged = ModelDistances::new(&residuals(), CALIBRATION);
    let of = |spans| ModelFlags::of_minutes(Variant::Federated, &flagged, &[event()], 20, spans);
    let minutes = of(Span::MINUTES);
    assert_eq!(minutes.len(), PERCENTILES.len() * Span::MINUTES.len());
    // The second client is flagged throughout steps 200 to 219, one whole minute.
    assert!(minutes.iter().all(|flags| flags.runs.arl1.ended == 1), "{minutes:?}");
    let at = |span| minutes.iter().find(|f| f.span == span).map(|f| f.runs.arl0.ended);
    assert!(at(Span::AnyOfAMinute) > at(Span::MostOfAMinute));
    // One flag in twenty is the threshold's own: no minute of calibration has mostly flags.
    let training = of(Span::IN_TRAINING);
    let at = |span| training.iter().find(|f| f.span == span).map(|f| f.runs.arl0);
    let [any, most] = Span::IN_TRAINING.map(|span| at(span).expect("both readings"));
    assert_eq!((any.ended, any.censored, most.ended, most.censored), (2, 0, 0, 2));
    assert!(any.watched <= 200.0, "the first within five minutes: {any:?}");
    assert!((most.watched - 2.0 * 960.0).abs() < 1e-9, "all settled steps: {most:?}");
}

#[test]
fn both_flags_of_a_minute_are_gathered_before_table_1_looks_them_up() {
    let mut flags = FlagSeries::new(2);
    let (both, own, quiet) =
        (Flags::new(true, true), Flags::new(true, false), Flags::new(false, false));
    // In the first minute client 1 has both flags twice, in the second once; client 0 has Z_c once.
    let steps = [(quiet, both), (own, both), (quiet, quiet), (quiet, quiet), (quiet, both)];
    for (first, second) in steps {
        flags.push([Some(first), Some(second)].into_iter());
    }
    flags.push([None, Some(quiet)].into_iter());
    flags.push([None, Some(both)].into_iter());
    let named = |span| flags.gather(span, 3).look_up(None);
    assert_eq!(named(Span::AnyOfAMinute), [Some(1), Some(1)], "a rest is no minute");
    assert_eq!(named(Span::MostOfAMinute), [Some(1), None]);
    assert_eq!(flags.gather(Span::AnyOfAMinute, 3).at(0).next(), Some(Some(own)));
}

#[test]
fn the_first_flag_of_a_calibration_is_found_where_it_stands() {
    let mut c = Array2::<f32>::from_shape_fn((340, 1), |(t, _)| if t % 2 == 0 { 1. } else { -1. });
    c[[SETTLING + 130, 0]] = 50.0;
    let known = rows(&c, &(0..300), 320);
    assert_eq!(known.nrows(), 320);
    let flagged = ModelDistances::new(&[Residuals { c: known, a: None }], 300);
    let first = |span, each| flagged.first_in_calibration(99.9, span, each);
    let at = |watched| RunTotals { watched, ended: 1, censored: 0 };
    assert_eq!(first(Span::Step, 1), at(131.0));
    assert_eq!(first(Span::AnyInTraining, 60), at(180.0), "in the third minute");
    let never = RunTotals { watched: 240.0, ended: 0, censored: 1 };
    assert_eq!(first(Span::MostInTraining, 60), never);
}

#[test]
fn a_model_with_one_residual_is_flagged_and_names_nobody() {
    let only: Vec<Residuals> =
        residuals().into_iter().map(|r| Residuals { a: None, ..r }).collect();
    let flagged = ModelDistances::new(&only, CALIBRATION);
    assert_eq!(flagged.at(95.0), None);
    let runs = flagged.run_lengths(95.0, &[event()]);
    let mean = RunTotals::pooled([&runs.arl0]).mean.expect("there are false flags");
    assert!((10.0..40.0).contains(&mean), "one in twenty by design: {mean}");
    assert_eq!(runs.arl1, RunTotals { watched: 0.0, ended: 1, censored: 0 });
}

#[test]
fn equal_residuals_never_say_effect() {
    let flags = ModelDistances::new(&residuals(), CALIBRATION).at(95.0).expect("there is an r_a");
    let shares = flags.pair_shares(|_, _| true).expect("flags");
    assert!(shares[1] == 0.0 && shares[2] == 0.0, "{shares:?}");
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert_eq!(flags.pair_shares(|_, _| false), None);
    let [own, augmented] = flags.models(95.0, &[event()]);
    assert_eq!(own.runs, augmented.runs);
}
