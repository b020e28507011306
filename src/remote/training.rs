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
use super::envelope::{self, nanosecond, rows, stretches};
use super::envelope::{Down, Holds, Lesson, MOST_BYTES, MOST_OF_A_ROUND, MOST_ROWS, Ready, Up};
use super::inquiry::{Broken, Inquiry, Unfit};
use crate::engine::influence::{self, ClientPredictions};
use crate::engine::prepare::PrepareError;
use crate::engine::prepare::apart::{ServerModels, ServerPart};
use crate::federation::FederationError;
use crate::federation::History;
use crate::federation::apart::ServerCourse;
use crate::federation::schedule::{Plan, Schedule};
use crate::server::influence::heard::Heard;
use crate::session::Session;
use crate::session::settings::Federation;
use crate::wire::Message;

/// No state has more numbers.
const MOST_STATES: u32 = 4096;
/// Bytes of a message of states beside its numbers, at most.
const BESIDE: usize = 32;
/// Messages in one part of what is foretold.
const PART: usize = 4096;

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

/// The models that the run is with: those of a run that `goes_on`, those that everybody has, or else new
/// ones. A site that lacks the models of a run that goes on is asked about it later.
pub(super) fn agree(
    desk: &mut Desk,
    session: &Session,
    names: &[String],
    (held, goes_on): (Vec<ServerModels>, Option<u64>),
) -> Result<ServerModels, RemoteError> {
    let lost = |desk: &mut Desk| desk.failed.take().unwrap_or(RemoteError::Interrupted);
    let words = to_all(desk, |_| Down::Models);
    let all = Inquiry { words, attempt: None, once: false };
    let holds = desk.inquire(&all, &mut |_, _, up| match up {
        Up::Hello { models, .. } => Ok(models),
        _ => Err(Unfit::Other),
    });
    let holds: Vec<Option<Holds>> = holds.map_err(|_| lost(desk))?;
    // A site that enrolled with a model of its own keeps it, or is asked about it while the run goes on.
    let known = |models: &ServerModels| {
        let somebody_has = || holds.iter().flatten().any(|site| site.has(models.id));
        if goes_on == Some(models.id) && somebody_has() {
            return true;
        }
        let has = |(client, site): (usize, &Option<Holds>)| {
            let is_own = desk.expected(client).is_some();
            site.as_ref().is_none_or(|site| is_own || site.has(models.id))
        };
        holds.iter().enumerate().all(has)
    };
    if let Some(models) = held.into_iter().find(known) {
        let others: Vec<bool> = (holds.iter().enumerate())
            .map(|(client, site)| {
                let wanted = desk.expected(client).unwrap_or(models.id);
                site.as_ref().is_some_and(|site| site.has(wanted))
            })
            .collect();
        desk.models = Some(models.id);
        let words = (0..names.len()).map(|client| {
            let models = desk.expected(client).unwrap_or(models.id);
            others[client].then_some(Down::Use { models })
        });
        let words = words.collect();
        use_models(desk, words, None).map_err(|_| lost(desk))?;
        return Ok(models);
    }
    let here: Vec<bool> = (0..names.len()).map(|client| desk.is_asked(client)).collect();
    if let Some(left) = desk.left.iter().position(|left| *left) {
        let name = &names[left];
        return Err(RemoteError::Refused(format!(
            "there are no models that all others have, and {name} cannot be left out of a training: \
             take it out of the session"
        )));
    }
    // Clients that learn stand first, so that each has its place among them.
    let (names, later) = names.split_at(here.iter().filter(|here| **here).count());
    if let Some(name) = names.iter().zip(&here).find_map(|(name, here)| (!here).then_some(name)) {
        return Err(RemoteError::Refused(format!(
            "{name} is not there, and clients that join after the training must stand behind all others in \
             the session"
        )));
    }
    let before = asked_again(desk);
    let mut broken = 0;
    loop {
        // Later trainings have larger numbers, also after a new start.
        let attempt = nanosecond(Timestamp::now()).unsigned_abs();
        match train(desk, session, (names, later), attempt) {
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

/// A word to everybody who takes part before the run begins.
fn to_all(desk: &Desk, word: impl Fn(usize) -> Down) -> Vec<Option<Down>> {
    let clients = 0..desk.accounts.len();
    clients.map(|client| desk.is_asked(client).then(|| word(client))).collect()
}

/// Waits until every site that is told so runs with its models.
fn use_models(
    desk: &mut Desk,
    words: Vec<Option<Down>>,
    attempt: Option<u64>,
) -> Result<(), Broken> {
    desk.inquire(&Inquiry { words, attempt, once: false }, &mut |desk, client, up| match up {
        Up::Hello { models: holds, .. } if holds.used == desk.expected(client) => Ok(()),
        _ => Err(Unfit::Other),
    })?;
    Ok(())
}

/// One training, from its beginning.
fn train(
    desk: &mut Desk,
    session: &Session,
    (names, later): (&[String], &[String]),
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
    let mut words = to_all(desk, |_| word.clone());
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
        words = to_all(desk, |m| Down::Round { attempt, round, gradients: back(m) });
        plan = schedule.next();
        round += 1;
    }
    drop(course);
    part.history = history;
    let loss = reached.map_or(f64::NAN, |(_, loss)| loss);
    let seconds = begin.elapsed().as_secs_f64();
    desk.say(&format!("{round} rounds in {seconds:.1} s, server loss {loss:.4}"));
    let lessons = lessons(desk, attempt, &states)?;
    let influences = part.influences(names, lessons.as_ref());
    if let Some(foretold) = influence::foretold(session, &influences, lessons.as_ref())? {
        foretell(desk, attempt, &foretold)?;
    }
    let mut notices = Vec::new();
    let keep = &mut |what: &str| notices.push(what.to_owned());
    let models = part.finish(session, later, influences, keep)?;
    for what in &notices {
        desk.say(what);
    }
    desk.models = Some(models.id);
    let words = to_all(desk, |_| Down::Learned { attempt, models: models.id });
    let used = use_models(desk, words, Some(attempt));
    if used.is_err() {
        desk.models = None;
    }
    used?;
    Ok(models)
}

/// Tells every site what others foretell of it, part by part (tier 2).
fn foretell(desk: &mut Desk, attempt: u64, foretold: &[ClientPredictions]) -> Result<(), Broken> {
    for stretch in [0_u8, 1] {
        let of = |client: &ClientPredictions| client.stretches[usize::from(stretch)].len();
        let most = foretold.iter().map(of).max().unwrap_or(0);
        // A site is told of both stretches, also where there is nothing to tell.
        for part in 0..most.div_ceil(PART).max(1) {
            let number = u32::try_from(part).unwrap_or(u32::MAX);
            let words = to_all(desk, |client| {
                let Some(ClientPredictions { explainer, stretches }) = foretold.get(client) else {
                    return Down::Models;
                };
                let of_part = stretches[usize::from(stretch)].iter().skip(part * PART).take(PART);
                let encode = |message: &crate::wire::ToSite| {
                    let mut bytes = Vec::new();
                    message.encode(&mut bytes);
                    bytes
                };
                Down::Foretold(envelope::PredictionPart {
                    attempt,
                    stretch,
                    part: number,
                    explainer: explainer.and_then(|explainer| u32::try_from(explainer).ok()),
                    messages: of_part.map(encode).collect(),
                })
            });
            let inquiry = Inquiry { words, attempt: Some(attempt), once: true };
            desk.inquire(&inquiry, &mut |_, _, up| match up {
                Up::Told { attempt: of, stretch: told, part }
                    if (of, told, part) == (attempt, stretch, number) =>
                {
                    Ok(())
                }
                _ => Err(Unfit::Other),
            })?;
        }
    }
    Ok(())
}

/// Waits until every site is ready for a training.
fn gather(desk: &mut Desk, attempt: u64) -> Result<Vec<Ready>, Broken> {
    let words = to_all(desk, |_| Down::Begin { attempt });
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
    let mut words = to_all(desk, |_| word.clone());
    for (client, word) in words.iter_mut().enumerate() {
        word.take_if(|_| !wanted.get(client).is_some_and(|wanted| *wanted));
    }
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
