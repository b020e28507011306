//! The server's decision in evidence mode: reports of one step in, the decision about it out.

use jiff::Timestamp;

use super::decision::{Decision, Outcome};
use super::health::{CalibrationHealth, Report, Standing};
use super::inference::{Change, Closing, Disturbance, Inference, Rules};
use super::reach::Reach;
use crate::evidence::enrolment::Enrolment;
use crate::evidence::symbol::Grading;

/// An onset lies no further back than this many steps.
const LOOK_BACK: usize = 64;

/// Enrolments, and the sequential decision among those who have enrolled.
#[derive(Debug, Clone)]
pub(super) struct EvidenceDecider {
    grading: Grading,
    rules: Rules,
    reach: Reach,
    enrolments: Vec<Option<Enrolment>>,
    /// The decision before the first message: every run begins with it.
    fresh: Option<Inference>,
    inference: Option<Inference>,
    /// Who takes what it shows as normal from here on, and of how many steps.
    pub(crate) renewed: Vec<(usize, usize)>,
    /// Since when each client's evidence has not been back at zero: step and time.
    risen: Vec<Option<(u64, Timestamp)>>,
    /// Times of the last steps, a ring by the inference's number of the step.
    times: [Timestamp; LOOK_BACK],
}

impl EvidenceDecider {
    pub(crate) fn new(clients: usize, grading: Grading, arl0_steps: f64, reach: Reach) -> Self {
        Self {
            grading,
            rules: Rules::with_arl0(arl0_steps),
            reach,
            enrolments: vec![None; clients],
            fresh: None,
            inference: None,
            renewed: Vec::with_capacity(clients),
            risen: vec![None; clients],
            times: [Timestamp::UNIX_EPOCH; LOOK_BACK],
        }
    }

    /// A client enrols, for the first time or again.
    pub(crate) fn enrol(&mut self, client: usize, enrolment: &Enrolment) {
        self.enrolments[client] = Some(enrolment.clone());
        if let (Some(fresh), Some(inference)) = (&mut self.fresh, &mut self.inference) {
            fresh.enrol_again(client, enrolment.clone());
            inference.enrol_again(client, enrolment.clone());
            return;
        }
        if self.enrolments.iter().all(Option::is_some) {
            self.begin();
        }
    }

    /// Decides from here on, with those who have enrolled.
    fn begin(&mut self) {
        self.fresh = self.among();
        self.inference.clone_from(&self.fresh);
    }

    /// A decision among those who have enrolled, before the first message.
    fn among(&self) -> Option<Inference> {
        let (grading, reach) = (self.grading.clone(), self.reach.clone());
        Inference::among(grading, self.rules, &self.enrolments, reach)
    }

    pub(crate) fn forget_enrolments(&mut self) {
        self.enrolments.fill(None);
        (self.fresh, self.inference) = (None, None);
    }

    /// The health of a client's calibration; none before the client has sent it.
    pub(crate) fn calibration(&self, client: usize) -> Option<CalibrationHealth> {
        let halves = self.enrolments[client].as_ref()?.halves.as_ref()?;
        let elevated = self.grading.elevated();
        Some(CalibrationHealth::judge([&halves[0], &halves[1]], elevated, self.rules.arl0))
    }

    /// Steps of nothing but the strongest symbol after which a client alarms, b_m/λ⁺; none before it
    /// has enrolled.
    pub(crate) fn alarm_steps(&self, client: usize) -> Option<f64> {
        self.enrolments[client].as_ref()?;
        match &self.fresh {
            Some(inference) => Some(inference.alarm_steps(client)),
            None => Some(self.among()?.alarm_steps(client)),
        }
    }

    /// A new run begins: nothing of the one before counts.
    pub(crate) fn reset(&mut self) {
        self.inference.clone_from(&self.fresh);
        self.risen.fill(None);
    }

