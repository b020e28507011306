//! `headwater init`: looks at data and writes a session for it, with comments.

mod broker;
mod live;
mod look;
mod write;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use color_eyre::eyre::{Result, bail, eyre};

use crate::session::{Session, Span};

#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// A CSV file (also .gz), a folder of them, or a broker such as mqtt://127.0.0.1:1883
    source: String,
    /// How long a broker is listened to
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = super::span)]
    listen_for: Span,
    /// Which messages of a broker are looked at; + and # are allowed
    #[arg(long, value_name = "TOPIC", default_value = "#")]
    topic: String,
    /// The name that the broker knows us by
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// The environment variable that holds the password for the broker
    #[arg(long, value_name = "VARIABLE")]
    password_env: Option<String>,
    /// The certificate (PEM) of the authority that signed the broker's
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
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
    let text = match args.source.as_str() {
        url if url.starts_with("mqtt://") || url.starts_with("mqtts://") => {
            let reached = broker::Reached {
                url,
                topic: &args.topic,
                user: args.user.as_deref(),
                password_env: args.password_env.as_deref(),
                ca: args.ca.as_deref(),
            };
            live::text(&broker::listen(&reached, args.listen_for)?, &reached)
        }
        path => propose(path)?,
    };
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
    let path = Path::new(source);
    if !path.exists() {
        bail!("{source}: there is no such file or folder");
    }
    // A session may stand elsewhere than its data.
    let path = fs::canonicalize(path).map_err(|why| eyre!("{source}: {why}"))?;
    Ok(write::text(&look::look(&path)?))
}
