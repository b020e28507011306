//! What a site would have sent under other settings: answered from its own distances and symbols.
//!
//! Sending again reveals more about the same samples. In a seeded run that costs nothing, since nothing
//! in it is private; where nothing was ever protected neither, since the first time revealed it all.
//! Otherwise every release is entered in the site's ledger, with noise of its own.

use super::evidence::SymbolSender;
use super::flags::{FlagRule, FlagSender};
use super::{Site, enter_enrolment};
use crate::evidence::threshold::{Flagging, Flags};
use crate::privacy::{Account, Flag, Ledger, PrivacyError, Purpose, Terms, Unprotected as _, What};
use crate::session::{Mode, PrivacySettings};
use crate::wire::Outgoing;

/// Settings of a site on trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Trial {
    /// The method whose messages are sent.
    pub(crate) mode: Mode,
    /// When it is flagged.
    pub(crate) rule: FlagRule,
    /// ε of each symbol or flag.
    pub(crate) epsilon: Option<f64>,
    /// ε of each Z_a, where it has one of its own.
    pub(crate) epsilon_a: Option<f64>,
}

/// Whether what is sent again is entered in the site's ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paying {
    /// No: where it would cost something, nothing is sent.
    Never,
    /// Where it costs something.
    WhereItCosts,
    /// In any case: it goes to the server that decides.
    Always,
}

/// Why a site does not send again.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum AgainError {
    #[error("what the sites measured was not kept")]
    NotKept,
    /// It would cost something, and the operator has not agreed to that.
    #[error(
        "trying this would release the run so far again, {releases} times for each client, and spend \
         its privacy budget"
    )]
    Costs {
        /// Releases about each client.
        releases: u64,
    },
    /// A mechanism cannot be set up.
    #[error("{0}")]
    Privacy(String),
}

impl From<PrivacyError> for AgainError {
    fn from(error: PrivacyError) -> Self {
        Self::Privacy(error.to_string())
    }
}

/// A site that sends its run so far again.
#[derive(Debug)]
pub(crate) struct Again<'a> {
    site: &'a Site,
    sending: Sending,
    /// Where it is paid for.
    ledger: Ledger,
    paid: bool,
}

#[derive(Debug)]
enum Sending {
    Symbols(Box<SymbolSender>),
    /// With the noise that was drawn the first time.
    SameNoise {
        rule: FlagRule,
        flagging: Flagging,
    },
    Flags {
        rule: FlagRule,
        flagging: Flagging,
        sender: Box<FlagSender>,
    },
}

impl Site {
    /// Begins to send the run so far again under `trial`. Where that costs something it must be agreed
    /// to by `paying`.
    pub(crate) fn again(&self, trial: &Trial, paying: Paying) -> Result<Again<'_>, AgainError> {
        let tape = self.tape.as_ref().ok_or(AgainError::NotKept)?;
        let was = (self.session.privacy.epsilon_flag, self.session.privacy.epsilon_flag_a);
        let paid = match (self.repeats_freely(), paying) {
            (false, Paying::Never) => {
                return Err(AgainError::Costs { releases: tape.ticks.len() as u64 });
            }
            (true, Paying::Never | Paying::WhereItCosts) => false,
            (false, Paying::WhereItCosts) | (_, Paying::Always) => true,
        };
        let privacy = PrivacySettings {
            epsilon_flag: trial.epsilon,
            epsilon_flag_a: trial.epsilon_a,
            ..self.session.privacy.clone()
        };
        let (client, period_s) = (self.client, self.period_s);
        let (rule, flagging) = (trial.rule, Flagging::default());
        let sending = match trial.mode {
            Mode::Evidence => Sending::Symbols(Box::new(SymbolSender::new(
                client,
                &self.prepared,
                &self.session,
                &privacy,
                period_s,
            )?)),
            // In a recording of the other method alone no noise was drawn for flags.
            Mode::Paper
                if (trial.epsilon, trial.epsilon_a) == was && !paid && tape.has_sent_flags() =>
            {
                Sending::SameNoise { rule, flagging }
            }
            Mode::Paper => {
                let sender = FlagSender::new(client, &self.session, &privacy, period_s)?;
                Sending::Flags { rule, flagging, sender: Box::new(sender) }
            }
        };
        let ledger = if paid {
            self.ledger.clone()
        } else {
            let terms = Terms { budget: None, ..*self.ledger.terms() };
            Ledger::unwritten(&self.prepared.name, terms)?
        };
        Ok(Again { site: self, sending, ledger, paid })
    }

    /// Takes over what sending again has cost.
    pub(crate) fn settle(&mut self, settled: Settled) {
        if let Some(ledger) = settled.0 {
            self.ledger = ledger;
        }
    }

    /// The flags of every step so far by another rule, with the noise that was drawn: for a screen on
    /// this machine.
    pub(crate) fn local_flags_by(
        &self,
        rule: FlagRule,
    ) -> impl Iterator<Item = Option<Flags>> + '_ {
        let mut flagging = Flagging::default();
        let tape = self.tape.iter().flat_map(|tape| tape.ticks.iter().zip(&tape.measured));
        tape.map(move |(tick, measured)| {
            if tick.follows.is_anew() {
                flagging = Flagging::default();
            }
            let (d2_c, d2_a) = (measured.d2_c, measured.d2_a);
            measured.sent(flagging.step(d2_c, d2_a, rule.thresholds, rule.deadband))
        })
    }
}

