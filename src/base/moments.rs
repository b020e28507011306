//! Running mean and standard deviation (Welford).

/// Mean and spread of the numbers seen so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moments {
    n: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    pub(crate) fn add(&mut self, x: f64) {
        self.n += 1;
        let off = x - self.mean;
        self.mean += off / self.n as f64;
        self.squares += off * (x - self.mean);
    }

    pub(crate) fn count(&self) -> u64 {
        self.n
    }

    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }

    /// Standard deviation of the numbers seen (not of a population they stand for).
    pub(crate) fn std(&self) -> f64 {
        (self.squares / self.n.max(1) as f64).sqrt()
    }
}

impl FromIterator<f64> for Moments {
    fn from_iter<I: IntoIterator<Item = f64>>(numbers: I) -> Self {
        let mut moments = Self::default();
        numbers.into_iter().for_each(|x| moments.add(x));
        moments
    }
}
