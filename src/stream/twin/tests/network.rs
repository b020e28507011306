//! The networks of the processes: gradients, batches and the fit of a transition.

use super::*;

#[test]
fn gradients_agree_with_finite_differences() {
    let mut rng = rng::stream(5, 0);
    let (mut cell, mut out) = (Lstm::random(2, 3, &mut rng), Linear::random(3, 2, &mut rng));
    let mut lanes =
        |n| (0..n).map(|_| std::array::from_fn(|_| rng.random_range(-1.0..1.0))).collect();
    let batch = Batch { steps: 6, muted: 2, x: lanes(12), wanted: lanes(12) };
    let mut tape = Tape::new(&cell, &out, batch.steps);
    tape.forward(&cell, &out, &batch);
    tape.backward(&cell, &out, &batch);
    let (of_cell, of_out) = (tape.of_cell.clone(), tape.of_out.clone());

    let h = 1e-5;
    let mut check = |wrong: &mut dyn FnMut(&mut Lstm, &mut Linear, f64), expected: f64| {
        let mut loss = |step: f64| {
            wrong(&mut cell, &mut out, step);
            let loss = tape.forward(&cell, &out, &batch);
            wrong(&mut cell, &mut out, -step);
            loss
        };
        let slope = (loss(h) - loss(-h)) / (2.0 * h);
        assert!((slope - expected).abs() < 1e-8, "{slope} against {expected}");
    };
    for (k, g) in of_cell.iter().enumerate() {
        check(&mut |cell, _, step| cell.weights[k] += step, *g);
    }
    for (k, g) in of_out.iter().enumerate() {
        check(&mut |_, out, step| out.weights[k] += step, *g);
    }
    assert!(of_cell.iter().chain(&of_out).all(|g| *g != 0.0));
}

#[test]
fn a_network_says_the_same_step_by_step_as_in_a_batch() {
    let mut rng = rng::stream(6, 0);
    let (cell, out) = (Lstm::random(2, 8, &mut rng), Linear::random(8, 1, &mut rng));
    let packed = Packed::new(&cell);
    let x: Vec<_> = (0..8).map(|_| [rng.random_range(-1.0..1.0); LANES]).collect();
    let mut memory = cell.memory();
    let said: Vec<_> = x
        .chunks(2)
        .map(|x| {
            packed.run(&[x[0][0], x[1][0]], &mut memory, &mut Vec::new(), &mut [0.0; 8]);
            [out.output(0, &memory.h); LANES]
        })
        .collect();
    let batch = Batch { steps: 4, muted: 0, x, wanted: said };
    let loss = Tape::new(&cell, &out, 4).forward(&cell, &out, &batch);
    assert!(loss < 1e-28, "{loss}");
}

#[test]
fn several_steps_at_once_are_the_same_bits_as_one_by_one() {
    let mut rng = rng::stream(7, 0);
    // A single tile, one with inputs left over after fours, and the layers of `g_dep`.
    for (inputs, hidden) in [(3, 4), (5, 8), (2, 64), (64, 64)] {
        let cell = Lstm::random(inputs, hidden, &mut rng);
        let x: Vec<f64> = (0..40 * inputs).map(|_| rng.random_range(-2.0..2.0)).collect();
        let (mut single, mut several) = (cell.memory(), cell.memory());
        let (mut gates, mut out) = (Vec::new(), vec![0.0; 40 * hidden]);
        let packed = Packed::new(&cell);
        pulp::Arch::new().dispatch(|| packed.run(&x, &mut several, &mut gates, &mut out));
        for (x, out) in x.chunks_exact(inputs).zip(out.chunks_exact(hidden)) {
            let mut one = vec![0.0; hidden];
            packed.run(x, &mut single, &mut gates, &mut one);
            assert_eq!(one, out);
        }
        assert_eq!(single.h, several.h);
    }
}

#[test]
fn the_transition_continues_its_target() {
    for client in 0..2 {
        let sources = Sources::new(11);
        let drift = sources.client(Purpose::Drift, client);
        let mut target = Target::random(&mut sources.client(Purpose::Dynamics, client), drift);
        let mut f = Transition::fit(target.clone(), &mut sources.client(Purpose::Fit, client));
        target.restart(rng::stream(99, 0));
        let series: Vec<State> = (0..3000).map(|_| target.next()).collect();
        let error: Moments = series
            .windows(2)
            .flat_map(|pair| {
                let said = f.step(pair[0]);
                [said[0] - pair[1][0], said[1] - pair[1][1]]
            })
            .collect();
        let spread: Moments = series.iter().map(|s| s[0]).collect();
        let error = (error.mean().powi(2) + error.std().powi(2)).sqrt();
        // Always saying the present value again would be wrong by 0.31 of the spread.
        assert!(error < 0.15 * spread.std(), "{error} of {}", spread.std());
    }
}
