use super::test_support::{on, plant};
use super::*;
use crate::nn::weights::Parameters as _;

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

/// One fit of a vendor's filter by hand and one by candle.
fn both_trainers(job: &Job) -> [TrainedFilter; 2] {
    let by_candle = filter_by_candle(job, job.initial_filter(), None, &job.fit, &on);
    [filter_by_hand(job, &job.fit, &on).unwrap(), by_candle.unwrap()]
}

/// Seconds that this process has been on a processor, all threads together.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = text.rsplit(") ").next().unwrap_or_default().split(' ').skip(11).take(2);
    ticks.filter_map(|t| t.parse::<f64>().ok()).sum::<f64>() / 100.0
}

#[test]
fn the_hand_written_trainer_and_candle_make_the_same_filter() {
    let (fit, held_out) = (plant(400, 3, 1), plant(200, 3, 2));
    let settings = ModelSettings { epochs: 2, ..ModelSettings::default() };
    for kind in [Proprietary::Paper, Proprietary::Residual] {
        let job = job(kind, &settings, &fit, &held_out);
        let [by_hand, by_candle] = both_trainers(&job);
        for (ours, theirs) in by_hand.1.epoch_loss.iter().zip(&by_candle.1.epoch_loss) {
            assert!((ours / theirs - 1.0).abs() < 1e-4, "{kind:?} {ours} {theirs}");
        }
        let (ours, theirs) = (by_hand.0.slices(), by_candle.0.slices());
        let initial = job.initial_filter();
        for ((ours, theirs), initial) in ours.into_iter().zip(theirs).zip(initial.slices()) {
            for ((a, b), from) in ours.iter().zip(theirs).zip(initial) {
                // Adam magnifies the rounding of gradients near zero.
                assert!((a - b).abs() < 1e-3 + 0.02 * (a - from).abs(), "{kind:?} {a} {b}");
            }
        }
    }
}

#[test]
#[ignore = "a measurement of about a minute"]
fn how_much_faster_the_hand_written_trainer_is_than_candle() {
    let settings = ModelSettings { epochs: 3, ..ModelSettings::default() };
    for (kind, sensors) in
        [(Proprietary::Paper, 4), (Proprietary::Paper, 9), (Proprietary::Residual, 9)]
    {
        let (fit, held_out) = (plant(4000, sensors, 1), plant(50, sensors, 2));
        let job = job(kind, &settings, &fit, &held_out);
        let start = cpu_s();
        filter_by_hand(&job, &job.fit, &on).unwrap();
        let by_hand = cpu_s() - start;
        let start = cpu_s();
        filter_by_candle(&job, job.initial_filter(), None, &job.fit, &on).unwrap();
        let by_candle = cpu_s() - start;
        // What both spend on the filter's gain, which candle cannot compute.
        let start = cpu_s();
        let initial = job.initial_filter();
        let gains = |batch: &Batch| {
            assert_eq!(filter::gains(&initial, batch).len(), batch.steps);
            Ok((0.0, true))
        };
        job.optimise(gains, &job.fit, &on).unwrap();
        let shared = cpu_s() - start;
        let (fit, gradient) = (by_candle / by_hand, (by_candle - shared) / (by_hand - shared));
        println!(
            "{kind:?}, {sensors} sensors: by hand {by_hand:.2} s, by candle {by_candle:.2} s, \
             {fit:.1} times; without the {shared:.2} s of the gain {gradient:.1} times"
        );
        assert!(fit > 5.0 && gradient > 5.0);
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
