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
use crate::study::report::{Axis, Chart, Columns, Figure, Report, Row, Series, Spread, Table};

pub(super) const STUDY: Study = Study {
    name: "convergence",
    about: "losses over rounds, distance to the oracle, the theorems' condition, feedback or none",
    needs_data: false,
    first: None,
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
    mean("epsilon_star", "ε*", 2, |b| Some(b.theory.epsilon_star)),
    mean("without_phi", "φ = 0", 2, |b| Some(b.theory.without_phi)),
    mean("after_first_pass", "pass 1", 2, |b| Some(b.theory.after_first_pass)),
    mean("lemma_bound", "lemma 6.5", 2, |b| Some(b.theory.lemma_bound)),
    mean("delta_m", "δ_m", 2, |b| Some(b.theory.delta_m)),
    mean("x_a_to_oracle", "‖x_a − x_o‖", 2, |b| Some(b.x_a)),
    mean("bound_6_10", "bound 6.10", 1, |b| b.theory.bound),
    mean("sigma_c_printed", "σ_c printed", 1, |b| Some(b.theory.sigma_c)),
    mean("sigma_a_printed", "σ_a printed", 1, |b| Some(b.theory.sigma_a)),
    mean("sigma_used", "σ used", 1, |b| Some(b.theory.sigma_used)),
    json("l_theta", |line| Figure::Number(line.mean(|b| Some(b.theory.l_theta)))),
    json("sigma_g_printed", |line| Figure::Number(line.mean(|b| Some(b.theory.sigma_g)))),
    json("sigma_g_used", |line| Figure::Number(line.mean(|b| Some(b.theory.sigma_g_used)))),
]);

