//! A session watched by both modes, and what came of it: shared by the studies of plants on a clock.

mod flags;

use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine;
use crate::engine::handle::Options;
use crate::engine::prepare::{Stage, cache_file, prepare};
use crate::engine::run::Ending;
use crate::fact::Fact;
use crate::federation::variant::Variant;
use crate::score::Verdict;
use crate::score::metrics::delay::per_day;
use crate::score::metrics::etapr::{Thetas, etapr};
use crate::score::metrics::run_length::{self, RunLength};
use crate::score::metrics::{Tick, Window, share};
use crate::session::{Mode, Session};
use crate::study::detection::as_published;
use crate::study::detection::figures::Runs;
use crate::study::detection::flags::ModelFlags;
use crate::study::frame::StudyError;
use crate::study::published::{RootCause, Table4};
use crate::study::report::{Axis, Bar, Cell, Chart, Drawing, Row, Spread, Table};

use self::flags::Raised;
pub(super) use self::flags::flag_table;

/// A way to watch.
pub(super) struct Method {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    mode: Mode,
    /// Percentile of both thresholds, and whether three of five steps must agree.
    flags: Option<(f64, bool)>,
}

/// In the order in which they are shown.
pub(super) const METHODS: [Method; 4] = [
    Method { name: "evidence", label: "evidence", mode: Mode::Evidence, flags: None },
    Method {
        name: "paper-95",
        label: "paper at 95 %",
        mode: Mode::Paper,
        flags: Some((95.0, false)),
    },
    Method {
        name: "paper-99.5",
        label: "paper at 99.5 %",
        mode: Mode::Paper,
        flags: Some((99.5, false)),
    },
    Method {
        name: "paper-99-vote",
        label: "paper at 99 %, 3 of 5",
        mode: Mode::Paper,
        flags: Some((99.0, true)),
    },
];

/// What one method saw.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(crate) method: String,
    pub(crate) detected: usize,
    pub(crate) right: usize,
    pub(crate) false_alarms: usize,
    /// Time watched outside attacks and their tails.
    pub(crate) quiet_s: f64,
    /// Seconds without event, with the false alarms in them.
    pub(crate) arl0: Runs,
    /// Seconds from each onset to the next alarm.
    pub(crate) arl1: Runs,
    /// Seconds from an event's start to its first alarm.
    pub(crate) delays_s: Vec<f64>,
    /// Seconds from an event's start until its origin was named.
    pub(crate) named_s: Vec<f64>,
    pub(crate) ac1: Option<f64>,
    pub(crate) mrr: Option<f64>,
    pub(crate) etapr_f1: Option<f64>,
    pub(crate) attacks: Vec<Attack>,
    /// The flags of the proprietary and the augmented models, where they were raised; in seconds.
    pub(crate) flags: Vec<ModelFlags>,
}

/// What became of one attack.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Attack {
    pub(crate) id: String,
    pub(crate) what: String,
    pub(crate) origins: Vec<String>,
    pub(crate) named: Option<String>,
    pub(crate) right: bool,
    pub(crate) delay_s: Option<f64>,
}

/// Watches `session` by every method, with models that are made once.
pub(super) fn watch(session: &Session) -> Result<Vec<Seen>, StudyError> {
    let go_on = &mut |_: Stage| ControlFlow::Continue(());
    let prepared = Arc::new(prepare(session, &cache_file(session), go_on)?);
    METHODS
        .iter()
        .map(|method| {
            let mut session = session.clone();
            if let Some((percentile, is_voted)) = method.flags {
                as_published(&mut session, percentile, is_voted);
            }
            let mut alarms = Vec::new();
            let mut raised = Raised::default();
            let mode = Some(method.mode);
            let options = Options { mode, ..Options::study(Arc::clone(&prepared)) };
            let ended = engine::spawn(&session, options)?.to_end(|_, update| {
                alarms.extend(update.news.facts.iter().filter_map(alarm));
                if let (Some(_), Some(time)) = (method.flags, update.news.times.first()) {
                    raised.step(*time, &update.news.sights);
                }
            });
            let (opened, ending) = ended.map_err(StudyError::Run)?;
            let mut seen = seen(method, &ending, &alarms);
            if let Some((percentile, false)) = method.flags {
                let tail_s = session.replay.tail.seconds;
                seen.flags = raised.judge(percentile, &opened.steps, &ending.events, tail_s);
            }
            Ok(seen)
        })
        .collect()
}

