//! Lines of flag tables: all seeds of one model's flags at one percentile.

use crate::engine::experiment::Variant;
use crate::engine::experiment::flags::ModelFlags;
use crate::score::metrics::run_length::{RunLength, RunTotals};
use crate::study::report::Line;

/// One line per percentile and model, in this order.
pub(crate) fn lines<'a>(family: &str, flags: &[&'a ModelFlags]) -> Vec<Line<'a, ModelFlags>> {
    let place = |name: &str| Variant::ALL.iter().position(|model| model.name() == name);
    let mut flags = flags.to_vec();
    flags.sort_by(|a, b| {
        a.percentile.total_cmp(&b.percentile).then(place(&a.model).cmp(&place(&b.model)))
    });
    let method =
        |f: &ModelFlags| format!("{}{}, flags at {} %", f.model, f.span.words(), f.percentile);
    Line::group(flags.into_iter().map(|flags| (family, method(flags), flags)))
}

pub(crate) fn percentile(line: &Line<'_, ModelFlags>) -> String {
    line.runs.first().map_or_else(String::new, |flags| format!("{} %", flags.percentile))
}

pub(crate) fn model(line: &Line<'_, ModelFlags>) -> String {
    line.runs.first().map_or_else(String::new, |f| format!("{}{}", f.model, f.span.words()))
}

/// Time per flag in nominal operation.
pub(crate) fn arl0(line: &Line<'_, ModelFlags>) -> RunLength {
    RunTotals::pooled(line.runs.iter().map(|flags| &flags.runs.arl0))
}

/// From an onset to the next flag.
pub(crate) fn arl1(line: &Line<'_, ModelFlags>) -> RunLength {
    RunTotals::pooled(line.runs.iter().map(|flags| &flags.runs.arl1))
}

pub(crate) fn censored(line: &Line<'_, ModelFlags>) -> String {
    let RunLength { ended, censored, .. } = arl1(line);
    format!("{censored} of {}", ended + censored)
}
