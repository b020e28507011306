//! Table 3: what more clients cost, in bytes and time, and what they do to the server's loss.
//!
//! Up to sixteen clients every plant is drawn and every proprietary model trained, as in the paper.
//! Beyond that the plant of sixteen is taken many times: M clients are M/16 such plants, each seen
//! from another moment of the same run, with the same sixteen models. So their measurements differ
//! and their dynamics do not; φ_m and f_s are learned for every one of the M. Bytes are counted from
//! the messages that were made, not computed.

use serde_json::json;

use crate::engine::experiment::scalability::{Scale, Size, grow};
use crate::study::frame::{Done, Job, Study, StudyError, StudyOptions};
use crate::study::published::TABLE_3;
use crate::study::report::columns::{self, all, mean, seeds, shown};
use crate::study::report::{Axis, Chart, Columns, Figure, Report, Series, Table};

pub(super) const STUDY: Study = Study {
    name: "scalability",
    about: "server loss, bytes and time of a round from 2 to 1024 clients (Table 3)",
    needs_data: false,
    first: None,
    jobs: |options| Ok(jobs(options)),
    report,
};

/// Clients as in the paper.
const PRINTED: [usize; 4] = [2, 4, 8, 16];
/// Clients beyond the paper.
const BEYOND: [usize; 3] = [64, 256, 1024];

fn jobs(options: &StudyOptions) -> Vec<Job> {
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
            jobs.push(Job::new(label, inputs, work).costing((clients + beyond.len() * 20) as u32));
        }
    }
    jobs
}

fn sizes(quick: bool) -> (Size, Size) {
    if quick {
        let size = Size { epochs: 1, rows: 2000, passes: 4, as_published: false };
        (size, Size { rows: 250, passes: 2, ..size })
    } else {
        let size = Size { epochs: 10, rows: 4000, passes: 8, as_published: false };
        (size, Size { rows: 1000, ..size })
    }
}

/// All runs with the same number of clients and rounds.
type Line<'a> = columns::Line<'a, Scale>;

fn first(line: &Line, of: fn(&Scale) -> usize) -> usize {
    line.runs.first().map_or(0, |run| of(run))
}

fn clients(line: &Line) -> usize {
    first(line, |run| run.clients)
}

fn is_short(line: &Line) -> bool {
    line.runs.iter().any(|run| run.short)
}

fn is_published(line: &Line) -> bool {
    line.runs.iter().any(|run| run.as_published)
}

/// Lines of our own settings and full length.
fn is_whole(line: &Line) -> bool {
    !is_short(line) && !is_published(line)
}

/// Bytes and server loss of Table 3. The short run of sixteen is there for the larger plants, not for
/// the paper.
fn paper(line: &Line) -> Option<(usize, f64)> {
    let found = TABLE_3.iter().find(|printed| printed.clients == clients(line));
    found.filter(|_| !is_short(line)).map(|line| (line.bytes, line.server_loss))
}

#[expect(clippy::unnecessary_wraps, reason = "a column may have no figure; this one always has")]
fn loss_per_client(run: &Scale) -> Option<f64> {
    Some(run.server_loss / run.clients as f64)
}

const COLUMNS: Columns<Scale> = Columns(&[
    all("clients", "clients", 0, |line| Figure::Count(clients(line))),
    all("settings", "settings", 0, |line| {
        Figure::Text(if is_published(line) { "paper's" } else { "ours" }.into())
    }),
    seeds("seeds"),
    all("rounds", "rounds", 0, |line| Figure::Count(first(line, |run| run.rounds))),
    all("copies", "", 0, |line| Figure::Count(first(line, |run| run.copies))),
    mean("server_loss", "L_s", 4, |run| Some(run.server_loss)),
    all("paper_server_loss", "paper", 4, |line| {
        paper(line).map_or(Figure::Absent, |(_, loss)| Figure::Number(Some(loss)))
    }),
    mean("server_loss_per_client", "per client", 4, loss_per_client),
    mean("server_loss_held_out", "L_s, new rows", 4, |run| Some(run.held_out)),
    mean("unexplained", "of variance", 4, |run| Some(run.unexplained)),
    all("bytes_up", "bytes up", 0, |line| Figure::Number(line.mean(|run| Some(run.bytes_up)))),
    all("paper_bytes", "paper", 0, |line| {
        paper(line).map_or(Figure::Absent, |(bytes, _)| Figure::Count(bytes))
    }),
    all("bytes_down", "bytes down", 0, |line| {
        Figure::Number(line.mean(|run| Some(run.bytes_down)))
    }),
    mean("round_us", "", 0, |run| Some(run.round_us)),
    shown("round µs", 1, |line| Figure::Number(line.mean(|run| Some(run.round_us)))),
]);

fn report(_: &StudyOptions, done: &[Done]) -> Result<Report, StudyError> {
    let runs: Vec<Vec<Scale>> = done.iter().map(Done::read).collect::<Result<_, _>>()?;
    let runs: Vec<Scale> = runs.into_iter().flatten().collect();
    let lines = lines(&runs);
    Ok(Report {
        tables: vec![table(&lines)],
        charts: charts(&lines),
        reading: reading(&lines),
        rows: COLUMNS.rows(&lines),
        ..Report::default()
    })
}

