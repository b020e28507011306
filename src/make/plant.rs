//! A run of the built-in plant as `plant.csv` (the HAI 22.04 schema) and `plant-truth.json`: which
//! attacks there are, where each began, and which processes felt it.
//!
//! The truth is measured, not quoted: every attack runs beside a twin of the plant that is spared
//! it and shares all noise, so that any difference is the attack's doing.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{MakeError, is_wanted};
use crate::base::atomic_file::AtomicFile;
use crate::session::PlantSource;
use crate::stream::plant::{Comparison, Day, Effect, NominalSigma, PlantRow, Process, Staged, Tag};

/// The files that are written: measurements, truth.
pub(crate) const FILES: [&str; 2] = ["plant.csv", "plant-truth.json"];

const RULE: &str = "Each attack against a twin that is cloned at its start, spared it, and has the \
    same noise. A process is affected when the 5 s mean difference of one of its physical sensors \
    is beyond 1 sigma for 15 s or more, from the start to 300 s after the end. Sigma is the \
    standard deviation over 24 h of normal operation with seed 1. onset_s counts from the start.";

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    pub(crate) csv: PathBuf,
    pub(crate) truth: PathBuf,
    /// Rows of measurements, a second each.
    pub(crate) rows: u64,
    /// Time of the first.
    pub(crate) first: Timestamp,
    /// The attacks in the order of time.
    pub(crate) attacks: Vec<MeasuredAttack>,
    /// How long after midnight the first attack of a whole day would begin, where any was asked for.
    #[serde(skip)]
    pub(crate) first_attack: Option<SignedDuration>,
}

/// An attack and what it did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct MeasuredAttack {
    pub(crate) id: &'static str,
    /// The HAI scenario it is modelled on.
    pub(crate) scenario: &'static str,
    /// First second.
    pub(crate) start: Timestamp,
    /// Last second.
    pub(crate) end: Timestamp,
    /// Where it began: the root cause.
    pub(crate) origin: &'static str,
    /// The other processes that felt it.
    pub(crate) affected: Vec<&'static str>,
    /// Sensors and commands that are tampered with.
    pub(crate) sensors: Vec<&'static str>,
    pub(crate) actions: Vec<String>,
    /// How long its effects were watched; less than the rule says when the run ends before.
    pub(crate) observed_s: u64,
    /// What was found in each process.
    pub(crate) effects: BTreeMap<&'static str, MeasuredEffect>,
}

/// What was found in one process.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct MeasuredEffect {
    /// Seconds until the mean difference passed one sigma.
    pub(crate) onset_s: Option<u32>,
    /// Seconds it was beyond one sigma.
    pub(crate) over_1_sigma_s: u32,
    /// The largest mean difference, in sigmas.
    pub(crate) peak_sigma: f64,
    /// Where it was found; none when there is none.
    pub(crate) peak_tag: Option<&'static str>,
    /// Not one sensor of the process differs from the twin's in any bit.
    pub(crate) exactly_zero: bool,
}

#[derive(Serialize)]
struct Truth<'a> {
    seed: u64,
    first: Timestamp,
    last: Timestamp,
    confounded: bool,
    grid_feedback: f64,
    rule: &'static str,
    attacks: &'a [MeasuredAttack],
}

/// Writes the run that `source` describes, its history included, into the folder `dir`, which is
/// made when it is not there. Files of an earlier run are replaced once the new ones are complete;
/// when `stop` is raised before that, they remain.
pub(crate) fn write(
    source: &PlantSource,
    seed: u64,
    dir: &Path,
    stop: &AtomicBool,
) -> Result<Report, MakeError> {
    let day = Day::plan(source)?;
    let mut csv = AtomicFile::create(dir, FILES[0])?;
    let mut truth = AtomicFile::create(dir, FILES[1])?;

    let attacks = csv.fill(|csv| simulate(&day, seed, csv, stop))?;
    let attacks = attacks.ok_or(MakeError::Stopped)?;
    let known = Truth {
        seed,
        first: day.first,
        last: day.time(day.steps - 1),
        confounded: source.confounded,
        grid_feedback: source.grid_feedback,
        rule: RULE,
        attacks: &attacks,
    };
    truth.fill(|truth| {
        serde_json::to_writer_pretty(&mut *truth, &known)?;
        writeln!(truth)
    })?;

    // Both are safe on the disk before either shows.
    csv.finish()?;
    truth.finish()?;
    Ok(Report {
        csv: csv.publish()?,
        truth: truth.publish()?,
        rows: day.steps,
        first: day.first,
        attacks,
        first_attack: first_attack(source),
    })
}

