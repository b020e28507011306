//! Do the federation's states come near those of the oracle (theorems 6.10 and 6.13), and does the
//! server's feedback matter for it?
//!
//! Distances are taken after the oracle's states were brought into each client's coordinates, on
//! nominal rows that neither learned from. The weight η2 of the server's gradient is varied; without
//! it no gradient is sent back.

use crate::engine::experiment::federation::{ETA2, PUBLISHED, Results};
use crate::engine::experiment::loss_curve::{
    ClientTheory, LossCurve, LossPoint, OracleDistance, Pass, ServerTheory,
};
use crate::study::experiments::{by_family, experiments, oracle_note};
use crate::study::frame::{Done, Study, StudyError, StudyOptions};
use crate::study::report::columns::{self, all, family, json, mean, method, seeds, shown};
use crate::study::report::{Axis, Chart, Columns, Figure, Report, Series, Spread, Table};

pub(super) const STUDY: Study = Study {
    name: "convergence",
    about: "losses over rounds, distance to the oracle, the theorems' condition, feedback or none",
    needs_data: false,
    jobs: |options| Ok(experiments(options)),
    report,
};

/// One family with one weight of the server's gradient, all seeds.
type Line<'a> = columns::Line<'a, LossCurve>;

fn eta2(line: &Line) -> Figure {
    Figure::Number(line.runs.first().map(|course| course.eta2))
}

const COLUMNS: Columns<LossCurve> = Columns(&[
    family("family"),
    all("eta2", "η2", 0, eta2),
    seeds("seeds"),
    mean("server_loss", "L_s", 4, |c| Some(c.server_loss)),
    mean("client_loss", "L_a", 4, |c| Some(client_loss(c))),
    mean("x_c_to_oracle", "‖x_c − x_o‖", 3, |c| Some(over_clients(c, |b| b.x_c))),
    mean("x_a_to_oracle", "‖x_a − x_o‖", 3, |c| Some(over_clients(c, |b| b.x_a))),
    mean("x_s_to_oracle", "‖x_s − x_o‖", 3, |c| Some(over_clients(c, |b| b.x_s))),
    mean("x_s_to_oracle_first_pass", "after pass 1", 3, |c| Some(first_pass(c))),
    mean("bytes_down_per_round", "bytes back", 0, |c| {
        Some(c.bytes_down as f64 / c.rounds.max(1) as f64)
    }),
    json("condition_holds", |line| {
        Figure::Count(line.sum(|c| c.end.iter().filter(|b| b.holds).count()))
    }),
    json("clients", |line| Figure::Count(line.sum(|c| c.end.len()))),
]);

/// The condition of theorem 6.10, a line per client.
const CONDITION: Columns<OracleDistance> = Columns(&[
    family("family"),
    method("client"),
    seeds("seeds"),
    mean("", "L_f", 2, |b| Some(b.l_f.max)),
    mean("", "L_h", 2, |b| Some(b.l_h.max)),
    mean("", "‖ΔK‖", 2, |b| Some(b.delta_k.max)),
    shown("holds", 0, |line| line.holds(|b| b.holds)),
    shown("in 95 %", 0, |line| line.holds(|b| b.holds_mostly)),
    mean("", "L_f ρ", 1, |b| b.rho.map(|rho| rho * b.l_f.max)),
    mean("", "unlike", 2, |b| Some(b.unexplained)),
]);

/// A client's quantities beside the distance that they bound.
struct Beside {
    theory: ClientTheory,
    x_a: f64,
}

