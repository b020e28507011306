//! Values of an OPC UA server, received on a thread of its own.
//!
//! ```text
//!  connect ─► names of tags ─► past (history of the server) ─► subscription ─► values
//!     ▲                                                            │
//!     └──────────────── anything that is lost: begin anew ─────────┘
//! ```
//!
//! | part | job |
//! |---|---|
//! | `trust` | this program's own key, and which certificates of servers are trusted |
//! | `link` | a session with a server: which endpoint, who we are, why it is refused |
//! | `browse` | which variables a server has |
//! | `past` | rows of the server's own history |
//! | `subscription` | values as they come; what was lost on the way is asked for again |
//!
//! The client library goes silent after a lost connection in several ways. So it is not relied upon:
//! publishing is started again by hand after a reconnection, gaps in the numbers of messages are asked
//! for again, a new session or a silence of [`SILENCE`] makes everything anew, and every wait has a
//! limit.

mod browse;
mod link;
mod past;
mod subscription;
mod trust;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use opcua::types::DateTime;

use self::link::Link;
pub(crate) use self::trust::{own_certificate, thumbprint};
use super::arrival::{Gone, Outbox, Phase, Served, What};
use super::tags::Tags;
use super::{first_line, kept};
use crate::session::{
    ClientSettings, LiveSource, Mark, OpcUaPast, OpcUaSource, Session as Watched,
};
use crate::stream::StreamError;
use crate::stream::columns::near_hint;

/// Waits between two attempts to connect.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// A server that says nothing for so long is given up: it says something every four publishing
/// intervals.
const SILENCE: Duration = Duration::from_secs(20);

/// Why a connection ended.
#[derive(Debug)]
enum Failure {
    /// Another attempt brings the same: settings must change.
    Refused(String),
    /// Another attempt may help.
    Lost(String),
    /// The engine is gone.
    Gone,
}

