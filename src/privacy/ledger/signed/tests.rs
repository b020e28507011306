use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::privacy::memory::FilterMemory;
use crate::privacy::randomness::{Provenance, Randomness};
use crate::privacy::release::{Flag, Spend, What};
use crate::privacy::response::Response;
use crate::privacy::seal::LedgerKey;
use crate::privacy::{Budget, Purpose, Terms, Trained};
use crate::session::privacy::{AtZero, Scope};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_691_798_400 + second).unwrap()
}

fn trained(training: &str, what: What) -> Trained {
    Trained {
        training: training.to_owned(),
        what,
        spend: Spend::Gaussian { sensitivity: 1.0, sigma: 2.0 },
        count: 400,
        samples: 100,
        rounds: 400,
        until: at(-1),
        randomness: Provenance::OperatingSystem,
    }
}

/// Two clients with a training and five flags each, and the text of it.
fn written() -> ([Ledger; 2], String) {
    written_on(&[])
}

/// The same as a continuation of `kept`.
fn written_on(kept: &[Ledger]) -> ([Ledger; 2], String) {
    let terms = Terms { delta: 1e-6, memory: FilterMemory::NONE, budget: None };
    let mut ledgers = ["P1", "P2"].map(|client| Ledger::unwritten(client, terms).unwrap());
    let mut text = String::new();
    let training = vec![trained("one", What::ProprietaryState), trained("one", What::Gradient)];
    for ledger in &mut ledgers {
        ledger.write_from(at(0), kept).unwrap();
        ledger.enter_training(at(-100), &training);
    }
    let mut random = Randomness::operating_system();
    let response = Response::binary(1.0).unwrap();
    for second in 0..5 {
        for ledger in &mut ledgers {
            let flag = response.flag(Flag(false), &mut random).unwrap();
            let what = What::ProprietaryFlag;
            ledger.enter(at(second), what, Purpose::Routine, flag).unwrap();
            text += &ledger.take_lines();
        }
    }
    for ledger in &mut ledgers {
        ledger.close(at(5));
        text += &ledger.take_lines();
    }
    (ledgers, text)
}

fn key() -> LedgerKey {
    LedgerKey::from_text(&"07".repeat(32)).expect("32 bytes")
}

/// A file of `runs` runs, each sealed at its beginning, in its middle and at its end; how many lines
/// it has after every run, and the heads.
fn sealed(runs: usize) -> (String, Vec<usize>, Vec<Head>) {
    let (mut seals, mut file) = (Seals::default(), String::new());
    file += &seals.seal(&key(), None, None);
    let (mut ends, mut heads) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let kept = read(file.as_bytes(), None).expect("sound").ledgers;
        let (ledgers, text) = written_on(&kept);
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let (first, second) = lines.split_at(lines.len() / 2);
        for (part, clients) in
            [(first, None), (second, Some(ledgers.map(|b| b.client_head()).to_vec()))]
        {
            seals.take(&part.concat());
            file += &part.concat();
            file += &seals.seal(&key(), clients, None);
        }
        ends.push(file.lines().count());
        heads.push(seals.last().expect("sealed").clone());
    }
    (file, ends, heads)
}

fn whole(text: &str) -> Result<SignedLedgers, Broken> {
    let read = read(text.as_bytes(), None)?;
    read.check_end().map(|()| read)
}

/// Lines without those that `drop` chooses, by their number and text.
fn without(text: &str, drop: impl Fn(usize, &str) -> bool) -> String {
    let lines = text.split_inclusive('\n').enumerate();
    lines.filter(|(i, line)| !drop(*i, line)).map(|(_, line)| line).collect()
}

/// The file as somebody writes it who has changed an entry and computed all hashes anew, with the
/// signatures of before or with a key of their own.
fn rewritten(text: &str, own: Option<&LedgerKey>) -> String {
    let mut chains: std::collections::BTreeMap<String, Chain> = std::collections::BTreeMap::new();
    let (mut seals, mut file) = (Seals::default(), String::new());
    for line in text.lines() {
        if Seals::is_seal(line.as_bytes()) {
            if let Some(key) = own {
                file += &seals.seal(key, None, None);
                continue;
            }
            // The hashes fit, the signature is the old one.
            let forged = seals.seal(&key(), None, None);
            let old = &line["{\"signature\":\"".len()..][..128];
            let new = &forged["{\"signature\":\"".len()..][..128];
            let forged = forged.replace(new, old);
            // What is sealed next covers the line as it stands in the file.
            seals = Seals::default();
            file += &forged;
            for line in file.clone().lines() {
                if Seals::is_seal(line.as_bytes()) {
                    seals.accept(line.as_bytes(), |_| true).expect("hashes fit");
                } else {
                    seals.take(&format!("{line}\n"));
                }
            }
            continue;
        }
        let record = Line::read(line.as_bytes()).expect("a line").record;
        let mut entry = record.entry;
        if let crate::privacy::chain::Entry::Released { spend, .. } = &mut entry {
            *spend = Spend::Response { epsilon: 0.1, symbols: 2 };
        }
        let chain = chains.entry(record.client.clone()).or_default();
        let line = chain.append(record.time, &record.client, entry);
        seals.take(&line);
        file += &line;
    }
    file
}

