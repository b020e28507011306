//! `headwater site`: one client of a session as a process of its own.

use std::io::{IsTerminal as _, Write};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use clap::Args;
use color_eyre::eyre::{Result, bail};

use super::run::{Bar, Method, Printer};
use super::serve::{BrokerArgs, beside_screen, names, state_file, whole_models};
use super::{SessionArgs, interrupt};
use crate::base::notice::print_notice;
use crate::console::{Lines, PartyView, title, watch_site};
use crate::engine::prepare::apart::SiteModels;
use crate::engine::run::ledger_fact;
use crate::remote::RemoteError;
use crate::remote::account::SpentSoFar;
use crate::remote::site::{self, Ended, Options, SiteBoard};
use crate::session::Mode;

#[derive(Debug, Args)]
#[command(mut_arg("broker", |broker| broker.required(true)))]
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
    /// Tell the server that this site leaves the run for good; stop the site first
    #[arg(long)]
    leave: bool,
    /// Store what this site measured, what it released and its ledger in this file while it happens
    #[arg(long, value_name = "FILE", conflicts_with = "leave")]
    record: Option<PathBuf>,
    /// One JSON object a line instead of words
    #[arg(long)]
    json: bool,
    /// Show this site's own sensors, and what leaves it, on a screen
    #[arg(long, conflicts_with_all = ["json", "leave"])]
    console: bool,
}

/// Takes part with a screen.
fn on_screen(
    options: &Options<'_>,
    board: Arc<Mutex<SiteBoard>>,
    interrupt: &AtomicBool,
) -> Result<Ended> {
    let lines = Lines::default();
    let title = title(options.session, options.mode, options.broker.is_encrypted());
    let title = format!("{} · {title}", options.client);
    let view = PartyView { title, board, lines: lines.clone() };
    let over = AtomicBool::new(false);
    let screen = || watch_site(&view, interrupt, &over);
    let work = || Ok(site::run(options, &mut |what: &str| lines.push(what))?);
    beside_screen(screen, work, &over)
}

pub(super) fn run(out: &mut (impl Write + Send), args: &SiteArgs) -> Result<()> {
    if args.console && !std::io::stdout().is_terminal() {
        bail!("--console needs a terminal");
    }
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
    let board = args.console.then(Arc::<Mutex<SiteBoard>>::default);
    let options = Options {
        session: &session,
        board: board.clone(),
        client: &args.client,
        place: (place, names.len()),
        models,
        alone: SiteModels::kept_alone(&session, &args.client),
        mode,
        broker: &broker,
        outbox: &outbox,
        record: (args.record.as_deref(), &names),
        interrupt: Arc::clone(&interrupt),
    };
    if args.leave {
        site::leave(&options)?;
        print_notice(format!(
            "{} has left: the run goes on without it, and its outbox stays where it is",
            args.client
        ));
        return Ok(());
    }
    let ended = match board {
        Some(board) => on_screen(&options, board, &interrupt)?,
        None => site::run(&options, &mut |what| print_notice(what))?,
    };
    let bar = Bar::new();
    let mut printer = Printer { out, json: args.json, bar: &bar };
    let fact = ended.ledger.and_then(|ledger| ledger_fact(&ledger, ended.last));
    printer.print(fact.as_slice())?;
    bar.clear();
    if let Some(SpentSoFar { epsilon, releases }) = ended.past {
        let epsilon =
            epsilon.map_or("no bound on ε".to_owned(), |epsilon| format!("ε {epsilon:.3}"));
        print_notice(format!(
            "{}: before it enrolled again it had made {releases} releases ({epsilon}), which this ledger does \
             not have: both add up",
            args.client
        ));
    }
    if let Some(source) = &ended.source {
        print_notice(source);
    }
    print_notice(format!(
        "{}: {} steps, {} of them found in the outbox, {} sent again",
        args.client, ended.steps, ended.found, ended.sent_again
    ));
    match ended.not_recorded {
        Some(why) => bail!("the site was not recorded to its end: {why}"),
        None => Ok(()),
    }
}
