//! Questions with a handful of answers, each a key: shelve for how long, really accept, which root.

use super::tuning::from_now_on;
use crate::engine::knob::Turn;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Question {
    Shelve {
        incident: u64,
        shift_s: u32,
    },
    Accept {
        incident: u64,
    },
    Correct {
        incident: u64,
        roots: Vec<usize>,
    },
    TakeOut {
        client: usize,
    },
    Commit {
        from: Turn,
        to: Turn,
        step: u64,
        why: Option<String>,
        /// What is set with it: a budget needs noise.
        along: Option<Turn>,
    },
    /// Whether to write settings into the session's file: each as it stands there and as it is.
    Write {
        name: String,
        changes: Vec<(Turn, Turn)>,
    },
    Mark,
    ToMark,
    Open(String),
    /// So many alarms are not acknowledged; whether the next start goes on with them.
    Quit {
        unseen: usize,
        goes_on: bool,
    },
}

pub(crate) type Answer = (char, String);

impl Question {
    pub(crate) fn text(&self, clients: &[String]) -> String {
        let name = |client: usize| clients.get(client).map_or("?", String::as_str);
        match self {
            Self::Shelve { incident, .. } => format!("shelve #{incident} for"),
            Self::Accept { incident } => {
                format!("accept #{incident} as the new normal? silent until it changes")
            }
            Self::Correct { incident, .. } => format!("the root of #{incident} is"),
            Self::TakeOut { client } => {
                format!("take {} out of service? silent until put back", name(*client))
            }
            Self::Commit { to, step, along: Some(along), .. } => {
                let (title, noise) = (to.knob.title(clients), along.knob.title(clients));
                let when = format!("from step {} on", step + 1);
                format!("{title} {to} needs noise: {noise} {along} {when}? before there was none")
            }
            Self::Commit { from, to, step, .. } => {
                let (title, when) = (to.knob.title(clients), from_now_on(to.knob, *step));
                format!("{title} {from} → {to} {}?", when.replace("; ", "? "))
                    .trim_end_matches('?')
                    .to_owned()
            }
            Self::Write { name, changes } => {
                let change =
                    |(from, to): &(Turn, Turn)| format!("{} {from} → {to}", to.knob.title(clients));
                let changes: Vec<String> = changes.iter().map(change).collect();
                format!("write to {name}.ron: {}?", changes.join(", "))
            }
            Self::Mark => "mark this moment with a letter".into(),
            Self::ToMark => "go to mark".into(),
            Self::Open(name) => format!("leave this session and open {name}?"),
            Self::Quit { unseen: 1, .. } => "1 alarm is not acknowledged: quit?".to_owned(),
            Self::Quit { unseen, .. } => format!("{unseen} alarms are not acknowledged: quit?"),
        }
    }

    /// Its answers; marks have none of their own.
    pub(crate) fn choices(&self, clients: &[String]) -> Vec<Answer> {
        let yes = |what: &str| vec![('y', what.to_owned()), ('n', "no".to_owned())];
        match self {
            Self::Shelve { shift_s, .. } => vec![
                ('1', "10 min".into()),
                ('2', "1 h".into()),
                ('3', format!("end of shift ({})", minutes(*shift_s))),
                ('4', "type a time".into()),
            ],
            Self::Accept { .. } => yes("accept"),
            Self::Correct { roots, .. } => roots
                .iter()
                .zip('1'..='9')
                .map(|(root, key)| (key, clients.get(*root).cloned().unwrap_or_default()))
                .collect(),
            Self::TakeOut { .. } => yes("take out"),
            Self::Commit { .. } => yes("set it"),
            Self::Write { .. } => yes("write"),
            Self::Mark | Self::ToMark => Vec::new(),
            Self::Open(_) => yes("open"),
            Self::Quit { goes_on: true, .. } => yes("quit; the next start goes on with them"),
            Self::Quit { goes_on: false, .. } => yes("quit; the next start begins anew"),
        }
    }
}

fn minutes(seconds: u32) -> String {
    format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60)
}

/// Seconds until the shift is over: shifts change at 6, 14 and 22 o'clock.
pub(crate) fn until_shift_end(second_of_day: i64) -> u32 {
    let ends = [6, 14, 22, 30].map(|hour| hour * 3600);
    let left = ends.into_iter().find(|end| *end > second_of_day).unwrap_or(30 * 3600);
    (left - second_of_day) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_ends_at_the_next_change() {
        assert_eq!(until_shift_end(0), 6 * 3600);
        assert_eq!(until_shift_end(6 * 3600), 8 * 3600);
        assert_eq!(until_shift_end(23 * 3600), 7 * 3600);
        assert_eq!(minutes(until_shift_end(4 * 3600 + 1200)), "1 h 40 min");
    }
}
