//! `headwater make`: data of the built-in plants, with its ground truth.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use color_eyre::eyre::Result;

use crate::make;
use crate::session::{Attacks, Family, PlantSource, TwinSource};

#[derive(Debug, Subcommand)]
pub(super) enum Make {
    /// The built-in plant, in the columns of HAI 22.04
    Plant(PlantArgs),
    /// A synthetic plant with known graph and root causes
    Twin(TwinArgs),
}

#[derive(Debug, Args)]
pub(super) struct PlantArgs {
    /// Drives every noise and the operators
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Length in hours, from midnight
    #[arg(long, default_value_t = 24.0)]
    hours: f64,
    /// Stage the attacks of the day (those that fit into its hours)
    #[arg(long)]
    attacks: bool,
    /// The load drives boiler and pumped storage together: a hidden common cause
    #[arg(long)]
    confounded: bool,
    /// Gain from grid frequency back to the steam gate; 10 makes a loop
    #[arg(long, default_value_t = 0.0)]
    grid_feedback: f64,
    /// Folder to write plant.csv and plant-truth.json to
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct TwinArgs {
    /// Drives graph, networks, noise and anomalies
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A: the paper's LSTM plant; B: oscillators, tanks, reactors; H: B made hard
    #[arg(long, value_enum, default_value_t = FamilyArg::A)]
    family: FamilyArg,
    /// Number of clients
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(2..=1024))]
    clients: u16,
    /// Size of family A's anomalies
    #[arg(long, default_value_t = 2.0)]
    delta: f64,
    /// Folder to write twin.csv and twin-truth.json to
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FamilyArg {
    #[value(name = "A", alias = "a")]
    A,
    #[value(name = "B", alias = "b")]
    B,
    #[value(name = "H", alias = "h")]
    H,
}

/// Writes the files and says what is in them.
pub(super) fn run(out: &mut impl Write, what: &Make) -> Result<()> {
    match what {
        Make::Plant(args) => {
            let source = PlantSource {
                attacks: if args.attacks { Attacks::Day } else { Attacks::Nothing },
                history_h: 0.0,
                hours: args.hours,
                confounded: args.confounded,
                grid_feedback: args.grid_feedback,
                ..PlantSource::default()
            };
            write!(out, "{}", make::plant::write(&source, args.seed, &args.out)?)?;
        }
        Make::Twin(args) => {
            let source = TwinSource {
                family: match args.family {
                    FamilyArg::A => Family::A,
                    FamilyArg::B => Family::B,
                    FamilyArg::H => Family::H,
                },
                clients: args.clients.into(),
                delta: args.delta,
                ..TwinSource::default()
            };
            write!(out, "{}", make::twin::write(&source, args.seed, &args.out)?)?;
        }
    }
    Ok(())
}
