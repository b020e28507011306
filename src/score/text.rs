//! The report as a person reads it: figures first, then each event, then each false alarm.
//!
//! ```text
//! labelled events     3
//! detected            2   66.7 %
//! …
//!
//! event  start                 origin  after  root  verdict
//! A1     2022-08-12T16:00:00Z  P1      20 s   P1    right
//! ```

use std::fmt;

use super::report::{DaysFrom, Report};
use super::{RootCourse, Score, Verdict};
use crate::score::metrics::Rates;
use crate::score::metrics::delay::Delays;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.figures(f)?;
        if self.confusion.total() > 0 {
            write!(f, "\n{}\n", self.confusion)?;
        }
        self.event_table(f)?;
        if !self.false_alarm_list.is_empty() {
            let rows = self.false_alarm_list.iter();
            let rows = rows.map(|a| [a.time.to_string(), name(a.root.as_deref())]).collect();
            f.write_str("\n")?;
            table(f, ["false alarm", "root"], rows)?;
        }
        Ok(())
    }
}

impl Report {
    fn figures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let score = &self.score;
        let mut line = |what: &str, count: usize, more: &str| {
            writeln!(f, "{}", format!("{what:<18}{count:>5}   {more}").trim_end())
        };
        line("labelled events", score.labelled, "")?;
        line("detected", score.detected, &percent(self.episode.recall))?;
        let of_named = match self.attribution {
            Some(_) => format!("{} of the detected with a known origin", percent(self.attribution)),
            None => String::new(),
        };
        line("root right", score.root_right, &of_named)?;
        line("root wrong", score.root_wrong, "")?;
        line("root unknown", score.root_unknown, "")?;
        line("false alarms", score.false_alarms, &self.false_alarm_rate())?;
        line("repeated alarms", self.repeats, "not counted")?;

        let mut line = |what: &str, text: String| writeln!(f, "{what:<18}{text}");
        line("delay", delays(score.delay_s))?;
        line("to the right root", delays(self.attribution_delay_s))?;
        line("events", rates(self.episode))?;
        line("roots", rates(self.naming))?;
        line(
            "suspects",
            format!(
                "AC@1 {}  AC@3 {}  Avg@5 {}  MRR {}",
                figure(score.ac1),
                figure(self.ac3),
                figure(self.avg5),
                figure(score.mrr)
            ),
        )?;
        // A file without closings gives each alarm one root, at no known step.
        if self.etapr.is_some() && score.detected > 0 {
            line("right roots", course(score.roots))?;
        }
        let effects = &score.effects;
        if effects.precision.is_some() || effects.recall.is_some() {
            let (precision, recall) = (figure(effects.precision), figure(effects.recall));
            let delay = delays(effects.delay_s);
            line("effects", format!("precision {precision}  recall {recall}  delay {delay}"))?;
        }
        if let Some(sensors) = score.sensors {
            line("first sensor", format!("right in {} of {}", sensors.right, sensors.known))?;
        }
        line("ARL0 in seconds", self.arl0_s.to_string())?;
        line("ARL1 in seconds", self.arl1_s.to_string())?;
        if let Some(etapr) = &self.etapr {
            line(
                "eTaPR",
                format!("{} (θp {}, θr {})", rates(etapr.rates), etapr.thetas.p, etapr.thetas.r),
            )?;
            line("  point-wise", rates(etapr.pointwise))?;
            line("  point-adjusted", rates(etapr.point_adjusted))?;
        }
        Ok(())
    }

    fn false_alarm_rate(&self) -> String {
        let rate = match self.false_alarms_per_day {
            Some(rate) => format!(": {rate:.2} a day"),
            None => String::new(),
        };
        let least = match self.days_from {
            DaysFrom::Summary => "",
            DaysFrom::Files => " (between the first and the last time in the files)",
        };
        format!("in {}{rate}{least}", quiet_days(&self.score))
    }

    fn event_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.score.events.is_empty() {
            return Ok(());
        }
        let row = |event: &super::EventRow| {
            let origins = (!event.origins.is_empty()).then(|| event.origins.join("+"));
            [
                shown(&event.id),
                event.start.to_string(),
                name(origins.as_deref()),
                event.delay_s.map_or_else(|| "-".into(), |s| format!("{s} s")),
                name(event.root.as_deref()),
                verdict(event.verdict).into(),
            ]
        };
        f.write_str("\n")?;
        let rows = self.score.events.iter().map(row).collect();
        table(f, ["event", "start", "origin", "after", "root", "verdict"], rows)
    }
}

