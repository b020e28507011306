//! What a session's settings protect, for how long, and what they do not: in sentences for a reader
//! who does not know ε.

use super::memory::{FilterMemory, Known};
use super::randomness::Provenance;
use super::response::Response;
use super::sparse_vector::SparseVectorParams;
use crate::session::privacy::{Alphabet, AtZero, PrivacySettings, SendPolicy, Sigma};
use crate::session::{Decimation, Mode, Session, Tier};

/// Sentences by what they are about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Explained {
    /// What is protected, and how well.
    pub(crate) protected: Vec<String>,
    pub(crate) how_long: Vec<String>,
    pub(crate) not_protected: Vec<String>,
}

impl Explained {
    /// All of them, in order.
    pub(crate) fn sentences(&self) -> impl Iterator<Item = &str> {
        let all = self.protected.iter().chain(&self.how_long).chain(&self.not_protected);
        all.map(String::as_str)
    }
}

/// Explains the settings of `session` when `mode` decides, with the memory of one client's models
/// where its name and that are known.
pub(crate) fn explain(
    session: &Session,
    mode: Mode,
    remembers: Option<(&str, &FilterMemory)>,
) -> Explained {
    let settings = &session.privacy;
    Explained {
        protected: protected(settings, mode),
        how_long: how_long(settings, remembers),
        not_protected: not_protected(session, mode),
    }
}

fn protected(settings: &PrivacySettings, mode: Mode) -> Vec<String> {
    let leaves = match mode {
        Mode::Evidence => match settings.symbol {
            Alphabet::Graded => "one symbol: how unusual the step was, in five grades",
            Alphabet::OneBit => "one bit: whether the step was unusual",
        },
        Mode::Paper => {
            "two flags: whether its own model is surprised, and whether the model that knows the \
             others is"
        }
    };
    let mut said = vec![format!(
        "Measurements never leave their client. What leaves it at a step is {leaves}. Every release is \
         entered in the client's ledger."
    )];
    said.extend(settings.epsilon_flag.map(|epsilon| answers(epsilon, settings, mode)));
    if mode == Mode::Paper {
        said.extend(settings.epsilon_flag_a.map(|epsilon| {
            let truth = Response::binary(epsilon).map_or(1.0, |response| response.truth());
            format!(
                "Z_a has an ε of its own: it is true with a chance of {:.0} % (ε {epsilon}).",
                100.0 * truth
            )
        }));
    }
    if mode == Mode::Evidence {
        said.extend(saving(settings));
    }
    for (state, epsilon) in states(settings) {
        said.extend(epsilon.map(|epsilon| noise(state, epsilon, settings)));
    }
    said
}

fn how_long(settings: &PrivacySettings, remembers: Option<(&str, &FilterMemory)>) -> Vec<String> {
    let mut said = vec![
        format!(
            "ε says how far what is sent can shift the odds between two values that a sample may have \
             had: by a factor of e^ε at most, but for a chance of δ = {:e}. ε 0.1 hides well, ε 1 \
             fairly (2.7 to 1), ε 10 hardly (22 000 to 1); \"unprotected\" is sent without noise.",
            settings.delta
        ),
        "What is protected stays protected. Releases about the same stretch of time add up: the longer \
         the stretch, the larger its ε."
            .to_owned(),
        remembered(settings, remembers),
    ];
    said.push(match settings.budget {
        Some(budget) => format!(
            "At most ε {} may be spent for {}; then {}.",
            budget.epsilon,
            budget.over.label(),
            at_zero(budget.at_zero)
        ),
        None => "No budget is set: it is sent for as long as the run lasts, and ε goes on growing."
            .to_owned(),
    });
    said
}

fn remembered(settings: &PrivacySettings, remembers: Option<(&str, &FilterMemory)>) -> String {
    let Some((client, memory)) = remembers else {
        let declared = settings.contraction.map_or_else(String::new, |contraction| {
            format!(" The session declares that {contraction} of its effect is left after a step.")
        });
        return format!(
            "Models remember a sample for a while. How long is measured when they are prepared, and \
             counted.{declared}"
        );
    };
    if memory.is_endless() {
        return format!(
            "The models of {client} were not seen to forget a sample of its nominal data: one sample is \
             taken to change everything that is sent after it, and costs as much."
        );
    }
    let steps = match memory.later_steps() {
        1 => "1 step".to_owned(),
        n => format!("{n} steps"),
    };
    let known = match memory.known() {
        Known::Measured => "measured on its nominal data",
        Known::Declared => "declared by the session",
        Known::Assumed => "a usual value: its nominal data is too short to measure it",
    };
    format!(
        "The models of {client} remember: a sample can change what is sent up to {steps} later, and all \
         of it is counted. After a step at most {:.2} of its effect is left ({known}).",
        memory.contraction()
    )
}