/// The beginning or the end of an alarm.
struct Turn {
    number: u64,
    at: Tick,
    opens: bool,
}

fn alarm(fact: &Fact) -> Option<Turn> {
    match fact {
        Fact::Opened(i) => Some(Turn { number: i.incident, at: i.time.as_second(), opens: true }),
        Fact::Closed(i) => Some(Turn { number: i.incident, at: i.time.as_second(), opens: false }),
        _ => None,
    }
}

fn seen(method: &Method, ending: &Ending, turns: &[Turn]) -> Seen {
    let opened: Vec<Tick> = turns.iter().filter(|t| t.opens).map(|t| t.at).collect();
    let declared: Vec<Window> = turns
        .iter()
        .filter(|turn| turn.opens)
        .map(|turn| {
            let end = turns.iter().find(|t| !t.opens && t.number == turn.number);
            Window::new(turn.at, end.map_or(turn.at, |end| end.at))
        })
        .collect();
    let mut seen = Seen {
        method: method.name.into(),
        detected: 0,
        right: 0,
        false_alarms: opened.len(),
        quiet_s: 0.0,
        arl0: Runs::default(),
        arl1: Runs::default(),
        delays_s: Vec::new(),
        named_s: Vec::new(),
        ac1: None,
        mrr: None,
        etapr_f1: None,
        attacks: Vec::new(),
        flags: Vec::new(),
    };
    let Some(judgement) = ending.judgement() else { return seen };
    let score = judgement.score();
    let events: Vec<Window> = judgement
        .outcomes
        .iter()
        .map(|o| Window::new(o.event.start.as_second(), o.event.end.as_second()))
        .collect();
    let onsets: Vec<Tick> = events.iter().map(|event| event.start).collect();
    let last = opened.iter().chain(events.iter().map(|e| &e.end)).copied().max().unwrap_or(0);
    for outcome in &judgement.outcomes {
        let right = outcome.verdict == Verdict::Right;
        if let Some(alarm) = outcome.alarm.filter(|_| right) {
            let named = alarm.named.unwrap_or(alarm.opened);
            seen.named_s.push(named.duration_since(outcome.event.start).as_secs_f64());
        }
        seen.attacks.push(Attack {
            id: outcome.event.id.clone(),
            what: outcome.event.what.clone(),
            origins: outcome.event.origins.clone(),
            named: outcome.alarm.and_then(|alarm| alarm.root.clone()),
            right,
            delay_s: outcome.delay_s(),
        });
    }
    seen.delays_s = seen.attacks.iter().filter_map(|attack| attack.delay_s).collect();
    seen.detected = score.detected;
    seen.right = score.root_right;
    seen.false_alarms = score.false_alarms;
    seen.quiet_s = judgement.nominal_s;
    seen.arl0 = run_length::arl0(judgement.nominal_s, score.false_alarms).into();
    seen.arl1 = run_length::arl1(&run_length::runs(&onsets, last), &opened).into();
    seen.ac1 = score.ac1;
    seen.mrr = score.mrr;
    seen.etapr_f1 = etapr(&events, &declared, Thetas::default()).rates.f1;
    seen
}

/// All runs of one method on one session.
pub(super) struct Line<'a> {
    pub(crate) family: &'a str,
    pub(crate) method: &'static Method,
    pub(crate) seen: Vec<&'a Seen>,
}

