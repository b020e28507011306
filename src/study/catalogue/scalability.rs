//! Table 3: what more clients cost, in bytes and time, and what they do to the server's loss.
//!
//! Up to sixteen clients every plant is drawn and every proprietary model trained, as in the paper.
//! Beyond that the plant of sixteen is taken many times: M clients are M/16 such plants, each seen
//! from another moment of the same run, with the same sixteen models. So their measurements differ
//! and their dynamics do not; φ_m and f_s are learned for every one of the M. Bytes are counted from
//! the messages that were made, not computed.

use serde_json::json;

use crate::study::frame::{Done, Job, Options, Study, StudyError};
use crate::study::published::TABLE_3;
use crate::study::report::{Axis, Cell, Chart, Drawing, Report, Row, Series, Spread, Table};
use crate::study::scale::{Scale, Size, grow};

/// Clients as in the paper.
const PRINTED: [usize; 4] = [2, 4, 8, 16];
/// Clients beyond the paper.
const BEYOND: [usize; 3] = [64, 256, 1024];

pub(crate) struct Scalability;

impl Study for Scalability {
    fn name(&self) -> &'static str {
        "scalability"
    }

    fn about(&self) -> &'static str {
        "server loss, bytes and time of a round from 2 to 1024 clients (Table 3)"
    }

    fn jobs(&self, options: &Options) -> Result<Vec<Job>, StudyError> {
        let (size, short) = sizes(options.quick);
        let mut jobs = Vec::new();
        for seed in options.seeds(3, 1) {
            for clients in PRINTED {
                let largest = clients == PRINTED[PRINTED.len() - 1];
                // The largest plants are all made of the first seed's plant of sixteen.
                let beyond: &[usize] = if largest && seed == 1 { &BEYOND } else { &[] };
                let inputs = json!({
                    "family": format!("A{clients}"), "clients": clients, "seed": seed,
                    "size": size, "short": short, "beyond": beyond,
                });
                let label = format!("A{clients} seed {seed}");
                let work = move || grow(clients, seed, size, short, beyond);
                jobs.push(
                    Job::new(label, inputs, work).costing((clients + beyond.len() * 20) as u32),
                );
            }
        }
        Ok(jobs)
    }

    fn report(&self, options: &Options, done: &[Done]) -> Result<Report, StudyError> {
        let all: Vec<Vec<Scale>> = done.iter().map(Done::read).collect::<Result<_, _>>()?;
        let lines = lines(all.into_iter().flatten().collect());
        Ok(Report {
            study: self.name().into(),
            title: self.about().into(),
            command: options.command(self.name()),
            tables: vec![table(&lines)],
            charts: charts(&lines),
            reading: reading(&lines),
            rows: lines.iter().map(Line::row).collect(),
        })
    }
}

fn sizes(quick: bool) -> (Size, Size) {
    if quick {
        let size = Size { epochs: 1, rows: 2000, passes: 4 };
        (size, Size { rows: 250, passes: 2, ..size })
    } else {
        let size = Size { epochs: 10, rows: 4000, passes: 8 };
        (size, Size { rows: 1000, ..size })
    }
}

/// All runs with the same number of clients and rounds.
struct Line {
    clients: usize,
    rounds: usize,
    copies: usize,
    runs: Vec<Scale>,
}

fn lines(runs: Vec<Scale>) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for run in runs {
        let same = |line: &&mut Line| (line.clients, line.rounds) == (run.clients, run.rounds);
        match lines.iter_mut().find(same) {
            Some(line) => line.runs.push(run),
            None => lines.push(Line {
                clients: run.clients,
                rounds: run.rounds,
                copies: run.copies,
                runs: vec![run],
            }),
        }
    }
    lines.sort_by_key(|line| (line.clients, std::cmp::Reverse(line.rounds)));
    lines
}

impl Line {
    fn spread(&self, of: impl Fn(&Scale) -> f64) -> Option<Spread> {
        Spread::of(self.runs.iter().map(|run| Some(of(run))))
    }

    fn mean(&self, of: impl Fn(&Scale) -> f64) -> f64 {
        self.spread(of).map_or(f64::NAN, |spread| spread.mean)
    }

    fn paper(&self) -> Option<(u64, f64)> {
        let found = TABLE_3.iter().find(|line| line.clients == self.clients);
        // The short run of sixteen is there for what follows it, not for the paper.
        found.filter(|_| !self.is_short()).map(|line| (line.bytes, line.server_loss))
    }

    fn is_short(&self) -> bool {
        self.runs.iter().any(|run| run.short)
    }

    fn row(&self) -> Row {
        let row = Row::new(&format!("A{}", self.clients), "federated", self.runs.len())
            .with("clients", self.clients)
            .with("rounds", self.rounds)
            .with("copies", self.copies)
            .spread("server_loss", self.spread(|run| run.server_loss))
            .spread(
                "server_loss_per_client",
                self.spread(|run| run.server_loss / run.clients as f64),
            )
            .spread("server_loss_held_out", self.spread(|run| run.held_out))
            .spread("unexplained", self.spread(|run| run.unexplained))
            .with("bytes_up", self.mean(|run| run.bytes_up))
            .with("bytes_down", self.mean(|run| run.bytes_down))
            .spread("round_us", self.spread(|run| run.round_us));
        match self.paper() {
            Some((bytes, loss)) => row.with("paper_bytes", bytes).with("paper_server_loss", loss),
            None => row,
        }
    }
}

