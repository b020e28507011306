//! One site: everything that may see a client's measurements, and the messages that leave it.
//!
//! ```text
//!  Row ─► standardise ─┬─► sensor watch ─► faults ───────────────┐
//!                      ├─► model ─► grader ─► symbol (evidence) ─┼─► mechanism ─► ledger ─► Outgoing
//!                      └─► filter, φ ─► distances ─► flags ──────┘
//! ```
//!
//! A site steps on a row and hands out messages. Its models, residuals, distances, thresholds and its
//! ledger stay inside; its [`LocalView`] is for a screen on the same machine. It must not know other
//! sites, nor what the server makes of its messages.
//!
//! | module | what it is for |
//! |---|---|
//! | [`material`] | nominal rows, scaled by the fit range alone |
//! | [`fit`], [`series`], [`nominal`], [`prepared`] | models and fits that are made once |
//! | [`training`], [`chain`], [`batch`] | the site in Algorithm 1 |
//! | [`whitening`], [`grader`], `new_normal` | residuals, their surprise, changes the site lives with |
//! | [`carried`] | what is normal beside the calibration, for the next start of a live session |
//! | [`sensor`], [`seen`] | sensors that are themselves at fault, or show values never seen; which deviate most |
//! | [`standing`] | states of switches that stand still in normal operation |
//! | [`stretch`] | stretches of a calibration that look abnormal |
//! | `settling` | how many steps at the start of a run do not count |
//! | [`enrolment`] | what a site sends of its calibration, and the price |
//! | [`messenger`], [`line`], [`informed`] | tier 2: states out, what others explain back |
//! | `evidence`, [`flags`] | either method's half of a step |
//! | `severity` | how severe the first and the third step of a burst are |
//! | `settings` | settings that change while it runs |
//! | [`again`] | what the site would have sent under other settings |
//! | [`local`] | what a screen on the same machine may show |
//! | `residuals`, [`meter`] | r_c, r_a and their distances: for flags, and for a recording of the site |
//! | `renewal` | a fresh start for a filter that a disturbance has driven away |
//! | `ranking` | which sensors deviate most |
//! | `recalled` | a site whose run is read from its recording |

pub(crate) mod again;
pub(crate) mod batch;
pub(crate) mod carried;
pub(crate) mod chain;
pub(crate) mod enrolment;
mod evidence;
pub(crate) mod fit;
pub(crate) mod flags;
pub(crate) mod grader;
pub(crate) mod informed;
pub(crate) mod line;
pub(crate) mod local;
pub(crate) mod material;
pub(crate) mod messenger;
pub(crate) mod meter;
mod new_normal;
pub(crate) mod nominal;
pub(crate) mod prepared;
mod ranking;
mod recalled;
mod renewal;
mod residuals;
pub(crate) mod seen;
pub(crate) mod sensor;
pub(crate) mod series;
mod settings;
mod settling;
mod severity;
pub(crate) mod standing;
pub(crate) mod stretch;
mod tape;
pub(crate) mod training;
pub(crate) mod whitening;

use jiff::Timestamp;
use thiserror::Error;

pub(crate) use self::again::Trial;
use self::enrolment::Enrolled;
use self::evidence::EvidenceHalf;
pub(crate) use self::evidence::{INFLUENCE, abnormal};
use self::flags::FlagHalf;
use self::grader::SensorAlert;
pub(crate) use self::local::{LocalView, Truth};
use self::meter::Look;
pub(crate) use self::prepared::{PreparedSite, SiteFit};
use self::seen::ValueWatch;
use self::sensor::{SensorFault, SensorWatch};
use self::tape::SiteTape;
use crate::evidence::enrolment::Enrolment;
use crate::nn::kernel::WeightsError;
use crate::privacy::{
    Account, Faults, Ledger, PrivacyError, Provenance, Purpose, Randomness, Released, Terms,
    Trained, Unprotected as _, What,
};
use crate::session::{Mode, Session, Tier};
use crate::stream::Row;
use crate::wire::{Follows, Order, Outgoing, Rehearsed, StatesStay, Tick, ToSite};

/// A gap of up to so many steps is bridged by prediction; after a longer one a site begins anew.
pub(crate) const LONGEST_BRIDGE: usize = 40;

