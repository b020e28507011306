//! Where knobs stand in a session file.

use super::{Knob, Turn};
use crate::session::Session;
use crate::session::privacy::BudgetSettings;

impl Knob {
    /// The key of a session that holds its value; a client's own τ goes by the common one.
    pub(crate) fn key(self) -> &'static str {
        self.row().key
    }

    /// Its value as a session has it.
    pub(crate) fn as_written(self, session: &Session) -> Turn {
        let (tau, privacy) = (&session.thresholds, &session.privacy);
        match self {
            Self::TauC(_) => self.at(tau.tau_c),
            Self::TauA(_) => self.at(tau.tau_a),
            Self::Vote => self.at(tau.vote),
            Self::Deadband => self.at(tau.deadband),
            Self::Arl0 => self.at(tau.arl0.seconds),
            Self::Mode => self.at(session.mode),
            Self::EpsilonFlag => self.at(privacy.epsilon_flag),
            Self::EpsilonFlagA => self.at(privacy.epsilon_flag_a),
            Self::EpsilonC => self.at(privacy.epsilon_c),
            Self::EpsilonA => self.at(privacy.epsilon_a),
            Self::EpsilonG => self.at(privacy.epsilon_g),
            Self::Delta => self.at(privacy.delta),
            Self::Budget => self.at(privacy.budget.map(|budget| budget.epsilon)),
        }
    }
}

impl Turn {
    /// Writes the value into a session; a client's own τ has no place there.
    pub(crate) fn write_to(self, session: &mut Session) {
        let (tau, privacy) = (&mut session.thresholds, &mut session.privacy);
        let number = self.to.number();
        match self.knob {
            Knob::TauC(None) => tau.tau_c = self.to.tau().unwrap_or(tau.tau_c),
            Knob::TauA(None) => tau.tau_a = self.to.tau().unwrap_or(tau.tau_a),
            Knob::TauC(Some(_)) | Knob::TauA(Some(_)) => {}
            Knob::Vote => tau.vote = self.to.vote(),
            Knob::Deadband => tau.deadband = number.unwrap_or(1.0),
            Knob::Arl0 => tau.arl0.seconds = number.unwrap_or(tau.arl0.seconds),
            Knob::Mode => session.mode = self.to.mode().unwrap_or(session.mode),
            Knob::EpsilonFlag => privacy.epsilon_flag = number,
            Knob::EpsilonFlagA => privacy.epsilon_flag_a = number,
            Knob::EpsilonC => privacy.epsilon_c = number,
            Knob::EpsilonA => privacy.epsilon_a = number,
            Knob::EpsilonG => privacy.epsilon_g = number,
            Knob::Delta => privacy.delta = number.unwrap_or(privacy.delta),
            Knob::Budget => {
                let form = privacy.budget.unwrap_or_default();
                privacy.budget = number.map(|epsilon| BudgetSettings { epsilon, ..form });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::{Number, Value};

    #[test]
    fn what_is_written_into_a_session_stands_there() {
        let text = "Session(about: \"a test\", source: Plant(attacks: Day))";
        let mut session =
            Session::parse("test", std::path::Path::new(""), text).expect("a session");
        for knob in Knob::all(0) {
            let value = match knob.row().example {
                "8h" => Value::Number(Number::or_zero(28_800.0)),
                example => example
                    .parse()
                    .map_or(Value::Text(example.into()), |n| Value::Number(Number::or_zero(n))),
            };
            let turn = knob.turn(&value, &[]).expect("the example is a good value");
            turn.write_to(&mut session);
            assert_eq!(knob.as_written(&session), turn);
        }
    }
}
