//! Figures 2 and 6: do the models of the federation show how clients depend on each other, and does
//! the proprietary model not?
//!
//! The built-in plant stands where the paper has HAI 23.05. Two controls are added that the paper
//! has not: the true states, and two plants that have nothing to do with each other.

use crate::study::frame::{Done, Job, Options, Study, StudyError};
use crate::study::lesson::{self, Findings, Map};
use crate::study::report::{Axis, Bar, Cell, Chart, Drawing, Report, Row, Spread, Table};

pub(crate) struct Correlation;

/// In the order of the paper's figures, and the truth.
const MODELS: [&str; 5] = ["proprietary", "augmented", "server", "oracle", "truth"];

impl Study for Correlation {
    fn name(&self) -> &'static str {
        "correlation"
    }

    fn about(&self) -> &'static str {
        "how states of different clients move together, by model (Fig. 2 and 6)"
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

struct Line<'a> {
    family: &'a str,
    model: &'static str,
    seeds: usize,
    between: Option<Spread>,
    canonical: Option<Spread>,
    /// Mean difference from the oracle's map, entry by entry.
    from_oracle: Option<Spread>,
}

fn lines((family, seeds): &Family) -> Vec<Line<'_>> {
    let spread = |model: &'static str, of: &dyn Fn(&Map) -> f64| {
        Spread::of(seeds.iter().map(|found| found.map(model).map(of)))
    };
    let known = |model: &&str| seeds.iter().any(|found| found.map(model).is_some());
    let mut lines: Vec<Line> = MODELS
        .into_iter()
        .filter(known)
        .map(|model| Line {
            family,
            model,
            seeds: seeds.len(),
            between: spread(model, &|map| map.between),
            canonical: spread(model, &|map| map.canonical),
            from_oracle: Spread::of(seeds.iter().map(|found| {
                let (map, oracle) = (found.map(model)?, found.map("oracle")?);
                (model != "oracle").then(|| unlike(map, oracle))
            })),
        })
        .collect();
    let strangers = Spread::of(seeds.iter().map(|found| found.strangers));
    if strangers.is_some() {
        lines.push(Line {
            family,
            model: "truth, unconnected",
            seeds: seeds.len(),
            between: strangers,
            canonical: None,
            from_oracle: None,
        });
    }
    lines
}

/// Mean difference of |correlation| between clients; signs depend on coordinates and do not count.
fn unlike(map: &Map, other: &Map) -> f64 {
    let client = |name: &String| name.split('.').next().unwrap_or_default().to_owned();
    let owners: Vec<String> = map.names.iter().map(client).collect();
    let n = owners.len();
    let apart = (0..n * n).filter(|k| owners[k / n] != owners[k % n]);
    let found: Vec<f64> =
        apart.map(|k| (map.values[k].abs() - other.values[k].abs()).abs()).collect();
    found.iter().sum::<f64>() / found.len().max(1) as f64
}

impl Line<'_> {
    fn row(&self) -> Row {
        Row::new(self.family, self.model, self.seeds)
            .spread("correlation", self.between)
            .spread("canonical", self.canonical)
            .spread("from_oracle", self.from_oracle)
    }
}

fn table(lines: &[Line]) -> Table {
    let columns =
        ["family", "states", "seeds", "mean |corr| between clients", "canonical", "from oracle"];
    let mut table = Table::new("Correlation of states (Fig. 2 and 6)", 2, &columns);
    for line in lines {
        table.line(vec![
            Cell::text(line.family),
            Cell::text(line.model),
            Cell::count(line.seeds),
            Cell::spread(line.between, 3),
            Cell::spread(line.canonical, 3),
            Cell::spread(line.from_oracle, 3),
        ]);
    }
    table.note(
        "on nominal rows that nothing was fitted to; canonical: first canonical correlation of two \
         clients, which does not depend on a model's coordinates; from oracle: mean difference of \
         |corr| from the oracle's map",
    );
    table.note(
        "truth, unconnected: client m of this plant with n ≠ m of another one of its kind; the \
         sinusoids of all clients share one period, so they correlate without any influence",
    );
    table.note(
        "the paper gives pictures, no numbers: there the proprietary map is dark between clients, the \
         others look like the oracle's",
    );
    table
}

