//! Sites, server and the wire between them: one step of all of them.

use std::collections::VecDeque;

use jiff::Timestamp;

use super::RunError;
use super::readout::ClientReadout;
use super::recalled::Recalled;
use super::what_if::NoAnswer;
use crate::privacy::{PrivacyError, Ranks};
use crate::server::Server;
use crate::session::Mode;
use crate::site::again::{Again, Paying, Settled};
use crate::site::flags::FlagRule;
use crate::site::{Sent, Site, Trial};
use crate::stream::{Frame, Layout};
use crate::wire::{Content, Message, Rehearsed, Tick, ToSite, Wire, WireError};

/// All sites, the server, and the wire between them.
pub(super) struct Exchange {
    sites: Vec<Site>,
    wire: Box<dyn Wire>,
    server: Server,
    /// The method that does not decide, rehearsed on this machine: nothing of it crosses the wire.
    shadow: Option<(Rehearsal, Server)>,
    /// The state of sites that are not here, because the wire is that of a recording.
    absent: Option<AbsentSites>,
}

/// Sites whose messages come from a recording.
struct AbsentSites {
    ticks: Vec<Tick>,
    /// Their measurements, where the recording holds them.
    recalled: Recalled,
    repeat_freely: bool,
    /// Why something was not sent, with the step.
    troubles: VecDeque<(u64, String)>,
}

/// Messages between sites and the shadow on this machine.
#[derive(Default)]
struct Rehearsal {
    up: Vec<Message>,
    down: VecDeque<ToSite>,
}

/// Sends over the wire, or to the rehearsal, and keeps the first error.
struct WireSender<'a> {
    wire: &'a mut dyn Wire,
    rehearsal: Option<&'a mut Rehearsal>,
    failed: Result<(), WireError>,
}

impl WireSender<'_> {
    fn send(&mut self, sent: Sent) {
        let sent = match sent {
            Sent::ToServer(message) => self.wire.send(message),
            Sent::Rehearsed(message) => self.rehearse(message),
        };
        if self.failed.is_ok() {
            self.failed = sent;
        }
    }

    fn rehearse(&mut self, message: Rehearsed) -> Result<(), WireError> {
        if let Some(rehearsal) = &mut self.rehearsal {
            rehearsal.up.push(message.heard()?);
        }
        Ok(())
    }
}

impl Exchange {
    /// Enrols every site with the server, and with the shadow where there is one.
    pub(crate) fn open(
        sites: Vec<Site>,
        wire: Box<dyn Wire>,
        server: Server,
        shadow: Option<Server>,
    ) -> Result<Self, RunError> {
        let shadow = shadow.map(|shadow| (Rehearsal::default(), shadow));
        let mut exchange = Self { sites, wire, server, shadow, absent: None };
        exchange.each_site(|site, send| site.enrol(send))?;
        Ok(exchange)
    }

    /// A server that receives the messages of a recording; the sites are not here.
    pub(crate) fn recorded(
        wire: Box<dyn Wire>,
        server: Server,
        shadow: Option<Server>,
        (repeat_freely, troubles): (bool, VecDeque<(u64, String)>),
        recalled: Recalled,
    ) -> Result<Self, RunError> {
        let shadow = shadow.map(|shadow| (Rehearsal::default(), shadow));
        let absent = AbsentSites { ticks: Vec::new(), recalled, repeat_freely, troubles };
        let absent = Some(absent);
        let mut exchange = Self { sites: Vec::new(), wire, server, shadow, absent };
        exchange.each_site(|site, send| site.enrol(send))?;
        Ok(exchange)
    }

    /// Whether the sites are not here, but in a recording.
    pub(crate) fn is_recorded(&self) -> bool {
        self.absent.is_some()
    }

    /// Something that sites release is protected from now on.
    pub(crate) fn protects(&mut self) {
        if let Some(absent) = &mut self.absent {
            absent.repeat_freely = false;
        }
    }

    /// Sites that keep their run, here or in a recording: they can send it again.
    pub(crate) fn kept_sites(&self) -> &[Site] {
        self.absent.as_ref().map_or(&self.sites[..], |absent| absent.recalled.sites())
    }

    /// Whether the sites of a recording can send their run again by a method.
    pub(crate) fn can_send_again(&self, mode: Mode) -> Result<(), NoAnswer> {
        self.absent.as_ref().map_or(Ok(()), |absent| absent.recalled.can_send(mode))
    }

