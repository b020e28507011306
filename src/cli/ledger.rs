//! `headwater ledger`: whether a ledger is what was written, and what its releases cost.
//!
//! ```text
//! P1          720 releases, seeded: not private
//!   one sample            ε   4.00    adding up    4.00     2 releases   exact (binomial)
//! head 5d0c…, 2166 entries, signed with key 3b6a…: the key of this machine
//! ```
//!
//! It says no more than can be known: up to its last signature the file is as the holder of the key
//! wrote it, and whether its end was cut off is known only with a head that was kept elsewhere.

use std::fs::{File, TryLockError};
use std::io::{BufReader, Write};
use std::path::PathBuf;

use clap::Args;
use color_eyre::eyre::{Result, WrapErr as _, bail, eyre};
use serde::Serialize;

use crate::base::digest;
use crate::engine::ledger_key;
use crate::privacy::{
    Bound, Composed, Counted, FilterMemory, Head, Ledger, SignedLedgers, Spend, signed,
};
use crate::session::privacy::Scope;

#[derive(Debug, Args)]
pub(super) struct LedgerArgs {
    /// The file that a run wrote
    file: PathBuf,
    /// A head that a run printed: the file must end there, or have gone on from there
    #[arg(long, value_name = "HEX", value_parser = digits)]
    head: Option<String>,
    /// The public key that it must be signed with; that of this machine when absent
    #[arg(long, value_name = "HEX", value_parser = digits)]
    key: Option<String>,
    /// One JSON object a client, and one for the file, instead of a table
    #[arg(long)]
    json: bool,
}

/// 64 hexadecimal digits, as heads and keys have.
fn digits(text: &str) -> Result<String, String> {
    let text = text.trim().to_ascii_lowercase();
    match digest::from_hex::<32>(&text) {
        Some(_) => Ok(text),
        None => Err("expected 64 hexadecimal digits".to_owned()),
    }
}

pub(super) fn run(out: &mut impl Write, args: &LedgerArgs) -> Result<()> {
    let place = args.file.display();
    let file = File::open(&args.file).wrap_err_with(|| place.to_string())?;
    // A program that still writes has the file locked; its last lines are then still to be signed.
    let is_written = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    let read = match signed::read(BufReader::new(&file), args.head.as_deref()) {
        Ok(read) => read,
        Err(broken) => bail!("{place}: {broken}"),
    };
    if !is_written && let Err(broken) = read.check_end() {
        bail!("{place}: {broken}");
    }
    let Some(head) = read.head() else { bail!("{place}: the ledger is empty") };
    let signer = Signer::of(head, args.key.as_deref())?;
    if let Signer::Another(expected) = &signer {
        let key = &head.key;
        bail!(
            "{place}: it is signed with the key {key}, expected {expected}; another machine or \
               somebody else wrote it, or this machine's key was replaced (--key names an older one)"
        );
    }
    if let (Some(sought), None) = (&args.head, read.sought) {
        let entries = read.seals.entries();
        bail!(
            "{place}: the head {sought} is not in it; lines are missing at its end, or it is \
               another ledger (it has {entries} entries and ends at {})",
            head.head
        );
    }
    if args.json {
        for ledger in &read.ledgers {
            writeln!(out, "{}", serde_json::to_string(&Account::of(ledger))?)?;
        }
        writeln!(out, "{}", serde_json::to_string(&Whole::of(&read, head, &signer, is_written))?)?;
        return Ok(());
    }
    for ledger in &read.ledgers {
        print(out, ledger)?;
    }
    let Head { head: hash, entries, key, .. } = head;
    writeln!(out, "head {hash}, {entries} entries, signed with key {key}: {}", signer.words())?;
    writeln!(
        out,
        "up to there nothing was changed, added, moved or left out without that key, no client either"
    )?;
    if is_written {
        let after = read.seals.unsigned();
        writeln!(out, "a run is writing to it: {after} entries after the head are not signed yet")?;
    }
    writeln!(out, "{}", end_in_words(read.sought, *entries))?;
    Ok(())
}

/// The state of the end of a file.
fn end_in_words(sought: Option<u64>, entries: u64) -> String {
    match sought {
        None => {
            "whether entries were cut off after it only a head that was kept elsewhere can show: \
                 --head HEX"
                .to_owned()
        }
        Some(at) if at == entries => "it ends at the head that was given".to_owned(),
        Some(at) => {
            format!("the head that was given is in it, after {at} entries; {} follow", entries - at)
        }
    }
}

/// Whose key signed a file.
#[derive(Debug, PartialEq)]
enum Signer {
    /// The one that was asked for.
    Asked,
    /// This machine's.
    Own,
    /// Not known: there is no key on this machine to compare with.
    Unknown,
    /// Not this one, which was expected.
    Another(String),
}

impl Signer {
    fn of(head: &Head, asked: Option<&str>) -> Result<Self> {
        let (expected, same) = match asked {
            Some(asked) => (asked.to_owned(), Self::Asked),
            None => match own_key()? {
                Some(own) => (own, Self::Own),
                None => return Ok(Self::Unknown),
            },
        };
        Ok(if head.key == expected { same } else { Self::Another(expected) })
    }

