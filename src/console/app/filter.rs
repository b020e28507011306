//! Which lines of the log are shown: `client:P1 by:operator root`.

use crate::incident::Event;

/// Words that a line must have, all of them. Empty shows every line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Filter {
    text: String,
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    Client(String),
    Incident(u64),
    /// A line that this operator caused; `operator` is any operator, `engine` none.
    By(String),
    Word(String),
}

impl Filter {
    /// Reads what was typed: words, and `client:`, `#`, `by:` in front of some.
    pub(crate) fn read(text: &str) -> Self {
        let text = text.trim();
        let terms = text
            .split_whitespace()
            .map(|word| {
                let word = word.to_lowercase();
                if let Some(client) = word.strip_prefix("client:") {
                    Term::Client(client.to_owned())
                } else if let Some(who) = word.strip_prefix("by:") {
                    Term::By(who.to_owned())
                } else if let Some(Ok(number)) = word.strip_prefix('#').map(str::parse) {
                    Term::Incident(number)
                } else {
                    Term::Word(word)
                }
            })
            .collect();
        Self { text: text.to_owned(), terms }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether it lets this line through, which reads as `words` makes it.
    pub(crate) fn shows(
        &self,
        entry: &Event,
        words: &dyn Fn(&Event) -> String,
        names: &[String],
    ) -> bool {
        let says = || {
            let who = entry.who.as_deref().unwrap_or("engine");
            let why = entry.why.as_deref().unwrap_or_default();
            format!("{who} {} {why}", words(entry)).to_lowercase()
        };
        self.terms.iter().all(|term| match term {
            Term::Client(name) => entry
                .clients()
                .iter()
                .any(|client| names.get(*client).is_some_and(|n| n.to_lowercase() == *name)),
            Term::Incident(number) => entry.incident() == Some(*number),
            Term::By(who) => match (&entry.who, who.as_str()) {
                (Some(_), "operator") | (None, "engine") => true,
                (Some(known), _) => known.to_lowercase() == *who,
                (None, _) => false,
            },
            Term::Word(word) => says().contains(word.as_str()),
        })
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::incident::{OperatorAction, What};

    fn entry(who: Option<&str>, what: What) -> Event {
        let who = who.map(str::to_owned);
        Event { number: 1, time: Timestamp::UNIX_EPOCH, who, what, edits: Vec::new(), why: None }
    }

    #[test]
    fn every_word_narrows_the_log_down() {
        let names = ["P1".to_owned(), "P2".to_owned()];
        let joined = entry(None, What::Joined { incident: 7, client: 1, delay_s: 10.0 });
        let seen = entry(Some("eva"), What::Did(OperatorAction::Acknowledge { incident: 7 }));
        let shows = |text: &str| {
            let filter = Filter::read(text);
            let words = |entry: &Event| entry.words(&names);
            let shows = |entry: &Event| filter.shows(entry, &words, &names);
            (shows(&joined), shows(&seen))
        };
        assert_eq!(shows(""), (true, true));
        assert_eq!(shows("#7"), (true, true));
        assert_eq!(shows("#8"), (false, false));
        assert_eq!(shows("client:p2"), (true, false));
        assert_eq!(shows("client:P1"), (false, false));
        assert_eq!(shows("#7 effect"), (true, false));
        assert_eq!(shows("by:operator"), (false, true));
        assert_eq!(shows("by:EVA ack"), (false, true));
        assert_eq!(shows("by:engine"), (true, false));
        assert_eq!(shows("nonsense"), (false, false));
    }
}
