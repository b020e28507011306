//! Figure 7: norms of residuals of the proprietary and augmented models and of the oracle, and how
//! often they stand in the order the paper needs for its look-up table.

use crate::study::frame::{Done, Job, Options, Study, StudyError};
use crate::study::lesson::{self, Condition, Findings, Norms, Trace};
use crate::study::report::{Axis, Cell, Chart, Drawing, Report, Row, Series, Spread, Table};

pub(crate) struct Residuals;

/// More than half of all steps: what the paper calls "most time instants".
const MOST: f64 = 0.5;

impl Study for Residuals {
    fn name(&self) -> &'static str {
        "residuals"
    }

    fn about(&self) -> &'static str {
        "norms of residuals of all models and their order (Fig. 7)"
    }

    fn jobs(&self, options: &Options) -> Result<Vec<Job>, StudyError> {
        Ok(lesson::jobs(options))
    }

    fn report(&self, options: &Options, done: &[Done]) -> Result<Report, StudyError> {
        let families = lesson::by_family(done)?;
        let lines: Vec<Line> = families.iter().flat_map(lines).collect();
        let mut table = table(&lines);
        table.note(lesson::oracle_note(options));
        Ok(Report {
            study: self.name().into(),
            title: self.about().into(),
            command: options.command(self.name()),
            tables: vec![table],
            charts: families.iter().flat_map(charts).collect(),
            reading: reading(&families),
            rows: lines.iter().map(Line::row).collect(),
        })
    }
}

type Family = (String, Vec<Findings>);

/// A client under a condition, all seeds.
struct Line<'a> {
    family: &'a str,
    client: &'a str,
    condition: Condition,
    norms: Vec<&'a Norms>,
}

fn lines((family, seeds): &Family) -> Vec<Line<'_>> {
    let clients = seeds.first().map(|found| found.clients.as_slice()).unwrap_or_default();
    let mut lines = Vec::new();
    for condition in Condition::ALL {
        for client in clients {
            let norms = seeds.iter().flat_map(|found| &found.norms);
            let own = norms.filter(|n| n.condition == condition && n.client == *client);
            lines.push(Line { family, client, condition, norms: own.collect() });
        }
    }
    lines
}

impl Line<'_> {
    fn spread(&self, of: impl Fn(&Norms) -> f64) -> Option<Spread> {
        Spread::of(self.norms.iter().map(|norms| Some(of(norms))))
    }

    /// In how many seeds the means stand as the paper orders them.
    fn in_order(&self) -> usize {
        self.norms.iter().filter(|n| n.r_c > n.r_a && n.r_a > n.r_o).count()
    }

    fn row(&self) -> Row {
        Row::new(self.family, "federated", self.norms.len())
            .with("client", self.client)
            .with("condition", self.condition.name())
            .spread("r_c", self.spread(|n| n.r_c))
            .spread("r_a", self.spread(|n| n.r_a))
            .spread("r_s", self.spread(|n| n.r_s))
            .spread("r_o", self.spread(|n| n.r_o))
            .spread("c_over_a", self.spread(|n| n.c_over_a))
            .spread("a_over_o", self.spread(|n| n.a_over_o))
            .spread("ordered", self.spread(|n| n.ordered))
            .with("means_in_order", self.in_order())
    }
}

fn table(lines: &[Line]) -> Table {
    let columns = [
        "family",
        "client",
        "rows",
        "‖r_c‖",
        "‖r_a‖",
        "server",
        "‖r_o‖",
        "r_c > r_a",
        "r_a > r_o",
        "all in order",
        "means",
    ];
    let mut table = Table::new("Norms of residuals (Fig. 7)", 3, &columns);
    for line in lines {
        table.line(vec![
            Cell::text(line.family),
            Cell::text(line.client),
            Cell::text(line.condition.name()),
            Cell::spread(line.spread(|n| n.r_c), 3),
            Cell::spread(line.spread(|n| n.r_a), 3),
            Cell::spread(line.spread(|n| n.r_s), 3),
            Cell::spread(line.spread(|n| n.r_o), 3),
            Cell::spread(line.spread(|n| n.c_over_a), 2),
            Cell::spread(line.spread(|n| n.a_over_o), 2),
            Cell::spread(line.spread(|n| n.ordered), 2),
            Cell::text(format!("{} of {}", line.in_order(), line.norms.len())),
        ]);
    }
    table.note(
        "mean norms in standard deviations of the sensors; server: y − h(x_s); then shares of steps; \
         means: seeds in which the mean norms stand in order",
    );
    table.note(
        "paper: in every case r_c > r_a > r_o at most time instants, nominal and attacked (a picture, \
         no numbers)",
    );
    table
}

