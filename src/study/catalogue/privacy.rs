//! What privacy costs: noise in training, randomised flags, and what a day of symbols spends.

use serde_json::{Map, Value, json};

use crate::study::frame::{Done, Job, Options, Study, StudyError};
use crate::study::privacy::{FAMILIES, PERMANENT, WATCH, WINDOW, flips, losses, spending};
use crate::study::report::{Axis, Cell, Chart, Drawing, Report, Row, Series, Spread, Table};

pub(crate) struct Privacy;

/// Its figures, in the order in which they are shown.
const PARTS: [&str; 3] = ["noise in training", "randomised flags", "spending of a day"];

impl Study for Privacy {
    fn name(&self) -> &'static str {
        "privacy"
    }

    fn about(&self) -> &'static str {
        "what privacy costs in losses, run lengths and root causes (figures of the privacy analysis)"
    }

    fn jobs(&self, options: &Options) -> Result<Vec<Job>, StudyError> {
        let quick = options.quick;
        let seeds = options.seeds(3, 1);
        let job = |part: &'static str, seed: u64| {
            let inputs = json!({ "part": part, "seed": seed, "quick": quick });
            Job::new(format!("{part}, seed {seed}"), inputs, move || rows(part, seed, quick))
        };
        Ok(PARTS
            .into_iter()
            .flat_map(|part| seeds.iter().map(move |seed| job(part, *seed)))
            .collect())
    }

    fn report(&self, options: &Options, done: &[Done]) -> Result<Report, StudyError> {
        let [noise, flags, spent] = PARTS.map(|part| found(part, done));
        let (noise, flags, spent) = (Lines::of(&noise?), Lines::of(&flags?), Lines::of(&spent?));
        let rows = noise.rows("σ").chain(flags.rows("truth")).chain(spent.rows("method")).collect();
        Ok(Report {
            study: self.name().into(),
            title: self.about().into(),
            command: options.command(self.name()),
            tables: vec![noise_table(&noise), flag_table(&flags), spending_table(&spent)],
            charts: [noise_chart(&noise), flag_chart(&flags), run_length_chart(&flags)]
                .into_iter()
                .chain(FAMILIES.into_iter().flat_map(|family| spending_charts(&spent, family)))
                .collect(),
            reading: [noise_reading(&noise), flag_reading(&flags)]
                .into_iter()
                .chain(FAMILIES.map(|family| spending_reading(&spent, family)))
                .flatten()
                .collect(),
            rows,
        })
    }
}

/// One part on one seed.
fn rows(part: &str, seed: u64, quick: bool) -> Result<Value, StudyError> {
    Ok(match part {
        "noise in training" => serde_json::to_value(losses(&[seed], quick)?)?,
        "randomised flags" => serde_json::to_value(flips(&[seed], quick)?)?,
        _ => serde_json::to_value(spending(&[seed], quick)?)?,
    })
}

/// The rows of all seeds of a part, seed by seed.
fn found(part: &str, done: &[Done]) -> Result<Vec<Vec<Map<String, Value>>>, StudyError> {
    let mut found = Vec::new();
    for done in done {
        if done.input::<String>("part")? == part {
            found.push(done.read()?);
        }
    }
    Ok(found)
}

/// Rows that stand for the same setting, one of every seed; seeds give the same settings in the
/// same order.
struct Lines(Vec<Vec<Map<String, Value>>>);

#[derive(Clone, Copy)]
struct Line<'a>(&'a [Map<String, Value>]);

impl Lines {
    fn of(seeds: &[Vec<Map<String, Value>>]) -> Self {
        let settings = seeds.first().map_or(0, Vec::len);
        let line = |i: usize| seeds.iter().filter_map(|seed| seed.get(i).cloned()).collect();
        Self((0..settings).map(line).collect())
    }

    fn iter(&self) -> impl Iterator<Item = Line<'_>> {
        self.0.iter().map(|line| Line(line))
    }

    fn rows(&self, setting: &'static str) -> impl Iterator<Item = Row> {
        self.iter().map(move |line| line.row(setting)).collect::<Vec<_>>().into_iter()
    }
}