/// Theory beside measurement, a line per client.
const THEORY: Columns<Beside> = Columns(&[
    family("family"),
    method("client"),
    seeds("seeds"),
    mean("", "ε*", 2, |b| Some(b.theory.epsilon_star)),
    mean("", "φ = 0", 2, |b| Some(b.theory.without_phi)),
    mean("", "pass 1", 2, |b| Some(b.theory.after_first_pass)),
    mean("", "lemma 6.5", 2, |b| Some(b.theory.lemma_bound)),
    mean("", "δ_m", 2, |b| Some(b.theory.delta_m)),
    mean("", "‖x_a − x_o‖", 2, |b| Some(b.x_a)),
    mean("", "bound 6.10", 1, |b| b.theory.bound),
    mean("", "σ_c printed", 1, |b| Some(b.theory.sigma_c)),
    mean("", "σ_a printed", 1, |b| Some(b.theory.sigma_a)),
    mean("", "σ used", 1, |b| Some(b.theory.sigma_used)),
]);

/// The server's, a line per family.
const SERVER: Columns<ServerTheory> = Columns(&[
    family("family"),
    seeds("seeds"),
    mean("", "L_fs", 2, |s| Some(s.l_fs)),
    mean("", "σ* = ‖x_s − x_o‖", 2, |s| Some(s.sigma_star)),
    mean("", "bound 6.13", 1, |s| s.bound),
]);

fn besides(seeds: &[Results]) -> Vec<(&str, Beside)> {
    let clients = seeds.first().map(|found| found.clients.as_slice()).unwrap_or_default();
    let of = |(m, client): (usize, _)| {
        published(seeds).filter_map(move |curve: &LossCurve| {
            let end: &OracleDistance = curve.end.get(m)?;
            Some((client, Beside { theory: *curve.theory.get(m)?, x_a: end.x_a }))
        })
    };
    clients.iter().map(String::as_str).enumerate().flat_map(of).collect()
}

fn theory_tables(families: &[Family]) -> [Table; 2] {
    let besides: Vec<(&str, &str, Beside)> = families
        .iter()
        .flat_map(|(family, seeds)| {
            besides(seeds).into_iter().map(move |(client, beside)| (&family[..], client, beside))
        })
        .collect();
    let lines =
        columns::Line::group(besides.iter().map(|(family, client, b)| (*family, *client, b)));
    let of_server = families.iter().flat_map(|(family, seeds)| {
        published(seeds).map(move |curve| (&family[..], "server", &curve.server_theory))
    });
    let clients = THEORY
        .table("Theory beside measurement: the clients", 2, &lines)
        .note(
            "ε*: mean ‖φ(y) − Σ x̂_n‖ at the end (Definition 6.4); φ = 0: the same without φ, so ε* of \
             the same size says that φ approximates nothing of the others; pass 1 and lemma 6.5: left \
             and right side of the lemma after the first pass. δ_m: Proposition 6.8. bound 6.10: L_f (ρ \
             + ε*) + δ_m; empty where the condition of the theorem does not hold.",
        )
        .note(
            "σ_c, σ_a: Theorem 7.1 as printed for ε = 1 and δ = 1e-5, with the constants measured here; σ \
             used: by a public clip of ±5 and the least noise that gives the same (ε, δ). All in nominal \
             standard deviations of a state. The printed ones depend on the client's own data, which \
             a noise scale must not.",
        );
    let server = SERVER
        .table("Theory beside measurement: the server", 1, &columns::Line::group(of_server))
        .note("bound 6.13: L_fs M ρ + σ* with the largest ρ; empty where the condition fails.");
    [clients, server]
}

fn report(options: &StudyOptions, done: &[Done]) -> Result<Report, StudyError> {
    let families = by_family(done)?;
    let lines: Vec<Line> = families.iter().flat_map(lines).collect();
    let feedback = COLUMNS
        .table("With and without the server's feedback", 2, &lines)
        .note(
            "all on nominal rows that nothing was fitted to, means over clients; after pass 1: \
             ‖x_s − x_o‖ then; bytes back: from the server, per round",
        )
        .note("the paper's tables give no figure for any of these; its theorems say that they fall")
        .note(oracle_note(options));
    let clients: Vec<_> = families.iter().flat_map(of_clients).collect();
    let condition = CONDITION
        .table("The condition of theorem 6.10: 1 + ‖ΔK‖ L_h < 1/L_f", 2, &clients)
        .note(
            "largest values along the compared rows; L_f ρ: the theorem's bound on ‖x_a − x_o‖ where \
             it holds; unlike: share of the variance of x_c that no affine map of x_o explains",
        );
    Ok(Report {
        tables: [feedback, condition].into_iter().chain(theory_tables(&families)).collect(),
        charts: families.iter().flat_map(charts).collect(),
        reading: reading(&families),
        rows: COLUMNS.rows(&lines),
        ..Report::default()
    })
}

