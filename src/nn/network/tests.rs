use super::*;
use crate::base::rng;
use crate::nn::weights::Conduct;

fn random(shape: (usize, usize, usize)) -> Tensor {
    let count = shape.0 * shape.1 * shape.2;
    let values: Vec<f32> = (0..count).map(|i| (i as f32 * 1.7).sin()).collect();
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
}

/// Some weights' derivatives against differences of the loss. SELU has a kink at zero, so the
/// slopes to either side may differ; the derivative is one of them or between.
fn check_gradient(count: usize, gradient: impl Fn(usize) -> f32, loss: impl Fn(usize, f32) -> f32) {
    let step = 4e-3;
    for i in (0..count).step_by(count / 7) {
        let here = loss(i, 0.0);
        let slopes = [(loss(i, step) - here) / step, (here - loss(i, -step)) / step];
        let exact = gradient(i);
        let tolerance = 2e-3 * (1.0 + exact.abs());
        let low = slopes[0].min(slopes[1]) - tolerance;
        let high = slopes[0].max(slopes[1]) + tolerance;
        assert!((low..high).contains(&exact), "weight {i}: {slopes:?} {exact}");
    }
}

fn half_square(t: &Tensor) -> Tensor {
    (t.sqr().unwrap().sum_all().unwrap() * 0.5).unwrap()
}

