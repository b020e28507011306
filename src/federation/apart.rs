//! Algorithm 1 with sites and server apart: either half of a round by itself, whatever carries the
//! messages.
//!
//! Both halves do what a [`Federation`](super::Federation) does in one process, in the same order. So the
//! same data and seed give the same weights, bit by bit. Losses of clients stay with them.

use super::batched::{learn_batch, learner, network};
use super::course::{Course, History};
use super::schedule::{Plan, REPORT_EVERY};
use super::{FederationError, Hooks, OnProgress, Parts, Sent, Stage};
use crate::nn::train::trainer::Trainer;
use crate::nn::weights::LstmFc;
use crate::privacy::{Counted, Protection, Spend, What};
use crate::server::batch::Batch;
use crate::server::{Receipt, Rounds, StateCorrelation};
use crate::session::settings::{Federation, ModelSettings};
use crate::site::batch::BatchEstimate;
use crate::site::training::{SiteData, TrainingSite};
use crate::wire::{Content, Message, Order, Outgoing, ToSite};

/// One site's half of a training.
pub(crate) struct SiteHalf {
    site: TrainingSite,
    /// What learns in batches.
    phi: Option<Trainer<LstmFc>>,
    /// The forward pass of the present round, where it is one of windows.
    estimate: Option<BatchEstimate>,
    back: Spend,
    /// Gradients that came back.
    gradients: u64,
    losses: Losses,
}

impl SiteHalf {
    /// The half of the client at `place`: runs its proprietary model once over its rows.
    pub(crate) fn new(
        place: usize,
        site: &SiteData<'_>,
        settings: &ModelSettings,
        hooks: Hooks<'_>,
        seed: u64,
    ) -> Result<Self, FederationError> {
        let protection = |states| Protection::new(hooks.privacy, states);
        let parts = Parts { settings, protection: &protection, provenance: hooks.provenance, seed };
        let site = parts.site(place, site)?;
        let back = protection(site.states())?.gradient_spend();
        let phi = match settings.federation {
            Federation::Online { .. } => None,
            Federation::Batched { .. } => {
                Some(learner(settings, site.phi(), settings.learning_rate, 1.0)?)
            }
        };
        Ok(Self { site, phi, estimate: None, back, gradients: 0, losses: Losses::default() })
    }

    /// At which rows something was measured.
    pub(crate) fn measured(&self) -> Vec<bool> {
        (0..self.site.steps()).map(|t| self.site.is_measured(t)).collect()
    }

    pub(crate) fn states(&self) -> usize {
        self.site.states()
    }

    /// Its states of one round, as they leave.
    pub(crate) fn release(&mut self, plan: &Plan) -> Result<Vec<Outgoing>, FederationError> {
        match (plan, &self.phi) {
            (Plan::Row { t, begins_pass, .. }, _) => {
                if *begins_pass {
                    self.site.forget();
                }
                self.site.estimate(*t);
                self.losses.add(self.site.loss())?;
                Ok(vec![self.site.states_message(*t)?])
            }
            (Plan::Windows { .. }, Some(phi)) => {
                let Some(windows) = plan.windows() else { return Ok(Vec::new()) };
                let estimate = self.site.estimate_batch(&network(phi, true)?, &windows)?;
                self.losses.add(estimate.loss()?)?;
                let messages = self.site.batch_messages(&estimate, &windows)?;
                self.estimate = Some(estimate);
                Ok(messages.into_iter().collect::<Result<_, _>>()?)
            }
            (Plan::Windows { .. }, None) => Ok(Vec::new()),
        }
    }

    /// Steps φ on what came back for the round; without gradients, on its own loss alone.
    pub(crate) fn learn(&mut self, plan: &Plan, back: &[ToSite]) -> Result<(), FederationError> {
        self.gradients += back.len() as u64;
        let mut gradients = back.iter().filter_map(|message| match message.order() {
            Order::Gradient(g) => Some(g),
            Order::Prediction(_)
            | Order::TakeAsNormal { .. }
            | Order::TakeBackNormal
            | Order::NameSensors => None,
        });
        match plan {
            Plan::Row { pace, .. } => self.site.learn(gradients.next(), *pace),
            Plan::Windows { .. } => {
                let (Some(phi), Some(estimate), Some(windows)) =
                    (&mut self.phi, &self.estimate, plan.windows())
                else {
                    return Ok(());
                };
                let g: Vec<f32> = gradients.flatten().copied().collect();
                let g = (!g.is_empty()).then_some(&g[..]);
                phi.descend(self.site.batch_gradient(estimate, &windows, g)?)?;
            }
        }
        Ok(())
    }

