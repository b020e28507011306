//! Second symbols, informed by a neighbour (tier 2).

use super::*;

/// Enrolments of four clients that explain each other in a ring, and the same without.
pub(super) fn ring() -> [Vec<Enrolment>; 2] {
    let plain = enrolments(4);
    let explained = plain.iter().enumerate().map(|(m, enrolment)| {
        let mut rng = rng::stream(98, m as u64);
        let beside: Vec<_> = (0..2000).map(|_| Some(draw(1.0, &mut rng))).collect();
        let of_pairs = Enrolment::of_symbols(&beside, &Grading::five_levels(), None, &mut rng);
        let (explainer, counts, tail) = ((m + 3) % 4, of_pairs.counts, of_pairs.tail);
        Enrolment { remainder: Some(Remainder { explainer, counts, tail }), ..enrolment.clone() }
    });
    [explained.collect(), plain]
}

pub(super) fn ring_server(enrolments: &[Enrolment]) -> Inference {
    let reach = Reach::from_edges(4, [(0, 2)]);
    Inference::new(Grading::five_levels(), Rules::with_arl0(ARL0), enrolments, reach)
}

/// Reports of a stretch of pairs; levels of whoever is in trouble are high.
pub(super) fn pairs(levels: &[Vec<(usize, usize)>]) -> Vec<Vec<Report>> {
    let pair = |(own, beside): &(usize, usize)| Report::Informed(at(*own), at(*beside));
    levels.iter().map(|step| step.iter().map(pair).collect()).collect()
}

#[test]
fn an_alarm_that_a_quiet_neighbour_explains_is_held_back_and_one_that_it_does_not_is_said() {
    let [explained, _] = ring();
    let step = |beside| vec![(0, 0), (4, beside), (0, 0), (0, 0)];
    let said = |beside| {
        let mut server = ring_server(&explained);
        roots(&run(&mut server, &pairs(&vec![step(beside); 20])))
    };
    assert_eq!(said(0), []);
    let unexplained = said(4);
    assert!(!unexplained.is_empty() && unexplained.iter().all(|root| *root == Some(1)));
}

#[test]
fn a_root_is_named_by_first_symbols_whatever_the_second_ones_say() {
    let [explained, plain] = ring();
    // Client 1 shows more than client 0, and nothing that client 0 does not explain.
    let step =
        |t: usize| vec![(if t.is_multiple_of(3) { 3 } else { 4 }, 4), (4, 0), (0, 0), (0, 0)];
    let world = pairs(&(0..20).map(step).collect::<Vec<_>>());
    let last = |enrolments: &[Enrolment]| {
        closed(&run(&mut ring_server(enrolments), &world)).pop().expect("an incident").0
    };
    assert_eq!(last(&plain).root, Some(1));
    assert_eq!(last(&explained).root, Some(1));
}

#[test]
fn how_much_of_an_effect_is_explained_is_known_in_tier_2() {
    // Client 1 is explained by client 0, which shows more.
    let [with, without] = ring();
    let world = |beside| pairs(&vec![vec![(4, 4), (3, beside), (0, 0), (0, 0)]; 20]);
    let explained = |enrolments: &[Enrolment], beside| {
        let mut server = ring_server(enrolments);
        for reports in world(beside) {
            server.step(&reports);
        }
        assert_eq!(server.incident().and_then(|incident| incident.root), Some(0));
        server.explained(1)
    };
    assert_eq!(explained(&with, 0), Some(1.0));
    assert!(explained(&with, 3).is_some_and(|share| share < 0.2));
    assert_eq!(explained(&without, 0), None);
}

#[test]
fn nobody_is_explained_by_itself_or_by_a_stranger() {
    let [mut explained, _] = ring();
    for (m, enrolment) in explained.iter_mut().enumerate() {
        let remainder = enrolment.remainder.as_mut().expect("explained");
        remainder.explainer = if m % 2 == 0 { m } else { 9 };
    }
    let mut server = ring_server(&explained);
    let changes = run(&mut server, &pairs(&vec![vec![(0, 0), (4, 0), (0, 0), (0, 0)]; 20]));
    assert!(roots(&changes).contains(&Some(1)), "nothing is explained: {changes:?}");
}

/// An incident that is held back is shown later than its alarm. The time for a revision counts from the alarm. If it
/// counted from when the incident is shown, tier 2 would revise this root and tier 1 would not.
#[test]
fn an_incident_that_was_held_back_is_revised_no_longer_than_one_that_was_not() {
    // One digit a client, one word a step.
    let own = "0040 0040 0030 0030 0030 0030 0030 0030 0031 0140 1140 0030 0113 1103 0014 0114 1014 1003 0113 0043 \
        0033 0134 0134 1043 1043 0314 1303 1413 1314 1413 1313 0313 1314 1303 0303 1303 1304 0314 0100 4411 \
        1330 1330 1330 0430 1341 0430 1430 1331 1430 0441 1110 0010 0000 0110 1001 0110 1011 1011 0133 0144 \
        4100 4011 4011 4001 3010 3011";
    let beside = "0000 0000 0000 0000 0000 0000 0000 0000 0212 2111 0204 4411 3341 4323 1012 4140 4021 1124 3133 2144 \
        1010 3411 0111 2430 4240 4323 4421 2412 4322 1044 3342 2213 2113 2400 3311 0411 4410 4123 0401 2222 \
        1313 1130 1011 0331 4314 4301 0040 3331 2110 0020 2101 2010 3220 1112 4044 1300 4244 1000 0243 2331 \
        3033 2433 4422 4430 4302 0241";
    let levels = |text: &str| -> Vec<Vec<usize>> {
        let digit = |c: char| c.to_digit(10).expect("a level") as usize;
        text.split_whitespace().map(|step| step.chars().map(digit).collect()).collect()
    };
    let steps = levels(own).into_iter().zip(levels(beside));
    let world: Vec<_> = steps.map(|(own, beside)| own.into_iter().zip(beside).collect()).collect();
    let [explained, plain] = ring();
    let (mut both, mut alone) = (ring_server(&explained), ring_server(&plain));
    let mut said_later = false;
    for reports in pairs(&world) {
        both.step(&reports);
        alone.step(&reports);
        let Some(said) = both.incident() else { continue };
        let by_symbols =
            alone.incident().expect("tier 1 has an incident wherever tier 2 shows one");
        assert_eq!(said.root, by_symbols.root);
        said_later |= said.opened > by_symbols.opened;
    }
    assert!(said_later, "it was held back");
}
