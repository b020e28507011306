//! Sites, server and the wire between them: one step of all of them.

use jiff::Timestamp;

use super::RunError;
use super::sight::Sight;
use crate::privacy::{PrivacyError, Ranks};
use crate::server::Server;
use crate::session::Mode;
use crate::site::{Site, To};
use crate::stream::{Frame, Layout};
use crate::wire::{Content, Memory, Outgoing, Tick, ToSite, Wire, WireError};

/// Everybody who takes part, and what is between them.
pub(super) struct Exchange {
    sites: Vec<Site>,
    wire: Box<dyn Wire>,
    server: Server,
    /// The method that does not decide, rehearsed on this machine: nothing of it crosses the wire.
    shadow: Option<(Memory, Server)>,
}

/// Sends over one wire or the other, and keeps the first error.
struct Post<'a> {
    wire: &'a mut dyn Wire,
    rehearsal: Option<&'a mut Memory>,
    failed: Result<(), WireError>,
}

impl Post<'_> {
    fn send(&mut self, to: To, message: Outgoing) {
        let sent = match (to, &mut self.rehearsal) {
            (To::Server, _) => self.wire.send(message),
            (To::Rehearsal, Some(rehearsal)) => rehearsal.send(message),
            (To::Rehearsal, None) => Ok(()),
        };
        if self.failed.is_ok() {
            self.failed = sent;
        }
    }
}

impl Exchange {
    /// Enrols every site with the server, and with the shadow where there is one.
    pub fn open(
        sites: Vec<Site>,
        wire: Box<dyn Wire>,
        server: Server,
        shadow: Option<Server>,
    ) -> Result<Self, RunError> {
        let shadow = shadow.map(|shadow| (Memory::default(), shadow));
        let mut exchange = Self { sites, wire, server, shadow };
        exchange.each_site(|site, send| site.enrol(send))?;
        Ok(exchange)
    }

    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    pub fn sites_mut(&mut self) -> &mut [Site] {
        &mut self.sites
    }

    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The server of a mode, where that mode is carried along.
    pub fn of(&self, mode: Mode) -> Option<&Server> {
        let shadow = self.shadow.as_ref().map(|(_, shadow)| shadow);
        [Some(&self.server), shadow].into_iter().flatten().find(|server| server.mode() == mode)
    }

    /// Both servers, as far as they are there.
    pub fn servers_mut(&mut self) -> impl Iterator<Item = &mut Server> {
        [&mut self.server].into_iter().chain(self.shadow.iter_mut().map(|(_, shadow)| shadow))
    }

    /// Lets every site do something, and delivers what it sends.
    pub fn each_site(
        &mut self,
        mut act: impl FnMut(&mut Site, &mut dyn FnMut(To, Outgoing)) -> Result<(), PrivacyError>,
    ) -> Result<(), RunError> {
        let Self { sites, wire, shadow, .. } = self;
        let rehearsal = shadow.as_mut().map(|(rehearsal, _)| rehearsal);
        let mut post = Post { wire: wire.as_mut(), rehearsal, failed: Ok(()) };
        for site in sites {
            act(site, &mut |to, message| post.send(to, message))?;
        }
        post.failed?;
        self.deliver();
        Ok(())
    }

    /// Hands messages that have arrived to the server they are for.
    fn deliver(&mut self) {
        let Self { wire, server, shadow, .. } = self;
        while let Some(message) = wire.receive() {
            server.hear(&message);
            // What is known of sensors does not depend on the method.
            if let (Content::Faults(_), Some((_, shadow))) = (message.content(), &mut *shadow) {
                shadow.hear(&message);
            }
        }
        if let Some((rehearsal, shadow)) = shadow {
            while let Some(message) = rehearsal.receive() {
                shadow.hear(&message);
            }
        }
    }

    /// Hands orders that have arrived to the sites they are for.
    fn deliver_orders(&mut self, time: Timestamp) -> Result<(), WireError> {
        let Self { sites, wire, shadow, .. } = self;
        let mut rehearsal = shadow.as_mut().map(|(rehearsal, _)| rehearsal);
        loop {
            let rehearsed = || rehearsal.as_mut().and_then(|rehearsal| rehearsal.receive_at_site());
            let Some(order) = wire.receive_at_site().or_else(rehearsed) else { return Ok(()) };
            let Some(site) = sites.get_mut(order.client()) else { continue };
            let rehearsal = rehearsal.as_deref_mut();
            let mut post = Post { wire: wire.as_mut(), rehearsal, failed: Ok(()) };
            site.hear(&order, time, &mut |to, message| post.send(to, message));
            post.failed?;
        }
    }

