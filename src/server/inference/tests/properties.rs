//! What must hold whatever is reported.

use super::*;

/// Four clients with stretches of trouble, and whatever second symbols.
fn troubled() -> impl Strategy<Value = Vec<Vec<(usize, usize)>>> {
    let stretch =
        (prop::collection::vec(0usize..3, 4), 1usize..15).prop_flat_map(|(low, steps)| {
            let client = |low: usize| {
                let own = if low == 0 { 3usize..5 } else { 0usize..2 };
                (own, 0usize..5)
            };
            let step: Vec<_> = low.into_iter().map(client).collect();
            prop::collection::vec(step, steps)
        });
    prop::collection::vec(stretch, 1..20).prop_map(|stretches| stretches.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_reported_the_posterior_sums_to_one_and_evidence_is_never_negative(
        reports in prop::collection::vec(prop::collection::vec(any_report(), 4), 1..250),
    ) {
        let mut server = server(4, &[(0, 1), (1, 0)]);
        for reports in &reports {
            server.step(reports);
            prop_assert!((0..4).all(|m| server.evidence(m) >= 0.0));
            if let Some(incident) = server.incident() {
                prop_assert!((incident.posterior.iter().sum::<f64>() - 1.0).abs() < 1e-9);
                prop_assert!(incident.onset <= incident.opened);
            }
        }
    }

    #[test]
    fn second_symbols_raise_no_alarm_and_change_no_root(levels in troubled()) {
        let [explained, plain] = ring();
        let (mut both, mut alone) = (ring_server(&explained), ring_server(&plain));
        for reports in pairs(&levels) {
            both.step(&reports);
            alone.step(&reports);
            for m in 0..4 {
                prop_assert_eq!(both.evidence(m).to_bits(), alone.evidence(m).to_bits());
                prop_assert!(!both.has_own_fault(m) || alone.has_own_fault(m));
            }
            let Some(said) = both.incident() else { continue };
            let by_symbols = alone.incident();
            prop_assert!(by_symbols.is_some(), "{said:?} is said of nothing");
            if let Some(by_symbols) = by_symbols {
                prop_assert_eq!(said.onset, by_symbols.onset);
                prop_assert_eq!(said.root, by_symbols.root);
                prop_assert_eq!(&said.posterior, &by_symbols.posterior);
            }
        }
    }

    #[test]
    fn renaming_the_clients_renames_the_verdicts(
        levels in prop::collection::vec(prop::collection::vec(0usize..5, 3), 1..200), turn in 0usize..3,
    ) {
        let enrolment = enrolments(1);
        let same: Vec<Enrolment> = vec![enrolment[0].clone(); 3];
        let server = || Inference::new(Grading::five_levels(), Rules::with_arl0(ARL0), &same, Reach::unknown(3));
        let (mut a, mut b) = (server(), server());
        for levels in &levels {
            let mut reports: Vec<Report> = levels.iter().map(|l| Report::Symbol(at(*l))).collect();
            a.step(&reports);
            reports.rotate_left(turn);
            b.step(&reports);
            let (x, y) = (a.incident(), b.incident());
            prop_assert_eq!(x.map(|i| (i.onset, i.opened)), y.map(|i| (i.onset, i.opened)));
            if let (Some(x), Some(y)) = (x, y) {
                let mut turned = x.posterior.clone();
                turned.rotate_left(turn);
                prop_assert!(turned.iter().zip(&y.posterior).all(|(p, q)| (p - q).abs() < 1e-9));
            }
        }
    }
}