fn charts((family, seeds): &Family) -> Vec<Chart> {
    let traces = seeds.first().map(|found| found.traces.as_slice()).unwrap_or_default();
    let chart = |trace: &Trace| {
        let over = |name: &str, norms: &[f32]| Series {
            name: name.into(),
            points: (trace.first..)
                .map(|t| t as f64)
                .zip(norms.iter().map(|&n| n.into()))
                .collect(),
        };
        let wrong = trace.anomalous.iter().position(|wrong| *wrong).unwrap_or(0) + trace.first;
        Chart {
            name: format!("{}-{}", family.to_lowercase(), trace.client.to_lowercase()),
            title: format!(
                "{family}, first seed: residuals of {}, something wrong from step {wrong} on",
                trace.client
            ),
            drawing: Drawing::Lines {
                x: Axis::linear("step"),
                y: Axis::logarithmic("‖r‖"),
                series: vec![
                    over("proprietary", &trace.r_c),
                    over("augmented", &trace.r_a),
                    over("oracle", &trace.r_o),
                ],
            },
        }
    };
    traces.iter().map(chart).collect()
}

fn reading(families: &[Family]) -> Vec<String> {
    let all: Vec<&Norms> =
        families.iter().flat_map(|(_, seeds)| seeds).flat_map(|found| &found.norms).collect();
    if all.is_empty() {
        return vec![];
    }
    let count = |holds: &dyn Fn(&Norms) -> bool| all.iter().filter(|n| holds(n)).count();
    let n = all.len();
    let most = count(&|n| n.ordered > MOST);
    let ordered = Spread::of(all.iter().map(|n| Some(n.ordered))).map_or(0.0, |s| s.mean);
    let less = count(&|n| n.r_a < n.r_c);
    let change = |chosen: &dyn Fn(&Norms) -> bool| {
        let chosen = all.iter().filter(|n| chosen(n));
        Spread::of(chosen.map(|n| Some(100.0 * (n.r_a / n.r_c - 1.0))))
    };
    let mut said = vec![format!(
        "The order r_c > r_a > r_o holds at most steps in {most} of {n} cases (client, seed, \
         condition), and at {:.0} % of steps on average, where three curves in random order would \
         show 17 %: {}.",
        100.0 * ordered,
        if 2 * most > n {
            "the paper's picture holds here"
        } else {
            "the paper's picture does not hold here"
        },
    )];
    let nominal = change(&|n| n.condition == Condition::Nominal);
    let anomalous = change(&|n| n.condition == Condition::Anomalous);
    if let (Some(nominal), Some(anomalous)) = (nominal, anomalous) {
        said.push(format!(
            "φ makes the mean residual smaller in {less} of {n} cases; on average it changes by \
             {:+.1} % on nominal rows and by {:+.1} % in anomalies, {}.",
            nominal.mean,
            anomalous.mean,
            if anomalous.mean > -10.0 {
                "too little for a flag that Z_c raises and Z_a does not"
            } else {
                "which may tell Z_a from Z_c"
            },
        ));
    }
    let oracle = count(&|n| n.r_o < n.r_a);
    said.push(format!(
        "The oracle leaves less over than the augmented model in {oracle} of {n} cases; {}.",
        if 4 * oracle > 3 * n {
            "it is the bound it is meant to be"
        } else {
            "trained on the same rows, it is no reliable upper bound"
        }
    ));
    said
}
