//! How fast a client's models forget: what one changed sample still moves, so many steps later.
//!
//! A filter's state, the memory of the networks inside it, its covariance and φ's own memory all carry
//! a sample on, and no closed form bounds them together. So the models themselves are run twice over
//! nominal rows, with one sample at the two opposite ends of its range, and the difference is followed.
//! What comes out holds for rows like these and for the changes that were tried: it is a measurement.
//!
//! This module must not know what is released, nor what that costs.

use ndarray::{ArrayView2, Axis, Slice};
use rand::Rng as _;

use super::augment::Augmentation;
use super::kernel::WeightsError;
use super::proprietary::VendorModel;
use super::step::ClientStep;
use super::train::SETTLING;
use super::weights::{LstmFc, ProprietaryWeights};
use crate::base::moments::Moments;
use crate::base::rng;

/// Steps over which a changed sample is followed.
pub(crate) const HORIZON: usize = 200;

/// Places in the rows where a sample is changed, and changes at each of them.
const PLACES: usize = 6;
const CHANGES: u64 = 3;

/// Two runs that are no further apart than this are one again.
const SAME: f64 = 1e-5;

/// A sample goes from minus to plus this many standard deviations.
const RANGE: f32 = 5.0;

/// A number that hardly moves is in units of this much.
const LEAST: f64 = 1e-6;

/// The largest move that was seen `k` steps after the changed sample, for every k below [`HORIZON`],
/// in units of the largest of all: of x̂_c and ŷ, and of x_a and ŷ_a where there is a φ, whichever
/// moves more. NaN where a model's state left its range, and none where the rows are too few.
pub(crate) fn moves(
    model: &ProprietaryWeights,
    phi: Option<&LstmFc>,
    rows: &ArrayView2<f32>,
) -> Result<Option<Vec<f64>>, WeightsError> {
    let model = VendorModel::new(model)?;
    let augmentation = phi.map(|phi| Augmentation::new(phi, &model)).transpose()?;
    let mut client = ClientStep::new(model, augmentation);
    let places = places(rows);
    if places.is_empty() {
        return Ok(None);
    }
    let mut usual = followed(&client).map(|values| vec![Moments::default(); values.len()]);
    let mut waiting = Vec::new();
    let mut y = vec![f32::NAN; rows.ncols()];
    for (t, row) in rows.outer_iter().enumerate() {
        if places.contains(&t) {
            waiting.push((t, client.clone()));
        }
        if row.iter().all(|v| v.is_nan()) {
            client.reset();
            continue;
        }
        y.iter_mut().zip(row).for_each(|(y, v)| *y = *v);
        client.step(&y);
        if t >= SETTLING {
            for (usual, values) in usual.iter_mut().zip(followed(&client)) {
                usual.iter_mut().zip(values).for_each(|(usual, v)| usual.add(f64::from(*v)));
            }
        }
    }
    let mut seen = [[0.0_f64; HORIZON]; KINDS];
    for (t, client) in &waiting {
        for change in 0..CHANGES {
            let mut signs = rng::stream(change, *t as u64);
            let mut end = || if signs.next_u64() & 1 == 0 { RANGE } else { -RANGE };
            let ends: Vec<f32> = (0..rows.ncols()).map(|_| end()).collect();
            let behind = rows.slice_axis(Axis(0), Slice::from(*t..*t + HORIZON));
            if !follow(client, &behind, &ends, &usual, &mut seen) {
                return Ok(Some(vec![f64::NAN; HORIZON]));
            }
        }
    }
    Ok(Some(in_units_of_the_largest(&seen)))
}

/// Runs a client twice over `rows`, the first of them at one end of the range and at the other, and
/// keeps the largest differences; false when the state of one of the two leaves its range.
fn follow(
    client: &ClientStep,
    rows: &ArrayView2<f32>,
    ends: &[f32],
    usual: &[Vec<Moments>; KINDS],
    seen: &mut [[f64; HORIZON]; KINDS],
) -> bool {
    let (mut up, mut down) = (client.clone(), client.clone());
    let mut y = vec![f32::NAN; rows.ncols()];
    for (k, row) in rows.outer_iter().enumerate() {
        for (client, sign) in [(&mut up, 1.0), (&mut down, -1.0)] {
            y.iter_mut().zip(row).for_each(|(y, v)| *y = *v);
            if k == 0 {
                let present = y.iter_mut().zip(ends).filter(|(y, _)| y.is_finite());
                present.for_each(|(y, end)| *y = sign * end);
            }
            client.step(&y);
        }
        let both = followed(&up).into_iter().zip(followed(&down));
        let mut together = true;
        for ((seen, usual), (a, b)) in seen.iter_mut().zip(usual).zip(both) {
            let size = difference(a, b, usual);
            if !size.is_finite() {
                return false;
            }
            together &= size < SAME;
            seen[k] = seen[k].max(size);
        }
        if together && k > 0 {
            break;
        }
    }
    true
}