impl<'a> Line<'a> {
    /// One line per method, of the methods that were run.
    pub(crate) fn all(family: &'a str, runs: &'a [Vec<Seen>]) -> Vec<Self> {
        let line = |method: &'static Method| Self {
            family,
            method,
            seen: runs.iter().flatten().filter(|seen| seen.method == method.name).collect(),
        };
        METHODS.iter().map(line).filter(|line| !line.seen.is_empty()).collect()
    }

    pub(crate) fn attacks(&self) -> usize {
        self.sum(|seen| seen.attacks.len())
    }

    pub(crate) fn detected(&self) -> usize {
        self.sum(|seen| seen.detected)
    }

    pub(crate) fn right(&self) -> usize {
        self.sum(|seen| seen.right)
    }

    fn sum(&self, of: fn(&Seen) -> usize) -> usize {
        self.seen.iter().map(|seen| of(seen)).sum()
    }

    fn spread(&self, of: impl Fn(&Seen) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.seen.iter().map(|seen| of(seen)))
    }

    /// RCA accuracy: right names of all attacks.
    pub(crate) fn accuracy(&self) -> Option<Spread> {
        self.spread(|seen| share(seen.right, seen.attacks.len()))
    }

    pub(crate) fn false_alarms_per_day(&self) -> Option<Spread> {
        self.spread(|seen| per_day(seen.false_alarms, seen.quiet_s / 86_400.0))
    }

    /// Precision over first and false alarms with the right name, recall over attacks, and F1.
    fn rates(&self) -> [Option<Spread>; 3] {
        let of = |seen: &Seen| {
            let said = seen.detected + seen.false_alarms;
            let happened = seen.attacks.len();
            crate::score::metrics::Rates::from_counts(seen.right, said, happened)
        };
        [
            self.spread(|seen| of(seen).precision),
            self.spread(|seen| of(seen).recall),
            self.spread(|seen| of(seen).f1),
        ]
    }

    fn arl0(&self) -> RunLength {
        Runs::pooled(self.seen.iter().map(|seen| &seen.arl0))
    }

    fn arl1(&self) -> RunLength {
        Runs::pooled(self.seen.iter().map(|seen| &seen.arl1))
    }

    /// Minutes until the origin was named, over all attacks whose origin was.
    fn named_min(&self) -> Option<Spread> {
        Spread::of(self.seen.iter().flat_map(|seen| &seen.named_s).map(|s| Some(s / 60.0)))
    }

    pub(crate) fn median_delay_s(&self) -> Option<f64> {
        let delays: Vec<f64> =
            self.seen.iter().flat_map(|seen| seen.delays_s.iter().copied()).collect();
        crate::score::metrics::delay::Delays::of(&delays).median
    }

    /// The paper's own line for the same percentile.
    fn printed(&self) -> Option<&'static Table4> {
        let (percentile, is_voted) = self.method.flags?;
        let is_told = !is_voted && self.attacks() > 0;
        Table4::find(Variant::Federated, percentile).filter(|_| is_told)
    }

    pub(crate) fn row(&self) -> Row {
        let [precision, recall, f1] = self.rates();
        let (arl0, arl1) = (self.arl0(), self.arl1());
        Row::new(self.family, self.method.name, self.seen.len())
            .with("episodes", self.attacks())
            .with("detected", self.detected())
            .with("right", self.right())
            .spread("precision", precision)
            .spread("recall", recall)
            .spread("f1", f1)
            .spread("etapr_f1", self.spread(|seen| seen.etapr_f1))
            .with("arl0", arl0.mean.map(|s| s / 60.0))
            .with("arl0_at_least", arl0.at_least.map(|s| s / 60.0))
            .with("arl1", arl1.mean.map(|s| s / 60.0))
            .with("arl1_censored", arl1.censored)
            .with("unit", "min")
            .with("delay_s", self.median_delay_s())
            .spread("delay", self.named_min())
            .with("attribution", share(self.right(), self.detected()))
            .spread("rca_accuracy", self.accuracy())
            .spread("false_alarms_per_day", self.false_alarms_per_day())
            .spread("ac1", self.spread(|seen| seen.ac1))
            .spread("mrr", self.spread(|seen| seen.mrr))
    }
}

fn minutes(length: &RunLength) -> Cell {
    match (length.mean, length.at_least) {
        (Some(mean), _) => Cell::Number(mean / 60.0, 1),
        (None, Some(least)) => Cell::AtLeast(least / 60.0, 1),
        (None, None) => Cell::Nothing,
    }
}

/// The paper's Table 4 with what came out here. `is_papers` when it is the paper's own experiment.
pub(super) fn table(title: &str, lines: &[Line], is_papers: bool) -> Table {
    let columns = [
        "data",
        "method",
        "ARL0 min",
        "paper",
        "ARL1 min",
        "paper",
        "missed",
        "RCA accuracy",
        "paper",
        "RCA delay min",
        "paper",
        "detected",
        "right",
        "false a day",
        "eTaPR F1",
        "runs",
    ];
    let mut table = Table::new(title, 2, &columns);
    for line in lines {
        let paper = line.printed();
        let printed = |of: fn(&Table4) -> f64| Cell::number(paper.map(of), 1);
        let named = paper.and_then(|paper| paper.root_cause);
        let arl1 = line.arl1();
        let delay = named.map(|RootCause { delay_min: (mean, std), .. }| Spread {
            mean,
            std: Some(std),
            n: 0,
        });
        table.line(vec![
            Cell::text(line.family),
            Cell::text(line.method.label),
            minutes(&line.arl0()),
            printed(|p| p.arl0_min),
            minutes(&arl1),
            printed(|p| p.arl1_min),
            Cell::count(arl1.censored),
            Cell::spread(line.accuracy(), 2),
            Cell::number(named.map(|n| n.accuracy), 2),
            Cell::spread(line.named_min(), 2),
            Cell::spread(delay, 2),
            Cell::text(format!("{} of {}", line.detected(), line.attacks())),
            Cell::count(line.right()),
            Cell::spread(line.false_alarms_per_day(), 1),
            Cell::spread(line.spread(|seen| seen.etapr_f1), 2),
            Cell::count(line.seen.len()),
        ]);
    }
    let whose = if is_papers {
        "The paper's figures are of the same recording."
    } else {
        "The paper's figures are of HAI 23.05, 12 August: another plant, given for orientation."
    };
    table.note(format!(
        "ARL0: nominal time per false alarm (>: none). ARL1: from an onset to the next alarm, \
         censored at the next onset when missed. RCA accuracy: attacks whose first alarm names their \
         origin, of all; RCA delay: mean time until it does. {whose}"
    ));
    table
}