/// What names a setting rather than measuring it.
const SETTINGS: [&str; 9] = [
    "family",
    "method",
    "direction",
    "sigma",
    "p_c",
    "p_a",
    "epsilon_flag",
    "epsilon_c",
    "epsilon_a",
];

impl Line<'_> {
    fn word(&self, name: &str) -> &str {
        self.0[0].get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// A figure that is the same for every seed.
    fn setting(&self, name: &str) -> Option<f64> {
        self.0[0].get(name).and_then(Value::as_f64)
    }

    fn spread(&self, name: &str) -> Option<Spread> {
        Spread::of(self.0.iter().map(|row| row.get(name).and_then(Value::as_f64)))
    }

    fn mean(&self, name: &str) -> Option<f64> {
        self.spread(name).map(|s| s.mean)
    }

    fn row(&self, setting: &str) -> Row {
        let method = match setting {
            "σ" => {
                format!("{}, σ {}", self.word("direction"), self.setting("sigma").unwrap_or(0.0))
            }
            "truth" => {
                let p = |name| self.setting(name).unwrap_or(1.0);
                format!("paper, p_c {}, p_a {}", p("p_c"), p("p_a"))
            }
            _ => self.word("method").to_owned(),
        };
        let mut row = Row::new(self.word("family"), &method, self.0.len());
        for (name, value) in &self.0[0] {
            row = match name.as_str() {
                "family" | "method" | "seeds" => row,
                "delay_s" => row.spread("delay", self.spread(name)),
                name if SETTINGS.contains(&name) || !(value.is_number() || value.is_null()) => {
                    row.with(name, value.clone())
                }
                name => row.spread(name, self.spread(name)),
            };
        }
        row
    }
}

fn noise_table(lines: &Lines) -> Table {
    let columns = ["direction", "σ", "L_s", "L_s seen", "L_a", "diverged", "seeds"];
    let mut table =
        Table::new("Losses of trained models on A2 against noise in training", 2, &columns);
    for line in lines.iter() {
        table.line(vec![
            Cell::text(line.word("direction")),
            Cell::text(format!("{}", line.setting("sigma").unwrap_or(0.0))),
            Cell::spread(line.spread("server_loss"), 4),
            Cell::spread(line.spread("server_loss_seen"), 4),
            Cell::spread(line.spread("client_loss"), 4),
            Cell::number(line.0.iter().map(|row| row.get("diverged")?.as_f64()).sum(), 0),
            Cell::count(line.0.len()),
        ]);
    }
    table.note(
        "σ of states in nominal deviations after a cut at five of them, of gradients after a cut to \
         norm 1. Losses without noise on rows that nothing was fitted to; seen: by the server while \
         it learned.",
    );
    table
}

fn flag_table(lines: &Lines) -> Table {
    let columns = ["lies", "p_c", "p_a", "ARL0", "ARL1", "precision", "recall", "F1", "seeds"];
    let mut table =
        Table::new("Paper mode on A2 with flags that are true with p_c and p_a", 3, &columns);
    let half = lines.0.len() / 2;
    for (at, line) in lines.iter().enumerate() {
        table.line(vec![
            Cell::text(if at < half { "on Z_c" } else { "on Z_a" }),
            Cell::number(line.setting("p_c"), 2),
            Cell::number(line.setting("p_a"), 2),
            Cell::spread(line.spread("arl0"), 1),
            Cell::spread(line.spread("arl1"), 2),
            Cell::spread(line.spread("precision"), 2),
            Cell::spread(line.spread("recall"), 2),
            Cell::spread(line.spread("f1"), 2),
            Cell::count(line.0.len()),
        ]);
    }
    table.note(
        "Run lengths in steps, of Z_a. Root causes by the look-up of the pair (Z_c, Z_a), against the \
         true origin of every event.",
    );
    table
}

