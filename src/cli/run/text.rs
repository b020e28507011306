//! Facts and the end of a run, in words.

use std::fmt::Display;
use std::io::{self, Write};

use jiff::Timestamp;

use crate::fact::{
    Calibrated, Fact, Incident, Ledger, Number, Quality, Summary, Suspended, TableCounts,
    TableEpisode, Training,
};
use crate::privacy::Head;
use crate::score::metrics::delay::per_day;
use crate::score::{EffectScore, Judgement, Outcome, Score, Verdict, quiet_days};
use crate::session::settings::Span;

/// A time of the data's clock.
pub(super) fn clock(time: Timestamp) -> impl Display {
    time.strftime("%Y-%m-%d %H:%M:%S")
}

/// One line per fact; the summary has words of its own.
pub(super) fn print(out: &mut impl Write, fact: &Fact) -> io::Result<()> {
    match fact {
        Fact::Training(training) => print_training(out, training),
        Fact::Calibrated(calibrated) => print_calibrated(out, calibrated),
        Fact::Opened(incident) => print_incident(out, "opened", incident),
        Fact::Updated(incident) => print_incident(out, "updated", incident),
        Fact::Closed(incident) => print_incident(out, "closed", incident),
        Fact::Verdict(verdict) => print_verdict(out, verdict),
        Fact::Setting(setting) => {
            let what = &setting.what;
            let (from, to) = (setting.from.words(what), setting.to.words(what));
            writeln!(out, "{}  {what}: {from} → {to}", clock(setting.time))
        }
        Fact::Ledger(ledger) => print_ledger(out, ledger),
        Fact::Quality(quality) => print_quality(out, quality),
        Fact::Summary(summary) => print_end(out, summary, None),
    }
}

fn number(value: Option<Number>, digits: usize) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{:.digits$}", value.get()))
}

fn print_training(out: &mut impl Write, training: &Training) -> io::Result<()> {
    writeln!(
        out,
        "training    round {} of {}, server loss {}, client loss {}",
        training.round,
        training.rounds,
        number(training.server_loss, 4),
        number(training.client_loss, 4)
    )
}

fn print_calibrated(out: &mut impl Write, calibrated: &Calibrated) -> io::Result<()> {
    write!(
        out,
        "calibrated  {}: τ_c {}, τ_a {}, one false alarm in {} wanted",
        calibrated.client,
        number(calibrated.tau_c, 2),
        number(calibrated.tau_a, 2),
        calibrated
            .arl0_target
            .map_or_else(|| "-".into(), |seconds| Span { seconds: seconds.get() }.to_string())
    )?;
    match calibrated.alarm_steps {
        Some(steps) => writeln!(out, ", an alarm takes {:.1} steps at least", steps.get()),
        None => writeln!(out),
    }
}

fn print_incident(out: &mut impl Write, word: &str, incident: &Incident) -> io::Result<()> {
    let root = incident.root.as_deref();
    let named = root_words(root, &incident.candidates);
    write!(out, "{}  #{:<3} {word:<8} {named}", clock(incident.time), incident.incident)?;
    let likely = incident.posterior.0.iter().find(|(client, _)| Some(&client[..]) == root);
    if let Some((_, p)) = likely {
        write!(out, " ({:.0} %)", 100.0 * p.get())?;
    }
    for (i, effect) in incident.effects.iter().enumerate() {
        let word = if i == 0 { ", felt by" } else { "," };
        write!(out, "{word} {} {:+} s", effect.client, effect.delay_s.get())?;
    }
    if let Some(first) = incident.first_out.as_deref().filter(|_| incident.disagree) {
        write!(out, ", first out {first}")?;
    }
    if let Some(other) = &incident.would_now_say {
        write!(out, ", would now say {other}")?;
    }
    if let Some(source) = &incident.silent_source {
        write!(out, ", or {source} above it, not visible in its own sensors")?;
    }
    if incident.suspended {
        write!(out, ", alarm suspended")?;
    }
    write_place(out, incident.file.as_deref(), incident.run.as_deref())?;
    match &incident.why {
        Some(why) => writeln!(out, ": {why}"),
        None => writeln!(out),
    }
}

/// The root, or the clients that it may be while none of them can be named.
fn root_words(root: Option<&str>, candidates: &[String]) -> String {
    match (root, candidates) {
        (Some(root), _) => format!("root {root}"),
        (None, []) => "root unknown".to_owned(),
        (None, [one]) => format!("root unknown, likeliest {one}"),
        (None, [first @ .., last]) => format!("no single root: {} or {last}", first.join(", ")),
    }
}

/// A verdict of Table 1 that names no root.
fn print_verdict(out: &mut impl Write, verdict: &TableEpisode) -> io::Result<()> {
    let (clients, steps) = (verdict.clients.join(", "), count(verdict.steps as usize, "step"));
    let word = verdict.verdict.replace('_', " ");
    write!(out, "{}  Table 1  {word}: {clients}, {steps}", clock(verdict.time))?;
    write_place(out, verdict.file.as_deref(), verdict.run.as_deref())?;
    writeln!(out)
}