fn not_protected(session: &Session, mode: Mode) -> Vec<String> {
    let settings = &session.privacy;
    let mut said = Vec::new();
    if settings.epsilon_flag.is_none() {
        said.push(format!(
            "{} sent unprotected: anyone who listens knows at every step how usual it was.",
            match (mode, settings.epsilon_flag_a) {
                (Mode::Paper, Some(_)) => "Z_c is",
                (Mode::Paper, None) => "Flags are",
                (Mode::Evidence, _) => "Symbols are",
            }
        ));
    }
    for (state, _) in states(settings).iter().filter(|(_, epsilon)| epsilon.is_none()) {
        said.push(format!(
            "In training {state} is sent unprotected: no noise hides the samples of the fit range."
        ));
    }
    if settings.epsilon_a.is_some() {
        said.push(
            "What φ has learned from a sample stays in the x_a it sends later in training: that is not \
             counted."
                .to_owned(),
        );
    }
    if let (Sigma::Classic, Some(epsilon)) = (settings.sigma, largest(settings)) {
        let standing = Sigma::Classic.standing(epsilon, settings.delta);
        said.extend(standing.caveat(settings.delta).map(|words| capital(&words)));
    }
    if Provenance::of(session) == Provenance::Seeded {
        said.push(
            "Seeded: not private. Noise is drawn from a seed, and anyone who knows it can remove the \
             noise."
                .to_owned(),
        );
    }
    said.push(
        "Anyone who listens sees that a client exists, when it sends and how often.".to_owned(),
    );
    if mode == Mode::Evidence {
        said.extend(evidence_releases(session));
    }
    said.push(if settings.tells_faults() {
        "A client reports faults of its sensors unprotected.".to_owned()
    } else {
        "Faults of its sensors are known to the client alone.".to_owned()
    });
    said.push(
        "What is usual for a client's states, their mean and spread, is taken to be known."
            .to_owned(),
    );
    if session.sampling.decimate == Decimation::Auto {
        said.push(
            "How many samples make a step is chosen by the calibration of all clients, and known to all."
                .to_owned(),
        );
    }
    said
}

/// What evidence mode releases beside its symbols.
fn evidence_releases(session: &Session) -> Vec<String> {
    let settings = &session.privacy;
    let told = match settings.symbol {
        Alphabet::Graded => "at the highest grade",
        Alphabet::OneBit => "as unusual",
    };
    let enrolment = match (settings.epsilon_flag, settings.budget) {
        (None, _) => {
            "Before its first symbol a client sends, unprotected, how often each of them occurred in \
             its calibration and how bursty they were."
        }
        (Some(_), None) => {
            "Before its first symbol a client sends how bursty they were in its calibration: every step \
             of it costs as much as a symbol."
        }
        (Some(_), Some(_)) => {
            "A client sends nothing about its calibration: a budget would not last."
        }
    };
    let mut said = vec![
        enrolment.to_owned(),
        format!(
            "A flat sensor is reported {told} for as long as it stays flat; one sample can end that, \
             and this is not counted."
        ),
    ];
    if session.tells_severity() {
        let protected = match settings.epsilon_flag {
            Some(epsilon) => format!("noised like a symbol (ε {epsilon} more each)"),
            None => "unprotected".to_owned(),
        };
        said.push(format!(
            "The first and the third symbol {told} of a burst come with their severity, one of 32 half \
             octaves each, {protected}."
        ));
    }
    if session.thresholds.tier == Tier::States {
        said.push(match settings.epsilon_c {
            Some(epsilon) => format!(
                "Beside its symbols a client sends its state at every step, noised (ε {epsilon} each \
                 time)."
            ),
            None => "Beside its symbols a client sends its state at every step, unprotected.".to_owned(),
        });
    }
    if settings.reveal_sensor {
        said.push(
            "A client that is named as a root says which of its sensors deviate most, as they are."
                .to_owned(),
        );
    }
    said
}

