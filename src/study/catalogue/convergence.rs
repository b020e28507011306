//! Does the federation come to say what a model of everything says (theorems 6.10 and 6.13), and
//! does the server's feedback matter for it?
//!
//! Distances are taken after the oracle's states were brought into each client's coordinates, on
//! nominal rows that neither learned from. The weight η2 of the server's gradient is varied; without
//! it nothing is sent back.

use crate::study::frame::{Done, Job, Options, Study, StudyError};
use crate::study::lesson::{self, Beside, Course, ETA2, Findings, PUBLISHED};
use crate::study::report::{Axis, Cell, Chart, Drawing, Report, Row, Series, Spread, Table};

pub(crate) struct Convergence;

impl Study for Convergence {
    fn name(&self) -> &'static str {
        "convergence"
    }

    fn about(&self) -> &'static str {
        "losses over rounds, distance to the oracle, the theorems' condition, feedback or none"
    }

    fn jobs(&self, options: &Options) -> Result<Vec<Job>, StudyError> {
        Ok(lesson::jobs(options))
    }

    fn report(&self, options: &Options, done: &[Done]) -> Result<Report, StudyError> {
        let families = lesson::by_family(done)?;
        let lines: Vec<Line> = families.iter().flat_map(lines).collect();
        let mut feedback = feedback(&lines);
        feedback.note(lesson::oracle_note(options));
        Ok(Report {
            study: self.name().into(),
            title: self.about().into(),
            command: options.command(self.name()),
            tables: vec![feedback, condition(&families)],
            charts: families.iter().flat_map(charts).collect(),
            reading: reading(&families),
            rows: lines.iter().map(Line::row).collect(),
        })
    }
}

type Family = (String, Vec<Findings>);

/// One family with one weight of the server's gradient, all seeds.
struct Line<'a> {
    family: &'a str,
    eta2: f64,
    courses: Vec<&'a Course>,
}

fn lines((family, seeds): &Family) -> impl Iterator<Item = Line<'_>> {
    ETA2.into_iter().map(move |eta2| Line {
        family,
        eta2,
        courses: seeds.iter().filter_map(|found| found.course(eta2)).collect(),
    })
}

impl Line<'_> {
    fn spread(&self, of: impl Fn(&Course) -> f64) -> Option<Spread> {
        Spread::of(self.courses.iter().map(|course| Some(of(course))))
    }

    fn method(&self) -> String {
        format!("η2 = {}", self.eta2)
    }

    fn row(&self) -> Row {
        let holds = self.courses.iter().flat_map(|c| &c.end).filter(|b| b.holds).count();
        let clients = self.courses.iter().map(|c| c.end.len()).sum::<usize>();
        Row::new(self.family, &self.method(), self.courses.len())
            .with("eta2", self.eta2)
            .spread("server_loss", self.spread(|c| c.server_loss))
            .spread("client_loss", self.spread(client_loss))
            .spread("x_c_to_oracle", self.spread(|c| mean(c, |b| b.x_c)))
            .spread("x_a_to_oracle", self.spread(|c| mean(c, |b| b.x_a)))
            .spread("x_s_to_oracle", self.spread(|c| mean(c, |b| b.x_s)))
            .spread("x_s_to_oracle_first_pass", self.spread(first_pass))
            .spread("bytes_down_per_round", self.spread(down))
            .with("condition_holds", holds)
            .with("clients", clients)
    }
}

fn client_loss(course: &Course) -> f64 {
    course.client_loss.iter().sum::<f64>() / course.client_loss.len().max(1) as f64
}

fn mean(course: &Course, of: impl Fn(&Beside) -> f64) -> f64 {
    course.end.iter().map(of).sum::<f64>() / course.end.len().max(1) as f64
}

fn first_pass(course: &Course) -> f64 {
    course.passes.first().map_or(f64::NAN, |pass| pass.x_s)
}

fn down(course: &Course) -> f64 {
    course.bytes_down as f64 / course.rounds.max(1) as f64
}

