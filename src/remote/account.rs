//! What the server knows of each site as a partner: whether it is there, how its clock stands, what came
//! from it and what of that was refused.
//!
//! It must not know what messages say.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::envelope::{Mark, nanosecond, sender_of};

/// Steps that were closed without a site and may still come from it. Older ones count as duplicates.
const MOST_MISSED: usize = 100_000;

/// How often something happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Envelopes that came.
    pub(crate) envelopes: u64,
    pub(crate) bytes_up: u64,
    pub(crate) bytes_down: u64,
    /// Steps of a site that had been taken already.
    pub(crate) duplicates: u64,
    /// Steps that came after they were closed.
    pub(crate) late: u64,
    /// Steps that were closed without the site.
    pub(crate) missing: u64,
    /// Envelopes that are none: cut, too long, not finite, out of range, of another version.
    pub(crate) malformed: u64,
    /// Envelopes that were sent before, by their sequence number.
    pub(crate) replayed: u64,
    /// Envelopes with a message of another client or of another step.
    pub(crate) wrong_site: u64,
    /// Envelopes of another session.
    pub(crate) foreign: u64,
    /// Envelopes beyond the rate that a site may send at.
    pub(crate) limited: u64,
    /// Times that the site was asked again.
    pub(crate) asked_again: u64,
    /// Times that the site came back after it was gone.
    pub(crate) rejoined: u64,
}

impl Counts {
    /// Envelopes that were refused whole, whatever the reason.
    pub(crate) fn refused(&self) -> u64 {
        self.malformed + self.replayed + self.wrong_site + self.foreign + self.limited
    }

    pub(crate) fn add(&mut self, other: &Self) {
        let Self { envelopes, bytes_up, bytes_down, duplicates, late, missing, .. } = other;
        let Self { malformed, replayed, wrong_site, foreign, limited, .. } = other;
        let Self { asked_again, rejoined, .. } = other;
        for (to, more) in [
            (&mut self.envelopes, envelopes),
            (&mut self.bytes_up, bytes_up),
            (&mut self.bytes_down, bytes_down),
            (&mut self.duplicates, duplicates),
            (&mut self.late, late),
            (&mut self.missing, missing),
            (&mut self.malformed, malformed),
            (&mut self.replayed, replayed),
            (&mut self.wrong_site, wrong_site),
            (&mut self.foreign, foreign),
            (&mut self.limited, limited),
            (&mut self.asked_again, asked_again),
            (&mut self.rejoined, rejoined),
        ] {
            *to += more;
        }
    }
}

/// The difference of two clocks, from envelopes both ways.
///
/// An envelope arrives after its delay, by a clock that is off: up = delay − skew, down = delay + skew.
/// The exchange with the shortest way there and back tells the skew best.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Skew {
    /// Nanoseconds there and back, and how far the site's clock is ahead.
    best: Option<(i64, i64)>,
    samples: u32,
}

impl Skew {
    /// Samples after which an old one no longer counts: clocks drift.
    const SAMPLES: u32 = 256;

    /// `up`: our clock at arrival less theirs at sending; `down`: their clock less ours.
    fn take(&mut self, up: i64, down: i64) {
        let (there_and_back, ahead) = (up.saturating_add(down), down.saturating_sub(up) / 2);
        self.samples += 1;
        let is_old = self.samples > Self::SAMPLES;
        if is_old || self.best.is_none_or(|(shortest, _)| there_and_back <= shortest) {
            self.best = Some((there_and_back, ahead));
            self.samples = 0;
        }
    }

    /// Seconds that the site's clock is ahead of ours.
    pub(crate) fn ahead_s(self) -> Option<f64> {
        self.best.map(|(_, ahead)| ahead as f64 / 1e9)
    }

    /// Seconds there and back.
    pub(crate) fn round_trip_s(self) -> Option<f64> {
        self.best.map(|(there_and_back, _)| there_and_back as f64 / 1e9)
    }
}

/// What a site tells of its ledger: releases outside of training.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct SpentSoFar {
    /// None where nothing is protected.
    pub(crate) epsilon: Option<f64>,
    pub(crate) releases: u64,
}

/// One site as the server knows it.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    pub(crate) name: String,
    /// Its name as marks have it.
    sender: u64,
    /// What its retained state says; none before the broker told.
    pub(crate) online: Option<bool>,
    /// When it was heard last.
    heard: Option<Instant>,
    last: Option<Mark>,
    pub(crate) skew: Skew,
    pub(crate) counts: Counts,
    pub(crate) spent: Option<SpentSoFar>,
    missed: BTreeSet<u64>,
    /// How long it was gone when it came back last.
    pub(crate) away: Option<Duration>,
    gone: Option<Instant>,
    /// It has left: nobody waits for it.
    pub(crate) left: bool,
    /// How far it is with joining, where it has not joined.
    pub(crate) joins: Option<Joins>,
}

/// How far a site is with joining a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joins {
    /// It has not enrolled yet.
    Absent,
    /// An operator has to accept the models with this digest.
    Waits(u64),
    /// It enrols.
    Enrols,
}

