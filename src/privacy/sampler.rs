//! Exact sampling of noise on the integers, by random bits and integer arithmetic only.
//!
//! Floating-point noise has holes between its values, and the holes reveal which input was noised
//! (Mironov 2012). Here no float is ever drawn: a [`rounded_normal`] is *exactly* the nearest
//! integer to a real normal deviate, by Karney's algorithm on lazily extended binary fractions.
//! What is released, `n + round(σN)` with integer `n`, equals `round(n + σN)`: a function of the
//! continuous Gaussian mechanism's output. Rounding is post-processing, so the mechanism is
//! exactly (Δ/σ)-Gaussian-differentially private, and so is every composition of it, without
//! the small terms that a discrete Gaussian would need.
//!
//! The time a draw takes depends on the noise drawn, never on the data. Who can time single
//! draws learns a little about the noise; a client should draw at its own pace, ahead of need.

use std::cmp::Ordering;

use super::PrivacyError;
use super::randomness::Randomness;

/// The largest noise scale, in grid steps, for which all products below fit their integers.
pub(crate) const MAX_SCALE: u64 = 1 << 40;

type Drawn<T> = Result<T, PrivacyError>;

/// A uniform deviate in (0, 1) of which only the binary digits asked for so far are drawn.
///
/// Nearly every question is settled by the first 64, so the rest seldom costs an allocation.
struct Uniform {
    first: u64,
    rest: Vec<u64>,
}

impl Uniform {
    fn new(random: &mut Randomness) -> Drawn<Self> {
        Ok(Self { first: random.word()?, rest: Vec::new() })
    }

    fn digit(&mut self, place: usize, random: &mut Randomness) -> Drawn<u64> {
        if place == 0 {
            return Ok(self.first);
        }
        while self.rest.len() < place {
            self.rest.push(random.word()?);
        }
        Ok(self.rest[place - 1])
    }

    fn is_below(&mut self, other: &mut Self, random: &mut Randomness) -> Drawn<bool> {
        let mut place = 0;
        loop {
            match self.digit(place, random)?.cmp(&other.digit(place, random)?) {
                Ordering::Less => return Ok(true),
                Ordering::Greater => return Ok(false),
                Ordering::Equal => place += 1,
            }
        }
    }

    /// ⌊factor · self⌋, drawing further digits only while they could still carry into it.
    fn floor_times(&mut self, factor: u64, random: &mut Randomness) -> Drawn<u64> {
        let product = u128::from(factor) * u128::from(self.digit(0, random)?);
        let (whole, mut fraction) = ((product >> 64) as u64, product as u64);
        let mut place = 1;
        loop {
            // The digits not looked at add less than `factor` units in this place.
            if fraction <= u64::MAX - factor {
                return Ok(whole);
            }
            let next = u128::from(factor) * u128::from(self.digit(place, random)?);
            match fraction.checked_add((next >> 64) as u64) {
                None => return Ok(whole + 1),
                Some(u64::MAX) => (fraction, place) = (next as u64, place + 1),
                Some(_) => return Ok(whole),
            }
        }
    }
}

/// True with probability e^{−1/2}: the parity of a descending run that starts at ½
/// (von Neumann 1951).
fn exp_minus_half(random: &mut Randomness) -> Drawn<bool> {
    let mut last = Uniform::new(random)?;
    if last.first >= 1 << 63 {
        return Ok(true);
    }
    let mut even = false;
    loop {
        let mut next = Uniform::new(random)?;
        if !next.is_below(&mut last, random)? {
            return Ok(even);
        }
        (last, even) = (next, !even);
    }
}

/// True with probability e^{−x(2k+x)/(2k+2)} (Karney 2016, algorithm B).
fn accepts(k: u64, x: &mut Uniform, random: &mut Randomness) -> Drawn<bool> {
    let mut last: Option<Uniform> = None;
    let mut even = true;
    loop {
        let mut next = Uniform::new(random)?;
        if !next.is_below(last.as_mut().unwrap_or(x), random)? {
            return Ok(even);
        }
        // A second uniform below (2k + x)/(2k + 2), decided by its leading part in base 2k + 2.
        let below = match random.below(2 * k + 2)?.cmp(&(2 * k)) {
            Ordering::Less => true,
            Ordering::Equal => Uniform::new(random)?.is_below(x, random)?,
            Ordering::Greater => false,
        };
        if !below {
            return Ok(even);
        }
        (last, even) = (Some(next), !even);
    }
}

/// The nearest integer to `scale` times a standard normal deviate (Karney 2016, algorithm N).
pub(crate) fn rounded_normal(scale: u64, random: &mut Randomness) -> Drawn<i64> {
    debug_assert!((1..=MAX_SCALE).contains(&scale));
    'again: loop {
        // The whole part k with probability ∝ e^{−k²/2}.
        let mut k = 0_u64;
        while exp_minus_half(random)? {
            k += 1;
        }
        for _ in 0..k * k.saturating_sub(1) {
            if !exp_minus_half(random)? {
                continue 'again;
            }
        }
        // The fraction x, accepted with probability e^{−x(2k+x)/2}.
        let mut x = Uniform::new(random)?;
        for _ in 0..=k {
            if !accepts(k, &mut x, random)? {
                continue 'again;
            }
        }
        // ⌊scale·x + ½⌋ = ⌈⌊2·scale·x⌋ / 2⌉; ties have probability zero, so signs are symmetric.
        let size = scale * k + x.floor_times(2 * scale, random)?.div_ceil(2);
        let size = size.cast_signed();
        return Ok(if random.coin()? { size } else { -size });
    }
}