/// The time in which an alarm is false, in words.
pub(crate) fn quiet_days(score: &Score) -> String {
    let Score { days, quiet_days, .. } = score;
    if days - quiet_days <= 0.0 {
        format!("{days:.2} days")
    } else {
        format!("{quiet_days:.2} quiet days of {days:.2}")
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Missed => "missed",
        Verdict::Right => "right",
        Verdict::Wrong => "wrong",
        Verdict::Unnamed => "unnamed",
        Verdict::Doubtful => "doubtful",
    }
}

fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |v| format!("{v:.3}"))
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(String::new, |v| format!("{:.1} %", 100.0 * v))
}

fn rates(rates: Rates) -> String {
    format!(
        "precision {}  recall {}  F1 {}",
        figure(rates.precision),
        figure(rates.recall),
        figure(rates.f1)
    )
}

/// How many roots were right, and when.
fn course(roots: RootCourse) -> String {
    let RootCourse { at_alarm, after_5_steps, at_close, with_source } = roots;
    format!(
        "at the alarm {at_alarm}  after 5 steps {after_5_steps}  at the end {at_close}  with the \
         silent source above it {with_source}"
    )
}

fn delays(delays: Delays) -> String {
    match (delays.median, delays.p95) {
        (Some(median), Some(p95)) => format!("median {median:.1} s  p95 {p95:.1} s"),
        _ => "-".into(),
    }
}

fn name(name: Option<&str>) -> String {
    name.map_or_else(|| "-".into(), shown)
}

/// A name from a file, without control characters that the terminal would obey.
fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn table<const N: usize>(
    f: &mut fmt::Formatter<'_>,
    header: [&str; N],
    rows: Vec<[String; N]>,
) -> fmt::Result {
    let mut lines = vec![header.map(String::from)];
    lines.extend(rows);
    let mut widths = [0; N];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for line in &lines {
        let cells: Vec<String> =
            line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        writeln!(f, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::score;
    use crate::session::Span;

    /// The report of these facts, judged by this truth.
    fn report(truth: &str, facts: &str) -> String {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let [truth, facts] = [("truth.json", truth), ("facts.jsonl", facts)].map(|(name, text)| {
            let file = folder.path().join(name);
            fs::write(&file, text).expect("written");
            file
        });
        let report = score::run(&truth, &facts, Span { seconds: 300.0 });
        report.expect("both files are good").to_string()
    }

    const FACTS: &str = r#"{"fact":"opened","incident":1,"time":"2022-08-12T16:00:20Z","step":20,"root":"P2","effects":[]}
{"fact":"updated","incident":1,"time":"2022-08-12T16:00:45Z","step":45,"root":"P1","effects":[{"client":"P2","time":"2022-08-12T16:00:20Z","delay_s":0}],"sensors":["P1_PIT01"]}
{"fact":"closed","incident":1,"time":"2022-08-12T16:03:30Z","step":210,"root":"P1"}
"#;

    #[test]
    fn a_report_says_when_roots_were_right_and_how_good_effects_and_sensors_are() {
        let truth = r#"[{"id": "A1", "start": "2022-08-12T16:00:00Z", "end": "2022-08-12T16:02:59Z",
            "origin": "P1", "affected": ["P2", "P3"], "sensors": ["P1_PIT01"]}]"#;
        let text = report(truth, FACTS);
        for line in [
            "right roots       at the alarm 0  after 5 steps 0  at the end 1  with the silent \
             source above it 1\n",
            "effects           precision 1.000  recall 0.500  delay median 45.0 s  p95 45.0 s\n",
            "first sensor      right in 1 of 1\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }

    #[test]
    fn a_report_has_no_line_about_effects_that_the_truth_does_not_know() {
        let truth = r#"[{"id": "A1", "start": "2022-08-12T16:00:00Z", "end": "2022-08-12T16:02:59Z",
            "origin": "P1"}]"#;
        let text = report(truth, FACTS);
        assert!(!text.contains("\neffects") && !text.contains("first sensor"), "{text}");
    }
}