    /// One step: rows to sites, messages to the server, its decision.
    pub fn step(&mut self, frame: &Frame, layout: &Layout, tick: Tick) -> Result<(), RunError> {
        self.ask(tick.time, |server, send| server.begin(tick, send))?;
        let Self { sites, wire, shadow, .. } = self;
        let rehearsal = shadow.as_mut().map(|(rehearsal, _)| rehearsal);
        let mut post = Post { wire: wire.as_mut(), rehearsal, failed: Ok(()) };
        for (site, row) in sites.iter_mut().zip(frame.rows(layout)) {
            site.begin(tick);
            site.step(row, tick, &mut |to, message| post.send(to, message));
        }
        post.failed?;
        self.deliver();
        for server in self.servers_mut() {
            server.decide();
        }
        Ok(self.ask(tick.time, Server::renew)?)
    }

    /// Lets both servers send orders, and delivers them.
    fn ask(
        &mut self,
        time: Timestamp,
        mut act: impl FnMut(&mut Server, &mut dyn FnMut(ToSite)),
    ) -> Result<(), WireError> {
        let Self { wire, server, shadow, .. } = self;
        let mut sent = Ok(());
        let mut any = false;
        act(server, &mut |order| {
            any = true;
            if sent.is_ok() {
                sent = wire.send_to_site(order);
            }
        });
        if let Some((rehearsal, shadow)) = shadow {
            act(shadow, &mut |order| {
                any = true;
                if sent.is_ok() {
                    sent = rehearsal.send_to_site(order);
                }
            });
        }
        sent?;
        if any { self.deliver_orders(time) } else { Ok(()) }
    }

    /// An operator accepts what clients have shown in so many steps as the new normal.
    pub fn accept(
        &mut self,
        members: &[(usize, usize)],
        episode: Option<u64>,
        time: Timestamp,
    ) -> Result<(), WireError> {
        self.order(time, |server, send| server.accept(members, episode, send))
    }

    /// What was accepted is not. Says whether the server follows the incident again.
    pub fn take_back(
        &mut self,
        members: &[usize],
        episode: Option<u64>,
        time: Timestamp,
    ) -> Result<bool, WireError> {
        let mut followed = false;
        self.order(time, |server, send| followed = server.take_back(members, episode, send))?;
        Ok(followed)
    }

    /// Lets the server that decides send orders, and delivers them.
    fn order(
        &mut self,
        time: Timestamp,
        act: impl FnOnce(&mut Server, &mut dyn FnMut(ToSite)),
    ) -> Result<(), WireError> {
        let Self { wire, server, .. } = self;
        let mut sent = Ok(());
        act(server, &mut |order| {
            if sent.is_ok() {
                sent = wire.send_to_site(order);
            }
        });
        sent?;
        self.deliver_orders(time)
    }

    /// Asks a client which of its sensors deviate most; none where it does not say.
    pub fn ask_for_sensors(&mut self, client: usize, time: Timestamp) -> Result<Ranks, WireError> {
        let question = self.server.ask_for_sensors(client);
        self.wire.send_to_site(question)?;
        self.deliver_orders(time)?;
        self.deliver();
        Ok(self.server.take_sensors(client).unwrap_or_default())
    }

    /// Another method decides from now on. What was rehearsed is known to the server from now on where
    /// that tells nothing new; otherwise it begins with nothing, and sites enrol.
    pub fn change_mode(&mut self, mode: Mode, rehearsal_counts: bool) -> Result<(), RunError> {
        let Some((_, shadow)) = &mut self.shadow else { return Ok(()) };
        if self.server.mode() == mode {
            return Ok(());
        }
        std::mem::swap(&mut self.server, shadow);
        self.sites.iter_mut().for_each(|site| site.set_mode(mode));
        if !rehearsal_counts {
            self.server.forget();
            self.each_site(|site, send| site.enrol(send))?;
        }
        Ok(())
    }

    /// What can be seen of every client now.
    pub fn show(&self, sights: &mut [Sight]) {
        let (evidence, paper) = (self.of(Mode::Evidence), self.of(Mode::Paper));
        for (m, (sight, site)) in sights.iter_mut().zip(&self.sites).enumerate() {
            sight.local = site.local();
            sight.server = evidence.map(|server| server.view(m)).unwrap_or_default();
            sight.server.flags = paper.and_then(|server| server.view(m).flags);
        }
    }

    /// Why something could not be released since this was asked last.
    pub fn take_trouble(&mut self) -> Option<String> {
        let mut troubles = self.sites.iter_mut().map(Site::take_trouble);
        let first = troubles.by_ref().find_map(|trouble| trouble);
        troubles.for_each(drop);
        first
    }
}
