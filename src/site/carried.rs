//! What a site takes as normal beside its calibration, handed on from one run of a live session to the
//! next. It is about measurements: it is stored on the machine of the site and nowhere else.

use serde::{Deserialize, Serialize};

use super::Site;
use super::new_normal::Judged;

/// What an operator, or time, has made normal at a site.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct CarriedNormal {
    judged: Judged,
    /// Values that sensors had never shown before: the sensor and the value.
    values: Vec<(String, f64)>,
}

impl Site {
    /// What is normal here beside the calibration.
    pub(crate) fn carry_normal(&self) -> CarriedNormal {
        let judged = self.evidence.as_ref().map(|half| half.grader().new_normal().judged().clone());
        let values = self.values.accepted().map(|(name, value)| (name.to_owned(), value));
        CarriedNormal { judged: judged.unwrap_or_default(), values: values.collect() }
    }

    /// Takes it as normal again. The models must be the same: residuals of others mean something else.
    /// Says whether anything changes by it.
    pub(crate) fn resume_normal(&mut self, carried: &CarriedNormal) -> bool {
        for (sensor, value) in &carried.values {
            self.values.accept(sensor, *value);
        }
        let mut changed = !carried.values.is_empty();
        if carried.judged != Judged::AsCalibrated
            && let Some(evidence) = &mut self.evidence
        {
            changed |= evidence.grader_mut().new_normal_mut().judge_by(carried.judged.clone());
        }
        changed
    }
}