fn feedback(lines: &[Line]) -> Table {
    let columns = [
        "family",
        "η2",
        "seeds",
        "L_s",
        "L_a",
        "‖x_c − x_o‖",
        "‖x_a − x_o‖",
        "‖x_s − x_o‖",
        "after pass 1",
        "bytes back",
    ];
    let mut table = Table::new("With and without the server's feedback", 2, &columns);
    for line in lines {
        table.line(vec![
            Cell::text(line.family),
            Cell::Number(line.eta2, 0),
            Cell::count(line.courses.len()),
            Cell::spread(line.spread(|c| c.server_loss), 4),
            Cell::spread(line.spread(client_loss), 4),
            Cell::spread(line.spread(|c| mean(c, |b| b.x_c)), 3),
            Cell::spread(line.spread(|c| mean(c, |b| b.x_a)), 3),
            Cell::spread(line.spread(|c| mean(c, |b| b.x_s)), 3),
            Cell::spread(line.spread(first_pass), 3),
            Cell::spread(line.spread(down), 0),
        ]);
    }
    table.note(
        "all on nominal rows that nothing was fitted to, means over clients; after pass 1: \
         ‖x_s − x_o‖ then; bytes back: from the server, per round",
    );
    table.note(
        "the paper's tables give no figure for any of these; its theorems say that they fall",
    );
    table
}

fn condition(families: &[Family]) -> Table {
    let columns =
        ["family", "client", "seeds", "L_f", "L_h", "‖ΔK‖", "holds", "in 95 %", "L_f ρ", "unlike"];
    let title = "The condition of theorem 6.10: 1 + ‖ΔK‖ L_h < 1/L_f";
    let mut table = Table::new(title, 2, &columns);
    for (family, seeds) in families {
        let Some(first) = seeds.first() else { continue };
        for (m, client) in first.clients.iter().enumerate() {
            let all: Vec<&Beside> = published(seeds).filter_map(|c| c.end.get(m)).collect();
            let spread = |of: &dyn Fn(&Beside) -> Option<f64>| {
                Spread::of(all.iter().map(|beside| of(beside)))
            };
            let count = |holds: &dyn Fn(&Beside) -> bool| {
                let n = all.iter().filter(|beside| holds(beside)).count();
                Cell::text(format!("{n} of {}", all.len()))
            };
            table.line(vec![
                Cell::text(family),
                Cell::text(client),
                Cell::count(all.len()),
                Cell::spread(spread(&|b| Some(b.l_f)), 2),
                Cell::spread(spread(&|b| Some(b.l_h)), 2),
                Cell::spread(spread(&|b| Some(b.delta_k)), 2),
                count(&|b| b.holds),
                count(&|b| b.holds_mostly),
                Cell::spread(spread(&|b| b.rho.map(|rho| rho * b.l_f)), 1),
                Cell::spread(spread(&|b| Some(b.unexplained)), 2),
            ]);
        }
    }
    table.note(
        "largest values along the compared rows; L_f ρ: what the theorem bounds ‖x_a − x_o‖ by where \
         it holds; unlike: share of the variance of x_c that no affine map of x_o explains",
    );
    table
}

fn published(seeds: &[Findings]) -> impl Iterator<Item = &Course> {
    seeds.iter().filter_map(|found| found.course(PUBLISHED))
}

fn charts((family, seeds): &Family) -> Vec<Chart> {
    let name = |what: &str| format!("{what}-{}", family.to_lowercase());
    let Some(first) = seeds.first() else { return vec![] };
    let mut loss = Vec::new();
    for course in ETA2.into_iter().filter_map(|eta2| first.course(eta2)) {
        let points = course.losses.iter().map(|l| (l.round as f64, l.server));
        loss.push(Series { name: format!("L_s, η2 = {}", course.eta2), points: points.collect() });
    }
    if let Some(course) = first.course(PUBLISHED) {
        let client = |l: &lesson::Loss| l.clients.iter().sum::<f64>() / l.clients.len() as f64;
        let points = course.losses.iter().map(|l| (l.round as f64, client(l)));
        loss.push(Series { name: "mean L_a, η2 = 1".into(), points: points.collect() });
    }
    let passes = |of: fn(&lesson::Pass) -> f64| {
        let passes = published(seeds).map(|c| c.passes.len()).min().unwrap_or(0);
        let at = |k: usize| Spread::of(published(seeds).map(|c| Some(of(&c.passes[k]))));
        (0..passes).filter_map(|k| Some(((k + 1) as f64, at(k)?.mean))).collect::<Vec<_>>()
    };
    let x_a = passes(|pass| pass.x_a);
    let x_c = Spread::of(published(seeds).map(|c| Some(mean(c, |b| b.x_c))));
    let x_c = x_a.iter().filter_map(|(pass, _)| Some((*pass, x_c?.mean))).collect();
    let series = |name: &str, points| Series { name: name.into(), points };
    vec![
        Chart {
            name: name("loss"),
            title: format!("{family}, first seed: losses over rounds"),
            drawing: Drawing::Lines {
                x: Axis::linear("round"),
                y: Axis::logarithmic("loss"),
                series: loss,
            },
        },
        Chart {
            name: name("oracle"),
            title: format!("{family}: distance to the oracle over passes, mean of seeds"),
            drawing: Drawing::Lines {
                x: Axis::linear("pass"),
                y: Axis::linear("mean distance"),
                series: vec![
                    series("‖x_s − x_o‖", passes(|pass| pass.x_s)),
                    series("‖x_a − x_o‖", x_a),
                    series("‖x_c − x_o‖", x_c),
                ],
            },
        },
    ]
}

