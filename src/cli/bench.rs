//! `headwater bench`: speed on this machine, or that of a federation over a broker.

use std::io::Write;

use clap::Args;
use color_eyre::eyre::Result;

use super::interrupt;
use crate::bench;
use crate::remote::link::Broker;

#[derive(Debug, Args)]
pub(super) struct BenchArgs {
    /// Measure simulated sites over this broker instead: mqtt://HOST[:PORT], not encrypted
    #[arg(long, value_name = "URL")]
    federation: Option<String>,
    /// Simulated sites
    #[arg(long, value_name = "N", default_value_t = 500, requires = "federation")]
    sites: usize,
    /// Steps that each of them takes
    #[arg(long, value_name = "N", default_value_t = 200, requires = "federation")]
    steps: usize,
    /// One JSON object instead of words
    #[arg(long)]
    json: bool,
}

pub(super) fn run(out: &mut impl Write, args: &BenchArgs) -> Result<()> {
    let Some(url) = &args.federation else {
        let figures = bench::measure()?;
        if args.json {
            writeln!(out, "{}", serde_json::to_string(&figures)?)?;
        } else {
            write!(out, "{figures}")?;
        }
        return Ok(());
    };
    let interrupt = interrupt::watch("the measurement is not complete");
    let broker = Broker::parse(url, None, true)?;
    let figures = bench::federation(&broker, args.sites, args.steps, &interrupt)?;
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&figures)?)?;
    } else {
        let ms = &figures.step_ms;
        writeln!(out, "sites        {}, enrolled in {:.1} s", figures.sites, figures.enrol_s)?;
        writeln!(
            out,
            "a step       median {:.1} ms, 95 % {:.1} ms, longest {:.1} ms, of {}",
            ms.median, ms.p95, ms.longest, figures.steps
        )?;
        writeln!(
            out,
            "traffic      {:.0} messages a second, {:.0} bytes for each site and step",
            figures.messages_per_s, figures.bytes_per_site_step
        )?;
        writeln!(
            out,
            "asked again  {}, duplicates {}, refused {}",
            figures.asked_again, figures.duplicates, figures.refused
        )?;
    }
    Ok(())
}