/// When the first attack of a whole day begins; none where none is asked for.
fn first_attack(source: &PlantSource) -> Option<SignedDuration> {
    let whole = PlantSource { hours: 24.0, history_h: 0.0, ..source.clone() };
    let day = Day::plan(&whole).ok()?;
    let first = day.schedule.first()?;
    Some(day.time(first.start).duration_since(day.first))
}

/// Runs the plant into `csv`, and measures its attacks on the way; nothing when it was stopped.
fn simulate(
    day: &Day,
    seed: u64,
    csv: &mut AtomicFile,
    stop: &AtomicBool,
) -> io::Result<Option<Vec<MeasuredAttack>>> {
    // The yardstick costs a simulated day, which a run without attacks need not pay.
    let sigma = (!day.schedule.is_empty()).then(|| NominalSigma::measure(day.switches()));
    let mut plant = day.plant(seed);
    let mut row = PlantRow::default();
    let mut line = Vec::with_capacity(1024);
    let mut watched: Vec<Comparison> = Vec::with_capacity(day.schedule.len());

    header_line(&mut line);
    csv.write_all(&line)?;
    for step in 0..day.steps {
        if is_wanted(stop) {
            return Ok(None);
        }
        if let (Some(staged), Some(sigma)) = (day.schedule.get(watched.len()), &sigma)
            && staged.start == step
        {
            let duration_s = staged.attack.duration_s;
            watched.push(Comparison::begin(&plant, watched.len(), duration_s, sigma));
        }
        let attacked = plant.step(&mut row).is_some();
        for comparison in &mut watched {
            comparison.observe(&row);
        }
        line.clear();
        row_line(&mut line, day.time(step), &row, attacked);
        csv.write_all(&line)?;
    }
    let measured = day.schedule.iter().zip(&watched);
    Ok(Some(measured.map(|(staged, comparison)| measure(day, staged, comparison)).collect()))
}

fn measure(day: &Day, staged: &Staged, comparison: &Comparison) -> MeasuredAttack {
    let attack = staged.attack;
    let found = || Process::ALL.into_iter().zip(comparison.effects());
    MeasuredAttack {
        id: attack.id,
        scenario: attack.scenario,
        start: day.time(staged.start),
        end: day.time(staged.end() - 1),
        origin: attack.origin.name(),
        affected: found()
            .filter(|(process, effect)| *process != attack.origin && effect.is_felt())
            .map(|(process, _)| process.name())
            .collect(),
        sensors: attack.sensors().into_iter().map(Tag::name).collect(),
        actions: attack.actions.iter().map(ToString::to_string).collect(),
        observed_s: comparison.observed_s(),
        effects: found().map(|(process, effect)| (process.name(), effect.into())).collect(),
    }
}

impl From<&Effect> for MeasuredEffect {
    fn from(effect: &Effect) -> Self {
        Self {
            onset_s: effect.onset_s,
            over_1_sigma_s: effect.over_s,
            peak_sigma: (effect.peak_sigma * 1000.0).round() / 1000.0,
            peak_tag: (effect.peak_sigma > 0.0).then_some(effect.peak_tag.name()),
            exactly_zero: effect.untouched,
        }
    }
}

fn header_line(line: &mut Vec<u8>) {
    line.extend_from_slice(b"timestamp");
    for tag in Tag::ALL {
        line.push(b',');
        line.extend_from_slice(tag.name().as_bytes());
    }
    line.extend_from_slice(b",Attack\n");
}

fn row_line(line: &mut Vec<u8>, time: Timestamp, row: &PlantRow, attacked: bool) {
    let civil = TimeZone::UTC.to_datetime(time);
    write!(line, "{}", civil.strftime("%Y-%m-%d %H:%M:%S"))
        .expect("memory takes all, and the pattern has no field that a civil time lacks");
    for &value in &row.0 {
        line.push(b',');
        push_number(line, value);
    }
    line.extend_from_slice(if attacked { b",1\n" } else { b",0\n" });
}