fn spending_table(lines: &Lines) -> Table {
    let columns = [
        "family",
        "method",
        "ε",
        "ε a day",
        "plain sum",
        "releases",
        "F1",
        "recall",
        "delay s",
        "false/day",
    ];
    let title = "Root causes against what a day really spends";
    let mut table = Table::new(title, 3, &columns);
    for line in lines.iter() {
        let epsilon = line.setting("epsilon_flag");
        table.line(vec![
            Cell::text(line.word("family")),
            Cell::text(line.word("method")),
            Cell::text(epsilon.map_or_else(|| "none".into(), |e| format!("{e}"))),
            Cell::number(line.mean("epsilon_day"), 0),
            Cell::number(line.mean("basic_day"), 0),
            Cell::number(line.mean("releases_day"), 0),
            Cell::spread(line.spread("f1"), 2),
            Cell::number(line.mean("recall"), 2),
            Cell::number(line.mean("delay_s"), 1),
            Cell::spread(line.spread("false_alarms_per_day"), 1),
        ]);
    }
    let (watch, burst) = WATCH;
    table.note(format!(
        "ε of a flag or symbol, and of all releases that the client which spent most makes in a day, \
         composed at δ = 1e-5, with their plain sum beside it; a filter's memory is left out. A symbol \
         of every step; the strongest of {WINDOW}, so a {WINDOW}th of the releases; while raised: ε \
         {watch} for every arming of the watch and {burst} symbols after every alarm; kept answers: \
         priced like every step, but a level that never changes tells ε {PERMANENT} at most, however \
         often. Means of {} seeds.",
        lines.0.first().map_or(0, Vec::len)
    ));
    table.note(
        "F1 asks whether an incident overlaps its event and names its origin; an alarm is false when it \
         is raised after its event is over, even where the name is right: short events told slowly \
         have both.",
    );
    table
}

fn noise_chart(lines: &Lines) -> Chart {
    let series = |name: &str, direction: &str, figure: &str| Series {
        name: name.into(),
        points: lines
            .iter()
            .filter(|line| line.word("direction") == direction)
            .filter_map(|line| Some((line.setting("sigma")?, line.mean(figure)?)))
            .collect(),
    };
    Chart {
        name: "noise".into(),
        title: "Losses against noise in training".into(),
        drawing: Drawing::Lines {
            x: Axis::logarithmic("σ"),
            y: Axis::logarithmic("loss"),
            series: vec![
                series("L_s, states noised", "states up", "server_loss"),
                series("L_a, states noised", "states up", "client_loss"),
                series("L_s, gradients noised", "gradients down", "server_loss"),
                series("L_a, gradients noised", "gradients down", "client_loss"),
            ],
        },
    }
}

fn flag_chart(lines: &Lines) -> Chart {
    let series = |name: &str, varied: &'static str, fixed: &'static str| Series {
        name: name.into(),
        points: varying(lines, varied, fixed)
            .filter_map(|line| Some((line.setting(varied)?, line.mean("f1")?)))
            .collect(),
    };
    Chart {
        name: "flags".into(),
        title: "F1 of the look-up against the truth of its flags".into(),
        drawing: Drawing::Lines {
            x: Axis::linear("probability that a flag is true"),
            y: Axis::linear("F1"),
            series: vec![series("p_c varies", "p_c", "p_a"), series("p_a varies", "p_a", "p_c")],
        },
    }
}

fn run_length_chart(lines: &Lines) -> Chart {
    let series = |name: &str, varied: &'static str, fixed: &'static str, figure: &str| Series {
        name: name.into(),
        points: varying(lines, varied, fixed)
            .filter_map(|line| Some((line.setting(varied)?, line.mean(figure)?)))
            .collect(),
    };
    Chart {
        name: "run-lengths".into(),
        title: "Run lengths of Z_a against the truth of flags".into(),
        drawing: Drawing::Lines {
            x: Axis::linear("probability that a flag is true"),
            y: Axis::linear("steps"),
            series: vec![
                series("ARL0, p_c varies", "p_c", "p_a", "arl0"),
                series("ARL0, p_a varies", "p_a", "p_c", "arl0"),
                series("ARL1, p_c varies", "p_c", "p_a", "arl1"),
                series("ARL1, p_a varies", "p_a", "p_c", "arl1"),
            ],
        },
    }
}