/// What Table 1 declared, and how often.
fn print_counts(out: &mut impl Write, counts: &TableCounts) -> io::Result<()> {
    writeln!(out, "Table 1 declared, in episodes (runs of steps with one verdict) and steps:")?;
    for (verdict, count) in counts.each() {
        writeln!(out, "  {verdict:<22} {:>7} {:>9}", count.episodes, count.steps)?;
    }
    Ok(())
}

fn print_ledger(out: &mut impl Write, ledger: &Ledger) -> io::Result<()> {
    let releases = count(ledger.releases as usize, "release");
    write!(out, "ledger      {}: {releases}", ledger.client)?;
    match ledger.epsilon {
        Some(epsilon) => {
            let delta = ledger.delta.map_or(0.0, Number::get);
            write!(out, ", ε {:.3} at δ {delta}", epsilon.get())?;
        }
        None if ledger.releases > 0 => write!(out, ", not protected")?,
        None => {}
    }
    if let Some(basic) = ledger.basic.filter(|_| ledger.epsilon.is_some()) {
        write!(out, " (adding up: {:.3})", basic.get())?;
    }
    match ledger.training.as_ref().map(|t| (t.releases, t.epsilon)) {
        None | Some((0, _)) => {}
        Some((n, Some(epsilon))) => write!(out, "; training sent {n}, ε {:.3}", epsilon.get())?,
        Some((n, None)) => write!(out, "; training sent {n} in the clear")?,
    }
    match &ledger.randomness {
        Some(randomness) => writeln!(out, "; noise: {randomness}"),
        None => writeln!(out),
    }
}

fn print_quality(out: &mut impl Write, quality: &Quality) -> io::Result<()> {
    let whose = quality.client.as_deref().unwrap_or("all clients");
    write!(out, "{}  quality  {whose}: {}", clock(quality.time), quality.what)?;
    if let Some(seconds) = quality.seconds {
        write!(out, " of {} s", seconds.get())?;
    }
    write_place(out, quality.file.as_deref(), quality.run.as_deref())?;
    writeln!(out)
}

/// The file and the run that a fact is about, where there are several.
fn write_place(out: &mut impl Write, file: Option<&str>, run: Option<&str>) -> io::Result<()> {
    match (file, run) {
        (Some(file), Some(run)) => write!(out, " [{file}, run {run}]"),
        (Some(file), None) => write!(out, " [{file}]"),
        (None, Some(run)) => write!(out, " [run {run}]"),
        (None, None) => Ok(()),
    }
}

/// What was run, and how good it was.
pub(super) fn print_end(
    out: &mut impl Write,
    summary: &Summary,
    judgement: Option<&Judgement>,
) -> io::Result<()> {
    write!(out, "\n{}, {} mode", summary.session, summary.mode.word())?;
    if let Some(seed) = summary.seed {
        write!(out, ", seed {seed} (seeded: not private)")?;
    } else if let Some(randomness) = &summary.randomness {
        write!(out, ", noise: {randomness}")?;
    }
    writeln!(
        out,
        ": {} of {} in {} s ({} a second), {}",
        count(summary.steps as usize, "step"),
        count(summary.clients as usize, "client"),
        number(summary.wall_s, 1),
        number(summary.steps_per_s, 0),
        count(summary.incidents as usize, "incident")
    )?;
    print_unused(out, summary)?;
    for Suspended { client, from, until, why } in &summary.suspended {
        let until = until.map_or_else(|| "the end".to_owned(), |until| clock(until).to_string());
        let why = why.as_deref().map_or(String::new(), |why| format!(": {why}"));
        writeln!(out, "alarms of {client} suspended from {} until {until}{why}", clock(*from))?;
    }
    if let Some(counts) = &summary.verdicts {
        print_counts(out, counts)?;
    }
    if let Some(score) = &summary.score {
        print_score(out, score)?;
    }
    if let Some(judgement) = judgement {
        print_misses(out, judgement)?;
    }
    summary.ledger.as_ref().map_or(Ok(()), |head| print_head(out, head))
}

/// Where the ledger file ends.
pub(in crate::cli) fn print_head(out: &mut impl Write, head: &Head) -> io::Result<()> {
    let entries =
        if head.entries == 1 { "1 entry".into() } else { format!("{} entries", head.entries) };
    writeln!(out, "ledger head {}, {entries}, signed with key {}", head.head, head.key)?;
    writeln!(out, "            kept elsewhere, the head shows later whether its end was cut off")
}

