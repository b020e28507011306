//! Models that are made although no run follows. What their training released is entered in the ledger
//! that a run would keep, also where the training fails.

use std::path::{Path, PathBuf};

use super::error::{OpenError, PrepareError, TrainingReleases};
use super::ledger_file::{KeptLedger, Opened};
use super::prepare::{self, OnStage, Prepared, Stage, TrainingSpent};
use crate::privacy::{FilterMemory, Head, PrivacyError, Terms};
use crate::session::Session;
use crate::site::whitening::LONGEST;

/// Prepares `session` as [`prepare::prepare`] does. The ledger, `named` or that of a budget for the
/// whole history, is opened before anything is released; where it ends is answered.
pub(crate) fn train(
    session: &Session,
    file: &Path,
    named: Option<PathBuf>,
    on_stage: OnStage,
) -> Result<(Prepared, Option<Head>), OpenError> {
    let (opened, mut kept) = KeptLedger::open(session, named)?;
    for notice in &opened.notices {
        let _ = on_stage(Stage::Notice(notice));
    }
    let prepared = prepare::prepare(session, file, on_stage)
        .map_err(enter_failed(session, &opened, &mut kept))?;
    let head = enter_prepared(session, &opened, &mut kept, &prepared)?;
    Ok((prepared, head))
}

/// Enters what the training of models released that no run uses now.
pub(super) fn enter_prepared(
    session: &Session,
    opened: &Opened,
    kept: &mut KeptLedger,
    prepared: &Prepared,
) -> Result<Option<Head>, OpenError> {
    let terms =
        |client: &prepare::PreparedSite| terms(session, client.memory, client.fit.grader.lags());
    let terms = prepared.clients.iter().map(terms).collect::<Result<Vec<_>, _>>()?;
    let names = prepared.clients.iter().map(|client| client.name.as_str());
    let clients: Vec<_> = names.zip(terms).collect();
    let ledgers = opened.ledgers.as_deref().unwrap_or_default();
    kept.enter_training(ledgers, &clients, &prepared.spent)
}

/// Enters the releases of a preparation that failed; returns the error to report.
pub(super) fn enter_failed<'a>(
    session: &'a Session,
    opened: &'a Opened,
    kept: &'a mut KeptLedger,
) -> impl FnOnce(PrepareError) -> OpenError + 'a {
    move |why| {
        let PrepareError::AfterReleases { released, .. } = &why else { return why.into() };
        match enter(session, opened, kept, released) {
            Ok(()) => why.into(),
            Err(also) => format!("{why}; what had been released is in no ledger: {also}").into(),
        }
    }
}

fn enter(
    session: &Session,
    opened: &Opened,
    kept: &mut KeptLedger,
    released: &TrainingReleases,
) -> Result<(), OpenError> {
    let ledgers = opened.ledgers.as_deref().unwrap_or_default();
    let of = |(name, _): &'_ (String, _)| {
        let known = ledgers.iter().find(|ledger| ledger.client() == name);
        // How long its models remember is not known: a ledger that is there keeps what it has.
        known.map_or_else(|| terms(session, None, LONGEST), |ledger| Ok(*ledger.terms()))
    };
    let terms = released.clients.iter().map(of).collect::<Result<Vec<_>, _>>()?;
    let names = released.clients.iter().map(|(name, _)| name.as_str());
    let clients: Vec<_> = names.zip(terms).collect();
    let trained = released.clients.iter().map(|(_, trained)| trained.clone()).collect();
    let spent = TrainingSpent { from: released.from, clients: trained };
    kept.enter_training(ledgers, &clients, &spent)?;
    Ok(())
}

fn terms(
    session: &Session,
    memory: Option<FilterMemory>,
    lags: usize,
) -> Result<Terms, PrivacyError> {
    Terms::of(&session.privacy, memory, lags as u64)
}
