//! Words of log lines that need more than one name.

use jiff::Timestamp;

use super::{Closing, TableVerdict};

pub(in crate::incident) fn name_of(client: Option<usize>, names: &[String]) -> &str {
    client.and_then(|client| names.get(client)).map_or("?", String::as_str)
}

pub(in crate::incident) fn moved(
    from: Option<usize>,
    to: Option<usize>,
    names: &[String],
) -> String {
    format!("root {} → {}", name_of(from, names), name_of(to, names))
}

/// The same with the reason, where a final root was revised.
pub(super) fn moved_because(
    from: Option<usize>,
    to: Option<usize>,
    is_revised: bool,
    names: &[String],
) -> String {
    let words = moved(from, to, names);
    if !is_revised {
        return words;
    }
    let (was, is) = (name_of(from, names), name_of(to, names));
    format!("{words}: {is} alarms too; it reaches {was}, and {was} does not reach it")
}

/// A verdict without a root, once its steps are over.
pub(super) fn table_words(
    verdict: TableVerdict,
    since: Timestamp,
    steps: u64,
    clients: &[usize],
    names: &[String],
) -> String {
    let who: Vec<&str> = clients.iter().map(|client| name_of(Some(*client), names)).collect();
    let noun = if steps == 1 { "step" } else { "steps" };
    let since = since.strftime("%H:%M:%S");
    format!("Table 1: {} at {}, {steps} {noun} from {since}", verdict.words(), who.join(", "))
}

pub(super) fn stands_words(why: Closing) -> String {
    format!("{why}; it stands until everybody has recovered")
}

pub(super) fn again_words(root: Option<usize>, after_s: f64, names: &[String]) -> String {
    let after = if after_s < 120.0 {
        format!("{after_s:.0} s")
    } else {
        format!("{:.0} min", after_s / 60.0)
    };
    format!("again: {}, {after} after the first alarm", name_of(root, names))
}
