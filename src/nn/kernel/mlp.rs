//! Two layers with SELU between them, and the Jacobian of the output with respect to the input.
//!
//! ```text
//! out = W_2 selu(W_1 x + b_1) + b_2
//! ```

use super::activation::selu;
use super::lanes::{Arithmetic, Lanes};
use super::packed::{Packed, lanes_for, pad};
use super::rows::Rows;
use super::{WeightsError, check_network};
use crate::nn::weights;

#[derive(Debug, Clone)]
pub(crate) struct Mlp {
    pub(crate) inputs: usize,
    pub(crate) width: usize,
    pub(crate) outputs: usize,
    first: Packed,
    bias_1: Vec<f32>,
    second: Packed,
    bias_2: Vec<f32>,
}

impl Mlp {
    pub(crate) fn new(weights: &weights::Mlp) -> Result<Self, WeightsError> {
        let weights::Mlp { inputs, width, outputs, .. } = *weights;
        check_network(weights)?;
        Ok(Self {
            inputs,
            width,
            outputs,
            first: Packed::new(width, inputs, &weights.weight_1),
            bias_1: pad(&weights.bias_1),
            second: Packed::new(outputs, width, &weights.weight_2),
            bias_2: pad(&weights.bias_2),
        })
    }

    /// Room for an output, its derivatives with respect to each input, and a second output.
    pub(crate) fn rows(&self, count: usize) -> Rows {
        Rows::new(count, self.width, self.outputs)
    }

    /// The output at `x` with its Jacobian, and the output at `beside` if given.
    #[inline(always)]
    pub(crate) fn evaluate<A: Arithmetic>(
        &self,
        a: A,
        x: &[f32],
        beside: Option<&[f32]>,
        rows: &mut Rows,
    ) {
        match lanes_for(self.width) {
            4 => self.hidden::<A, 4>(a, x, beside, rows),
            _ => self.hidden::<A, 8>(a, x, beside, rows),
        }
        let last = beside.map(|_| 1 + self.inputs);
        let count = 1 + self.inputs + usize::from(beside.is_some());
        rows.output(a, &self.second, &self.bias_2, count, [Some(0), last]);
    }

    #[inline(always)]
    fn hidden<A: Lanes<N>, const N: usize>(
        &self,
        a: A,
        x: &[f32],
        beside: Option<&[f32]>,
        rows: &mut Rows,
    ) {
        let (bias, _) = self.bias_1.as_chunks::<N>();
        for (block, (bias, columns)) in bias.iter().zip(self.first.columns::<N>()).enumerate() {
            let lane = block * N;
            let (value, slope) = layer(a, bias, columns, x);
            rows.hidden_mut(0, lane)[..N].copy_from_slice(&a.store(value));
            for (k, column) in columns.iter().enumerate() {
                let derivative = a.mul(slope, a.load(column));
                rows.hidden_mut(1 + k, lane)[..N].copy_from_slice(&a.store(derivative));
            }
            if let Some(beside) = beside {
                let (value, _) = layer(a, bias, columns, beside);
                rows.hidden_mut(1 + self.inputs, lane)[..N].copy_from_slice(&a.store(value));
            }
        }
    }
}

/// selu(b + Σⱼ columns[j]·x[j]) and its slope.
#[inline(always)]
fn layer<A: Lanes<N>, const N: usize>(
    a: A,
    bias: &[f32; N],
    columns: &[[f32; N]],
    x: &[f32],
) -> (A::V, A::V) {
    let mut z = a.load(bias);
    for (column, &factor) in columns.iter().zip(x) {
        z = a.mul_add(a.load(column), a.splat(factor), z);
    }
    selu(a, z)
}

#[cfg(test)]
mod tests {
    use nalgebra::DVector;
    use proptest::prelude::*;
    use rand_distr::{Distribution, StandardNormal};

    use super::super::isa::{Isa, Kernel};
    use super::super::reference;
    use super::*;
    use crate::base::rng;

    struct Evaluate<'a> {
        mlp: &'a Mlp,
        x: &'a [f32],
        beside: Option<&'a [f32]>,
        rows: &'a mut Rows,
    }

    impl Kernel for Evaluate<'_> {
        type Output = ();

        #[inline(always)]
        fn run<A: Arithmetic>(self, a: A) {
            self.mlp.evaluate(a, self.x, self.beside, self.rows);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn the_output_its_jacobian_and_the_second_output_agree_with_the_equations(
            inputs in 1_usize..12,
            width in 1_usize..35,
            outputs in 1_usize..40,
            seed in any::<u64>(),
            isa in prop::sample::select(Isa::available().collect::<Vec<_>>()),
        ) {
            let rng = &mut rng::stream(seed, 0);
            let weights = weights::Mlp::init(inputs, width, outputs, 1.0, rng);
            let mlp = Mlp::new(&weights).expect("weights of the right size");
            let mut rows = mlp.rows(inputs + 2);
            let mut draw =
                || -> Vec<f32> { (0..inputs).map(|_| StandardNormal.sample(rng)).collect() };
            let (x, beside) = (draw(), draw());
            isa.run(Evaluate { mlp: &mlp, x: &x, beside: Some(&beside), rows: &mut rows });
            let exact = |x: &[f32]| DVector::from_iterator(inputs, x.iter().map(|&v| f64::from(v)));
            let h = |x: &DVector<f64>| reference::mlp(&weights, x);
            let jacobian = reference::jacobian(h, &exact(&x));
            let (value, second) = (h(&exact(&x)), h(&exact(&beside)));
            for i in 0..outputs {
                prop_assert!((f64::from(rows.row(0)[i]) - value[i]).abs() < 5e-6);
                prop_assert!((f64::from(rows.row(1 + inputs)[i]) - second[i]).abs() < 5e-6);
                for k in 0..inputs {
                    // SELU has a kink at zero, where a difference straddles two slopes.
                    let found = f64::from(rows.row(1 + k)[i]);
                    prop_assert!((found - jacobian[(i, k)]).abs() < 1e-3);
                }
            }
            let first: Vec<f32> = rows.row(0).to_vec();
            isa.run(Evaluate { mlp: &mlp, x: &x, beside: None, rows: &mut rows });
            prop_assert_eq!(rows.row(0), &first);
        }
    }
}
