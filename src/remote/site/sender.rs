//! What connects a site with the server.

use super::super::RemoteError;
use super::super::certs::SERVER;
use super::super::envelope::{Mark, Topics, stamp};
use super::super::link::{Link, ONLINE};
use super::Options;

/// The way to the server.
pub(super) struct Sender {
    pub(super) link: Link,
    up: String,
    pub(super) down: String,
    /// Where the server says whether it is there, and what it said last.
    server: (String, Option<bool>),
    mark: Mark,
    /// Our clock less the server's when its last envelope arrived.
    pub(super) delay: Option<i64>,
}

impl Sender {
    /// Connects for a `start` of the site.
    pub(super) fn open(
        options: &Options<'_>,
        agreement: &str,
        start: u64,
    ) -> Result<Self, RemoteError> {
        let Options { session, client, broker, .. } = options;
        let topics = Topics::of(&session.name);
        let (up, down) = (topics.up(client), topics.down(client));
        let id = format!("headwater-{}-{client}-{}", session.name, std::process::id());
        let server = topics.state(SERVER);
        let heard = vec![down.clone(), server.clone()];
        let link = Link::open(broker, client, &id, heard, topics.state(client))?;
        let mark = Mark::first(agreement, client, start);
        Ok(Self { link, up, down, server: (server, None), mark, delay: None })
    }

    pub(super) fn send(&mut self, sealed: &[u8]) -> Result<(), RemoteError> {
        let mark = self.mark.next(self.delay);
        self.link.send(&self.up, stamp(&mark, sealed)?);
        Ok(())
    }

    /// The same without a copy at the broker.
    pub(super) fn send_once(&mut self, sealed: &[u8]) -> Result<(), RemoteError> {
        let mark = self.mark.next(self.delay);
        self.link.send_once(&self.up, stamp(&mark, sealed)?);
        Ok(())
    }

    /// Says whether the server is there, where that has changed.
    pub(super) fn hear_of_server(
        &mut self,
        topic: &str,
        payload: &[u8],
        say: &mut (dyn FnMut(&str) + Send),
    ) {
        let (of_server, before) = &mut self.server;
        let is_online = payload == ONLINE;
        if topic == of_server && before.replace(is_online) != Some(is_online) {
            say(if is_online { "the server is online" } else { "the server is offline" });
        }
    }
}
