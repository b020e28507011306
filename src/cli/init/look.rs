//! What tables hold: which column is time, label or run, which never change, which only count.

use std::path::{Path, PathBuf};

use color_eyre::eyre::{Result, bail};
use jiff::Timestamp;

use crate::session::source::missing_words;
use crate::session::{Delimiter, TimeColumn, TimeFormat};
use crate::stream::table::clock::Clock;
use crate::stream::table::files;
use crate::stream::table::header::Header as _;
use crate::stream::table::number::Numbers;
use crate::stream::table::rows::{NextRow, Rows};
use crate::stream::unused_columns::is_label;

/// Rows that are looked at to understand a column; labels and rows are counted to the end.
const SAMPLE: usize = 2000;
/// Rows below which a file is a list, not a table of measurements.
const FEWEST_ROWS: u64 = 30;
/// Patterns of time that no common notation covers.
const PATTERNS: [&str; 7] = [
    "%d/%m/%y %H",
    "%d/%m/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M",
];
/// Second 0 of a clock that only counts.
const SINCE: &str = "2000-01-01 00:00:00";

/// What one column holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) what: Holds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Measurement,
    /// The same number in every row of a run that was looked at.
    Constant,
    /// A number that grows by the same amount from row to row.
    Counter,
    Text,
    Time,
    Label,
    Run,
}

/// One file.
#[derive(Debug, Clone)]
pub(super) struct TableFile {
    pub(super) name: String,
    pub(super) rows: u64,
    /// Whether a label says that something is wrong somewhere in it.
    pub(super) disturbed: bool,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

/// Tables with one header.
#[derive(Debug, Clone)]
pub(super) struct Tables {
    pub(super) folder: PathBuf,
    pub(super) files: Vec<TableFile>,
    pub(super) columns: Vec<Column>,
    pub(super) time: Option<TimeColumn>,
    /// Seconds from one row to the next.
    pub(super) period_s: f64,
    /// Values of the label column that mean "not known".
    pub(super) unlabelled: Vec<f64>,
    /// Files of another header, or of too few rows.
    pub(super) others: Vec<String>,
}

impl Tables {
    pub(super) fn column(&self, what: Holds) -> Option<&str> {
        self.columns.iter().find(|column| column.what == what).map(|column| &column.name[..])
    }

    /// Whether a file's clock does not go on from the file before it.
    pub(super) fn start_anew(&self) -> bool {
        self.files.windows(2).any(|pair| match (pair[0].last, pair[1].first) {
            (Some(last), Some(first)) => first <= last,
            _ => true,
        })
    }
}

/// A header, and the files that have it with their numbers of rows.
type Group = (Vec<String>, Vec<(PathBuf, u64)>);

/// Looks at a file, or at the tables of a folder.
pub(super) fn look(source: &Path) -> Result<Tables> {
    let (folder, found) = tables_of(source)?;
    let mut others = Vec::new();
    let mut groups: Vec<Group> = Vec::new();
    for file in found {
        let (names, rows) = match count(&file) {
            Ok(counted) => counted,
            Err(why) => {
                others.push(format!("{}: {why}", files::name(&file)));
                continue;
            }
        };
        if rows < FEWEST_ROWS {
            others.push(format!("{}: only {rows} rows", files::name(&file)));
            continue;
        }
        match groups.iter_mut().find(|(header, _)| *header == names) {
            Some((_, files)) => files.push((file, rows)),
            None => groups.push((names, vec![(file, rows)])),
        }
    }
    let size =
        |group: &Group| group.1.iter().map(|(_, rows)| rows).sum::<u64>() * group.0.len() as u64;
    groups.sort_by_key(|group| std::cmp::Reverse(size(group)));
    if groups.is_empty() {
        bail!("{}: no table of measurements: {}", source.display(), others.join("; "));
    }
    for (_, files) in &groups[1..] {
        let other = |(file, _): &(PathBuf, u64)| format!("{}: another header", files::name(file));
        others.extend(files.iter().map(other));
    }
    let (names, files) = groups.swap_remove(0);
    let mut tables = Tables {
        folder,
        files: Vec::new(),
        columns: columns(&files[0].0, &names)?,
        time: None,
        period_s: 1.0,
        unlabelled: Vec::new(),
        others,
    };
    find_time(&mut tables, &files[0].0)?;
    for (file, rows) in &files {
        read_labels(&mut tables, file, *rows)?;
    }
    Ok(tables)
}

fn tables_of(source: &Path) -> Result<(PathBuf, Vec<PathBuf>)> {
    if source.is_file() {
        let folder = source.parent().map(Path::to_path_buf).unwrap_or_default();
        return Ok((folder, vec![source.to_owned()]));
    }
    let mut found: Vec<PathBuf> = std::fs::read_dir(source)
        .map_err(|why| color_eyre::eyre::eyre!("{}: {why}", source.display()))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = files::name(path).to_lowercase();
            name.trim_end_matches(".gz").strip_suffix(".csv").is_some()
        })
        .collect();
    found.sort();
    if found.is_empty() {
        bail!("{} holds no CSV files", source.display());
    }
    Ok((source.to_owned(), found))
}

/// The header of a file and how many rows it has.
fn count(file: &Path) -> Result<(Vec<String>, u64)> {
    let mut rows = Rows::open(file, Delimiter::Auto)?;
    let mut counted = 0;
    while rows.next()? == NextRow::Row {
        counted += 1;
    }
    Ok((rows.names().to_vec(), counted))
}

