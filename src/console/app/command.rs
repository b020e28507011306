//! The command line: every action by its name, every setting by its value, and a few words more.

use super::goal::{self, Goal};
use crate::console::action::{Action, TABLE};
use crate::console::theme::ThemeChoice;
use crate::engine::knob::Knob;
use crate::engine::pace::Speed;
use crate::session::SHIPPED;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Typed {
    Do(Action),
    /// A knob, what was typed for it, and why it is turned.
    Set(Knob, String, Option<String>),
    Go(Goal),
    Theme(ThemeChoice),
    Speed(Speed),
    Filter(String),
    Note(String),
    Shelve(u32),
    Open(String),
    Bell(bool),
    /// All clients are taken out of service, for this reason; or put back.
    Suspend(Option<String>),
    Pay,
}

/// Words that take something after them, each with an example.
const WORDS: [(&str, &str); 12] = [
    ("bell", "on"),
    ("filter", "client:P1"),
    ("go", "10:38"),
    ("note", "text"),
    ("open", "twin"),
    ("pay", ""),
    ("resume", ""),
    ("shelve", "10m"),
    ("speed", "60"),
    ("suspend", "boiler cleaned"),
    ("theme", "mono"),
    ("write", ""),
];

/// Reads a line. `clients` are the names that settings of one client go by.
pub(crate) fn read(text: &str, clients: &[String]) -> Result<Typed, String> {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    let needs = |what: &str| format!("{word}: expected {what}");
    match word {
        "" => Err("a command, a setting or an action; tab completes".into()),
        "q" => Ok(Typed::Do(Action::Quit)),
        "write" | "w" => Ok(Typed::Do(Action::WriteSession)),
        "go" | "g" => Goal::read(rest).map(Typed::Go).ok_or_else(|| needs(goal::EXPECTED)),
        "theme" if !rest.is_empty() => ThemeChoice::ALL
            .into_iter()
            .find(|choice| choice.name() == rest)
            .map(Typed::Theme)
            .ok_or_else(|| needs("auto, dark, paper or mono")),
        "speed" => speed(rest).map(Typed::Speed).ok_or_else(|| needs("0.25 to 3600, or max")),
        "filter" => Ok(Typed::Filter(rest.to_owned())),
        "note" if !rest.is_empty() => Ok(Typed::Note(rest.to_owned())),
        "shelve" if !rest.is_empty() => {
            shelf(rest).map(Typed::Shelve).ok_or_else(|| needs("a time up to 24h, such as 10m"))
        }
        "open" if !rest.is_empty() => Ok(Typed::Open(rest.to_owned())),
        "suspend" if rest.is_empty() => Err(needs("what is done, such as boiler cleaned")),
        "suspend" => Ok(Typed::Suspend(Some(rest.to_owned()))),
        "resume" if rest.is_empty() => Ok(Typed::Suspend(None)),
        "pay" if rest.is_empty() => Ok(Typed::Pay),
        "bell" => match rest {
            "on" => Ok(Typed::Bell(true)),
            "off" => Ok(Typed::Bell(false)),
            _ => Err(needs("on or off")),
        },
        _ => setting(text, clients).unwrap_or_else(|| {
            let action = Action::named(word).filter(|_| rest.is_empty());
            action.map(Typed::Do).ok_or_else(|| format!("nothing is called {text:?}"))
        }),
    }
}

/// `tau_c 97.5%`, `tau_c P1 98% because it chatters`; nothing where no setting is named.
fn setting(text: &str, clients: &[String]) -> Option<Result<Typed, String>> {
    let (text, why) = match text.split_once(" because ") {
        Some((text, why)) => (text.trim(), Some(why.trim().to_owned())),
        None => (text, None),
    };
    // The longest name first: `tau_c P1` begins with `tau_c`.
    let mut knobs = Knob::all(clients.len());
    knobs.sort_by_key(|knob| std::cmp::Reverse(knob.name(clients).len()));
    let (knob, value) = knobs.into_iter().find_map(|knob| {
        let rest = text.strip_prefix(&knob.name(clients))?;
        (rest.is_empty() || rest.starts_with([' ', '='])).then_some((knob, rest))
    })?;
    let value = value.trim_start_matches([' ', '=']);
    if value.is_empty() {
        return Some(Err(format!("{}: expected a value", knob.name(clients))));
    }
    Some(Ok(Typed::Set(knob, value.to_owned(), why.filter(|why| !why.is_empty()))))
}

fn speed(text: &str) -> Option<Speed> {
    if text == "max" {
        return Some(Speed::Max);
    }
    let times: f64 = text.trim_end_matches('x').parse().ok()?;
    (0.25..=3600.0).contains(&times).then_some(Speed::Times(times))
}

pub(crate) fn shelf(text: &str) -> Option<u32> {
    let seconds = goal::seconds(text)?;
    (1..=i64::from(crate::incident::action::LONGEST_SHELF_S))
        .contains(&seconds)
        .then_some(seconds as u32)
}

