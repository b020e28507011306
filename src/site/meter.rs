//! Residuals of a site for its own recording, where the method that decides does not need them.
//!
//! Symbols need one model, distances of r_c and r_a another one and φ. A run that decides by symbols
//! hands its rows over as they are, and whoever writes the recording measures them on a thread of its
//! own: the run does not wait for that. Rows and residuals stay on the site's machine.

use super::flags::FlagRule;
use super::local::Truth;
use super::residuals::Residuals;
use super::{LocalView, Site};
use crate::evidence::threshold::Flagging;
use crate::nn::kernel::WeightsError;
use crate::wire::Follows;

/// How a row of a site follows the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Look {
    #[default]
    Next,
    After {
        missing: usize,
    },
    /// The models begin anew.
    Anew,
}

impl From<Follows> for Look {
    fn from(follows: Follows) -> Self {
        match follows {
            Follows::Next => Self::Next,
            Follows::After { missing } => Self::After { missing },
            Follows::Anew | Follows::NewRun => Self::Anew,
        }
    }
}

/// Rows of all sites that are still to be measured: standardised, step by step. Only a meter reads
/// them.
#[derive(Debug, Default)]
pub(crate) struct Unmeasured {
    rows: Vec<(Look, FlagRule)>,
    values: Vec<f32>,
}

impl Unmeasured {
    /// Keeps the row of a site's last step, with the rule of its flags.
    pub(crate) fn keep(&mut self, site: &Site, rule: FlagRule) {
        self.rows.push((site.look, rule));
        self.values.extend_from_slice(&site.y);
    }
}

/// The chains of all sites.
#[derive(Debug)]
pub(crate) struct Meters(Vec<Meter>);

#[derive(Debug)]
struct Meter {
    residuals: Residuals,
    flagging: Flagging,
    sensors: usize,
}

impl Meters {
    /// Meters for sites that do not measure their residuals themselves; none where they do, and where
    /// there is no site.
    pub(crate) fn of(sites: &[Site]) -> Result<Option<Self>, WeightsError> {
        if sites.is_empty() || sites.iter().any(|site| site.flags.is_some()) {
            return Ok(None);
        }
        let meter = |site: &Site| {
            let residuals = Residuals::new(&site.prepared)?;
            Ok(Meter { residuals, flagging: Flagging::default(), sensors: site.y.len() })
        };
        sites.iter().map(meter).collect::<Result<_, _>>().map(|meters| Some(Self(meters)))
    }

    /// Measures rows, and adds what comes of each to what was seen of its site.
    pub(crate) fn measure<'a>(
        &mut self,
        rows: &Unmeasured,
        seen: impl Iterator<Item = (&'a mut LocalView, &'a mut Truth)>,
    ) {
        let mut values = &rows.values[..];
        let clients = self.0.len();
        for ((at, (look, rule)), (view, truth)) in rows.rows.iter().enumerate().zip(seen) {
            let Meter { residuals, flagging, sensors } = &mut self.0[at % clients];
            let Some((y, rest)) = values.split_at_checked(*sensors) else { return };
            values = rest;
            match *look {
                Look::Next => {}
                Look::After { missing } => residuals.skip(missing),
                Look::Anew => {
                    residuals.reset();
                    *flagging = Flagging::default();
                }
            }
            let nothing = (f32::NAN, f32::NAN);
            let (d2_c, d2_a) = residuals.step(y).unwrap_or(nothing);
            residuals.show((d2_c, d2_a), view);
            truth.flags = flagging.step(d2_c, d2_a, rule.thresholds, rule.deadband);
        }
    }
}