type Family = (String, Vec<Results>);

fn lines((family, seeds): &Family) -> Vec<Line<'_>> {
    let courses = ETA2.into_iter().flat_map(|eta2| {
        seeds.iter().filter_map(move |found| Some((format!("η2 = {eta2}"), found.curve(eta2)?)))
    });
    Line::group(courses.map(|(method, course)| (family, method, course)))
}

fn of_clients((family, seeds): &Family) -> Vec<columns::Line<'_, OracleDistance>> {
    let clients = seeds.first().map(|found| found.clients.as_slice()).unwrap_or_default();
    let ends = clients.iter().enumerate().flat_map(|(m, client)| {
        published(seeds).filter_map(move |course| Some((client, course.end.get(m)?)))
    });
    columns::Line::group(ends.map(|(client, end)| (family, client, end)))
}

fn client_loss(course: &LossCurve) -> f64 {
    course.client_loss.iter().sum::<f64>() / course.client_loss.len().max(1) as f64
}

fn over_clients(course: &LossCurve, of: impl Fn(&OracleDistance) -> f64) -> f64 {
    course.end.iter().map(of).sum::<f64>() / course.end.len().max(1) as f64
}

fn first_pass(course: &LossCurve) -> f64 {
    course.passes.first().map_or(f64::NAN, |pass| pass.x_s)
}

fn published(seeds: &[Results]) -> impl Iterator<Item = &LossCurve> {
    seeds.iter().filter_map(|found| found.curve(PUBLISHED))
}

fn charts((family, seeds): &Family) -> Vec<Chart> {
    let name = |what: &str| format!("{what}-{}", family.to_lowercase());
    let Some(first) = seeds.first() else { return vec![] };
    let curve = |course: &LossCurve, of: fn(&LossPoint) -> f64| {
        course.losses.iter().map(|loss| (loss.round as f64, of(loss))).collect::<Vec<_>>()
    };
    let courses = ETA2.into_iter().filter_map(|eta2| first.curve(eta2));
    let mut losses: Vec<Series> = courses
        .map(|c| Series::new(format!("L_s, η2 = {}", c.eta2), curve(c, |loss| loss.server)))
        .collect();
    losses.extend(first.curve(PUBLISHED).map(|course| {
        let client = |l: &LossPoint| l.clients.iter().sum::<f64>() / l.clients.len() as f64;
        Series::new("mean L_a, η2 = 1", curve(course, client))
    }));
    let passes = |of: fn(&Pass) -> f64| {
        let passes = published(seeds).map(|c| c.passes.len()).min().unwrap_or(0);
        let at = |k: usize| Spread::of(published(seeds).map(|c| Some(of(&c.passes[k]))));
        (0..passes).filter_map(|k| Some(((k + 1) as f64, at(k)?.mean))).collect::<Vec<_>>()
    };
    let x_a = passes(|pass| pass.x_a);
    let x_c = Spread::of(published(seeds).map(|c| Some(over_clients(c, |b| b.x_c))));
    let x_c: Vec<_> = x_a.iter().filter_map(|(pass, _)| Some((*pass, x_c?.mean))).collect();
    vec![
        Chart::lines(
            name("loss"),
            format!("{family}, first seed: losses over rounds"),
            (Axis::linear("round"), Axis::logarithmic("loss")),
            losses,
        ),
        Chart::lines(
            name("oracle"),
            format!("{family}: distance to the oracle over passes, mean of seeds"),
            (Axis::linear("pass"), Axis::linear("mean distance")),
            vec![
                Series::new("‖x_s − x_o‖", passes(|pass| pass.x_s)),
                Series::new("‖x_a − x_o‖", x_a),
                Series::new("‖x_c − x_o‖", x_c),
            ],
        ),
    ]
}