#[test]
fn hashes_computed_anew_without_the_key_do_not_pass() {
    let (text, _, _) = sealed(1);
    assert!(whole(&text).is_ok());
    let broken = whole(&rewritten(&text, None)).unwrap_err();
    assert_eq!(broken.why, Why::Forged { key: key().public() });
    let own = LedgerKey::new().unwrap();
    let resigned = whole(&rewritten(&text, Some(&own))).unwrap();
    assert_eq!(resigned.head().unwrap().key, own.public(), "another key is seen to be another");
}

#[test]
fn a_dropped_client_is_noticed_without_a_head() {
    let (text, _, _) = sealed(1);
    for gone in ["P1", "P2"] {
        let mark = format!("\"client\":\"{gone}\",\"entry\"");
        let rest = without(&text, |_, line| line.contains(&mark));
        let broken = whole(&rest).unwrap_err();
        let Why::Uncovered { signed, found } = broken.why else { panic!("{broken}") };
        assert!(found < signed, "{broken}");
    }
    // Without a seal in between, the last one names who is missing.
    let (ledgers, text) = written();
    let mut seals = Seals::default();
    let first = seals.seal(&key(), None, None);
    seals.take(&text);
    let heads = ledgers.map(|ledger| ledger.client_head()).to_vec();
    let file = first + &text + &seals.seal(&key(), Some(heads), None);
    let rest = without(&file, |_, line| line.contains("\"client\":\"P2\",\"entry\""));
    assert_eq!(whole(&rest).unwrap_err().why, Why::ClientMissing("P2".to_owned()));
}

#[test]
fn a_dropped_last_run_is_noticed_by_who_kept_its_head_and_by_nobody_else() {
    let (text, ends, heads) = sealed(2);
    let cut = without(&text, |i, _| i >= ends[0]);
    assert!(whole(&cut).is_ok(), "a file cannot show that its end was cut off");
    let sought = |text: &str, head: &Head| read(text.as_bytes(), Some(&head.head)).unwrap().sought;
    assert_eq!(sought(&cut, &heads[1]), None);
    assert_eq!(sought(&cut, &heads[0]), Some(heads[0].entries));
    assert_eq!(sought(&text, &heads[0]), Some(heads[0].entries), "an older head is still in it");
    assert_eq!(sought(&text, &heads[1]), Some(heads[1].entries));
}

#[test]
fn a_torn_last_line_leaves_what_stands_before_it() {
    let (text, _, _) = sealed(1);
    for cut in 1..text.lines().last().expect("a line").len() {
        let torn = &text[..text.len() - 1 - cut];
        let found = read(torn.as_bytes(), None).unwrap();
        assert_eq!(found.check_end().unwrap_err().why, Why::Torn);
        let rest = &torn[..found.sound_bytes as usize];
        assert!(rest.ends_with('\n') && torn.len() > rest.len());
        let kept = found.found().expect("a note");
        assert_eq!(kept.torn.map(|torn| torn.text), Some(torn[rest.len()..].to_owned()));
        assert_eq!(kept.unsigned, read(rest.as_bytes(), None).unwrap().seals.unsigned());
    }
}

#[test]
fn a_file_that_is_no_ledger_is_not_taken_for_a_torn_one() {
    for text in ["notes about the plant", "{\"name\":1}", "\0\0\0"] {
        let broken = read(text.as_bytes(), None).unwrap_err();
        assert_eq!((broken.line, broken.why), (1, Why::NoKey));
    }
    let (text, _, _) = sealed(1);
    for cut in [1, 10, 200] {
        let torn = read(&text.as_bytes()[..cut], None).unwrap();
        assert!(
            torn.torn.is_some() && torn.sound_bytes == 0,
            "the first line of all was cut short"
        );
    }
}

#[test]
fn a_ledger_from_before_ledgers_were_signed_is_said_to_be_one() {
    let (_, text) = written();
    let broken = read(text.as_bytes(), None).unwrap_err();
    assert_eq!((broken.line, broken.why), (1, Why::NoKey));
}