    pub(crate) fn set_arl0(&mut self, arl0_steps: f64) {
        self.rules.arl0 = arl0_steps;
        for inference in self.fresh.iter_mut().chain(&mut self.inference) {
            inference.set_arl0(arl0_steps);
        }
    }

    /// One step. Who has not enrolled by the first one is not here until it does.
    pub(crate) fn step(&mut self, reports: &[Report], time: Timestamp, decision: &mut Decision) {
        if self.inference.is_none() {
            self.begin();
        }
        let Self { inference: Some(inference), times, renewed, risen, .. } = self else { return };
        let now = inference.steps() + 1;
        times[now as usize % LOOK_BACK] = time;
        for change in inference.step(reports) {
            match change {
                Change::Ended(incident, Closing::PersistentChange) => {
                    let since = |onset: u64| (now + 1).saturating_sub(onset) as usize;
                    renewed.extend(incident.members().map(|(m, onset)| (m, since(onset))));
                }
                // By now its onset may lie further back than times are kept; the annunciator knows
                // it from the opening.
                Change::Closed(disturbance, closing) => decision.outcomes.push(Outcome {
                    onset: time_of(times, disturbance.onset, now),
                    disturbance: disturbance.clone(),
                    silent_source: None,
                    closed: Some(*closing),
                }),
                Change::Opened(_)
                | Change::Frozen(_)
                | Change::Continued(_)
                | Change::Revised(_)
                | Change::Ended(..) => {}
            }
        }
        if let Some(disturbance) = inference.incident().or(inference.standing_incident()) {
            decision.outcomes.push(Outcome {
                onset: time_of(times, disturbance.onset, now),
                disturbance: disturbance.clone(),
                silent_source: disturbance.root.and_then(|root| inference.silent_source(root)),
                closed: None,
            });
        }
        for (m, (risen, state)) in risen.iter_mut().zip(&mut decision.clients).enumerate() {
            let onset = Some(inference.onset(m)).filter(|_| inference.evidence(m) > 0.0);
            *risen = onset.map(|onset| match *risen {
                Some(known) if known.0 == onset => known,
                _ => (onset, time_of(times, onset, now)),
            });
            state.raised_since = risen.filter(|_| inference.is_affected(m)).map(|(_, time)| time);
            state.own_fault = inference.has_own_fault(m);
            state.alarms = state.own_fault;
            state.explained = inference.explained(m);
        }
    }

    /// What clients have shown is the new normal. `disturbance` is the decision's own number of the
    /// incident, if it is one of its own.
    pub(crate) fn accept(
        &mut self,
        clients: impl Iterator<Item = usize>,
        disturbance: Option<u64>,
    ) {
        let Some(inference) = &mut self.inference else { return };
        let is_open = |open: &Disturbance| Some(open.number) == disturbance;
        if inference.incident().is_some_and(is_open) {
            inference.end(Closing::Accepted);
        } else if inference.standing_incident().is_some_and(is_open) {
            inference.stop_standing();
        }
        clients.for_each(|client| inference.forget(client));
    }

    /// What was accepted is not. Says whether the incident is followed again.
    pub(crate) fn take_back(&mut self, disturbance: Option<u64>) -> bool {
        disturbance.is_some() && self.inference.as_mut().is_some_and(Inference::take_back)
    }

    /// S_m by b_m.
    pub(crate) fn share_of_alarm(&self, client: usize) -> Option<f64> {
        let inference = self.inference.as_ref()?;
        Some(inference.evidence(client) / inference.threshold(client))
    }

    /// How far a client is believed.
    pub(crate) fn standing(&self, client: usize) -> Standing {
        self.inference.as_ref().map_or(Standing::default(), |inference| inference.standing(client))
    }
}

/// When a step was, or the earliest that is remembered.
fn time_of(times: &[Timestamp; LOOK_BACK], step: u64, now: u64) -> Timestamp {
    let earliest = (now + 1).saturating_sub(LOOK_BACK as u64).max(1);
    times[step.clamp(earliest, now.max(earliest)) as usize % LOOK_BACK]
}
