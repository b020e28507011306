//! A site's half of batched training: its forward pass over windows of its own rows, the states it sends
//! of every step, and its step on both losses.

use candle_core::backprop::GradStore;
use candle_core::{Device, Result as Candle, Tensor};
use candle_nn::rnn::LSTMState;

use super::training::TrainingSite;
use crate::nn::network::{FilterNetwork, LstmNetwork};
use crate::nn::train::batch::BatchWindows;
use crate::privacy::PrivacyError;
use crate::wire::Outgoing;

/// A site's forward pass over a batch.
#[derive(Debug)]
pub(crate) struct BatchEstimate {
    /// steps × P.
    x_a: Tensor,
    loss: Tensor,
}

impl TrainingSite {
    /// x_a and L_a of every step of `windows` with `phi` at this site.
    pub(crate) fn estimate_batch(
        &self,
        phi: &LstmNetwork,
        windows: &BatchWindows,
    ) -> Candle<BatchEstimate> {
        let cpu = &Device::Cpu;
        let chain = self.chain();
        let functions = FilterNetwork::running(self.functions())?;
        let n = windows.count();
        let gather = |row: &dyn Fn(usize) -> Vec<f32>, columns: usize| {
            let values: Vec<f32> = windows.before().flat_map(row).collect();
            Tensor::from_vec(values, (n, columns), cpu)
        };
        let (sensors, states) = (chain.sensors(), self.states());
        let width = self.functions().transition.width;
        let input = gather(&|t| chain.input(t).to_vec(), sensors)?;
        let x_hat_c = gather(&|t| chain.x_hat(t).to_vec(), states)?;
        let memory = LSTMState {
            h: gather(&|t| chain.hidden_and_cell(t).0.to_vec(), width)?,
            c: gather(&|t| chain.hidden_and_cell(t).1.to_vec(), width)?,
        };
        let present = |v: &f32| if v.is_finite() { *v } else { 0.0 };
        let target = gather(&|t| chain.target(t + 1).iter().map(present).collect(), sensors)?;
        let weight: Vec<f32> = windows
            .before()
            .zip(windows.shares())
            .flat_map(|(t, share)| {
                let weight = move |v: &f32| if v.is_finite() { share } else { 0.0 };
                chain.target(t + 1).iter().map(weight)
            })
            .collect();
        let weight = Tensor::from_vec(weight, (n, sensors), cpu)?;
        let correction =
            phi.seq(&input.reshape((windows.starts.len(), windows.length, sensors))?)?;
        let x_hat_a = (x_hat_c + correction.reshape((n, states))?)?;
        let (x_a, _) = functions.transition(&x_hat_a, &memory)?;
        let r = (target - functions.measurement(&x_a)?)?;
        let loss = (r.sqr()? * weight)?.sum_all()?;
        Ok(BatchEstimate { x_a, loss })
    }

    /// [x̂_c(t−1), x_a(t)] of every step of the batch, in the order of `windows`, one message each.
    pub(crate) fn batch_messages(
        &mut self,
        estimate: &BatchEstimate,
        windows: &BatchWindows,
    ) -> Candle<Vec<Result<Outgoing, PrivacyError>>> {
        let x_a = estimate.x_a.flatten_all()?.to_vec1::<f32>()?;
        let steps = windows.before().zip(x_a.chunks_exact(self.states()));
        Ok(steps.map(|(before, x_a)| self.states_message_of(before + 1, x_a)).collect())
    }

    /// ∇ of η1 L_a + η2 L_s by θ_m, L_s through the server's `g`, one per step.
    pub(crate) fn batch_gradient(
        &self,
        estimate: &BatchEstimate,
        windows: &BatchWindows,
        g: Option<&[f32]>,
    ) -> Candle<GradStore> {
        let eta = self.eta();
        let mut objective = (&estimate.loss * f64::from(eta.own))?;
        if let Some(g) = g {
            let states = self.states();
            let shares = windows.shares().flat_map(|share| std::iter::repeat_n(share, states));
            let g: Vec<f32> = g.iter().zip(shares).map(|(g, share)| g * share).collect();
            let g = Tensor::from_vec(g, (windows.count(), states), &Device::Cpu)?;
            let server = ((&estimate.x_a * g)?.sum_all()? * f64::from(eta.server))?;
            objective = (objective + server)?;
        }
        objective.backward()
    }
}

impl BatchEstimate {
    /// Mean L_a.
    pub(crate) fn loss(&self) -> Candle<f64> {
        Ok(f64::from(self.loss.to_scalar::<f32>()?))
    }
}
