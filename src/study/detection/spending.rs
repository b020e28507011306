//! The same clients heard in several manners: what each costs, and what is left of detection.

use super::federation::{Federation, closed};
use super::rows::Rows;
use super::{Bed, DetectionError, Judged, Plan, Setup, judge};
use crate::evidence::health::Report;
use crate::evidence::inference::{Closing, Inference, Rules};
use crate::evidence::reach::Reach;
use crate::evidence::site::{Enrolment, SiteSettings};
use crate::evidence::symbol::{Grading, Symbol};
use crate::evidence::watch::score;
use crate::privacy::{self, Manner, Randomness, Said, Tally, Vigil, Voice};
use crate::rng;

/// Source of a client's randomness.
const VOICE: u64 = 4;

/// A bed whose clients are fitted and calibrated, to be heard as often as wanted.
pub struct Heard {
    bed: Bed,
    plan: Plan,
    rows: Rows,
    federation: Federation,
    setup: Setup,
    seed: u64,
}

/// What one manner came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Spoken {
    /// How good it was.
    pub judged: Judged,
    /// What each client released.
    pub released: Vec<Tally>,
    /// How long it was watched.
    pub seconds: f64,
}

impl Heard {
    /// Fits and calibrates the clients of a bed, undecimated.
    pub fn fit(bed: Bed, seed: u64, setup: &Setup) -> Result<Self, DetectionError> {
        let plan = bed.plan();
        let rows = Rows::read(bed.open(seed)?, setup.decimate.unwrap_or(1), plan.fit)?;
        let federation = Federation::fit(&rows, plan.fit, plan.calibration, setup, seed)?;
        Ok(Self { bed, plan, rows, federation, setup: setup.clone(), seed })
    }

    /// The vigil of a watch whose noise alone raises it no more often than false alarms are wanted.
    #[must_use]
    pub fn vigil(&self, epsilon: f64, burst: u64) -> Vigil {
        Vigil { epsilon, burst, quiet_steps: self.plan.arl0 / self.rows.layout.period_s }
    }

    /// Hears the clients at ε a symbol in some manner, with five levels or with one bit.
    pub fn spoken(
        &self,
        epsilon: Option<f64>,
        manner: Manner,
        one_bit: bool,
    ) -> Result<Spoken, DetectionError> {
        let period = self.rows.layout.period_s;
        let rules = Rules { arl0: self.plan.arl0 / period, ..self.setup.rules };
        let grading = if one_bit { Grading::one_bit() } else { self.setup.site.grading.clone() };
        let graded = |symbols: &[Option<Symbol>]| -> Vec<Option<Symbol>> {
            if one_bit {
                symbols.iter().map(|s| bit(&grading, *s)).collect()
            } else {
                symbols.to_vec()
            }
        };
        let site =
            SiteSettings { epsilon, manner, grading: grading.clone(), ..self.setup.site.clone() };
        let levels = grading.levels() as u8;
        let mut voices = Vec::new();
        let mut enrolments = Vec::new();
        let mut symbols = Vec::new();
        for (m, client) in self.federation.clients.iter().enumerate() {
            let random = Randomness::seeded(rng::child(self.seed, m as u64), VOICE);
            let mut voice = Voice::new(epsilon, levels, manner, self.vigil(8.0, 10), random)?;
            let calibration = graded(&client.calibration);
            let hypotheses = &rules.hypotheses;
            enrolments.push(Enrolment::rehearsed(&calibration, &site, hypotheses, &mut voice));
            // What calibration rehearsed is not part of what is watched.
            let watched = voice.rehearsed().clone();
            voices.push((voice, watched));
            symbols.push(graded(&client.symbols()));
        }
        let edges = self.bed.declared_edges().iter().copied();
        let reach = Reach::from_edges(voices.len(), edges);
        let scores = score(&grading, &rules.hypotheses);
        let mut server = Inference::new(grading.clone(), rules, &enrolments, reach);
        let mut reports = vec![Report::Missing; voices.len()];
        let mut incidents = Vec::new();
        let steps = self.rows.times.len().saturating_sub(self.federation.watched_from());
        for t in 0..steps {
            for ((report, (voice, _)), symbols) in reports.iter_mut().zip(&mut voices).zip(&symbols)
            {
                *report = symbols[t].map_or(Report::Missing, |symbol| {
                    let told = privacy::Symbol(symbol.level() as u8);
                    heard(&grading, voice.rehearse(told, scores[symbol.level()]))
                });
            }
            incidents.extend(closed(server.step(&reports)));
        }
        incidents.extend(closed(server.end(Closing::EndOfRun)));
        let released = voices.into_iter().map(|(voice, before)| {
            let mut released = voice.rehearsed().clone();
            released.remove(&before);
            released
        });
        let from = self.federation.watched_from();
        let every = self.setup.decimate.unwrap_or(1);
        Ok(Spoken {
            judged: judge::judge(&self.rows, from, &incidents, self.plan.tail, every),
            released: released.collect(),
            seconds: steps as f64 * period,
        })
    }
}

fn heard(grading: &Grading, said: Said<privacy::Symbol>) -> Report {
    let symbol = |symbol: privacy::Symbol| grading.symbol(usize::from(symbol.0));
    match said {
        Said::Symbol(s) => symbol(s).map_or(Report::Invalid, Report::Symbol),
        Said::Raised(s) => symbol(s).map_or(Report::Invalid, Report::Raised),
        Said::Quiet => Report::Quiet,
        Said::Nothing => Report::Missing,
    }
}

/// Whether a step of five levels is among the 5 % that one bit flags.
fn bit(grading: &Grading, symbol: Option<Symbol>) -> Option<Symbol> {
    let elevated = Grading::five_levels().elevated();
    symbol.and_then(|symbol| grading.symbol(usize::from(symbol.level() >= elevated)))
}
