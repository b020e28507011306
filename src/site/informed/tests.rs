use super::*;
use crate::evidence::enrolment::Enrolment;
use crate::evidence::likelihood::Hypotheses;
use crate::privacy::{Hooks, Provenance, Randomness, Releaser, SparseVectorParams};
use crate::server::health::Report;
use crate::server::inference::{Change, Inference, Rules};
use crate::server::influence::foretell::StatePredictor;
use crate::server::influence::heard::Heard;
use crate::server::influence::learn::learn;
use crate::server::influence::testing::{Edge, heard, lines, names, traces};
use crate::server::predictions::Predictions;
use crate::server::reach::Reach;
use crate::session::PrivacySettings;
use crate::session::SendPolicy;
use crate::site::enrolment::{Calibrated, enrol};
use crate::site::grader::SiteSettings;
use crate::site::line::Line;
use crate::wire::{Content, Message};

/// C1 drives C2, which drives C3; C4 stands alone.
const EDGES: [Edge; 2] = [(0, 1, 1, 0.6), (1, 2, 2, 0.6)];
const CLIENTS: usize = 4;

/// A calibrated federation in tier 2.
struct World {
    foreteller: StatePredictor,
    lines: Vec<Line>,
    informed: Vec<Option<Informed>>,
    /// The cuts of each client's own symbols.
    own: Vec<(Nominal, LevelCuts)>,
    enrolments: Vec<Enrolment>,
    /// What C1 said of its state in nominal times, for replays.
    nominal: Vec<Vec<f64>>,
}

fn own_distances(nominal: &mut Nominal, trace: &Trace) -> Vec<f32> {
    let rows = (0..trace.steps()).map(|t| trace.at(t));
    rows.map(|said| said.map_or(f32::NAN, |said| nominal.squared(said.r_w))).collect()
}

fn world() -> World {
    let nominal = |seed| traces(CLIENTS, &EDGES, 1200, seed, |_, _| 0.0);
    let (fit, calibration) = (nominal(1), nominal(2));
    let mut lines = lines(&fit);
    let (heard_fit, held_out) = (heard(&mut lines, &fit), heard(&mut lines, &calibration));
    let learned = learn(&names(CLIENTS), 1.0, &heard_fit, &held_out);
    let foreteller = learned.foreteller.expect("enough to learn from");
    let (answers, told) = (gathered(&foreteller, &heard_fit), gathered(&foreteller, &held_out));
    let settings = SiteSettings::default();
    let hypotheses = Hypotheses::default();
    let (mut informed, mut own, mut enrolments) = (Vec::new(), Vec::new(), Vec::new());
    for m in 0..CLIENTS {
        let rows = (0..1200).filter_map(|t| Some(calibration[m].at(t)?.r_w.to_vec()));
        let mut nominal = Nominal::fit(3, &rows.flatten().collect::<Vec<f32>>());
        let distances = NominalDistances::new(own_distances(&mut nominal, &calibration[m]));
        let cuts = LevelCuts::new(&settings.grading, &distances);
        let symbols: Vec<Option<Symbol>> = own_distances(&mut nominal, &calibration[m])
            .into_iter()
            .map(|d| cuts.symbol(d))
            .collect();
        let enrolled = |beside: Option<(usize, &[Option<Symbol>])>| {
            let params = SparseVectorParams { epsilon: 8.0, burst: 5, quiet_steps: 3000.0 };
            let random = || Randomness::seeded(1, m as u64);
            let releaser = Releaser::new(None, 5, SendPolicy::EveryStep, params, random());
            let releaser = &mut releaser.expect("nothing to protect");
            let calibrated = Calibrated { symbols: &symbols, abnormal: None, beside };
            let random = &mut random();
            let told = enrol(calibrated, &settings, &hypotheses, releaser, random, false);
            told.expect("a seed gives random numbers").enrolment
        };
        let Some(explainer) = foreteller.explainer(m) else {
            enrolments.push(enrolled(None));
            informed.push(None);
            own.push((nominal, cuts));
            continue;
        };
        let (states, of_fit) = (lines[m].states(), (&fit[m], &answers[m]));
        let fitted = InformedFit::new(states, of_fit, (&calibration[m], &told[m]));
        let beside = fitted.symbols(&settings.grading);
        enrolments.push(enrolled(Some((explainer, &beside))));
        informed.push(Some(Informed::new(&fitted, &settings.grading)));
        own.push((nominal, cuts));
    }
    let nominal = (0..300).filter_map(|t| heard_fit[0].z(t).map(<[f64]>::to_vec)).collect();
    World { foreteller, lines, informed, own, enrolments, nominal }
}

/// What the server predicts each client, as it arrives.
fn gathered(foreteller: &StatePredictor, heard: &[Heard]) -> Vec<Answers> {
    let privacy = PrivacySettings::default();
    let provenance = Provenance::Seeded;
    let hooks = Hooks { privacy: &privacy, provenance };
    let mut predictions = Predictions::new(foreteller, &hooks, 1).expect("nothing to protect");
    let mut answers = vec![Answers::none(heard[0].steps()); heard.len()];
    for t in 0..heard[0].steps() {
        predictions.predict(t as u64, &mut |message| answers[message.client()].hear(&message));
        for (m, heard) in heard.iter().enumerate() {
            predictions.hear_again(m, heard, t);
        }
    }
    answers
}

