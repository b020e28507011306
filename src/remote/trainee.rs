//! A site in a training over the broker: it answers every word of the server, and a word that comes again
//! with the same answer.
//!
//! What it released in a round is kept in memory until the next round, and never written: a site that is
//! killed begins the training anew, and everybody with it.

use super::RemoteError;
use super::envelope::{Down, Lesson, PredictionPart, Ready, Up, nanosecond, rows, seal, stretches};
use crate::engine::prepare::PrepareError;
use crate::engine::prepare::apart::{ServerPart, SiteModels, SitePart, unwatched};
use crate::federation::apart::SiteHalf;
use crate::federation::schedule::{Plan, Schedule};
use crate::privacy::Trained;
use crate::session::Session;
use crate::wire::{Outgoing, ToSite};

/// Messages in one part of a lesson.
const PART: usize = 4096;

/// What a site says to a word.
pub(super) enum Reply {
    /// Nothing: the word is of another training, or cannot be read.
    None,
    /// These bytes; `once` without a copy at the broker.
    Send { sealed: Vec<u8>, once: bool },
    /// The training is over.
    Learned(Box<SiteModels>),
}

/// A site that learns.
pub(super) struct Trainee<'a> {
    session: &'a Session,
    client: &'a str,
    /// Its place, and how many clients there are.
    place: (usize, usize),
    /// Its rows and its proprietary model, once they are needed.
    part: Option<SitePart>,
    training: Option<Training>,
    /// What was released in trainings before this start.
    before: Vec<Trained>,
    /// What the present training will have released, until that is written down.
    reserved: Option<Vec<Trained>>,
}

/// A training in which it takes part.
struct Training {
    attempt: u64,
    half: SiteHalf,
    ready: Vec<u8>,
    schedule: Option<Schedule>,
    /// The round whose states were sent last, what it is about, and what was sent.
    round: u64,
    plan: Option<Plan>,
    sent: Vec<u8>,
    lessons: Option<Lessons>,
    /// Parts of what was foretold that came: each counts once.
    foretold: Vec<(u8, u32)>,
}

/// Both stretches as they leave, part by part.
struct Lessons {
    steps: [u64; 2],
    parts: [Vec<Vec<Vec<u8>>>; 2],
}

impl<'a> Trainee<'a> {
    pub(super) fn new(
        session: &'a Session,
        client: &'a str,
        place: (usize, usize),
        before: Vec<Trained>,
    ) -> Self {
        Self { session, client, place, part: None, training: None, before, reserved: None }
    }

    /// What must be written down before anything of the training is sent.
    pub(super) fn take_reserved(&mut self) -> Option<Vec<Trained>> {
        self.reserved.take()
    }

    /// The training in which it takes part.
    pub(super) fn attempt(&self) -> Option<u64> {
        self.training.as_ref().map(|training| training.attempt)
    }