/// Why a site cannot be set up.
#[derive(Debug, Error)]
pub(crate) enum SiteError {
    /// A model cannot be run.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// A mechanism cannot be set up.
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
    /// Its states never leave it.
    #[error(transparent)]
    StatesStay(#[from] StatesStay),
    /// Tier 2 needs what could not be learned.
    #[error("nothing was learned about what its state says to others")]
    NoSummary,
}

/// What a site is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SiteOptions<'a> {
    /// The place of the client in the federation.
    pub(crate) client: usize,
    /// Its models and fits.
    pub(crate) prepared: &'a PreparedSite,
    /// The session it takes part in.
    pub(crate) session: &'a Session,
    /// Seconds between two steps.
    pub(crate) period_s: f64,
    /// The method that decides: its messages are sent.
    pub(crate) mode: Mode,
    /// The other method is carried along: its messages are rehearsed.
    pub(crate) both: bool,
    /// Distances and symbols are kept, so that the site can send again under other settings.
    pub(crate) keep: bool,
}

/// A message of a site, and where it goes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sent {
    ToServer(Outgoing),
    /// Nowhere outside this machine: the method that does not decide is only rehearsed.
    Rehearsed(Rehearsed),
}

/// Where the messages of a method go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    Server,
    Rehearsal,
}

impl To {
    fn address(self, message: Outgoing) -> Sent {
        match self {
            Self::Server => Sent::ToServer(message),
            Self::Rehearsal => Sent::Rehearsed(Rehearsed::new(message)),
        }
    }
}

/// One site at work.
#[derive(Debug)]
pub(crate) struct Site {
    client: usize,
    prepared: PreparedSite,
    session: Session,
    period_s: f64,
    mode: Mode,
    y: Vec<f32>,
    known: Vec<f32>,
    watch: SensorWatch,
    values: ValueWatch,
    evidence: Option<Box<EvidenceHalf>>,
    flags: Option<Box<FlagHalf>>,
    ledger: Ledger,
    /// What the method that does not decide would have released: without end, and not written.
    rehearsal: Ledger,
    /// The last message about sensors at fault.
    told_faults: Faults,
    /// Steps in succession without a value of its own.
    absent: usize,
    /// How its last row follows the one before.
    look: Look,
    /// Noise has hidden something about its samples at some step: sending it again reveals more.
    was_protected: bool,
    tape: Option<SiteTape>,
}

impl Site {
    /// A site before its first step. With `kept` its ledger is written, as a continuation of what is
    /// there; `spent` is what its training released.
    pub(crate) fn new(
        options: &SiteOptions<'_>,
        kept: Option<&[Ledger]>,
        spent: (Timestamp, &[Trained]),
    ) -> Result<Self, SiteError> {
        let SiteOptions { client, prepared, session, period_s, mode, both, keep } = *options;
        let lags = prepared.fit.grader.lags() as u64;
        let terms = Terms::of(&session.privacy, prepared.memory, lags)?;
        let mut ledger = Ledger::unwritten(&prepared.name, terms)?;
        let (from, trained) = spent;
        if let Some(kept) = kept {
            ledger.write_from(from, kept)?;
        }
        ledger.enter_training(from, trained);
        let wants = |this: Mode| both || mode == this;
        let evidence = wants(Mode::Evidence).then(|| EvidenceHalf::new(options)).transpose()?;
        let flags = wants(Mode::Paper).then(|| FlagHalf::new(options)).transpose()?;
        Ok(Self {
            client,
            y: vec![f32::NAN; prepared.view.used.len()],
            known: vec![f32::NAN; prepared.fit.inputs.used.len()],
            watch: SensorWatch::new(prepared.fit.habits.clone()),
            values: ValueWatch::new(&prepared.fit.seen),
            evidence: evidence.map(Box::new),
            flags: flags.map(Box::new),
            ledger,
            rehearsal: Ledger::unwritten(&prepared.name, Terms { budget: None, ..terms })?,
            told_faults: Faults::default(),
            absent: 0,
            look: Look::Next,
            was_protected: is_protected(session),
            tape: keep.then(SiteTape::default),
            prepared: prepared.clone(),
            session: session.clone(),
            period_s,
            mode,
        })
    }

    /// Tells the server what it must know before it can weigh symbols; nothing where they are not
    /// graded.
    pub(crate) fn enrol(&mut self, send: &mut dyn FnMut(Sent)) -> Result<(), PrivacyError> {
        let Some(evidence) = &mut self.evidence else { return Ok(()) };
        let enrolled = evidence.sender.enrol()?;
        let (to, ledger) = match self.mode {
            Mode::Evidence => (To::Server, &mut self.ledger),
            Mode::Paper => (To::Rehearsal, &mut self.rehearsal),
        };
        let released = enter_enrolment(ledger, &self.session, &self.prepared.fit, enrolled)?;
        send(to.address(Outgoing::enrolment(self.client, 0, released)));
        Ok(())
    }

