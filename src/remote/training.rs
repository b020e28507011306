//! The models of a federation over the broker, as the server has it: which ones all parties hold, or a
//! training of all of them.
//!
//! ```text
//!  server ── Begin ──► sites: read rows, make proprietary models ── Ready ──► server
//!         ── Rows ───► round 0: states up, gradients down, round 1: states up, …
//!         ── Lesson ─► what sites tell of their states, so that the server learns who influences whom
//!         ── Learned ► sites calibrate and keep their part; the server keeps its own
//! ```
//!
//! Each round needs the one before, so that one round is on its way at a time: a round trip each, without
//! a copy at the broker and without a write to disk. A round that is lost is repeated, and counted. When
//! a site or the server forgets the training, because it was killed, the training begins anew.

use std::time::Instant;

use jiff::Timestamp;

use super::RemoteError;
use super::desk::Desk;
use super::envelope::{Down, Holds, Lesson, MOST_BYTES, MOST_OF_A_ROUND, MOST_ROWS, Ready, Up};
use super::envelope::{nanosecond, rows, stretches};
use super::inquiry::{Broken, Inquiry, Unfit};
use crate::engine::prepare::PrepareError;
use crate::engine::prepare::apart::{ServerModels, ServerPart};
use crate::federation::FederationError;
use crate::federation::History;
use crate::federation::apart::{Plan, Schedule, ServerCourse};
use crate::server::influence::heard::Heard;
use crate::session::Session;
use crate::session::settings::Federation;
use crate::wire::Message;

/// No state has more numbers.
const MOST_STATES: u32 = 4096;
/// Bytes of a message of states beside its numbers, at most.
const BESIDE: usize = 32;

/// Why a training did not end.
enum Ended {
    Broken(Broken),
    Failed(RemoteError),
}

