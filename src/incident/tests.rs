mod carried;
mod course;
mod operator;
mod property;
mod scenario;
mod verdict;

use jiff::Timestamp;

use super::*;
use crate::fact::Fact;
use crate::session::Mode;

const PERIOD_S: i64 = 10;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_660_290_000 + second).expect("a small second is an instant")
}

/// Four clients, a step every ten seconds, and what is held true until it is changed.
struct Scene {
    desk: Annunciator,
    step: u64,
    clients: [ClientState; 4],
    outcome: Option<Outcome>,
    quality: Vec<QualityNote>,
}

const P1: usize = 0;
const P2: usize = 1;
const P3: usize = 2;
const P4: usize = 3;

impl Scene {
    fn new() -> Self {
        let names = ["P1", "P2", "P3", "P4"].map(String::from).to_vec();
        let desk = Annunciator::new(names, Mode::Evidence, Rules::with_period(10.0), at(0));
        Self {
            desk,
            step: 0,
            clients: [ClientState::default(); 4],
            outcome: None,
            quality: Vec::new(),
        }
    }

    fn second(&self) -> i64 {
        self.step.cast_signed() * PERIOD_S
    }

    /// Raises a client with its onset at `second`.
    fn raise(&mut self, client: usize, second: i64) -> &mut Self {
        self.clients[client].raised_since = Some(at(second));
        self
    }

    fn quiet(&mut self, client: usize) -> &mut Self {
        self.clients[client] = ClientState::default();
        self
    }

    fn own_fault(&mut self, client: usize) -> &mut Self {
        self.clients[client].own_fault = true;
        self
    }

    /// The decision names `root` with certainty, or nobody.
    fn decide(&mut self, number: u64, onset: i64, root: Option<usize>) -> &mut Self {
        let posterior = (0..4).map(|c| if Some(c) == root { 0.97 } else { 0.01 }).collect();
        let onset = at(onset);
        let disturbance =
            Disturbance { number, root, would_now_say: root, posterior, ..Disturbance::default() };
        self.outcome = Some(Outcome { disturbance, onset, ..Outcome::default() });
        self
    }

    fn believe(&mut self, posterior: [f64; 4]) -> &mut Self {
        if let Some(outcome) = &mut self.outcome {
            outcome.disturbance.posterior = posterior.to_vec();
        }
        self
    }

    fn over(&mut self, why: Closing) -> &mut Self {
        if let Some(outcome) = &mut self.outcome {
            outcome.closed = Some(why);
        }
        self
    }

    /// One step; what closed is forgotten afterwards.
    fn step(&mut self) -> Vec<Fact> {
        self.step += 1;
        let mut decision = Decision::new(0);
        decision.clients.extend(self.clients);
        decision.outcomes.extend(self.outcome.clone());
        let (time, number) = (at(self.second()), self.step);
        let step = Step { time, number, decision: &decision, quality: &self.quality };
        let facts = self.desk.step(&step);
        if self.outcome.as_ref().is_some_and(|outcome| outcome.closed.is_some()) {
            self.outcome = None;
        }
        facts
    }

    fn steps(&mut self, count: usize) -> Vec<Fact> {
        (0..count).flat_map(|_| self.step()).collect()
    }

    fn act(&mut self, action: OperatorAction) -> Result<Receipt, Refusal> {
        self.desk.act(Order { who: "op2".to_owned(), action, why: None })
    }

    fn done(&mut self, action: OperatorAction) -> u64 {
        self.act(action).expect("an order that is allowed").entry
    }

    fn state(&self, incident: u64) -> AlarmState {
        self.incident(incident).alarm.state
    }

    fn incident(&self, number: u64) -> &Incident {
        self.desk.incident(number).expect("an incident of that number")
    }

    fn log(&self) -> Vec<String> {
        let names = self.desk.names();
        self.desk.log().events().iter().map(|event| event.words(names)).collect()
    }

    /// #1, root P1, with P2 as its effect 20 s later; taken at step 4.
    fn fault_at_p1() -> Self {
        let mut scene = Self::new();
        scene.raise(P1, 10).steps(2);
        scene.raise(P2, 30).decide(1, 10, Some(P1)).step();
        scene
    }
}

fn lines(facts: &[Fact]) -> String {
    facts.iter().map(Fact::to_line).collect::<Vec<_>>().join("\n")
}

fn clients<'a>(members: impl Iterator<Item = &'a Member>) -> Vec<usize> {
    members.map(|member| member.client).collect()
}