/// What is shown of a federation while it runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Board {
    /// The step that is waited for.
    pub(crate) step: u64,
    pub(crate) accounts: Vec<Account>,
    /// The site that somebody at the screen accepts, by its place.
    pub(crate) accepts: Option<usize>,
}

/// How an envelope stands to those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    New,
    Replayed,
    WrongSite,
    Foreign,
}

impl Account {
    pub(crate) fn new(name: String) -> Self {
        Self {
            sender: sender_of(&name),
            name,
            online: None,
            heard: None,
            last: None,
            skew: Skew::default(),
            counts: Counts::default(),
            spent: None,
            missed: BTreeSet::new(),
            away: None,
            gone: None,
            left: false,
            joins: None,
        }
    }

    /// An envelope came at this instant of our own clock.
    pub(crate) fn hear(&mut self, mark: &Mark, session: u64, now: jiff::Timestamp) -> Standing {
        if mark.sender != self.sender {
            self.counts.wrong_site += 1;
            return Standing::WrongSite;
        }
        if mark.session != session {
            self.counts.foreign += 1;
            return Standing::Foreign;
        }
        if self.last.is_some_and(|last| !mark.is_after(&last)) {
            self.counts.replayed += 1;
            return Standing::Replayed;
        }
        self.last = Some(*mark);
        self.heard = Some(Instant::now());
        if let Some(down) = mark.delay {
            self.skew.take(nanosecond(now).saturating_sub(mark.nanosecond), down);
        }
        Standing::New
    }

    /// The broker says whether it is there.
    pub(crate) fn is_online(&mut self, online: bool) {
        if !online && self.online != Some(false) {
            self.gone = Some(Instant::now());
        }
        if online && self.online == Some(false) {
            self.counts.rejoined += 1;
            self.away = self.gone.take().map(|gone| gone.elapsed());
        }
        self.online = Some(online);
    }

    /// How far what was heard last lies behind.
    pub(crate) fn silent_for(&self) -> Option<Duration> {
        self.heard.map(|heard| heard.elapsed())
    }

    /// A step was closed without the site.
    pub(crate) fn miss(&mut self, step: u64) {
        self.counts.missing += 1;
        self.missed.insert(step);
        if self.missed.len() > MOST_MISSED {
            self.missed.pop_first();
        }
    }

    /// Whether steps were closed without it that it has not delivered since.
    pub(crate) fn is_behind(&self) -> bool {
        !self.missed.is_empty()
    }

    /// Steps that were closed without it and that it has not delivered since.
    pub(crate) fn lag(&self) -> usize {
        self.missed.len()
    }

    /// A step came that is closed already: late the first time, a duplicate after that.
    pub(crate) fn comes_after_the_end(&mut self, step: u64) {
        if self.missed.remove(&step) {
            self.counts.late += 1;
        } else {
            self.counts.duplicates += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_that_comes_again_is_refused_and_so_is_one_of_another_session() {
        let mut account = Account::new("P1".to_owned());
        let mut mark = Mark::first(&"01".repeat(32), "P1", 5);
        let session = mark.session;
        let now = jiff::Timestamp::now();
        let (one, two) = (mark.next(None), mark.next(None));
        assert_eq!(account.hear(&one, session, now), Standing::New);
        assert_eq!(account.hear(&two, session, now), Standing::New);
        assert_eq!(account.hear(&one, session, now), Standing::Replayed);
        assert_eq!(account.hear(&two, session, now), Standing::Replayed);
        assert_eq!(account.hear(&mark.next(None), session + 1, now), Standing::Foreign);
        let Counts { replayed, foreign, .. } = account.counts;
        assert_eq!((replayed, foreign, account.counts.refused()), (2, 1, 3));
        let other = Mark::first(&"01".repeat(32), "P2", 9).next(None);
        assert_eq!(account.hear(&other, session, now), Standing::WrongSite);
        // A site that was started again has a larger number of its start.
        let again = Mark::first(&"01".repeat(32), "P1", 6).next(None);
        assert_eq!(account.hear(&again, session, now), Standing::New);
    }

    #[test]
    fn a_step_that_was_missed_is_late_once_and_then_a_duplicate() {
        let mut account = Account::new("P1".to_owned());
        account.miss(7);
        for step in [7, 7, 6] {
            account.comes_after_the_end(step);
        }
        let Counts { missing, late, duplicates, .. } = account.counts;
        assert_eq!((missing, late, duplicates), (1, 1, 2));
    }

    #[test]
    fn the_skew_of_a_clock_is_told_apart_from_the_delay_of_the_network() {
        let mut skew = Skew::default();
        // Three seconds ahead; 80 ms up and 20 ms down, then 5 ms each way.
        skew.take(80_000_000 - 3_000_000_000, 20_000_000 + 3_000_000_000);
        assert!((skew.ahead_s().expect("a sample") - 2.97).abs() < 1e-9);
        skew.take(5_000_000 - 3_000_000_000, 5_000_000 + 3_000_000_000);
        skew.take(90_000_000 - 3_000_000_000, 90_000_000 + 3_000_000_000);
        assert!((skew.ahead_s().expect("a sample") - 3.0).abs() < 1e-9);
        assert!((skew.round_trip_s().expect("a sample") - 0.01).abs() < 1e-9);
    }
}