    /// Takes the sites of a recording out, with the steps so far: nothing can be tried any more.
    pub(crate) fn take_recalled(&mut self) -> (Recalled, Vec<Tick>) {
        let absent = self.absent.as_mut();
        absent.map_or_else(Default::default, |absent| {
            (std::mem::take(&mut absent.recalled), absent.ticks.clone())
        })
    }

    /// The sites of a recording know the ε that stand now.
    pub(crate) fn recall_epsilon(&mut self, epsilon: Option<f64>, epsilon_a: Option<f64>) {
        if let Some(absent) = &mut self.absent {
            absent.recalled.set_epsilon(epsilon, epsilon_a);
        }
    }

    pub(crate) fn sites(&self) -> &[Site] {
        &self.sites
    }

    pub(crate) fn sites_mut(&mut self) -> &mut [Site] {
        &mut self.sites
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// The server of a mode, where that mode is carried along.
    pub(crate) fn of(&self, mode: Mode) -> Option<&Server> {
        let shadow = self.shadow.as_ref().map(|(_, shadow)| shadow);
        [Some(&self.server), shadow].into_iter().flatten().find(|server| server.mode() == mode)
    }

    /// Both servers, as far as they are there.
    pub(crate) fn servers_mut(&mut self) -> impl Iterator<Item = &mut Server> {
        [&mut self.server].into_iter().chain(self.shadow.iter_mut().map(|(_, shadow)| shadow))
    }

    /// Lets every site do something, and delivers what it sends.
    pub(crate) fn each_site(
        &mut self,
        mut act: impl FnMut(&mut Site, &mut dyn FnMut(Sent)) -> Result<(), PrivacyError>,
    ) -> Result<(), RunError> {
        let Self { sites, wire, shadow, .. } = self;
        let rehearsal = shadow.as_mut().map(|(rehearsal, _)| rehearsal);
        let mut post = WireSender { wire: wire.as_mut(), rehearsal, failed: Ok(()) };
        for site in sites {
            act(site, &mut |sent| post.send(sent))?;
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
            for message in rehearsal.up.drain(..) {
                shadow.hear(&message);
            }
        }
    }

    /// Hands orders that have arrived to the sites they are for.
    fn deliver_orders(&mut self, time: Timestamp) -> Result<(), WireError> {
        let Self { sites, wire, shadow, .. } = self;
        let mut rehearsal = shadow.as_mut().map(|(rehearsal, _)| rehearsal);
        loop {
            let rehearsed = || rehearsal.as_mut().and_then(|rehearsal| rehearsal.down.pop_front());
            let Some(order) = wire.receive_at_site().or_else(rehearsed) else { return Ok(()) };
            let Some(site) = sites.get_mut(order.client()) else { continue };
            let rehearsal = rehearsal.as_deref_mut();
            let mut post = WireSender { wire: wire.as_mut(), rehearsal, failed: Ok(()) };
            site.hear(&order, time, &mut |sent| post.send(sent));
            post.failed?;
        }
    }

    /// One step: rows to sites, messages to the server, its decision.
    pub(crate) fn step(
        &mut self,
        frame: &Frame,
        layout: &Layout,
        tick: Tick,
    ) -> Result<(), RunError> {
        if let Some(absent) = &mut self.absent {
            absent.ticks.push(tick);
            absent.recalled.recall(tick);
        }
        self.ask(tick.time, |server, send| server.begin(tick, send))?;
        let Self { sites, wire, shadow, .. } = self;
        let rehearsal = shadow.as_mut().map(|(rehearsal, _)| rehearsal);
        let mut post = WireSender { wire: wire.as_mut(), rehearsal, failed: Ok(()) };
        for (site, row) in sites.iter_mut().zip(frame.rows(layout)) {
            site.begin(tick);
            site.step(row, tick, &mut |sent| post.send(sent));
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
                rehearsal.down.push_back(order);
            });
        }
        sent?;
        if any { self.deliver_orders(time) } else { Ok(()) }
    }

    /// An operator accepts what clients have shown in so many steps as the new normal.
    pub(crate) fn accept(
        &mut self,
        members: &[(usize, usize)],
        disturbance: Option<u64>,
        time: Timestamp,
    ) -> Result<(), WireError> {
        self.order(time, |server, send| server.accept(members, disturbance, send))
    }

    /// Takes an acceptance back. Returns whether the server follows the incident again.
    pub(crate) fn take_back(
        &mut self,
        members: &[usize],
        disturbance: Option<u64>,
        time: Timestamp,
    ) -> Result<bool, WireError> {
        let mut followed = false;
        self.order(time, |server, send| followed = server.take_back(members, disturbance, send))?;
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
    pub(crate) fn ask_for_sensors(
        &mut self,
        client: usize,
        time: Timestamp,
    ) -> Result<Ranks, WireError> {
        let question = self.server.ask_for_sensors(client);
        self.wire.send_to_site(question)?;
        self.deliver_orders(time)?;
        self.deliver();
        Ok(self.server.take_sensors(client).unwrap_or_default())
    }

    /// Whether every site can send its run again without telling more.
    pub(crate) fn repeats_freely(&self) -> bool {
        match &self.absent {
            Some(absent) => absent.repeat_freely,
            None => self.sites.iter().all(Site::repeats_freely),
        }
    }

    /// Another method decides from now on. The server that decides knows what crossed the wire and
    /// nothing else: it forgets what it was rehearsed with, and sites enrol. Where that is free they
    /// send their run so far again, entered in their ledgers like any other release.
    pub(crate) fn change_mode(&mut self, mode: Mode, rules: &[FlagRule]) -> Result<(), RunError> {
        let Some((_, shadow)) = &mut self.shadow else { return Ok(()) };
        if self.server.mode() == mode {
            return Ok(());
        }
        std::mem::swap(&mut self.server, shadow);
        self.sites.iter_mut().for_each(|site| site.set_mode(mode));
        self.server.forget();
        if self.repeats_freely() {
            self.catch_up(mode, rules)
        } else {
            self.each_site(|site, send| site.enrol(send))
        }
    }

    /// Lets every site send its run so far to the server that decides.
    fn catch_up(&mut self, mode: Mode, rules: &[FlagRule]) -> Result<(), RunError> {
        let Self { sites, wire, server, absent, .. } = self;
        let ticks = match absent {
            Some(absent) => absent.ticks.clone(),
            None => sites.first().map_or_else(Vec::new, |site| site.kept_ticks().to_vec()),
        };
        let mut sending = Vec::with_capacity(sites.len());
        for (site, rule) in sites.iter().zip(rules) {
            let (epsilon, epsilon_a) = (site.epsilon(), site.epsilon_flag_a());
            let trial = Trial { mode, rule: *rule, epsilon, epsilon_a };
            let mut again = site.again(&trial, Paying::Always)?;
            if let Some(enrolment) = again.enrol()? {
                wire.send(enrolment)?;
            }
            sending.push(again);
        }
        for (t, tick) in ticks.iter().enumerate() {
            while let Some(message) = wire.receive() {
                server.hear(&message);
            }
            server.begin(*tick, &mut |_| {});
            for message in sending.iter_mut().filter_map(|site| site.step(t)) {
                wire.send(message)?;
            }
            while let Some(message) = wire.receive() {
                server.hear(&message);
            }
            server.decide();
            // Sites took these orders when they were due.
            server.renew(&mut |_| {});
        }
        let settled: Vec<Settled> = sending.into_iter().map(Again::end).collect();
        for (site, settled) in sites.iter_mut().zip(settled) {
            site.settle(settled);
        }
        self.deliver();
        Ok(())
    }

    /// Fills in the readout of every client.
    pub(crate) fn show(&self, readouts: &mut [ClientReadout]) {
        let shadow = self.shadow.as_ref().map(|(_, shadow)| shadow);
        for (m, readout) in readouts.iter_mut().enumerate() {
            readout.local = self.sites.get(m).map(Site::local).unwrap_or_default();
            readout.server = self.server.view(m);
            readout.rehearsed = shadow.map(|shadow| shadow.view(m)).unwrap_or_default();
        }
    }

    /// Why something could not be released since this was asked last.
    pub(crate) fn take_trouble(&mut self) -> Option<String> {
        if let Some(AbsentSites { ticks, troubles, .. }) = &mut self.absent {
            let step = ticks.last().map_or(0, |tick| tick.step);
            let is_due = troubles.front().is_some_and(|(at, _)| *at == step);
            return if is_due { troubles.pop_front().map(|(_, why)| why) } else { None };
        }
        let mut troubles = self.sites.iter_mut().map(Site::take_trouble);
        let first = troubles.by_ref().find_map(|trouble| trouble);
        troubles.for_each(drop);
        first
    }
}
