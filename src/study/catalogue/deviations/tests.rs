use super::*;

#[test]
fn every_deviation_with_a_variant_is_measured() {
    let parts = [
        "oracle: H at the estimate before",
        "oracle: heads of width 4",
        "σ by Theorem 7.1",
        "classic σ",
        "P4 is a client",
        "repeated sensors",
        "σ by Theorem 7.2",
        "first false alarm in training",
        "Table 1 pair by pair",
        "every step by itself",
        "anomalies at all clients",
        "judged from the first step",
        "every run is an episode",
        "every second",
        "flags of minutes",
    ];
    for deviation in &DEVIATIONS {
        match deviation.effect {
            Effect::Row(name) => {
                let variants = FEDERATIONS.iter().chain(&FILTERS).map(|variant| variant.name);
                let mut names = variants.chain(PLANTS.map(|(name, _)| name));
                assert!(names.any(|known| known == name), "{name}");
            }
            Effect::Pair(name) => assert!(parts.contains(&name), "{name}"),
            Effect::Words(words) => assert!(!words.is_empty()),
        }
    }
}

#[test]
fn an_effect_is_the_paper_s_way_held_against_ours() {
    let run = |variant: &str, client_loss, inside_f1| Measured {
        variant: variant.into(),
        server_loss: 2.0 * client_loss,
        client_loss,
        effects: Some(0.01),
        inside_f1: Some(inside_f1),
        f1: None,
    };
    let runs = [run(OURS, 1.0, 0.7), run("one pass", 1.5, 0.65)];
    let lines = Line::group(runs.iter().map(|m| ("A2", m.variant.clone(), m)));
    let words = effect_of(&lines, "one pass");
    assert_eq!(words.as_deref(), Some("L_s +50 %, L_a +50.0 %, inside F1 -0.050"));
    assert_eq!(effect_of(&lines, "φ of width 1"), None);
    let pairs = [Pair::new("classic σ", "σ", 3.0, 4.5), Pair::new("classic σ", "σ", 5.0, 5.5)];
    let lines = PairLine::group(pairs.iter().map(|p| (p.deviation.clone(), "σ", p)));
    assert_eq!(pairs_of(&lines, "classic σ").as_deref(), Some("σ 4.000 → 5.000"));
    assert_eq!(pairs_of(&lines, "another"), None);
}

/// The list is what a user comes for: it stands there before anything is measured.
#[test]
fn the_list_is_there_before_any_job_is_done() {
    let first = STUDY.first.expect("a table that comes first");
    let table = first(&[]).expect("no result is needed");
    assert_eq!(table.lines.len(), DEVIATIONS.len());
    let effects: Vec<&Cell> = table.lines.iter().filter_map(|line| line.last()).collect();
    assert!(effects.contains(&&Cell::words("no effect on figures")));
    assert!(effects.contains(&&Cell::words("not run")));
}

#[test]
fn the_guide_has_the_same_list() {
    let page = include_str!("../../../guide/paper.rs");
    for Deviation { paper, here, why, .. } in &DEVIATIONS {
        let line = format!("//! | {paper} | {here} | {why} | ");
        assert!(page.contains(&line), "{line}");
    }
}
