//! The recording of one site that is a process of its own: what it measured and what it released.

use std::path::Path;

use jiff::Timestamp;

use super::{
    KeptRun, LEDGER_EVERY, RecordTo, Site as SiteTable, describe_session, describe_time, json,
    note_of,
};
use crate::engine::prepare::apart::SiteModels;
use crate::engine::run::ledger_fact;
use crate::record::{Holds, Seen, StepMark};
use crate::session::{Mode, Session};
use crate::site::flags::{FlagRule, thresholds};
use crate::site::meter::Meters;
use crate::site::{Site, local};
use crate::stream::{Frame, Layout};

/// A site's recording, if it has one. A failure is reported, and the site goes on.
///
/// A site that is started again takes its steps again: its new recording holds them from the first one on.
#[derive(Debug, Default)]
pub(crate) struct SiteRecording {
    kept: KeptRun,
    client: usize,
    /// When the site flags, for residuals that are measured on the way to the file.
    rule: Option<FlagRule>,
    /// Its place in the data that is here, and its sensors.
    layout: Option<(Layout, usize)>,
    with_measurements: bool,
}

impl SiteRecording {
    /// Begins the recording of the client at a place among all `names`.
    pub(crate) fn open(
        session: &Session,
        mode: Mode,
        (client, names): (usize, &[String]),
        file: Option<&Path>,
    ) -> Self {
        let to = file.map(|file| RecordTo::File(file.to_path_buf()));
        let mut kept = KeptRun::open(session, to.as_ref(), Holds::Site(client));
        if let Some(recorder) = &mut kept.recorder
            && let Err(why) = describe_session(recorder, session, (mode, false), names)
        {
            kept.fail(&why);
        }
        kept.flush();
        let with_measurements = session.record.measurements;
        Self { kept, client, with_measurements, ..Self::default() }
    }

    /// The models that its steps are taken with, and what its data looks like.
    pub(crate) fn describe(
        &mut self,
        (site, models): (&Site, &SiteModels),
        session: &Session,
        (layout, column): (&Layout, usize),
    ) {
        let Some(recorder) = &mut self.kept.recorder else { return };
        let own =
            Layout { clients: vec![layout.clients[column].clone()], period_s: layout.period_s };
        describe_time(recorder, &own);
        recorder.about(SiteTable, "layout", json(&own));
        recorder.about(SiteTable, "step_layout", json(&own));
        let rule = FlagRule {
            thresholds: thresholds(&models.site, &session.thresholds),
            deadband: session.thresholds.deadband as f32,
        };
        let tau = [[rule.thresholds.tau_c, rule.thresholds.tau_a]];
        recorder.about(SiteTable, "thresholds", json(&tau));
        recorder.about(SiteTable, "not_watched", json(&[&models.site.left_out]));
        recorder.about(SiteTable, "models_id", format!("{:016x}", models.id));
        // A model that the site itself has set up can be set up again.
        if let Ok(Some(meters)) = Meters::of(std::slice::from_ref(site)) {
            recorder.measure_by(meters);
            self.rule = Some(rule);
        }
        self.layout = Some((layout.clone(), column));
    }

    /// The site sent these messages.
    pub(crate) fn sent(&mut self, messages: &[Vec<u8>]) {
        if let Some(recorder) = &self.kept.recorder {
            let log = recorder.carrier_log();
            for message in messages {
                log.sent(message);
            }
        }
    }

    /// The site carried out an order of the server.
    pub(crate) fn obeyed(&mut self, order: &[u8]) {
        if let Some(recorder) = &self.kept.recorder {
            recorder.carrier_log().obeyed(order);
        }
    }

    /// The site has taken a step with this number.
    pub(crate) fn step(&mut self, step: u64, site: &Site, frame: &Frame) {
        let went_on = self.kept.recorder.as_mut().map(|recorder| recorder.go_on_at(step));
        if let Some(went_on) = went_on {
            self.kept.take_result(went_on);
        }
        let Some(recorder) = &mut self.kept.recorder else { return };
        if let (true, Some((layout, column))) = (self.with_measurements, &self.layout) {
            let mut own =
                Frame::with_values(local::measurements(frame.row(layout, *column)).to_vec());
            (own.time, own.continuity, own.label) = (frame.time, frame.continuity, frame.label);
            recorder.frames(&[own]);
        }
        let Frame { time, continuity, label, .. } = *frame;
        let seen = Seen { local: site.local(), truth: site.truth(), ..Seen::default() };
        let note = note_of(frame, &mut self.kept.place);
        recorder.step(StepMark { time, continuity, label }, note, std::iter::once(seen));
        if let Some(rule) = self.rule {
            recorder.unmeasured().keep(site, rule);
        }
        if self.kept.ledger_at.is_none_or(|at| time.duration_since(at) >= LEDGER_EVERY) {
            self.kept.ledger_at = Some(time);
            recorder.ledger(self.client, time, site.ledger(), ledger_fact);
        }
        // A site that catches up takes many steps at once.
        let is_large = recorder.flush_if_large();
        self.kept.take_result(is_large);
    }

    /// Hands over what was recorded: the next step may come late.
    pub(crate) fn flush(&mut self) {
        self.kept.flush();
    }

    /// The run is over: stores what the site has given away, and closes the file.
    pub(crate) fn end(&mut self, site: &Site, last: Timestamp) {
        if let Some(recorder) = &mut self.kept.recorder {
            recorder.ledger(self.client, last, site.ledger(), ledger_fact);
        }
        self.kept.finish();
    }

    /// Messages about the recording, each once: notices, and why it ended early.
    pub(crate) fn take_words(&mut self) -> (Vec<String>, Option<String>) {
        (self.kept.take_notices(), self.kept.take_failure())
    }
}
