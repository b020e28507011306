//! The server's side of the broker: asks sites for steps, takes what comes, refuses what is wrong, and
//! closes a step when all sites have sent it or its deadline has passed.
//!
//! It must not know what is decided from a step.

mod graded;
mod heard;
mod incoming;
mod joining;
pub(super) mod leaving;
mod live;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use self::graded::Announced;
use self::joining::Joining;
pub(super) use self::live::Grid;
use super::account::{Account, Board, Standing};
use super::certs::SERVER;
use super::envelope::{Down, Mark, Step, Topics, Up, nanosecond, open_up, seal, session_of, stamp};
use super::journal::Journal;
use super::link::{Incoming, Link};
use super::{ASK_AGAIN, GLANCE, LEAST_OFTEN, RemoteError};
use crate::session::{Mode, Tier};
use crate::wire::Message;

/// Everything that comes from sites and goes to them.
pub(super) struct Desk {
    link: Link,
    /// Whose topics they are.
    owners: HashMap<String, (usize, Kind)>,
    /// Where each site listens.
    down: Vec<String>,
    pub(super) accounts: Vec<Account>,
    /// What each site must agree on with the server.
    agreements: Vec<String>,
    mark: Mark,
    /// Our clock less a site's when its last envelope arrived, by client.
    delays: Vec<Option<i64>>,
    /// How long a step stays open for sites that have not sent it; for ever when absent.
    deadline: Option<Duration>,
    /// The time grid, where sources are live.
    pub(super) grid: Option<Grid>,
    /// Sites that have left: after the enrolment nobody waits for them.
    pub(super) left: Vec<bool>,
    /// Those of them that said so themselves: they may come back.
    pub(super) gone: Vec<bool>,
    /// Who joins, and with what.
    pub(super) joining: Joining,
    /// What facts are to say of sites.
    pub(super) notes: Vec<(usize, String)>,
    /// The step that is waited for; 0 is the enrolment.
    pub(super) next: u64,
    /// What came for it, by client.
    came: Vec<Option<(Step, Vec<Message>)>>,
    /// After how many steps the data of a client ended.
    ended: Vec<Option<u64>>,
    /// What the server has still to hear.
    pub(super) arrived: VecDeque<Message>,
    /// Orders of the present step, and those that a site has not got yet.
    pub(super) orders: Vec<Vec<Vec<u8>>>,
    before: Vec<Vec<Vec<u8>>>,
    /// A question that waits for its answer.
    question: Option<Question>,
    /// Sites announce steps, and release them once they know what is predicted of them (tier 2).
    pub(super) announced: Option<Announced>,
    /// What was heard, for a server that begins anew.
    pub(super) journal: Option<Journal>,
    /// The last step came from there.
    pub(super) found: bool,
    interrupt: Arc<AtomicBool>,
    pub(super) failed: Option<RemoteError>,
    /// The models of the run, by their training; none where nobody asks.
    pub(super) models: Option<u64>,
    /// How the run decides.
    method: (Mode, Tier),
    /// Models are agreed on or made: what sites say is an answer to a word put to all.
    pub(super) inquires: bool,
    pub(super) replies: VecDeque<(usize, Up)>,
    /// The connection was made anew since it was last looked at.
    pub(super) reconnected: bool,
    /// The training that each site has joined.
    pub(super) joined: Vec<Option<u64>>,
    /// For a screen: written anew a few times a second.
    board: Arc<Mutex<Board>>,
    posted: Instant,
    say: Box<dyn FnMut(&str) + Send>,
}

/// What a topic is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Up,
    State,
}

struct Question {
    client: usize,
    step: u64,
    word: Down,
    asked: Instant,
}

/// What a desk begins with.
pub(super) struct Opening {
    pub(super) link: Link,
    pub(super) topics: Topics,
    pub(super) names: Vec<String>,
    /// What each of them must agree on with the server.
    pub(super) agreements: Vec<String>,
    pub(super) method: (Mode, Tier),
    pub(super) deadline: Option<Duration>,
    pub(super) interrupt: Arc<AtomicBool>,
    pub(super) board: Arc<Mutex<Board>>,
    pub(super) say: Box<dyn FnMut(&str) + Send>,
}

