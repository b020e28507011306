//! A word to every site, and the answers of all: how models are agreed on and made before a run.
//!
//! A word that is lost, or whose answer is lost, is repeated and counted. The answer to a repeated word is
//! the stored one: a site releases nothing twice.

use std::time::Instant;

use super::desk::Desk;
use super::envelope::{Down, Up};
use super::{ASK_AGAIN, LEAST_OFTEN};

/// Why there are not all answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// The desk knows why.
    Failed,
    /// A site has forgotten the training in which it took part.
    Forgotten { client: usize },
}

/// Why something is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It answers another word, such as one that was repeated.
    Other,
    /// It cannot be an answer.
    Malformed,
}

/// What is put to sites.
pub(super) struct Inquiry {
    /// For each client; none for those that have nothing to answer.
    pub(super) words: Vec<Option<Down>>,
    /// The training that it is about: a site that has joined it must not forget it.
    pub(super) attempt: Option<u64>,
    /// Sent without a copy at the broker.
    pub(super) once: bool,
}

impl Desk {
    /// Puts a word to every site, and waits for the answers of all.
    pub(super) fn inquire<T>(
        &mut self,
        inquiry: &Inquiry,
        accept: &mut dyn FnMut(&mut Self, usize, Up) -> Result<T, Unfit>,
    ) -> Result<Vec<Option<T>>, Broken> {
        self.inquires = true;
        let answers = self.answers(inquiry, accept);
        self.inquires = false;
        answers
    }

    fn answers<T>(
        &mut self,
        Inquiry { words, attempt, once }: &Inquiry,
        accept: &mut dyn FnMut(&mut Self, usize, Up) -> Result<T, Unfit>,
    ) -> Result<Vec<Option<T>>, Broken> {
        let mut answers: Vec<Option<T>> = words.iter().map(|_| None).collect();
        let mut asked = vec![(Instant::now(), ASK_AGAIN); words.len()];
        for (client, word) in words.iter().enumerate() {
            if let Some(word) = word {
                self.tell_by(client, word, *once);
            }
        }
        let mut missing = words.iter().flatten().count();
        while missing > 0 {
            self.listen();
            if self.failed.is_some() {
                return Err(Broken::Failed);
            }
            // After a new connection everything that was on its way may be lost.
            let again = std::mem::take(&mut self.reconnected);
            while let Some((client, up)) = self.replies.pop_front() {
                let is_open = words[client].is_some() && answers[client].is_none();
                if let Up::Hello { models, waits, .. } = &up {
                    let has_joined = attempt.is_some() && self.joined[client] == *attempt;
                    // Whoever works with models again has learned them.
                    if has_joined && models.attempt != *attempt && models.used.is_none() {
                        return Err(Broken::Forgotten { client });
                    }
                    // It waits for a word and has not got this one.
                    if *waits && is_open && asked[client].0.elapsed() >= ASK_AGAIN / 2 {
                        asked[client].0 = Instant::now();
                        self.tell_again(client, words[client].as_ref(), *once);
                    }
                }
                if !is_open {
                    continue;
                }
                match accept(self, client, up) {
                    Ok(answer) => {
                        answers[client] = Some(answer);
                        missing -= 1;
                    }
                    Err(Unfit::Other) => {}
                    Err(Unfit::Malformed) => self.accounts[client].counts.malformed += 1,
                }
            }
            for client in 0..words.len() {
                let is_open = words[client].is_some() && answers[client].is_none();
                let (when, patience) = asked[client];
                if is_open && (again || when.elapsed() >= patience) {
                    asked[client] = (Instant::now(), (2 * patience).min(LEAST_OFTEN));
                    self.tell_again(client, words[client].as_ref(), *once);
                }
            }
        }
        Ok(answers)
    }

    fn tell_again(&mut self, client: usize, word: Option<&Down>, once: bool) {
        if let Some(word) = word {
            self.accounts[client].counts.asked_again += 1;
            self.tell_by(client, word, once);
        }
    }
}
