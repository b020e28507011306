//! What a session's settings protect, for how long, and what they do not: in sentences for somebody
//! who has never heard of ε.

use super::gaussian::SigmaRule;
use super::outlook::{Knob, caveat};
use super::randomness::Provenance;
use super::response::Response;
use super::voice::Vigil;
use crate::session::privacy::{AtZero, PrivacySettings, Scope, Thrift};
use crate::session::{Mode, Session};

/// Sentences by what they are about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Explained {
    /// What is protected, and how well.
    pub protected: Vec<String>,
    /// For how long.
    pub how_long: Vec<String>,
    /// What is not.
    pub not_protected: Vec<String>,
}

impl Explained {
    /// All of them, in order.
    pub fn sentences(&self) -> impl Iterator<Item = &str> {
        let all = self.protected.iter().chain(&self.how_long).chain(&self.not_protected);
        all.map(String::as_str)
    }
}

/// Explains the settings of `session` when `mode` decides.
#[must_use]
pub fn explain(session: &Session, mode: Mode) -> Explained {
    let settings = &session.privacy;
    let mut explained = Explained::default();
    let Explained { protected, how_long, not_protected } = &mut explained;

    protected.push(
        "Measurements never leave their client. What leaves it is listed here, and every release is \
         written in the client's ledger."
            .to_owned(),
    );
    match settings.epsilon_flag {
        Some(epsilon) => protected.push(answers(epsilon, mode)),
        None => not_protected.push(format!(
            "{} are sent as they are: whoever listens knows at every step how usual it was.",
            if mode == Mode::Paper { "Flags" } else { "Symbols" }
        )),
    }
    if mode == Mode::Evidence {
        protected.extend(saving(settings));
    }
    for knob in [Knob::States, Knob::AugmentedStates] {
        match knob.epsilon(settings) {
            Some(epsilon) => protected.push(noise(knob, epsilon, settings)),
            None => not_protected.push(format!(
                "In training {} is sent as it is: about the samples of the fit range nothing is hidden \
                 by noise.",
                name(knob)
            )),
        }
    }
    if let (SigmaRule::Classic, Some(epsilon)) = (settings.sigma.into(), largest(settings)) {
        let standing = SigmaRule::Classic.standing(epsilon, settings.delta);
        not_protected.extend(caveat(standing, settings.delta).map(|words| capital(&words)));
    }

    how_long.push(format!(
        "Every release says a little, and a little adds up: ε of a minute, an hour, a day and the \
         whole history grow with the number of releases, each with a chance of {:e} that more is told.",
        settings.delta
    ));
    if settings.contraction > 0.0 {
        how_long.push(format!(
            "A filter remembers: a sample goes on moving later releases, each time by at most {} of \
             the time before. That share is stated by the session, and counted.",
            settings.contraction
        ));
    }
    how_long.push(match settings.budget {
        Some(budget) => format!(
            "At most ε {} may be spent for {}; then {}.",
            budget.epsilon,
            over(budget.over),
            at_zero(budget.at_zero)
        ),
        None => "There is no budget: nothing ends by itself.".to_owned(),
    });

    if Provenance::of(session) == Provenance::Seeded {
        not_protected.push(
            "Seeded: not private. Noise is drawn from a seed, and whoever knows it can take the noise \
             away again."
                .to_owned(),
        );
    }
    not_protected.extend(
        [
            "That a client exists, when it sends and how often is seen by everybody who listens.",
            "Before it is heard a client tells how often each of its symbols occurred in calibration; \
             by the way symbols are made that is nearly the same for all.",
            "What is usual for a client's states, their mean and spread, is taken to be known.",
        ]
        .map(str::to_owned),
    );
    explained
}

fn answers(epsilon: f64, mode: Mode) -> String {
    let (what, symbols) = match mode {
        Mode::Paper => ("flag", 2),
        Mode::Evidence => ("symbol", 5),
    };
    let truth = Response::new(epsilon, symbols).map_or(1.0, |response| response.truth());
    format!(
        "Each {what} is true with a chance of {:.0} % and drawn at random otherwise (ε {epsilon}): \
         nobody can be sure of any single one.",
        100.0 * truth
    )
}

fn saving(settings: &PrivacySettings) -> Option<String> {
    match settings.thrift {
        Thrift::EveryStep => None,
        Thrift::Window(steps) => Some(format!(
            "Only the strongest of {steps} steps is told, so a step is told of once at most."
        )),
        Thrift::WhileRaised => {
            let Vigil { epsilon, burst, .. } = Vigil::of(settings, 1.0);
            Some(format!(
                "Nothing is sent until a sum that is kept inside, with noise on it, passes a threshold \
                 with noise on it; {burst} symbols follow. The silence before costs ε {epsilon} however \
                 long it lasts."
            ))
        }
        Thrift::Memoised { permanent } => Some(format!(
            "Each level has an answer that is drawn once and kept (ε {permanent}): averaging many \
             symbols of a level that never changes finds that answer and no more."
        )),
    }
}

fn noise(knob: Knob, epsilon: f64, settings: &PrivacySettings) -> String {
    format!(
        "In training {} is cut to {} of its usual deviations and noised (ε {epsilon} each time).",
        name(knob),
        settings.clip_state
    )
}

fn name(knob: Knob) -> &'static str {
    match knob {
        Knob::States => "the proprietary state x̂_c",
        Knob::AugmentedStates => "the augmented state x_a",
        Knob::Gradients => "the gradient g",
        Knob::Flags => "a flag",
    }
}

/// The largest ε for which noise is drawn.
fn largest(settings: &PrivacySettings) -> Option<f64> {
    let all = [settings.epsilon_c, settings.epsilon_a, settings.epsilon_g];
    all.into_iter().flatten().reduce(f64::max)
}

fn over(scope: Scope) -> &'static str {
    super::Scope::from(scope).label()
}

fn at_zero(at_zero: AtZero) -> String {
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
        explain(&session(privacy), mode).sentences().collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn without_settings_it_says_that_nothing_is_hidden() {
        let words = explain(&session(""), Mode::Evidence);
        assert_eq!(words.protected.len(), 1);
        let not = words.not_protected.join("\n");
        assert!(
            not.contains("Symbols are sent as they are") && not.contains("x̂_c is sent as it is")
        );
        assert!(not.contains("Seeded: not private"));
    }

    #[test]
    fn what_is_said_follows_the_settings() {
        let words = all(
            "epsilon_flag: 2, thrift: WhileRaised, watch: (epsilon: 4, burst: 7), epsilon_c: 3, \
             epsilon_a: 3, budget: (epsilon: 50, over: Hour, at_zero: AlarmsOnly(reserve: 12))",
            Mode::Evidence,
        );
        for part in
            ["65 %", "7 symbols follow", "ε 4 however", "5 of its usual", "12 of it", "any hour"]
        {
            assert!(words.contains(part), "{part}: {words}");
        }
        let paper = all("epsilon_flag: 2, thrift: WhileRaised", Mode::Paper);
        assert!(paper.contains("88 %") && !paper.contains("symbols follow"), "{paper}");
    }

    #[test]
    fn the_classic_formula_is_owned_up_to() {
        let words = all("epsilon_c: 10, epsilon_a: 1, sigma: Classic", Mode::Paper);
        assert!(words.contains("The classic formula is false here"), "{words}");
        assert!(!all("epsilon_c: 10, epsilon_a: 1", Mode::Paper).contains("classic"));
    }
}
