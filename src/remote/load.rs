//! How long a step takes with many sites: simulated sites on one broker, with the real server's desk.
//!
//! A simulated site has the connection, the envelopes and the answers of a real one. It has no data: its
//! steps carry no message of the wall, which would add some six bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rumqttc::{AsyncClient, Event, MqttOptions, Packet, PublishOptions, QoS};
use tokio::runtime;

use super::RemoteError;
use super::account::{Counts, SpentSoFar};
use super::certs::SERVER;
use super::desk::{Desk, Opening};
use super::envelope::{Down, Holds, Mark, Step, Topics, Up, open_down, seal, stamp};
use super::link::{Broker, Link, LinkError};
use crate::base::digest::sha256;
use crate::session::{Mode, Tier};
use crate::stream::Continuity;

#[derive(Debug, Clone)]
pub(crate) struct Measured {
    /// Until every site had connected and enrolled.
    pub(crate) enrolled: Duration,
    /// Each step: from asking every site to having the answers of all.
    pub(crate) steps: Vec<Duration>,
    pub(crate) counts: Counts,
}

/// Lets `sites` simulated sites take `steps` steps.
pub(crate) fn measure(
    broker: &Broker,
    sites: usize,
    steps: usize,
    interrupt: &Arc<AtomicBool>,
) -> Result<Measured, RemoteError> {
    // A name of its own, so that two measurements on one broker do not meet.
    let session = format!("load-{}", std::process::id());
    let agreement = sha256(session.as_bytes());
    let topics = Topics::of(&session);
    let names: Vec<String> = (0..sites).map(|m| format!("S{m}")).collect();
    let over = Arc::new(AtomicBool::new(false));
    let begin = Instant::now();
    let id = format!("headwater-{session}-server");
    let heard = vec![topics.up_of_all(), topics.state_of_all()];
    let link = Link::open(broker, SERVER, &id, heard, topics.state(SERVER))?;
    let simulated = Simulated {
        options: names
            .iter()
            .map(|name| broker.options(name, &format!("{session}-{name}")))
            .collect::<Result<_, _>>()?,
        topics: names.iter().map(|name| (topics.up(name), topics.down(name))).collect(),
        marks: names.iter().map(|name| Mark::first(&agreement, name, 1)).collect(),
        agreement: agreement.clone(),
        over: Arc::clone(&over),
    };
    let sites = thread::Builder::new().name("sites".into()).spawn(move || simulated.run());
    let sites = sites.map_err(|why| LinkError::Setup(why.to_string()))?;
    let mut desk = Desk::new(Opening {
        link,
        topics,
        agreements: vec![agreement; names.len()],
        names,
        method: (Mode::Evidence, Tier::Symbols),
        deadline: None,
        interrupt: Arc::clone(interrupt),
        board: Arc::default(),
        say: Box::new(|_| {}),
    });
    let mut measured =
        Measured { enrolled: Duration::ZERO, steps: Vec::new(), counts: Counts::default() };
    for step in 0..=steps {
        desk.close_step();
        let asked = Instant::now();
        if desk.wait_for_step().is_none() {
            break;
        }
        if step == 0 {
            measured.enrolled = begin.elapsed();
        } else {
            measured.steps.push(asked.elapsed());
        }
    }
    desk.accounts.iter().for_each(|account| measured.counts.add(&account.counts));
    desk.stop();
    over.store(true, Ordering::Relaxed);
    let ended = sites.join().map_err(|_| LinkError::Setup("a simulated site panicked".into()))?;
    ended.map_err(|why| LinkError::Setup(why.to_string()))?;
    match desk.failed.take() {
        Some(why) => Err(why),
        None => Ok(measured),
    }
}

/// All simulated sites, in one thread.
struct Simulated {
    options: Vec<MqttOptions>,
    /// Up and down of each.
    topics: Vec<(String, String)>,
    marks: Vec<Mark>,
    agreement: String,
    over: Arc<AtomicBool>,
}

impl Simulated {
    fn run(self) -> std::io::Result<()> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let Self { options, topics, marks, agreement, over } = self;
        runtime.block_on(async {
            let sites: Vec<_> = options
                .into_iter()
                .zip(topics)
                .zip(marks)
                .map(|((options, topics), mark)| {
                    tokio::spawn(take_part(options, topics, mark, agreement.clone()))
                })
                .collect();
            while !over.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            sites.iter().for_each(tokio::task::JoinHandle::abort);
        });
        Ok(())
    }
}

/// One simulated site: answers every wish of the server.
async fn take_part(
    options: MqttOptions,
    (up, down): (String, String),
    mut mark: Mark,
    agreement: String,
) {
    let Ok((client, mut connection)) = AsyncClient::builder(options).capacity(16).try_build()
    else {
        return;
    };
    let mut send = |content: &Up| {
        let mark = mark.next(None);
        if let Ok(bytes) = seal(content).and_then(|sealed| stamp(&mark, &sealed)) {
            // What finds no room is asked for again.
            let _ = client.try_publish(up.as_str(), bytes, PublishOptions::at_least_once());
        }
    };
    loop {
        match connection.poll().await {
            Ok(Event::Incoming(Packet::ConnAck(_))) => {
                let _ = client.try_subscribe(down.as_str(), QoS::AtLeastOnce);
            }
            Ok(Event::Incoming(Packet::SubAck(_))) => {
                let spent = SpentSoFar { epsilon: None, releases: 0 };
                let models = Holds::default();
                send(&Up::Hello { agreement: agreement.clone(), spent, waits: true, models });
            }
            Ok(Event::Incoming(Packet::Publish(publish))) => match open_down(&publish.payload) {
                Ok((_, Down::Next { step, .. })) => send(&Up::Step(empty(step))),
                Ok((_, Down::Stop | Down::Refused { .. })) => return,
                Ok(_) | Err(_) => {}
            },
            Ok(_) => {}
            Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}

/// A step a second, without messages.
fn empty(number: u64) -> Step {
    let second = i64::try_from(number).unwrap_or_default();
    let time = Timestamp::from_second(second).unwrap_or_default();
    Step::new(number, time, Continuity::Next, Vec::new())
}
