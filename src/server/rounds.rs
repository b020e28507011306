//! The server in training: f_s learns to predict every client's augmented state from all clients'
//! proprietary states, and sends each client the gradient of its state.
//!
//! ```text
//! x_s(t) = f_s(x̂_c(t−1) of all clients),  L_s = Σ ‖x_s − x_a‖²,  g_m = ∂L_s/∂x_a = 2 (x_a − x_s)
//! ```
//!
//! It knows what arrived in messages and nothing else: no measurement, no client's weights.

use std::ops::Range;

use super::inbox::Receipt;
use super::together::{Look, StateCorrelation};
use crate::nn::kernel::WeightsError;
use crate::nn::online::{Descent, Learner};
use crate::nn::weights::LstmFc;
use crate::privacy::{Channel, Counted, Estimate, PrivacyError, What};
use crate::wire::{Content, Message, ToSite};

/// The server's model and what arrived in the present round.
#[derive(Debug)]
pub(crate) struct Rounds {
    f_s: Learner,
    /// Where each client's states stand.
    spans: Vec<Range<usize>>,
    outboxes: Vec<Channel>,
    step: u64,
    x_c: Vec<f32>,
    x_a: Vec<f32>,
    /// 2 (x_s − x_a).
    d_out: Vec<f32>,
    sending: Vec<f64>,
    /// How states move together; nothing where there are too many of them.
    look: Option<Look>,
}

impl Rounds {
    /// A server for clients of `states` states each, with one way back to each of them.
    pub(crate) fn new(
        states: &[usize],
        f_s: &LstmFc,
        descent: Descent,
        outboxes: Vec<Channel>,
    ) -> Result<Self, WeightsError> {
        let mut end = 0;
        let span = |&states: &usize| {
            end += states;
            end - states..end
        };
        let spans: Vec<_> = states.iter().map(span).collect();
        Ok(Self {
            f_s: Learner::new(f_s, descent)?,
            spans,
            outboxes,
            step: 0,
            x_c: vec![0.0; end],
            x_a: vec![0.0; end],
            d_out: vec![0.0; end],
            sending: Vec::with_capacity(end),
            look: Look::new(end),
        })
    }

    /// f_s as it is now.
    pub(crate) fn weights(&self) -> LstmFc {
        self.f_s.weights()
    }

    /// Goes on with another f_s of the same size.
    pub(crate) fn adopt(&mut self, f_s: &LstmFc) -> Result<(), WeightsError> {
        self.f_s = self.f_s.replaced_by(f_s)?;
        Ok(())
    }

    pub(crate) fn clients(&self) -> usize {
        self.spans.len()
    }

    /// Number of states of all clients together.
    pub(crate) fn states(&self) -> usize {
        self.x_c.len()
    }

    /// Where the states of client `m` stand in the joint vectors.
    pub(crate) fn span(&self, m: usize) -> Range<usize> {
        self.spans[m].clone()
    }

    /// What was sent back to client `m`.
    pub(crate) fn released(&self, m: usize) -> Counted {
        self.outboxes[m].counted(What::Gradient)
    }

    /// Forgets what f_s has seen: a new pass begins.
    pub(crate) fn forget(&mut self) {
        self.f_s.forget();
        self.look_anew();
    }

    /// How states move together is computed from the rounds from here on.
    pub(crate) fn look_anew(&mut self) {
        if let Some(look) = &mut self.look {
            look.anew();
        }
    }

    /// Looks at the states of a step: what arrived, and x_s that was computed elsewhere from this
    /// server's weights.
    pub(super) fn look_at(&mut self, x_c: &[f32], x_a: &[f32], x_s: impl Fn() -> Vec<f32>) {
        if let Some(look) = &mut self.look
            && look.is_due()
        {
            look.take([x_c, x_a, &x_s()]);
        }
    }

    /// How states moved together since [`Rounds::look_anew`].
    pub(crate) fn together(&self) -> Option<StateCorrelation> {
        let states = self.spans.iter().map(Range::len).collect();
        self.look.as_ref()?.together(states)
    }

    /// Takes one client's states of the present round.
    pub(crate) fn hear(&mut self, message: &Message) -> Receipt {
        let Content::States { x_c, x_a } = message.content() else { return Receipt::Misplaced };
        let Some(span) = self.spans.get(message.client()).cloned() else {
            return Receipt::Stranger;
        };
        if (x_c.len(), x_a.len()) != (span.len(), span.len()) {
            return Receipt::Invalid;
        }
        self.step = message.step();
        self.x_c[span.clone()].copy_from_slice(x_c);
        self.x_a[span].copy_from_slice(x_a);
        Receipt::Taken
    }

    /// x_s and L_s from all messages of the round; steps θ_s if asked to, at `pace`.
    pub(crate) fn round(&mut self, learn: Option<f64>) -> f64 {
        let x_s = self.f_s.forward(&self.x_c);
        let mut loss = 0.0;
        for ((d, x_s), x_a) in self.d_out.iter_mut().zip(x_s).zip(&self.x_a) {
            let e = x_s - x_a;
            loss += f64::from(e * e);
            *d = 2.0 * e;
        }
        if let Some(look) = &mut self.look
            && look.is_due()
        {
            look.take([&self.x_c, &self.x_a, x_s]);
        }
        if let Some(pace) = learn {
            self.f_s.learn(&self.d_out, pace);
        }
        loss
    }

    /// g_m of the round, clipped and noised as the session asks.
    pub(crate) fn gradient_message(&mut self, m: usize) -> Result<ToSite, PrivacyError> {
        let Self { spans, outboxes, d_out, sending, .. } = self;
        sending.clear();
        sending.extend(d_out[spans[m].clone()].iter().map(|&d| f64::from(-d)));
        let g = outboxes[m].send(&Estimate::of_gradient(sending))?;
        Ok(ToSite::gradient(m, self.step, g))
    }

    /// The same for a gradient that was computed elsewhere from this server's weights.
    pub(crate) fn gradient_message_of(
        &mut self,
        m: usize,
        step: u64,
        g: &[f32],
    ) -> Result<ToSite, PrivacyError> {
        let Self { outboxes, sending, .. } = self;
        sending.clear();
        sending.extend(g.iter().map(|&g| f64::from(g)));
        let g = outboxes[m].send(&Estimate::of_gradient(sending))?;
        Ok(ToSite::gradient(m, step, g))
    }
}