impl From<Gone> for Failure {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

/// What is wanted of a server.
struct Plan {
    source: OpcUaSource,
    clients: Vec<ClientSettings>,
    password: Option<String>,
    pki: PathBuf,
    grid: Duration,
    hold: Duration,
    /// How long the normal data is, where it is still to be read from the server.
    learns: Option<Duration>,
}

/// What is known of a server from one connection to the next.
#[derive(Default)]
struct Known {
    /// The tags that are watched; none before the first connection.
    names: Vec<String>,
    /// For each tag, the stamp of its newest value that was handed over.
    newest: Vec<Option<Timestamp>>,
    /// The normal data was read.
    is_learned: bool,
    /// A value has come from the subscription at some time.
    has_begun: bool,
    /// Something came over the last connection.
    was_of_use: bool,
}

/// Watches the server that `source` names. It is asked for normal data where the session still
/// `learns`.
pub(super) fn watch(
    source: &OpcUaSource,
    live: &LiveSource,
    session: &Watched,
    learns: bool,
    outbox: Outbox,
) -> Result<(), StreamError> {
    let trouble = |why: String| StreamError::Setting(format!("{}: {why}", source.url));
    let length = match session.ranges.calibration.until {
        Some(Mark::After(seconds)) => Some(Duration::from_secs_f64(seconds)),
        _ => None,
    };
    let plan = Plan {
        password: password(source).map_err(trouble)?,
        source: source.clone(),
        clients: session.clients.clone(),
        pki: pki(source, session)?,
        grid: Duration::from_secs_f64(live.grid_s),
        hold: Duration::from_secs_f64(live.hold_s),
        learns: length.filter(|_| learns && live.reads_past()),
    };
    trust::prepare(&plan.pki, &source.url, source.security).map_err(trouble)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(StreamError::io(&source.url))?;
    let spawned = thread::Builder::new().name("opcua".into()).spawn(move || {
        // A hang-up means that the engine is gone.
        let _gone = runtime.block_on(keep_watching(&plan, &outbox));
    });
    spawned.map_err(StreamError::io(&source.url))?;
    Ok(())
}

fn password(source: &OpcUaSource) -> Result<Option<String>, String> {
    let Some(name) = &source.password_env else { return Ok(None) };
    let password = std::env::var(name).ok().filter(|text| !text.is_empty());
    password.map(Some).ok_or_else(|| format!("the environment variable {name} holds no password"))
}

/// The folder of keys and certificates.
fn pki(source: &OpcUaSource, session: &Watched) -> Result<PathBuf, StreamError> {
    match &source.pki {
        Some(folder) => Ok(session.folder.join(folder)),
        None => Ok(kept::folder(session)?.join("pki")),
    }
}

/// Accepts the certificate of a session's server, by its thumbprint. Its name is given.
pub(crate) fn accept(session: &Watched, thumbprint: &str) -> Result<String, StreamError> {
    let source = session.live().and_then(|live| match &live.input {
        crate::session::LiveInput::OpcUa(source) => Some(source),
        _ => None,
    });
    let Some(source) = source else {
        let what =
            format!("{} has no OPC UA server whose certificate could be trusted", session.name);
        return Err(StreamError::Setting(what));
    };
    trust::trust(&pki(source, session)?, thumbprint)
        .map_err(|why| StreamError::Setting(format!("{}: {why}", source.url)))
}

async fn keep_watching(plan: &Plan, outbox: &Outbox) -> Result<(), Gone> {
    let mut known = Known::default();
    let mut wait = FIRST_WAIT;
    loop {
        known.was_of_use = false;
        let why = match connect_and_watch(plan, &mut known, outbox).await {
            Ok(never) => match never {},
            Err(Failure::Gone) => return Err(Gone),
            // A run that has not begun yet ends with the reason. One that has waits: a server may be
            // set up anew.
            Err(Failure::Refused(why)) if !known.has_begun => {
                let why = format!("{}: {why}", plan.source.url);
                return hand(outbox, What::End(Some(why))).await;
            }
            Err(Failure::Refused(why) | Failure::Lost(why)) => why,
        };
        if known.was_of_use {
            wait = FIRST_WAIT;
        }
        hand(outbox, What::Phase(Phase::Reconnecting(first_line(&why, 200)))).await?;
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// Nothing has this type: a connection ends by a failure only.
enum Never {}

async fn connect_and_watch(
    plan: &Plan,
    known: &mut Known,
    outbox: &Outbox,
) -> Result<Never, Failure> {
    let mut link = link::connect(plan).await?;
    let nodes = tags(plan, known, &link, outbox).await?;
    let present = past::present(&link, &nodes).await?;
    complain(known, &present, outbox).await?;
    hand(outbox, What::Phase(Phase::Connected)).await?;
    if !known.is_learned {
        let newest = past::newest(&present);
        past::learn(plan, known, &link, &nodes, newest, outbox).await?;
        known.is_learned = true;
    }
    let mut subscription = subscription::begin(plan, known, &link, &nodes, outbox).await?;
    // Values that come from now on wait in the subscription until the rows before them are there.
    if plan.source.past != OpcUaPast::Unread {
        past::catch_up(plan, known, &link, &nodes, outbox).await?;
    }
    subscription.follow(plan, known, &mut link, outbox).await
}

/// The node of each tag that is watched. At the first connection it is decided which these are; a tag
/// that is gone later is reported and left out.
async fn tags(
    plan: &Plan,
    known: &mut Known,
    link: &Link,
    outbox: &Outbox,
) -> Result<Vec<Option<opcua::types::NodeId>>, Failure> {
    let there = browse::variables(plan, link).await?;
    if known.names.is_empty() {
        let header: Vec<String> = there.keys().cloned().collect();
        let tags = Tags::of_header(&header, &plan.clients, plan.grid.as_secs_f64());
        known.names = tags.map_err(Failure::Refused)?.names().to_vec();
        known.newest = vec![None; known.names.len()];
        hand(outbox, What::Server(Served::Names(known.names.clone()))).await?;
    }
    let mut nodes = Vec::new();
    for name in &known.names {
        let node = there.get(name).cloned();
        if node.is_none() {
            let near = near_hint(name, there.keys().map(String::as_str));
            let what = format!("the server has no tag {name:?} any more{near}");
            hand(outbox, What::Server(Served::Trouble(what))).await?;
        }
        nodes.push(node);
    }
    Ok(nodes)
}

/// Tells what is wrong with tags. At the first connection it is a reason to end: the session names what
/// the server does not have.
async fn complain(
    known: &Known,
    present: &[Option<opcua::types::DataValue>],
    outbox: &Outbox,
) -> Result<(), Failure> {
    let mut wrong = Vec::new();
    for (name, value) in known.names.iter().zip(present) {
        if let Some(why) = value.as_ref().and_then(past::complaint) {
            wrong.push(format!("{name}: {why}"));
        }
    }
    if !known.has_begun && !wrong.is_empty() {
        return Err(Failure::Refused(wrong.join("; ")));
    }
    for what in wrong {
        hand(outbox, What::Server(Served::Trouble(what))).await?;
    }
    Ok(())
}

/// Hands something to the engine; waits without holding up the connection while too much lies unread.
async fn hand(outbox: &Outbox, what: What) -> Result<(), Gone> {
    outbox.hand(Instant::now(), what).await
}

/// The variables of a server that has not been watched yet, with their present values.
pub(crate) fn inspect(url: &str) -> Result<Inspected, String> {
    let source = OpcUaSource {
        url: url.into(),
        namespace: None,
        security: crate::session::OpcUaSecurity::Open,
        user: None,
        password_env: None,
        pki: None,
        publishing_ms: 500.0,
        tags: BTreeMap::new(),
        past: OpcUaPast::Unread,
    };
    let plan = Plan {
        source,
        clients: Vec::new(),
        password: None,
        // An open connection needs no key, but the library wants a folder.
        pki: std::env::temp_dir().join("headwater-opcua"),
        grid: Duration::from_secs(1),
        hold: Duration::ZERO,
        learns: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|why| why.to_string())?;
    runtime.block_on(look(&plan)).map_err(|failure| match failure {
        Failure::Refused(why) | Failure::Lost(why) => why,
        Failure::Gone => "the receiver has ended".into(),
    })
}

async fn look(plan: &Plan) -> Result<Inspected, Failure> {
    let link = link::connect(plan).await?;
    let (mut found, nodes) = browse::inspect(&link).await?;
    let newest = past::newest(&past::present(&link, &nodes).await?);
    let recent = past::recent(plan, &link, &nodes, newest).await?;
    for (variable, recent) in found.variables.iter_mut().zip(recent) {
        variable.recent = recent;
    }
    Ok(found)
}

/// What stands in a server.
#[derive(Debug, Default)]
pub(crate) struct Inspected {
    /// The namespace with most numbers, and its variables.
    pub(crate) namespace: String,
    pub(crate) variables: Vec<Variable>,
    /// Other namespaces that have numbers, and how many.
    pub(crate) others: Vec<(String, usize)>,
}

/// A variable of a server.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// Whether its present value is a number.
    pub(crate) is_number: bool,
    /// Whether the server keeps its history.
    pub(crate) has_history: bool,
    /// Its values of the last minutes, where the server still has them.
    pub(crate) recent: Vec<f64>,
}

/// Ticks of 100 ns from 1601 to 1970.
const EPOCH: i64 = 116_444_736_000_000_000;

fn timestamp(time: DateTime) -> Option<Timestamp> {
    let nanoseconds = i128::from(time.ticks() - EPOCH) * 100;
    Timestamp::from_nanosecond(nanoseconds).ok()
}

pub(crate) fn date_time(time: Timestamp) -> DateTime {
    let ticks = time.as_nanosecond().div_euclid(100) + i128::from(EPOCH);
    DateTime::from(i64::try_from(ticks).unwrap_or(EPOCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_to_a_server_and_back_unchanged() {
        for text in
            ["2026-11-18T00:00:00Z", "1969-12-31T23:59:59.5Z", "2000-02-29T12:00:00.0000001Z"]
        {
            let time: Timestamp = text.parse().expect("a time");
            assert_eq!(timestamp(date_time(time)), Some(time), "{text}");
        }
    }
}
