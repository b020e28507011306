use super::test_support::{on, plant};
use super::*;

fn quick() -> ModelSettings {
    ModelSettings { epochs: 4, learning_rate: 5e-3, ..ModelSettings::default() }
}

fn job<'a>(
    kind: Proprietary,
    settings: &'a ModelSettings,
    fit: &'a Array2<f32>,
    held_out: &'a Array2<f32>,
) -> Job<'a> {
    Job { client: "P1", kind, settings, fit: fit.view(), held_out: held_out.view(), seed: 1 }
}

#[test]
fn every_kind_learns_and_all_that_know_the_past_beat_persistence() {
    let (fit, held_out, settings) = (plant(1500, 4, 1), plant(1000, 4, 2), quick());
    for kind in
        [Proprietary::Paper, Proprietary::Residual, Proprietary::OwnLag, Proprietary::Linear]
    {
        let trained = proprietary(&job(kind, &settings, &fit, &held_out), &on).unwrap();
        let report = trained.report;
        let (mse, persistence) = (report.held_out_mse.unwrap(), report.persistence_mse.unwrap());
        match kind {
            Proprietary::Paper => assert!(mse < 0.5, "unit variance explained: {mse}"),
            _ => assert!(mse < persistence, "{kind:?} {mse} {persistence}"),
        }
        if kind != Proprietary::Linear {
            let (first, last) = (report.epoch_loss[0], report.epoch_loss[3]);
            assert!(last < first, "{kind:?} {first} {last}");
        }
        assert!(!report.stopped);
    }
}

#[test]
fn the_end_to_end_predictor_learns() {
    let (fit, held_out, settings) = (plant(700, 3, 1), plant(500, 3, 2), quick());
    let job = job(Proprietary::Paper, &settings, &fit, &held_out);
    let trained = predictor::predictor(&job, &on).unwrap();
    assert!(trained.report.epoch_loss[3] < 0.5 * trained.report.epoch_loss[0]);
    assert!(trained.report.held_out_mse.unwrap() < 0.6);
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let (fit, held_out) = (plant(300, 3, 1), plant(200, 3, 2));
    let settings = ModelSettings { epochs: 2, ..quick() };
    let jobs: Vec<Job> = [Proprietary::Residual, Proprietary::OwnLag, Proprietary::Paper]
        .map(|kind| job(kind, &settings, &fit, &held_out))
        .into();
    let run =
        |threads| -> Vec<_> { all(&jobs, threads, &on).into_iter().map(Result::unwrap).collect() };
    let one = run(1);
    assert_eq!(one, run(3));
    assert_eq!(one[0], proprietary(&jobs[0], &on).unwrap());
    let other = proprietary(&Job { seed: 2, ..jobs[0] }, &on).unwrap();
    assert_ne!(one[0].weights, other.weights);
}

#[test]
fn stopping_keeps_what_was_learned() {
    let (fit, held_out, settings) = (plant(300, 3, 1), plant(200, 3, 2), quick());
    let job = job(Proprietary::Residual, &settings, &fit, &held_out);
    let stop_at = |n: usize| {
        proprietary(&job, &move |p: Progress| {
            if p.iteration >= n { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap()
    };
    let (early, later) = (stop_at(1), stop_at(7));
    assert!(early.report.stopped && later.report.stopped);
    assert_eq!((early.report.epoch_loss.len(), later.report.epoch_loss.len()), (1, 2));
    assert_ne!(early.weights, later.weights);
    assert!(later.report.held_out_mse.is_some());
}

#[test]
fn progress_counts_every_step_once() {
    let (fit, held_out, settings) = (plant(300, 3, 1), plant(50, 3, 2), quick());
    let seen = Mutex::new(Vec::new());
    let record = |p: Progress| {
        seen.lock().unwrap().push((p.iteration, p.iterations, p.epoch, p.epochs));
        ControlFlow::Continue(())
    };
    proprietary(&job(Proprietary::Paper, &settings, &fit, &held_out), &record).unwrap();
    let seen = seen.into_inner().unwrap();
    // 281 windows make 5 batches, the last of 25.
    assert_eq!(seen.len(), 20);
    assert_eq!(seen[0], (1, 20, 1, 4));
    assert_eq!(seen[19], (20, 20, 4, 4));
}

#[test]
fn divergence_names_the_client_the_epoch_and_the_last_good_loss() {
    let (fit, held_out) = (plant(300, 3, 1), plant(50, 3, 2));
    let settings = ModelSettings { learning_rate: 1e12, ..quick() };
    let job = job(Proprietary::Paper, &settings, &fit, &held_out);
    let error = proprietary(&job, &on).unwrap_err();
    assert!(matches!(error, TrainError::Diverged { last_good: Some(_), .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.starts_with("P1: training diverged in epoch 1 (loss "), "{text}");
}

#[test]
fn too_little_data_and_senseless_settings_are_said_in_words() {
    let (short, settings) = (plant(8, 3, 1), quick());
    for (kind, needed) in [(Proprietary::Residual, "20 steps"), (Proprietary::Linear, "7 steps")] {
        let error = proprietary(&job(kind, &settings, &short, &short), &on).unwrap_err();
        assert!(error.to_string().contains(needed), "{error}");
    }
    let settings = ModelSettings { r: 0.0, ..quick() };
    let error = proprietary(&job(Proprietary::Paper, &settings, &short, &short), &on).unwrap_err();
    assert!(error.to_string().contains("measurement noise"), "{error}");
}

#[test]
fn constant_sensors_holes_and_gaps_are_no_obstacle() {
    let (mut fit, mut held_out) = (plant(600, 4, 1), plant(300, 4, 2));
    for rows in [&mut fit, &mut held_out] {
        rows.column_mut(2).fill(0.0);
        rows.row_mut(100).fill(f32::NAN);
        for t in (7..rows.nrows()).step_by(13) {
            rows[[t, 1]] = f32::NAN;
        }
    }
    let settings = ModelSettings { epochs: 2, ..quick() };
    for kind in
        [Proprietary::Paper, Proprietary::Residual, Proprietary::OwnLag, Proprietary::Linear]
    {
        let report = proprietary(&job(kind, &settings, &fit, &held_out), &on).unwrap().report;
        assert!(report.held_out_mse.unwrap().is_finite(), "{kind:?}");
    }
}

#[test]
fn without_held_out_rows_there_is_no_judgement() {
    let (fit, none) = (plant(300, 3, 1), Array2::zeros((0, 3)));
    let settings = ModelSettings { epochs: 1, ..quick() };
    for kind in [Proprietary::Residual, Proprietary::Linear] {
        let report = proprietary(&job(kind, &settings, &fit, &none), &on).unwrap().report;
        assert_eq!((report.held_out_mse, report.persistence_mse), (None, None));
    }
}