/// True with probability e^{−above/below}, for above ≤ below (Canonne, Kamath, Steinke 2020,
/// algorithm 1).
fn exp_minus_ratio(above: u64, below: u64, random: &mut Randomness) -> Drawn<bool> {
    debug_assert!(above <= below && below <= MAX_SCALE);
    let mut k = 1;
    while random.below(below * k)? < above {
        k += 1;
    }
    Ok(k % 2 == 1)
}

/// An integer y with probability ∝ e^{−|y|/scale} (Canonne, Kamath, Steinke 2020, algorithm 2).
pub(crate) fn discrete_laplace(scale: u64, random: &mut Randomness) -> Drawn<i64> {
    debug_assert!((1..=MAX_SCALE).contains(&scale));
    loop {
        let part = random.below(scale)?;
        if !exp_minus_ratio(part, scale, random)? {
            continue;
        }
        let mut whole = 0;
        while exp_minus_ratio(1, 1, random)? {
            whole += 1;
        }
        let size = (part + scale * whole).cast_signed();
        let negative = random.coin()?;
        // Zero would otherwise be counted once for each sign.
        if !(negative && size == 0) {
            return Ok(if negative { -size } else { size });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::reference::normal_quantile;
    use crate::privacy::special::normal_cdf;
    use std::collections::HashMap;

    /// Pearson's statistic against a critical value that true samples pass all but once in a
    /// million times (Wilson and Hilferty's approximation); sparse cells are left out.
    fn assert_fits(draws: &[i64], probability: impl Fn(i64) -> f64) {
        let mut counts: HashMap<i64, f64> = HashMap::new();
        for &x in draws {
            *counts.entry(x).or_default() += 1.0;
        }
        let n = draws.len() as f64;
        let (low, high) = (draws.iter().min().unwrap(), draws.iter().max().unwrap());
        let (mut chi2, mut cells) = (0.0, 0.0);
        for x in *low..=*high {
            let expected = n * probability(x);
            if expected >= 20.0 {
                chi2 += (counts.get(&x).unwrap_or(&0.0) - expected).powi(2) / expected;
                cells += 1.0;
            }
        }
        let freedom: f64 = cells - 1.0;
        let h = 2.0 / (9.0 * freedom);
        let critical = freedom * (1.0 - h + normal_quantile(1.0 - 1e-6) * h.sqrt()).powi(3);
        assert!(chi2 < critical, "chi-square {chi2:.1} above {critical:.1} ({freedom} degrees)");
    }

    #[test]
    fn a_rounded_normal_has_exactly_the_rounded_normal_probabilities() {
        for (source, scale) in [(0, 1), (1, 3), (2, 20)] {
            let mut random = Randomness::seeded(11, source);
            let draws: Vec<_> =
                (0..400_000).map(|_| rounded_normal(scale, &mut random).unwrap()).collect();
            let s = scale as f64;
            assert_fits(&draws, |x| {
                normal_cdf((x as f64 + 0.5) / s) - normal_cdf((x as f64 - 0.5) / s)
            });
        }
    }

    #[test]
    fn a_large_scale_keeps_the_normal_shape() {
        let scale = MAX_SCALE;
        let mut random = Randomness::seeded(12, 0);
        let n = 100_000.0;
        let draws: Vec<f64> = (0..n as u32)
            .map(|_| rounded_normal(scale, &mut random).unwrap() as f64 / scale as f64)
            .collect();
        let mean = draws.iter().sum::<f64>() / n;
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / n;
        let kurtosis = draws.iter().map(|x| x.powi(4)).sum::<f64>() / n;
        // Five standard errors of each moment.
        let slack = 5.0 / f64::sqrt(n);
        assert!(mean.abs() < slack, "mean {mean}");
        assert!((variance - 1.0).abs() < 2.0_f64.sqrt() * slack, "variance {variance}");
        assert!((kurtosis - 3.0).abs() < 96.0_f64.sqrt() * slack, "fourth moment {kurtosis}");
    }

    #[test]
    fn a_discrete_laplace_has_its_probabilities() {
        for (source, scale) in [(0, 1), (1, 7)] {
            let mut random = Randomness::seeded(13, source);
            let draws: Vec<_> =
                (0..400_000).map(|_| discrete_laplace(scale, &mut random).unwrap()).collect();
            let decay = (-1.0 / scale as f64).exp();
            assert_fits(&draws, |x| {
                (1.0 - decay) / (1.0 + decay) * decay.powf(x.unsigned_abs() as f64)
            });
        }
    }

    #[test]
    fn digits_are_drawn_only_while_they_matter() {
        let mut random = Randomness::seeded(14, 0);
        let mut clear = Uniform { first: 1 << 62, rest: Vec::new() };
        assert_eq!(clear.floor_times(8, &mut random).unwrap(), 2);
        assert!(clear.rest.is_empty());
        // Three times a little more, or a little less, than a third.
        for (second, whole) in [(0x5555_5555_5555_5556, 1), (0x5555_5555_5555_5554, 0)] {
            let mut x = Uniform { first: 0x5555_5555_5555_5555, rest: vec![second] };
            assert_eq!(x.floor_times(3, &mut random).unwrap(), whole);
        }
    }
}