/// What of the data was not looked at.
fn print_unused(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    let of = [("data", summary.unused_rows), ("nominal data", summary.unused_nominal_rows)];
    for summary in of.into_iter().filter_map(|(data, unused)| unused.summary(data)) {
        writeln!(out, "{summary}")?;
    }
    for of in summary.not_watched.chunk_by(|a, b| a.client == b.client) {
        let sensors: Vec<String> =
            of.iter().map(|sensor| format!("{} ({})", sensor.sensor, sensor.why)).collect();
        writeln!(out, "{} is watched without {}", of[0].client, sensors.join(", "))?;
    }
    Ok(())
}

/// How good the lists of effects are, where the truth knows who is affected.
fn print_effects(out: &mut impl Write, effects: &EffectScore) -> io::Result<()> {
    if effects.precision.is_none() && effects.recall.is_none() {
        return Ok(());
    }
    let figure =
        |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.2}"));
    writeln!(
        out,
        "effects: precision {}, recall {}; delay {} in the median, {} in the 95th percentile",
        figure(effects.precision),
        figure(effects.recall),
        delay(effects.delay_s.median),
        delay(effects.delay_s.p95)
    )
}

fn delay(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".into(), |seconds| format!("{seconds:.0} s"))
}

fn print_score(out: &mut impl Write, score: &Score) -> io::Result<()> {
    if score.labelled > 0 {
        writeln!(
            out,
            "{}: {} detected, root right {}, wrong {}, unknown {}; delay {} in the median, {} in \
             the 95th percentile",
            count(score.labelled, "labelled event"),
            score.detected,
            score.root_right,
            score.root_wrong,
            score.root_unknown,
            delay(score.delay_s.median),
            delay(score.delay_s.p95)
        )?;
    }
    let course = score.roots;
    if course.at_alarm != course.at_close || course.with_source != course.at_close {
        writeln!(
            out,
            "roots right at the alarm {}, five steps later {}, at the end {}; with the silent source \
             above the root {}",
            course.at_alarm, course.after_5_steps, course.at_close, course.with_source
        )?;
    }
    print_effects(out, &score.effects)?;
    if let Some(sensors) = score.sensors {
        writeln!(
            out,
            "the sensor that the root ranks first is right in {} of {}",
            sensors.right, sensors.known
        )?;
    }
    write!(out, "{} in {}", count(score.false_alarms, "false alarm"), quiet_days(score))?;
    match per_day(score.false_alarms, score.quiet_days) {
        Some(rate) if score.false_alarms > 0 => writeln!(out, ": {rate:.2} a day"),
        _ => writeln!(out),
    }
}

/// Everything that is not as it should be, one line each.
fn print_misses(out: &mut impl Write, judgement: &Judgement) -> io::Result<()> {
    for outcome in &judgement.outcomes {
        let event = outcome.event;
        if let Some(word) = fault(outcome) {
            writeln!(
                out,
                "{word:<22} {} {} in {}: {}",
                event.id,
                clock(event.start),
                if event.origins.is_empty() { "?".into() } else { event.origins.join("+") },
                event.what
            )?;
        }
    }
    for alarm in &judgement.false_alarms {
        let root = alarm.root.as_deref().unwrap_or("unknown");
        writeln!(out, "{:<22} {} root {root}", "false alarm", clock(alarm.opened))?;
    }
    Ok(())
}

fn fault(outcome: &Outcome) -> Option<String> {
    match outcome.verdict {
        Verdict::Right | Verdict::Doubtful => None,
        Verdict::Missed => Some("missed".into()),
        Verdict::Unnamed => Some("root unknown".into()),
        Verdict::Wrong => {
            let root = outcome.alarm.and_then(|alarm| alarm.root.as_deref()).unwrap_or("?");
            Some(format!("wrong root {root}"))
        }
    }
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::metrics::delay::Delays;

    fn printed(effects: &EffectScore) -> String {
        let mut out = Vec::new();
        print_effects(&mut out, effects).expect("memory takes all");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_tie_names_all_clients_that_may_be_the_root() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let words = |root, candidates: &[&str]| root_words(root, &names(candidates));
        assert_eq!(words(None, &["C1", "C3", "C4"]), "no single root: C1, C3 or C4");
        assert_eq!(words(None, &["C1", "C3"]), "no single root: C1 or C3");
        assert_eq!(words(None, &["C1"]), "root unknown, likeliest C1");
        assert_eq!(words(None, &[]), "root unknown");
        assert_eq!(words(Some("C1"), &[]), "root C1");
    }

    #[test]
    fn effects_have_a_line_where_the_truth_knows_who_is_affected() {
        let effects = EffectScore {
            precision: Some(0.81),
            recall: Some(0.5),
            delay_s: Delays { median: Some(12.0), p95: None },
        };
        let line = "effects: precision 0.81, recall 0.50; delay 12 s in the median, - in the 95th \
                    percentile\n";
        assert_eq!(printed(&effects), line);
        assert_eq!(printed(&EffectScore::default()), "");
    }
}
