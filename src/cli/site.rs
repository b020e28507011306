//! `headwater site`: one client of a session as a process of its own.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use color_eyre::eyre::Result;

use super::run::{Bar, Method, Printer};
use super::serve::{BrokerArgs, models, say};
use super::{SessionArgs, interrupt};
use crate::engine::run::ledger_fact;
use crate::nn::checkpoint::{CacheEnvironment, cache_folder};
use crate::remote::site::{self, Options};
use crate::session::Mode;

#[derive(Debug, Args)]
pub(super) struct SiteArgs {
    #[command(flatten)]
    session: SessionArgs,
    /// The client whose data this is
    #[arg(long, value_name = "NAME")]
    client: String,
    #[command(flatten)]
    broker: BrokerArgs,
    /// Which method decides, as at the server; the session's own when absent
    #[arg(long)]
    mode: Option<Method>,
    /// File that keeps what was released until the run is over; one in the cache when absent
    #[arg(long, value_name = "FILE")]
    outbox: Option<PathBuf>,
    /// One JSON object a line instead of words
    #[arg(long)]
    json: bool,
}

pub(super) fn run(out: &mut (impl Write + Send), args: &SiteArgs) -> Result<()> {
    let interrupt = interrupt::watch("the outbox keeps what was released");
    let session = args.session.open()?;
    let mode = args.mode.map_or(session.mode, Mode::from);
    let broker = args.broker.open()?;
    let prepared = models(&session, &interrupt)?;
    let outbox = args.outbox.clone().unwrap_or_else(|| {
        let plain = |name: &str| -> String {
            name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
        };
        let (name, client) = (plain(&session.name), plain(&args.client));
        let file = format!("{name}-{client}-{mode:?}-{}.sqlite", session.seed).to_lowercase();
        cache_folder(&CacheEnvironment::of_process()).join("outbox").join(file)
    });
    let options = Options {
        session: &session,
        prepared: &prepared,
        mode,
        client: &args.client,
        broker: &broker,
        outbox: &outbox,
        interrupt: Arc::clone(&interrupt),
    };
    let ended = site::run(&options, &mut say)?;
    let bar = Bar::new();
    let mut printer = Printer { out, json: args.json, bar: &bar };
    printer.print(ledger_fact(&ended.ledger, ended.last).as_slice())?;
    bar.clear();
    say(&format!(
        "{}: {} steps, {} of them found in the outbox, {} sent again",
        args.client, ended.steps, ended.found, ended.sent_again
    ));
    Ok(())
}