    /// A message from the server.
    pub(crate) fn hear(&mut self, message: &ToSite, time: Timestamp, send: &mut dyn FnMut(Sent)) {
        let to = self.to(Mode::Evidence);
        match message.order() {
            Order::Prediction(epsilon) => {
                let Self { evidence, ledger, rehearsal, .. } = self;
                if let Some(evidence) = evidence {
                    let ledger = if to == To::Server { ledger } else { rehearsal };
                    evidence.predicted(epsilon, &mut Account { ledger, time });
                }
            }
            Order::TakeAsNormal { steps } => {
                if let Some(evidence) = &mut self.evidence {
                    evidence.grader_mut().take_as_normal(*steps as usize);
                }
                self.values.take_as_normal();
            }
            Order::TakeBackNormal => {
                if let Some(evidence) = &mut self.evidence {
                    evidence.grader_mut().take_back_normal();
                }
                self.values.take_back();
            }
            Order::NameSensors => self.name_sensors(message.step(), time, send),
            // Training is over.
            Order::Gradient(_) => {}
        }
    }

    /// A step begins: how it follows the one before.
    pub(crate) fn begin(&mut self, tick: Tick) {
        self.look = tick.follows.into();
        match tick.follows {
            Follows::Next => {}
            Follows::After { missing } => self.skip(missing),
            Follows::Anew | Follows::NewRun => {
                self.watch.reset();
                if tick.follows == Follows::NewRun {
                    self.values.forget();
                } else {
                    self.values.reset();
                }
                if let Some(evidence) = &mut self.evidence {
                    evidence.reset();
                    if tick.follows == Follows::NewRun {
                        evidence.grader_mut().forget_new_normal();
                    }
                }
                if let Some(flags) = &mut self.flags {
                    flags.reset();
                }
            }
        }
    }

    /// A client whose own data was away for longer than can be bridged begins anew when it comes
    /// back, while others went on: what a prediction has become by then is no evidence.
    fn begin_after_absence(&mut self) {
        if self.y.iter().all(|y| y.is_nan()) {
            self.absent += 1;
            return;
        }
        if std::mem::take(&mut self.absent) > LONGEST_BRIDGE {
            self.look = Look::Anew;
            self.values.reset();
            if let Some(evidence) = &mut self.evidence {
                evidence.reset();
            }
            if let Some(flags) = &mut self.flags {
                flags.reset();
            }
        }
    }

    /// `steps` without data: models predict, nothing is seen.
    fn skip(&mut self, steps: usize) {
        self.y.fill(f32::NAN);
        self.known.fill(f32::NAN);
        self.values.reset();
        for _ in 0..steps {
            self.watch.step(self.y.iter().map(|y| f64::from(*y)));
            let alert = self.alert();
            if let Some(evidence) = &mut self.evidence {
                evidence.look_only(&self.y, &self.known, alert);
            }
        }
        if let Some(evidence) = &mut self.evidence {
            evidence.skip_sending(steps);
        }
        if let Some(flags) = &mut self.flags {
            flags.skip(steps);
        }
    }

    /// Steps on a row of its measurements and hands out what leaves. Allocates nothing.
    pub(crate) fn step(&mut self, row: Row<'_>, tick: Tick, send: &mut dyn FnMut(Sent)) {
        self.prepared.view.see(row, &mut self.y);
        self.prepared.fit.inputs.standardise(row.raw_inputs(), &mut self.known);
        self.begin_after_absence();
        self.watch.step(self.y.iter().map(|y| f64::from(*y)));
        self.values.step(row.raw_sensors());
        self.tell_faults(tick, send);
        let alert = self.alert();
        let (step, time) = (tick.step, tick.time);
        let (to_evidence, to_flags) = (self.to(Mode::Evidence), self.to(Mode::Paper));
        let Self { evidence, flags, ledger, rehearsal, y, known, tape, .. } = self;
        let mut graded = evidence::Graded::default();
        if let Some(evidence) = evidence {
            let ledger = if to_evidence == To::Server { &mut *ledger } else { &mut *rehearsal };
            let reading = evidence.look(y, known, alert);
            let mut account = Account { ledger, time };
            let out = &mut |message| send(to_evidence.address(message));
            graded = evidence.send(step, reading, &mut account, out);
            evidence.forget_prediction();
        }
        let mut measured = flags::Measured::NOTHING;
        if let Some(flags) = flags {
            let ledger = if to_flags == To::Server { ledger } else { rehearsal };
            let message = flags.step(step, y, &mut Account { ledger, time });
            if let Some(message) = message {
                send(to_flags.address(message));
            }
            measured = flags.measured;
        }
        if let Some(tape) = tape {
            tape.keep(tick, graded, measured);
        }
    }