    /// Answers a word about a training.
    pub(super) fn hear(
        &mut self,
        word: Down,
        say: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Reply, RemoteError> {
        let failed = |why: PrepareError| RemoteError::Prepare(Box::new(why));
        match word {
            Down::Begin { attempt } => {
                if self.attempt() != Some(attempt) {
                    self.begin(attempt, say).map_err(failed)?;
                }
                let ready = self.training.as_ref().map(|training| training.ready.clone());
                Ok(ready.map_or(Reply::None, |sealed| Reply::Send { sealed, once: false }))
            }
            Down::Rows { attempt, rows: lengths } => {
                let Some(training) = self.of(attempt) else { return Ok(Reply::None) };
                if training.schedule.is_none() {
                    let Some(rows) = rows(&lengths) else { return Ok(Reply::None) };
                    let (session, seed) = (self.session, ServerPart::seed(self.session));
                    let schedule = Schedule::new(&session.model, seed, &rows);
                    let schedule = schedule.map_err(|why| failed(why.into()))?;
                    let (Some(training), Some(part)) = (&mut self.training, &self.part) else {
                        return Ok(Reply::None);
                    };
                    let messages = schedule.messages();
                    self.reserved = Some(part.reserve(session, &training.half, messages));
                    training.schedule = Some(schedule);
                    training.take_round().map_err(failed)?;
                }
                Ok(self.of(attempt).map_or(Reply::None, |training| training.again()))
            }
            Down::Round { attempt, round, gradients } => {
                let Some(training) = self.of(attempt) else { return Ok(Reply::None) };
                if round == training.round && !training.learn(&gradients).map_err(failed)? {
                    return Ok(Reply::None);
                }
                Ok(if round < training.round { training.again() } else { Reply::None })
            }
            Down::Lesson { attempt, stretch, part } => {
                self.lesson(attempt, stretch, part).map_err(failed)
            }
            Down::Foretold(foretold) => self.foretold(&foretold).map_err(failed),
            Down::Learned { attempt, models } => {
                let is_this = self.attempt() == Some(attempt);
                let (Some(training), Some(part), true) =
                    (self.training.take(), self.part.take(), is_this)
                else {
                    return Ok(Reply::None);
                };
                let rounds = usize::try_from(training.round).unwrap_or(usize::MAX);
                let learned = part.finish(self.session, training.half, (models, rounds), say);
                Ok(Reply::Learned(Box::new(learned.map_err(failed)?)))
            }
            Down::Models
            | Down::Use { .. }
            | Down::Next { .. }
            | Down::Question { .. }
            | Down::Stop
            | Down::Alone
            | Down::Wait { .. }
            | Down::Enrol { .. }
            | Down::Predicted { .. }
            | Down::Refused { .. } => Ok(Reply::None),
        }
    }

    /// Makes models of its own without anybody else. Nothing of that is released.
    pub(super) fn alone(
        &mut self,
        say: &mut (dyn FnMut(&str) + Send),
    ) -> Result<SiteModels, PrepareError> {
        let (session, client) = (self.session, self.client);
        let mut part = SitePart::read(session, self.place, client, &mut unwatched(say))?;
        part.goes_after(&self.before);
        part.alone(session, say)
    }

    fn of(&mut self, attempt: u64) -> Option<&mut Training> {
        self.training.as_mut().filter(|training| training.attempt == attempt)
    }

    /// Gets ready for a training; one that went before is broken off.
    fn begin(
        &mut self,
        attempt: u64,
        say: &mut (dyn FnMut(&str) + Send),
    ) -> Result<(), PrepareError> {
        let (before, part) = (self.training.take(), self.part.take());
        let mut part = if let Some(part) = part {
            part
        } else {
            let (session, client) = (self.session, self.client);
            let mut part = SitePart::read(session, self.place, client, &mut unwatched(say))?;
            part.goes_after(&self.before);
            part
        };
        if let Some(before) = before {
            say(
                "the training was broken off, by a new start of the server or of a site: it begins anew",
            );
            part.broken_off(self.session, &before.half);
        }
        let half = part.half(self.session)?;
        let (from, until) = part.fit_span();
        let ready = Up::Ready(Ready {
            attempt,
            every: part.every(),
            period_s: part.period_s(),
            span: (nanosecond(from), nanosecond(until)),
            states: u32::try_from(half.states()).unwrap_or(u32::MAX),
            measured: stretches(&half.measured()),
        });
        self.part = Some(part);
        self.training = Some(Training {
            attempt,
            half,
            ready: seal(&ready).map_err(|why| unsealed(&why))?,
            schedule: None,
            round: 0,
            plan: None,
            sent: Vec::new(),
            lessons: None,
            foretold: Vec::new(),
        });
        Ok(())
    }

    /// Takes a part of what the server foretells.
    fn foretold(&mut self, foretold: &PredictionPart) -> Result<Reply, PrepareError> {
        let PredictionPart { attempt, stretch, part, explainer, messages } = foretold;
        let (attempt, stretch, part) = (*attempt, *stretch, *part);
        let messages: Result<Vec<ToSite>, _> = messages.iter().map(|m| ToSite::decode(m)).collect();
        let training = self.training.as_mut().filter(|training| training.attempt == attempt);
        let (Some(training), Some(of_site), Ok(messages)) = (training, &mut self.part, messages)
        else {
            return Ok(Reply::None);
        };
        if !training.foretold.contains(&(stretch, part)) {
            training.foretold.push((stretch, part));
            let explainer = explainer.map(|explainer| explainer as usize);
            of_site.hear_foretold(usize::from(stretch), explainer, &messages);
        }
        let told = seal(&Up::Told { attempt, stretch, part }).map_err(|why| unsealed(&why))?;
        Ok(Reply::Send { sealed: told, once: true })
    }

    /// One part of what it tells of its states. It is released once, when it is asked for first.
    fn lesson(&mut self, attempt: u64, stretch: u8, part: u32) -> Result<Reply, PrepareError> {
        let Self { session, part: of_site, training, .. } = self;
        let training = training.as_mut().filter(|training| training.attempt == attempt);
        let (Some(training), Some(of_site)) = (training, of_site) else { return Ok(Reply::None) };
        let lessons = match training.lessons.take() {
            Some(lessons) => lessons,
            None => Lessons::of(of_site.teach(session)?),
        };
        let lessons = training.lessons.insert(lessons);
        let place = usize::from(stretch.min(1));
        let count = |parts: &Vec<_>| u32::try_from(parts.len()).unwrap_or(u32::MAX);
        let messages = lessons.parts[place].get(part as usize).cloned().unwrap_or_default();
        let [fit, calibration] = &lessons.parts;
        let lesson = Up::Lesson(Lesson {
            attempt,
            stretch,
            part,
            parts: (count(fit), count(calibration)),
            steps: lessons.steps[place],
            messages,
        });
        Ok(Reply::Send { sealed: seal(&lesson).map_err(|why| unsealed(&why))?, once: true })
    }
}

impl Lessons {
    fn of(lessons: Option<[(u64, Vec<Outgoing>); 2]>) -> Self {
        let Some(lessons) = lessons else {
            return Self { steps: [0; 2], parts: [Vec::new(), Vec::new()] };
        };
        let steps = [lessons[0].0, lessons[1].0];
        let parts = lessons.map(|(_, messages)| {
            let bytes = encoded(&messages);
            // A stretch without a message has one part, which is empty.
            if bytes.is_empty() {
                vec![bytes]
            } else {
                bytes.chunks(PART).map(<[_]>::to_vec).collect()
            }
        });
        Self { steps, parts }
    }
}

impl Training {
    /// Its states of the next round; nothing after the last.
    fn take_round(&mut self) -> Result<(), PrepareError> {
        self.plan = self.schedule.as_mut().and_then(Iterator::next);
        let messages = match &self.plan {
            Some(plan) => encoded(&self.half.release(plan)?),
            None => Vec::new(),
        };
        let (attempt, round) = (self.attempt, self.round);
        self.sent = seal(&Up::Round { attempt, round, messages }).map_err(|why| unsealed(&why))?;
        Ok(())
    }

    /// Learns from what came back for the present round and takes the next; false where that cannot be
    /// read.
    fn learn(&mut self, gradients: &[Vec<u8>]) -> Result<bool, PrepareError> {
        let back: Result<Vec<ToSite>, _> = gradients.iter().map(|g| ToSite::decode(g)).collect();
        let (Some(plan), Ok(back)) = (&self.plan, back) else { return Ok(false) };
        if !self.half.fits(plan, &back) {
            return Ok(false);
        }
        self.half.learn(plan, &back)?;
        self.round += 1;
        self.take_round()?;
        Ok(true)
    }

    /// What was sent last.
    fn again(&self) -> Reply {
        Reply::Send { sealed: self.sent.clone(), once: true }
    }
}

fn encoded(messages: &[Outgoing]) -> Vec<Vec<u8>> {
    let encode = |message: &Outgoing| {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        bytes
    };
    messages.iter().map(encode).collect()
}

/// An envelope that cannot be written.
fn unsealed(why: &super::envelope::EnvelopeError) -> PrepareError {
    crate::federation::FederationError::Sites(why.to_string()).into()
}