impl Desk {
    pub(super) fn new(opening: Opening) -> Self {
        let Opening { link, topics, names, agreements, method, .. } = opening;
        let Opening { deadline, interrupt, board, say, .. } = opening;
        let clients = names.len();
        let announces = method == (Mode::Evidence, Tier::States);
        let of = |(m, name): (usize, &String)| {
            [(topics.up(name), (m, Kind::Up)), (topics.state(name), (m, Kind::State))]
        };
        Self {
            link,
            owners: names.iter().enumerate().flat_map(of).collect(),
            down: names.iter().map(|name| topics.down(name)).collect(),
            accounts: names.into_iter().map(Account::new).collect(),
            // The session is that of whoever is told.
            mark: Mark::first("", SERVER, nanosecond(Timestamp::now()).unsigned_abs()),
            agreements,
            delays: vec![None; clients],
            deadline,
            grid: None,
            left: vec![false; clients],
            gone: vec![false; clients],
            joining: Joining::new(clients),
            notes: Vec::new(),
            next: 0,
            came: vec![None; clients],
            ended: vec![None; clients],
            arrived: VecDeque::new(),
            orders: vec![Vec::new(); clients],
            before: vec![Vec::new(); clients],
            question: None,
            announced: announces.then(|| Announced::new(clients)),
            journal: None,
            found: false,
            interrupt,
            failed: None,
            models: None,
            method,
            inquires: false,
            replies: VecDeque::new(),
            reconnected: false,
            joined: vec![None; clients],
            board,
            posted: Instant::now(),
            say,
        }
    }

    /// Shows how sites stand, where that was long ago.
    fn post(&mut self) {
        if self.posted.elapsed() >= GLANCE {
            self.posted = Instant::now();
            for client in self.clients() {
                self.accounts[client].left = self.left[client];
                self.accounts[client].joins = self.joining.stage(client);
            }
            let now = Board { step: self.next, accounts: self.accounts.clone(), accepts: None };
            let mut board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
            let accepts = std::mem::replace(&mut *board, now).accepts;
            drop(board);
            accepts.into_iter().for_each(|client| self.accept(client));
        }
    }

    fn clients(&self) -> std::ops::Range<usize> {
        0..self.accounts.len()
    }

    pub(super) fn tell(&mut self, client: usize, word: &Down) {
        self.tell_by(client, word, false);
    }

    /// The same; `once` without a copy at the broker.
    pub(super) fn tell_by(&mut self, client: usize, word: &Down, once: bool) {
        let mut mark = self.mark.next(self.delays[client]);
        mark.session = session_of(&self.agreements[client]);
        let Ok(bytes) = seal(word).and_then(|sealed| stamp(&mark, &sealed)) else { return };
        self.accounts[client].counts.bytes_down += bytes.len() as u64;
        if once {
            self.link.send_once(&self.down[client], bytes);
        } else {
            self.link.send(&self.down[client], bytes);
        }
    }

    /// A word to people.
    pub(super) fn say(&mut self, what: &str) {
        (self.say)(what);
    }

    fn ask(&mut self, client: usize) {
        if self.has_left(client) {
            return;
        }
        if let Some(word) = self.asks_to_enrol(client) {
            return self.tell(client, &word);
        }
        // The step after an announced one cannot be asked for before that one is released.
        if self.is_gathering() {
            self.ask_for_graded(client);
            return;
        }
        let hurry = self.deadline.is_some() || self.accounts[client].is_behind();
        let orders = self.before[client].clone();
        let first = self.grid.as_ref().and_then(|grid| grid.first);
        self.tell(client, &Down::Next { step: self.next, orders, hurry, first });
    }

    /// Whether nobody waits for this site. One that has left cannot be left out of the enrolment.
    fn has_left(&self, client: usize) -> bool {
        self.joining.is_absent(client) || self.left[client] && self.next > 0
    }

    /// Whether this site takes part in what is put to all before the run begins.
    pub(super) fn is_asked(&self, client: usize) -> bool {
        !self.left[client] && !self.joining.is_absent(client)
    }

    /// Tells every site that the run is over, and leaves. The journal goes first: a server that is killed
    /// in between finds everything in the outboxes.
    pub(super) fn stop(&mut self) {
        if let Some(journal) = self.journal.take()
            && let Err(why) = journal.remove()
        {
            (self.say)(&format!("{why}; remove it, or the next run begins with --anew"));
        }
        self.clients().for_each(|client| self.tell(client, &Down::Stop));
        self.link.leave();
    }

    /// The present step is closed: its orders go out with the wish for the next one. A site that has
    /// missed steps gets the orders of all of them.
    pub(super) fn close_step(&mut self) {
        for (before, closed) in self.before.iter_mut().zip(&mut self.orders) {
            before.append(closed);
        }
    }

