//! Algorithm 2 by hand: a table copied from the paper, and every step looked up in it.

use super::tests::PREPARED;
use super::*;
use crate::evidence::threshold::Flags;
use crate::nn::train::SETTLING;
use crate::wire::testing::{Tampered, message};
use crate::wire::{Content, Message};

type Pair = (u8, u8);

/// Table 1 as printed: flags of C_1, flags of C_2, RCA.
const TABLE_1: [(Pair, Pair, &str); 10] = [
    ((1, 1), (0, 0), "C1"),
    ((0, 0), (1, 1), "C2"),
    ((1, 1), (1, 0), "C1"),
    ((0, 1), (1, 1), "imperfect_training"),
    ((1, 1), (0, 1), "imperfect_training"),
    ((1, 0), (1, 1), "C2"),
    ((0, 0), (0, 0), "no_anomaly"),
    ((1, 0), (1, 0), "neither_both"),
    ((0, 1), (0, 1), "independent_clients"),
    ((1, 1), (1, 1), "violates_assumptions"),
];

/// Flags of the first two clients, step by step; the other two are quiet.
const SEQUENCE: [(Pair, Pair); 24] = [
    ((0, 0), (0, 0)),
    ((1, 1), (0, 0)),
    ((1, 1), (0, 0)),
    ((1, 1), (1, 0)),
    ((0, 0), (0, 0)),
    ((1, 1), (0, 0)),
    ((1, 0), (1, 1)),
    ((0, 0), (1, 1)),
    ((0, 1), (1, 1)),
    ((1, 1), (0, 1)),
    ((1, 0), (1, 0)),
    ((1, 0), (1, 0)),
    ((1, 0), (0, 0)),
    ((0, 1), (0, 0)),
    ((0, 1), (1, 0)),
    ((0, 1), (0, 1)),
    ((1, 1), (1, 1)),
    ((1, 1), (1, 1)),
    ((1, 1), (1, 1)),
    ((0, 0), (1, 1)),
    ((0, 0), (0, 0)),
    ((0, 0), (1, 0)),
    ((1, 1), (1, 0)),
    ((1, 1), (0, 0)),
];

/// One run of steps with one verdict.
#[derive(Debug, PartialEq)]
struct Episode {
    verdict: String,
    first: u64,
    last: u64,
    /// Who shows (1,0) beside a root, and the step of the episode from which on its Z_c stands.
    effects: Vec<(String, u64)>,
}

/// No flags are sent while filters find their states.
const FIRST: u64 = SETTLING as u64 + 1;

/// Algorithm 2 for two clients, and equal verdicts in a row put together.
fn by_hand(sequence: &[(Pair, Pair)]) -> Vec<Episode> {
    let mut episodes: Vec<Episode> = Vec::new();
    for (step, flags) in (FIRST..).zip(sequence) {
        let row = TABLE_1.iter().find(|(c1, c2, _)| (*c1, *c2) == *flags);
        let verdict = row.map_or("not_in_table", |(_, _, verdict)| *verdict);
        if episodes.last().is_none_or(|episode| episode.verdict != verdict) {
            let verdict = verdict.to_owned();
            episodes.push(Episode { verdict, first: step, last: step, effects: Vec::new() });
        }
        let Some(episode) = episodes.last_mut() else { continue };
        episode.last = step;
        let of_client = [|flags: &(Pair, Pair)| flags.0, |flags: &(Pair, Pair)| flags.1];
        for (name, of) in ["C1", "C2"].into_iter().zip(of_client) {
            let names_root = ["C1", "C2"].contains(&verdict);
            let is_new = episode.effects.iter().all(|(known, _)| known != name);
            if names_root && of(flags) == (1, 0) && is_new {
                let stands = |at: &u64| of(&sequence[(at - FIRST) as usize]).0 == 1;
                let since = (episode.first..=step).rev().take_while(stands).last();
                episode.effects.push((name.to_owned(), since.unwrap_or(step)));
            }
        }
    }
    episodes.retain(|episode| episode.verdict != "no_anomaly");
    episodes
}

/// The episodes that facts tell of. The first step is at `start`, one step a second.
fn told(facts: &[Fact], start: Timestamp) -> Vec<Episode> {
    let step = |time: Timestamp| (time.duration_since(start).as_secs() + 1).cast_unsigned();
    let mut episodes = Vec::new();
    let mut opened = 0;
    for fact in facts {
        match fact {
            Fact::Opened(incident) => opened = step(incident.time),
            // It closes at the first step that is not its own, or at the end of the run.
            Fact::Closed(incident) => {
                let effect = |effect: &crate::fact::Effect| {
                    let since = step(effect.time);
                    assert_eq!(effect.delay_s.get() as u64, since - opened, "the root began it");
                    (effect.client.clone(), since)
                };
                assert_eq!(incident.first_out, incident.root, "who else has a flag joins later");
                episodes.push(Episode {
                    verdict: incident.root.clone().expect("Table 1 names it"),
                    first: opened,
                    last: step(incident.time)
                        - u64::from(incident.why.as_deref() != Some("end of run")),
                    effects: incident.effects.iter().map(effect).collect(),
                });
            }
            Fact::Verdict(verdict) => {
                let (first, last) = (step(verdict.time), step(verdict.until));
                assert_eq!(verdict.steps, last - first + 1);
                let verdict = verdict.verdict.clone();
                episodes.push(Episode { verdict, first, last, effects: Vec::new() });
            }
            _ => {}
        }
    }
    episodes.sort_by_key(|episode| episode.first);
    episodes
}

