//! `headwater check`: whether a session can be used, and what it holds.

mod calibrated;
mod choice;
mod clients;

use std::collections::BTreeMap;
use std::io::Write;

use color_eyre::eyre::{Result, eyre};
use jiff::Timestamp;

use crate::engine::cost;
use crate::engine::ledger_file::lifetime_ledger;
use crate::engine::prepare::{self, Prepared, Unmodelled};
use crate::engine::run::{Run, RunOptions};
use crate::privacy::Provenance;
use crate::privacy::words::explain;
use crate::session::{Clock, LiveHistory, LiveSource, Mark, Mode, Session, Source};
use crate::site::local;
use crate::site::seen::HELD;
use crate::stream::live::kept;
use crate::stream::resolution::Grids;
use crate::stream::unused_columns::{ColumnKind, unused_columns};
use crate::stream::{self, Continuity, Frame, Layout, Part, Stream, StreamError, UnusedRows};

/// Frames looked at when the whole is not asked for.
const GLANCE: u64 = 600;

/// Opens every part of `session` and says what is there; the first error is the answer.
pub(super) fn print(out: &mut impl Write, session: &Session, full: bool) -> Result<()> {
    writeln!(out, "{}: {}", session.name, session.about)?;
    writeln!(out, "source      {}", source(session))?;
    print_privacy(out, session)?;
    print_prices(out, session)?;
    if let Some(live) = session.live() {
        print_live(out, live, session)?;
        if live.table().is_none() && kept::complete(session).is_none() {
            writeln!(out, "ok: nothing has been learned yet, so that there is no data to check")?;
            return Ok(());
        }
    }
    let estimate = cost::estimate(session)?;
    writeln!(out, "preparing   needs about {estimate} (a rough figure, from one machine)")?;
    cost::allow(session, estimate)?;
    // Drawing a large synthetic plant takes minutes: the estimate is printed first.
    out.flush()?;
    let mut survey = None;
    let mut unused = 0;
    let parts = if session.live().is_some() { &Part::ALL[..2] } else { &Part::ALL[..] };
    for &part in parts {
        let found = Survey::read(session, part, full)?;
        if survey.is_none() {
            print_clients(out, &found.layout)?;
            print_unused_columns(out, session, &found.layout)?;
        }
        writeln!(out, "{:<12}{}", part.name(), found.line())?;
        for (file, format) in stream::time_formats(session, part)? {
            writeln!(out, "            {file}: times are written as {format}")?;
        }
        for line in found.complaints() {
            writeln!(out, "            {line}")?;
        }
        unused += found.unused.rows;
        survey = Some(found);
    }
    if let Some(survey) = survey {
        survey.print_events(out, session)?;
    }
    // Whether its parts go together is what a run asks first.
    Grids::of(session)?;
    if full {
        print_unmodelled(out, session)?;
        let not_used = match unused {
            0 => String::new(),
            1 => "; 1 row is not used, see above".into(),
            rows => format!("; {rows} rows are not used, see above"),
        };
        writeln!(out, "ok: every row was read{not_used}")?;
    } else {
        let looked = match clients::look(session)? {
            None => ", and every client has a sensor that moves".to_owned(),
            Some(why) => {
                format!("; whether every client has a sensor that moves is not known: {why}")
            }
        };
        writeln!(
            out,
            "ok: the beginning of each range was read ({GLANCE} frames){looked}; --full reads all of \
             it and says which sensors are not watched"
        )?;
    }
    Ok(())
}

/// Where a live source's normal data comes from, and what is kept of it.
fn print_live(out: &mut impl Write, live: &LiveSource, session: &Session) -> Result<()> {
    let kept = kept::complete(session).map(|kept| format!("{} rows are kept", kept.rows));
    let history = match live.history {
        LiveHistory::First => "the source delivers it at every start".to_owned(),
        LiveHistory::Learned => kept.unwrap_or_else(|| "the first rows that arrive".to_owned()),
        LiveHistory::Table(_) => "files".to_owned(),
    };
    let history =
        if live.reads_past() { format!("{history}, from the server's history") } else { history };
    writeln!(out, "normal data {history}")?;
    #[cfg(not(feature = "opcua"))]
    if matches!(live.input, crate::session::LiveInput::OpcUa(_)) {
        writeln!(out, "note        {}", stream::live::WITHOUT_OPC_UA)?;
    }
    writeln!(
        out,
        "rows        every {} s; a row waits {} s for its values",
        live.grid_s, live.lateness_s
    )?;
    Ok(())
}