/// Beyond this share of unexplained variance two models do not describe the same thing, and the
/// distance of their states means nothing.
const UNLIKE: f64 = 0.5;

fn reading(families: &[Family]) -> Vec<String> {
    let all = || families.iter().flat_map(|(_, seeds)| seeds);
    let courses: Vec<&Course> = all().filter_map(|found| found.course(PUBLISHED)).collect();
    if courses.is_empty() {
        return vec![];
    }
    let clients = courses.iter().map(|c| c.end.len()).sum::<usize>();
    let alike: Vec<&&Course> =
        courses.iter().filter(|c| mean(c, |b| b.unexplained) < UNLIKE).collect();
    let nearer = alike
        .iter()
        .filter(|c| c.passes.last().is_some_and(|last| last.x_s < first_pass(c)))
        .count();
    let ends: Vec<&Beside> = courses.iter().flat_map(|c| &c.end).collect();
    let judged: Vec<&&Beside> = ends.iter().filter(|b| b.unexplained < UNLIKE).collect();
    let server = judged.iter().filter(|b| b.x_s < b.x_c).count();
    let augmented = judged.iter().filter(|b| b.x_a < b.x_c).count();
    let change = Spread::of(judged.iter().map(|b| Some(100.0 * (b.x_a / b.x_c - 1.0))));
    let holds: Vec<&&Beside> = ends.iter().filter(|b| b.holds).collect();
    let loose = Spread::of(holds.iter().map(|b| Some(b.rho? * b.l_f / b.x_a)));
    let loose = loose.map_or(String::new(), |loose| {
        format!(", and its bound is then {:.0} times the distance found", loose.mean)
    });
    let mut said = vec![
        format!(
            "For {} of {clients} clients the oracle's states are more than half something else than \
             the client's own, and no distance says anything. Of the others the server's states end \
             nearer to the oracle's than the proprietary ones, which no training touched, for \
             {server} of {}; in {nearer} of {} such runs training brought them nearer, as theorem \
             6.13 has it.",
            clients - judged.len(),
            judged.len(),
            alike.len(),
        ),
        format!(
            "The augmented states end nearer than the proprietary ones for {augmented} of {} \
             ({:+.1} % of the distance on average). The condition of theorem 6.10 holds for {} of \
             {clients} clients{loose}.",
            judged.len(),
            change.map_or(0.0, |change| change.mean),
            holds.len(),
        ),
    ];
    said.extend(of_feedback(&all().collect::<Vec<_>>()));
    said
}

fn of_feedback(all: &[&Findings]) -> Option<String> {
    let pairs = all.iter().filter_map(|found| Some((found.course(0.0)?, found.course(PUBLISHED)?)));
    let pairs: Vec<(&Course, &Course)> = pairs.collect();
    let change = |of: fn(&Course) -> f64| {
        let percent = |(without, with): &(&Course, &Course)| 100.0 * (of(with) / of(without) - 1.0);
        let lower = pairs.iter().filter(|(without, with)| of(with) < of(without)).count();
        Spread::of(pairs.iter().map(|pair| Some(percent(pair)))).map(|spread| (spread.mean, lower))
    };
    let (l_s, lower_s) = change(|course| course.server_loss)?;
    let (l_a, lower_a) = change(client_loss)?;
    let (n, verdict) = (
        pairs.len(),
        if l_a.abs() < 1.0 {
            "feedback hardly changes what clients know of their own data"
        } else {
            "feedback changes what clients know of their own data"
        },
    );
    Some(format!(
        "With feedback (η2 = 1) instead of none L_s changes by {l_s:+.1} % on average (lower in \
         {lower_s} of {n} runs) and L_a by {l_a:+.2} % (lower in {lower_a}): {verdict}."
    ))
}