    /// What its sensors show by themselves.
    fn alert(&self) -> SensorAlert {
        let flat = self.watch.any(SensorFault::FlatLine);
        SensorAlert { flat, unseen: self.values.is_raised() }
    }

    fn to(&self, mode: Mode) -> To {
        if self.mode == mode { To::Server } else { To::Rehearsal }
    }

    /// Tells the server which kinds of fault its sensors have, when that changes; with protection only
    /// where the session says so, since it is sent unprotected.
    fn tell_faults(&mut self, tick: Tick, send: &mut dyn FnMut(Sent)) {
        let faults = Faults {
            gap: self.watch.any(SensorFault::Gap),
            flat_line: self.watch.any(SensorFault::FlatLine),
            out_of_range: self.watch.any(SensorFault::OutOfRange),
        };
        if faults == self.told_faults || !self.session.privacy.tells_faults() {
            return;
        }
        let guarded = faults.unprotected();
        if let Some(released) = self.ledger.enter(tick.time, What::Faults, Purpose::Alarm, guarded)
        {
            self.told_faults = faults;
            send(Sent::ToServer(Outgoing::faults(self.client, tick.step, &released)));
        }
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The run has ended at `time`.
    pub(crate) fn close_ledger(&mut self, time: Timestamp) {
        self.ledger.close(time);
    }

    /// The ledger's lines since this was asked last, where they are written: they must be stored before
    /// anything of what they tell of leaves this process.
    pub(crate) fn take_ledger_lines(&mut self) -> String {
        self.ledger.take_lines()
    }

    /// Why something could not be released since this was asked last.
    pub(crate) fn take_trouble(&mut self) -> Option<String> {
        self.ledger.take_trouble()
    }

    /// Its models and fits.
    pub(crate) fn prepared(&self) -> &PreparedSite {
        &self.prepared
    }

    /// The steps of its run so far, where they are kept.
    pub(crate) fn kept_ticks(&self) -> &[Tick] {
        self.tape.as_ref().map_or(&[], |tape| &tape.ticks)
    }
}

/// Whether noise hides anything that a site sends while it watches.
fn is_protected(session: &Session) -> bool {
    let states = session.thresholds.tier == Tier::States;
    session.privacy.protects_flags() || states && session.privacy.epsilon_c.is_some()
}

/// Enters what an enrolment costs: it is about the samples of the calibration.
fn enter_enrolment(
    ledger: &mut Ledger,
    session: &Session,
    fit: &SiteFit,
    enrolled: Enrolled,
) -> Result<Released<Enrolment>, PrivacyError> {
    let Enrolled { enrolment, price } = enrolled;
    let randomness = Provenance::of(session);
    let (from, until) = fit.calibrated;
    let training = enrolment_name(session, from, until, enrolment.epsilon)?;
    let trained = price.into_iter().map(|(spend, count)| Trained {
        training: training.clone(),
        what: What::Enrolment,
        spend,
        count,
        samples: fit.grader.steps().max(1) as u64,
        rounds: 1,
        until,
        randomness,
    });
    Ok(ledger.enter_made_of(from, &trained.collect::<Vec<_>>(), enrolment, randomness))
}

/// Which enrolment it is: one that is sent again without new noise reveals nothing new.
fn enrolment_name(
    session: &Session,
    from: Timestamp,
    until: Timestamp,
    epsilon: Option<f64>,
) -> Result<String, PrivacyError> {
    let told = epsilon.map_or_else(|| "unprotected".to_owned(), |epsilon| format!("ε {epsilon}"));
    let name = format!("enrolment by {from} to {until}, {told}, seed {}", session.seed);
    Ok(match Provenance::of(session) {
        Provenance::OperatingSystem if epsilon.is_some() => {
            format!("{name}, {:016x}", Randomness::operating_system().word()?)
        }
        Provenance::OperatingSystem | Provenance::Seeded => name,
    })
}