/// What sending again has cost, where it did.
#[derive(Debug)]
pub(crate) struct Settled(Option<Ledger>);

impl Again<'_> {
    /// The site's enrolment under these settings; nothing where flags need no enrolment.
    pub(crate) fn enrol(&mut self) -> Result<Option<Outgoing>, AgainError> {
        let Sending::Symbols(sender) = &mut self.sending else { return Ok(None) };
        let enrolled = sender.enrol()?;
        let Site { session, prepared, client, .. } = self.site;
        let released = enter_enrolment(&mut self.ledger, session, &prepared.fit, enrolled)?;
        Ok(Some(Outgoing::enrolment(*client, 0, released)))
    }

    /// What leaves of the `t`-th step.
    pub(crate) fn step(&mut self, t: usize) -> Option<Outgoing> {
        let tape = self.site.tape.as_ref()?;
        let (tick, graded, measured) = (*tape.ticks.get(t)?, tape.graded[t], tape.measured[t]);
        let (step, time) = (tick.step, tick.time);
        let mut account = Account { ledger: &mut self.ledger, time };
        let anew = tick.follows.is_anew();
        match &mut self.sending {
            Sending::Symbols(sender) => {
                if anew {
                    sender.reset();
                }
                sender.send(step, graded.own, graded.severity, &mut account, |_| graded.beside)
            }
            Sending::SameNoise { rule, flagging } => {
                if anew {
                    *flagging = Flagging::default();
                }
                let (d2_c, d2_a) = (measured.d2_c, measured.d2_a);
                let truth = flagging.step(d2_c, d2_a, rule.thresholds, rule.deadband);
                let sent = measured.sent(truth)?;
                let mut enter = |what, flag: bool| {
                    account.ledger.enter(time, what, Purpose::Routine, Flag(flag).unprotected())
                };
                let z_c = enter(What::ProprietaryFlag, sent.z_c)?;
                let z_a = enter(What::AugmentedFlag, sent.z_a)?;
                Some(Outgoing::flags(self.site.client, step, &z_c, &z_a))
            }
            Sending::Flags { rule, flagging, sender } => {
                if anew {
                    *flagging = Flagging::default();
                    sender.reset();
                }
                let (d2_c, d2_a) = (measured.d2_c, measured.d2_a);
                let truth = flagging.step(d2_c, d2_a, rule.thresholds, rule.deadband)?;
                sender.send(step, truth, &mut account).map(|(message, _)| message)
            }
        }
    }

    /// It is done: what it has cost, for [`Site::settle`].
    pub(crate) fn end(self) -> Settled {
        Settled(self.paid.then_some(self.ledger))
    }
}