    /// Whether what came back for a round can be taken: nothing, or a gradient for every step.
    pub(crate) fn fits(&self, plan: &Plan, back: &[ToSite]) -> bool {
        let steps = plan.steps();
        let is_whole = |message: &ToSite| match message.order() {
            Order::Gradient(g) => g.len() == self.site.states(),
            Order::Prediction(_)
            | Order::TakeAsNormal { .. }
            | Order::TakeBackNormal
            | Order::NameSensors => false,
        };
        let is_right = |(message, step): (&ToSite, &u64)| {
            message.step() == *step && message.client() == self.site.place() && is_whole(message)
        };
        back.is_empty() || back.len() == steps.len() && back.iter().zip(&steps).all(is_right)
    }

    /// φ as it is now.
    pub(crate) fn phi(&mut self) -> Result<LstmFc, FederationError> {
        if let Some(phi) = &self.phi {
            self.site.adopt(&phi.weights()?)?;
        }
        Ok(self.site.phi())
    }

    /// What this client will have released after so many messages of states and of summaries.
    pub(crate) fn planned(&self, states: u64, summaries: u64) -> Vec<Counted> {
        let [x_c, x_a] = self.site.released();
        // z and ε of a summary carry the noise of x̂_c.
        vec![Counted { count: states + 2 * summaries, ..x_c }, Counted { count: states, ..x_a }]
    }

    /// What was released about this client, and what was sent back to it.
    pub(crate) fn released(&self) -> Vec<Counted> {
        let back = Counted { what: What::Gradient, spend: self.back, count: self.gradients };
        self.site.released().into_iter().chain([back]).filter(|c| c.count > 0).collect()
    }
}

/// A site's own losses: it must not go on when they grow without bound.
#[derive(Debug, Default)]
struct Losses {
    rounds: usize,
    since: usize,
    sum: f64,
    first: Option<f64>,
}

impl Losses {
    fn add(&mut self, loss: f64) -> Result<(), FederationError> {
        self.rounds += 1;
        self.since += 1;
        self.sum += loss;
        if loss.is_finite() && self.since < REPORT_EVERY {
            return Ok(());
        }
        let mean = self.sum / self.since as f64;
        (self.since, self.sum) = (0, 0.0);
        let bound = super::course::DIVERGENCE * self.first.get_or_insert(mean).max(1.0);
        if mean.is_finite() && mean <= bound {
            return Ok(());
        }
        let (round, client_loss) = (self.rounds, vec![mean]);
        Err(FederationError::Diverged { round, server_loss: 0.0, client_loss })
    }
}

/// The server's half of a training.
pub(crate) struct ServerHalf {
    server: Rounds,
    /// What learns in batches.
    f_s: Option<Trainer<LstmFc>>,
    feedback: bool,
}

/// What the server makes of a round.
pub(crate) struct Answer {
    pub(crate) loss: f64,
    /// Gradients for every client; none where no client learns from them.
    pub(crate) gradients: Vec<Vec<ToSite>>,
    pub(crate) sent: Sent,
}

impl ServerHalf {
    /// A server for clients of `states` states each.
    pub(crate) fn new(
        states: &[usize],
        settings: &ModelSettings,
        hooks: Hooks<'_>,
        seed: u64,
    ) -> Result<Self, FederationError> {
        let protection = |states| Protection::new(hooks.privacy, states);
        let parts = Parts { settings, protection: &protection, provenance: hooks.provenance, seed };
        let server = parts.server(states)?;
        let f_s = match settings.federation {
            Federation::Online { .. } => None,
            Federation::Batched { .. } => {
                Some(learner(settings, server.weights(), settings.eta3, settings.eta3)?)
            }
        };
        Ok(Self { server, f_s, feedback: Stage::Together.feeds_back(settings) })
    }