proptest! {
    #[test]
    fn any_flipped_bit_of_a_signed_ledger_is_noticed(place in 0.0_f64..1.0, bit in 0_u8..8) {
        let (text, _, _) = sealed(1);
        let mut bytes = text.into_bytes();
        let at = (place * bytes.len() as f64) as usize;
        bytes[at] ^= 1 << bit;
        let noticed = match read(bytes.as_slice(), None) {
            Err(_) => true,
            Ok(read) => read.check_end().is_err(),
        };
        prop_assert!(noticed, "bit {bit} of byte {at}");
    }

    #[test]
    fn any_dropped_line_is_noticed(place in 0.0_f64..1.0) {
        let (text, ends, _) = sealed(2);
        let gone = (place * ends[1] as f64) as usize;
        prop_assert!(whole(&without(&text, |i, _| i == gone)).is_err(), "line {gone}");
    }
}

#[test]
fn what_was_written_is_read_back_client_by_client() {
    let (ledgers, text) = written();
    let mut seals = Seals::default();
    let first = seals.seal(&key(), None, None);
    seals.take(&text);
    let file = first + &text + &seals.seal(&key(), None, None);
    let again = whole(&file).unwrap().ledgers;
    for (ledger, again) in ledgers.iter().zip(&again) {
        assert_eq!(ledger.head(), again.head());
        assert_eq!(ledger.counts(), again.counts());
        for scope in Scope::ALL {
            let (a, b) = (ledger.spent(scope, at(5)), again.spent(scope, at(5)));
            assert_eq!(a.releases, b.releases, "{scope:?}");
        }
        assert_eq!((again.live().releases, again.trained().releases), (5, 400));
        assert!(again.provenance().is_private());
    }
    let own: String =
        text.split_inclusive('\n').filter(|line| line.contains("\"client\":\"P2\"")).collect();
    assert_eq!(Ledger::restore(own.as_bytes(), None).unwrap().head(), again[1].head());
}

#[test]
fn a_training_is_counted_once_however_often_its_models_are_used() {
    let (text, _, _) = sealed(1);
    let kept = read(text.as_bytes(), None).unwrap().ledgers;
    let terms = *kept[0].terms();
    let mut ledger = Ledger::unwritten("P1", terms).unwrap();
    ledger.write_from(at(10), &kept).unwrap();
    ledger.enter_training(at(-100), &[trained("one", What::ProprietaryState)]);
    assert_eq!(ledger.take_lines(), "");
    ledger.enter_training(at(-100), &[trained("two", What::ProprietaryState)]);
    assert_eq!(ledger.trained().releases, 800);
    assert_eq!(ledger.take_lines().lines().count(), 1);
}

#[test]
fn gradients_are_noted_and_cost_nothing() {
    let (ledgers, _) = written();
    let ledger = &ledgers[0];
    assert_eq!(ledger.trained().releases, 400);
    assert_eq!(ledger.counts().iter().map(|c| c.count).sum::<u64>(), 805);
}

#[test]
fn a_training_weighs_on_the_stretches_it_is_about() {
    let (ledgers, _) = written();
    let ledger = &ledgers[0];
    // 400 releases about 100 seconds: 240 in a minute, four of a sample.
    assert_eq!(ledger.worst(Scope::Minute).releases, 240);
    assert_eq!(ledger.worst(Scope::Hour).releases, 400);
    assert_eq!(ledger.spent(Scope::Day, at(5)).releases, 405);
    assert_eq!(ledger.spent(Scope::Day, at(200_000)).releases, 0);
    assert_eq!(ledger.spent(Scope::Lifetime, at(200_000)).releases, 405);
}

#[test]
fn a_budget_below_what_is_spent_changes_nothing() {
    let ([mut ledger, _], _) = written();
    let budget = |epsilon| Budget::new(epsilon, Scope::Lifetime, AtZero::Stop).ok();
    assert!(ledger.set_budget(budget(0.5), at(6)).is_err());
    assert!(ledger.terms().budget.is_none());
    assert_eq!(ledger.take_lines(), "");
    ledger.set_budget(budget(500.0), at(6)).unwrap();
    assert_eq!(ledger.take_lines().lines().count(), 1);
}

#[test]
fn a_ledger_is_continued_at_the_delta_and_the_budget_of_the_session() {
    let (text, _, _) = sealed(1);
    let kept = read(text.as_bytes(), None).unwrap().ledgers;
    let budget = Budget::new(1e6, Scope::Lifetime, AtZero::Stop).ok();
    let terms = Terms { delta: 1e-9, budget, ..*kept[0].terms() };
    let mut ledger = Ledger::unwritten("P1", terms).unwrap();
    ledger.write_from(at(10), &kept).unwrap();
    assert_eq!(ledger.terms(), &terms);
    assert!(ledger.take_lines().contains("\"delta\":1e-9"), "the change is entered");
}