/// How often what is noised with `epsilon_flag` is true. In paper mode that is Z_c alone where Z_a has another
/// ε.
fn answers(epsilon: f64, settings: &PrivacySettings, mode: Mode) -> String {
    let alphabet = settings.symbol;
    let is_of_both = settings.epsilon_flag_a.is_none_or(|of_a| of_a.total_cmp(&epsilon).is_eq());
    let (what, others, symbols) = match (mode, alphabet) {
        (Mode::Paper, _) if is_of_both => ("Each flag", "the other", 2),
        (Mode::Paper, _) => ("Z_c", "the other", 2),
        (Mode::Evidence, Alphabet::Graded) => {
            ("Each symbol", "one of the four others", alphabet.symbols())
        }
        (Mode::Evidence, Alphabet::OneBit) => ("Each bit", "the other", alphabet.symbols()),
    };
    let truth = Response::new(epsilon, symbols).map_or(1.0, |response| response.truth());
    if truth > NEARLY_SURE {
        let one_in = 1.0 / (1.0 - truth).max(1e-9);
        return format!(
            "{what} is true but for one in {one_in:.0} (ε {epsilon}): a reader can be \
             nearly sure of it."
        );
    }
    format!(
        "{what} is true with a chance of {:.0} %, and otherwise {others} (ε {epsilon}): no reader can \
         be sure of a single one.",
        100.0 * truth
    )
}

/// A symbol that is true more often than this hides nothing worth the name.
const NEARLY_SURE: f64 = 0.95;

fn saving(settings: &PrivacySettings) -> Option<String> {
    match settings.send {
        SendPolicy::EveryStep => None,
        SendPolicy::Window(steps) => Some(format!(
            "Only the strongest of {steps} steps is sent, so a step is sent once at most."
        )),
        SendPolicy::WhileRaised => {
            let SparseVectorParams { epsilon, burst, .. } = SparseVectorParams::of(settings, 1.0);
            Some(format!(
                "Nothing is sent until a sum that is kept inside, with noise on it, passes a threshold \
                 with noise on it; {burst} symbols follow. The silence before costs ε {epsilon} however \
                 long it lasts."
            ))
        }
        SendPolicy::Memoised { permanent } => Some(format!(
            "Each level has an answer that is drawn once and kept (ε {permanent}): averaging many \
             symbols of a level that never changes finds that answer and no more."
        )),
    }
}

fn noise(state: &str, epsilon: f64, settings: &PrivacySettings) -> String {
    format!(
        "In training {state} is cut to {} of its usual deviations and noise is added (ε {epsilon} each \
         time).",
        settings.clip_state
    )
}

