//! The elements every process is built from, for a step of one second.

/// First-order lag.
#[derive(Debug, Clone)]
pub(super) struct Lag {
    pub(super) value: f64,
    gain: f64,
    limit: f64,
}

impl Lag {
    pub(super) fn new(value: f64, tau_s: f64) -> Self {
        Self { value, gain: gain(tau_s), limit: f64::INFINITY }
    }

    /// A lag that moves by no more than `limit` in a second.
    pub(super) fn limited(value: f64, tau_s: f64, limit: f64) -> Self {
        Self { limit, ..Self::new(value, tau_s) }
    }

    pub(super) fn toward(&mut self, target: f64) -> f64 {
        self.value += (self.gain * (target - self.value)).clamp(-self.limit, self.limit);
        self.value
    }

    /// The same, with another time constant this once.
    pub(super) fn toward_in(&mut self, target: f64, tau_s: f64) -> f64 {
        self.value += gain(tau_s) * (target - self.value);
        self.value
    }
}

/// The share of its way to the target that a lag covers in a second.
fn gain(tau_s: f64) -> f64 {
    1.0 - (-1.0 / tau_s).exp()
}

/// A value that follows its target at a limited rate.
#[derive(Debug, Clone)]
pub(super) struct Slew {
    pub(super) value: f64,
    rate: f64,
}

impl Slew {
    pub(super) const fn new(value: f64, rate_per_s: f64) -> Self {
        Self { value, rate: rate_per_s }
    }

    pub(super) fn toward(&mut self, target: f64) -> f64 {
        self.toward_at(target, self.rate)
    }

    /// The same, at another rate this once.
    pub(super) fn toward_at(&mut self, target: f64, rate_per_s: f64) -> f64 {
        self.value += (target - self.value).clamp(-rate_per_s, rate_per_s);
        self.value
    }
}

/// An Ornstein-Uhlenbeck process: noise of standard deviation `sigma` that forgets in `tau`.
#[derive(Debug, Clone)]
pub(super) struct Wander {
    value: f64,
    decay: f64,
    kick: f64,
}

impl Wander {
    pub(super) fn new(sigma: f64, tau_s: f64) -> Self {
        Self { value: 0.0, decay: 1.0 / tau_s, kick: sigma * (2.0 / tau_s).sqrt() }
    }

    pub(super) fn step(&mut self, normal: f64) -> f64 {
        self.value += self.kick * normal - self.decay * self.value;
        self.value
    }
}

/// A proportional-integral controller whose integral part is kept within limits.
#[derive(Debug, Clone)]
pub(super) struct Pi {
    kp: f64,
    ti_s: f64,
    integral: f64,
    limits: (f64, f64),
}

impl Pi {
    pub(super) fn new(kp: f64, ti_s: f64, integral: f64, limits: (f64, f64)) -> Self {
        Self { kp, ti_s, integral, limits }
    }

    pub(super) fn step(&mut self, error: f64) -> f64 {
        self.set_integral(self.integral + self.kp / self.ti_s * error);
        self.kp * error + self.integral
    }

    /// Lets the integral part follow an output that was set from outside.
    pub(super) fn follow(&mut self, output: f64) {
        self.set_integral(output);
    }

    fn set_integral(&mut self, integral: f64) {
        self.integral = integral.clamp(self.limits.0, self.limits.1);
    }
}