/// The server's, a line per family.
const SERVER: Columns<ServerTheory> = Columns(&[
    family("family"),
    seeds("seeds"),
    mean("l_fs", "L_fs", 2, |s| Some(s.l_fs)),
    mean("sigma_star", "σ* = ‖x_s − x_o‖", 2, |s| Some(s.sigma_star)),
    mean("bound_6_13", "bound 6.13", 1, |s| s.bound),
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

/// The tables of the theory, and their rows.
fn theory(families: &[Family]) -> ([Table; 2], Vec<Row>) {
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
    let of_server = columns::Line::group(of_server);
    let rows = THEORY.rows(&lines).into_iter().chain(SERVER.rows(&of_server)).collect();
    let clients = THEORY
        .table("Theory beside measurement: the clients", 2, &lines)
        .note(
            "ε*: mean ‖φ(y) − Σ x̂_n‖ at the end (Definition 6.4); φ = 0: the same without φ, so ε* of \
             the same size says that φ approximates nothing of the others; pass 1 and lemma 6.5: left \
             and right side of the lemma after the first pass (with a single pass both are ε*). δ_m: Proposition 6.8. bound 6.10: L_f (ρ \
             + ε*) + δ_m, with ρ as printed (its proof gives one more factor 1 + ‖ΔK‖ L_h at the last \
             term of ρ); empty where the condition of the theorem does not hold.",
        )
        .note(
            "L_θ: largest ‖∂φ/∂θ‖ along the run. σ_c, σ_a: Theorem 7.1 as printed for ε = 1 and δ = 1e-5, with the constants measured here; σ \
             used: by a public clip of ±5 and the least noise that gives the same (ε, δ). All in nominal \
             standard deviations of a state. The printed ones depend on the client's own data, which \
             a noise scale must not.",
        );
    let server = SERVER
        .table("Theory beside measurement: the server", 1, &of_server)
        .note("bound 6.13: L_fs M ρ + σ* with the largest ρ; empty where the condition fails.");
    ([clients, server], rows)
}

fn report(_: &StudyOptions, done: &[Done]) -> Result<Report, StudyError> {
    let families = by_family(done)?;
    let lines: Vec<Line> = families.iter().flat_map(lines).collect();
    let feedback = COLUMNS
        .table("With and without the server's feedback", 2, &lines)
        .note(
            "all on nominal rows that nothing was fitted to, means over clients; after pass 1: \
             ‖x_s − x_o‖ then; bytes back: from the server, per round",
        )
        .note("the paper's tables give no figure for any of these; its theorems say that they fall")
        .note(oracle_note(&families));
    let clients: Vec<_> = families.iter().flat_map(of_clients).collect();
    let condition = CONDITION
        .table("The condition of theorem 6.10: 1 + ‖ΔK‖ L_h < 1/L_f", 2, &clients)
        .note(
            "largest values along the compared rows; L_f ρ: the part of the theorem's bound on \
             ‖x_a − x_o‖ that no training changes, where it holds; unlike: share of the variance of x_c that no affine map of x_o explains",
        );
    let (theory, theory_rows) = theory(&families);
    Ok(Report {
        tables: [feedback, condition].into_iter().chain(theory).collect(),
        charts: families.iter().flat_map(charts).collect(),
        reading: reading(&families),
        rows: COLUMNS.rows(&lines).into_iter().chain(theory_rows).collect(),
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
    // After a single pass there is nothing to compare the end of training with.
    let is_compared =
        |c: &&&LossCurve| c.passes.len() > 1 && over_clients(c, |b| b.unexplained) < UNLIKE;
    let alike: Vec<&&LossCurve> = courses.iter().filter(is_compared).collect();
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
    let bounds = courses.iter().flat_map(|c| c.theory.iter().zip(&c.end));
    let loose = Spread::of(bounds.map(|(theory, end)| Some(theory.bound? / end.x_a)));
    let loose = loose.map_or(String::new(), |loose| {
        format!(", and its bound is then {:.0} times the distance found", loose.mean)
    });
    let mut sentences = vec![
        format!(
            "For {} of {clients} clients an affine map of the oracle's states explains less than half \
             of the client's own, and no distance means anything. Of the others the server's states \
             end nearer to the oracle's than the proprietary ones, which training does not change, \
             for {server} of {}; in {nearer} of {} such runs of several passes training brought them \
             nearer, as theorem 6.13 says.",
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
    sentences.extend(of_theory(&courses));
    sentences.extend(of_feedback(&all().collect::<Vec<_>>()));
    sentences
}

/// Whether φ approximates what Lemma 6.5 says it does, and which bounds there are.
fn of_theory(courses: &[&LossCurve]) -> Option<String> {
    let clients: Vec<&ClientTheory> = courses.iter().flat_map(|c| &c.theory).collect();
    let servers: Vec<&ServerTheory> = courses.iter().map(|c| &c.server_theory).collect();
    let lemma = Spread::of(clients.iter().map(|t| Some(t.lemma_bound / t.after_first_pass)))?;
    let left = Spread::of(clients.iter().map(|t| Some(100.0 * t.epsilon_star / t.without_phi)))?;
    let approximates = if left.mean > 90.0 { "hardly approximates" } else { "approximates" };
    let bounded: Vec<(f64, f64)> =
        servers.iter().filter_map(|s| Some((s.bound?, s.sigma_star))).collect();
    let times = Spread::of(bounded.iter().map(|(bound, found)| Some(bound / found)));
    let times = times.map_or_else(String::new, |times| {
        format!(" and is {:.0} times the distance found", times.mean)
    });
    let printed = |of: fn(&ClientTheory) -> f64| {
        Spread::of(clients.iter().map(|t| Some(of(t) / t.sigma_used))).map_or(0.0, |s| s.mean)
    };
    let gradient = Spread::of(clients.iter().map(|t| Some(t.sigma_g / t.sigma_g_used)))?;
    Some(format!(
        "The right side of lemma 6.5 is {:.1} times its left (with L_θ measured on the same rows it \
         cannot be less). ε* is {:.0} % of the states of the others that φ should approximate: φ \
         {approximates} them. The bound of theorem 6.13 exists in {} of {} runs{times}. σ of theorem \
         7.1 as printed is {:.1} (σ_c) and {:.1} (σ_a) times the σ used here, that of theorem 7.2 \
         {:.1} times.",
        lemma.mean,
        left.mean,
        bounded.len(),
        servers.len(),
        printed(|t| t.sigma_c),
        printed(|t| t.sigma_a),
        gradient.mean,
    ))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(epsilon_star: f64, bound: Option<f64>) -> LossCurve {
        let client = ClientTheory {
            epsilon_star,
            without_phi: 2.0,
            after_first_pass: 2.0,
            lemma_bound: 3.0,
            l_theta: 1.0,
            delta_m: 0.5,
            bound,
            sigma_c: 4.0,
            sigma_a: 20.0,
            sigma_used: 8.0,
            sigma_g: 6.0,
            sigma_g_used: 2.0,
        };
        LossCurve {
            eta2: PUBLISHED,
            rounds: 1,
            bytes_up: 0,
            bytes_down: 0,
            losses: Vec::new(),
            server_loss: 1.0,
            client_loss: vec![1.0],
            passes: Vec::new(),
            end: Vec::new(),
            theory: vec![client],
            server_theory: ServerTheory { l_fs: 1.0, sigma_star: 2.0, bound },
        }
    }

    #[test]
    fn the_theory_is_read_beside_what_was_measured() {
        let (far, near) = (curve(1.96, None), curve(1.0, Some(30.0)));
        let words = of_theory(&[&far]).expect("a client");
        assert!(words.contains("1.5 times its left"), "{words}");
        assert!(words.contains("98 % of the states") && words.contains("hardly"), "{words}");
        assert!(words.contains("exists in 0 of 1 runs. σ"), "{words}");
        assert!(words.contains("0.5 (σ_c) and 2.5 (σ_a) times"), "{words}");
        assert!(words.contains("theorem 7.2 3.0 times"), "{words}");
        let words = of_theory(&[&far, &near]).expect("two clients");
        assert!(words.contains("exists in 1 of 2 runs and is 15 times the distance"), "{words}");
        assert!(!words.contains("hardly"), "{words}");
        assert_eq!(of_theory(&[]), None);
    }
}