#[test]
fn weights_come_back_as_they_went_in() {
    let mut rng = rng::stream(1, 0);
    let filter = FilterWeights {
        transition: LstmFc::init(3, 4, 3, 1.0, &mut rng),
        measurement: Mlp::init(3, 5, 2, 1.0, &mut rng),
        loadings: Some(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        q: 0.2,
        r: 0.3,
        conduct: Conduct::default(),
    };
    let mut read = filter.clone();
    read.slices_mut().into_iter().for_each(|values| values.fill(0.0));
    let variables = Variables::new(&filter).unwrap();
    assert!(FilterNetwork::new(filter.config(), &variables.builder()).is_ok());
    variables.read(&mut read).unwrap();
    assert_eq!(read, filter);
}

#[test]
fn an_lstm_step_is_the_equations_of_torch() {
    let w = LstmFc::init(2, 3, 1, 1.0, &mut rng::stream(1, 0));
    let network = LstmNetwork::running(&w).unwrap();
    let x = [[0.3f32, -0.8], [1.1, 0.4]];
    let input = Tensor::new(&[[x[0], x[1]]], &Device::Cpu).unwrap();
    let output = network.seq(&input).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
    let (mut h, mut c) = ([0.0f32; 3], [0.0f32; 3]);
    for (x, output) in x.iter().zip(output) {
        let before = h;
        for j in 0..3 {
            let gate = |k: usize| {
                let row = k * 3 + j;
                let input: f32 = (0..2).map(|p| w.weight_ih[row * 2 + p] * x[p]).sum();
                let own: f32 = (0..3).map(|p| w.weight_hh[row * 3 + p] * before[p]).sum();
                input + own + w.bias_ih[row] + w.bias_hh[row]
            };
            let sigmoid = |v: f32| 1.0 / (1.0 + (-v).exp());
            c[j] = sigmoid(gate(1)) * c[j] + sigmoid(gate(0)) * gate(2).tanh();
            h[j] = sigmoid(gate(3)) * c[j].tanh();
        }
        let y: f32 = w.fc_bias[0] + (0..3).map(|j| w.fc_weight[j] * h[j]).sum::<f32>();
        assert!((y - output).abs() < 1e-6, "{y} {output}");
    }
}

#[test]
fn selu_has_the_published_values() {
    // An identity around the activation; values of torch.nn.functional.selu.
    let w = Mlp {
        inputs: 1,
        width: 1,
        outputs: 1,
        weight_1: vec![1.0],
        bias_1: vec![0.0],
        weight_2: vec![1.0],
        bias_2: vec![0.0],
    };
    let network = MlpNetwork::new(w.sizes(), &constants(&w).unwrap()).unwrap();
    for (x, y) in [(1.0, 1.050_701), (-1.0, -1.111_330_7), (0.0, 0.0), (-20.0, -1.758_099_3)] {
        let x = Tensor::new(&[[x as f32]], &Device::Cpu).unwrap();
        let out = network.forward(&x).unwrap().to_vec2::<f32>().unwrap()[0][0];
        assert!((out - y).abs() < 1e-6, "{out} {y}");
    }
}

#[test]
fn the_gradient_of_an_lstm_is_its_slope() {
    // Sizes of f_m, φ_m (P from D), f_s and of a wide one like the oracle's.
    for (inputs, width, outputs) in [(2, 16, 2), (4, 16, 2), (6, 64, 6), (3, 128, 3)] {
        let w = LstmFc::init(inputs, width, outputs, 1.0, &mut rng::stream(2, 0));
        let x = random((2, 6, inputs));
        let variables = Variables::new(&w).unwrap();
        let network = LstmNetwork::new(w.sizes(), &variables.builder()).unwrap();
        let store = half_square(&network.seq(&x).unwrap()).backward().unwrap();
        let gradient = variables.gradient(&store, &w).unwrap();
        let loss = |change: &dyn Fn(&mut LstmFc)| {
            let mut moved = w.clone();
            change(&mut moved);
            let network = LstmNetwork::running(&moved).unwrap();
            half_square(&network.seq(&x).unwrap()).to_scalar::<f32>().unwrap()
        };
        check_gradient(
            w.weight_ih.len(),
            |i| gradient.weight_ih[i],
            |i, step| loss(&|w| w.weight_ih[i] += step),
        );
        check_gradient(
            w.weight_hh.len(),
            |i| gradient.weight_hh[i],
            |i, step| loss(&|w| w.weight_hh[i] += step),
        );
        check_gradient(
            w.bias_hh.len(),
            |i| gradient.bias_hh[i],
            |i, step| loss(&|w| w.bias_hh[i] += step),
        );
        check_gradient(
            w.fc_weight.len(),
            |i| gradient.fc_weight[i],
            |i, step| loss(&|w| w.fc_weight[i] += step),
        );
        assert_eq!(gradient.bias_ih, gradient.bias_hh);
    }
}

#[test]
fn the_gradient_of_an_mlp_is_its_slope() {
    let w = Mlp::init(2, 32, 4, 1.0, &mut rng::stream(2, 0));
    let x = random((1, 9, 2)).squeeze(0).unwrap();
    let variables = Variables::new(&w).unwrap();
    let network = MlpNetwork::new(w.sizes(), &variables.builder()).unwrap();
    let store = half_square(&network.forward(&x).unwrap()).backward().unwrap();
    let gradient = variables.gradient(&store, &w).unwrap();
    let loss = |change: &dyn Fn(&mut Mlp)| {
        let mut moved = w.clone();
        change(&mut moved);
        let network = MlpNetwork::new(moved.sizes(), &constants(&moved).unwrap()).unwrap();
        half_square(&network.forward(&x).unwrap()).to_scalar::<f32>().unwrap()
    };
    check_gradient(
        w.weight_1.len(),
        |i| gradient.weight_1[i],
        |i, step| loss(&|w| w.weight_1[i] += step),
    );
    check_gradient(
        w.bias_1.len(),
        |i| gradient.bias_1[i],
        |i, step| loss(&|w| w.bias_1[i] += step),
    );
    check_gradient(
        w.weight_2.len(),
        |i| gradient.weight_2[i],
        |i, step| loss(&|w| w.weight_2[i] += step),
    );
}

#[test]
fn a_network_that_only_runs_keeps_no_graph() {
    let w = Mlp::init(2, 3, 1, 1.0, &mut rng::stream(2, 0));
    let network = MlpNetwork::new(w.sizes(), &constants(&w).unwrap()).unwrap();
    let output = network.forward(&random((1, 4, 2)).squeeze(0).unwrap()).unwrap();
    assert!(!output.track_op());
}