fn run_to_the_end(mut run: Run) -> (Vec<Fact>, Timestamp, Vec<Vec<Option<Flags>>>, Run) {
    let (mut facts, mut flags, mut start) = (Vec::new(), Vec::new(), None);
    while let Some(time) = run.step(&mut facts).expect("synthetic data has no bad rows") {
        start = start.or(Some(time));
        flags.push(run.readouts().iter().map(|readout| readout.server.flags).collect());
    }
    facts.extend(run.end());
    (facts, start.expect("a first step"), flags, run)
}

#[test]
fn every_episode_of_paper_mode_is_what_algorithm_2_gives_by_hand() {
    let occurs = |row: &(Pair, Pair, &str)| SEQUENCE.contains(&(row.0, row.1));
    assert!(TABLE_1.iter().all(occurs), "all ten rows are in the sequence");
    // The wire carries the flags of the sequence in place of those that were sent.
    let wire = Tampered::new(|sent: &mut Vec<Message>| {
        for sent in sent.iter_mut() {
            let Content::Flags { .. } = sent.content() else { continue };
            let (c1, c2) = SEQUENCE[(sent.step() - FIRST) as usize];
            let (z_c, z_a) = [c1, c2].get(sent.client()).copied().unwrap_or((0, 0));
            let flags = Content::Flags { z_c: z_c == 1, z_a: z_a == 1 };
            *sent = message(sent.client(), sent.step(), flags);
        }
    });
    let steps_run = FIRST - 1 + SEQUENCE.len() as u64;
    let until = Some(Mark::Step(steps_run));
    let options = RunOptions { until, wire: Box::new(wire), ..RunOptions::new(Mode::Paper) };
    let run = Run::open_with(&PREPARED.0, &PREPARED.1, options).expect("a synthetic plant");
    let (facts, start, _, run) = run_to_the_end(run);
    let expected = by_hand(&SEQUENCE);
    assert_eq!(told(&facts, start), expected);
    let counts = run.summary(std::time::Duration::from_secs(1)).verdicts.expect("paper mode");
    let steps: u64 = counts.each().iter().map(|(_, count)| count.steps).sum();
    assert_eq!(steps, steps_run, "every step has a verdict");
    let roots = expected.iter().filter(|episode| episode.verdict.starts_with('C')).count();
    assert_eq!(counts.root_cause.episodes, roots as u64);
    assert_eq!((counts.not_in_table.episodes, counts.not_in_table.steps), (2, 4));
    let log = run.annunciator().log().events();
    let words: Vec<String> =
        log.iter().map(|event| event.words(run.annunciator().names())).collect();
    assert!(
        words.iter().any(|line| line.contains("violates assumptions at C1, C2, 3 steps")),
        "{words:#?}"
    );
}

#[test]
fn on_noised_flags_of_four_clients_paper_mode_declares_what_every_pair_says() {
    let mut session = PREPARED.0.clone();
    session.privacy.epsilon_flag = Some(1.0);
    let until = Some(Mark::Step(1500));
    let run = Run::open(&session, &PREPARED.1, Mode::Paper, until).expect("a synthetic plant");
    let (facts, start, flags, _) = run_to_the_end(run);
    // Rule for M clients: of those with a flag, every pair is a row; one alone stands with a quiet one.
    let verdict = |flags: &[Option<Flags>]| -> String {
        let pair = |flags: &Flags| (u8::from(flags.z_c), u8::from(flags.z_a));
        let mut stirred: Vec<(usize, Pair)> = (flags.iter().enumerate())
            .filter_map(|(m, flags)| Some((m, pair(&(*flags)?))))
            .filter(|(_, pair)| *pair != (0, 0))
            .collect();
        if stirred.len() == 1 {
            stirred.push((usize::MAX, (0, 0)));
        }
        let mut said: Vec<String> = Vec::new();
        for (i, (m, c1)) in stirred.iter().enumerate() {
            for (n, c2) in &stirred[i + 1..] {
                let row = TABLE_1.iter().find(|(a, b, _)| a == c1 && b == c2);
                said.push(match row.map_or("not_in_table", |(_, _, verdict)| *verdict) {
                    "C1" => format!("C{}", m + 1),
                    "C2" => format!("C{}", n + 1),
                    other => other.to_owned(),
                });
            }
        }
        // A pair that is no row decides; then two causes at once, then a cause that was not learned,
        // then the root. Two effects of one root agree with it.
        let first = ["not_in_table", "violates_assumptions", "imperfect_training"];
        let decided = first.iter().find(|word| said.iter().any(|said| said == *word));
        let root = said.iter().find(|said| said.starts_with('C'));
        let decided = decided.map(|word| (*word).to_owned());
        let rest = || said.first().cloned().unwrap_or_else(|| "no_anomaly".to_owned());
        decided.or_else(|| root.cloned()).unwrap_or_else(rest)
    };
    let mut expected: Vec<(String, u64, u64)> = Vec::new();
    for (step, flags) in (1..).zip(&flags) {
        let verdict = verdict(flags);
        match expected.last_mut() {
            Some((last, _, until)) if *last == verdict => *until = step,
            _ => expected.push((verdict, step, step)),
        }
    }
    expected.retain(|(verdict, ..)| verdict != "no_anomaly");
    let kinds: std::collections::BTreeSet<&str> =
        expected.iter().map(|(verdict, ..)| verdict.as_str()).collect();
    assert!(kinds.len() >= 8, "four roots and the other verdicts occur: {kinds:?}");
    let told: Vec<(String, u64, u64)> =
        told(&facts, start).into_iter().map(|e| (e.verdict, e.first, e.last)).collect();
    assert_eq!(told, expected);
}