/// F1 and delay of every method against ε composed over a day.
fn spending_charts(lines: &Lines, family: &str) -> [Chart; 2] {
    let mut methods: Vec<&str> = Vec::new();
    for line in lines.0.iter().map(|line| Line(line)).filter(|line| line.word("family") == family) {
        let method = line.0[0].get("method").and_then(Value::as_str).unwrap_or_default();
        if !methods.contains(&method) {
            methods.push(method);
        }
    }
    [("f1", "F1"), ("delay_s", "delay, s")].map(|(figure, axis)| {
        let series = |method: &str| Series {
            name: method.into(),
            points: lines
                .iter()
                .filter(|line| line.word("family") == family && line.word("method") == method)
                .filter_map(|line| Some((line.mean("epsilon_day")?, line.mean(figure)?)))
                .collect(),
        };
        Chart {
            name: format!("spending-{figure}-{}", family.to_lowercase()),
            title: format!("{axis} on {family} against ε composed over a day"),
            drawing: Drawing::Lines {
                x: Axis::logarithmic("ε of a day"),
                y: Axis::linear(axis),
                series: methods.iter().map(|method| series(method)).collect(),
            },
        }
    })
}

fn varying<'a>(
    lines: &'a Lines,
    varied: &'static str,
    fixed: &'static str,
) -> impl Iterator<Item = Line<'a>> {
    let is_one = |line: &Line, name| line.setting(name).is_some_and(|p| (p - 1.0).abs() < 1e-9);
    lines.iter().filter(move |line| is_one(line, fixed) && line.setting(varied).is_some())
}

/// Up to which noise a loss stays within twice what it is without any.
fn noise_reading(lines: &Lines) -> Option<String> {
    let stable = |direction: &str, figure: &str| {
        let of_direction: Vec<(f64, f64)> = lines
            .iter()
            .filter(|line| line.word("direction") == direction)
            .filter_map(|line| Some((line.setting("sigma")?, line.mean(figure)?)))
            .collect();
        let clean = of_direction.iter().find(|(sigma, _)| *sigma == 0.0)?.1;
        let kept = of_direction.iter().take_while(|(_, loss)| *loss <= 2.0 * clean).last()?;
        Some(kept.0)
    };
    Some(format!(
        "With noise on states the server's loss stays within twice its clean value up to σ = {} and \
         the clients' up to σ = {}; with noise on gradients the server's up to {} and the clients' up \
         to {}. The paper reads its own figure as the server's losses stable up to 10 and the clients' \
         up to 100000.",
        stable("states up", "server_loss")?,
        stable("states up", "client_loss")?,
        stable("gradients down", "server_loss")?,
        stable("gradients down", "client_loss")?
    ))
}

