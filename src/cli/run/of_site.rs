//! `headwater run RECORDING` where that is the recording of one site: what it holds, in words, and what the
//! site had given away.
//!
//! ```text
//! site        P1: 1440 steps, 2022-08-12 10:00:05 to 2022-08-12 12:00:00
//! largest     surprise 9.2 at 2022-08-12 11:02:10
//! levels      1211 × 0, 171 × 1, 40 × 2, 11 × 3, 7 × 4
//! messages    1441 to the server, 2 from it
//! ```

use std::io::{self, Write};

use color_eyre::eyre::{Result, bail};

use super::RunArgs;
use super::text::{self, clock};
use crate::base::notice::print_notice;
use crate::fact::Fact;
use crate::record::batch::AboutTable::Both;
use crate::record::{Holds, RecordError, Recording, StepMark};
use crate::site::Truth;
use crate::wire::{Crossed, Entries};

/// Says that there are no verdicts, and prints what there is.
pub(super) fn print(
    out: &mut impl Write,
    args: &RunArgs,
    recording: &Recording,
    only: &RecordError,
) -> Result<()> {
    if args.recompute {
        bail!("{only}; without it nothing can be decided again");
    }
    print_notice(only);
    let last = recording.ledger()?.pop();
    if args.json {
        if let Some(last) = last {
            writeln!(out, "{}", last.line)?;
        }
        return Ok(out.flush()?);
    }
    print_content(out, recording)?;
    if let Some(last) = last {
        let fact = Fact::from_line(&last.line);
        text::print(out, &fact.map_err(|why| recording.damaged(format!("a fact: {why}")))?)?;
    }
    Ok(out.flush()?)
}

fn print_content(out: &mut impl Write, recording: &Recording) -> Result<()> {
    let Holds::Site(client) = recording.holds()? else { return Ok(()) };
    let names: Vec<String> = recording.value(Both, "clients")?;
    let name = names.get(client).map_or("?", String::as_str);
    let steps = recording.steps()?;
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
        writeln!(out, "site        {name}: no step")?;
        return Ok(());
    };
    let (first, last) = (clock(first.time), clock(last.time));
    writeln!(out, "site        {name}: {} steps, {first} to {last}", steps.len())?;
    let residuals = recording.residuals(client)?;
    let columns = [
        ("surprise", residuals.iter().map(|seen| seen.surprise).collect::<Vec<_>>()),
        ("d_c", residuals.iter().map(|seen| seen.d_c).collect()),
        ("d_a", residuals.iter().map(|seen| seen.d_a).collect()),
    ];
    for (what, column) in columns {
        if let Some((value, time)) = largest(&steps, column.into_iter()) {
            writeln!(out, "largest     {what} {value:.1} at {}", clock(time))?;
        }
    }
    print_truth(out, &recording.truths(client)?)?;
    let (mut up, mut down) = (0, 0);
    for entry in Entries::of(&recording.messages()?) {
        match entry.map_err(|why| recording.damaged(why.to_string()))? {
            Crossed::Up(_) => up += 1,
            Crossed::Down(_) => down += 1,
            Crossed::Taken => {}
        }
    }
    writeln!(out, "messages    {up} to the server, {down} from it")?;
    Ok(())
}

/// The largest value of a column, and when it was.
fn largest(
    steps: &[StepMark],
    values: impl Iterator<Item = f32>,
) -> Option<(f32, jiff::Timestamp)> {
    let there = steps.iter().zip(values).filter(|(_, value)| value.is_finite());
    there.map(|(step, value)| (value, step.time)).max_by(|(a, _), (b, _)| a.total_cmp(b))
}

/// Flags and levels before anything of them was released.
fn print_truth(out: &mut impl Write, truths: &[Truth]) -> io::Result<()> {
    let flags: Vec<_> = truths.iter().filter_map(|truth| truth.flags).collect();
    if !flags.is_empty() {
        let count = |is: fn(&crate::evidence::threshold::Flags) -> bool| {
            flags.iter().filter(|flags| is(flags)).count()
        };
        let (z_c, z_a) = (count(|flags| flags.z_c), count(|flags| flags.z_a));
        writeln!(out, "flags       Z_c at {z_c} steps, Z_a at {z_a} steps, before their release")?;
    }
    let mut levels = [0_usize; 256];
    truths.iter().filter_map(|truth| truth.own).for_each(|level| levels[usize::from(level)] += 1);
    let levels = levels.iter().enumerate().filter(|(_, steps)| **steps > 0);
    let levels: Vec<String> = levels.map(|(level, steps)| format!("{steps} × {level}")).collect();
    if levels.is_empty() {
        return Ok(());
    }
    writeln!(out, "levels      {}, before their release", levels.join(", "))
}