/// What is sent in training, with its ε.
fn states(settings: &PrivacySettings) -> [(&'static str, Option<f64>); 2] {
    [
        ("the proprietary state x̂_c", settings.epsilon_c),
        ("the augmented state x_a", settings.epsilon_a),
    ]
}

/// The largest ε for which noise is drawn.
fn largest(settings: &PrivacySettings) -> Option<f64> {
    let all = [settings.epsilon_c, settings.epsilon_a, settings.epsilon_g];
    all.into_iter().flatten().reduce(f64::max)
}

/// What happens when a budget is gone.
pub(crate) fn at_zero(at_zero: AtZero) -> String {
    match at_zero {
        AtZero::Stop => "nothing more is sent".to_owned(),
        AtZero::Slower => "a release waits until older ones are long enough ago".to_owned(),
        AtZero::AlarmsOnly { reserve } => {
            format!("only alarms are sent, from the last {reserve} of it")
        }
    }
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).chain(['.']).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(privacy: &str) -> Session {
        let text = format!("Session(about: \"x\", source: Twin(), privacy: ({privacy}))");
        Session::parse("x", std::path::Path::new(""), &text).expect("a sound session")
    }

    fn all(privacy: &str, mode: Mode) -> String {
        explain(&session(privacy), mode, None).sentences().collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn without_settings_it_says_that_nothing_is_hidden() {
        let words = explain(&session(""), Mode::Evidence, None);
        assert_eq!(words.protected.len(), 1);
        let not = words.not_protected.join("\n");
        assert!(
            not.contains("Symbols are sent unprotected") && not.contains("x̂_c is sent unprotected")
        );
        assert!(not.contains("Seeded: not private"));
    }

    #[test]
    fn what_is_said_follows_the_settings() {
        let words = all(
            "epsilon_flag: 2, send: WhileRaised, watch: (epsilon: 4, burst: 7), epsilon_c: 3, \
             epsilon_a: 3, budget: (epsilon: 50, over: Hour, at_zero: AlarmsOnly(reserve: 12))",
            Mode::Evidence,
        );
        for part in
            ["65 %", "7 symbols follow", "ε 4 however", "5 of its usual", "12 of it", "any hour"]
        {
            assert!(words.contains(part), "{part}: {words}");
        }
        let paper = all("epsilon_flag: 2, send: WhileRaised", Mode::Paper);
        assert!(paper.contains("88 %") && !paper.contains("symbols follow"), "{paper}");
    }

    #[test]
    fn a_flag_with_an_epsilon_of_its_own_is_told_by_its_name() {
        let same = all("epsilon_flag: 6", Mode::Paper);
        assert!(same.contains("Each flag is true but for one in"), "{same}");
        let own = all("epsilon_flag: 6, epsilon_flag_a: 1", Mode::Paper);
        assert!(own.contains("Z_c is true but for one in 404"), "{own}");
        assert!(own.contains("it is true with a chance of 73 % (ε 1)"), "{own}");
        assert!(!own.contains("Each flag"), "{own}");
        let open = all("epsilon_flag_a: 1", Mode::Paper);
        assert!(open.contains("Z_c is sent unprotected") && !open.contains("Flags are"), "{open}");
    }

    #[test]
    fn one_bit_is_told_truly_more_often_than_a_grade() {
        let graded = all("epsilon_flag: 2", Mode::Evidence);
        assert!(graded.contains("five grades") && graded.contains("65 %"), "{graded}");
        let bit = all("epsilon_flag: 2, symbol: OneBit", Mode::Evidence);
        assert!(bit.contains("one bit: whether the step was unusual"), "{bit}");
        assert!(bit.contains("88 %") && bit.contains("reported as unusual"), "{bit}");
        assert!(!bit.contains("grade"), "{bit}");
    }

    #[test]
    fn how_long_a_sample_is_remembered_is_said_with_how_that_is_known() {
        let said = |memory: &FilterMemory| {
            explain(&session(""), Mode::Evidence, Some(("P1", memory))).how_long.join("\n")
        };
        let fading: Vec<f64> = (0..100).map(|k| 0.5_f64.powi(k)).collect();
        let measured = FilterMemory::measured(&fading).unwrap().behind(5, 1);
        let words = said(&measured);
        for part in ["models of P1", "9 steps later", "0.50 of its effect", "measured on"] {
            assert!(words.contains(part), "{part}: {words}");
        }
        assert!(said(&FilterMemory::ENDLESS).contains("were not seen to forget"));
        assert!(said(&FilterMemory::NONE).contains("declared by the session"));
        assert!(all("contraction: 0.7", Mode::Paper).contains("declares that 0.7"));
    }

    #[test]
    fn what_is_told_beside_symbols_is_owned_up_to() {
        let open = all("", Mode::Evidence);
        assert!(open.contains("how often each of them occurred") && !open.contains("as a root"));
        let protected = all("epsilon_flag: 2", Mode::Evidence);
        assert!(protected.contains("costs as much as a symbol"), "{protected}");
        assert!(!protected.contains("how often each of them"), "{protected}");
        let limited = all("epsilon_flag: 2, budget: (epsilon: 50)", Mode::Evidence);
        assert!(limited.contains("sends nothing about its calibration"), "{limited}");
        assert!(all("reveal_sensor: true", Mode::Evidence).contains("which of its sensors"));
        assert!(!all("reveal_sensor: true", Mode::Paper).contains("which of its sensors"));
        assert!(all("tell_severity: true", Mode::Evidence).contains("their severity"));
        assert!(!all("tell_severity: false", Mode::Evidence).contains("their severity"));
    }

    #[test]
    fn the_classic_formula_is_owned_up_to() {
        let words = all("epsilon_c: 10, epsilon_a: 1, sigma: Classic", Mode::Paper);
        assert!(words.contains("The classic formula is false here"), "{words}");
        assert!(!all("epsilon_c: 10, epsilon_a: 1", Mode::Paper).contains("classic"));
    }
}