/// Lines that begin like `text` and mean something, in the order of the alphabet.
pub(crate) fn completions(text: &str, clients: &[String]) -> Vec<String> {
    let text = text.trim_start();
    let mut lines: Vec<String> = Vec::new();
    match text.split_once(' ').map(|(word, _)| word) {
        Some("theme") => lines.extend(ThemeChoice::ALL.map(|c| format!("theme {}", c.name()))),
        Some("mode") => lines.extend(["mode evidence".to_owned(), "mode paper".to_owned()]),
        Some("bell") => lines.extend(["bell on".to_owned(), "bell off".to_owned()]),
        Some("go") => lines.extend(["go end".to_owned(), "go start".to_owned()]),
        Some("open") => lines.extend(SHIPPED.iter().map(|s| format!("open {}", s.name))),
        Some("filter") => lines.extend(clients.iter().map(|c| format!("filter client:{c}"))),
        _ => {
            lines.extend(TABLE.iter().map(|row| row.name.to_owned()));
            lines.extend(WORDS.map(|(word, _)| word.to_owned()));
            lines.extend(Knob::all(clients.len()).iter().map(|knob| knob.name(clients)));
        }
    }
    lines.retain(|line| line.starts_with(text));
    lines.sort();
    lines.dedup();
    lines
}

/// An example of what may follow a word that stands alone, to be shown behind the cursor.
pub(crate) fn example(text: &str, clients: &[String]) -> Option<String> {
    let text = text.trim_start();
    let word = text.strip_suffix(' ').unwrap_or(text);
    if let Some((_, example)) = WORDS.iter().find(|(known, _)| *known == word) {
        return (!example.is_empty()).then(|| (*example).to_owned());
    }
    Some(Knob::named(word, clients)?.row().example.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        vec!["P1".into(), "P2".into()]
    }

    #[test]
    fn settings_actions_and_words_are_understood() {
        let read = |text: &str| read(text, &names());
        let set = |knob, to: &str, why: Option<&str>| {
            Ok(Typed::Set(knob, to.to_owned(), why.map(str::to_owned)))
        };
        assert_eq!(read("tau_c 97.5%"), set(Knob::TauC(None), "97.5%", None));
        assert_eq!(
            read("tau_c P2 98% because it chatters"),
            set(Knob::TauC(Some(1)), "98%", Some("it chatters"))
        );
        assert_eq!(read("arl0=8h"), set(Knob::Arl0, "8h", None));
        assert_eq!(read("mode paper"), set(Knob::Mode, "paper", None));
        assert_eq!(read("go #7"), Ok(Typed::Go(Goal::Incident(7))));
        assert_eq!(read("theme mono"), Ok(Typed::Theme(ThemeChoice::Mono)));
        assert_eq!(read("theme"), Ok(Typed::Do(Action::Theme)));
        assert_eq!(read("speed max"), Ok(Typed::Speed(Speed::Max)));
        assert_eq!(read("quit"), Ok(Typed::Do(Action::Quit)));
        assert_eq!(read("shelve 1h"), Ok(Typed::Shelve(3600)));
        assert_eq!(read("open twin-8"), Ok(Typed::Open("twin-8".into())));
    }

    #[test]
    fn what_is_wrong_is_said_calmly() {
        let wrong = |text: &str| read(text, &names()).expect_err("wrong");
        assert!(wrong("tau_c").contains("expected a value"));
        assert!(wrong("go tomorrow").contains("10:38"));
        assert!(wrong("theme pink").contains("mono"));
        assert!(wrong("speed 0").contains("0.25"));
        assert!(wrong("fly").contains("nothing is called"));
        assert!(wrong("shelve 2d").contains("24h"));
    }

    #[test]
    fn tab_finds_every_action_and_every_setting() {
        for row in TABLE {
            let start: String = row.name.chars().take(1).collect();
            assert!(completions(&start, &names()).contains(&row.name.to_owned()), "{}", row.name);
        }
        assert_eq!(completions("tau_c P", &names()), ["tau_c P1", "tau_c P2"]);
        assert_eq!(completions("theme m", &names()), ["theme mono"]);
        assert_eq!(completions("mode ", &names()), ["mode evidence", "mode paper"]);
        let all = completions("", &names());
        assert!(TABLE.iter().all(|row| all.contains(&row.name.to_owned())), "an empty line: all");
        assert!(WORDS.iter().all(|(word, _)| all.contains(&(*word).to_owned())));
    }

    #[test]
    fn an_example_of_a_setting_can_be_typed() {
        for knob in Knob::all(2) {
            let name = knob.name(&names());
            let example = example(&name, &names()).expect("there is one");
            let Ok(Typed::Set(read, value, None)) = read(&format!("{name} {example}"), &names())
            else {
                panic!("{name} {example} is no setting");
            };
            assert_eq!(read, knob);
            let turn = super::super::turning::typed(knob, &value, None, &names());
            assert!(turn.is_ok(), "{name} {example}");
        }
    }
}
