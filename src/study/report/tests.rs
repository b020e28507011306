use proptest::prelude::*;

use super::svg::{self, Theme};
use super::text::{Page, render};
use super::*;
use crate::score::metrics::run_length::RunLength;

fn report() -> Report {
    let f1 = Spread::of([Some(0.9), Some(1.0), None]);
    let none_ended = RunLength { mean: None, at_least: Some(3000.0), ended: 0, censored: 1 };
    let number = |value: f64, digits| Figure::Number(Some(value)).cell(digits);
    let title = "Two methods on two families";
    let mut table = Table::new(title, 2, ["family", "method", "F1", "ARL0"])
        .note("ARL0 in steps; >: no false alarm in what was watched.");
    table.lines = vec![
        vec![
            Cell::words("A2"),
            Cell::words("evidence"),
            Figure::Spread(f1).cell(2),
            Figure::RunLength(none_ended).cell(0),
        ],
        vec![Cell::words("A2"), Cell::words("look-up"), number(0.27, 2), number(17.2, 1)],
        vec![
            Cell::words("B4"),
            Cell::words("evidence"),
            Figure::Number(None).cell(0),
            Figure::Count(12).cell(0),
        ],
    ];
    let row =
        Row::new("A2", "evidence", 2).with("f1", 0.95).with("f1_std", 0.070_710_678_118_654_74);
    Report {
        study: "small".into(),
        title: "a report for a test".into(),
        command: "headwater study small".into(),
        tables: vec![table],
        charts: vec![lines(), bars()],
        reading: vec!["Evidence mode names the root more often than the look-up on A2.".into()],
        rows: vec![row.with("arl0", Value::Null)],
    }
}

fn lines() -> Chart {
    let series = |name: &str, ys: [f64; 4]| Series {
        name: name.into(),
        points: [75.0, 80.0, 90.0, 95.0].into_iter().zip(ys).collect(),
    };
    Chart {
        name: "sweep".into(),
        title: "Precision < recall & both rise".into(),
        drawing: Drawing::Lines {
            x: Axis::linear("percentile"),
            y: Axis::linear("share"),
            series: vec![
                series("precision", [0.1, 0.2, 0.4, 0.6]),
                series("recall", [0.9, 0.8, 0.7, 0.6]),
            ],
        },
    }
}

fn bars() -> Chart {
    let bar = |name: &str, values: &[f64]| Bar {
        name: name.into(),
        value: Spread::of(values.iter().map(|v| Some(*v))),
    };
    Chart {
        name: "f1".into(),
        title: "F1 per family".into(),
        drawing: Drawing::Bars {
            value: Axis::linear("F1"),
            bars: vec![bar("A2", &[0.9, 1.0]), bar("B4 long", &[0.5]), bar("none", &[])],
        },
    }
}

#[test]
fn a_report_is_a_table_its_charts_and_its_reading() {
    insta::assert_snapshot!(render(&report(), Page { width: 60, charts: true }));
}

#[test]
fn a_table_that_is_too_wide_is_broken_with_its_keys_repeated() {
    insta::assert_snapshot!(render(&report(), Page { width: 30, charts: false }));
}

#[test]
fn a_report_is_one_object_for_other_programs() {
    let json = serde_json::to_string(&report()).expect("plain data");
    insta::assert_snapshot!(json);
}

#[test]
fn a_matrix_is_drawn_with_its_names() {
    let chart = Chart {
        name: "corr".into(),
        title: "Correlation".into(),
        drawing: Drawing::Matrix {
            names: vec!["C1".into(), "C2".into()],
            values: vec![1.0, -0.52, f64::NAN, 1.0],
        },
    };
    insta::assert_snapshot!(plot::draw(&chart, 60));
    insta::assert_snapshot!(svg::draw(&chart, Theme::Dark));
}

#[test]
fn a_chart_is_an_svg_for_light_and_dark_with_its_text_escaped() {
    let light = svg::draw(&lines(), Theme::Light);
    insta::assert_snapshot!(light);
    assert!(light.contains("Precision &lt; recall &amp; both rise"));
    assert_ne!(light, svg::draw(&lines(), Theme::Dark));
}

#[test]
fn bars_are_an_svg_too() {
    insta::assert_snapshot!(svg::draw(&bars(), Theme::Light));
}

proptest! {
    #[test]
    fn no_numbers_can_break_a_chart(
        points in prop::collection::vec(
            (prop::num::f64::ANY, prop::num::f64::ANY), 0..12
        ),
        logarithmic in any::<bool>(),
        width in 0usize..200,
    ) {
        let axis = Axis { label: "x".into(), logarithmic };
        let bars = points
            .iter()
            .map(|(x, _)| Bar { name: "b".into(), value: Spread::of([Some(*x)]) })
            .collect();
        let series = vec![Series { name: "s".into(), points: points.clone() }];
        for drawing in [
            Drawing::Lines { x: axis.clone(), y: axis.clone(), series },
            Drawing::Bars { value: axis, bars },
            Drawing::Matrix { names: vec!["a".into()], values: vec![points.first().map_or(0.0, |p| p.0)] },
        ] {
            let chart = Chart { name: "c".into(), title: "c".into(), drawing };
            let text = plot::draw(&chart, width);
            prop_assert!(!text.is_empty());
            let svg = svg::draw(&chart, Theme::Dark);
            prop_assert!(!svg.contains("NaN") && !svg.contains("inf"));
        }
    }

    #[test]
    fn no_line_of_a_table_is_wider_than_the_page(
        columns in 1usize..12, width in 24usize..120,
    ) {
        let names: Vec<String> = (0..columns).map(|c| format!("column {c}")).collect();
        let mut table = Table::new("t", 1, names.iter().map(String::as_str));
        table.lines = vec![(0..columns).map(|c| Figure::Number(Some(c as f64)).cell(2)).collect()];
        let report = Report { tables: vec![table], ..Report::default() };
        for line in render(&report, Page { width, charts: false }).lines() {
            prop_assert!(line.chars().count() <= width, "{line}");
        }
    }

    #[test]
    fn a_spread_does_not_depend_on_order_and_lies_between_the_ends(
        values in prop::collection::vec(-1e3f64..1e3, 1..20)
            .prop_flat_map(|l| (Just(l.clone()), Just(l).prop_shuffle())),
    ) {
        let spread = |list: &[f64]| Spread::of(list.iter().map(|v| Some(*v))).expect("values");
        let (one, other) = (spread(&values.0), spread(&values.1));
        prop_assert!((one.mean - other.mean).abs() < 1e-9);
        let low = values.0.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.0.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        prop_assert!(low - 1e-9 <= one.mean && one.mean <= high + 1e-9);
        prop_assert!(one.std.is_none_or(|std| std <= (high - low) + 1e-9));
    }
}
