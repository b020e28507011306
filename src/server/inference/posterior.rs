//! From what speaks for each client to probabilities, and to the one that leads.

/// The index of the largest value; `favourite` if it is among the largest.
pub(super) fn largest(values: &[f64], favourite: usize) -> usize {
    let mut best = favourite.min(values.len().saturating_sub(1));
    for (i, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = i;
        }
    }
    best
}

/// softmax(A), by differences from the largest so that nothing overflows.
pub(super) fn softmax(values: &[f64], out: &mut [f64]) {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !largest.is_finite() {
        out.fill(1.0 / values.len().max(1) as f64);
        return;
    }
    let mut total = 0.0;
    for (out, value) in out.iter_mut().zip(values) {
        *out = (value - largest).exp();
        total += *out;
    }
    for p in out {
        *p /= total;
    }
}
