//! A line that the operator is asked for: where to go, a command, a filter, a note, a value.

use super::command;
use super::line::EditLine;
use crate::engine::knob::Knob;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Go,
    Command,
    /// Which lines of the log are shown; follows what is typed.
    Filter,
    /// Which lines of the help are shown; follows what is typed.
    Search,
    Note(u64),
    Shelf(u64),
    Value(Knob),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub purpose: Purpose,
    pub line: EditLine,
    /// Why the line cannot be used; gone with the next key.
    pub error: Option<String>,
    /// Lines that tab goes through, and which of them stands there now.
    pub offers: Vec<String>,
    pub offer: Option<usize>,
    /// How far back in the history of commands.
    pub back: usize,
}

impl Prompt {
    pub(crate) fn new(purpose: Purpose, text: &str) -> Self {
        let line = EditLine::of(text);
        Self { purpose, line, error: None, offers: Vec::new(), offer: None, back: 0 }
    }

    pub(crate) fn label(&self, clients: &[String]) -> String {
        match self.purpose {
            Purpose::Go => "go to ".into(),
            Purpose::Command => ":".into(),
            Purpose::Filter | Purpose::Search => "/".into(),
            Purpose::Note(incident) => format!("note on #{incident}: "),
            Purpose::Shelf(incident) => format!("shelve #{incident} for "),
            Purpose::Value(knob) => format!("{} = ", knob.title(clients)),
        }
    }

    /// What may be typed, to be shown while nothing or a lone word stands there.
    pub(crate) fn example(&self, clients: &[String]) -> Option<String> {
        let empty = self.line.text().is_empty();
        match self.purpose {
            Purpose::Go => empty.then(|| "10:38  10:38:20  +5m  -30s  #7  'a  end".into()),
            Purpose::Command if empty => {
                Some("tau_c 97.5%   arl0 8h   go 10:38   tab completes".into())
            }
            Purpose::Command => command::example(self.line.text(), clients),
            Purpose::Filter => empty.then(|| "client:P1  #7  by:operator  any word".into()),
            Purpose::Search | Purpose::Note(_) => None,
            Purpose::Shelf(_) => empty.then(|| "30m  2h  at most 24h".into()),
            Purpose::Value(knob) => {
                empty.then(|| command::example(&knob.name(clients), clients)).flatten()
            }
        }
    }

    /// Takes the next of the lines that begin like this one, or the one before.
    pub(crate) fn complete(&mut self, forward: bool, clients: &[String]) {
        if self.purpose != Purpose::Command {
            return;
        }
        if self.offers.is_empty() {
            self.offers = command::completions(self.line.text(), clients);
            self.offer = None;
        }
        let count = self.offers.len();
        if count == 0 {
            return;
        }
        let next = match self.offer {
            None if forward => 0,
            None => count - 1,
            Some(at) => (at + if forward { 1 } else { count - 1 }) % count,
        };
        self.offer = Some(next);
        self.line = EditLine::of(&self.offers[next]);
        if count == 1 {
            // It stands alone: what follows it is to be typed.
            self.line.insert(" ");
            self.forget_offers();
        }
    }

    /// How many lines tab goes through, and those that come next.
    pub(crate) fn further_offers(&self) -> Option<String> {
        let (at, count) = (self.offer?, self.offers.len());
        let next = self.offers.iter().cycle().skip(at + 1).take(count - 1);
        let next: Vec<&str> = next.map(String::as_str).collect();
        Some(format!("{} of {count}, tab: {}", at + 1, next.join("  ")))
    }

    /// Another key was pressed: what tab would offer is another list.
    pub(crate) fn forget_offers(&mut self) {
        self.offers.clear();
        self.offer = None;
    }

    /// Steps through earlier commands, the newest last in `history`.
    pub(crate) fn recall(&mut self, earlier: bool, history: &[String]) {
        if self.purpose != Purpose::Command {
            return;
        }
        let back = if earlier { self.back + 1 } else { self.back.saturating_sub(1) };
        if back <= history.len() {
            self.back = back;
            let text = history.len().checked_sub(back).and_then(|at| history.get(at));
            self.line = EditLine::of(text.map_or("", String::as_str));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tab_goes_round_and_a_lone_offer_waits_for_its_value() {
        let clients = ["P1".to_owned()];
        let mut prompt = Prompt::new(Purpose::Command, "theme ");
        prompt.complete(true, &clients);
        assert_eq!(prompt.line.text(), "theme auto");
        prompt.complete(false, &clients);
        assert_eq!(prompt.line.text(), "theme paper");
        let mut prompt = Prompt::new(Purpose::Command, "arl");
        prompt.complete(true, &clients);
        assert_eq!(prompt.line.text(), "arl0 ");
        assert_eq!(prompt.example(&clients).as_deref(), Some("8h"));
    }

    #[test]
    fn earlier_commands_come_back_the_newest_first() {
        let history = ["go 10:38".to_owned(), "arl0 8h".to_owned()];
        let mut prompt = Prompt::new(Purpose::Command, "");
        let mut seen = Vec::new();
        for earlier in [true, true, true, false, false] {
            prompt.recall(earlier, &history);
            seen.push(prompt.line.text().to_owned());
        }
        assert_eq!(seen, ["arl0 8h", "go 10:38", "go 10:38", "arl0 8h", ""]);
    }
}