fn lines(runs: &[Scale]) -> Vec<Line<'_>> {
    // Runs of different length are different lines, though their method is the same.
    let key = |run: &Scale| (run.clients, run.short, run.as_published);
    let mut keys: Vec<_> = runs.iter().map(key).collect();
    keys.sort_unstable();
    keys.dedup();
    let of = |wanted| {
        let same = runs.iter().filter(move |run| key(run) == wanted);
        let method = |run: &Scale| {
            if run.as_published { "federated, the paper's settings" } else { "federated" }
        };
        Line::group(same.map(|run| (format!("A{}", run.clients), method(run), run)))
    };
    keys.into_iter().flat_map(of).collect()
}

fn table(lines: &[Line]) -> Table {
    let mut table = COLUMNS
        .table("Scalability (Table 3)", 2, lines)
        .note(
            "L_s: mean of the last eighth of training; on new rows: with weights that no longer \
             change, on rows nothing was fitted to; of variance: the latter as a share of the \
             variance of x_a",
        )
        .note("the paper's settings: φ of width 1, one pass with a constant step size")
        .note("bytes: payload of all messages of a round, counted as they are made")
        .note(
            "round: best stretch on this machine while the study ran; it is the one column that no \
             seed repeats",
        );
    if let Some(line) = lines.iter().find(|line| first(line, |run| run.copies) > 1) {
        let plant = clients(line) / first(line, |run| run.copies);
        table.notes.push(format!(
            "from {} clients on: plants of {plant} clients, each at another moment of one run, with \
             shared proprietary models, one seed, fewer rounds; the last line of {plant} clients \
             has as few rounds, to compare with",
            clients(line),
        ));
    }
    table
}

fn charts(lines: &[Line]) -> Vec<Chart> {
    let of = |name: &str, y: &str, is_wanted: fn(&Line) -> bool| {
        COLUMNS.series(name, ("clients", y), lines.iter().filter(|line| is_wanted(line)))
    };
    let paper = TABLE_3.map(|line| (line.clients as f64, line.server_loss / line.clients as f64));
    let axes = |y: &str| (Axis::logarithmic("clients"), Axis::logarithmic(y));
    let both = |y: &str| vec![of("here", y, is_whole), of("here, fewer rounds", y, is_short)];
    let mut losses = both("server_loss_per_client");
    losses.push(of("here, the paper's settings", "server_loss_per_client", is_published));
    losses.push(Series::new("paper", paper));
    vec![
        Chart::lines("server-loss", "server loss per client", axes("L_s / M"), losses),
        Chart::lines("round-time", "time of a round", axes("µs"), both("round_us")),
    ]
}

/// In how many lines L_s is below the paper's, of those that the paper has.
fn below_paper(lines: &[&Line]) -> (usize, usize) {
    let own = |line: &Line| line.mean(|run| Some(run.server_loss));
    let compared = lines.iter().filter_map(|line| Some((own(line)?, paper(line)?.1)));
    compared.fold((0, 0), |(below, n), (own, paper)| (below + usize::from(own < paper), n + 1))
}

fn reading(lines: &[Line]) -> Vec<String> {
    let mut sentences = Vec::new();
    let formula = |line: &Line| 16.0 * clients(line) as f64;
    let exact = |line: &Line| {
        line.runs.iter().all(|run| {
            (run.bytes_up - formula(line)).abs() < 1e-9
                && (run.bytes_down - formula(line) / 2.0).abs() < 1e-9
        })
    };
    let right = lines.iter().filter(|line| exact(line)).count();
    if !lines.is_empty() {
        sentences.push(format!(
            "Messages weigh the 2·P·4·M bytes a round of the paper's column in {right} of {} lines, \
             but that is the way up only: the gradients back add half as much again.",
            lines.len()
        ));
    }
    let whole: Vec<&Line> = lines.iter().filter(|line| is_whole(line)).collect();
    if let [first, .., last] = whole.as_slice() {
        let each = |line: &Line| line.mean(loss_per_client).unwrap_or(f64::NAN);
        let (below, compared) = below_paper(&whole);
        sentences.push(format!(
            "From {} to {} clients the server loss per client goes from {:.4} to {:.4}, so L_s grows \
             {} the number of clients; it is below the paper's in {below} of {} lines, whose own L_s \
             neither rises nor falls steadily.",
            clients(first),
            clients(last),
            each(first),
            each(last),
            if each(last) > 1.1 * each(first) { "faster than" } else { "no faster than" },
            compared,
        ));
    }
    let published: Vec<&Line> = lines.iter().filter(|line| is_published(line)).collect();
    if !published.is_empty() {
        let losses: Vec<String> = (published.iter())
            .map(|line| {
                format!("{:.4}", line.mean(|run| Some(run.server_loss)).unwrap_or(f64::NAN))
            })
            .collect();
        let (below, compared) = below_paper(&published);
        sentences.push(format!(
            "At the paper's settings L_s is {}, below the paper's in {below} of {compared} lines.",
            losses.join(", ")
        ));
    }
    let short: Vec<&Line> = lines.iter().filter(|line| is_short(line)).collect();
    if let [first, .., last] = short.as_slice() {
        let mean =
            |line: &Line, of: fn(&Scale) -> f64| line.mean(|run| Some(of(run))).unwrap_or(f64::NAN);
        let unexplained = |line: &Line| 100.0 * mean(line, |run| run.unexplained);
        let times = mean(last, |run| run.round_us) / mean(first, |run| run.round_us);
        sentences.push(format!(
            "With {} clients a server network of the paper's width leaves {:.0} % of the variance of \
             x_a unexplained on new rows, against {:.0} % with {} clients and as few rounds; a round \
             takes {times:.0} times as long for {} times the clients.",
            clients(last),
            unexplained(last),
            unexplained(first),
            clients(first),
            clients(last) / clients(first),
        ));
    }
    sentences
}
