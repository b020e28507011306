//! Outbox and journal as a site and a server read them after a new start: for files that somebody else
//! has written or damaged.

use std::path::Path;

use super::RemoteError;
use super::account::SpentSoFar;
use super::envelope::{open_up, unpack};
use super::journal::{Journal, RunId};
use super::outbox::Outbox;
use super::store::StoreError;
use crate::stream::{Frame, StoredFrame};
use crate::wire::{Message, ToSite};

const AGREEMENT: &str = "stored";
const MODELS: u64 = 1;
/// No test stores more steps.
const MOST: u64 = 4096;

/// Reads everything that a site reads when it begins again; how many releases there are.
pub(crate) fn read_outbox(file: &Path) -> Result<u64, RemoteError> {
    let outbox = Outbox::open(file, AGREEMENT)?;
    outbox.trainings()?;
    outbox.used()?;
    outbox.past()?;
    outbox.models()?;
    let Some(last) = outbox.last()? else { return Ok(0) };
    let is_replay = outbox.check_all(last).is_ok();
    let (first, rows) = (outbox.first()?, outbox.rows(1, last)?);
    let steps: Vec<u64> = if is_replay { (0..=last).collect() } else { rows };
    let mut frame = Frame::with_values(vec![0.0; 2]);
    for step in steps.into_iter().chain(first) {
        outbox.envelope(step)?;
        outbox.answer(step)?;
        outbox.graded(step)?;
        if let Some(row) = outbox.row(step)? {
            frame.restore(&StoredFrame::of_file(row));
        }
        if let Some(orders) = outbox.orders(step)? {
            for order in unpack(&orders)? {
                ToSite::decode(&order).map_err(|why| RemoteError::Refused(why.to_string()))?;
            }
        }
    }
    Ok(last.saturating_add(1))
}

/// Stores bytes as a site would.
pub(crate) fn fill_outbox(file: &Path, entries: &[(u8, u64, &[u8])]) -> Result<(), StoreError> {
    let outbox = Outbox::open(file, AGREEMENT)?;
    for (kind, step, bytes) in entries {
        match kind % 6 {
            0 => outbox.keep(*step, bytes, SpentSoFar::default())?,
            1 => outbox.keep_with_row(*step, bytes, bytes, SpentSoFar::default())?,
            2 => outbox.keep_orders(*step, bytes)?,
            3 => outbox.keep_answer(*step, bytes)?,
            4 => outbox.acknowledge(*step)?,
            _ => outbox.keep_training_bytes(bytes)?,
        }
    }
    Ok(())
}

/// The run whose journal it is.
fn run_id() -> RunId {
    RunId {
        agreements: vec![AGREEMENT.to_owned(); 2],
        edges: Vec::new(),
        names: vec!["A".to_owned(), "B".to_owned()],
        models: Some(MODELS),
    }
}

/// Reads everything that a server reads when it begins again; how many steps are of use.
pub(crate) fn read_journal(file: &Path) -> Result<u64, StoreError> {
    Journal::members(file, &run_id())?;
    let journal = Journal::open(file, &run_id(), false)?;
    let mut used = 0;
    for step in 0..journal.steps()?.min(MOST) {
        let Some(heard) = journal.step(step)? else { continue };
        used += 1;
        for (client, heard) in heard.iter().enumerate() {
            if let Some(heard) = heard {
                let _ = (heard.time(), heard.continuity());
                for message in &heard.messages {
                    let _ = Message::decode(message);
                }
            }
            if let Some(answer) = journal.answer(step, client)? {
                for message in unpack(&answer).unwrap_or_default() {
                    let _ = Message::decode(&message);
                }
            }
        }
    }
    Ok(used)
}

/// Stores bytes as a server would; an envelope of a site is taken as such.
pub(crate) fn fill_journal(file: &Path, entries: &[(u8, u64, &[u8])]) -> Result<(), StoreError> {
    let journal = Journal::open(file, &run_id(), false)?;
    for (kind, step, bytes) in entries {
        match kind % 4 {
            0 => journal.keep_bytes(*step, bytes)?,
            1 => journal.keep_answer(*step, usize::from(*kind) / 4, bytes)?,
            2 => journal.note_gone(usize::from(*kind), *step % 2 == 0)?,
            _ => {
                if let Ok((_, super::envelope::Up::Step(heard))) = open_up(bytes) {
                    journal.keep(*step, &vec![Some(heard), None])?;
                }
            }
        }
    }
    Ok(())
}
