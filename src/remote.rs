//! Sites and server as processes of their own, over an MQTT 5 broker.
//!
//! ```text
//!  headwater site ──► headwater/1/FEDERATION/SITE/up ────► headwater serve
//!  headwater site ◄── headwater/1/FEDERATION/SITE/down ◄── headwater serve
//! ```
//!
//! What crosses is what crosses in one process: the wall's messages, in an [`envelope`] with the step of
//! the shared time grid. A replay goes in lock step: the server closes a step when every site has sent
//! it, and a site takes the next step when it has the orders of the step before. So incidents are the
//! same as those of a single process.
//!
//! Sites with live sources do not wait: they take steps as rows come, numbered by the clock of the data, and
//! the server closes a step at its deadline. With states (tier 2) they keep rows as they come and release a
//! step when the server has come to it.
//!
//! Guarantees:
//! - A release is stored in the site's [`outbox`] before it is sent. What is sent again is the stored
//!   release, never a new draw of noise.
//! - The server takes each step of each site once, however often it comes. What is malformed, from the
//!   wrong site or of another session is refused whole, and counted.
//! - A site, a server or a broker may be killed at any time: the server asks again for the step it
//!   waits for, and a server that begins anew goes on where its [`journal`] ends.
//!
//! | module | what it is for |
//! |---|---|
//! | [`certs`] | certificates, and what the broker lets each of their owners do |
//! | [`link`] | the connection to the broker |
//! | [`envelope`] | what crosses in one piece, and its topics |
//! | [`store`] | a SQLite file that survives a killed process |
//! | [`outbox`] | what a site has released, in SQLite |
//! | [`account`] | what the server knows of a site as a partner |
//! | [`site`] | one client at work |
//! | [`trainee`] | one client in training |
//! | [`desk`] | asks sites for steps, and refuses what is wrong |
//! | [`inquiry`] | a word to all sites, and the answers of all |
//! | [`training`] | models that all have, or that all learn together |
//! | [`journal`] | what the server has heard, in SQLite |
//! | [`server`] | the server at work |
//! | [`load`] | many simulated sites, to measure |
//! | [`stored`] | outbox and journal of any bytes, to test |
//!
//! It must not know how facts are printed.

pub(crate) mod account;
pub(crate) mod certs;
mod desk;
pub(crate) mod envelope;
mod inquiry;
mod journal;
pub(crate) mod link;
pub(crate) mod load;
pub(crate) mod outbox;
pub(crate) mod server;
pub(crate) mod site;
mod store;
pub(crate) mod stored;
mod trainee;
mod training;

use std::time::Duration;

use thiserror::Error;

use self::envelope::EnvelopeError;
use self::link::LinkError;
use self::store::StoreError;
use crate::base::digest::sha256;
use crate::engine::prepare::PrepareError;
use crate::engine::run::RunError;
use crate::privacy::PrivacyError;
use crate::session::{Mode, Session};
use crate::site::SiteError;
use crate::stream::StreamError;

/// How long to wait for an answer before the question is sent again.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// The longest time between two such repetitions.
const LEAST_OFTEN: Duration = Duration::from_secs(8);
/// How often a wait looks whether it was interrupted.
const GLANCE: Duration = Duration::from_millis(100);

/// Why a site or a server cannot go on.
#[derive(Debug, Error)]
pub(crate) enum RemoteError {
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    #[error(transparent)]
    Prepare(#[from] Box<PrepareError>),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
    #[error("{client}: {source}")]
    Site { client: String, source: SiteError },
    #[error("the session has no client {name:?}; it has {known}")]
    NoClient { name: String, known: String },
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Source(String),
    #[error(
        "the server waits for step {step} and this site stands before step {after}: its outbox is \
         not the one it had when the run began; start the server with --anew, or bring the outbox back"
    )]
    Behind { step: u64, after: u64 },
    #[error(
        "this site has released steps with other models than the run is with: remove its outbox to \
         begin anew (in a private run what is released again is spent again), or bring its models back"
    )]
    OtherModels,
    #[error("interrupted")]
    Interrupted,
}

/// What a site and the server must agree on: everything that decides what the site sends and what it
/// means. Where data lies on either machine does not count, nor do other clients: one can be added behind
/// the others without any of them.
fn agreement(
    session: &Session,
    mode: Mode,
    (place, name): (usize, &str),
) -> Result<String, RemoteError> {
    let columns = session.clients.get(place).map(|client| &client.columns);
    let parts = (
        (env!("CARGO_PKG_VERSION"), mode, session.seed, (place, name, columns)),
        (&session.sampling, &session.model, &session.thresholds),
        &session.privacy,
    );
    let text = serde_json::to_string(&parts).map_err(|why| {
        RemoteError::Refused(format!("the session cannot be written as JSON: {why}"))
    })?;
    Ok(sha256(text.as_bytes()))
}

/// That of each client.
fn agreements(session: &Session, mode: Mode, names: &[String]) -> Result<Vec<String>, RemoteError> {
    names.iter().enumerate().map(|(place, name)| agreement(session, mode, (place, name))).collect()
}

/// Models as people call them: their digest.
fn named(models: u64) -> String {
    format!("{models:016x}")
}