/// What the most lies do to root causes and to run lengths, each way.
fn flag_reading(lines: &Lines) -> Option<String> {
    let change = |varied, fixed, figure: &str| -> Option<(f64, f64)> {
        let by_truth: Vec<(f64, f64)> = varying(lines, varied, fixed)
            .filter_map(|line| Some((line.setting(varied)?, line.mean(figure)?)))
            .collect();
        let least = by_truth.iter().min_by(|a, b| a.0.total_cmp(&b.0))?.1;
        let most = by_truth.iter().max_by(|a, b| a.0.total_cmp(&b.0))?.1;
        Some((most, least))
    };
    let words = |varied, fixed| {
        let (f1, arl0) = (change(varied, fixed, "f1")?, change(varied, fixed, "arl0")?);
        Some(format!(
            "F1 {} and ARL0 {}",
            moved(f1.0, f1.1, 2, 0.02),
            moved(arl0.0, arl0.1, 1, 0.05 * arl0.0)
        ))
    };
    let lost = |varied, fixed| change(varied, fixed, "f1").map(|(clean, noised)| clean - noised);
    let (c, a) = (lost("p_c", "p_a")?, lost("p_a", "p_c")?);
    let verdict = if a > 0.02 && a > 2.0 * c.max(0.0) {
        "that root causes suffer from noise on Z_a and hardly from noise on Z_c holds here"
    } else if a <= 0.02 && c <= 0.02 {
        "root causes suffer from neither here, though the paper's suffer from noise on Z_a"
    } else {
        "that root causes suffer from noise on Z_a and hardly from noise on Z_c does not hold here"
    };
    Some(format!(
        "From no lies to the most: on Z_c, {}; on Z_a, {}: {verdict}.",
        words("p_c", "p_a")?,
        words("p_a", "p_c")?
    ))
}

/// "falls from 0.64 to 0.41", or "stays at 0.64".
fn moved(from: f64, to: f64, digits: usize, least: f64) -> String {
    if (to - from).abs() <= least {
        return format!("stays at {from:.digits$}");
    }
    let verb = if to < from { "falls" } else { "rises" };
    format!("{verb} from {from:.digits$} to {to:.digits$}")
}

/// The most F1 that is given away for a cheaper day, and the most false alarms that are added.
const F1_LESS: f64 = 0.05;
const FALSE_MORE: f64 = 24.0;

/// ε of a day from which on nothing worth the name is hidden: odds of 22 000 to 1.
const HARDLY: f64 = 10.0;

/// The cheapest day that is as good as an unprotected one, beside every step and the paper's best.
fn spending_reading(lines: &Lines, family: &str) -> Option<String> {
    let every = "evidence, every step";
    let of_family = || lines.iter().filter(|line| line.word("family") == family);
    let priced = |line: &Line<'_>| line.setting("epsilon_flag").is_some();
    let clear = of_family().find(|line| line.word("method") == every && !priced(line))?;
    let (f1, false_alarms) = (clear.mean("f1")?, clear.mean("false_alarms_per_day")?);
    let as_good = |line: &Line<'_>| {
        line.mean("f1").is_some_and(|found| found >= f1 - F1_LESS)
            && line.mean("false_alarms_per_day").is_some_and(|n| n <= false_alarms + FALSE_MORE)
    };
    let cheapest = |wanted: &dyn Fn(&Line<'_>) -> bool| {
        of_family()
            .filter(|line| priced(line) && as_good(line) && wanted(line))
            .filter_map(|line| Some((line.mean("epsilon_day")?, line)))
            .min_by(|a, b| a.0.total_cmp(&b.0))
    };
    let paper = of_family()
        .filter(|line| line.word("method").starts_with("paper") && priced(line))
        .filter_map(|line| Some((line.mean("f1")?, line.mean("epsilon_day")?)))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    let target = format!(
        "On {family}, F1 within {F1_LESS} of the {f1:.2} without protection and at most one false alarm \
         more an hour"
    );
    let found = match cheapest(&|_| true) {
        None => format!("{target} is reached at no ε that was tried"),
        Some((day, line)) => {
            let plain = match cheapest(&|line| line.word("method") == every) {
                Some((plain, _)) if plain > day => {
                    format!(", {:.1} times less than a symbol of every step", plain / day)
                }
                _ => String::new(),
            };
            let hides = if day > HARDLY {
                "a symbol is protected, a day of them is not"
            } else {
                "a day of them is protected too"
            };
            format!(
                "{target} cost ε = {day:.0} a day at least ({}, ε = {} each){plain}: {hides}",
                line.word("method"),
                line.setting("epsilon_flag")?
            )
        }
    };
    Some(format!(
        "{found}. Paper mode's best protected F1 there is {:.2}, at ε = {:.0} a day.",
        paper.0, paper.1
    ))
}
