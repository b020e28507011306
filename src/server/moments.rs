//! How vectors of a stream move together, without keeping any of them.

/// Running first and second moments of vectors of one length.
#[derive(Debug, Clone)]
pub(super) struct Moments {
    count: usize,
    /// The first vector. Sums are over distances from it, so that a mean far from zero costs no
    /// digits.
    origin: Vec<f64>,
    distance: Vec<f64>,
    sum: Vec<f64>,
    /// Row by row, each as far as the diagonal.
    products: Vec<f64>,
}

impl Moments {
    /// Of nothing yet, for vectors of `size` numbers.
    pub(super) fn new(size: usize) -> Self {
        let zero = vec![0.0; size];
        let products = vec![0.0; size * (size + 1) / 2];
        Self { count: 0, origin: zero.clone(), distance: zero.clone(), sum: zero, products }
    }

    /// Takes one more vector in; one that is not all numbers is left out.
    pub(super) fn add(&mut self, vector: &[f32]) {
        if !vector.iter().all(|v| v.is_finite()) {
            return;
        }
        if self.count == 0 {
            self.origin.iter_mut().zip(vector).for_each(|(to, v)| *to = f64::from(*v));
        }
        self.count += 1;
        let distances = self.distance.iter_mut().zip(vector).zip(&self.origin);
        distances.for_each(|((to, v), origin)| *to = f64::from(*v) - origin);
        let mut products = self.products.iter_mut();
        for (i, one) in self.distance.iter().enumerate() {
            self.sum[i] += one;
            for (other, product) in self.distance[..=i].iter().zip(products.by_ref()) {
                *product += one * other;
            }
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.sum.fill(0.0);
        self.products.fill(0.0);
    }

    /// Pearson's correlation of every pair of places, row by row. A place that never changed
    /// correlates with nothing but itself.
    pub(super) fn correlation(&self) -> Vec<f32> {
        let (size, n) = (self.sum.len(), self.count.max(1) as f64);
        let covariance = |i: usize, j: usize| {
            let (i, j) = (i.max(j), i.min(j));
            self.products[i * (i + 1) / 2 + j] / n - self.sum[i] / n * (self.sum[j] / n)
        };
        let pairs = (0..size).flat_map(|i| (0..size).map(move |j| (i, j)));
        let correlation = |(i, j): (usize, usize)| {
            let scale = (covariance(i, i) * covariance(j, j)).sqrt();
            if i == j {
                1.0
            } else if scale > 0.0 {
                (covariance(i, j) / scale).clamp(-1.0, 1.0) as f32
            } else {
                0.0
            }
        };
        pairs.map(correlation).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_move_alike_correlate_and_what_is_no_number_is_left_out() {
        let mut moments = Moments::new(3);
        moments.add(&[9.0, 9.0, 9.0]);
        moments.clear();
        for row in [[1e4, -1.0, 5.0], [1e4 + 2.0, -3.0, 5.0], [f32::NAN, 0.0, 0.0]] {
            moments.add(&row);
        }
        moments.add(&[1e4 + 4.0, -5.0, 5.0]);
        assert_eq!(moments.count(), 3);
        let expected = [1.0, -1.0, 0.0, -1.0, 1.0, 0.0, 0.0, 0.0, 1.0];
        for (found, expected) in moments.correlation().iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }
}
