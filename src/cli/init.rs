//! `headwater init`: looks at data and writes a session for it, with comments.

mod look;
#[cfg(feature = "opcua")]
mod server;
mod write;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use color_eyre::eyre::{Result, bail, eyre};

use crate::session::Session;

#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// A CSV file (also .gz), a folder of them, or an OPC UA server (opc.tcp://HOST:PORT)
    source: String,
    /// The session file to write; standard output when absent
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace a file that is there
    #[arg(long)]
    force: bool,
}

pub(super) fn run(out: &mut impl Write, args: &InitArgs) -> Result<()> {
    if let Some(file) = args.out.as_ref().filter(|file| !args.force && file.exists()) {
        bail!("{} is there already: --force replaces it", file.display());
    }
    let text = propose(&args.source)?;
    // What is proposed must be a session: nothing else is handed out.
    Session::parse("proposed", Path::new(""), &text)
        .map_err(|why| eyre!("no sound session came out for {}: {why}", args.source))?;
    match &args.out {
        None => write!(out, "{text}")?,
        Some(file) => {
            fs::write(file, text).map_err(|why| eyre!("{}: {why}", file.display()))?;
            writeln!(out, "{}: read it, then `headwater check {0} --full`", file.display())?;
        }
    }
    Ok(())
}

fn propose(source: &str) -> Result<String> {
    if source.starts_with("opc.tcp://") {
        #[cfg(feature = "opcua")]
        return server::propose(source);
        #[cfg(not(feature = "opcua"))]
        bail!("{source}: {}", crate::stream::live::WITHOUT_OPC_UA);
    }
    let path = Path::new(source);
    if !path.exists() {
        bail!("{source}: there is no such file or folder");
    }
    // A session may stand elsewhere than its data.
    let path = fs::canonicalize(path).map_err(|why| eyre!("{source}: {why}"))?;
    Ok(write::text(&look::look(&path)?))
}