fn charts((family, seeds): &Family) -> Vec<Chart> {
    let short = family.to_lowercase();
    let matrix = |found: &Findings, model: &str| {
        let map = found.map(model)?;
        Some(Chart {
            name: format!("{short}-{model}"),
            title: format!("{family}, first seed: correlation of {model} states"),
            drawing: Drawing::Matrix { names: map.names.clone(), values: map.values.clone() },
        })
    };
    let first = seeds.first().into_iter();
    let mut charts: Vec<Chart> =
        first.flat_map(|found| MODELS.iter().filter_map(|model| matrix(found, model))).collect();
    let of = |model: &str| Spread::of(seeds.iter().map(|found| Some(found.map(model)?.between)));
    let bar = |model: &&str| Some(Bar { name: (*model).to_owned(), value: Some(of(model)?) });
    charts.push(Chart {
        name: format!("{short}-between"),
        title: format!("{family}: mean |correlation| between clients"),
        drawing: Drawing::Bars {
            value: Axis::linear("mean |correlation|"),
            bars: MODELS.iter().filter_map(bar).collect(),
        },
    });
    charts
}

fn reading(families: &[Family]) -> Vec<String> {
    let mut said: Vec<String> = families.iter().filter_map(of_family).collect();
    let all: Vec<&Findings> = families.iter().flat_map(|(_, seeds)| seeds).collect();
    let nearer = |model: &str| {
        let judged = all.iter().filter_map(|found| {
            let oracle = found.map("oracle")?;
            let own = unlike(found.map("proprietary")?, oracle);
            Some(unlike(found.map(model)?, oracle) < own)
        });
        let judged: Vec<bool> = judged.collect();
        (judged.iter().filter(|nearer| **nearer).count(), judged.len())
    };
    let ((augmented, n), (server, _)) = (nearer("augmented"), nearer("server"));
    let truth = Spread::of(
        all.iter()
            .map(|found| found.strangers.and_then(|_| found.map("truth")).map(|map| map.between)),
    );
    let strangers = Spread::of(all.iter().map(|found| found.strangers));
    let strangers = truth.zip(strangers).map(|(truth, strangers)| {
        format!(
            " True states of connected clients of the synthetic plant correlate by {:.2}, those of \
             two unconnected plants by {:.2}: {}.",
            truth.mean,
            strangers.mean,
            if strangers.mean > 0.7 * truth.mean {
                "most of it is the common period of all sinusoids, not influence"
            } else {
                "most of it is influence"
            }
        )
    });
    if n > 0 {
        said.push(format!(
            "The augmented map is nearer to the oracle's than the proprietary one in {augmented} of \
             {n} runs, the server's in {server}.{}",
            strangers.unwrap_or_default()
        ));
    }
    said
}

fn of_family((family, seeds): &Family) -> Option<String> {
    let of = |model: &str| Spread::of(seeds.iter().map(|found| Some(found.map(model)?.between)));
    let (own, augmented, server) = (of("proprietary")?, of("augmented")?, of("server")?);
    let shown = |part: Spread| part.mean / server.mean.max(f64::MIN_POSITIVE);
    let verdict = match (shown(own) > 0.8, shown(augmented) - shown(own) > 0.1) {
        (true, _) => {
            "a client's measurements contain what its neighbours do to it, so this is no evidence of \
             learned coupling"
        }
        (false, true) => "what is learned together adds to it, as the paper says",
        (false, false) => {
            "the server, which sees all states, adds to it; φ, which sees one client's data, does not"
        }
    };
    Some(format!(
        "{family}: the proprietary states already show {:.0} % of the correlation between clients \
         that the server's show ({:.2} of {:.2}), the augmented ones {:.0} %: {verdict}.",
        100.0 * shown(own),
        own.mean,
        server.mean,
        100.0 * shown(augmented),
    ))
}
