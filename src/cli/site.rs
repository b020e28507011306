//! `headwater site`: one client of a session as a process of its own.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use color_eyre::eyre::Result;

use super::run::{Bar, Method, Printer};
use super::serve::{BrokerArgs, names, say, state_file, whole_models};
use super::{SessionArgs, interrupt};
use crate::engine::prepare::apart::SiteModels;
use crate::engine::run::ledger_fact;
use crate::remote::RemoteError;
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
    let names = names(&session)?;
    let Some(place) = names.iter().position(|name| *name == args.client) else {
        let known = names.join(", ");
        return Err(RemoteError::NoClient { name: args.client.clone(), known }.into());
    };
    let whole = whole_models(&session).and_then(|whole| SiteModels::of(&whole, place));
    let mut models: Vec<_> = whole.into_iter().collect();
    models.extend(
        SiteModels::kept(&session, &args.client)
            .filter(|kept| models.iter().all(|whole| whole.id != kept.id)),
    );
    let outbox = args.outbox.clone().unwrap_or_else(|| {
        state_file("outbox", &[&session.name, &args.client], (mode, session.seed))
    });
    let options = Options {
        session: &session,
        client: &args.client,
        place: (place, names.len()),
        models,
        mode,
        broker: &broker,
        outbox: &outbox,
        interrupt: Arc::clone(&interrupt),
    };
    let ended = site::run(&options, &mut say)?;
    let bar = Bar::new();
    let mut printer = Printer { out, json: args.json, bar: &bar };
    let fact = ended.ledger.and_then(|ledger| ledger_fact(&ledger, ended.last));
    printer.print(fact.as_slice())?;
    bar.clear();
    say(&format!(
        "{}: {} steps, {} of them found in the outbox, {} sent again",
        args.client, ended.steps, ended.found, ended.sent_again
    ));
    Ok(())
}