/// z of every step, as it arrives.
fn summaries(line: &mut Line, trace: &Trace) -> Vec<Vec<f64>> {
    let z = |message: crate::wire::Outgoing| {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        match Message::decode(&bytes).expect("a message").content() {
            Content::Summary { z, .. } => z.iter().map(|z| f64::from(*z)).collect(),
            other => panic!("{other:?} is no summary"),
        }
    };
    line.teach_stretch(trace).map(|message| z(message.expect("finite"))).collect()
}

impl World {
    /// What every client reports over a stretch; `lie` stands in for the z of some clients.
    fn reports(
        &mut self,
        stretch: &[Trace],
        lie: impl Fn(usize, usize) -> Option<Option<Vec<f64>>>,
    ) -> Vec<Vec<Report>> {
        let mut memory = self.foreteller.memory();
        let mut parts = Vec::new();
        let truth: Vec<Vec<Vec<f64>>> = self
            .lines
            .iter_mut()
            .zip(stretch)
            .map(|(line, trace)| summaries(line, trace))
            .collect();
        (0..stretch[0].steps())
            .map(|t| {
                let reports = (0..CLIENTS)
                    .map(|m| {
                        let said = stretch[m].at(t).expect("nobody is silent");
                        let (nominal, cuts) = &mut self.own[m];
                        let own = cuts.symbol(nominal.squared(said.r_w)).expect("a distance");
                        let told = self.foreteller.foretell(&memory, m, &mut parts);
                        match self.informed[m].as_mut().filter(|_| told) {
                            Some(informed) => {
                                let parts: Vec<f32> = parts.iter().map(|e| *e as f32).collect();
                                let beside = informed.symbol(said.r_w, &parts).expect("finite");
                                Report::Informed(own, beside)
                            }
                            None => Report::Symbol(own),
                        }
                    })
                    .collect();
                for (m, truth) in truth.iter().enumerate() {
                    let told = truth[t].clone();
                    let z = lie(m, t).unwrap_or(Some(told));
                    self.foreteller.hear(&mut memory, m, z.as_deref());
                }
                reports
            })
            .collect()
    }

    fn roots(&self, reports: &[Vec<Report>]) -> Vec<usize> {
        roots(&self.enrolments, reports)
    }

    /// Who is named by first symbols alone.
    fn roots_by_symbols(&self, reports: &[Vec<Report>]) -> Vec<usize> {
        let alone = self.enrolments.iter().cloned();
        let alone: Vec<_> = alone.map(|e| Enrolment { remainder: None, ..e }).collect();
        roots(&alone, reports)
    }
}

fn roots(enrolments: &[Enrolment], reports: &[Vec<Report>]) -> Vec<usize> {
    let rules = Rules::with_arl0(3000.0);
    let grading = Grading::five_levels();
    let reach = Reach::from_edges(CLIENTS, EDGES.map(|(from, to, ..)| (from, to)));
    let mut server = Inference::new(grading, rules, enrolments, reach);
    let changes: Vec<Change> = reports.iter().flat_map(|r| server.step(r).to_vec()).collect();
    let roots = changes.iter().filter_map(|change| match change {
        Change::Opened(incident) | Change::Frozen(incident) => incident.root,
        _ => None,
    });
    roots.collect()
}

fn elevated(reports: &[Vec<Report>], client: usize) -> (f64, f64) {
    let (mut own, mut beside, mut n) = (0.0, 0.0, 0.0f64);
    for report in reports {
        if let Report::Informed(a, b) = report[client] {
            own += f64::from(u8::from(a.level() >= 2));
            beside += f64::from(u8::from(b.level() >= 2));
            n += 1.0;
        }
    }
    (own / n.max(1.0), beside / n.max(1.0))
}

#[test]
fn those_who_are_influenced_send_pairs_and_the_others_one_symbol() {
    let world = world();
    let sends: Vec<bool> = world.informed.iter().map(Option::is_some).collect();
    assert_eq!(sends, [false, true, true, false]);
}

#[test]
fn what_a_neighbour_explains_does_not_surprise() {
    let mut world = world();
    // C1 swings more than usual, though within what states may be.
    let stretch = traces(CLIENTS, &EDGES, 1000, 5, |m, _| if m == 0 { 0.9 } else { 0.0 });
    let reports = world.reports(&stretch, |_, _| None);
    let (own, beside) = elevated(&reports, 1);
    assert!(own > 0.12, "C2 feels it: {own}");
    assert!(beside < 0.6 * own, "{own} alone, {beside} once C1 is known");
}

