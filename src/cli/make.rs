//! `headwater make`: data of the built-in plants, with its ground truth.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use color_eyre::eyre::{Result, bail, eyre};

use super::{interrupt, remove_stale};
use crate::base::broker::address;
use crate::engine::pace::Speed;
use crate::make::{self, MakeError, standing};
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
    #[arg(long, value_name = "DIR", required_unless_present = "live")]
    out: Option<PathBuf>,
    /// Be a live source instead: 48 h of normal operation at once, then the hours; on standard output,
    /// as messages plant/row to a broker, or as an OPC UA server
    #[arg(
        long,
        value_name = "stdout|mqtt://HOST|opc.tcp://HOST",
        conflicts_with = "out",
        value_parser = live
    )]
    live: Option<Live>,
    /// Hours of normal operation before the day, when live
    #[arg(long, value_name = "H", default_value_t = make::live::HISTORY_H, requires = "live")]
    history: f64,
    /// Hours of the day that are over when it begins, when live: they come at once, as the history does
    #[arg(long, value_name = "H", default_value_t = 0.0, requires = "live")]
    begin: f64,
    /// How fast the hours pass when live: times the clock, or `max`
    #[arg(long, value_name = "max|N", default_value = "1", requires = "live")]
    speed: Speed,
    /// Replace files that are there
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
pub(super) struct TwinArgs {
    /// Drives graph, networks, noise and anomalies
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A: the paper's LSTM plant; B: oscillators, tanks, reactors; H: B made hard; S: B struck by sudden
    /// accidents
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
    /// Replace files that are there
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FamilyArg {
    #[value(name = "A", alias = "a")]
    A,
    #[value(name = "B", alias = "b")]
    B,
    #[value(name = "H", alias = "h")]
    H,
    #[value(name = "S", alias = "s")]
    S,
}

/// Writes the files and says what is in them.
pub(super) fn run(out: &mut impl Write, what: &Make) -> Result<()> {
    let text = match what {
        Make::Plant(args) => {
            let source = PlantSource {
                attacks: if args.attacks { Attacks::Day } else { Attacks::Nothing },
                history_h: if args.live.is_some() { args.history } else { 0.0 },
                hours: args.hours,
                confounded: args.confounded,
                grid_feedback: args.grid_feedback,
                ..PlantSource::default()
            };
            if let Some(live) = &args.live {
                return be_live(out, live, &source, args);
            }
            let Some(folder) = &args.out else { bail!("name a folder with --out") };
            let place = Place::new(folder, &make::plant::FILES, args.force)?;
            let stop = interrupt::watch(STOPPING);
            let report = make::plant::write(&source, args.seed, folder, &stop);
            report.map_err(|error| place.leave(error))?.to_string()
        }
        Make::Twin(args) => {
            let place = Place::new(&args.out, &make::twin::FILES, args.force)?;
            let source = TwinSource {
                family: match args.family {
                    FamilyArg::A => Family::A,
                    FamilyArg::B => Family::B,
                    FamilyArg::H => Family::H,
                    FamilyArg::S => Family::S,
                },
                clients: args.clients.into(),
                delta: args.delta,
                ..TwinSource::default()
            };
            let stop = interrupt::watch(STOPPING);
            let report = make::twin::write(&source, args.seed, &args.out, &stop);
            report.map_err(|error| place.leave(error))?.to_string()
        }
    };
    write!(out, "{text}")?;
    Ok(())
}

/// Where live rows go.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Live {
    Stdout,
    Broker(String),
    Server(String),
}

fn live(text: &str) -> Result<Live, String> {
    match text {
        "stdout" | "-" => Ok(Live::Stdout),
        url if address(url).is_ok() => Ok(Live::Broker(url.into())),
        url if url.starts_with("opc.tcp://") => Ok(Live::Server(url.into())),
        _ => {
            Err("expected stdout, mqtt://HOST:PORT, mqtts://HOST:PORT or opc.tcp://HOST:PORT"
                .into())
        }
    }
}

/// The plant as a live source, until it is over or stopped.
fn be_live(out: &mut impl Write, to: &Live, source: &PlantSource, args: &PlantArgs) -> Result<()> {
    let speed = match args.speed {
        Speed::Times(times) => Some(times),
        Speed::Max => None,
    };
    let stop = interrupt::watch("the plant stands still");
    match to {
        Live::Stdout => {
            let mut sink = make::live::Lines::new(out);
            make::live::run(source, args.seed, speed, args.begin, &mut sink, &stop)?;
        }
        Live::Broker(url) => {
            let mut sink = make::publish::Publisher::connect(url, &stop)?;
            make::live::run(source, args.seed, speed, args.begin, &mut sink, &stop)?;
        }
        #[cfg(feature = "opcua")]
        Live::Server(url) => {
            if speed.is_none() {
                bail!("an OPC UA server cannot wait for its readers: --speed needs a number");
            }
            let mut sink = make::opcua::Server::bind(url, &stop)?;
            make::live::run(source, args.seed, speed, args.begin, &mut sink, &stop)?;
        }
        #[cfg(not(feature = "opcua"))]
        Live::Server(url) => bail!("{url}: {}", crate::stream::live::WITHOUT_OPC_UA),
    }
    Ok(())
}

/// What becomes of the work when it is stopped.
const STOPPING: &str = "partial files are removed";

/// Where files are to be written.
struct Place<'a> {
    folder: &'a Path,
    files: &'a [&'static str],
    is_new: bool,
}

impl<'a> Place<'a> {
    /// Refuses to replace files without `force`, and removes what a killed run has left of them.
    fn new(folder: &'a Path, files: &'a [&'static str], force: bool) -> Result<Self> {
        let there = standing(folder, files);
        if !force && !there.is_empty() {
            let them = if there.len() == 1 { "it" } else { "them" };
            let there = there.join(" and ");
            bail!("{} already holds {there}: --force replaces {them}", folder.display());
        }
        for file in files {
            remove_stale(folder, file);
        }
        Ok(Self { folder, files, is_new: !folder.exists() })
    }

    /// After a failure, or a wish to stop: says what remains.
    fn leave(&self, error: MakeError) -> color_eyre::Report {
        // An empty folder that was made for the files is of no use without them.
        let is_gone = self.is_new && fs::remove_dir(self.folder).is_ok();
        if is_gone || !matches!(error, MakeError::Stopped) {
            return error.into();
        }
        let folder = self.folder.display();
        match standing(self.folder, self.files).as_slice() {
            [] => eyre!("{error}; {folder} is as it was"),
            [file] => eyre!("{error}; the earlier {file} remains in {folder}"),
            files => eyre!("{error}; the earlier {} remain in {folder}", files.join(" and ")),
        }
    }
}