impl From<Broken> for Ended {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl<E: Into<PrepareError>> From<E> for Ended {
    fn from(why: E) -> Self {
        Self::Failed(RemoteError::Prepare(Box::new(why.into())))
    }
}

/// The models that the run is with: those that everybody has, or else new ones.
pub(super) fn agree(
    desk: &mut Desk,
    session: &Session,
    names: &[String],
    held: Vec<ServerModels>,
) -> Result<ServerModels, RemoteError> {
    let lost = |desk: &mut Desk| desk.failed.take().unwrap_or(RemoteError::Interrupted);
    let words = desk.left.iter().map(|left| (!left).then_some(Down::Models)).collect();
    let all = Inquiry { words, attempt: None, once: false };
    let holds = desk.inquire(&all, &mut |_, _, up| match up {
        Up::Hello { models, .. } => Ok(models),
        _ => Err(Unfit::Other),
    });
    let holds: Vec<Holds> = holds.map_err(|_| lost(desk))?.into_iter().flatten().collect();
    let known = |models: &ServerModels| holds.iter().all(|site| site.kept.contains(&models.id));
    if let Some(models) = held.into_iter().find(known) {
        let word = Down::Use { models: models.id };
        use_models(desk, &word, models.id, None).map_err(|_| lost(desk))?;
        return Ok(models);
    }
    if let Some(left) = desk.left.iter().position(|left| *left) {
        let name = &names[left];
        return Err(RemoteError::Refused(format!(
            "there are no models that all others have, and {name} cannot be left out of a training: \
             take it out of the session"
        )));
    }
    let before = asked_again(desk);
    let mut broken = 0;
    loop {
        // Later trainings have larger numbers, also after a new start.
        let attempt = nanosecond(Timestamp::now()).unsigned_abs();
        match train(desk, session, names, attempt) {
            Ok(models) => {
                let again = asked_again(desk) - before;
                desk.say(&format!(
                    "training is over: {again} words repeated, {broken} trainings begun anew"
                ));
                return Ok(models);
            }
            Err(Ended::Broken(Broken::Failed)) => return Err(lost(desk)),
            Err(Ended::Broken(Broken::Forgotten { client })) => {
                broken += 1;
                let name = &names[client];
                desk.say(&format!("{name} has forgotten the training: it begins anew"));
            }
            Err(Ended::Failed(why)) => {
                let words = Down::Refused { why: format!("the training failed: {why}") };
                (0..names.len()).for_each(|client| desk.tell(client, &words));
                return Err(why);
            }
        }
    }
}

/// Words that had to be repeated so far.
fn asked_again(desk: &Desk) -> u64 {
    desk.accounts.iter().map(|account| account.counts.asked_again).sum()
}

/// Waits until every site runs with these models.
fn use_models(
    desk: &mut Desk,
    word: &Down,
    models: u64,
    attempt: Option<u64>,
) -> Result<(), Broken> {
    let words = desk.left.iter().map(|left| (!left).then(|| word.clone())).collect();
    desk.inquire(&Inquiry { words, attempt, once: false }, &mut |_, _, up| match up {
        Up::Hello { models: holds, .. } if holds.used == Some(models) => Ok(()),
        _ => Err(Unfit::Other),
    })?;
    desk.models = Some(models);
    Ok(())
}

/// One training, from its beginning.
fn train(
    desk: &mut Desk,
    session: &Session,
    names: &[String],
    attempt: u64,
) -> Result<ServerModels, Ended> {
    let begin = Instant::now();
    let ready = gather(desk, attempt)?;
    let first = &ready[0];
    if let Some((m, what)) =
        ready.iter().enumerate().find_map(|(m, r)| Some((m, differs(first, r)?)))
    {
        let (one, other) = (&names[0], &names[m]);
        let why = format!("{one} and {other} cannot learn together: they differ in {what}");
        return Err(FederationError::Sites(why).into());
    }
    let states: Vec<usize> = ready.iter().map(|ready| ready.states as usize).collect();
    let measured: Vec<Vec<bool>> = ready.iter().filter_map(|r| rows(&r.measured)).collect();
    let common = Schedule::rows(&session.model, &measured);
    let mut schedule = Schedule::new(&session.model, ServerPart::seed(session), &common)?;
    let rounds = schedule.rounds();
    fits_an_envelope(session, &states)?;
    desk.say(&format!("training over the broker: {rounds} rounds"));
    let mut part = ServerPart {
        half: ServerPart::half(session, &states)?,
        history: History::default(),
        every: first.every,
        period_s: first.period_s,
        from: Timestamp::from_nanosecond(i128::from(first.span.0)).unwrap_or_default(),
    };
    let mut history = History::default();
    let mut reached = None;
    let mut on_progress = |progress: crate::federation::Progress<'_>| {
        reached = Some((progress.round, progress.server_loss));
        std::ops::ControlFlow::Continue(())
    };
    let mut course = ServerCourse::new(&mut history, &mut on_progress, rounds);
    let word = Down::Rows { attempt, rows: stretches(&common) };
    let mut words: Vec<Option<Down>> = names.iter().map(|_| Some(word.clone())).collect();
    let mut plan = schedule.next();
    let mut round = 0;
    loop {
        let states = take_round(desk, &part, words, (attempt, round), plan.as_ref())?;
        let Some(present) = &plan else { break };
        let answer = part.half.round(present, &states)?;
        course.round(&answer)?;
        let back = |m: usize| {
            let encode = |message: &crate::wire::ToSite| {
                let mut bytes = Vec::new();
                message.encode(&mut bytes);
                bytes
            };
            answer.gradients.get(m).map_or(Vec::new(), |g| g.iter().map(encode).collect())
        };
        words = (0..names.len())
            .map(|m| Some(Down::Round { attempt, round, gradients: back(m) }))
            .collect();
        plan = schedule.next();
        round += 1;
    }
    drop(course);
    part.history = history;
    let loss = reached.map_or(f64::NAN, |(_, loss)| loss);
    let seconds = begin.elapsed().as_secs_f64();
    desk.say(&format!("{round} rounds in {seconds:.1} s, server loss {loss:.4}"));
    let lessons = lessons(desk, attempt, &states)?;
    let mut notices = Vec::new();
    let keep = &mut |what: &str| notices.push(what.to_owned());
    let models = part.finish(session, names, lessons.as_ref(), keep)?;
    for what in &notices {
        desk.say(what);
    }
    let word = Down::Learned { attempt, models: models.id };
    use_models(desk, &word, models.id, Some(attempt))?;
    Ok(models)
}

/// Waits until every site is ready for a training.
fn gather(desk: &mut Desk, attempt: u64) -> Result<Vec<Ready>, Broken> {
    let words = desk.accounts.iter().map(|_| Some(Down::Begin { attempt })).collect();
    let inquiry = Inquiry { words, attempt: Some(attempt), once: false };
    let ready = desk.inquire(&inquiry, &mut |desk, client, up| match up {
        Up::Ready(ready) if ready.attempt == attempt => {
            let is_sound =
                (1..=MOST_STATES).contains(&ready.states) && rows(&ready.measured).is_some();
            if is_sound {
                desk.joined[client] = Some(attempt);
            }
            is_sound.then_some(ready).ok_or(Unfit::Malformed)
        }
        _ => Err(Unfit::Other),
    })?;
    Ok(ready.into_iter().flatten().collect())
}

