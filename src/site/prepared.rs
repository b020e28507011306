//! What is prepared once for a site: its models, and what is normal for them. It stays on the site's
//! machine.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::grader::{GraderFit, SETTLING, Standing};
use super::informed::InformedFit;
use super::material::{LeftOut, SensorView};
use super::messenger::Messenger;
use super::seen::SeenFit;
use super::sensor::SensorHabit;
use super::stretch::Stretch;
use crate::evidence::threshold::NominalDistances;
use crate::nn::kernel::gaussian::Gaussian;
use crate::nn::weights::{LstmFc, ProprietaryWeights};
use crate::privacy::FilterMemory;

/// One site's models and what is normal for them.
#[derive(Debug, Clone)]
pub(crate) struct PreparedSite {
    pub(crate) name: String,
    /// The sensors its models see.
    pub(crate) view: SensorView,
    /// Those that no model watches, with the reason.
    pub(crate) left_out: Vec<(String, LeftOut)>,
    /// The model that watches.
    pub(crate) watching: ProprietaryWeights,
    /// The model whose states may be sent.
    pub(crate) sending: ProprietaryWeights,
    /// φ_m.
    pub(crate) phi: LstmFc,
    /// Nominal r_c.
    pub(crate) nominal_c: Nominal,
    /// Nominal r_a.
    pub(crate) nominal_a: Nominal,
    /// How far one sample reaches through its models, where that could be measured.
    pub(crate) memory: Option<FilterMemory>,
    /// What was fitted and calibrated beside the models.
    pub(crate) fit: SiteFit,
}

/// What a site fits to its nominal rows once its models are made: whatever is sent later, it is the
/// same, and it is kept with the models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SiteFit {
    /// Known inputs that vary in the fit range, and how they are scaled.
    pub(crate) inputs: SensorView,
    /// What each sensor does when all is well.
    pub(crate) habits: Vec<SensorHabit>,
    /// Sensors that its models do not see, watched by their values.
    pub(crate) seen: SeenFit,
    /// How its steps are graded.
    pub(crate) grader: GraderFit,
    /// Its half of tier 2, where influence could be learned.
    pub(crate) summary: Option<Messenger>,
    /// Who explains it, and what that takes out of its residual, where the session asks for tier 2.
    pub(crate) informed: Option<(usize, InformedFit)>,
    /// First and last instant of its calibration.
    pub(crate) calibrated: (Timestamp, Timestamp),
}

/// What stands behind the fits of all sites in a file, a site each. Fits are read by position: what
/// was added later cannot stand among them.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Behind {
    standing: Standing,
    stretches: Vec<Stretch>,
}

impl SiteFit {
    /// The fits of some sites for a file.
    pub(crate) fn to_bytes(fits: &[Self]) -> Result<Vec<u8>, postcard::Error> {
        let behind = |SiteFit { grader, .. }: &Self| Behind {
            standing: grader.standing().clone(),
            stretches: grader.stretches().to_vec(),
        };
        let behind: Vec<Behind> = fits.iter().map(behind).collect();
        let settling: Vec<usize> = fits.iter().map(|fit| fit.grader.settling()).collect();
        let mut bytes = postcard::to_stdvec(fits)?;
        bytes.extend(postcard::to_stdvec(&behind)?);
        bytes.extend(postcard::to_stdvec(&settling)?);
        Ok(bytes)
    }

    /// Fits from a file, also from one of before anything stood behind them.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Vec<Self>, postcard::Error> {
        let (fits, rest): (Vec<Self>, &[u8]) = postcard::take_from_bytes(bytes)?;
        if rest.is_empty() {
            return Ok(fits);
        }
        let (behind, rest): (Vec<Behind>, &[u8]) = postcard::take_from_bytes(rest)?;
        let settling: Vec<usize> =
            if rest.is_empty() { Vec::new() } else { postcard::from_bytes(rest)? };
        let complete = |(fit, Behind { standing, stretches }): (Self, Behind)| {
            let grader = fit.grader.with_standing(standing, stretches);
            Self { grader, ..fit }
        };
        let mut fits: Vec<Self> = fits.into_iter().zip(behind).map(complete).collect();
        for (fit, settling) in fits.iter_mut().zip(settling) {
            fit.grader = fit.grader.clone().with_settling(settling.min(SETTLING));
        }
        Ok(fits)
    }

    /// Whether the parts fit together and to the sensors of a model: what is read from a file may not.
    pub(crate) fn is_whole(&self, sensors: usize) -> bool {
        self.habits.len() == sensors
            && self.grader.sensors() == sensors
            && self.grader.is_whole()
            && self.informed.as_ref().is_none_or(|(_, informed)| informed.is_whole())
    }
}

/// The nominal distribution of a residual, and the distances it gave on the calibration range.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Nominal {
    /// µ and Σ.
    pub(crate) gaussian: Gaussian,
    /// From which any τ is read.
    pub(crate) distances: NominalDistances,
}
