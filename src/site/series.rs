//! What a client's models make of a stretch of rows, step by step, as at run time.

use ndarray::{Array2, ArrayView2};

use crate::nn::augment::Augmentation;
use crate::nn::kernel::WeightsError;
use crate::nn::proprietary::VendorModel;
use crate::nn::step::ClientStep;
use crate::nn::weights::{LstmFc, ProprietaryWeights};

/// Everything one client computes over a stretch of rows, one row per step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    /// x̂_c.
    pub(crate) x_hat_c: Array2<f32>,
    /// x_c.
    pub(crate) x_c: Array2<f32>,
    /// r_c; NaN where missing.
    pub(crate) r_c: Array2<f32>,
    /// x_a and r_a where there is a φ.
    pub(crate) augmented: Option<Augmented>,
}

/// The augmented part of a [`Series`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Augmented {
    /// x_a.
    pub(crate) x_a: Array2<f32>,
    /// r_a; NaN where missing.
    pub(crate) r_a: Array2<f32>,
}

/// Runs one client over `rows` from an empty memory.
pub(crate) fn series(
    model: &ProprietaryWeights,
    phi: Option<&LstmFc>,
    rows: &ArrayView2<f32>,
) -> Result<Series, WeightsError> {
    let model = VendorModel::new(model)?;
    let augmentation = phi.map(|phi| Augmentation::new(phi, &model)).transpose()?;
    let mut client = ClientStep::new(model, augmentation);
    let (steps, sensors) = rows.dim();
    let states = client.output().x.len();
    let empty = |columns| Array2::from_elem((steps, columns), f32::NAN);
    let mut series = Series {
        x_hat_c: empty(states),
        x_c: empty(states),
        r_c: empty(sensors),
        augmented: phi.map(|_| Augmented { x_a: empty(states), r_a: empty(sensors) }),
    };
    let mut y = vec![0.0; sensors];
    for (t, row) in rows.outer_iter().enumerate() {
        y.iter_mut().zip(row).for_each(|(y, v)| *y = *v);
        client.step(&y);
        let output = client.output();
        set(&mut series.x_hat_c, t, &output.x_hat);
        set(&mut series.x_c, t, &output.x);
        set(&mut series.r_c, t, &output.r);
        if let (Some(to), Some(chain)) = (&mut series.augmented, client.augmentation()) {
            set(&mut to.x_a, t, chain.x());
            set(&mut to.r_a, t, chain.r());
        }
    }
    Ok(series)
}

/// Writes row `t`.
pub(crate) fn set(matrix: &mut Array2<f32>, t: usize, values: &[f32]) {
    matrix.row_mut(t).iter_mut().zip(values).for_each(|(to, &v)| *to = v);
}