fn source(session: &Session) -> String {
    let what = match &session.source {
        Source::Plant(_) => "built-in plant".to_owned(),
        Source::Twin(twin) => {
            format!("synthetic plant, family {:?}, {} clients", twin.family, twin.clients)
        }
        Source::Table(table) => format!("tables in {}", show_folder(session, &table.data)),
        Source::Hai(hai) => {
            format!("HAI {} in {}", hai.version, show_folder(session, &hai.data))
        }
        Source::Live(live) => format!("live: {}", stream::live::place(&live.input)),
    };
    let noise = Provenance::of(session);
    match noise {
        Provenance::Seeded => format!("{what}, seed {} ({})", session.seed, noise.label()),
        Provenance::OperatingSystem => format!("{what}; noise from the {}", noise.label()),
    }
}

/// What its settings protect and what they do not, where anything is set.
fn print_privacy(out: &mut impl Write, session: &Session) -> Result<()> {
    if !session.privacy.protects() {
        let chosen = "no ε is set: states and symbols are sent without noise";
        let silent = "no ε is chosen: states and symbols are sent without noise. A session states it: \
                      `privacy: (epsilon_flag: 6.0)` for noise on symbols, None in its place for none";
        let mut head = "privacy";
        for line in wrapped(if choice::is_made(session) { chosen } else { silent }) {
            writeln!(out, "{head:<12}{line}")?;
            head = "";
        }
        return Ok(());
    }
    let mut head = "privacy";
    for sentence in explain(session, session.mode, None).sentences() {
        for line in wrapped(sentence) {
            writeln!(out, "{head:<12}{line}")?;
            head = "";
        }
    }
    if let Some(file) = lifetime_ledger(session).map_err(|why| eyre!(why))? {
        let counted = format!(
            "What is spent is counted over all starts, in {}, or in the file that --ledger names.",
            file.display()
        );
        for line in wrapped(&counted) {
            writeln!(out, "{head:<12}{line}")?;
        }
    }
    Ok(())
}

/// A run with the models that were made before, before its first step; none where there are none, or
/// where the source is live.
fn kept_run(session: &Session) -> Result<Option<(Prepared, Run)>> {
    if session.live().is_some() {
        return Ok(None);
    }
    let Ok(prepared) = prepare::kept(session, &prepare::cache_file(session)) else {
        return Ok(None);
    };
    let run = Run::open_with(session, &prepared, RunOptions::new(Mode::Evidence))?;
    Ok(Some((prepared, run)))
}

/// What one sample of each client costs; known once models were made.
fn print_prices(out: &mut impl Write, session: &Session) -> Result<()> {
    if !session.privacy.protects_flags() {
        return Ok(());
    }
    let Some((prepared, run)) = kept_run(session)? else { return Ok(()) };
    let Some(prices) = run.prices_of_a_sample()? else { return Ok(()) };
    for (client, price) in prepared.clients.iter().zip(prices) {
        let of = match price.symbols {
            Some(symbols) => format!(
                "ε {:.0} for one sample, which can turn up to {symbols} symbols",
                price.epsilon
            ),
            None => "no bound for one sample: its models were not seen to forget one".to_owned(),
        };
        writeln!(out, "{:<12}{:<10} {of}", "price", client.name)?;
    }
    Ok(())
}

