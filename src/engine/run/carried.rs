//! A run of a live session that goes on where the one before ended.

use super::super::knob::Knob;
use super::Run;
use crate::fact::Fact;
use crate::incident::{Carried, Changed, OperatorAction, Order};
use crate::site::Site;
use crate::site::carried::CarriedNormal;

/// Who makes settings again after a restart.
const WHO: &str = "restart";

/// The state that the run before left.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Before {
    pub(crate) carried: Carried,
    /// What each site took as normal; nothing where models are others by now.
    pub(crate) normals: Vec<CarriedNormal>,
    /// Some site had such a normal, and models are others by now.
    pub(crate) normals_lost: bool,
}

impl Run {
    /// Incidents and settings for the next run of the same session.
    pub(crate) fn carry(&self) -> Carried {
        self.annunciator.carry()
    }

    /// What each site takes as normal beside its calibration.
    pub(crate) fn carry_normals(&self) -> Vec<CarriedNormal> {
        self.exchange.sites().iter().map(Site::carry_normal).collect()
    }

    /// Takes over incidents, shelves and what is out of service. After the first step.
    pub(crate) fn resume(&mut self, carried: &Carried) -> Fact {
        self.annunciator.resume(carried)
    }

    /// Makes the settings of the run before again, each as an order. One that the session has otherwise
    /// by now stays as the session has it.
    pub(crate) fn resume_settings(&mut self, settings: &[Changed], facts: &mut Vec<Fact>) {
        for Changed { what, from, to } in settings {
            let now = Knob::named(what, self.annunciator.names()).map(|knob| self.turned(knob));
            let done = match now {
                None => Err("there is no such setting any more".to_owned()),
                Some(now) if now.value() != *from => {
                    Err("the session was changed since".to_owned())
                }
                Some(_) => {
                    let action = OperatorAction::Set { what: what.clone(), to: to.clone() };
                    let why = Some("as before the restart".to_owned());
                    self.act(Order { who: WHO.to_owned(), action, why }).map_err(|w| w.to_string())
                }
            };
            match done {
                Ok(mut said) => facts.append(&mut said),
                Err(why) => {
                    let said = format!("{what} stays as the session has it: {why}");
                    facts.extend(self.note(&said));
                }
            }
        }
    }

    /// Sites take as normal what they took as normal before; says how many do.
    pub(crate) fn resume_normals(&mut self, normals: &[CarriedNormal]) -> usize {
        let sites = self.exchange.sites_mut().iter_mut().zip(normals);
        sites.map(|(site, normal)| site.resume_normal(normal)).filter(|changed| *changed).count()
    }
}
