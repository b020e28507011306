//! Tier 2: clients tell the server about their states, and hear what another explains of theirs.

#[cfg(test)]
mod tests;

use jiff::Timestamp;

use super::RunError;
use super::evidence::Fitted;
use crate::engine::influence::{is_measured, line, traced};
use crate::engine::material::Material;
use crate::engine::prepare::Prepared;
use crate::evidence::influence::foretell::{Foreteller, Memory};
use crate::evidence::influence::line::{Line, tell};
use crate::evidence::informed::{Answers, Informed};
use crate::evidence::site::Reading;
use crate::evidence::symbol::{Grading, Symbol};
use crate::federation::FederationError;
use crate::link::{Innovation, Sender, Tap};
use crate::model::proprietary::{Proprietary as _, VendorModel};
use crate::privacy::{Account, Books, Counted};
use crate::session::Session;

/// One client's part.
#[derive(Debug)]
struct Member {
    /// The model whose states are sent, where another one watches.
    sending: Option<VendorModel>,
    line: Line,
    /// None for a client that nobody explains.
    informed: Option<Informed>,
    /// What of each calibration step its explainer does not explain.
    calibration: Vec<Option<Symbol>>,
    /// What the server foretells of the step at hand; empty when it cannot.
    foretold: Vec<f64>,
}

/// Everybody's part, and the server's.
#[derive(Debug)]
pub(super) struct Conference {
    foreteller: Foreteller,
    memory: Memory,
    members: Vec<Member>,
    grading: Grading,
    epsilon: Vec<f64>,
}

impl Conference {
    /// Lets the clients tell what they said about nominal data again, and calibrates on what comes
    /// back.
    pub fn open(
        session: &Session,
        prepared: &Prepared,
        material: &Material,
        fitted: &mut [Fitted],
        grading: &Grading,
        tap: &Tap,
    ) -> Result<Self, RunError> {
        let influences = &prepared.influences;
        let Some(foreteller) = influences.foreteller.clone() else {
            let why = influences.graph.unlearned.clone().unwrap_or_default();
            return Err(RunError::Tier(why));
        };
        let mut traces = Vec::new();
        let mut members = Vec::new();
        for (m, ((model, site, _), client)) in fitted.iter_mut().zip(&prepared.clients).enumerate()
        {
            let mut sending = if model.may_send_states() {
                None
            } else {
                Some(VendorModel::new(&client.sending)?)
            };
            let rows = &material.clients[m];
            let settling = site.settings().settling;
            traces.push(traced(model, sending.as_mut(), site.whitening(), settling, rows));
            model.reset();
            let may_send = Sender::new(m, sending.as_ref().unwrap_or(model));
            let sender = may_send.map_err(|stay| RunError::Tier(stay.to_string()))?;
            members.push(Member {
                sending,
                line: line(session, sender, influences.messengers[m].clone())?,
                informed: None,
                calibration: Vec::new(),
                foretold: Vec::new(),
            });
        }
        let mut lines: Vec<&mut Line> = members.iter_mut().map(|member| &mut member.line).collect();
        let mut answers = |range: usize| -> Result<Vec<Answers>, FederationError> {
            let mut heard = Vec::new();
            for (line, traces) in lines.iter_mut().zip(&traces) {
                heard.push(tell(line, &traces[range], tap)?);
            }
            Ok(Answers::gather(&foreteller, &heard, &mut lines, tap)?)
        };
        let (fit, calibration) = (answers(0)?, answers(1)?);
        for (m, member) in members.iter_mut().enumerate() {
            if foreteller.explainer(m).is_none() {
                continue;
            }
            let [of_fit, of_calibration] = &traces[m];
            let (informed, symbols) = Informed::fit(
                member.line.states(),
                grading,
                (of_fit, &fit[m]),
                (of_calibration, &calibration[m]),
            );
            // A recording has no entry for a row without any value.
            let rows = material.clients[m].calibration.outer_iter();
            member.calibration = rows
                .zip(symbols)
                .filter_map(|(row, symbol)| is_measured(row.iter()).then_some(symbol))
                .collect();
            member.informed = Some(informed);
        }
        let memory = foreteller.memory();
        for member in &mut members {
            if let Some(sending) = &mut member.sending {
                sending.reset();
            }
        }
        Ok(Self { foreteller, memory, members, grading: grading.clone(), epsilon: Vec::new() })
    }

    /// Who explains a client, and what of each of its calibration steps that one does not; none for a
    /// client that sends one symbol only.
    pub fn calibration(&self, client: usize) -> Option<(usize, &[Option<Symbol>])> {
        let member = &self.members[client];
        let explainer = self.foreteller.explainer(client).filter(|_| member.informed.is_some())?;
        Some((explainer, &member.calibration[..]))
    }

    /// What was released about each client before the first step.
    pub fn counted(&self) -> impl Iterator<Item = Vec<Counted>> {
        self.members.iter().map(|member| member.line.counted())
    }

    /// A new run begins.
    pub fn reset(&mut self) {
        for member in &mut self.members {
            member.sending.iter_mut().for_each(VendorModel::reset);
        }
        self.memory = self.foreteller.memory();
    }

    /// `steps` without data.
    pub fn skip(&mut self, steps: usize) {
        for (m, member) in self.members.iter_mut().enumerate() {
            member.sending.iter_mut().for_each(|model| model.skip(steps));
            (0..steps).for_each(|_| self.foreteller.hear(&mut self.memory, m, None));
        }
    }

    /// Before a step: what came so far foretells it.
    pub fn foretell(&mut self, step: usize, time: Timestamp, books: &mut Books, tap: &Tap) {
        for (m, member) in self.members.iter_mut().enumerate() {
            member.foretold.clear();
            if self.foreteller.foretell(&self.memory, m, &mut self.epsilon) {
                // What cannot be noised or afforded is not sent.
                let account = &mut Account { books, client: m, time };
                if let Some(foretold) = member.line.hear_entered(step, &self.epsilon, account, tap)
                {
                    member.foretold.extend_from_slice(foretold.epsilon());
                }
            }
        }
    }

    /// A client's step: its state goes out, and beside its own symbol stands what of the step its
    /// explainer does not explain, where that one had something to say.
    pub fn step(
        &mut self,
        step: usize,
        y: &[f32],
        watching: &VendorModel,
        (reading, r_w): (Reading, &[f32]),
        account: &mut Account<'_>,
        tap: &Tap,
    ) -> Option<Symbol> {
        let client = account.client;
        let member = &mut self.members[client];
        if let Some(sending) = &mut member.sending {
            sending.step(y, None);
        }
        let model = member.sending.as_ref().unwrap_or(watching);
        // While it says nothing about its step it says nothing about its state.
        let x_hat = &model.output().x_hat;
        let said = reading.symbol.and_then(|_| member.line.say_entered(step, x_hat, account, tap));
        self.foreteller.hear(&mut self.memory, client, said.as_ref().map(Innovation::z));
        reading.symbol?;
        if member.foretold.is_empty() {
            return None;
        }
        let beside = member.informed.as_mut()?.symbol(r_w, &member.foretold)?;
        // No other client explains a flat line.
        Some(if reading.flat_line { self.grading.highest() } else { beside })
    }
}
