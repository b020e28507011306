//! The sites of a recording: what each of them measured is read from its own tables, step by step.

use std::sync::Arc;

use super::super::knob::Knob;
use super::what_if::NoAnswer;
use crate::engine::prepare::Prepared;
use crate::record::Seen;
use crate::session::{Mode, Session};
use crate::site::{Site, SiteError, SiteOptions};
use crate::stream::Layout;
use crate::wire::Tick;

/// Sites that recall their run. None where a recording holds no models, or others than this program
/// reads.
#[derive(Debug, Default)]
pub(super) struct Recalled {
    sites: Vec<Site>,
    /// The readouts of every step of the recording, a row of clients each.
    seen: Arc<[Seen]>,
    /// Steps that were recalled.
    steps: usize,
}

impl Recalled {
    pub(crate) fn new(
        session: &Session,
        layout: &Layout,
        mode: Mode,
        prepared: &Prepared,
        seen: &Arc<[Seen]>,
    ) -> Result<Self, SiteError> {
        let site = move |(client, prepared)| {
            let period_s = layout.period_s;
            let options =
                SiteOptions { client, prepared, session, period_s, mode, both: true, keep: true };
            Site::new(&options, None, (jiff::Timestamp::UNIX_EPOCH, &[]))
        };
        // Each sorts what it was calibrated on: a console that opens waits for all of them.
        let sites: Result<_, SiteError> = std::thread::scope(|scope| {
            let clients = prepared.clients.iter().enumerate();
            let each: Vec<_> = clients.map(|client| scope.spawn(move || site(client))).collect();
            each.into_iter().map(|one| one.join().expect("no site panics")).collect()
        });
        Ok(Self { sites: sites?, seen: Arc::clone(seen), steps: 0 })
    }

    pub(crate) fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// Every site takes its next step.
    pub(crate) fn recall(&mut self, tick: Tick) {
        let clients = self.sites.len();
        let seen = &self.seen[(self.steps * clients).min(self.seen.len())..];
        for (site, seen) in self.sites.iter_mut().zip(seen) {
            let sent = seen.server.flags.or(seen.rehearsed.flags);
            site.recall(tick, &seen.local, seen.truth, sent);
        }
        self.steps += 1;
    }

    /// ε from now on.
    pub(crate) fn set_epsilon(&mut self, epsilon: Option<f64>, epsilon_a: Option<f64>) {
        self.sites.iter_mut().for_each(|site| site.recall_epsilon(epsilon, epsilon_a));
    }

    /// Whether there are sites: they may be able to send by either method.
    pub(crate) fn can_send_later(&self) -> bool {
        !self.sites.is_empty()
    }

    /// Whether sites can send by a method; why not, where they cannot.
    pub(crate) fn can_send(&self, mode: Mode) -> Result<(), NoAnswer> {
        if self.sites.is_empty() {
            return Err(NoAnswer::NoModels);
        }
        let has = match mode {
            Mode::Evidence => Site::has_symbols,
            Mode::Paper => Site::has_distances,
        };
        if self.sites.iter().any(has) { Ok(()) } else { Err(NoAnswer::NotRecorded(mode)) }
    }
}

/// Why a knob has no answer in a recording, whatever it holds.
pub(crate) fn never_in_a_recording(knob: Knob, mode: Mode) -> Option<NoAnswer> {
    match knob {
        Knob::EpsilonC | Knob::EpsilonA | Knob::EpsilonG => Some(NoAnswer::Training),
        Knob::Delta => Some(NoAnswer::OnlyCounts),
        Knob::Budget => Some(NoAnswer::Budget),
        Knob::TauC(_) | Knob::TauA(_) | Knob::Deadband | Knob::EpsilonFlagA | Knob::Vote
            if mode == Mode::Evidence =>
        {
            Some(NoAnswer::NotOfEvidence)
        }
        Knob::Arl0 if mode == Mode::Paper => Some(NoAnswer::NotOfPaper),
        Knob::TauC(_)
        | Knob::TauA(_)
        | Knob::Deadband
        | Knob::EpsilonFlagA
        | Knob::Vote
        | Knob::Arl0
        | Knob::Mode
        | Knob::EpsilonFlag => None,
    }
}