/// Lines of at most 88 characters.
fn wrapped(sentence: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in sentence.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < 88 => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn show_folder(session: &Session, data: &str) -> String {
    session.data_folder().map_or_else(|| data.to_owned(), |folder| folder.display().to_string())
}

/// Sensors that no model will look at, judged by the whole of the nominal data. A client without a
/// single sensor for its model is an error.
fn print_unmodelled(out: &mut impl Write, session: &Session) -> Result<()> {
    let clients = match prepare::unmodelled(session) {
        Ok(clients) => clients,
        Err(why) => {
            writeln!(out, "{:<12}not known: {why}", "not watched")?;
            return Ok(());
        }
    };
    clients::refuse_blind(&clients)?;
    let mut head = "wild values";
    for Unmodelled { client, wild, .. } in &clients {
        for (column, values) in wild {
            writeln!(
                out,
                "{head:<12}{client:<10} {column}: {values} taken out of the nominal data"
            )?;
            head = "";
        }
    }
    head = "not watched";
    for Unmodelled { client, left_out, seen, .. } in &clients {
        for (sensor, why) in left_out.iter().filter(|(sensor, _)| !seen.watches(sensor)) {
            let runs = seen.unsteady.iter().find(|(name, _)| name == sensor);
            let runs = runs.map_or(String::new(), |(_, runs)| {
                format!("; {runs} of {} runs show a value that no other run has", seen.folds)
            });
            writeln!(out, "{head:<12}{client:<10} {sensor}: {why}{runs}")?;
            head = "";
        }
    }
    if let Some(Unmodelled { step_s, .. }) = clients.first() {
        calibrated::print_not_judged(out, session, *step_s)?;
        calibrated::print_memory(out, session, *step_s)?;
        calibrated::print_insensitive(out, session, *step_s)?;
    }
    head = "by value";
    for Unmodelled { client, seen, step_s, .. } in &clients {
        let Some(steps) = seen.steps_per_false_alarm() else { continue };
        let names: Vec<&str> = seen.watched.iter().map(|sensor| &sensor.name[..]).collect();
        let price = hours(steps * step_s);
        let text = format!("{}: at most one false alarm in {price}", names.join(", "));
        for line in wrapped(&text) {
            writeln!(out, "{head:<12}{client:<10} {line}")?;
            head = "";
        }
    }
    if head.is_empty() {
        let text = format!(
            "(no model can use these; a value never seen that stands for {HELD} steps gives the \
             strongest symbol. No run, or block of a long one, has such a value when the others are \
             taken as normal; at most is at 95 %)"
        );
        for line in wrapped(&text) {
            writeln!(out, "{head:<12}{line}")?;
        }
    }
    Ok(())
}

fn hours(seconds: f64) -> String {
    let hours = seconds / 3600.0;
    if hours < 48.0 { format!("{hours:.1} h") } else { format!("{:.0} days", hours / 24.0) }
}

/// Columns that no client uses: an author may have overlooked commands and set points.
fn print_unused_columns(out: &mut impl Write, session: &Session, layout: &Layout) -> Result<()> {
    let unused = unused_columns(session, layout)?;
    let mut head = "unused";
    for (kind, advice) in [
        (ColumnKind::Command, "commands: in `columns`, a forced one is seen at its own process"),
        (ColumnKind::SetPoint, "set points: as `inputs`, they explain what controllers do"),
        (
            ColumnKind::Unknown,
            "named by no client: commands belong in `columns`, set points in `inputs`",
        ),
    ] {
        let of_kind = unused.iter().filter(|(_, of)| *of == kind).map(|(name, _)| &name[..]);
        let names: Vec<&str> = of_kind.collect();
        if names.is_empty() {
            continue;
        }
        let text = format!("{} ({advice})", names.join(", "));
        for line in wrapped(&text) {
            writeln!(out, "{head:<12}{line}")?;
            head = "";
        }
    }
    Ok(())
}

fn print_clients(out: &mut impl Write, layout: &Layout) -> Result<()> {
    for (i, client) in layout.clients.iter().enumerate() {
        let head = if i == 0 { "clients" } else { "" };
        let inputs = match client.inputs.len() {
            0 => String::new(),
            n => format!(", {n} known inputs"),
        };
        writeln!(
            out,
            "{head:<12}{:<10} {:<24} {:>3} sensors{inputs}",
            client.name,
            client.title,
            client.sensors.len()
        )?;
    }
    Ok(())
}

/// What was found in one part of the data.
struct Survey {
    layout: Layout,
    frames: u64,
    whole: bool,
    span: Option<(Timestamp, Timestamp)>,
    runs: u64,
    gaps: u64,
    notes: BTreeMap<stream::NoteKind, (u64, String)>,
    unused: UnusedRows,
    present: Vec<u64>,
    first: Vec<f64>,
    varies: Vec<bool>,
    events: Vec<stream::Event>,
}

impl Survey {
    fn read(session: &Session, part: Part, full: bool) -> Result<Self, StreamError> {
        let mut stream = stream::open(session, part)?;
        let layout = stream.layout().clone();
        let width = layout.width();
        let mut survey = Self {
            frames: 0,
            whole: false,
            span: None,
            runs: 0,
            gaps: 0,
            notes: BTreeMap::new(),
            unused: UnusedRows::default(),
            present: vec![0; width],
            first: vec![f64::NAN; width],
            varies: vec![false; width],
            events: Vec::new(),
            layout,
        };
        let mut frame = Frame::for_layout(&survey.layout);
        while full || survey.frames < GLANCE {
            let more = stream.next(&mut frame)?;
            survey.take(&frame);
            if !more {
                survey.whole = true;
                break;
            }
            survey.add(&frame);
        }
        if survey.frames == 0 {
            return Err(StreamError::empty(part, &survey.unused));
        }
        survey.events = stream.events().to_vec();
        Ok(survey)
    }

    fn add(&mut self, frame: &Frame) {
        self.frames += 1;
        let begin = self.span.map_or(frame.time, |(begin, _)| begin);
        self.span = Some((begin, frame.time));
        match frame.continuity {
            Continuity::NewRun => self.runs += 1,
            Continuity::Gap { .. } => self.gaps += 1,
            Continuity::Next => {}
        }
        for (i, value) in local::measurements_of(frame).iter().enumerate() {
            if value.is_nan() {
                continue;
            }
            self.present[i] += 1;
            if self.first[i].is_nan() {
                self.first[i] = *value;
            }
            self.varies[i] |= value.to_bits() != self.first[i].to_bits();
        }
    }

    /// Takes what had to be left out; that after the last frame comes with none.
    fn take(&mut self, frame: &Frame) {
        for note in &frame.notes {
            let entry = self
                .notes
                .entry(note.what)
                .or_insert_with(|| (0, format!("{}:{}", note.place, note.line)));
            entry.0 += note.rows;
            self.unused.add(note.what, note.rows);
        }
    }

    fn line(&self) -> String {
        let (from, to) = self.span.expect("a survey without frames is an error before");
        let many = if self.whole { String::new() } else { "at least ".into() };
        let runs = if self.runs > 1 { format!(", {} runs", self.runs) } else { String::new() };
        format!("{from} … {to}  {many}{} frames of {} s{runs}", self.frames, self.layout.period_s)
    }

    /// What a person should know before trusting the data.
    fn complaints(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.gaps > 0 {
            lines.push(format!("{} gaps in time", self.gaps));
        }
        for (what, (count, first)) in &self.notes {
            lines.push(if what.leaves_out() {
                format!("{count} × {what}, first at {first}")
            } else {
                format!("{what}, at {first}")
            });
        }
        let cells = self.frames * self.layout.width() as u64;
        let missing = cells - self.present.iter().sum::<u64>();
        if missing > 0 {
            lines.push(format!("{missing} of {cells} values are missing"));
        }
        if self.whole {
            let names = self.layout.clients.iter().flat_map(|c| &c.sensors).map(|s| &s.name);
            let constant: Vec<&str> = names
                .zip(&self.varies)
                .filter(|(_, varies)| !**varies)
                .map(|(name, _)| name.as_str())
                .collect();
            if !constant.is_empty() {
                lines.push(format!("never change: {}", constant.join(", ")));
            }
        }
        lines
    }

    /// Whether an event begins in the replay range. Where only its beginning was read, the range ends at
    /// the civil time that the session gives, or with its data.
    fn holds(&self, event: &stream::Event, session: &Session) -> bool {
        let Some((first, last)) = self.span else { return false };
        let until = Part::Replay.stretch(session).until;
        let clock = Clock::of(session);
        let is_after = match until.filter(|mark| matches!(mark, Mark::At(_))) {
            _ if self.whole => event.start > last,
            Some(mark) => mark.is_reached(clock, first, 0, event.start),
            None => false,
        };
        event.start >= first && !is_after
    }

    fn print_events(&self, out: &mut impl Write, session: &Session) -> Result<()> {
        let mut by_origin: BTreeMap<String, usize> = BTreeMap::new();
        let held: Vec<&stream::Event> =
            self.events.iter().filter(|event| self.holds(event, session)).collect();
        for event in &held {
            let origin = if event.origins.is_empty() {
                "origin unknown".to_owned()
            } else {
                event.origins.join("+")
            };
            *by_origin.entry(origin).or_default() += 1;
        }
        if !self.events.is_empty() {
            let parts: Vec<String> =
                by_origin.iter().map(|(origin, n)| format!("{n} {origin}")).collect();
            let known = if held.len() == self.events.len() {
                String::new()
            } else {
                format!(" of {} known", self.events.len())
            };
            let of = if parts.is_empty() { "none".into() } else { parts.join(", ") };
            let held = held.len();
            writeln!(out, "{:<12}{held}{known} in the replay range: {of}", "events")?;
        }
        Ok(())
    }
}
