use super::*;

fn judged(bed: &str, seed: u64, setup: &Setup) -> Judged {
    let (_, bed) = BEDS.iter().find(|(name, _)| *name == bed).expect("a family of the study");
    run(*bed, seed, setup).expect("synthetic data can be had and learned")
}

fn linear() -> Setup {
    Setup { decimate: Some(1), ..Setup::new(Proprietary::Linear) }
}

#[test]
fn faults_of_the_papers_plant_are_found_and_named() {
    let judged = judged("A2", 1, &linear());
    assert!(judged.f1 >= Some(0.95), "{judged:?}");
    assert_eq!(judged.right, judged.detected);
}

#[test]
fn one_randomised_bit_a_step_is_enough_for_the_papers_plant() {
    let judged = judged("A2", 1, &linear().one_bit(Some(4.0)));
    assert!(judged.f1 >= Some(0.93), "{judged:?}");
}

#[test]
fn the_same_seed_says_the_same_and_another_one_something_else() {
    let (setup, other) = (linear(), linear().one_bit(Some(2.0)));
    assert_eq!(judged("B4", 3, &setup), judged("B4", 3, &setup));
    assert_ne!(judged("B4", 3, &setup), judged("B4", 3, &other));
}

#[test]
fn a_row_sums_up_its_runs() {
    let run = judged("A2", 2, &linear());
    let row = Row::of("A2", "evidence", &[run.clone(), run.clone()]);
    assert_eq!((row.seeds, row.f1), (2, run.f1));
    assert!((row.events - run.events as f64).abs() < 1e-12);
}

/// Who is named when: the first and the last step, and the client.
fn named(incidents: &[crate::evidence::inference::Incident]) -> Vec<(u64, u64, usize)> {
    let named =
        |i: &crate::evidence::inference::Incident| Some((i.onset, i.last_evidence, i.root?));
    incidents.iter().filter_map(named).collect()
}

#[test]
fn whoever_lies_about_states_or_symbols_no_innocent_becomes_the_root_in_tier_2() {
    let mut said = 0;
    for (family, seed) in [("A4", 51), ("B4", 51), ("B4", 52)] {
        let (_, bed) = BEDS.iter().find(|(name, _)| *name == family).expect("a family");
        let plan = bed.plan();
        let opened = bed.open(seed).expect("synthetic data");
        let mut rows = Rows::read(opened, 1, plan.fit).expect("synthetic data");
        let watched_from = (plan.fit + plan.calibration) as usize;
        rows.shorten(watched_from + 4000);
        let mut setup = Setup::new(Proprietary::Paper).with_states();
        setup.model.epochs = 1;
        let fitted = Federation::fit(&rows, plan.fit, plan.calibration, &setup, seed);
        let mut federation = fitted.expect("synthetic data can be learned");
        let rules = Rules { arl0: plan.arl0, ..setup.rules };
        let clients = rows.clients.len();
        for client in 0..clients {
            for (lie, about_symbols) in
                Lie::ALL.into_iter().flat_map(|lie| [(lie, false), (lie, true)])
            {
                federation.believe(Some(Liar { client, lie, about_symbols })).expect("finite");
                let watch = |federation: &Federation| {
                    let reach = Reach::unknown(clients);
                    named(&federation.watch(&rows, rules, reach, seed))
                };
                let both = watch(&federation);
                let explained = federation.without_explanations();
                let alone = watch(&federation);
                federation.explain(explained);
                for (onset, last, root) in both {
                    let by_symbols = alone.contains(&(onset, last, root));
                    assert!(by_symbols, "{family} {seed}: {client} tells {lie:?}, {root} is named");
                    said += 1;
                }
            }
        }
    }
    assert!(said > 200, "there was enough to be wrong about: {said}");
}

impl Rows {
    /// Ends after so many steps.
    fn shorten(&mut self, steps: usize) {
        self.times.truncate(steps);
        self.starts.truncate(steps);
        for client in &mut self.clients {
            client.values.truncate(steps * client.sensors);
        }
    }
}

impl Federation {
    /// Takes away what clients tell about their explainers.
    fn without_explanations(&mut self) -> Vec<Option<crate::evidence::informed::Remainder>> {
        self.clients.iter_mut().map(|client| client.enrolment.remainder.take()).collect()
    }

    fn explain(&mut self, remainders: Vec<Option<crate::evidence::informed::Remainder>>) {
        for (client, remainder) in self.clients.iter_mut().zip(remainders) {
            client.enrolment.remainder = remainder;
        }
    }
}