fn table(lines: &[Line]) -> Table {
    let columns = [
        "clients",
        "seeds",
        "rounds",
        "L_s",
        "paper",
        "per client",
        "L_s, new rows",
        "of variance",
        "bytes up",
        "paper",
        "bytes down",
        "round µs",
    ];
    let mut table = Table::new("Scalability (Table 3)", 1, &columns);
    for line in lines {
        let paper = line.paper();
        table.line(vec![
            Cell::count(line.clients),
            Cell::count(line.runs.len()),
            Cell::count(line.rounds),
            Cell::spread(line.spread(|run| run.server_loss), 4),
            Cell::number(paper.map(|(_, loss)| loss), 4),
            Cell::spread(line.spread(|run| run.server_loss / run.clients as f64), 4),
            Cell::spread(line.spread(|run| run.held_out), 4),
            Cell::spread(line.spread(|run| run.unexplained), 4),
            Cell::number(Some(line.mean(|run| run.bytes_up)), 0),
            Cell::number(paper.map(|(bytes, _)| bytes as f64), 0),
            Cell::number(Some(line.mean(|run| run.bytes_down)), 0),
            Cell::number(Some(line.mean(|run| run.round_us)), 1),
        ]);
    }
    table.note(
        "L_s: mean of the last eighth of training; on new rows: with weights that no longer change, \
         on rows nothing was fitted to; of variance: the latter as a share of the variance of x_a",
    );
    table.note("bytes: payload of all messages of a round, counted as they are made");
    table.note(
        "round: best stretch on this machine while the study ran; it is the one column that no seed \
         repeats",
    );
    if let Some(line) = lines.iter().find(|line| line.copies > 1) {
        table.note(format!(
            "from {} clients on: so many plants of {} clients as it takes, each at another moment of \
             one run, with shared proprietary models, one seed, fewer rounds; the second line of {} \
             clients has as few rounds, to compare with",
            line.clients,
            line.clients / line.copies,
            line.clients / line.copies,
        ));
    }
    table
}

fn charts(lines: &[Line]) -> Vec<Chart> {
    let of = |value: &dyn Fn(&Line) -> f64, short: bool| {
        let chosen = lines.iter().filter(|line| line.is_short() == short);
        chosen.map(|line| (line.clients as f64, value(line))).collect::<Vec<_>>()
    };
    let paper = TABLE_3.map(|line| (line.clients as f64, line.server_loss / line.clients as f64));
    let loss = |line: &Line| line.mean(|run| run.server_loss / run.clients as f64);
    let time = |line: &Line| line.mean(|run| run.round_us);
    let series = |name: &str, points| Series { name: name.into(), points };
    vec![
        Chart {
            name: "server-loss".into(),
            title: "server loss per client".into(),
            drawing: Drawing::Lines {
                x: Axis::logarithmic("clients"),
                y: Axis::logarithmic("L_s / M"),
                series: vec![
                    series("here", of(&loss, false)),
                    series("here, fewer rounds", of(&loss, true)),
                    series("paper", paper.to_vec()),
                ],
            },
        },
        Chart {
            name: "round-time".into(),
            title: "time of a round".into(),
            drawing: Drawing::Lines {
                x: Axis::logarithmic("clients"),
                y: Axis::logarithmic("µs"),
                series: vec![
                    series("here", of(&time, false)),
                    series("here, fewer rounds", of(&time, true)),
                ],
            },
        },
    ]
}

fn reading(lines: &[Line]) -> Vec<String> {
    let mut said = Vec::new();
    let formula = |line: &Line| 16.0 * line.clients as f64;
    let exact = |line: &Line| {
        line.runs.iter().all(|run| {
            (run.bytes_up - formula(line)).abs() < 1e-9
                && (run.bytes_down - formula(line) / 2.0).abs() < 1e-9
        })
    };
    let right = lines.iter().filter(|line| exact(line)).count();
    if !lines.is_empty() {
        said.push(format!(
            "Messages weigh the 2·P·4·M bytes a round of the paper's column in {right} of {} lines, \
             but that is the way up only: the gradients back add half as much again.",
            lines.len()
        ));
    }
    let whole: Vec<&Line> = lines.iter().filter(|line| !line.is_short()).collect();
    if let [first, .., last] = whole.as_slice() {
        let each = |line: &Line| line.mean(|run| run.server_loss / run.clients as f64);
        let compared: Vec<&&Line> = whole.iter().filter(|line| line.paper().is_some()).collect();
        let below = compared
            .iter()
            .filter(|line| {
                line.paper().is_some_and(|(_, paper)| line.mean(|run| run.server_loss) < paper)
            })
            .count();
        said.push(format!(
            "From {} to {} clients the server loss per client goes from {:.4} to {:.4}, so L_s grows \
             {} the number of clients; it is below the paper's in {below} of {} lines, whose own L_s \
             neither rises nor falls steadily.",
            first.clients,
            last.clients,
            each(first),
            each(last),
            if each(last) > 1.1 * each(first) { "faster than" } else { "no faster than" },
            compared.len(),
        ));
    }
    let short: Vec<&Line> = lines.iter().filter(|line| line.is_short()).collect();
    if let [first, .., last] = short.as_slice() {
        let (few, many) = (first.mean(|run| run.unexplained), last.mean(|run| run.unexplained));
        let times = last.mean(|run| run.round_us) / first.mean(|run| run.round_us);
        said.push(format!(
            "With {} clients a server network of the paper's width leaves {:.0} % of the variance of \
             x_a unexplained on new rows, against {:.0} % with {} clients and as few rounds; a round \
             takes {times:.0} times as long for {} times the clients.",
            last.clients,
            100.0 * many,
            100.0 * few,
            first.clients,
            last.clients / first.clients,
        ));
    }
    said
}