    fn words(&self) -> &'static str {
        match self {
            Self::Asked => "the key that was given",
            Self::Own => "the key of this machine",
            Self::Unknown => "whose key that is cannot be known here (--key HEX compares)",
            Self::Another(_) => "another key",
        }
    }
}

/// The public half of this machine's key, where it has one.
fn own_key() -> Result<Option<String>> {
    let Some(file) = ledger_key::path() else { return Ok(None) };
    let key = ledger_key::known(&file).map_err(|why| eyre!(why))?;
    Ok(key.map(|key| key.public()))
}

/// The file in JSON.
#[derive(Debug, Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    head: &'a Head,
    signer: &'static str,
    /// Entries up to the head that was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    given_head_at: Option<u64>,
    /// Entries after the last signature, of a run that is writing.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_signed_yet: Option<u64>,
}

impl<'a> Whole<'a> {
    fn of(read: &SignedLedgers, head: &'a Head, signer: &Signer, is_written: bool) -> Self {
        Self {
            head,
            signer: signer.words(),
            given_head_at: read.sought,
            not_signed_yet: is_written.then(|| read.seals.unsigned()),
        }
    }
}

/// One client's ledger in JSON.
#[derive(Debug, Serialize)]
struct Account<'a> {
    client: &'a str,
    delta: f64,
    randomness: &'static str,
    head: &'a str,
    spent: Vec<Spent>,
    training: Spent,
    mechanisms: &'a [Counted],
    memory: FilterMemory,
}

#[derive(Debug, Serialize)]
struct Spent {
    over: &'static str,
    /// `null` where something was sent without noise.
    epsilon: Option<f64>,
    basic: Option<f64>,
    releases: u64,
    bound: Bound,
}

impl Spent {
    fn of(over: &'static str, composed: &Composed) -> Self {
        let finite = |x: f64| x.is_finite().then_some(x);
        Self {
            over,
            epsilon: finite(composed.epsilon),
            basic: finite(composed.basic),
            releases: composed.releases,
            bound: composed.bound,
        }
    }
}

impl<'a> Account<'a> {
    fn of(ledger: &'a Ledger) -> Self {
        let spent = |scope: &Scope| Spent::of(scope.label(), &ledger.worst(*scope));
        Self {
            client: ledger.client(),
            delta: ledger.terms().delta,
            randomness: ledger.provenance().label(),
            head: ledger.head(),
            spent: Scope::ALL.iter().map(spent).collect(),
            training: Spent::of("training", &ledger.trained()),
            mechanisms: ledger.counts(),
            memory: ledger.terms().memory,
        }
    }
}

fn print(out: &mut impl Write, ledger: &Ledger) -> Result<()> {
    let delta = ledger.terms().delta;
    writeln!(out, "{}: at δ {delta}, {}", ledger.client(), ledger.provenance().label())?;
    for scope in Scope::ALL {
        print_spent(out, scope.label(), &ledger.worst(scope))?;
    }
    writeln!(out, "  {}", remembered(&ledger.terms().memory))?;
    let trained = ledger.trained();
    if trained.releases > 0 {
        print_spent(out, "of it, training", &trained)?;
    }
    for counted in ledger.counts() {
        let derived =
            if counted.what.is_derived() { " (computed from what was released)" } else { "" };
        writeln!(
            out,
            "  {:>10} × {:<7} {}{derived}",
            counted.count,
            counted.what.label(),
            mechanism(counted.spend)
        )?;
    }
    Ok(())
}

fn print_spent(out: &mut impl Write, over: &str, composed: &Composed) -> Result<()> {
    writeln!(
        out,
        "  {over:<18} ε {:>10}   adding up {:>12}   {:>8} releases   {}",
        figure(composed.epsilon),
        figure(composed.basic),
        composed.releases,
        composed.bound.label()
    )?;
    Ok(())
}

/// How far a sample reaches, counted above.
fn remembered(memory: &FilterMemory) -> String {
    let known = memory.known().label();
    if memory.is_endless() {
        return format!("a sample reaches into everything after it ({known})");
    }
    let steps = memory.later_steps();
    format!("a sample reaches {steps} steps on ({known}, contraction {:.2})", memory.contraction())
}

fn figure(epsilon: f64) -> String {
    if epsilon.is_finite() { format!("{epsilon:.3}") } else { "∞".to_owned() }
}

/// A mechanism and its settings in words.
pub(super) fn mechanism(spend: Spend) -> String {
    match spend {
        Spend::Gaussian { sensitivity, sigma } => {
            format!("Gaussian noise, σ {sigma:.3} on a sensitivity of {sensitivity:.3}")
        }
        Spend::Response { epsilon, symbols } => {
            format!("randomised response over {symbols} symbols, ε {epsilon}")
        }
        Spend::AboveThreshold { epsilon } => format!("watch, ε {epsilon} an arming"),
        Spend::Clear => "in the clear".to_owned(),
    }
}