/// Kinds of numbers that are followed.
const KINDS: usize = 4;

/// x̂_c, ŷ, x_a, ŷ_a after a step; the last two are empty without φ.
fn followed(client: &ClientStep) -> [&[f32]; KINDS] {
    let output = client.output();
    let (x_a, y_a) = client.augmentation().map_or((&[][..], &[][..]), |a| (a.x(), a.y_hat()));
    [&output.x_hat, &output.y_hat, x_a, y_a]
}

/// How far apart two are, in what is usual for each of their numbers.
fn difference(a: &[f32], b: &[f32], usual: &[Moments]) -> f64 {
    let square = |((a, b), usual): ((&f32, &f32), &Moments)| {
        ((f64::from(*a) - f64::from(*b)) / usual.std().max(LEAST)).powi(2)
    };
    a.iter().zip(b).zip(usual).map(square).sum::<f64>().sqrt()
}

/// Places evenly over the rows behind which nothing is interrupted.
fn places(rows: &ArrayView2<f32>) -> Vec<usize> {
    let Some(room) = rows.nrows().checked_sub(SETTLING + HORIZON) else { return Vec::new() };
    let broken = |t: usize| {
        let stretch = rows.outer_iter().skip(t - SETTLING).take(SETTLING + HORIZON);
        stretch.into_iter().any(|row| row.iter().all(|v| v.is_nan()))
    };
    let mut places: Vec<usize> =
        (0..PLACES).map(|i| SETTLING + i * room / PLACES).filter(|t| !broken(*t)).collect();
    places.dedup();
    places
}

fn in_units_of_the_largest(seen: &[[f64; HORIZON]; KINDS]) -> Vec<f64> {
    let largest = seen.map(|moves| moves.into_iter().fold(0.0, f64::max));
    (0..HORIZON)
        .map(|k| {
            let of_kind = seen.iter().zip(largest).filter(|(_, largest)| *largest > 0.0);
            of_kind.map(|(moves, largest)| moves[k] / largest).fold(0.0, f64::max)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::weights::{Conduct, FilterWeights, Mlp};
    use ndarray::Array2;

    fn filter(seed: u64, q: f64, r: f64) -> (ProprietaryWeights, LstmFc) {
        let rng = &mut rng::stream(seed, 0);
        let filter = FilterWeights {
            transition: LstmFc::init(2, 16, 2, 3.0, rng),
            measurement: Mlp::init(2, 32, 3, 2.0, rng),
            loadings: None,
            q,
            r,
            conduct: Conduct::default(),
        };
        (ProprietaryWeights::Filter(filter), LstmFc::init(3, 16, 2, 0.5, rng))
    }

    fn rows(steps: usize) -> Array2<f32> {
        let wave = |t: usize, i: usize| (t as f32 * 0.07 + i as f32).sin();
        Array2::from_shape_fn((steps, 3), |(t, i)| wave(t, i))
    }

    #[test]
    fn a_filter_forgets_and_the_largest_move_is_the_unit() {
        let (model, phi) = filter(1, 0.1, 0.1);
        let moves = moves(&model, Some(&phi), &rows(800).view()).unwrap().unwrap();
        assert_eq!(moves.len(), HORIZON);
        let largest = moves.iter().copied().fold(0.0, f64::max);
        assert!((largest - 1.0).abs() < 1e-12);
        assert!(moves[150..].iter().all(|left| *left < 0.01), "{:?}", &moves[..40]);
    }

    #[test]
    fn too_few_rows_tell_nothing_and_a_break_is_not_looked_across() {
        let (model, phi) = filter(1, 0.1, 0.1);
        let few = rows(SETTLING + HORIZON - 1);
        assert_eq!(moves(&model, Some(&phi), &few.view()).unwrap(), None);
        let mut broken = rows(400);
        broken.row_mut(150).fill(f32::NAN);
        assert_eq!(moves(&model, Some(&phi), &broken.view()).unwrap(), None);
    }
}