    /// Whether `messages` are all states of `client` in this round, and nothing else.
    pub(crate) fn fits(&self, plan: &Plan, client: usize, messages: &[Message]) -> bool {
        let (steps, states) = (plan.steps(), self.server.span(client).len());
        let is_right = |(message, step): (&Message, &u64)| {
            let Content::States { x_c, x_a } = message.content() else { return false };
            (message.client(), message.step()) == (client, *step)
                && (x_c.len(), x_a.len()) == (states, states)
        };
        messages.len() == steps.len() && messages.iter().zip(&steps).all(is_right)
    }

    /// One round with the states of all clients.
    pub(crate) fn round(
        &mut self,
        plan: &Plan,
        messages: &[Vec<Message>],
    ) -> Result<Answer, FederationError> {
        let missing = || FederationError::Sites("states of a round are missing".to_owned());
        let (loss, gradients) = match (plan, plan.windows()) {
            (Plan::Row { pace, begins_pass, .. }, _) => {
                if *begins_pass {
                    self.server.forget();
                }
                for message in messages.iter().flatten() {
                    if self.server.hear(message) != Receipt::Taken {
                        return Err(missing());
                    }
                }
                let loss = self.server.round(Some(*pace));
                let gradient = |m| Ok(vec![self.server.gradient_message(m)?]);
                let back = if self.feedback { 0..messages.len() } else { 0..0 };
                (loss, back.map(gradient).collect::<Result<Vec<_>, FederationError>>()?)
            }
            (Plan::Windows { is_middle, .. }, Some(windows)) => {
                if *is_middle {
                    self.server.look_anew();
                }
                let mut batch = Batch::new(&self.server, windows);
                for message in messages.iter().flatten() {
                    batch.hear(&self.server, message);
                }
                let Some(f_s) = &mut self.f_s else { return Err(missing()) };
                let gradient = learn_batch(&mut self.server, f_s, &batch)?;
                let back = if self.feedback { 0..messages.len() } else { 0..0 };
                let of = |m| {
                    let back = self.server.batch_messages(m, &batch, &gradient);
                    Ok(back.into_iter().collect::<Result<Vec<_>, _>>()?)
                };
                let gradients = back.map(of).collect::<Result<Vec<_>, FederationError>>()?;
                (gradient.loss, gradients)
            }
            (Plan::Windows { .. }, None) => return Err(missing()),
        };
        let sent = Sent {
            up: messages.iter().flatten().map(bytes_of_states).sum(),
            down: gradients.iter().flatten().map(ToSite::payload_bytes).sum(),
        };
        Ok(Answer { loss, gradients, sent })
    }

    /// f_s as it is now.
    pub(crate) fn f_s(&mut self) -> Result<LstmFc, FederationError> {
        if let Some(f_s) = &self.f_s {
            self.server.adopt(&f_s.weights()?)?;
        }
        Ok(self.server.weights())
    }

    /// How states moved together at the end.
    pub(crate) fn together(&self) -> Option<StateCorrelation> {
        self.server.together()
    }
}

/// Bytes of the numbers in a message of states.
fn bytes_of_states(message: &Message) -> usize {
    match message.content() {
        Content::States { x_c, x_a } => size_of::<f32>() * (x_c.len() + x_a.len()),
        Content::Summary { .. }
        | Content::Enrolment(_)
        | Content::Symbol { .. }
        | Content::Severe { .. }
        | Content::Quiet
        | Content::Flags { .. }
        | Content::Faults(_)
        | Content::Sensors(_) => 0,
    }
}

/// The course of a training as the server knows it: its own loss only.
pub(crate) struct ServerCourse<'a>(Course<'a>);

impl<'a> ServerCourse<'a> {
    pub(crate) fn new(
        history: &'a mut History,
        on_progress: OnProgress<'a>,
        rounds: usize,
    ) -> Self {
        Self(Course::new(history, on_progress, rounds, REPORT_EVERY, 0))
    }

    /// Takes in one round; an error where the training diverges.
    pub(crate) fn round(&mut self, answer: &Answer) -> Result<(), FederationError> {
        self.0.round(answer.loss, [], answer.sent).map(|_| ())
    }
}