/// Significant digits: some twenty times finer than what the steadiest tag moves in a second, and
/// about half the bytes of all seventeen.
const DIGITS: usize = 7;
/// Decimals at most: smaller numbers are written as 0, so that no number needs an exponent.
const DECIMALS: usize = 10;
const POWERS: [f64; DECIMALS + 1] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10];

/// Writes a number in plain decimals, without trailing zeros. A number has the same bytes on every
/// machine: there is one rounded multiplication, and only whole numbers from there on.
fn push_number(line: &mut Vec<u8>, value: f64) {
    let size = value.abs();
    if size.is_nan() || size >= 1e15 {
        // Not a number this plant makes: an empty cell reads as missing.
        return;
    }
    let mut decimals = if size < 1.0 {
        // Zeros behind the point are not significant.
        let zeros = (1..=DECIMALS - DIGITS).filter(|&z| size * POWERS[z] < 1.0).count();
        DIGITS + zeros
    } else {
        let whole = POWERS[1..DIGITS].iter().filter(|&&power| size >= power).count() + 1;
        DIGITS - whole
    };
    let mut number = (size * POWERS[decimals]).round_ties_even() as u64;
    if number == 0 {
        line.push(b'0');
        return;
    }
    while decimals > 0 && number.is_multiple_of(10) {
        number /= 10;
        decimals -= 1;
    }
    // Right to left: at least one digit stands before the point.
    let mut text = [0_u8; 24];
    let mut at = text.len();
    let mut written = 0;
    while number > 0 || written <= decimals {
        if written == decimals && decimals > 0 {
            at -= 1;
            text[at] = b'.';
        }
        at -= 1;
        text[at] = b'0' + (number % 10) as u8;
        number /= 10;
        written += 1;
    }
    if value < 0.0 {
        at -= 1;
        text[at] = b'-';
    }
    line.extend_from_slice(&text[at..]);
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} rows from {}", self.csv.display(), self.rows, self.first)?;
        writeln!(f, "{}: {} attacks", self.truth.display(), self.attacks.len())?;
        if let Some(first) = self.first_attack.filter(|_| self.attacks.is_empty()) {
            writeln!(
                f,
                "WARNING: no attack fits: the first of the day begins {:.1} h after its start; make \
                 more hours",
                first.as_secs_f64() / 3600.0
            )?;
        }
        for attack in &self.attacks {
            let seconds = attack.end.duration_since(attack.start).as_secs() + 1;
            write!(
                f,
                "  {}  {}  {seconds:>4} s  origin {}  affected ",
                attack.id, attack.start, attack.origin,
            )?;
            if attack.affected.is_empty() {
                f.write_str("none")?;
            }
            for (i, process) in attack.affected.iter().enumerate() {
                let effect = &attack.effects[process];
                let comma = if i > 0 { ", " } else { "" };
                write!(f, "{comma}{process}")?;
                if let Some(onset_s) = effect.onset_s {
                    write!(f, " (after {onset_s} s, {:.1} sigma)", effect.peak_sigma)?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Attacks;
    use crate::stream::plant::{COUNT, Plant, Switches};
    use proptest::prelude::*;
    use std::fs;

    fn text(value: f64) -> String {
        let mut line = Vec::new();
        push_number(&mut line, value);
        String::from_utf8(line).expect("digits are text")
    }

    #[test]
    fn numbers_are_short_and_plain() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (27648.0, "27648"),
            (-142.0, "-142"),
            (0.149, "0.149"),
            (1.107_843_219, "1.107843"),
            (27_104.8, "27104.8"),
            (27_104.834_99, "27104.83"),
            (-0.000_579_439_123, "-0.0005794391"),
            (9.4e-16, "0"),
            (9.999_999_99, "10"),
            (0.999_999_999, "1"),
            (123_456_789.0, "123456789"),
            (f64::NAN, ""),
        ] {
            assert_eq!(text(value), expected, "{value:e}");
        }
    }

    proptest! {
        #[test]
        fn a_written_number_reads_back_to_seven_digits(
            digits in -1.0f64..1.0, exponent in -9i32..8,
        ) {
            let value = digits * 10f64.powi(exponent);
            let read: f64 = text(value).parse().expect("a number");
            let slack = (value.abs() * 5.01e-7).max(0.501e-10);
            prop_assert!((read - value).abs() <= slack, "{value:e} became {read:e}");
        }
    }

    fn short_run() -> PlantSource {
        PlantSource {
            attacks: Attacks::Only(vec!["S101".into()]),
            history_h: 0.0,
            hours: 1.6,
            ..PlantSource::default()
        }
    }

    #[test]
    fn hours_that_no_attack_fits_into_are_warned_of() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let warned = |attacks: Attacks| {
            let source = PlantSource { attacks, hours: 0.2, ..short_run() };
            let report = write(&source, 2, folder.path(), &AtomicBool::new(false));
            report.expect("written").to_string().contains("no attack fits")
        };
        assert!(warned(Attacks::Day));
        assert!(!warned(Attacks::Nothing), "none was asked for");
    }

    #[test]
    fn the_same_seed_writes_the_same_bytes() {
        let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder for the test"));
        for folder in &folders {
            write(&short_run(), 2, folder.path(), &AtomicBool::new(false)).expect("written");
        }
        for name in ["plant.csv", "plant-truth.json"] {
            let [a, b] = [0, 1].map(|i| fs::read(folders[i].path().join(name)).expect("there"));
            assert!(a == b, "{name}");
        }
    }

    #[test]
    fn what_is_written_reads_back_as_it_was_simulated() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let report =
            write(&short_run(), 2, folder.path(), &AtomicBool::new(false)).expect("written");
        let day = Day::plan(&short_run()).expect("sound settings");
        let mut plant = Plant::new(2, Switches::default(), &day.schedule);
        let mut row = PlantRow::default();

        let mut reader = csv::Reader::from_path(&report.csv).expect("readable");
        let header = reader.headers().expect("a header").clone();
        assert_eq!((header.len(), &header[0], &header[COUNT + 1]), (88, "timestamp", "Attack"));
        let mut rows = 0;
        for record in reader.records() {
            let record = record.expect("88 cells");
            let attacked = plant.step(&mut row).is_some();
            for (tag, value) in Tag::ALL.into_iter().zip(row.0) {
                let cell: f64 = record[tag as usize + 1].parse().expect("a number");
                let slack = (value.abs() * 5.01e-7).max(0.501e-10);
                assert!((cell - value).abs() <= slack, "{} {cell} {value}", tag.name());
                assert_eq!(&header[tag as usize + 1], tag.name());
            }
            assert_eq!(&record[COUNT + 1], if attacked { "1" } else { "0" });
            if rows == 5104 {
                assert_eq!((&record[0], attacked), ("2022-08-12 01:25:04", true));
            }
            rows += 1;
        }
        assert_eq!(rows, report.rows);
    }

    #[test]
    fn the_truth_tells_where_an_attack_began_and_who_felt_it() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let report =
            write(&short_run(), 2, folder.path(), &AtomicBool::new(false)).expect("written");
        let text = fs::read(&report.truth).expect("there");
        let truth: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        let attack = &truth["attacks"][0];
        assert_eq!(attack["id"], "S101");
        assert_eq!(attack["start"], "2022-08-12T01:25:04Z");
        assert_eq!(attack["end"], "2022-08-12T01:29:00Z");
        assert_eq!(attack["origin"], "P1");
        assert_eq!(attack["affected"], serde_json::json!(["P2", "P3"]));
        assert_eq!(attack["observed_s"], 537);
        let day = Day::plan(&short_run()).expect("sound settings");
        let tampered: Vec<&str> =
            day.schedule[0].attack.sensors().into_iter().map(Tag::name).collect();
        assert!(!tampered.is_empty());
        assert_eq!(attack["sensors"], serde_json::json!(tampered));
        let shown = report.to_string();
        assert!(
            shown.contains("S101") && shown.contains("origin P1  affected P2 (after"),
            "{shown}"
        );
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 2);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let file = folder.path().join("taken");
        fs::write(&file, "").expect("written");
        let error = write(&short_run(), 2, &file, &AtomicBool::new(false))
            .expect_err("a file stands there");
        assert!(error.to_string().contains("taken"), "{error}");
    }
}