/// Beyond this share of unexplained variance two models do not describe the same thing, and the
/// distance of their states means nothing.
const UNLIKE: f64 = 0.5;

fn reading(families: &[Family]) -> Vec<String> {
    let all = || families.iter().flat_map(|(_, seeds)| seeds);
    let courses: Vec<&LossCurve> = all().filter_map(|found| found.curve(PUBLISHED)).collect();
    if courses.is_empty() {
        return vec![];
    }
    let clients = courses.iter().map(|c| c.end.len()).sum::<usize>();
    let alike: Vec<&&LossCurve> =
        courses.iter().filter(|c| over_clients(c, |b| b.unexplained) < UNLIKE).collect();
    let nearer = alike
        .iter()
        .filter(|c| c.passes.last().is_some_and(|last| last.x_s < first_pass(c)))
        .count();
    let ends: Vec<&OracleDistance> = courses.iter().flat_map(|c| &c.end).collect();
    let judged: Vec<&&OracleDistance> = ends.iter().filter(|b| b.unexplained < UNLIKE).collect();
    let server = judged.iter().filter(|b| b.x_s < b.x_c).count();
    let augmented = judged.iter().filter(|b| b.x_a < b.x_c).count();
    let change = Spread::of(judged.iter().map(|b| Some(100.0 * (b.x_a / b.x_c - 1.0))));
    let holds: Vec<&&OracleDistance> = ends.iter().filter(|b| b.holds).collect();
    let loose = Spread::of(holds.iter().map(|b| Some(b.rho? * b.l_f.max / b.x_a)));
    let loose = loose.map_or(String::new(), |loose| {
        format!(", and its bound is then {:.0} times the distance found", loose.mean)
    });
    let mut sentences = vec![
        format!(
            "For {} of {clients} clients an affine map of the oracle's states explains less than half \
             of the client's own, and no distance means anything. Of the others the server's states \
             end nearer to the oracle's than the proprietary ones, which training does not change, \
             for {server} of {}; in {nearer} of {} such runs training brought them nearer, as theorem \
             6.13 says.",
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
    sentences.extend(of_feedback(&all().collect::<Vec<_>>()));
    sentences
}

fn of_feedback(all: &[&Results]) -> Option<String> {
    let pairs = all.iter().filter_map(|found| Some((found.curve(0.0)?, found.curve(PUBLISHED)?)));
    let pairs: Vec<(&LossCurve, &LossCurve)> = pairs.collect();
    let change = |of: fn(&LossCurve) -> f64| {
        let percent =
            |(without, with): &(&LossCurve, &LossCurve)| 100.0 * (of(with) / of(without) - 1.0);
        let lower = pairs.iter().filter(|(without, with)| of(with) < of(without)).count();
        Spread::of(pairs.iter().map(|pair| Some(percent(pair)))).map(|spread| (spread.mean, lower))
    };
    let (l_s, lower_s) = change(|course| course.server_loss)?;
    let (l_a, lower_a) = change(client_loss)?;
    let n = pairs.len();
    let changes = if l_a.abs() < 1.0 { "hardly changes" } else { "changes" };
    Some(format!(
        "With feedback (η2 = 1) instead of none L_s changes by {l_s:+.1} % on average (lower in \
         {lower_s} of {n} runs) and L_a by {l_a:+.2} % (lower in {lower_a}): feedback {changes} \
         how well clients describe their own data."
    ))
}