    /// Waits until every site has sent the next step, or its deadline has passed, and hands its messages
    /// over, client by client. The step; none where the data of all sites has ended or something failed.
    pub(super) fn wait_for_step(&mut self) -> Option<Step> {
        let found = self.find_step();
        self.found = found.is_some();
        if found.is_some() {
            return found;
        }
        if self.failed.is_some() {
            return None;
        }
        self.clients().for_each(|client| self.ask(client));
        if self.grid.is_some() {
            self.wait_for_live_step();
        } else {
            self.wait_for_all();
        }
        if self.failed.is_some() {
            return None;
        }
        let step = if self.grid.is_some() { self.on_grid()? } else { self.agreed()? };
        self.enrol_who_came();
        if let Some(journal) = &self.journal {
            let heard = self.came.iter().map(|came| Some(came.as_ref()?.0.clone())).collect();
            if let Err(why) = journal.keep(self.next, &heard) {
                self.failed = Some(why.into());
                return None;
            }
        }
        self.count_misses();
        self.note_who_came();
        self.announce(self.came.iter().map(Option::is_some).collect());
        for client in self.clients() {
            match self.came[client].take() {
                Some((_, messages)) => {
                    self.arrived.extend(messages);
                    self.before[client].clear();
                }
                None if self.joining.is_absent(client) => {}
                None if self.grid.is_none() => self.accounts[client].miss(self.next),
                None => {}
            }
        }
        self.next += 1;
        Some(step)
    }

    /// Waits until every site has sent the step, or its deadline has passed.
    fn wait_for_all(&mut self) {
        let asked = Instant::now();
        // Nobody can be left out of the enrolment.
        let deadline = self.deadline.filter(|_| self.next > 0);
        let waiting = |desk: &Self| {
            let is_open =
                |m: usize| desk.came[m].is_none() && desk.ended[m].is_none() && !desk.has_left(m);
            let some = desk.clients().any(|m| !is_open(m));
            let is_over = some && deadline.is_some_and(|deadline| asked.elapsed() >= deadline);
            !is_over && desk.clients().any(is_open)
        };
        self.listen_while(waiting, |desk| {
            for client in desk.clients() {
                // Who was never heard is not there yet, and says hello when it is.
                let is_there =
                    desk.accounts[client].silent_for().is_some() && !desk.has_left(client);
                if is_there && desk.came[client].is_none() && desk.ended[client].is_none() {
                    desk.accounts[client].counts.asked_again += 1;
                    desk.ask(client);
                }
            }
        });
    }

    /// Listens to the broker while `waiting`; asks again by `remind` when nothing has come for a while.
    fn listen_while(&mut self, waiting: impl Fn(&Self) -> bool, remind: impl Fn(&mut Self)) {
        let (mut asked, mut patience) = (Instant::now(), ASK_AGAIN);
        while self.failed.is_none() && waiting(self) {
            self.listen();
            if asked.elapsed() >= patience {
                // Whoever lost its connection, or waits for a word, says so by itself. Asking again is for
                // what was lost otherwise; on a busy machine it would only make the wait longer.
                patience = (2 * patience).min(LEAST_OFTEN);
                asked = Instant::now();
                remind(self);
            }
        }
    }

    /// Takes the next thing that comes within a moment.
    pub(super) fn listen(&mut self) {
        self.post();
        self.look_for_acceptance();
        if self.interrupt.load(Ordering::Relaxed) {
            self.failed = Some(RemoteError::Interrupted);
            return;
        }
        let glance = self.deadline.map_or(GLANCE, |deadline| GLANCE.min(deadline / 4));
        match self.link.next(glance) {
            Ok(Some(incoming)) => self.take(incoming),
            Ok(None) => {}
            Err(why) => self.failed = Some(why.into()),
        }
    }

    fn take(&mut self, incoming: Incoming) {
        let (topic, payload) = match incoming {
            Incoming::Connected => {
                (self.say)("connected to the broker");
                self.reconnected = true;
                if self.inquires {
                    return;
                }
                return self.clients().for_each(|client| self.ask(client));
            }
            Incoming::Dropped { topic } => {
                if let Some((client, _)) = self.owners.get(&topic) {
                    self.accounts[*client].counts.limited += 1;
                }
                return;
            }
            Incoming::Message { topic, payload } => (topic, payload),
        };
        let Some(&(client, kind)) = self.owners.get(&topic) else { return };
        if kind == Kind::State {
            let what = String::from_utf8_lossy(&payload[..payload.len().min(16)]).into_owned();
            let account = &mut self.accounts[client];
            account.is_online(what == "online");
            let away = account.away.filter(|_| account.online == Some(true));
            let after =
                away.map_or_else(String::new, |away| format!(" after {:.1} s", away.as_secs_f64()));
            let words = format!("{} is {what}{after}", account.name);
            return (self.say)(&words);
        }
        let account = &mut self.accounts[client];
        account.counts.envelopes += 1;
        account.counts.bytes_up += payload.len() as u64;
        let Ok((mark, up)) = open_up(&payload) else {
            account.counts.malformed += 1;
            return;
        };
        let now = Timestamp::now();
        match account.hear(&mark, session_of(&self.agreements[client]), now) {
            Standing::New => {
                self.delays[client] = Some(nanosecond(now).saturating_sub(mark.nanosecond));
                self.take_up(client, up);
            }
            Standing::Replayed | Standing::WrongSite => {}
            Standing::Foreign => self.refuse(client),
        }
    }
}