/// Every attack and what each method made of it.
pub(super) fn attack_table(title: &str, runs: &[Vec<Seen>]) -> Table {
    let mut columns = vec!["attack", "origin", "what"];
    columns.extend(METHODS.iter().map(|method| method.label));
    let mut table = Table::new(title, 1, &columns);
    let Some(first) = runs.first().and_then(|run| run.first()) else { return table };
    for (i, attack) in first.attacks.iter().enumerate() {
        let mut cells = vec![
            Cell::text(attack.id.as_str()),
            Cell::text(attack.origins.join(", ")),
            Cell::text(shortened(&attack.what)),
        ];
        cells.extend(METHODS.iter().map(|method| {
            let of_method = |run: &Vec<Seen>| {
                let seen = run.iter().find(|seen| seen.method == method.name)?;
                seen.attacks.get(i).filter(|other| other.id == attack.id).cloned()
            };
            verdict(&runs.iter().filter_map(of_method).collect::<Vec<_>>())
        }));
        table.line(cells);
    }
    table.note(
        "Right root of all runs, and the median time to the alarm; of one run, who was named.",
    );
    table
}

/// Longest description in a table.
const WORDS: usize = 34;

fn shortened(text: &str) -> String {
    if text.chars().count() <= WORDS {
        return text.to_owned();
    }
    let start: String = text.chars().take(WORDS - 1).collect();
    format!("{}…", start.trim_end())
}

fn verdict(attacks: &[Attack]) -> Cell {
    let delays: Vec<f64> = attacks.iter().filter_map(|attack| attack.delay_s).collect();
    let Some(delay) = crate::score::metrics::delay::Delays::of(&delays).median else {
        return Cell::text("missed");
    };
    let said = match attacks {
        [attack] if attack.right => "right".to_owned(),
        [attack] => attack.named.clone().map_or_else(|| "no name".into(), |n| format!("says {n}")),
        _ => format!("{} of {}", attacks.iter().filter(|a| a.right).count(), attacks.len()),
    };
    Cell::text(format!("{said}, {delay:.0} s"))
}

/// Right roots of each method.
pub(super) fn chart(family: &str, lines: &[Line]) -> Chart {
    let bars = lines
        .iter()
        .map(|line| Bar { name: line.method.label.into(), value: line.accuracy() })
        .collect();
    Chart {
        name: format!("accuracy-{family}"),
        title: format!("{family}: events whose origin is named"),
        drawing: Drawing::Bars { value: Axis::linear("share of events"), bars },
    }
}

/// Both modes side by side, in a sentence.
pub(super) fn comparison(lines: &[Line]) -> Option<String> {
    let of = |name: &str| lines.iter().find(|line| line.method.name == name);
    let said = |line: &Line| {
        let false_alarms = line.false_alarms_per_day().map_or(0.0, |f| f.mean);
        format!(
            "{} of {} with the right root at {false_alarms:.1} false alarms a day",
            line.right(),
            line.attacks()
        )
    };
    let (evidence, paper) = (of("evidence")?, of("paper-95")?);
    let (strict, vote) = (of("paper-99.5")?, of("paper-99-vote")?);
    Some(format!(
        "{}: evidence mode names {}; the published method {} at the 95th percentile, {} at the \
         99.5th, and {} when three of five steps must agree.",
        evidence.family,
        said(evidence),
        said(paper),
        said(strict),
        said(vote)
    ))
}