/// What two sites must have in common, where they do not.
fn differs(one: &Ready, other: &Ready) -> Option<&'static str> {
    let rows = |ready: &Ready| ready.measured.iter().sum::<u64>();
    if one.every != other.every {
        return Some("the samples of a step: the session must say sampling.decimate: Every(N)");
    }
    if one.period_s.total_cmp(&other.period_s).is_ne() {
        return Some("the length of a step");
    }
    if one.span != other.span || rows(one) != rows(other) {
        return Some("the rows of the fit range: they must be of the same times");
    }
    None
}

/// Refuses a session whose rounds are longer than an envelope may be.
fn fits_an_envelope(session: &Session, states: &[usize]) -> Result<(), FederationError> {
    let messages = match session.model.federation {
        Federation::Online { .. } => 1,
        Federation::Batched { .. } => session.model.batch * session.model.window,
    };
    let most = states.iter().max().copied().unwrap_or(0);
    let bytes = messages.saturating_mul(2 * size_of::<f32>() * most + BESIDE);
    if messages <= MOST_OF_A_ROUND && bytes < MOST_BYTES {
        return Ok(());
    }
    Err(FederationError::Sites(format!(
        "a round of {messages} messages is too long for a broker: make model.batch or model.window smaller"
    )))
}

/// Puts `words` to all sites and waits for their states of a round; after the last one, for their silence.
fn take_round(
    desk: &mut Desk,
    part: &ServerPart,
    words: Vec<Option<Down>>,
    (attempt, round): (u64, u64),
    plan: Option<&Plan>,
) -> Result<Vec<Vec<Message>>, Broken> {
    let inquiry = Inquiry { words, attempt: Some(attempt), once: true };
    let states = desk.inquire(&inquiry, &mut |desk, client, up| match up {
        Up::Round { attempt: of, round: number, messages } if (of, number) == (attempt, round) => {
            let Some(plan) = plan else { return Ok(Vec::new()) };
            let messages = desk.read(client, None, &messages).ok_or(Unfit::Other)?;
            let fits = part.half.fits(plan, client, &messages);
            fits.then_some(messages).ok_or(Unfit::Malformed)
        }
        _ => Err(Unfit::Other),
    })?;
    Ok(states.into_iter().flatten().collect())
}

/// What every site tells of its states over both stretches; none where one of them has nothing to tell.
fn lessons(
    desk: &mut Desk,
    attempt: u64,
    states: &[usize],
) -> Result<Option<[Vec<Heard>; 2]>, Broken> {
    let mut heard = [Vec::new(), Vec::new()];
    for (stretch, heard) in (0_u8..).zip(&mut heard) {
        let first = part_of(desk, attempt, stretch, 0, &vec![true; states.len()])?;
        let mut lessons: Vec<Lesson> = first.into_iter().flatten().collect();
        let parts = |lesson: &Lesson| [lesson.parts.0, lesson.parts.1][usize::from(stretch)];
        if lessons.iter().any(|lesson| parts(lesson) == 0) {
            return Ok(None);
        }
        let most = lessons.iter().map(parts).max().unwrap_or(0);
        for part in 1..most {
            let wanted: Vec<bool> = lessons.iter().map(|lesson| part < parts(lesson)).collect();
            let more = part_of(desk, attempt, stretch, part, &wanted)?;
            for (lesson, more) in lessons.iter_mut().zip(more) {
                lesson.messages.extend(more.into_iter().flat_map(|more| more.messages));
            }
        }
        for (client, (lesson, states)) in lessons.iter().zip(states).enumerate() {
            let mut of_client = Heard::new(*states);
            // Every part was read when it came.
            let messages = desk.read(client, None, &lesson.messages).unwrap_or_default();
            let steps = usize::try_from(lesson.steps).unwrap_or(0);
            of_client.receive(client, steps, messages);
            heard.push(of_client);
        }
    }
    Ok(Some(heard))
}

/// One part of what the wanted sites tell.
fn part_of(
    desk: &mut Desk,
    attempt: u64,
    stretch: u8,
    part: u32,
    wanted: &[bool],
) -> Result<Vec<Option<Lesson>>, Broken> {
    let word = Down::Lesson { attempt, stretch, part };
    let words = wanted.iter().map(|wanted| wanted.then(|| word.clone())).collect();
    let inquiry = Inquiry { words, attempt: Some(attempt), once: true };
    desk.inquire(&inquiry, &mut |desk, client, up| match up {
        Up::Lesson(lesson)
            if (lesson.attempt, lesson.stretch, lesson.part) == (attempt, stretch, part) =>
        {
            desk.read(client, None, &lesson.messages).ok_or(Unfit::Other)?;
            let is_sound = lesson.steps <= MOST_ROWS;
            is_sound.then_some(lesson).ok_or(Unfit::Malformed)
        }
        _ => Err(Unfit::Other),
    })
}
