//! Batches of windows on the shared time grid: which steps they hold.
//!
//! Site and server both use it in batched federated training. It must not know whose steps they are.

/// Which steps are learned from: `length` of them after each of the rows `starts`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchWindows<'a> {
    /// The row before the first step of each window.
    pub(crate) starts: &'a [usize],
    pub(crate) length: usize,
    /// Steps at the start of a window that are in no loss.
    pub(crate) warm_up: usize,
}

impl BatchWindows<'_> {
    pub(crate) fn count(&self) -> usize {
        self.starts.len() * self.length
    }

    /// The rows t − 1 of all steps, window by window.
    pub(crate) fn before(&self) -> impl Iterator<Item = usize> + '_ {
        self.starts.iter().flat_map(|&start| start..start + self.length)
    }

    /// The share of each step in a mean loss.
    pub(crate) fn shares(&self) -> impl Iterator<Item = f32> + '_ {
        let share = 1.0 / (self.starts.len() * (self.length - self.warm_up)) as f32;
        (0..self.count()).map(move |i| if self.is_warm_up(i) { 0.0 } else { share })
    }

    /// Whether the `i`-th step of all is in no loss.
    pub(crate) fn is_warm_up(&self, i: usize) -> bool {
        i % self.length < self.warm_up
    }
}