/// What each column holds, from its name and the first rows.
fn columns(file: &Path, names: &[String]) -> Result<Vec<Column>> {
    let mut rows = Rows::open(file, Delimiter::Auto)?;
    let numbers = Numbers::new(&missing_words());
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
    let mut texts = vec![0_usize; names.len()];
    let mut seen = 0;
    while seen < SAMPLE && rows.next()? == NextRow::Row {
        seen += 1;
        for column in 0..names.len() {
            match numbers.read(rows.cell(column), rows.decimal_comma) {
                Some(value) => values[column].push(value),
                None => texts[column] += 1,
            }
        }
    }
    let run = names.iter().position(|name| is_run(name));
    let run = run.filter(|run| texts[*run] == 0);
    let describe = |(i, name): (usize, &String)| {
        let what = if is_label(name) {
            Holds::Label
        } else if is_run(name) {
            Holds::Run
        } else if texts[i] > 0 {
            Holds::Text
        } else if run.is_some_and(|run| only_changes_with(&values[run], &values[i])) {
            Holds::Constant
        } else {
            kind_of(&values[i])
        };
        Column { name: name.clone(), what }
    };
    Ok(names.iter().enumerate().map(describe).collect())
}

fn is_run(name: &str) -> bool {
    let name = name.to_lowercase();
    ["run", "run_id", "simulationrun", "trial", "experiment", "file"].contains(&name.as_str())
}

/// Whether a number stays the same for as long as the run does: it describes the run, such as a seed.
fn only_changes_with(runs: &[f64], values: &[f64]) -> bool {
    let mut steps = runs.windows(2).zip(values.windows(2));
    runs.len() == values.len()
        && steps.all(|(run, value)| {
            run[0].to_bits() != run[1].to_bits() || value[0].to_bits() == value[1].to_bits()
        })
}

pub(super) fn kind_of(values: &[f64]) -> Holds {
    let present: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let Some(first) = present.first() else { return Holds::Constant };
    if present.iter().all(|value| value.to_bits() == first.to_bits()) {
        return Holds::Constant;
    }
    let steps: Vec<f64> = present.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let same = steps.iter().filter(|step| (**step - steps[0]).abs() <= 1e-9 * step.abs()).count();
    let counts = steps[0] > 0.0 && same as f64 >= 0.98 * steps.len() as f64;
    if counts { Holds::Counter } else { Holds::Measurement }
}

/// Which column is the time, and how it is written.
fn find_time(tables: &mut Tables, file: &Path) -> Result<()> {
    let is_named = |name: &str| {
        let name = name.to_lowercase();
        name.contains("time") || name.contains("date") || ["ts", "t", "row"].contains(&&name[..])
    };
    let mut order: Vec<usize> = (0..tables.columns.len()).collect();
    order.sort_by_key(|i| !is_named(&tables.columns[*i].name));
    for (place, column) in order.into_iter().enumerate() {
        let name = tables.columns[column].name.clone();
        let named = is_named(&name);
        // A column of another name counts as time only if it looks like one: a date.
        if !named && (place > 8 || tables.columns[column].what != Holds::Text) {
            continue;
        }
        let patterns = PATTERNS.map(|pattern| TimeFormat::Pattern(pattern.into()));
        let seconds = TimeFormat::Seconds { since: SINCE.into() };
        let tried =
            std::iter::once(TimeFormat::Auto).chain(patterns).chain(named.then_some(seconds));
        for format in tried {
            let time = TimeColumn { column: name.clone(), format, utc_offset_h: 0.0 };
            if let Some(period_s) = period(file, column, &time)? {
                tables.columns[column].what = Holds::Time;
                (tables.time, tables.period_s) = (Some(time), period_s);
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The usual distance of two rows, if every cell of the column is a time in this format.
fn period(file: &Path, column: usize, time: &TimeColumn) -> Result<Option<f64>> {
    let clock = Clock::new(time)?;
    let mut rows = Rows::open(file, Delimiter::Auto)?;
    let numbers = Numbers::default();
    let (mut last, mut steps) = (None, Vec::new());
    let mut seen = 0;
    while seen < SAMPLE && rows.next()? == NextRow::Row {
        seen += 1;
        let Some(now) = clock.read(rows.cell(column), &numbers, rows.decimal_comma) else {
            return Ok(None);
        };
        if let Some(last) = last.replace(now) {
            let step = now.duration_since(last).as_secs_f64();
            if step > 0.0 {
                steps.push(step);
            }
        }
    }
    // A time that goes back as often as forward is no time.
    if steps.len() * 10 < seen * 8 {
        return Ok(None);
    }
    steps.sort_by(f64::total_cmp);
    Ok(steps.get(steps.len() / 2).copied())
}

/// Reads labels and the span of a file to its end.
fn read_labels(tables: &mut Tables, file: &Path, count: u64) -> Result<()> {
    let mut rows = Rows::open(file, Delimiter::Auto)?;
    let numbers = Numbers::new(&missing_words());
    let find = |what: Holds| tables.columns.iter().position(|column| column.what == what);
    let (label, time) = (find(Holds::Label), find(Holds::Time));
    let clock = tables.time.as_ref().map(Clock::new).transpose()?;
    let (mut disturbed, mut first, mut last) = (false, None, None);
    while rows.next()? == NextRow::Row {
        let flag = label.and_then(|l| numbers.read_flag(rows.cell(l), rows.decimal_comma));
        match flag {
            Some(value) if value > 0.0 => disturbed = true,
            Some(value) if value < 0.0 && !tables.unlabelled.contains(&value) => {
                tables.unlabelled.push(value);
                disturbed = true;
            }
            _ => {}
        }
        if let (Some(time), Some(clock)) = (time, &clock) {
            let now = clock.read(rows.cell(time), &numbers, rows.decimal_comma);
            first = first.or(now);
            last = now.or(last);
        }
    }
    let name = files::name(file);
    tables.files.push(TableFile { name, rows: count, disturbed, first, last });
    Ok(())
}