#[test]
fn a_fault_is_seen_and_named_as_first_symbols_name_it() {
    let mut world = world();
    for guilty in 0..CLIENTS {
        let push = |m: usize, t: usize| {
            if m == guilty && (300..330).contains(&t) { 2.5 } else { 0.0 }
        };
        let stretch = traces(CLIENTS, &EDGES, 500, 20 + guilty as u64, push);
        let reports = world.reports(&stretch, |_, _| None);
        let (roots, alone) = (world.roots(&reports), world.roots_by_symbols(&reports));
        assert!(!roots.is_empty(), "a fault of {guilty} is not held back");
        assert!(roots.iter().all(|root| alone.contains(root)), "{guilty}: {roots:?}, {alone:?}");
    }
}

#[test]
fn a_client_that_vanishes_leaves_the_others_their_own_symbols() {
    let mut world = world();
    let stretch = traces(CLIENTS, &EDGES, 300, 7, |_, _| 0.0);
    let reports = world.reports(&stretch, |m, t| (m == 0 && t >= 100).then_some(None));
    assert!(reports[110..].iter().all(|r| matches!(r[1], Report::Symbol(_))));
    assert!(reports[110..].iter().all(|r| matches!(r[2], Report::Informed(..))));
}

/// What a client may say instead of its state.
fn lies(t: usize, truth: &[f64], replayed: &[Vec<f64>]) -> Vec<Option<Vec<f64>>> {
    let swing = if t.is_multiple_of(2) { 5.0 } else { -5.0 };
    let slow = if (t / 40).is_multiple_of(2) { 5.0 } else { -5.0 };
    vec![
        Some(vec![1.0, 1.0]),
        Some(vec![5.0, -5.0]),
        Some(truth.iter().map(|z| -z).collect()),
        Some(replayed[t % replayed.len()].clone()),
        Some(vec![1e18, -1e18]),
        Some(vec![f64::NAN, 1.0]),
        Some(vec![swing, swing]),
        Some(vec![slow, -slow]),
        Some(vec![1.0]),
        None,
    ]
}

/// Runs a stretch once for every lie of every client, told from step 100 on.
fn with_lies(stretch: &[Trace], mut check: impl FnMut(&World, usize, usize, &[Vec<Report>])) {
    let mut world = world();
    let replayed = world.nominal.clone();
    for liar in 0..CLIENTS {
        let truth = summaries(&mut world.lines[liar], &stretch[liar]);
        for kind in 0..lies(0, &truth[0], &replayed).len() {
            let reports = world.reports(stretch, |m, t| {
                (m == liar && t >= 100).then(|| lies(t, &truth[t], &replayed)[kind].clone())
            });
            check(&world, liar, kind, &reports);
        }
    }
}

#[test]
fn a_client_that_lies_about_its_state_makes_nobody_else_the_root() {
    let mut felt = 0.0f64;
    for seed in [6, 16, 26] {
        let stretch = traces(CLIENTS, &EDGES, 900, seed, |_, _| 0.0);
        with_lies(&stretch, |world, liar, kind, reports| {
            let (roots, alone) = (world.roots(reports), world.roots_by_symbols(reports));
            let blamed: Vec<_> = roots.iter().filter(|root| !alone.contains(root)).collect();
            assert!(blamed.is_empty(), "{liar}, {kind}: {blamed:?}");
            felt = felt.max(elevated(reports, 1).1);
        });
    }
    assert!(felt > 0.5, "some lies are strong enough to matter: {felt}");
}

#[test]
fn beside_a_lie_about_a_state_a_fault_is_pinned_on_no_innocent_and_is_not_hidden() {
    for guilty in 0..CLIENTS {
        let push = |m: usize, t: usize| {
            if m == guilty && (500..530).contains(&t) { 2.5 } else { 0.0 }
        };
        let stretch = traces(CLIENTS, &EDGES, 700, 8 + guilty as u64, push);
        with_lies(&stretch, |world, liar, kind, reports| {
            let (roots, alone) = (world.roots(reports), world.roots_by_symbols(reports));
            assert!(roots.iter().all(|root| alone.contains(root)), "{liar}, {kind}: {roots:?}");
            // One that hides its own fault leaves its effects to speak, in either tier.
            if liar == guilty {
                return;
            }
            let innocent = roots.iter().any(|root| *root != guilty && *root != liar);
            assert!(!innocent, "{liar} tells lie {kind}, fault at {guilty}: {roots:?}");
            assert!(!roots.is_empty(), "{liar} tells lie {kind} and hides a fault of {guilty}");
        });
    }
}

#[test]
fn what_is_foretold_of_a_client_depends_on_one_other_alone() {
    let world = world();
    let foretold = |loud: usize, client: usize| {
        let mut memory = world.foreteller.memory();
        for t in 0..20 {
            for m in 0..CLIENTS {
                let z = if m == loud { [5.0, -5.0] } else { [0.1 * f64::from(t % 3), 0.2] };
                world.foreteller.hear(&mut memory, m, Some(&z));
            }
        }
        let mut out = Vec::new();
        world.foreteller.foretell(&memory, client, &mut out).then_some(out)
    };
    for client in 0..CLIENTS {
        let honest = foretold(CLIENTS, client);
        for loud in 0..CLIENTS {
            let explains = world.foreteller.explainer(client) == Some(loud);
            assert_eq!(foretold(loud, client) != honest, explains, "{loud} about {client}");
        }
    }
}
