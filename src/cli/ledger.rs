//! `headwater ledger`: whether a ledger is what was written, and what its releases cost.
//!
//! ```text
//! P1          720 releases, seeded: not private
//!   one sample            ε   4.00    adding up    4.00     2 releases   exact (binomial)
//! ```

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::PathBuf;

use clap::Args;
use color_eyre::eyre::{Result, WrapErr as _, bail};
use serde::Serialize;

use crate::privacy::{Bound, Composed, Counted, FilterMemory, Ledger, Scope, Spend, books};

#[derive(Debug, Args)]
pub(super) struct LedgerArgs {
    /// The file that `run --ledger` wrote
    file: PathBuf,
    /// One JSON object a client instead of a table
    #[arg(long)]
    json: bool,
}

pub(super) fn run(out: &mut impl Write, args: &LedgerArgs) -> Result<()> {
    let file = File::open(&args.file).wrap_err_with(|| args.file.display().to_string())?;
    let ledgers = match books::verify(BufReader::new(file)) {
        Ok(ledgers) => ledgers,
        Err(broken) => bail!("{}: {broken}", args.file.display()),
    };
    for ledger in &ledgers {
        if args.json {
            writeln!(out, "{}", serde_json::to_string(&Account::of(ledger))?)?;
        } else {
            print(out, ledger)?;
        }
    }
    if !args.json {
        writeln!(out, "every line holds: nothing was changed, added, moved or left out")?;
    }
    Ok(())
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
    /// `null` where something was sent as it is.
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
